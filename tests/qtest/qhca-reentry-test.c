/*
 * QTest testcase for the qhca RDMA adapter: calls that come back to it
 *
 * What another device does when it gets a frame, or an interrupt or a fault of
 * ours, reaches the device again, in the middle of its own call.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qhca-eth.h"
#include "qhca-sriov.h"
#include "hw/net/e1000_regs.h"
#include "libqos/virtio-pci.h"
#include "standard-headers/linux/virtio_iommu.h"
#include "standard-headers/linux/virtio_ring.h"

/* Another NIC on the same hub: a frame it receives is an MSI where we like. */
typedef struct Nic {
    QPCIDevice *dev;
    QPCIBar regs;
    uint64_t ring, buf;
} Nic;

static void nic_open(Hca *h, Nic *nic, int devfn)
{
    nic->dev = qpci_device_find(h->bus, devfn);
    g_assert_nonnull(nic->dev);
    qpci_device_enable(nic->dev);
    nic->regs = qpci_iomap(nic->dev, 0, NULL);
    nic->ring = hca_page(h);
    nic->buf = hca_page(h);
    qpci_io_writel(nic->dev, nic->regs, E1000_CTRL,
                   E1000_CTRL_RST | E1000_CTRL_SLU);
    qpci_io_writel(nic->dev, nic->regs, E1000_RDBAL, nic->ring);
    qpci_io_writel(nic->dev, nic->regs, E1000_RDBAH, nic->ring >> 32);
    qpci_io_writel(nic->dev, nic->regs, E1000_RDLEN, 4096);
    qpci_io_writel(nic->dev, nic->regs, E1000_RFCTL, E1000_RFCTL_EXTEN);
}

/* The NIC owns all its descriptors again, with one buffer for all. */
static void nic_refill(Hca *h, Nic *nic)
{
    uint64_t ring[512];

    for (int i = 0; i < ARRAY_SIZE(ring); i++) {
        ring[i] = i & 1 ? 0 : cpu_to_le64(nic->buf);
    }
    qpci_io_writel(nic->dev, nic->regs, E1000_RCTL, 0);
    qtest_memwrite(h->qts, nic->ring, ring, sizeof(ring));
    qpci_io_writel(nic->dev, nic->regs, E1000_RDH, 0);
    qpci_io_writel(nic->dev, nic->regs, E1000_RDT, 255);
    qpci_io_writel(nic->dev, nic->regs, E1000_RCTL,
                   E1000_RCTL_EN | E1000_RCTL_UPE | E1000_RCTL_MPE |
                   E1000_RCTL_BAM);
}

static void nic_target(Nic *nic, uint64_t addr, uint16_t data)
{
    uint8_t msi = qpci_find_capability(nic->dev, PCI_CAP_ID_MSI, 0);

    g_assert_cmphex(msi, !=, 0);
    qpci_config_writel(nic->dev, msi + PCI_MSI_ADDRESS_LO, addr);
    qpci_config_writel(nic->dev, msi + PCI_MSI_ADDRESS_HI, addr >> 32);
    qpci_config_writew(nic->dev, msi + PCI_MSI_DATA_64, data);
    qpci_config_writew(nic->dev, msi + PCI_MSI_FLAGS, PCI_MSI_FLAGS_ENABLE);
    qpci_io_readl(nic->dev, nic->regs, E1000_ICR);
    qpci_io_writel(nic->dev, nic->regs, E1000_ICR, UINT32_MAX);
    qpci_io_writel(nic->dev, nic->regs, E1000_IMS, UINT32_MAX);
}

/*
 * Both devices, and a frame ring of ours that has been used all over: whatever
 * is read where no frame is looks like one.
 */
