/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * qhca_ib.ko: the RDMA half of the qhca driver.
 *
 * Lock order: qhca_qp.mutex, then qhca_qp.sq.lock, then qhca_qp.rq.lock, then
 * qhca_cq.lock, then qhca_srq.lock.  The xarrays' own locks are innermost and
 * taken with interrupts off, because asynchronous events look objects up from
 * hard interrupts.  qhca_ucontext.pool_lock is taken with none of these held.
 */
#ifndef QHCA_IB_H
#define QHCA_IB_H

#define QHCA_COMPAT_RDMA

#include <linux/completion.h>
#include <linux/idr.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/refcount.h>
#include <linux/sizes.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_umem.h>
#include <rdma/ib_verbs.h>
#include <rdma/restrack.h>
#include <rdma/uverbs_ioctl.h>
#include <rdma/qhca-abi.h>
#include <linux/qhca/compat.h>
#include <linux/qhca/driver.h>

#define QHCA_IB_PORT		1
#define QHCA_IB_PKEY		0xffff
#define QHCA_GSI_QPN		1
#define QHCA_MAX_PD		0x00ffffff	/* numbers 1 to this */
#define QHCA_MAX_XRCD		0x00ffffff
#define QHCA_CLEAR_BYTES	SZ_64K		/* at once, then reschedule */
#define QHCA_MAX_FAST_REG_PAGES	4096		/* the device's bound */

struct gen_pool;
struct qhca_pool;

/**
 * struct qhca_port_stats - the counters of the device that its port shows
 * @desc:    what the core is told of each
 * @counter: which of the device's it is
 */
struct qhca_port_stats {
	struct rdma_stat_desc desc[QHCA_NUM_COUNTERS];
	u16 counter[QHCA_NUM_COUNTERS];
};

/**
 * struct qhca_ib_dev - the ib_device of one PCI function.
 * @qdev:    the function; valid as long as this is
 * @eqs:     one for each completion vector
 * @num_eqs: how many there are
 * @cqs:     CQs by number.  Completion events look in it under RCU; removal is
 *           followed by qhca_eq_synchronize().  Everything else takes a
 *           reference under its lock.
 * @qps:     QPs by number, lookup by reference
 * @srqs:    SRQs by number, lookup by reference
 * @pdns:    numbers of protection domains; never 0
 * @xrcdns:  numbers of XRC domains; never 0
 * @flows:   numbers of flow rules
 * @events_nb:  asynchronous events of the function
 * @netdev_nb:  netdev events, where the core does not watch them itself
 * @registered: device events may be dispatched; false while the device comes
 *              and goes, when the core could not take them
 * @port_state: last one reported through @netdev_nb; under RTNL
 * @event_wq:   delivers QP events, whose handlers may sleep
 * @bounced: the kernel bounces DMA, so processes share no memory with the
 *           device; constant
 * @pool:    the memory pool, NULL if there is none
 * @dms:     hands out device memory by CPU physical address, NULL without it
 * @dm_io:   all of device memory, mapped
 * @odps:    regions on demand, struct qhca_odp by key index
 * @mws:     memory windows by key index
 * @fault_wq: brings in pages
 * @flush_work: after the function's death, runs the completion handlers of
 *              kernel CQs, whose pollers then find flushed requests, and
 *              raises the events that the device owes QPs in error
 * @flush_mutex: held while @flush_work calls handlers
 * @port_stats: order of the port's counters, constant
 */
struct qhca_ib_dev {
	struct ib_device ibdev;
	struct qhca_dev *qdev;
	struct qhca_eq **eqs;
	int num_eqs;
	struct xarray cqs;
	struct xarray qps;
	struct xarray srqs;
	struct ida pdns;
	struct ida xrcdns;
	struct ida flows;
	struct notifier_block events_nb;
	struct notifier_block netdev_nb;
	bool registered;
	enum ib_port_state port_state;
	struct workqueue_struct *event_wq;
	struct xarray odps;
	struct xarray mws;
	struct workqueue_struct *fault_wq;
	struct work_struct flush_work;
	struct mutex flush_mutex;	/* completion handlers */
	bool bounced;
	struct qhca_pool *pool;
	struct gen_pool *dms;
	void __iomem *dm_io;
	struct qhca_port_stats port_stats;
};

