/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * qhca provider: objects, and declarations that the provider's files share.
 *
 * Locks, outermost first:  CQ or SRQ resize mutex, CQ lock (of two CQs the one
 * with the lower number first), SRQ lock or a QP's receive lock.  A poller
 * frees ring slots by storing an atomic index that posters read, so it needs
 * neither of a QP's locks.  Only when it learns that the QP is in error, it
 * takes and drops the receive lock once.
 */
#ifndef __QHCA_H__
#define __QHCA_H__

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/driver.h>
#include <util/compiler.h>
#include <util/mmio.h>
#include <util/udma_barrier.h>
#include <util/util.h>

#include <qhca/qhca_hw.h>

#include "lock.h"

/* Types of queues, for a parent domain's allocator. */
enum qhca_resource {
	QHCA_RESOURCE_CQ = 1,
	QHCA_RESOURCE_QP = 2,
	QHCA_RESOURCE_SRQ = 3,
};

struct qhca_device {
	struct verbs_device vdev;
};

struct qhca_context {
	struct verbs_context vctx;
	void *db_page;
	size_t db_size;
	size_t page_size;
	uint64_t features;	/* QHCA_FEAT_* */
	uint32_t max_inline;
	uint32_t max_sge;
	uint32_t max_send_wr;
	uint32_t max_recv_wr;
	uint32_t max_cqe;
	uint32_t max_srq_wr;
};

struct qhca_td {
	struct ibv_td td;
	atomic_int users;	/* parent domains made with it */
};

/*
 * A protection domain, or a parent domain, which refers to the protection
 * domain that it was made of and adds a thread domain and an allocator.
 */
struct qhca_pd {
	struct ibv_pd pd;
	atomic_int users;	/* parent domains; queues in memory of alloc() */
	struct qhca_pd *contained;	/* parent domain: what it was made of */
	struct qhca_td *td;
	void *(*alloc)(struct ibv_pd *pd, void *pd_context, size_t size,
		       size_t alignment, uint64_t resource_type);
	void (*free)(struct ibv_pd *pd, void *pd_context, void *ptr,
		     uint64_t resource_type);
	void *pd_context;
};

/* Memory shared with the device: the rings of a queue and its record. */
struct qhca_umem {
	void *addr;
	size_t length;
	struct qhca_pd *owner;	/* parent domain whose allocator made it */
	enum qhca_resource resource;
};

/* A range of device memory, mapped. */
struct qhca_dm {
	struct verbs_dm vdm;
	void *addr;
	size_t length;		/* as asked for */
	size_t map_length;
};

struct qhca_ah {
	struct ibv_ah ah;
	struct qhca_av av;
};

/*
 * One ring of completions.  A CQ has one ring, and further rings in order while
 * it is being resized: the device ends a ring with QHCA_CQE_RESIZED and goes on
 * at the start of the next one.
 */
struct qhca_cq_ring {
	struct qhca_umem mem;
	struct qhca_cqe *cqes;
	struct qhca_cq_record *rec;
	uint32_t depth;		/* a power of two */
	uint32_t rec_offset;
	uint32_t ci;		/* free-running from 0: CQEs consumed */
	uint32_t base;		/* number of the CQ's CQE that is this ring's
				   first; known when it is the CQ's @ring */
	struct qhca_cq_ring *next;
};

struct qhca_cq {
	struct verbs_cq vcq;
	struct qhca_lock lock;	/* rings, cur */
	pthread_mutex_t resize_lock;
	struct qhca_cq_ring *ring;
	const struct qhca_cqe *cur;	/* between start_poll and end_poll */
	struct qhca_pd *pd;	/* parent domain or NULL */
	uint32_t cqn;
	uint32_t threshold;	/* asked for; 0: the driver's */
	uint32_t empty_polls;	/* in a row, since a completion or a hint that was due */
	uint32_t hints;		/* that were due since a completion, given or not */
	bool tells;		/* the device is to be told of empty polls */
	bool polls_on;		/* and that there will be others after a completion */
	bool streams;		/* and that these belong to a stream */
	_Atomic(uint32_t) arm_ci;	/* what an arm doorbell says */
};

