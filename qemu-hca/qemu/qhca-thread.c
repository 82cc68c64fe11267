/*
 * qhca adapter: who runs the engine, and when
 *
 * A caller that finds the engine free does its own work at once, within
 * inline-budget.  The device's thread does what is left, and what callers have
 * deferred because the engine was busy.  No work gets lost between the two: a
 * caller that has deferred work tries the lock once more, and a thread that has
 * dropped the lock checks once more for deferred work.
 *
 * Time is QEMU_CLOCK_VIRTUAL, so that a stopped VM does not time out.  A timer
 * of the main loop serves the engine's deadlines.  The adapter moves the timer
 * only when a deadline precedes it: retransmission deadlines mostly move into
 * the future, and one early call of the engine is cheaper than a move for every
 * packet.  On a link over shared memory the device's thread takes the frames, and
 * keeps the time as well: in a stream it is awake before any deadline, and the
 * main loop, which takes a processor from those who compute, has nothing to do.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/host-utils.h"
#include "qemu/main-loop.h"
#include "qemu/processor.h"
#include "qemu/rcu.h"
#include "hw/pci/msix.h"
#include "hw/pci/pcie_sriov.h"
#include "system/qtest.h"
#include "system/runstate.h"
#include "qhca-dev.h"
#include "trace.h"
#ifdef CONFIG_LINUX
#include <sys/syscall.h>
#endif

#define QHCA_SOON_TRIES     100         /* about as long as a wake-up takes */
#define QHCA_MIN_TIMER_NS   1000
#define QHCA_TRACE_CHECK_NS (10 * SCALE_MS)

uint64_t qhca_now(QhcaState *s)
{
    return qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);
}

/* An unplugged device has no bottom half, but may still be on the stack. */
void qhca_schedule(QhcaState *s)
{
    QEMUBH *bh = qatomic_read(&s->bh);

    if (bh) {
        qemu_bh_schedule(bh);
    }
}

static void qhca_wake_thread(QhcaState *s)
{
    qhca_mark(s, QHCA_MARK_KICK, 0, 0);
    if (s->link.path) {
        qhca_link_call(s);
    } else {
        qemu_event_set(&s->wake);
    }
}

void qhca_kick(QhcaState *s)
{
    if (!qatomic_xchg(&s->kicked, true)) {
        if (qatomic_read(&s->dma_iommu)) {
            qhca_schedule(s);
        } else {
            qhca_wake_thread(s);
        }
    }
}

/*
 * From now on the bottom half does the work, or the thread does.  Each may sleep, and has
 * left calls to the other.
 */
void qhca_change_hands(QhcaState *s)
{
    qatomic_set(&s->kicked, true);
    qhca_schedule(s);
    qhca_wake_thread(s);
}

/*
 * ------------------------------------------------------------------------
 * Entering and leaving the engine
 */
static bool qhca_nested_in_engine(QhcaState *s)
{
    return bql_locked() && s->in_engine;
}

bool qhca_nested(QhcaState *s)
{
    return bql_locked() && (s->in_engine || s->delivering);
}

/* This thread has taken engine_lock. */
static void qhca_locked(QhcaState *s)
{
    if (bql_locked()) {
        s->in_engine = true;
    }
}

/* This thread drops engine_lock, and the engine has left its stack. */
static void qhca_release(QhcaState *s)
{
    bool wakes = (s->link.sent || s->link.freed) && qhca_link_wakes_peer(s);

    if (bql_locked()) {
        while (s->resets_pending) {
            unsigned int gvmi = ctz64(s->resets_pending);
            QhcaFunction *f = s->fn[gvmi];

            s->resets_pending &= s->resets_pending - 1;
            if (f) {
                qhca_reset_function(f, f->reset_pending);
                f->reset_pending = QHCA_RESET_DEVICE;
            }
        }
        s->in_engine = false;
    }
    qemu_mutex_unlock(&s->engine_lock);
    if (wakes) {
        qhca_link_wake_peer(s);
    }
}

