/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Page faults (seed 004; Documentation/hardware.rst, Page faults).
 *
 * Problem.  With on-demand paging, a page of a region may be absent when the device
 * needs it.  Software must bring the page in, which may take a disk access, and until
 * then the device must not block, and must not delay other QPs.  It cannot keep
 * the packet either: its memory is bounded, and any number of QPs may fault at the
 * same time.
 *
 * Idea.  The access that faults has no effect, and can be repeated.  The device
 * suspends only the direction of the QP that needs the page, its responder or its
 * requester, and posts an event with a token.  Software makes the page present and
 * quotes the token in FAULT_RESUME; then that direction tries the access again.
 * Meanwhile RC's own means make the wait harmless: the responder answers a request
 * with RNR NAKs, so the peer keeps it; the response to a READ waits in its
 * resource; the requester does not send, or drops the response and requests it
 * again later.  UC and UD have no such means, and drop the packet.
 *
 * Invariants.
 *
 *  - Each direction of a QP has at most one fault outstanding.  Its record is in
 *    the QP's context (struct hca_fault), and f_req and f_resp (state.h) say who waits.
 *    The device therefore has room for every possible fault, and the context of a
 *    QP that waits may be evicted.
 *  - No event is lost.  When EQ 0 is full, held.c keeps the event, and fills it in
 *    from the context when there is room.  If the fault is no longer outstanding
 *    by then, there is no event.
 *  - A token names one fault only.  It consists of the direction, the QPN and a
 *    generation, which continues when the QPN is used again, and in a virtual function
 *    after a reset, too.  A resume that comes too late finds no such fault.
 *  - The oldest request of a requester is served first.  If its response meets an
 *    absent page while the gather of a later request waits, the new fault replaces
 *    that of the gather, which is tried again after the resume.
 *
 * Example.  The peer writes 4 KiB to a page that is absent, with PSN 7.
 *
 *  1. hca_mem_write() returns HCA_MEM_FAULT and has written nothing.
 *  2. hca_fault_raise() fills in the record of the responder, enters HCA_RESPF_REQUEST, and
 *     posts QHCA_EVENT_PAGE_FAULT.  The responder sends an RNR NAK for PSN 7 with
 *     the timer HCA_FAULT_TIMER_NEW, or the QP's own if that is longer.
 *  3. The peer repeats PSN 7 after that time.  The fault is still outstanding, so
 *     the responder looks at no memory, counts faults_coalesced, and sends an RNR
 *     NAK with the longer timer HCA_FAULT_TIMER_OLD, and later with longer ones.
 *  4. The driver makes the page present and executes FAULT_RESUME with the token.
 *     The responder sends one unsolicited ACK with PSN 6, which ends the peer's
 *     wait at once.
 *  5. The peer repeats PSN 7, and the write succeeds.
 */
#ifndef HCA_CORE_PAGING_H
#define HCA_CORE_PAGING_H

#include <stdbool.h>
#include <stdint.h>

#include "handler.h"
#include "transport/qp.h"

/* RNR timers: of a new fault, and the least of one that a repetition finds outstanding. */
#define HCA_FAULT_TIMER_NEW	14	/* 1.28 ms */
#define HCA_FAULT_TIMER_OLD	20	/* 10.24 ms */
/* The same of stage 2, where the host domain has more to do. */
#define HCA_FAULT2_TIMER_NEW	20	/* 10.24 ms */
#define HCA_FAULT2_TIMER_OLD	24	/* 40.96 ms */

/*
 * A token has the QPN in bits 0-22, the direction in bit 23, and the generation,
 * which is never 0, in bits 24-31.
 */
#define HCA_FAULT_TOKEN_QPN	0x007fffffu
#define HCA_FAULT_TOKEN_DIR	0x00800000u
#define HCA_FAULT_TOKEN_GEN	0xff000000u

static inline bool hca_fault_waits(const struct hca_qp *qp,
				   enum hca_fault_dir dir)
{
	return hca_qp_has(qp, dir == HCA_FAULT_DIR_REQ ?
			  QHCA_PART_REQUESTER_FAULT :
			  QHCA_PART_RESPONDER_FAULT, HCA_PS_WAITS);
}

