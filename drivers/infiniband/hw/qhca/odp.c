// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Regions on demand: registration and deregistration.
 *
 * The memory of such a region is not pinned.  Its translation tree begins
 * without pages, and an access to an entry that is not present is a page fault:
 * the device raises an event and holds back that direction of the QP.  A work
 * item brings the pages in, fills in the entries, and lets the QP go on
 * (odp_fault.c, odp_page.c).  When the system takes pages away, the driver's
 * notifier clears the entries and has the device drop its copies and finish its
 * accesses, and only then the pages are unmapped.
 *
 * A small region has all nodes of its tree from the beginning.  A large region,
 * and an implicit one, which is all of a process's memory, has only the nodes
 * that are in use (odp_implicit.c), since a process can register far more
 * memory than it has.
 *
 * These races may happen, and are resolved as follows:
 *
 * - Pages are invalidated while a fault brings them in.  The driver repeats
 *   that until no invalidation has come between, and then holds @umem_mutex,
 *   which the notifier takes, too.  It fills in the entries under that mutex.
 * - A page is taken away again before the device has used it.  The access then
 *   faults again, with another token.
 * - A region is deregistered during a fault.  The driver ends the key first, so
 *   that the access, tried again without its page, is a protection error.  Then
 *   the driver takes the tree from the fault, under @umem_mutex.
 * - A QP is destroyed during a fault.  The device then ignores the token of the
 *   fault.
 *
 * No lock is held while pages are brought in.  Reclaim takes @umem_mutex, so
 * code that holds it must not allocate memory; commands do not.
 *
 * Only the fault itself waits for a page.  The page may take long to arrive, or
 * may not arrive while a process lives that maps the memory, and nothing
 * interrupts the work item that waits.  So neither the deregistration of a
 * region nor the destruction of a QP waits for faults under way.  The umem and
 * the QP's &struct qhca_faults, which these faults still use, are freed with
 * the last of them.
 */
#include <linux/memcontrol.h>
#include <linux/sched/mm.h>
#include <net/netlink.h>

#include "odp.h"

#define QHCA_ODP_ACCESS							\
	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE |		\
	 IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_ATOMIC |		\
	 IB_ACCESS_MW_BIND | IB_ZERO_BASED | IB_ACCESS_ON_DEMAND |	\
	 IB_ACCESS_FLUSH_GLOBAL |					\
	 IB_ACCESS_HUGETLB | IB_ACCESS_OPTIONAL)

/*
 * The largest region that has a single notifier and a whole tree, in pages: 64
 * MiB.  The notifier may have to look through all of its entries at once.
 */
#define QHCA_ODP_WHOLE		16384

/**
 * qhca_odp_get - the region on demand of a key's index
 * @dev:   the device
 * @index: any
 * @fault: fault to add to those that the region serves, see
 *         qhca_odp_end_faults(), or NULL
 *
 * Return: the region with a reference, to be dropped by qhca_odp_put(), or
 * NULL.
 */
struct qhca_odp *qhca_odp_get(struct qhca_ib_dev *dev, u32 index,
			      struct qhca_fault *fault)
{
	struct qhca_odp *odp;

	xa_lock(&dev->odps);
	odp = xa_load(&dev->odps, index);
	if (odp) {
		refcount_inc(&odp->ref);
		if (fault)
			list_add_tail(&fault->entry, &odp->served);
	}
	xa_unlock(&dev->odps);
	return odp;
}

/**
 * qhca_odp_put - drop a reference
 * @odp: the region, which is freed with the last reference
 */
void qhca_odp_put(struct qhca_odp *odp)
{
	if (!refcount_dec_and_test(&odp->ref))
		return;
	ib_umem_odp_release(odp->root ? odp->root : odp->all.umem);
	if (odp->mm)
		mmdrop(odp->mm);
	mem_cgroup_put(odp->memcg);
	kfree(odp);
}

