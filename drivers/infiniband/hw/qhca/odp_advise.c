// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * ibv_advise_mr(): a process has pages of regions on demand brought in
 * beforehand.
 */
#include "odp.h"

struct qhca_prefetch {
	struct qhca_odp *odp;
	u64 offset;
	u64 length;
};

/**
 * struct qhca_advice - a call of ibv_advise_mr() under way
 * @work:   brings the pages in; a caller who waits for it can be killed
 * @ref:    references of @work, and of a caller who waits
 * @done:   completed when @err is known
 * @err:    result
 * @write:  the pages are going to be written
 * @fault:  bring in pages that are not in memory, too
 * @num: length of @range
 * @range: regions, each with a reference, and ranges of them
 */
struct qhca_advice {
	struct work_struct work;
	refcount_t ref;
	struct completion done;
	int err;
	bool write;
	bool fault;
	u32 num;
	struct qhca_prefetch range[] __counted_by(num);
};

static int qhca_advice_run(struct qhca_advice *advice)
{
	int err = 0, ret;
	u32 i;

	for (i = 0; i < advice->num; i++) {
		struct qhca_prefetch *r = &advice->range[i];
		u64 first = r->offset >> PAGE_SHIFT;
		u64 last = (r->offset + r->length - 1) >> PAGE_SHIFT;

		while (r->length && first <= last && !err) {
			size_t num = min_t(u64, last - first + 1,
					   QHCA_ODP_BATCH);

			ret = qhca_odp_map(r->odp, first, num, advice->write,
					   advice->fault);
			if (ret < 0)
				err = ret;
			else
				atomic64_add(ret, &r->odp->prefetched);
			first += num;
			cond_resched();
		}
	}
	return err;
}

static void qhca_advice_put(struct qhca_advice *advice)
{
	u32 i;

	if (!refcount_dec_and_test(&advice->ref))
		return;
	for (i = 0; i < advice->num; i++)
		if (advice->range[i].odp)
			qhca_odp_put(advice->range[i].odp);
	kvfree(advice);
}

static void qhca_advice_work(struct work_struct *work)
{
	struct qhca_advice *advice = container_of(work, struct qhca_advice,
						  work);

	advice->err = qhca_advice_run(advice);
	complete(&advice->done);
	qhca_advice_put(advice);
}

static int qhca_advice_range(struct ib_pd *ibpd, bool write,
			     const struct ib_sge *sge,
			     struct qhca_prefetch *r)
{
	struct qhca_ib_dev *dev = to_qhca(ibpd->device);
	u64 skip;

	r->odp = qhca_odp_get(dev, QHCA_KEY_INDEX(sge->lkey), NULL);
	if (!r->odp)
		return -ENOENT;
	if (r->odp->lkey != sge->lkey || r->odp->pd != ibpd)
		return -ENOENT;
	if (write && !r->odp->writable)
		return -EPERM;

	skip = sge->addr - r->odp->start;
	if (sge->addr < r->odp->start || skip > r->odp->length ||
	    sge->length > r->odp->length - skip)
		return -EFAULT;
	r->offset = skip + r->odp->skip;
	r->length = sge->length;
	return 0;
}

int qhca_advise_mr(struct ib_pd *ibpd, enum ib_uverbs_advise_mr_advice how,
		   u32 flags, struct ib_sge *sg_list, u32 num_sge,
		   struct uverbs_attr_bundle *attrs)
{
	struct qhca_ib_dev *dev = to_qhca(ibpd->device);
	struct qhca_advice *advice;
	int err = 0;
	u32 i;

	if (how != IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH &&
	    how != IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_WRITE &&
	    how != IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
		return -EOPNOTSUPP;

	advice = kvzalloc(struct_size(advice, range, num_sge),
			  GFP_KERNEL_ACCOUNT);
	if (!advice)
		return -ENOMEM;
	INIT_WORK(&advice->work, qhca_advice_work);
	refcount_set(&advice->ref, 1);
	init_completion(&advice->done);
	advice->num = num_sge;
	advice->write = how == IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_WRITE;
	advice->fault = how != IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT;
	for (i = 0; i < num_sge && !err; i++)
		err = qhca_advice_range(ibpd, advice->write, &sg_list[i],
					&advice->range[i]);
	if (!err) {
		refcount_inc(&advice->ref);
		queue_work(dev->fault_wq, &advice->work);
		if (flags & IB_UVERBS_ADVISE_MR_FLAG_FLUSH) {
			err = wait_for_completion_killable(&advice->done);
			if (!err)
				err = advice->err;
		}
	}
	qhca_advice_put(advice);
	return err;
}
