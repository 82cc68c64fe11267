// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * User contexts with their doorbell pages, protection domains, XRC domains.
 */
#include <linux/slab.h>
#include <rdma/uverbs_std_types.h>

#define UVERBS_MODULE_NAME qhca_ib
#include <rdma/uverbs_named_ioctl.h>

#include "mem.h"

/**
 * qhca_mmap_insert - let a process map something
 * @uc:     the process's context
 * @entry:  part of what is mapped
 * @type:   how it is mapped, and who frees it
 * @addr:   CPU physical address, page aligned
 * @length: bytes, whole pages
 *
 * From now on qhca_mmap_free() frees @entry, after
 * rdma_user_mmap_entry_remove() and the last munmap().
 *
 * Return: 0 or a negative errno; then @entry is still the caller's.
 */
int qhca_mmap_insert(struct qhca_ucontext *uc, struct qhca_mmap_entry *entry,
		     enum qhca_mmap_type type, phys_addr_t addr, size_t length)
{
	entry->type = type;
	entry->addr = addr;
	return rdma_user_mmap_entry_insert(&uc->ibuc, &entry->rdma_entry,
					   length);
}

static struct rdma_user_mmap_entry *
qhca_doorbell_insert(struct qhca_ucontext *uc, phys_addr_t addr, size_t length)
{
	struct qhca_mmap_entry *entry;
	int err;

	entry = kzalloc_obj(*entry, GFP_KERNEL_ACCOUNT);
	if (!entry)
		return ERR_PTR(-ENOMEM);

	err = qhca_mmap_insert(uc, entry, QHCA_MMAP_DOORBELL, addr, length);
	if (err) {
		kfree(entry);
		return ERR_PTR(err);
	}
	return &entry->rdma_entry;
}

static void qhca_fill_ucontext_resp(struct qhca_ib_dev *dev,
				    struct qhca_ucontext *uc,
				    struct qhca_alloc_ucontext_resp *resp)
{
	const struct qhca_caps_host *caps = &dev->qdev->caps;

	resp->db_mmap_offset = rdma_user_mmap_get_offset(uc->db_entry);
	resp->db_mmap_size = QHCA_DB_PAGE_SIZE;
	resp->db_page = uc->db_page;
	resp->max_inline = caps->max_inline;
	resp->max_sge = caps->max_sge;
	resp->max_send_wr = BIT(caps->log_max_wq_depth);
	resp->max_recv_wr = BIT(caps->log_max_wq_depth);
	resp->max_cqe = BIT(caps->log_max_cq_depth);
	resp->max_srq_wr = BIT(caps->log_max_wq_depth) - 1;
	resp->features = caps->features;
	resp->clock_hz = caps->clock_hz;
}

int qhca_alloc_ucontext(struct ib_ucontext *ibuc, struct ib_udata *udata)
{
	struct qhca_ib_dev *dev = to_qhca(ibuc->device);
	struct qhca_alloc_ucontext_resp resp = {};
	struct qhca_ucontext *uc = to_quc(ibuc);
	struct qhca_alloc_ucontext_req req;
	int err;

	/* Larger pages would map the doorbells of other processes, too. */
	if (PAGE_SIZE != QHCA_DB_PAGE_SIZE)
		return -EOPNOTSUPP;

	err = ib_copy_validate_udata_in_cm(udata, req, comp_mask, 0);
	if (err)
		return err;

	err = qhca_db_page_alloc(dev->qdev, &uc->db_page);
	if (err)
		return err;

	mutex_init(&uc->pool_lock);
	INIT_LIST_HEAD(&uc->pool_bufs);
	uc->db_entry = qhca_doorbell_insert(uc, dev->qdev->db_phys +
					    (phys_addr_t)uc->db_page *
					    QHCA_DB_PAGE_SIZE,
					    QHCA_DB_PAGE_SIZE);
	if (IS_ERR(uc->db_entry)) {
		err = PTR_ERR(uc->db_entry);
		goto err_page;
	}

	qhca_fill_ucontext_resp(dev, uc, &resp);
	err = ib_respond_udata(udata, resp);
	if (err)
		goto err_entry;
	return 0;

err_entry:
	rdma_user_mmap_entry_remove(uc->db_entry);
err_page:
	qhca_db_page_free(dev->qdev, uc->db_page);
	return err;
}

/* For a process that has imported the context of another one. */
int qhca_query_ucontext(struct ib_ucontext *ibuc,
			struct uverbs_attr_bundle *attrs)
{
	struct qhca_alloc_ucontext_resp resp = {};

	qhca_fill_ucontext_resp(to_qhca(ibuc->device), to_quc(ibuc), &resp);
	return uverbs_copy_to_struct_or_zero(attrs,
					     QHCA_IB_ATTR_QUERY_CONTEXT_RESP,
					     &resp, sizeof(resp));
}

ADD_UVERBS_ATTRIBUTES_SIMPLE(qhca_query_context,
			     UVERBS_OBJECT_DEVICE,
			     UVERBS_METHOD_QUERY_CONTEXT,
			     UVERBS_ATTR_PTR_OUT(QHCA_IB_ATTR_QUERY_CONTEXT_RESP,
						 UVERBS_ATTR_STRUCT(struct qhca_alloc_ucontext_resp,
								    clock_hz),
						 UA_MANDATORY));

