// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Packets: a sender of frames must not be able to put the device into the fatal state,
 * nor to write memory for which it has no key and which is no receive buffer.
 *
 * The victim has queue pairs of every type and in every state.  An input is a
 * script of frames (built as a peer would, changed, and made right again up to
 * a chosen depth, so that they pass the checksums), of the
 * victim's own work, of time, and of pages that come and go.
 */
#include "frame.h"
#include "guard.h"
#include "input.h"
#include "paging.h"
#include "wire/psn.h"
#include "transport/transport.h"


#define PD		1
#define OTHER_PD	2
#define QKEY		0x1234
#define PEER_QPN	100
#define MAX_OPS		200
#define LOG_DEPTH	3
#define HISTORY		8
#define XRCD		3

enum {
	RC, RC_SRQ, UC, UD, GSI, RC_RTR, RC_INIT, RC_SQD, RC_ERR, UD_SQE, RC_V6,
	XRC_INI, XRC_TGT, XRC_TGT2, RAW, SNIFFER, NUM_QPS
};

static const struct plan {
	uint8_t type, state, mtu;
	bool srq, v6;
} plan[NUM_QPS] = {
	[RC]	  = { QHCA_QPT_RC, QHCA_QPS_RTS, QHCA_MTU_256, false, false },
	[RC_SRQ]  = { QHCA_QPT_RC, QHCA_QPS_RTS, QHCA_MTU_1024, true, false },
	[UC]	  = { QHCA_QPT_UC, QHCA_QPS_RTS, QHCA_MTU_256, false, false },
	[UD]	  = { QHCA_QPT_UD, QHCA_QPS_RTS, QHCA_MTU_1024, false, false },
	[GSI]	  = { QHCA_QPT_GSI, QHCA_QPS_RTS, QHCA_MTU_1024, false, false },
	[RC_RTR]  = { QHCA_QPT_RC, QHCA_QPS_RTR, QHCA_MTU_256, false, false },
	[RC_INIT] = { QHCA_QPT_RC, QHCA_QPS_INIT, QHCA_MTU_256, false, false },
	[RC_SQD]  = { QHCA_QPT_RC, QHCA_QPS_SQD, QHCA_MTU_256, true, false },
	[RC_ERR]  = { QHCA_QPT_RC, QHCA_QPS_ERR, QHCA_MTU_256, false, false },
	[UD_SQE]  = { QHCA_QPT_UD, QHCA_QPS_SQE, QHCA_MTU_1024, false, false },
	[RC_V6]	  = { QHCA_QPT_RC, QHCA_QPS_RTS, QHCA_MTU_512, false, true },
	[XRC_INI] = { QHCA_QPT_XRC_INI, QHCA_QPS_RTS, QHCA_MTU_256, false, false },
	[XRC_TGT] = { QHCA_QPT_XRC_TGT, QHCA_QPS_RTS, QHCA_MTU_256, false, false },
	[XRC_TGT2] = { QHCA_QPT_XRC_TGT, QHCA_QPS_RTS, QHCA_MTU_1024, false, false },
	[RAW]	  = { QHCA_QPT_RAW, QHCA_QPS_RTS, QHCA_MTU_256, false, false },
	[SNIFFER] = { QHCA_QPT_RAW, QHCA_QPS_RTS, QHCA_MTU_256, true, false },
};

enum {
	MR_RW, MR_LOCAL, MR_READ, MR_OTHER_PD, MR_NOTHING, MR_GONE, MW1, MW2B,
	NUM_KEYS
};

