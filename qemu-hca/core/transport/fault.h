/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Page faults (seed 004; Documentation/hardware.rst, Page faults).
 *
 * A fault suspends one direction of one QP and nobody else: its responder, or
 * its requester.  What is known of it lies in the QP's context, one record for
 * each direction, so that there is room for every fault there can be; the
 * event is held by eq.c when EQ 0 is full, and filled in from the context when
 * there is room at last.
 *
 * A token is the direction, the QPN and a generation that goes on when the QPN
 * is used again: a resume that comes late finds no such fault.
 */
#ifndef HCA_CORE_FAULT_H
#define HCA_CORE_FAULT_H

#include <stdbool.h>
#include <stdint.h>

#include "cmd.h"
#include "transport/qp.h"

/* RNR timers of a fault: when it is new, and when a repetition still meets it. */
#define HCA_FAULT_TIMER_NEW	14	/* 1.28 ms */
#define HCA_FAULT_TIMER_OLD	20	/* 10.24 ms */

/*
 * Token: QPN in bits 0-22, direction in bit 23, generation in bits 24-31, which
 * is never 0.
 */
#define HCA_FAULT_TOKEN_QPN	0x007fffffu
#define HCA_FAULT_TOKEN_DIR	0x00800000u
#define HCA_FAULT_TOKEN_GEN	0xff000000u

static inline bool hca_fault_waits(const struct hca_qp *qp,
				   enum hca_fault_dir dir)
{
	return qp->f_state >> dir & 1;
}

static inline enum qhca_fault_cause
hca_fault_cause(const struct hca_fault *f)
{
	return (enum qhca_fault_cause)QHCA_GET(QHCA_FAULT_CAUSE, f->flags);
}

enum hca_fault_raised {
	HCA_FAULT_NEW,			/* the direction waits, with an event */
	HCA_FAULT_AGAIN,		/* it waited already; counted */
	HCA_FAULT_BAD,			/* software said that there is no such page */
};
/*
 * An access of @qp met what fn->mem.fault says.  @before: bytes of the message
 * before the access; @want: bytes of the message from the start of the access
 * on, which bound the length in the event.
 */
enum hca_fault_raised hca_fault_raise(struct hca_fn *fn,
				      struct hca_qp *qp,
				      enum qhca_fault_cause cause,
				      uint32_t before, uint64_t want);
/* Another access met the fault outstanding. */
void hca_fault_coalesce(struct hca_fn *fn);

/* The QP leaves for RESET or ERR or goes away: nobody waits for it. */
void hca_fault_forget(struct hca_fn *fn, struct hca_qp *qp);

/*
 * What the event of @qpn and @dir says, read without disturbing the cache.
 * false: that fault is no longer outstanding.
 */
bool hca_fault_info(struct hca_fn *fn, uint32_t qpn,
		    enum hca_fault_dir dir, struct qhca_fault_info *info);

/* The RNR NAK timer of a fault; @again: for a repetition of the request. */
uint8_t hca_fault_timer(const struct hca_qp *qp, bool again);

/* May unsolicited ACKs be sent and honoured? */
bool hca_fault_unsolicited(const struct hca_fn *fn);

enum qhca_cmd_status hca_cmd_fault_resume(struct hca_fn *fn,
					  struct hca_cmd_ctx *ctx);

#endif /* HCA_CORE_FAULT_H */
