/*
 * qhca adapter: the PCI function
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/guest-random.h"
#include "qemu/module.h"
#include "qemu/uuid.h"
#include "qapi/error.h"
#include "hw/pci/pci.h"
#include "hw/pci/pci_ids.h"
#include "hw/qdev-properties.h"
#include "migration/vmstate.h"
#include "system/system.h"
#include "qhca-dev.h"

/*
 * On a link over shared memory a vCPU does the device's work while its program polls.  On a
 * netdev it yields at most, if the host lets it.  Software is to know which, since the two help
 * different programs, and a hint that does nothing takes time.
 */
uint64_t qhca_link_features(QhcaState *s)
{
    uint64_t none = s->link.path ? QHCA_FEAT_STREAM_HINT : QHCA_FEAT_POLL_HINT;

    if (!s->yield_max_us) {
        none |= QHCA_FEAT_STREAM_HINT;
    }
    return s->cfg.features & ~none;
}

static bool qhca_create_engine(QhcaState *s, Error **errp)
{
    static const struct qhca_host_ops ops = {
        .dma_read = qhca_host_dma_read,
        .dma_write = qhca_host_dma_write,
        .dma_write_release = qhca_host_dma_write_release,
        .raise_irq = qhca_host_raise_irq,
        .tx_reserve = qhca_host_tx_reserve,
        .tx_commit = qhca_host_tx_commit,
        .may_dma = qhca_host_may_dma,
        .trace = qhca_host_trace,
    };
    struct qhca_config cfg;
    struct qhca_hca *hca;
    char err[160] = "";

    memcpy(s->cfg.mac, s->conf.macaddr.a, sizeof(s->cfg.mac));
    s->cfg.devmem_size = s->pf.devmem_size;
    s->cfg.devmem = s->pf.devmem_size ?
                    memory_region_get_ram_ptr(&s->pf.devmem) : NULL;
    s->cfg.seed = s->inject.seed;
    cfg = s->cfg;
    cfg.features = qhca_link_features(s);
    qemu_guest_getrandom_nofail(&cfg.secret, sizeof(cfg.secret));
    if (cfg.max_bundle <= QHCA_MAX_BUNDLE) {
        /* A slot of shared memory has room for one packet. */
        cfg.max_bundle = s->link.path ? 0 :
                         MIN(cfg.max_bundle,
                             MIN(s->tx_ring_size, s->rx_ring_size) / 8);
    }
    hca = qhca_create(&cfg, &ops, s, err, sizeof(err));
    if (!hca) {
        error_setg(errp, "%s", err);
        return false;
    }
    if (!qhca_inject_set(hca, &s->inject, err, sizeof(err)) ||
        !qhca_fetch_cost_set(hca, &s->fetch_cost, err, sizeof(err))) {
        error_setg(errp, "%s", err);
        qhca_destroy(hca);
        return false;
    }
    s->hca = hca;
    return true;
}

/*
 * Choose the address of a device without the property mac.  QEMU's own default
 * counts from the same address in each process, so two guests joined back to
 * back would have the same address.  Ethernet drivers hide that for a while,
 * but RDMA does not work.  So the last three octets are random or, if the VM
 * has a UUID, the same for this device each time the VM starts.
 */
static void qhca_default_mac(QhcaState *s)
{
    static const MACAddr unset = { };
    uint8_t *mac = s->conf.macaddr.a;
    g_autofree char *path = NULL;
    uint8_t digest[32];
    size_t len = sizeof(digest);

    if (memcmp(mac, &unset, sizeof(unset))) {
        qemu_macaddr_default_if_unset(&s->conf.macaddr);    /* it is in use */
        return;
    }
    if (qemu_uuid_set) {
        g_autoptr(GChecksum) sum = g_checksum_new(G_CHECKSUM_SHA256);

        path = object_get_canonical_path(OBJECT(s));
        g_checksum_update(sum, qemu_uuid.data, sizeof(qemu_uuid.data));
        g_checksum_update(sum, (const guchar *)path, -1);
        g_checksum_get_digest(sum, digest, &len);
    } else {
        qemu_guest_getrandom_nofail(digest, sizeof(digest));
    }
    memcpy(mac, (const uint8_t[]) { 0x52, 0x54, 0x00 }, 3);
    memcpy(mac + 3, digest, 3);
    if (mac[3] == 0x12 && mac[4] == 0x34) {
        mac[3] = 0x13;      /* 12:34 is the range of QEMU's own default */
    }
}

static void qhca_config_write(PCIDevice *dev, uint32_t addr, uint32_t value,
                              int len)
{
    qhca_function_config_write(&QHCA(dev)->pf, addr, value, len);
}

