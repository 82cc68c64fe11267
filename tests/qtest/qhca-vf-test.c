/*
 * QTest testcase for the qhca RDMA adapter: virtual functions
 *
 * The capability and the BARs, what belongs to one function alone, and how the
 * functions come and go.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qhca-eth.h"
#include "qhca-sriov.h"

#define NUM_VFS     3
#define VF_OPTIONS  ",vf-vectors=4,vf-doorbell-pages=16,vf-devmem-size=8192"

/* A guest in which all virtual functions are enabled. */
typedef struct Vfs {
    Hca *h;
    Sriov sriov;
    Hca *vf[NUM_VFS];
} Vfs;

static void vfs_attach(Vfs *v)
{
    sriov_enable(&v->sriov, NUM_VFS);
    for (int i = 0; i < NUM_VFS; i++) {
        v->vf[i] = vf_new(&v->sriov, i);
    }
}

static void vfs_detach(Vfs *v)
{
    for (int i = 0; i < NUM_VFS; i++) {
        vf_free(v->vf[i]);
    }
}

static void vfs_start(Vfs *v)
{
    v->h = hca_start_with_vfs(NUM_VFS, VF_OPTIONS);
    sriov_open(v->h, &v->sriov);
    vfs_attach(v);
}

static void vfs_stop(Vfs *v)
{
    vfs_detach(v);
    hca_stop(v->h);
}

/* What software finds where there is no function. */
static void assert_gone(Hca *vf)
{
    g_assert_cmphex(qpci_config_readl(vf->dev, PCI_COMMAND), ==, UINT32_MAX);
    g_assert_cmphex(qtest_readl(vf->qts, vf->regs.addr + QHCA_REG_MAGIC), !=,
                    QHCA_MAGIC);
}

/*
 * ------------------------------------------------------------------------
 * Configuration space
 */
static void test_none(void)
{
    Hca *h = hca_start();

    enable_ecam(h);
    g_assert_cmphex(ext_capability(h, PCI_EXT_CAP_ID_ERR), !=, 0);
    g_assert_cmphex(ext_capability(h, PCI_EXT_CAP_ID_SRIOV), ==, 0);
    g_assert_cmphex(ext_capability(h, PCI_EXT_CAP_ID_ARI), ==, 0);
    hca_stop(h);
}

static void test_capability(void)
{
    Hca *h = hca_start_with_vfs(NUM_VFS, VF_OPTIONS);
    QPCIDevice absent = { .bus = h->bus, .devfn = QPCI_DEVFN(4, 1) };
    const uint64_t size[] = { QHCA_BAR_REGS_SIZE, 16 * QHCA_DB_PAGE_SIZE,
                              8192 };
    const uint8_t type[] = {
        PCI_BASE_ADDRESS_MEM_TYPE_64, PCI_BASE_ADDRESS_MEM_TYPE_64,
        PCI_BASE_ADDRESS_MEM_TYPE_64 | PCI_BASE_ADDRESS_MEM_PREFETCH
    };
    Sriov s;

    sriov_open(h, &s);
    g_assert_cmphex(ext_capability(h, PCI_EXT_CAP_ID_ARI), !=, 0);
    g_assert_cmpuint(qtest_readw(h->qts, s.cap + PCI_SRIOV_INITIAL_VF), ==,
                     NUM_VFS);
    g_assert_cmpuint(qtest_readw(h->qts, s.cap + PCI_SRIOV_TOTAL_VF), ==,
                     NUM_VFS);
    g_assert_cmpuint(qtest_readw(h->qts, s.cap + PCI_SRIOV_NUM_VF), ==, 0);
    g_assert_cmphex(qtest_readw(h->qts, s.cap + PCI_SRIOV_VF_DID), ==,
                    QHCA_PCI_VF_DEVICE_ID);
    for (int i = 0; i < 3; i++) {
        uint32_t bar = qtest_readl(h->qts, s.cap + PCI_SRIOV_BAR + i * 8);

        g_assert_cmphex(s.size[i * 2], ==, size[i]);
        g_assert_cmphex(bar & 0xf, ==, type[i]);
    }
    g_assert_cmphex(qpci_config_readl(&absent, 0), ==, UINT32_MAX);
    g_assert_cmphex(qtest_readl(h->qts, s.bar[0] + QHCA_REG_MAGIC), !=,
                    QHCA_MAGIC);
    hca_stop(h);
}