static const struct region {
	uint32_t pd, access;
	uint64_t iova, len;
	bool device_writes;
} region[] = {
	[MR_RW] = { PD, QHCA_ACCESS_LOCAL_WRITE | QHCA_ACCESS_REMOTE_WRITE |
		    QHCA_ACCESS_REMOTE_READ | QHCA_ACCESS_REMOTE_ATOMIC |
		    QHCA_ACCESS_FLUSH_GLOBAL | QHCA_ACCESS_MW_BIND,
		    0x10000000, 5 * 4096, true },
	[MR_LOCAL] = { PD, QHCA_ACCESS_LOCAL_WRITE, 0x20000123, 3 * 4096,
		       true },
	[MR_READ] = { PD, QHCA_ACCESS_REMOTE_READ, 0x30000000, 2 * 4096,
		      false },
	[MR_OTHER_PD] = { OTHER_PD, QHCA_ACCESS_LOCAL_WRITE |
			  QHCA_ACCESS_REMOTE_WRITE | QHCA_ACCESS_REMOTE_READ |
			  QHCA_ACCESS_REMOTE_ATOMIC, 0x40000000, 4096, false },
	[MR_NOTHING] = { PD, 0, 0x50000000, 4096, false },
};
#define NUM_REGIONS	(sizeof(region) / sizeof(*region))

struct victim {
	struct guard *g;
	struct md *md;
	struct md_cq cq;
	/* The second XRC SRQ is of another domain. */
	struct md_srq srq, xsrq[2];
	struct md_qp qp[NUM_QPS];
	struct md_mr mr[NUM_REGIONS];
	uint32_t key[NUM_KEYS];
	uint8_t mgid[16];
	bool on_demand;			/* the regions that may be written */
	struct paging paging[2];
	unsigned int num_history;
	struct frame history[HISTORY];
};

/* ------------------------------------------------------------------------
 * The victim
 */
static void write_window(struct victim *v, unsigned int which, uint32_t type,
			 bool bound)
{
	const struct md_mr *mr = &v->mr[MR_RW];
	uint32_t index = v->md->next_key++;
	struct qhca_pte pte = { 0 };

	v->key[which] = index << 8 | 0x33;
	put_le32(&pte.ctrl, (bound ? QHCA_PTE_VALID : QHCA_PTE_INVALIDATED) |
			    type << 4 | 0x33u << 8 | 12u << 16 |
			    (uint32_t)mr->buf.levels << 24 |
			    QHCA_PTE_REMOTE_INV |
			    (v->on_demand ? QHCA_PTE_ODP : 0));
	put_le32(&pte.access, QHCA_ACCESS_REMOTE_WRITE |
			      QHCA_ACCESS_REMOTE_READ);
	put_le32(&pte.pd, PD);
	put_le32(&pte.at_key, mr->key >> 8);
	put_le64(&pte.start, mr->iova + 4000);
	put_le64(&pte.length, 200);
	put_le64(&pte.at_base, mr->buf.root);
	put_le64(&pte.at_offset, 4000);
	put_le32(&pte.qpn, type == QHCA_PTE_MW2B ? v->qp[RC].qpn : 0);
	put_le32(&pte.windows, bound);
	md_pte_write(v->md, index, &pte);
	guard_allow(v->g, v->md->pt + 64ull * index, 64);
}

static void make_memory(struct victim *v)
{
	struct qhca_pte *pte;

	for (unsigned int i = 0; i < NUM_REGIONS; i++) {
		const struct region *r = &region[i];

		/* This page belongs to no region. */
		md_alloc(v->md, MD_PAGE, MD_PAGE);
		md_reg_mr(v->md, &v->mr[i], r->pd, r->iova, r->len, r->access);
		v->key[i] = v->mr[i].key;
		if (r->device_writes)
			guard_allow_buf(v->g, &v->mr[i].buf, 0,
					v->mr[i].buf.len);
	}
	/* The device counts windows in the region's entry. */
	pte = md_ptr(v->md, v->md->pt + 64ull * (v->key[MR_RW] >> 8));
	put_le32(&pte->windows, 2);
	guard_allow(v->g, v->md->pt + 64ull * (v->key[MR_RW] >> 8), 64);
	v->key[MR_GONE] = v->md->next_key++ << 8;
}

static bool is_xrc(unsigned int q)
{
	return plan[q].type == QHCA_QPT_XRC_INI ||
	       plan[q].type == QHCA_QPT_XRC_TGT;
}

