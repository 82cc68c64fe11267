/*
 * QTest testcase for the qhca RDMA adapter: traffic, and everything that ends
 * it, in an order that a seed gives
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qhca-eth.h"
#include "qhca-move.h"
#include "qhca-sriov.h"

#define NUM_VFS         2

typedef struct Chaos {
    Hca *h;
    Eth e;
    Server server;
    int peer;               /* or -1 */
    bool express;           /* FLR and VFs; the other machine has hot-plug */
    Sriov sriov;
    Hca *vf[NUM_VFS];       /* enabled virtual functions, or NULL */
    Eth vf_eth[NUM_VFS];
    bool vf_up[NUM_VFS];
    bool up, link_down;
    GRand *rand;
} Chaos;

/* The end of VF Enable, which may have come by itself. */
static void chaos_end_vfs(Chaos *c)
{
    for (int i = 0; i < NUM_VFS; i++) {
        if (c->vf[i]) {
            vf_free(c->vf[i]);
            c->vf[i] = NULL;
            c->vf_up[i] = false;
        }
    }
}

static void chaos_vfs(Chaos *c)
{
    if (!c->express) {
        return;
    }
    if (c->vf[0]) {
        sriov_disable(&c->sriov);
        chaos_end_vfs(c);
        return;
    }
    sriov_map(&c->sriov);
    sriov_enable(&c->sriov, NUM_VFS);
    for (int i = 0; i < NUM_VFS; i++) {
        c->vf[i] = vf_new(&c->sriov, i);
        g_assert_cmphex(hca_status(c->vf[i]), ==, QHCA_STATUS_READY);
    }
}

/* A virtual function's driver starts or sends, or has its function reset. */
static void chaos_vf(Chaos *c)
{
    unsigned int i = g_rand_int_range(c->rand, 0, NUM_VFS);
    uint32_t num = g_rand_int_range(c->rand, 1, 33);
    Eth *e = &c->vf_eth[i];
    Hca *vf = c->vf[i];

    if (!vf) {
        return;
    }
    switch (g_rand_int_range(c->rand, 0, 8)) {
    case 0:
        vf_flr(vf);
        c->vf_up[i] = false;
        break;
    case 1:
        hca_write(vf, QHCA_REG_CONTROL, QHCA_CONTROL_RESET);
        c->vf_up[i] = false;
        break;
    default:
        if (!c->vf_up[i]) {
            hca_reset(vf);
            eth_bring_up(vf, e);
            eth_post_receives(vf, e);
            c->vf_up[i] = true;
        } else if (e->tx_pi - eth_sent(vf, e) + num <= TX_DEPTH) {
            eth_send(vf, e, num, 1000, 1);
        }
    }
}

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
        /* The frame's content does not matter here. */
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
        chaos_end_vfs(c);
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

/*
 * The VM moves, having run or not.  Its link begins anew, since the netdev of each QEMU has
 * a connection of its own to the peer.
 */
static void chaos_move(Chaos *c)
{
    g_autofree char *device =
        server_options(&c->server, c->express ? ",sriov-vfs=2" : "");
    g_autofree char *options =
        g_strdup_printf("-machine %s %s", c->express ? "q35" : "pc", device);

    if (g_rand_int_range(c->rand, 0, 3) == 0) {
        qtest_qmp_assert_success(c->h->qts, "{ 'execute': 'stop' }");
    }
    move(c->h, options);
    for (int i = 0; i < NUM_VFS; i++) {
        if (c->vf[i]) {
            c->vf[i]->qts = c->h->qts;
        }
    }
    c->link_down = false;
    chaos_peer_leaves(c);
    server_drop(&c->server);
}

static void chaos_run(uint32_t seed, bool express)
{
#define ACTION(name, weight)    { chaos_##name, #name, weight }
    static const struct {
        void (*run)(Chaos *c);
        const char *name;
        unsigned int weight;
    } actions[] = {
        ACTION(send, 40), ACTION(peer, 25), ACTION(start, 12),
        ACTION(peer_leaves, 3), ACTION(peer_returns, 6), ACTION(reset, 5),
        ACTION(flr, 5), ACTION(bus_master, 3), ACTION(destroy, 4),
        ACTION(link, 4), ACTION(unplug, 3), ACTION(stop_vm, 2),
        ACTION(vfs, 6), ACTION(vf, 20), ACTION(move, 3),
    };
#undef ACTION
    Chaos c = { .express = express, .rand = g_rand_new_with_seed(seed) };
    unsigned int sum = 0;

    for (int i = 0; i < ARRAY_SIZE(actions); i++) {
        sum += actions[i].weight;
    }
    g_test_message("seed %u on %s", seed, express ? "q35" : "pc");
    c.h = hca_start_with_server(&c.server, express ? "q35" : "pc",
                                express ? ",sriov-vfs=2" : "");
    if (express) {
        sriov_open(c.h, &c.sriov);
    }
    c.peer = server_accept(&c.server);
    chaos_start(&c);
    for (int step = 0; step < 150; step++) {
        unsigned int n = g_rand_int_range(c.rand, 0, sum), i = 0;

        while (n >= actions[i].weight) {
            n -= actions[i++].weight;
        }
        g_test_message("step %d: %s, peer %d", step, actions[i].name, c.peer);
        actions[i].run(&c);
        g_assert_cmphex(hca_read(c.h, QHCA_REG_MAGIC), ==, QHCA_MAGIC);
    }

    /* When the device and its peer work again, whole frames pass. */
    if (c.link_down) {
        chaos_link(&c);
    }
    /*
     * A frame cut short by an unplug spoils the connection it was sent on, which
     * may be one that the peer has not accepted yet.
     */
    chaos_peer_returns(&c);
    chaos_peer_leaves(&c);
    chaos_start(&c);
    chaos_peer_returns(&c);
    eth_reach_peer(c.h, &c.e, c.peer, 1000 + seed);
    chaos_peer_leaves(&c);
    chaos_end_vfs(&c);
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

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);

    qtest_add_data_func("/qhca-chaos/express", "express", test_chaos);
    qtest_add_data_func("/qhca-chaos/conventional", NULL, test_chaos);
    return g_test_run();
}
