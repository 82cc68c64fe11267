/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Bundles for a function whose packets somebody watches: a rule for sniffing or the fault
 * injector, which get the packets of a bundle one by one.
 */
#include <string.h>

#include "bundles.h"
#include "wire/icrc.h"

#define IP		14
#define BTH		(14 + 20 + 8)	/* IPv4 without a tag */
#define SNIFFED		49152u		/* where the sniffer's receives are in b's region */
#define SNIFF_LEN	16384u

/* A raw packet QP of b that gets copies of all that b receives. */
struct sniffer {
	struct md_cq cq;
	struct md_qp qp;
};

static void begin_to_sniff(struct pair *p, struct sniffer *sniffer)
{
	struct qhca_flow rule = { .type = QHCA_FLOW_SNIFFER };
	struct md_qp_init qi = {
		.type = QHCA_QPT_RAW, .pd = PAIR_PD, .sq_log_depth = 2,
		.sq_log_stride = 7, .rq_log_depth = 6, .rq_log_stride = 6,
		.send_cq = &sniffer->cq, .recv_cq = &sniffer->cq,
	};
	struct md_sge sge = { p->b.mr.iova + SNIFFED, SNIFF_LEN, p->b.mr.key };
	struct md_conn none = { 0 };

	md_cq_create(p->b.md, &sniffer->cq, 6);
	CHECK_EQ(md_qp_create(p->b.md, &sniffer->qp, &qi), 0);
	md_qp_connect(p->b.md, &sniffer->qp, &none);
	for (uint64_t i = 0; i < 32; i++)
		md_post_recv(p->b.md, &sniffer->qp, i, &sge, 1);
	put_le32(&rule.qpn, sniffer->qp.qpn);
	CHECK_EQ(md_cmd(p->b.md, QHCA_CMD_CREATE_FLOW, 0, 0, &rule, sizeof(rule),
			NULL, 0, NULL), 0);
}

/* The sniffer has got this frame, whole, and no other one. */
static void expect_sniffed(int line, struct pair *p, struct sniffer *sniffer,
			   const struct kept *frame)
{
	uint8_t got[SNIFF_LEN];
	struct qhca_cqe cqe;

	if (!md_poll(&sniffer->cq, &cqe)) {
		check_failed(line, "the sniffer has got nothing");
		return;
	}
	get_bytes(&p->b, SNIFFED, got, (uint32_t)frame->len);
	if (cqe.status || get_le32(&cqe.byte_len) != frame->len ||
	    memcmp(got, frame->data, frame->len))
		check_failed(line, "the sniffer has got %u bytes of %zu, status %u",
			     get_le32(&cqe.byte_len), frame->len, cqe.status);
	expect_none(&sniffer->cq);
}
#define EXPECT_SNIFFED(p, sniffer, frame) \
	expect_sniffed(__LINE__, p, sniffer, frame)

/* The hosts agree; then a has sent a bundle which the wire has lost. */
static const struct kept *lost_bundle(struct pair *p, struct seen *s)
{
	watch(p, s);
	connect_pair(p);
	transfer(p, QHCA_WQE_WRITE, MESSAGE, 1);
	EXPECT(&p->a.scq, 0, 0);
	s->limit = 1200;
	s->keep = true;
	begin_write(p, MESSAGE, 2);
	until_bundles(p, s, 1);
	CHECK_EQ(s->num_kept, 1);
	return &s->kept[0];
}

static void give_to_b(struct pair *p, const struct kept *frame)
{
	qhca_rx_frame(p->b.md->host.hca, frame->data, frame->len,
		      host_clock(&p->b.md->host));
	md_settle(p->b.md);
}

/* Sniffers get the packets, and b counts their bytes. */
static void counters_of_a_watched_host(struct pair *p)
{
	struct sniffer sniffer;
	uint64_t packets, bytes;
	struct seen s;

	watch(p, &s);
	connect_pair(p);
	transfer(p, QHCA_WQE_WRITE, MESSAGE, 1);
	EXPECT(&p->a.scq, 0, 0);
	begin_to_sniff(p, &sniffer);
	packets = count_of(&p->b, QHCA_CNT_rx_packets);
	bytes = count_of(&p->b, QHCA_CNT_rx_bytes);
	s.roce_bytes[0] = 0;
	transfer(p, QHCA_WQE_WRITE, MESSAGE, 2);
	CHECK_EQ(s.bundles, 1);
	CHECK_EQ(count_of(&p->b, QHCA_CNT_raw_rx_packets), 8);
	CHECK_EQ(count_of(&p->b, QHCA_CNT_rx_packets) - packets, 8);
	CHECK_EQ(count_of(&p->b, QHCA_CNT_rx_bytes) - bytes,
		 s.roce_bytes[0] + 7 * (14 + 20 + 8 + 12 + 4));
	unwatch(p, &s);
}

