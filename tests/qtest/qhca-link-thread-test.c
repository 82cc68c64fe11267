/*
 * Test of the qhca RDMA adapter: how the thread of a link in shared memory waits
 *
 * What matters here happens between two instructions of the device's thread, or
 * where Linux refuses a system call, so it cannot be reached from outside.
 * Therefore the test links the adapter's files, and stops the thread before it
 * sleeps.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qemu/main-loop.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include "qhca-parts.h"
#include "hw/rdma/qhca/qemu/qhca-link.h"

#define PATIENCE_US     (20 * G_USEC_PER_SEC)
#define SLOTS           16
#define ROOM            9216

static QhcaState *s;
static int peer_fd;
static __thread bool have_bql;

/* The next thread that is about to sleep waits for go_on. */
static bool holds;
static QemuEvent held;
static QemuSemaphore go_on;

/*
 * ------------------------------------------------------------------------
 * The parts that this test looks at, and those of the engine that it does not
 */
bool bql_locked(void)
{
    return have_bql;
}

void qhca_mark_now(QhcaState *hca, QhcaMarkKind what, uint64_t a, uint64_t b)
{
    if (what == QHCA_MARK_SLEEP && qatomic_xchg(&holds, false)) {
        qemu_event_set(&held);
        qemu_sem_wait(&go_on);
    }
}

void qhca_doorbell(struct qhca_hca *hca, uint16_t gvmi, uint32_t page,
                   uint32_t offset, uint64_t value, uint64_t now)
{
    g_assert_not_reached();
}

bool qhca_polls_in_vain(struct qhca_hca *hca, uint16_t gvmi, uint32_t page,
                        uint64_t value)
{
    g_assert_not_reached();
}

void qhca_rx_shared(struct qhca_hca *hca, const uint8_t *frame, size_t len,
                    uint64_t now)
{
    g_assert_not_reached();
}

void qhca_net_check_own_mac(QhcaState *hca)
{
}

void qhca_dump_frame(QhcaState *hca, const void *frame, size_t len)
{
    g_assert_not_reached();
}

/*
 * ------------------------------------------------------------------------
 * The device
 */
static void waits_for(int fd, uint32_t events, uint64_t what)
{
    struct epoll_event event = { .events = events, .data.u64 = what };

    g_assert_cmpint(epoll_ctl(s->link.epoll_fd, EPOLL_CTL_ADD, fd, &event), ==, 0);
}

/* As qhca-link.c does it when a peer has introduced itself. */
static void connect_peer(void)
{
    const size_t size = hca_slots_size(SLOTS, ROOM);
    QhcaPeer *peer = g_new0(QhcaPeer, 1);
    int fd[2];

    g_assert_cmpint(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, fd), ==, 0);
    peer->fd = fd[0];
    peer_fd = fd[1];
    peer->number = QHCA_WAIT_PEER;
    peer->mem.mem = qemu_memalign(64, 2 * size);
    memset(peer->mem.mem, 0, 2 * size);
    hca_slots_init(&peer->mem.tx, peer->mem.mem, SLOTS, ROOM);
    hca_slots_init(&peer->mem.rx, peer->mem.mem + size, SLOTS, ROOM);
    g_assert_cmpint(event_notifier_init(&s->link.call, 0), ==, 0);
    s->link.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    s->link.nap_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    waits_for(event_notifier_get_fd(&s->link.call), EPOLLIN, QHCA_WAIT_CALL);
    waits_for(s->link.nap_fd, EPOLLIN | EPOLLET, QHCA_WAIT_NAP);
    waits_for(peer->fd, EPOLLIN | EPOLLRDHUP | EPOLLET, peer->number);
    s->link.dump_fd = -1;
    s->link.peer = peer;
}

/* Returns when the thread is about to sleep, and has been stopped there. */
static void start(bool dma_iommu)
{
    s = parts_new_device();
    s->dma_iommu = dma_iommu;
    s->timeline.on = true;
    connect_peer();
    qemu_event_init(&held, false);
    qemu_sem_init(&go_on, 0);
    qatomic_set(&holds, true);
    qhca_thread_init(s);
    qhca_thread_start(s);
    qemu_event_wait(&held);
}

