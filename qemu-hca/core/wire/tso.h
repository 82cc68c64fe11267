/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Segmentation of TCP: headers of one large frame become those of many small ones.
 *
 * Software gives headers and up to 64 KiB of payload, and the checksum field has the sum
 * of the pseudo-header with the length of all.  Segments differ in lengths, in the IPv4
 * identification, in the sequence number and in flags; hardware.rst (Segmentation) has
 * the table.
 */
#ifndef HCA_CORE_TSO_H
#define HCA_CORE_TSO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HCA_TSO_CSUM	16		/* offset of the checksum in the TCP header */

/**
 * struct hca_tso - a frame that is to be segmented.
 * @len: bytes of the frame, headers included
 * @mss: bytes of payload in a segment, the last one excepted
 * @hdr_len: bytes of the headers
 * @l4: offset of the TCP header
 * @l3: offset of the IP header, which hca_tso_parse() finds
 * @v6: it is an IPv6 header, likewise
 */
struct hca_tso {
	uint32_t len;
	uint16_t mss, hdr_len, l4;
	uint16_t l3;
	bool v6;
};

/* Are the numbers that software gives in their ranges?  @max: bytes of a segment. */
bool hca_tso_valid(const struct hca_tso *tso, uint32_t max);
/*
 * Look at the headers, of which @tso->hdr_len bytes are at @hdr; the numbers are valid.
 * false: they are not those of TCP over IP, or lie elsewhere than @tso says.
 */
bool hca_tso_parse(struct hca_tso *tso, const uint8_t *hdr);
/*
 * The EtherType behind the tags of a frame with @len bytes, 0: they do not end in it.  @off: the
 * offset of what it stands for.
 */
uint16_t hca_tso_ethertype(const uint8_t *frame, size_t len, uint16_t *off);
/* Bytes of payload in the segment that begins with byte @off of the payload. */
uint32_t hca_tso_payload(const struct hca_tso *tso, uint32_t off);
/*
 * Finish the segment at @p, which has a copy of the headers that were parsed, and behind them
 * @len bytes of payload from byte @off on: hca_tso_payload(), or those of several segments that
 * stay together (large_segment.h).
 */
void hca_tso_finish(const struct hca_tso *tso, uint8_t *p, uint32_t off,
		    uint32_t len);

#endif /* HCA_CORE_TSO_H */
