/*
 * QTest testcase for the qhca RDMA adapter: migration
 *
 * A guest moves to another QEMU by way of a file.  Its memory and the device's
 * state go there, so that what has been set up here works there.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include <sys/ioctl.h>
#include "qhca-move.h"
#include "qhca-sriov.h"

#define DEVICE  "-machine q35 -device qhca,id=h0,addr=04.0,mac=52:54:00:0a:0b:0c"
#define NUM_VFS 2

static void test_moves(void)
{
    Hca *h = hca_start();
    uint64_t commands, target = hca_page(h);

    hca_bring_up(h);
    hca_enable_msix(h);
    msix_target(h, 1, target, 0x1234);
    qpci_io_writel(h->dev, h->devmem, 64, 0xfeed);
    commands = hca_counter(h, QHCA_CNT_commands);
    for (int i = 0; i < 3; i++) {
        move(h, DEVICE);
        hca_assert_alive(h);
        g_assert_cmpint(hca_counter(h, QHCA_CNT_commands), >, commands);
        commands = hca_counter(h, QHCA_CNT_commands);
        g_assert_cmphex(qpci_io_readl(h->dev, h->devmem, 64), ==, 0xfeed);
        /* EQ 0 goes on, with its interrupt. */
        qtest_writel(h->qts, target, 0);
        hca_ring(h, 0, QHCA_DB_EQ_ARM, (uint64_t)i << 32 | QHCA_EQN_ASYNC);
        nop_with_event(h, 7 + i);
        wait_for_word(h, target, 0x1234);
    }
    hca_stop(h);
}

static void test_idle(void)
{
    Hca *h = hca_start();

    move(h, DEVICE);
    hca_bring_up(h);
    g_assert_cmpint(hca_nop(h), ==, QHCA_CMD_OK);
    hca_stop(h);
}

/* A VM that has never run. */
static void test_never_run(void)
{
    QTestState *from, *to;
    Move m;
    bool ok;

    move_begin(&m);
    from = qtest_initf("-nodefaults -S %s", DEVICE);
    save(from, &m);
    to = load(&m, DEVICE, &ok);
    g_assert_true(ok);
    qtest_quit(from);
    qtest_quit(to);
    move_end(&m);
}

/* A stopped VM: its device keeps still, and a reset waits for the VM. */
static void test_stop(void)
{
    Hca *h = hca_start();
    uint32_t before;

    hca_bring_up(h);
    before = hca_read(h, QHCA_REG_CLOCK_LO);
    qtest_qmp_assert_success(h->qts, "{ 'execute': 'stop' }");
    g_assert_cmpuint(hca_read(h, QHCA_REG_CLOCK_LO), >=, before);
    qtest_qmp_assert_success(h->qts, "{ 'execute': 'cont' }");
    g_assert_cmpint(hca_nop(h), ==, QHCA_CMD_OK);
    qtest_qmp_assert_success(h->qts, "{ 'execute': 'stop' }");
    qtest_qmp_assert_success(h->qts, "{ 'execute': 'system_reset' }");
    qtest_qmp_eventwait(h->qts, "RESET");
    move(h, DEVICE);
    g_free(h->dev);
    hca_map(h);
    g_assert_cmphex(hca_status(h) & QHCA_STATUS_ENABLED, ==, 0);
    hca_bring_up(h);
    g_assert_cmpint(hca_nop(h), ==, QHCA_CMD_OK);
    hca_stop(h);
}

/* The monitor does not call a function dead that is only to be reset. */
static void test_reset_is_not_death(void)
{
    Hca *h = hca_start();
    g_autofree char *info = NULL;

    hca_bring_up(h);
    qtest_qmp_assert_success(h->qts, "{ 'execute': 'stop' }");
    qtest_qmp_assert_success(h->qts, "{ 'execute': 'system_reset' }");
    qtest_qmp_eventwait(h->qts, "RESET");
    info = qtest_hmp(h->qts, "info qhca h0");
    g_test_message("%s", info);
    g_assert_null(strstr(info, "dead"));
    hca_stop(h);
}

