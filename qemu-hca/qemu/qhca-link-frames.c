/*
 * qhca adapter: the frames of a link over shared memory, and who waits for them
 *
 * Frames are engine_lock's: whoever has it sends and receives.  When no one does, the
 * device's thread waits for the peer, so frames pass without the BQL.  It waits in one
 * epoll set for the peer's messages, for calls of this process, and for the end of a nap.  The
 * peer cannot drain those calls, since they come through an eventfd of our own.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/rcu.h"
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include "qhca-dev.h"
#include "qhca-link.h"
#include "trace.h"

#define QHCA_LINK_LOOK      64      /* turns until a look at the peer's messages */
#define QHCA_LINK_NAP_NS    (250 * SCALE_US)
#define QHCA_LINK_UNREAD_NS (20 * SCALE_MS)     /* messages are left so long in a sleep */

/*
 * ------------------------------------------------------------------------
 * Frames: engine_lock
 */
void *qhca_link_reserve(QhcaState *s)
{
    QhcaPeer *peer = s->link.peer;
    uint8_t *room = peer ? hca_slots_reserve(&peer->mem.tx) : NULL;

    if (!room && peer) {
        qatomic_inc(&s->link.asked);
        if (hca_slots_wait_room(&peer->mem.tx)) {
            room = hca_slots_reserve(&peer->mem.tx);
        }
    }
    s->link.room = room;
    if (!room && !s->tx_starved) {
        qatomic_set(&s->tx_starved, true);
        s->stats.send_stalls++;
        trace_qhca_net_stalled(s, true);
    }
    return room;
}

/* The peer may have marked the slot as its own meanwhile; it is ours. */
void qhca_link_commit(QhcaState *s, size_t len)
{
    QhcaPeer *peer = s->link.peer;

    qhca_dump(s, s->link.room, len);
    hca_slots_commit(&peer->mem.tx, len);
    s->link.sent = true;
    s->stats.frames_sent++;
}

/*
 * The engine waits for room.  Ask for the wake-up anew as long as there is none: the one
 * that has come may be that of an earlier wait.
 */
bool qhca_link_has_room(QhcaState *s)
{
    if (!s->link.peer) {
        return false;
    }
    qatomic_inc(&s->link.asked);
    return hca_slots_wait_half(&s->link.peer->mem.tx);
}

bool qhca_link_pending(QhcaState *s)
{
    return s->link.peer && hca_slots_pending(&s->link.peer->mem.rx);
}

/* Ask the peer for a wake-up with the next frame. */
static void qhca_link_ask(QhcaState *s, QhcaPeer *peer)
{
    qatomic_inc(&s->link.asked);
    hca_slots_sleep(&peer->mem.rx);
}

/*
 * The program that polled may do anything else now.  A nap may have begun without the flag
 * that asks the peer for a wake-up, so set it.
 */
static void qhca_link_polls_end(QhcaState *s, QhcaPeer *peer)
{
    if (!qatomic_read(&s->link.quiet) || s->link.attends) {
        return;
    }
    qatomic_set(&s->link.quiet, false);
    smp_mb();           /* pairs with qhca_link_sleep() */
    if (qatomic_read(&s->link.naps)) {
        qhca_link_ask(s, peer);
    }
}

/*
 * The peer may change a frame at any time: the engine reads headers once, and
 * payload where it lies, so the slot is the peer's again only afterwards.
 */