void qhca_lock(QhcaState *s)
{
    qatomic_inc(&s->waiters);
    qemu_mutex_lock(&s->engine_gate);
    qemu_mutex_lock(&s->engine_lock);
    qemu_mutex_unlock(&s->engine_gate);
    qatomic_dec(&s->waiters);
    qhca_locked(s);
}

bool qhca_trylock(QhcaState *s)
{
    if (qemu_mutex_trylock(&s->engine_lock)) {
        return false;
    }
    qhca_locked(s);
    return true;
}

bool qhca_have_engine(QhcaState *s)
{
    if (s->hca) {
        return true;
    }
    qhca_release(s);
    return false;
}

bool qhca_enter(QhcaState *s)
{
    if (qhca_nested_in_engine(s)) {
        return false;
    }
    qhca_lock(s);
    return qhca_have_engine(s);
}

bool qhca_enter_soon(QhcaState *s)
{
    if (qhca_nested_in_engine(s)) {
        return false;
    }
    for (int i = 0; i < QHCA_SOON_TRIES; i++) {
        if (qhca_trylock(s)) {
            return qhca_have_engine(s);
        }
        cpu_relax();
    }
    return false;
}

/* Is there deferred work, which only a slice of work consumes? */
static bool qhca_put_off(QhcaState *s)
{
    return qatomic_read(&s->num_doorbells) || !qhca_ring_empty(&s->rx);
}

static bool qhca_has_output(QhcaState *s)
{
    return qatomic_read(&s->irq_functions) ||
           (!qhca_ring_empty(&s->tx) && !qatomic_read(&s->tx_stalled));
}

static void qhca_deliver_vectors(QhcaFunction *f)
{
    uint64_t irqs = qatomic_xchg(&f->irqs, 0);
    PCIDevice *dev = f->dev;

    object_ref(OBJECT(dev));
    while (irqs) {
        unsigned int vector = ctz64(irqs);

        irqs &= irqs - 1;
        /* The message before this one may have changed either. */
        if (msix_enabled(dev) && qhca_in_d0(dev)) {
            f->s->stats.interrupts++;
            trace_qhca_irq(f->s, f->gvmi, vector);
            msix_notify(dev, vector);
        }
    }
    object_unref(OBJECT(dev));
}

/*
 * Deliver interrupts and frames, under the BQL.  Both run code of other
 * devices, which may access this one, reset it, or unplug it.  Because of the
 * latter the caller holds a reference to the device.
 */
static void qhca_deliver(QhcaState *s)
{
    uint64_t functions;

    if (s->delivering) {
        qhca_schedule(s);       /* do not disturb the delivery further up */
        return;
    }
    s->delivering = true;
    functions = qatomic_xchg(&s->irq_functions, 0);
    while (functions) {
        QhcaFunction *f = s->fn[ctz64(functions)];

        functions &= functions - 1;
        if (f) {        /* a delivery has not unplugged it */
            qhca_deliver_vectors(f);
        }
    }
    qhca_net_flush(s);
    s->delivering = false;
}

/* Drop the lock.  Returns whether a slice of work should follow. */
static bool qhca_unlock(QhcaState *s)
{
    bool more = s->more && s->running;

    qhca_release(s);
    smp_mb();       /* pairs with the one between putting off and trying */
    return more || qhca_put_off(s);
}

static void qhca_unref_later(void *opaque)
{
    object_unref(OBJECT(opaque));
}

/*
 * Drop a reference that was held across a delivery.  If the delivery has
 * unplugged the device, this may be the last reference, and the caller may be a
 * guarded bottom half, which accesses the device once more when it returns.
 */
void qhca_put(QhcaState *s)
{
    if (qatomic_read(&s->bh)) {
        object_unref(OBJECT(s));
    } else {
        aio_bh_schedule_oneshot(qemu_get_aio_context(), qhca_unref_later, s);
    }
}