static void post_recv(struct victim *v, unsigned int q, uint32_t len)
{
	struct md_sge sge[2] = {
		{ region[MR_LOCAL].iova, len / 2, v->key[MR_LOCAL] },
		{ region[MR_LOCAL].iova + 4096, len - len / 2,
		  v->key[MR_LOCAL] },
	};
	struct md_qp *qp = &v->qp[q];

	if (plan[q].srq)
		md_srq_post(v->md, &v->srq, 0x5000, sge, 2);
	else if (is_xrc(q))
		md_srq_post(v->md, &v->xsrq[q == XRC_TGT2], 0x5800, sge, 2);
	else
		md_post_recv(v->md, qp, 0x6000 + qp->rq_pi, sge, 2);
}

static void fill_conn(struct victim *v, unsigned int q, struct md_conn *c)
{
	*c = (struct md_conn){
		.dest_qpn = PEER_QPN + q, .qkey = QKEY,
		.sq_psn = q & 1 ? 0xfffffe : 0x100,
		.rq_psn = q & 1 ? 0x200 : 0xfffffd,
		.access = QHCA_ACCESS_REMOTE_WRITE | QHCA_ACCESS_REMOTE_READ |
			  QHCA_ACCESS_REMOTE_ATOMIC | QHCA_ACCESS_FLUSH_GLOBAL,
		.mtu = plan[q].mtu, .timeout = 10, .retry_cnt = 2,
		.rnr_retry = 1, .min_rnr_timer = 1, .max_rd_atomic = 4,
		.max_dest_rd_atomic = 2,
	};
	md_av(v->md, &c->av, 1, plan[q].v6);
}

static void must(int status, const char *what)
{
	if (status)
		guard_fail("%s: command status %d", what, status);
}

/* Brings a QP to the state of the plan; a malformed WQE brings it to ERR or SQE. */
static void bring_up(struct victim *v, unsigned int q)
{
	static const struct md_wr bad = { .opcode = 0x77 };
	struct md_qp *qp = &v->qp[q];
	struct md_conn c;

	fill_conn(v, q, &c);
	switch (plan[q].state) {
	case QHCA_QPS_INIT:
		must(md_qp_modify(v->md, qp, QHCA_QPS_INIT,
				  QHCA_QP_ATTR_PKEY_INDEX | QHCA_QP_ATTR_ACCESS,
				  &c), "to INIT");
		return;
	case QHCA_QPS_RTR:
		must(md_qp_modify(v->md, qp, QHCA_QPS_INIT,
				  QHCA_QP_ATTR_PKEY_INDEX | QHCA_QP_ATTR_ACCESS,
				  &c), "to INIT");
		must(md_qp_modify(v->md, qp, QHCA_QPS_RTR, QHCA_QP_ATTR_AV |
				  QHCA_QP_ATTR_PATH_MTU | QHCA_QP_ATTR_DEST_QPN |
				  QHCA_QP_ATTR_RQ_PSN |
				  QHCA_QP_ATTR_MAX_DEST_RD_ATOMIC |
				  QHCA_QP_ATTR_MIN_RNR_TIMER, &c), "to RTR");
		return;
	case QHCA_QPS_SQD:
		md_qp_connect(v->md, qp, &c);
		must(md_qp_modify(v->md, qp, QHCA_QPS_SQD, 0, NULL), "to SQD");
		return;
	case QHCA_QPS_ERR:
	case QHCA_QPS_SQE:
		md_qp_connect(v->md, qp, &c);
		md_post_send(v->md, qp, &bad);
		md_ring(v->md, qp);
		return;
	default:
		md_qp_connect(v->md, qp, &c);
		return;
	}
}

static void make_qp(struct victim *v, unsigned int q)
{
	struct md_qp_init init = {
		.type = plan[q].type, .sq_log_depth = LOG_DEPTH,
		.sq_log_stride = 7, .rq_log_depth = LOG_DEPTH,
		.rq_log_stride = 6, .rq_threshold = q & 2, .pd = PD,
		.db_page = q % 4, .send_cq = &v->cq, .recv_cq = &v->cq,
		.srq = plan[q].srq ? &v->srq : NULL,
		.xrcd = XRCD,
	};

	must(md_qp_create(v->md, &v->qp[q], &init), "CREATE_QP");
	guard_allow_buf(v->g, &v->qp[q].buf, v->qp[q].rec_offset + 64, 64);
	bring_up(v, q);
	for (uint32_t i = 0; i < 3; i++)
		post_recv(v, q, 40 + 600 * i);
}

