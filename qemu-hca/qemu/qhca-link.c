/*
 * qhca adapter: a link over memory that another process shares
 *
 * With the property shm the device has no netdev: the engine builds frames in
 * slots of memory that the process at the other end has mapped as well, and
 * takes its frames from there.  ../link has the queues and the introduction,
 * which do not know QEMU; this file says who uses them, and qhca-link-frames.c when.
 *
 * The main loop introduces the two ends, with the BQL, and ends a link.  The
 * device's thread looks at the queue without a lock before it sleeps.  So the
 * main loop frees the memory of a link with RCU.
 *
 * While the VM is stopped nobody touches the slots.  When a migration stops it,
 * the link ends, because the device is to connect from its new place.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/error-report.h"
#include "qemu/main-loop.h"
#include "qemu/rcu.h"
#include "qapi/error.h"
#include "system/runstate.h"
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include "qhca-dev.h"
#include "qhca-link.h"
#include "trace.h"

#define QHCA_LINK_RETRY_MS  200     /* between attempts to connect */
#define QHCA_LINK_INTRO_MS  5000    /* a peer that does not speak is dropped */

static bool qhca_link_open(QhcaState *s, Error **errp);

/*
 * ------------------------------------------------------------------------
 * Up and down: BQL
 */
static void qhca_peer_free(QhcaPeer *peer)
{
    hca_pair_free(&peer->mem);
    close(peer->fd);
    g_free(peer);
}

static void qhca_link_retry(QhcaState *s)
{
    timer_mod(s->link.timer, qemu_clock_get_ms(QEMU_CLOCK_REALTIME) +
              QHCA_LINK_RETRY_MS);
}

/* Say why there is no link, but not again and again. */
static void qhca_link_warn(QhcaState *s, const char *why)
{
    if (g_strcmp0(s->link.warned, why)) {
        g_free(s->link.warned);
        s->link.warned = g_strdup(why);
        warn_report("qhca: shm=%s: %s", s->link.path, why);
    }
}

static void qhca_link_accept(void *opaque);

/*
 * Look for the next peer, but not at once: one that comes and goes without end
 * would keep the main loop and the guest busy.
 */
static void qhca_link_wait_peer(QhcaState *s)
{
    qhca_link_retry(s);
}

static void qhca_link_listen(QhcaState *s)
{
    qemu_set_fd_handler(s->link.listen_fd, qhca_link_accept, NULL, s);
    timer_del(s->link.timer);
}

static void qhca_link_end_intro(QhcaState *s)
{
    if (s->link.intro) {
        qemu_set_fd_handler(s->link.intro->fd, NULL, NULL, NULL);
        hca_intro_end(s->link.intro);
        close(s->link.intro->fd);
        g_clear_pointer(&s->link.intro, g_free);
    }
}

