/*
 * QTest testcase for the qhca RDMA adapter: what the host does with it
 *
 * Hot-plug, properties, injection and queries.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qhca-qtest.h"

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

/* A device that comes while the machine is in ACPI S3 works when it wakes up. */
static void test_hotplug_in_s3(void)
{
    Hca *h = hca_new("pc", "");
    QPCIDevice *pm = qpci_device_find(h->bus, QPCI_DEVFN(1, 3));

    qpci_config_writel(pm, 0x40, 0x601);        /* PMBA */
    qpci_config_writeb(pm, 0x80, 1);            /* PMREGMISC: enable */
    g_free(pm);
    qtest_outw(h->qts, 0x604, 1 << 13 | 1 << 10);   /* PMCNTRL: S3 */
    qtest_qmp_eventwait(h->qts, "SUSPEND");
    qtest_qmp_device_add(h->qts, "qhca", "h0", "{ 'addr': '04' }");
    qtest_qmp_assert_success(h->qts, "{ 'execute': 'system_wakeup' }");
    qtest_qmp_eventwait(h->qts, "WAKEUP");
    hca_map(h);
    hca_bring_up(h);
    g_assert_cmpint(hca_nop(h), ==, QHCA_CMD_OK);
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
        "'poll-max-us': 100000", "'poll-idle-us': 1001", "'await-max-us': 1001",
        "'yield-max-us': 1000001",
        "'shm-slots': 3", "'shm-slots': 8192", "'shm-server': true",
        "'shm': '/nowhere/link', 'shm-server': true",
        "'shm': '/dev/null', 'shm-server': true",
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
        g_assert_cmpstr(qdict_get_str(found, "requester"), ==, "ready");
        g_assert_cmpstr(qdict_get_str(found, "responder"), ==, "ready");
        g_assert_cmpstr(qdict_get_str(found, "requester-fault"), ==, "none");
        g_assert_cmpstr(qdict_get_str(found, "responder-fault"), ==, "none");
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

static QDict *set_timeline(Hca *h, const char *file)
{
    return qtest_qmp(h->qts, "{ 'execute': 'qom-set', 'arguments': {"
                     " 'path': '/machine/peripheral/h0',"
                     " 'property': 'timeline', 'value': %s } }", file);
}

/* If the old timeline cannot be written, that is an error, and no new one begins. */
static void test_timeline_lost(void)
{
    g_autofree char *file = g_strdup_printf("%s/qhca-timeline-%d",
                                            g_get_tmp_dir(), getpid());
    Hca *h = hca_start();
    QDict *answer;

    qobject_unref(set_timeline(h, "/nonexistent/timeline"));
    answer = set_timeline(h, file);
    g_assert_nonnull(strstr(qdict_get_str(qdict_get_qdict(answer, "error"), "desc"),
                            "/nonexistent"));
    qobject_unref(answer);
    answer = set_timeline(h, "");
    g_assert_true(qdict_haskey(answer, "return"));
    qobject_unref(answer);
    g_assert_false(g_file_test(file, G_FILE_TEST_EXISTS));
    hca_stop(h);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);

    qtest_add_func("/qhca-host/hotplug-conventional", test_hotplug_conventional);
    qtest_add_func("/qhca-host/hotplug-in-s3", test_hotplug_in_s3);
    qtest_add_func("/qhca-host/hotplug-express", test_hotplug_express);
    qtest_add_func("/qhca-host/two", test_two);
    qtest_add_func("/qhca-host/bad-properties", test_bad_properties);
    qtest_add_func("/qhca-host/nic-option", test_nic_option);
    qtest_add_func("/qhca-host/no-features", test_no_features);
    qtest_add_func("/qhca-host/inject", test_inject);
    qtest_add_func("/qhca-host/query", test_query);
    qtest_add_func("/qhca-host/query-qps", test_query_qps);
    qtest_add_func("/qhca-host/query-cache", test_query_cache);
    qtest_add_func("/qhca-host/fetch-cost", test_fetch_cost);
    qtest_add_func("/qhca-host/timeline-lost", test_timeline_lost);
    return g_test_run();
}