static void join_group(struct victim *v)
{
	struct qhca_mgid mgid = { { [10] = 0xff, [11] = 0xff, [12] = 239,
				    [15] = 7 } };

	memcpy(v->mgid, mgid.gid, 16);
	must(md_cmd(v->md, QHCA_CMD_ATTACH_MCAST, v->qp[UD].qpn, 0, &mgid,
		    sizeof(mgid), NULL, 0, NULL), "ATTACH_MCAST");
}

/* One QP gets IPv4 to even addresses, the other, with @sniff, copies of all frames. */
static void make_rules(struct victim *v, bool sniff)
{
	struct qhca_flow normal = { .layers = QHCA_FLOW_IPV4 };
	struct qhca_flow sniffer = { .type = QHCA_FLOW_SNIFFER };

	normal.mask.dst_ip[3] = 1;
	put_le32(&normal.qpn, v->qp[RAW].qpn);
	put_le32(&sniffer.qpn, v->qp[SNIFFER].qpn);
	must(md_cmd(v->md, QHCA_CMD_CREATE_FLOW, 1, 0, &normal, sizeof(normal),
		    NULL, 0, NULL), "CREATE_FLOW");
	if (sniff)
		must(md_cmd(v->md, QHCA_CMD_CREATE_FLOW, 0, 0, &sniffer,
			    sizeof(sniffer), NULL, 0, NULL), "CREATE_FLOW");
}

static void make_victim(struct victim *v, struct in *in)
{
	struct md_init init = { .eth_mtu = 4200, .log_pt = 8, .log_qp = 5,
				.log_cq = 4, .log_srq = 3 };
	uint8_t how = in_u8(in);

	v->g = guard_take(2);
	v->md = v->g->md;
	v->num_history = 0;
	v->on_demand = how & 4;
	init.scatter = how & 1 || v->on_demand;
	if (how & 2)
		for (int c = 0; c < QHCA_NUM_CACHES; c++)
			init.cache[c] = (struct qhca_geometry){ 1, 1 };
	md_start(v->md, &init);
	v->g->ours = true;
	guard_allow_driver(v->g);
	make_memory(v);
	md_cq_create(v->md, &v->cq, 6);
	guard_allow_buf(v->g, &v->cq.buf, 0, v->cq.rec_offset);
	guard_allow_buf(v->g, &v->cq.buf, v->cq.rec_offset + 64, 64);
	md_srq_create(v->md, &v->srq, PD, 3, 6, 2);
	for (uint32_t i = 0; i < 2; i++)
		must(md_xsrq_create(v->md, &v->xsrq[i], PD, 3, 6, XRCD + i,
				    &v->cq), "CREATE_SRQ");
	for (unsigned int q = 0; q < NUM_QPS; q++)
		make_qp(v, q);
	write_window(v, MW1, QHCA_PTE_MW1, true);
	write_window(v, MW2B, QHCA_PTE_MW2B, true);
	join_group(v);
	if (v->on_demand) {
		paging_start(&v->paging[0], v->g, &v->mr[MR_RW]);
		paging_start(&v->paging[1], v->g, &v->mr[MR_LOCAL]);
	}
	if (!(how & 64))		/* with rules it sends no bundles */
		make_rules(v, !(how & 16));
	v->g->memory = how & 8;
	qhca_link_without_icrc(v->g->hca, (how & 40) == 40);
	guard_settle(v->g);
}

/* ------------------------------------------------------------------------
 * Frames
 */
struct state {				/* where a QP stands */
	/* expected PSN of the peer; oldest and next PSN of its own */
	uint32_t psn, una, next;
};

static struct state state_of(struct victim *v, unsigned int q)
{
	struct qhca_qp_info info;

	if (!hca_qp_info(&v->g->hca->pf, v->qp[q].qpn, &info))
		guard_fail("QP %u is gone", v->qp[q].qpn);
	return (struct state){ info.rq_psn, info.una_psn, info.sq_psn };
}