/* Commands are rung and not yet executed when the VM stops: each is executed once. */
static void test_commands(void)
{
    enum { SLOTS = 4 };
    Hca *h = hca_start();
    const struct qhca_cmd_slot nop = {
        .opcode = cpu_to_le16(QHCA_CMD_NOP),
        .status = cpu_to_le32(QHCA_CMD_OWN),
    };
    uint64_t commands;

    hca_bring_up(h);
    for (int i = 0; i < 3; i++) {
        commands = hca_counter(h, QHCA_CNT_commands);
        for (uint32_t slot = 0; slot < SLOTS; slot++) {
            hca_fill_slot(h, slot, &nop);
        }
        hca_write(h, QHCA_REG_CMDQ_DOORBELL, (1 << SLOTS) - 1);
        move(h, DEVICE);
        for (uint32_t slot = 0; slot < SLOTS; slot++) {
            g_assert_cmpint(hca_wait_slot(h, slot), ==, QHCA_CMD_OK);
        }
        g_assert_cmpuint(hca_counter(h, QHCA_CNT_commands), ==,
                         commands + SLOTS + 1);
    }
    hca_stop(h);
}

/* An interrupt that waits behind a mask waits at the destination, too. */
static void test_masked(void)
{
    Hca *h = hca_start();
    uint64_t target = hca_page(h);
    uint64_t control;

    hca_bring_up(h);
    hca_enable_msix(h);
    msix_target(h, 1, target, 0x1234);
    control = h->dev->msix_table_off + PCI_MSIX_ENTRY_SIZE +
              PCI_MSIX_ENTRY_VECTOR_CTRL;
    qpci_io_writel(h->dev, h->dev->msix_table_bar, control,
                   PCI_MSIX_ENTRY_CTRL_MASKBIT);
    hca_ring(h, 0, QHCA_DB_EQ_ARM, QHCA_EQN_ASYNC);
    nop_with_event(h, 7);
    g_assert_true(qpci_msix_pending(h->dev, 1));
    move(h, DEVICE);
    g_assert_true(qpci_msix_pending(h->dev, 1));
    g_assert_cmphex(qtest_readl(h->qts, target), ==, 0);
    qpci_io_writel(h->dev, h->dev->msix_table_bar, control, 0);
    wait_for_word(h, target, 0x1234);
    hca_stop(h);
}

/* Somebody cancels the migration when the VM stands still for it already. */
static void test_cancelled(void)
{
    Hca *h = hca_start();
    Move m;

    hca_bring_up(h);
    for (int i = 0; i < 2; i++) {
        move_begin(&m);
        save_until(h->qts, &m, "pre-switchover");
        qtest_qmp_assert_success(h->qts, "{ 'execute': 'migrate_cancel' }");
        g_assert_true(wait_status(h->qts, "cancelled"));
        wait_running(h->qts);
        move_end(&m);
        hca_assert_alive(h);
        g_assert_cmpint(hca_nop(h), ==, QHCA_CMD_OK);
        move(h, DEVICE);
        g_assert_cmpint(hca_nop(h), ==, QHCA_CMD_OK);
    }
    hca_stop(h);
}

/* What resets the function while the VM stands still travels with it. */
static void test_flr_stopped(void)
{
    Hca *h = hca_start();

    hca_bring_up(h);
    qtest_qmp_assert_success(h->qts, "{ 'execute': 'stop' }");
    hca_flr(h);
    move(h, DEVICE);
    g_assert_cmphex(hca_status(h), ==, QHCA_STATUS_READY);
    hca_bring_up(h);
    g_assert_cmpint(hca_nop(h), ==, QHCA_CMD_OK);
    hca_stop(h);
}

static void set_bus_master(Hca *h, bool on)
{
    uint16_t command = qpci_config_readw(h->dev, PCI_COMMAND);

    qpci_config_writew(h->dev, PCI_COMMAND, on ? command | PCI_COMMAND_MASTER :
                                            command & ~PCI_COMMAND_MASTER);
}

/*
 * Software has cleared Bus Master Enable while the device has a context that is not in
 * memory.  The VM stops and moves, and the context is there when software needs it.
 */