void qhca_link_receive(QhcaState *s, unsigned int frames)
{
    QhcaPeer *peer = s->link.peer;
    uint64_t now = qhca_now(s);
    enum hca_slots_found found;
    const uint8_t *frame;
    size_t len;

    while (peer && frames-- &&
           (found = hca_slots_peek(&peer->mem.rx, &frame, &len))) {
        if (found != HCA_SLOTS_FRAME || len > QHCA_MAX_FRAME) {
            s->stats.link_bad_slots++;
        } else if (!s->link.down) {
            s->stats.frames_received++;
            qhca_dump(s, frame, len);
            qhca_rx_shared(s->hca, frame, len, now);
            qhca_mark(s, QHCA_MARK_PLACED, 0, 0);
        }
        hca_slots_pop(&peer->mem.rx);
        s->link.freed = true;
    }
    if (s->link.freed) {
        /*
         * The thread may be falling asleep.  It must see which slot is the next, or the
         * slice must see the frame that comes there: they look without each other's lock.
         */
        smp_mb();       /* pairs with hca_slots_sleep() */
        if (!s->link.polls_on) {
            qhca_link_polls_end(s, peer);
        }
        qhca_net_check_own_mac(s);
    }
}

/*
 * A vCPU waits for frames, with the lock.  The peer need not wake anybody, and the thread need
 * neither poll as well nor look for frames before it sleeps: it would have to wait for the lock,
 * and so end the vCPU's wait.
 */
void qhca_link_attend(QhcaState *s)
{
    qatomic_set(&s->link.attends, true);
    s->link.took_back = hca_slots_wake(&s->link.peer->mem.rx);
    if (!qatomic_read(&s->link.asleep) && !qatomic_read(&s->link.hinted)) {
        qatomic_set(&s->link.hinted, true);
    }
}

/*
 * It no longer does, and its program may do anything else.  A thread that has fallen asleep
 * before needs wake-ups.  One that is awake asks for them before it falls asleep.
 */
void qhca_link_attended(QhcaState *s)
{
    qatomic_set(&s->link.attends, false);
    qatomic_set(&s->link.quiet, false);
    smp_mb();           /* pairs with qhca_link_sleep() */
    if (qatomic_read(&s->link.asleep)) {
        if (s->link.took_back) {
            hca_slots_sleep(&s->link.peer->mem.rx);     /* this one has been counted */
        } else {
            qhca_link_ask(s, s->link.peer);
        }
        s->more |= qhca_link_pending(s);
    }
}

/* Is the peer to be woken, for all that was sent and received with the lock? */
bool qhca_link_wakes_peer(QhcaState *s)
{
    QhcaPeer *peer = s->link.peer;
    bool frames = s->link.sent && peer &&
                  hca_slots_wakes_consumer(&peer->mem.tx);
    bool room = s->link.freed && peer &&
                hca_slots_wakes_producer(&peer->mem.rx);

    s->link.sent = false;
    s->link.freed = false;
    s->stats.link_wakes_sent += frames || room;
    return frames || room;
}

/*
 * The device's thread: the peer has sent messages, or ended; the main loop ends the link then.
 * A thread that always finds work does not sleep, so it looks by itself.  Nobody else reads
 * messages: the thread may not have woken for one yet, and would not if it were gone.
 */
void qhca_link_events(QhcaState *s)
{
    QhcaPeer *peer = s->link.peer;

    if (++s->link.turns < QHCA_LINK_LOOK && !s->link.readable) {
        return;
    }
    s->link.turns = 0;
    s->link.unread = false;
    s->link.readable = false;
    qatomic_set(&s->link.asked, 0);
    if (peer && (!hca_intro_woken(peer->fd) || s->link.ended == peer->number)) {
        epoll_ctl(s->link.epoll_fd, EPOLL_CTL_DEL, peer->fd, NULL);
        qatomic_set(&s->link.lost, true);
        qhca_schedule(s);
    }
}

/*
 * A program polls, and the device has done its work for it.  If it polls on, it will do so
 * for the next frame as well, and the peer need not wake anybody: that would take the
 * processor from the program.  But it is not bound to.  So this is done without wake-ups
 * only while the thread naps, which looks for frames when its nap ends.  The nap that a hint
 * called for begins with the flag; one that follows a nap with hints in it does without.
 */