static uint32_t mtu_of(unsigned int q)
{
	return 128u << plan[q].mtu;
}

static uint8_t pick_opcode(struct in *in, unsigned int q, bool response)
{
	static const uint8_t uc[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 };
	static const uint8_t rc[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12,
				      12, 12, 19, 20, 22, 23, 23, 28, 29 };
	static const uint8_t answer[] = { 13, 14, 15, 16, 17, 17, 17, 18 };
	uint8_t how = in_u8(in);

	if (how >= 250)
		return in_u8(in);
	if (plan[q].type == QHCA_QPT_UD || plan[q].type == QHCA_QPT_GSI)
		return HCA_SVC_UD | (4 + (how & 1));
	if (plan[q].type == QHCA_QPT_UC)
		return HCA_SVC_UC | uc[how % sizeof(uc)];
	if (is_xrc(q))
		return HCA_SVC_XRC | (response != (how >= 240) ?
				      answer[how % sizeof(answer)] :
				      rc[how % sizeof(rc)]);
	return response ? answer[how % sizeof(answer)] : rc[how % sizeof(rc)];
}

static uint32_t pick_length(struct in *in, uint32_t mtu)
{
	switch (in_u8(in) & 7) {
	case 0:
		return 0;
	case 1:
	case 2:
		return mtu;
	case 3:
		return mtu - 1 + in_below(in, 3);
	case 4:
		return in_below(in, 64);
	case 5:
		return 8;
	default:
		return in_below(in, 4) ? in_below(in, mtu) : in_below(in, 8800);
	}
}

static uint64_t pick_address(struct in *in, uint32_t key)
{
	uint32_t number = (key >> 8) - QHCA_FIRST_KEY_INDEX;
	const struct region *r = &region[number < NUM_REGIONS ? number : MR_RW];

	switch (in_u8(in) & 7) {
	case 0:
	case 1:
		return r->iova + in_below(in, 64) * 8;
	case 2:
		return r->iova + r->len - in_below(in, 512);
	case 3:				/* of the windows */
		return region[MR_RW].iova + 4000 + in_below(in, 200);
	case 4:
		return in_number(in);
	case 5:
		return r->iova + in_below(in, 4096);
	default:
		return r->iova;
	}
}

static void pick_remote(struct victim *v, struct in *in, struct hca_pkt *pkt)
{
	uint8_t how = in_u8(in);

	if (how < 128)
		pkt->rkey = v->key[MR_RW];
	else if (how < 250)
		pkt->rkey = v->key[how % NUM_KEYS];
	else
		pkt->rkey = (uint32_t)in_number(in);
	if (pkt->what & HCA_H_IETH && how & 1)
		pkt->rkey = v->key[MW2B];
	pkt->va = pick_address(in, pkt->rkey);
	switch (in_u8(in) & 3) {
	case 0:
		pkt->dma_len = pkt->payload_len;
		break;
	case 1:
		pkt->dma_len = in_below(in, 20000);
		break;
	case 2:
		pkt->dma_len = pkt->payload_len + 256 * in_below(in, 4);
		break;
	default:
		pkt->dma_len = (uint32_t)in_number(in);
		break;
	}
}

static uint32_t pick_psn(struct in *in, const struct state *s, bool response)
{
	uint8_t how = in_u8(in);

	if (how >= 250)
		return in_word(in, 3) & HCA_PSN_MASK;
	if (response)
		return how < 128 ? s->una :
				   hca_psn_add(s->una, how % 16 - 2u);
	return how < 176 ? s->psn : hca_psn_add(s->psn, how % 24 - 16u);
}

static void pick_rest(const struct victim *v, struct in *in, unsigned int q,
		      struct hca_pkt *pkt)
{
	static const uint8_t syndrome[] = { 0x1f, 0x60, 0x61, 0x62, 0x63, 0x20,
					    0x21, 0x3f, 0x00, 0x40, 0x64, 0x7f };
	uint8_t how = in_u8(in);