/*
 * Keeps an object that events may find from going away under them: creation
 * holds one reference, each lookup one more, and destruction waits for the
 * last of them.
 */
struct qhca_ref {
	refcount_t count;
	struct completion gone;
};

/**
 * struct qhca_at_node - a node of a translation tree, kernel memory.
 * @ent:  entries, QHCA_ATE_*
 * @dma:  where the device finds them; DMA_MAPPING_ERROR until it may
 * @size: bytes, a power of two from 64 to 4096
 */
struct qhca_at_node {
	__le64 *ent;
	dma_addr_t dma;
	u32 size;
};

/**
 * struct qhca_at - a translation tree as the hardware walks it.
 * @base:       bus address of the root, or of the memory itself with 0 levels
 * @num_nodes:  0 with 0 levels
 * @page_shift: log2 of the page that a level 1 entry translates
 * @levels:     0 to QHCA_MAX_AT_LEVELS
 * @dir:        enum dma_data_direction: does the device write entries too?
 * @one:        the node, when there is one
 * @many:       otherwise the nodes, those of level 1 first and the root last
 */
struct qhca_at {
	u64 base;
	u32 num_nodes;
	u8 page_shift;
	u8 levels;
	u8 dir;
	union {
		struct qhca_at_node one;
		struct qhca_at_node *many;
	};
};

/**
 * struct qhca_qbuf - the buffer of a queue: its rings and its record.
 * @umem:   of a user's queue, else NULL
 * @cpu:    of a kernel's queue, else NULL
 * @dma:    bus address of @cpu
 * @length: bytes
 * @at:     how the device reaches it
 */
struct qhca_qbuf {
	struct ib_umem *umem;
	void *cpu;
	dma_addr_t dma;
	u32 length;
	struct qhca_at at;
};

/**
 * struct qhca_ucontext - what one opening of the device has.
 * @db_page:   number of its doorbell page
 * @db_entry:  lets it be mapped
 * @pool_lock: protects @pool_bufs and the buffers' numbers of regions
 * @pool_bufs: its memory of the pool, struct qhca_pool_buf
 */
struct qhca_ucontext {
	struct ib_ucontext ibuc;
	u32 db_page;
	struct rdma_user_mmap_entry *db_entry;
	struct mutex pool_lock;	/* pool_bufs */
	struct list_head pool_bufs;
};

enum qhca_mmap_type {
	QHCA_MMAP_DOORBELL,
	QHCA_MMAP_POOL,
	QHCA_MMAP_DM,
};

/**
 * struct qhca_mmap_entry - what a process may map.
 * @addr: CPU physical address of its first page
 * @type: who is to free it, and how it is mapped
 *
 * It lives until its object has gone and nobody maps it any more; what it
 * stands for must live as long.
 */
struct qhca_mmap_entry {
	struct rdma_user_mmap_entry rdma_entry;
	phys_addr_t addr;
	enum qhca_mmap_type type;
};

/**
 * struct qhca_pool_buf - pool memory that a process owns.
 * @mmap:   see struct qhca_mmap_entry; its end is the buffer's
 * @uc:     the owner, as long as the object exists
 * @entry:  in its list, under its lock
 * @addr:   where the kernel sees it
 * @length: bytes, whole pages
 * @offset: where it starts in its block
 * @block:  row in the device's bank
 * @regions: registered on it, under @uc's lock
 */
struct qhca_pool_buf {
	struct qhca_mmap_entry mmap;
	struct qhca_ucontext *uc;
	struct list_head entry;
	void *addr;
	u64 length;
	u64 offset;
	u32 block;
	u32 regions;
};

/**
 * struct qhca_dm_buf - device memory that a process owns.
 * @mmap:   see struct qhca_mmap_entry; its end is the buffer's
 * @length: bytes, whole pages
 */
struct qhca_dm_buf {
	struct qhca_mmap_entry mmap;
	u64 length;
};

struct qhca_dm {
	struct ib_dm ibdm;
	struct qhca_dm_buf *buf;
};

