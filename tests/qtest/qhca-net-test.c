/*
 * QTest testcase for the qhca RDMA adapter: its network back end, and calls
 * that come back to it
 *
 * The other end of the link is this program, or another NIC of the same VM.
 * It takes no frames, goes away and comes back; and what it does when it gets
 * a frame reaches the device again, in the middle of its own call.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qhca-qtest.h"
#include "hw/net/e1000_regs.h"
#include "libqos/virtio-pci.h"
#include "standard-headers/linux/virtio_ring.h"
#include <poll.h>

#define TX_LOG_DEPTH    6
#define RX_LOG_DEPTH    4
#define TX_DEPTH        (1u << TX_LOG_DEPTH)
#define RX_DEPTH        (1u << RX_LOG_DEPTH)
#define SLOT            2048        /* bytes of a frame's buffer */
#define ETH_VECTOR      2
#define MAC             "52:54:00:0a:0b:0c"
#define ECAM            0xb0000000u

static const uint8_t own_mac[6] = { 0x52, 0x54, 0x00, 0x0a, 0x0b, 0x0c };

/* An Ethernet queue. */
typedef struct Eth {
    uint64_t tx, rx, rxc, record;
    uint64_t tx_buf, rx_buf;
    uint32_t tx_pi, rx_pi, rx_ci;
} Eth;

/*
 * ------------------------------------------------------------------------
 * Ethernet without a driver
 */
static void eth_open(Hca *h, Eth *e)
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
        e->tx_buf = guest_alloc(&h->alloc, TX_DEPTH * SLOT);
        e->rx_buf = guest_alloc(&h->alloc, RX_DEPTH * SLOT);
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

static void eth_bring_up(Hca *h, Eth *e)
{
    hca_bring_up(h);
    eth_open(h, e);
}

/* A frame to everyone, of an experimental EtherType. */
static void eth_header(uint8_t *frame)
{
    memset(frame, 0xff, 6);
    memcpy(frame + 6, own_mac, 6);
    frame[12] = 0x88;
    frame[13] = 0xb5;
}