/* As many as there can be, behind a port. */
static void test_most(void)
{
    Hca *h = hca_new("q35", "-device pcie-root-port,id=p0,addr=04.0 "
                     "-device qhca,id=h0,bus=p0,sriov-vfs=63");
    QPCIDevice *port = qpci_device_find(h->bus, QPCI_DEVFN(4, 0));
    Sriov s;
    Hca *vf;

    h->bus->mmio_alloc_ptr = ROUND_UP(h->bus->mmio_alloc_ptr, MiB);
    qpci_config_writel(port, PCI_PRIMARY_BUS, 0x00010100);
    qpci_config_writew(port, PCI_MEMORY_BASE, h->bus->mmio_alloc_ptr >> 16);
    hca_map_at(h, QPCI_DEVFN(1 << 5, 0));
    sriov_open(h, &s);
    qpci_config_writew(port, PCI_MEMORY_LIMIT, h->bus->mmio_alloc_ptr >> 16);
    qpci_device_enable(port);
    sriov_enable(&s, 63);
    vf = vf_new(&s, 62);
    g_assert_cmphex(hca_read(vf, QHCA_REG_MAGIC), ==, QHCA_MAGIC);
    g_assert_cmpuint(hca_read(vf, QHCA_REG_GVMI), ==, 63);
    g_assert_cmphex(hca_status(vf), ==, QHCA_STATUS_READY);
    hca_enable(vf);
    g_assert_cmpint(hca_nop(vf), ==, QHCA_CMD_OK);
    vf_free(vf);
    g_free(port);
    hca_stop(h);
}

static void test_bad_properties(void)
{
    static const struct {
        const char *properties, *why;
    } bad[] = {
        { "'bus': 'p0', 'sriov-vfs': 64", "is over 63" },
        { "'bus': 'p0', 'sriov-vfs': 1, 'vf-vectors': 0", "vf-vectors=0" },
        { "'bus': 'p0', 'sriov-vfs': 1, 'vf-vectors': 65", "vf-vectors=65" },
        { "'bus': 'p0', 'sriov-vfs': 1, 'vf-doorbell-pages': 3",
          "vf-doorbell-pages=3" },
        { "'bus': 'p0', 'sriov-vfs': 1, 'vf-devmem-size': 2048",
          "vf-devmem-size=2048" },
        { "'bus': 'p0', 'sriov-vfs': 1, 'vf-log-max-qp': 40",
          "a virtual function's log-max-qp is 40" },
        { "'bus': 'p0', 'sriov-vfs': 2, 'addr': '1f.6'", "overflows" },
        { "'bus': 'b0', 'sriov-vfs': 1, 'addr': '1'", "PCI Express bus" },
    };
    Hca *h = hca_new("q35", "-global "
                     "ICH9-LPC.acpi-pci-hotplug-with-bridge-support=off "
                     "-device pcie-root-port,id=p0,addr=04.0 "
                     "-device pcie-pci-bridge,id=b0,addr=06.0");
    const char *why;
    QDict *answer;

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        g_autofree char *text =
            g_strdup_printf("{ 'execute': 'device_add', 'arguments': { "
                            "'driver': 'qhca', 'id': 'h0', %s } }",
                            bad[i].properties);

        answer = qtest_qmp(h->qts, text, NULL);
        g_assert_true(qdict_haskey(answer, "error"));
        why = qdict_get_str(qdict_get_qdict(answer, "error"), "desc");
        g_assert_nonnull(strstr(why, bad[i].why));
        qobject_unref(answer);
    }
    answer = qtest_qmp(h->qts, "{ 'execute': 'device_add', 'arguments': { "
                       "'driver': 'qhca-vf', 'bus': 'p0' } }");
    g_assert_true(qdict_haskey(answer, "error"));
    qobject_unref(answer);
    /* A function that failed to start has left nothing behind. */
    qtest_qmp_device_add(h->qts, "qhca", "h0", "{ 'bus': 'p0', "
                         "'sriov-vfs': 63 }");
    hca_stop(h);
}

/*
 * ------------------------------------------------------------------------
 * What each function has for itself
 */
