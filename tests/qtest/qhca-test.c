/*
 * QTest testcase for the qhca RDMA adapter
 *
 * A guest that means no good: there is no driver here, only registers,
 * doorbells and memory, used as the specification forbids.  Whatever it does,
 * QEMU lives, and the function is usable again after a reset.
 *
 * The group /qhca/record has one test for each kind of vulnerability that was
 * found in QEMU's former paravirtual RDMA device.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qhca-qtest.h"

/*
 * ------------------------------------------------------------------------
 * Registers and configuration space
 */
static void test_config_space(void)
{
    Hca *h = hca_start();
    uint8_t cap;

    g_assert_cmphex(qpci_config_readw(h->dev, PCI_VENDOR_ID), ==,
                    QHCA_PCI_VENDOR_ID);
    g_assert_cmphex(qpci_config_readw(h->dev, PCI_DEVICE_ID), ==,
                    QHCA_PCI_DEVICE_ID);
    g_assert_cmphex(qpci_config_readl(h->dev, PCI_CLASS_REVISION), ==,
                    0x02000000 | QHCA_PCI_REVISION);
    g_assert_cmphex(qpci_config_readb(h->dev, PCI_INTERRUPT_PIN), ==, 0);
    for (int bar = 0; bar < 6; bar += 2) {
        uint32_t low = qpci_config_readl(h->dev, PCI_BASE_ADDRESS_0 + bar * 4);

        g_assert_cmphex(low & 0x7, ==, PCI_BASE_ADDRESS_MEM_TYPE_64);
    }
    g_assert_cmpint(qpci_msix_table_size(h->dev), >=, 1);
    cap = qpci_find_capability(h->dev, PCI_CAP_ID_EXP, 0);
    g_assert_cmphex(cap, !=, 0);
    g_assert_cmphex(qpci_config_readl(h->dev, cap + PCI_EXP_DEVCAP) &
                    PCI_EXP_DEVCAP_FLR, !=, 0);
    hca_stop(h);
}

static void test_registers(void)
{
    Hca *h = hca_start();

    g_assert_cmphex(hca_read(h, QHCA_REG_MAGIC), ==, QHCA_MAGIC);
    g_assert_cmphex(hca_read(h, QHCA_REG_VERSION), ==,
                    QHCA_ABI_MAJOR << 16 | QHCA_ABI_MINOR);
    g_assert_cmphex(hca_status(h), ==, QHCA_STATUS_READY);
    g_assert_cmphex(hca_read(h, QHCA_REG_CONTROL), ==, 0);
    g_assert_cmphex(hca_read(h, QHCA_REG_GVMI), ==, 0);
    g_assert_cmphex(hca_read(h, QHCA_REG_MAC_LO), ==, 0x0a005452);
    g_assert_cmphex(hca_read(h, QHCA_REG_MAC_HI), ==, 0x0c0b);
    g_assert_cmphex(hca_read(h, QHCA_REG_LINK) & QHCA_LINK_UP, ==,
                    QHCA_LINK_UP);

    /* Read-only ones stay. */
    hca_write(h, QHCA_REG_MAGIC, 0);
    hca_write(h, QHCA_REG_MAC_LO, 0);
    g_assert_cmphex(hca_read(h, QHCA_REG_MAGIC), ==, QHCA_MAGIC);
    g_assert_cmphex(hca_read(h, QHCA_REG_MAC_LO), ==, 0x0a005452);

    /* Other sizes and places read as zero and ignore writes. */
    g_assert_cmphex(qpci_io_readb(h->dev, h->regs, QHCA_REG_MAGIC), ==, 0);
    g_assert_cmphex(qpci_io_readw(h->dev, h->regs, QHCA_REG_MAGIC), ==, 0);
    g_assert_cmphex(qpci_io_readl(h->dev, h->regs, QHCA_REG_MAGIC + 2), ==, 0);
    qpci_io_writew(h->dev, h->regs, QHCA_REG_CONTROL, QHCA_CONTROL_ENABLE);
    qpci_io_writeb(h->dev, h->regs, QHCA_REG_CONTROL, QHCA_CONTROL_ENABLE);
    g_assert_cmphex(hca_status(h), ==, QHCA_STATUS_READY);
    for (uint32_t reg = QHCA_REG_END; reg < QHCA_MSIX_TABLE_OFFSET;
         reg += 1020) {
        hca_write(h, reg & ~3, UINT32_MAX);
        g_assert_cmphex(hca_read(h, reg & ~3), ==, 0);
    }
    hca_stop(h);
}

static void test_bad_enable(void)
{
    Hca *h = hca_start();

    hca_set_cmdq(h, QHCA_MAX_LOG_CMD_SLOTS + 1, h->cmdq);
    hca_write(h, QHCA_REG_CONTROL, QHCA_CONTROL_ENABLE);
    hca_assert_fatal(h, QHCA_FATAL_CMDQ_CONFIG);
    g_assert_cmphex(hca_status(h) & QHCA_STATUS_ENABLED, ==, 0);

    /* Dead until reset. */
    hca_set_cmdq(h, 0, h->cmdq);
    hca_write(h, QHCA_REG_CONTROL, QHCA_CONTROL_ENABLE);
    g_assert_cmphex(hca_status(h) & QHCA_STATUS_ENABLED, ==, 0);
    hca_reset(h);
    g_assert_cmphex(hca_read(h, QHCA_REG_CMDQ_LOG_SLOTS), ==, 0);

    hca_set_cmdq(h, 0, h->cmdq + 64);
    hca_write(h, QHCA_REG_CONTROL, QHCA_CONTROL_ENABLE);
    hca_assert_fatal(h, QHCA_FATAL_CMDQ_CONFIG);
    g_assert_cmphex(hca_read(h, QHCA_REG_FATAL_INFO), ==, 1);
    hca_reset(h);

    hca_enable(h);
    g_assert_cmpint(hca_nop(h), ==, QHCA_CMD_OK);
    hca_stop(h);
}

/*
 * ------------------------------------------------------------------------
 * Commands
 */