static void stop(void)
{
    QhcaPeer *peer = s->link.peer;

    qhca_thread_stop(s);
    qhca_thread_finalize(s);
    event_notifier_cleanup(&s->link.call);
    close(s->link.nap_fd);
    close(s->link.epoll_fd);
    close(peer->fd);
    close(peer_fd);
    qemu_vfree(peer->mem.mem);
    g_free(peer);
    qemu_sem_destroy(&go_on);
    qemu_event_destroy(&held);
    parts_free_device(s);
}

/* Has the device left a message of its peer in the socket? */
static bool is_unread(void)
{
    char byte;

    return recv(s->link.peer->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 1;
}

static void wait_stat(const uint64_t *stat, uint64_t at_least)
{
    const gint64 end = g_get_monotonic_time() + PATIENCE_US;

    while (qatomic_read(stat) < at_least) {
        g_assert_cmpint(g_get_monotonic_time(), <, end);
        g_usleep(100);
    }
}

/* From now on Linux refuses this call to this thread and to those that it makes. */
static bool refuse(unsigned int call)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog prog = { ARRAY_SIZE(code), code };

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog)) {
        g_test_skip("this system has no filters of system calls");
        return false;
    }
    return true;
}

/*
 * ------------------------------------------------------------------------
 * Tests
 */
/*
 * With a vIOMMU the bottom half does the device's work.  It leaves a message that is
 * on its way to the thread, which would sleep on without it.
 */
static void test_bottom_half(void)
{
    start(true);
    hca_intro_wake(peer_fd);
    for (int n = 0; n < 200; n++) {
        qatomic_set(&s->kicked, true);
        qhca_schedule(s);
        aio_poll(qemu_get_aio_context(), false);
    }
    g_assert_cmpuint(s->stats.thread_slices, >=, 200);
    g_assert_true(is_unread());
    qemu_sem_post(&go_on);
    wait_stat(&s->stats.link_wakes_received, 1);
    stop();
}

/*
 * The peer sends a message, and the thread counts it.  If it is about to read older ones, it may
 * read this one with them before it would be woken, and does not count it.
 */
static void wake(void)
{
    const gint64 end = g_get_monotonic_time() + PATIENCE_US;
    const uint64_t before = qatomic_read(&s->stats.link_wakes_received);

    hca_intro_wake(peer_fd);
    while (qatomic_read(&s->stats.link_wakes_received) == before && is_unread()) {
        g_assert_cmpint(g_get_monotonic_time(), <, end);
        g_usleep(100);
    }
}

/* Each message wakes the thread, which reads what is left, and sleeps. */
static void wakes(void)
{
    uint64_t sleeps;

    start(false);
    qemu_sem_post(&go_on);
    for (int n = 1; n < 30; n++) {
        wake();
    }
    g_assert_cmpuint(qatomic_read(&s->stats.link_wakes_received), >, 0);
    g_usleep(200 * 1000);
    g_assert_false(is_unread());
    sleeps = qatomic_read(&s->stats.thread_sleeps);
    g_usleep(200 * 1000);
    g_assert_cmpuint(qatomic_read(&s->stats.thread_sleeps), ==, sleeps);
    stop();
}

static void test_wakes(void)
{
    wakes();
}

/* A program polls once, so the thread naps, and this nap ends without the timer. */
static void test_nap_timer_refused(void)
{
    if (!refuse(SYS_timerfd_settime)) {
        return;
    }
    start(false);
    qemu_sem_post(&go_on);
    qhca_lock(s);
    qhca_link_polled(s, true);
    qhca_leave_undone(s);
    wait_stat(&s->stats.thread_naps, 1);
    stop();
}

/* The peer sends a frame, and does not look whether it has to wake anybody. */
static void put_frame(void)
{
    struct hca_slots *rx = &s->link.peer->mem.rx, peer = *rx;

    g_assert_nonnull(hca_slots_reserve(&peer));
    hca_slots_commit(&peer, ROOM);
}

static bool asks_for_wake_up(void)
{
    return qatomic_read(&s->link.peer->mem.rx.flags->consumer_sleeps);
}

/* Returns when the thread sleeps, and has asked for a wake-up. */
static void start_asleep(void)
{
    gint64 end = g_get_monotonic_time() + PATIENCE_US;

    start(false);
    qemu_sem_post(&go_on);
    while (!qatomic_read(&s->link.asleep) || !asks_for_wake_up()) {
        g_assert_cmpint(g_get_monotonic_time(), <, end);
        g_usleep(100);
    }
}

/*
 * A vCPU waits for frames while the thread sleeps: the peer need not wake it meanwhile, and has to
 * afterwards, also if hints have said otherwise.
 */
