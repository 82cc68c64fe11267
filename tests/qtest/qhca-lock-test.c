/*
 * Test of the qhca RDMA adapter: doorbells without the BQL, and who waits for whom
 *
 * From QEMU 10.2 on, a vCPU rings a doorbell without the BQL.  It may find
 * engine_lock taken by a thread with the BQL that runs no slice of work.  The
 * doorbell is then deferred, and that thread has to have it served: nothing
 * else need happen for a long time.
 *
 * In earlier releases each doorbell comes with the BQL, so that this cannot be
 * reached from outside.  Therefore the test links the adapter's files with a
 * BQL and an engine of its own, and can ring a doorbell at the very moment when
 * another thread has the lock.  Nor can qtest have threads that keep the engine's
 * time, or vCPUs that poll while others wait.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qemu/main-loop.h"
#include "qapi/error.h"
#include "hw/core/cpu.h"
#include "hw/pci/msix.h"
#include "hw/pci/pcie_sriov.h"
#include "system/qtest.h"
#include "system/runstate.h"
#include "system/tcg.h"
#include "hw/rdma/qhca/qemu/qhca-dev.h"

#define PATIENCE_MS     (60 * 1000)
#define DOORBELL        0x1234

static QhcaState *s;
static QemuSemaphore served;
static uint64_t served_value;

/* A doorbell that comes as soon as a thread with the BQL is in the engine. */
static bool expected;
static __thread bool have_bql;

/*
 * ------------------------------------------------------------------------
 * The BQL
 */
static void *vcpu(void *opaque)
{
    qhca_doorbells_ops.write(&s->pf, 0, DOORBELL, 8);
    return NULL;
}

static void ring_doorbell(void)
{
    QemuThread thread;

    expected = false;
    qemu_thread_create(&thread, "vcpu", vcpu, NULL, QEMU_THREAD_JOINABLE);
    qemu_thread_join(&thread);
}

/* The adapter asks this before it drops engine_lock, too. */
bool bql_locked(void)
{
    if (have_bql && expected && s->in_engine) {
        ring_doorbell();
    }
    return have_bql;
}

/* Only the test's main thread ever needs it. */
void bql_lock_impl(const char *file, int line)
{
    g_assert_not_reached();
}

void bql_unlock(void)
{
    g_assert_not_reached();
}

void bql_block_unlock(bool increase)
{
}

/*
 * ------------------------------------------------------------------------
 * The engine, which only counts doorbells
 */
bool qhca_polls_in_vain(struct qhca_hca *hca, uint16_t gvmi, uint32_t page,
                        uint64_t value)
{
    return true;
}

uint64_t qhca_counter(const struct qhca_hca *hca, uint16_t gvmi,
                      enum qhca_counter id)
{
    return 0;
}

void qhca_doorbell(struct qhca_hca *hca, uint16_t gvmi, uint32_t page,
                   uint32_t offset, uint64_t value, uint64_t now)
{
    served_value = value;
    qemu_sem_post(&served);
}

struct qhca_run_result qhca_run(struct qhca_hca *hca, uint64_t now,
                                unsigned int budget)
{
    return (struct qhca_run_result) { .deadline = QHCA_NEVER };
}

void qhca_timers_are_cheap(struct qhca_hca *hca, bool cheap)
{
}

void qhca_tx_ready(struct qhca_hca *hca, uint64_t now)
{
}

/*
 * ------------------------------------------------------------------------
 * The rest of the adapter
 */
void qhca_trace_refresh(QhcaState *hca)
{
}

void qhca_net_flush(QhcaState *hca)
{
}

void qhca_net_receive_pending(QhcaState *hca, unsigned int frames)
{
}

void qhca_migrate_freeze(QhcaState *hca)
{
}

void qhca_migrate_thaw(QhcaState *hca)
{
}

void qhca_reset_function(QhcaFunction *f, QhcaReset kind)
{
    g_assert_not_reached();
}

bool qhca_in_d0(PCIDevice *dev)
{
    return true;
}

void qhca_mark_now(QhcaState *hca, QhcaMarkKind what, uint64_t a, uint64_t b)
{
    g_assert_not_reached();
}

/*
 * The device has a link in shared memory, since that has a sleep of its own: the
 * test knows when the device's thread is in it, and does nothing of itself.
 */