void qhca_leave(QhcaState *s)
{
    bool more = qhca_unlock(s);

    if (qhca_has_output(s)) {
        BQL_LOCK_GUARD();
        object_ref(OBJECT(s));
        qhca_deliver(s);
        if (more) {
            qhca_kick(s);
        }
        qhca_put(s);
    } else if (more) {
        qhca_kick(s);
    }
}

/*
 * Only drop the lock: the caller has run no slice, or ensures that one
 * follows.  A vCPU that rings a doorbell without the BQL may have found the
 * lock taken and deferred the doorbell.  It relies on the holder of the lock to
 * have it served.
 */
void qhca_leave_undone(QhcaState *s)
{
    qhca_release(s);
    smp_mb();       /* pairs with the one between putting off and trying */
    if (qatomic_read(&s->num_doorbells)) {
        qhca_kick(s);
    }
}

void qhca_host_raise_irq(void *host, uint16_t gvmi, unsigned int vector)
{
    QhcaState *s = host;
    QhcaFunction *f = s->fn[gvmi];

    if (f) {
        qatomic_or(&f->irqs, BIT_ULL(vector));
        qatomic_or(&s->irq_functions, BIT_ULL(gvmi));
    }
}

/*
 * ------------------------------------------------------------------------
 * Work
 */
/*
 * Does the device's thread serve the deadlines?  Not with a vIOMMU, where it does no work,
 * and not where virtual time is not that of the host: it sleeps in the host's.
 */
static bool qhca_thread_keeps_time(QhcaState *s)
{
    return s->link.path && !qatomic_read(&s->dma_iommu) && !icount_enabled() &&
           !qtest_enabled();
}

/*
 * The thread keeps the time.  A deadline that no longer is one stays: the next request has
 * about the same, and would have to wake a thread that sleeps without end.
 */
static void qhca_arm_thread(QhcaState *s, uint64_t now, uint64_t deadline)
{
    if (deadline != QHCA_NEVER || s->deadline <= now) {
        qatomic_set(&s->deadline, deadline);
        qhca_link_call_before(s, deadline);
    }
}

/*
 * Arm the timer, always a little in the future: the main loop runs timers until
 * none is due, and would otherwise do nothing else.
 */
static void qhca_arm(QhcaState *s, uint64_t now, uint64_t deadline)
{
    bool by_thread = qhca_thread_keeps_time(s);

    qhca_timers_are_cheap(s->hca, by_thread);
    if (by_thread) {
        qhca_arm_thread(s, now, deadline);
        return;
    }
    qatomic_set(&s->deadline, QHCA_NEVER);
    deadline = MAX(deadline, now + QHCA_MIN_TIMER_NS);
    if (deadline < qatomic_read(&s->timer_at)) {
        qatomic_set(&s->timer_at, deadline);
        timer_mod_ns(s->timer, MIN(deadline, INT64_MAX));
    }
}

static bool qhca_tx_has_room(QhcaState *s)
{
    return s->link.path ? qhca_link_has_room(s) : qhca_ring_half_free(&s->tx);
}

void qhca_slice(QhcaState *s, unsigned int budget)
{
    struct qhca_run_result result;
    uint64_t now = qhca_now(s);

    if (!s->running) {
        return;
    }
    if (now - s->trace_checked >= QHCA_TRACE_CHECK_NS) {
        s->trace_checked = now;
        qhca_trace_refresh(s);
    }
    qhca_take_doorbells(s, now);
    if (s->link.path) {
        qhca_link_receive(s, budget);
    } else {
        qhca_net_receive_pending(s, budget);
        now = qhca_now(s);      /* frames came later than the slice began */
    }
    if (s->tx_starved && qhca_tx_has_room(s)) {
        qatomic_set(&s->tx_starved, false);
        qhca_tx_ready(s->hca, now);
    }
    result = qhca_run(s->hca, now, budget);
    s->stats.slices++;
    qhca_received(s);
    s->more = result.more || qhca_link_pending(s);
    qhca_arm(s, now, result.deadline);
    trace_qhca_slice(s, budget, result.more, result.deadline);
}

