// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The PCI function: probe, remove, resets, errors, suspend.
 */
#include <linux/dma-mapping.h>
#include <linux/module.h>

#include "core.h"
#include "netdev.h"

static int qhca_check_version(struct qhca_core *core)
{
	u32 magic = qhca_read(core, QHCA_REG_MAGIC);
	u32 version = qhca_read(core, QHCA_REG_VERSION);

	/* The PCI ID is from a range for experiments, which others may use. */
	if (magic != QHCA_MAGIC) {
		dev_err(qhca_device(core), "not a qhca device: magic %#x\n",
			magic);
		return -ENODEV;
	}
	if (version >> 16 != QHCA_ABI_MAJOR) {
		dev_err(qhca_device(core), "ABI %u.%u, this driver has %u.%u\n",
			version >> 16, version & 0xffff, QHCA_ABI_MAJOR,
			QHCA_ABI_MINOR);
		return -ENODEV;
	}
	return 0;
}

static int qhca_map_bars(struct qhca_core *core)
{
	struct qhca_dev *qdev = &core->qdev;
	struct pci_dev *pdev = qdev->pdev;

	if (pci_resource_len(pdev, QHCA_BAR_REGS) < QHCA_REG_END ||
	    pci_resource_len(pdev, QHCA_BAR_DOORBELLS) < QHCA_DB_PAGE_SIZE) {
		dev_err(&pdev->dev, "BAR missing or too small\n");
		return -ENODEV;
	}
	core->regs = pci_iomap(pdev, QHCA_BAR_REGS, 0);
	if (!core->regs)
		return -ENOMEM;
	qdev->db_phys = pci_resource_start(pdev, QHCA_BAR_DOORBELLS);
	qdev->db_kernel = pci_iomap(pdev, QHCA_BAR_DOORBELLS,
				    QHCA_DB_PAGE_SIZE);
	if (!qdev->db_kernel) {
		pci_iounmap(pdev, core->regs);
		return -ENOMEM;
	}
	return 0;
}

static void qhca_unmap_bars(struct qhca_core *core)
{
	pci_iounmap(core->qdev.pdev, core->qdev.db_kernel);
	pci_iounmap(core->qdev.pdev, core->regs);
}

static int qhca_alloc_vectors(struct qhca_core *core)
{
	unsigned int cpus = num_online_cpus();
	unsigned int most = min(1 + min(cpus, QHCA_ETH_MAX_QUEUES) + cpus,
				QHCA_MAX_VECTORS);
	int n;

	core->num_cpus = cpus;
	n = pci_alloc_irq_vectors(core->qdev.pdev, 1, most, PCI_IRQ_MSIX);
	if (n < 0) {
		dev_err(qhca_device(core), "no MSI-X vectors: %d\n", n);
		return n;
	}
	core->num_vectors = n;
	return 0;
}

/* Which function of the adapter this is, and what depends on that. */
static void qhca_identify(struct qhca_core *core)
{
	core->qdev.gvmi = qhca_read(core, QHCA_REG_GVMI);
	if (qhca_is_vf(core))
		core->qdev.pool_blocks = QHCA_VF_POOL_BLOCKS;
}

static int qhca_pci_setup(struct qhca_core *core)
{
	struct pci_dev *pdev = core->qdev.pdev;
	int err;

	err = pci_enable_device_mem(pdev);
	if (err)
		return err;
	err = dma_set_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(64));
	if (err)
		goto disable;
	err = pci_request_mem_regions(pdev, QHCA_DRV_NAME);
	if (err)
		goto disable;
	err = qhca_map_bars(core);
	if (err)
		goto release;
	err = qhca_check_version(core);
	if (err)
		goto unmap;
	qhca_identify(core);
	err = qhca_alloc_vectors(core);
	if (err)
		goto unmap;
	/* qhca_slot_reset() restores this state. */
	pci_save_state(pdev);
	core->saved_state = pci_store_saved_state(pdev);
	if (!core->saved_state) {
		err = -ENOMEM;
		goto free_vectors;
	}
	return 0;

free_vectors:
	pci_free_irq_vectors(pdev);
unmap:
	qhca_unmap_bars(core);
release:
	pci_release_mem_regions(pdev);
disable:
	pci_disable_device(pdev);
	return err;
}

static void qhca_pci_teardown(struct qhca_core *core)
{
	struct pci_dev *pdev = core->qdev.pdev;

	kfree(core->saved_state);
	pci_free_irq_vectors(pdev);
	qhca_unmap_bars(core);
	pci_release_mem_regions(pdev);
	/* The function is disabled if a PCI error was not recovered from. */
	if (pci_is_enabled(pdev))
		pci_disable_device(pdev);
}