static Hca *hca_start_with_nic(Nic *nic, Eth *e)
{
    Hca *h = hca_new("q35", "-netdev hubport,id=n0,hubid=0 "
                     "-netdev hubport,id=n1,hubid=0 "
                     "-device qhca,id=h0,netdev=n0,addr=04.0,"
                     "tx-ring-size=32768,mac=" MAC " "
                     "-device e1000e,netdev=n1,addr=05.0,romfile=");

    hca_map(h);
    eth_bring_up(h, e);
    nic_open(h, nic, QPCI_DEVFN(5, 0));
    for (int i = 0; i < 2 * 32768 / 128 / TX_DEPTH; i++) {
        nic_refill(h, nic);
        eth_send(h, e, TX_DEPTH, 100, 1);
        wait_adapter(h, "frames_sent", e->tx_pi);
    }
    nic_refill(h, nic);
    eth_wait_sent(h, e);
    return h;
}

static void nic_close(Nic *nic)
{
    g_free(nic->dev);
}

static void assert_sent_at_most(Hca *h, uint64_t most)
{
    for (int i = 0; i < 20; i++) {
        g_assert_cmpuint(hca_adapter(h, "frames_sent"), <=, most);
    }
}

/* Its interrupt resets us between two of our frames, and is refused. */
static void test_reset_in_flush(void)
{
    Nic nic;
    Eth e = { };
    Hca *h = hca_start_with_nic(&nic, &e);
    uint64_t sent = e.tx_pi;

    nic_target(&nic, h->regs.addr + QHCA_REG_CONTROL, QHCA_CONTROL_RESET);
    eth_send(h, &e, 8, 100, 1);
    assert_sent_at_most(h, sent + 8);
    eth_wait_sent(h, &e);
    g_assert_cmphex(hca_status(h), ==,
                    QHCA_STATUS_READY | QHCA_STATUS_ENABLED);
    g_assert_cmpuint(hca_adapter(h, "mmio_refused"), ==, 1);
    eth_send(h, &e, 8, 100, 1);
    eth_wait_sent(h, &e);
    assert_sent_at_most(h, sent + 16);
    nic_close(&nic);
    hca_stop(h);
}

/* The same by configuration space: this reset happens, and discards frames. */
static void test_flr_in_flush(void)
{
    Nic nic;
    Eth e = { };
    Hca *h = hca_start_with_nic(&nic, &e);
    uint8_t cap = qpci_find_capability(h->dev, PCI_CAP_ID_EXP, 0);
    uint64_t sent = e.tx_pi;

    enable_ecam(h);
    nic_target(&nic, ECAM + (QPCI_DEVFN(4, 0) << 12) + cap + PCI_EXP_DEVCTL,
               PCI_EXP_DEVCTL_BCR_FLR);
    eth_send(h, &e, 8, 100, 1);
    assert_sent_at_most(h, sent + 8);
    g_assert_cmphex(qpci_config_readw(h->dev, PCI_COMMAND) &
                    PCI_COMMAND_MASTER, ==, 0);
    g_free(h->dev);
    hca_map(h);
    g_assert_cmphex(hca_status(h), ==, QHCA_STATUS_READY);
    eth_bring_up(h, &e);
    eth_send(h, &e, 8, 100, 1);
    eth_wait_sent(h, &e);
    assert_sent_at_most(h, sent + 16);
    nic_close(&nic);
    hca_stop(h);
}

/* The device goes to D3hot inside a flush: the reset discards the frames. */
static void test_d3hot_in_flush(void)
{
    Nic nic;
    Eth e = { };
    Hca *h = hca_start_with_nic(&nic, &e);
    uint8_t pmcsr = qpci_find_capability(h->dev, PCI_CAP_ID_PM, 0) +
                    PCI_PM_CTRL;
    uint64_t sent = e.tx_pi;

    enable_ecam(h);
    nic_target(&nic, ECAM + (QPCI_DEVFN(4, 0) << 12) + pmcsr, 3);
    eth_send(h, &e, 8, 100, 1);
    assert_sent_at_most(h, sent + 8);
    g_assert_cmphex(qpci_config_readw(h->dev, pmcsr), ==, 3);
    qpci_config_writew(h->dev, pmcsr, 0);
    g_assert_cmphex(hca_status(h), ==, QHCA_STATUS_READY);
    nic_close(&nic);
    eth_bring_up(h, &e);
    eth_send(h, &e, 8, 100, 1);
    eth_wait_sent(h, &e);
    hca_stop(h);
}

