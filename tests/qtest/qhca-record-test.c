/*
 * QTest testcase for the qhca RDMA adapter: the record of a former device
 *
 * One test for each kind of vulnerability that was found in QEMU's former
 * paravirtual RDMA device.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qhca-qtest.h"

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

    qtest_add_func("/qhca-record/num-sge", test_record_num_sge);
    qtest_add_func("/qhca-record/huge-queue", test_record_huge_queue);
    qtest_add_func("/qhca-record/leak", test_record_leak);
    qtest_add_func("/qhca-record/read", test_record_read);
    qtest_add_func("/qhca-record/loop", test_record_loop);
    qtest_add_func("/qhca-record/chunks", test_record_chunks);
    qtest_add_func("/qhca-record/unmap", test_record_unmap);
    qtest_add_func("/qhca-record/early", test_record_early);
    qtest_add_func("/qhca-record/ring-page", test_record_ring_page);
    return g_test_run();
}
