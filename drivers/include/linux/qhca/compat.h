/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Differences between the kernels that the drivers support, 6.12 to 7.3.  The
 * drivers use the interfaces of the newest; this file provides them on older
 * kernels.
 */
#ifndef QHCA_COMPAT_H
#define QHCA_COMPAT_H

#include <linux/slab.h>
#include <linux/version.h>

#ifndef kzalloc_obj
#define __qhca_gfp(_default, _gfp, ...)	((_gfp) ?: (_default))
#define kzalloc_obj(_obj, ...)						\
	kzalloc(sizeof(_obj), __qhca_gfp(GFP_KERNEL, ##__VA_ARGS__, 0))
#endif

/* ------------------------------------------------------------------------
 * Timers, for qhca.ko
 */
#ifdef QHCA_COMPAT_HRTIMER
#include <linux/hrtimer.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
static inline void
hrtimer_setup(struct hrtimer *timer,
	      enum hrtimer_restart (*function)(struct hrtimer *),
	      clockid_t clock, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock, mode);
	timer->function = function;
}
#endif
#endif /* QHCA_COMPAT_HRTIMER */

/* ------------------------------------------------------------------------
 * NAPI, for qhca.ko
 */
#ifdef QHCA_COMPAT_NAPI
#include <linux/netdevice.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
static inline void
netif_napi_add_config(struct net_device *netdev, struct napi_struct *napi,
		      int (*poll)(struct napi_struct *, int), int index)
{
	netif_napi_add(netdev, napi, poll);
}
#endif

/*
 * Older cores have no lock of the netdev, or not all of the functions for those who hold
 * it.  There the functions lock by themselves, and nobody waits for a disabled context.
 */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 15, 0)
#define netdev_lock(_netdev)		((void)(_netdev))
#define netdev_unlock(_netdev)		((void)(_netdev))
#define netif_napi_add_config_locked	netif_napi_add_config
#define netif_napi_del_locked		netif_napi_del
#define __netif_napi_del_locked		__netif_napi_del
#define napi_enable_locked		napi_enable
#define napi_disable_locked		napi_disable
#endif
#endif /* QHCA_COMPAT_NAPI */

/* ------------------------------------------------------------------------
 * ethtool, for qhca.ko
 */
#ifdef QHCA_COMPAT_ETHTOOL
#include <linux/ethtool.h>

/* Newer cores ask for the number of receive rings by an operation of its own. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 19, 0)
#define QHCA_OPS_RX_RINGS						\
	.get_rx_ring_count = qhca_get_rx_ring_count,
#else
#define QHCA_OPS_RX_RINGS						\
	.get_rxnfc = qhca_compat_get_rxnfc,

u32 qhca_get_rx_ring_count(struct net_device *netdev);

static inline int qhca_compat_get_rxnfc(struct net_device *netdev,
					struct ethtool_rxnfc *info, u32 *rules)
{
	if (info->cmd != ETHTOOL_GRXRINGS)
		return -EOPNOTSUPP;
	info->data = qhca_get_rx_ring_count(netdev);
	return 0;
}
#endif
#endif /* QHCA_COMPAT_ETHTOOL */

/* ------------------------------------------------------------------------
 * devlink parameters, for qhca.ko
 */
#ifdef QHCA_COMPAT_DEVLINK
#include <net/devlink.h>

/* Values are passed by pointer since they may be arrays. */
#ifdef __DEVLINK_PARAM_MAX_ARRAY_SIZE
#define QHCA_PARAM_VALUE	union devlink_param_value *
#define QHCA_PARAM_U16(_value)	((_value)->vu16)
#define QHCA_PARAM_U32(_value)	((_value)->vu32)
#define QHCA_PARAM_BOOL(_value)	((_value)->vbool)
#define QHCA_PARAM_PASS(_value)	(&(_value))
#else
#define QHCA_PARAM_VALUE	union devlink_param_value
#define QHCA_PARAM_U16(_value)	((_value).vu16)
#define QHCA_PARAM_U32(_value)	((_value).vu32)
#define QHCA_PARAM_BOOL(_value)	((_value).vbool)
#define QHCA_PARAM_PASS(_value)	(_value)
#endif

/* The grace period, which no reporter of ours has, became one of the ops. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 18, 0)
#define devl_health_reporter_create(_devlink, _ops, _priv) \
	devl_health_reporter_create(_devlink, _ops, 0, _priv)
#endif
#endif /* QHCA_COMPAT_DEVLINK */

/* ------------------------------------------------------------------------
 * RDMA core, for qhca_ib.ko
 */
#ifdef QHCA_COMPAT_RDMA
#include <linux/uaccess.h>
#include <rdma/ib_umem.h>
#include <rdma/ib_verbs.h>
#include <rdma/uverbs_ioctl.h>
#ifndef rdma_umem_for_each_dma_block	/* moved out of ib_umem.h */
#include <rdma/iter.h>
#endif

