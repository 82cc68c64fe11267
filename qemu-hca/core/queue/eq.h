/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Event queues.
 *
 * There are few EQs, so the device always keeps their contexts, and writes them to
 * the table with CREATE, QUERY and DESTROY.
 *
 * The device holds an event that finds its EQ full.  Each object that can raise
 * events has one node, which notes the kinds of event that wait and their order;
 * nodes are linked to their EQ in order of arrival.  Events of the same kind and
 * object coalesce.  The device holds a command's event in the slot of the command,
 * and the next command of that slot with an event waits for it.  The device writes
 * held events when the record's ci shows room.  It reads ci when software arms the
 * EQ, and at intervals meanwhile: of HCA_EQ_POLL_NS, which double up to
 * HCA_EQ_POLL_MAX_NS while software makes no room in any EQ.  One call writes at most
 * HCA_EQ_DRAIN held events, since an EQ may be as deep as there are objects; the next
 * calls of qhca_run() write the rest.
 *
 * Interrupts: when the device writes an entry to an armed EQ, it raises the EQ's
 * vector, and the EQ is no longer armed.  The arm doorbell carries ci; if the device
 * has written entries beyond it, it raises the interrupt at once.
 */
#ifndef HCA_CORE_EQ_H
#define HCA_CORE_EQ_H

#include "qhca.h"
#include "handler.h"
#include "queue/qbuf.h"

#define HCA_MAX_LOG_EQ		8
#define HCA_EQ_POLL_NS		100000u
#define HCA_EQ_POLL_MAX_NS	6400000u
#define HCA_EQ_DRAIN		64u

#define HCA_HELD_NONE		UINT32_MAX

/*
 * The sources of events.  A CQ is two sources, because its completion events may
 * go to another EQ than its error.
 */
enum hca_event_source {
	HCA_SOURCE_QP, HCA_SOURCE_SRQ, HCA_SOURCE_CQ, HCA_SOURCE_COMPLETION,
	HCA_SOURCE_PORT, HCA_SOURCE_STAGE2, HCA_NUM_EVENT_SOURCES
};

struct hca_held {			/* events of one object, waiting */
	uint32_t next, prev;		/* in its queue's list */
	uint32_t detail;		/* of the latest */
	uint32_t order;			/* a nibble for each kind, first lowest: a QP
					   can have six kinds and two faults */
	uint16_t eqn;			/* whose list it is in, while linked */
	uint8_t count;			/* kinds waiting */
	bool linked;
};

struct hca_eq {
	struct hca_qbuf buf;
	uint32_t rec_offset;
	uint32_t pi, ci;
	uint32_t overruns;		/* times an event had to be held */
	uint32_t refs;			/* CQs that report here */
	uint32_t held_head, held_tail;	/* nodes, HCA_HELD_NONE: none */
	uint16_t vector;
	uint8_t log_depth;
	bool live, armed;
};

/*
 * Fill in the event of a held page fault.  The transport, which is above the EQs,
 * keeps the fault in the context of the QP, so life.c hands its function down.
 * false: the fault is no longer outstanding.
 */
typedef bool (*hca_fault_info_fn)(struct hca_fn *fn, uint32_t qpn,
				  unsigned int dir,
				  struct qhca_fault_info *info);

/*
 * Fill in the next event of stage 2 of function @fn, for EQ 0 of the physical
 * function.  false: there is none.
 */
typedef bool (*hca_stage2_next_fn)(struct hca_fn *fn,
				   struct qhca_fault_info *info,
				   enum qhca_stage2_want *want);

struct hca_eqs {
	hca_fault_info_fn fault_info;
	hca_stage2_next_fn stage2_next;
	struct hca_eq *eq;		/* [1 << cfg.log_max_eq] */
	struct hca_held *held;		/* nodes, by source and number */
	uint32_t base[HCA_NUM_EVENT_SOURCES + 1];	/* first node of each */
	uint32_t cmd_held;		/* command slots whose event is held */
	struct {
		uint32_t detail;
		uint16_t token;
		uint8_t status;
	} cmd[HCA_NUM_CMD_SLOTS];
	uint32_t num_linked;		/* nodes that hold something */
	uint32_t num_waiting;		/* not 0 while anything is held */
	uint32_t turn;			/* whose held events are written first */
	uint32_t poll_ns;		/* to the next look, if that is in vain */
	uint64_t next_poll;
};

/* false: no memory */
bool hca_eqs_create(struct hca_fn *fn, hca_fault_info_fn fault_info,
		    hca_stage2_next_fn stage2_next);
void hca_eqs_destroy(struct hca_fn *fn);
void hca_eqs_reset(struct hca_fn *fn);

/*
 * Asynchronous event to EQ 0.  The device holds it if EQ 0 is full, and drops it
 * only if there is no EQ 0.  @number is a QPN, CQN, SRQN or port, depending on @type.
 */
void hca_event(struct hca_fn *fn, enum qhca_event type, uint32_t number,
	       uint32_t detail);
/*
 * Page fault of @qpn's direction @dir (enum hca_fault_dir) to EQ 0.  Held, it
 * is filled in later, by fault_info().
 */
void hca_event_fault(struct hca_fn *fn, uint32_t qpn, unsigned int dir,
		     const struct qhca_fault_info *info);
/* Stage-2 events of @fn to the host domain, which hca_eqs.stage2_next() fills in. */
void hca_event_stage2(struct hca_fn *fn);
/* Command @slot has been completed with QHCA_CMD_F_EVENT. */
void hca_event_cmd(struct hca_fn *fn, uint32_t slot, uint16_t token,
		   uint8_t status, uint32_t detail);
/* Completion event of a CQ to EQ @eqn. */
void hca_event_completion(struct hca_fn *fn, uint32_t eqn, uint32_t cqn,
			  uint32_t pi);
/* The last event of a dead function; raises EQ 0's vector, armed or not. */
void hca_event_fatal(struct hca_fn *fn, enum qhca_fatal cause,
		     uint32_t info);
/* The object is being destroyed: drop the events that are held for it. */
void hca_event_forget_qp(struct hca_fn *fn, uint32_t qpn);
void hca_event_forget_srq(struct hca_fn *fn, uint32_t srqn);
void hca_event_forget_cq(struct hca_fn *fn, uint32_t cqn);

bool hca_eq_live(const struct hca_fn *fn, uint32_t eqn);
void hca_eq_ref(struct hca_fn *fn, uint32_t eqn);
void hca_eq_unref(struct hca_fn *fn, uint32_t eqn);

void hca_eq_doorbell(struct hca_fn *fn, uint64_t value);
/* Write held events for which there is room now. */
void hca_eqs_run(struct hca_fn *fn);
uint64_t hca_eqs_deadline(const struct hca_fn *fn);
/* Are there more of those than one call writes? */
bool hca_eqs_pending(const struct hca_fn *fn);

enum qhca_cmd_status hca_cmd_create_eq(struct hca_fn *fn,
				       struct hca_cmd_ctx *ctx);
enum qhca_cmd_status hca_cmd_destroy_eq(struct hca_fn *fn,
					struct hca_cmd_ctx *ctx);
enum qhca_cmd_status hca_cmd_query_eq(struct hca_fn *fn,
				      struct hca_cmd_ctx *ctx);

#endif /* HCA_CORE_EQ_H */