static void test_commands(void)
{
    static const uint16_t unknown[] = { 0x07, 0x3f, 0x99, 0xff, 0x1234 };
    struct qhca_caps caps;
    Hca *h = hca_start();

    hca_enable(h);
    g_assert_cmpint(hca_nop(h), ==, QHCA_CMD_OK);
    g_assert_cmpint(hca_cmd(h, QHCA_CMD_QUERY_CAPS, 0, 0, NULL, 0, &caps,
                            sizeof(caps)), ==, QHCA_CMD_OK);
    g_assert_cmpint(caps.num_ports, ==, 1);
    g_assert_cmpint(caps.num_vectors, ==, qpci_msix_table_size(h->dev));
    g_assert_cmphex(le32_to_cpu(caps.reserved_lkey), ==, QHCA_RESERVED_LKEY);

    g_assert_cmpint(hca_cmd(h, QHCA_CMD_QUERY_CAPS, 0, 0, NULL, 0, &caps, 64),
                    ==, QHCA_CMD_BAD_LEN);
    for (int i = 0; i < ARRAY_SIZE(unknown); i++) {
        g_assert_cmpint(hca_cmd(h, unknown[i], 0, 0, NULL, 0, NULL, 0), ==,
                        QHCA_CMD_BAD_OPCODE);
    }
    g_assert_cmpint(hca_cmd(h, QHCA_CMD_SET_VF, 0, 0, NULL, 0, NULL, 0), ==,
                    QHCA_CMD_UNSUPPORTED);
    hca_stop(h);
}

static void test_command_slots(void)
{
    struct qhca_cmd_slot nop = {
        .opcode = cpu_to_le16(QHCA_CMD_NOP),
        .status = cpu_to_le32(QHCA_CMD_OWN),
    };
    Hca *h = hca_start();
    uint64_t commands;

    /* Not enabled: nothing runs. */
    hca_fill_slot(h, 0, &nop);
    hca_write(h, QHCA_REG_CMDQ_DOORBELL, UINT32_MAX);
    g_assert_cmphex(hca_slot_status(h, 0), ==, QHCA_CMD_OWN);

    hca_enable(h);
    commands = hca_counter(h, QHCA_CNT_commands);
    for (int i = 0; i < 4; i++) {
        hca_fill_slot(h, i, &nop);
    }
    hca_write(h, QHCA_REG_CMDQ_DOORBELL, 0xf);
    for (int i = 0; i < 4; i++) {
        g_assert_cmpint(hca_wait_slot(h, i), ==, QHCA_CMD_OK);
    }
    /* Slots that are software's and slots that do not exist. */
    hca_write(h, QHCA_REG_CMDQ_DOORBELL, UINT32_MAX);
    g_assert_cmpuint(hca_counter(h, QHCA_CNT_commands), ==, commands + 5);
    hca_assert_alive(h);
    hca_stop(h);
}

static void test_bad_geometry(void)
{
    struct qhca_init_hca good = hca_small_tables(), bad;
    struct qhca_caps caps;
    Hca *h = hca_start();

    hca_enable(h);
    g_assert_cmpint(hca_cmd(h, QHCA_CMD_QUERY_CAPS, 0, 0, NULL, 0, &caps,
                            sizeof(caps)), ==, QHCA_CMD_OK);
    for (int id = 0; id < QHCA_NUM_CACHES; id++) {
        const uint32_t max_sets = le16_to_cpu(caps.cache_max[id].sets);
        const uint32_t max_blocks = le16_to_cpu(caps.cache_max[id].blocks);
        const struct { uint32_t sets, blocks; } geometry[] = {
            { 0, 1 }, { 1, 0 }, { 3, 1 }, { 1, 3 },
            { max_sets * 2, 1 }, { 1, max_blocks * 2 },
        };

        for (int i = 0; i < ARRAY_SIZE(geometry); i++) {
            bad = good;
            bad.cache[id].sets = cpu_to_le16(geometry[i].sets);
            bad.cache[id].blocks = cpu_to_le16(geometry[i].blocks);
            g_assert_cmpint(hca_init(h, &bad), ==, QHCA_CMD_BAD_PARAM);
        }
    }
    for (int table = 0; table < QHCA_NUM_TABLES; table++) {
        static const uint8_t log_entries[] = { 0, 25, 64, 255 };
        static const uint8_t log_chunk[] = { 0, 11, 23, 255 };

        for (int i = 0; i < ARRAY_SIZE(log_entries); i++) {
            bad = good;
            bad.table[table].log_entries = log_entries[i];
            g_assert_cmpint(hca_init(h, &bad), ==, QHCA_CMD_BAD_PARAM);
            bad = good;
            bad.table[table].log_chunk = log_chunk[i];
            g_assert_cmpint(hca_init(h, &bad), ==, QHCA_CMD_BAD_PARAM);
        }
    }
    bad = good;
    bad.flags = cpu_to_le32(0x80000000);
    g_assert_cmpint(hca_init(h, &bad), ==, QHCA_CMD_BAD_PARAM);

    g_assert_cmpint(hca_init(h, &good), ==, QHCA_CMD_OK);
    g_assert_cmpint(hca_init(h, &good), ==, QHCA_CMD_BAD_STATE);
    hca_stop(h);
}

/*
 * ------------------------------------------------------------------------
 * Doorbells
 */
static void ring_garbage(Hca *h, GRand *rand)
{
    static const uint32_t offsets[] = {
        QHCA_DB_SQ, QHCA_DB_CQ_ARM, QHCA_DB_EQ_ARM, QHCA_DB_ETH_TX,
        QHCA_DB_ETH_ARM, 0x28, 0x7f8, 0xff8,
    };

    for (int i = 0; i < 2000; i++) {
        uint32_t page = g_rand_int_range(rand, 0, 4);
        uint32_t offset = offsets[g_rand_int_range(rand, 0,
                                                   ARRAY_SIZE(offsets))];
        uint64_t value = (uint64_t)g_rand_int(rand) << 32 | g_rand_int(rand);

        if (i & 1) {
            value &= 0xffffffff0000000full; /* numbers that may exist */
        }
        hca_ring(h, page, offset, value);
    }
    qpci_io_writeb(h->dev, h->doorbells, 0, 1);
    qpci_io_writew(h->dev, h->doorbells, 2, 1);
    qpci_io_writel(h->dev, h->doorbells, 4, 1);
    qtest_writel(h->qts, h->doorbells.addr + 0x17, 1);
}

