/*
 * qhca adapter: frames from and to the netdev
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/iov.h"
#include "qemu/main-loop.h"
#include "system/runstate.h"
#include "qhca-dev.h"
#include "trace.h"

/*
 * ------------------------------------------------------------------------
 * Out: the engine fills the ring, whoever has the BQL empties it.
 */
void *qhca_host_tx_reserve(void *host, size_t len)
{
    QhcaState *s = host;
    void *frame = qhca_ring_reserve(&s->tx, len);

    if (unlikely(!frame)) {
        qatomic_set(&s->tx_starved, true);
        smp_mb();       /* pairs with qhca_net_flush() */
        frame = qhca_ring_reserve(&s->tx, len);
        if (frame) {
            qatomic_set(&s->tx_starved, false);
        }
    }
    return frame;
}

void qhca_host_tx_commit(void *host, size_t len)
{
    QhcaState *s = host;

    qhca_ring_commit(&s->tx, len);
}

static void qhca_net_sent(NetClientState *nc, ssize_t ret)
{
    QhcaState *s = qemu_get_nic_opaque(nc);

    qatomic_set(&s->tx_stalled, false);
    trace_qhca_net_resumed(s, true);
    /* Not from here: the back end may be in the middle of its own queue. */
    qemu_bh_schedule(s->bh);
}

/*
 * Hand frames to the netdev.  A peer in this QEMU answers within the call: our
 * own receive function may run, and would come back here.
 */
void qhca_net_flush(QhcaState *s)
{
    unsigned int sent = 0;
    struct iovec iov;

    if (s->flushing || s->tx_stalled || !s->nic || !runstate_is_running()) {
        return;
    }
    s->flushing = true;
    while (!s->tx_stalled && sent < QHCA_FLUSH_FRAMES &&
           (iov.iov_base = qhca_ring_peek(&s->tx, &iov.iov_len))) {
        ssize_t ret;

        /* Set first: the callback may come before the call returns. */
        qatomic_set(&s->tx_stalled, true);
        ret = qemu_sendv_packet_async(qemu_get_queue(s->nic), &iov, 1,
                                      qhca_net_sent);
        if (ret) {
            qatomic_set(&s->tx_stalled, false);
        } else if (s->tx_stalled) {
            s->stats.send_stalls++;
            trace_qhca_net_stalled(s, true);
        }
        qhca_ring_pop(&s->tx, iov.iov_len);
        sent++;
    }
    s->flushing = false;
    s->stats.frames_sent += sent;
    if (!s->tx_stalled && !qhca_ring_empty(&s->tx)) {
        qemu_bh_schedule(s->bh);        /* others want the BQL, too */
    }
    smp_mb();           /* pairs with qhca_host_tx_reserve() */
    if (qatomic_read(&s->tx_starved) && qhca_ring_half_free(&s->tx)) {
        qhca_kick(s);
    }
}

/*
 * ------------------------------------------------------------------------
 * In: taken on the spot when the engine is free, in order with those that
 * were put off.  The work that follows from it is for a bottom half.
 */
static bool qhca_net_can_receive(NetClientState *nc)
{
    QhcaState *s = qemu_get_nic_opaque(nc);

    return !s->rx_stalled;
}

static bool qhca_net_put_off(QhcaState *s, const uint8_t *frame, size_t len)
{
    void *room = qhca_ring_reserve(&s->rx, len);

    if (!room) {
        return false;
    }
    memcpy(room, frame, len);
    qhca_ring_commit(&s->rx, len);
    return true;
}

static ssize_t qhca_net_receive(NetClientState *nc, const uint8_t *frame,
                                size_t len)
{
    QhcaState *s = qemu_get_nic_opaque(nc);
    bool direct;

    if (!s->hca) {
        return len;     /* being unplugged */
    }
    direct = qhca_ring_empty(&s->rx) && qhca_enter_soon(s);
    /* No NIC sees a frame longer than the engine drops; spare the ring it. */
    if (direct) {
        qhca_rx_frame(s->hca, frame, len, qhca_now(s));
    } else if (len <= QHCA_MAX_FRAME && !qhca_net_put_off(s, frame, len)) {
        s->rx_stalled = true;
        s->stats.receive_stalls++;
        trace_qhca_net_stalled(s, false);
        qhca_kick(s);
        return 0;
    }
    s->stats.frames_received++;
    if (direct) {
        qhca_leave_undone(s);
    }
    if (!s->rx_batch) {
        s->rx_batch = true;     /* scheduling costs a system call */
        qemu_bh_schedule(s->rx_bh);
    }
    return len;
}

/*
 * What a batch of frames asks for, once for all of it: a netdev hands over
 * many frames from one read of its socket, and one acknowledgement can do for
 * them.
 */
static void qhca_net_received(void *opaque)
{
    QhcaState *s = opaque;

    s->rx_batch = false;
    if (qhca_enter_soon(s)) {
        qhca_slice(s, s->inline_budget);
        qhca_leave(s);
    } else {
        qhca_kick(s);
    }
}

void qhca_net_receive_pending(QhcaState *s, unsigned int frames)
{
    uint64_t now = qhca_now(s);
    uint8_t *frame;
    size_t len;

    while (frames-- && (frame = qhca_ring_peek(&s->rx, &len))) {
        qhca_rx_frame(s->hca, frame, len, now);
        qhca_ring_pop(&s->rx, len);
        s->stats.frames_deferred++;
    }
}

static void qhca_net_link_changed(NetClientState *nc)
{
    QhcaState *s = qemu_get_nic_opaque(nc);
    bool up = !nc->link_down;

    trace_qhca_link(s, up);
    if (qhca_enter(s)) {
        qhca_set_link(s->hca, up, qhca_now(s));
        qhca_slice(s, s->inline_budget);
        qhca_leave(s);
    }
}

static void qhca_net_cleanup(NetClientState *nc)
{
    QhcaState *s = qemu_get_nic_opaque(nc);

    s->nic = NULL;
}

static NetClientInfo qhca_net_info = {
    .type = NET_CLIENT_DRIVER_NIC,
    .size = sizeof(NICState),
    .can_receive = qhca_net_can_receive,
    .receive = qhca_net_receive,
    .link_status_changed = qhca_net_link_changed,
    .cleanup = qhca_net_cleanup,
};

void qhca_net_init(QhcaState *s)
{
    DeviceState *dev = DEVICE(s);

    s->rx_bh = qemu_bh_new_guarded(qhca_net_received, s,
                                   &dev->mem_reentrancy_guard);
    s->nic = qemu_new_nic(&qhca_net_info, &s->conf,
                          object_get_typename(OBJECT(s)), dev->id,
                          &dev->mem_reentrancy_guard, s);
    qemu_format_nic_info_str(qemu_get_queue(s->nic), s->conf.macaddr.a);
    qhca_net_link_changed(qemu_get_queue(s->nic));
}

void qhca_net_exit(QhcaState *s)
{
    if (s->nic) {
        qemu_del_nic(s->nic);
    }
    s->nic = NULL;
    if (s->rx_bh) {
        qemu_bh_delete(s->rx_bh);
    }
    s->rx_bh = NULL;
}
