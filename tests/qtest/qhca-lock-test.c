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
 * time, or vCPUs that poll while others wait, or yield.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qemu/main-loop.h"
#include "hw/core/cpu.h"
#include "qhca-parts.h"

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
    qhca_doorbells_ops.write_with_attrs(&s->pf, 0, DOORBELL, 8, MEMTXATTRS_UNSPECIFIED);
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
    return have_bql && !parts_bql_dropped();
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

/* Do doorbells send frames? */
static bool sends;
static bool rung_with_bql;

void qhca_doorbell(struct qhca_hca *hca, uint16_t gvmi, uint32_t page,
                   uint32_t offset, uint64_t value, uint64_t now)
{
    served_value = value;
    rung_with_bql = bql_locked();
    s->stats.frames_sent += sends;
    qemu_sem_post(&served);
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

/* Does a sleep end by itself?  With messages unread it then has taken this time. */
static bool brief;
#define UNREAD_US       2000
#define POLL_NS         4000            /* less is no poll */

bool qhca_link_is_due(QhcaState *hca)
{
    return due;
}

bool qhca_link_sleep(QhcaState *hca)
{
    if (brief && s->link.unread) {
        g_usleep(UNREAD_US);
        s->link.readable = true;
    }
    if (due || brief) {
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

static int64_t frames_awake;

int64_t qhca_link_frames_awake(QhcaState *hca)
{
    return frames_awake;
}

bool qhca_link_hinted(QhcaState *hca)
{
    return false;
}

/* Is the thread to nap, since a program polls? */
static bool naps;

void qhca_link_polled(QhcaState *hca, bool polls_on)
{
    naps = true;
}

void qhca_link_events(QhcaState *hca)
{
}

/* In how many slices does the answer come, and only if the peer is woken?  0: there is none. */
static unsigned int answer_in;
static bool peer_sleeps;

/* Does the peer wake nobody, because a vCPU waits for its frames? */
static bool attends;

/*
 * What is so in a slice in which a vCPU attends, of which the doorbell has the first; how long it
 * takes; and in which of them something else happens.  0: in none.
 */
static bool has_bql;
static unsigned int slice_us, others_in, sends_in, part_in;

static void slice_of_wait(void)
{
    has_bql = bql_locked();
    g_usleep(slice_us);
    if (others_in && !--others_in) {
        qatomic_set(&s->waiters, 1);
    }
    if (sends_in && !--sends_in) {
        s->link.sent = peer_sleeps = true;
    }
    parts_acks += part_in && !--part_in;        /* a part of a long message comes */
}

void qhca_link_receive(QhcaState *hca, unsigned int frames)
{
    if (!peer_sleeps) {
        parts_messages += answer_in && !--answer_in;
    }
    if (attends) {
        slice_of_wait();
    }
}

void qhca_link_attend(QhcaState *hca)
{
    g_assert_false(attends);
    attends = true;
}

void qhca_link_attended(QhcaState *hca)
{
    g_assert_true(attends);
    attends = false;
}

bool qhca_link_pending(QhcaState *hca)
{
    return answer_in && !peer_sleeps && attends;
}

bool qhca_link_has_room(QhcaState *hca)
{
    return true;
}

bool qhca_link_wakes_peer(QhcaState *hca)
{
    return peer_sleeps;
}

void qhca_link_wake_peer(QhcaState *hca)
{
    peer_sleeps = false;
}

/*
 * ------------------------------------------------------------------------
 * Tests
 */
static void start(void)
{
    s = parts_new_device();
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
    parts_free_device(s);
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
    QhcaWaits waits = { .poll_ns = (int64_t)PATIENCE_MS * SCALE_MS };

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

/*
 * A sleep ends only to read old messages.  What follows is the rest of the same wait, which is
 * long, and not a short one.
 */
static void test_unread(void)
{
    QhcaWaits waits = { .poll_ns = 4 * POLL_NS };

    start();
    s->poll_max_us = UNREAD_US / 2;
    brief = true;
    s->link.unread = true;
    qhca_wait(s, &waits);
    g_assert_cmpuint(s->stats.thread_polls, ==, 1);
    g_assert_cmpuint(waits.poll_ns, ==, 4 * POLL_NS);
    /* The sleep ends in the same way once more. */
    qhca_wait(s, &waits);
    s->link.unread = s->link.readable = false;
    qhca_wait(s, &waits);
    g_assert_cmpuint(s->stats.thread_polls, ==, 1);
    g_assert_cmpuint(s->stats.thread_sleeps, ==, 3);
    g_assert_cmpuint(waits.poll_ns, ==, 2 * POLL_NS);
    /* The wait that comes then is a new one. */
    qhca_wait(s, &waits);
    g_assert_cmpuint(s->stats.thread_polls, ==, 2);
    brief = false;
    stop();
}

/* A frame that has come while messages were read has ended the wait. */
static void test_unread_frame(void)
{
    QhcaWaits waits = { .poll_ns = 4 * POLL_NS };

    start();
    s->poll_max_us = UNREAD_US / 2;
    brief = true;
    s->link.unread = true;
    qhca_wait(s, &waits);
    s->link.unread = s->link.readable = false;
    s->stats.frames_received++;
    qhca_wait(s, &waits);
    g_assert_cmpuint(s->stats.thread_polls, ==, 2);
    brief = false;
    stop();
}

/* The C library's, which the adapter calls: is the BQL held meanwhile? */
static unsigned int yields_with_bql, yields_without;
static unsigned int yield_us;           /* how long others have the processor */
static uint64_t hint;

int sched_yield(void)
{
    g_usleep(yield_us);
    if (bql_locked()) {
        yields_with_bql++;
    } else {
        yields_without++;
    }
    return 0;
}

static void poll_with(QhcaFunction *f, MemTxAttrs attrs)
{
    g_assert_cmpint(qhca_doorbells_ops.write_with_attrs(f, QHCA_DB_POLL, hint, 8, attrs), ==,
                    MEMTX_OK);
}

static void poll_in_vain(QhcaFunction *f)
{
    poll_with(f, (MemTxAttrs) { 0 });
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
    yields_with_bql = yields_without = 0;
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
    frames_awake = 1000;
    poll_in_vain(&s->pf);
    frames_awake = 0;
    g_assert_cmpuint(s->stats.poll_yields, ==, 2);
    g_assert_cmpuint(yields_without, ==, 2);
    g_assert_cmpuint(yields_with_bql, ==, 0);
    current_cpu = NULL;
    stop();
    g_free(cpu);
}

/*
 * A vCPU yields without the BQL, unless another device on its stack may rely on that, or the
 * device's own delivery does.
 */
static void test_yield(void)
{
    static const MemTxAttrs masters[] = {
        { .unspecified = 1 }, { .memory = 1 }, { .requester_id = 0x100 },
    };
    CPUState *cpu = g_new0(CPUState, 1);
    g_autofree char *path = NULL;
    QhcaFunction vf = { .gvmi = 1 };

    start();
    vf.s = s;
    s->yield_max_us = PATIENCE_MS * 1000;
    /* The link is a netdev as far as a hint is concerned. */
    path = g_steal_pointer(&s->link.path);
    yields_with_bql = yields_without = 0;
    hint = QHCA_DB_POLL_STREAM;
    poll_in_vain(&s->pf);
    g_assert_cmpuint(yields_with_bql + yields_without, ==, 0);  /* no vCPU */
    current_cpu = cpu;
    hint = QHCA_DB_POLL_MORE;
    poll_in_vain(&s->pf);
    g_assert_cmpuint(yields_with_bql + yields_without, ==, 0);  /* no stream */
    hint = QHCA_DB_POLL_STREAM;
    poll_in_vain(&s->pf);
    poll_in_vain(&vf);
    g_assert_cmpuint(yields_without, ==, 2);
    g_assert_cmpuint(yields_with_bql, ==, 0);
    for (int i = 0; i < ARRAY_SIZE(masters); i++) {
        poll_with(&s->pf, masters[i]);
        g_assert_cmpuint(yields_with_bql, ==, i + 1);
    }
    s->delivering = true;
    poll_in_vain(&s->pf);
    s->delivering = false;
    g_assert_cmpuint(yields_with_bql, ==, 4);
    g_assert_cmpuint(yields_without, ==, 2);
    /* Nor is the BQL taken by who does not have it. */
    have_bql = false;
    poll_in_vain(&s->pf);
    have_bql = true;
    g_assert_cmpuint(yields_without, ==, 3);
    g_assert_cmpuint(s->stats.poll_yields, ==, 7);
    /* A stopped VM has nobody who waits for the program. */
    qatomic_set(&s->running, false);
    poll_in_vain(&s->pf);
    qatomic_set(&s->running, true);
    g_assert_cmpuint(s->stats.poll_yields, ==, 7);
    g_assert_cmpuint(s->stats.polls, ==, 0);
    s->link.path = g_steal_pointer(&path);
    hint = 0;
    current_cpu = NULL;
    stop();
    g_free(cpu);
}

#define LONG_US         1000000

/* After a long yield the next hint does not yield.  A wait for the BQL makes none long. */
static void test_long_yield(void)
{
    CPUState *cpu = g_new0(CPUState, 1);
    g_autofree char *path = NULL;

    start();
    s->yield_max_us = LONG_US / 2;
    path = g_steal_pointer(&s->link.path);
    current_cpu = cpu;
    hint = QHCA_DB_POLL_STREAM;
    parts_bql_wait_us = LONG_US;
    poll_in_vain(&s->pf);
    parts_bql_wait_us = 0;
    g_assert_cmpuint(s->stats.poll_yields, ==, 1);
    g_assert_cmpuint(s->stats.long_yields, ==, 0);
    yield_us = LONG_US;
    poll_in_vain(&s->pf);
    yield_us = 0;
    g_assert_cmpuint(s->stats.poll_yields, ==, 2);
    g_assert_cmpuint(s->stats.long_yields, ==, 1);
    poll_in_vain(&s->pf);
    g_assert_cmpuint(s->stats.poll_yields, ==, 2);
    poll_in_vain(&s->pf);
    g_assert_cmpuint(s->stats.poll_yields, ==, 3);
    g_assert_cmpuint(s->stats.yields, ==, 3);
    g_assert_cmpuint(s->stats.long_yields, ==, 1);
    s->link.path = g_steal_pointer(&path);
    hint = 0;
    current_cpu = NULL;
    stop();
    g_free(cpu);
}

#include "qhca-lock-answers.h"

int main(int argc, char **argv)
{
    parts_init(&argc, &argv);
    have_bql = true;

    g_test_add_func("/qhca-lock/free", test_free_lock);
    g_test_add_func("/qhca-lock/region-del", test_region_del);
    g_test_add_func("/qhca-lock/commit", test_commit);
    g_test_add_func("/qhca-lock/deadline", test_deadline);
    g_test_add_func("/qhca-lock/unread", test_unread);
    g_test_add_func("/qhca-lock/unread-frame", test_unread_frame);
    g_test_add_func("/qhca-lock/waiters", test_waiters);
    g_test_add_func("/qhca-lock/yield", test_yield);
    g_test_add_func("/qhca-lock/long-yield", test_long_yield);
    g_test_add_func("/qhca-lock/answers", test_answers);
    g_test_add_func("/qhca-lock/answers-thread", test_answers_thread);
    g_test_add_func("/qhca-lock/answers-try", test_answers_try);
    g_test_add_func("/qhca-lock/answers-doubt", test_answers_doubt);
    g_test_add_func("/qhca-lock/answers-late", test_answers_late);
    g_test_add_func("/qhca-lock/answers-first", test_answers_first);
    g_test_add_func("/qhca-lock/answers-missed", test_answers_missed);
    g_test_add_func("/qhca-lock/answers-parts", test_answers_parts);
    g_test_add_func("/qhca-lock/answers-at-once", test_answers_at_once);
    g_test_add_func("/qhca-lock/answers-wanted", test_answers_wanted);
    g_test_add_func("/qhca-lock/answers-slices", test_answers_slices);
    g_test_add_func("/qhca-lock/answers-hint", test_answers_hint);
    return g_test_run();
}
