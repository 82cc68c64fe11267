// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Binding to the auxiliary device and registration with the RDMA core.
 */
#include <linux/dma-mapping.h>
#include <linux/etherdevice.h>
#include <linux/module.h>
#include <net/addrconf.h>

#include "queue.h"

static const struct ib_device_ops qhca_dev_ops = {
	.owner = THIS_MODULE,
	.driver_id = RDMA_DRIVER_UNKNOWN,
	.uverbs_abi_ver = QHCA_UVERBS_ABI_VERSION,
	QHCA_OPS_ROBUST_UDATA

	.add_gid = qhca_add_gid,
	.alloc_hw_device_stats = qhca_alloc_hw_device_stats,
	.alloc_hw_port_stats = qhca_alloc_hw_port_stats,
	.alloc_pd = qhca_alloc_pd,
	.alloc_ucontext = qhca_alloc_ucontext,
	.create_ah = qhca_create_ah,
	.create_cq = qhca_create_cq,
	.create_qp = qhca_create_qp,
	.create_user_ah = qhca_create_ah,
	.dealloc_pd = qhca_dealloc_pd,
	.dealloc_ucontext = qhca_dealloc_ucontext,
	.del_gid = qhca_del_gid,
	.dereg_mr = qhca_dereg_mr,
	.destroy_ah = qhca_destroy_ah,
	.destroy_cq = qhca_destroy_cq,
	.destroy_qp = qhca_destroy_qp,
	.device_group = &qhca_identity,
	.disassociate_ucontext = qhca_disassociate_ucontext,
	.fill_res_cq_entry = qhca_fill_res_cq_entry,
	.fill_res_cq_entry_raw = qhca_fill_res_cq_entry_raw,
	.fill_res_mr_entry = qhca_fill_res_mr_entry,
	.fill_res_mr_entry_raw = qhca_fill_res_mr_entry_raw,
	.fill_res_qp_entry = qhca_fill_res_qp_entry,
	.fill_res_qp_entry_raw = qhca_fill_res_qp_entry_raw,
	.fill_res_srq_entry = qhca_fill_res_srq_entry,
	.fill_res_srq_entry_raw = qhca_fill_res_srq_entry_raw,
	.get_dev_fw_str = qhca_get_dev_fw_str,
	.get_dma_mr = qhca_get_dma_mr,
	.get_hw_stats = qhca_get_hw_stats,
	.get_link_layer = qhca_get_link_layer,
	.get_port_immutable = qhca_get_port_immutable,
	.mmap = qhca_mmap,
	.mmap_free = qhca_mmap_free,
	.modify_qp = qhca_modify_qp,
	.poll_cq = qhca_poll_cq,
	.post_recv = qhca_post_recv,
	.post_send = qhca_post_send,
	.process_mad = qhca_process_mad,
	.query_ah = qhca_query_ah,
	.query_device = qhca_query_device,
	.query_pkey = qhca_query_pkey,
	.query_port = qhca_query_port,
	.query_qp = qhca_query_qp,
	.query_ucontext = qhca_query_ucontext,
	.reg_user_mr = qhca_reg_user_mr,
	.reg_user_mr_dmabuf = qhca_reg_user_mr_dmabuf,
	.req_notify_cq = qhca_req_notify_cq,
	.rereg_user_mr = qhca_rereg_user_mr,

	INIT_RDMA_OBJ_SIZE(ib_ah, qhca_ah, ibah),
	INIT_RDMA_OBJ_SIZE(ib_cq, qhca_cq, ibcq),
	INIT_RDMA_OBJ_SIZE(ib_pd, qhca_pd, ibpd),
	INIT_RDMA_OBJ_SIZE(ib_qp, qhca_qp, ibqp),
	INIT_RDMA_OBJ_SIZE(ib_ucontext, qhca_ucontext, ibuc),
};

static const struct ib_device_ops qhca_srq_ops = {
	.create_srq = qhca_create_srq,
	.destroy_srq = qhca_destroy_srq,
	.modify_srq = qhca_modify_srq,
	.post_srq_recv = qhca_post_srq_recv,
	.query_srq = qhca_query_srq,

	INIT_RDMA_OBJ_SIZE(ib_srq, qhca_srq, ibsrq),
};

static const struct ib_device_ops qhca_xrc_ops = {
	.alloc_xrcd = qhca_alloc_xrcd,
	.dealloc_xrcd = qhca_dealloc_xrcd,

	INIT_RDMA_OBJ_SIZE(ib_xrcd, qhca_xrcd, ibxrcd),
};

static const struct ib_device_ops qhca_mw_ops = {
	.alloc_mw = qhca_alloc_mw,
	.dealloc_mw = qhca_dealloc_mw,

	INIT_RDMA_OBJ_SIZE(ib_mw, qhca_mw, ibmw),
};

