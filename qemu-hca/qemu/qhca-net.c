/*
 * qhca adapter: frames from and to the netdev
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/units.h"
#include "qemu/error-report.h"
#include "qemu/iov.h"
#include "qemu/main-loop.h"
#include "system/runstate.h"
#include "qhca-dev.h"
#include "trace.h"

#define QHCA_STALL_CHECK_MS 100
#define QHCA_RX_MUCH        (48 * KiB)  /* of frames: about one read of a netdev's socket */
#define QHCA_RX_READS       4           /* whose frames cause work together, */
#define QHCA_RX_PACKETS     64          /* if they have no more packets */

/*
 * ------------------------------------------------------------------------
 * Transmit: the engine fills the ring, and the holder of the BQL empties it.
 */
void *qhca_host_tx_reserve(void *host, size_t len)
{
    QhcaState *s = host;
    void *frame;

    if (s->link.path) {
        return qhca_link_reserve(s);
    }
    frame = qhca_ring_reserve(&s->tx, len);
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

    if (s->link.path) {
        qhca_link_commit(s, len);
    } else {
        qhca_ring_commit(&s->tx, len);
    }
}

static void qhca_net_sent(NetClientState *nc, ssize_t ret)
{
    QhcaState *s = qemu_get_nic_opaque(nc);

    qatomic_set(&s->tx_stalled, false);
    timer_del(s->stall_timer);
    trace_qhca_net_resumed(s, true);
    /* Do not send here: the back end may be working on its own queue. */
    qhca_schedule(s);
}

/*
 * The back end keeps a frame that it cannot send at once, and calls
 * qhca_net_sent() when it has sent it.  In two cases it never does: its
 * connection has closed, and it does not write to a new one; or the NIC that
 * would not receive has left the hub.  Nothing reports these cases, so a timer
 * looks for them as long as a frame waits.
 */
static bool qhca_net_peer_gave_up(NetClientState *peer)
{
    return peer->link_down ||
           (peer->info->can_receive && peer->info->can_receive(peer));
}

static void qhca_net_stall_check(void *opaque)
{
    QhcaState *s = opaque;
    NetClientState *peer = s->nic ? qemu_get_queue(s->nic)->peer : NULL;

    if (!s->tx_stalled || !peer) {
        return;
    }
    object_ref(OBJECT(s));
    if (qhca_net_peer_gave_up(peer)) {
        qemu_flush_queued_packets(peer);
    }
    if (s->tx_stalled && s->nic) {
        timer_mod(s->stall_timer, qemu_clock_get_ms(QEMU_CLOCK_REALTIME) +
                  QHCA_STALL_CHECK_MS);
    }
    qhca_put(s);
}

static void qhca_net_stalled(QhcaState *s)
{
    s->stats.send_stalls++;
    trace_qhca_net_stalled(s, true);
    timer_mod(s->stall_timer, qemu_clock_get_ms(QEMU_CLOCK_REALTIME) +
              QHCA_STALL_CHECK_MS);
}

/*
 * Hand frames to the netdev.  A peer in this QEMU may answer within the call.
 * So the device's own receive function may run, and the device may be reset or
 * even unplugged.
 */
void qhca_net_flush(QhcaState *s)
{
    unsigned int sent = 0;
    struct iovec iov;

    if (s->link.path) {
        return;
    }
    while (s->nic && !s->tx_stalled && runstate_is_running() &&
           sent < QHCA_FLUSH_FRAMES &&
           (iov.iov_base = qhca_ring_peek(&s->tx, &iov.iov_len))) {
        ssize_t ret;

        /* This is set first, because the callback may precede the return. */
        qatomic_set(&s->tx_stalled, true);
        qhca_mark(s, QHCA_MARK_FLUSH, iov.iov_len, 0);
        ret = qemu_sendv_packet_async(qemu_get_queue(s->nic), &iov, 1,
                                      qhca_net_sent);
        if (ret) {
            qatomic_set(&s->tx_stalled, false);
        } else if (s->tx_stalled && s->nic) {
            qhca_net_stalled(s);
        }
        qhca_ring_pop(&s->tx);
        sent++;
    }
    s->stats.frames_sent += sent;
    if (s->nic && !s->tx_stalled && !qhca_ring_empty(&s->tx) &&
        runstate_is_running()) {
        qhca_schedule(s);               /* others want the BQL, too */
    }
    smp_mb();           /* pairs with qhca_host_tx_reserve() */
    if (qatomic_read(&s->tx_starved) && qhca_ring_half_free(&s->tx)) {
        qhca_kick(s);
    }
}

/*
 * ------------------------------------------------------------------------
 * Receive: if the engine is free it takes the frame at once, after those that
 * were deferred.  A bottom half does the work that follows from it.
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
    qhca_mark(s, QHCA_MARK_GOT, len, 0);
    /*
     * QEMU delivers what has waited for the VM to run before it tells the device that
     * the VM runs.  The engine is frozen until then, and would lose the frame.
     */
    direct = qatomic_read(&s->running) && qhca_ring_empty(&s->rx) &&
             qhca_enter_soon(s);
    if (direct) {
        s->reads.packets -= qhca_query_bundles(s->hca).packets_received;
        qhca_rx_frame(s->hca, frame, len, qhca_now(s));
        s->reads.packets += qhca_query_bundles(s->hca).packets_received;
        qhca_mark(s, QHCA_MARK_PLACED, 0, 0);
    } else if (!qhca_net_put_off(s, frame, MIN(len, qhca_max_frame(s->hca) + 1))) {
        /* Of a frame that is too long, enough waits for the engine to drop and count it. */
        s->rx_stalled = true;
        s->stats.receive_stalls++;
        trace_qhca_net_stalled(s, false);
        qhca_kick(s);
        return 0;
    }
    s->stats.frames_received++;
    if (direct) {
        s->reads.octets += len;
        qhca_leave_undone(s);
    }
    if (!s->reads.scheduled) {
        s->reads.scheduled = true;      /* this costs a system call */
        qemu_bh_schedule(s->reads.bh);
    }
    return len;
}

