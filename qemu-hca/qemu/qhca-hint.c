/*
 * qhca adapter: programs that poll in vain, and processors that are yielded
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/main-loop.h"
#include "qemu/processor.h"
#include "hw/core/cpu.h"
#include "qhca-dev.h"
#include "trace.h"

#define QHCA_YIELD_PENALTY_MAX 1024     /* doorbells, or hints */
#define QHCA_POLLED_BUDGET 16           /* frames for a program that polls */
#define QHCA_POLLED_WAIT_NS (8 * SCALE_US)      /* for the next frame */
#define QHCA_POLLED_MAX_NS (60 * SCALE_US)      /* of a vCPU, and of the BQL with TCG */
#define QHCA_YIELD_FRAMES 16            /* the thread is awake for many */

/*
 * Yield the processor after this vCPU has sent frames, or when its program polls
 * in vain.  The process that receives the frames, or the thread that does the
 * work, may wait for this very processor: a guest that polls for the answer keeps
 * the processor busy, and neither a netdev's reader nor QEMU's own main loop
 * preempts a vCPU that has just begun to run.  If no other thread is ready, this
 * costs one system call.  If others compute, the vCPU may get it back a whole time slice
 * later.  When that took longer than yield_max_us, the next ones of its kind skip the yield,
 * twice as many each time.  The wait for the BQL afterwards does not count, since whoever
 * holds it mostly works for a device.  Returns whether it yielded.
 *
 * QEMU before 10.2, and TCG in every release, call this with the BQL held.  With @alone no
 * device on this stack relies on it, and it is dropped meanwhile, since the main loop may wait
 * for it.  The caller may then find everything changed, but the device's memory is still there:
 * each access is in an RCU critical section.
 */
bool qhca_yield(QhcaState *s, QhcaYields *yields, bool alone)
{
    const bool unlocks = alone && bql_locked() && !qhca_nested(s);
    uint32_t skip = qatomic_read(&yields->skip);
    uint32_t penalty = qatomic_read(&yields->penalty);
    int64_t took;

    if (!s->yield_max_us || !current_cpu) {
        return false;
    }
    if (skip) {
        qatomic_set(&yields->skip, skip - 1);
        return false;
    }
    qhca_mark(s, QHCA_MARK_YIELD, 0, 0);
    took = -get_clock();
    if (unlocks) {
        bql_unlock();
    }
    sched_yield();
    took += get_clock();
    if (unlocks) {
        bql_lock();
    }
    qhca_mark(s, QHCA_MARK_YIELDED, 0, 0);
    s->stats.yields++;
    if (took <= s->yield_max_us * (int64_t)SCALE_US) {
        qatomic_set(&yields->penalty, penalty / 2);
        return true;
    }
    penalty = MIN(penalty * 2 + 1, QHCA_YIELD_PENALTY_MAX);
    qatomic_set(&yields->penalty, penalty);
    qatomic_set(&yields->skip, penalty);
    s->stats.long_yields++;
    trace_qhca_long_yield(s, took, penalty);
    return true;
}

/*
 * Does no device on this stack rely on the BQL, since nobody here has it or the access is a vCPU's
 * own?  What another device writes here in the middle of an access to its own registers has no
 * attributes, or says that it is for memory, or has a requester ID.  The ID may be 0 in the message
 * of an interrupt, which is too short for a hint, and rings no doorbell.  A vCPU that takes an
 * interrupt under TCG has the BQL while it writes the frame of that.  If the guest has this frame
 * in a doorbell, the BQL is dropped there, and harms at most this guest.
 */
bool qhca_is_alone(MemTxAttrs attrs)
{
    return !bql_locked() ||
           (current_cpu && !attrs.unspecified && !attrs.memory && !attrs.requester_id);
}

static void qhca_yield_to_worker(QhcaState *s, bool alone)
{
    if (qhca_yield(s, &s->poll_yields, alone)) {
        s->stats.poll_yields++;
    }
}

bool qhca_is_wanted(QhcaState *s)
{
    return qatomic_read(&s->waiters) || qatomic_read(&s->kicked) ||
           qatomic_read(&s->irq_functions);
}

static bool qhca_has_work(QhcaState *s)
{
    return s->more || qhca_link_pending(s) || qhca_link_is_due(s) ||
           qatomic_read(&s->num_doorbells);
}

/*
 * The host may take the processor from this vCPU at any place, and then the time is over although
 * there is work.  It mostly does so for who brings this work, so look for it once more, whatever
 * the time is.
 */
