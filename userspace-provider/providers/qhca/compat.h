/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Private functions of libibverbs that gained an argument after rdma-core 56.
 *
 * The provider passes nothing by the new arguments.  This file exists because the
 * provider is built outside of rdma-core; within it, only the newest form remains.
 */
#ifndef __QHCA_COMPAT_H__
#define __QHCA_COMPAT_H__

#include <config.h>
#include <infiniband/driver.h>

/* File descriptors for the kernel. */
#if IBVERBS_PABI_VERSION >= 57
#define QHCA_NO_FDS NULL,
#else
#define QHCA_NO_FDS
#endif

/* Memory of the provider's for the entries of a CQ. */
#if IBVERBS_PABI_VERSION >= 59
#define QHCA_NO_CQ_BUFFER NULL,
#else
#define QHCA_NO_CQ_BUFFER
#endif

/* Attributes of the driver's. */
#if IBVERBS_PABI_VERSION >= 64
#define QHCA_NO_DRIVER_ATTRS , NULL
#else
#define QHCA_NO_DRIVER_ATTRS
#endif

static inline int qhca_cmd_get_context(struct verbs_context *context,
				       struct ibv_get_context *cmd,
				       size_t cmd_size,
				       struct ib_uverbs_get_context_resp *resp,
				       size_t resp_size)
{
	return ibv_cmd_get_context(context, cmd, cmd_size,
				   QHCA_NO_FDS resp, resp_size);
}

static inline int
qhca_cmd_create_cq(struct ibv_context *context,
		   const struct ibv_cq_init_attr_ex *attr, struct verbs_cq *cq,
		   struct ibv_create_cq_ex *cmd, size_t cmd_size,
		   struct ib_uverbs_ex_create_cq_resp *resp, size_t resp_size)
{
	return ibv_cmd_create_cq_ex(context, attr, QHCA_NO_CQ_BUFFER cq,
				    cmd, cmd_size, resp, resp_size, 0);
}

static inline int
qhca_cmd_create_qp(struct ibv_context *context, struct verbs_qp *qp,
		   struct ibv_qp_init_attr_ex *attr,
		   struct ibv_create_qp_ex *cmd, size_t cmd_size,
		   struct ib_uverbs_ex_create_qp_resp *resp, size_t resp_size)
{
	return ibv_cmd_create_qp_ex2(context, qp, attr, cmd, cmd_size, resp,
				     resp_size QHCA_NO_DRIVER_ATTRS);
}

#endif /* __QHCA_COMPAT_H__ */
