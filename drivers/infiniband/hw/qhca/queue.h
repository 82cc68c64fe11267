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
 * @eq:     event queue of its completion events
 * @threshold: number of CQEs in use above which the device reads the index
 *          again, as the owner asked for; a resize replaces it
 * @buf:    ring and record; a resize replaces it
 * @mutex:  serialises resizes and changes of moderation
 * @lock:   protects what follows, which only kernel CQs use
 * @ring:   2^@log_depth entries
 * @rec:    the record behind the ring
 * @ci:     free-running number of entries consumed
 * @send_qps: kernel QPs that complete send requests here
 * @recv_qps: kernel QPs that complete receive requests of their own here
 * @num_qps: number of uses by kernel QPs, for receives from SRQs, too.  While
 *           it is 0 no handler is called.  It is read without @lock, see
 *           qhca_cq_is_used().
 * @missed: an event has arrived while @num_qps was 0, and has disarmed the CQ
 */
struct qhca_cq {
	struct ib_cq ibcq;
	struct qhca_ref ref;
	struct qhca_eq *eq;
	u32 cqn;
	u32 db_page;
	u16 moder_count;
	u16 moder_usec;
	u32 threshold;
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
 * @lock: serialises posting
 * @ring: first entry
 * @pi:   free-running number of entries posted; under @lock
 * @ci:   free-running number of entries completed.  It is written under the
 *        CQ's lock.  Posters read it without that lock and at worst see less
 *        room than there is.
 * @depth: number of entries, 0 if the QP has no such queue
 * @wr_id: the consumer's number of each request, by entry.  It is never read
 *         back from the ring or from a CQE, because the device can write to
 *         both.
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
 * @faults: the QP's faults; referenced while this one is queued or served
 * @work:   serves the fault
 * @info:   the device's description of the fault; under the lock of @faults
 * @queued: how often @work has been queued and has not finished; likewise
 * @spare:  allocated for a single fault, not embedded in @faults
 * @token:  token of the fault that is served; under the lock of
 *          qhca_ib_dev.odps
 * @entry:  in qhca_odp.served, under that lock, or in no list
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
 * @dev:  the QP's device
 * @ref:  references of the QP, and of each fault that is queued or served
 * @lock: protects @qpn and the faults' info and queued
 * @qpn:  number of the QP
 * @dir:  the fault of the responder, and that of the requester
 */
struct qhca_faults {
	struct qhca_ib_dev *dev;
	refcount_t ref;
	spinlock_t lock;	/* qpn, dir[] */
	u32 qpn;
	struct qhca_fault dir[2];
};

/**
 * struct qhca_qp - a queue pair.
 * @ref:     see struct qhca_ref
 * @mutex:   serialises changes of state
 * @state:   the state that the driver knows.  It is written under @mutex, and
 *           set to error by any code that learns that the device has done so.
 * @flags:   QHCA_QP_*
 * @events:  events raised and not yet delivered, bits by enum ib_event_type
 * @raised:  events raised since the QP was in state RESET, bits likewise
 * @event_work: delivers @events; holds a reference while it is queued
 * @faults:  its page faults, NULL if the device has none
 * @mcasts:  groups that it is attached to, struct qhca_mcast; under @mutex
 * @buf:     rings and record
 * @rq_threshold: number of receives left below which the device reads the index
 *           again
 * @is_user: the QP belongs to a process, which posts and polls by itself.  The
 *           fields below are used for the kernel's QPs only.
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
 * struct qhca_srq_slot - the driver's own state of a kernel SRQ's slot.
 * @wr_id:  the consumer's number of the request in the slot
 * @next:   of a free slot, the next free one, as in qhca_rq_wqe.next
 * @posted: the slot has been posted and has not completed
 *
 * This state is kept apart from the ring, because the device can write to that.
 */
struct qhca_srq_slot {
	u64 wr_id;
	u16 next;
	bool posted;
};

/**
 * struct qhca_srq - a shared receive queue.
 * @ref:  see struct qhca_ref
 * @threshold: number of posted slots below which the device reads the index
 *        again, as the owner asked for; a resize replaces it
 * @log_depth: log2 of the number of slots; a resize makes it larger
 * @buf:  slots and record; a resize replaces it
 * @mutex: serialises resizes and changes of the limit
 * @lock: protects what follows, which only kernel SRQs use
 * @ring: slots, linked through qhca_rq_wqe.next
 * @slots: the driver's own state of each slot
 * @rec:  the record
 * @head: first free slot
 * @tail: last free slot; it is never posted, so the device never reaches the
 *        end of the list
 * @pi:   free-running number of slots posted
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
int qhca_srq_query(struct qhca_srq *srq, struct qhca_srqc *srqc);
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