	pkt->solicited = how & 1;
	pkt->ack_req = how & 6;
	pkt->pkey = how < 248 ? HCA_PKEY_DEFAULT : (uint16_t)in_word(in, 2);
	pkt->qkey = plan[q].type == QHCA_QPT_GSI ? HCA_GSI_QKEY : QKEY;
	if (how >= 244)
		pkt->qkey = (uint32_t)in_number(in);
	pkt->src_qpn = PEER_QPN + q;
	pkt->xrc_srqn = how < 240 ? v->xsrq[0].srqn : how % 5;
	pkt->syndrome = IN_ONE_OF(in, syndrome);
	pkt->swap_add = in_u8(in);
	pkt->compare = pkt->swap_add & 7;
	pkt->orig = pkt->swap_add;
	pkt->feth = how;
	memset(pkt->imm, how, sizeof(pkt->imm));
}

static void pick_path(struct victim *v, struct in *in, unsigned int q,
		      struct hca_pkt *pkt, struct hca_path *path)
{
	uint8_t how = in_u8(in);
	bool v6 = plan[q].v6 != (how >= 250);

	*path = (struct hca_path){ .vlan = 0xffff, .sl = how & 7,
				   .hop_limit = 64, .sport = 0xc123 };
	memcpy(path->dmac, v->md->mac, 6);
	memcpy(path->smac, v->md->mac, 6);
	path->smac[5] = 1;
	if (v6) {
		path->sgid[0] = path->dgid[0] = 0xfe;
		path->sgid[1] = path->dgid[1] = 0x80;
		path->dgid[15] = v->md->mac[5];
	} else {
		memcpy(path->dgid, v->md->gid, 16);
		memcpy(path->sgid, v->md->gid, 16);
	}
	path->sgid[15] = 1;
	if (how >= 244 && how < 250)
		path->vlan = how & 1 ? 0 : 7;
	if (how >= 232 && how < 244) {	/* to the group */
		memcpy(path->dgid, v->mgid, 16);
		path->dmac[0] = 1;
		pkt->dest_qpn = HCA_QPN_MCAST;
	}
}

/* Changes a few bytes of the headers or of any place, and cuts or extends the frame. */
static void change_frame(struct frame *f, struct in *in)
{
	uint8_t how = in_u8(in);
	unsigned int n = how < 176 ? 0 : 1 + how % 4;

	while (n--) {
		size_t at = in_chance(in, 64) ? in_below(in, 9216) :
						14 + in_below(in, 90);

		if (at < f->len)
			f->data[at] ^= in_u8(in) | 1;
	}
	if (how >= 240) {
		f->len = in_below(in, (uint32_t)f->len + 1);
	} else if (how >= 236 && f->len + 64 < sizeof(f->data)) {
		memset(f->data + f->len, 0, 64);
		f->len += in_below(in, 64);
	}
	how = in_u8(in);
	frame_fix(f, how < 224 ? FRAME_ALL : how);
}

static void deliver(struct victim *v, const struct frame *f)
{
	v->history[v->num_history++ % HISTORY] = *f;
	guard_rx(v->g, f->data, f->len);
}

static void send_packet(struct victim *v, struct in *in, bool response)
{
	unsigned int q = in_below(in, NUM_QPS);
	struct state s = state_of(v, q);
	struct hca_path path;
	struct hca_pkt pkt = { .dest_qpn = v->qp[q].qpn };
	struct frame f;

	pkt.opcode = pick_opcode(in, q, response);
	pkt.what = hca_pkt_what(pkt.opcode);
	pkt.psn = pick_psn(in, &s, response);
	if (pkt.what & HCA_OPF_PAYLOAD)
		pkt.payload_len = pick_length(in, mtu_of(q));
	if (pkt.what & (HCA_H_RETH | HCA_H_ATOMIC | HCA_H_IETH))
		pick_remote(v, in, &pkt);
	pick_rest(v, in, q, &pkt);
	pick_path(v, in, q, &pkt, &path);
	frame_build(&f, &path, &pkt, (uint8_t)pkt.psn);
	change_frame(&f, in);
	deliver(v, &f);
}

