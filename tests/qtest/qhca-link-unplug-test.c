/*
 * QTest testcase for the qhca RDMA adapter: a link that unplugs its device
 *
 * The device reports by an interrupt that its link over shared memory goes up or
 * down.  The guest aims that interrupt at the power control of the slot which the
 * device is in, so the device is unplugged in the middle of that report.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qhca-peer.h"

/* The port passes on what is for bus 1, and for the addresses of the device. */
static Hca *start_below_port(Peer *p)
{
    Hca *h = link_new(p, "q35 -global "
                      "ICH9-LPC.acpi-pci-hotplug-with-bridge-support=off "
                      "-device pcie-root-port,id=p0,addr=04.0,chassis=1,slot=1",
                      "bus=p0", true);
    QPCIDevice *port = qpci_device_find(h->bus, QPCI_DEVFN(4, 0));
    uint64_t first = ROUND_UP(h->bus->mmio_alloc_ptr, MiB);

    h->bus->mmio_alloc_ptr = first;
    qpci_config_writel(port, PCI_PRIMARY_BUS, 0x00010100);
    hca_map_at(h, QPCI_DEVFN(1 << 5, 0));
    hca_enable_msix(h);
    h->bus->mmio_alloc_ptr = ROUND_UP(h->bus->mmio_alloc_ptr, MiB);
    qpci_config_writew(port, PCI_MEMORY_BASE, first >> 16);
    qpci_config_writew(port, PCI_MEMORY_LIMIT,
                       (h->bus->mmio_alloc_ptr - 1) >> 16);
    qpci_device_enable(port);
    enable_ecam(h);
    g_free(port);
    return h;
}

/* The interrupt of the device's first event switches off the slot. */
static void next_event_unplugs(Hca *h)
{
    QPCIDevice *port = qpci_device_find(h->bus, QPCI_DEVFN(4, 0));
    uint8_t cap = qpci_find_capability(port, PCI_CAP_ID_EXP, 0);

    msix_target(h, 1, ecam_of(port) + cap + PCI_EXP_SLTCTL,
                PCI_EXP_SLTCTL_PWR_OFF | PCI_EXP_SLTCTL_PWR_IND_OFF);
    hca_bring_up(h);
    hca_ring(h, 0, QHCA_DB_EQ_ARM, QHCA_EQN_ASYNC);
    hca_assert_alive(h);
    g_free(port);
}

/* The device is gone, and looks for no peer any more. */
static void is_unplugged(Hca *h, Peer *p)
{
    QDict *answer;

    wait_deleted(h);
    g_usleep(300 * 1000);       /* It would look again after 200 ms. */
    answer = qtest_qmp(h->qts, "{ 'execute': 'query-qhca' }");
    g_assert_true(qlist_empty(qdict_get_qlist(answer, "return")));
    qobject_unref(answer);
    g_assert_cmpint(access(p->path, F_OK), !=, 0);
}

static void end(Hca *h, Peer *p)
{
    hca_stop(h);
    g_assert_cmpint(rmdir(p->folder), ==, 0);
    g_free(p->path);
    g_free(p->folder);
}

static void test_up(void)
{
    Peer p;
    Hca *h = start_below_port(&p);

    next_event_unplugs(h);
    peer_connect(&p);
    is_unplugged(h, &p);
    peer_leave(&p);
    end(h, &p);
}

static void test_lost(void)
{
    Peer p;
    Hca *h = start_below_port(&p);

    peer_connect(&p);
    wait_link(h, QHCA_LINK_UP);
    next_event_unplugs(h);
    peer_leave(&p);
    is_unplugged(h, &p);
    end(h, &p);
}

/* The device reports what happened to a stopped VM when the VM runs again. */
static void test_lost_while_stopped(void)
{
    Peer p;
    Hca *h = start_below_port(&p);

    peer_connect(&p);
    wait_link(h, QHCA_LINK_UP);
    next_event_unplugs(h);
    qtest_qmp_assert_success(h->qts, "{ 'execute': 'stop' }");
    peer_leave(&p);
    wait_adapter(h, "link_losses", 1);
    qtest_qmp_assert_success(h->qts, "{ 'execute': 'cont' }");
    is_unplugged(h, &p);
    end(h, &p);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);

    qtest_add_func("/qhca-link-unplug/up", test_up);
    qtest_add_func("/qhca-link-unplug/lost", test_lost);
    qtest_add_func("/qhca-link-unplug/lost-while-stopped",
                   test_lost_while_stopped);
    return g_test_run();
}
