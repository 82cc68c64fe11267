// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * FAULT_RESUME: the requester or responder that waited for a page goes on, or the
 * access fails.
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
	if (!ok) {
		if (cause == QHCA_FAULT_RDMA_R)
			hca_reply_fault_failed(fn, qp);
		else
			hca_request_fault_failed(fn, qp, cause);
		return;
	}
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

enum qhca_cmd_status hca_cmd_fault_resume(struct hca_fn *fn,
					  struct hca_cmd_ctx *ctx)
{
	enum hca_fault_dir dir = ctx->index & HCA_FAULT_TOKEN_DIR ? HCA_FAULT_DIR_REQ :
							   HCA_FAULT_DIR_RESP;
	bool ok = ctx->param == QHCA_RESUME_OK;
	struct hca_qp *qp;
	uint64_t ns;

	if (!ok && ctx->param != QHCA_RESUME_FAIL)
		return hca_cmd_bad(ctx, HCA_SYN_SLOT(param));
	qp = hca_qp_get(fn, ctx->index & HCA_FAULT_TOKEN_QPN);
	if (!qp)
		return QHCA_CMD_BAD_INDEX;
	if (!hca_fault_waits(qp, dir) || qp->fault[dir].token != ctx->index)
		return QHCA_CMD_BAD_INDEX;
	ns = fn->hca->now - qp->fault[dir].time;
	count_latency(fn, ns);
	hca_count(fn, ok ? QHCA_CNT_fault_resumes : QHCA_CNT_fault_failures);
	hca_trace(fn, QHCA_TRACE_RESUME, qp->qpn, ctx->index, ctx->param, ns);
	hca_qp_dirty(fn, qp);
	if (dir == HCA_FAULT_DIR_REQ)
		resume_requester(fn, qp, ok);
	else
		resume_responder(fn, qp, ok);
	return QHCA_CMD_OK;
}