static QemuEvent asleep;

/* Has the engine something to do at this time, which it keeps itself? */
static bool due;

bool qhca_link_is_due(QhcaState *hca)
{
    return due;
}

bool qhca_link_sleep(QhcaState *hca)
{
    if (due) {
        return true;
    }
    qemu_event_reset(&s->wake);
    if (qatomic_read(&s->kicked) || qatomic_read(&s->quit)) {
        return false;
    }
    qemu_event_set(&asleep);
    qemu_event_wait(&s->wake);
    return true;
}

void qhca_link_call(QhcaState *hca)
{
    qemu_event_set(&s->wake);
}

void qhca_link_call_before(QhcaState *hca, uint64_t deadline)
{
}

bool qhca_link_called(QhcaState *hca)
{
    return false;
}

int64_t qhca_link_frames_awake(QhcaState *hca)
{
    return 0;
}

bool qhca_link_hinted(QhcaState *hca)
{
    return false;
}

void qhca_link_polled(QhcaState *hca, bool polls_on)
{
}

void qhca_link_events(QhcaState *hca)
{
}

void qhca_link_receive(QhcaState *hca, unsigned int frames)
{
}

bool qhca_link_pending(QhcaState *hca)
{
    return false;
}

bool qhca_link_has_room(QhcaState *hca)
{
    return true;
}

bool qhca_link_wakes_peer(QhcaState *hca)
{
    return false;
}

void qhca_link_wake_peer(QhcaState *hca)
{
}

void qhca_link_check(QhcaState *hca)
{
}

void qhca_link_vm_change(QhcaState *hca, bool running, RunState state)
{
}

/*
 * ------------------------------------------------------------------------
 * QEMU
 */
bool tcg_allowed;
bool qtest_allowed;
CPUTailQ cpus_queue = QTAILQ_HEAD_INITIALIZER(cpus_queue);
#ifdef qemu_tcg_mttcg_enabled   /* before QEMU 10.1 */
bool mttcg_enabled;
#else
bool qemu_tcg_mttcg_enabled(void)
{
    return true;
}
#endif

AddressSpace address_space_memory;
__thread CPUState *current_cpu;
static MemoryListener *memory_listener;

AddressSpace *pci_device_iommu_address_space(PCIDevice *dev)
{
    return &address_space_memory;
}

void memory_listener_register(MemoryListener *listener, AddressSpace *as)
{
    memory_listener = listener;
}

void memory_listener_unregister(MemoryListener *listener)
{
    memory_listener = NULL;
}

void memory_region_unref(MemoryRegion *mr)
{
    g_assert_not_reached();
}

int msix_enabled(PCIDevice *dev)
{
    return false;
}

void msix_notify(PCIDevice *dev, unsigned int vector)
{
    g_assert_not_reached();
}

RunState runstate_get(void)
{
    return RUN_STATE_RUNNING;
}

VMChangeStateEntry *
qemu_add_vm_change_state_handler(VMChangeStateHandler *cb, void *opaque)
{
    return NULL;
}

void qemu_del_vm_change_state_handler(VMChangeStateEntry *e)
{
}

void qemu_register_wakeup_notifier(Notifier *notifier)
{
    static NotifierList list = NOTIFIER_LIST_INITIALIZER(list);

    notifier_list_add(&list, notifier);
}

NetClientState *qemu_get_queue(NICState *nic)
{
    g_assert_not_reached();
}

void qemu_flush_queued_packets(NetClientState *nc)
{
    g_assert_not_reached();
}

static const TypeInfo types[] = {
    {
        .name = TYPE_DEVICE,
        .parent = TYPE_OBJECT,
        .instance_size = sizeof(DeviceState),
        .abstract = true,
    }, {
        .name = TYPE_PCI_DEVICE,
        .parent = TYPE_DEVICE,
        .instance_size = sizeof(PCIDevice),
        .abstract = true,
    }, {
        .name = TYPE_QHCA,
        .parent = TYPE_PCI_DEVICE,
        .instance_size = sizeof(QhcaState),
    },
};

/*
 * ------------------------------------------------------------------------
 * Tests
 */
