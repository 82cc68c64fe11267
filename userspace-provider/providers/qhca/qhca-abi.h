/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * uverbs commands: the driver's part of each, behind the core's.
 */
#ifndef __QHCA_ABI_H__
#define __QHCA_ABI_H__

#include <infiniband/kern-abi.h>
#include <rdma/qhca-abi.h>
#include <kernel-abi/qhca-abi.h>

DECLARE_DRV_CMD(qhca_ucmd_alloc_context, IB_USER_VERBS_CMD_GET_CONTEXT,
		qhca_alloc_ucontext_req, qhca_alloc_ucontext_resp);
DECLARE_DRV_CMD(qhca_ucmd_alloc_pd, IB_USER_VERBS_CMD_ALLOC_PD,
		empty, qhca_alloc_pd_resp);
DECLARE_DRV_CMD(qhca_ucmd_create_cq, IB_USER_VERBS_EX_CMD_CREATE_CQ,
		qhca_create_cq_req, qhca_create_cq_resp);
DECLARE_DRV_CMD(qhca_ucmd_resize_cq, IB_USER_VERBS_CMD_RESIZE_CQ,
		qhca_resize_cq_req, empty);
DECLARE_DRV_CMD(qhca_ucmd_create_qp, IB_USER_VERBS_EX_CMD_CREATE_QP,
		qhca_create_qp_req, qhca_create_qp_resp);
DECLARE_DRV_CMD(qhca_ucmd_create_srq, IB_USER_VERBS_CMD_CREATE_XSRQ,
		qhca_create_srq_req, qhca_create_srq_resp);
DECLARE_DRV_CMD(qhca_ucmd_modify_srq, IB_USER_VERBS_CMD_MODIFY_SRQ,
		qhca_modify_srq_req, empty);
DECLARE_DRV_CMD(qhca_ucmd_create_ah, IB_USER_VERBS_CMD_CREATE_AH,
		empty, qhca_create_ah_resp);

#endif /* __QHCA_ABI_H__ */