static bool qhca_link_waits_for(QhcaState *s, int fd, uint32_t events, uint64_t what)
{
    struct epoll_event event = { .events = events, .data.u64 = what };

    return !epoll_ctl(s->link.epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

/* A peer whose messages the device's thread hears; NULL: there is no memory. */
static QhcaPeer *qhca_link_new_peer(QhcaState *s, int fd)
{
    QhcaPeer *peer = g_new0(QhcaPeer, 1);

    peer->fd = fd;
    peer->number = QHCA_WAIT_PEER + s->link.num_peers++;
    if (!qhca_link_waits_for(s, fd, EPOLLIN | EPOLLRDHUP | EPOLLET, peer->number)) {
        qhca_link_warn(s, strerror(errno));
        g_clear_pointer(&peer, g_free);
    }
    return peer;
}

static void qhca_link_up(QhcaState *s)
{
    struct hca_intro *intro = s->link.intro;
    QhcaPeer *peer;

    if (!qhca_enter(s)) {
        qhca_link_end_intro(s);
        qhca_link_wait_peer(s);
        return;
    }
    peer = qhca_link_new_peer(s, intro->fd);
    if (!peer) {
        qhca_leave_undone(s);
        qhca_link_end_intro(s);
        qhca_link_wait_peer(s);
        return;
    }
    hca_intro_take(intro, &peer->mem);
    qemu_set_fd_handler(peer->fd, NULL, NULL, NULL);
    g_clear_pointer(&s->link.intro, g_free);
    timer_del(s->link.timer);
    g_clear_pointer(&s->link.warned, g_free);
    qatomic_rcu_set(&s->link.peer, peer);
    qhca_link_is_shared(s->hca, true);
    qhca_link_without_icrc(s->hca, peer->mem.offers & HCA_INTRO_NO_ICRC);
    s->stats.link_connects++;
    trace_qhca_link(s, true);
    qhca_set_link(s->hca, !s->link.down, qhca_now(s));
    qhca_slice(s, s->inline_budget);
    qhca_leave(s);
    qhca_kick(s);       /* frames may wait, and the peer knows no sleeper */
    qhca_link_call(s);  /* with a vIOMMU a kick leaves the thread asleep */
}

/* Leave the peer; engine_lock as well. */
static void qhca_link_leave_peer(QhcaState *s)
{
    QhcaPeer *peer = s->link.peer;

    qatomic_set(&s->link.lost, false);
    if (peer) {
        qatomic_rcu_set(&s->link.peer, NULL);
        s->link.room = NULL;
        memset(&s->link.streaming, 0, sizeof(s->link.streaming));
        qhca_await_forget(s);
        if (s->hca) {
            qhca_link_is_shared(s->hca, false);
            qhca_link_without_icrc(s->hca, false);
        }
        epoll_ctl(s->link.epoll_fd, EPOLL_CTL_DEL, peer->fd, NULL);
        s->stats.link_losses++;
        call_rcu(peer, qhca_peer_free, rcu);
    }
}

/* The engine sends into nothing then, and waits for no room. */
static void qhca_link_tell_down(QhcaState *s)
{
    trace_qhca_link(s, false);
    qatomic_set(&s->tx_starved, false);
    qhca_set_link(s->hca, false, qhca_now(s));
    qhca_tx_ready(s->hca, qhca_now(s));
}

void qhca_link_check(QhcaState *s)
{
    if (!qatomic_read(&s->link.lost)) {
        return;
    }
    if (!qhca_enter(s)) {
        qhca_link_retry(s);
        return;
    }
    qhca_link_leave_peer(s);
    qhca_link_tell_down(s);
    qhca_slice(s, s->inline_budget);
    qhca_leave(s);
    /* The interrupt that reports the lost link may have unplugged the device. */
    if (s->link.open) {
        qhca_link_wait_peer(s);
    }
}

/*
 * ------------------------------------------------------------------------
 * Introduction: BQL
 */
static void qhca_link_step(void *opaque)
{
    QhcaState *s = opaque;

    switch (hca_intro_step(s->link.intro)) {
    case HCA_INTRO_AGAIN:
        break;
    case HCA_INTRO_DONE:
        qhca_link_up(s);
        break;
    case HCA_INTRO_FAILED:
        qhca_link_warn(s, s->link.intro->err);
        qhca_link_end_intro(s);
        qhca_link_wait_peer(s);
        break;
    }
}

static void qhca_link_introduce(QhcaState *s, int fd)
{
    const struct hca_intro_wish wish = {
        .slots = s->link.slots,
        .room = QHCA_MAX_FRAME,
        .offers = s->link.icrc ? 0 : HCA_INTRO_NO_ICRC,
    };

    s->link.intro = g_new0(struct hca_intro, 1);
    if (hca_intro_begin(s->link.intro, fd, s->link.server, &wish) ==
        HCA_INTRO_FAILED) {
        qhca_link_end_intro(s);
        qhca_link_wait_peer(s);
        return;
    }
    qemu_set_fd_handler(fd, qhca_link_step, NULL, s);
    timer_mod(s->link.timer, qemu_clock_get_ms(QEMU_CLOCK_REALTIME) +
              QHCA_LINK_INTRO_MS);
}

static void qhca_link_accept(void *opaque)
{
    QhcaState *s = opaque;
    int fd = hca_intro_accept(s->link.listen_fd);

    if (fd >= 0) {
        /* Others wait in the socket's queue while there is a peer. */
        qemu_set_fd_handler(s->link.listen_fd, NULL, NULL, NULL);
        qhca_link_introduce(s, fd);
    } else if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
        /* No descriptors, for example: the connection stays, and is reported. */
        qhca_link_warn(s, strerror(errno));
        qemu_set_fd_handler(s->link.listen_fd, NULL, NULL, NULL);
        qhca_link_wait_peer(s);
    }
}

/* Time to connect; or the peer takes too long; or the link could not end. */
static void qhca_link_timer(void *opaque)
{
    QhcaState *s = opaque;

    if (s->link.intro) {
        qhca_link_warn(s, "the peer did not complete the introduction in time");
        qhca_link_end_intro(s);
        qhca_link_wait_peer(s);
    } else if (s->link.peer) {
        qhca_link_check(s);
    } else {
        qhca_link_open(s, NULL);
    }
}

/*
 * Begin to look for a peer.  false: what is wrong will not pass.  A path that
 * another process listens at is an error at the start; later it is that of a
 * VM which has been migrated here and does not run there any more.
 */
static bool qhca_link_open(QhcaState *s, Error **errp)
{
    char err[HCA_INTRO_TEXT];
    bool busy;
    int fd;

    if (!s->link.server) {
        fd = hca_intro_connect(s->link.path, &busy, err, sizeof(err));
    } else if (s->link.listen_fd >= 0) {
        qhca_link_listen(s);
        return true;
    } else {
        fd = hca_intro_listen(s->link.path, &busy, err, sizeof(err));
        busy = busy && !errp;
    }
    if (fd < 0 && !busy && errp) {
        error_setg(errp, "shm=%s: %s", s->link.path, err);
        return false;
    }
    s->link.open = true;
    if (fd < 0) {
        if (!busy || s->link.server) {
            qhca_link_warn(s, err);
        }
        qhca_link_retry(s);
    } else if (s->link.server) {
        s->link.listen_fd = fd;
        qhca_link_listen(s);
    } else {
        qhca_link_introduce(s, fd);
    }
    return true;
}

static void qhca_link_close(QhcaState *s)
{
    s->link.open = false;
    timer_del(s->link.timer);
    qhca_link_end_intro(s);
    if (s->link.listen_fd >= 0) {
        qemu_set_fd_handler(s->link.listen_fd, NULL, NULL, NULL);
        /* While this socket listens nobody else binds the path, so it is ours. */
        unlink(s->link.path);
        close(s->link.listen_fd);
        s->link.listen_fd = -1;
    }
}

/*
 * The device is frozen when a migration stops the VM: its link ends, and it
 * does not know yet, so that its state does not change.  If the VM goes on in
 * this place after all, the device sees its link go down and come up again.
 */
void qhca_link_vm_change(QhcaState *s, bool running, RunState state)
{
    /* An interrupt delivered with this change may have unplugged the device. */
    if (!s->link.path || !s->hca) {
        return;
    }
    if (running) {
        /*
         * While the VM was stopped the thread has fallen asleep without asking
         * for a wake-up.  With a vIOMMU a kick does not wake it.
         */
        qhca_link_call(s);
    }
    if (!running && state == RUN_STATE_FINISH_MIGRATE) {
        qhca_link_close(s);
        qhca_lock(s);
        qhca_link_leave_peer(s);
        qhca_leave_undone(s);
    } else if (running && !s->link.open) {
        if (qhca_enter(s)) {
            qhca_link_tell_down(s);
            qhca_leave_undone(s);
        }
        qhca_link_open(s, NULL);
    }
}

/* The property shm-link sets the link up or down, as set_link does for a netdev. */
static bool qhca_link_get(Object *obj, Error **errp)
{
    return !QHCA(obj)->link.down;
}

static void qhca_link_set(Object *obj, bool on, Error **errp)
{
    QhcaState *s = QHCA(obj);

    if (!qhca_enter(s)) {
        s->link.down = !on;         /* it is not realized */
        return;
    }
    s->link.down = !on;
    if (s->link.path && s->link.peer) {
        trace_qhca_link(s, on);
        qhca_set_link(s->hca, on, qhca_now(s));
        qhca_slice(s, s->inline_budget);
    }
    qhca_leave(s);
}

void qhca_link_class_init(ObjectClass *klass)
{
    object_class_property_add_bool(klass, "shm-link", qhca_link_get,
                                   qhca_link_set);
    object_class_property_set_description(klass, "shm-link",
        "whether the link of the property shm is up when it has a peer");
}

static void qhca_link_close_waits(QhcaState *s)
{
    if (s->link.nap_fd >= 0) {
        close(s->link.nap_fd);
    }
    if (s->link.epoll_fd >= 0) {
        close(s->link.epoll_fd);
    }
}

/* What the device's thread waits for, apart from its peer.  false: errno is set. */
static bool qhca_link_open_waits(QhcaState *s)
{
    int err;

    event_notifier_cleanup(&s->link.call);      /* of an earlier realize */
    if (event_notifier_init(&s->link.call, 0)) {
        return false;
    }
    s->link.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    s->link.nap_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    s->link.nap_ends = 0;
    if (s->link.epoll_fd >= 0 && s->link.nap_fd >= 0 &&
        qhca_link_waits_for(s, event_notifier_get_fd(&s->link.call), EPOLLIN,
                            QHCA_WAIT_CALL) &&
        qhca_link_waits_for(s, s->link.nap_fd, EPOLLIN | EPOLLET,
                            QHCA_WAIT_NAP)) {
        return true;
    }
    err = errno;
    qhca_link_close_waits(s);
    errno = err;
    return false;
}

bool qhca_link_init(QhcaState *s, Error **errp)
{
    s->link.listen_fd = -1;
    if (!s->link.path) {
        return true;
    }
    if (!qhca_link_open_waits(s)) {
        error_setg_errno(errp, errno, "shm=%s: no descriptors for the link",
                         s->link.path);
        return false;
    }
    s->link.timer = timer_new_ms(QEMU_CLOCK_REALTIME, qhca_link_timer, s);
    /* The VM that migrates to this place still has the link elsewhere. */
    if (!runstate_check(RUN_STATE_INMIGRATE) && !qhca_link_open(s, errp)) {
        qhca_link_exit(s);
        qhca_link_free(s);
        return false;
    }
    return true;
}

/* The thread may still run, but the device has no engine any more. */
void qhca_link_exit(QhcaState *s)
{
    if (!s->link.path) {
        return;
    }
    qhca_link_close(s);
    qhca_lock(s);
    qhca_link_leave_peer(s);
    qhca_leave_undone(s);
}

/* The thread has ended. */
void qhca_link_free(QhcaState *s)
{
    if (!s->link.path) {
        return;
    }
    timer_free(s->link.timer);
    s->link.timer = NULL;
    qhca_link_close_waits(s);
    g_clear_pointer(&s->link.warned, g_free);
}

/* Not at unplug: a vCPU without the BQL may be calling the thread that has ended. */
void qhca_link_finalize(QhcaState *s)
{
    event_notifier_cleanup(&s->link.call);
}
