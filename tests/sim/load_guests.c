/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Three virtual functions of the first host have stage 2.  Two are nodes like others,
 * and their pages come and go under the workload.  The third is a visitor: it writes
 * to itself until it is upset, by a reset, by another row or by its death, in the
 * middle of whatever it does, and then begins a new life.
 */
#include "load.h"

#define VISITOR		3u		/* GVMI */
#define GUEST_MEM	(24u << 20)
#define VISITOR_MEM	(4u << 20)	/* each of its lives has new PA2MA tables */
#define TAKE_LIMIT	30000000000ull	/* pages are left in peace then */
#define VISIT_LIMIT	300000000ull	/* and the visitor is quiet then */
#define BYTES		5000u		/* of a request of the visitor */
#define SLOTS		4u		/* its requests at a time */
#define SLOT		8192u
#define VISITOR_PD	9u

struct visitor {
	struct md *md;
	struct md_cq cq;
	struct md_mr mr;
	struct md_qp qp[2];
	uint32_t posted, done;		/* in this life */
	bool upset;			/* begins anew in the next step */
	bool new_row;
};

/* What must have happened in some seed of many. */
static struct {
	uint64_t seeds, hits, misses, faults, both, naks, resumed, taken, pins;
	uint64_t upsets, writes;
} total;

/* ---- the visitor */

static void start_visitor(struct load *l)
{
	struct visitor *v = l->visitor;
	struct md *md = v->md;
	struct md_qp_init qi = {
		.type = QHCA_QPT_RC, .pd = VISITOR_PD, .sq_log_depth = 3,
		.sq_log_stride = 7, .rq_log_depth = 2, .rq_log_stride = 6,
		.send_cq = &v->cq, .recv_cq = &v->cq,
	};
	struct md_conn conn = {
		.mtu = QHCA_MTU_1024, .access = QHCA_ACCESS_REMOTE_WRITE,
		.timeout = 12, .retry_cnt = 7, .rnr_retry = 7,
		.min_rnr_timer = 1, .max_rd_atomic = 1, .max_dest_rd_atomic = 1,
	};

	if (v->new_row)
		guest_start(l->guests, VISITOR, &l->plan->init[0]);
	else
		md_start(md, &l->plan->init[0]);
	md_cq_create(md, &v->cq, 6);
	md_reg_mr(md, &v->mr, VISITOR_PD, 0x500000, 2 * SLOTS * SLOT,
		  QHCA_ACCESS_LOCAL_WRITE | QHCA_ACCESS_REMOTE_WRITE);
	for (int i = 0; i < 2; i++)
		if (md_qp_create(md, &v->qp[i], &qi))
			host_die("CREATE_QP of the visitor refused");
	md_av(md, &conn.av, md->mac[5], false);
	for (int i = 0; i < 2; i++) {
		conn.dest_qpn = v->qp[!i].qpn;
		md_qp_connect(md, &v->qp[i], &conn);
	}
	v->posted = v->done = 0;
	v->upset = v->new_row = false;
}

static void visitor_post(struct load *l)
{
	struct visitor *v = l->visitor;
	uint32_t off = v->posted % SLOTS * SLOT;
	struct md_sge sge = { v->mr.iova + off, BYTES, v->mr.key };
	struct md_wr wr = {
		.opcode = QHCA_WQE_WRITE, .flags = QHCA_WQE_F_SIGNALED,
		.wr_id = v->posted, .num_sge = 1, .sge = &sge,
		.raddr = v->mr.iova + SLOTS * SLOT + off, .rkey = v->mr.key,
	};
	uint8_t data[BYTES];

	load_fill(v->posted, data, BYTES);
	md_buf_write(v->md, &v->mr.buf, off, data, BYTES);
	md_post_send(v->md, &v->qp[0], &wr);
	md_ring(v->md, &v->qp[0]);
	v->posted++;
}