/* One ring of fixed-stride work requests. */
struct qhca_wq {
	struct qhca_lock lock;	/* posting */
	void *ring;
	uint32_t offset;	/* of the ring in the QP's memory */
	uint32_t depth;		/* a power of two; 0: no such queue */
	uint32_t max_sge;
	uint8_t log_stride;
	uint32_t pi;		/* free-running: posted */
	_Atomic(uint32_t) ci;	/* free-running: known to be completed */
};

struct qhca_srq {
	struct verbs_srq vsrq;
	struct qhca_umem mem;
	struct qhca_lock lock;
	void *ring;
	struct qhca_srq_record *rec;
	uint32_t rec_offset;
	uint32_t depth;		/* slots, one more than may be posted */
	uint32_t max_sge;
	uint8_t log_stride;
	uint32_t head;		/* slot the next post fills */
	uint32_t tail;		/* last free slot; never filled */
	uint32_t pi;		/* free-running: posted */
	uint32_t threshold;	/* asked for; 0: the driver's */
	struct qhca_pd *pd;

	pthread_mutex_t resize_lock;
	void *new_ring;		/* while it grows: a ring that is to be alike */
	struct qhca_srq_record *new_rec;
};

/* The larger ring of an SRQ that is being resized. */
struct qhca_srq_grow {
	struct qhca_umem mem;
	uint32_t rec_offset;
	uint32_t depth;
};

struct qhca_qp {
	struct verbs_qp vqp;
	struct qhca_umem mem;
	struct qhca_qp_record *rec;
	uint32_t rec_offset;
	struct qhca_wq sq;
	struct qhca_wq rq;
	uint32_t max_inline;
	uint32_t rq_threshold;	/* asked for; 0: the driver's */
	atomic_bool in_error;	/* receive posts must ring too */
	enum qhca_qp_type type;
	struct qhca_pd *pd;	/* as given: perhaps a parent domain */

	/* under the lock of the CQ of receives */
	uint32_t received;	/* while nothing was sent, up to those of a stream */
	uint32_t received_pi;	/* sq.pi at the last of them */

	/* many requests were outstanding when one completed last, as far as is known */
	atomic_bool streams;

	/* between wr_start and wr_complete or wr_abort, under sq.lock */
	struct qhca_sq_wqe *wr_wqe;
	uint32_t wr_pi;
	int wr_err;
};

static inline struct qhca_context *to_qctx(struct ibv_context *context)
{
	return container_of(context, struct qhca_context, vctx.context);
}

static inline struct qhca_pd *to_qpd(struct ibv_pd *pd)
{
	return container_of(pd, struct qhca_pd, pd);
}

static inline struct qhca_td *to_qtd(struct ibv_td *td)
{
	return container_of(td, struct qhca_td, td);
}

static inline struct qhca_dm *to_qdm(struct ibv_dm *dm)
{
	return container_of(dm, struct qhca_dm, vdm.dm);
}

static inline struct qhca_ah *to_qah(struct ibv_ah *ah)
{
	return container_of(ah, struct qhca_ah, ah);
}

static inline struct qhca_cq *to_qcq(struct ibv_cq *cq)
{
	return container_of(cq, struct qhca_cq, vcq.cq);
}

static inline struct qhca_cq *to_qcq_ex(struct ibv_cq_ex *cq)
{
	return container_of(cq, struct qhca_cq, vcq.cq_ex);
}

static inline struct qhca_srq *to_qsrq(struct ibv_srq *srq)
{
	return container_of(srq, struct qhca_srq, vsrq.srq);
}

static inline struct qhca_qp *to_qqp(struct ibv_qp *qp)
{
	return container_of(qp, struct qhca_qp, vqp.qp);
}

static inline struct qhca_qp *to_qqp_ex(struct ibv_qp_ex *qp)
{
	return container_of(qp, struct qhca_qp, vqp.qp_ex);
}

/* Words shared with the device: one access each, ordered by the caller. */
static inline uint32_t qhca_load(const __le32 *p)
{
	return le32toh((__force __le32)atomic_load_explicit(
		(_Atomic(uint32_t) *)p, memory_order_relaxed));
}

static inline void qhca_store(__le32 *p, uint32_t value)
{
	atomic_store_explicit((_Atomic(uint32_t) *)p,
			      (__force uint32_t)htole32(value),
			      memory_order_relaxed);
}

