/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Saving and restoring QPs: what is beside their contexts.
 */
#include "transport/qp_image.h"

#include "transport/transport.h"

HCA_IMAGE_COVERS(struct hca_qpslot, 64);
HCA_IMAGE_COVERS(struct hca_s2_link, 8);

/* The octet of a QPN. */
#define LIVE		0x80u
#define KEPT		0x40u
#define TYPE		0x38u
#define STATE		0x07u

/* kept_work */
#define KEPT_WORK	0x0000003fu	/* HCA_WORK_* */
#define KEPT_TIMER	0x00000100u	/* kept_deadline is one */
#define KEPT_DIRS	0x00030000u	/* events of stage 2, by enum hca_fault_dir */

_Static_assert((HCA_WORK_SEND | HCA_WORK_RESPOND | HCA_WORK_FLUSH |
		HCA_WORK_DOORBELL | HCA_WORK_TIMER | HCA_WORK_REFETCH) ==
	       KEPT_WORK && !(HCA_WORK_PLACES & KEPT_WORK), "hca_qpslot.work");

/* No timer of a QP is further away (IBTA 9.7.6.1.3: 4.096 us * 2^31, four times). */
#define FARTHEST_TIMER	40000000000000ull

/* ---- freezing */

uint32_t hca_qp_kept_work(const struct hca_fn *fn, uint32_t qpn)
{
	const struct hca_qpslot *slot = &fn->qps.slot[qpn];
	uint32_t kept = slot->work & KEPT_WORK;

	/* One that waits for a rate, or at which the device lingers, looks again. */
	if (slot->work & HCA_WORK_PLACES || slot->linger.on)
		kept |= HCA_WORK_SEND;
	if (slot->heap_pos)
		kept |= KEPT_TIMER;
	if (fn->qps.s2_link)
		kept |= QHCA_PUT(KEPT_DIRS, (uint32_t)fn->qps.s2_link[qpn].dirs);
	return kept;
}

void hca_qps_keep(struct hca_fn *fn)
{
	for (uint32_t qpn = 0; qpn < fn->qps.num_slots && !hca_is_dead(fn);
	     qpn++) {
		const struct hca_qpslot *slot = &fn->qps.slot[qpn];
		uint32_t kept = slot->live ? hca_qp_kept_work(fn, qpn) : 0;
		struct hca_qp *qp;

		if (!kept)
			continue;
		qp = hca_qp_get(fn, qpn);
		if (!qp)
			return;		/* the function is dead */
		qp->kept_work = kept;
		qp->kept_db_pi = slot->db_pi;
		qp->kept_deadline = slot->deadline;
		hca_qp_dirty(fn, qp);
	}
}

/* ---- the image */

static uint8_t octet(const struct hca_fn *fn, uint32_t qpn)
{
	const struct hca_qpslot *slot = &fn->qps.slot[qpn];

	if (!slot->live || hca_is_dead(fn))
		return 0;
	return (uint8_t)(LIVE | (hca_qp_kept_work(fn, qpn) ? KEPT : 0) |
			 QHCA_PUT(TYPE, slot->type) |
			 QHCA_PUT(STATE, slot->state));
}

/* Until hca_qps_restore() the work of a QP only tells that something has been kept. */
static void load_octet(struct hca_image *im, struct hca_fn *fn, uint32_t qpn,
		       uint8_t v)
{
	struct hca_qpslot *slot = &fn->qps.slot[qpn];

	hca_image_check(im, "qp", v & LIVE ? qpn &&
			QHCA_GET(TYPE, v) <= QHCA_QPT_RAW &&
			QHCA_GET(STATE, v) <= QHCA_QPS_ERR : !v);
	if (hca_image_failed(im))
		return;
	slot->live = !!(v & LIVE);
	slot->type = QHCA_GET(TYPE, v);
	slot->state = QHCA_GET(STATE, v);
	slot->work = v & KEPT ? HCA_WORK_SEND : 0;
}

void hca_qps_image(struct hca_image *im, struct hca_fn *fn)
{
	uint32_t n = hca_table_size(fn, QHCA_TABLE_QP);

	for (uint32_t qpn = 0; qpn < n && !hca_image_failed(im); qpn++) {
		uint8_t v = im->loading ? 0 : octet(fn, qpn);

		hca_image_u8(im, "qp", &v);
		if (im->loading)
			load_octet(im, fn, qpn, v);
	}
	hca_image_layout(im, 2, HCA_QP_LAYOUT);
}

void hca_tokens_image(struct hca_image *im, struct hca_fn *fn)
{
	hca_image_bytes(im, "tokens", fn->qps.fault_gen,
			(size_t)1 << fn->cfg.log_max_qp);
}

/* ---- restoring */

static void go_on(struct hca_fn *fn, struct hca_qp *qp)
{
	struct hca_qpslot *slot = &fn->qps.slot[qp->qpn];
	uint8_t work = qp->kept_work & KEPT_WORK;
	uint8_t dirs = QHCA_GET(KEPT_DIRS, qp->kept_work);
	uint64_t due = qp->kept_deadline, last = fn->hca->now + FARTHEST_TIMER;

	slot->db_pi = qp->kept_db_pi;
	if (work)
		hca_sched_work(fn, qp->qpn, work);
	if (qp->kept_work & KEPT_TIMER)
		hca_sched_timer(fn, qp->qpn, due < last ? due : last);
	for (unsigned int dir = 0; dir < HCA_NUM_FAULT_DIRS; dir++)
		if (dirs >> dir & 1 && fn->qps.s2_link)
			hca_stage2_post(fn, qp->qpn, (enum hca_fault_dir)dir);
}

/*
 * Packets that were on their way when the machine moved are lost.  Without an ACK
 * timeout nobody would send them again, so the QP does it now, once.
 */
static void send_again(struct hca_fn *fn, struct hca_qp *qp)
{
	if (!hca_qp_is_reliable(qp) || qp->sw.timeout ||
	    qp->s_state != HCA_REQ_READY || qp->s_una == qp->s_max ||
	    !hca_requester_may_run(qp))
		return;
	hca_requester_rewind(fn, qp);
	hca_sched_work(fn, qp->qpn, HCA_WORK_SEND);
}

static bool restore(struct hca_fn *fn, uint32_t qpn)
{
	struct hca_qpslot *slot = &fn->qps.slot[qpn];
	bool kept = slot->work;
	struct hca_qp *qp;

	slot->work = 0;
	qp = hca_qp_get(fn, qpn);
	if (!qp || !hca_qp_ref(fn, qp))
		return false;
	slot->has_sq = !!(qp->flags & QHCA_QP_HAS_SQ);
	slot->db_page = qp->db_page;
	hca_linger_forget(fn, qpn);
	if (kept)
		go_on(fn, qp);
	send_again(fn, qp);
	return true;
}

void hca_qps_restore(struct hca_fn *fn)
{
	for (uint32_t qpn = 0; qpn < fn->qps.num_slots && !hca_is_dead(fn); qpn++)
		if (fn->qps.slot[qpn].live && !restore(fn, qpn))
			hca_fatal(fn, QHCA_FATAL_CONTEXT,
				  (uint32_t)QHCA_TABLE_QP << 24 | qpn);
}