void qhca_link_polled(QhcaState *s, bool polls_on)
{
    QhcaPeer *peer = s->link.peer;

    qatomic_set(&s->link.polls, s->link.polls + 1);
    if (!peer) {
        return;
    }
    if (!polls_on) {
        qhca_link_polls_end(s, peer);
        s->more |= qhca_link_pending(s);
        return;
    }
    if (!qatomic_read(&s->link.naps)) {
        if (!qatomic_xchg(&s->link.called, true)) {
            qhca_link_call(s);  /* to nap */
        }
        return;
    }
    qatomic_set(&s->link.quiet, true);
    hca_slots_wake(&peer->mem.rx);
    smp_mb();           /* pairs with qhca_link_sleep() */
    if (!qatomic_read(&s->link.naps)) {
        qatomic_set(&s->link.quiet, false);     /* the thread may sleep without a limit */
        qhca_link_ask(s, peer);
        s->more |= qhca_link_pending(s);
    }
}

/*
 * ------------------------------------------------------------------------
 * No lock: the thread, and whoever wakes it or the peer
 */
/* Are there frames for which the thread is needed? */
bool qhca_link_called(QhcaState *s)
{
    QhcaPeer *peer;

    RCU_READ_LOCK_GUARD();
    peer = qatomic_rcu_read(&s->link.peer);
    return peer && qatomic_read(&s->running) && !qatomic_read(&s->link.attends) &&
           hca_slots_pending(&peer->mem.rx);
}

/* Has a program polled since the thread last slept, or tried to? */
bool qhca_link_hinted(QhcaState *s)
{
    return qatomic_read(&s->link.hinted) ||
           qatomic_read(&s->link.polls) != s->link.polls_seen;
}

static uint64_t qhca_link_frames(QhcaState *s)
{
    return qatomic_read(&s->stats.frames_received) +
           qatomic_read(&s->stats.frames_sent);
}

/*
 * How many frames has the device received and sent since its thread woke, or could not
 * sleep?  Negative: it woke between the two reads.
 */
int64_t qhca_link_frames_awake(QhcaState *s)
{
    return qhca_link_frames(s) - qatomic_read(&s->link.frames_slept);
}

/* Ask the peer for a wake-up.  Returns whether there are frames already. */
static bool qhca_link_fall_asleep(QhcaState *s)
{
    QhcaPeer *peer;

    RCU_READ_LOCK_GUARD();
    peer = qatomic_rcu_read(&s->link.peer);
    if (!peer || !qatomic_read(&s->running)) {
        return false;
    }
    qhca_link_ask(s, peer);
    return hca_slots_pending(&peer->mem.rx);
}

static void qhca_link_wake_up(QhcaState *s)
{
    QhcaPeer *peer;

    qatomic_set(&s->link.asleep, false);
    RCU_READ_LOCK_GUARD();
    peer = qatomic_rcu_read(&s->link.peer);
    if (peer) {
        hca_slots_wake(&peer->mem.rx);
    }
}

/*
 * A nap ends by a timer of its own, which goes on when the nap ends before.  A timeout of
 * the wait would be set with each nap and cancelled with each frame.  It ends before the
 * processor's next tick, so each of the two programs the processor's timer, for which a
 * host that is a virtual machine leaves the guest.  WRITEs of 8 bytes that answered each
 * other took 18 us with it, and take 12.  Returns the timeout that the wait needs all the
 * same: negative, none, unless a filter refuses to set the timer.
 */
static int64_t qhca_link_set_nap(QhcaState *s)
{
    const struct itimerspec in = { .it_value.tv_nsec = QHCA_LINK_NAP_NS };
    const int64_t now = get_clock();

    if (now >= s->link.nap_ends) {
        if (timerfd_settime(s->link.nap_fd, 0, &in, NULL)) {
            return QHCA_LINK_NAP_NS;
        }
        s->link.nap_ends = now + QHCA_LINK_NAP_NS;
    }
    return -1;
}

/*
 * How long may the thread sleep, in nanoseconds, until a deadline of the engine?  Negative:
 * without end.  From now on an earlier deadline is a call.  But a nap is short, and the vCPU
 * that does the device's work meanwhile looks at deadlines, so none ends a nap.
 */