/* As qhca_store(), ordered after all earlier accesses of the caller. */
static inline void qhca_store_release(__le32 *p, uint32_t value)
{
	udma_to_device_barrier();
	atomic_store_explicit((_Atomic(uint32_t) *)p,
			      (__force uint32_t)htole32(value),
			      memory_order_release);
}

/*
 * A full barrier towards the device: stores before it are visible before loads
 * after it.  C11's fence is for processors.  On x86 it may be a locked
 * instruction, which an emulator of a machine with one processor need not
 * implement as a barrier towards the threads of its devices.
 */
static inline void qhca_store_load_barrier(void)
{
#ifdef __x86_64__
	asm volatile("mfence" ::: "memory");
#else
	atomic_thread_fence(memory_order_seq_cst);
#endif
}

/* Ring a doorbell of the context's page, after all earlier stores. */
static inline void qhca_doorbell(struct qhca_context *ctx, size_t offset,
				 uint32_t low, uint32_t high)
{
	udma_to_device_barrier();
	mmio_write64_le((uint8_t *)ctx->db_page + offset,
			htole64((uint64_t)high << 32 | low));
}

static inline uint8_t qhca_log2_up(uint64_t n)
{
	return n <= 1 ? 0 : ilog64(n - 1);
}

static inline bool qhca_wq_full(const struct qhca_wq *wq, uint32_t pi)
{
	/* A slot may be written again once its completion has been read. */
	return pi - atomic_load_explicit(&wq->ci, memory_order_acquire) >=
	       wq->depth;
}

static inline void *qhca_wq_slot(const struct qhca_wq *wq, uint32_t index)
{
	return (uint8_t *)wq->ring +
	       ((size_t)(index & (wq->depth - 1)) << wq->log_stride);
}

/* umem.c */
int qhca_umem_alloc(struct qhca_umem *mem, struct qhca_context *ctx,
		    struct qhca_pd *pd, size_t length,
		    enum qhca_resource resource);
void qhca_umem_free(struct qhca_umem *mem);

/* pd.c */
struct ibv_pd *qhca_alloc_pd(struct ibv_context *context);
int qhca_dealloc_pd(struct ibv_pd *pd);
struct ibv_pd *qhca_import_pd(struct ibv_context *context, uint32_t handle);
void qhca_unimport_pd(struct ibv_pd *pd);
struct ibv_td *qhca_alloc_td(struct ibv_context *context,
			     struct ibv_td_init_attr *attr);
int qhca_dealloc_td(struct ibv_td *td);
struct ibv_pd *
qhca_alloc_parent_domain(struct ibv_context *context,
			 struct ibv_parent_domain_init_attr *attr);
struct ibv_xrcd *qhca_open_xrcd(struct ibv_context *context,
				struct ibv_xrcd_init_attr *attr);
int qhca_close_xrcd(struct ibv_xrcd *xrcd);

static inline bool qhca_single_threaded(const struct qhca_pd *pd)
{
	return pd && pd->td;
}

/* mem.c */
struct ibv_mr *qhca_reg_mr(struct ibv_pd *pd, void *addr, size_t length,
			   uint64_t iova, int access);
struct ibv_mr *qhca_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset,
				  size_t length, uint64_t iova, int fd,
				  int access);
int qhca_rereg_mr(struct verbs_mr *vmr, int flags, struct ibv_pd *pd,
		  void *addr, size_t length, int access);
int qhca_dereg_mr(struct verbs_mr *vmr);
struct ibv_mr *qhca_alloc_null_mr(struct ibv_pd *pd);
struct ibv_mr *qhca_import_mr(struct ibv_pd *pd, uint32_t handle);
void qhca_unimport_mr(struct ibv_mr *mr);
int qhca_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice,
		   uint32_t flags, struct ibv_sge *sg_list, uint32_t num_sge);
struct ibv_mw *qhca_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int qhca_dealloc_mw(struct ibv_mw *mw);

/* dm.c */
struct ibv_dm *qhca_alloc_dm(struct ibv_context *context,
			     struct ibv_alloc_dm_attr *attr);
int qhca_free_dm(struct ibv_dm *dm);
struct ibv_dm *qhca_import_dm(struct ibv_context *context, uint32_t handle);
void qhca_unimport_dm(struct ibv_dm *dm);
struct ibv_mr *qhca_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm,
			      uint64_t offset, size_t length,
			      unsigned int access);