/* Post @num frames of @len bytes, the last 4 of which are @tag. */
static void eth_send(Hca *h, Eth *e, unsigned int num, uint32_t len,
                     uint32_t tag)
{
    uint8_t frame[SLOT];

    g_assert_cmpuint(len, <=, sizeof(frame));
    memset(frame, 0, sizeof(frame));
    eth_header(frame);
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

static uint32_t eth_sent(Hca *h, Eth *e)
{
    return qtest_readl(h->qts, e->record +
                       offsetof(struct qhca_eth_record, tx_ci));
}

static void eth_wait_sent(Hca *h, Eth *e)
{
    wait_for_word(h, e->record + offsetof(struct qhca_eth_record, tx_ci),
                  e->tx_pi);
}

/* All the buffers there are. */
static void eth_post_receives(Hca *h, Eth *e)
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
static bool eth_received(Hca *h, Eth *e, uint32_t *tag)
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
static uint64_t hca_adapter(Hca *h, const char *name)
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

static void wait_adapter(Hca *h, const char *name, uint64_t least)
{
    gint64 end = g_get_monotonic_time() + ANSWER_S * G_USEC_PER_SEC;

    while (hca_adapter(h, name) < least && g_get_monotonic_time() < end) {
        g_usleep(1000);
    }
    g_assert_cmpuint(hca_adapter(h, name), >=, least);
}

static void hca_wait_counter(Hca *h, enum qhca_counter id, uint64_t value)
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

/* The last four bytes of the next frame; 0 when none comes. */
static uint32_t peer_receive(int fd)
{
    static uint8_t frame[65536];
    uint32_t len;

    if (!peer_read(fd, &len, sizeof(len))) {
        return 0;
    }
    len = be32_to_cpu(len);
    g_assert_cmpuint(len, >=, 14);
    g_assert_cmpuint(len, <=, sizeof(frame));
    if (!peer_read(fd, frame, len)) {
        return 0;
    }
    g_assert_cmphex(lduw_be_p(frame + 12), ==, 0x88b5);
    return ldl_be_p(frame + len - 4);
}

static bool peer_wait_for(int fd, uint32_t tag)
{
    uint32_t got;

    do {
        got = peer_receive(fd);
    } while (got && got != tag);
    return got == tag;
}

static bool peer_send(int fd, const uint8_t *src, uint32_t tag)
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

static Hca *hca_start_with_peer(int *peer, const char *machine)
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
static void eth_fill(Hca *h, Eth *e)
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

/* After a reset the device sends as before, once its peer reads. */
static void test_stalled_reset(void)
{
    Eth e = { };
    int peer;
    Hca *h = hca_start_with_peer(&peer, "q35");

    for (uint32_t tag = 100; tag < 103; tag++) {
        eth_bring_up(h, &e);
        eth_fill(h, &e);
        if (tag == 102) {
            hca_flr(h);
        } else {
            hca_reset(h);
        }
        eth_bring_up(h, &e);
        eth_send(h, &e, 1, 100, tag);
        g_assert_true(peer_wait_for(peer, tag));
        eth_wait_sent(h, &e);
        hca_reset(h);
    }
    hca_stop(h);
    close(peer);
}

/* The back end has kept a frame, and can send it when its sender is no more. */
static void test_stalled_unplug(void)
{
    struct pollfd poll_fd = { .events = POLLIN };
    uint8_t raw[4096];
    Eth e = { };
    int peer;
    Hca *h = hca_start_with_peer(&peer, "pc");

    eth_bring_up(h, &e);
    eth_fill(h, &e);
    qtest_qmp_device_del_send(h->qts, "h0");
    qtest_outl(h->qts, 0xae08, 1 << 4);     /* ACPI eject of slot 4 */
    wait_deleted(h);
    g_free(h->dev);
    poll_fd.fd = peer;
    while (poll(&poll_fd, 1, 100) == 1) {
        g_assert_cmpint(read(peer, raw, sizeof(raw)), >, 0);
    }
    qtest_qmp_device_add(h->qts, "qhca", "h0", "{ 'addr': '04', 'netdev': "
                         "'n0', 'mac': '" MAC "' }");
    hca_map(h);
    eth_bring_up(h, &e);
    eth_send(h, &e, 8, 100, 1);
    eth_wait_sent(h, &e);
    hca_stop(h);
    close(peer);
}

/* Nobody takes frames any more: they are lost, the device goes on. */
static void test_stalled_netdev_del(void)
{
    Eth e = { };
    int peer;
    Hca *h = hca_start_with_peer(&peer, "q35");

    eth_bring_up(h, &e);
    eth_fill(h, &e);
    qtest_qmp_assert_success(h->qts, "{ 'execute': 'netdev_del', 'arguments': "
                             "{ 'id': 'n0' } }");
    g_assert_cmphex(hca_read(h, QHCA_REG_LINK) & QHCA_LINK_UP, ==, 0);
    eth_wait_sent(h, &e);
    hca_reset(h);
    eth_bring_up(h, &e);
    eth_send(h, &e, 8, 100, 1);
    eth_wait_sent(h, &e);
    hca_stop(h);
    close(peer);
}

/*
 * ------------------------------------------------------------------------
 * A peer that comes and goes
 */
typedef struct Server {
    char *folder, *path;
    int listener;
} Server;

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

static int server_accept(Server *server)
{
    struct pollfd poll_fd = { .fd = server->listener, .events = POLLIN };
    int fd;

    g_assert_cmpint(poll(&poll_fd, 1, ANSWER_S * 1000), ==, 1);
    fd = accept(server->listener, NULL, NULL);
    g_assert_cmpint(fd, >=, 0);
    return fd;
}

static void server_close(Server *server)
{
    close(server->listener);
    unlink(server->path);
    rmdir(server->folder);
    g_free(server->path);
    g_free(server->folder);
}

static Hca *hca_start_with_server(Server *server, const char *machine)
{
    g_autofree char *options = NULL;
    Hca *h;

    server_open(server);
    options = g_strdup_printf("-netdev stream,id=n0,addr.type=unix,"
                              "addr.path=%s,reconnect-ms=1 "
                              "-device qhca,id=h0,netdev=n0,addr=04.0,"
                              "tx-ring-size=32768,mac=" MAC, server->path);
    h = hca_new(machine, options);
    hca_map(h);
    return h;
}

/*
 * Send frames with @tag until one arrives: what is sent before both ends know
 * that they are connected is lost.  Each that arrives is whole.
 */
static void eth_reach_peer(Hca *h, Eth *e, int fd, uint32_t tag)
{
    gint64 end = g_get_monotonic_time() + ANSWER_S * G_USEC_PER_SEC;
    struct pollfd poll_fd = { .fd = fd, .events = POLLIN };

    do {
        g_assert_cmpint(g_get_monotonic_time(), <, end);
        if (e->tx_pi - eth_sent(h, e) < TX_DEPTH) {
            eth_send(h, e, 1, 1000, tag);
        }
    } while (poll(&poll_fd, 1, 10) == 0);
    g_assert_true(peer_wait_for(fd, tag));
    eth_wait_sent(h, e);
}

/* The peer goes away while frames wait for it, and comes back. */
static void test_peer_back(void)
{
    Server server;
    Hca *h = hca_start_with_server(&server, "q35");
    int peer = server_accept(&server);
    Eth e = { };

    eth_bring_up(h, &e);
    eth_reach_peer(h, &e, peer, 99);
    for (uint32_t tag = 100; tag < 104; tag++) {
        eth_fill(h, &e);
        close(peer);
        qtest_qmp_eventwait(h->qts, "NETDEV_STREAM_DISCONNECTED");
        peer = server_accept(&server);
        if (tag & 1) {
            hca_reset(h);
            eth_bring_up(h, &e);
        }
        eth_reach_peer(h, &e, peer, tag);
    }
    hca_stop(h);
    close(peer);
    server_close(&server);
}

/* The one NIC on the hub that refused our frames is unplugged. */
static void test_hub_member_gone(void)
{
    Hca *h = hca_new("pc", "-netdev hubport,id=n0,hubid=0 "
                     "-netdev hubport,id=n1,hubid=0 "
                     "-device qhca,id=h0,netdev=n0,addr=04.0,"
                     "tx-ring-size=32768,mac=" MAC " "
                     "-device e1000,id=h1,netdev=n1,addr=05.0,romfile=");
    Eth e = { };

    hca_map(h);
    eth_bring_up(h, &e);
    eth_fill(h, &e);        /* nobody has enabled that NIC's receiver */
    qtest_qmp_device_del_send(h->qts, "h1");
    qtest_outl(h->qts, 0xae08, 1 << 5);     /* ACPI eject of slot 5 */
    wait_deleted(h);
    eth_wait_sent(h, &e);
    hca_stop(h);
}

/*
 * ------------------------------------------------------------------------
 * Calls that come back
 */

/* Another NIC on the same hub: a frame it receives is an MSI where we like. */
typedef struct Nic {
    QPCIDevice *dev;
    QPCIBar regs;
    uint64_t ring, buf;
} Nic;

static void nic_open(Hca *h, Nic *nic, int devfn)
{
    nic->dev = qpci_device_find(h->bus, devfn);
    g_assert_nonnull(nic->dev);
    qpci_device_enable(nic->dev);
    nic->regs = qpci_iomap(nic->dev, 0, NULL);
    nic->ring = hca_page(h);
    nic->buf = hca_page(h);
    qpci_io_writel(nic->dev, nic->regs, E1000_CTRL,
                   E1000_CTRL_RST | E1000_CTRL_SLU);
    qpci_io_writel(nic->dev, nic->regs, E1000_RDBAL, nic->ring);
    qpci_io_writel(nic->dev, nic->regs, E1000_RDBAH, nic->ring >> 32);
    qpci_io_writel(nic->dev, nic->regs, E1000_RDLEN, 4096);
    qpci_io_writel(nic->dev, nic->regs, E1000_RFCTL, E1000_RFCTL_EXTEN);
}

/* All its descriptors are its own again, with one buffer for all. */
static void nic_refill(Hca *h, Nic *nic)
{
    uint64_t ring[512];

    for (int i = 0; i < ARRAY_SIZE(ring); i++) {
        ring[i] = i & 1 ? 0 : cpu_to_le64(nic->buf);
    }
    qpci_io_writel(nic->dev, nic->regs, E1000_RCTL, 0);
    qtest_memwrite(h->qts, nic->ring, ring, sizeof(ring));
    qpci_io_writel(nic->dev, nic->regs, E1000_RDH, 0);
    qpci_io_writel(nic->dev, nic->regs, E1000_RDT, 255);
    qpci_io_writel(nic->dev, nic->regs, E1000_RCTL,
                   E1000_RCTL_EN | E1000_RCTL_UPE | E1000_RCTL_MPE |
                   E1000_RCTL_BAM);
}

static void nic_target(Nic *nic, uint64_t addr, uint16_t data)
{
    uint8_t msi = qpci_find_capability(nic->dev, PCI_CAP_ID_MSI, 0);

    g_assert_cmphex(msi, !=, 0);
    qpci_config_writel(nic->dev, msi + PCI_MSI_ADDRESS_LO, addr);
    qpci_config_writel(nic->dev, msi + PCI_MSI_ADDRESS_HI, addr >> 32);
    qpci_config_writew(nic->dev, msi + PCI_MSI_DATA_64, data);
    qpci_config_writew(nic->dev, msi + PCI_MSI_FLAGS, PCI_MSI_FLAGS_ENABLE);
    qpci_io_readl(nic->dev, nic->regs, E1000_ICR);
    qpci_io_writel(nic->dev, nic->regs, E1000_ICR, UINT32_MAX);
    qpci_io_writel(nic->dev, nic->regs, E1000_IMS, UINT32_MAX);
}

/*
 * Both devices, and a frame ring of ours that has been used all over: whatever
 * is read where no frame is looks like one.
 */
static Hca *hca_start_with_nic(Nic *nic, Eth *e)
{
    Hca *h = hca_new("q35", "-netdev hubport,id=n0,hubid=0 "
                     "-netdev hubport,id=n1,hubid=0 "
                     "-device qhca,id=h0,netdev=n0,addr=04.0,"
                     "tx-ring-size=32768,mac=" MAC " "
                     "-device e1000e,netdev=n1,addr=05.0,romfile=");

    hca_map(h);
    eth_bring_up(h, e);
    nic_open(h, nic, QPCI_DEVFN(5, 0));
    for (int i = 0; i < 2 * 32768 / 128 / TX_DEPTH; i++) {
        nic_refill(h, nic);
        eth_send(h, e, TX_DEPTH, 100, 1);
        wait_adapter(h, "frames_sent", e->tx_pi);
    }
    nic_refill(h, nic);
    eth_wait_sent(h, e);
    return h;
}

static void nic_close(Nic *nic)
{
    g_free(nic->dev);
}

static void enable_ecam(Hca *h)
{
    QPCIDevice *dev = qpci_device_find(h->bus, QPCI_DEVFN(0, 0));

    qpci_config_writel(dev, 0x64, 0);
    qpci_config_writel(dev, 0x60, ECAM | 1);
    g_free(dev);
}

static void assert_sent_at_most(Hca *h, uint64_t most)
{
    for (int i = 0; i < 20; i++) {
        g_assert_cmpuint(hca_adapter(h, "frames_sent"), <=, most);
    }
}

/* Its interrupt resets us between two of our frames, and is refused. */
static void test_reset_in_flush(void)
{
    Nic nic;
    Eth e = { };
    Hca *h = hca_start_with_nic(&nic, &e);
    uint64_t sent = e.tx_pi;

    nic_target(&nic, h->regs.addr + QHCA_REG_CONTROL, QHCA_CONTROL_RESET);
    eth_send(h, &e, 8, 100, 1);
    assert_sent_at_most(h, sent + 8);
    eth_wait_sent(h, &e);
    g_assert_cmphex(hca_status(h), ==,
                    QHCA_STATUS_READY | QHCA_STATUS_ENABLED);
    g_assert_cmpuint(hca_adapter(h, "mmio_refused"), ==, 1);
    eth_send(h, &e, 8, 100, 1);
    eth_wait_sent(h, &e);
    assert_sent_at_most(h, sent + 16);
    nic_close(&nic);
    hca_stop(h);
}

/* The same by configuration space: this reset happens, and discards frames. */
static void test_flr_in_flush(void)
{
    Nic nic;
    Eth e = { };
    Hca *h = hca_start_with_nic(&nic, &e);
    uint8_t cap = qpci_find_capability(h->dev, PCI_CAP_ID_EXP, 0);
    uint64_t sent = e.tx_pi;

    enable_ecam(h);
    nic_target(&nic, ECAM + (QPCI_DEVFN(4, 0) << 12) + cap + PCI_EXP_DEVCTL,
               PCI_EXP_DEVCTL_BCR_FLR);
    eth_send(h, &e, 8, 100, 1);
    assert_sent_at_most(h, sent + 8);
    g_assert_cmphex(qpci_config_readw(h->dev, PCI_COMMAND) &
                    PCI_COMMAND_MASTER, ==, 0);
    g_free(h->dev);
    hca_map(h);
    g_assert_cmphex(hca_status(h), ==, QHCA_STATUS_READY);
    eth_bring_up(h, &e);
    eth_send(h, &e, 8, 100, 1);
    eth_wait_sent(h, &e);
    assert_sent_at_most(h, sent + 16);
    nic_close(&nic);
    hca_stop(h);
}

/* Its interrupt rings our doorbells: it is deferred, and not lost. */
static void test_doorbell_in_flush(void)
{
    Nic nic;
    Eth e = { };
    Hca *h = hca_start_with_nic(&nic, &e);
    uint64_t ignored = hca_counter(h, QHCA_CNT_doorbells_ignored);
    uint64_t sent = e.tx_pi;

    nic_target(&nic, h->doorbells.addr, 1);
    eth_send(h, &e, 8, 100, 1);
    eth_wait_sent(h, &e);
    wait_adapter(h, "doorbells_deferred", 1);
    hca_wait_counter(h, QHCA_CNT_doorbells_ignored, ignored + 1);
    assert_sent_at_most(h, sent + 8);
    nic_close(&nic);
    hca_stop(h);
}

/* A vector of the device's own, aimed at the device. */
static void test_own_vector(void)
{
    Hca *h = hca_start();
    uint64_t ignored;

    hca_enable_msix(h);
    msix_target(h, 1, h->regs.addr + QHCA_REG_CONTROL, QHCA_CONTROL_RESET);
    hca_bring_up(h);
    nop_with_event(h, 1);
    hca_ring(h, 0, QHCA_DB_EQ_ARM, QHCA_EQN_ASYNC);     /* raised at once */
    g_assert_cmphex(hca_status(h), ==,
                    QHCA_STATUS_READY | QHCA_STATUS_ENABLED);
    g_assert_cmpuint(hca_adapter(h, "mmio_refused"), ==, 1);

    ignored = hca_counter(h, QHCA_CNT_doorbells_ignored);
    msix_target(h, 1, h->doorbells.addr, 1);
    hca_ring(h, 0, QHCA_DB_EQ_ARM, QHCA_EQN_ASYNC);
    wait_adapter(h, "doorbells_deferred", 1);
    hca_wait_counter(h, QHCA_CNT_doorbells_ignored, ignored + 1);
    hca_assert_alive(h);
    hca_stop(h);
}

/*
 * A vIOMMU reports the fault of our DMA into a buffer that is our own BAR, or
 * configuration space: it finds the engine on the stack, with its lock held.
 */
#define VIOMMU_BYPASS       36      /* in struct virtio_iommu_config */
#define VIOMMU_EVENT_QUEUE  1
#define VIOMMU_FAULT_ADDR   16      /* in struct virtio_iommu_fault */
#define VIOMMU_FAULT_SIZE   24

typedef struct Viommu {
    QVirtioPCIDevice *dev;
    QVirtQueue *events;
    uint64_t buf;
} Viommu;

static void viommu_open(Hca *h, Viommu *v)
{
    QPCIAddress addr = { .devfn = QPCI_DEVFN(6, 0) };
    QVirtioDevice *vdev;

    v->dev = virtio_pci_new(h->bus, &addr);
    g_assert_nonnull(v->dev);
    vdev = &v->dev->vdev;
    qvirtio_pci_device_enable(v->dev);
    qvirtio_start_device(vdev);
    qvirtio_set_features(vdev, qvirtio_get_features(vdev) &
                         ~(1ull << VIRTIO_RING_F_INDIRECT_DESC |
                           1ull << VIRTIO_RING_F_EVENT_IDX));
    v->events = qvirtqueue_setup(vdev, &h->alloc, VIOMMU_EVENT_QUEUE);
    qvirtio_set_driver_ok(vdev);
    v->buf = hca_page(h);
}

static void viommu_bypass(Viommu *v, bool on)
{
    qpci_io_writeb(v->dev->pdev, v->dev->bar,
                   v->dev->device_cfg_offset + VIOMMU_BYPASS, on);
}

/* Of the next report the first word, or the address from there on, is @addr's. */
static void viommu_aim(Hca *h, Viommu *v, uint64_t addr, bool fault_addr)
{
    uint32_t len = fault_addr ? VIOMMU_FAULT_ADDR : 4;
    uint64_t first = fault_addr ? v->buf : addr;
    uint64_t rest = fault_addr ? addr : v->buf;
    uint32_t head;

    head = qvirtqueue_add(h->qts, v->events, first, len, true, true);
    qvirtqueue_add(h->qts, v->events, rest, VIOMMU_FAULT_SIZE - len, true,
                   false);
    qvirtqueue_kick(h->qts, &v->dev->vdev, v->events, head);
}

static uint16_t viommu_reports(Hca *h, Viommu *v)
{
    return qtest_readw(h->qts, v->events->used + 2);
}

static void test_iommu_fault(void)
{
    Hca *h = hca_new("q35", "-device virtio-iommu-pci,addr=06.0 "
                     "-netdev hubport,id=n0,hubid=0 "
                     "-device qhca,id=h0,netdev=n0,addr=04.0,mac=" MAC);
    uint64_t config = ECAM + (QPCI_DEVFN(4, 0) << 12);
    uint64_t flr;
    Viommu v;
    Eth e = { };

    hca_map(h);
    flr = config + qpci_find_capability(h->dev, PCI_CAP_ID_EXP, 0) +
          PCI_EXP_DEVCTL;
    enable_ecam(h);
    viommu_open(h, &v);
    eth_bring_up(h, &e);
    hca_reset(h);
    /* The address that faults is a request for a function-level reset, too. */
    while (!(e.tx & PCI_EXP_DEVCTL_BCR_FLR)) {
        e.tx = hca_page(h);
    }
    const struct {
        uint64_t addr;
        bool fault_addr;
    } target[] = {
        { h->regs.addr + QHCA_REG_CONTROL },
        { h->regs.addr + QHCA_REG_CMDQ_DOORBELL },
        { h->doorbells.addr },
        { h->doorbells.addr, true },
        { flr, true },
        { config + PCI_COMMAND },       /* no bus master, no BARs */
    };

    for (int i = 0; i < ARRAY_SIZE(target); i++) {
        eth_bring_up(h, &e);
        viommu_aim(h, &v, target[i].addr, target[i].fault_addr);
        g_assert_cmpuint(viommu_reports(h, &v), ==, i);
        viommu_bypass(&v, false);
        eth_send(h, &e, 4, 100, 1);     /* descriptors that cannot be read */
        g_assert_cmpuint(viommu_reports(h, &v), ==, i + 1);
        viommu_bypass(&v, true);
        g_free(h->dev);
        hca_map(h);
        hca_reset(h);
    }
    eth_bring_up(h, &e);
    eth_send(h, &e, 8, 100, 1);
    eth_wait_sent(h, &e);
    g_assert_cmpuint(hca_adapter(h, "mmio_refused"), >=, 1);
    qvirtqueue_cleanup(v.dev->vdev.bus, v.events, &h->alloc);
    qvirtio_pci_destructor(&v.dev->obj);
    g_free(v.dev);
    hca_stop(h);
}

/*
 * ------------------------------------------------------------------------
 * Traffic, and everything that ends it, in an order that a seed gives
 */
typedef struct Chaos {
    Hca *h;
    Eth e;
    Server server;
    int peer;               /* or -1 */
    bool express;           /* FLR; the other machine has hot-plug */
    bool up, link_down;
    GRand *rand;
} Chaos;

/* Whatever state the function is in, the start of a driver. */
static void chaos_start(Chaos *c)
{
    g_free(c->h->dev);
    hca_map(c->h);
    hca_reset(c->h);
    eth_bring_up(c->h, &c->e);
    eth_post_receives(c->h, &c->e);
    c->up = true;
}

static void chaos_send(Chaos *c)
{
    uint32_t num = g_rand_int_range(c->rand, 1, 33);
    uint32_t len = g_rand_int_range(c->rand, 18, 1515);

    if (c->up && c->e.tx_pi - eth_sent(c->h, &c->e) + num <= TX_DEPTH) {
        eth_send(c->h, &c->e, num, len, 1);
    }
}

/* The peer reads a little, or all there is; and sends something. */
static void chaos_peer(Chaos *c)
{
    static const uint8_t other[6] = { 0x52, 0x54, 0x00, 0x0a, 0x0b, 0x0d };
    uint8_t raw[4096];
    int reads = g_rand_int_range(c->rand, 0, 64);

    if (c->peer < 0) {
        return;
    }
    while (reads-- && recv(c->peer, raw, sizeof(raw), MSG_DONTWAIT) > 0) {
        /* what it is does not matter here */
    }
    for (int i = g_rand_int_range(c->rand, 0, 20); i; i--) {
        if (!peer_send(c->peer, other, 7)) {
            break;          /* QEMU has not read the last ones yet */
        }
    }
}

static void chaos_peer_leaves(Chaos *c)
{
    if (c->peer >= 0) {
        close(c->peer);
        c->peer = -1;
    }
}

static void chaos_peer_returns(Chaos *c)
{
    if (c->peer < 0) {
        c->peer = server_accept(&c->server);
    }
}

static void chaos_reset(Chaos *c)
{
    hca_write(c->h, QHCA_REG_CONTROL, QHCA_CONTROL_RESET);
    c->up = false;
}

static void chaos_flr(Chaos *c)
{
    if (c->express) {
        hca_flr(c->h);
        c->up = false;
    }
}

static void chaos_bus_master(Chaos *c)
{
    uint16_t command = qpci_config_readw(c->h->dev, PCI_COMMAND);

    qpci_config_writew(c->h->dev, PCI_COMMAND, command & ~PCI_COMMAND_MASTER);
    hca_ring(c->h, 0, QHCA_DB_ETH_TX, (uint64_t)c->e.tx_pi << 32);
    qpci_config_writew(c->h->dev, PCI_COMMAND, command);
    c->up = false;          /* rings may have stopped */
}

static void chaos_destroy(Chaos *c)
{
    if (c->up) {
        hca_cmd(c->h, QHCA_CMD_DESTROY_ETHQ, 0, 0, NULL, 0, NULL, 0);
        eth_open(c->h, &c->e);
        eth_post_receives(c->h, &c->e);
    }
}

static void chaos_link(Chaos *c)
{
    c->link_down = !c->link_down;
    qtest_qmp_assert_success(c->h->qts, "{ 'execute': 'set_link', 'arguments': "
                             "{ 'name': 'h0', 'up': %i } }", !c->link_down);
}

static void chaos_unplug(Chaos *c)
{
    if (c->express) {
        return;
    }
    qtest_qmp_device_del_send(c->h->qts, "h0");
    qtest_outl(c->h->qts, 0xae08, 1 << 4);
    wait_deleted(c->h);
    qtest_qmp_device_add(c->h->qts, "qhca", "h0", "{ 'addr': '04', 'netdev': "
                         "'n0', 'mac': '" MAC "', 'tx-ring-size': 32768 }");
    g_free(c->h->dev);
    hca_map(c->h);
    c->link_down = false;
    c->up = false;
}

static void chaos_stop_vm(Chaos *c)
{
    qtest_qmp_assert_success(c->h->qts, "{ 'execute': 'stop' }");
    chaos_send(c);
    qtest_qmp_assert_success(c->h->qts, "{ 'execute': 'cont' }");
}

static void chaos_run(uint32_t seed, bool express)
{
    static const struct {
        void (*run)(Chaos *c);
        unsigned int weight;
    } actions[] = {
        { chaos_send, 40 }, { chaos_peer, 25 }, { chaos_start, 12 },
        { chaos_peer_leaves, 3 }, { chaos_peer_returns, 6 },
        { chaos_reset, 5 }, { chaos_flr, 5 }, { chaos_bus_master, 3 },
        { chaos_destroy, 4 }, { chaos_link, 4 }, { chaos_unplug, 3 },
        { chaos_stop_vm, 2 },
    };
    Chaos c = { .express = express, .rand = g_rand_new_with_seed(seed) };
    unsigned int sum = 0;

    for (int i = 0; i < ARRAY_SIZE(actions); i++) {
        sum += actions[i].weight;
    }
    g_test_message("seed %u on %s", seed, express ? "q35" : "pc");
    c.h = hca_start_with_server(&c.server, express ? "q35" : "pc");
    c.peer = server_accept(&c.server);
    chaos_start(&c);
    for (int step = 0; step < 150; step++) {
        unsigned int n = g_rand_int_range(c.rand, 0, sum), i = 0;

        while (n >= actions[i].weight) {
            n -= actions[i++].weight;
        }
        actions[i].run(&c);
        g_assert_cmphex(hca_read(c.h, QHCA_REG_MAGIC), ==, QHCA_MAGIC);
    }

    /* When all is as it should be again, frames pass, and whole ones. */
    if (c.link_down) {
        chaos_link(&c);
    }
    /* A frame cut short by an unplug spoils the connection it was sent on. */
    chaos_peer_leaves(&c);
    chaos_start(&c);
    chaos_peer_returns(&c);
    eth_reach_peer(c.h, &c.e, c.peer, 1000 + seed);
    chaos_peer_leaves(&c);
    g_rand_free(c.rand);
    hca_stop(c.h);
    server_close(&c.server);
}

/* QHCA_QTEST_SEEDS=FIRST..LAST; FULL=1 takes many. */
static void test_chaos(const void *express)
{
    const char *seeds = g_getenv("QHCA_QTEST_SEEDS");
    const char *full = g_getenv("FULL");
    unsigned int first = 1, last = full && *full ? 200 : 3;

    if (seeds && sscanf(seeds, "%u..%u", &first, &last) == 1) {
        last = first;
    }
    for (unsigned int seed = first; seed <= last; seed++) {
        chaos_run(seed, express);
    }
}

/*
 * ------------------------------------------------------------------------
 * Addresses
 */
static char *default_mac(const char *options, const char *path)
{
    QTestState *qts = qtest_initf("-machine q35 -nodefaults %s", options);
    QDict *answer = qtest_qmp(qts, "{ 'execute': 'qom-get', 'arguments': { "
                              "'path': %s, 'property': 'mac' } }", path);
    char *mac = g_strdup(qdict_get_str(answer, "return"));

    qobject_unref(answer);
    qtest_quit(qts);
    return mac;
}

static void test_default_mac(void)
{
    static const char h0[] = "/machine/peripheral/h0";
    static const char h1[] = "/machine/peripheral/h1";
    const char *uuid = "-uuid 8a7c7c64-2f0b-4a3e-9b3c-1f0d5c1f7a11 "
                       "-device qhca,id=h0 -device qhca,id=h1";
    g_autofree char *a = default_mac("-device qhca,id=h0", h0);
    g_autofree char *b = default_mac("-device qhca,id=h0", h0);
    g_autofree char *c = default_mac(uuid, h0);
    g_autofree char *d = default_mac(uuid, h0);
    g_autofree char *other = default_mac(uuid, h1);
    g_autofree char *given = default_mac("-device qhca,id=h0,mac=" MAC, h0);

    /* Two processes, one of them twice, and two devices of one. */
    g_assert_cmpstr(a, !=, b);
    g_assert_true(g_str_has_prefix(a, "52:54:00:"));
    g_assert_cmpstr(c, ==, d);
    g_assert_cmpstr(c, !=, other);
    g_assert_cmpstr(given, ==, MAC);
}

/* A frame of another's with our address: counted. */
static void test_own_mac(void)
{
    static const uint8_t other[6] = { 0x52, 0x54, 0x00, 0x0a, 0x0b, 0x0d };
    uint32_t tag;
    Eth e = { };
    int peer;
    Hca *h = hca_start_with_peer(&peer, "q35");

    eth_bring_up(h, &e);
    eth_post_receives(h, &e);
    g_assert_true(peer_send(peer, other, 1));
    g_assert_true(peer_send(peer, own_mac, 2));
    g_assert_true(peer_send(peer, own_mac, 3));
    for (uint32_t n = 1; n <= 3; n++) {
        gint64 end = g_get_monotonic_time() + ANSWER_S * G_USEC_PER_SEC;

        while (!eth_received(h, &e, &tag)) {
            g_assert_cmpint(g_get_monotonic_time(), <, end);
        }
        g_assert_cmpuint(tag, ==, n);
    }
    g_assert_cmpuint(hca_counter(h, QHCA_CNT_rx_own_mac), ==, 2);
    hca_stop(h);
    close(peer);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);

    qtest_add_func("/qhca-net/stalled-reset", test_stalled_reset);
    qtest_add_func("/qhca-net/stalled-unplug", test_stalled_unplug);
    qtest_add_func("/qhca-net/stalled-netdev-del", test_stalled_netdev_del);
    qtest_add_func("/qhca-net/peer-back", test_peer_back);
    qtest_add_func("/qhca-net/hub-member-gone", test_hub_member_gone);
    qtest_add_func("/qhca-net/reset-in-flush", test_reset_in_flush);
    qtest_add_func("/qhca-net/flr-in-flush", test_flr_in_flush);
    qtest_add_func("/qhca-net/doorbell-in-flush", test_doorbell_in_flush);
    qtest_add_func("/qhca-net/own-vector", test_own_vector);
    qtest_add_func("/qhca-net/iommu-fault", test_iommu_fault);
    qtest_add_data_func("/qhca-net/chaos-express", "express", test_chaos);
    qtest_add_data_func("/qhca-net/chaos-conventional", NULL, test_chaos);
    qtest_add_func("/qhca-net/default-mac", test_default_mac);
    qtest_add_func("/qhca-net/own-mac", test_own_mac);
    return g_test_run();
}
