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

void qhca_reset_hold(Object *obj, ResetType type)
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
void qhca_config_write(PCIDevice *dev, uint32_t addr, uint32_t value,
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
 * BARs and capabilities
 */
bool qhca_init_bars(QhcaState *s, Error **errp)
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

bool qhca_init_devmem(QhcaState *s, Error **errp)
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

bool qhca_init_caps(QhcaState *s, Error **errp)
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

void qhca_exit_caps(PCIDevice *dev)
{
    if (pci_is_express(dev) && dev->exp.exp_cap) {
        pcie_aer_exit(dev);
        pcie_cap_exit(dev);
    }
}
