/*
 * QTest testcase for the qhca RDMA adapter: caches that its functions share
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qhca-sriov.h"

#define NUM_VFS     3

static void create_cq(Hca *h)
{
    const struct qhca_cqc_sw cq = {
        .buf = {
            .base = cpu_to_le64(hca_page(h)),
            .length = cpu_to_le32(4096),
        },
        .rec_offset = cpu_to_le32(2048),
        .log_depth = 4,
    };

    g_assert_cmpint(hca_map_chunk(h, QHCA_TABLE_CQ, 0, hca_page(h)), ==,
                    QHCA_CMD_OK);
    g_assert_cmpint(hca_cmd(h, QHCA_CMD_CREATE_CQ, 1, 0, &cq, sizeof(cq), NULL,
                            0), ==, QHCA_CMD_OK);
}

/* The block that the context of a function's CQ is in; -1: it is in none. */
static int cq_block(Hca *h, int gvmi)
{
    QDict *answer = qtest_qmp(h->qts, "{ 'execute': 'x-query-qhca-cache', "
                              "'arguments': { 'id': 'h0', 'cache': 'cq' } }");
    QDict *cache = qdict_get_qdict(answer, "return");
    const QListEntry *entry;
    int block = -1;

    QLIST_FOREACH_ENTRY(qdict_get_qlist(cache, "lines"), entry) {
        QDict *line = qobject_to(QDict, qlist_entry_obj(entry));

        if (qdict_get_int(line, "gvmi") == gvmi) {
            g_assert_cmpint(block, ==, -1);
            block = qdict_get_int(line, "block");
        }
    }
    qobject_unref(answer);
    return block;
}

/*
 * The CQs have one number, and so one set of the cache.  Each is put into the first
 * block that is free and permitted.
 */
static void test_block_masks(void)
{
    Hca *h = hca_start_with_vfs(NUM_VFS, ",vf-block-masks=0x8:0:0x2");
    struct qhca_vf_config in = {
        .fields = cpu_to_le32(QHCA_VF_SET_BLOCKS),
    };
    Hca *vf[NUM_VFS];
    Sriov sriov;

    sriov_open(h, &sriov);
    sriov_enable(&sriov, NUM_VFS);
    hca_bring_up(h);
    for (int i = 0; i < NUM_VFS; i++) {
        vf[i] = vf_new(&sriov, i);
        hca_bring_up(vf[i]);
        create_cq(vf[i]);
    }
    create_cq(h);
    g_assert_cmpint(cq_block(h, 1), ==, 3);
    g_assert_cmpint(cq_block(h, 2), ==, 0);
    g_assert_cmpint(cq_block(h, 3), ==, 1);
    g_assert_cmpint(cq_block(h, 0), ==, 2);

    /* The mask of SET_VF replaces that of the property. */
    hca_reset(vf[2]);
    in.blocks[QHCA_CACHE_CQ] = cpu_to_le16(0x8);
    g_assert_cmpint(hca_cmd(h, QHCA_CMD_SET_VF, 3, 0, &in, sizeof(in), NULL,
                            0), ==, QHCA_CMD_OK);
    hca_bring_up(vf[2]);
    create_cq(vf[2]);
    g_assert_cmpint(cq_block(h, 3), ==, 3);
    g_assert_cmpint(cq_block(h, 1), ==, -1);    /* evicted */

    for (int i = 0; i < NUM_VFS; i++) {
        vf_free(vf[i]);
    }
    hca_stop(h);
}

static void test_bad_masks(void)
{
    static const struct {
        const char *masks, *why;
    } bad[] = {
        { "1:2:3:4", "more masks than the 3 of sriov-vfs" },
        { "1::2", "'' is not a mask" },
        { "0x10000", "'0x10000' is not a mask" },
        { "1,2", "'1,2' is not a mask" },
        { "-1", "'-1' is not a mask" },
    };
    Hca *h = hca_new("q35", "-device pcie-root-port,id=p0,addr=04.0");
    const char *why;
    QDict *answer;

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        answer = qtest_qmp(h->qts, "{ 'execute': 'device_add', 'arguments': { "
                           "'driver': 'qhca', 'id': 'h0', 'bus': 'p0', "
                           "'sriov-vfs': 3, 'vf-block-masks': %s } }",
                           bad[i].masks);
        g_assert_true(qdict_haskey(answer, "error"));
        why = qdict_get_str(qdict_get_qdict(answer, "error"), "desc");
        g_assert_nonnull(strstr(why, bad[i].why));
        qobject_unref(answer);
    }
    hca_stop(h);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);

    qtest_add_func("/qhca-cache/block-masks", test_block_masks);
    qtest_add_func("/qhca-cache/bad-masks", test_bad_masks);
    return g_test_run();
}
