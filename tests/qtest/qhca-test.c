/*
 * QTest testcase for the qhca RDMA adapter
 *
 * A guest that means no good: there is no driver here, only registers,
 * doorbells and memory, used as the specification forbids.  Whatever it does,
 * QEMU lives, and the function is usable again after a reset.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qemu/host-utils.h"
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

static void inject(Hca *h, const char *error)
{
    g_autofree char *text = qtest_hmp(h->qts, "pcie_aer_inject_error h0 %s", error);

    g_assert_true(g_str_has_prefix(text, "OK"));
}

/* Errors of PCI Express, which the monitor injects, are reported where a driver asks for it. */
static void test_errors(void)
{
    const uint16_t all = PCI_EXP_DEVCTL_CERE | PCI_EXP_DEVCTL_NFERE |
                         PCI_EXP_DEVCTL_FERE | PCI_EXP_DEVCTL_URRE;
    Hca *h = hca_start();
    uint8_t cap = qpci_find_capability(h->dev, PCI_CAP_ID_EXP, 0);
    uint64_t aer;

    enable_ecam(h);
    aer = ecam_of(h->dev) + 0x100;
    g_assert_cmphex(qtest_readw(h->qts, aer), ==, PCI_EXT_CAP_ID_ERR);
    g_assert_cmphex(qpci_config_readl(h->dev, cap + PCI_EXP_DEVCAP) &
                    PCI_EXP_DEVCAP_RBER, !=, 0);
    g_assert_cmphex(qpci_config_readw(h->dev, cap + PCI_EXP_DEVCTL) & all, ==, 0);
    qpci_config_writew(h->dev, cap + PCI_EXP_DEVCTL, all);
    g_assert_cmphex(qpci_config_readw(h->dev, cap + PCI_EXP_DEVCTL) & all, ==, all);

    inject(h, "COMP_TIME");
    g_assert_cmphex(qpci_config_readw(h->dev, cap + PCI_EXP_DEVSTA) &
                    PCI_EXP_DEVSTA_NFED, !=, 0);
    g_assert_cmphex(qtest_readl(h->qts, aer + PCI_ERR_UNCOR_STATUS), ==,
                    PCI_ERR_UNC_COMP_TIME);
    g_assert_cmpint(PCI_ERR_CAP_FEP(qtest_readl(h->qts, aer + PCI_ERR_CAP)), ==,
                    ctz32(PCI_ERR_UNC_COMP_TIME));
    inject(h, "RCVR");
    g_assert_cmphex(qtest_readl(h->qts, aer + PCI_ERR_COR_STATUS), ==,
                    PCI_ERR_COR_RCVR);

    /* A 1 that is written clears what it is written to, and the first error with it. */
    qpci_config_writew(h->dev, cap + PCI_EXP_DEVSTA, PCI_EXP_DEVSTA_NFED);
    g_assert_cmphex(qpci_config_readw(h->dev, cap + PCI_EXP_DEVSTA) &
                    PCI_EXP_DEVSTA_NFED, ==, 0);
    qtest_writel(h->qts, aer + PCI_ERR_UNCOR_STATUS, PCI_ERR_UNC_COMP_TIME);
    g_assert_cmphex(qtest_readl(h->qts, aer + PCI_ERR_UNCOR_STATUS), ==, 0);
    g_assert_cmpint(PCI_ERR_CAP_FEP(qtest_readl(h->qts, aer + PCI_ERR_CAP)), ==, 0);

    hca_flr(h);
    g_assert_cmphex(qpci_config_readw(h->dev, cap + PCI_EXP_DEVCTL) & all, ==, 0);
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

    /* The device is dead until a reset. */
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

    /* The device is not enabled, so it executes nothing. */
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
    /* The doorbell names slots that software owns, and slots that do not exist. */
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
        QHCA_DB_ETH_ARM, QHCA_DB_POLL, 0x30, 0x7f8, 0xff8,
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

    /* Doorbells cannot be read. */
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
    /*
     * A range that begins in memory and ends outside it: the device writes all
     * or nothing.
     */
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

    /* The device has forgotten everything. */
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

    for (int i = 0; i < 3; i++) {
        qtest_writel(h->qts, h->devmem.addr, 0x12345678);
        hca_bring_up(h);
        hca_flr(h);
        g_assert_cmphex(hca_status(h), ==, QHCA_STATUS_READY);
        g_assert_cmphex(hca_read(h, QHCA_REG_CMDQ_BASE_LO), ==, 0);
        g_assert_cmphex(qtest_readl(h->qts, h->devmem.addr), ==, 0);
    }
    hca_bring_up(h);
    g_assert_cmpint(hca_nop(h), ==, QHCA_CMD_OK);
    hca_stop(h);
}

