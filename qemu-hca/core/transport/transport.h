/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What only the files of the transport share.
 *
 * One QP is worked on at a time; its struct hca_qp stays good because
 * nothing below looks up another QP while it is in use.
 */
#ifndef HCA_CORE_TRANSPORT_H
#define HCA_CORE_TRANSPORT_H

#include "hca.h"
#include "wire/frame.h"
#include "wire/pkt.h"
#include "wire/psn.h"
#include "wire/roce.h"

/* Packets a QP may have unacknowledged; an ACK is asked for every so many. */
#define HCA_SEND_WINDOW		256
#define HCA_ACK_EVERY		32
/* WQEs that a QP may have begun when it begins one that has no packets. */
#define HCA_SEND_WQES		512
/*
 * WQEs that a QP may have begun: those, one for each packet, and the READs and others
 * that are answered one by one and need no room in the window.
 */
#define HCA_SEND_BEGUN		784
_Static_assert(HCA_SEND_BEGUN ==
	       HCA_SEND_WQES + HCA_SEND_WINDOW + HCA_MAX_RD_ATOMIC,
	       "the most that a requester begins");

#define HCA_GSI_QKEY		0x80010000u
#define HCA_QKEY_CONTROLLED	0x80000000u	/* use the QP's own (IBTA 10.2.5) */

/* ---- what a QP counts, in its function and in its counter set */

/* What the function has counted already. */
static inline void hca_qp_count_too(struct hca_fn *fn, const struct hca_qp *qp,
				    enum qhca_counter id, uint64_t n)
{
	if (qp->counter_set && id >= HCA_SET_FIRST && id <= HCA_SET_LAST)
		fn->sets.count[qp->counter_set][id - HCA_SET_FIRST] += n;
}

static inline void hca_qp_count(struct hca_fn *fn, const struct hca_qp *qp,
				enum qhca_counter id)
{
	hca_count(fn, id);
	hca_qp_count_too(fn, qp, id, 1);
}

/* Send a frame of the QP. */
static inline void hca_qp_frame_end(struct hca_fn *fn, const struct hca_qp *qp,
				    struct hca_frame_to *to,
				    struct hca_frame *f)
{
	size_t len = hca_frame_end(fn, to, f);

	hca_qp_count_too(fn, qp, QHCA_CNT_tx_packets, 1);
	hca_qp_count_too(fn, qp, QHCA_CNT_tx_bytes, len);
}

/* ---- context.c */

/* Decode the software part of @qp->sw, checking all of it; false: not sane. */
bool hca_qp_load_sw(struct hca_fn *fn, struct hca_qp *qp);

/* ---- qp.c */

void hca_qp_set_state(struct hca_fn *fn, struct hca_qp *qp,
		      enum qhca_qp_state state);
/* To ERR: timers stop, both queues will be flushed. */
void hca_qp_error(struct hca_fn *fn, struct hca_qp *qp);
/* To ERR with an asynchronous event. */
void hca_qp_error_event(struct hca_fn *fn, struct hca_qp *qp,
			enum qhca_event event);

/* Write record.sq_active. */
void hca_qp_set_active(struct hca_fn *fn, struct hca_qp *qp, bool on);
/*
 * Fetch the software half of the record: both pointers are taken over, if they are
 * sane.  true: the one named has moved.
 */
bool hca_qp_refetch_sq(struct hca_fn *fn, struct hca_qp *qp);
bool hca_qp_refetch_rq(struct hca_fn *fn, struct hca_qp *qp);

struct hca_send_wc {
	uint64_t wr_id;
	uint32_t wqe;			/* number */
	uint32_t byte_len;
	uint32_t syndrome;
	uint8_t opcode;
	uint8_t status;			/* enum qhca_wc_status */
};
void hca_complete_send(struct hca_fn *fn, struct hca_qp *qp,
		       const struct hca_send_wc *wc);
/*
 * Complete the receive WQE in progress.  @cqe: byte_len, opcode, status, flags
 * and what is particular to the message; this fills in the rest and lets the
 * WQE go.  If its XRC SRQ no longer exists, there is no CQE.  false: the CQ does
 * not exist or is in error, and the caller has to move the QP to ERR.
 */
bool hca_complete_recv(struct hca_fn *fn, struct hca_qp *qp,
		       struct qhca_cqe *cqe);

/* ---- receive queues */

/*
 * Make @qp->rwqe the receive WQE in progress, taking one from the RQ or SRQ if
 * none is held.
 */
enum hca_take hca_take_rwqe(struct hca_fn *fn, struct hca_qp *qp);

