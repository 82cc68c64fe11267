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

/* What the device's thread waits for: the numbers in its epoll set. */
enum {
    QHCA_WAIT_CALL,
    QHCA_WAIT_NAP,
    QHCA_WAIT_PEER,                 /* the first; each later one has the next number */
};

struct QhcaPeer {
    struct rcu_head rcu;
    uint64_t number;
    int fd;                         /* wakes the peer; its end is the link's */
    struct hca_pair_memory mem;
};

#endif /* HW_RDMA_QHCA_LINK_H */