static void test_bars(void)
{
    Vfs v;

    vfs_start(&v);
    for (int i = 0; i < NUM_VFS; i++) {
        g_assert_cmphex(hca_read(v.vf[i], QHCA_REG_MAGIC), ==, QHCA_MAGIC);
        qtest_writel(v.h->qts, v.vf[i]->devmem.addr + 8188, i + 1);
    }
    qtest_writel(v.h->qts, v.h->devmem.addr, 0x12345678);
    for (int i = 0; i < NUM_VFS; i++) {
        g_assert_cmphex(qtest_readl(v.h->qts, v.vf[i]->devmem.addr), ==, 0);
        g_assert_cmphex(qtest_readl(v.h->qts, v.vf[i]->devmem.addr + 8188), ==,
                        i + 1);
    }

    /* With fewer functions the others are gone, and all memory is cleared. */
    hca_bring_up(v.h);
    sriov_disable(&v.sriov);
    for (int i = 0; i < NUM_VFS; i++) {
        assert_gone(v.vf[i]);
        g_assert_cmphex(sriov_status(&v.sriov, i), ==, UINT32_MAX);
    }
    sriov_enable(&v.sriov, 1);
    g_assert_cmphex(sriov_status(&v.sriov, 0), ==, QHCA_STATUS_READY);
    g_assert_cmphex(sriov_status(&v.sriov, 1), ==, UINT32_MAX);
    vf_map(v.vf[0]);
    g_assert_cmphex(hca_read(v.vf[0], QHCA_REG_MAGIC), ==, QHCA_MAGIC);
    g_assert_cmphex(qtest_readl(v.h->qts, v.vf[0]->devmem.addr + 8188), ==, 0);
    assert_gone(v.vf[1]);
    assert_gone(v.vf[2]);
    g_assert_cmphex(qtest_readl(v.h->qts, v.h->devmem.addr), ==, 0x12345678);
    vfs_stop(&v);
}

static uint64_t mac_of(Hca *h)
{
    return hca_read(h, QHCA_REG_MAC_LO) |
           (uint64_t)hca_read(h, QHCA_REG_MAC_HI) << 32;
}

static void test_registers(void)
{
    struct qhca_caps caps;
    uint64_t mac[NUM_VFS];
    Vfs v;

    vfs_start(&v);
    g_assert_cmpuint(hca_read(v.h, QHCA_REG_GVMI), ==, 0);
    for (int i = 0; i < NUM_VFS; i++) {
        g_assert_cmpuint(hca_read(v.vf[i], QHCA_REG_GVMI), ==, i + 1);
        g_assert_cmphex(hca_status(v.vf[i]), ==, QHCA_STATUS_READY);
        mac[i] = mac_of(v.vf[i]);
        g_assert_cmphex(mac[i] & 3, ==, 2);     /* unicast, local */
        g_assert_cmphex(mac[i], !=, mac_of(v.h));
        for (int other = 0; other < i; other++) {
            g_assert_cmphex(mac[i], !=, mac[other]);
        }

        hca_enable(v.vf[i]);
        g_assert_cmpint(hca_cmd(v.vf[i], QHCA_CMD_QUERY_CAPS, 0, 0, NULL, 0,
                                &caps, sizeof(caps)), ==, QHCA_CMD_OK);
        g_assert_cmpuint(le16_to_cpu(caps.num_vectors), ==, 4);
        g_assert_cmpuint(le32_to_cpu(caps.num_db_pages), ==, 16);
        g_assert_cmpuint(le64_to_cpu(caps.devmem_size), ==, 8192);
        g_assert_cmphex(hca_status(v.h), ==, QHCA_STATUS_READY);
    }
    vfs_stop(&v);

    /* The same device has the same addresses. */
    vfs_start(&v);
    for (int i = 0; i < NUM_VFS; i++) {
        g_assert_cmphex(mac_of(v.vf[i]), ==, mac[i]);
    }
    vfs_stop(&v);
}

