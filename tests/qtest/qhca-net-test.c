/*
 * QTest testcase for the qhca RDMA adapter: its network back end
 *
 * The other end of the link is this program.  It takes no frames, goes away and
 * comes back.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qhca-eth.h"
#include <poll.h>
#include <sys/ioctl.h>

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

/* The back end has kept a frame, and may send it when its sender is gone. */
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

#define SEGMENTS    60
#define MSS         1000
#define HEADERS     54

/* Post @num frames of TCP over IPv4, each of which is to be sent in segments. */
static void send_segmented(Hca *h, Eth *e, unsigned int num)
{
    uint8_t headers[HEADERS] = { [12] = 0x08, [14] = 0x45, [23] = 6,
                                 [46] = 0x50 };

    memset(headers, 0xff, 6);
    qtest_memwrite(h->qts, e->tx_buf, headers, sizeof(headers));
    for (; num; num--, e->tx_pi++) {
        struct qhca_eth_txd txd = {
            .addr = cpu_to_le64(e->tx_buf),
            .len = cpu_to_le32(HEADERS + SEGMENTS * MSS),
            .flags = cpu_to_le16(QHCA_TXD_EOP | QHCA_TXD_TSO | QHCA_TXD_CSUM),
            .csum_start = cpu_to_le16(34), .csum_offset = cpu_to_le16(16),
            .mss = cpu_to_le16(MSS), .hdr_len = cpu_to_le16(HEADERS),
        };

        qtest_memwrite(h->qts, e->tx + e->tx_pi % TX_DEPTH * sizeof(txd),
                       &txd, sizeof(txd));
    }
    hca_ring(h, 0, QHCA_DB_ETH_TX, (uint64_t)e->tx_pi << 32);
}

static void read_bytes(int fd, uint8_t *to, size_t len)
{
    while (len) {
        ssize_t got = read(fd, to, len);

        g_assert_cmpint(got, >, 0);
        to += got;
        len -= got;
    }
}

/* The next frame that is as long as a segment; those of eth_reach_peer() are not. */
static void read_segment(int peer, uint8_t *frame)
{
    uint8_t raw[4];
    uint32_t len;

    do {
        read_bytes(peer, raw, sizeof(raw));
        len = ldl_be_p(raw);
        g_assert_cmpuint(len, <=, HEADERS + MSS);
        read_bytes(peer, frame, len);
    } while (len != HEADERS + MSS);
}

/*
 * The link takes no more in the middle of a frame: its other segments follow when
 * the peer reads, each once and in order.
 */
static void test_stalled_segments(void)
{
    const unsigned int num = TX_DEPTH / 2;
    uint8_t frame[HEADERS + MSS];
    Eth e = { };
    int peer;
    Hca *h = hca_start_with_peer(&peer, "q35");

    eth_bring_up(h, &e);
    eth_reach_peer(h, &e, peer, 1);
    send_segmented(h, &e, num);
    wait_adapter(h, "send_stalls", 1);
    g_assert_cmpuint(eth_sent(h, &e), !=, e.tx_pi);
    for (unsigned int i = 0; i < num * SEGMENTS; i++) {
        read_segment(peer, frame);
        g_assert_cmpuint(ldl_be_p(frame + 38), ==, i % SEGMENTS * MSS);
        g_assert_cmpuint(lduw_be_p(frame + 16), ==, HEADERS - 14 + MSS);
    }
    eth_wait_sent(h, &e);
    hca_wait_counter(h, QHCA_CNT_eth_tx_tso, num);
    hca_stop(h);
    close(peer);
}

/* Nobody accepts frames any more: they are lost, and the device continues. */
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

