/*
 * What the qtests of the qhca RDMA adapter's network share: an Ethernet queue
 * without a driver, and a peer at the other end of the link
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef TESTS_QTEST_QHCA_ETH_H
#define TESTS_QTEST_QHCA_ETH_H

#include "qhca-qtest.h"

#define TX_LOG_DEPTH    6
#define RX_LOG_DEPTH    4
#define TX_DEPTH        (1u << TX_LOG_DEPTH)
#define RX_DEPTH        (1u << RX_LOG_DEPTH)
#define SLOT            2048        /* bytes of a frame's buffer */
#define ETH_VECTOR      2
#define MAC             "52:54:00:0a:0b:0c"

extern const uint8_t own_mac[6];    /* MAC */

/* An Ethernet queue. */
typedef struct Eth {
    uint64_t tx, rx, rxc, record;
    uint64_t tx_buf, rx_buf;
    uint32_t tx_pi, rx_pi, rx_ci;
} Eth;

/* The peer's end, which the back end connects to and may lose. */
typedef struct Server {
    char *folder, *path;
    int listener;
} Server;

void eth_open(Hca *h, Eth *e);
void eth_bring_up(Hca *h, Eth *e);
/* Post @num frames of @len bytes, the last 4 of which are @tag. */
void eth_send(Hca *h, Eth *e, unsigned int num, uint32_t len, uint32_t tag);
uint32_t eth_sent(Hca *h, Eth *e);
void eth_wait_sent(Hca *h, Eth *e);
/* Send to a peer that does not read until the engine has no room, either. */
void eth_fill(Hca *h, Eth *e);
/*
 * Send frames with @tag until one arrives: what is sent before both ends know
 * that they are connected is lost.  Each that arrives is whole.
 */
void eth_reach_peer(Hca *h, Eth *e, int fd, uint32_t tag);
/* All the buffers there are. */
void eth_post_receives(Hca *h, Eth *e);
/* The next frame received, if there is one: its last four bytes. */
bool eth_received(Hca *h, Eth *e, uint32_t *tag);

/* A counter of the adapter, which QMP reports. */
uint64_t hca_adapter(Hca *h, const char *name);
void wait_adapter(Hca *h, const char *name, uint64_t least);
void hca_wait_counter(Hca *h, enum qhca_counter id, uint64_t value);

/* A peer over a stream socket */
Hca *hca_start_with_peer(int *peer, const char *machine);
bool peer_wait_for(int fd, uint32_t tag);
bool peer_send(int fd, const uint8_t *src, uint32_t tag);

/* A peer that comes and goes */
Hca *hca_start_with_server(Server *server, const char *machine,
                           const char *properties);
/* Those of netdev and device that hca_start_with_server() takes; to be freed. */
char *server_options(const Server *server, const char *properties);
int server_accept(Server *server);
/* Drop the connections that wait. */
void server_drop(Server *server);
void server_close(Server *server);

#endif /* TESTS_QTEST_QHCA_ETH_H */
