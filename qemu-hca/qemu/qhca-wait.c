/*
 * qhca adapter: how the device's thread waits for work
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/processor.h"
#include "qemu/rcu.h"
#include "qemu/timer.h"
#include "hw/core/cpu.h"
#include "system/qtest.h"
#include "system/tcg.h"
#include "qhca-dev.h"
#include "trace.h"

#define QHCA_POLL_START_NS  4000
#define QHCA_POLL_FRAMES    8           /* after a wake-up: too many to poll for each */
#define QHCA_POLL_SKIP      64          /* waits without polls after that */
#define QHCA_POLL_AWAKE     256         /* waits without sleep, after which it sleeps once */

/* Is there a reason not to sleep?  With a vIOMMU the bottom half is called. */
static bool qhca_thread_called(QhcaState *s)
{
    return qatomic_read(&s->quit) ||
           (!qatomic_read(&s->dma_iommu) &&
            (qatomic_read(&s->kicked) ||
             (s->link.path && qhca_link_called(s))));
}

/* Sleep until there is one.  Returns whether the thread slept. */
static bool qhca_thread_sleep(QhcaState *s)
{
    if (s->link.path) {
        return qhca_link_sleep(s);
    }
    qemu_event_reset(&s->wake);
    if (qhca_thread_called(s)) {
        return false;
    }
    qemu_event_wait(&s->wake);
    return true;
}

/*
 * Are more than this many vCPUs halted, each with a thread that would else be busy?  Only TCG
 * says so: with KVM's interrupt controllers the kernel halts them, and what QEMU knows is
 * older.  One that has been woken is halted until its thread runs, which may need this
 * processor; those of a qtest never run, and interrupts of theirs stay.  If vCPUs share a
 * thread, all of them must be halted, and count as one.
 */
static bool qhca_halted_over(unsigned int num)
{
    unsigned int halted = 0, all = 0;
    CPUState *cpu;

    if (!tcg_enabled() && !qtest_enabled()) {
        return false;
    }
    RCU_READ_LOCK_GUARD();
    CPU_FOREACH(cpu) {
        halted += qatomic_read(&cpu->halted) &&
                  (qtest_enabled() || !qatomic_read(&cpu->interrupt_request));
        all++;
    }
    if (tcg_enabled() && !qemu_tcg_mttcg_enabled()) {
        halted = halted == all;
    }
    return halted > num;
}

static uint64_t qhca_frames_received(QhcaState *s)
{
    return qatomic_read(&s->stats.frames_received);
}

/* Poll for up to @max_ns.  With @idle only while a halted vCPU leaves its processor to us. */
static bool qhca_poll(QhcaState *s, uint64_t max_ns, bool idle)
{
    static unsigned int polling;    /* threads of all devices that do so in place of a vCPU */
    const int64_t start = get_clock();
    const unsigned int others = idle ? qatomic_fetch_inc(&polling) : 0;
    bool called = false;

    s->stats.thread_polls++;
    while (!called && get_clock() - start < max_ns &&
           (!idle || (qhca_halted_over(others) && !qhca_link_hinted(s)))) {
        cpu_relax();
        called = qhca_thread_called(s) || qhca_link_is_due(s);
    }
    if (idle) {
        qatomic_dec(&polling);
    }
    s->stats.thread_poll_hits += called;
    return called;
}

/*
 * May the thread poll in the place of a vCPU?  It may if frames come to it and not to the
 * main loop, if a vCPU is halted, so that no more processors are busy than there are vCPUs,
 * and if no program polls, which does the device's work then.  Interrupts that the device has
 * just raised are to wake a vCPU, which counts as one that has been woken.  But if a wake-up
 * finds many frames, it costs little for each of them, and they would cost more if they were
 * taken, and answered, one by one.  To see whether that is so, the thread sleeps now and then.
 */
static bool qhca_may_poll(QhcaState *s, QhcaWaits *waits)
{
    if (!waits->awake && qhca_frames_received(s) - waits->frames > QHCA_POLL_FRAMES) {
        waits->skip = QHCA_POLL_SKIP;
    }
    if (waits->skip) {
        waits->skip--;
        return false;
    }
    return s->poll_idle_us > s->poll_max_us && s->link.path &&
           waits->awake < QHCA_POLL_AWAKE && !qatomic_read(&s->dma_iommu) &&
           !qhca_link_hinted(s) && qhca_halted_over(!!qatomic_read(&s->irq_functions));
}

/*
 * When did the wait begin that goes on?  A thread that woke only to read old messages goes on
 * to wait, unless frames have come meanwhile.  0: it begins now.
 */
static int64_t qhca_waits_since(QhcaState *s, QhcaWaits *waits)
{
    const int64_t since = waits->since;

    waits->since = 0;
    return qhca_frames_received(s) == waits->frames ? since : 0;
}

/*
 * Poll before sleeping, as long as recent waits have been short.  But a wait that goes on is
 * long already.
 */
void qhca_wait(QhcaState *s, QhcaWaits *waits)
{
    const bool idle = qhca_may_poll(s, waits);
    /* With a vIOMMU nothing would end a poll. */
    const uint32_t max_us = qatomic_read(&s->dma_iommu) ? 0 :
                            idle ? s->poll_idle_us : s->poll_max_us;
    const uint64_t max = max_us * 1000ull;
    /* A wait in which it may not poll shows how long the next one may be, too. */
    const uint64_t short_ns = max || !s->link.path ? max : s->poll_idle_us * 1000ull;
    const int64_t since = qhca_waits_since(s, waits);
    const int64_t start = since ? since : get_clock();
    uint64_t waited;

    if (max && waits->poll_ns && !since && qhca_poll(s, MIN(waits->poll_ns, max), idle)) {
        waits->awake++;
        return;
    }
    trace_qhca_thread_sleep(s, waits->poll_ns);
    qhca_mark(s, QHCA_MARK_SLEEP, 0, 0);
    if (!qhca_thread_sleep(s)) {
        waits->awake++;
        return;
    }
    qhca_mark(s, QHCA_MARK_AWAKE, 0, 0);
    s->stats.thread_sleeps++;
    waits->awake = 0;
    waits->frames = qhca_frames_received(s);
    waited = get_clock() - start;
    if (qhca_link_is_due(s)) {
        return;         /* its own time has ended the wait, and no poll makes it shorter */
    }
    if (s->link.readable) {
        waits->since = start;
        return;
    }
    if (waited > short_ns) {
        waits->poll_ns = waits->poll_ns / 2 < QHCA_POLL_START_NS ? 0 : waits->poll_ns / 2;
    } else if (waited > waits->poll_ns) {
        waits->poll_ns = MIN(short_ns, waits->poll_ns ? waits->poll_ns * 2 : QHCA_POLL_START_NS);
    }
}
