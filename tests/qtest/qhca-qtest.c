/*
 * What the qtests of the qhca RDMA adapter share: a guest with one device and
 * no driver
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qhca-qtest.h"

/*
 * ------------------------------------------------------------------------
 * A guest with one device at slot 4
 */
void hca_map_at(Hca *h, int devfn)
{
    h->dev = qpci_device_find(h->bus, devfn);
    g_assert_nonnull(h->dev);
    qpci_device_enable(h->dev);
    h->regs = qpci_iomap(h->dev, QHCA_BAR_REGS, NULL);
    h->doorbells = qpci_iomap(h->dev, QHCA_BAR_DOORBELLS, NULL);
    h->devmem = qpci_iomap(h->dev, QHCA_BAR_DEVMEM, NULL);
}

void hca_map(Hca *h)
{
    hca_map_at(h, QPCI_DEVFN(4, 0));
}

uint64_t hca_page(Hca *h)
{
    uint64_t page = guest_alloc(h->alloc, 4096);

    qtest_memset(h->qts, page, 0, 4096);
    return page;
}

void hca_alloc_pages(Hca *h)
{
    h->cmdq = hca_page(h);
    h->in = hca_page(h);
    h->out = hca_page(h);
    h->eq = hca_page(h);
    h->eq_table = hca_page(h);
}

Hca *hca_new(const char *machine, const char *options)
{
    Hca *h = g_new0(Hca, 1);

    h->qts = qtest_initf("-machine %s -nodefaults %s", machine, options);
    h->alloc = g_new0(QGuestAllocator, 1);
    pc_alloc_init(h->alloc, h->qts, ALLOC_NO_FLAGS);
    h->bus = qpci_new_pc(h->qts, h->alloc);
    hca_alloc_pages(h);
    return h;
}

Hca *hca_start(void)
{
    Hca *h = hca_new("q35", "-device qhca,id=h0,addr=04.0,"
                     "mac=52:54:00:0a:0b:0c");

    hca_map(h);
    return h;
}

void hca_stop(Hca *h)
{
    g_free(h->dev);
    qpci_free_pc(h->bus);
    alloc_destroy(h->alloc);
    g_free(h->alloc);
    qtest_quit(h->qts);
    g_free(h);
}

/* libqos moves the BAR that the table is in. */
void hca_enable_msix(Hca *h)
{
    qpci_msix_enable(h->dev);
    h->regs = h->dev->msix_table_bar;
}

void enable_ecam(Hca *h)
{
    QPCIDevice *dev = qpci_device_find(h->bus, QPCI_DEVFN(0, 0));

    qpci_config_writel(dev, 0x64, 0);
    qpci_config_writel(dev, 0x60, ECAM | 1);
    g_free(dev);
}

uint64_t ecam_of(const QPCIDevice *dev)
{
    return ECAM + ((uint64_t)dev->devfn << 12);
}

uint32_t hca_read(Hca *h, uint32_t reg)
{
    return qpci_io_readl(h->dev, h->regs, reg);
}

void hca_write(Hca *h, uint32_t reg, uint32_t value)
{
    qpci_io_writel(h->dev, h->regs, reg, value);
}

void hca_ring(Hca *h, uint32_t page, uint32_t offset, uint64_t value)
{
    qtest_writeq(h->qts, h->doorbells.addr + page * QHCA_DB_PAGE_SIZE + offset,
                 value);
}

uint32_t hca_status(Hca *h)
{
    return hca_read(h, QHCA_REG_STATUS);
}

void hca_assert_fatal(Hca *h, enum qhca_fatal cause)
{
    gint64 end = g_get_monotonic_time() + ANSWER_S * G_USEC_PER_SEC;

    while (!(hca_status(h) & QHCA_STATUS_FATAL) &&
           g_get_monotonic_time() < end) {
        g_usleep(100);
    }
    g_assert_cmphex(hca_status(h) & QHCA_STATUS_FATAL, !=, 0);
    g_assert_cmpuint(QHCA_GET(QHCA_STATUS_FATAL_CAUSE, hca_status(h)), ==,
                     cause);
}

void hca_assert_alive(Hca *h)
{
    g_assert_cmphex(hca_read(h, QHCA_REG_MAGIC), ==, QHCA_MAGIC);
    g_assert_cmphex(hca_status(h) & QHCA_STATUS_FATAL, ==, 0);
}

void hca_reset(Hca *h)
{
    hca_write(h, QHCA_REG_CONTROL, QHCA_CONTROL_RESET);
    g_assert_cmphex(hca_status(h), ==, QHCA_STATUS_READY);
}

void hca_set_cmdq(Hca *h, uint32_t log_slots, uint64_t base)
{
    hca_write(h, QHCA_REG_CMDQ_LOG_SLOTS, log_slots);
    hca_write(h, QHCA_REG_CMDQ_BASE_LO, base);
    hca_write(h, QHCA_REG_CMDQ_BASE_HI, base >> 32);
}