static void test_doorbells(void)
{
    Hca *h = hca_start();
    GRand *rand = g_rand_new_with_seed(1);
    uint64_t ignored;

    ring_garbage(h, rand);
    hca_assert_alive(h);
    hca_enable(h);
    ignored = hca_counter(h, QHCA_CNT_doorbells_ignored);
    hca_ring(h, 0, QHCA_DB_SQ, 2);
    qpci_io_writel(h->dev, h->doorbells, QHCA_DB_SQ, 2);
    g_assert_cmpuint(hca_counter(h, QHCA_CNT_doorbells_ignored), ==,
                     ignored + 2);
    hca_reset(h);

    hca_bring_up(h);
    ring_garbage(h, rand);
    g_assert_cmpint(hca_nop(h), ==, QHCA_CMD_OK);
    hca_assert_alive(h);

    /* Nothing to read. */
    g_assert_cmphex(qtest_readq(h->qts, h->doorbells.addr), ==, 0);
    g_assert_cmphex(qtest_readl(h->qts, h->doorbells.addr + 4), ==, 0);
    g_rand_free(rand);
    hca_stop(h);
}

/*
 * ------------------------------------------------------------------------
 * DMA
 */
static void assert_cmdq_unreachable(Hca *h, uint64_t base)
{
    hca_set_cmdq(h, 0, base);
    hca_write(h, QHCA_REG_CONTROL, QHCA_CONTROL_ENABLE);
    hca_write(h, QHCA_REG_CMDQ_DOORBELL, 1);
    hca_assert_fatal(h, QHCA_FATAL_CMDQ_DMA);
    hca_reset(h);
}

static void test_dma_to_devices(void)
{
    Hca *h = hca_start();
    struct qhca_cmd_slot slot = {
        .opcode = cpu_to_le16(QHCA_CMD_QUERY_CAPS),
        .out_len = cpu_to_le32(sizeof(struct qhca_caps)),
    };
    const uint64_t nowhere[] = {
        h->regs.addr, h->regs.addr + QHCA_MSIX_TABLE_OFFSET,
        h->doorbells.addr, h->devmem.addr,
        0xfee00000,     /* interrupt controllers */
        NOWHERE, UINT64_MAX & ~4095ull,
    };

    for (int i = 0; i < ARRAY_SIZE(nowhere); i++) {
        assert_cmdq_unreachable(h, nowhere[i]);
    }
    hca_enable(h);
    for (int i = 0; i < ARRAY_SIZE(nowhere); i++) {
        slot.out_addr = cpu_to_le64(nowhere[i]);
        g_assert_cmpint(hca_run(h, &slot), ==, QHCA_CMD_DMA_ERR);
    }
    /* From memory into what is none: all or nothing. */
    slot.out_addr = cpu_to_le64(128 * MiB - 64);
    g_assert_cmpint(hca_run(h, &slot), ==, QHCA_CMD_DMA_ERR);
    hca_assert_alive(h);
    hca_stop(h);
}

static void test_bus_master(void)
{
    Hca *h = hca_start();
    uint16_t command = qpci_config_readw(h->dev, PCI_COMMAND);

    hca_enable(h);
    g_assert_cmpint(hca_nop(h), ==, QHCA_CMD_OK);
    qpci_config_writew(h->dev, PCI_COMMAND, command & ~PCI_COMMAND_MASTER);
    hca_write(h, QHCA_REG_CMDQ_DOORBELL, 1);
    hca_assert_fatal(h, QHCA_FATAL_CMDQ_DMA);
    qpci_config_writew(h->dev, PCI_COMMAND, command);
    hca_reset(h);
    hca_enable(h);
    g_assert_cmpint(hca_nop(h), ==, QHCA_CMD_OK);
    hca_stop(h);
}

/*
 * ------------------------------------------------------------------------
 * Reset
 */
static void test_reset(void)
{
    Hca *h = hca_start();

    qtest_writel(h->qts, h->devmem.addr, 0x12345678);
    hca_bring_up(h);
    g_assert_cmphex(hca_read(h, QHCA_REG_CMDQ_LOG_SLOTS), ==, 2);
    hca_reset(h);
    g_assert_cmphex(hca_read(h, QHCA_REG_CONTROL), ==, 0);
    g_assert_cmphex(hca_read(h, QHCA_REG_CMDQ_LOG_SLOTS), ==, 0);
    g_assert_cmphex(hca_read(h, QHCA_REG_CMDQ_BASE_LO), ==, 0);
    g_assert_cmphex(qtest_readl(h->qts, h->devmem.addr), ==, 0x12345678);

    /* Everything was forgotten. */
    hca_enable(h);
    g_assert_cmpint(hca_cmd(h, QHCA_CMD_DESTROY_EQ, 0, 0, NULL, 0, NULL, 0),
                    ==, QHCA_CMD_NOT_INIT);
    hca_reset(h);
    hca_bring_up(h);
    hca_stop(h);
}

static void test_flr(void)
{
    Hca *h = hca_start();

    qtest_writel(h->qts, h->devmem.addr, 0x12345678);
    for (int i = 0; i < 3; i++) {
        hca_bring_up(h);
        hca_flr(h);
        g_assert_cmphex(hca_status(h), ==, QHCA_STATUS_READY);
        g_assert_cmphex(hca_read(h, QHCA_REG_CMDQ_BASE_LO), ==, 0);
        g_assert_cmphex(qtest_readl(h->qts, h->devmem.addr), ==, 0x12345678);
    }
    hca_bring_up(h);
    g_assert_cmpint(hca_nop(h), ==, QHCA_CMD_OK);
    hca_stop(h);
}

static void test_machine_reset(void)
{
    Hca *h = hca_start();

    qtest_writel(h->qts, h->devmem.addr, 0x12345678);
    hca_bring_up(h);
    qtest_system_reset(h->qts);
    g_free(h->dev);
    hca_map(h);
    g_assert_cmphex(hca_status(h), ==, QHCA_STATUS_READY);
    g_assert_cmphex(qtest_readl(h->qts, h->devmem.addr), ==, 0);
    hca_bring_up(h);
    hca_stop(h);
}

/*
 * ------------------------------------------------------------------------
 * Events and interrupts
 */
