/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Device, context and the table of verbs.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <infiniband/cmd_ioctl.h>
#include <rdma/ib_user_ioctl_cmds.h>

#include "compat.h"
#include "qhca.h"
#include "qhca-abi.h"
#include "qhcadv.h"

/*
 * The kernel driver has no number in enum rdma_driver_id, so devices are
 * matched by their parent, the PCI function.  If the parent were the auxiliary
 * device, its name would match.
 */
static const struct verbs_match_ent qhca_match_table[] = {
	VERBS_PCI_MATCH(QHCA_PCI_VENDOR_ID, QHCA_PCI_DEVICE_ID, NULL),
	VERBS_PCI_MATCH(QHCA_PCI_VENDOR_ID, QHCA_PCI_VF_DEVICE_ID, NULL),
	VERBS_MODALIAS_MATCH("auxiliary:qhca.*", NULL),
	{},
};

static int qhca_query_device_ex(struct ibv_context *context,
				const struct ibv_query_device_ex_input *input,
				struct ibv_device_attr_ex *attr,
				size_t attr_size)
{
	struct ib_uverbs_ex_query_device_resp resp;
	size_t resp_size = sizeof(resp);
	uint64_t fw_ver;
	int ret;

	ret = ibv_cmd_query_device_any(context, input, attr, attr_size, &resp,
				       &resp_size);
	if (ret)
		return ret;

	fw_ver = resp.base.fw_ver;
	snprintf(attr->orig_attr.fw_ver, sizeof(attr->orig_attr.fw_ver),
		 "%u.%u", (unsigned int)(fw_ver >> 32), (unsigned int)fw_ver);
	return 0;
}

static int qhca_query_port(struct ibv_context *context, uint8_t port,
			   struct ibv_port_attr *attr)
{
	struct ibv_query_port cmd;

	return ibv_cmd_query_port(context, port, attr, &cmd, sizeof(cmd));
}

/* The clock of completions' timestamps, with a system call. */
static int qhca_query_rt_values(struct ibv_context *context,
				struct ibv_values_ex *values)
{
	DECLARE_COMMAND_BUFFER(cmd, UVERBS_OBJECT_DEVICE,
			       QHCA_IB_METHOD_QUERY_CLOCK, 1);
	uint32_t wanted = values->comp_mask;
	uint64_t clock;
	int ret;

	values->comp_mask = 0;
	if (!check_comp_mask(wanted, IBV_VALUES_MASK_RAW_CLOCK))
		return EINVAL;
	if (!wanted)
		return 0;

	fill_attr_out_ptr(cmd, QHCA_IB_ATTR_QUERY_CLOCK_RESP, &clock);
	ret = execute_ioctl(context, cmd);
	if (ret)
		return ret;

	/* Timestamps are one number, and programs compare them with tv_nsec. */
	values->raw_clock.tv_sec = 0;
	values->raw_clock.tv_nsec = clock;
	values->comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
	return 0;
}

static void qhca_async_event(struct ibv_context *context,
			     struct ibv_async_event *event)
{
	switch (event->event_type) {
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		qhca_qp_in_error(to_qqp(event->element.qp));
		break;
	default:
		break;
	}
}

static void qhca_free_context(struct ibv_context *context)
{
	struct qhca_context *ctx = to_qctx(context);

	munmap(ctx->db_page, ctx->db_size);
	verbs_uninit_context(&ctx->vctx);
	free(ctx);
}

static const struct verbs_context_ops qhca_context_ops = {
	.advise_mr = qhca_advise_mr,
	.alloc_dm = qhca_alloc_dm,
	.alloc_mw = qhca_alloc_mw,
	.alloc_null_mr = qhca_alloc_null_mr,
	.alloc_parent_domain = qhca_alloc_parent_domain,
	.alloc_pd = qhca_alloc_pd,
	.alloc_td = qhca_alloc_td,
	.async_event = qhca_async_event,
	.attach_mcast = ibv_cmd_attach_mcast,
	.bind_mw = qhca_bind_mw,
	.close_xrcd = qhca_close_xrcd,
	.create_ah = qhca_create_ah,
	.create_cq = qhca_create_cq,
	.create_cq_ex = qhca_create_cq_ex,
	.create_flow = qhca_create_flow,
	.create_qp = qhca_create_qp,
	.create_qp_ex = qhca_create_qp_ex,
	.create_srq = qhca_create_srq,
	.create_srq_ex = qhca_create_srq_ex,
	.dealloc_mw = qhca_dealloc_mw,
	.dealloc_pd = qhca_dealloc_pd,
	.dealloc_td = qhca_dealloc_td,
	.dereg_mr = qhca_dereg_mr,
	.destroy_ah = qhca_destroy_ah,
	.destroy_cq = qhca_destroy_cq,
	.destroy_flow = qhca_destroy_flow,
	.destroy_qp = qhca_destroy_qp,
	.destroy_srq = qhca_destroy_srq,
	.detach_mcast = ibv_cmd_detach_mcast,
	.free_context = qhca_free_context,
	.free_dm = qhca_free_dm,
	.get_srq_num = qhca_get_srq_num,
	.import_dm = qhca_import_dm,
	.import_mr = qhca_import_mr,
	.import_pd = qhca_import_pd,
	.modify_cq = qhca_modify_cq,
	.modify_qp = qhca_modify_qp,
	.modify_srq = qhca_modify_srq,
	.open_qp = qhca_open_qp,
	.open_xrcd = qhca_open_xrcd,
	.poll_cq = qhca_poll_cq,
	.post_recv = qhca_post_recv,
	.post_send = qhca_post_send,
	.post_srq_recv = qhca_post_srq_recv,
	.query_device_ex = qhca_query_device_ex,
	.query_port = qhca_query_port,
	.query_qp = qhca_query_qp,
	.query_rt_values = qhca_query_rt_values,
	.query_srq = qhca_query_srq,
	.reg_dm_mr = qhca_reg_dm_mr,
	.reg_dmabuf_mr = qhca_reg_dmabuf_mr,
	.reg_mr = qhca_reg_mr,
	.req_notify_cq = qhca_arm_cq,
	.rereg_mr = qhca_rereg_mr,
	.resize_cq = qhca_resize_cq,
	.unimport_dm = qhca_unimport_dm,
	.unimport_mr = qhca_unimport_mr,
	.unimport_pd = qhca_unimport_pd,
};