static void test_bus_master(void)
{
    Hca *h = hca_start();
    uint64_t table;
    struct qhca_cqc_sw cq = {
        .buf = { .base = cpu_to_le64(hca_page(h)),
                 .length = cpu_to_le32(4096) },
        .rec_offset = cpu_to_le32(2048),
    };
    const struct qhca_cmd_slot nop = {
        .opcode = cpu_to_le16(QHCA_CMD_NOP),
        .status = cpu_to_le32(QHCA_CMD_OWN),
    };
    struct qhca_cqc got;

    hca_bring_up(h);
    table = hca_page(h);
    g_assert_cmpint(hca_map_chunk(h, QHCA_TABLE_CQ, 0, table), ==, QHCA_CMD_OK);
    g_assert_cmpint(hca_cmd(h, QHCA_CMD_CREATE_CQ, 1, 0, &cq, sizeof(cq), NULL,
                            0), ==, QHCA_CMD_OK);
    hca_ring(h, 0, QHCA_DB_CQ_ARM, 1);
    g_assert_cmpint(hca_nop(h), ==, QHCA_CMD_OK);
    set_bus_master(h, false);
    qtest_qmp_assert_success(h->qts, "{ 'execute': 'stop' }");
    qtest_qmp_assert_success(h->qts, "{ 'execute': 'cont' }");
    g_assert_cmphex(hca_status(h) & QHCA_STATUS_FATAL, ==, 0);
    for (int i = 0; i < 2; i++) {
        move(h, DEVICE);
        g_assert_cmphex(hca_status(h) & QHCA_STATUS_FATAL, ==, 0);
    }
    /* Until then the device has written nothing, and executes nothing. */
    qtest_memread(h->qts, table + sizeof(got), &got, sizeof(got));
    g_assert_cmpuint(le32_to_cpu(got.arm), ==, 0);
    hca_fill_slot(h, 0, &nop);
    hca_write(h, QHCA_REG_CMDQ_DOORBELL, 1);
    g_assert_cmphex(hca_status(h) & QHCA_STATUS_FATAL, ==, 0);
    g_assert_cmphex(hca_slot_status(h, 0), ==, QHCA_CMD_OWN);
    set_bus_master(h, true);
    /* This looks at memory alone: nothing else tells the device to go on. */
    g_assert_cmpint(hca_wait_slot(h, 0), ==, QHCA_CMD_OK);
    g_assert_cmpint(hca_cmd(h, QHCA_CMD_QUERY_CQ, 1, 0, NULL, 0, &got,
                            sizeof(got)), ==, QHCA_CMD_OK);
    g_assert_cmpuint(le32_to_cpu(got.arm), ==, 1);
    hca_assert_alive(h);
    hca_stop(h);
}

/* The link is as it is at the destination, also when it was down at the source. */
static void test_link(void)
{
    Hca *h = hca_start();

    hca_bring_up(h);
    for (int i = 0; i < 2; i++) {
        qtest_qmp_assert_success(h->qts, "{ 'execute': 'set_link', 'arguments':"
                                 " { 'name': 'h0', 'up': false } }");
        g_assert_cmphex(hca_read(h, QHCA_REG_LINK) & QHCA_LINK_UP, ==, 0);
        move(h, DEVICE);
        g_assert_cmphex(hca_read(h, QHCA_REG_LINK) & QHCA_LINK_UP, ==,
                        QHCA_LINK_UP);
    }
    hca_stop(h);
}

static void test_vfs(void)
{
    Hca *h = hca_start_with_vfs(NUM_VFS, ",vf-devmem-size=65536");
    Hca *vf[NUM_VFS];
    Sriov sriov;

    sriov_open(h, &sriov);
    sriov_enable(&sriov, NUM_VFS);
    hca_bring_up(h);
    for (int i = 0; i < NUM_VFS; i++) {
        vf[i] = vf_new(&sriov, i);
        hca_bring_up(vf[i]);
        qpci_io_writel(vf[i]->dev, vf[i]->devmem, 4, 0xbee0 + i);
    }
    move(h, DEVICE ",sriov-vfs=2,vf-devmem-size=65536");
    for (int i = 0; i < NUM_VFS; i++) {
        vf[i]->qts = h->qts;
        g_assert_cmphex(sriov_status(&sriov, i) & QHCA_STATUS_ENABLED, !=, 0);
        g_assert_cmpint(hca_nop(vf[i]), ==, QHCA_CMD_OK);
        g_assert_cmphex(qpci_io_readl(vf[i]->dev, vf[i]->devmem, 4), ==,
                        0xbee0 + i);
        vf_free(vf[i]);
    }
    sriov_disable(&sriov);
    hca_assert_alive(h);
    hca_stop(h);
}