static void set_power_state(Hca *h, uint16_t state)
{
    uint8_t cap = qpci_find_capability(h->dev, PCI_CAP_ID_PM, 0);

    qpci_config_writew(h->dev, cap + PCI_PM_CTRL, state);
    g_assert_cmphex(qpci_config_readw(h->dev, cap + PCI_PM_CTRL) &
                    PCI_PM_CTRL_STATE_MASK, ==, state);
}

/* In D3hot the device has no BARs; the way back to D0 finds it reset. */
static void test_d3hot(void)
{
    Hca *h = hca_start();

    qtest_writel(h->qts, h->devmem.addr, 0x12345678);
    for (int i = 0; i < 3; i++) {
        hca_bring_up(h);
        set_power_state(h, 3);
        g_assert_cmphex(hca_read(h, QHCA_REG_MAGIC), !=, QHCA_MAGIC);
        hca_write(h, QHCA_REG_CONTROL, QHCA_CONTROL_ENABLE);
        set_power_state(h, 0);
        g_assert_cmphex(hca_status(h), ==, QHCA_STATUS_READY);
        g_assert_cmphex(hca_read(h, QHCA_REG_CONTROL), ==, 0);
        g_assert_cmphex(hca_read(h, QHCA_REG_CMDQ_BASE_LO), ==, 0);
        g_assert_cmphex(qtest_readl(h->qts, h->devmem.addr), ==, 0x12345678);
    }
    hca_bring_up(h);
    /* D1 and D2 do not exist. */
    for (uint16_t state = 1; state < 3; state++) {
        uint8_t cap = qpci_find_capability(h->dev, PCI_CAP_ID_PM, 0);

        qpci_config_writew(h->dev, cap + PCI_PM_CTRL, state);
        g_assert_cmphex(qpci_config_readw(h->dev, cap + PCI_PM_CTRL), ==, 0);
        g_assert_cmpint(hca_nop(h), ==, QHCA_CMD_OK);
    }
    /* A machine reset, as at the end of S3, ends D3hot too. */
    set_power_state(h, 3);
    qtest_system_reset(h->qts);
    g_free(h->dev);
    hca_map(h);
    hca_bring_up(h);
    hca_stop(h);
}

/* What happens in D3hot, the way back to D0 resets as well. */
static void test_fatal_in_d3hot(void)
{
    Hca *h = hca_start();

    hca_bring_up(h);
    set_power_state(h, 3);
    qtest_qmp_assert_success(h->qts, "{ 'execute': 'qom-set', 'arguments': "
                             "{ 'path': '/machine/peripheral/h0', "
                             "'property': 'inject-fatal', 'value': true } }");
    set_power_state(h, 0);
    g_assert_cmphex(hca_status(h), ==, QHCA_STATUS_READY);
    hca_bring_up(h);
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

/* D3hot forgets interrupts that are pending; an unmask sends none of them. */
static void test_msix_in_d3hot(void)
{
    Hca *h = hca_start();
    uint64_t mailbox = hca_page(h);
    uint8_t cap;
    uint16_t flags;

    hca_enable_msix(h);
    msix_target(h, 1, mailbox, 0xc0ffee);
    cap = qpci_find_capability(h->dev, PCI_CAP_ID_MSIX, 0);
    flags = qpci_config_readw(h->dev, cap + PCI_MSIX_FLAGS);
    qpci_config_writew(h->dev, cap + PCI_MSIX_FLAGS,
                       flags | PCI_MSIX_FLAGS_MASKALL);
    hca_bring_up(h);
    hca_ring(h, 0, QHCA_DB_EQ_ARM, QHCA_EQN_ASYNC);
    nop_with_event(h, 1);
    g_assert_true(qpci_msix_pending(h->dev, 1));
    set_power_state(h, 3);
    qpci_config_writew(h->dev, cap + PCI_MSIX_FLAGS, flags);
    set_power_state(h, 0);
    g_assert_cmphex(qtest_readl(h->qts, mailbox), ==, 0);
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

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);

    qtest_add_func("/qhca/config-space", test_config_space);
    qtest_add_func("/qhca/errors", test_errors);
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
    qtest_add_func("/qhca/d3hot", test_d3hot);
    qtest_add_func("/qhca/fatal-in-d3hot", test_fatal_in_d3hot);
    qtest_add_func("/qhca/machine-reset", test_machine_reset);
    qtest_add_func("/qhca/event-msix", test_event_msix);
    qtest_add_func("/qhca/msix-masked", test_msix_masked);
    qtest_add_func("/qhca/msix-in-d3hot", test_msix_in_d3hot);
    qtest_add_func("/qhca/link", test_link);
    return g_test_run();
}