/* Newer cores turn netdev events into port events themselves. */
#define QHCA_CORE_PORT_EVENTS (LINUX_VERSION_CODE >= KERNEL_VERSION(6, 14, 0))

/*
 * Newer cores name what memory on demand can do besides.  Older ones hand the bits to
 * programs, which know them from rdma-core.
 */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 16, 0)
#define IB_ODP_SUPPORT_FLUSH		BIT(6)
#define IB_ODP_SUPPORT_ATOMIC_WRITE	BIT(7)
#endif

/* Newer cores pass the registration functions one more argument. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 17, 0)
#define QHCA_DMAH_PARAM		struct ib_dmah *dmah,
#define QHCA_DMAH_GIVEN		(dmah)
#else
#define QHCA_DMAH_PARAM
#define QHCA_DMAH_GIVEN		(false)
#endif

#ifdef ib_copy_validate_udata_in
#define QHCA_OPS_ROBUST_UDATA	.uverbs_robust_udata = 1,
#else
#define QHCA_OPS_ROBUST_UDATA

static inline int qhca_compat_udata_in(struct ib_udata *udata, void *req,
				       size_t size, size_t min_size)
{
	int err;

	if (udata->inlen < min_size)
		return -EINVAL;
	err = copy_struct_from_user(req, size, udata->inbuf, udata->inlen);
	return err == -E2BIG ? -EOPNOTSUPP : err;
}

#define ib_copy_validate_udata_in(_udata, _req, _end_member)		\
	qhca_compat_udata_in(_udata, &(_req), sizeof(_req),		\
			     offsetofend(typeof(_req), _end_member))

#define ib_copy_validate_udata_in_cm(_udata, _req, _end_member, _valid)	\
({									\
	typeof(_req) *__req = &(_req);					\
	int __err = ib_copy_validate_udata_in(_udata, *__req,		\
					      _end_member);		\
									\
	if (!__err && (__req->comp_mask & ~(u64)(_valid)))		\
		__err = -EOPNOTSUPP;					\
	__err;								\
})

static inline int qhca_compat_respond(struct ib_udata *udata, const void *src,
				      size_t len)
{
	size_t copied = min(len, udata->outlen);

	if (copy_to_user(udata->outbuf, src, copied))
		return -EFAULT;
	if (copied < udata->outlen &&
	    clear_user(udata->outbuf + copied, udata->outlen - copied))
		return -EFAULT;
	return 0;
}

#define ib_respond_udata(_udata, _rep) \
	qhca_compat_respond(_udata, &(_rep), sizeof(_rep))

static inline int ib_is_udata_in_empty(struct ib_udata *udata)
{
	if (!udata || !udata->inlen)
		return 0;
	return ib_is_udata_cleared(udata, 0, udata->inlen) ? 0 : -EOPNOTSUPP;
}

static inline int ib_respond_empty_udata(struct ib_udata *udata)
{
	if (udata && udata->outlen && clear_user(udata->outbuf, udata->outlen))
		return -EFAULT;
	return 0;
}

static inline int ib_no_udata_io(struct ib_udata *udata)
{
	int err = ib_is_udata_in_empty(udata);

	return err ? err : ib_respond_empty_udata(udata);
}
#endif /* !ib_copy_validate_udata_in */

/*
 * Newer cores bind optional counters of the port as well, and let drivers
 * extend struct rdma_counter.
 */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 15, 0)
#define QHCA_BOUND_QP		struct ib_qp *ibqp, u32 port
#define QHCA_OPS_COUNTER_OBJ						\
	.counter_init = qhca_compat_counter_init,			\
	.size_rdma_counter = sizeof(struct rdma_counter),

static inline void qhca_compat_counter_init(struct rdma_counter *counter)
{
}
#else
#define QHCA_BOUND_QP		struct ib_qp *ibqp
#define QHCA_OPS_COUNTER_OBJ
#endif

#if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 1, 0)
#define QHCA_RESIZE_CQE		unsigned int
#else
#define QHCA_RESIZE_CQE		int
#define resize_user_cq		resize_cq
#endif

/*
 * Pages of memory on demand.  Older cores map them for DMA when they bring them
 * in; newer ones leave that to the driver, page by page.  The caller holds
 * @umem_mutex.  Returns 1 if page @idx is present, with its address in *@addr
 * and whether it may be written in *@write, and 0 if it is not.
 */
#include <rdma/ib_umem_odp.h>
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 16, 0)
#include <linux/hmm.h>
#include <linux/pci-p2pdma.h>

