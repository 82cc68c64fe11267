/*
 * qhca adapter: the PCI function
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/guest-random.h"
#include "qemu/main-loop.h"
#include "qemu/module.h"
#include "qemu/uuid.h"
#include "qapi/error.h"
#include "hw/pci/msix.h"
#include "hw/pci/pci.h"
#include "hw/pci/pci_ids.h"
#include "hw/pci/pcie.h"
#include "hw/qdev-properties.h"
#include "migration/vmstate.h"
#include "system/system.h"
#include "qhca-dev.h"
#include "trace.h"

#define QHCA_PM_OFFSET      0x40
#define QHCA_EXP_OFFSET     0x60
#define QHCA_MSIX_OFFSET    0xb0
#define QHCA_AER_OFFSET     0x100
#define QHCA_DSN_OFFSET     0x150

/*
 * ------------------------------------------------------------------------
 * BAR 0: registers
 */
static bool qhca_reg_access_ok(hwaddr addr, unsigned int size)
{
    return size == 4 && !(addr & 3) && addr < QHCA_REG_END;
}

/* A register access within a call of the device would disturb its caller. */
static bool qhca_reg_refused(QhcaState *s, hwaddr addr)
{
    if (!qhca_nested(s)) {
        return false;
    }
    s->stats.mmio_refused++;
    trace_qhca_mmio_refused(s, addr);
    return true;
}

static uint64_t qhca_regs_read(void *opaque, hwaddr addr, unsigned int size)
{
    QhcaState *s = opaque;
    uint32_t value;

    if (!qhca_reg_access_ok(addr, size) || qhca_reg_refused(s, addr) ||
        !qhca_enter(s)) {
        return 0;
    }
    value = qhca_reg_read(s->hca, 0, addr, qhca_now(s));
    qhca_leave(s);
    return value;
}

static void qhca_clear_pending_bits(QhcaState *s)
{
    for (unsigned int i = 0; i < s->cfg.num_vectors; i++) {
        msix_clr_pending(PCI_DEVICE(s), i);
    }
}

static void qhca_regs_write(void *opaque, hwaddr addr, uint64_t value,
                            unsigned int size)
{
    QhcaState *s = opaque;

    if (!qhca_reg_access_ok(addr, size) || qhca_reg_refused(s, addr) ||
        !qhca_enter(s)) {
        return;
    }
    if (addr == QHCA_REG_CONTROL && (value & QHCA_CONTROL_RESET)) {
        qhca_drop_pending(s);
        qhca_clear_pending_bits(s);
    }
    qhca_reg_write(s->hca, 0, addr, value, qhca_now(s));
    qhca_slice(s, s->inline_budget);
    qhca_leave(s);
}

/* All sizes are accepted, so that ignored accesses look alike everywhere. */
static const MemoryRegionOps qhca_regs_ops = {
    .read = qhca_regs_read,
    .write = qhca_regs_write,
    .endianness = DEVICE_LITTLE_ENDIAN,
    .valid = { .min_access_size = 1, .max_access_size = 8, .unaligned = true },
    .impl = { .min_access_size = 1, .max_access_size = 8, .unaligned = true },
};

/*
 * ------------------------------------------------------------------------
 * BAR 2: doorbells
 */
static uint64_t qhca_doorbells_read(void *opaque, hwaddr addr,
                                    unsigned int size)
{
    return 0;
}

static void qhca_doorbells_write(void *opaque, hwaddr addr, uint64_t value,
                                 unsigned int size)
{
    QhcaState *s = opaque;
    uint32_t page = addr / QHCA_DB_PAGE_SIZE;
    uint32_t offset = addr % QHCA_DB_PAGE_SIZE;

    if (size != 8) {
        offset = QHCA_DB_PAGE_SIZE - 1; /* no doorbell: the engine counts it */
    }
    qhca_doorbell_ring(s, page, offset, value);
}

static const MemoryRegionOps qhca_doorbells_ops = {
    .read = qhca_doorbells_read,
    .write = qhca_doorbells_write,
    .endianness = DEVICE_LITTLE_ENDIAN,
    .valid = { .min_access_size = 1, .max_access_size = 8, .unaligned = true },
    .impl = { .min_access_size = 1, .max_access_size = 8, .unaligned = true },
};

/*
 * ------------------------------------------------------------------------
 * Reset.  A function-level reset and D3hot keep the contents of BAR 4; other
 * resets clear it.
 */