static void qhca_odp_publish(struct qhca_mr *mr, u32 pdn, u64 length)
{
	struct qhca_pte pte = {
		.access = cpu_to_le32(qhca_hw_access(mr->access)),
		.pd = cpu_to_le32(pdn),
		.start = cpu_to_le64(mr->odp->start),
		.length = cpu_to_le64(length),
		.at_base = cpu_to_le64(mr->at.base),
		.at_offset = cpu_to_le64(mr->odp->skip),
	};

	qhca_key_publish(mr->odp->dev, mr->index, &pte, QHCA_PTE_ODP |
			 QHCA_PUT(QHCA_PTE_STATE, QHCA_PTE_VALID) |
			 QHCA_PUT(QHCA_PTE_TYPE, QHCA_PTE_MR) |
			 QHCA_PUT(QHCA_PTE_OCTET,
				  QHCA_KEY_OCTET(mr->ibmr.lkey)) |
			 QHCA_PUT(QHCA_PTE_PAGE_SHIFT, mr->at.page_shift) |
			 QHCA_PUT(QHCA_PTE_LEVELS, mr->at.levels));
}

/* Make the umem of a small region, and all nodes of its tree. */
static int qhca_whole_init(struct qhca_odp *odp, u64 start, u64 length,
			   int access)
{
	struct qhca_stretch *s = &odp->all;
	struct ib_umem_odp *umem;
	int err;

	/* Huge pages are translated by entries of 4 KiB each. */
	umem = ib_umem_odp_get(&odp->dev->ibdev, start, length,
			       access & ~IB_ACCESS_HUGETLB,
			       &qhca_odp_notifier_ops);
	if (IS_ERR(umem))
		return PTR_ERR(umem);
	err = qhca_at_build_blank(odp->dev, &odp->mr->at, odp->pages);
	if (err) {
		ib_umem_odp_release(umem);
		return err;
	}
	s->odp = odp;
	s->umem = umem;
	s->at = &odp->mr->at;
	/* No page is mapped before this, so the notifier misses none. */
	mutex_lock(&umem->umem_mutex);
	umem->private = s;
	mutex_unlock(&umem->umem_mutex);
	return 0;
}

/*
 * Take the tree from faults under way, and free it.  The key has ended, or has
 * not been published yet.
 */
static void qhca_odp_end(struct qhca_odp *odp)
{
	struct ib_umem_odp *umem = odp->all.umem;

	WRITE_ONCE(odp->closing, true);
	if (odp->root) {
		qhca_implicit_destroy(odp);
		return;
	}
	mutex_lock(&umem->umem_mutex);
	umem->private = NULL;
	mutex_unlock(&umem->umem_mutex);
	qhca_at_free(odp->dev, &odp->mr->at);
}

static int qhca_odp_init(struct qhca_odp *odp, u64 start, u64 length,
			 int access)
{
	u64 end;

	if (length == U64_MAX) {
		odp->pages = TASK_SIZE >> PAGE_SHIFT;
		return qhca_implicit_init(odp, access);
	}

	if (check_add_overflow(start, length, &end) || PAGE_ALIGN(end) < end)
		return -EOVERFLOW;
	odp->origin = start & PAGE_MASK;
	odp->pages = (PAGE_ALIGN(end) - odp->origin) >> PAGE_SHIFT;
	if (odp->pages > QHCA_ODP_WHOLE &&
	    qhca_has(odp->dev, QHCA_FEAT_ODP_IMPLICIT))
		return qhca_implicit_init(odp, access & ~IB_ACCESS_HUGETLB);
	return qhca_whole_init(odp, start, length, access);
}

static struct qhca_odp *qhca_odp_alloc(struct qhca_ib_dev *dev,
				       struct qhca_mr *mr, u64 start,
				       u64 length, int access)
{
	struct qhca_odp *odp;
	int err;

	odp = kzalloc_obj(*odp, GFP_KERNEL_ACCOUNT);
	if (!odp)
		return ERR_PTR(-ENOMEM);
	odp->dev = dev;
	odp->mr = mr;
	refcount_set(&odp->ref, 1);
	INIT_LIST_HEAD(&odp->served);
	err = qhca_odp_init(odp, start, length, access);
	if (err) {
		kfree(odp);
		return ERR_PTR(err);
	}
	return odp;
}

/* Allocate the region's key, and let faults find the region by it. */
static int qhca_odp_add_key(struct qhca_odp *odp)
{
	struct qhca_ib_dev *dev = odp->dev;
	struct qhca_mr *mr = odp->mr;
	int err;

	err = qhca_key_alloc(dev, &mr->index, &mr->ibmr.lkey);
	if (err)
		return err;
	mr->ibmr.rkey = mr->ibmr.lkey;
	mr->ibmr.page_size = PAGE_SIZE;
	odp->lkey = mr->ibmr.lkey;
	err = xa_err(xa_store(&dev->odps, mr->index, odp, GFP_KERNEL));
	if (err)
		qhca_index_free(dev->qdev, QHCA_TABLE_PT, mr->index);
	return err;
}