/* ---- flush.c */

/* Complete WQEs with WR_FLUSH_ERR; returns how many.  *more: some are left. */
unsigned int hca_qp_flush(struct hca_fn *fn, struct hca_qp *qp,
			  unsigned int budget, bool *more);

static inline uint8_t hca_service(const struct hca_qp *qp)
{
	static const uint8_t service[] = {
		[QHCA_QPT_RC] = HCA_SVC_RC, [QHCA_QPT_UC] = HCA_SVC_UC,
		[QHCA_QPT_UD] = HCA_SVC_UD, [QHCA_QPT_GSI] = HCA_SVC_UD,
		[QHCA_QPT_XRC_INI] = HCA_SVC_XRC,
		[QHCA_QPT_XRC_TGT] = HCA_SVC_XRC,
		[QHCA_QPT_RAW] = HCA_SVC_NONE,
	};

	return service[qp->type];
}

/* ---- requester.c */

enum hca_send_stop {
	HCA_SEND_IDLE,			/* nothing left to send */
	HCA_SEND_WAIT,			/* for an acknowledgement or a timer */
	HCA_SEND_BLOCKED,		/* link full */
	HCA_SEND_RATE,			/* the function has reached its rate */
	HCA_SEND_BUDGET,
};
/* Send from the cursor on, any QP type; adds what it sends to *spent. */
enum hca_send_stop hca_requester_run(struct hca_fn *fn,
				     struct hca_qp *qp, unsigned int budget,
				     unsigned int *spent);
/* The timer of @qp fired. */
void hca_requester_timer(struct hca_fn *fn, struct hca_qp *qp);
/*
 * Go back to s_una and send again, which uses up a retry; with none left the
 * oldest WQE fails.
 */
void hca_requester_retry(struct hca_fn *fn, struct hca_qp *qp);
/* May the send queue send now? */
bool hca_requester_may_run(const struct hca_qp *qp);
/* Go back to the oldest PSN not acknowledged. */
void hca_requester_rewind(struct hca_fn *fn, struct hca_qp *qp);
/*
 * Complete send WQE sq_ci with an error.  RC: to ERR; UC, UD: to SQE.
 */
void hca_requester_fail(struct hca_fn *fn, struct hca_qp *qp,
			uint8_t status, uint32_t syndrome);
/* Complete, in order, WQEs from sq_ci on whose PSNs are all before s_una. */
void hca_requester_retire(struct hca_fn *fn, struct hca_qp *qp,
			  uint32_t upto);
/* Start, restart or stop the ACK timer as outstanding PSNs demand. */
void hca_requester_rearm(struct hca_fn *fn, struct hca_qp *qp);
/*
 * A part of the oldest request was lost.  If it can have been in a bundle, doubt that the
 * peer's path passes them.
 */
void hca_requester_doubt_oldest(struct hca_fn *fn, struct hca_qp *qp);
/*
 * The requester waits for the rate of its function: stop the ACK timer if the peer has
 * nothing to acknowledge.
 */
void hca_requester_held(struct hca_fn *fn, struct hca_qp *qp);
/* Is the packet of PSN @psn behind one that waits for a page? */
bool hca_requester_fault_holds(const struct hca_qp *qp, uint32_t psn);
/* Keep what the completion of @w needs, so that the device need not read it again. */
void hca_requester_summarise(struct hca_qp *qp, const struct hca_swqe *w);
/* The summary of WQE @num, made anew if it is lost.  NULL: the ring is unreadable. */
const struct hca_swqe_sum *hca_requester_summary(struct hca_fn *fn,
						 struct hca_qp *qp,
						 uint32_t num);

/* ---- packets in, by kind; @qp is live and of the packet's service */

void hca_response_rx(struct hca_fn *fn, struct hca_qp *qp,
		     const struct hca_pkt *pkt);
void hca_request_rx(struct hca_fn *fn, struct hca_qp *qp,
		    const struct hca_pkt *pkt);
void hca_uc_rx(struct hca_fn *fn, struct hca_qp *qp,
	       const struct hca_pkt *pkt);
void hca_datagram_rx(struct hca_fn *fn, struct hca_qp *qp,
		     const struct hca_pkt *pkt,
		     const struct hca_rx_info *info);

/* ---- reply.c */

/* Does the responder owe an ACK, a NAK, a response or a result? */
bool hca_reply_owed(const struct hca_qp *qp);
/*
 * Software ends the QP.  It may have acted already on a receive, or on the word of an
 * atomic, whose answer is still due, and the peer would repeat that request in vain: send
 * what is due, up to the first READ and as far as the link has room.
 */