/* Its interrupt rings our doorbells: it is deferred, and not lost. */
static void test_doorbell_in_flush(void)
{
    Nic nic;
    Eth e = { };
    Hca *h = hca_start_with_nic(&nic, &e);
    uint64_t ignored = hca_counter(h, QHCA_CNT_doorbells_ignored);
    uint64_t sent = e.tx_pi;

    nic_target(&nic, h->doorbells.addr, 1);
    eth_send(h, &e, 8, 100, 1);
    eth_wait_sent(h, &e);
    wait_adapter(h, "doorbells_deferred", 1);
    hca_wait_counter(h, QHCA_CNT_doorbells_ignored, ignored + 1);
    assert_sent_at_most(h, sent + 8);
    nic_close(&nic);
    hca_stop(h);
}

/* Make the port at slot 4 pass on what is for bus 1 and for these addresses. */
static void port_open(QPCIDevice *port, uint64_t first, uint64_t end)
{
    qpci_config_writew(port, PCI_MEMORY_BASE, first >> 16);
    qpci_config_writew(port, PCI_MEMORY_LIMIT, (end - 1) >> 16);
    qpci_device_enable(port);
}

/*
 * The NIC's interrupt switches off the power of the slot that the device is in.
 * A bottom half hands frames over at that time, and the device has no BAR in
 * the memory map, which would hold a reference to it.
 */
static void test_unplug_in_flush(void)
{
    Hca *h = hca_new("q35", "-global "
                     "ICH9-LPC.acpi-pci-hotplug-with-bridge-support=off "
                     "-netdev hubport,id=n0,hubid=0 "
                     "-netdev hubport,id=n1,hubid=0 "
                     "-device pcie-root-port,id=p0,addr=04.0,chassis=1,slot=1 "
                     "-device qhca,id=h0,bus=p0,netdev=n0,mac=" MAC " "
                     "-device e1000e,netdev=n1,addr=05.0,romfile=");
    QPCIDevice *port = qpci_device_find(h->bus, QPCI_DEVFN(4, 0));
    uint64_t first = ROUND_UP(h->bus->mmio_alloc_ptr, MiB);
    QDict *answer;
    uint8_t cap;
    Nic nic;
    Eth e = { };

    h->bus->mmio_alloc_ptr = first;
    qpci_config_writel(port, PCI_PRIMARY_BUS, 0x00010100);
    hca_map_at(h, QPCI_DEVFN(1 << 5, 0));
    h->bus->mmio_alloc_ptr = ROUND_UP(h->bus->mmio_alloc_ptr, MiB);
    port_open(port, first, h->bus->mmio_alloc_ptr);
    eth_bring_up(h, &e);
    nic_open(h, &nic, QPCI_DEVFN(5, 0));
    nic_refill(h, &nic);
    enable_ecam(h);
    cap = qpci_find_capability(port, PCI_CAP_ID_EXP, 0);
    nic_target(&nic, ECAM + (QPCI_DEVFN(4, 0) << 12) + cap + PCI_EXP_SLTCTL,
               PCI_EXP_SLTCTL_PWR_OFF | PCI_EXP_SLTCTL_PWR_IND_OFF);

    qtest_qmp_assert_success(h->qts, "{ 'execute': 'stop' }");
    eth_send(h, &e, 8, 100, 1);
    qpci_config_writew(h->dev, PCI_COMMAND, PCI_COMMAND_MASTER);
    g_usleep(200 * 1000);   /* meanwhile QEMU frees the old memory map */
    qtest_qmp_assert_success(h->qts, "{ 'execute': 'cont' }");
    wait_deleted(h);
    answer = qtest_qmp(h->qts, "{ 'execute': 'query-qhca' }");
    g_assert_true(qlist_empty(qdict_get_qlist(answer, "return")));
    qobject_unref(answer);
    nic_close(&nic);
    g_free(port);
    hca_stop(h);
}

