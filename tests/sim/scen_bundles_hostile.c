/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Bundles that no device builds, and bundles for a device that has not agreed to any.
 */
#include <stdlib.h>
#include <string.h>

#include "bundles.h"
#include "wire/icrc.h"

#define IP		14
#define BTH		(14 + 20 + 8)	/* IPv4 without a tag */

struct hostile {
	uint8_t frame[QHCA_MAX_BUNDLE_FRAME];
	struct kept model;		/* a packet of a, with its path */
};

/* A frame from a's address with a right ICRC, whatever its opcode, payload, version and bits. */
static size_t build_hostile(struct hostile *h, const struct hca_pkt *pkt,
			    uint8_t version, uint8_t bits)
{
	size_t pad = hca_pkt_pad(pkt->payload_len), body;
	uint8_t *bth = h->frame + BTH, *end;

	memcpy(h->frame, h->model.data, BTH);
	end = bth + hca_pkt_build(pkt, bth);
	memset(end, 0x5a, pkt->payload_len);
	memset(end + pkt->payload_len, 0, pad);
	end += pkt->payload_len + pad;
	bth[1] |= version;
	bth[8] |= bits;
	body = (size_t)(end - bth);
	hca_path_set_len(h->frame, BTH, IP, body + 4);
	put_le32(end, hca_icrc(h->frame + IP, 20, body));
	return BTH + body + 4;
}

/* One packet of a is the model of others; then the hosts start anew. */
static void take_model(struct pair *p, struct hostile *h)
{
	struct seen s;

	watch(p, &s);
	connect_pair(p);
	s.keep = true;
	transfer(p, QHCA_WQE_WRITE, MTU, 1);
	EXPECT(&p->a.scq, 0, 0);
	CHECK_EQ(s.num_kept, 1);
	h->model = s.kept[0];
	unwatch(p, &s);
	reconnect_pair(p, 1000);
}

static void arrive_at_b(struct pair *p, const struct hostile *h, size_t len)
{
	uint8_t *copy = malloc(len);

	/* The copy is as long as the frame, so that the sanitizer reports a read beyond it. */
	memcpy(copy, h->frame, len);
	qhca_rx_frame(p->b.md->host.hca, copy, len, p->b.md->host.now);
	free(copy);
	md_settle(p->b.md);
}

static uint64_t taken_or_not(const struct end *e)
{
	return count_of(e, QHCA_CNT_rx_packets) +
	       count_of(e, QHCA_CNT_rx_malformed) +
	       count_of(e, QHCA_CNT_rx_dropped);
}

/* b's QP is in RTS, expects @psn and has receives for whatever SENDs come. */
static void make_ready(struct pair *p, uint32_t psn)
{
	struct qhca_cqe cqe;

	while (md_poll(&p->b.rcq, &cqe) || next_event(&p->b, p->b.qp.qpn))
		;
	CHECK_EQ(md_qp_modify(p->b.md, &p->b.qp, QHCA_QPS_RESET, 0, NULL), 0);
	p->b.conn.rq_psn = psn;
	md_qp_connect(p->b.md, &p->b.qp, &p->b.conn);
	for (unsigned int i = 0; i < 2; i++)
		post_recv(&p->b, 16384);
}

/*
 * Must a frame with a whole message be taken?  If it is a bundle of packets of b's MTU, that
 * is; and not if it is another one.  @packets: what b had received before.
 */
static void expect_taken(int line, struct pair *p, uint8_t opcode, uint64_t packets,
			 bool good)
{
	bool rc = p->type == QHCA_QPT_RC, taken;
	struct qhca_cqe cqe;

	if (opcode == ((rc ? HCA_SVC_RC : HCA_SVC_UC) | HCA_OP_SEND_ONLY))
		taken = md_poll(&p->b.rcq, &cqe) && !cqe.status;
	else if (opcode == (HCA_SVC_RC | HCA_OP_WRITE_ONLY) && rc)
		taken = count_of(&p->b, QHCA_CNT_rx_packets) > packets &&
			state_of(&p->b) == QHCA_QPS_RTS;
	else
		return;			/* UC drops a WRITE, and does not say so */
	if (taken != good)
		check_failed(line, "a bundle with opcode %#x %s taken", opcode,
			     taken ? "is" : "is not");
}

/*
 * All opcodes, with bits and lengths of any kind, in place, each at a QP that takes what it
 * should: nobody dies of them.
 */
