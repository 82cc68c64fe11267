/*
 * What the qtests of the qhca RDMA adapter's network share
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qhca-eth.h"
#include <poll.h>

const uint8_t own_mac[6] = { 0x52, 0x54, 0x00, 0x0a, 0x0b, 0x0c };

/*
 * ------------------------------------------------------------------------
 * Ethernet without a driver
 */
void eth_open(Hca *h, Eth *e)
{
    struct qhca_ethq_config config;
    struct qhca_port_config port = {
        .fields = cpu_to_le32(QHCA_PORT_SET_RX),
        .rx_flags = cpu_to_le32(QHCA_RX_PROMISC | QHCA_RX_ENABLE),
    };

    if (!e->tx) {
        e->tx = hca_page(h);
        e->rx = hca_page(h);
        e->rxc = hca_page(h);
        e->record = hca_page(h);
        e->tx_buf = guest_alloc(h->alloc, TX_DEPTH * SLOT);
        e->rx_buf = guest_alloc(h->alloc, RX_DEPTH * SLOT);
    }
    qtest_memset(h->qts, e->rxc, 0, RX_DEPTH * sizeof(struct qhca_eth_rxc));
    qtest_memset(h->qts, e->record, 0, sizeof(struct qhca_eth_record));
    e->tx_pi = 0;
    e->rx_pi = 0;
    e->rx_ci = 0;
    config = (struct qhca_ethq_config) {
        .tx_base = cpu_to_le64(e->tx), .rx_base = cpu_to_le64(e->rx),
        .rxc_base = cpu_to_le64(e->rxc), .rec_base = cpu_to_le64(e->record),
        .log_tx = TX_LOG_DEPTH, .log_rx = RX_LOG_DEPTH,
        .vector = cpu_to_le16(ETH_VECTOR),
    };
    g_assert_cmpint(hca_cmd(h, QHCA_CMD_CREATE_ETHQ, 0, 0, &config,
                            sizeof(config), NULL, 0), ==, QHCA_CMD_OK);
    g_assert_cmpint(hca_cmd(h, QHCA_CMD_SET_PORT, 0, 0, &port, sizeof(port),
                            NULL, 0), ==, QHCA_CMD_OK);
}

void eth_bring_up(Hca *h, Eth *e)
{
    hca_bring_up(h);
    eth_open(h, e);
}

/* A frame to everyone, of an experimental EtherType. */
static void eth_header(Hca *h, uint8_t *frame)
{
    memset(frame, 0xff, 6);
    stl_le_p(frame + 6, hca_read(h, QHCA_REG_MAC_LO));
    stw_le_p(frame + 10, hca_read(h, QHCA_REG_MAC_HI));
    frame[12] = 0x88;
    frame[13] = 0xb5;
}

/* Post @num frames of @len bytes, the last 4 of which are @tag. */
void eth_send(Hca *h, Eth *e, unsigned int num, uint32_t len, uint32_t tag)
{
    uint8_t frame[SLOT];

    g_assert_cmpuint(len, <=, sizeof(frame));
    memset(frame, 0, sizeof(frame));
    eth_header(h, frame);
    stl_be_p(frame + len - 4, tag);
    while (num--) {
        uint32_t slot = e->tx_pi++ % TX_DEPTH;
        struct qhca_eth_txd txd = {
            .addr = cpu_to_le64(e->tx_buf + slot * SLOT),
            .len = cpu_to_le32(len), .flags = cpu_to_le16(QHCA_TXD_EOP),
        };

        qtest_memwrite(h->qts, e->tx_buf + slot * SLOT, frame, len);
        qtest_memwrite(h->qts, e->tx + slot * sizeof(txd), &txd, sizeof(txd));
    }
    hca_ring(h, 0, QHCA_DB_ETH_TX, (uint64_t)e->tx_pi << 32);
}

uint32_t eth_sent(Hca *h, Eth *e)
{
    return qtest_readl(h->qts, e->record +
                       offsetof(struct qhca_eth_record, tx_ci));
}

void eth_wait_sent(Hca *h, Eth *e)
{
    wait_for_word(h, e->record + offsetof(struct qhca_eth_record, tx_ci),
                  e->tx_pi);
}

/* All the buffers there are. */
void eth_post_receives(Hca *h, Eth *e)
{
    for (; e->rx_pi - e->rx_ci < RX_DEPTH; e->rx_pi++) {
        uint32_t slot = e->rx_pi % RX_DEPTH;
        struct qhca_eth_rxd rxd = {
            .addr = cpu_to_le64(e->rx_buf + slot * SLOT),
            .len = cpu_to_le32(SLOT),
        };

        qtest_memwrite(h->qts, e->rx + slot * sizeof(rxd), &rxd, sizeof(rxd));
    }
    qtest_writel(h->qts, e->record, e->rx_pi);
}

