// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A virtual function as a VFIO device.
 *
 * The library of vfio-pci does all that concerns PCI: BARs, interrupts, the
 * configuration space as the user sees it, resets.  This driver differs from
 * vfio-pci in one point: it registers the device with VFIO's emulated IOMMU, as
 * it translates and pins by itself.
 *
 * VFIO makes an IOMMU group for such a device, which fails for a device that has
 * one.  So a function behind an IOMMU of the host is refused.
 */
#include <linux/atomic.h>
#include <linux/dma-mapping.h>
#include <linux/module.h>
#include <linux/rcupdate.h>
#include <linux/wait_bit.h>

#define QHCA_COMPAT_VFIO
#include <linux/qhca/compat.h>

#include "qhca_vfio.h"

/* Devices that are still to be released, by a call of the operation below. */
static atomic_t qhca_vfio_devices = ATOMIC_INIT(0);

static int qhca_vfio_init_dev(struct vfio_device *vdev)
{
	struct qhca_vfio *vf = qhca_vfio_of(vdev);
	int err;

	err = init_srcu_struct(&vf->srcu);
	if (err)
		return err;
	err = vfio_pci_core_init_dev(vdev);
	if (err) {
		cleanup_srcu_struct(&vf->srcu);
		return err;
	}
	mutex_init(&vf->user_lock);
	mutex_init(&vf->row_lock);
	mutex_init(&vf->lock);
	spin_lock_init(&vf->tree_lock);
	spin_lock_init(&vf->master_lock);
	INIT_LIST_HEAD(&vf->dead);
	INIT_LIST_HEAD(&vf->holds);
	init_waitqueue_head(&vf->wait);
	atomic_inc(&qhca_vfio_devices);
	return 0;
}

static void qhca_vfio_release_dev(struct vfio_device *vdev)
{
	struct qhca_vfio *vf = qhca_vfio_of(vdev);

	mutex_destroy(&vf->lock);
	mutex_destroy(&vf->row_lock);
	mutex_destroy(&vf->user_lock);
	vfio_pci_core_release_dev(vdev);
	cleanup_srcu_struct(&vf->srcu);
	if (atomic_dec_and_test(&qhca_vfio_devices))
		wake_up_var(&qhca_vfio_devices);
}

/*
 * An interrupt is a write of the device to where an entry of the MSI-X table says.  The
 * library offers that table to user space because an IOMMU of the host confines those
 * writes, and there is none.  So user space reaches the registers, which are in the
 * same BAR, by read() and write() only, and the library keeps these from the table.
 * The doorbells are in another BAR.
 */
static void qhca_vfio_hide_vectors(struct vfio_pci_core_device *core)
{
	if (core->msix_bar < PCI_STD_NUM_BARS)
		core->bar_mmap_supported[core->msix_bar] = false;
}

static int qhca_vfio_open_device(struct vfio_device *vdev)
{
	struct qhca_vfio *vf = qhca_vfio_of(vdev);
	int err;

	/* This resets the function, with bus mastering off. */
	err = vfio_pci_core_enable(&vf->core);
	if (err)
		return err;
	err = qhca_s2_open(vf);
	if (err) {
		vfio_pci_core_disable(&vf->core);
		return err;
	}
	vfio_pci_core_finish_enable(&vf->core);
	qhca_vfio_hide_vectors(&vf->core);
	return 0;
}

static void qhca_vfio_close_device(struct vfio_device *vdev)
{
	struct qhca_vfio *vf = qhca_vfio_of(vdev);

	qhca_s2_leave(vf);
	/* This switches bus mastering off and resets the function. */
	vfio_pci_core_close_device(vdev);
	qhca_s2_close(vf);
}

static ssize_t qhca_vfio_write(struct vfio_device *vdev, const char __user *buf,
			       size_t count, loff_t *ppos)
{
	if (VFIO_PCI_OFFSET_TO_INDEX(*ppos) == VFIO_PCI_CONFIG_REGION_INDEX)
		return qhca_vfio_write_config(qhca_vfio_of(vdev), buf, count,
					      ppos);
	return vfio_pci_core_write(vdev, buf, count, ppos);
}

static long qhca_vfio_ioctl(struct vfio_device *vdev, unsigned int cmd,
			    unsigned long arg)
{
	if (cmd == VFIO_DEVICE_SET_IRQS)
		return qhca_vfio_set_irqs(qhca_vfio_of(vdev), arg);
	return vfio_pci_core_ioctl(vdev, cmd, arg);
}