void hca_enable(Hca *h)
{
    qtest_memset(h->qts, h->cmdq, 0, 4096);
    hca_set_cmdq(h, 2, h->cmdq);
    hca_write(h, QHCA_REG_CONTROL, QHCA_CONTROL_ENABLE);
    g_assert_cmphex(hca_status(h), ==,
                    QHCA_STATUS_READY | QHCA_STATUS_ENABLED);
}

/*
 * ------------------------------------------------------------------------
 * Commands
 */
void hca_fill_slot(Hca *h, uint32_t slot, const struct qhca_cmd_slot *cmd)
{
    qtest_memwrite(h->qts, h->cmdq + slot * SLOT_SIZE, cmd, sizeof(*cmd));
}

uint32_t hca_slot_status(Hca *h, uint32_t slot)
{
    return qtest_readl(h->qts, h->cmdq + slot * SLOT_SIZE +
                       offsetof(struct qhca_cmd_slot, status));
}

enum qhca_cmd_status hca_wait_slot(Hca *h, uint32_t slot)
{
    gint64 end = g_get_monotonic_time() + ANSWER_S * G_USEC_PER_SEC;
    uint32_t status;

    do {
        status = hca_slot_status(h, slot);
    } while ((status & QHCA_CMD_OWN) && g_get_monotonic_time() < end);
    g_assert_cmphex(status & QHCA_CMD_OWN, ==, 0);
    return status & QHCA_CMD_STATUS;
}

enum qhca_cmd_status hca_run(Hca *h, const struct qhca_cmd_slot *cmd)
{
    struct qhca_cmd_slot slot = *cmd;

    slot.status = cpu_to_le32(QHCA_CMD_OWN);
    hca_fill_slot(h, 0, &slot);
    hca_write(h, QHCA_REG_CMDQ_DOORBELL, 1);
    return hca_wait_slot(h, 0);
}

/* A command with the mailboxes it needs. */
enum qhca_cmd_status hca_cmd(Hca *h, uint16_t opcode, uint32_t index,
                             uint32_t param, const void *in, uint32_t in_len,
                             void *out, uint32_t out_len)
{
    struct qhca_cmd_slot slot = {
        .opcode = cpu_to_le16(opcode),
        .index = cpu_to_le32(index),
        .param = cpu_to_le32(param),
        .in_addr = cpu_to_le64(h->in),
        .out_addr = cpu_to_le64(h->out),
        .in_len = cpu_to_le32(in_len),
        .out_len = cpu_to_le32(out_len),
    };
    enum qhca_cmd_status status;

    if (in_len) {
        qtest_memwrite(h->qts, h->in, in, in_len);
    }
    status = hca_run(h, &slot);
    if (out_len && status == QHCA_CMD_OK) {
        qtest_memread(h->qts, h->out, out, out_len);
    }
    return status;
}

enum qhca_cmd_status hca_nop(Hca *h)
{
    return hca_cmd(h, QHCA_CMD_NOP, 0, 0, NULL, 0, NULL, 0);
}

uint64_t hca_counter(Hca *h, enum qhca_counter id)
{
    uint64_t value = 0;

    g_assert_cmpint(hca_cmd(h, QHCA_CMD_QUERY_COUNTERS, id, 0, NULL, 0, &value,
                            sizeof(value)), ==, QHCA_CMD_OK);
    return le64_to_cpu(value);
}

struct qhca_init_hca hca_small_tables(void)
{
    return (struct qhca_init_hca) {
        .table = {
            [QHCA_TABLE_PT] = { .log_entries = 8, .log_chunk = 12 },
            [QHCA_TABLE_QP] = { .log_entries = 4, .log_chunk = 12 },
            [QHCA_TABLE_CQ] = { .log_entries = 6, .log_chunk = 12 },
            [QHCA_TABLE_SRQ] = { .log_entries = 4, .log_chunk = 12 },
            [QHCA_TABLE_EQ] = { .log_entries = 3, .log_chunk = 12 },
        },
    };
}

enum qhca_cmd_status hca_init(Hca *h, const struct qhca_init_hca *init)
{
    return hca_cmd(h, QHCA_CMD_INIT_HCA, 0, 0, init, sizeof(*init), NULL, 0);
}

enum qhca_cmd_status hca_map_chunk(Hca *h, enum qhca_table table,
                                   uint32_t chunk, uint64_t addr)
{
    uint64_t le = cpu_to_le64(addr);

    return hca_cmd(h, QHCA_CMD_MAP_CHUNKS, chunk, table | 1 << 8, &le,
                   sizeof(le), NULL, 0);
}