/* What b knows of a damaged bundle is that there was one. */
static void expect_damaged(struct pair *p, uint64_t packets)
{
	CHECK_EQ(count_of(&p->b, QHCA_CNT_rx_icrc_errors), 1);
	CHECK_EQ(count_of(&p->b, QHCA_CNT_rx_packets), packets);
	CHECK_EQ(count_of(&p->b, QHCA_CNT_rx_dropped), 0);
	CHECK_EQ(count_of(&p->b, QHCA_CNT_rx_malformed), 0);
	CHECK_EQ(qhca_query_bundles(p->b.md->host.hca).received, 0);
	/* The message before is still there. */
	CHECK(has_arrived(p, MESSAGE, 1));
}

/*
 * The packets of a bundle get an ICRC each, which would be right whatever has become of
 * their octets: so that of the bundle counts.
 */
static void damaged_for_a_sniffer(struct pair *p)
{
	struct sniffer sniffer;
	struct kept damaged;
	uint64_t packets;
	struct seen s;

	damaged = *lost_bundle(p, &s);
	packets = count_of(&p->b, QHCA_CNT_rx_packets);
	begin_to_sniff(p, &sniffer);
	damaged.data[BTH + 2000] ^= 4;
	give_to_b(p, &damaged);
	expect_damaged(p, packets);
	EXPECT_SNIFFED(p, &sniffer, &damaged);
	/* The message comes again. */
	settle(p);
	CHECK(has_arrived(p, MESSAGE, 2));
	EXPECT(&p->a.scq, 1, 0);
	CHECK_EQ(count_of(&p->b, QHCA_CNT_rx_icrc_errors), 1);
	unwatch(p, &s);
}

/* The same of a function whose injector waits for its turn. */
static void damaged_for_the_injector(struct pair *p)
{
	struct qhca_inject_config cfg = {
		.rule[QHCA_INJECT_DROP] = { .nth = 1000 }, .on_rx = true,
		.seed = 1,
	};
	struct kept damaged;
	uint64_t packets;
	struct seen s;
	char err[80];

	damaged = *lost_bundle(p, &s);
	packets = count_of(&p->b, QHCA_CNT_rx_packets);
	CHECK(qhca_inject_set(p->b.md->host.hca, &cfg, err, sizeof(err)));
	damaged.data[BTH + 2000] ^= 4;
	give_to_b(p, &damaged);
	expect_damaged(p, packets);
	settle(p);
	CHECK(has_arrived(p, MESSAGE, 2));
	EXPECT(&p->a.scq, 1, 0);
	unwatch(p, &s);
}

/* b has a member of the group 239.1.2.3. */
static void join_group(struct pair *p, struct sniffer *member)
{
	static const uint8_t group[16] = { [10] = 0xff, 0xff, 239, 1, 2, 3 };
	struct md_qp_init qi = {
		.type = QHCA_QPT_UD, .pd = PAIR_PD, .sq_log_depth = 2,
		.sq_log_stride = 7, .rq_log_depth = 2, .rq_log_stride = 6,
		.send_cq = &member->cq, .recv_cq = &member->cq,
	};

	md_cq_create(p->b.md, &member->cq, 4);
	CHECK_EQ(md_qp_create(p->b.md, &member->qp, &qi), 0);
	md_qp_connect(p->b.md, &member->qp, &p->b.conn);
	CHECK_EQ(md_cmd(p->b.md, QHCA_CMD_ATTACH_MCAST, member->qp.qpn, 0, group,
			sizeof(group), NULL, 0, NULL), 0);
}

/* No bundle is for a group, and what would be one is a malformed packet. */
static void bundle_for_a_group(struct pair *p)
{
	struct sniffer sniffer, member;
	struct kept frame;
	uint64_t packets;
	size_t body;
	struct seen s;

	frame = *lost_bundle(p, &s);
	packets = count_of(&p->b, QHCA_CNT_rx_packets);
	join_group(p, &member);
	begin_to_sniff(p, &sniffer);
	memcpy(frame.data, "\x01\x00\x5e\x01\x02\x03", 6);
	memcpy(frame.data + IP + 16, "\xef\x01\x02\x03", 4);
	put_be32(frame.data + BTH + 4, 0xffffff);
	body = frame.len - BTH - 4;
	hca_path_set_len(frame.data, BTH, IP, body + 4);
	put_le32(frame.data + BTH + body,
		 hca_icrc(frame.data + IP, 20, body));
	give_to_b(p, &frame);
	CHECK_EQ(count_of(&p->b, QHCA_CNT_rx_malformed), 1);
	CHECK_EQ(count_of(&p->b, QHCA_CNT_rx_packets), packets);
	CHECK_EQ(count_of(&p->b, QHCA_CNT_rx_dropped), 0);
	CHECK_EQ(count_of(&p->b, QHCA_CNT_rx_icrc_errors), 0);
	CHECK_EQ(qhca_query_bundles(p->b.md->host.hca).received, 0);
	EXPECT_SNIFFED(p, &sniffer, &frame);
	expect_none(&member.cq);
	settle(p);
	EXPECT(&p->a.scq, 1, 0);
	unwatch(p, &s);
}

const struct scenario bundle_watched_scenarios[] = {
	RC(counters_of_a_watched_host, BUNDLES),
	RC(damaged_for_a_sniffer, BUNDLES),
	RC(damaged_for_the_injector, BUNDLES),
	RC(bundle_for_a_group, BUNDLES),
	{ 0 }
};