static int UVERBS_HANDLER(QHCA_IB_METHOD_QUERY_CLOCK)(struct uverbs_attr_bundle *attrs)
{
	struct ib_ucontext *ibuc = ib_uverbs_get_ucontext(attrs);
	u64 clock;
	int err;

	if (IS_ERR(ibuc))
		return PTR_ERR(ibuc);

	err = qhca_read_clock(to_qhca(ibuc->device)->qdev, &clock);
	if (err)
		return err;
	return uverbs_copy_to(attrs, QHCA_IB_ATTR_QUERY_CLOCK_RESP, &clock,
			      sizeof(clock));
}

DECLARE_UVERBS_NAMED_METHOD(QHCA_IB_METHOD_QUERY_CLOCK,
			    UVERBS_ATTR_PTR_OUT(QHCA_IB_ATTR_QUERY_CLOCK_RESP,
						UVERBS_ATTR_TYPE(u64),
						UA_MANDATORY));

ADD_UVERBS_METHODS(qhca_query_clock, UVERBS_OBJECT_DEVICE,
		   &UVERBS_METHOD(QHCA_IB_METHOD_QUERY_CLOCK));

const struct uapi_definition qhca_ucontext_defs[] = {
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_DEVICE, &qhca_query_context),
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_DEVICE, &qhca_query_clock),
	{}
};

void qhca_dealloc_ucontext(struct ib_ucontext *ibuc)
{
	struct qhca_ib_dev *dev = to_qhca(ibuc->device);
	struct qhca_ucontext *uc = to_quc(ibuc);

	rdma_user_mmap_entry_remove(uc->db_entry);
	qhca_db_page_free(dev->qdev, uc->db_page);
}

/* The core has replaced the mappings, and nothing else is shared. */
void qhca_disassociate_ucontext(struct ib_ucontext *ibuc)
{
}

static pgprot_t qhca_mmap_prot(const struct qhca_mmap_entry *entry,
			       pgprot_t prot)
{
	switch (entry->type) {
	case QHCA_MMAP_POOL:
		return prot;
	case QHCA_MMAP_DM:
		return pgprot_writecombine(prot);
	default:
		return pgprot_noncached(prot);
	}
}

int qhca_mmap(struct ib_ucontext *ibuc, struct vm_area_struct *vma)
{
	struct rdma_user_mmap_entry *rdma_entry;
	struct qhca_mmap_entry *entry;
	int err;

	rdma_entry = rdma_user_mmap_entry_get(ibuc, vma);
	if (!rdma_entry)
		return -EINVAL;

	entry = container_of(rdma_entry, struct qhca_mmap_entry, rdma_entry);
	/* Such memory has one owner: a child process does not inherit it. */
	if (entry->type != QHCA_MMAP_DOORBELL)
		vm_flags_set(vma, VM_DONTCOPY);
	err = rdma_user_mmap_io(ibuc, vma, PHYS_PFN(entry->addr),
				rdma_entry->npages * PAGE_SIZE,
				qhca_mmap_prot(entry, vma->vm_page_prot),
				rdma_entry);
	rdma_user_mmap_entry_put(rdma_entry);
	return err;
}

/* Called when the object is gone and no process maps it any more. */
void qhca_mmap_free(struct rdma_user_mmap_entry *rdma_entry)
{
	struct qhca_ib_dev *dev = to_qhca(rdma_entry->ucontext->device);
	struct qhca_mmap_entry *entry =
		container_of(rdma_entry, struct qhca_mmap_entry, rdma_entry);

	switch (entry->type) {
	case QHCA_MMAP_DOORBELL:
		kfree(entry);
		break;
	case QHCA_MMAP_POOL:
		qhca_pool_buf_free(dev, container_of(entry,
						     struct qhca_pool_buf,
						     mmap));
		break;
	case QHCA_MMAP_DM:
		qhca_dm_buf_free(dev, container_of(entry, struct qhca_dm_buf,
						   mmap));
		break;
	}
}

int qhca_alloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	struct qhca_ib_dev *dev = to_qhca(ibpd->device);
	struct qhca_alloc_pd_resp resp = {};
	struct qhca_pd *pd = to_qpd(ibpd);
	int pdn, err;

	err = ib_is_udata_in_empty(udata);
	if (err)
		return err;

	pdn = ida_alloc_range(&dev->pdns, 1, QHCA_MAX_PD, GFP_KERNEL);
	if (pdn < 0)
		return pdn;
	pd->pdn = pdn;

	if (udata) {
		resp.pdn = pdn;
		err = ib_respond_udata(udata, resp);
		if (err) {
			ida_free(&dev->pdns, pdn);
			return err;
		}
	}
	return 0;
}

int qhca_dealloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	struct qhca_ib_dev *dev = to_qhca(ibpd->device);

	ida_free(&dev->pdns, to_qpd(ibpd)->pdn);
	return 0;
}

int qhca_alloc_xrcd(struct ib_xrcd *ibxrcd, struct ib_udata *udata)
{
	struct qhca_ib_dev *dev = to_qhca(ibxrcd->device);
	int xrcdn, err;

	err = ib_no_udata_io(udata);
	if (err)
		return err;

	xrcdn = ida_alloc_range(&dev->xrcdns, 1, QHCA_MAX_XRCD, GFP_KERNEL);
	if (xrcdn < 0)
		return xrcdn;
	to_qxrcd(ibxrcd)->xrcdn = xrcdn;
	return 0;
}

int qhca_dealloc_xrcd(struct ib_xrcd *ibxrcd, struct ib_udata *udata)
{
	struct qhca_ib_dev *dev = to_qhca(ibxrcd->device);

	ida_free(&dev->xrcdns, to_qxrcd(ibxrcd)->xrcdn);
	return 0;
}