static void test_doorbells(void)
{
    uint64_t ignored[NUM_VFS];
    uint64_t pf_ignored;
    Vfs v;

    vfs_start(&v);
    hca_enable(v.h);
    pf_ignored = hca_counter(v.h, QHCA_CNT_doorbells_ignored);
    for (int i = 0; i < NUM_VFS; i++) {
        hca_enable(v.vf[i]);
        ignored[i] = hca_counter(v.vf[i], QHCA_CNT_doorbells_ignored);
    }
    for (int i = 0; i < NUM_VFS; i++) {
        for (int j = 0; j <= i; j++) {
            hca_ring(v.vf[i], 15, QHCA_DB_SQ, 2);
        }
    }
    for (int i = 0; i < NUM_VFS; i++) {
        g_assert_cmpuint(hca_counter(v.vf[i], QHCA_CNT_doorbells_ignored), ==,
                         ignored[i] + i + 1);
        g_assert_cmphex(qtest_readq(v.h->qts, v.vf[i]->doorbells.addr), ==, 0);
    }
    g_assert_cmpuint(hca_counter(v.h, QHCA_CNT_doorbells_ignored), ==,
                     pf_ignored);
    vfs_stop(&v);
}

static void kill_function(Hca *h)
{
    hca_set_cmdq(h, 31, 0);
    hca_write(h, QHCA_REG_CONTROL, QHCA_CONTROL_ENABLE);
    hca_assert_fatal(h, QHCA_FATAL_CMDQ_CONFIG);
}

/* The vector of a fatal error goes to the function that has died. */
static void test_msix(void)
{
    uint64_t pf_mailbox, mailbox[NUM_VFS];
    Vfs v;

    vfs_start(&v);
    pf_mailbox = hca_page(v.h);
    hca_enable_msix(v.h);
    msix_target(v.h, 0, pf_mailbox, 0xf00);
    for (int i = 0; i < NUM_VFS; i++) {
        mailbox[i] = hca_page(v.h);
        vf_enable_msix(v.vf[i]);
        msix_target(v.vf[i], 0, mailbox[i], 0xc0ffee + i);
    }
    kill_function(v.vf[1]);
    wait_for_word(v.h, mailbox[1], 0xc0ffee + 1);
    g_assert_cmphex(qtest_readl(v.h->qts, mailbox[0]), ==, 0);
    g_assert_cmphex(qtest_readl(v.h->qts, mailbox[2]), ==, 0);
    g_assert_cmphex(qtest_readl(v.h->qts, pf_mailbox), ==, 0);
    hca_assert_alive(v.h);
    hca_assert_alive(v.vf[0]);
    hca_assert_alive(v.vf[2]);

    /* Masked: its pending bit is set, and a device reset clears it. */
    hca_reset(v.vf[1]);
    qpci_io_writel(v.vf[1]->dev, v.vf[1]->regs, QHCA_MSIX_TABLE_OFFSET +
                   PCI_MSIX_ENTRY_VECTOR_CTRL, 1);
    qtest_writel(v.h->qts, mailbox[1], 0);
    kill_function(v.vf[1]);
    g_assert_true(qpci_msix_pending(v.vf[1]->dev, 0));
    g_assert_cmphex(qtest_readl(v.h->qts, mailbox[1]), ==, 0);
    hca_reset(v.vf[1]);
    g_assert_false(qpci_msix_pending(v.vf[1]->dev, 0));
    kill_function(v.h);
    wait_for_word(v.h, pf_mailbox, 0xf00);
    hca_assert_alive(v.vf[0]);
    vfs_stop(&v);
}

/* Each function has its own event queue, in its own memory. */
static void test_events(void)
{
    uint64_t mailbox[NUM_VFS];
    struct qhca_eqe eqe;
    Vfs v;

    vfs_start(&v);
    hca_bring_up(v.h);
    for (int i = 0; i < NUM_VFS; i++) {
        mailbox[i] = hca_page(v.h);
        vf_enable_msix(v.vf[i]);
        msix_target(v.vf[i], 1, mailbox[i], 0xbeef00 + i);
        hca_bring_up(v.vf[i]);
        hca_ring(v.vf[i], 0, QHCA_DB_EQ_ARM, QHCA_EQN_ASYNC);
    }
    for (int i = NUM_VFS - 1; i >= 0; i--) {
        nop_with_event(v.vf[i], 0x1110 + i);
        qtest_memread(v.h->qts, v.vf[i]->eq, &eqe, sizeof(eqe));
        g_assert_cmpint(eqe.type, ==, QHCA_EVENT_CMD);
        g_assert_cmphex(le16_to_cpu(eqe.token), ==, 0x1110 + i);
        wait_for_word(v.h, mailbox[i], 0xbeef00 + i);
        for (int other = 0; other < i; other++) {
            g_assert_cmphex(qtest_readl(v.h->qts, mailbox[other]), ==, 0);
        }
    }
    g_assert_cmpint(qtest_readb(v.h->qts, v.h->eq), ==, 0);
    vfs_stop(&v);
}