static const struct vfio_device_ops qhca_vfio_ops = {
	.name = "qhca-vfio",
	.init = qhca_vfio_init_dev,
	.release = qhca_vfio_release_dev,
	.open_device = qhca_vfio_open_device,
	.close_device = qhca_vfio_close_device,
	.ioctl = qhca_vfio_ioctl,
	QHCA_VFIO_REGION_INFO_OP
	.device_feature = vfio_pci_core_ioctl_feature,
	.read = vfio_pci_core_read,
	.write = qhca_vfio_write,
	.mmap = vfio_pci_core_mmap,
	.request = vfio_pci_core_request,
	.match = vfio_pci_core_match,
	QHCA_VFIO_MATCH_UUID_OP
	.dma_unmap = qhca_s2_unmap,
	.bind_iommufd = vfio_iommufd_emulated_bind,
	.unbind_iommufd = vfio_iommufd_emulated_unbind,
	.attach_ioas = vfio_iommufd_emulated_attach_ioas,
	.detach_ioas = vfio_iommufd_emulated_detach_ioas,
};

static const struct qhca_stage2_ops qhca_vfio_stage2_ops = {
	.fault = qhca_s2_fault,
	.restart = qhca_s2_restart,
};

static int qhca_vfio_check(struct pci_dev *pdev)
{
	if (!pdev->is_virtfn) {
		dev_err(&pdev->dev, "not a virtual function of this machine\n");
		return -ENODEV;
	}
	if (device_iommu_mapped(&pdev->dev)) {
		dev_err(&pdev->dev,
			"behind an IOMMU, where VFIO has no emulated one\n");
		return -EOPNOTSUPP;
	}
	return dma_set_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(64));
}

static int qhca_vfio_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct qhca_vfio *vf;
	int err;

	err = qhca_vfio_check(pdev);
	if (err)
		return err;
	vf = vfio_alloc_device(qhca_vfio, core.vdev, &pdev->dev,
			       &qhca_vfio_ops);
	if (IS_ERR(vf))
		return PTR_ERR(vf);
	err = qhca_s2_faults_init(vf);
	if (err)
		goto put;
	err = qhca_stage2_attach(&vf->s2, pdev, &qhca_vfio_stage2_ops, vf);
	if (err) {
		dev_err(&pdev->dev, "no stage 2: %d\n", err);
		goto exit;
	}
	dev_set_drvdata(&pdev->dev, &vf->core);
	err = vfio_register_emulated_iommu_dev(&vf->core.vdev);
	if (err)
		goto detach;
	return 0;

detach:
	qhca_stage2_detach(&vf->s2);
exit:
	qhca_s2_faults_exit(vf);
put:
	vfio_put_device(&vf->core.vdev);
	return err;
}

static void qhca_vfio_remove(struct pci_dev *pdev)
{
	struct vfio_pci_core_device *core = dev_get_drvdata(&pdev->dev);
	struct qhca_vfio *vf = container_of(core, struct qhca_vfio, core);

	/* This waits until the user has closed the device. */
	vfio_unregister_group_dev(&vf->core.vdev);
	qhca_stage2_detach(&vf->s2);
	qhca_s2_faults_exit(vf);
	qhca_s2_holds_end(vf);
	vfio_put_device(&vf->core.vdev);
}

/* The function was reset, by its user or by the administrator. */
static void qhca_vfio_reset_done(struct pci_dev *pdev)
{
	struct vfio_pci_core_device *core = dev_get_drvdata(&pdev->dev);

	qhca_s2_reset(container_of(core, struct qhca_vfio, core));
}

static const struct pci_error_handlers qhca_vfio_err_handlers = {
	.reset_done = qhca_vfio_reset_done,
	.error_detected = vfio_pci_core_aer_err_detected,
};

static const struct pci_device_id qhca_vfio_ids[] = {
	{ PCI_DRIVER_OVERRIDE_DEVICE_VFIO(QHCA_PCI_VENDOR_ID,
					  QHCA_PCI_VF_DEVICE_ID) },
	{ }
};
MODULE_DEVICE_TABLE(pci, qhca_vfio_ids);

static struct pci_driver qhca_vfio_driver = {
	.name = "qhca-vfio",
	.id_table = qhca_vfio_ids,
	.probe = qhca_vfio_probe,
	.remove = qhca_vfio_remove,
	.err_handler = &qhca_vfio_err_handlers,
	.dev_groups = qhca_vfio_groups,
};

static int __init qhca_vfio_init(void)
{
	return pci_register_driver(&qhca_vfio_driver);
}

static void __exit __maybe_unused qhca_vfio_exit(void)
{
	pci_unregister_driver(&qhca_vfio_driver);
	/* Others may have had the last reference to a device. */
	wait_var_event(&qhca_vfio_devices, !atomic_read(&qhca_vfio_devices));
	/*
	 * All holds have ended, and all devices are released, but a thread that
	 * did so may have been preempted before it left the code of this module.
	 */
	synchronize_rcu_tasks();
}

module_init(qhca_vfio_init);
/*
 * A preemptible kernel without RCU Tasks has nothing that waits for such a thread.
 * There the module stays: one that has no exit cannot be unloaded.
 */
#if !IS_ENABLED(CONFIG_PREEMPTION) || IS_ENABLED(CONFIG_TASKS_RCU)
module_exit(qhca_vfio_exit);
#endif

MODULE_DESCRIPTION("qhca virtual functions for virtual machines");
MODULE_LICENSE("Dual BSD/GPL");