/* Virtual functions are enabled, or disabled, while the VM stands still. */
static void test_vfs_stopped(void)
{
    static const char device[] = DEVICE ",sriov-vfs=2";
    Hca *h = hca_start_with_vfs(NUM_VFS, "");
    Hca *vf;
    Sriov sriov;

    sriov_open(h, &sriov);
    hca_bring_up(h);
    for (int i = 0; i < 2; i++) {
        qtest_qmp_assert_success(h->qts, "{ 'execute': 'stop' }");
        sriov_enable(&sriov, NUM_VFS);
        move(h, device);
        vf = vf_new(&sriov, NUM_VFS - 1);
        g_assert_cmphex(hca_status(vf), ==, QHCA_STATUS_READY);
        hca_bring_up(vf);
        g_assert_cmphex(sriov_status(&sriov, NUM_VFS - 1) &
                        QHCA_STATUS_ENABLED, !=, 0);
        qtest_qmp_assert_success(h->qts, "{ 'execute': 'stop' }");
        sriov_disable(&sriov);
        move(h, device);
        /* There is no such function. */
        g_assert_cmphex(sriov_status(&sriov, NUM_VFS - 1), ==, UINT32_MAX);
        hca_assert_alive(h);
        vf_free(vf);
    }
    hca_stop(h);
}

/* Another device refuses the state in the file of @m with a sentence. */
static void refuses_state(const Move *m, const char *device, const char *why)
{
    g_autofree char *errors = NULL;
    QTestState *to;
    bool ok;

    to = load(m, device, &ok);
    qtest_quit(to);
    g_assert_false(ok);
    g_assert_true(g_file_get_contents(m->errors, &errors, NULL, NULL));
    g_test_message("%s", errors);
    g_assert_nonnull(strstr(errors, why));
}

static void refuses(Hca *h, const char *device, const char *why)
{
    Move m;

    move_begin(&m);
    save(h->qts, &m);
    refuses_state(&m, device, why);
    move_end(&m);
}

/*
 * A guest with NUM_VFS virtual functions, and its state.  The configuration space is
 * at @config.
 */
static Hca *save_with_vfs(Move *m, Sriov *sriov, char **state, size_t *len,
                          char **config)
{
    Hca *h = hca_start_with_vfs(NUM_VFS, "");
    uint8_t pattern[10] = { 0, NUM_VFS, 0, 0, 0, 2 };

    sriov_open(h, sriov);
    sriov_enable(sriov, NUM_VFS);
    hca_bring_up(h);
    stl_le_p(pattern + 6, qtest_readl(h->qts, ecam_of(h->dev)));
    move_begin(m);
    save(h->qts, m);
    g_assert_true(g_file_get_contents(m->state, state, len, NULL));
    /* The property and the version of PCIDevice are in front of the registers. */
    *config = memmem(*state, *len, pattern, sizeof(pattern));
    g_assert_nonnull(*config);
    *config += 6;
    return h;
}

static void give(int fd, const char *p, size_t len)
{
    while (len) {
        ssize_t n = send(fd, p, len, MSG_NOSIGNAL);

        g_assert_cmpint(n, >, 0);
        p += n;
        len -= n;
    }
}

/* Wait until the other end has read all. */
static void wait_taken(int fd)
{
    gint64 end = g_get_monotonic_time() + ANSWER_S * G_USEC_PER_SEC;
    int left;

    do {
        g_assert_cmpint(ioctl(fd, TIOCOUTQ, &left), ==, 0);
    } while (left && g_get_monotonic_time() < end);
    g_assert_cmpint(left, ==, 0);
}

/*
 * The number of virtual functions is looked for when the stream has arrived up to a place
 * in front of it.
 */