/*
 * Two devices with the same MAC address reach each other only with broadcasts,
 * since each loops back what it sends to the other.  Only a counter shows that,
 * so the device logs it once.
 */
static void qhca_net_warn_own_mac(const uint8_t *mac)
{
    g_autofree char *text = g_strdup_printf("%02x:%02x:%02x:%02x:%02x:%02x",
                                            MAC_ARG(mac));

    warn_report("qhca: a frame came from the network with the device's own MAC "
                "address, %s, as its source: another device has this address, "
                "and RDMA between the two fails (give each its own by the "
                "property mac), or the network returns frames to their sender",
                text);
}

void qhca_net_check_own_mac(QhcaState *s)
{
    struct qhca_port_info port;

    if (!s->own_mac_warned && qhca_counter(s->hca, 0, QHCA_CNT_rx_own_mac)) {
        s->own_mac_warned = true;
        qhca_query_port(s->hca, 0, &port);
        qhca_net_warn_own_mac(port.mac);
    }
}

/*
 * Is the netdev likely to have more frames?  QEMU's netdevs read up to 68 KiB from a socket at a
 * time.  If one has read about as much, it reads again in the next round of the main loop, and
 * that round follows at once, because a bottom half is scheduled.
 *
 * The work is not put off when an interrupt is to be delivered.  Nor is it when frames have been
 * deferred, since the thread may not have been told of them.  Nor is it when the next read, if it
 * brings as many packets as the last one, would let a peer wait for the acknowledgement of more
 * than a quarter of what it may send without one.
 */
static bool qhca_net_expects_more(QhcaState *s)
{
    QhcaReads *reads = &s->reads;
    bool much;

    reads->waiting += reads->packets;
    much = reads->octets >= QHCA_RX_MUCH && reads->waiting + reads->packets <= QHCA_RX_PACKETS;
    reads->packets = 0;
    reads->octets = 0;
    reads->num++;
    if (much && reads->num < QHCA_RX_READS && qhca_ring_empty(&s->rx) &&
        !qatomic_read(&s->irq_functions) && !icount_enabled()) {
        return true;
    }
    reads->num = 0;
    reads->waiting = 0;
    return false;
}

/*
 * Do the work that a batch of frames has caused, once for all of them: a netdev
 * hands over many frames from one read of its socket, or from a few reads in a stream, and
 * one acknowledgement may be enough for them.
 */
static void qhca_net_received(void *opaque)
{
    QhcaState *s = opaque;

    if (qhca_net_expects_more(s)) {
        qemu_bh_schedule(s->reads.bh);
        return;
    }
    s->reads.scheduled = false;
    if (!qhca_enter_soon(s)) {
        qhca_kick(s);
        return;
    }
    qhca_net_check_own_mac(s);
    qhca_slice(s, s->inline_budget);
    qhca_leave(s);
}

void qhca_net_receive_pending(QhcaState *s, unsigned int frames)
{
    uint64_t now = qhca_now(s);
    uint8_t *frame;
    size_t len;

    while (frames-- && (frame = qhca_ring_peek(&s->rx, &len))) {
        qhca_rx_frame(s->hca, frame, len, now);
        qhca_mark(s, QHCA_MARK_PLACED, 0, 0);
        qhca_ring_pop(&s->rx);
        s->stats.frames_deferred++;
    }
}

static void qhca_net_link_changed(NetClientState *nc)
{
    QhcaState *s = qemu_get_nic_opaque(nc);
    bool up = !nc->link_down;

    trace_qhca_link(s, up);
    if (s->nic && s->nic->peer_deleted) {
        qemu_purge_queued_packets(nc);      /* nobody else calls back */
    }
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
    .announce = qhca_announce,
    .cleanup = qhca_net_cleanup,
};

void qhca_net_init(QhcaState *s)
{
    DeviceState *dev = DEVICE(s);

    s->reads = (QhcaReads) { 0 };
    s->stall_timer = timer_new_ms(QEMU_CLOCK_REALTIME, qhca_net_stall_check, s);
    s->reads.bh = qemu_bh_new_guarded(qhca_net_received, s,
                                      &dev->mem_reentrancy_guard);
    s->nic = qemu_new_nic(&qhca_net_info, &s->conf,
                          object_get_typename(OBJECT(s)), dev->id,
                          &dev->mem_reentrancy_guard, s);
    qemu_format_nic_info_str(qemu_get_queue(s->nic), s->conf.macaddr.a);
    qhca_net_link_changed(qemu_get_queue(s->nic));
}

void qhca_net_exit(QhcaState *s)
{
    /* The back end must not keep a frame of a sender that is gone. */
    qemu_purge_queued_packets(qemu_get_queue(s->nic));
    qemu_del_nic(s->nic);
    s->nic = NULL;
    qemu_bh_delete(s->reads.bh);
    s->reads.bh = NULL;
    timer_free(s->stall_timer);
    s->stall_timer = NULL;
}
