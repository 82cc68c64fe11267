// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * FAULT_RESUME and STAGE2_RESUME: the requester or responder that waited for a page
 * goes on, or the access fails.
 */
#include "transport/transport.h"

static void count_latency(struct hca_fn *fn, uint64_t ns)
{
	enum qhca_counter bin = QHCA_CNT_fault_us_16;
	uint64_t limit = 16000;

	for (; bin < QHCA_CNT_fault_us_more && ns > limit; limit *= 4)
		bin++;
	hca_count(fn, bin);
}

static void resume_responder(struct hca_fn *fn, struct hca_qp *qp, bool ok)
{
	bool naked = hca_qp_has(qp, QHCA_PART_RESPONDER_FAULT, HCA_PS_NAKED);
	bool failed = !ok && !hca_qp_is_reliable(qp);
	enum qhca_fault_cause cause =
		hca_fault_cause(&qp->fault[HCA_FAULT_DIR_RESP]);

	/* UC, UD have dropped the packet; the next one for that page fails. */
	hca_qp_enter(fn, qp, QHCA_PART_RESPONDER_FAULT,
		     failed ? HCA_RESPF_FAILED : HCA_RESPF_NONE);
	hca_sched_work(fn, qp->qpn, HCA_WORK_RESPOND);
	if (failed)
		return;
	if (!ok && cause != QHCA_FAULT_RDMA_R) {
		hca_request_fault_failed(fn, qp, cause);
		return;
	}
	if (!ok)
		hca_reply_fault_failed(fn, qp);
	/* If a READ failed that the peer does not want any more, the QP goes on. */
	if (naked && hca_fault_unsolicited(fn))
		qp->r_flags |= HCA_RF_UNSOLICITED;
}

static void resume_requester(struct hca_fn *fn, struct hca_qp *qp, bool ok)
{
	bool gather = qp->f_req == HCA_REQF_GATHER;
	bool failed = !ok && gather && qp->state != QHCA_QPS_SQE;

	hca_qp_enter(fn, qp, QHCA_PART_REQUESTER_FAULT,
		     failed ? HCA_REQF_FAILED : HCA_REQF_NONE);
	hca_sched_work(fn, qp->qpn, HCA_WORK_SEND);
	if (!ok && !gather)
		hca_requester_fail(fn, qp, QHCA_WC_LOC_PROT_ERR, 0);
	else
		hca_requester_rearm(fn, qp);
}

uint64_t hca_fault_answered(struct hca_fn *fn, uint64_t time, bool ok)
{
	uint64_t ns = fn->hca->now - time;

	count_latency(fn, ns);
	hca_count(fn, ok ? QHCA_CNT_fault_resumes : QHCA_CNT_fault_failures);
	return ns;
}

/* false: no fault of this token and stage waits. */
static bool resume(struct hca_fn *fn, uint32_t token, bool stage2, bool ok)
{
	enum hca_fault_dir dir = token & HCA_FAULT_TOKEN_DIR ?
				 HCA_FAULT_DIR_REQ : HCA_FAULT_DIR_RESP;
	struct hca_qp *qp;
	uint64_t ns;

	if (fn->restore)
		return false;		/* no context can be read yet */
	qp = hca_qp_get(fn, token & HCA_FAULT_TOKEN_QPN);
	if (!qp || !hca_fault_waits(qp, dir) ||
	    qp->fault[dir].token != token ||
	    hca_fault_is_stage2(&qp->fault[dir]) != stage2)
		return false;
	ns = hca_fault_answered(fn, qp->fault[dir].time, ok);
	hca_trace(fn, QHCA_TRACE_RESUME, qp->qpn, token,
		  ok ? QHCA_RESUME_OK : QHCA_RESUME_FAIL, ns);
	hca_qp_dirty(fn, qp);
	if (dir == HCA_FAULT_DIR_REQ)
		resume_requester(fn, qp, ok);
	else
		resume_responder(fn, qp, ok);
	return true;
}

bool hca_fault_resume_stage2(struct hca_fn *fn, uint32_t token, bool ok)
{
	return resume(fn, token, true, ok);
}

/* A resume without a page does no harm: the access meets the same fault again. */
void hca_fault_retry_stage2(struct hca_fn *fn)
{
	for (uint32_t i = 0; i < fn->qps.num_slots * HCA_NUM_FAULT_DIRS; i++) {
		uint32_t qpn = i / HCA_NUM_FAULT_DIRS;
		enum hca_fault_dir dir = i % HCA_NUM_FAULT_DIRS;
		struct hca_qp *qp = fn->qps.slot[qpn].live && !hca_is_dead(fn) ?
				    hca_qp_get(fn, qpn) : NULL;

		if (qp && hca_fault_waits(qp, dir) &&
		    hca_fault_is_stage2(&qp->fault[dir]))
			resume(fn, qp->fault[dir].token, true, true);
	}
}

enum qhca_cmd_status hca_cmd_fault_resume(struct hca_fn *fn,
					  struct hca_cmd_ctx *ctx)
{
	bool ok = ctx->param == QHCA_RESUME_OK;

	if (!ok && ctx->param != QHCA_RESUME_FAIL)
		return hca_cmd_bad(ctx, HCA_SYN_SLOT(param));
	return resume(fn, ctx->index, false, ok) ? QHCA_CMD_OK :
						   QHCA_CMD_BAD_INDEX;
}
