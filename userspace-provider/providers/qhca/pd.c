/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Protection, thread, parent and XRC domains.
 */
#include <errno.h>
#include <stdlib.h>

#include "qhca.h"
#include "qhca-abi.h"

/*
 * IBV_PARENT_DOMAIN_INIT_ATTR_ALLOW_CC_UNPROTECTED_ALLOC, which older releases
 * do not have.  It allows memory that is shared with the host where a device
 * needs such memory, in guests whose memory is encrypted; this one does not.
 */
#define ALLOW_CC_UNPROTECTED_ALLOC	(1 << 2)

struct ibv_pd *qhca_alloc_pd(struct ibv_context *context)
{
	struct qhca_ucmd_alloc_pd_resp resp = {};
	struct ibv_alloc_pd cmd;
	struct qhca_pd *pd;

	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return NULL;

	if (ibv_cmd_alloc_pd(context, &pd->pd, &cmd, sizeof(cmd),
			     &resp.ibv_resp, sizeof(resp))) {
		free(pd);
		return NULL;
	}
	return &pd->pd;
}

static void dealloc_parent_domain(struct qhca_pd *pd)
{
	atomic_fetch_sub(&pd->contained->users, 1);
	if (pd->td)
		atomic_fetch_sub(&pd->td->users, 1);
	free(pd);
}

int qhca_dealloc_pd(struct ibv_pd *ibpd)
{
	struct qhca_pd *pd = to_qpd(ibpd);
	int ret;

	if (atomic_load(&pd->users))
		return EBUSY;

	if (pd->contained) {
		dealloc_parent_domain(pd);
		return 0;
	}

	ret = ibv_cmd_dealloc_pd(ibpd);
	if (ret)
		return ret;
	free(pd);
	return 0;
}

/* Import a domain.  Whoever has allocated it deallocates it. */
struct ibv_pd *qhca_import_pd(struct ibv_context *context, uint32_t handle)
{
	struct qhca_pd *pd;

	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return NULL;
	pd->pd.context = context;
	pd->pd.handle = handle;
	return &pd->pd;
}

void qhca_unimport_pd(struct ibv_pd *ibpd)
{
	free(to_qpd(ibpd));
}

struct ibv_td *qhca_alloc_td(struct ibv_context *context,
			     struct ibv_td_init_attr *attr)
{
	struct qhca_td *td;

	if (attr->comp_mask) {
		errno = EOPNOTSUPP;
		return NULL;
	}

	td = calloc(1, sizeof(*td));
	if (!td)
		return NULL;
	td->td.context = context;
	return &td->td;
}

int qhca_dealloc_td(struct ibv_td *ibtd)
{
	struct qhca_td *td = to_qtd(ibtd);

	if (atomic_load(&td->users))
		return EBUSY;
	free(td);
	return 0;
}

struct ibv_pd *
qhca_alloc_parent_domain(struct ibv_context *context,
			 struct ibv_parent_domain_init_attr *attr)
{
	struct qhca_pd *pd;

	if (ibv_check_alloc_parent_domain(attr))
		return NULL;

	if (!check_comp_mask(attr->comp_mask,
			     IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
			     IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT |
			     ALLOW_CC_UNPROTECTED_ALLOC)) {
		errno = EINVAL;
		return NULL;
	}

	/* Memory goes back to the allocator that it came from. */
	if ((attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS) &&
	    (!attr->alloc || !attr->free)) {
		errno = EINVAL;
		return NULL;
	}

	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return NULL;

	pd->contained = to_qpd(attr->pd);
	atomic_fetch_add(&pd->contained->users, 1);
	if (attr->td) {
		pd->td = to_qtd(attr->td);
		atomic_fetch_add(&pd->td->users, 1);
	}
	if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS) {
		pd->alloc = attr->alloc;
		pd->free = attr->free;
	}
	if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT)
		pd->pd_context = attr->pd_context;

	ibv_initialize_parent_domain(&pd->pd, attr->pd);
	return &pd->pd;
}

struct ibv_xrcd *qhca_open_xrcd(struct ibv_context *context,
				struct ibv_xrcd_init_attr *attr)
{
	struct ib_uverbs_open_xrcd_resp resp;
	struct ibv_open_xrcd cmd;
	struct verbs_xrcd *xrcd;

	xrcd = calloc(1, sizeof(*xrcd));
	if (!xrcd)
		return NULL;

	if (ibv_cmd_open_xrcd(context, xrcd, sizeof(*xrcd), attr, &cmd,
			      sizeof(cmd), &resp, sizeof(resp))) {
		free(xrcd);
		return NULL;
	}
	return &xrcd->xrcd;
}

int qhca_close_xrcd(struct ibv_xrcd *ibxrcd)
{
	struct verbs_xrcd *xrcd = container_of(ibxrcd, struct verbs_xrcd, xrcd);
	int ret;

	ret = ibv_cmd_close_xrcd(xrcd);
	if (ret)
		return ret;
	free(xrcd);
	return 0;
}