/* A vector of the device's own, aimed at the device. */
static void test_own_vector(void)
{
    Hca *h = hca_start();
    uint64_t ignored;

    hca_enable_msix(h);
    msix_target(h, 1, h->regs.addr + QHCA_REG_CONTROL, QHCA_CONTROL_RESET);
    hca_bring_up(h);
    nop_with_event(h, 1);
    /* The device raises the vector at once. */
    hca_ring(h, 0, QHCA_DB_EQ_ARM, QHCA_EQN_ASYNC);
    g_assert_cmphex(hca_status(h), ==,
                    QHCA_STATUS_READY | QHCA_STATUS_ENABLED);
    g_assert_cmpuint(hca_adapter(h, "mmio_refused"), ==, 1);

    ignored = hca_counter(h, QHCA_CNT_doorbells_ignored);
    msix_target(h, 1, h->doorbells.addr, 1);
    hca_ring(h, 0, QHCA_DB_EQ_ARM, QHCA_EQN_ASYNC);
    wait_adapter(h, "doorbells_deferred", 1);
    hca_wait_counter(h, QHCA_CNT_doorbells_ignored, ignored + 1);
    hca_assert_alive(h);
    hca_stop(h);
}

/* The next interrupt, which the NIC owes to a new target. */
static void nic_retarget(Hca *h, Nic *nic, uint64_t addr, uint16_t data)
{
    nic_close(nic);
    nic_open(h, nic, QPCI_DEVFN(5, 0));
    nic_refill(h, nic);
    nic_target(nic, addr, data);
}

/* A guest with the NIC, and with virtual functions that are enabled. */
static Hca *hca_start_vfs_with_nic(Nic *nic, Eth *e, Sriov *s, Hca **vf)
{
    Hca *h = hca_new("q35", "-netdev hubport,id=n0,hubid=0 "
                     "-netdev hubport,id=n1,hubid=0 "
                     "-device qhca,id=h0,netdev=n0,addr=04.0,sriov-vfs=2,"
                     "mac=" MAC " "
                     "-device e1000e,netdev=n1,addr=05.0,romfile=");

    hca_map(h);
    sriov_open(h, s);
    sriov_enable(s, 2);
    for (int i = 0; i < 2; i++) {
        vf[i] = vf_new(s, i);
        hca_enable(vf[i]);
    }
    eth_bring_up(h, e);
    nic_open(h, nic, QPCI_DEVFN(5, 0));
    nic_refill(h, nic);
    return h;
}

/*
 * A frame of the physical function ends as an access to a virtual one, and as a
 * reset of one, and as the end of VF Enable.
 */
static void test_vf_in_flush(void)
{
    Hca *vf[2];
    Sriov s;
    Nic nic;
    Eth e = { };
    Hca *h = hca_start_vfs_with_nic(&nic, &e, &s, vf);
    uint64_t ignored = hca_counter(vf[0], QHCA_CNT_doorbells_ignored);
    uint64_t flr = ecam_of(vf[0]->dev) + PCI_EXP_DEVCTL +
                   qpci_find_capability(vf[0]->dev, PCI_CAP_ID_EXP, 0);

    nic_target(&nic, vf[0]->regs.addr + QHCA_REG_CONTROL, QHCA_CONTROL_RESET);
    eth_send(h, &e, 1, 100, 1);
    wait_adapter(h, "mmio_refused", 1);
    g_assert_cmpint(hca_nop(vf[0]), ==, QHCA_CMD_OK);

    nic_retarget(h, &nic, vf[0]->doorbells.addr, 1);
    eth_send(h, &e, 1, 100, 1);
    wait_adapter(h, "doorbells_deferred", 1);
    hca_wait_counter(vf[0], QHCA_CNT_doorbells_ignored, ignored + 1);

    nic_retarget(h, &nic, flr, PCI_EXP_DEVCTL_BCR_FLR);
    eth_send(h, &e, 8, 100, 1);
    eth_wait_sent(h, &e);
    g_assert_cmphex(qpci_config_readw(vf[0]->dev, PCI_COMMAND), ==, 0);
    vf_map(vf[0]);
    g_assert_cmphex(hca_status(vf[0]), ==, QHCA_STATUS_READY);
    g_assert_cmpint(hca_nop(vf[1]), ==, QHCA_CMD_OK);

    nic_retarget(h, &nic, s.cap + PCI_SRIOV_CTRL, 0);
    eth_send(h, &e, 8, 100, 1);
    eth_wait_sent(h, &e);
    g_assert_cmphex(qpci_config_readw(vf[1]->dev, PCI_COMMAND), ==, 0xffff);
    hca_assert_alive(h);
    nic_close(&nic);
    vf_free(vf[0]);
    vf_free(vf[1]);
    hca_stop(h);
}