/* Does this register all of a process's memory? */
bool qhca_odp_is_implicit(u64 start, u64 length, int access)
{
	return access & IB_ACCESS_ON_DEMAND && !start && length == U64_MAX;
}

/**
 * qhca_odp_reg_mr - register memory on demand
 * @ibpd:   protection domain
 * @start:  address of the process
 * @length: bytes, checked; U64_MAX for an implicit region
 * @virt:   address for the device, with the same offset in a page as @start
 * @access: IB_ACCESS_*, with ON_DEMAND
 *
 * Return: the region, or %-EOPNOTSUPP if the device or the kernel does not
 * support such regions, %-EINVAL or %-E2BIG for a bad range, %-ENOMEM.
 */
struct ib_mr *qhca_odp_reg_mr(struct ib_pd *ibpd, u64 start, u64 length,
			      u64 virt, int access)
{
	struct qhca_ib_dev *dev = to_qhca(ibpd->device);
	bool implicit = qhca_odp_is_implicit(start, length, access);
	struct qhca_odp *odp;
	struct qhca_mr *mr;
	int err;

	if (!qhca_has(dev, QHCA_FEAT_ODP) || access & ~QHCA_ODP_ACCESS)
		return ERR_PTR(-EOPNOTSUPP);
	if (implicit && !qhca_has(dev, QHCA_FEAT_ODP_IMPLICIT))
		return ERR_PTR(-EOPNOTSUPP);
	err = qhca_umem_may_pin(dev);
	if (err)
		return ERR_PTR(err);
	/* In an implicit region each address is its own translation offset. */
	if (implicit && (virt || access & IB_ZERO_BASED))
		return ERR_PTR(-EINVAL);
	if ((start ^ virt) & ~PAGE_MASK)
		return ERR_PTR(-EINVAL);
	if (!implicit &&
	    DIV_ROUND_UP((start & ~PAGE_MASK) + length, PAGE_SIZE) > U32_MAX)
		return ERR_PTR(-E2BIG);

	mr = kzalloc_obj(*mr, GFP_KERNEL_ACCOUNT);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	spin_lock_init(&mr->lock);
	mr->access = access;
	mr->ibmr.iova = virt;
	mr->ibmr.length = length;
	odp = qhca_odp_alloc(dev, mr, start, length, access);
	if (IS_ERR(odp)) {
		err = PTR_ERR(odp);
		goto err_free;
	}
	mr->odp = odp;
	odp->pd = ibpd;
	odp->start = access & IB_ZERO_BASED ? 0 : virt;
	odp->skip = virt & ~PAGE_MASK;
	odp->length = implicit ? odp->pages << PAGE_SHIFT : length;
	odp->writable = ib_access_writable(access);

	err = qhca_odp_add_key(odp);
	if (err)
		goto err_odp;
	qhca_odp_publish(mr, to_qpd(ibpd)->pdn, odp->length);
	return &mr->ibmr;

err_odp:
	qhca_odp_end(odp);
	qhca_odp_put(odp);
err_free:
	kfree(mr);
	return ERR_PTR(err);
}

/*
 * The key has ended.  When this returns, the device waits for no page of the
 * region, and the caller frees what is left of it.  Faults and prefetches under
 * way keep the umem and its notifier until they finish.
 */
void qhca_odp_dereg_mr(struct qhca_ib_dev *dev, struct qhca_mr *mr)
{
	struct qhca_odp *odp = mr->odp;

	xa_erase(&dev->odps, mr->index);
	qhca_odp_end_faults(odp);
	qhca_odp_end(odp);
	mr->odp = NULL;
	qhca_odp_put(odp);
}

/* ------------------------------------------------------------------------
 * Capabilities and statistics
 */