static bool visitor_poll(struct load *l)
{
	uint8_t want[BYTES], got[BYTES];
	struct visitor *v = l->visitor;
	struct qhca_cqe cqe;

	while (md_poll(&v->cq, &cqe)) {
		uint32_t off = (v->done % SLOTS + SLOTS) * SLOT;

		if (cqe.status || get_le64(&cqe.wr_id) != v->done)
			return FAIL(l, "visitor: request %u ends with status %u, syndrome %#x",
				    v->done, cqe.status,
				    get_le32(&cqe.syndrome));
		load_fill(v->done, want, BYTES);
		md_buf_read(v->md, &v->mr.buf, off, got, BYTES);
		if (memcmp(want, got, BYTES))
			return FAIL(l, "visitor: request %u arrived wrong",
				    v->done);
		v->done++;
		total.writes++;
	}
	return true;
}

static bool visitor_died(struct load *l, enum qhca_fatal_stage2 why)
{
	struct host *h = &l->visitor->md->host;
	uint32_t info = qhca_reg_read(h->hca, VISITOR, QHCA_REG_FATAL_INFO,
				      host_clock(h));

	if (!md_dead(l->visitor->md) || info != why)
		return FAIL(l, "visitor: it should have died of %u, not of %u",
			    why, info);
	return true;
}

static bool upset_visitor(struct load *l)
{
	struct host *pf = &l->guests->pf->host;
	struct visitor *v = l->visitor;
	struct host *h = &v->md->host;

	v->upset = true;
	total.upsets++;
	switch (world_pick(l->w, 6)) {
	case 0:		/* function-level reset; its memory may go now */
		guest_reset(l->guests, VISITOR);
		if (world_chance(l->w, 500000))
			guest_take_all(l->guests, VISITOR);
		return true;
	case 1:
		host_s2_open(pf, h, 0x77);
		v->new_row = true;
		return visitor_died(l, QHCA_STAGE2_REPLACED);
	case 2:
		host_s2_close(pf, h);
		v->new_row = true;
		return visitor_died(l, QHCA_STAGE2_REPLACED);
	case 3:
		qhca_vf_enable(h->hca, VISITOR, false, host_clock(h));
		guest_take_all(l->guests, VISITOR);
		qhca_vf_enable(h->hca, VISITOR, true, host_clock(h));
		guest_reset(l->guests, VISITOR);
		return true;
	case 4:		/* the host domain breaks its promise */
		guest_take_all(l->guests, VISITOR);
		visitor_post(l);
		return true;
	default:
		qhca_inject_fatal(h->hca, VISITOR);
		return true;
	}
}

static bool visitor_work(struct load *l)
{
	struct visitor *v = l->visitor;

	if (v->upset) {
		if (world_chance(l->w, 800000))
			return true;		/* a while later */
		if (!v->new_row)
			guest_reset(l->guests, VISITOR);
		start_visitor(l);
		return true;
	}
	if (md_dead(v->md))
		return FAIL(l, "visitor: it has died");
	if (!visitor_poll(l))
		return false;
	if (l->w->now > VISIT_LIMIT)
		return true;
	if (v->posted - v->done < SLOTS && world_chance(l->w, 200000))
		visitor_post(l);
	return !world_chance(l->w, l->plan->guest_upset) || upset_visitor(l);
}

/* ---- all guests */

void load_create_guests(struct load *l)
{
	if (!l->plan->guests)
		return;
	l->guests = calloc(1, sizeof(*l->guests));
	guests_init(l->guests, l->w, l->w->host[0]);
	for (uint16_t gvmi = 1; gvmi <= VISITOR; gvmi++)
		guest_create(l->guests, gvmi,
			     gvmi == VISITOR ? VISITOR_MEM : GUEST_MEM,
			     l->plan->guests);
	l->guests->fault_ns = l->plan->guest_fault_ns;
	l->guests->careless = true;
}

void load_open_guests(struct load *l)
{
	if (!l->guests)
		return;
	for (uint16_t gvmi = 1; gvmi < VISITOR; gvmi++)
		guest_start(l->guests, gvmi, &l->plan->init[0]);
	l->node[3] = l->node[0];
	l->node[0] = l->guests->guest[1].md;
	l->node[2] = l->guests->guest[2].md;
	l->num_nodes = 4;
	l->visitor = calloc(1, sizeof(*l->visitor));
	l->visitor->md = l->guests->guest[VISITOR].md;
	l->visitor->new_row = true;
	start_visitor(l);
}