static void kill_function(Hca *h)
{
    hca_reset(h);
    hca_set_cmdq(h, 31, 0);
    hca_write(h, QHCA_REG_CONTROL, QHCA_CONTROL_ENABLE);
    hca_assert_fatal(h, QHCA_FATAL_CMDQ_CONFIG);
}

/* A vector of one function, aimed at another and at the end of both. */
static void test_vf_vector(void)
{
    Hca *vf[2];
    Sriov s;
    Nic nic;
    Eth e = { };
    Hca *h = hca_start_vfs_with_nic(&nic, &e, &s, vf);
    uint64_t refused, ignored;

    vf_enable_msix(vf[0]);
    msix_target(vf[0], 0, vf[1]->regs.addr + QHCA_REG_CONTROL,
                QHCA_CONTROL_RESET);
    refused = hca_adapter(h, "mmio_refused");
    kill_function(vf[0]);
    g_assert_cmpuint(hca_adapter(h, "mmio_refused"), ==, refused + 1);
    g_assert_cmpint(hca_nop(vf[1]), ==, QHCA_CMD_OK);

    msix_target(vf[0], 0, h->regs.addr + QHCA_REG_CONTROL, QHCA_CONTROL_RESET);
    kill_function(vf[0]);
    g_assert_cmpuint(hca_adapter(h, "mmio_refused"), ==, refused + 2);
    g_assert_cmpint(hca_nop(h), ==, QHCA_CMD_OK);

    ignored = hca_counter(vf[1], QHCA_CNT_doorbells_ignored);
    msix_target(vf[0], 0, vf[1]->doorbells.addr, 1);
    kill_function(vf[0]);
    hca_wait_counter(vf[1], QHCA_CNT_doorbells_ignored, ignored + 1);

    msix_target(vf[0], 0, s.cap + PCI_SRIOV_CTRL, 0);
    hca_reset(vf[0]);
    hca_set_cmdq(vf[0], 31, 0);
    hca_write(vf[0], QHCA_REG_CONTROL, QHCA_CONTROL_ENABLE);
    for (int i = 0; i < 2; i++) {
        g_assert_cmphex(qpci_config_readw(vf[i]->dev, PCI_COMMAND), ==, 0xffff);
    }
    g_assert_cmpint(hca_nop(h), ==, QHCA_CMD_OK);
    sriov_enable(&s, 2);
    vf_map(vf[0]);
    g_assert_cmphex(hca_status(vf[0]), ==, QHCA_STATUS_READY);
    nic_close(&nic);
    vf_free(vf[0]);
    vf_free(vf[1]);
    hca_stop(h);
}

/*
 * A vIOMMU reports the fault of our DMA into a buffer that is our own BAR, or
 * configuration space: it finds the engine on the stack, with its lock held.
 */
#define VIOMMU_BYPASS       36      /* in struct virtio_iommu_config */
#define VIOMMU_REQUEST_QUEUE 0
#define VIOMMU_EVENT_QUEUE  1
#define VIOMMU_FAULT_ADDR   16      /* in struct virtio_iommu_fault */
#define VIOMMU_FAULT_SIZE   24

typedef struct Viommu {
    QVirtioPCIDevice *dev;
    QVirtQueue *requests, *events;
    uint64_t buf;
} Viommu;

