/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Frames of TCP that an Ethernet queue is to segment.
 */
#ifndef QHCA_TEST_NIC_TCP_H
#define QHCA_TEST_NIC_TCP_H

#include "nic.h"
#include "tcp.h"

/* Put the frame that @s describes into fragments.  Returns its first descriptor. */
static inline struct qhca_eth_txd *put_tso(struct nic *n, const struct tcp_spec *s,
				    unsigned int frags)
{
	uint64_t addr = host_alloc(n->h, QHCA_MAX_TSO_FRAME + TCP_MAX_HDR, 1);
	uint32_t len = tcp_whole(s, host_ptr(n->h, addr)), at = 0;
	struct qhca_eth_txd *first = NULL, *txd = NULL;

	for (unsigned int i = 0; i < frags; i++) {
		uint32_t part = i + 1 < frags ? len / frags : len - at;

		txd = put_txd(n, addr + at, part, 0);
		first = first ? first : txd;
		at += part;
	}
	put_le16(&txd->flags, QHCA_TXD_EOP);
	put_le16(&first->flags, get_le16(&first->flags) | QHCA_TXD_TSO |
		 QHCA_TXD_CSUM);
	put_le16(&first->csum_start, (uint16_t)tcp_at(s));
	put_le16(&first->csum_offset, 16);
	put_le16(&first->mss, s->mss);
	put_le16(&first->hdr_len, (uint16_t)tcp_hdr_len(s));
	return first;
}

#endif /* QHCA_TEST_NIC_TCP_H */