struct qhca_pd {
	struct ib_pd ibpd;
	u32 pdn;
};

struct qhca_xrcd {
	struct ib_xrcd ibxrcd;
	u32 xrcdn;
};

struct qhca_ah {
	struct ib_ah ibah;
	struct qhca_av av;
};

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

/**
 * struct qhca_mr - a memory region.
 * @index:  of its protection table entry
 * @lock:   @access to @at, as far as a change of the region replaces them and
 *          others than its owner look at them
 * @access: IB_ACCESS_*
 * @umem:   pinned user memory, else NULL
 * @pool:   memory of the pool, else NULL
 * @offset: in the block of @pool, or in device memory
 * @odp:    of a region on demand, else NULL
 * @at:     its translation; of a fast registration, written by the device
 * @pages:  fast registration: page list, written by ib_map_mr_sg()
 * @pages_dma: bus address of @pages
 * @num_pages: entries of @pages in use
 * @max_pages: entries of @pages
 */
struct qhca_mr {
	struct ib_mr ibmr;
	u32 index;
	spinlock_t lock;	/* access, pool, at */
	int access;
	struct ib_umem *umem;
	struct qhca_pool_buf *pool;
	u64 offset;
	struct qhca_odp *odp;
	struct qhca_at at;
	__le64 *pages;
	dma_addr_t pages_dma;
	u32 num_pages;
	u32 max_pages;
};

struct qhca_mw {
	struct ib_mw ibmw;
	u32 index;
};

static inline struct qhca_ib_dev *to_qhca(struct ib_device *ibdev)
{
	return container_of(ibdev, struct qhca_ib_dev, ibdev);
}

static inline struct qhca_ucontext *to_quc(struct ib_ucontext *ibuc)
{
	return container_of(ibuc, struct qhca_ucontext, ibuc);
}

static inline struct qhca_pd *to_qpd(struct ib_pd *ibpd)
{
	return container_of(ibpd, struct qhca_pd, ibpd);
}

static inline struct qhca_xrcd *to_qxrcd(struct ib_xrcd *ibxrcd)
{
	return container_of(ibxrcd, struct qhca_xrcd, ibxrcd);
}

static inline struct qhca_ah *to_qah(struct ib_ah *ibah)
{
	return container_of(ibah, struct qhca_ah, ibah);
}

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

static inline struct qhca_dm *to_qdm(struct ib_dm *ibdm)
{
	return container_of(ibdm, struct qhca_dm, ibdm);
}

static inline struct qhca_mr *to_qmr(struct ib_mr *ibmr)
{
	return container_of(ibmr, struct qhca_mr, ibmr);
}

static inline struct qhca_mw *to_qmw(struct ib_mw *ibmw)
{
	return container_of(ibmw, struct qhca_mw, ibmw);
}

static inline struct device *qhca_dma_dev(struct qhca_ib_dev *dev)
{
	return &dev->qdev->pdev->dev;
}

static inline bool qhca_has(struct qhca_ib_dev *dev, u64 features)
{
	return (dev->qdev->caps.features & features) == features;
}

/* The threshold of a queue whose owner asks for none. */
static inline u32 qhca_default_threshold(struct qhca_ib_dev *dev,
					 enum qhca_threshold queue,
					 u8 log_depth)
{
	u32 percent = dev->qdev->threshold_percent[queue];

	return mult_frac((u32)BIT(log_depth), percent, 100U);
}

/* Dead: no command will be executed and no completion will arrive. */
static inline bool qhca_is_dead(struct qhca_ib_dev *dev)
{
	return READ_ONCE(dev->qdev->state) != QHCA_DEV_UP;
}

static inline void qhca_ref_init(struct qhca_ref *ref)
{
	refcount_set(&ref->count, 1);
	init_completion(&ref->gone);
}

static inline void qhca_ref_put(struct qhca_ref *ref)
{
	if (refcount_dec_and_test(&ref->count))
		complete(&ref->gone);
}

/* Give up the creator's reference and wait for those of others. */
static inline void qhca_ref_drain(struct qhca_ref *ref)
{
	qhca_ref_put(ref);
	wait_for_completion(&ref->gone);
}

