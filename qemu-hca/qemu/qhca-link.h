/*
 * qhca adapter: the peer of a link over shared memory
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef HW_RDMA_QHCA_LINK_H
#define HW_RDMA_QHCA_LINK_H

#include "qemu/rcu.h"
#include "qhca-dev.h"
#include "../link/intro.h"

struct QhcaPeer {
    struct rcu_head rcu;
    int fd;                         /* wakes the peer; its end is the link's */
    struct hca_pair_memory mem;
};

#endif /* HW_RDMA_QHCA_LINK_H */