static void send_again(struct victim *v, struct in *in)
{
	struct frame f;

	if (!v->num_history)
		return;
	f = v->history[in_below(in, v->num_history < HISTORY ?
				v->num_history : HISTORY)];
	change_frame(&f, in);
	deliver(v, &f);
}

/* Sends a frame of the victim back to it: addresses and QPN are swapped. */
static void send_back(struct victim *v, struct in *in)
{
	const struct guard_frame *sent = guard_sent(v->g);
	unsigned int q = in_below(in, NUM_QPS);
	uint8_t t[16], *ip;
	struct frame f;

	if (!sent || get_be16(sent->data + 12) != 0x0800)
		return;
	f.len = sent->len;
	memcpy(f.data, sent->data, sent->len);
	memcpy(t, f.data, 6);
	memcpy(f.data, f.data + 6, 6);
	memcpy(f.data + 6, t, 6);
	ip = f.data + 14;
	memcpy(t, ip + 12, 4);
	memcpy(ip + 12, ip + 16, 4);
	memcpy(ip + 16, t, 4);
	put_be24(ip + 28 + 5, v->qp[q].qpn);
	change_frame(&f, in);
	deliver(v, &f);
}

static void send_anything(struct victim *v, struct in *in)
{
	struct frame f = { .len = in_below(in, 200) };

	in_fill(in, f.data, f.len);
	if (in_chance(in, 128)) {
		memcpy(f.data, v->md->mac, 6);
		put_be16(f.data + 12, in_chance(in, 128) ? 0x86dd : 0x0800);
		frame_fix(&f, in_u8(in));
	}
	guard_rx(v->g, f.data, f.len);
}

/* ------------------------------------------------------------------------
 * What the victim does
 */
static void post_send(struct victim *v, struct in *in)
{
	static const uint8_t opcode[] = {
		QHCA_WQE_SEND, QHCA_WQE_READ, QHCA_WQE_WRITE, QHCA_WQE_READ,
		QHCA_WQE_SEND_IMM, QHCA_WQE_CMP_SWAP, QHCA_WQE_FETCH_ADD,
		QHCA_WQE_WRITE_IMM, QHCA_WQE_SEND_INV, QHCA_WQE_NOP,
		QHCA_WQE_ATOMIC_WRITE, QHCA_WQE_FLUSH,
	};
	unsigned int q = in_below(in, NUM_QPS);
	struct md_qp *qp = &v->qp[q];
	struct md_sge sge = { region[MR_RW].iova + in_below(in, 4096), 0,
			      v->key[MR_RW] };
	struct qhca_wqe_ud ud = { 0 };
	struct md_wr wr = {
		.opcode = IN_ONE_OF(in, opcode), .num_sge = 1, .sge = &sge,
		.raddr = 0x1000, .rkey = 0x2200, .wr_id = qp->sq_pi,
		.flush_type = QHCA_FLUSH_GLOBAL, .flush_len = 64,
	};

	sge.len = wr.opcode == QHCA_WQE_CMP_SWAP ||
		  wr.opcode == QHCA_WQE_FETCH_ADD ||
		  wr.opcode == QHCA_WQE_ATOMIC_WRITE ? 8 :
		  in_below(in, plan[q].type == QHCA_QPT_UD ||
			       plan[q].type == QHCA_QPT_GSI ? 1024 : 8000);
	wr.flags = in_u8(in) & 7;
	if (plan[q].type == QHCA_QPT_UD || plan[q].type == QHCA_QPT_GSI) {
		put_le32(&ud.dest_qpn, PEER_QPN);
		put_le32(&ud.qkey, QKEY);
		/* Sometimes the frame goes to its sender. */
		md_av(v->md, &ud.av, in_chance(in, 64) ? 2 : 1, false);
		wr.ud = &ud;
	}
	if (plan[q].type != QHCA_QPT_XRC_TGT)
		md_post_send(v->md, qp, &wr);
	guard_doorbell(v->g, qp->init.db_page, QHCA_DB_SQ,
		       (uint64_t)qp->sq_pi << 32 | qp->qpn);
}