/* main.c */
void qhca_destroy_object(struct qhca_ib_dev *dev, u16 opcode, u32 index);
void qhca_refused(struct qhca_ib_dev *dev, u16 opcode, u32 index, int err);
int qhca_create_object(struct qhca_ib_dev *dev, u16 opcode, u32 index,
		       const void *in, u32 in_len);

/* device.c */
int qhca_query_device(struct ib_device *ibdev, struct ib_device_attr *attr,
		      struct ib_udata *udata);
int qhca_query_port(struct ib_device *ibdev, u32 port,
		    struct ib_port_attr *attr);
int qhca_query_pkey(struct ib_device *ibdev, u32 port, u16 index, u16 *pkey);
int qhca_get_port_immutable(struct ib_device *ibdev, u32 port,
			    struct ib_port_immutable *immutable);
enum rdma_link_layer qhca_get_link_layer(struct ib_device *ibdev, u32 port);
void qhca_get_dev_fw_str(struct ib_device *ibdev, char *str);
int qhca_add_gid(const struct ib_gid_attr *attr, void **context);
int qhca_del_gid(const struct ib_gid_attr *attr, void **context);
enum ib_port_state qhca_port_state(struct qhca_ib_dev *dev);

/* pd_ucontext.c */
extern const struct uapi_definition qhca_ucontext_defs[];
int qhca_alloc_ucontext(struct ib_ucontext *ibuc, struct ib_udata *udata);
void qhca_dealloc_ucontext(struct ib_ucontext *ibuc);
int qhca_query_ucontext(struct ib_ucontext *ibuc,
			struct uverbs_attr_bundle *attrs);
void qhca_disassociate_ucontext(struct ib_ucontext *ibuc);
int qhca_mmap_insert(struct qhca_ucontext *uc, struct qhca_mmap_entry *entry,
		     enum qhca_mmap_type type, phys_addr_t addr, size_t length);
int qhca_mmap(struct ib_ucontext *ibuc, struct vm_area_struct *vma);
void qhca_mmap_free(struct rdma_user_mmap_entry *rdma_entry);
int qhca_alloc_pd(struct ib_pd *ibpd, struct ib_udata *udata);
int qhca_dealloc_pd(struct ib_pd *ibpd, struct ib_udata *udata);
int qhca_alloc_xrcd(struct ib_xrcd *ibxrcd, struct ib_udata *udata);
int qhca_dealloc_xrcd(struct ib_xrcd *ibxrcd, struct ib_udata *udata);

/* at.c */
int qhca_at_build(struct qhca_ib_dev *dev, struct qhca_at *at,
		  struct ib_umem *umem, unsigned long pgsz, bool may_be_flat);
int qhca_at_build_blank(struct qhca_ib_dev *dev, struct qhca_at *at,
			u32 entries);
void qhca_at_free(struct qhca_ib_dev *dev, struct qhca_at *at);

/* umem.c */
bool qhca_dma_is_bounced(struct qhca_ib_dev *dev, dma_addr_t dma);
void qhca_dma_probe(struct qhca_ib_dev *dev);
int qhca_umem_may_pin(struct qhca_ib_dev *dev);
struct ib_umem *qhca_umem_check(struct qhca_ib_dev *dev, struct ib_umem *umem);
struct ib_umem *qhca_umem_get(struct qhca_ib_dev *dev, u64 addr, u64 length,
			      int access);

/* qbuf.c */
int qhca_qbuf_alloc(struct qhca_ib_dev *dev, struct qhca_qbuf *buf, u32 length);
int qhca_qbuf_pin(struct qhca_ib_dev *dev, struct qhca_qbuf *buf, u64 addr,
		  u32 length);
int qhca_qbuf_pin_cq(struct qhca_ib_dev *dev, struct qhca_qbuf *buf,
		     const struct uverbs_attr_bundle *attrs, u64 addr,
		     u32 length);
void qhca_qbuf_free(struct qhca_ib_dev *dev, struct qhca_qbuf *buf);
void qhca_qbuf_encode(const struct qhca_qbuf *buf, struct qhca_buf *hw);
bool qhca_qbuf_holds(u32 length, u32 offset, u64 size, u32 align);