void qhca_drop_pending(QhcaFunction *f)
{
    QhcaState *s = f->s;

    qhca_drop_doorbells(f);
    qatomic_set(&f->irqs, 0);
    if (!f->gvmi) {
        qhca_await_forget(s);
    }
    if (f->gvmi || pcie_sriov_num_vfs(f->dev)) {
        return;     /* frames in the rings may be of others */
    }
    qhca_ring_discard(&s->tx);
    qhca_ring_discard(&s->rx);
    qatomic_set(&s->tx_starved, false);
    s->more = false;
}

static void qhca_timer(void *opaque)
{
    QhcaState *s = opaque;

    qatomic_set(&s->timer_at, QHCA_NEVER);
    if (qhca_enter_soon(s)) {
        qhca_slice(s, s->inline_budget);
        qhca_leave(s);
    } else {
        qhca_kick(s);       /* the thread sets the timer again */
    }
}

/*
 * ------------------------------------------------------------------------
 * The thread, and the bottom half that delivers its output or replaces it
 */
static bool qhca_turn(QhcaState *s)
{
    bool more;

    qatomic_set_mb(&s->kicked, false);
    if (!qhca_enter(s)) {
        return false;
    }
    if (!bql_locked()) {
        /* This is the device's thread, which never takes the BQL: the bottom half has it. */
        qhca_link_events(s);
    }
    if (s->dma_iommu && !bql_locked()) {
        qhca_release(s);
        qhca_kick(s);       /* the bottom half */
        return false;
    }
    qhca_slice(s, s->thread_budget);
    s->stats.thread_slices++;
    more = qhca_unlock(s);
    return more && qatomic_read(&s->running);
}

/* The netdev may hand over the frames again that the device refused. */
static void qhca_resume_receive(QhcaState *s)
{
    if (s->rx_stalled && s->nic && qhca_ring_half_free(&s->rx)) {
        s->rx_stalled = false;
        trace_qhca_net_resumed(s, false);
        qemu_flush_queued_packets(qemu_get_queue(s->nic));
    }
}

static void qhca_bh(void *opaque)
{
    QhcaState *s = opaque;
    bool more = false;

    object_ref(OBJECT(s));
    if (qatomic_read(&s->dma_iommu) && qatomic_read(&s->kicked)) {
        more = qhca_turn(s);
    }
    qhca_deliver(s);
    if (more) {
        qhca_kick(s);
    }
    qhca_link_check(s);
    qhca_resume_receive(s);
    qhca_put(s);
}

/*
 * Ask Linux for short time slices for the calling thread.  A guest's program
 * that polls for a completion keeps its vCPU busy.  With as many vCPUs as
 * processors a frame then waits until the scheduler preempts one of them.
 * Since Linux 6.12 a waking thread with a shorter slice need not wait for the
 * end of a longer one; its share of the processor stays the same.  This leaves
 * other scheduling policies and older kernels as they are.
 */
static void qhca_thread_slice(uint32_t us)
{
#ifdef SYS_sched_setattr
    struct {
        uint32_t size;
        uint32_t policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime;
        uint64_t deadline;
        uint64_t period;
    } attr = { .size = sizeof(attr) };
    const uint32_t sched_other = 0;
    const uint64_t reset_on_fork = 1;   /* vCPUs keep the default slice */

    if (!us || syscall(SYS_sched_getattr, 0, &attr, sizeof(attr), 0) ||
        attr.policy != sched_other) {
        return;
    }
    attr.size = sizeof(attr);
    attr.flags |= reset_on_fork;
    attr.runtime = us * 1000ull;
    if (syscall(SYS_sched_setattr, 0, &attr, 0)) {
        trace_qhca_thread_slice_refused(us, errno);
    }
#endif
}

static void *qhca_thread(void *opaque)
{
    QhcaState *s = opaque;
    QhcaWaits waits = { 0 };

    rcu_register_thread();
    qhca_thread_slice(s->slice_us);
    while (!qatomic_read(&s->quit)) {
        bool more = qhca_turn(s);

        if (qhca_has_output(s) ||
            (qatomic_read(&s->rx_stalled) && qhca_ring_half_free(&s->rx))) {
            qhca_schedule(s);
        }
        if (!more) {
            qhca_wait(s, &waits);
        }
    }
    rcu_unregister_thread();
    return NULL;
}

