/*
 * QTest testcase for the qhca RDMA adapter: stage 2 of virtual functions
 *
 * The test is the host domain's driver and the function's: it writes the tables of
 * the former, and commands of the latter.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qhca-sriov.h"

#define GVMI        1
#define MACHINE     (QHCA_ATE_PRESENT | QHCA_ATE_LEAF | QHCA_ATE_WRITE | \
                     QHCA_ATE_PINNED)

/* A host domain that is ready, and two virtual functions. */
typedef struct Domain {
    Hca *h;
    Sriov sriov;
    Hca *vf, *other;
    uint64_t node;      /* one entry for each GiB of the VF's bus addresses */
} Domain;

static void domain_start(Domain *d)
{
    d->h = hca_start_with_vfs(2, "");
    sriov_open(d->h, &d->sriov);
    sriov_enable(&d->sriov, 2);
    d->vf = vf_new(&d->sriov, GVMI - 1);
    d->other = vf_new(&d->sriov, GVMI);
    hca_bring_up(d->h);
    d->node = hca_page(d->h);
}

static void domain_stop(Domain *d)
{
    vf_free(d->vf);
    vf_free(d->other);
    hca_stop(d->h);
}

static enum qhca_cmd_status set_gvm(Domain *d, Hca *from, uint32_t flags)
{
    const struct qhca_gvm_entry row = {
        .at_base = cpu_to_le64(d->node), .page_shift = 30, .levels = 1,
        .flags = cpu_to_le32(flags),
    };

    return hca_cmd(from, QHCA_CMD_SET_GVM, GVMI, 0, &row, sizeof(row), NULL,
                   0);
}

static enum qhca_cmd_status invalidate(Hca *from)
{
    const struct qhca_range all = { .length = cpu_to_le64(UINT64_MAX) };

    return hca_cmd(from, QHCA_CMD_INVALIDATE_STAGE2, GVMI, 0, &all,
                   sizeof(all), NULL, 0);
}

static enum qhca_cmd_status resume(Hca *from, uint32_t token)
{
    return hca_cmd(from, QHCA_CMD_STAGE2_RESUME, token,
                   QHCA_RESUME_OK | GVMI << 16, NULL, 0, NULL, 0);
}

static uint64_t vf_counter(Domain *d, enum qhca_counter id)
{
    uint64_t value;

    g_assert_cmpint(hca_cmd(d->h, QHCA_CMD_QUERY_VF_COUNTERS, GVMI, id, NULL,
                            0, &value, sizeof(value)), ==, QHCA_CMD_OK);
    return le64_to_cpu(value);
}

/* A command of the VF that is not waited for. */
static void begin_nop(Domain *d)
{
    const struct qhca_cmd_slot nop = {
        .opcode = cpu_to_le16(QHCA_CMD_NOP),
        .status = cpu_to_le32(QHCA_CMD_OWN),
    };

    hca_fill_slot(d->vf, 0, &nop);
    hca_write(d->vf, QHCA_REG_CMDQ_DOORBELL, 1);
}

/* Event @index of the host domain, which is to be a pin request of the VF. */
static uint32_t wait_pin_request(Domain *d, uint32_t index, uint64_t addr)
{
    gint64 end = g_get_monotonic_time() + ANSWER_S * G_USEC_PER_SEC;
    uint64_t at = d->h->eq + index * sizeof(struct qhca_eqe);
    struct qhca_eqe eqe = { };

    while (!eqe.type && g_get_monotonic_time() < end) {
        g_usleep(100);
        qtest_memread(d->h->qts, at, &eqe, sizeof(eqe));
    }
    g_assert_cmpint(eqe.type, ==, QHCA_EVENT_STAGE2_FAULT);
    g_assert_cmpuint(le32_to_cpu(eqe.number), ==, GVMI);
    g_assert_cmpuint(le32_to_cpu(eqe.detail), ==, QHCA_STAGE2_PIN);
    g_assert_cmphex(le64_to_cpu(eqe.fault.addr), ==, addr);
    return le32_to_cpu(eqe.fault.token);
}