void qhca_reset_function(QhcaState *s, bool clear_devmem)
{
    if (!s->hca) {
        return;
    }
    qhca_drop_pending(s);
    qhca_dma_reset(s);
    qhca_trace_refresh(s);
    qhca_reset(s->hca, 0, qhca_now(s));
    if (s->devmem_size && clear_devmem) {
        memset(memory_region_get_ram_ptr(&s->devmem), 0, s->devmem_size);
        memory_region_set_dirty(&s->devmem, 0, s->devmem_size);
    }
}

static void qhca_reset_now_or_later(QhcaState *s, bool clear_devmem)
{
    if (s->in_engine) {
        /* An interrupt wrote to configuration space; see qhca_release(). */
        s->reset_pending = true;
        s->reset_devmem |= clear_devmem;
    } else if (qhca_enter(s)) {
        qhca_reset_function(s, clear_devmem);
        qhca_leave(s);
    }
}

static void qhca_reset_hold(Object *obj, ResetType type)
{
    QhcaState *s = QHCA(obj);

    qhca_reset_now_or_later(s, !s->in_flr);
}

static bool qhca_in_d0(PCIDevice *dev)
{
    return !(pci_get_word(dev->config + QHCA_PM_OFFSET + PCI_PM_CTRL) &
             PCI_PM_CTRL_STATE_MASK);
}

/*
 * A function in D3hot issues no requests, and No_Soft_Reset is clear, so the
 * return to D0 resets it.  One reset on the way to D3hot does both.  QEMU's PCI
 * core takes the BARs away meanwhile.
 */
static void qhca_config_write(PCIDevice *dev, uint32_t addr, uint32_t value,
                              int len)
{
    QhcaState *s = QHCA(dev);
    bool in_d0 = qhca_in_d0(dev);

    pci_default_write_config(dev, addr, value, len);
    if (in_d0 && !qhca_in_d0(dev)) {
        qhca_reset_now_or_later(s, false);
    }
    if (pci_is_express(dev) && dev->exp.exp_cap) {
        s->in_flr = true;
        pcie_cap_flr_write_config(dev, addr, value, len);
        s->in_flr = false;
    }
}

/*
 * ------------------------------------------------------------------------
 * Realize and exit
 */