static void viommu_open(Hca *h, Viommu *v)
{
    QPCIAddress addr = { .devfn = QPCI_DEVFN(6, 0) };
    QVirtioDevice *vdev;

    v->dev = virtio_pci_new(h->bus, &addr);
    g_assert_nonnull(v->dev);
    vdev = &v->dev->vdev;
    qvirtio_pci_device_enable(v->dev);
    qvirtio_start_device(vdev);
    qvirtio_set_features(vdev, qvirtio_get_features(vdev) &
                         ~(1ull << VIRTIO_RING_F_INDIRECT_DESC |
                           1ull << VIRTIO_RING_F_EVENT_IDX));
    v->requests = qvirtqueue_setup(vdev, h->alloc, VIOMMU_REQUEST_QUEUE);
    v->events = qvirtqueue_setup(vdev, h->alloc, VIOMMU_EVENT_QUEUE);
    qvirtio_set_driver_ok(vdev);
    v->buf = hca_page(h);
}

static void viommu_close(Hca *h, Viommu *v)
{
    qvirtqueue_cleanup(v->dev->vdev.bus, v->events, h->alloc);
    qvirtqueue_cleanup(v->dev->vdev.bus, v->requests, h->alloc);
    qvirtio_pci_destructor(&v->dev->obj);
    g_free(v->dev);
}

static void viommu_bypass(Viommu *v, bool on)
{
    qpci_io_writeb(v->dev->pdev, v->dev->bar,
                   v->dev->device_cfg_offset + VIOMMU_BYPASS, on);
}

/* Of the next report the first word, or the address from there on, is @addr's. */
static void viommu_aim(Hca *h, Viommu *v, uint64_t addr, bool fault_addr)
{
    uint32_t len = fault_addr ? VIOMMU_FAULT_ADDR : 4;
    uint64_t first = fault_addr ? v->buf : addr;
    uint64_t rest = fault_addr ? addr : v->buf;
    uint32_t head;

    head = qvirtqueue_add(h->qts, v->events, first, len, true, true);
    qvirtqueue_add(h->qts, v->events, rest, VIOMMU_FAULT_SIZE - len, true,
                   false);
    qvirtqueue_kick(h->qts, &v->dev->vdev, v->events, head);
}

static uint16_t viommu_reports(Hca *h, Viommu *v)
{
    return qtest_readw(h->qts, v->events->used + 2);
}

static void test_iommu_fault(void)
{
    Hca *h = hca_new("q35", "-device virtio-iommu-pci,addr=06.0 "
                     "-netdev hubport,id=n0,hubid=0 "
                     "-device qhca,id=h0,netdev=n0,addr=04.0,mac=" MAC);
    uint64_t config = ECAM + (QPCI_DEVFN(4, 0) << 12);
    uint64_t flr;
    Viommu v;
    Eth e = { };

    hca_map(h);
    flr = config + qpci_find_capability(h->dev, PCI_CAP_ID_EXP, 0) +
          PCI_EXP_DEVCTL;
    enable_ecam(h);
    viommu_open(h, &v);
    eth_bring_up(h, &e);
    hca_reset(h);
    /* The address that faults is a request for a function-level reset, too. */
    while (!(e.tx & PCI_EXP_DEVCTL_BCR_FLR)) {
        e.tx = hca_page(h);
    }
    const struct {
        uint64_t addr;
        bool fault_addr;
    } target[] = {
        { h->regs.addr + QHCA_REG_CONTROL },
        { h->regs.addr + QHCA_REG_CMDQ_DOORBELL },
        { h->doorbells.addr },
        { h->doorbells.addr, true },
        { flr, true },
        { config + PCI_COMMAND },       /* no bus master, no BARs */
    };

    for (int i = 0; i < ARRAY_SIZE(target); i++) {
        eth_bring_up(h, &e);
        viommu_aim(h, &v, target[i].addr, target[i].fault_addr);
        g_assert_cmpuint(viommu_reports(h, &v), ==, i);
        viommu_bypass(&v, false);
        eth_send(h, &e, 4, 100, 1);     /* descriptors that cannot be read */
        g_assert_cmpuint(viommu_reports(h, &v), ==, i + 1);
        viommu_bypass(&v, true);
        g_free(h->dev);
        hca_map(h);
        hca_reset(h);
    }
    eth_bring_up(h, &e);
    eth_send(h, &e, 8, 100, 1);
    eth_wait_sent(h, &e);
    g_assert_cmpuint(hca_adapter(h, "mmio_refused"), >=, 1);
    viommu_close(h, &v);
    hca_stop(h);
}