/* Without stage 2 a virtual function is as any other, and rules no stage 2. */
static void test_off(void)
{
    static const enum qhca_counter unused[] = {
        QHCA_CNT_s2_hits, QHCA_CNT_s2_misses, QHCA_CNT_s2_node_reads,
        QHCA_CNT_pin_requests, QHCA_CNT_page_faults2,
    };
    struct qhca_caps caps;
    Domain d;

    domain_start(&d);
    hca_bring_up(d.vf);
    g_assert_cmpint(set_gvm(&d, d.vf, QHCA_GVM_STAGE2), ==,
                    QHCA_CMD_NOT_PERMITTED);
    g_assert_cmpint(invalidate(d.vf), ==, QHCA_CMD_NOT_PERMITTED);
    g_assert_cmpint(resume(d.vf, 1), ==, QHCA_CMD_NOT_PERMITTED);
    g_assert_cmpint(hca_cmd(d.vf, QHCA_CMD_QUERY_CAPS, 0, 0, NULL, 0, &caps,
                            sizeof(caps)), ==, QHCA_CMD_OK);
    g_assert_cmphex(le64_to_cpu(caps.features) & QHCA_FEAT_STAGE2, ==, 0);
    for (size_t i = 0; i < ARRAY_SIZE(unused); i++) {
        g_assert_cmpuint(vf_counter(&d, unused[i]), ==, 0);
    }
    hca_assert_alive(d.vf);
    g_assert_cmpint(resume(d.h, 1), ==, QHCA_CMD_BAD_INDEX);
    g_assert_cmpint(invalidate(d.h), ==, QHCA_CMD_OK);
    domain_stop(&d);
}

/* All memory is pinned: the VF works, and the device caches what it translates. */
static void test_on(void)
{
    uint8_t canary[SLOT_SIZE];
    QDict *answer, *cache;
    Domain d;

    domain_start(&d);
    qtest_writeq(d.h->qts, d.node, MACHINE);
    g_assert_cmpint(set_gvm(&d, d.h, QHCA_GVM_STAGE2), ==, QHCA_CMD_OK);
    hca_bring_up(d.vf);
    g_assert_cmpint(hca_nop(d.vf), ==, QHCA_CMD_OK);
    g_assert_cmpuint(vf_counter(&d, QHCA_CNT_s2_misses), ==, 1);
    g_assert_cmpuint(vf_counter(&d, QHCA_CNT_s2_hits), >, 10);
    g_assert_cmpuint(vf_counter(&d, QHCA_CNT_pin_requests), ==, 0);
    g_assert_cmpuint(hca_counter(d.h, QHCA_CNT_s2_hits), ==, 0);
    answer = qtest_qmp(d.h->qts, "{ 'execute': 'x-query-qhca-cache', "
                       "'arguments': { 'id': 'h0', 'cache': 's2' } }");
    cache = qdict_get_qdict(answer, "return");
    g_assert_cmpint(qdict_get_int(cache, "valid"), ==, 1);
    g_assert_cmpint(qlist_size(qdict_get_qlist(cache, "lines")), ==, 1);
    qobject_unref(answer);

    /* Taken away: it is never written again, and nobody else suffers. */
    hca_bring_up(d.other);
    qtest_writeq(d.h->qts, d.node, 0);
    g_assert_cmpint(invalidate(d.h), ==, QHCA_CMD_OK);
    g_assert_cmpuint(vf_counter(&d, QHCA_CNT_s2_invalidations), ==, 1);
    qtest_memset(d.h->qts, d.vf->cmdq, 0xa5, SLOT_SIZE);
    hca_write(d.vf, QHCA_REG_CMDQ_DOORBELL, 1);
    hca_assert_fatal(d.vf, QHCA_FATAL_STAGE2);
    g_assert_cmpuint(hca_read(d.vf, QHCA_REG_FATAL_INFO), ==,
                     QHCA_STAGE2_NOT_PINNED);
    qtest_memread(d.h->qts, d.vf->cmdq, canary, sizeof(canary));
    for (size_t i = 0; i < sizeof(canary); i++) {
        g_assert_cmphex(canary[i], ==, 0xa5);
    }
    g_assert_cmpint(hca_nop(d.other), ==, QHCA_CMD_OK);
    g_assert_cmpint(hca_nop(d.h), ==, QHCA_CMD_OK);
    domain_stop(&d);
}