struct qhca_eqc_sw hca_eq_config(Hca *h, uint16_t vector)
{
    return (struct qhca_eqc_sw) {
        .buf = {
            .base = cpu_to_le64(h->eq),
            .length = cpu_to_le32(EQ_RECORD + sizeof(struct qhca_eq_record)),
        },
        .rec_offset = cpu_to_le32(EQ_RECORD),
        .log_depth = EQ_LOG_DEPTH,
        .vector = cpu_to_le16(vector),
    };
}

enum qhca_cmd_status hca_create_eq(Hca *h, uint32_t eqn,
                                   const struct qhca_eqc_sw *eq)
{
    return hca_cmd(h, QHCA_CMD_CREATE_EQ, eqn, 0, eq, sizeof(*eq), NULL, 0);
}

/* As far as a driver goes before it creates its first CQ. */
void hca_bring_up(Hca *h)
{
    struct qhca_init_hca init = hca_small_tables();
    struct qhca_eqc_sw eq = hca_eq_config(h, 1);

    hca_enable(h);
    g_assert_cmpint(hca_init(h, &init), ==, QHCA_CMD_OK);
    g_assert_cmpint(hca_map_chunk(h, QHCA_TABLE_EQ, 0, h->eq_table), ==,
                    QHCA_CMD_OK);
    g_assert_cmpint(hca_create_eq(h, QHCA_EQN_ASYNC, &eq), ==, QHCA_CMD_OK);
}

/*
 * ------------------------------------------------------------------------
 * Reset and interrupts
 */
void hca_flr(Hca *h)
{
    uint8_t cap = qpci_find_capability(h->dev, PCI_CAP_ID_EXP, 0);
    uint16_t ctl = qpci_config_readw(h->dev, cap + PCI_EXP_DEVCTL);

    qpci_config_writew(h->dev, cap + PCI_EXP_DEVCTL,
                       ctl | PCI_EXP_DEVCTL_BCR_FLR);
    g_assert_cmphex(qpci_config_readw(h->dev, PCI_COMMAND) &
                    PCI_COMMAND_MASTER, ==, 0);
    /* Software's part: restore configuration space. */
    g_free(h->dev);
    hca_map(h);
}

void msix_target(Hca *h, uint16_t vector, uint64_t addr, uint32_t data)
{
    uint64_t entry = h->dev->msix_table_off + vector * PCI_MSIX_ENTRY_SIZE;

    qpci_io_writel(h->dev, h->dev->msix_table_bar,
                   entry + PCI_MSIX_ENTRY_LOWER_ADDR, addr);
    qpci_io_writel(h->dev, h->dev->msix_table_bar,
                   entry + PCI_MSIX_ENTRY_UPPER_ADDR, addr >> 32);
    qpci_io_writel(h->dev, h->dev->msix_table_bar,
                   entry + PCI_MSIX_ENTRY_DATA, data);
    qpci_io_writel(h->dev, h->dev->msix_table_bar,
                   entry + PCI_MSIX_ENTRY_VECTOR_CTRL, 0);
}

void wait_for_word(Hca *h, uint64_t addr, uint32_t value)
{
    gint64 end = g_get_monotonic_time() + ANSWER_S * G_USEC_PER_SEC;

    while (qtest_readl(h->qts, addr) != value &&
           g_get_monotonic_time() < end) {
        g_usleep(100);
    }
    g_assert_cmphex(qtest_readl(h->qts, addr), ==, value);
}

void nop_with_event(Hca *h, uint16_t token)
{
    const struct qhca_cmd_slot nop = {
        .opcode = cpu_to_le16(QHCA_CMD_NOP),
        .token = cpu_to_le16(token),
        .flags = cpu_to_le32(QHCA_CMD_F_EVENT),
    };

    g_assert_cmpint(hca_run(h, &nop), ==, QHCA_CMD_OK);
}

/*
 * ------------------------------------------------------------------------
 * The host's side
 */
void wait_deleted(Hca *h)
{
    qtest_qmp_eventwait(h->qts, "DEVICE_DELETED");
}

void set_property(Hca *h, const char *name, const char *value)
{
    g_autofree char *cmd =
        g_strdup_printf("{ 'execute': 'qom-set', 'arguments': { "
                        "'path': '/machine/peripheral/h0', "
                        "'property': '%s', 'value': %s } }", name, value);
    QDict *answer = qtest_qmp(h->qts, cmd, NULL);

    g_assert_true(qdict_haskey(answer, "return"));
    qobject_unref(answer);
}

uint64_t get_property(Hca *h, const char *name)
{
    QDict *answer = qtest_qmp(h->qts, "{ 'execute': 'qom-get', 'arguments': { "
                              "'path': '/machine/peripheral/h0', "
                              "'property': %s } }", name);
    uint64_t value = qdict_get_int(answer, "return");

    qobject_unref(answer);
    return value;
}
