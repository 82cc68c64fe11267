/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the files of the transport share with each other and nobody else.
 *
 *   context.c     contexts in memory and in host order
 *   qp.c          state, record, completions, receive WQEs
 *   qp_cmd.c      commands on QPs, transitions
 *   flush.c       completions of queues in error
 *   sched.c       list of QPs with work, timers
 *   serve.c       what a QP does when it is its turn
 *   linger.c      staying at send queues
 *   requester.c   send queues: packets out
 *   response.c    RC send queue: acknowledgements in
 *   responder.c   RC requests in
 *   reply.c       RC responder: acknowledgements and read responses out
 *   unreliable.c  UC requests in
 *   datagram.c    UD and GSI, both ways
 *   raw.c         raw packet QPs: frames in
 *   flow.c        which frames are for them
 *   fault.c       page faults of all of them
 *   resume.c      ... and how they end
 *
 * One QP is worked on at a time; its struct qhca_qp stays good because
 * nothing below looks up another QP while it is in use.
 */
#ifndef QHCA_CORE_TRANSPORT_H
#define QHCA_CORE_TRANSPORT_H

#include "hca.h"
#include "wire/frame.h"
#include "wire/pkt.h"
#include "wire/psn.h"
#include "wire/roce.h"

/* Packets a QP may have unacknowledged; an ACK is asked for every so many. */
#define QHCA_SEND_WINDOW	256
/* WQEs that a QP may have begun when it begins one that has no packets. */
#define QHCA_SEND_WQES		512
#define QHCA_ACK_EVERY		32

#define QHCA_GSI_QKEY		0x80010000u
#define QHCA_QKEY_CONTROLLED	0x80000000u	/* use the QP's own (IBTA 10.2.5) */

/* ---- context.c */

/* Decode the software part of @qp->sw, checking all of it; false: not sane. */
bool qhca_qp_load_sw(struct qhca_hca *hca, struct qhca_qp *qp);

/* ---- qp.c */

void qhca_qp_set_state(struct qhca_hca *hca, struct qhca_qp *qp,
		       enum qhca_qp_state state);
/* To ERR: timers stop, both queues will be flushed. */
void qhca_qp_error(struct qhca_hca *hca, struct qhca_qp *qp);
/* To ERR with an asynchronous event. */
void qhca_qp_error_event(struct qhca_hca *hca, struct qhca_qp *qp,
			 enum qhca_event event);

/* Write record.sq_active. */
void qhca_qp_set_active(struct qhca_hca *hca, struct qhca_qp *qp, bool on);
/* Take over record.sq_pi or .rq_pi if it is sane; true: it moved. */
bool qhca_qp_refetch_sq(struct qhca_hca *hca, struct qhca_qp *qp);
bool qhca_qp_refetch_rq(struct qhca_hca *hca, struct qhca_qp *qp);

struct qhca_send_wc {
	uint64_t wr_id;
	uint32_t wqe;			/* number */
	uint32_t byte_len;
	uint32_t syndrome;
	uint8_t opcode;
	uint8_t status;			/* enum qhca_wc_status */
};
void qhca_complete_send(struct qhca_hca *hca, struct qhca_qp *qp,
			const struct qhca_send_wc *wc);
/*
 * Complete the receive WQE in progress.  @cqe: byte_len, opcode, status, flags
 * and what is particular to the message; this fills in the rest and lets the
 * WQE go.  If it is of an XRC SRQ that is gone there is nobody to tell.
 */
void qhca_complete_recv(struct qhca_hca *hca, struct qhca_qp *qp,
			struct qhca_cqe *cqe);

/* ---- receive queues */

enum qhca_take {
	QHCA_TAKE_OK,
	QHCA_TAKE_EMPTY,
	QHCA_TAKE_ERROR,		/* ring unreadable or SRQ in error */
};
/*
 * Make @qp->rwqe the receive WQE in progress, taking one from the RQ or SRQ if
 * none is held.
 */
enum qhca_take qhca_take_rwqe(struct qhca_hca *hca, struct qhca_qp *qp);

/* srq.c: take the list's head for @qp. */
enum qhca_take qhca_srq_take(struct qhca_hca *hca, uint32_t srqn,
			     struct qhca_rwqe *w);
/* Re-read slot @slot that was taken. */
enum qhca_take qhca_srq_reread(struct qhca_hca *hca, uint32_t srqn,
			       uint32_t slot, struct qhca_rwqe *w);

/*
 * An XRC SRQ as a request finds it.  No QP refers to it, so that it may be
 * destroyed, and its number used again, in the middle of a message: the token
 * is what a QP may keep, and find the SRQ by again or find it gone.
 */
struct qhca_xsrq {
	uint32_t token;			/* SRQN; top octet: which of that number */
	uint32_t srqn, pd, cqn;
	uint64_t handle;		/* of its completions */
};
/* false: no XRC SRQ of this number, or not one of domain @xrcd. */
bool qhca_srq_xrc(struct qhca_hca *hca, uint32_t srqn, uint32_t xrcd,
		  struct qhca_xsrq *x);
/* The SRQ of @token; false: it is gone. */
bool qhca_srq_xrc_again(struct qhca_hca *hca, uint32_t token, uint32_t xrcd,
			struct qhca_xsrq *x);

/* ---- flush.c */

/* Complete WQEs with WR_FLUSH_ERR; returns how many.  *more: some are left. */
unsigned int qhca_qp_flush(struct qhca_hca *hca, struct qhca_qp *qp,
			   unsigned int budget, bool *more);

