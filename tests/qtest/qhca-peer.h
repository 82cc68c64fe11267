/*
 * What the qtests of the qhca RDMA adapter's link over shared memory share: the
 * peer, which is this program
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef TESTS_QTEST_QHCA_PEER_H
#define TESTS_QTEST_QHCA_PEER_H

#include "qhca-eth.h"
#include "hw/rdma/qhca/link/intro.h"

#define SLOTS   16

/* What the peer says of itself when it introduces itself. */
extern struct hca_intro_wish link_wish;

typedef struct Peer {
    char *folder, *path;
    int listener;               /* or -1: the device listens */
    int fd;
    struct hca_pair_memory mem;
} Peer;

/* A device with a link, at this place on a bus, and no peer yet. */
Hca *link_new(Peer *p, const char *machine, const char *place,
              bool device_listens);
/* A device at slot 4, and the peer that is connected to it. */
Hca *link_start(Peer *p, const char *machine, bool device_listens);
void link_stop(Hca *h, Peer *p);
/* Wait until the link is up (QHCA_LINK_UP) or down (0). */
void wait_link(Hca *h, uint32_t up);

void peer_listen(Peer *p);
void peer_connect(Peer *p);
void peer_leave(Peer *p);
/* Wait for a message, or a connection, of the device. */
void link_wait_message(int fd);

/* Wake the device if it waits for frames. */
void peer_wake(Peer *p);
/* Send without a wake-up; returns the slot. */
struct hca_slot *peer_put(Peer *p, uint32_t tag);
void link_send(Peer *p, uint32_t tag);
/* Does the device ask for a wake-up, and take the frame that comes with one? */
void takes_frame(Peer *p, uint32_t tag);

/* The last four bytes of the next frame, or 0: there is none. */
uint32_t peer_take(Peer *p);
/* Sleep until the device sends the wake-up that was asked for. */
void peer_is_woken(Peer *p);
/* The next frame, which is there or wakes the sleeper, as in the device. */
uint32_t link_receive(Peer *p);

/* Wait for the guest's next frame. */
void guest_receives(Hca *h, Eth *e, uint32_t tag);
/* A frame to the guest, and one from it. */
void both_ways(Hca *h, Eth *e, Peer *p, uint32_t tag);

#endif /* TESTS_QTEST_QHCA_PEER_H */