static void any_bits(struct pair *p)
{
	static const uint32_t length[] = {
		0, 1, 255, 256, 257, 512, 1024, 1025, 4095, 4096, 8192, 9100, 16000,
	};
	static const uint8_t bits[] = { 1, 2, 3, 5, 6, 0x40, 0x7f };
	size_t longest = qhca_max_frame(p->b.md->host.hca);
	static struct hostile h;

	take_model(p, &h);
	p->w.filter = drop_all;		/* a would answer what it has not asked */
	for (unsigned int n = 0; n < 256 * 7 && check_ok(); n++) {
		struct hca_pkt pkt = {
			.opcode = (uint8_t)(n / 7), .pkey = 0xffff, .psn = 1000,
			.dest_qpn = p->b.qp.qpn, .va = p->b.mr.iova,
			.rkey = p->b.mr.key, .ack_req = n & 1, .syndrome = 0x1f,
		};

		for (unsigned int l = 0; l < sizeof(length) / sizeof(*length); l++) {
			uint64_t before = taken_or_not(&p->b);
			uint64_t packets = count_of(&p->b, QHCA_CNT_rx_packets);
			uint8_t version = (n + l) % 5 ? 1 : 0;
			size_t len;

			make_ready(p, 1000);
			pkt.payload_len = pkt.dma_len = length[l];
			len = build_hostile(&h, &pkt, version, bits[n % 7]);
			arrive_at_b(p, &h, len);
			CHECK(taken_or_not(&p->b) > before);
			if (version)
				expect_taken(__LINE__, p, pkt.opcode, packets,
					     bits[n % 7] == 3 &&
					     length[l] > MTU && len <= longest);
		}
		CHECK(!md_dead(p->b.md));
	}
	p->w.filter = NULL;
	settle(p);
	while (next_event(&p->b, p->b.qp.qpn))
		;
	reconnect_pair(p, 5000);
	CHECK_WORKS(p);
}

/*
 * On a hub, long frames of others come by, which are not for this device whatever it takes;
 * and what is for it, and no packet, is too long for software.
 */
static void too_long(struct pair *p)
{
	static const uint8_t other[6] = { 2, 9, 9, 9, 9, 9 };
	static const uint8_t group[6] = { 0x01, 0x00, 0x5e, 1, 2, 3 };
	size_t longest = qhca_max_frame(p->b.md->host.hca);
	const size_t len[] = { QHCA_MAX_FRAME + 1, longest, longest + 1, 40000 };
	const uint8_t *const to[] = { other, p->b.md->mac, group };
	static struct hostile h;

	connect_pair(p);
	memcpy(h.frame + 6, p->a.md->mac, 6);
	put_be16(h.frame + 12, 0x0800);
	for (unsigned int l = 0; l < sizeof(len) / sizeof(*len); l++)
		for (unsigned int i = 0; i < 3 && len[l] > QHCA_MAX_FRAME; i++) {
			uint64_t dropped = count_of(&p->b, QHCA_CNT_rx_dropped);
			uint64_t filtered = count_of(&p->b,
						     QHCA_CNT_eth_rx_filtered);

			memcpy(h.frame, to[i], 6);
			arrive_at_b(p, &h, len[l]);
			CHECK_EQ(count_of(&p->b, QHCA_CNT_rx_dropped) - dropped, i > 0);
			CHECK_EQ(count_of(&p->b, QHCA_CNT_eth_rx_filtered) - filtered,
				 i == 0);
		}
	CHECK_WORKS(p);
}

