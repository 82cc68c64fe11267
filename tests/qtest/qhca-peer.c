/*
 * What the qtests of the qhca RDMA adapter's link over shared memory share: the
 * peer, which is this program
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qemu/atomic.h"
#include "qhca-peer.h"
#include <poll.h>

static const uint8_t other_mac[6] = { 0x52, 0x54, 0x00, 0x0a, 0x0b, 0x0d };
struct hca_intro_wish link_wish = { .slots = SLOTS, .room = 9216 };

void link_wait_message(int fd)
{
    struct pollfd poll_fd = { .fd = fd, .events = POLLIN };

    g_assert_cmpint(poll(&poll_fd, 1, ANSWER_S * 1000), ==, 1);
}

static void peer_introduce(Peer *p)
{
    struct hca_intro intro;
    enum hca_intro_result result = hca_intro_begin(&intro, p->fd,
                                                   p->listener >= 0, &link_wish);

    while (result == HCA_INTRO_AGAIN) {
        link_wait_message(p->fd);
        result = hca_intro_step(&intro);
    }
    g_assert_cmpint(result, ==, HCA_INTRO_DONE);
    hca_intro_take(&intro, &p->mem);
}

void peer_connect(Peer *p)
{
    char err[HCA_INTRO_TEXT] = "";

    if (p->listener >= 0) {
        link_wait_message(p->listener);
        p->fd = hca_intro_accept(p->listener);
    } else {
        p->fd = hca_intro_connect(p->path, NULL, err, sizeof(err));
    }
    g_assert_cmpstr(err, ==, "");
    g_assert_cmpint(p->fd, >=, 0);
    peer_introduce(p);
}

void peer_leave(Peer *p)
{
    close(p->fd);
    hca_pair_free(&p->mem);
}

void peer_listen(Peer *p)
{
    char err[HCA_INTRO_TEXT] = "";

    p->listener = hca_intro_listen(p->path, NULL, err, sizeof(err));
    g_assert_cmpstr(err, ==, "");
}

void wait_link(Hca *h, uint32_t up)
{
    gint64 end = g_get_monotonic_time() + ANSWER_S * G_USEC_PER_SEC;

    while ((hca_read(h, QHCA_REG_LINK) & QHCA_LINK_UP) != up) {
        g_assert_cmpint(g_get_monotonic_time(), <, end);
    }
}

Hca *link_new(Peer *p, const char *machine, const char *place,
              bool device_listens)
{
    g_autofree char *options = NULL;

    p->folder = g_dir_make_tmp("qhca-link-XXXXXX", NULL);
    p->path = g_strdup_printf("%s/link", p->folder);
    p->listener = -1;
    options = g_strdup_printf("-device qhca,id=h0,%s,mac=" MAC ","
                              "shm=%s,shm-server=%s,shm-slots=%u", place,
                              p->path, device_listens ? "on" : "off", SLOTS);
    return hca_new(machine, options);
}

Hca *link_start(Peer *p, const char *machine, bool device_listens)
{
    Hca *h = link_new(p, machine, "addr=04.0", device_listens);

    hca_map(h);
    g_assert_cmphex(hca_read(h, QHCA_REG_LINK) & QHCA_LINK_UP, ==, 0);
    if (!device_listens) {
        peer_listen(p);
    }
    peer_connect(p);
    wait_link(h, QHCA_LINK_UP);
    return h;
}

void link_stop(Hca *h, Peer *p)
{
    peer_leave(p);
    if (p->listener >= 0) {
        close(p->listener);
    }
    hca_stop(h);
    unlink(p->path);
    g_assert_cmpint(rmdir(p->folder), ==, 0);
    g_free(p->path);
    g_free(p->folder);
}

void peer_wake(Peer *p)
{
    if (hca_slots_wakes_consumer(&p->mem.tx)) {
        hca_intro_wake(p->fd);
    }
}

struct hca_slot *peer_put(Peer *p, uint32_t tag)
{
    uint8_t *frame = hca_slots_reserve(&p->mem.tx);

    g_assert_nonnull(frame);
    memset(frame, 0, 64);
    memset(frame, 0xff, 6);
    memcpy(frame + 6, other_mac, 6);
    stw_be_p(frame + 12, 0x88b5);
    stl_be_p(frame + 60, tag);
    hca_slots_commit(&p->mem.tx, 64);
    return (struct hca_slot *)frame - 1;
}

void link_send(Peer *p, uint32_t tag)
{
    peer_put(p, tag);
    peer_wake(p);
}

uint32_t peer_take(Peer *p)
{
    const uint8_t *frame;
    uint32_t tag;
    size_t len;

    if (!hca_slots_pending(&p->mem.rx)) {
        return 0;
    }
    g_assert_cmpint(hca_slots_peek(&p->mem.rx, &frame, &len), ==,
                    HCA_SLOTS_FRAME);
    g_assert_cmpuint(len, >=, 14);
    g_assert_cmphex(lduw_be_p(frame + 12), ==, 0x88b5);
    tag = ldl_be_p(frame + len - 4);
    hca_slots_pop(&p->mem.rx);
    if (hca_slots_wakes_producer(&p->mem.rx)) {
        hca_intro_wake(p->fd);
    }
    return tag;
}

void peer_is_woken(Peer *p)
{
    link_wait_message(p->fd);
    g_assert_true(hca_intro_woken(p->fd));
}

uint32_t link_receive(Peer *p)
{
    while (!hca_slots_pending(&p->mem.rx)) {
        hca_slots_sleep(&p->mem.rx);
        if (!hca_slots_pending(&p->mem.rx)) {
            peer_is_woken(p);
        }
        hca_slots_wake(&p->mem.rx);
    }
    return peer_take(p);
}

void guest_receives(Hca *h, Eth *e, uint32_t tag)
{
    gint64 end = g_get_monotonic_time() + ANSWER_S * G_USEC_PER_SEC;
    uint32_t got;

    while (!eth_received(h, e, &got)) {
        g_assert_cmpint(g_get_monotonic_time(), <, end);
    }
    g_assert_cmpuint(got, ==, tag);
}

void both_ways(Hca *h, Eth *e, Peer *p, uint32_t tag)
{
    eth_post_receives(h, e);
    link_send(p, tag);
    guest_receives(h, e, tag);
    hca_slots_sleep(&p->mem.rx);
    eth_send(h, e, 1, 100, tag + 1);
    peer_is_woken(p);
    g_assert_cmpuint(link_receive(p), ==, tag + 1);
    eth_wait_sent(h, e);
}

void takes_frame(Peer *p, uint32_t tag)
{
    gint64 end = g_get_monotonic_time() + ANSWER_S * G_USEC_PER_SEC;
    struct hca_slot *slot;

    while (!qatomic_read(&p->mem.tx.flags->consumer_sleeps)) {
        g_assert_cmpint(g_get_monotonic_time(), <, end);
    }
    slot = peer_put(p, tag);
    peer_wake(p);
    while (qatomic_read(&slot->own_type) & HCA_SLOT_FULL) {
        g_assert_cmpint(g_get_monotonic_time(), <, end);
    }
}