static int64_t qhca_link_sleep_ns(QhcaState *s, bool nap)
{
    uint64_t now = qhca_now(s), until = QHCA_NEVER;

    if (nap) {
        qatomic_set(&s->link.sleeps_until, 0);
        return qhca_link_set_nap(s);
    }
    if (qatomic_read(&s->running) && !qatomic_read(&s->dma_iommu)) {
        until = qatomic_read(&s->deadline);
    }
    qatomic_set(&s->link.sleeps_until, until);
    if (until == QHCA_NEVER) {
        return -1;
    }
    return until > now ? until - now : 0;
}

/* Has the engine something to do at this time?  Not if the main loop keeps it. */
bool qhca_link_is_due(QhcaState *s)
{
    const uint64_t deadline = qatomic_read(&s->deadline);

    return deadline != QHCA_NEVER && qatomic_read(&s->running) &&
           !qatomic_read(&s->dma_iommu) && deadline <= qhca_now(s);
}

/*
 * epoll_wait() in nanoseconds, in one system call where Linux has it (5.11) and no filter
 * refuses it; -1: an error.  glibc has a function for that call from 2.35 on.  The adapter
 * does without it, so that there is one way for all.
 */
static int qhca_epoll_wait(int fd, int64_t ns, struct epoll_event *events, int max)
{
    GPollFD poll_fd = { .fd = fd, .events = G_IO_IN };
#ifdef SYS_epoll_pwait2
    static bool refused;        /* of all devices; to find out twice does no harm */
    struct {
        int64_t sec;
        int64_t nsec;
    } timeout = { ns / NANOSECONDS_PER_SECOND, ns % NANOSECONDS_PER_SECOND };

    if (!qatomic_read(&refused)) {
        int num = syscall(SYS_epoll_pwait2, fd, events, max, ns < 0 ? NULL : &timeout,
                          NULL, 0);

        if (num >= 0 || errno == EINTR) {
            return num;
        }
        qatomic_set(&refused, true);
    }
#endif
    if (ns > 0) {
        qemu_poll_ns(&poll_fd, 1, ns);
    }
    return epoll_wait(fd, events, max, ns < 0 ? -1 : 0);
}

/*
 * The peer has sent messages, or ended.  To read them costs a system call, and a peer that
 * has woken this thread mostly waits.  The epoll set says so once (EPOLLET), and the thread
 * reads them when it has asked for as many as a socket holds.  This relies on Linux reporting
 * each message that comes while older ones are unread, as test_intro_epoll checks.
 *
 * A peer that has sent more than it was asked for, or whose socket holds less, may have filled
 * the socket.  Its next message then is lost without an event, and with it a wake-up that the
 * device needs.  Hence while messages are unread the thread sleeps no longer than
 * QHCA_LINK_UNREAD_NS, and then reads them.  A wake-up that is lost makes the device late by
 * so much, which also holds for a kernel that reports the first unread message only.
 */
static void qhca_link_message(QhcaState *s, uint32_t events, uint64_t peer)
{
    if (events == EPOLLIN) {
        s->stats.link_wakes_received++;
        s->link.unread = true;
    } else {
        s->link.ended = peer;
        s->link.readable = true;
    }
}

/*
 * Wait for the peer, another thread, or the time.  Returns whether one of the first came, or
 * the peer's messages have been unread for too long; a nap is short enough for these.
 */
static bool qhca_link_wait(QhcaState *s, int64_t ns, bool nap)
{
    const bool reads = s->link.unread && !nap && (ns < 0 || ns > QHCA_LINK_UNREAD_NS);
    struct epoll_event events[3];
    bool called = false;
    int num = qhca_epoll_wait(s->link.epoll_fd, reads ? QHCA_LINK_UNREAD_NS : ns, events,
                              ARRAY_SIZE(events));

    if (num < 0) {
        return errno != EINTR;          /* after a signal the caller waits again */
    }
    if (!num && reads) {
        s->link.readable = true;
        return true;
    }
    for (int i = 0; i < num; i++) {
        called |= events[i].data.u64 != QHCA_WAIT_NAP;
        if (events[i].data.u64 == QHCA_WAIT_CALL) {
            event_notifier_test_and_clear(&s->link.call);
        } else if (events[i].data.u64 >= QHCA_WAIT_PEER) {
            qhca_link_message(s, events[i].events, events[i].data.u64);
        }
    }
    return called;
}