/*
 * The fault of a virtual function's DMA ends VF Enable, or sets it, with the
 * engine on the stack in a command of that function.
 */
static void test_iommu_fault_vf(void)
{
    Hca *h = hca_new("q35", "-device virtio-iommu-pci,addr=06.0 "
                     "-device qhca,id=h0,addr=04.0,sriov-vfs=2,mac=" MAC);
    Hca *vf[2];
    Viommu v;
    Sriov s;

    hca_map(h);
    sriov_open(h, &s);
    viommu_open(h, &v);
    hca_bring_up(h);
    sriov_enable(&s, 2);
    for (int i = 0; i < 2; i++) {
        vf[i] = vf_new(&s, i);
        hca_enable(vf[i]);
    }
    for (int round = 0; round < 4; round++) {
        /* What arrives is the reason, 1, or the address, an even number. */
        viommu_aim(h, &v, round & 1 ? ecam_of(vf[0]->dev) + PCI_COMMAND :
                   s.cap + PCI_SRIOV_CTRL, round & 2);
        viommu_bypass(&v, false);
        hca_write(vf[0], QHCA_REG_CMDQ_DOORBELL, 1);
        g_assert_cmpuint(viommu_reports(h, &v), ==, round + 1);
        viommu_bypass(&v, true);
        hca_assert_alive(h);
        g_assert_cmpint(hca_nop(h), ==, QHCA_CMD_OK);
        if (round == 2) {
            g_assert_cmphex(sriov_status(&s, 0), ==, UINT32_MAX);
            g_assert_cmphex(sriov_status(&s, 1), ==, UINT32_MAX);
        }
        sriov_disable(&s);
        sriov_enable(&s, 2);
        for (int i = 0; i < 2; i++) {
            vf_map(vf[i]);
            g_assert_cmphex(hca_status(vf[i]), ==, QHCA_STATUS_READY);
            hca_enable(vf[i]);
            g_assert_cmpint(hca_nop(vf[i]), ==, QHCA_CMD_OK);
        }
    }
    viommu_close(h, &v);
    vf_free(vf[0]);
    vf_free(vf[1]);
    hca_stop(h);
}

/* A request whose tail is its last part. */
static void viommu_request(Hca *h, Viommu *v, const void *request, size_t len)
{
    const size_t tail = sizeof(struct virtio_iommu_req_tail);
    uint32_t head;

    qtest_memwrite(h->qts, v->buf, request, len);
    qtest_writeb(h->qts, v->buf + len - tail, VIRTIO_IOMMU_S_DEVERR);
    head = qvirtqueue_add(h->qts, v->requests, v->buf, len - tail, false, true);
    qvirtqueue_add(h->qts, v->requests, v->buf + len - tail, tail, true, false);
    qvirtqueue_kick(h->qts, &v->dev->vdev, v->requests, head);
    qvirtio_wait_used_elem(h->qts, &v->dev->vdev, v->requests, head, NULL,
                           ANSWER_S * G_USEC_PER_SEC);
    g_assert_cmpuint(qtest_readb(h->qts, v->buf + len - tail), ==,
                     VIRTIO_IOMMU_S_OK);
}

static void viommu_attach(Hca *h, Viommu *v)
{
    struct virtio_iommu_req_attach attach = {
        .head.type = VIRTIO_IOMMU_T_ATTACH, .domain = cpu_to_le32(1),
        .endpoint = cpu_to_le32(QPCI_DEVFN(4, 0)),
    };

    viommu_request(h, v, &attach, sizeof(attach));
}