/* The next frame received, if there is one: its last four bytes. */
bool eth_received(Hca *h, Eth *e, uint32_t *tag)
{
    uint32_t slot = e->rx_ci % RX_DEPTH, len;
    struct qhca_eth_rxc rxc;
    uint8_t raw[4];
    bool phase;

    qtest_memread(h->qts, e->rxc + slot * sizeof(rxc), &rxc, sizeof(rxc));
    phase = le32_to_cpu(rxc.flags) & QHCA_RXC_PHASE;
    if (phase == !!(e->rx_ci & RX_DEPTH)) {
        return false;
    }
    len = le32_to_cpu(rxc.len);
    g_assert_cmpuint(len, <=, SLOT);
    slot = le16_to_cpu(rxc.index) % RX_DEPTH;
    qtest_memread(h->qts, e->rx_buf + slot * SLOT + len - 4, raw, 4);
    *tag = ldl_be_p(raw);
    e->rx_ci++;
    return true;
}

/* A number that only the host knows. */
uint64_t hca_adapter(Hca *h, const char *name)
{
    QDict *answer = qtest_qmp(h->qts, "{ 'execute': 'query-qhca', "
                              "'arguments': { 'id': 'h0' } }");
    QDict *info = qobject_to(QDict,
                             qlist_peek(qdict_get_qlist(answer, "return")));
    const QListEntry *entry;
    uint64_t value = UINT64_MAX;

    QLIST_FOREACH_ENTRY(qdict_get_qlist(info, "adapter"), entry) {
        QDict *counter = qobject_to(QDict, qlist_entry_obj(entry));

        if (!strcmp(qdict_get_str(counter, "name"), name)) {
            value = qdict_get_int(counter, "value");
        }
    }
    qobject_unref(answer);
    return value;
}

void wait_adapter(Hca *h, const char *name, uint64_t least)
{
    gint64 end = g_get_monotonic_time() + ANSWER_S * G_USEC_PER_SEC;

    while (hca_adapter(h, name) < least && g_get_monotonic_time() < end) {
        g_usleep(1000);
    }
    g_assert_cmpuint(hca_adapter(h, name), >=, least);
}

void hca_wait_counter(Hca *h, enum qhca_counter id, uint64_t value)
{
    gint64 end = g_get_monotonic_time() + ANSWER_S * G_USEC_PER_SEC;

    while (hca_counter(h, id) < value && g_get_monotonic_time() < end) {
        g_usleep(1000);
    }
    g_assert_cmpuint(hca_counter(h, id), ==, value);
}

/*
 * ------------------------------------------------------------------------
 * The peer, over a stream socket: frames behind their lengths
 */

/* Read @len bytes; false: the connection ends, or nothing comes for a minute. */
static bool peer_read(int fd, void *buf, size_t len)
{
    while (len) {
        struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
        ssize_t got;

        if (poll(&poll_fd, 1, ANSWER_S * 1000) != 1) {
            return false;
        }
        got = read(fd, buf, len);
        if (got <= 0) {
            return false;
        }
        buf = (char *)buf + got;
        len -= got;
    }
    return true;
}

/* Read a frame and its last four bytes, @tag.  false: none comes. */
static bool peer_receive(int fd, uint32_t *tag)
{
    static uint8_t frame[65536];
    uint32_t len;
    uint16_t type;

    if (!peer_read(fd, &len, sizeof(len))) {
        return false;
    }
    len = be32_to_cpu(len);
    g_assert_cmpuint(len, >=, 14);
    g_assert_cmpuint(len, <=, sizeof(frame));
    if (!peer_read(fd, frame, len)) {
        return false;
    }
    type = lduw_be_p(frame + 12);
    *tag = 0;
    if (type != 0x8035) {   /* QEMU announces a guest that has moved, several times. */
        g_assert_cmphex(type, ==, 0x88b5);
        *tag = ldl_be_p(frame + len - 4);
    }
    return true;
}

bool peer_wait_for(int fd, uint32_t tag)
{
    uint32_t got;

    do {
        if (!peer_receive(fd, &got)) {
            return false;
        }
    } while (got != tag);
    return true;
}

bool peer_send(int fd, const uint8_t *src, uint32_t tag)
{
    uint8_t raw[4 + 64] = { };

    stl_be_p(raw, 64);
    memset(raw + 4, 0xff, 6);
    memcpy(raw + 10, src, 6);
    stw_be_p(raw + 16, 0x88b5);
    stl_be_p(raw + 64, tag);
    return send(fd, raw, sizeof(raw), MSG_DONTWAIT | MSG_NOSIGNAL) ==
           sizeof(raw);
}