static void wait_received(Hca *h, Eth *e, uint32_t tag)
{
    gint64 end = g_get_monotonic_time() + ANSWER_S * G_USEC_PER_SEC;
    uint32_t got = 0;

    while (!eth_received(h, e, &got) && g_get_monotonic_time() < end) {
        g_usleep(100);
    }
    g_assert_cmphex(got, ==, tag);
}

/* Broadcasts reach every function but the sender, whoever sends them. */
static void test_ethernet(void)
{
    Eth e[1 + NUM_VFS] = { };
    Hca *fn[1 + NUM_VFS];
    uint32_t tag;
    Vfs v;

    vfs_start(&v);
    fn[0] = v.h;
    memcpy(fn + 1, v.vf, sizeof(v.vf));
    for (int i = 0; i <= NUM_VFS; i++) {
        eth_bring_up(fn[i], &e[i]);
        eth_post_receives(fn[i], &e[i]);
    }
    for (int from = 0; from <= NUM_VFS; from++) {
        eth_send(fn[from], &e[from], 1, 100, 0x700 + from);
        for (int to = 0; to <= NUM_VFS; to++) {
            if (to != from) {
                wait_received(fn[to], &e[to], 0x700 + from);
            }
        }
        eth_wait_sent(fn[from], &e[from]);
        g_assert_false(eth_received(fn[from], &e[from], &tag));
    }

    /* The other functions continue when one is gone. */
    vf_flr(v.vf[0]);
    eth_send(v.vf[1], &e[2], 1, 100, 0x800);
    wait_received(v.vf[2], &e[3], 0x800);
    wait_received(v.h, &e[0], 0x800);
    vfs_stop(&v);
}

static void test_bus_master(void)
{
    uint16_t command;
    Vfs v;

    vfs_start(&v);
    hca_enable(v.h);
    for (int i = 0; i < NUM_VFS; i++) {
        hca_enable(v.vf[i]);
        g_assert_cmpint(hca_nop(v.vf[i]), ==, QHCA_CMD_OK);
    }
    command = qpci_config_readw(v.vf[1]->dev, PCI_COMMAND);
    qpci_config_writew(v.vf[1]->dev, PCI_COMMAND,
                       command & ~PCI_COMMAND_MASTER);
    hca_write(v.vf[1], QHCA_REG_CMDQ_DOORBELL, 1);
    hca_assert_fatal(v.vf[1], QHCA_FATAL_CMDQ_DMA);
    g_assert_cmpint(hca_nop(v.vf[0]), ==, QHCA_CMD_OK);
    g_assert_cmpint(hca_nop(v.vf[2]), ==, QHCA_CMD_OK);
    g_assert_cmpint(hca_nop(v.h), ==, QHCA_CMD_OK);

    /* A virtual function does not depend on the PF's bus mastering. */
    qpci_config_writew(v.h->dev, PCI_COMMAND, command & ~PCI_COMMAND_MASTER);
    g_assert_cmpint(hca_nop(v.vf[0]), ==, QHCA_CMD_OK);
    hca_write(v.h, QHCA_REG_CMDQ_DOORBELL, 1);
    hca_assert_fatal(v.h, QHCA_FATAL_CMDQ_DMA);
    g_assert_cmpint(hca_nop(v.vf[0]), ==, QHCA_CMD_OK);

    qpci_config_writew(v.vf[1]->dev, PCI_COMMAND, command);
    hca_reset(v.vf[1]);
    hca_enable(v.vf[1]);
    g_assert_cmpint(hca_nop(v.vf[1]), ==, QHCA_CMD_OK);
    vfs_stop(&v);
}

/*
 * ------------------------------------------------------------------------
 * Reset
 */
static void enable_all(Vfs *v)
{
    hca_enable(v->h);
    for (int i = 0; i < NUM_VFS; i++) {
        hca_enable(v->vf[i]);
    }
}