static inline uint8_t qhca_service(const struct qhca_qp *qp)
{
	static const uint8_t service[] = {
		[QHCA_QPT_RC] = QHCA_SVC_RC, [QHCA_QPT_UC] = QHCA_SVC_UC,
		[QHCA_QPT_UD] = QHCA_SVC_UD, [QHCA_QPT_GSI] = QHCA_SVC_UD,
		[QHCA_QPT_XRC_INI] = QHCA_SVC_XRC,
		[QHCA_QPT_XRC_TGT] = QHCA_SVC_XRC,
		[QHCA_QPT_RAW] = QHCA_SVC_NONE,
	};

	return service[qp->type];
}

/* ---- requester.c */

enum qhca_send_stop {
	QHCA_SEND_IDLE,			/* nothing left to send */
	QHCA_SEND_WAIT,			/* for an acknowledgement or a timer */
	QHCA_SEND_BLOCKED,		/* link full */
	QHCA_SEND_BUDGET,
};
/* Send from the cursor on, any QP type; adds what it sends to *spent. */
enum qhca_send_stop qhca_requester_run(struct qhca_hca *hca,
				       struct qhca_qp *qp, unsigned int budget,
				       unsigned int *spent);
/* The timer of @qp fired. */
void qhca_requester_timer(struct qhca_hca *hca, struct qhca_qp *qp);
/*
 * Go back to s_una and send again, which uses up a retry; with none left the
 * oldest WQE fails.
 */
void qhca_requester_retry(struct qhca_hca *hca, struct qhca_qp *qp);
/* Is the SQ one that may send now? */
bool qhca_requester_may_run(const struct qhca_qp *qp);
/* Go back to the oldest PSN not acknowledged. */
void qhca_requester_rewind(struct qhca_hca *hca, struct qhca_qp *qp);
/*
 * Complete send WQE sq_ci with an error.  RC: to ERR; UC, UD: to SQE.
 */
void qhca_requester_fail(struct qhca_hca *hca, struct qhca_qp *qp,
			 uint8_t status, uint32_t syndrome);
/* Complete, in order, WQEs from sq_ci on whose PSNs are all before s_una. */
void qhca_requester_retire(struct qhca_hca *hca, struct qhca_qp *qp,
			   uint32_t upto);
/* What answers PSN s_una met a page fault: nothing is taken or sent from there. */
void qhca_requester_park(struct qhca_hca *hca, struct qhca_qp *qp);
/* Start, restart or stop the ACK timer as outstanding PSNs demand. */
void qhca_requester_rearm(struct qhca_hca *hca, struct qhca_qp *qp);

/* ---- packets in, by kind; @qp is live and of the packet's service */

void qhca_response_rx(struct qhca_hca *hca, struct qhca_qp *qp,
		      const struct qhca_pkt *pkt);
void qhca_request_rx(struct qhca_hca *hca, struct qhca_qp *qp,
		     const struct qhca_pkt *pkt);
void qhca_uc_rx(struct qhca_hca *hca, struct qhca_qp *qp,
		const struct qhca_pkt *pkt);
void qhca_datagram_rx(struct qhca_hca *hca, struct qhca_qp *qp,
		      const struct qhca_pkt *pkt,
		      const struct qhca_rx_info *info);

/* ---- reply.c */

/* Send what the responder owes; false: link full or budget spent. */
bool qhca_reply_run(struct qhca_hca *hca, struct qhca_qp *qp,
		    unsigned int budget, unsigned int *spent);

/* ---- responder.c: executing one request that is next in order */

enum qhca_verdict {
	QHCA_V_ACCEPT,
	QHCA_V_RNR,		/* no receive WQE */
	QHCA_V_INVALID,		/* NAK invalid request */
	QHCA_V_ACCESS,		/* NAK remote access error */
	QHCA_V_OPERATION,		/* NAK remote operational error */
	QHCA_V_FAULT,			/* RNR NAK: a page is not present */
	QHCA_V_FAULT_AGAIN,		/* ... and the responder waits already */
};
/* PSN and state have been checked; on ACCEPT r_psn has moved on. */
enum qhca_verdict qhca_request_execute(struct qhca_hca *hca,
				       struct qhca_qp *qp,
				       const struct qhca_pkt *pkt);

/* ---- a page fault was resumed as failed: the access is refused */

void qhca_request_fault_failed(struct qhca_hca *hca, struct qhca_qp *qp,
			       enum qhca_fault_cause cause);
void qhca_reply_fault_failed(struct qhca_hca *hca, struct qhca_qp *qp);

/* ---- datagram.c */

/*
 * Address and DETH of a datagram WQE; false: no source GID, or one of another
 * family than the destination.
 */
bool qhca_datagram_address(struct qhca_hca *hca, const struct qhca_qp *qp,
			   const struct qhca_swqe *w, struct qhca_path *path,
			   struct qhca_pkt *pkt);

/*
 * A message of @len bytes has come for a QP that drops what it has no room for,
 * which @dropped counts.  take: false if there is no receive WQE that holds it;
 * scatter: false if its memory may not be written, or is not there.
 */
bool qhca_datagram_take(struct qhca_hca *hca, struct qhca_qp *qp, uint32_t len,
			enum qhca_counter dropped);
bool qhca_datagram_scatter(struct qhca_hca *hca, struct qhca_qp *qp,
			   uint32_t offset, const void *data, uint32_t len);

/* ---- raw.c */

/* A frame for raw packet QP @qpn, which exists; dropped if it takes none now. */
void qhca_raw_rx(struct qhca_hca *hca, uint32_t qpn, const uint8_t *frame,
		 size_t len);

#endif /* QHCA_CORE_TRANSPORT_H */