Hca *hca_start_with_peer(int *peer, const char *machine)
{
    g_autofree char *options = NULL;
    int fds[2];
    Hca *h;

    g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), ==, 0);
    options = g_strdup_printf("-netdev stream,id=n0,addr.type=fd,addr.str=%d "
                              "-device qhca,id=h0,netdev=n0,addr=04.0,"
                              "tx-ring-size=32768,mac=" MAC, fds[1]);
    h = hca_new(machine, options);
    close(fds[1]);
    hca_map(h);
    *peer = fds[0];
    return h;
}

/* Send to a peer that does not read until the engine has no room, either. */
void eth_fill(Hca *h, Eth *e)
{
    gint64 end = g_get_monotonic_time() + ANSWER_S * G_USEC_PER_SEC;
    uint64_t stalls = hca_adapter(h, "send_stalls");

    while (hca_adapter(h, "send_stalls") == stalls) {
        g_assert_cmpint(g_get_monotonic_time(), <, end);
        if (e->tx_pi - eth_sent(h, e) < TX_DEPTH / 2) {
            eth_send(h, e, 8, 1514, 1);
        }
    }
    /* More than the ring between engine and back end has room for. */
    eth_send(h, e, TX_DEPTH / 2, 1514, 1);
    g_assert_cmpuint(eth_sent(h, e), !=, e->tx_pi);
}

/*
 * ------------------------------------------------------------------------
 * A peer that comes and goes
 */
static void server_open(Server *server)
{
    struct sockaddr_un addr = { .sun_family = AF_UNIX };

    server->folder = g_dir_make_tmp("qhca-XXXXXX", NULL);
    server->path = g_build_filename(server->folder, "peer", NULL);
    g_assert_cmpuint(strlen(server->path), <, sizeof(addr.sun_path));
    strcpy(addr.sun_path, server->path);
    server->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    g_assert_cmpint(bind(server->listener, (struct sockaddr *)&addr,
                         sizeof(addr)), ==, 0);
    g_assert_cmpint(listen(server->listener, 1), ==, 0);
}

int server_accept(Server *server)
{
    struct pollfd poll_fd = { .fd = server->listener, .events = POLLIN };
    int fd;

    g_assert_cmpint(poll(&poll_fd, 1, ANSWER_S * 1000), ==, 1);
    /* A QEMU that the test starts must not hold the connection of another. */
    fd = accept4(server->listener, NULL, NULL, SOCK_CLOEXEC);
    g_assert_cmpint(fd, >=, 0);
    return fd;
}

void server_drop(Server *server)
{
    struct pollfd poll_fd = { .fd = server->listener, .events = POLLIN };

    while (poll(&poll_fd, 1, 0) == 1) {
        close(server_accept(server));
    }
}

void server_close(Server *server)
{
    close(server->listener);
    unlink(server->path);
    rmdir(server->folder);
    g_free(server->path);
    g_free(server->folder);
}

char *server_options(const Server *server, const char *properties)
{
    return g_strdup_printf("-netdev stream,id=n0,addr.type=unix,"
                           "addr.path=%s,reconnect-ms=1 "
                           "-device qhca,id=h0,netdev=n0,addr=04.0,"
                           "tx-ring-size=32768,mac=" MAC "%s", server->path,
                           properties);
}

Hca *hca_start_with_server(Server *server, const char *machine,
                           const char *properties)
{
    g_autofree char *options = NULL;
    Hca *h;

    server_open(server);
    options = server_options(server, properties);
    h = hca_new(machine, options);
    hca_map(h);
    return h;
}

/*
 * Send frames with @tag until one arrives: what is sent before both ends know
 * that they are connected is lost.  Each that arrives is whole, and another's
 * may come first: of QEMU, which announces a guest that has moved, or of a VF.
 */
void eth_reach_peer(Hca *h, Eth *e, int fd, uint32_t tag)
{
    gint64 end = g_get_monotonic_time() + ANSWER_S * G_USEC_PER_SEC;
    struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
    bool connected = true;
    uint32_t got = 0;

    do {
        g_assert_cmpint(g_get_monotonic_time(), <, end);
        if (e->tx_pi - eth_sent(h, e) < TX_DEPTH) {
            eth_send(h, e, 1, 1000, tag);
        }
        if (poll(&poll_fd, 1, 10) == 1) {
            connected = peer_receive(fd, &got);
        }
    } while (connected && got != tag);
    /* A connection that ended because QEMU did is reported as QEMU's end. */
    g_assert_cmphex(hca_read(h, QHCA_REG_MAGIC), ==, QHCA_MAGIC);
    g_assert_true(connected);
    eth_wait_sent(h, e);
}