/* Whoever takes no bundles understands one that is not too long, and drops others. */
static void unasked(struct pair *p)
{
	bool takes = p->a.md->host.made[0]->max_bundle;
	struct hca_pkt pkt = {
		.opcode = HCA_OP_WRITE_ONLY, .pkey = 0xffff, .psn = 1000,
		.dest_qpn = p->b.qp.qpn, .va = p->b.mr.iova,
		.rkey = p->b.mr.key, .payload_len = 8000, .dma_len = 8000,
	};
	static struct hostile h;
	uint8_t data[8000];
	uint64_t packets;

	take_model(p, &h);
	packets = count_of(&p->b, QHCA_CNT_rx_packets);
	arrive_at_b(p, &h, build_hostile(&h, &pkt, 1, 3));
	CHECK_EQ(count_of(&p->b, QHCA_CNT_rx_packets) - packets, 8);
	CHECK_EQ(qhca_query_bundles(p->b.md->host.hca).received, 1);
	get_bytes(&p->b, 0, data, sizeof(data));
	for (unsigned int i = 0; i < sizeof(data) && check_ok(); i++)
		CHECK_EQ(data[i], 0x5a);
	/* This is longer than any frame that a device without bundles takes. */
	pkt.psn = 1008;
	pkt.payload_len = pkt.dma_len = 10000;
	arrive_at_b(p, &h, build_hostile(&h, &pkt, 1, 3));
	CHECK_EQ(count_of(&p->b, QHCA_CNT_rx_packets) - packets, takes ? 18 : 8);
	CHECK_EQ(count_of(&p->b, QHCA_CNT_rx_dropped), !takes);
	CHECK_EQ(state_of(&p->b), QHCA_QPS_RTS);
	/* Packets that are not of the path's MTU are refused as they always were. */
	pkt.psn = takes ? 1018 : 1008;
	pkt.payload_len = pkt.dma_len = 8192;
	packets = count_of(&p->b, QHCA_CNT_rx_packets);
	arrive_at_b(p, &h, build_hostile(&h, &pkt, 1, 1));
	CHECK_EQ(count_of(&p->b, QHCA_CNT_rx_packets) - packets, 32);
	CHECK_EQ(state_of(&p->b), QHCA_QPS_ERR);
	/* What cannot be a bundle, since its packets are not all whole, is dropped. */
	reconnect_pair(p, 1000);
	pkt.opcode = HCA_OP_WRITE_FIRST;
	pkt.psn = 1000;
	pkt.payload_len = pkt.dma_len = 8000;
	packets = count_of(&p->b, QHCA_CNT_rx_packets);
	arrive_at_b(p, &h, build_hostile(&h, &pkt, 1, 3));
	CHECK_EQ(count_of(&p->b, QHCA_CNT_rx_packets) - packets, 0);
	CHECK_EQ(count_of(&p->b, QHCA_CNT_rx_malformed), 1);
	CHECK_EQ(state_of(&p->b), QHCA_QPS_RTS);
	/* Without the version the bits mean nothing, and it is a packet that is too long. */
	arrive_at_b(p, &h, build_hostile(&h, &pkt, 0, 3));
	CHECK_EQ(count_of(&p->b, QHCA_CNT_rx_packets) - packets, 1);
	CHECK_EQ(state_of(&p->b), QHCA_QPS_ERR);
}

/* What a sets in its datagrams, as no device does. */
static bool set_bits(struct world *w, unsigned int from, uint8_t *frame, size_t len)
{
	(void)w;
	if (from)
		return true;
	frame[BTH + 8] |= 1;
	put_le32(frame + len - 4, hca_icrc(frame + IP, 20, len - 4 - BTH));
	return true;
}

/* A datagram is one packet, whatever its bits say. */
static void datagram_with_bits(struct pair *p)
{
	struct qhca_cqe cqe;

	connect_pair(p);
	p->w.filter = set_bits;
	fill_at(&p->a, 0, 3, MTU);
	post_recv(&p->b, 2 * MTU);
	post(p, &p->a, QHCA_WQE_SEND, MTU, 0);
	settle(p);
	CHECK(md_poll(&p->b.rcq, &cqe) && !cqe.status);
	CHECK_EQ(get_le32(&cqe.byte_len), 40 + MTU);
	CHECK(holds(&p->b, 16384 + 40, 3, MTU));
	CHECK_EQ(count_of(&p->b, QHCA_CNT_rx_packets), 1);
	CHECK_EQ(qhca_query_bundles(p->b.md->host.hca).received, 0);
	expect_none(&p->b.rcq);
}

const struct scenario bundle_hostile_scenarios[] = {
	RC(any_bits),
	NAMED(RC, "any_bits (bundles)", any_bits, BUNDLES),
	ON(UC, any_bits),
	RC(too_long),
	NAMED(RC, "too_long (bundles)", too_long, BUNDLES),
	RC(unasked),
	NAMED(RC, "unasked (bundles)", unasked, BUNDLES),
	ON(UD, datagram_with_bits),
	NAMED(UD, "datagram_with_bits (bundles)", datagram_with_bits, BUNDLES),
	{ 0 }
};