static void test_look_ahead(void)
{
    g_autofree char *state = NULL;
    char *config;
    Sriov sriov;
    size_t len;
    Move m;
    Hca *h = save_with_vfs(&m, &sriov, &state, &len, &config);
    QTestState *to = destination(&m, DEVICE ",sriov-vfs=2");
    int fd[2];

    g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), ==, 0);
    qtest_qmp_fds_assert_success(to, &fd[1], 1, "{ 'execute': 'getfd',"
                                 "  'arguments': { 'fdname': 'state' } }");
    close(fd[1]);
    load_begin(to, "fd:state");
    give(fd[0], state, config + 4 - state);
    wait_taken(fd[0]);
    give(fd[0], config + 4, state + len - (config + 4));
    g_assert_true(load_end(to));
    close(fd[0]);
    qtest_quit(h->qts);
    h->qts = to;
    h->bus->qts = to;
    move_end(&m);
    hca_assert_alive(h);
    g_assert_cmpuint(qtest_readw(to, sriov.cap + PCI_SRIOV_NUM_VF), ==,
                     NUM_VFS);
    sriov_disable(&sriov);
    hca_stop(h);
}

/* A hostile state with more virtual functions enabled than there are. */
static void test_too_many_vfs(void)
{
    g_autofree char *state = NULL;
    char *at;
    Sriov sriov;
    size_t len;
    Move m;
    Hca *h = save_with_vfs(&m, &sriov, &state, &len, &at);

    at += sriov.cap - ecam_of(h->dev);
    g_assert_cmpuint(lduw_le_p(at + PCI_SRIOV_NUM_VF), ==, NUM_VFS);
    stw_le_p(at + PCI_SRIOV_NUM_VF, 200);
    g_assert_true(g_file_set_contents(m.state, state, len, NULL));
    refuses_state(&m, DEVICE ",sriov-vfs=2", "qhca: the state is refused: 200 "
                  "virtual functions are enabled there, and there are 2");
    move_end(&m);
    hca_stop(h);
}

static void test_refused(void)
{
    Hca *h = hca_start();

    hca_bring_up(h);
    refuses(h, DEVICE ",gids=16",
            "qhca: the state is refused: section config: gids is 0x80 (128) there and 0x10 (16) here");
    /* The VM goes on where it was. */
    qtest_qmp_assert_success(h->qts, "{ 'execute': 'cont' }");
    g_assert_cmpint(hca_nop(h), ==, QHCA_CMD_OK);
    refuses(h, DEVICE ",sriov-vfs=2",
            "the property sriov-vfs must be the same");
    hca_stop(h);
}

static uint64_t known_hints(Hca *h)
{
    struct qhca_caps caps;

    g_assert_cmpint(hca_cmd(h, QHCA_CMD_QUERY_CAPS, 0, 0, NULL, 0, &caps, sizeof(caps)), ==,
                    QHCA_CMD_OK);
    return le64_to_cpu(caps.features) & (QHCA_FEAT_POLL_HINT | QHCA_FEAT_STREAM_HINT);
}

static uint64_t hints_of(Hca *h)
{
    hca_bring_up(h);
    return known_hints(h);
}

/* Which hints software gives, and by which functions, is the link's. */
static void test_hints(void)
{
    g_autofree char *folder = g_dir_make_tmp("qhca-hints-XXXXXX", NULL);
    g_autofree char *path = g_strdup_printf("%s/link", folder);
    g_autofree char *shm = g_strdup_printf(",shm=%s,shm-server=on", path);

    g_autofree char *shm_still = g_strdup_printf("%s,yield-max-us=0", shm);
    const struct {
        const char *options;
        uint64_t pf, vf;
    } hints[] = {
        { "", QHCA_FEAT_STREAM_HINT, QHCA_FEAT_STREAM_HINT },
        { shm, QHCA_FEAT_POLL_HINT, 0 },
        /* Hints in streams would be for nothing where no vCPU yields. */
        { ",yield-max-us=0", 0, 0 },
        { shm_still, QHCA_FEAT_POLL_HINT, 0 },
    };

    for (int i = 0; i < ARRAY_SIZE(hints); i++) {
        Hca *h = hca_start_with_vfs(1, hints[i].options);
        Sriov sriov;
        Hca *vf;

        sriov_open(h, &sriov);
        sriov_enable(&sriov, 1);
        vf = vf_new(&sriov, 0);
        g_assert_cmphex(hints_of(h), ==, hints[i].pf);
        g_assert_cmphex(hints_of(vf), ==, hints[i].vf);
        vf_free(vf);
        hca_stop(h);
    }
    g_assert_cmpint(unlink(path), ==, 0);
    g_assert_cmpint(g_rmdir(folder), ==, 0);
}

