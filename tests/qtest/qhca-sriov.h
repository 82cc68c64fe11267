/*
 * What the qtests of the qhca RDMA adapter's virtual functions share
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef TESTS_QTEST_QHCA_SRIOV_H
#define TESTS_QTEST_QHCA_SRIOV_H

#include "qhca-qtest.h"

/* The SR-IOV capability of a physical function. */
typedef struct Sriov {
    Hca *h;
    uint64_t cap;       /* its address in ECAM */
    uint64_t bar[6];    /* of all virtual functions, or 0 */
    uint64_t size[6];   /* of one */
} Sriov;

/* The address of an extended capability in ECAM, or 0. */
uint64_t ext_capability(Hca *h, uint16_t id);

/* A guest with one device that has @vfs virtual functions. */
Hca *hca_start_with_vfs(unsigned int vfs, const char *options);
/* Size the virtual functions' BARs, and give them addresses. */
void sriov_open(Hca *h, Sriov *s);
/* The same addresses again, after a reset. */
void sriov_map(Sriov *s);
void sriov_enable(Sriov *s, unsigned int vfs);
void sriov_disable(Sriov *s);
/* STATUS of virtual function @n, as the engine reports it to the PF's driver. */
uint32_t sriov_status(Sriov *s, unsigned int n);
/* Virtual function @n, which is enabled: to be used as a device of its own. */
Hca *vf_new(Sriov *s, unsigned int n);
/* Give the function what a reset took from its configuration space. */
void vf_map(Hca *vf);
void vf_enable_msix(Hca *vf);
void vf_flr(Hca *vf);
void vf_free(Hca *vf);

#endif /* TESTS_QTEST_QHCA_SRIOV_H */