static void test_event_msix(void)
{
    Hca *h = hca_start();
    uint64_t mailbox = hca_page(h);
    struct qhca_eqe eqe;

    hca_enable_msix(h);
    msix_target(h, 1, mailbox, 0xc0ffee);
    hca_bring_up(h);

    /* Created disarmed: an entry, no interrupt. */
    nop_with_event(h, 0x1111);
    qtest_memread(h->qts, h->eq, &eqe, sizeof(eqe));
    g_assert_cmpint(eqe.type, ==, QHCA_EVENT_CMD);
    g_assert_cmphex(le16_to_cpu(eqe.token), ==, 0x1111);
    g_assert_cmphex(le32_to_cpu(eqe.phase) & QHCA_PHASE, ==, QHCA_PHASE);
    g_assert_cmphex(qtest_readl(h->qts, mailbox), ==, 0);

    /* Armed with the index it is at: nothing; with the next event: one. */
    hca_ring(h, 0, QHCA_DB_EQ_ARM, QHCA_EQN_ASYNC | 1ull << 32);
    g_assert_cmpint(hca_nop(h), ==, QHCA_CMD_OK);
    g_assert_cmphex(qtest_readl(h->qts, mailbox), ==, 0);
    nop_with_event(h, 0x2222);
    wait_for_word(h, mailbox, 0xc0ffee);

    /* No longer armed. */
    qtest_writel(h->qts, mailbox, 0);
    nop_with_event(h, 0x3333);
    g_assert_cmphex(qtest_readl(h->qts, mailbox), ==, 0);

    /* Armed with an index events have passed: at once. */
    hca_ring(h, 0, QHCA_DB_EQ_ARM, QHCA_EQN_ASYNC | 2ull << 32);
    wait_for_word(h, mailbox, 0xc0ffee);
    hca_stop(h);
}

static void test_msix_masked(void)
{
    Hca *h = hca_start();
    uint64_t mailbox = hca_page(h);
    uint64_t ctrl;

    hca_enable_msix(h);
    msix_target(h, 1, mailbox, 0xc0ffee);
    ctrl = h->dev->msix_table_off + PCI_MSIX_ENTRY_SIZE +
           PCI_MSIX_ENTRY_VECTOR_CTRL;
    qpci_io_writel(h->dev, h->dev->msix_table_bar, ctrl, 1);
    hca_bring_up(h);
    hca_ring(h, 0, QHCA_DB_EQ_ARM, QHCA_EQN_ASYNC);
    nop_with_event(h, 1);
    g_assert_true(qpci_msix_pending(h->dev, 1));
    g_assert_cmphex(qtest_readl(h->qts, mailbox), ==, 0);
    qpci_io_writel(h->dev, h->dev->msix_table_bar, ctrl, 0);
    wait_for_word(h, mailbox, 0xc0ffee);

    /* Device reset clears the pending bits and leaves the table alone. */
    qpci_io_writel(h->dev, h->dev->msix_table_bar, ctrl, 1);
    hca_ring(h, 0, QHCA_DB_EQ_ARM, QHCA_EQN_ASYNC);
    g_assert_true(qpci_msix_pending(h->dev, 1));
    hca_reset(h);
    g_assert_false(qpci_msix_pending(h->dev, 1));
    hca_stop(h);
}

static void test_link(void)
{
    Hca *h = hca_new("q35", "-netdev hubport,id=n0,hubid=0 "
                     "-device qhca,id=h0,netdev=n0,addr=04.0");

    hca_map(h);
    hca_bring_up(h);
    qtest_qmp_assert_success(h->qts, "{ 'execute': 'set_link', 'arguments': "
                             "{ 'name': 'h0', 'up': false } }");
    g_assert_cmphex(hca_read(h, QHCA_REG_LINK) & QHCA_LINK_UP, ==, 0);
    g_assert_cmpint(qtest_readb(h->qts, h->eq), ==, QHCA_EVENT_PORT_CHANGE);
    /* The link is the host's: reset does not touch it. */
    hca_reset(h);
    g_assert_cmphex(hca_read(h, QHCA_REG_LINK) & QHCA_LINK_UP, ==, 0);
    qtest_qmp_assert_success(h->qts, "{ 'execute': 'set_link', 'arguments': "
                             "{ 'name': 'h0', 'up': true } }");
    g_assert_cmphex(hca_read(h, QHCA_REG_LINK) & QHCA_LINK_UP, ==,
                    QHCA_LINK_UP);
    hca_stop(h);
}

/*
 * ------------------------------------------------------------------------
 * Life cycle
 */
static void test_hotplug_conventional(void)
{
    Hca *h = hca_new("pc", "");

    for (int i = 0; i < 5; i++) {
        qtest_qmp_device_add(h->qts, "qhca", "h0", "{ 'addr': '04' }");
        hca_map(h);
        hca_bring_up(h);
        hca_write(h, QHCA_REG_CMDQ_DOORBELL, UINT32_MAX);
        qtest_qmp_device_del_send(h->qts, "h0");
        qtest_outl(h->qts, 0xae08, 1 << 4);     /* ACPI eject of slot 4 */
        wait_deleted(h);
        g_free(h->dev);
        h->dev = NULL;
    }
    hca_stop(h);
}

static void test_hotplug_express(void)
{
    QTestState *qts = qtest_init("-machine q35 -nodefaults "
                                 "-device pcie-root-port,id=p0,chassis=1 "
                                 "-netdev hubport,id=n0,hubid=0");

    for (int i = 0; i < 3; i++) {
        qtest_qmp_device_add(qts, "qhca", "h0",
                             "{ 'bus': 'p0', 'netdev': 'n0' }");
        qtest_qmp_device_del_send(qts, "h0");
        qtest_system_reset_nowait(qts);
        qtest_qmp_eventwait(qts, "DEVICE_DELETED");
    }
    qtest_quit(qts);
}

static void test_two(void)
{
    Hca *h = hca_new("q35", "-netdev hubport,id=n0,hubid=0 "
                     "-netdev hubport,id=n1,hubid=0 "
                     "-device qhca,id=h0,netdev=n0,addr=04.0 "
                     "-device qhca,id=h1,netdev=n1,addr=05.0");
    QDict *answer;

    hca_map(h);
    hca_bring_up(h);
    answer = qtest_qmp(h->qts, "{ 'execute': 'query-qhca' }");
    g_assert_cmpint(qlist_size(qdict_get_qlist(answer, "return")), ==, 2);
    qobject_unref(answer);
    hca_stop(h);
}

