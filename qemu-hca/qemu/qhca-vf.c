/*
 * qhca adapter: virtual functions
 *
 * QEMU makes the virtual functions when it realizes the physical one, and shows
 * them to the guest while VF Enable is set.  Engine, threads and netdev are the
 * physical function's, so each virtual function holds a reference to it.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/bitops.h"
#include "qapi/error.h"
#include "hw/pci/pci.h"
#include "hw/pci/pci_ids.h"
#include "hw/pci/pcie.h"
#include "hw/pci/pcie_sriov.h"
#include "migration/vmstate.h"
#include "qhca-dev.h"

#define QHCA_SRIOV_OFFSET   0x170
#define QHCA_VF_OFFSET      1       /* from the physical function */
#define QHCA_VF_STRIDE      1

/*
 * The address is derived from the physical function's, so that it is as unique
 * and as stable as that one.  It is locally administered, and the virtual
 * functions of an adapter differ in the last octet.
 */
static void qhca_vf_mac(QhcaState *s, unsigned int vf, uint8_t *mac)
{
    g_autoptr(GChecksum) sum = g_checksum_new(G_CHECKSUM_SHA256);
    uint8_t digest[32];
    size_t len = sizeof(digest);

    g_checksum_update(sum, s->conf.macaddr.a, sizeof(s->conf.macaddr.a));
    g_checksum_get_digest(sum, digest, &len);
    memcpy(mac, digest, 5);
    mac[0] = (mac[0] & ~0x03) | 0x02;
    mac[5] = vf;
}

static bool qhca_vf_create_function(QhcaFunction *f, Error **errp)
{
    QhcaState *s = f->s;
    struct qhca_config cfg = *f->cfg;
    char err[160] = "";

    qhca_vf_mac(s, f->gvmi - 1, cfg.mac);
    cfg.vf_blocks = s->vf_blocks[f->gvmi - 1];
    cfg.devmem_size = f->devmem_size;
    cfg.devmem = f->devmem_size ? memory_region_get_ram_ptr(&f->devmem) : NULL;
    if (!qhca_vf_create(s->hca, f->gvmi, &cfg, err, sizeof(err))) {
        error_setg(errp, "a virtual function's %s", err);
        return false;
    }
    return true;
}

static void qhca_vf_config_write(PCIDevice *dev, uint32_t addr, uint32_t value,
                                 int len)
{
    qhca_function_config_write(&QHCA_VF(dev)->fn, addr, value, len);
}

static void qhca_vf_reset_hold(Object *obj, ResetType type)
{
    qhca_function_reset_hold(&QHCA_VF(obj)->fn);
}

/* The physical function is being realized: no other thread knows it yet. */
static void qhca_vf_realize(PCIDevice *dev, Error **errp)
{
    QhcaFunction *f = &QHCA_VF(dev)->fn;
    QhcaState *s = QHCA(pcie_sriov_get_pf(dev));

    object_ref(OBJECT(s));
    qhca_function_init(f, s, dev, pcie_sriov_vf_number(dev) + 1, &s->vf_cfg);
    f->devmem_size = s->vf_devmem_size;
    dev->config_write = qhca_vf_config_write;
    if (!qhca_init_devmem(f, errp)) {
        return;
    }
    if (!qhca_vf_create_function(f, errp) || !qhca_init_caps(f, errp)) {
        goto no_caps;
    }
    if (!qhca_init_bars(f, errp)) {
        goto no_bars;
    }
    s->fn[f->gvmi] = f;
    qhca_dma_init(f);
    return;

no_bars:
    qhca_exit_caps(f);
no_caps:
    qhca_exit_devmem(f);
}

static void qhca_vf_exit(PCIDevice *dev)
{
    QhcaFunction *f = &QHCA_VF(dev)->fn;
    QhcaState *s = f->s;

    qhca_lock(s);
    if (s->hca) {
        qhca_drop_pending(f);
        qhca_vf_enable(s->hca, f->gvmi, false, qhca_now(s));
    }
    s->fn[f->gvmi] = NULL;
    qhca_leave_undone(s);
    qhca_dma_exit(f);
    qhca_exit_bars(f);
    qhca_exit_caps(f);
    qhca_exit_devmem(f);
}

static void qhca_vf_finalize(Object *obj)
{
    QhcaFunction *f = &QHCA_VF(obj)->fn;

    if (f->s) {
        object_unref(OBJECT(f->s));
    }
}