void hca_reply_leave(struct hca_fn *fn, struct hca_qp *qp);
enum hca_reply_stop {
	HCA_REPLY_DONE,			/* or a page fault holds the rest */
	HCA_REPLY_MORE,			/* link full, or budget spent */
	HCA_REPLY_RATE,			/* a READ response, and what must follow it */
};
/* Send what the responder owes. */
enum hca_reply_stop hca_reply_run(struct hca_fn *fn, struct hca_qp *qp,
				  unsigned int budget, unsigned int *spent);

/* ---- resource.c: the ring of responder resources; @type: HCA_RES_* */

/* Is there a resource for one more answer?  Always for HCA_RES_NONE. */
bool hca_resource_available(const struct hca_qp *qp, uint8_t type);
/* Take the next resource for the answer to @pkt, which is due from now on. */
struct hca_resource *hca_resource_new(struct hca_qp *qp, uint8_t type,
				      const struct hca_pkt *pkt);
/* The resource whose answer is sent next, or NULL. */
struct hca_resource *hca_resource_owed(struct hca_qp *qp);
/* The answer has been sent, or the answers of all will not be sent. */
void hca_resource_settle(struct hca_qp *qp, struct hca_resource *r);
void hca_resource_settle_all(struct hca_qp *qp);
/* The resource that answered the request of which @pkt is a duplicate, or NULL. */
struct hca_resource *hca_resource_find(struct hca_qp *qp, uint8_t type,
				       const struct hca_pkt *pkt);
/* Answer again from @psn on.  false: the device will send that response anyway. */
bool hca_resource_repeat(struct hca_qp *qp, struct hca_resource *r,
			 uint32_t psn);

/* ---- request.c: executing one request that is next in order */

enum hca_verdict {
	HCA_V_ACCEPT,
	HCA_V_RNR,		/* no receive WQE */
	HCA_V_INVALID,		/* NAK invalid request */
	HCA_V_ACCESS,		/* NAK remote access error */
	HCA_V_OPERATION,	/* NAK remote operational error */
	HCA_V_SILENT,		/* no NAK, but the QP ends all the same */
	HCA_V_FAULT,		/* RNR NAK: a page is absent */
	HCA_V_FAULT_AGAIN,	/* RNR NAK: the responder waits for a page already */
};
/* PSN and state have been checked; on ACCEPT r_psn has moved on. */
enum hca_verdict hca_request_execute(struct hca_fn *fn,
				     struct hca_qp *qp,
				     const struct hca_pkt *pkt);

/* HCA_RES_* of the answer that a request gets; NONE: SEND and WRITE, an ACK. */
uint8_t hca_request_resource(const struct hca_pkt *pkt);
/*
 * A page is unavailable that the receive WQE in progress needs (@cause RECV), or that a
 * WRITE with immediate needs (RDMA_W): complete the WQE in error.  Returns how to refuse
 * the request.
 */
enum hca_verdict hca_request_recv_failed(struct hca_fn *fn, struct hca_qp *qp,
					 enum qhca_fault_cause cause);

/* ---- software has reported a page as unavailable: refuse the access */

void hca_request_fault_failed(struct hca_fn *fn, struct hca_qp *qp,
			      enum qhca_fault_cause cause);
void hca_reply_fault_failed(struct hca_fn *fn, struct hca_qp *qp);

/* ---- datagram.c */

/*
 * Address and DETH of a datagram WQE; false: no source GID, or one of another
 * family than the destination.
 */
bool hca_datagram_address(struct hca_fn *fn, const struct hca_qp *qp,
			  const struct hca_swqe *w, struct hca_path *path,
			  struct hca_pkt *pkt);

/*
 * A message of @len bytes has arrived for a QP that drops messages without room;
 * @dropped counts them.  take: false if no receive WQE has room for it; scatter:
 * false if the device may not write the buffer, or a page of it is absent.
 */
bool hca_datagram_take(struct hca_fn *fn, struct hca_qp *qp, uint32_t len,
		       enum qhca_counter dropped);
bool hca_datagram_scatter(struct hca_fn *fn, struct hca_qp *qp,
			  uint32_t offset, const void *data, uint32_t len);

/* ---- raw.c */

/* A frame for raw packet QP @qpn, which exists; the QP drops it if it is not ready. */
void hca_raw_rx(struct hca_fn *fn, uint32_t qpn, const uint8_t *frame,
		size_t len);

#endif /* HCA_CORE_TRANSPORT_H */