static const struct ib_device_ops qhca_fast_reg_ops = {
	.alloc_mr = qhca_alloc_mr,
	.map_mr_sg = qhca_map_mr_sg,
};

static const struct ib_device_ops qhca_dm_ops = {
	.alloc_dm = qhca_alloc_dm,
	.dealloc_dm = qhca_dealloc_dm,
	.reg_dm_mr = qhca_reg_dm_mr,
};

static const struct ib_device_ops qhca_odp_ops = {
	.advise_mr = qhca_advise_mr,
	.fill_stat_mr_entry = qhca_fill_stat_mr_entry,
};

static const struct ib_device_ops qhca_mcast_ops = {
	.attach_mcast = qhca_attach_mcast,
	.detach_mcast = qhca_detach_mcast,
};

static const struct ib_device_ops qhca_flow_ops = {
	.create_flow = qhca_create_flow,
	.destroy_flow = qhca_destroy_flow,
};

static const struct ib_device_ops qhca_cq_moderation_ops = {
	.modify_cq = qhca_modify_cq,
};

static const struct ib_device_ops qhca_cq_resize_ops = {
	.resize_user_cq = qhca_resize_cq,
};

static const struct uapi_definition qhca_ib_defs[] = {
	UAPI_DEF_CHAIN(qhca_pool_defs),
	UAPI_DEF_CHAIN(qhca_dm_defs),
	UAPI_DEF_CHAIN(qhca_ucontext_defs),
	{}
};

/* The core takes a feature for absent if its methods are absent. */
static void qhca_set_ops(struct qhca_ib_dev *dev)
{
	struct ib_device *ibdev = &dev->ibdev;

	ib_set_device_ops(ibdev, &qhca_dev_ops);
	if (qhca_has(dev, QHCA_FEAT_SRQ))
		ib_set_device_ops(ibdev, &qhca_srq_ops);
	if (qhca_has(dev, QHCA_FEAT_XRC))
		ib_set_device_ops(ibdev, &qhca_xrc_ops);
	if (dev->qdev->caps.features & (QHCA_FEAT_MW1 | QHCA_FEAT_MW2B))
		ib_set_device_ops(ibdev, &qhca_mw_ops);
	if (qhca_has(dev, QHCA_FEAT_FAST_REG))
		ib_set_device_ops(ibdev, &qhca_fast_reg_ops);
	if (dev->dms)
		ib_set_device_ops(ibdev, &qhca_dm_ops);
	if (qhca_has(dev, QHCA_FEAT_ODP))
		ib_set_device_ops(ibdev, &qhca_odp_ops);
	if (qhca_has(dev, QHCA_FEAT_MCAST))
		ib_set_device_ops(ibdev, &qhca_mcast_ops);
	if (qhca_has(dev, QHCA_FEAT_RAW_PACKET))
		ib_set_device_ops(ibdev, &qhca_flow_ops);
	if (qhca_has_qp_counters(dev))
		ib_set_device_ops(ibdev, &qhca_qp_counter_ops);
	if (qhca_has(dev, QHCA_FEAT_CQ_MODERATION))
		ib_set_device_ops(ibdev, &qhca_cq_moderation_ops);
	if (qhca_has(dev, QHCA_FEAT_CQ_RESIZE))
		ib_set_device_ops(ibdev, &qhca_cq_resize_ops);
}

static void qhca_destroy_eqs(struct qhca_ib_dev *dev)
{
	while (dev->num_eqs)
		qhca_eq_destroy(dev->eqs[--dev->num_eqs]);
	kfree(dev->eqs);
}

static int qhca_create_eqs(struct qhca_ib_dev *dev)
{
	struct qhca_dev *qdev = dev->qdev;
	u32 log_depth = min(qdev->caps.log_max_eq_depth, 10u);
	struct qhca_eq *eq;
	int i;

	dev->eqs = kcalloc(qdev->num_comp_vectors, sizeof(*dev->eqs),
			   GFP_KERNEL);
	if (!dev->eqs)
		return -ENOMEM;

	for (i = 0; i < qdev->num_comp_vectors; i++) {
		eq = qhca_eq_create(qdev, i, log_depth, qhca_cq_event, dev);
		if (IS_ERR(eq)) {
			qhca_destroy_eqs(dev);
			return PTR_ERR(eq);
		}
		dev->eqs[dev->num_eqs++] = eq;
	}
	return 0;
}