static bool qhca_create_engine(QhcaState *s, Error **errp)
{
    static const struct qhca_host_ops ops = {
        .dma_read = qhca_host_dma_read,
        .dma_write = qhca_host_dma_write,
        .dma_write_release = qhca_host_dma_write_release,
        .raise_irq = qhca_host_raise_irq,
        .tx_reserve = qhca_host_tx_reserve,
        .tx_commit = qhca_host_tx_commit,
        .trace = qhca_host_trace,
    };
    struct qhca_hca *hca;
    char err[160] = "";

    memcpy(s->cfg.mac, s->conf.macaddr.a, sizeof(s->cfg.mac));
    s->cfg.devmem_size = s->devmem_size;
    s->cfg.devmem = s->devmem_size ? memory_region_get_ram_ptr(&s->devmem)
                                   : NULL;
    s->cfg.seed = s->inject.seed;
    hca = qhca_create(&s->cfg, &ops, s, err, sizeof(err));
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

static bool qhca_init_bars(QhcaState *s, Error **errp)
{
    PCIDevice *dev = PCI_DEVICE(s);
    Object *owner = OBJECT(s);

    memory_region_init(&s->bar0, owner, "qhca", QHCA_BAR_REGS_SIZE);
    memory_region_init_io(&s->regs, owner, &qhca_regs_ops, s, "qhca-regs",
                          QHCA_MSIX_TABLE_OFFSET);
    if (msix_init(dev, s->cfg.num_vectors, &s->bar0, QHCA_BAR_REGS,
                  QHCA_MSIX_TABLE_OFFSET, &s->bar0, QHCA_BAR_REGS,
                  QHCA_MSIX_PBA_OFFSET, QHCA_MSIX_OFFSET, errp)) {
        return false;
    }
    for (unsigned int i = 0; i < s->cfg.num_vectors; i++) {
        msix_vector_use(dev, i);
    }
    memory_region_add_subregion(&s->bar0, 0, &s->regs);
    pci_register_bar(dev, QHCA_BAR_REGS, PCI_BASE_ADDRESS_MEM_TYPE_64,
                     &s->bar0);

    memory_region_init_io(&s->doorbells, owner, &qhca_doorbells_ops, s,
                          "qhca-doorbells",
                          (uint64_t)s->cfg.num_db_pages * QHCA_DB_PAGE_SIZE);
    qhca_region_without_bql(&s->doorbells);
    pci_register_bar(dev, QHCA_BAR_DOORBELLS, PCI_BASE_ADDRESS_MEM_TYPE_64,
                     &s->doorbells);
    return true;
}

static bool qhca_init_devmem(QhcaState *s, Error **errp)
{
    if (!s->devmem_size) {
        return true;
    }
    if (!memory_region_init_ram_nomigrate(&s->devmem, OBJECT(s), "qhca-devmem",
                                          s->devmem_size, errp)) {
        return false;
    }
    pci_register_bar(PCI_DEVICE(s), QHCA_BAR_DEVMEM,
                     PCI_BASE_ADDRESS_MEM_TYPE_64 |
                     PCI_BASE_ADDRESS_MEM_PREFETCH, &s->devmem);
    return true;
}

static bool qhca_init_caps(QhcaState *s, Error **errp)
{
    PCIDevice *dev = PCI_DEVICE(s);
    uint8_t *mac = s->conf.macaddr.a;
    uint64_t serial;

    if (pci_pm_init(dev, QHCA_PM_OFFSET, errp) < 0) {
        return false;
    }
    pci_set_word(dev->wmask + QHCA_PM_OFFSET + PCI_PM_CTRL,
                 PCI_PM_CTRL_STATE_MASK);
    if (!pci_bus_is_express(pci_get_bus(dev))) {
        return true;
    }
    if (pcie_endpoint_cap_init(dev, QHCA_EXP_OFFSET) < 0) {
        error_setg(errp, "there is no room for the PCI Express capability");
        return false;
    }
    pcie_cap_flr_init(dev);
    if (pcie_aer_init(dev, PCI_ERR_VER, QHCA_AER_OFFSET, PCI_ERR_SIZEOF,
                      errp) < 0) {
        pcie_cap_exit(dev);
        return false;
    }
    /* EUI-64 of the MAC address */
    serial = (uint64_t)mac[0] << 56 | (uint64_t)mac[1] << 48 |
             (uint64_t)mac[2] << 40 | 0xfffeull << 24 |
             mac[3] << 16 | mac[4] << 8 | mac[5];
    pcie_dev_ser_num_init(dev, QHCA_DSN_OFFSET, serial);
    return true;
}

static void qhca_exit_caps(PCIDevice *dev)
{
    if (pci_is_express(dev) && dev->exp.exp_cap) {
        pcie_aer_exit(dev);
        pcie_cap_exit(dev);
    }
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

static void qhca_pci_realize(PCIDevice *dev, Error **errp)
{
    QhcaState *s = QHCA(dev);

    if (!qhca_props_check(s, errp)) {
        return;
    }
    dev->config_write = qhca_config_write;
    qhca_default_mac(s);

    if (!qhca_init_devmem(s, errp)) {
        return;
    }
    if (!qhca_create_engine(s, errp)) {
        return;
    }
    if (!qhca_init_caps(s, errp)) {
        goto no_caps;
    }
    if (!qhca_init_bars(s, errp)) {
        goto no_bars;
    }
    qhca_dma_init(s);
    qhca_thread_start(s);
    qhca_net_init(s);
    qhca_monitor_add(s);
    return;

no_bars:
    qhca_exit_caps(dev);
no_caps:
    qhca_destroy(s->hca);
    s->hca = NULL;
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
    qhca_net_exit(s);
    qhca_thread_stop(s);
    qhca_dma_exit(s);
    qhca_destroy(hca);
    msix_unuse_all_vectors(dev);
    msix_uninit(dev, &s->bar0, &s->bar0);
    /* A subregion holds a reference to its owner. */
    memory_region_del_subregion(&s->bar0, &s->regs);
    qhca_exit_caps(dev);
}

static void qhca_instance_init(Object *obj)
{
    QhcaState *s = QHCA(obj);

    qhca_thread_init(s);
    qhca_props_instance_init(s);
    for (int i = 0; i < QHCA_DMA_WINDOWS; i++) {
        s->dma[i].first = 1;    /* past its last: empty */
    }
    PCI_DEVICE(obj)->cap_present |= QEMU_PCI_CAP_EXPRESS;
}

static void qhca_instance_finalize(Object *obj)
{
    qhca_thread_finalize(QHCA(obj));
}

static const VMStateDescription qhca_vmstate = {
    .name = TYPE_QHCA,
    .unmigratable = 1,
};

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
    qhca_monitor_register();
}

type_init(qhca_register_types)
