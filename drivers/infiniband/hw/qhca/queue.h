/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Queues: CQs, QPs and their page faults, SRQs.
 */
#ifndef QHCA_QUEUE_H
#define QHCA_QUEUE_H

#include "mem.h"

/**
 * struct qhca_cq - a completion queue.
 * @ref:    see struct qhca_ref
 * @eq:     where its completion events arrive
 * @threshold: entries in use past which the device reads the index again
 * @buf:    ring and record; replaced by a resize
 * @mutex:  one resize or moderation change at a time
 * @lock:   what follows, which only kernel CQs use
 * @ring:   2^@log_depth entries
 * @rec:    the record behind them
 * @ci:     free-running: entries consumed
 * @send_qps: kernel QPs that complete send requests here
 * @recv_qps: kernel QPs that complete receive requests of their own here
 * @num_qps: uses by kernel QPs, SRQs' receives included; without any, no
 *           handler is called.  Read without @lock, see qhca_cq_is_used().
 * @missed: an event has come meanwhile, and disarmed the CQ
 */
struct qhca_cq {
	struct ib_cq ibcq;
	struct qhca_ref ref;
	struct qhca_eq *eq;
	u32 cqn;
	u32 db_page;
	u32 threshold;
	u16 moder_count;
	u16 moder_usec;
	u8 log_depth;
	struct qhca_qbuf buf;
	struct mutex mutex;	/* changes */

	spinlock_t lock;	/* polling */
	struct qhca_cqe *ring;
	struct qhca_cq_record *rec;
	u32 ci;
	struct list_head send_qps;
	struct list_head recv_qps;
	u32 num_qps;
	bool missed;
};

/**
 * struct qhca_wq - a work queue of a kernel QP.
 * @lock: posting
 * @ring: first entry
 * @pi:   free-running: entries posted; under @lock
 * @ci:   free-running: entries completed; written under the CQ's lock, read
 *        by posters without it, who at worst see less room than there is
 * @depth: entries, 0 without such a queue
 * @wr_id: by entry; what consumers get back is never read from the ring or
 *         from a CQE, which are memory that the device writes
 */
struct qhca_wq {
	spinlock_t lock;	/* posting */
	void *ring;
	u32 pi;
	u32 ci;
	u32 depth;
	u8 log_stride;
	u8 max_sge;
	u64 *wr_id;
};

struct qhca_faults;

/**
 * struct qhca_fault - the page fault of one direction of a QP
 * @faults: all of the QP's; with a reference while queued or served
 * @work:   serves it
 * @info:   what the device told; under @faults' lock
 * @queued: times that @work was queued and has not ended; likewise
 * @spare:  no place of @faults', but made for one fault
 * @token:  of the one that is served; under the lock of qhca_ib_dev.odps
 * @entry:  in qhca_odp.served, under that lock; empty: in none
 */
struct qhca_fault {
	struct qhca_faults *faults;
	struct work_struct work;
	struct qhca_fault_info info;
	u32 queued;
	bool spare;
	u32 token;
	struct list_head entry;
};

/**
 * struct qhca_faults - the page faults of a QP; they may outlive it.
 * @dev:  its device
 * @ref:  held by the QP, and by each fault that is queued or served
 * @lock: what @qpn and @dir say
 * @qpn:  the QP's
 * @dir:  the responder's and the requester's fault
 */
struct qhca_faults {
	struct qhca_ib_dev *dev;
	refcount_t ref;
	spinlock_t lock;	/* info and places of faults */
	u32 qpn;
	struct qhca_fault dir[2];
};

/**
 * struct qhca_qp - a queue pair.
 * @ref:     see struct qhca_ref
 * @mutex:   one state change at a time
 * @state:   as far as software knows; written under @mutex, and set to error
 *           by whoever learns that the device has done so
 * @flags:   QHCA_QP_*
 * @events:  bits by enum ib_event_type: raised and not yet delivered
 * @raised:  the same: raised since the QP was in state RESET
 * @event_work: delivers them; holds a reference while it is queued
 * @faults:  its page faults, NULL without the feature
 * @mcasts:  groups it is attached to, struct qhca_mcast; under @mutex
 * @buf:     rings and record
 * @rq_threshold: receives left below which the device reads the index again
 * @is_user: owned by a process, which posts and polls by itself.  The rest is
 *           for the kernel's QPs only.
 * @rec:     the record
 * @send_entry: in the send CQ's list, under its lock
 * @recv_entry: in the receive CQ's list, under its lock
 */
struct qhca_qp {
	struct ib_qp ibqp;
	struct qhca_ref ref;
	struct mutex mutex;	/* state changes */
	enum ib_qp_state state;
	u32 qpn;
	u32 dest_qpn;
	u32 db_page;
	u16 flags;
	u32 max_inline;
	u32 rq_threshold;
	bool is_user;
	unsigned long events;
	unsigned long raised;
	struct work_struct event_work;
	struct qhca_faults *faults;
	struct list_head mcasts;
	struct qhca_qbuf buf;

	struct qhca_wq sq;
	struct qhca_wq rq;
	struct qhca_qp_record *rec;
	struct list_head send_entry;
	struct list_head recv_entry;
};