/* The VM is stopped only after the slice under way. */
static void qhca_vm_change(void *opaque, bool running, RunState state)
{
    QhcaState *s = opaque;

    trace_qhca_vm_state(s, running);
    if (qhca_enter(s)) {
        qatomic_set(&s->running, running);
        if (running) {
            qhca_migrate_thaw(s);
        } else {
            qhca_migrate_freeze(s);
        }
        qhca_leave(s);          /* interrupts are part of the guest's state */
    } else {
        qatomic_set(&s->running, running);  /* nested in the engine, or none */
    }
    qhca_link_vm_change(s, running, state);
    if (running) {
        qhca_schedule(s);
        qhca_kick(s);
    }
}

/*
 * The machine wakes from ACPI S3.  Between "suspended" and this, the VM does not
 * count as running: the net layer has kept the frames that came, and it waits
 * for a flush before it reads more.  Change handlers of the VM state are not
 * called for S3.
 */
static void qhca_woken(Notifier *notifier, void *reason)
{
    QhcaState *s = container_of(notifier, QhcaState, wakeup);

    /*
     * A flush runs code of other devices, which may unplug the one whose
     * notifier is next.  So the bottom half makes it.
     */
    s->rx_stalled = true;
    qhca_schedule(s);
    qhca_kick(s);
}

void qhca_thread_init(QhcaState *s)
{
    qemu_mutex_init(&s->engine_gate);
    qemu_mutex_init(&s->engine_lock);
    qemu_mutex_init(&s->doorbell_lock);
    qemu_event_init(&s->wake, false);
}

void qhca_thread_finalize(QhcaState *s)
{
    /* Not at unplug: a delivery that causes the unplug still uses its frame. */
    qhca_ring_destroy(&s->tx);
    qhca_ring_destroy(&s->rx);
    qemu_event_destroy(&s->wake);
    qemu_mutex_destroy(&s->doorbell_lock);
    qemu_mutex_destroy(&s->engine_lock);
    qemu_mutex_destroy(&s->engine_gate);
}

void qhca_thread_start(QhcaState *s)
{
    qhca_ring_destroy(&s->tx);          /* of an earlier realize */
    qhca_ring_destroy(&s->rx);
    qhca_ring_init(&s->tx, s->tx_ring_size);
    qhca_ring_init(&s->rx, s->rx_ring_size);
    s->timer_at = QHCA_NEVER;
    s->deadline = QHCA_NEVER;
    s->timer = timer_new_ns(QEMU_CLOCK_VIRTUAL, qhca_timer, s);
    s->bh = qemu_bh_new_guarded(qhca_bh, s, &DEVICE(s)->mem_reentrancy_guard);
    /* A machine in S3 wakes up without a change of the VM's state. */
    s->running = runstate_is_live(runstate_get());
    s->started = s->running;
    s->vm_change = qemu_add_vm_change_state_handler(qhca_vm_change, s);
    s->wakeup.notify = qhca_woken;
    qemu_register_wakeup_notifier(&s->wakeup);
    s->quit = false;
    qhca_thread_slice(s->slice_us);     /* the main loop's: netdevs run there */
    qemu_thread_create(&s->thread, "qhca", qhca_thread, s,
                       QEMU_THREAD_JOINABLE);
}

/* The thread has ended when this returns.  BQL, and no engine. */
void qhca_thread_stop(QhcaState *s)
{
    qatomic_set(&s->quit, true);
    qhca_wake_thread(s);
    qemu_thread_join(&s->thread);
    notifier_remove(&s->wakeup);
    qemu_del_vm_change_state_handler(s->vm_change);
    timer_free(s->timer);
    qemu_bh_delete(s->bh);
    qatomic_set(&s->bh, NULL);
}
