/*
 * qhca adapter: a PCI function's registers, reset, capabilities and BARs
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "hw/pci/msix.h"
#include "hw/pci/pci.h"
#include "hw/pci/pcie.h"
#include "migration/vmstate.h"
#include "qhca-dev.h"
#include "trace.h"

#define QHCA_PM_OFFSET      0x40
#define QHCA_EXP_OFFSET     0x60
#define QHCA_MSIX_OFFSET    0xb0
#define QHCA_AER_OFFSET     0x100
#define QHCA_DSN_OFFSET     0x150
#define QHCA_ARI_OFFSET     0x160

/*
 * ------------------------------------------------------------------------
 * BAR 0: registers
 */
static bool qhca_reg_access_ok(hwaddr addr, unsigned int size)
{
    return size == 4 && !(addr & 3) && addr < QHCA_REG_END;
}

/* A register access within a call of the device would disturb its caller. */
static bool qhca_reg_refused(QhcaFunction *f, hwaddr addr)
{
    QhcaState *s = f->s;

    if (!qhca_nested(s)) {
        return false;
    }
    s->stats.mmio_refused++;
    trace_qhca_mmio_refused(s, f->gvmi, addr);
    return true;
}

static uint64_t qhca_regs_read(void *opaque, hwaddr addr, unsigned int size)
{
    QhcaFunction *f = opaque;
    QhcaState *s = f->s;
    uint32_t value;

    if (!qhca_reg_access_ok(addr, size) || qhca_reg_refused(f, addr) ||
        !qhca_enter(s)) {
        return 0;
    }
    value = qhca_reg_read(s->hca, f->gvmi, addr, qhca_now(s));
    qhca_leave(s);
    return value;
}

static void qhca_clear_pending_bits(QhcaFunction *f)
{
    for (unsigned int i = 0; i < f->cfg->num_vectors; i++) {
        msix_clr_pending(f->dev, i);
    }
}