/* cq.c */
int qhca_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		   struct uverbs_attr_bundle *attrs);
int qhca_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata);
int qhca_resize_cq(struct ib_cq *ibcq, QHCA_RESIZE_CQE cqe,
		   struct ib_udata *udata);
int qhca_modify_cq(struct ib_cq *ibcq, u16 count, u16 usec);
int qhca_poll_cq(struct ib_cq *ibcq, int num_entries, struct ib_wc *wc);
int qhca_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags);
void qhca_cq_join(struct qhca_ib_dev *dev, struct qhca_cq *cq);
void qhca_cq_quiesce(struct qhca_ib_dev *dev, struct qhca_cq *cq);
void qhca_cq_forget_qp(struct qhca_cq *cq, struct qhca_qp *qp);
void qhca_cq_event(void *ctx, const struct qhca_eqe *eqe);
struct qhca_cq *qhca_cq_get(struct qhca_ib_dev *dev, u32 cqn);
void qhca_flush_work(struct work_struct *work);

/* qp.c */
int qhca_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *attr,
		   struct ib_udata *udata);
int qhca_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		   struct ib_udata *udata);
int qhca_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		  struct ib_qp_init_attr *init_attr);
int qhca_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata);
struct qhca_qp *qhca_qp_get(struct qhca_ib_dev *dev, u32 qpn);
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

/* odp.c */
struct qhca_odp_tables {
	u32 stretches;
	u32 nodes;
	u64 bytes;
};

void qhca_odp_tables(struct qhca_odp *odp, struct qhca_odp_tables *t);
bool qhca_odp_is_implicit(u64 start, u64 length, int access);
struct ib_mr *qhca_odp_reg_mr(struct ib_pd *ibpd, u64 start, u64 length,
			      u64 virt, int access);
void qhca_odp_dereg_mr(struct qhca_ib_dev *dev, struct qhca_mr *mr);
int qhca_fill_stat_mr_entry(struct sk_buff *msg, struct ib_mr *ibmr);
void qhca_odp_caps(struct qhca_ib_dev *dev, struct ib_device_attr *attr);
int qhca_odp_start(struct qhca_ib_dev *dev);
void qhca_odp_stop(struct qhca_ib_dev *dev);

/* odp_fault.c */
int qhca_odp_init_qp(struct qhca_ib_dev *dev, struct qhca_qp *qp);
void qhca_odp_exit_qp(struct qhca_qp *qp);
void qhca_odp_event(struct qhca_ib_dev *dev, const struct qhca_eqe *eqe);

/* odp_advise.c */
int qhca_advise_mr(struct ib_pd *ibpd, enum ib_uverbs_advise_mr_advice how,
		   u32 flags, struct ib_sge *sg_list, u32 num_sge,
		   struct uverbs_attr_bundle *attrs);

/* mr.c */
struct ib_mr *qhca_get_dma_mr(struct ib_pd *ibpd, int access);
struct ib_mr *qhca_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length,
			       u64 virt, int access, QHCA_DMAH_PARAM
			       struct ib_udata *udata);
struct ib_mr *qhca_reg_user_mr_dmabuf(struct ib_pd *ibpd, u64 offset,
				      u64 length, u64 virt, int fd,
				      int access, QHCA_DMAH_PARAM
				      struct uverbs_attr_bundle *attrs);
struct ib_mr *qhca_rereg_user_mr(struct ib_mr *ibmr, int flags, u64 start,
				 u64 length, u64 virt, int access,
				 struct ib_pd *pd, struct ib_udata *udata);
int qhca_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata);
struct ib_mr *qhca_reg_dm_mr(struct ib_pd *ibpd, struct ib_dm *ibdm,
			     struct ib_dm_mr_attr *attr,
			     struct uverbs_attr_bundle *attrs);
struct ib_mr *qhca_alloc_mr(struct ib_pd *ibpd, enum ib_mr_type type,
			    u32 max_num_sg);
int qhca_map_mr_sg(struct ib_mr *ibmr, struct scatterlist *sg, int sg_nents,
		   unsigned int *sg_offset);