static void assert_untouched(Hca *h)
{
    g_assert_cmphex(hca_status(h), ==,
                    QHCA_STATUS_READY | QHCA_STATUS_ENABLED);
    g_assert_cmpint(hca_nop(h), ==, QHCA_CMD_OK);
}

static void assert_was_reset(Hca *h)
{
    g_assert_cmphex(hca_status(h), ==, QHCA_STATUS_READY);
    g_assert_cmphex(hca_read(h, QHCA_REG_CMDQ_BASE_LO), ==, 0);
}

static void test_flr(void)
{
    Vfs v;

    vfs_start(&v);
    enable_all(&v);
    qtest_writel(v.h->qts, v.vf[1]->devmem.addr, 0x12345678);
    vf_flr(v.vf[1]);
    assert_was_reset(v.vf[1]);
    /* Its next owner is another one. */
    g_assert_cmphex(qtest_readl(v.h->qts, v.vf[1]->devmem.addr), ==, 0);
    assert_untouched(v.h);
    assert_untouched(v.vf[0]);
    assert_untouched(v.vf[2]);
    hca_reset(v.vf[2]);
    assert_untouched(v.h);
    assert_untouched(v.vf[0]);
    hca_enable(v.vf[1]);
    g_assert_cmpint(hca_nop(v.vf[1]), ==, QHCA_CMD_OK);
    vfs_stop(&v);
}

/* After FLR of the physical function INIT_HCA gives the others their link. */
static void assert_kept_off(Vfs *v)
{
    struct qhca_vf_config up = {
        .fields = cpu_to_le32(QHCA_VF_SET_LINK), .link = QHCA_VF_LINK_UP,
    };
    struct qhca_init_hca init = hca_small_tables();

    g_assert_cmpint(hca_cmd(v->h, QHCA_CMD_SET_VF, 1, 0, &up, sizeof(up), NULL,
                            0), ==, QHCA_CMD_OK);
    g_assert_false(hca_read(v->vf[0], QHCA_REG_LINK) & QHCA_LINK_UP);
    g_assert_cmpint(hca_init(v->h, &init), ==, QHCA_CMD_OK);
    g_assert_true(hca_read(v->vf[0], QHCA_REG_LINK) & QHCA_LINK_UP);
}

/* FLR of the physical function ends VF Enable; a device reset does not. */
static void test_pf_reset(void)
{
    Vfs v;

    vfs_start(&v);
    enable_all(&v);
    hca_reset(v.h);
    for (int i = 0; i < NUM_VFS; i++) {
        assert_untouched(v.vf[i]);
    }
    hca_flr(v.h);
    g_assert_cmphex(qtest_readw(v.h->qts, v.sriov.cap + PCI_SRIOV_CTRL), ==, 0);
    g_assert_cmpuint(qtest_readw(v.h->qts, v.sriov.cap + PCI_SRIOV_NUM_VF), ==,
                     0);
    for (int i = 0; i < NUM_VFS; i++) {
        assert_gone(v.vf[i]);
    }
    vfs_detach(&v);
    sriov_map(&v.sriov);
    vfs_attach(&v);
    for (int i = 0; i < NUM_VFS; i++) {
        assert_was_reset(v.vf[i]);
    }
    enable_all(&v);
    assert_kept_off(&v);

    qtest_system_reset(v.h->qts);
    enable_ecam(v.h);
    for (int i = 0; i < NUM_VFS; i++) {
        assert_gone(v.vf[i]);
    }
    g_free(v.h->dev);
    hca_map(v.h);
    assert_was_reset(v.h);
    vfs_stop(&v);
}

static void test_d3hot(void)
{
    uint8_t pmcsr;
    Vfs v;

    vfs_start(&v);
    enable_all(&v);
    pmcsr = qpci_find_capability(v.vf[1]->dev, PCI_CAP_ID_PM, 0) + PCI_PM_CTRL;
    qpci_config_writew(v.vf[1]->dev, pmcsr, 3);
    g_assert_cmphex(hca_read(v.vf[1], QHCA_REG_MAGIC), !=, QHCA_MAGIC);
    assert_untouched(v.vf[0]);
    assert_untouched(v.h);
    qpci_config_writew(v.vf[1]->dev, pmcsr, 0);
    assert_was_reset(v.vf[1]);
    hca_enable(v.vf[1]);
    g_assert_cmpint(hca_nop(v.vf[1]), ==, QHCA_CMD_OK);

    /* The physical function's D3hot is a device reset of that one. */
    qpci_config_writew(v.h->dev, pmcsr, 3);
    assert_untouched(v.vf[0]);
    qpci_config_writew(v.h->dev, pmcsr, 0);
    assert_was_reset(v.h);
    assert_untouched(v.vf[0]);
    vfs_stop(&v);
}