/**
 * struct qhca_srq_slot - what the driver knows of a kernel SRQ's slot.
 * @wr_id:  of the request in it
 * @next:   free slots: the next of them, as in qhca_rq_wqe.next
 * @posted: the device has it
 *
 * Kept apart from the ring, which is memory that the device writes.
 */
struct qhca_srq_slot {
	u64 wr_id;
	u16 next;
	bool posted;
};

/**
 * struct qhca_srq - a shared receive queue.
 * @ref:  see struct qhca_ref
 * @threshold: receives left below which the device reads the index again
 * @log_depth: slots; grows with a resize
 * @buf:  slots and record; replaced by a resize
 * @mutex: one resize or change of the limit at a time
 * @lock: what follows, which only kernel SRQs use
 * @ring: slots, linked through qhca_rq_wqe.next
 * @slots: by number
 * @rec:  the record
 * @head: first free slot
 * @tail: last free slot; never posted, so the list never ends for the device
 * @pi:   free-running: slots posted
 */
struct qhca_srq {
	struct ib_srq ibsrq;
	struct qhca_ref ref;
	u32 srqn;
	u32 threshold;
	u8 log_depth;
	u8 log_stride;
	u8 max_sge;
	struct qhca_qbuf buf;
	struct mutex mutex;	/* changes */

	spinlock_t lock;	/* posting and freeing slots */
	void *ring;
	struct qhca_srq_slot *slots;
	struct qhca_srq_record *rec;
	u32 head;
	u32 tail;
	u32 pi;
};

static inline struct qhca_cq *to_qcq(struct ib_cq *ibcq)
{
	return container_of(ibcq, struct qhca_cq, ibcq);
}

static inline struct qhca_qp *to_qqp(struct ib_qp *ibqp)
{
	return container_of(ibqp, struct qhca_qp, ibqp);
}

static inline struct qhca_srq *to_qsrq(struct ib_srq *ibsrq)
{
	return container_of(ibsrq, struct qhca_srq, ibsrq);
}

static inline bool qhca_qp_is_xrc(const struct qhca_qp *qp)
{
	return qp->ibqp.qp_type == IB_QPT_XRC_INI ||
	       qp->ibqp.qp_type == IB_QPT_XRC_TGT;
}

static inline bool qhca_qp_is_reliable(const struct qhca_qp *qp)
{
	return qp->ibqp.qp_type == IB_QPT_RC || qhca_qp_is_xrc(qp);
}

/* cq.c */
int qhca_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		   struct uverbs_attr_bundle *attrs);
int qhca_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata);
int qhca_resize_cq(struct ib_cq *ibcq, QHCA_RESIZE_CQE cqe,
		   struct ib_udata *udata);
int qhca_modify_cq(struct ib_cq *ibcq, u16 count, u16 usec);
void qhca_cq_join(struct qhca_ib_dev *dev, struct qhca_cq *cq);
void qhca_cq_quiesce(struct qhca_ib_dev *dev, struct qhca_cq *cq);
void qhca_cq_event(void *ctx, const struct qhca_eqe *eqe);
struct qhca_cq *qhca_cq_get(struct qhca_ib_dev *dev, u32 cqn);
void qhca_flush_work(struct work_struct *work);

/* poll.c */
int qhca_poll_cq(struct ib_cq *ibcq, int num_entries, struct ib_wc *wc);
int qhca_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags);
void qhca_cq_forget_qp(struct qhca_cq *cq, struct qhca_qp *qp);

/* qp.c */
int qhca_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *attr,
		   struct ib_udata *udata);
int qhca_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata);
struct qhca_qp *qhca_qp_get(struct qhca_ib_dev *dev, u32 qpn);
void qhca_qp_forget_cqes(struct qhca_qp *qp);

/* qp_state.c */
int qhca_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		   struct ib_udata *udata);
int qhca_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		  struct ib_qp_init_attr *init_attr);
void qhca_qp_in_error(struct qhca_qp *qp, bool requester);

/* post.c */
int qhca_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		   const struct ib_send_wr **bad_wr);
int qhca_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		   const struct ib_recv_wr **bad_wr);
void qhca_build_rwqe(struct qhca_rq_wqe *wqe, const struct ib_recv_wr *wr);
void qhca_ring_sq(struct qhca_qp *qp);

/* srq.c */
int qhca_create_srq(struct ib_srq *ibsrq, struct ib_srq_init_attr *attr,
		    struct ib_udata *udata);
int qhca_modify_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr,
		    enum ib_srq_attr_mask mask, struct ib_udata *udata);
int qhca_query_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr);
int qhca_destroy_srq(struct ib_srq *ibsrq, struct ib_udata *udata);
int qhca_post_srq_recv(struct ib_srq *ibsrq, const struct ib_recv_wr *wr,
		       const struct ib_recv_wr **bad_wr);
bool qhca_srq_free_slot(struct qhca_srq *srq, u32 slot, u64 *wr_id);
struct qhca_srq *qhca_srq_get(struct qhca_ib_dev *dev, u32 srqn);

/* odp_fault.c */
int qhca_odp_init_qp(struct qhca_ib_dev *dev, struct qhca_qp *qp);
void qhca_odp_exit_qp(struct qhca_qp *qp);
void qhca_odp_event(struct qhca_ib_dev *dev, const struct qhca_eqe *eqe);

#endif /* QHCA_QUEUE_H */