static void test_bad_properties(void)
{
    static const char *const bad[] = {
        "'vectors': 65", "'link-speed': 0", "'flows': 1025", "'doorbell-pages': 0",
        "'doorbell-pages': 3", "'doorbell-pages': 131072",
        "'devmem-size': 5000", "'inline-budget': 0", "'tx-ring-size': 100",
        "'rx-ring-size': 98304", "'log-max-qp': 31", "'log-max-pt': 25",
        "'log-max-cq-depth': 25", "'pt-cache-sets': 3", "'at-cache-blocks': 0",
        "'qp-cache-sets': 32768", "'gids': 0",
        "'x-pt-fetch-ns': 1000001",
        "'inject-drop-ppm': 1000001", "'inject-direction': 'up'",
        "'poll-max-us': 100000", "'yield-max-us': 1000001",
    };
    QTestState *qts = qtest_init("-machine pc -nodefaults");

    for (int i = 0; i < ARRAY_SIZE(bad); i++) {
        g_autofree char *cmd =
            g_strdup_printf("{ 'execute': 'device_add', 'arguments': "
                            "{ 'driver': 'qhca', 'id': 'h0', %s } }", bad[i]);
        QDict *answer = qtest_qmp(qts, cmd, NULL);

        g_auto(GStrv) word = g_strsplit(bad[i], "'", 3);

        if (!qdict_haskey(answer, "error")) {
            g_test_message("%s was accepted", bad[i]);
            g_test_fail();
        } else if (!strstr(qdict_get_str(qdict_get_qdict(answer, "error"),
                                         "desc"), word[1])) {
            g_test_message("the error does not name %s: %s", word[1],
                           qdict_get_str(qdict_get_qdict(answer, "error"),
                                         "desc"));
            g_test_fail();
        }
        qobject_unref(answer);
    }
    qtest_qmp_device_add(qts, "qhca", "h0", "{ 'vectors': 1 }");
    qtest_quit(qts);
}

/* -nic gives any model vectors=0. */
static void test_nic_option(void)
{
    Hca *h = hca_new("q35", "-nic user,model=qhca,mac=52:54:00:0a:0b:0c");

    h->dev = qpci_device_find(h->bus, QPCI_DEVFN(2, 0));
    for (int slot = 1; !h->dev && slot < 8; slot++) {
        h->dev = qpci_device_find(h->bus, QPCI_DEVFN(slot, 0));
    }
    g_assert_nonnull(h->dev);
    g_assert_cmphex(qpci_config_readw(h->dev, PCI_DEVICE_ID), ==,
                    QHCA_PCI_DEVICE_ID);
    qpci_device_enable(h->dev);
    g_assert_cmpint(qpci_msix_table_size(h->dev), ==, 32);
    hca_stop(h);
}

/* No features at all: Ethernet and queues of completions, and no QP. */
static void test_no_features(void)
{
    Hca *h = hca_new("q35", "-device qhca,id=h0,addr=04.0,features=0");
    struct qhca_buf buf = {
        .base = cpu_to_le64(hca_page(h)), .length = cpu_to_le32(4096),
    };
    struct qhca_qpc_sw qp = { .buf = buf };
    struct qhca_caps caps;

    hca_map(h);
    hca_bring_up(h);
    g_assert_cmpint(hca_cmd(h, QHCA_CMD_QUERY_CAPS, 0, 0, NULL, 0, &caps,
                            sizeof(caps)), ==, QHCA_CMD_OK);
    g_assert_cmphex(le64_to_cpu(caps.features), ==, 0);
    g_assert_cmpint(hca_map_chunk(h, QHCA_TABLE_QP, 0, hca_page(h)), ==,
                    QHCA_CMD_OK);
    for (qp.type = 0; qp.type < 16; qp.type++) {
        g_assert_cmpint(hca_cmd(h, QHCA_CMD_CREATE_QP, 2, 0, &qp, sizeof(qp),
                                NULL, 0), !=, QHCA_CMD_OK);
    }
    hca_stop(h);
}

static void test_inject(void)
{
    Hca *h = hca_start();

    set_property(h, "inject-drop-ppm", "1000");
    set_property(h, "inject-delay-ns", "50000");
    set_property(h, "inject-direction", "'rx'");
    set_property(h, "inject-corrupt-nth", "3");
    g_assert_cmpuint(get_property(h, "inject-drop-ppm"), ==, 1000);
    g_assert_cmpuint(get_property(h, "inject-delay-ns"), ==, 50000);
    g_assert_cmpuint(get_property(h, "inject-corrupt-nth"), ==, 3);

    hca_bring_up(h);
    set_property(h, "inject-fatal", "true");
    hca_assert_fatal(h, QHCA_FATAL_INJECTED);
    hca_reset(h);
    hca_bring_up(h);
    hca_stop(h);
}

static void test_query(void)
{
    Hca *h = hca_start();
    QDict *answer, *info, *port;

    hca_bring_up(h);
    answer = qtest_qmp(h->qts, "{ 'execute': 'query-qhca', 'arguments': "
                       "{ 'id': 'h0', 'cache-lines': true } }");
    info = qobject_to(QDict,
                      qlist_peek(qdict_get_qlist(answer, "return")));
    port = qdict_get_qdict(info, "port");
    g_assert_cmpstr(qdict_get_str(port, "mac"), ==, "52:54:00:0a:0b:0c");
    g_assert_true(qdict_get_bool(port, "enabled"));
    g_assert_cmpint(qlist_size(qdict_get_qlist(info, "caches")), ==,
                    QHCA_NUM_CACHES);
    g_assert_cmpint(qlist_size(qdict_get_qlist(info, "counters")), ==,
                    QHCA_NUM_COUNTERS);
    qobject_unref(answer);
    answer = qtest_qmp(h->qts, "{ 'execute': 'query-qhca', 'arguments': "
                       "{ 'id': 'h9' } }");
    g_assert_true(qdict_haskey(answer, "error"));
    qobject_unref(answer);
    hca_stop(h);
}