static int qhca_register(struct qhca_ib_dev *dev)
{
	struct ib_device *ibdev = &dev->ibdev;
	struct qhca_dev *qdev = dev->qdev;
	const u8 *mac = qdev->netdev->perm_addr;
	int err;

	qhca_set_ops(dev);
	ibdev->driver_def = qhca_ib_defs;
	ibdev->node_type = RDMA_NODE_IB_CA;
	ibdev->phys_port_cnt = 1;
	ibdev->num_comp_vectors = dev->num_eqs;
	ibdev->local_dma_lkey = qdev->caps.reserved_lkey;
	ibdev->dev.parent = &qdev->pdev->dev;
	strscpy(ibdev->node_desc, "qhca", sizeof(ibdev->node_desc));
	if (!is_valid_ether_addr(mac))
		mac = qdev->netdev->dev_addr;
	addrconf_addr_eui48((u8 *)&ibdev->node_guid, mac);

	err = ib_device_set_netdev(ibdev, qdev->netdev, QHCA_IB_PORT);
	if (err)
		return err;

	/* Long segments keep the scatter lists of large regions short. */
	dma_set_max_seg_size(&qdev->pdev->dev, UINT_MAX);

	return ib_register_device(ibdev, "qhca%d", &qdev->pdev->dev);
}

static int qhca_ib_probe(struct auxiliary_device *adev,
			 const struct auxiliary_device_id *id)
{
	struct qhca_ib_dev *dev;
	int err;

	dev = ib_alloc_device(qhca_ib_dev, ibdev);
	if (!dev)
		return -ENOMEM;

	dev->qdev = qhca_dev_of_aux(adev);
	xa_init_flags(&dev->cqs, XA_FLAGS_LOCK_IRQ);
	xa_init_flags(&dev->qps, XA_FLAGS_LOCK_IRQ);
	xa_init_flags(&dev->srqs, XA_FLAGS_LOCK_IRQ);
	xa_init_flags(&dev->counter_sets, XA_FLAGS_ALLOC1);
	ida_init(&dev->pdns);
	ida_init(&dev->xrcdns);
	ida_init(&dev->flows);
	mutex_init(&dev->flush_mutex);
	/*
	 * The work calls only what may be called in interrupts: any queue is
	 * good.
	 */
	INIT_WORK(&dev->flush_work, qhca_flush_work);

	err = qhca_create_eqs(dev);
	if (err)
		goto err_dealloc;

	err = qhca_odp_start(dev);
	if (err)
		goto err_eqs;

	err = qhca_events_start(dev);
	if (err)
		goto err_odp;

	qhca_dma_probe(dev);
	qhca_pool_create(dev);
	qhca_dms_create(dev);

	err = qhca_register(dev);
	if (err)
		goto err_dms;

	err = qhca_port_watch(dev);
	if (err)
		goto err_unregister;

	WRITE_ONCE(dev->registered, true);
	auxiliary_set_drvdata(adev, dev);
	return 0;

err_unregister:
	ib_unregister_device(&dev->ibdev);
err_dms:
	qhca_dms_destroy(dev);
	qhca_pool_destroy(dev);
	qhca_events_stop(dev);
	cancel_work_sync(&dev->flush_work);
err_odp:
	qhca_odp_stop(dev);
err_eqs:
	qhca_destroy_eqs(dev);
err_dealloc:
	ib_dealloc_device(&dev->ibdev);
	return err;
}

static void qhca_ib_remove(struct auxiliary_device *adev)
{
	struct qhca_ib_dev *dev = auxiliary_get_drvdata(adev);

	/*
	 * No device event is dispatched from now on.  Events that are being
	 * dispatched now are dispatched by a notifier chain, under RCU.  The
	 * core queues them before it waits for all that have been queued.
	 */
	WRITE_ONCE(dev->registered, false);
	synchronize_rcu();
	qhca_port_unwatch(dev);

	/*
	 * A function that has vanished leaves requests that only software can
	 * complete, and whose owners wait for the completions.
	 */
	if (qhca_is_dead(dev))
		schedule_work(&dev->flush_work);

	ib_unregister_device(&dev->ibdev);
	qhca_dms_destroy(dev);
	qhca_pool_destroy(dev);
	qhca_events_stop(dev);
	cancel_work_sync(&dev->flush_work);
	qhca_odp_stop(dev);
	qhca_destroy_eqs(dev);

	WARN_ON(!xa_empty(&dev->cqs));
	WARN_ON(!xa_empty(&dev->qps));
	WARN_ON(!xa_empty(&dev->srqs));
	WARN_ON(!xa_empty(&dev->counter_sets));
	ida_destroy(&dev->pdns);
	ida_destroy(&dev->xrcdns);
	ida_destroy(&dev->flows);
	ib_dealloc_device(&dev->ibdev);
}

static const struct auxiliary_device_id qhca_ib_ids[] = {
	{ .name = "qhca." QHCA_AUX_RDMA },
	{ }
};
MODULE_DEVICE_TABLE(auxiliary, qhca_ib_ids);

static struct auxiliary_driver qhca_ib_driver = {
	.name = "rdma",
	.probe = qhca_ib_probe,
	.remove = qhca_ib_remove,
	.id_table = qhca_ib_ids,
};
module_auxiliary_driver(qhca_ib_driver);

MODULE_DESCRIPTION("RDMA driver for the qhca host channel adapter");
MODULE_LICENSE("Dual BSD/GPL");