void load_close_guests(struct load *l)
{
	if (!l->guests)
		return;
	guests_destroy(l->guests);
	free(l->guests);
	free(l->visitor);
}

void load_pick_nodes(struct load *l, unsigned int node[2])
{
	static const unsigned int ends[][2] = {
		{ 0, 1 }, { 2, 1 }, { 0, 2 }, { 0, 3 }, { 3, 2 }, { 3, 1 },
	};

	if (l->guests)
		memcpy(node, ends[world_pick(l->w, 6)], sizeof(ends[0]));
}

static void take_pages(struct load *l)
{
	uint16_t gvmi = 1 + world_pick(l->w, MAX_GUESTS);
	uint64_t pages = l->guests->guest[gvmi].md->host.next / HOST_PAGE;
	uint64_t page = 1 + world_pick(l->w, (uint32_t)pages);
	uint32_t num = 1 + world_pick(l->w, 8);

	if (gvmi == VISITOR && l->visitor->upset)
		return;
	for (; num-- && page < pages; page++)
		if (world_chance(l->w, 200000))
			guest_protect(l->guests, gvmi, page * HOST_PAGE);
		else
			guest_take(l->guests, gvmi, page * HOST_PAGE);
}

bool load_guest_work(struct load *l)
{
	if (!l->guests)
		return true;
	if (l->w->now < TAKE_LIMIT && world_chance(l->w, l->plan->guest_take))
		take_pages(l);
	if (!visitor_work(l))
		return false;
	if (world_chance(l->w, 300000))
		guests_work(l->guests);
	if (l->guests->error[0])
		return FAIL(l, "%s", l->guests->error);
	return true;
}

static uint64_t count(const struct load *l, uint16_t gvmi, enum qhca_counter id)
{
	return guest_count(l->guests, gvmi, id);
}

static bool check_guest(struct load *l, uint16_t gvmi, unsigned int node)
{
	const struct guest *g = &l->guests->guest[gvmi];
	uint64_t faults = count(l, gvmi, QHCA_CNT_page_faults2);
	uint64_t forgotten = count(l, gvmi, QHCA_CNT_faults_forgotten);

	if (g->faults > faults)		/* the last ones may be on their way */
		return FAIL(l, "function %u: %u faults reported, %" PRIu64 " counted",
			    gvmi, g->faults, faults);
	if (g->pins != count(l, gvmi, QHCA_CNT_pin_requests))
		return FAIL(l, "function %u: %u pin requests", gvmi, g->pins);
	if (g->refused + l->memory[node].given_way > forgotten)
		return FAIL(l, "function %u: STAGE2_RESUME refused", gvmi);
	total.hits += count(l, gvmi, QHCA_CNT_s2_hits);
	total.misses += count(l, gvmi, QHCA_CNT_s2_misses);
	total.faults += faults;
	total.both += faults && count(l, gvmi, QHCA_CNT_page_faults1);
	total.naks += count(l, gvmi, QHCA_CNT_tx_rnr_fault2);
	total.resumed += count(l, gvmi, QHCA_CNT_tx_unsolicited_acks);
	total.taken += g->taken;
	total.pins += g->pins;
	return true;
}

bool load_check_guests(struct load *l)
{
	if (!l->guests)
		return true;
	total.seeds++;
	return check_guest(l, 1, 0) && check_guest(l, 2, 2);
}

bool workload_guests_sum_up(void)
{
	bool ok = total.seeds < 50 ||
		  (total.hits && total.misses && total.faults && total.both &&
		   total.naks && total.resumed && total.taken && total.pins &&
		   total.upsets && total.writes);

	printf("# %" PRIu64 " seeds: hits %" PRIu64 ", misses %" PRIu64
	       ", stage-2 faults %" PRIu64 ", seeds with both kinds %" PRIu64
	       ", RNR NAKs %" PRIu64 ", unsolicited ACKs %" PRIu64
	       ", pages taken %" PRIu64 ", pin requests %" PRIu64
	       ", visitor's upsets %" PRIu64 ", its writes %" PRIu64 "\n",
	       total.seeds, total.hits, total.misses, total.faults, total.both,
	       total.naks, total.resumed, total.taken, total.pins,
	       total.upsets, total.writes);
	memset(&total, 0, sizeof(total));
	return ok;
}