/* Software posts commands and rings doorbells until VF Enable ends. */
static void make_work(Hca *h)
{
    const struct qhca_cmd_slot nop = {
        .opcode = cpu_to_le16(QHCA_CMD_NOP),
        .status = cpu_to_le32(QHCA_CMD_OWN),
    };

    for (uint32_t slot = 0; slot < 4; slot++) {
        hca_fill_slot(h, slot, &nop);
    }
    for (uint32_t page = 0; page < 16; page++) {
        hca_ring(h, page, QHCA_DB_CQ_ARM, page);
    }
    hca_write(h, QHCA_REG_CMDQ_DOORBELL, 0xf);
}

static void test_disable_busy(void)
{
    Vfs v;

    vfs_start(&v);
    hca_enable(v.h);
    for (int round = 0; round < 20; round++) {
        uint8_t canary[SLOT_SIZE];

        for (int i = 0; i < NUM_VFS; i++) {
            hca_enable(v.vf[i]);
        }
        for (int i = 0; i < NUM_VFS; i++) {
            make_work(v.vf[i]);
        }
        if (round & 1) {
            sriov_disable(&v.sriov);
        } else {
            hca_flr(v.h);
            hca_enable(v.h);
        }
        /* Software owns the memory again, and no function writes to it. */
        for (int i = 0; i < NUM_VFS; i++) {
            qtest_memset(v.h->qts, v.vf[i]->cmdq, 0xa5, SLOT_SIZE);
        }
        g_assert_cmpint(hca_nop(v.h), ==, QHCA_CMD_OK);
        g_usleep(1000);
        for (int i = 0; i < NUM_VFS; i++) {
            qtest_memread(v.h->qts, v.vf[i]->cmdq, canary, sizeof(canary));
            for (size_t j = 0; j < sizeof(canary); j++) {
                g_assert_cmphex(canary[j], ==, 0xa5);
            }
            assert_gone(v.vf[i]);
        }
        sriov_map(&v.sriov);
        sriov_enable(&v.sriov, NUM_VFS);
        for (int i = 0; i < NUM_VFS; i++) {
            vf_map(v.vf[i]);
            assert_was_reset(v.vf[i]);
        }
    }
    vfs_stop(&v);
}

/*
 * ------------------------------------------------------------------------
 * The host's side
 */
static void test_unplug_busy(void)
{
    Hca *h = hca_new("q35", "-global "
                     "ICH9-LPC.acpi-pci-hotplug-with-bridge-support=off "
                     "-device pcie-root-port,id=p0,addr=04.0,chassis=1,slot=1 "
                     "-device qhca,id=h0,bus=p0,sriov-vfs=3" VF_OPTIONS);
    QPCIDevice *port = qpci_device_find(h->bus, QPCI_DEVFN(4, 0));
    uint64_t first = ROUND_UP(h->bus->mmio_alloc_ptr, MiB);
    Vfs v = { .h = h };
    QDict *answer;
    uint8_t cap;

    h->bus->mmio_alloc_ptr = first;
    qpci_config_writel(port, PCI_PRIMARY_BUS, 0x00010100);
    qpci_config_writew(port, PCI_MEMORY_BASE, first >> 16);
    hca_map_at(h, QPCI_DEVFN(1 << 5, 0));
    sriov_open(h, &v.sriov);
    qpci_config_writew(port, PCI_MEMORY_LIMIT, h->bus->mmio_alloc_ptr >> 16);
    qpci_device_enable(port);
    vfs_attach(&v);
    enable_all(&v);
    for (int i = 0; i < NUM_VFS; i++) {
        make_work(v.vf[i]);
    }
    /* The guest switches off the slot's power. */
    qtest_qmp_device_del_send(h->qts, "h0");
    cap = qpci_find_capability(port, PCI_CAP_ID_EXP, 0);
    qpci_config_writew(port, cap + PCI_EXP_SLTCTL,
                       PCI_EXP_SLTCTL_PWR_OFF | PCI_EXP_SLTCTL_PWR_IND_OFF);
    wait_deleted(h);
    for (int i = 0; i < NUM_VFS; i++) {
        assert_gone(v.vf[i]);
    }
    answer = qtest_qmp(h->qts, "{ 'execute': 'query-qhca' }");
    g_assert_true(qlist_empty(qdict_get_qlist(answer, "return")));
    qobject_unref(answer);
    qtest_qmp_device_add(h->qts, "qhca", "h0", "{ 'bus': 'p0', "
                         "'sriov-vfs': 3 }");
    g_free(port);
    vfs_stop(&v);
}