void qhca_odp_caps(struct qhca_ib_dev *dev, struct ib_device_attr *attr)
{
	struct ib_odp_caps *caps = &attr->odp_caps;
	u32 rc = IB_ODP_SUPPORT_SEND | IB_ODP_SUPPORT_RECV |
		 IB_ODP_SUPPORT_WRITE | IB_ODP_SUPPORT_READ;

	if (!qhca_has(dev, QHCA_FEAT_ODP) || dev->bounced ||
	    !IS_ENABLED(CONFIG_INFINIBAND_ON_DEMAND_PAGING))
		return;
	if (qhca_has(dev, QHCA_FEAT_SRQ))
		rc |= IB_ODP_SUPPORT_SRQ_RECV;
	if (qhca_has(dev, QHCA_FEAT_ATOMIC))
		rc |= IB_ODP_SUPPORT_ATOMIC;
	if (qhca_has(dev, QHCA_FEAT_FLUSH))
		rc |= IB_ODP_SUPPORT_FLUSH;
	if (qhca_has(dev, QHCA_FEAT_ATOMIC_WRITE))
		rc |= IB_ODP_SUPPORT_ATOMIC_WRITE;
	attr->kernel_cap_flags |= IBK_ON_DEMAND_PAGING;
	caps->general_caps = IB_ODP_SUPPORT;
	if (qhca_has(dev, QHCA_FEAT_ODP_IMPLICIT))
		caps->general_caps |= IB_ODP_SUPPORT_IMPLICIT;
	caps->per_transport_caps.rc_odp_caps = rc;
	if (qhca_has(dev, QHCA_FEAT_XRC))
		caps->per_transport_caps.xrc_odp_caps = rc;
	/*
	 * An unreliable packet that meets a fault is lost.  So only the sources
	 * of such packets may be on demand, not their targets.
	 */
	caps->per_transport_caps.uc_odp_caps = IB_ODP_SUPPORT_SEND;
	caps->per_transport_caps.ud_odp_caps = IB_ODP_SUPPORT_SEND;
}

/**
 * qhca_odp_tables - tell how large the tables of a region are
 * @odp: the region
 * @t:   result
 */
void qhca_odp_tables(struct qhca_odp *odp, struct qhca_odp_tables *t)
{
	/* The core keeps a list of pages and one of their bus addresses. */
	const size_t lists = sizeof(unsigned long) + sizeof(dma_addr_t);

	if (odp->root) {
		qhca_implicit_tables(odp, t);
		t->bytes += (u64)t->stretches * QHCA_STRETCH_PAGES * lists;
	} else {
		t->stretches = 1;
		t->nodes = odp->mr->at.num_nodes;
		t->bytes = (u64)odp->pages * (sizeof(__le64) + lists);
	}
}

int qhca_fill_stat_mr_entry(struct sk_buff *msg, struct ib_mr *ibmr)
{
	struct qhca_odp *odp = to_qmr(ibmr)->odp;
	struct nlattr *nest;

	if (!odp)
		return 0;
	nest = nla_nest_start(msg, RDMA_NLDEV_ATTR_STAT_HWCOUNTERS);
	if (!nest)
		return -EMSGSIZE;
	if (rdma_nl_stat_hwcounter_entry(msg, "page_faults",
					 atomic64_read(&odp->faults)) ||
	    rdma_nl_stat_hwcounter_entry(msg, "page_invalidations",
					 atomic64_read(&odp->invalidations)) ||
	    rdma_nl_stat_hwcounter_entry(msg, "page_prefetch",
					 atomic64_read(&odp->prefetched))) {
		nla_nest_cancel(msg, nest);
		return -EMSGSIZE;
	}
	nla_nest_end(msg, nest);
	return 0;
}

int qhca_odp_start(struct qhca_ib_dev *dev)
{
	xa_init(&dev->odps);
	xa_init(&dev->mws);
	/*
	 * A fault or a prefetch may wait long for its page: for a disk, or for
	 * a process that provides it.  Other faults must be served meanwhile,
	 * so the queue is unbound and has the default limit of concurrent work
	 * items, which is in the hundreds.  A peer waits for each fault, so the
	 * queue has high priority.  It needs no rescuer: memory reclaim does
	 * not wait for a queued fault, and a rescuer could not get it a page
	 * either.
	 */
	dev->fault_wq = alloc_workqueue("qhca_ib_faults",
					WQ_UNBOUND | WQ_HIGHPRI, 0);
	return dev->fault_wq ? 0 : -ENOMEM;
}

void qhca_odp_stop(struct qhca_ib_dev *dev)
{
	destroy_workqueue(dev->fault_wq);
	WARN_ON(!xa_empty(&dev->odps));
	WARN_ON(!xa_empty(&dev->mws));
}
