/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Page faults: how an access that meets an absent page suspends a QP.
 *
 * The record of a fault is in the context of its QP, so that a fault can
 * always be recorded.  The event may have to wait for room in EQ 0; the EQ
 * then asks hca_fault_info() for the contents, because the fault may have
 * changed or ended by that time.
 */
#include "transport/transport.h"

static const struct {
	uint32_t flags;
	enum qhca_counter counter;
} causes[] = {
	[QHCA_FAULT_GATHER] = { QHCA_FAULT_REQUESTER, QHCA_CNT_fault_gather },
	[QHCA_FAULT_SCATTER] = { QHCA_FAULT_REQUESTER | QHCA_FAULT_WRITE,
				 QHCA_CNT_fault_scatter },
	[QHCA_FAULT_RECV] = { QHCA_FAULT_WRITE, QHCA_CNT_fault_recv },
	[QHCA_FAULT_RDMA_W] = { QHCA_FAULT_WRITE | QHCA_FAULT_RDMA,
				QHCA_CNT_fault_rdma_write },
	[QHCA_FAULT_RDMA_R] = { QHCA_FAULT_RDMA, QHCA_CNT_fault_rdma_read },
	[QHCA_FAULT_ATOMIC] = { QHCA_FAULT_WRITE | QHCA_FAULT_RDMA,
				QHCA_CNT_fault_atomic },
};

static uint32_t new_token(struct hca_fn *fn, uint32_t qpn,
			  enum hca_fault_dir dir)
{
	uint8_t *gen = &fn->qps.fault_gen[qpn];

	if (!++*gen)
		++*gen;
	return qpn | (dir == HCA_FAULT_DIR_REQ ? HCA_FAULT_TOKEN_DIR : 0) |
	       QHCA_PUT(HCA_FAULT_TOKEN_GEN, (uint32_t)*gen);
}

/* The host domain learns no key and no address of stage 1. */
void hca_fault_fill_info(const struct hca_fn *fn, const struct hca_fault *f,
			 struct qhca_fault_info *info)
{
	bool stage2 = hca_fault_is_stage2(f);
	uint32_t gvmi = stage2 ? fn->cfg.gvmi : 0;
	/* The record may come from memory, whose owner has no say in whose it is. */
	uint32_t flags = f->flags & ~QHCA_FAULT_GVMI;

	put_le32(&info->token, f->token);
	put_le32(&info->flags, flags | QHCA_PUT(QHCA_FAULT_GVMI, gvmi));
	put_le32(&info->key, stage2 ? 0 : f->key);
	put_le32(&info->bytes_done, stage2 ? 0 : f->done);
	put_le64(&info->addr, stage2 ? f->bus : f->addr);
	put_le64(&info->length, stage2 ? f->bus_len : f->len);
}

void hca_fault_coalesce(struct hca_fn *fn)
{
	hca_count(fn, QHCA_CNT_faults_coalesced);
}

/*
 * A response belongs to the oldest outstanding request, and a gather that waits
 * for a page belongs to a later one.  The fault of the gather therefore yields
 * to that of the response.  Otherwise the gather could fault each time the
 * requester goes back, and the older fault would never be raised.
 */
static bool gather_yields(const struct hca_qp *qp, enum qhca_fault_cause cause)
{
	return cause == QHCA_FAULT_SCATTER && qp->f_req == HCA_REQF_GATHER;
}

/* The requester or responder waits from now on. */
static void enter_wait(struct hca_fn *fn, struct hca_qp *qp,
		       enum qhca_fault_cause cause)
{
	if (cause == QHCA_FAULT_GATHER)
		hca_qp_enter(fn, qp, QHCA_PART_REQUESTER_FAULT,
			     HCA_REQF_GATHER);
	else if (cause == QHCA_FAULT_SCATTER)
		hca_qp_enter(fn, qp, QHCA_PART_REQUESTER_FAULT,
			     HCA_REQF_SCATTER);
	else if (!hca_qp_is_reliable(qp))
		hca_qp_enter(fn, qp, QHCA_PART_RESPONDER_FAULT,
			     HCA_RESPF_DROPPED);
	else
		hca_qp_enter(fn, qp, QHCA_PART_RESPONDER_FAULT,
			     cause == QHCA_FAULT_RDMA_R ? HCA_RESPF_READ :
							  HCA_RESPF_REQUEST);
}

/* Has software already reported that the page of this access is unavailable? */
static bool known_bad(const struct hca_fn *fn, const struct hca_qp *qp,
		      enum hca_fault_dir dir)
{
	const struct hca_fault *f = &qp->fault[dir];

	return dir == HCA_FAULT_DIR_RESP && qp->f_resp == HCA_RESPF_FAILED &&
	       f->addr == fn->mem.fault.addr && f->key == fn->mem.fault.key;
}

/* Make the record of @dir describe what fn->mem.fault says of stage 2. */
static void add_stage2(const struct hca_fn *fn, struct hca_fault *f)
{
	f->flags &= ~QHCA_FAULT_WRITE;
	f->flags |= QHCA_FAULT_STAGE2 |
		    (fn->mem.fault.write ? QHCA_FAULT_WRITE : 0);
	f->bus = fn->mem.fault.bus;
	f->bus_len = (uint32_t)fn->mem.fault.bus_len;
}

void hca_stage2_post(struct hca_fn *fn, uint32_t qpn, enum hca_fault_dir dir)
{
	struct hca_s2_link *link = &fn->qps.s2_link[qpn];
	bool linked = link->dirs;

	link->dirs |= (uint8_t)(1u << dir);
	hca_s2_post_later(fn);
	if (linked)
		return;
	link->next = 0;
	if (fn->s2.last)
		fn->qps.s2_link[fn->s2.last].next = qpn;
	else
		fn->s2.first = qpn;
	fn->s2.last = qpn;
}

