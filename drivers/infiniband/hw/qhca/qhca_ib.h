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
#define QHCA_MAX_AH		SZ_64K		/* of processes */
#define QHCA_RESOLVE_MS		1000		/* the core's patience */
#define QHCA_CLEAR_BYTES	SZ_64K		/* between two reschedules */
#define QHCA_MAX_FAST_REG_PAGES	4096		/* limit of the device */

struct gen_pool;
struct qhca_pool;

/**
 * struct qhca_port_stats - the counters of the device that its port shows
 * @desc:    name of each, as the core shows it
 * @counter: number of each, as the device knows it
 */
struct qhca_port_stats {
	struct rdma_stat_desc desc[QHCA_NUM_COUNTERS];
	u16 counter[QHCA_NUM_COUNTERS];
};

/**
 * struct qhca_ib_dev - the ib_device of one PCI function.
 * @qdev:    the function; valid as long as this is
 * @eqs:     event queues, one for each completion vector
 * @num_eqs: length of @eqs
 * @cqs:     CQs by number.  Completion events look CQs up under RCU, so
 *           qhca_eq_synchronize() follows each removal.  Everything else takes
 *           a reference under the xarray's lock.
 * @qps:     QPs by number; a lookup takes a reference under the lock
 * @srqs:    SRQs by number; a lookup takes a reference under the lock
 * @pdns:    numbers of protection domains; never 0
 * @xrcdns:  numbers of XRC domains; never 0
 * @flows:   numbers of flow rules
 * @user_ahs: address handles of processes
 * @events_nb:  receives asynchronous events of the function
 * @netdev_nb:  receives netdev events, where the core does not watch them
 *              itself
 * @registered: device events may be dispatched; false while the device is being
 *              registered and unregistered, when the core cannot take them
 * @port_state: the state last reported through @netdev_nb; under RTNL
 * @event_wq:   delivers QP events, whose handlers may sleep
 * @bounced: the kernel bounces DMA, so processes share no memory with the
 *           device; constant
 * @pool:    the memory pool, NULL if there is none
 * @bank_full: the log says that the device's bank of pool keys is full
 * @dms:     allocator of device memory, by CPU physical address; NULL if there
 *           is none
 * @dm_io:   all of device memory, mapped
 * @odps:    regions on demand, struct qhca_odp by key index
 * @mws:     memory windows by key index
 * @fault_wq: runs the work items that bring pages in
 * @flush_work: after the function's death, runs the completion handlers of
 *              kernel CQs, whose pollers then find flushed requests, and
 *              raises the events that the device can no longer raise for QPs
 *              in error
 * @flush_mutex: held while @flush_work calls handlers
 * @port_stats: the port's counters and their order, constant
 * @counter_sets: struct qhca_counter_set by number, of "rdma statistic qp"
 * @next_counter_set: number at which the next search for one starts
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
	atomic_t user_ahs;
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
	bool bank_full;
	struct gen_pool *dms;
	void __iomem *dm_io;
	struct qhca_port_stats port_stats;
	struct xarray counter_sets;
	u32 next_counter_set;
};

/*
 * Keeps an object alive while events use it: the creation holds one reference,
 * each lookup takes one more, and the destruction waits until all are dropped.
 */
struct qhca_ref {
	refcount_t count;
	struct completion gone;
};

/**
 * struct qhca_ucontext - the context of a process that has opened the device.
 * @db_page:   number of its doorbell page
 * @db_entry:  the doorbell page's entry for mmap()
 * @pool_lock: protects @pool_bufs and qhca_pool_buf.regions
 * @pool_bufs: buffers of the pool that it has allocated, struct qhca_pool_buf
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
 * struct qhca_mmap_entry - memory that a process may map.
 * @addr: CPU physical address of the first page
 * @type: says how it is mapped, and which function frees it
 *
 * The entry lives until its object has been destroyed and no process maps it
 * any more.  The memory behind it must live as long.
 */
struct qhca_mmap_entry {
	struct rdma_user_mmap_entry rdma_entry;
	phys_addr_t addr;
	enum qhca_mmap_type type;
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
	bool counted;		/* in qhca_ib_dev.user_ahs */
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

static inline struct device *qhca_dma_dev(struct qhca_ib_dev *dev)
{
	return &dev->qdev->pdev->dev;
}

static inline bool qhca_has(struct qhca_ib_dev *dev, u64 features)
{
	return (dev->qdev->caps.features & features) == features;
}

/* The threshold of a queue whose owner has not chosen one. */
static inline u32 qhca_default_threshold(struct qhca_ib_dev *dev,
					 enum qhca_threshold queue,
					 u8 log_depth)
{
	u32 percent = dev->qdev->threshold_percent[queue];

	return mult_frac((u32)BIT(log_depth), percent, 100U);
}

/* A dead device executes no command and writes no completion. */
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

/* Drop the creator's reference and wait until all others are dropped. */
static inline void qhca_ref_drain(struct qhca_ref *ref)
{
	qhca_ref_put(ref);
	wait_for_completion(&ref->gone);
}

/* object.c */
void qhca_destroy_object(struct qhca_ib_dev *dev, u16 opcode, u32 index);
void qhca_refused(struct qhca_ib_dev *dev, u16 opcode, u32 index, int err);
int qhca_create_object(struct qhca_ib_dev *dev, u16 opcode, u32 index,
		       const void *in, u32 in_len);

/* device.c */
extern const struct attribute_group qhca_identity;
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

/* flow.c */
struct ib_flow *qhca_create_flow(struct ib_qp *ibqp, struct ib_flow_attr *attr,
				 struct ib_udata *udata);
int qhca_destroy_flow(struct ib_flow *ibflow);

/* ah.c */
int qhca_create_ah(struct ib_ah *ibah, struct rdma_ah_init_attr *attr,
		   struct ib_udata *udata);
int qhca_destroy_ah(struct ib_ah *ibah, u32 flags);
int qhca_query_ah(struct ib_ah *ibah, struct rdma_ah_attr *attr);
int qhca_resolve_dmac(struct rdma_ah_attr *attr);
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

/* qp_counters.c */
bool qhca_has_qp_counters(struct qhca_ib_dev *dev);
int qhca_qp_counter(unsigned int i);
bool qhca_is_qp_counter(u32 counter);
extern const struct ib_device_ops qhca_qp_counter_ops;

/* pma.c */
int qhca_process_mad(struct ib_device *ibdev, int flags, u32 port,
		     const struct ib_wc *in_wc, const struct ib_grh *in_grh,
		     const struct ib_mad *in, struct ib_mad *out,
		     size_t *out_size, u16 *out_pkey_index);

/* restrack.c */
int qhca_fill_res_cq_entry(struct sk_buff *msg, struct ib_cq *ibcq);
int qhca_fill_res_cq_entry_raw(struct sk_buff *msg, struct ib_cq *ibcq);
int qhca_fill_res_qp_entry(struct sk_buff *msg, struct ib_qp *ibqp);
int qhca_fill_res_qp_entry_raw(struct sk_buff *msg, struct ib_qp *ibqp);
int qhca_fill_res_mr_entry(struct sk_buff *msg, struct ib_mr *ibmr);
int qhca_fill_res_mr_entry_raw(struct sk_buff *msg, struct ib_mr *ibmr);
int qhca_fill_res_srq_entry(struct sk_buff *msg, struct ib_srq *ibsrq);
int qhca_fill_res_srq_entry_raw(struct sk_buff *msg, struct ib_srq *ibsrq);

#endif /* QHCA_IB_H */