/* flow.c */
struct ibv_flow *qhca_create_flow(struct ibv_qp *qp,
				  struct ibv_flow_attr *attr);
int qhca_destroy_flow(struct ibv_flow *flow);

/* ah.c */
struct ibv_ah *qhca_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr);
int qhca_destroy_ah(struct ibv_ah *ah);

/* queue.c */
struct qhcadv_queue_attr;
bool qhca_queue_threshold(struct ibv_context *context,
			  const struct qhcadv_queue_attr *attr, uint32_t inlen,
			  uint32_t *threshold);

/* cq.c */
struct ibv_cq *qhca_create_cq(struct ibv_context *context, int cqe,
			      struct ibv_comp_channel *channel,
			      int comp_vector);
struct ibv_cq_ex *qhca_create_cq_ex(struct ibv_context *context,
				    struct ibv_cq_init_attr_ex *attr);
int qhca_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr);
int qhca_resize_cq(struct ibv_cq *cq, int cqe);
int qhca_destroy_cq(struct ibv_cq *cq);
int qhca_arm_cq(struct ibv_cq *cq, int solicited);
struct qhca_cq_ring *qhca_cq_ring_new(struct qhca_context *ctx,
				      struct qhca_pd *pd, uint32_t cqe,
				      uint32_t spare);
void qhca_cq_ring_free(struct qhca_cq_ring *ring);
void qhca_cq_next_ring(struct qhca_cq *cq, uint32_t base);
void qhca_cq_publish(struct qhca_cq *cq);
void qhca_cq_clean(struct qhca_cq *send_cq, struct qhca_cq *recv_cq,
		   const void *owner);
void qhca_cq_disown(struct qhca_cq *send_cq, struct qhca_cq *recv_cq,
		    const struct qhca_qp *qp);

/* poll.c */
int qhca_poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc);
void qhca_cq_set_ex_ops(struct qhca_cq *cq, uint64_t wc_flags);

/* srq.c */
struct ibv_srq *qhca_create_srq(struct ibv_pd *pd,
				struct ibv_srq_init_attr *attr);
struct ibv_srq *qhca_create_srq_ex(struct ibv_context *context,
				   struct ibv_srq_init_attr_ex *attr);
int qhca_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask);
int qhca_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr);
int qhca_destroy_srq(struct ibv_srq *srq);
int qhca_get_srq_num(struct ibv_srq *srq, uint32_t *srq_num);
int qhca_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr,
		       struct ibv_recv_wr **bad_wr);
int qhca_srq_init_ring(struct qhca_srq *srq, struct qhca_context *ctx,
		       uint32_t max_wr, uint32_t max_sge);
int qhca_srq_grow_begin(struct qhca_srq *srq, struct qhca_context *ctx,
			uint32_t max_wr, struct qhca_srq_grow *grow);
void qhca_srq_grow_end(struct qhca_srq *srq, struct qhca_srq_grow *grow,
		       bool moved);
void qhca_srq_free_slot(struct qhca_srq *srq, uint32_t slot);

/* qp.c */
struct ibv_qp *qhca_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
struct ibv_qp *qhca_create_qp_ex(struct ibv_context *context,
				 struct ibv_qp_init_attr_ex *attr);
struct ibv_qp *qhca_open_qp(struct ibv_context *context,
			    struct ibv_qp_open_attr *attr);
int qhca_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
int qhca_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
		  struct ibv_qp_init_attr *init_attr);
int qhca_destroy_qp(struct ibv_qp *qp);
void qhca_qp_in_error(struct qhca_qp *qp);
int qhca_qp_init_rings(struct qhca_qp *qp, struct qhca_context *ctx,
		       struct ibv_qp_cap *cap, bool has_rq);
void qhca_qp_reset_rings(struct qhca_qp *qp);

/* send.c */
int qhca_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr,
		   struct ibv_send_wr **bad_wr);
int qhca_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw,
		 struct ibv_mw_bind *bind);

/* recv.c */
int qhca_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr,
		   struct ibv_recv_wr **bad_wr);

/* wr.c */
int qhca_qp_set_wr_ops(struct qhca_qp *qp, struct qhca_context *ctx,
		       uint64_t ops);

#endif /* __QHCA_H__ */