/* Memory that is not pinned: the command is held until the host domain answers. */
static void test_held(void)
{
    uint32_t token;
    Domain d;

    domain_start(&d);
    g_assert_cmpint(set_gvm(&d, d.h, QHCA_GVM_STAGE2), ==, QHCA_CMD_OK);
    hca_enable(d.vf);
    begin_nop(&d);
    token = wait_pin_request(&d, 0, d.vf->cmdq);
    g_assert_cmphex(hca_slot_status(d.vf, 0) & QHCA_CMD_OWN, !=, 0);
    g_assert_cmpint(resume(d.h, token + (1 << 24)), ==, QHCA_CMD_BAD_INDEX);
    qtest_writeq(d.h->qts, d.node, MACHINE);
    g_assert_cmpint(resume(d.h, token), ==, QHCA_CMD_OK);
    g_assert_cmpint(hca_wait_slot(d.vf, 0), ==, QHCA_CMD_OK);
    g_assert_cmpuint(vf_counter(&d, QHCA_CNT_pin_requests), ==, 1);

    /* A reset forgets what the function waits for, and leaves the row. */
    qtest_writeq(d.h->qts, d.node, 0);
    g_assert_cmpint(invalidate(d.h), ==, QHCA_CMD_OK);
    vf_flr(d.vf);
    hca_enable(d.vf);
    begin_nop(&d);
    token = wait_pin_request(&d, 1, d.vf->cmdq);
    vf_flr(d.vf);
    g_assert_cmpint(resume(d.h, token), ==, QHCA_CMD_BAD_INDEX);
    qtest_writeq(d.h->qts, d.node, MACHINE);
    hca_enable(d.vf);
    g_assert_cmpint(hca_nop(d.vf), ==, QHCA_CMD_OK);
    g_assert_cmpuint(vf_counter(&d, QHCA_CNT_s2_hits), >, 0);

    /* Another row ends the function; without stage 2 it is as before. */
    g_assert_cmpint(set_gvm(&d, d.h, 0), ==, QHCA_CMD_OK);
    hca_assert_fatal(d.vf, QHCA_FATAL_STAGE2);
    vf_flr(d.vf);
    qtest_writeq(d.h->qts, d.node, 0);
    hca_enable(d.vf);
    g_assert_cmpint(hca_nop(d.vf), ==, QHCA_CMD_OK);
    domain_stop(&d);
}

/* Tables are of no use when their owner has gone. */
static void test_host_domain_goes(void)
{
    Domain d;

    domain_start(&d);
    qtest_writeq(d.h->qts, d.node, MACHINE);
    g_assert_cmpint(set_gvm(&d, d.h, QHCA_GVM_STAGE2), ==, QHCA_CMD_OK);
    hca_bring_up(d.vf);
    hca_bring_up(d.other);
    hca_reset(d.h);
    hca_assert_fatal(d.vf, QHCA_FATAL_STAGE2);
    g_assert_cmpuint(hca_read(d.vf, QHCA_REG_FATAL_INFO), ==,
                     QHCA_STAGE2_LOST);
    g_assert_cmpint(hca_nop(d.other), ==, QHCA_CMD_OK);
    domain_stop(&d);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);

    qtest_add_func("/qhca-stage2/off", test_off);
    qtest_add_func("/qhca-stage2/on", test_on);
    qtest_add_func("/qhca-stage2/held", test_held);
    qtest_add_func("/qhca-stage2/host-domain-goes", test_host_domain_goes);
    return g_test_run();
}