/* Take over the kernel's description of a new or imported context. */
static int set_context(struct qhca_context *ctx,
		       const struct qhca_alloc_ucontext_resp *resp)
{
	ctx->page_size = sysconf(_SC_PAGESIZE);
	ctx->features = resp->features;
	ctx->max_inline = resp->max_inline;
	ctx->max_sge = resp->max_sge;
	ctx->max_send_wr = resp->max_send_wr;
	ctx->max_recv_wr = resp->max_recv_wr;
	ctx->max_cqe = resp->max_cqe;
	ctx->max_srq_wr = resp->max_srq_wr;

	ctx->db_size = resp->db_mmap_size;
	ctx->db_page = mmap(NULL, ctx->db_size, PROT_WRITE, MAP_SHARED,
			    ctx->vctx.context.cmd_fd, resp->db_mmap_offset);
	if (ctx->db_page == MAP_FAILED) {
		verbs_err(&ctx->vctx, "cannot map the doorbell page\n");
		return errno;
	}

	verbs_set_ops(&ctx->vctx, &qhca_context_ops);
	return 0;
}

static struct verbs_context *qhca_alloc_context(struct ibv_device *device,
						int cmd_fd,
						void *private_data)
{
	struct qhca_ucmd_alloc_context_resp resp = {};
	struct qhca_ucmd_alloc_context cmd = {};
	struct qhca_context *ctx;

	ctx = verbs_init_and_alloc_context(device, cmd_fd, ctx, vctx,
					   RDMA_DRIVER_UNKNOWN);
	if (!ctx)
		return NULL;

	if (qhca_cmd_get_context(&ctx->vctx, &cmd.ibv_cmd, sizeof(cmd),
				 &resp.ibv_resp, sizeof(resp)) ||
	    set_context(ctx, &resp.drv_payload))
		goto err_free;
	return &ctx->vctx;

err_free:
	verbs_uninit_context(&ctx->vctx);
	free(ctx);
	return NULL;
}

/*
 * Import a context that another process, or another part of this one, has made.
 */
static struct verbs_context *qhca_import_context(struct ibv_device *device,
						 int cmd_fd)
{
	DECLARE_COMMAND_BUFFER_LINK(driver_attr, UVERBS_OBJECT_DEVICE,
				    UVERBS_METHOD_QUERY_CONTEXT, 1, NULL);
	struct qhca_alloc_ucontext_resp resp = {};
	struct qhca_context *ctx;
	int ret;

	ctx = verbs_init_and_alloc_context(device, cmd_fd, ctx, vctx,
					   RDMA_DRIVER_UNKNOWN);
	if (!ctx)
		return NULL;

	fill_attr_out_ptr(driver_attr, QHCA_IB_ATTR_QUERY_CONTEXT_RESP, &resp);
	ret = ibv_cmd_query_context(&ctx->vctx.context, driver_attr);
	if (!ret)
		ret = set_context(ctx, &resp);
	if (!ret)
		return &ctx->vctx;

	verbs_uninit_context(&ctx->vctx);
	free(ctx);
	errno = ret;
	return NULL;
}

static struct verbs_device *qhca_alloc_device(struct verbs_sysfs_dev *sysfs_dev)
{
	struct qhca_device *dev = calloc(1, sizeof(*dev));

	return dev ? &dev->vdev : NULL;
}

static void qhca_uninit_device(struct verbs_device *vdev)
{
	free(container_of(vdev, struct qhca_device, vdev));
}

static const struct verbs_device_ops qhca_dev_ops = {
	.name = "qhca",
	.match_min_abi_version = QHCA_UVERBS_ABI_VERSION,
	.match_max_abi_version = QHCA_UVERBS_ABI_VERSION,
	.match_table = qhca_match_table,
	.alloc_device = qhca_alloc_device,
	.uninit_device = qhca_uninit_device,
	.alloc_context = qhca_alloc_context,
	.import_context = qhca_import_context,
};

bool qhcadv_is_supported(struct ibv_device *device)
{
	return verbs_get_device(device)->ops == &qhca_dev_ops;
}
PROVIDER_DRIVER(qhca, qhca_dev_ops);