static void viommu_map(Hca *h, Viommu *v, uint64_t first, uint64_t end,
                       uint64_t to)
{
    struct virtio_iommu_req_map map = {
        .head.type = VIRTIO_IOMMU_T_MAP, .domain = cpu_to_le32(1),
        .virt_start = cpu_to_le64(first), .virt_end = cpu_to_le64(end - 1),
        .phys_start = cpu_to_le64(to),
        .flags = cpu_to_le32(VIRTIO_IOMMU_MAP_F_READ |
                             VIRTIO_IOMMU_MAP_F_WRITE),
    };

    viommu_request(h, v, &map, sizeof(map));
}

/*
 * The second part of a frame begins at the last byte of a page, and the page
 * behind it is mapped to somewhere else.
 */
static void test_iommu_last_byte(void)
{
    const uint64_t ram = 128 * MiB;
    uint8_t frame[100] = { };
    struct qhca_eth_txd txd[2];
    uint64_t page, next, other;
    Eth e = { };
    Viommu v;
    int peer;
    Hca *h = hca_start_with_peer(&peer, "q35 -device virtio-iommu-pci,addr=06.0");

    viommu_open(h, &v);
    eth_bring_up(h, &e);
    eth_reach_peer(h, &e, peer, 1);
    eth_wait_sent(h, &e);
    page = QEMU_ALIGN_UP(e.tx_buf, 4096);
    next = page + 4096;
    other = hca_page(h);
    viommu_attach(h, &v);
    viommu_map(h, &v, 0, next, 0);
    viommu_map(h, &v, next, next + 4096, other);
    viommu_map(h, &v, next + 4096, ram, next + 4096);

    memset(frame, 0xff, 6);
    memcpy(frame + 6, own_mac, 6);
    stw_be_p(frame + 12, 0x88b5);
    stl_be_p(frame + sizeof(frame) - 4, 2);
    qtest_memwrite(h->qts, page, frame, 12);
    qtest_memwrite(h->qts, next - 1, frame + 12, 1);
    qtest_memset(h->qts, next, 0, 4096);
    qtest_memwrite(h->qts, other, frame + 13, sizeof(frame) - 13);
    txd[0] = (struct qhca_eth_txd) {
        .addr = cpu_to_le64(page), .len = cpu_to_le32(12),
    };
    txd[1] = (struct qhca_eth_txd) {
        .addr = cpu_to_le64(next - 1),
        .len = cpu_to_le32(sizeof(frame) - 12),
        .flags = cpu_to_le16(QHCA_TXD_EOP),
    };
    for (int i = 0; i < ARRAY_SIZE(txd); i++, e.tx_pi++) {
        qtest_memwrite(h->qts, e.tx + e.tx_pi % TX_DEPTH * sizeof(*txd),
                       &txd[i], sizeof(*txd));
    }
    hca_ring(h, 0, QHCA_DB_ETH_TX, (uint64_t)e.tx_pi << 32);
    /* The frame's type is right, too. */
    g_assert_true(peer_wait_for(peer, 2));
    viommu_close(h, &v);
    close(peer);
    hca_stop(h);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);

    qtest_add_func("/qhca-reentry/reset-in-flush", test_reset_in_flush);
    qtest_add_func("/qhca-reentry/flr-in-flush", test_flr_in_flush);
    qtest_add_func("/qhca-reentry/d3hot-in-flush", test_d3hot_in_flush);
    qtest_add_func("/qhca-reentry/doorbell-in-flush", test_doorbell_in_flush);
    qtest_add_func("/qhca-reentry/unplug-in-flush", test_unplug_in_flush);
    qtest_add_func("/qhca-reentry/own-vector", test_own_vector);
    qtest_add_func("/qhca-reentry/iommu-fault", test_iommu_fault);
    qtest_add_func("/qhca-reentry/vf-in-flush", test_vf_in_flush);
    qtest_add_func("/qhca-reentry/vf-vector", test_vf_vector);
    qtest_add_func("/qhca-reentry/iommu-fault-vf", test_iommu_fault_vf);
    qtest_add_func("/qhca-reentry/iommu-last-byte", test_iommu_last_byte);
    return g_test_run();
}