/* Count a new fault and post its event. */
static void report(struct hca_fn *fn, const struct hca_qp *qp,
		   enum hca_fault_dir dir, enum qhca_fault_cause cause)
{
	const struct hca_fault *f = &qp->fault[dir];
	struct qhca_fault_info info;

	hca_count(fn, causes[cause].counter);
	if (hca_fault_is_stage2(f)) {
		hca_count(fn, QHCA_CNT_page_faults2);
		hca_trace(fn, QHCA_TRACE_FAULT, qp->qpn, f->token, f->bus,
			  f->flags);
		hca_stage2_post(fn, qp->qpn, dir);
		return;
	}
	hca_count(fn, QHCA_CNT_page_faults1);
	hca_trace(fn, QHCA_TRACE_FAULT, qp->qpn, f->token, f->addr, f->flags);
	hca_fault_fill_info(fn, f, &info);
	hca_event_fault(fn, qp->qpn, dir, &info);
}

enum hca_fault_raised hca_fault_raise(struct hca_fn *fn,
				      struct hca_qp *qp,
				      enum qhca_fault_cause cause,
				      uint32_t before, uint64_t want)
{
	uint32_t flags = causes[cause].flags;
	enum hca_fault_dir dir = flags & QHCA_FAULT_REQUESTER ?
				 HCA_FAULT_DIR_REQ : HCA_FAULT_DIR_RESP;
	uint64_t done = fn->mem.fault.done, left = want - done;
	struct hca_fault *f = &qp->fault[dir];

	hca_qp_dirty(fn, qp);
	if (hca_fault_waits(qp, dir)) {
		if (!gather_yields(qp, cause)) {
			hca_fault_coalesce(fn);
			return HCA_FAULT_AGAIN;
		}
		hca_count(fn, QHCA_CNT_faults_forgotten);
	}
	if (known_bad(fn, qp, dir))
		return HCA_FAULT_BAD;
	/* The rest of the message uses the same R_Key, but may use other segments. */
	if (!(flags & QHCA_FAULT_RDMA) && left > fn->mem.fault.len)
		left = fn->mem.fault.len;
	*f = (struct hca_fault){
		.addr = fn->mem.fault.addr,
		.len = left,
		.time = fn->hca->now,
		.token = new_token(fn, qp->qpn, dir),
		.key = fn->mem.fault.key,
		.flags = flags | QHCA_PUT(QHCA_FAULT_CAUSE, (uint32_t)cause),
		.done = before + (uint32_t)done,
		.psn = cause == QHCA_FAULT_GATHER ? qp->s_psn : qp->s_una,
	};
	if (fn->mem.fault.stage2)
		add_stage2(fn, f);
	enter_wait(fn, qp, cause);
	report(fn, qp, dir, cause);
	return HCA_FAULT_NEW;
}

void hca_fault_forget(struct hca_fn *fn, struct hca_qp *qp)
{
	for (unsigned int dir = 0; dir < HCA_NUM_FAULT_DIRS; dir++)
		if (hca_fault_waits(qp, dir))
			hca_count(fn, QHCA_CNT_faults_forgotten);
	hca_qp_enter(fn, qp, QHCA_PART_REQUESTER_FAULT, HCA_REQF_NONE);
	hca_qp_enter(fn, qp, QHCA_PART_RESPONDER_FAULT, HCA_RESPF_NONE);
}

bool hca_fault_find(struct hca_fn *fn, uint32_t qpn, unsigned int dir,
		    bool stage2, struct qhca_fault_info *info)
{
	struct hca_qp qp;

	if (qpn >= fn->qps.num_slots || !fn->qps.slot[qpn].live ||
	    !hca_ctx_read(fn, &fn->hca->cache.qd, qpn, &qp) ||
	    !hca_fault_waits(&qp, dir) ||
	    hca_fault_is_stage2(&qp.fault[dir]) != stage2)
		return false;
	hca_fault_fill_info(fn, &qp.fault[dir], info);
	return true;
}

bool hca_fault_info(struct hca_fn *fn, uint32_t qpn, unsigned int dir,
		    struct qhca_fault_info *info)
{
	return hca_fault_find(fn, qpn, dir, false, info);
}

/* How long the fault has been outstanding, in ns. */
static uint64_t age(const struct hca_fn *fn, const struct hca_fault *f)
{
	return fn->hca->now > f->time ? fn->hca->now - f->time : 0;
}

uint8_t hca_fault_timer(const struct hca_fn *fn, const struct hca_qp *qp,
			bool again)
{
	static const uint8_t codes[2][2] = {
		{ HCA_FAULT_TIMER_NEW, HCA_FAULT_TIMER_OLD },
		{ HCA_FAULT2_TIMER_NEW, HCA_FAULT2_TIMER_OLD },
	};
	const struct hca_fault *f = &qp->fault[HCA_FAULT_DIR_RESP];
	uint8_t code = codes[hca_fault_is_stage2(f)][again];
	uint8_t least = qp->sw.min_rnr_timer;

	while (again && code < HCA_AETH_VALUE &&
	       hca_rnr_time(code + 1) <= age(fn, f))
		code++;
	return !least || least > code ? least : code;	/* 0 is the longest */
}

bool hca_fault_unsolicited(const struct hca_fn *fn)
{
	return fn->features & QHCA_FEAT_UNSOLICITED_ACK &&
	       !(fn->init_flags & QHCA_INIT_NO_UNSOL_ACK);
}