/* A QP of each type, made with a CQ and without rings, by its name. */
static void test_query_qps(void)
{
    static const struct {
        uint32_t qpn;
        enum qhca_qp_type type;
        const char *name;
    } qps[] = {
        { 1, QHCA_QPT_GSI, "gsi" },
        { 2, QHCA_QPT_RC, "rc" },
        { 3, QHCA_QPT_UC, "uc" },
        { 4, QHCA_QPT_UD, "ud" },
        { 5, QHCA_QPT_XRC_INI, "xrc-ini" },
        { 6, QHCA_QPT_XRC_TGT, "xrc-tgt" },
        { 7, QHCA_QPT_RAW, "raw" },
    };
    Hca *h = hca_start();
    struct qhca_buf buf = {
        .base = cpu_to_le64(hca_page(h)), .length = cpu_to_le32(4096),
    };
    struct qhca_cqc_sw cq = { .buf = buf, .rec_offset = cpu_to_le32(2048) };
    struct qhca_qpc_sw qp = { .buf = buf };
    QDict *answer, *info;
    const QListEntry *entry;
    size_t i = 0;
    char *text;

    hca_bring_up(h);
    g_assert_cmpint(hca_map_chunk(h, QHCA_TABLE_CQ, 0, hca_page(h)), ==,
                    QHCA_CMD_OK);
    for (uint32_t chunk = 0; chunk < 2; chunk++) {
        g_assert_cmpint(hca_map_chunk(h, QHCA_TABLE_QP, chunk, hca_page(h)),
                        ==, QHCA_CMD_OK);
    }
    g_assert_cmpint(hca_cmd(h, QHCA_CMD_CREATE_CQ, 0, 0, &cq, sizeof(cq), NULL,
                            0), ==, QHCA_CMD_OK);
    for (size_t n = 0; n < ARRAY_SIZE(qps); n++) {
        qp.type = qps[n].type;
        g_assert_cmpint(hca_cmd(h, QHCA_CMD_CREATE_QP, qps[n].qpn, 0, &qp,
                                sizeof(qp), NULL, 0), ==, QHCA_CMD_OK);
    }

    answer = qtest_qmp(h->qts, "{ 'execute': 'query-qhca' }");
    info = qobject_to(QDict,
                      qlist_peek(qdict_get_qlist(answer, "return")));
    QLIST_FOREACH_ENTRY(qdict_get_qlist(info, "qps"), entry) {
        QDict *found = qobject_to(QDict, qlist_entry_obj(entry));

        g_assert_cmpuint(i, <, ARRAY_SIZE(qps));
        g_assert_cmpint(qdict_get_int(found, "qpn"), ==, qps[i].qpn);
        g_assert_cmpstr(qdict_get_str(found, "type"), ==, qps[i].name);
        g_assert_cmpstr(qdict_get_str(found, "state"), ==, "reset");
        i++;
    }
    g_assert_cmpuint(i, ==, ARRAY_SIZE(qps));
    qobject_unref(answer);

    text = qtest_hmp(h->qts, "info qhca");
    g_assert_nonnull(strstr(text, "  qp 7: raw reset "));
    g_free(text);
    hca_stop(h);
}

/* The caches' lines, a part at a time. */
static void test_query_cache(void)
{
    static const char *const bad[] = {
        "'id': 'h9', 'cache': 'pt'",
        "'id': 'h0', 'cache': 'eq'",
        "'id': 'h0', 'cache': 'pt', 'max-lines': 63",
        "'id': 'h0', 'cache': 'pt', 'max-lines': 4097",
    };
    Hca *h = hca_start();
    QDict *answer, *cache;
    char *text;

    hca_bring_up(h);
    answer = qtest_qmp(h->qts, "{ 'execute': 'x-query-qhca-cache', "
                       "'arguments': { 'id': 'h0', 'cache': 'srq', "
                       "'from-set': 4000000000, 'max-lines': 64 } }");
    cache = qdict_get_qdict(answer, "return");
    g_assert_cmpstr(qdict_get_str(cache, "name"), ==, "srq");
    g_assert_cmpint(qlist_size(qdict_get_qlist(cache, "lines")), ==, 0);
    g_assert_false(qdict_haskey(cache, "next-set"));
    qobject_unref(answer);
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        text = g_strdup_printf("{ 'execute': 'x-query-qhca-cache', "
                               "'arguments': { %s } }", bad[i]);
        answer = qtest_qmp(h->qts, text, NULL);
        g_assert_true(qdict_haskey(answer, "error"));
        qobject_unref(answer);
        g_free(text);
    }
    hca_stop(h);
}

static void test_fetch_cost(void)
{
    Hca *h = hca_start();
    QDict *answer;

    set_property(h, "x-pt-fetch-ns", "2500");
    set_property(h, "x-at-fetch-ns", "1000000");
    g_assert_cmpuint(get_property(h, "x-pt-fetch-ns"), ==, 2500);
    g_assert_cmpuint(get_property(h, "x-at-fetch-ns"), ==, 1000000);
    g_assert_cmpuint(get_property(h, "x-context-fetch-ns"), ==, 0);
    answer = qtest_qmp(h->qts, "{ 'execute': 'qom-set', 'arguments': {"
                       " 'path': '/machine/peripheral/h0',"
                       " 'property': 'x-context-fetch-ns',"
                       " 'value': 1000001 } }");
    g_assert_true(qdict_haskey(answer, "error"));
    qobject_unref(answer);
    g_assert_cmpuint(get_property(h, "x-context-fetch-ns"), ==, 0);
    hca_bring_up(h);
    g_assert_cmpuint(get_property(h, "x-pt-fetch-ns"), ==, 2500);
    hca_stop(h);
}

/*
 * ------------------------------------------------------------------------
 * The record of the former device
 */

/* Counts of segments that nobody checked (CVE-2018-20124). */
static void test_record_num_sge(void)
{
    Hca *h = hca_start();
    struct qhca_srqc_sw srq = {
        .buf = {
            .base = cpu_to_le64(h->eq),
            .length = cpu_to_le32(4096),
        },
        .rec_offset = cpu_to_le32(2048),
        .log_depth = 4,
        .log_stride = QHCA_MIN_LOG_RWQE_STRIDE,
    };

    hca_bring_up(h);
    g_assert_cmpint(hca_map_chunk(h, QHCA_TABLE_SRQ, 0, hca_page(h)), ==,
                    QHCA_CMD_OK);
    for (int max_sge = 2; max_sge < 256; max_sge++) {
        srq.max_sge = max_sge;
        g_assert_cmpint(hca_cmd(h, QHCA_CMD_CREATE_SRQ, 1, 0, &srq,
                                sizeof(srq), NULL, 0), ==, QHCA_CMD_BAD_PARAM);
    }
    srq.max_sge = 1;
    g_assert_cmpint(hca_cmd(h, QHCA_CMD_CREATE_SRQ, 1, 0, &srq, sizeof(srq),
                            NULL, 0), ==, QHCA_CMD_OK);
    hca_stop(h);
}