static void qhca_regs_write(void *opaque, hwaddr addr, uint64_t value,
                            unsigned int size)
{
    QhcaFunction *f = opaque;
    QhcaState *s = f->s;

    if (!qhca_reg_access_ok(addr, size) || qhca_reg_refused(f, addr) ||
        !qhca_enter(s)) {
        return;
    }
    if (addr == QHCA_REG_CONTROL && (value & QHCA_CONTROL_RESET)) {
        qhca_drop_pending(f);
        qhca_clear_pending_bits(f);
    }
    qhca_reg_write(s->hca, f->gvmi, addr, value, qhca_now(s));
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
 * Reset.  A function-level reset and D3hot keep the contents of BAR 4; other
 * resets clear it.
 *
 * QEMU realizes the virtual functions with the physical one.  When VF Enable
 * changes it sets or clears PCIDevice.enabled of each, and then resets it.
 */
void qhca_reset_function(QhcaFunction *f, QhcaReset kind)
{
    QhcaState *s = f->s;

    if (!s->hca || s->loading) {
        return;
    }
    qhca_drop_pending(f);
    qhca_clear_pending_bits(f);
    qhca_dma_reset(f);
    qhca_trace_refresh(s);
    if (f->gvmi) {
        qhca_vf_follow(f);
    }
    if (kind == QHCA_RESET_DEVICE) {
        qhca_reset(s->hca, f->gvmi, qhca_now(s));
    } else {
        qhca_pci_reset(s->hca, f->gvmi, qhca_now(s));
    }
    if (f->devmem_size && kind == QHCA_RESET_PCI) {
        memset(memory_region_get_ram_ptr(&f->devmem), 0, f->devmem_size);
        memory_region_set_dirty(&f->devmem, 0, f->devmem_size);
    }
}

static void qhca_reset_now_or_later(QhcaFunction *f, QhcaReset kind)
{
    QhcaState *s = f->s;

    if (s->in_engine) {
        /* An interrupt wrote to configuration space; see qhca_release(). */
        s->resets_pending |= BIT_ULL(f->gvmi);
        f->reset_pending = MAX(f->reset_pending, kind);
    } else if (qhca_enter(s)) {
        qhca_reset_function(f, kind);
        qhca_leave(s);
    }
}

/* Does the function report errors to the root port?  A VF's bits for that are reserved. */
static bool qhca_reports_errors(QhcaFunction *f)
{
    return !f->gvmi && pci_is_express(f->dev) && f->dev->exp.exp_cap;
}

void qhca_function_reset_hold(QhcaFunction *f)
{
    if (qhca_reports_errors(f)) {
        pcie_cap_deverr_reset(f->dev);
    }
    qhca_reset_now_or_later(f, QHCA_RESET_PCI);
}

bool qhca_in_d0(PCIDevice *dev)
{
    return !(pci_get_word(dev->config + QHCA_PM_OFFSET + PCI_PM_CTRL) &
             PCI_PM_CTRL_STATE_MASK);
}

/*
 * A function in D3hot issues no requests, so the way there resets it.  The
 * return to D0 resets it again, because No_Soft_Reset is clear: the link, the
 * clock and the host go on meanwhile.  QEMU's PCI core takes the BARs away.
 */
void qhca_function_config_write(QhcaFunction *f, uint32_t addr, uint32_t value,
                                int len)
{
    PCIDevice *dev = f->dev;
    QhcaState *s = f->s;
    bool in_d0 = qhca_in_d0(dev);

    pci_default_write_config(dev, addr, value, len);
    /*
     * In the engine another function's DMA has written this, as no driver does.  What
     * waits for it then waits for the next write, or until the VM has stopped.
     */
    if (ranges_overlap(addr, len, PCI_COMMAND, 2) && !s->in_engine &&
        qhca_host_may_dma(s, f->gvmi) && qhca_enter(s)) {
        qhca_may_dma(s->hca, qhca_now(s));
        qhca_slice(s, s->inline_budget);    /* work and timers that have waited */
        qhca_leave(s);
    }
    if (in_d0 != qhca_in_d0(dev)) {
        qhca_reset_now_or_later(f, QHCA_RESET_DEVICE);
    }
    if (pci_is_express(dev) && dev->exp.exp_cap) {
        pcie_cap_flr_write_config(dev, addr, value, len);
        pcie_aer_write_config(dev, addr, value, len);
    }
}

/*
 * ------------------------------------------------------------------------
 * BARs and capabilities
 */
void qhca_function_init(QhcaFunction *f, QhcaState *s, PCIDevice *dev,
                        uint16_t gvmi, const struct qhca_config *cfg)
{
    f->s = s;
    f->dev = dev;
    f->gvmi = gvmi;
    f->cfg = cfg;
    for (int i = 0; i < QHCA_DMA_WINDOWS; i++) {
        f->dma[i].first = 1;    /* past its last: empty */
    }
}

bool qhca_init_bars(QhcaFunction *f, Error **errp)
{
    PCIDevice *dev = f->dev;
    Object *owner = OBJECT(dev);

    memory_region_init(&f->bar0, owner, "qhca", QHCA_BAR_REGS_SIZE);
    memory_region_init_io(&f->regs, owner, &qhca_regs_ops, f, "qhca-regs",
                          QHCA_MSIX_TABLE_OFFSET);
    if (msix_init(dev, f->cfg->num_vectors, &f->bar0, QHCA_BAR_REGS,
                  QHCA_MSIX_TABLE_OFFSET, &f->bar0, QHCA_BAR_REGS,
                  QHCA_MSIX_PBA_OFFSET, QHCA_MSIX_OFFSET, errp)) {
        return false;
    }
    for (unsigned int i = 0; i < f->cfg->num_vectors; i++) {
        msix_vector_use(dev, i);
    }
    memory_region_add_subregion(&f->bar0, 0, &f->regs);
    pci_register_bar(dev, QHCA_BAR_REGS, PCI_BASE_ADDRESS_MEM_TYPE_64,
                     &f->bar0);

    memory_region_init_io(&f->doorbells, owner, &qhca_doorbells_ops, f,
                          "qhca-doorbells",
                          (uint64_t)f->cfg->num_db_pages * QHCA_DB_PAGE_SIZE);
    qhca_region_without_bql(&f->doorbells);
    pci_register_bar(dev, QHCA_BAR_DOORBELLS, PCI_BASE_ADDRESS_MEM_TYPE_64,
                     &f->doorbells);
    return true;
}

void qhca_exit_bars(QhcaFunction *f)
{
    msix_unuse_all_vectors(f->dev);
    msix_uninit(f->dev, &f->bar0, &f->bar0);
    /* A subregion holds a reference to its owner. */
    memory_region_del_subregion(&f->bar0, &f->regs);
}

bool qhca_init_devmem(QhcaFunction *f, Error **errp)
{
    if (!f->devmem_size) {
        return true;
    }
    if (!memory_region_init_ram(&f->devmem, OBJECT(f->dev), "qhca-devmem",
                                f->devmem_size, errp)) {
        return false;
    }
    pci_register_bar(f->dev, QHCA_BAR_DEVMEM,
                     PCI_BASE_ADDRESS_MEM_TYPE_64 |
                     PCI_BASE_ADDRESS_MEM_PREFETCH, &f->devmem);
    return true;
}

/*
 * The memory itself goes with the object, which may be a while later. Its name in
 * a migration is to be free at once, for a device that is plugged in at this place.
 */
void qhca_exit_devmem(QhcaFunction *f)
{
    if (f->devmem_size) {
        vmstate_unregister_ram(&f->devmem, DEVICE(f->dev));
    }
}

bool qhca_init_caps(QhcaFunction *f, Error **errp)
{
    PCIDevice *dev = f->dev;
    QhcaState *s = f->s;
    const uint8_t *mac = s->conf.macaddr.a;
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
    if (qhca_reports_errors(f)) {
        pcie_cap_deverr_init(dev);
        /* States that were saved before the function reported errors are without this bit. */
        pci_long_test_and_clear_mask(dev->cmask + QHCA_EXP_OFFSET + PCI_EXP_DEVCAP,
                                     PCI_EXP_DEVCAP_RBER);
    }
    if (pcie_aer_init(dev, PCI_ERR_VER, QHCA_AER_OFFSET, PCI_ERR_SIZEOF,
                      errp) < 0) {
        pcie_cap_exit(dev);
        return false;
    }
    if (s->sriov_vfs) {
        pcie_ari_init(dev, QHCA_ARI_OFFSET);
    }
    if (f->gvmi) {
        return true;
    }
    /* The serial number is the EUI-64 of the MAC address. */
    serial = (uint64_t)mac[0] << 56 | (uint64_t)mac[1] << 48 |
             (uint64_t)mac[2] << 40 | 0xfffeull << 24 |
             mac[3] << 16 | mac[4] << 8 | mac[5];
    pcie_dev_ser_num_init(dev, QHCA_DSN_OFFSET, serial);
    return true;
}

void qhca_exit_caps(QhcaFunction *f)
{
    PCIDevice *dev = f->dev;

    if (pci_is_express(dev) && dev->exp.exp_cap) {
        pcie_aer_exit(dev);
        pcie_cap_exit(dev);
    }
}
