/*
 * QTest testcase for the qhca RDMA adapter: wake-ups of a link that are lost
 *
 * A wake-up is a message at a socket.  The device leaves such messages unread for a
 * while, so they may fill the socket.  A wake-up that the device needs is lost then.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qhca-peer.h"
#include <sys/wait.h>

/* While QEMU is stopped it can read none of the messages. */
static void fill_socket(Hca *h, Peer *p)
{
    const pid_t qemu = qtest_pid(h->qts);
    int status;

    g_assert_cmpint(kill(qemu, SIGSTOP), ==, 0);
    g_assert_cmpint(waitpid(qemu, &status, WUNTRACED), ==, qemu);
    g_assert_true(WIFSTOPPED(status));
    for (int n = 0; n < 1000; n++) {
        hca_intro_wake(p->fd);
    }
    g_assert_cmpint(send(p->fd, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT), <, 0);
    g_assert_cmpint(kill(qemu, SIGCONT), ==, 0);
}

/* The peer wakes the device without end, and later as it should. */
static void flood(const char *machine)
{
    Peer p;
    Hca *h = link_start(&p, machine, true);

    takes_frame(&p, 0);
    for (uint32_t tag = 1; tag < 4; tag++) {
        fill_socket(h, &p);
        takes_frame(&p, tag);
        takes_frame(&p, 10 + tag);
    }
    link_stop(h, &p);
}

static void test_flood(void)
{
    flood("q35");
}

static void test_flood_viommu(void)
{
    flood("q35 -device intel-iommu");
}

/* The socket holds fewer messages than the device leaves unread. */
static void test_small_socket(void)
{
    const int size = 0;         /* The kernel takes the smallest that it allows. */
    Peer p;
    Hca *h = link_start(&p, "q35", true);

    g_assert_cmpint(setsockopt(p.fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)),
                    ==, 0);
    for (uint32_t tag = 0; tag < 40; tag++) {
        takes_frame(&p, tag);
    }
    link_stop(h, &p);
}

/* A device that nobody calls reads what is left, and then sleeps without end. */
static void idle(const char *machine, bool stopped)
{
    uint64_t sleeps;
    Peer p;
    Hca *h = link_start(&p, machine, true);

    takes_frame(&p, 0);
    if (stopped) {
        qtest_qmp_assert_success(h->qts, "{ 'execute': 'stop' }");
        hca_intro_wake(p.fd);
    }
    g_usleep(200 * 1000);
    sleeps = hca_adapter(h, "thread_sleeps");
    g_usleep(200 * 1000);
    g_assert_cmpuint(hca_adapter(h, "thread_sleeps"), ==, sleeps);
    link_stop(h, &p);
}

static void test_idle(void)
{
    idle("q35", false);
    idle("q35", true);
    idle("q35 -device intel-iommu", false);
    idle("q35 -device intel-iommu", true);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);

    qtest_add_func("/qhca-link-wake/flood", test_flood);
    qtest_add_func("/qhca-link-wake/flood-viommu", test_flood_viommu);
    qtest_add_func("/qhca-link-wake/small-socket", test_small_socket);
    qtest_add_func("/qhca-link-wake/idle", test_idle);
    return g_test_run();
}