/* Sizes of queues that the host then allocated (CVE-2018-20125). */
static void test_record_huge_queue(void)
{
    Hca *h = hca_start();
    struct qhca_cqc_sw cq = {
        .buf = {
            .base = cpu_to_le64(h->eq),
            .length = cpu_to_le32(UINT32_MAX),
        },
    };

    hca_bring_up(h);
    g_assert_cmpint(hca_map_chunk(h, QHCA_TABLE_CQ, 0, hca_page(h)), ==,
                    QHCA_CMD_OK);
    for (int log_depth = 25; log_depth < 256; log_depth += 5) {
        cq.log_depth = log_depth;
        g_assert_cmpint(hca_cmd(h, QHCA_CMD_CREATE_CQ, 1, 0, &cq, sizeof(cq),
                                NULL, 0), ==, QHCA_CMD_BAD_PARAM);
    }
    /* A ring or record that does not lie inside its buffer. */
    cq.buf.length = cpu_to_le32(4096);
    cq.log_depth = 12;
    g_assert_cmpint(hca_cmd(h, QHCA_CMD_CREATE_CQ, 1, 0, &cq, sizeof(cq), NULL,
                            0), ==, QHCA_CMD_BAD_PARAM);
    cq.log_depth = 4;
    cq.rec_offset = cpu_to_le32(UINT32_MAX - 127);
    g_assert_cmpint(hca_cmd(h, QHCA_CMD_CREATE_CQ, 1, 0, &cq, sizeof(cq), NULL,
                            0), ==, QHCA_CMD_BAD_PARAM);
    hca_assert_alive(h);
    hca_stop(h);
}

/* Leaks when a command fails half way (CVE-2018-20123, 20126). */
static void test_record_leak(void)
{
    Hca *h = hca_start();
    struct qhca_init_hca init = hca_small_tables();
    struct qhca_eqc_sw eq = hca_eq_config(h, 1), bad = hca_eq_config(h, 9999);

    hca_enable(h);
    for (int i = 0; i < 200; i++) {
        g_assert_cmpint(hca_init(h, &init), ==, QHCA_CMD_OK);
        g_assert_cmpint(hca_create_eq(h, 0, &eq), ==, QHCA_CMD_NOT_MAPPED);
        g_assert_cmpint(hca_map_chunk(h, QHCA_TABLE_EQ, 0, h->eq_table), ==,
                        QHCA_CMD_OK);
        g_assert_cmpint(hca_create_eq(h, 0, &bad), ==, QHCA_CMD_BAD_PARAM);
        g_assert_cmpint(hca_create_eq(h, 0, &eq), ==, QHCA_CMD_OK);
        g_assert_cmpint(hca_create_eq(h, 0, &eq), ==, QHCA_CMD_IN_USE);
        g_assert_cmpint(hca_cmd(h, QHCA_CMD_TEARDOWN_HCA, 0, 0, NULL, 0, NULL,
                                0), ==, QHCA_CMD_OK);
    }
    hca_stop(h);
}

/* A region with a write function and no read function (CVE-2018-20191). */
static void test_record_read(void)
{
    Hca *h = hca_start();
    const QPCIBar bars[] = { h->regs, h->doorbells, h->devmem };

    for (int i = 0; i < ARRAY_SIZE(bars); i++) {
        for (uint32_t offset = 0; offset < 0x10000; offset += 0x333) {
            qpci_io_readb(h->dev, bars[i], offset);
            qpci_io_readw(h->dev, bars[i], offset);
            qpci_io_readl(h->dev, bars[i], offset);
            qtest_readq(h->qts, bars[i].addr + offset);
        }
    }
    hca_assert_alive(h);
    hca_stop(h);
}

/* A loop for as long as the guest's indices say so (CVE-2018-20216). */
static void test_record_loop(void)
{
    Hca *h = hca_start();
    static const uint32_t index[] = {
        0x80000000, UINT32_MAX, 0x7fffffff, 1 << EQ_LOG_DEPTH, 12345,
    };

    hca_bring_up(h);
    for (int i = 0; i < ARRAY_SIZE(index); i++) {
        qtest_writel(h->qts, h->eq + EQ_RECORD, cpu_to_le32(index[i]));
        hca_ring(h, 0, QHCA_DB_EQ_ARM, (uint64_t)index[i] << 32);
        for (int n = 0; n < 8; n++) {
            hca_nop(h);
        }
    }
    hca_assert_alive(h);
    hca_stop(h);
}

/*
 * Lists of pages whose length was computed with an overflow, or changed while
 * they were being mapped (CVE-2021-3582, 2021-3607).
 */
static void test_record_chunks(void)
{
    Hca *h = hca_start();
    uint64_t chunk[512];
    const struct { uint32_t index, count, len; } bad[] = {
        { 0, 0, 0 }, { 0, 513, 4096 }, { 0, 0xffffff, 8 }, { 0, 512, 4096 },
        { UINT32_MAX, 1, 8 }, { UINT32_MAX, 2, 16 }, { 0, 2, 8 }, { 0, 1, 16 },
        { 0x80000000, 1, 8 }, { 1, 512, 4096 },
    };

    for (int i = 0; i < ARRAY_SIZE(chunk); i++) {
        chunk[i] = cpu_to_le64(h->eq_table);
    }
    hca_bring_up(h);
    for (int table = 0; table < QHCA_NUM_TABLES; table++) {
        for (int i = 0; i < ARRAY_SIZE(bad); i++) {
            g_assert_cmpint(hca_cmd(h, QHCA_CMD_MAP_CHUNKS, bad[i].index,
                                    table | bad[i].count << 8, chunk,
                                    bad[i].len, NULL, 0), !=, QHCA_CMD_OK);
        }
    }
    g_assert_cmpint(hca_map_chunk(h, 200, 0, h->eq_table), ==,
                    QHCA_CMD_BAD_PARAM);
    hca_assert_alive(h);
    hca_stop(h);
}