static void test_attend(void)
{
    start_asleep();
    qhca_lock(s);
    s->link.quiet = true;
    s->more = false;
    qhca_link_attend(s);
    g_assert_false(asks_for_wake_up());
    g_assert_false(s->link.hinted);
    qhca_link_attended(s);
    g_assert_true(asks_for_wake_up());
    g_assert_false(s->link.quiet);
    g_assert_false(s->more);
    qhca_link_attend(s);
    put_frame();                    /* at the last moment */
    qhca_link_attended(s);
    g_assert_true(asks_for_wake_up());
    g_assert_true(s->more);
    hca_slots_pop(&s->link.peer->mem.rx);
    s->more = false;
    /* A thread that is awake asks by itself, and does not poll as well. */
    qatomic_set(&s->link.asleep, false);
    qhca_link_attend(s);
    g_assert_true(s->link.hinted);
    qhca_link_attended(s);
    g_assert_false(asks_for_wake_up());
    qatomic_set(&s->link.asleep, true);
    qhca_leave_undone(s);
    stop();
}

/*
 * The thread falls asleep while a vCPU waits for frames.  It asks for no wake-up, and stays away
 * from the frames that are there.  The vCPU's request afterwards is a new one.
 */
static void test_attend_first(void)
{
    gint64 end = g_get_monotonic_time() + PATIENCE_US;
    uint32_t asked;

    start(false);
    qhca_lock(s);
    qhca_link_attend(s);
    put_frame();
    g_assert_false(qhca_link_called(s));
    asked = s->link.asked;
    /* The thread writes until when it sleeps when it has looked for the vCPU and for frames. */
    qatomic_set(&s->deadline, INT64_MAX);
    qemu_sem_post(&go_on);
    while (qatomic_read(&s->link.sleeps_until) != INT64_MAX) {
        g_assert_cmpint(g_get_monotonic_time(), <, end);
        g_usleep(100);
    }
    g_assert_true(s->link.asleep);
    g_assert_cmpuint(s->waiters, ==, 0);
    g_assert_false(asks_for_wake_up());
    g_assert_cmpuint(s->link.asked, ==, asked);
    s->more = false;
    qhca_link_attended(s);
    g_assert_true(asks_for_wake_up());
    g_assert_true(s->more);
    g_assert_true(qhca_link_called(s));
    g_assert_cmpuint(s->link.asked, ==, asked + 1);
    qatomic_set(&s->deadline, QHCA_NEVER);
    /* And then that one again. */
    qhca_link_attend(s);
    qhca_link_attended(s);
    g_assert_cmpuint(s->link.asked, ==, asked + 1);
    hca_slots_pop(&s->link.peer->mem.rx);
    s->more = false;
    qhca_leave_undone(s);
    stop();
}

/* What ends naps without wake-ups asks for one, but not while a vCPU attends. */
static void test_attend_in_nap(void)
{
    start_asleep();
    qhca_lock(s);
    s->link.quiet = true;
    s->link.naps = true;
    s->link.polls_on = false;
    qhca_link_attend(s);
    s->link.freed = true;
    qhca_link_receive(s, 0);
    g_assert_false(asks_for_wake_up());
    qhca_link_attended(s);
    g_assert_true(asks_for_wake_up());
    g_assert_false(s->link.quiet);
    s->link.freed = false;
    s->link.naps = false;
    qhca_leave_undone(s);
    stop();
}

static void test_epoll_pwait2_refused(void)
{
#ifdef SYS_epoll_pwait2
    if (!refuse(SYS_epoll_pwait2)) {
        return;
    }
#endif
    wakes();
}

int main(int argc, char **argv)
{
    parts_init(&argc, &argv);
    have_bql = true;

    g_test_add_func("/qhca-link-thread/bottom-half", test_bottom_half);
    g_test_add_func("/qhca-link-thread/wakes", test_wakes);
    g_test_add_func("/qhca-link-thread/attend", test_attend);
    g_test_add_func("/qhca-link-thread/attend-first", test_attend_first);
    g_test_add_func("/qhca-link-thread/attend-in-nap", test_attend_in_nap);
    /* What is refused once remains so. */
    g_test_add_func("/qhca-link-thread/nap-timer-refused",
                    test_nap_timer_refused);
    g_test_add_func("/qhca-link-thread/epoll-pwait2-refused",
                    test_epoll_pwait2_refused);
    return g_test_run();
}