static int qhca_core_init(struct qhca_core *core, struct pci_dev *pdev)
{
	core->qdev.pdev = pdev;
	core->qdev.state = QHCA_DEV_DOWN;
	core->qdev.pool_blocks = QHCA_POOL_BLOCKS;
	core->qdev.pool_block_size = QHCA_POOL_BLOCK_SIZE;
	core->unsolicited_acks = true;
	core->rdma_enabled = true;
	core->qdev.threshold_percent[QHCA_THRESHOLD_CQ] = QHCA_CQ_THRESHOLD;
	core->qdev.threshold_percent[QHCA_THRESHOLD_RQ] = QHCA_RQ_THRESHOLD;
	core->qdev.threshold_percent[QHCA_THRESHOLD_SRQ] = QHCA_RQ_THRESHOLD;
	spin_lock_init(&core->state_lock);
	spin_lock_init(&core->clock_lock);
	qhca_vfs_init(core);
	qhca_stage2_init(core);
	ATOMIC_INIT_NOTIFIER_HEAD(&core->notifier);
	INIT_DELAYED_WORK(&core->recover_work, qhca_recover_work);
	INIT_DELAYED_WORK(&core->health_work, qhca_health_work);
	/*
	 * Each device has a workqueue of its own, because recovery may wait for
	 * seconds, and so may work items that send commands to a device that
	 * does not answer; neither may delay other devices.  The work items may
	 * sleep, and need no processor in particular.  There is one of each, so
	 * their number needs no limit.  Recovery allocates memory as a probe
	 * does, so a rescuer could not guarantee that it proceeds.
	 */
	core->wq = alloc_workqueue("qhca-%s", WQ_UNBOUND, 0, pci_name(pdev));
	return core->wq ? 0 : -ENOMEM;
}

static int qhca_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct qhca_core *core;
	struct devlink *devlink;
	int err;

	devlink = devlink_alloc(&qhca_devlink_ops, sizeof(*core), &pdev->dev);
	if (!devlink)
		return -ENOMEM;
	core = devlink_priv(devlink);
	err = qhca_core_init(core, pdev);
	if (err)
		goto free_devlink;
	err = qhca_pci_setup(core);
	if (err)
		goto free_wq;
	err = qhca_cmdq_alloc(core);
	if (err)
		goto teardown_pci;
	pci_set_drvdata(pdev, core);
	devl_lock(devlink);
	err = qhca_start(core);
	if (!err) {
		err = qhca_params_register(core);
		if (!err) {
			err = qhca_reporters_create(core);
			if (err)
				qhca_params_unregister(core);
		}
		if (err)
			qhca_stop(core);
	}
	/* A recovery that waits for the lock sees this and starts nothing. */
	if (err)
		set_bit(QHCA_CORE_REMOVING, &core->flags);
	devl_unlock(devlink);
	if (err)
		goto free_netdev;
	devlink_register(devlink);
	set_bit(QHCA_CORE_REPORTING, &core->flags);
	return 0;

free_netdev:
	/* A driver of a virtual function may have found this one meanwhile. */
	qhca_vfs_evict(core);
	pci_set_drvdata(pdev, NULL);
	disable_delayed_work_sync(&core->recover_work);
	qhca_netdev_destroy(core);
	qhca_cmdq_free(core);
teardown_pci:
	qhca_pci_teardown(core);
free_wq:
	qhca_vfs_fini(core);
	destroy_workqueue(core->wq);
free_devlink:
	devlink_free(devlink);
	return err;
}

static void qhca_remove(struct pci_dev *pdev)
{
	struct qhca_core *core = pci_get_drvdata(pdev);
	struct devlink *devlink = priv_to_devlink(core);

	qhca_vfs_remove(core);
	devl_lock(devlink);
	set_bit(QHCA_CORE_REMOVING, &core->flags);
	devl_unlock(devlink);
	/* These report to devlink, and take its lock. */
	disable_delayed_work_sync(&core->recover_work);
	qhca_netdev_disable_reports(core);
	clear_bit(QHCA_CORE_REPORTING, &core->flags);
	devlink_unregister(devlink);
	/* If the device is unplugged, nobody should wait for its answers. */
	if (!qhca_is_present(core))
		qhca_die(core, "removed");
	devl_lock(devlink);
	qhca_stop(core);
	qhca_params_unregister(core);
	qhca_netdev_destroy(core);
	qhca_reporters_destroy(core);
	devl_unlock(devlink);
	/* The driver of a virtual function that has stayed must find nothing. */
	pci_set_drvdata(pdev, NULL);
	qhca_cmdq_free(core);
	qhca_pci_teardown(core);
	qhca_vfs_fini(core);
	destroy_workqueue(core->wq);
	devlink_free(devlink);
}

/*
 * The machine is shut down, or another kernel takes over.  The device must stop
 * accessing memory, and nothing else matters, so the driver does not wait for
 * users.
 *
 * It does wait for a start or stop under way, whose commands fail once the
 * device is marked dead, because a start may be about to revive the device.  No
 * start follows.
 */
static void qhca_shutdown(struct pci_dev *pdev)
{
	struct qhca_core *core = pci_get_drvdata(pdev);
	struct devlink *devlink = priv_to_devlink(core);

	/* A stop under way may wait for completions, which this flushes. */
	qhca_die(core, "shutdown");
	disable_delayed_work_sync(&core->recover_work);
	devl_lock(devlink);
	set_bit(QHCA_CORE_REMOVING, &core->flags);
	qhca_mark_dead(core);
	qhca_silence(core);
	devl_unlock(devlink);
}

