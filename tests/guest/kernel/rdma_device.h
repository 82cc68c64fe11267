/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Finds the RDMA device of a network interface.
 */
#ifndef QHCA_TEST_RDMA_DEVICE_H
#define QHCA_TEST_RDMA_DEVICE_H

#include <linux/netdevice.h>
#include <rdma/ib_verbs.h>

/* NULL: there is none.  The caller ends with ib_device_put(). */
static inline struct ib_device *find_rdma_device(const char *netdev)
{
	struct net_device *ndev = dev_get_by_name(&init_net, netdev);
	struct ib_device *dev;

	if (!ndev)
		return NULL;
	dev = ib_device_get_by_netdev(ndev, RDMA_DRIVER_UNKNOWN);
	dev_put(ndev);
	return dev;
}

#endif