bool qhca_polled_again(QhcaState *s, int64_t *end, int64_t wait_ns)
{
    const int64_t until = MIN(*end, get_clock() + wait_ns);
    bool over;

    if (!*end) {
        return false;
    }
    do {
        over = get_clock() >= until;
        if (qhca_is_wanted(s)) {
            return false;
        }
        if (qhca_has_work(s)) {
            *end = get_clock() < *end ? *end : 0;
            return true;
        }
        cpu_relax();
    } while (!over);
    return false;
}

/*
 * Do the device's work for a program that polls on after its next completion, and go on
 * while there is none, as the thread would: a return to the guest costs more than a frame.
 * One in another CQ counts as well, since many programs poll two.  The peer is woken with
 * the lock held, since its answer is awaited here.
 */
static void qhca_polled_on(QhcaState *s, const QhcaDoorbell *db)
{
    int64_t end = get_clock() + QHCA_POLLED_MAX_NS;
    const uint64_t completions = qhca_counter(s->hca, db->gvmi,
                                              QHCA_CNT_completions);

    do {
        qhca_slice(s, QHCA_POLLED_BUDGET);
        if (qhca_link_wakes_peer(s)) {
            qhca_link_wake_peer(s);
        }
    } while (qhca_counter(s->hca, db->gvmi, QHCA_CNT_completions) ==
             completions && qhca_polled_again(s, &end, QHCA_POLLED_WAIT_NS));
}

/*
 * A program polls an empty CQ, and the device's thread sleeps: this vCPU does the device's
 * work in place of polling on.  On a busy host the answer would otherwise wait until the
 * scheduler takes the processor from the vCPU that waits for it.  A thread that is awake
 * does the work itself; it is mostly better at many frames, which it takes while the
 * program goes on.  If there were many since it woke, it may be ready but wait for this
 * processor, on which the program only polls, so yield.  For single frames that would make
 * it harder for a hint to find the thread asleep, and to take the next frame without a
 * wake-up.  The hint does not wait for engine_lock, and is never deferred.
 *
 * A program whose next doorbell waits for a message (qhca-await.c) polls only because something
 * else came between.  No naps are for it: the end of each would come between again.
 */
static void qhca_polled(QhcaState *s, const QhcaDoorbell *db)
{
    const bool more = db->value & QHCA_DB_POLL_MORE;
    uint64_t frames;
    bool awaits;

    /* Only the physical function has the feature.  The CQ cannot be looked at yet. */
    if (db->gvmi || qatomic_read(&s->dma_iommu) || qhca_nested(s)) {
        return;
    }
    if (!qatomic_read(&s->link.asleep)) {
        if (!qatomic_read(&s->link.hinted)) {
            qatomic_set(&s->link.hinted, true);     /* the thread should not poll as well */
        }
        if (qhca_link_frames_awake(s) >= QHCA_YIELD_FRAMES) {
            qhca_yield_to_worker(s, db->alone);
        }
        return;
    }
    if (qatomic_read(&s->waiters)) {
        /* The next hint comes soon.  They would be woken to find the lock taken again. */
        qhca_yield_to_worker(s, db->alone);
        return;
    }
    if (!qhca_trylock(s) || !qhca_have_engine(s)) {
        return;
    }
    if (!qatomic_read(&s->running) || qatomic_read(&s->dma_iommu) ||
        !qhca_polls_in_vain(s->hca, db->gvmi, db->page, db->value)) {
        qhca_leave_undone(s);
        return;
    }
    s->stats.polls++;
    frames = s->stats.frames_received;
    awaits = qhca_awaits_hinted(s);
    if (awaits) {
        qhca_link_attend(s);
    }
    s->link.polls_on = more;
    if (more) {
        qhca_polled_on(s, db);
    } else {
        qhca_slice(s, QHCA_POLLED_BUDGET);
    }
    s->stats.poll_frames += s->stats.frames_received - frames;
    if (awaits) {
        qhca_link_attended(s);
    } else {
        qhca_link_polled(s, more ||
                         qhca_polls_in_vain(s->hca, db->gvmi, db->page, db->value));
    }
    qhca_leave(s);
}

/*
 * A program polls an empty CQ in a stream over a netdev.  Frames arrive in the main loop, so
 * this vCPU cannot do the device's work.  But the main loop, the device's thread or the peer's
 * process may wait for this processor, on which the program only polls.  In a stream another
 * completion is near, and nobody waits for a single answer, which yields would delay.
 */
static void qhca_polled_stream(QhcaState *s, const QhcaDoorbell *db)
{
    if (db->value & QHCA_DB_POLL_STREAM && qatomic_read(&s->running)) {
        qhca_yield_to_worker(s, db->alone);
    }
}

void qhca_hint(QhcaState *s, const QhcaDoorbell *db)
{
    if (s->link.path) {
        qhca_polled(s, db);
    } else {
        qhca_polled_stream(s, db);
    }
}