static void start(void)
{
    s = QHCA(object_new(TYPE_QHCA));
    s->pf.s = s;
    s->pf.dev = PCI_DEVICE(s);
    s->fn[0] = &s->pf;
    s->tx_ring_size = s->rx_ring_size = 64 * KiB;
    s->link.path = g_strdup("none");
    s->hca = (struct qhca_hca *)s;      /* there is one */
    qemu_sem_init(&served, 0);
    qemu_event_init(&asleep, false);
    qhca_thread_init(s);
    qhca_thread_start(s);
    qhca_dma_init(&s->pf);
    qemu_event_wait(&asleep);
}

static void stop(void)
{
    qhca_dma_exit(&s->pf);
    qhca_thread_stop(s);
    qhca_thread_finalize(s);
    qemu_event_destroy(&asleep);
    qemu_sem_destroy(&served);
    g_free(s->link.path);
    object_unref(OBJECT(s));
}

static void check_served(void)
{
    g_assert_false(expected);
    g_assert_cmpint(qemu_sem_timedwait(&served, PATIENCE_MS), ==, 0);
    g_assert_cmphex(served_value, ==, DOORBELL);
    g_assert_cmpuint(s->stats.doorbells_deferred, ==, 1);
}

static void test_region_del(void)
{
    start();
    expected = true;
    memory_listener->region_del(memory_listener, NULL);
    check_served();
    memory_listener->commit(memory_listener);
    stop();
}

static void test_commit(void)
{
    start();
    memory_listener->region_del(memory_listener, NULL);
    expected = true;
    memory_listener->commit(memory_listener);
    check_served();
    stop();
}

/* Without a lock in the way, the vCPU itself does the work. */
static void test_free_lock(void)
{
    start();
    ring_doorbell();
    g_assert_cmpint(qemu_sem_timedwait(&served, PATIENCE_MS), ==, 0);
    stop();
}

/* The engine's own time ends a poll, and a sleep, which then says nothing of the next. */
static void test_deadline(void)
{
    QhcaWaits waits = { .poll_ns = PATIENCE_MS * SCALE_MS };

    start();
    s->poll_max_us = PATIENCE_MS * 1000;
    due = true;
    qhca_wait(s, &waits);
    g_assert_cmpuint(s->stats.thread_poll_hits, ==, 1);
    waits.poll_ns = 0;
    qhca_wait(s, &waits);
    g_assert_cmpuint(s->stats.thread_sleeps, ==, 1);
    g_assert_cmpuint(waits.poll_ns, ==, 0);
    due = false;
    stop();
}

static void poll_in_vain(QhcaFunction *f)
{
    qhca_doorbells_ops.write(f, QHCA_DB_POLL, 0, 8);
}

/* A vCPU that polls goes behind those who wait for the engine, if it may poll at all. */
static void test_waiters(void)
{
    CPUState *cpu = g_new0(CPUState, 1);
    QhcaFunction vf = { .gvmi = 1 };

    start();
    vf.s = s;
    vf.dev = s->pf.dev;
    current_cpu = cpu;
    s->yield_max_us = PATIENCE_MS * 1000;
    qatomic_set(&s->link.asleep, true);
    qatomic_set(&s->waiters, 1);
    poll_in_vain(&vf);
    g_assert_cmpuint(s->stats.yields, ==, 0);
    poll_in_vain(&s->pf);
    g_assert_cmpuint(s->stats.yields, ==, 1);
    g_assert_cmpuint(s->stats.poll_yields, ==, 1);
    g_assert_cmpuint(s->stats.polls, ==, 0);
    qatomic_set(&s->waiters, 0);
    poll_in_vain(&s->pf);
    g_assert_cmpuint(s->stats.yields, ==, 1);
    g_assert_cmpuint(s->stats.polls, ==, 1);
    qatomic_set(&s->link.asleep, false);
    current_cpu = NULL;
    stop();
    g_free(cpu);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    module_call_init(MODULE_INIT_QOM);
    type_register_static_array(types, ARRAY_SIZE(types));
    qemu_init_main_loop(&error_abort);
    have_bql = true;

    g_test_add_func("/qhca-lock/free", test_free_lock);
    g_test_add_func("/qhca-lock/region-del", test_region_del);
    g_test_add_func("/qhca-lock/commit", test_commit);
    g_test_add_func("/qhca-lock/deadline", test_deadline);
    g_test_add_func("/qhca-lock/waiters", test_waiters);
    return g_test_run();
}
