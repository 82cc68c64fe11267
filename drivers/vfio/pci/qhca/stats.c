// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What is pinned, and why: attributes of the PCI device, in the folder stage2.
 * Pages are of 4096 bytes.
 */
#include <linux/sysfs.h>

#include "qhca_vfio.h"

static struct qhca_vfio *qhca_vfio_of_dev(struct device *dev)
{
	struct vfio_pci_core_device *core = dev_get_drvdata(dev);

	return container_of(core, struct qhca_vfio, core);
}

#define QHCA_S2_ATTR(_name, _value)					\
static ssize_t _name##_show(struct device *dev,				\
			    struct device_attribute *attr, char *buf)	\
{									\
	struct qhca_vfio *vf = qhca_vfio_of_dev(dev);			\
									\
	return sysfs_emit(buf, "%lu\n", (unsigned long)(_value));	\
}									\
static DEVICE_ATTR_RO(_name)

QHCA_S2_ATTR(pages_fault, READ_ONCE(vf->stats.pages_fault));
QHCA_S2_ATTR(pages_device, READ_ONCE(vf->stats.pages_device));
QHCA_S2_ATTR(large_pages, READ_ONCE(vf->stats.large));
QHCA_S2_ATTR(nodes, atomic_long_read(&vf->stats.nodes));
QHCA_S2_ATTR(tables, atomic_long_read(&vf->stats.tables));
QHCA_S2_ATTR(faults, READ_ONCE(vf->stats.faults));
QHCA_S2_ATTR(pin_requests, READ_ONCE(vf->stats.pin_requests));
QHCA_S2_ATTR(refused, READ_ONCE(vf->stats.refused));
QHCA_S2_ATTR(invalidations, READ_ONCE(vf->stats.invalidations));
QHCA_S2_ATTR(broken, READ_ONCE(vf->broken));

static struct attribute *qhca_vfio_attrs[] = {
	&dev_attr_pages_fault.attr,
	&dev_attr_pages_device.attr,
	&dev_attr_large_pages.attr,
	&dev_attr_nodes.attr,
	&dev_attr_tables.attr,
	&dev_attr_faults.attr,
	&dev_attr_pin_requests.attr,
	&dev_attr_refused.attr,
	&dev_attr_invalidations.attr,
	&dev_attr_broken.attr,
	NULL
};

static const struct attribute_group qhca_vfio_group = {
	.name = "stage2",
	.attrs = qhca_vfio_attrs,
};

const struct attribute_group *qhca_vfio_groups[] = {
	&qhca_vfio_group,
	NULL
};
