// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "mem/reserved_key.h"

#include "hca.h"

static bool reserved_allowed(const struct hca_fn *fn,
			     const struct hca_mem_req *req)
{
	if (!(fn->features & QHCA_FEAT_RESERVED_LKEY) || req->remote ||
	    !req->kernel)
		return false;
	return req->channel || !(fn->init_flags & QHCA_INIT_STRICT_LKEY);
}

static bool null_allowed(const struct hca_fn *fn,
			 const struct hca_mem_req *req)
{
	return fn->features & QHCA_FEAT_NULL_LKEY && !req->remote;
}

enum hca_mem_status hca_reserved_key_check(struct hca_fn *fn,
					   const struct hca_mem_req *req)
{
	if (req->key == QHCA_NULL_LKEY && null_allowed(fn, req))
		return HCA_MEM_OK;
	if (req->key != QHCA_RESERVED_LKEY || !reserved_allowed(fn, req))
		return hca_pte_refuse(fn, req->key, req->addr, req->len,
				      HCA_PROT_RESERVED_KEY);
	hca_count(fn, QHCA_CNT_reserved_lkey_uses);
	return HCA_MEM_OK;
}