/* Is the page absent in stage 2, so that the host domain has to bring it? */
static inline bool hca_fault_is_stage2(const struct hca_fault *f)
{
	return f->flags & QHCA_FAULT_STAGE2;
}

static inline enum qhca_fault_cause
hca_fault_cause(const struct hca_fault *f)
{
	return (enum qhca_fault_cause)QHCA_GET(QHCA_FAULT_CAUSE, f->flags);
}

enum hca_fault_raised {
	HCA_FAULT_NEW,			/* it waits now, and an event was posted */
	HCA_FAULT_AGAIN,		/* it waited already; this was counted */
	HCA_FAULT_BAD,			/* software has reported: no such page */
};
/*
 * An access of @qp met the absent page that fn->mem.fault describes.  @before:
 * bytes of the message before the access; @want: bytes of the message from the
 * start of the access on, which bound the length in the event.
 */
enum hca_fault_raised hca_fault_raise(struct hca_fn *fn,
				      struct hca_qp *qp,
				      enum qhca_fault_cause cause,
				      uint32_t before, uint64_t want);
/* Count another access that met an outstanding fault. */
void hca_fault_coalesce(struct hca_fn *fn);

/* The QP enters RESET or ERR, or is destroyed: its faults are forgotten. */
void hca_fault_forget(struct hca_fn *fn, struct hca_qp *qp);

/*
 * Fill in the event of the fault of @qpn and @dir (enum hca_fault_dir), without
 * disturbing the cache; held.c calls this through hca_eqs_create().
 * false: that fault is no longer outstanding.
 */
bool hca_fault_info(struct hca_fn *fn, uint32_t qpn, unsigned int dir,
		    struct qhca_fault_info *info);

/*
 * The RNR NAK timer of a fault, a code; @again: the request is a repetition.  That of a
 * repetition grows with the age of the fault, so that a page that takes long costs few
 * repetitions.  After the first two a peer that takes no unsolicited ACK waits for twice as
 * long as the page takes at most.
 */
uint8_t hca_fault_timer(const struct hca_fn *fn, const struct hca_qp *qp,
			bool again);

/* May the device send unsolicited ACKs, and act on those it receives? */
bool hca_fault_unsolicited(const struct hca_fn *fn);

enum qhca_cmd_status hca_cmd_fault_resume(struct hca_fn *fn,
					  struct hca_cmd_ctx *ctx);
/* STAGE2_RESUME of a QP's fault.  false: there is no such fault. */
bool hca_fault_resume_stage2(struct hca_fn *fn, uint32_t token, bool ok);
/*
 * Answer the QPs' faults of stage 2 as if STAGE2_RESUME had.  Until now no context of @fn
 * could be read, so answers to them were refused.
 */
void hca_fault_retry_stage2(struct hca_fn *fn);
/* Count the answer to a fault that was raised at @time; ns since. */
uint64_t hca_fault_answered(struct hca_fn *fn, uint64_t time, bool ok);

/* The event of a fault of stage 2 of the QP is to be written: see stage2_event.c. */
void hca_stage2_post(struct hca_fn *fn, uint32_t qpn, enum hca_fault_dir dir);

/* ---- events of stage 2 (stage2_event.c), which the host domain receives */

/* The next event of @fn that is to be written; false: there is none. */
bool hca_stage2_next(struct hca_fn *fn, struct qhca_fault_info *info,
		     enum qhca_stage2_want *want);
/* The description of a fault, for the driver that the fault is reported to. */
void hca_fault_fill_info(const struct hca_fn *fn, const struct hca_fault *f,
			 struct qhca_fault_info *info);
/* The fault of @qpn and @dir, from its context; false: none of stage @stage2. */
bool hca_fault_find(struct hca_fn *fn, uint32_t qpn, unsigned int dir,
		    bool stage2, struct qhca_fault_info *info);

#endif /* HCA_CORE_PAGING_H */