/* What was never mapped, unmapped on the way out (CVE-2021-3608). */
static void test_record_unmap(void)
{
    Hca *h = hca_start();
    uint64_t chunk[2];

    hca_bring_up(h);
    chunk[0] = cpu_to_le64(hca_page(h));
    chunk[1] = cpu_to_le64(h->eq_table + 8);    /* not aligned */
    for (int i = 0; i < 10; i++) {
        g_assert_cmpint(hca_cmd(h, QHCA_CMD_MAP_CHUNKS, 0,
                                QHCA_TABLE_QP | 2 << 8, chunk, sizeof(chunk),
                                NULL, 0), ==, QHCA_CMD_BAD_PARAM);
        g_assert_cmpint(hca_cmd(h, QHCA_CMD_UNMAP_CHUNKS, 0,
                                QHCA_TABLE_QP | 1 << 8, NULL, 0, NULL, 0), ==,
                        QHCA_CMD_NOT_MAPPED);
    }
    g_assert_cmpint(hca_cmd(h, QHCA_CMD_UNMAP_CHUNKS, 0, QHCA_TABLE_EQ | 1 << 8,
                            NULL, 0, NULL, 0), ==, QHCA_CMD_IN_USE);
    hca_stop(h);
}

/* Commands before there is anything to work on (CVE-2022-1050). */
static void test_record_early(void)
{
    static const uint16_t allowed[] = {
        QHCA_CMD_NOP, QHCA_CMD_QUERY_CAPS, QHCA_CMD_INIT_HCA,
        QHCA_CMD_QUERY_PORT, QHCA_CMD_QUERY_COUNTERS,
    };
    Hca *h = hca_start();

    hca_write(h, QHCA_REG_CMDQ_DOORBELL, UINT32_MAX);
    hca_enable(h);
    for (int opcode = 0; opcode < 0x100; opcode++) {
        bool early = false;

        for (int i = 0; i < ARRAY_SIZE(allowed); i++) {
            early |= opcode == allowed[i];
        }
        if (!early) {
            enum qhca_cmd_status status = hca_cmd(h, opcode, 0, 0, NULL, 0,
                                                  NULL, 0);

            g_assert_true(status == QHCA_CMD_NOT_INIT ||
                          status == QHCA_CMD_BAD_OPCODE ||
                          status == QHCA_CMD_UNSUPPORTED);
        }
    }
    hca_assert_alive(h);
    hca_stop(h);
}

/* A ring element in a page that does not exist (CVE-2023-1544). */
static void test_record_ring_page(void)
{
    Hca *h = hca_start();
    struct qhca_init_hca init = hca_small_tables();
    struct qhca_eqc_sw eq = hca_eq_config(h, 1);

    hca_enable(h);
    g_assert_cmpint(hca_init(h, &init), ==, QHCA_CMD_OK);
    g_assert_cmpint(hca_map_chunk(h, QHCA_TABLE_EQ, 0, h->eq_table), ==,
                    QHCA_CMD_OK);

    /* More pages than the translation can reach; more levels than there are. */
    eq.buf.page_shift = 12;
    eq.buf.levels = 1;
    eq.buf.length = cpu_to_le32(513 * 4096);
    g_assert_cmpint(hca_create_eq(h, 0, &eq), ==, QHCA_CMD_BAD_PARAM);
    eq.buf.length = cpu_to_le32(4096);
    eq.buf.levels = QHCA_MAX_AT_LEVELS + 1;
    g_assert_cmpint(hca_create_eq(h, 0, &eq), ==, QHCA_CMD_BAD_PARAM);

    /* A root node without a page: the queue is unreachable, no more. */
    eq.buf.levels = 1;
    eq.buf.base = cpu_to_le64(hca_page(h));
    if (hca_create_eq(h, 0, &eq) == QHCA_CMD_OK) {
        nop_with_event(h, 1);
        hca_assert_fatal(h, QHCA_FATAL_EQ_DMA);
        hca_reset(h);
        hca_bring_up(h);
    }
    hca_stop(h);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);

    qtest_add_func("/qhca/config-space", test_config_space);
    qtest_add_func("/qhca/registers", test_registers);
    qtest_add_func("/qhca/bad-enable", test_bad_enable);
    qtest_add_func("/qhca/commands", test_commands);
    qtest_add_func("/qhca/command-slots", test_command_slots);
    qtest_add_func("/qhca/bad-geometry", test_bad_geometry);
    qtest_add_func("/qhca/doorbells", test_doorbells);
    qtest_add_func("/qhca/dma-to-devices", test_dma_to_devices);
    qtest_add_func("/qhca/bus-master", test_bus_master);
    qtest_add_func("/qhca/reset", test_reset);
    qtest_add_func("/qhca/flr", test_flr);
    qtest_add_func("/qhca/machine-reset", test_machine_reset);
    qtest_add_func("/qhca/event-msix", test_event_msix);
    qtest_add_func("/qhca/msix-masked", test_msix_masked);
    qtest_add_func("/qhca/link", test_link);
    qtest_add_func("/qhca/hotplug-conventional", test_hotplug_conventional);
    qtest_add_func("/qhca/hotplug-express", test_hotplug_express);
    qtest_add_func("/qhca/two", test_two);
    qtest_add_func("/qhca/bad-properties", test_bad_properties);
    qtest_add_func("/qhca/nic-option", test_nic_option);
    qtest_add_func("/qhca/no-features", test_no_features);
    qtest_add_func("/qhca/inject", test_inject);
    qtest_add_func("/qhca/query", test_query);
    qtest_add_func("/qhca/query-qps", test_query_qps);
    qtest_add_func("/qhca/query-cache", test_query_cache);
    qtest_add_func("/qhca/fetch-cost", test_fetch_cost);
    qtest_add_func("/qhca/record/num-sge", test_record_num_sge);
    qtest_add_func("/qhca/record/huge-queue", test_record_huge_queue);
    qtest_add_func("/qhca/record/leak", test_record_leak);
    qtest_add_func("/qhca/record/read", test_record_read);
    qtest_add_func("/qhca/record/loop", test_record_loop);
    qtest_add_func("/qhca/record/chunks", test_record_chunks);
    qtest_add_func("/qhca/record/unmap", test_record_unmap);
    qtest_add_func("/qhca/record/early", test_record_early);
    qtest_add_func("/qhca/record/ring-page", test_record_ring_page);
    return g_test_run();
}