/*
 * ------------------------------------------------------------------------
 * The physical function's part
 */

/* What is not a property of the virtual functions is as the PF has it. */
static void qhca_vf_set_limits(QhcaState *s)
{
    struct qhca_config vf = s->vf_cfg;

    s->vf_cfg = s->cfg;
    s->vf_cfg.features = qhca_link_features(s);
    s->vf_cfg.num_vectors = vf.num_vectors;
    s->vf_cfg.num_db_pages = vf.num_db_pages;
    s->vf_cfg.log_max_pt = vf.log_max_pt;
    s->vf_cfg.log_max_qp = vf.log_max_qp;
    s->vf_cfg.log_max_cq = vf.log_max_cq;
    s->vf_cfg.log_max_srq = vf.log_max_srq;
    s->vf_cfg.num_gids = vf.num_gids;
}

bool qhca_vfs_init(QhcaState *s, Error **errp)
{
    PCIDevice *dev = PCI_DEVICE(s);

    if (!s->sriov_vfs) {
        return true;
    }
    if (!pci_bus_is_express(pci_get_bus(dev))) {
        error_setg(errp, "sriov-vfs needs a PCI Express bus");
        return false;
    }
    qhca_vf_set_limits(s);
    if (!pcie_sriov_pf_init(dev, QHCA_SRIOV_OFFSET, TYPE_QHCA_VF,
                            QHCA_PCI_VF_DEVICE_ID, s->sriov_vfs, s->sriov_vfs,
                            QHCA_VF_OFFSET, QHCA_VF_STRIDE, errp)) {
        return false;
    }
    pcie_sriov_pf_init_vf_bar(dev, QHCA_BAR_REGS, PCI_BASE_ADDRESS_MEM_TYPE_64,
                              QHCA_BAR_REGS_SIZE);
    pcie_sriov_pf_init_vf_bar(dev, QHCA_BAR_DOORBELLS,
                              PCI_BASE_ADDRESS_MEM_TYPE_64,
                              (uint64_t)s->vf_cfg.num_db_pages *
                              QHCA_DB_PAGE_SIZE);
    if (s->vf_devmem_size) {
        pcie_sriov_pf_init_vf_bar(dev, QHCA_BAR_DEVMEM,
                                  PCI_BASE_ADDRESS_MEM_TYPE_64 |
                                  PCI_BASE_ADDRESS_MEM_PREFETCH,
                                  s->vf_devmem_size);
    }
    return true;
}

void qhca_vfs_exit(QhcaState *s)
{
    if (s->sriov_vfs) {
        pcie_sriov_pf_exit(PCI_DEVICE(s));
    }
}

void qhca_vf_follow(QhcaFunction *f)
{
    QhcaState *s = f->s;

    qhca_vf_enable(s->hca, f->gvmi, f->dev->enabled, qhca_now(s));
}

static void qhca_vf_class_init(ObjectClass *klass, QhcaClassData *data)
{
    DeviceClass *dc = DEVICE_CLASS(klass);
    PCIDeviceClass *k = PCI_DEVICE_CLASS(klass);

    k->realize = qhca_vf_realize;
    k->exit = qhca_vf_exit;
    k->vendor_id = QHCA_PCI_VENDOR_ID;
    k->device_id = QHCA_PCI_VF_DEVICE_ID;
    k->revision = QHCA_PCI_REVISION;
    k->class_id = PCI_CLASS_NETWORK_ETHERNET;
    RESETTABLE_CLASS(klass)->phases.hold = qhca_vf_reset_hold;
    dc->desc = "virtual function of an RDMA host channel adapter";
    dc->vmsd = &qhca_vf_vmstate;
    dc->user_creatable = false;
    set_bit(DEVICE_CATEGORY_NETWORK, dc->categories);
}

static QhcaInterfaceInfo qhca_vf_interfaces[] = {
    { INTERFACE_PCIE_DEVICE },
    { }
};

static const TypeInfo qhca_vf_info = {
    .name = TYPE_QHCA_VF,
    .parent = TYPE_PCI_DEVICE,
    .instance_size = sizeof(QhcaVfState),
    .instance_finalize = qhca_vf_finalize,
    .class_init = qhca_vf_class_init,
    .interfaces = qhca_vf_interfaces,
};

void qhca_vf_register(void)
{
    type_register_static(&qhca_vf_info);
}