/* The peer goes away while frames wait for it, and comes back. */
static void test_peer_back(void)
{
    Server server;
    Hca *h = hca_start_with_server(&server, "q35", "");
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

static void wait_received(Hca *h, Eth *e, uint32_t tag)
{
    gint64 end = g_get_monotonic_time() + ANSWER_S * G_USEC_PER_SEC;
    uint32_t got;

    do {
        while (!eth_received(h, e, &got)) {
            g_assert_cmpint(g_get_monotonic_time(), <, end);
        }
    } while (got != tag);
}

/* Frames come and go while the machine is in ACPI S3; then both ways work. */
static void test_s3(void)
{
    static const uint8_t other[6] = { 0x52, 0x54, 0x00, 0x0a, 0x0b, 0x0d };
    int peer, unread;
    Hca *h = hca_start_with_peer(&peer, "q35");

    for (uint32_t tag = 100; tag < 103; tag++) {
        QPCIDevice *lpc = qpci_device_find(h->bus, QPCI_DEVFN(31, 0));
        Eth e = { };

        qpci_config_writel(lpc, 0x40, 0x601);       /* PMBASE */
        qpci_config_writeb(lpc, 0x44, 0x80);        /* ACPI_CNTL: enable */
        g_free(lpc);
        eth_bring_up(h, &e);
        eth_send(h, &e, 8, 100, 1);
        qtest_outw(h->qts, 0x604, 1 << 13 | 1 << 10);   /* PM1_CNT: S3 */
        qtest_qmp_eventwait(h->qts, "SUSPEND");
        eth_send(h, &e, 8, 100, 1);
        g_assert_true(peer_send(peer, other, 1));
        do {
            g_assert_cmpint(ioctl(peer, TIOCOUTQ, &unread), ==, 0);
        } while (unread);
        qtest_qmp_assert_success(h->qts, "{ 'execute': 'system_wakeup' }");
        qtest_qmp_eventwait(h->qts, "WAKEUP");
        g_free(h->dev);
        hca_map(h);
        eth_bring_up(h, &e);
        eth_post_receives(h, &e);
        g_assert_true(peer_send(peer, other, tag));
        wait_received(h, &e, tag);
        eth_send(h, &e, 1, 100, tag);
        g_assert_true(peer_wait_for(peer, tag));
        eth_wait_sent(h, &e);
        hca_reset(h);
    }
    hca_stop(h);
    close(peer);
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

/*
 * ------------------------------------------------------------------------
 * Counters of the adapter
 */

/* Frames of both directions, interrupts and DMA, as QMP reports them. */
static void test_counters(void)
{
    static const uint8_t other[6] = { 0x52, 0x54, 0x00, 0x0a, 0x0b, 0x0d };
    Eth e = { };
    int peer;
    Hca *h = hca_start_with_peer(&peer, "q35");

    g_assert_cmpuint(hca_adapter(h, "dma_windows_filled"), ==, 0);
    g_assert_cmpuint(hca_adapter(h, "dma_refused"), ==, 0);
    hca_set_cmdq(h, 0, NOWHERE);
    hca_write(h, QHCA_REG_CONTROL, QHCA_CONTROL_ENABLE);
    hca_write(h, QHCA_REG_CMDQ_DOORBELL, 1);
    hca_assert_fatal(h, QHCA_FATAL_CMDQ_DMA);
    g_assert_cmpuint(hca_adapter(h, "dma_refused"), ==, 1);
    hca_reset(h);

    eth_bring_up(h, &e);
    g_assert_cmpuint(hca_adapter(h, "dma_windows_filled"), >, 0);
    g_assert_cmpuint(hca_adapter(h, "slices"), >, 0);
    g_assert_cmpuint(hca_adapter(h, "slices"), >=,
                     hca_adapter(h, "thread_slices"));
    g_assert_cmpuint(hca_adapter(h, "interrupts"), ==, 0);
    eth_send(h, &e, 8, 100, 1);
    wait_adapter(h, "frames_sent", 8);
    g_assert_cmpuint(hca_adapter(h, "frames_sent"), ==, 8);
    eth_post_receives(h, &e);
    for (uint32_t tag = 1; tag <= 3; tag++) {
        g_assert_true(peer_send(peer, other, tag));
        wait_received(h, &e, tag);
    }
    g_assert_cmpuint(hca_adapter(h, "frames_received"), ==, 3);
    g_assert_cmpuint(hca_adapter(h, "frames_deferred"), <=, 3);
    g_assert_cmpuint(hca_adapter(h, "receive_stalls"), ==, 0);
    hca_stop(h);
    close(peer);
}

/* What a netdev has held for a stopped VM, QEMU delivers before the VM runs again. */
static void test_frames_meanwhile(void)
{
    static const uint8_t mac[6] = { 2, 0, 0, 0, 0, 1 };
    int peer;
    Hca *h = hca_start_with_peer(&peer, "q35");
    gint64 end = g_get_monotonic_time() + ANSWER_S * G_USEC_PER_SEC;
    uint8_t longest[4 + 9216 + 1] = { };
    Eth e = { 0 };
    uint32_t tag, next = 0;
    uint64_t dropped;

    eth_bring_up(h, &e);
    eth_post_receives(h, &e);
    eth_reach_peer(h, &e, peer, 0x77);
    dropped = hca_counter(h, QHCA_CNT_rx_dropped);
    qtest_qmp_assert_success(h->qts, "{ 'execute': 'stop' }");
    for (uint32_t i = 0; i < 3; i++) {
        g_assert_true(peer_send(peer, mac, i));
    }
    /* The adapter drops a frame that is too long, and counts it. */
    stl_be_p(longest, sizeof(longest) - 4);
    memset(longest + 4, 0xff, 6);
    g_assert_cmpint(send(peer, longest, sizeof(longest), MSG_NOSIGNAL), ==,
                    sizeof(longest));
    /* The netdev reads them while it answers. */
    for (int i = 0; i < 20; i++) {
        qtest_qmp_assert_success(h->qts, "{ 'execute': 'query-status' }");
    }
    qtest_qmp_assert_success(h->qts, "{ 'execute': 'cont' }");
    while (next < 3 && g_get_monotonic_time() < end) {
        if (eth_received(h, &e, &tag)) {
            g_assert_cmphex(tag, ==, next);
            next++;
        }
    }
    g_assert_cmpuint(next, ==, 3);
    hca_wait_counter(h, QHCA_CNT_rx_dropped, dropped + 1);
    close(peer);
    hca_stop(h);
}

/* Frames wait in the socket, so that the netdev reads as much as it can each time. */
static void send_at_once(Hca *h, int peer, unsigned int frames)
{
    const unsigned int len = 8000;
    const size_t size = frames * (4 + len);
    g_autofree uint8_t *buf = g_malloc0(size);

    for (unsigned int i = 0; i < frames; i++) {
        uint8_t *frame = buf + i * (4 + len);

        stl_be_p(frame, len);
        memset(frame + 4, 0xff, 6);
        frame[10] = 2;
    }
    g_assert_cmpint(kill(qtest_pid(h->qts), SIGSTOP), ==, 0);
    g_assert_cmpint(send(peer, buf, size, MSG_NOSIGNAL | MSG_DONTWAIT), ==, size);
    g_assert_cmpint(kill(qtest_pid(h->qts), SIGCONT), ==, 0);
}

/*
 * One slice of work follows from up to four reads of the socket, if they bring much.  What
 * is alone does not wait for more.  The clock stands, so that nothing else causes a slice.
 */
static void test_batches(void)
{
    static const struct {
        unsigned int frames, slices;
    } batch[] = {
        { 1, 1 }, { 3, 1 }, { 8, 1 }, { 9, 1 }, { 12, 1 }, { 18, 1 }, { 21, 1 }, { 44, 2 },
    };
    const int room = 400 * KiB;
    int peer;
    Hca *h = hca_start_with_peer(&peer, "q35");
    uint64_t received;
    Eth e = { 0 };

    g_assert_cmpint(setsockopt(peer, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room)), ==, 0);

    eth_bring_up(h, &e);
    eth_reach_peer(h, &e, peer, 0x77);
    received = hca_adapter(h, "frames_received");
    for (unsigned int i = 0; i < ARRAY_SIZE(batch); i++) {
        uint64_t slices = hca_adapter(h, "slices");

        received += batch[i].frames;
        send_at_once(h, peer, batch[i].frames);
        wait_adapter(h, "slices", slices + batch[i].slices);
        g_assert_cmpuint(hca_adapter(h, "slices"), ==, slices + batch[i].slices);
        g_assert_cmpuint(hca_adapter(h, "frames_received"), ==, received);
    }
    close(peer);
    hca_stop(h);
}

typedef struct Source {
    uint8_t mac[6];
    uint16_t vlan;
} Source;

/* The peer receives RARP frames from these sources, among others. */
static void wait_announced(int peer, const Source *source, unsigned int num)
{
    const struct timeval patience = { .tv_sec = ANSWER_S };
    unsigned int found = 0;
    uint8_t frame[65536];
    uint32_t len;

    setsockopt(peer, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    while (found != (1u << num) - 1) {
        g_assert_cmpint(recv(peer, &len, sizeof(len), MSG_WAITALL), ==,
                        sizeof(len));
        len = be32_to_cpu(len);
        g_assert_cmpuint(len, <=, sizeof(frame));
        g_assert_cmpint(recv(peer, frame, len, MSG_WAITALL), ==, len);
        for (unsigned int i = 0; i < num; i++) {
            const uint8_t *p = frame + 12;
            uint16_t vlan = QHCA_GID_NO_VLAN;

            if (lduw_be_p(p) == 0x8100) {
                vlan = lduw_be_p(p + 2);
                p += 4;
            }
            if (lduw_be_p(p) == 0x8035 &&
                !memcmp(frame + 6, source[i].mac, 6)) {
                g_assert_cmpmem(p + 10, 6, source[i].mac, 6);
                g_assert_cmphex(vlan, ==, source[i].vlan);
                found |= 1u << i;
            }
        }
    }
}

static void set_gid(Hca *h, uint32_t index, const uint8_t *mac, uint16_t vlan)
{
    struct qhca_gid_entry gid = {
        .gid = { [10] = 0xff, 0xff, 10, 0, 0, index + 1 },
        .vlan = cpu_to_le16(vlan),
        .flags = cpu_to_le32(QHCA_GID_VALID | QHCA_GID_IPV4),
    };

    memcpy(gid.smac, mac, sizeof(gid.smac));
    g_assert_cmpint(hca_cmd(h, QHCA_CMD_SET_GID, index, 0, &gid, sizeof(gid),
                            NULL, 0), ==, QHCA_CMD_OK);
}

/* All addresses that the guest sends from are announced, not only the property's. */
static void test_announce(void)
{
    static const Source source[] = {
        { { 0x52, 0x54, 0x00, 0x0a, 0x0b, 0x0c }, QHCA_GID_NO_VLAN },
        { { 2, 0, 0, 0, 0, 7 }, QHCA_GID_NO_VLAN },
        { { 2, 0, 0, 0, 0, 8 }, 5 },
    };
    int peer;
    Hca *h = hca_start_with_peer(&peer, "q35");
    Eth e = { 0 };

    eth_bring_up(h, &e);
    eth_reach_peer(h, &e, peer, 0x77);
    for (unsigned int i = 0; i < ARRAY_SIZE(source); i++) {
        set_gid(h, i, source[i].mac, source[i].vlan);
    }
    qtest_qmp_assert_success(h->qts, "{ 'execute': 'announce-self', 'arguments':"
                             " { 'initial': 50, 'max': 50, 'rounds': 1,"
                             "   'step': 10 } }");
    wait_announced(peer, source, ARRAY_SIZE(source));
    close(peer);
    hca_stop(h);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);

    qtest_add_func("/qhca-net/stalled-reset", test_stalled_reset);
    qtest_add_func("/qhca-net/stalled-segments", test_stalled_segments);
    qtest_add_func("/qhca-net/stalled-unplug", test_stalled_unplug);
    qtest_add_func("/qhca-net/stalled-netdev-del", test_stalled_netdev_del);
    qtest_add_func("/qhca-net/peer-back", test_peer_back);
    qtest_add_func("/qhca-net/hub-member-gone", test_hub_member_gone);
    qtest_add_func("/qhca-net/s3", test_s3);
    qtest_add_func("/qhca-net/default-mac", test_default_mac);
    qtest_add_func("/qhca-net/own-mac", test_own_mac);
    qtest_add_func("/qhca-net/counters", test_counters);
    qtest_add_func("/qhca-net/frames-meanwhile", test_frames_meanwhile);
    qtest_add_func("/qhca-net/batches", test_batches);
    qtest_add_func("/qhca-net/announce", test_announce);
    return g_test_run();
}