static void qhca_reset_hold(Object *obj, ResetType type)
{
    qhca_function_reset_hold(&QHCA(obj)->pf);
}

static void qhca_pci_realize(PCIDevice *dev, Error **errp)
{
    QhcaState *s = QHCA(dev);

    if (!qhca_props_check(s, errp)) {
        return;
    }
    dev->config_write = qhca_config_write;
    qhca_default_mac(s);

    if (!qhca_init_devmem(&s->pf, errp)) {
        return;
    }
    if (!qhca_create_engine(s, errp)) {
        goto no_engine;
    }
    if (!qhca_init_caps(&s->pf, errp)) {
        goto no_caps;
    }
    if (!qhca_init_bars(&s->pf, errp)) {
        goto no_bars;
    }
    if (!qhca_vfs_init(s, errp)) {
        goto no_vfs;
    }
    if (!qhca_link_init(s, errp)) {
        goto no_link;
    }
    qhca_dma_init(&s->pf);
    qhca_thread_start(s);
    if (!s->link.path) {
        qhca_net_init(s);
    }
    qhca_monitor_add(s);
    return;

no_link:
    qhca_vfs_exit(s);
no_vfs:
    qhca_exit_bars(&s->pf);
no_bars:
    qhca_exit_caps(&s->pf);
no_caps:
    qhca_destroy(s->hca);
    s->hca = NULL;
no_engine:
    qhca_exit_devmem(&s->pf);
}

/* The BARs have left the address space, but a vCPU may still be in one. */
static void qhca_pci_exit(PCIDevice *dev)
{
    QhcaState *s = QHCA(dev);
    struct qhca_hca *hca = s->hca;

    qhca_monitor_remove(s);
    qhca_lock(s);
    s->hca = NULL;
    qhca_leave_undone(s);
    if (s->link.path) {
        qhca_link_exit(s);
    } else {
        qhca_net_exit(s);
    }
    qhca_thread_stop(s);
    qhca_link_free(s);
    qhca_vfs_exit(s);
    qhca_dma_exit(&s->pf);
    qhca_destroy(hca);
    qhca_exit_bars(&s->pf);
    qhca_exit_caps(&s->pf);
    qhca_exit_devmem(&s->pf);
}

static void qhca_instance_init(Object *obj)
{
    QhcaState *s = QHCA(obj);

    qhca_thread_init(s);
    qhca_props_instance_init(s);
    qhca_function_init(&s->pf, s, PCI_DEVICE(obj), 0, &s->cfg);
    s->fn[0] = &s->pf;
    PCI_DEVICE(obj)->cap_present |= QEMU_PCI_CAP_EXPRESS;
}

static void qhca_instance_finalize(Object *obj)
{
    qhca_dump_finalize(QHCA(obj));
    qhca_timeline_finalize(QHCA(obj));
    qhca_link_finalize(QHCA(obj));
    qhca_thread_finalize(QHCA(obj));
}

static void qhca_class_init(ObjectClass *klass, QhcaClassData *data)
{
    DeviceClass *dc = DEVICE_CLASS(klass);
    PCIDeviceClass *k = PCI_DEVICE_CLASS(klass);

    k->realize = qhca_pci_realize;
    k->exit = qhca_pci_exit;
    k->vendor_id = QHCA_PCI_VENDOR_ID;
    k->device_id = QHCA_PCI_DEVICE_ID;
    k->revision = QHCA_PCI_REVISION;
    k->class_id = PCI_CLASS_NETWORK_ETHERNET;
    RESETTABLE_CLASS(klass)->phases.hold = qhca_reset_hold;
    dc->desc = "RDMA host channel adapter with Ethernet (RoCEv2)";
    dc->vmsd = &qhca_vmstate;
    set_bit(DEVICE_CATEGORY_NETWORK, dc->categories);
    qhca_props_class_init(klass);
}

static QhcaInterfaceInfo qhca_interfaces[] = {
    { INTERFACE_PCIE_DEVICE },
    { INTERFACE_CONVENTIONAL_PCI_DEVICE },
    { }
};

static const TypeInfo qhca_info = {
    .name = TYPE_QHCA,
    .parent = TYPE_PCI_DEVICE,
    .instance_size = sizeof(QhcaState),
    .instance_init = qhca_instance_init,
    .instance_finalize = qhca_instance_finalize,
    .class_init = qhca_class_init,
    .interfaces = qhca_interfaces,
};

static void qhca_register_types(void)
{
    type_register_static(&qhca_info);
    qhca_vf_register();
    qhca_monitor_register();
}

type_init(qhca_register_types)