static void qhca_freeze(struct qhca_core *core)
{
	struct devlink *devlink = priv_to_devlink(core);

	devl_lock(devlink);
	set_bit(QHCA_CORE_FROZEN, &core->flags);
	qhca_stop(core);
	devl_unlock(devlink);
}

static int qhca_thaw(struct qhca_core *core)
{
	struct devlink *devlink = priv_to_devlink(core);
	int err;

	devl_lock(devlink);
	clear_bit(QHCA_CORE_FROZEN, &core->flags);
	core->recoveries = 0;
	err = qhca_start(core);
	if (err) {
		dev_err(qhca_device(core), "not up after reset: %d\n", err);
		qhca_recover_later(core);
	}
	devl_unlock(devlink);
	return err;
}

static void qhca_reset_prepare(struct pci_dev *pdev)
{
	qhca_freeze(pci_get_drvdata(pdev));
}

static void qhca_reset_done(struct pci_dev *pdev)
{
	qhca_thaw(pci_get_drvdata(pdev));
}

static pci_ers_result_t qhca_error_detected(struct pci_dev *pdev,
					    pci_channel_state_t state)
{
	struct qhca_core *core = pci_get_drvdata(pdev);

	if (state == pci_channel_io_normal)
		return PCI_ERS_RESULT_CAN_RECOVER;
	qhca_die(core, "PCI error");
	qhca_freeze(core);
	/* Several errors may be reported before the slot is reset. */
	if (pci_is_enabled(pdev))
		pci_disable_device(pdev);
	return state == pci_channel_io_perm_failure ?
	       PCI_ERS_RESULT_DISCONNECT : PCI_ERS_RESULT_NEED_RESET;
}

/*
 * The slot was reset.  Restore the device's configuration, and check whether
 * the device answers.  qhca_resume_io() starts it when all functions of the bus
 * are back.
 */
static pci_ers_result_t qhca_slot_reset(struct pci_dev *pdev)
{
	struct qhca_core *core = pci_get_drvdata(pdev);

	if (!pci_is_enabled(pdev) && pci_enable_device_mem(pdev)) {
		dev_err(&pdev->dev, "not enabled after slot reset\n");
		return PCI_ERS_RESULT_DISCONNECT;
	}
	/*
	 * FLR, suspend and hibernation use up what the PCI core has saved, and
	 * some kernels forget it on the way back.  So the driver has a copy.
	 */
	if (pci_load_saved_state(pdev, core->saved_state)) {
		dev_err(&pdev->dev, "configuration not restored\n");
		return PCI_ERS_RESULT_DISCONNECT;
	}
	pci_restore_state(pdev);
	if (!pci_device_is_present(pdev) || qhca_check_version(core)) {
		dev_err(&pdev->dev, "no answer after slot reset\n");
		return PCI_ERS_RESULT_DISCONNECT;
	}
	return PCI_ERS_RESULT_RECOVERED;
}

static void qhca_resume_io(struct pci_dev *pdev)
{
	struct qhca_core *core = pci_get_drvdata(pdev);

	if (test_bit(QHCA_CORE_FROZEN, &core->flags))
		qhca_thaw(core);
}

static const struct pci_error_handlers qhca_err_handlers = {
	.error_detected = qhca_error_detected,
	.slot_reset = qhca_slot_reset,
	.resume = qhca_resume_io,
	.reset_prepare = qhca_reset_prepare,
	.reset_done = qhca_reset_done,
};

static int qhca_suspend(struct device *dev)
{
	qhca_freeze(dev_get_drvdata(dev));
	return 0;
}

static int qhca_resume(struct device *dev)
{
	return qhca_thaw(dev_get_drvdata(dev));
}

static DEFINE_SIMPLE_DEV_PM_OPS(qhca_pm_ops, qhca_suspend, qhca_resume);

static const struct pci_device_id qhca_pci_ids[] = {
	{ PCI_DEVICE(QHCA_PCI_VENDOR_ID, QHCA_PCI_DEVICE_ID) },
	{ PCI_DEVICE(QHCA_PCI_VENDOR_ID, QHCA_PCI_VF_DEVICE_ID) },
	{ }
};
MODULE_DEVICE_TABLE(pci, qhca_pci_ids);

static struct pci_driver qhca_pci_driver = {
	.name = QHCA_DRV_NAME,
	.id_table = qhca_pci_ids,
	.probe = qhca_probe,
	.remove = qhca_remove,
	.shutdown = qhca_shutdown,
	.sriov_configure = qhca_sriov_configure,
	.err_handler = &qhca_err_handlers,
	.driver.pm = pm_sleep_ptr(&qhca_pm_ops),
};
module_pci_driver(qhca_pci_driver);

/* The physical function of @vf, whose driver is being probed or is bound. */
struct qhca_core *qhca_core_of_vf(struct pci_dev *vf)
{
	return pci_iov_get_pf_drvdata(vf, &qhca_pci_driver);
}

MODULE_DESCRIPTION("qhca converged Ethernet and RDMA adapter");
MODULE_LICENSE("Dual BSD/GPL");