/*
 * Sleep until the peer or another thread calls, or the engine has something to do at this
 * time.  false: the thread has not slept, since it was called before, or is to end, or there
 * are frames, or messages to read.  While a program polls, and does the device's work, sleep in
 * naps.
 */
bool qhca_link_sleep(QhcaState *s)
{
    uint32_t polls;
    bool slept = false, called = false, nap, pending;

    qatomic_set(&s->link.asleep, true);
    do {
        qatomic_set(&s->link.naps, false);
        qatomic_set(&s->link.called, false);
        qatomic_set(&s->link.sleeps_until, QHCA_NEVER);
        smp_mb();       /* pairs with qhca_link_call*() and qhca_link_polled() */
        /* With a vIOMMU the bottom half is called, and the thread has nothing to do. */
        if ((qatomic_read(&s->kicked) && !qatomic_read(&s->dma_iommu)) ||
            qatomic_read(&s->quit)) {
            break;
        }
        if (qatomic_read(&s->link.asked) >= HCA_INTRO_WAKES) {
            qatomic_set(&s->link.asked, 0);
            s->link.readable = true;
            break;
        }
        polls = qatomic_read(&s->link.polls);
        nap = polls != s->link.polls_seen;
        s->link.polls_seen = polls;
        qatomic_set(&s->link.hinted, false);
        if (!nap) {
            qatomic_set(&s->link.quiet, false);
        }
        qatomic_set(&s->link.naps, nap);
        smp_mb();       /* pairs with qhca_link_polls_end() and qhca_link_attended() */
        pending = qatomic_read(&s->link.attends) || (nap && qatomic_read(&s->link.quiet)) ?
                  qhca_link_called(s) : qhca_link_fall_asleep(s);
        if (pending) {
            /* With a vIOMMU the bottom half takes the frames. */
            if (!qatomic_read(&s->dma_iommu)) {
                break;
            }
            qhca_kick(s);
        }
        slept = true;
        called = qhca_link_wait(s, qhca_link_sleep_ns(s, nap), nap);
        s->stats.thread_naps += nap;
    } while (!called && !qhca_link_is_due(s));
    qatomic_set(&s->link.naps, false);
    qatomic_set(&s->link.sleeps_until, 0);
    qatomic_set(&s->link.frames_slept, qhca_link_frames(s));
    qhca_link_wake_up(s);
    return slept;
}

/* Another thread has work for the device's, and has said so in a flag. */
void qhca_link_call(QhcaState *s)
{
    smp_mb();           /* pairs with qhca_link_sleep() */
    if (qatomic_read(&s->link.asleep)) {
        event_notifier_set(&s->link.call);
    }
}

/* The engine has a new deadline: a thread that would sleep for longer must not. */
void qhca_link_call_before(QhcaState *s, uint64_t deadline)
{
    smp_mb();           /* pairs with qhca_link_sleep() */
    if (deadline < qatomic_read(&s->link.sleeps_until)) {
        qatomic_set(&s->link.sleeps_until, 0);
        qhca_link_call(s);
    }
}

/*
 * Wake the peer.  The caller has dropped engine_lock, if it does not take the answer itself:
 * on a busy host the peer gets the processor of the caller, and this device's thread needs the
 * lock for the answer.
 */
void qhca_link_wake_peer(QhcaState *s)
{
    QhcaPeer *peer;

    RCU_READ_LOCK_GUARD();
    peer = qatomic_rcu_read(&s->link.peer);
    if (peer) {
        qhca_mark(s, QHCA_MARK_WAKE, 0, 0);
        hca_intro_wake(peer->fd);
    }
}
