// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Bundles: which packets may be joined, and the packets of a bundle.
 */
#include "wire/bundle.h"

#include <string.h>

#include "bytes.h"
#include "wire/ether.h"
#include "wire/icrc.h"
#include "wire/psn.h"

#define CODE_OF_256	1	/* ... of 4096: 5, as IBTA codes MTUs */
#define CODE_OF_4096	5

/* The operations of a message by first << 1 | last.  0xff: no packet of several. */
static const uint8_t send_ops[] = {
	HCA_OP_SEND_MIDDLE, HCA_OP_SEND_LAST, HCA_OP_SEND_FIRST,
	HCA_OP_SEND_ONLY,
};
static const uint8_t write_ops[] = {
	HCA_OP_WRITE_MIDDLE, HCA_OP_WRITE_LAST, HCA_OP_WRITE_FIRST,
	HCA_OP_WRITE_ONLY,
};
static const uint8_t response_ops[] = {
	HCA_OP_READ_RESP_MIDDLE, HCA_OP_READ_RESP_LAST,
	HCA_OP_READ_RESP_FIRST, HCA_OP_READ_RESP_ONLY,
};

/* NULL: the operation has no payload, or headers that only one packet of a message has. */
static const uint8_t *ops_of(uint8_t opcode)
{
	switch (opcode & ~HCA_SVC_MASK) {
	case HCA_OP_SEND_FIRST:
	case HCA_OP_SEND_MIDDLE:
	case HCA_OP_SEND_LAST:
	case HCA_OP_SEND_ONLY:
		return send_ops;
	case HCA_OP_WRITE_FIRST:
	case HCA_OP_WRITE_MIDDLE:
	case HCA_OP_WRITE_LAST:
	case HCA_OP_WRITE_ONLY:
		return write_ops;
	case HCA_OP_READ_RESP_FIRST:
	case HCA_OP_READ_RESP_MIDDLE:
	case HCA_OP_READ_RESP_LAST:
	case HCA_OP_READ_RESP_ONLY:
		return response_ops;
	default:
		return NULL;
	}
}

static uint8_t opcode_of(const uint8_t *ops, uint8_t service, bool first,
			 bool last)
{
	return service | ops[(unsigned int)first << 1 | last];
}

uint8_t hca_bundle_code(uint32_t mtu)
{
	uint8_t code = CODE_OF_256;

	while (mtu > 256u << (code - CODE_OF_256))
		code++;
	return code;
}

bool hca_bundle_joins(uint8_t opcode, size_t header_len, uint8_t next, uint8_t *joined)
{
	const uint8_t *ops = ops_of(opcode);

	if (!ops || ops != ops_of(next) ||
	    (opcode ^ next) & HCA_SVC_MASK ||
	    hca_pkt_what(opcode) & HCA_OPF_LAST ||
	    hca_pkt_what(next) & HCA_OPF_FIRST)
		return false;
	*joined = opcode_of(ops, opcode & HCA_SVC_MASK,
			    hca_pkt_what(opcode) & HCA_OPF_FIRST,
			    hca_pkt_what(next) & HCA_OPF_LAST);
	return hca_pkt_header_len(*joined) <= header_len;
}

uint8_t hca_bundle_to_end(uint8_t opcode)
{
	const uint8_t *ops = ops_of(opcode);

	return ops ? opcode_of(ops, opcode & HCA_SVC_MASK,
			       hca_pkt_what(opcode) & HCA_OPF_FIRST, true) :
		     opcode;
}

unsigned int hca_bundle_packets(const struct hca_pkt *pkt)
{
	uint32_t each, num;

	if (!pkt->bundle || pkt->bundle > CODE_OF_4096 ||
	    !ops_of(pkt->opcode) || pkt->service == HCA_SVC_UD)
		return 0;
	each = 256u << (pkt->bundle - CODE_OF_256);
	/* Only the last packet of a message may be shorter, or padded. */
	if (!(pkt->what & HCA_OPF_LAST) && (pkt->payload_len % each || pkt->pad))
		return 0;
	num = (pkt->payload_len + each - 1) / each;
	return num > 1 && num <= HCA_BUNDLE_PACKETS ? num : 0;
}

void hca_bundle_packet(const struct hca_pkt *bundle, unsigned int i,
		     unsigned int num, struct hca_pkt *pkt)
{
	uint32_t each = 256u << (bundle->bundle - CODE_OF_256);
	bool first = !i && bundle->what & HCA_OPF_FIRST;
	bool end = i + 1 == num, last = end && bundle->what & HCA_OPF_LAST;

	*pkt = *bundle;
	pkt->bundle = 0;
	pkt->opcode = opcode_of(ops_of(bundle->opcode), bundle->service, first,
				last);
	pkt->op = pkt->opcode & ~HCA_SVC_MASK;
	pkt->what = hca_pkt_what(pkt->opcode);
	pkt->psn = hca_psn_add(bundle->psn, i);
	pkt->ack_req = end && bundle->ack_req;
	pkt->solicited = end && bundle->solicited;
	pkt->payload = bundle->payload + (size_t)i * each;
	pkt->payload_len = end ? bundle->payload_len - i * each : each;
	pkt->pad = end ? bundle->pad : 0;
}

size_t hca_bundle_frame(const uint8_t *bundle, size_t ip_off, size_t bth_off,
			const struct hca_pkt *pkt, uint8_t *to)
{
	size_t pad = hca_pkt_pad(pkt->payload_len);
	size_t ip_len = bth_off - HCA_UDP_HLEN - ip_off, len;
	uint8_t *p = to + bth_off;

	memcpy(to, bundle, bth_off);
	p += hca_pkt_build(pkt, p);
	memcpy(p, pkt->payload, pkt->payload_len);
	p += pkt->payload_len;
	memset(p, 0, pad);
	p += pad;
	len = (size_t)(p - to) - bth_off;
	hca_path_set_len(to, bth_off, ip_off, len + HCA_ICRC_LEN);
	put_le32(p, hca_icrc(to + ip_off, ip_len, len));
	return (size_t)(p - to) + HCA_ICRC_LEN;
}