static void change_state(struct victim *v, struct in *in)
{
	static const uint8_t to[] = { QHCA_QPS_ERR, QHCA_QPS_SQD, QHCA_QPS_RTS,
				      QHCA_QPS_RESET };
	unsigned int q = in_below(in, NUM_QPS);
	uint8_t state = IN_ONE_OF(in, to);
	struct md_qp *qp = &v->qp[q];
	struct md_conn c;

	if (state != QHCA_QPS_RESET) {
		md_qp_modify(v->md, qp, state, 0, NULL);
		return;
	}
	must(md_qp_modify(v->md, qp, QHCA_QPS_RESET, 0, NULL), "to RESET");
	fill_conn(v, q, &c);
	md_qp_connect(v->md, qp, &c);
}

static void pass_time(struct victim *v, struct in *in)
{
	static const uint32_t step[] = { 1000, 20000, 1100000, 5000000,
					 700000000 };

	v->md->host.now += IN_ONE_OF(in, step);
	guard_run(v->g, 1 + in_below(in, 40));
}

static void poll_cq(struct victim *v)
{
	struct qhca_cqe cqe;

	while (md_poll(&v->cq, &cqe)) {
		uint32_t flags = get_le32(&cqe.flags);
		uint32_t srqn = get_le64(&cqe.handle) & 0xffffff;

		if (flags & QHCA_CQE_XRC)
			md_srq_free(v->md, &v->xsrq[srqn != v->xsrq[0].srqn],
				    get_le32(&cqe.wqe));
		else if (flags & QHCA_CQE_SRQ)
			md_srq_free(v->md, &v->srq, get_le32(&cqe.wqe));
		guard_digest(v->g, &cqe, sizeof(cqe));
	}
}

static void step(struct victim *v, struct in *in)
{
	uint8_t op = in_u8(in);
	unsigned int q;

	if (v->on_demand && op % 8 == 7) {
		paging_step(&v->paging[op >> 3 & 1], in);
	} else if (op < 96) {
		send_packet(v, in, false);
	} else if (op < 136) {
		send_packet(v, in, true);
	} else if (op < 152) {
		send_again(v, in);
	} else if (op < 160) {
		send_back(v, in);
	} else if (op < 164) {
		send_anything(v, in);
	} else if (op < 166) {
		(op < 165 ? frame_send_message : frame_send_large)(v->g, in);
	} else if (op < 190) {
		post_send(v, in);
	} else if (op < 206) {
		q = in_below(in, NUM_QPS);
		post_recv(v, q, in_below(in, 2000));
	} else if (op < 226) {
		guard_run(v->g, 1 + in_below(in, 40));
	} else if (op < 238) {
		pass_time(v, in);
	} else if (op < 244) {
		change_state(v, in);
	} else if (op < 250) {
		poll_cq(v);
	} else if (op < 252) {
		v->g->blocked = !v->g->blocked;
		if (!v->g->blocked)
			guard_unblock(v->g);
	} else {
		guard_doorbell(v->g, 0, QHCA_DB_CQ_ARM, v->cq.cqn |
			       (uint64_t)v->cq.ci << 32 |
			       (in_u8(in) & 1) * QHCA_DB_CQ_SOLICITED);
	}
	if (hca_is_dead(&v->g->hca->pf))
		guard_fail("the wire killed the device: STATUS %#x, info %#x",
			   v->g->hca->pf.status, v->g->hca->pf.fatal_info);
}

static void query_all(struct victim *v)
{
	struct qhca_query_qp out;

	for (unsigned int q = 0; q < NUM_QPS; q++)
		must(md_qp_query(v->md, &v->qp[q], &out), "QUERY_QP");
}

uint64_t fuzz_one(const uint8_t *data, size_t size)
{
	static struct victim v;
	struct in in = { data, data + size };
	uint64_t digest;

	make_victim(&v, &in);
	for (int i = 0; i < MAX_OPS && in_more(&in); i++)
		step(&v, &in);
	if (v.g->blocked)
		guard_unblock(v.g);
	guard_settle(v.g);
	query_all(&v);
	guard_check_alive(v.g);
	digest = v.g->digest;
	guard_give(v.g);
	return digest;
}