/*
 * Functions move to a link of another kind.  Each goes on with the hints that it knows until its
 * own next reset.
 */
static void test_hints_move(void)
{
    static const char netdev[] = DEVICE ",sriov-vfs=1";
    g_autofree char *folder = g_dir_make_tmp("qhca-hints-XXXXXX", NULL);
    g_autofree char *path = g_strdup_printf("%s/link", folder);
    g_autofree char *shm = g_strdup_printf("%s,shm=%s,shm-server=on", netdev, path);
    Hca *h = hca_start_with_vfs(1, "");
    Sriov sriov;
    Hca *vf;

    sriov_open(h, &sriov);
    sriov_enable(&sriov, 1);
    vf = vf_new(&sriov, 0);
    g_assert_cmphex(hints_of(h), ==, QHCA_FEAT_STREAM_HINT);
    g_assert_cmphex(hints_of(vf), ==, QHCA_FEAT_STREAM_HINT);
    move(h, shm);
    vf->qts = h->qts;
    g_assert_cmphex(known_hints(h), ==, QHCA_FEAT_STREAM_HINT);
    g_assert_cmphex(known_hints(vf), ==, QHCA_FEAT_STREAM_HINT);
    vf_flr(vf);
    g_assert_cmphex(hints_of(vf), ==, 0);
    g_assert_cmphex(known_hints(h), ==, QHCA_FEAT_STREAM_HINT);
    /* This disables the virtual function. */
    hca_flr(h);
    g_assert_cmphex(hints_of(h), ==, QHCA_FEAT_POLL_HINT);
    sriov_map(&sriov);
    sriov_enable(&sriov, 1);
    vf_map(vf);
    g_assert_cmphex(hints_of(vf), ==, 0);
    move(h, netdev);
    vf->qts = h->qts;
    g_assert_cmphex(known_hints(h), ==, QHCA_FEAT_POLL_HINT);
    g_assert_cmphex(known_hints(vf), ==, 0);
    vf_flr(vf);
    g_assert_cmphex(hints_of(vf), ==, QHCA_FEAT_STREAM_HINT);
    hca_flr(h);
    g_assert_cmphex(hints_of(h), ==, QHCA_FEAT_STREAM_HINT);
    vf_free(vf);
    hca_stop(h);
    /* The device that left has removed its socket. */
    g_assert_cmpint(g_rmdir(folder), ==, 0);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    qtest_add_func("/qhca/migrate/moves", test_moves);
    qtest_add_func("/qhca/migrate/idle", test_idle);
    qtest_add_func("/qhca/migrate/never-run", test_never_run);
    qtest_add_func("/qhca/migrate/stop", test_stop);
    qtest_add_func("/qhca/migrate/reset-is-not-death", test_reset_is_not_death);
    qtest_add_func("/qhca/migrate/commands", test_commands);
    qtest_add_func("/qhca/migrate/masked", test_masked);
    qtest_add_func("/qhca/migrate/cancelled", test_cancelled);
    qtest_add_func("/qhca/migrate/flr-stopped", test_flr_stopped);
    qtest_add_func("/qhca/migrate/bus-master", test_bus_master);
    qtest_add_func("/qhca/migrate/link", test_link);
    qtest_add_func("/qhca/migrate/vfs", test_vfs);
    qtest_add_func("/qhca/migrate/vfs-stopped", test_vfs_stopped);
    qtest_add_func("/qhca/migrate/look-ahead", test_look_ahead);
    qtest_add_func("/qhca/migrate/too-many-vfs", test_too_many_vfs);
    qtest_add_func("/qhca/migrate/refused", test_refused);
    qtest_add_func("/qhca/migrate/hints", test_hints);
    qtest_add_func("/qhca/migrate/hints-move", test_hints_move);
    return g_test_run();
}