static inline int qhca_compat_odp_page(struct ib_umem_odp *umem, size_t idx,
				       dma_addr_t *addr, bool *write)
{
	struct device *dma = umem->umem.ibdev->dma_device;
	struct pci_p2pdma_map_state p2pdma = {};
	unsigned long pfn = umem->map.pfn_list[idx];

	if (!(pfn & HMM_PFN_VALID))
		return 0;
	*addr = hmm_dma_map_pfn(dma, &umem->map, idx, &p2pdma);
	if (dma_mapping_error(dma, *addr))
		return -EFAULT;
	/*
	 * Drivers count mapped pages; ib_umem_odp_unmap_dma_pages() counts them
	 * down.
	 */
	if (!(pfn & HMM_PFN_DMA_MAPPED))
		umem->npages++;
	*write = pfn & HMM_PFN_WRITE;
	return 1;
}
#else
static inline int qhca_compat_odp_page(struct ib_umem_odp *umem, size_t idx,
				       dma_addr_t *addr, bool *write)
{
	dma_addr_t entry = umem->dma_list[idx];

	if (!(entry & ODP_READ_ALLOWED_BIT))
		return 0;
	*addr = entry & ODP_DMA_ADDR_MASK;
	*write = entry & ODP_WRITE_ALLOWED_BIT;
	return 1;
}
#endif

/*
 * Bring pages in, and return with @umem_mutex held and how many they are; or an
 * error, -EBUSY among them if invalidations interfere.
 *
 * From 7.3 on, ib_umem_odp_map_dma_and_lock() lets a handler of page faults drop
 * the lock of the address space, and repeats the fault as if it were the first
 * one.  A file's handler drops the lock for the first attempt at a read, and
 * says only at the second that the page cannot be read.  So the core reads such
 * a page for ever, and the address space of a process that serves its own pages
 * never goes when the process is killed.  hmm_range_fault() keeps the lock.
 */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 3, 0)
#include <linux/sched/mm.h>
#include <linux/sched/task.h>

static inline int qhca_compat_odp_fault(struct ib_umem_odp *umem,
					struct mm_struct *mm, u64 start,
					u64 length, bool write)
{
	struct hmm_range range = {
		.notifier = &umem->notifier,
		.start = start,
		.end = start + length,
		.hmm_pfns = umem->map.pfn_list +
			    ((start - ib_umem_start(umem)) >> PAGE_SHIFT),
		.default_flags = HMM_PFN_REQ_FAULT |
				 (write ? HMM_PFN_REQ_WRITE : 0),
	};
	int ret;

	range.notifier_seq = mmu_interval_read_begin(range.notifier);
	mmap_read_lock(mm);
	ret = hmm_range_fault(&range);
	mmap_read_unlock(mm);
	if (ret)
		return ret;
	mutex_lock(&umem->umem_mutex);
	if (!mmu_interval_read_retry(range.notifier, range.notifier_seq))
		return length >> PAGE_SHIFT;
	mutex_unlock(&umem->umem_mutex);
	return -EBUSY;
}

static inline int qhca_compat_odp_map(struct ib_umem_odp *umem, u64 start,
				      u64 length, bool write)
{
	struct task_struct *owner = get_pid_task(umem->tgid, PIDTYPE_PID);
	struct mm_struct *mm = umem->umem.owning_mm;
	int ret = -EINVAL;

	/* A process that has ended gets no more pages. */
	if (!owner)
		return ret;
	if (mmget_not_zero(mm)) {
		ret = qhca_compat_odp_fault(umem, mm, start, length, write);
		mmput_async(mm);
	}
	put_task_struct(owner);
	return ret;
}
#else
static inline int qhca_compat_odp_map(struct ib_umem_odp *umem, u64 start,
				      u64 length, bool write)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 16, 0)
	u64 mask = write ? HMM_PFN_WRITE : 0;
#else
	u64 mask = ODP_READ_ALLOWED_BIT | (write ? ODP_WRITE_ALLOWED_BIT : 0);
#endif

	return ib_umem_odp_map_dma_and_lock(umem, start, length, mask, true);
}
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(7, 2, 0)
#define ib_umem_get_va		ib_umem_get

static inline struct ib_umem *
ib_umem_get_cq_buf_or_va(struct ib_device *ibdev,
			 const struct uverbs_attr_bundle *attrs, u64 addr,
			 size_t size, int access)
{
	return ib_umem_get(ibdev, addr, size, access);
}
#endif
#endif /* QHCA_COMPAT_RDMA */

/* ------------------------------------------------------------------------
 * VFIO, for qhca_vfio.ko
 */
#ifdef QHCA_COMPAT_VFIO
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 17, 0)
#define QHCA_VFIO_MATCH_UUID_OP						\
	.match_token_uuid = vfio_pci_core_match_token_uuid,
#else
#define QHCA_VFIO_MATCH_UUID_OP
#endif

/* Newer cores ask for regions by an operation of its own. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 19, 0)
#define QHCA_VFIO_REGION_INFO_OP					\
	.get_region_info_caps = vfio_pci_ioctl_get_region_info,
#else
#define QHCA_VFIO_REGION_INFO_OP
#endif
#endif /* QHCA_COMPAT_VFIO */

#endif /* QHCA_COMPAT_H */