static void test_query(void)
{
    QDict *answer, *info;
    const QListEntry *entry;
    unsigned int n = 0;
    char *text;
    Vfs v;

    vfs_start(&v);
    enable_all(&v);
    hca_reset(v.vf[1]);
    kill_function(v.vf[1]);
    answer = qtest_qmp(v.h->qts, "{ 'execute': 'query-qhca' }");
    info = qobject_to(QDict, qlist_peek(qdict_get_qlist(answer, "return")));
    QLIST_FOREACH_ENTRY(qdict_get_qlist(info, "vfs"), entry) {
        QDict *vf = qobject_to(QDict, qlist_entry_obj(entry));
        QDict *port = qdict_get_qdict(vf, "port");
        g_autofree char *mac = NULL;
        uint64_t octets = mac_of(v.vf[n]);

        g_assert_cmpint(qdict_get_int(vf, "gvmi"), ==, n + 1);
        mac = g_strdup_printf("%02x:%02x:%02x:%02x:%02x:%02x",
                              (int)(octets & 0xff), (int)(octets >> 8 & 0xff),
                              (int)(octets >> 16 & 0xff),
                              (int)(octets >> 24 & 0xff),
                              (int)(octets >> 32 & 0xff),
                              (int)(octets >> 40 & 0xff));
        g_assert_cmpstr(qdict_get_str(port, "mac"), ==, mac);
        g_assert_cmpint(qdict_get_bool(port, "fatal"), ==, n == 1);
        g_assert_false(qlist_empty(qdict_get_qlist(vf, "counters")));
        n++;
    }
    g_assert_cmpuint(n, ==, NUM_VFS);
    qobject_unref(answer);
    text = qtest_hmp(v.h->qts, "info qhca");
    g_assert_nonnull(strstr(text, "h0, gvmi 2:\r\n  port: dead"));
    g_assert_nonnull(strstr(text, "h0, gvmi 3:\r\n  port: enabled"));
    g_free(text);

    sriov_disable(&v.sriov);
    answer = qtest_qmp(v.h->qts, "{ 'execute': 'query-qhca' }");
    info = qobject_to(QDict, qlist_peek(qdict_get_qlist(answer, "return")));
    g_assert_true(qlist_empty(qdict_get_qlist(info, "vfs")));
    qobject_unref(answer);
    vfs_stop(&v);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);

    qtest_add_func("/qhca-vf/none", test_none);
    qtest_add_func("/qhca-vf/capability", test_capability);
    qtest_add_func("/qhca-vf/most", test_most);
    qtest_add_func("/qhca-vf/bad-properties", test_bad_properties);
    qtest_add_func("/qhca-vf/bars", test_bars);
    qtest_add_func("/qhca-vf/registers", test_registers);
    qtest_add_func("/qhca-vf/doorbells", test_doorbells);
    qtest_add_func("/qhca-vf/msix", test_msix);
    qtest_add_func("/qhca-vf/events", test_events);
    qtest_add_func("/qhca-vf/ethernet", test_ethernet);
    qtest_add_func("/qhca-vf/bus-master", test_bus_master);
    qtest_add_func("/qhca-vf/flr", test_flr);
    qtest_add_func("/qhca-vf/pf-reset", test_pf_reset);
    qtest_add_func("/qhca-vf/d3hot", test_d3hot);
    qtest_add_func("/qhca-vf/disable-busy", test_disable_busy);
    qtest_add_func("/qhca-vf/unplug-busy", test_unplug_busy);
    qtest_add_func("/qhca-vf/query", test_query);
    return g_test_run();
}