u32 qhca_hw_access(int access);
int qhca_key_alloc(struct qhca_ib_dev *dev, u32 *index, u32 *key);
void qhca_key_publish(struct qhca_ib_dev *dev, u32 index,
		      const struct qhca_pte *pte, u32 ctrl);
void qhca_key_invalidate(struct qhca_ib_dev *dev, u32 index, u32 what);

/* pool.c */
extern const struct uapi_definition qhca_pool_defs[];
void qhca_pool_create(struct qhca_ib_dev *dev);
void qhca_pool_destroy(struct qhca_ib_dev *dev);
void qhca_pool_buf_free(struct qhca_ib_dev *dev, struct qhca_pool_buf *buf);
struct qhca_pool_buf *qhca_pool_get(struct ib_pd *ibpd, u64 start, u64 length,
				    int access, u64 *offset);
void qhca_pool_put(struct qhca_pool_buf *buf);

/* flow.c */
struct ib_flow *qhca_create_flow(struct ib_qp *ibqp, struct ib_flow_attr *attr,
				 struct ib_udata *udata);
int qhca_destroy_flow(struct ib_flow *ibflow);

/* dm.c */
extern const struct uapi_definition qhca_dm_defs[];
int qhca_dms_create(struct qhca_ib_dev *dev);
void qhca_dms_destroy(struct qhca_ib_dev *dev);
void qhca_dm_buf_free(struct qhca_ib_dev *dev, struct qhca_dm_buf *buf);
struct ib_dm *qhca_alloc_dm(struct ib_device *ibdev, struct ib_ucontext *ibuc,
			    struct ib_dm_alloc_attr *attr,
			    struct uverbs_attr_bundle *attrs);
int qhca_dealloc_dm(struct ib_dm *ibdm, struct uverbs_attr_bundle *attrs);

/* mw.c */
int qhca_alloc_mw(struct ib_mw *ibmw, struct ib_udata *udata);
int qhca_dealloc_mw(struct ib_mw *ibmw);

/* ah.c */
int qhca_create_ah(struct ib_ah *ibah, struct rdma_ah_init_attr *attr,
		   struct ib_udata *udata);
int qhca_destroy_ah(struct ib_ah *ibah, u32 flags);
int qhca_query_ah(struct ib_ah *ibah, struct rdma_ah_attr *attr);
int qhca_fill_av(struct qhca_av *av, const struct rdma_ah_attr *attr);
void qhca_read_av(const struct qhca_av *av, struct rdma_ah_attr *attr);

/* mcast.c */
int qhca_attach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid);
int qhca_detach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid);

/* event.c */
void qhca_qp_event_work(struct work_struct *work);
void qhca_qp_flush_events(struct qhca_ib_dev *dev);
int qhca_events_start(struct qhca_ib_dev *dev);
void qhca_events_stop(struct qhca_ib_dev *dev);
int qhca_port_watch(struct qhca_ib_dev *dev);
void qhca_port_unwatch(struct qhca_ib_dev *dev);

/* counters.c */
struct rdma_hw_stats *qhca_alloc_hw_device_stats(struct ib_device *ibdev);
struct rdma_hw_stats *qhca_alloc_hw_port_stats(struct ib_device *ibdev,
					       u32 port_num);
int qhca_get_hw_stats(struct ib_device *ibdev, struct rdma_hw_stats *stats,
		      u32 port, int index);

/* restrack.c */
int qhca_fill_res_cq_entry(struct sk_buff *msg, struct ib_cq *ibcq);
int qhca_fill_res_cq_entry_raw(struct sk_buff *msg, struct ib_cq *ibcq);
int qhca_fill_res_qp_entry(struct sk_buff *msg, struct ib_qp *ibqp);
int qhca_fill_res_qp_entry_raw(struct sk_buff *msg, struct ib_qp *ibqp);
int qhca_fill_res_mr_entry(struct sk_buff *msg, struct ib_mr *ibmr);
int qhca_fill_res_mr_entry_raw(struct sk_buff *msg, struct ib_mr *ibmr);
int qhca_fill_res_srq_entry(struct sk_buff *msg, struct ib_srq *ibsrq);

#endif /* QHCA_IB_H */
