/*
 * QTest testcase for the qhca RDMA adapter: its link over shared memory
 *
 * The other end of the link is this program.  It sends and receives, sleeps,
 * lies, goes away and comes back.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qemu/atomic.h"
#include "qhca-peer.h"

/*
 * ------------------------------------------------------------------------
 * A program in the guest that polls
 */
#define POLL_PAGE 1

/* CQ 0, through which nothing ever comes. */
static void poll_open(Hca *h)
{
    struct qhca_cqc_sw cq = {
        .buf = {
            .base = cpu_to_le64(hca_page(h)), .length = cpu_to_le32(4096),
        },
        .rec_offset = cpu_to_le32(2048), .db_page = cpu_to_le32(POLL_PAGE),
    };

    g_assert_cmpint(hca_map_chunk(h, QHCA_TABLE_CQ, 0, hca_page(h)), ==,
                    QHCA_CMD_OK);
    g_assert_cmpint(hca_cmd(h, QHCA_CMD_CREATE_CQ, 0, 0, &cq, sizeof(cq), NULL,
                            0), ==, QHCA_CMD_OK);
}

static void polls(Hca *h, uint32_t ci)
{
    hca_ring(h, POLL_PAGE, QHCA_DB_POLL, (uint64_t)ci << 32);
}

static void polls_on(Hca *h)
{
    hca_ring(h, POLL_PAGE, QHCA_DB_POLL, QHCA_DB_POLL_MORE);
}

static void polls_both(Hca *h)
{
    polls(h, 0);
    polls_on(h);
}

static bool asks_for_wake_up(Peer *p)
{
    return qatomic_read(&p->mem.tx.flags->consumer_sleeps);
}

static bool is_taken(const struct hca_slot *slot)
{
    return !(qatomic_read(&slot->own_type) & HCA_SLOT_FULL);
}

/* Poll until the device asks for no wake-up, and not only because its thread is awake. */
static void poll_until_quiet(Hca *h, Peer *p, void (*poll)(Hca *h))
{
    gint64 end = g_get_monotonic_time() + ANSWER_S * G_USEC_PER_SEC;
    bool quiet = false;

    while (!quiet) {
        poll(h);
        quiet = !asks_for_wake_up(p);
        if (quiet) {
            g_usleep(1);                /* some 60 us in truth */
            quiet = !asks_for_wake_up(p);
        }
        g_assert_cmpint(g_get_monotonic_time(), <, end);
    }
}

static void polls_first(Hca *h)
{
    polls(h, 0);
}

/*
 * While the program polls, the device takes frames in its hints, without a wake-up.  The
 * program may stop at any time, and what comes then is taken all the same.
 */
static void polls_of(void (*poll)(Hca *h), bool goes_on)
{
    uint64_t asked = 0, quiet = 0;
    Peer p;
    Hca *h = link_start(&p, "q35", true);

    hca_bring_up(h);
    poll_open(h);
    for (uint32_t tag = 0; tag < 300; tag++) {
        gint64 end = g_get_monotonic_time() + ANSWER_S * G_USEC_PER_SEC;
        struct hca_slot *slot;

        poll_until_quiet(h, &p, poll);
        g_usleep(tag % 5 * 100);
        slot = peer_put(&p, tag);
        quiet += !asks_for_wake_up(&p);
        peer_wake(&p);
        if (tag & 1) {
            poll(h);
            asked += asks_for_wake_up(&p);
        }
        while (!is_taken(slot)) {
            g_assert_cmpint(g_get_monotonic_time(), <, end);
        }
    }
    g_test_message("%" PRIu64 " of 300 frames taken in %" PRIu64 " hints, %" PRIu64
                   " sent without a wake-up, %" PRIu64 " naps; asked for the next %" PRIu64
                   " times of 150", hca_adapter(h, "poll_frames"),
                   hca_adapter(h, "polls"), quiet,
                   hca_adapter(h, "thread_naps"), asked);
    g_assert_cmpuint(hca_adapter(h, "poll_frames"), >, 0);
    g_assert_cmpuint(quiet, >=, 30);
    if (goes_on) {
        g_assert_cmpuint(asked, <, 150);
    }
    takes_frame(&p, 1000);              /* when all naps are over */
    link_stop(h, &p);
}

static void test_polls(void)
{
    polls_of(polls_first, false);
}

static void test_polls_on(void)
{
    polls_of(polls_on, true);
}

/* Hints that are wrong, early or of no use change nothing, and the next frame is taken. */
static void test_polls_wrongly(void)
{
    Peer p;
    Hca *h = link_start(&p, "q35", true);

    polls(h, 0);                        /* before there is a CQ */
    takes_frame(&p, 0);
    hca_bring_up(h);
    poll_open(h);
    for (uint32_t tag = 1; tag < 20; tag++) {
        polls(h, 5);                    /* it has not seen all */
        hca_ring(h, POLL_PAGE + 1, QHCA_DB_POLL, 0);
        hca_ring(h, POLL_PAGE, QHCA_DB_POLL, 0xffffff);
        takes_frame(&p, tag);
    }
    g_assert_cmpuint(hca_adapter(h, "poll_frames"), ==, 0);
    g_assert_cmpuint(hca_adapter(h, "thread_naps"), ==, 0);
    /* In the middle of hints the VM stops, the peer leaves, and the device is reset. */
    for (uint32_t n = 0; n < 20; n++) {
        polls_both(h);
    }
    qtest_qmp_assert_success(h->qts, "{'execute': 'stop'}");
    polls_both(h);
    qtest_qmp_assert_success(h->qts, "{'execute': 'cont'}");
    takes_frame(&p, 20);
    polls_both(h);
    peer_leave(&p);
    polls_both(h);
    wait_link(h, 0);
    polls_both(h);
    peer_connect(&p);
    wait_link(h, QHCA_LINK_UP);
    polls_both(h);
    hca_reset(h);
    polls_both(h);
    takes_frame(&p, 21);
    hca_assert_alive(h);
    link_stop(h, &p);
}

/*
 * ------------------------------------------------------------------------
 * A peer that does what it should
 */
/*
 * Send frames, each when the one before is taken: 2000, and on until a poll of the device's
 * thread has found one, if that is @wanted.  Returns how many did.
 */
static uint64_t polls_for_frames(const char *machine, bool wanted)
{
    uint64_t hits = 0;
    Peer p;
    Hca *h = link_start(&p, machine, true);

    hca_bring_up(h);
    for (uint32_t tag = 0; tag < 2000 || (wanted && !hits); tag++) {
        gint64 end = g_get_monotonic_time() + ANSWER_S * G_USEC_PER_SEC;
        struct hca_slot *slot = peer_put(&p, tag);

        peer_wake(&p);
        while (!is_taken(slot)) {
            g_assert_cmpint(g_get_monotonic_time(), <, end);
            g_thread_yield();            /* there may be one processor only */
        }
        if (tag % 500 == 499) {
            hits = hca_adapter(h, "thread_poll_hits");
        }
        g_assert_cmpuint(tag, <, 1000000);
    }
    g_assert_cmpuint(hca_adapter(h, "thread_polls"), >=, hits);
    takes_frame(&p, 1000);
    link_stop(h, &p);
    return hits;
}

/* The device's thread polls in the place of a halted vCPU, and of no other. */
static void test_polls_idle(void)
{
    /* On a busy host the next frame takes long. */
    polls_for_frames("q35 -smp 2 -global qhca.poll-idle-us=1000", true);
    g_assert_cmpuint(polls_for_frames("q35 -smp 1", false), ==, 0);
    g_assert_cmpuint(polls_for_frames("q35 -smp 2 -global qhca.poll-idle-us=0", false), ==, 0);
}

static void frames_of(bool device_listens)
{
    Peer p;
    Eth e = { };
    Hca *h = link_start(&p, "q35", device_listens);

    eth_bring_up(h, &e);
    for (uint32_t tag = 1; tag < 200; tag += 2) {
        both_ways(h, &e, &p, tag);
    }
    g_assert_cmpuint(hca_adapter(h, "frames_sent"), ==, 100);
    g_assert_cmpuint(hca_adapter(h, "frames_received"), ==, 100);
    g_assert_cmpuint(hca_adapter(h, "link_connects"), ==, 1);
    g_assert_cmpuint(hca_adapter(h, "link_losses"), ==, 0);
    g_assert_cmpuint(hca_adapter(h, "link_wakes_sent"), <=, 200);
    g_assert_cmpuint(hca_adapter(h, "link_wakes_received"), <=, 200);
    link_stop(h, &p);
}

static void test_listens(void)
{
    frames_of(true);
}

static void test_connects(void)
{
    frames_of(false);
}

/* With a vIOMMU the bottom half takes the frames, but the thread is woken. */
static void test_viommu(void)
{
    Peer p;
    Hca *h = link_start(&p, "q35 -device intel-iommu", true);

    hca_bring_up(h);
    poll_open(h);
    for (uint32_t tag = 0; tag < 3; tag++) {
        polls(h, 0);            /* in vain: it would be DMA without the BQL */
        takes_frame(&p, tag);
    }
    g_assert_cmpuint(hca_adapter(h, "polls"), ==, 0);
    qtest_qmp_assert_success(h->qts, "{'execute': 'stop'}");
    peer_put(&p, 3);
    peer_wake(&p);
    qtest_qmp_assert_success(h->qts, "{'execute': 'cont'}");
    for (uint32_t tag = 4; tag < 7; tag++) {
        takes_frame(&p, tag);
    }
    peer_leave(&p);
    wait_link(h, 0);
    peer_connect(&p);
    wait_link(h, QHCA_LINK_UP);
    takes_frame(&p, 7);
    link_stop(h, &p);
}

/* The peer takes nothing for a while: nothing is lost, and nothing overtakes. */
static void test_full(void)
{
    Peer p;
    Eth e = { };
    Hca *h = link_start(&p, "q35", true);

    eth_bring_up(h, &e);
    for (uint32_t tag = 1; tag <= 3 * SLOTS; tag++) {
        eth_send(h, &e, 1, 100, tag);
    }
    wait_adapter(h, "send_stalls", 1);
    g_assert_cmpuint(hca_adapter(h, "frames_sent"), ==, SLOTS);
    for (uint32_t tag = 1; tag <= 3 * SLOTS; tag++) {
        g_assert_cmpuint(link_receive(&p), ==, tag);
    }
    eth_wait_sent(h, &e);
    both_ways(h, &e, &p, 1000);
    link_stop(h, &p);
}

/* More frames at once than one slice of the engine takes. */
static void test_burst(void)
{
    uint32_t sent = 0, received = 0, tag;
    Peer p;
    Eth e = { };
    Hca *h = link_start(&p, "q35", true);

    eth_bring_up(h, &e);
    while (received < 500) {
        eth_post_receives(h, &e);
        while (sent < 500 && sent - received < RX_DEPTH / 2 &&
               hca_slots_reserve(&p.mem.tx)) {
            peer_put(&p, sent++);
        }
        peer_wake(&p);
        while (eth_received(h, &e, &tag)) {
            g_assert_cmpuint(tag, ==, received++);
        }
    }
    link_stop(h, &p);
}

static void set_link_of(Hca *h, bool on)
{
    qtest_qmp_assert_success(h->qts, "{ 'execute': 'qom-set', 'arguments': { "
                             "'path': '/machine/peripheral/h0', 'property': "
                             "'shm-link', 'value': %i } }", on);
}

/* The cable is pulled out and plugged in again; the peer is not disturbed. */
static void test_set_link(void)
{
    Peer p;
    Eth e = { };
    Hca *h = link_start(&p, "q35", true);

    eth_bring_up(h, &e);
    both_ways(h, &e, &p, 1);
    set_link_of(h, false);
    wait_link(h, 0);
    eth_post_receives(h, &e);
    for (uint32_t tag = 10; tag < 10 + SLOTS; tag++) {
        link_send(&p, tag);
    }
    eth_send(h, &e, 3, 100, 30);
    eth_wait_sent(h, &e);
    wait_adapter(h, "link_wakes_received", 1);
    while (!hca_slots_half_free(&p.mem.tx)) {
        g_usleep(1000);
    }
    set_link_of(h, true);
    wait_link(h, QHCA_LINK_UP);
    both_ways(h, &e, &p, 40);
    link_stop(h, &p);
}

/*
 * ------------------------------------------------------------------------
 * A peer that goes away
 */
static void back_again(bool device_listens)
{
    Peer p;
    Eth e = { };
    Hca *h = link_start(&p, "q35", device_listens);

    eth_bring_up(h, &e);
    for (uint32_t n = 1; n <= 4; n++) {
        for (uint32_t tag = 0; n & 1 && tag < 3 * SLOTS; tag++) {
            eth_send(h, &e, 1, 100, tag);
        }
        for (uint32_t i = 0; i < 100 * (n - 1); i++) {
            hca_intro_wake(p.fd);       /* the device has asked for fewer */
        }
        peer_leave(&p);
        wait_link(h, 0);
        eth_wait_sent(h, &e);           /* into nothing */
        peer_connect(&p);
        wait_link(h, QHCA_LINK_UP);
        both_ways(h, &e, &p, 10 * n);
        g_assert_cmpuint(hca_adapter(h, "link_losses"), ==, n);
        if (n == 2) {
            hca_reset(h);
            eth_bring_up(h, &e);
        }
    }
    link_stop(h, &p);
}

static void test_back_to_listener(void)
{
    back_again(true);
}

static void test_back_to_connecter(void)
{
    back_again(false);
}

/* Peers that say nothing, nonsense, or leave in the middle, keep nobody away. */
static void test_rude_introductions(void)
{
    static const char nonsense[] = "nonsense";
    char err[HCA_INTRO_TEXT];
    struct hca_intro intro;
    Peer p;
    Eth e = { };
    Hca *h = link_start(&p, "q35", true);

    eth_bring_up(h, &e);
    peer_leave(&p);
    for (int n = 0; n < 6; n++) {
        int fd = hca_intro_connect(p.path, NULL, err, sizeof(err));

        g_assert_cmpint(fd, >=, 0);
        switch (n % 3) {
        case 0:
            break;
        case 1:
            g_assert_cmpint(send(fd, nonsense, sizeof(nonsense), MSG_NOSIGNAL),
                            ==, sizeof(nonsense));
            break;
        case 2:
            hca_intro_begin(&intro, fd, false, &link_wish);
            link_wait_message(fd);      /* there is memory, and no answer */
            break;
        }
        close(fd);
    }
    peer_connect(&p);
    wait_link(h, QHCA_LINK_UP);
    both_ways(h, &e, &p, 1);
    link_stop(h, &p);
}

/* The device is unplugged while frames pass, and a new one connects. */
static void test_unplug(void)
{
    Peer p;
    Eth e = { };
    Hca *h = link_start(&p, "pc", true);
    g_autofree char *properties = g_strdup_printf(
        "{ 'addr': '04', 'mac': '" MAC "', 'shm': '%s', 'shm-server': true, "
        "'shm-slots': %u }", p.path, SLOTS);

    eth_bring_up(h, &e);
    for (uint32_t tag = 1; tag <= 3 * SLOTS; tag++) {
        eth_send(h, &e, 1, 100, tag);
    }
    qtest_qmp_device_del_send(h->qts, "h0");
    qtest_outl(h->qts, 0xae08, 1 << 4);     /* ACPI eject of slot 4 */
    wait_deleted(h);
    g_free(h->dev);
    g_assert_cmpint(access(p.path, F_OK), !=, 0);
    peer_leave(&p);
    qtest_qmp_device_add(h->qts, "qhca", "h0", properties);
    hca_map(h);
    peer_connect(&p);
    wait_link(h, QHCA_LINK_UP);
    eth_bring_up(h, &e);
    both_ways(h, &e, &p, 1);
    link_stop(h, &p);
}

/*
 * ------------------------------------------------------------------------
 * A peer that lies
 */
static void test_bad_slots(void)
{
    Peer p;
    Eth e = { };
    Hca *h = link_start(&p, "q35", true);
    uint64_t bad = 0;

    eth_bring_up(h, &e);
    eth_post_receives(h, &e);
    for (int n = 0; n < 200; n++) {
        struct hca_slot *slot;

        while (!hca_slots_reserve(&p.mem.tx)) {
            g_usleep(100);
        }
        slot = peer_put(&p, 1);
        /* The device sleeps, or is about to: it may have taken it already. */
        if (n % 2) {
            qatomic_set(&slot->len, 9217 + n * 100);
        } else {
            qatomic_set(&slot->own_type, HCA_SLOT_FULL | n % 0x40);
        }
        peer_wake(&p);
        while (!hca_slots_reserve(&p.mem.tx)) {
            g_usleep(100);
        }
    }
    bad = hca_adapter(h, "link_bad_slots");
    g_assert_cmpuint(bad, >, 0);
    hca_reset(h);
    eth_bring_up(h, &e);
    both_ways(h, &e, &p, 1000);
    link_stop(h, &p);
}

/* Whatever is in the memory, wake-ups without end included. */
static void test_garbage(void)
{
    GRand *rand = g_rand_new_with_seed(1);
    Peer p;
    Eth e = { };
    Hca *h = link_start(&p, "q35", true);

    eth_bring_up(h, &e);
    for (int n = 0; n < 200; n++) {
        uint8_t *bytes = p.mem.mem;

        eth_post_receives(h, &e);
        for (int i = 0; i < 2000; i++) {
            uint32_t at = g_rand_int_range(rand, 0, p.mem.size);
            uint32_t slot = (at / 9280 * 9280 + 128 + 63) % p.mem.size;

            qatomic_set(&bytes[at], g_rand_int(rand));
            qatomic_set(&bytes[slot], HCA_SLOT_FULL | HCA_SLOT_PACKET);
        }
        if (n < TX_DEPTH / 2) {         /* they may all wait for room */
            eth_send(h, &e, 1, 100, n);
        }
        hca_intro_wake(p.fd);
        hca_assert_alive(h);
    }
    peer_leave(&p);
    wait_link(h, 0);
    eth_wait_sent(h, &e);
    peer_connect(&p);
    wait_link(h, QHCA_LINK_UP);
    hca_reset(h);
    eth_bring_up(h, &e);
    both_ways(h, &e, &p, 1);
    g_rand_free(rand);
    link_stop(h, &p);
}

/*
 * ------------------------------------------------------------------------
 * The VM stops; captures
 */
static void test_stopped(void)
{
    Peer p;
    Eth e = { };
    Hca *h = link_start(&p, "q35", true);
    struct hca_slot *slot;

    eth_bring_up(h, &e);
    both_ways(h, &e, &p, 1);
    eth_post_receives(h, &e);
    qtest_qmp_assert_success(h->qts, "{ 'execute': 'stop' }");
    slot = peer_put(&p, 10);
    for (int n = 0; n < 20; n++) {
        hca_intro_wake(p.fd);
        hca_adapter(h, "slices");       /* the main loop has run meanwhile */
    }
    g_assert_cmphex(qatomic_read(&slot->own_type), ==,
                    HCA_SLOT_FULL | HCA_SLOT_PACKET);
    qtest_qmp_assert_success(h->qts, "{ 'execute': 'cont' }");
    guest_receives(h, &e, 10);
    g_assert_cmpuint(hca_adapter(h, "link_losses"), ==, 0);
    both_ways(h, &e, &p, 20);
    link_stop(h, &p);
}

static void set_file(Hca *h, const char *property, const char *file)
{
    qtest_qmp_assert_success(h->qts, "{ 'execute': 'qom-set', 'arguments': { "
                             "'path': '/machine/peripheral/h0', 'property': "
                             "%s, 'value': %s } }", property, file);
}

static void test_dump(void)
{
    g_autofree char *file = NULL;
    g_autofree char *pcap = NULL;
    Peer p;
    Eth e = { };
    Hca *h = link_start(&p, "q35", true);
    gsize len;

    file = g_strdup_printf("%s/pcap", p.folder);
    eth_bring_up(h, &e);
    both_ways(h, &e, &p, 1);
    set_file(h, "shm-dump", file);
    both_ways(h, &e, &p, 3);
    set_file(h, "shm-dump", "");
    both_ways(h, &e, &p, 5);
    g_assert_true(g_file_get_contents(file, &pcap, &len, NULL));
    g_assert_cmpuint(len, ==, 24 + 16 + 64 + 16 + 100);
    g_assert_cmphex((uint32_t)ldl_he_p(pcap), ==, 0xa1b2c3d4);
    g_assert_cmpuint(ldl_he_p(pcap + 24 + 8), ==, 64);
    g_assert_cmpuint(ldl_be_p(pcap + 24 + 16 + 60), ==, 3);
    g_assert_cmpuint(ldl_he_p(pcap + 104 + 12), ==, 100);
    g_assert_cmpuint(ldl_be_p(pcap + 104 + 16 + 96), ==, 4);
    unlink(file);
    link_stop(h, &p);
}

/* How many lines of a timeline have this mark; the times do not go backwards. */
static unsigned int count_marks(char *const *lines, const char *name)
{
    unsigned int num = 0;
    gint64 last = 0;

    for (int i = 0; *lines[i]; i++) {
        g_auto(GStrv) words = g_strsplit(lines[i], " ", -1);
        gint64 ns = g_ascii_strtoll(words[0], NULL, 10);

        g_assert_cmpuint(g_strv_length(words), ==, 5);
        g_assert_cmpint(ns, >=, last);
        last = ns;
        num += !strcmp(words[2], name);
    }
    return num;
}

static void test_timeline(void)
{
    g_autofree char *file = NULL;
    g_autofree char *text = NULL;
    g_auto(GStrv) lines = NULL;
    Peer p;
    Eth e = { };
    Hca *h = link_start(&p, "q35", true);

    file = g_strdup_printf("%s/timeline", p.folder);
    eth_bring_up(h, &e);
    both_ways(h, &e, &p, 1);
    set_file(h, "timeline", file);
    both_ways(h, &e, &p, 3);
    g_assert_false(g_file_test(file, G_FILE_TEST_EXISTS));
    set_file(h, "timeline", "");
    both_ways(h, &e, &p, 5);
    g_assert_true(g_file_get_contents(file, &text, NULL, NULL));
    lines = g_strsplit(text, "\n", -1);
    g_assert_cmpuint(count_marks(lines, "placed"), ==, 1);
    g_assert_cmpuint(count_marks(lines, "doorbell"), >=, 1);
    g_assert_cmpuint(count_marks(lines, "doorbell"), ==,
                     count_marks(lines, "enter"));
    g_assert_cmpuint(count_marks(lines, "none"), ==, 0);
    unlink(file);

    /* The next one begins anew. */
    g_clear_pointer(&text, g_free);
    set_file(h, "timeline", file);
    set_file(h, "timeline", "");
    g_assert_true(g_file_get_contents(file, &text, NULL, NULL));
    g_assert_null(strstr(text, "placed"));
    unlink(file);
    link_stop(h, &p);
}

/*
 * The peer sends a packet that is for no queue pair, without ICRC; returns what
 * the Ethernet queue gets in the place of the ICRC.
 */
static uint32_t icrc_of_packet(Hca *h, Eth *e, Peer *p)
{
    static const uint8_t headers[] = {
        0x08, 0x00, 0x45, 0, 0, 50, 0, 0, 0, 0, 64, 17, 0x66, 0xb9, 10, 0, 0, 1,
        10, 0, 0, 2, 0xc0, 0, 4791 >> 8, 4791 & 0xff, 0, 30, 0, 0,
    };
    gint64 end = g_get_monotonic_time() + ANSWER_S * G_USEC_PER_SEC;
    uint8_t *frame;
    uint32_t got;

    eth_post_receives(h, e);
    frame = hca_slots_reserve(&p->mem.tx);
    g_assert_nonnull(frame);
    memset(frame, 0, 64);
    memset(frame, 0xff, 6);
    memcpy(frame + 12, headers, sizeof(headers));
    hca_slots_commit(&p->mem.tx, 64);
    peer_wake(p);
    while (!eth_received(h, e, &got)) {
        g_assert_cmpint(g_get_monotonic_time(), <, end);
    }
    return got;
}

/* What one peer has agreed to is of no effect for the next one. */
static void icrc_of(const char *machine, bool agrees)
{
    Peer p;
    Eth e = { };
    Hca *h = link_start(&p, machine, true);

    eth_bring_up(h, &e);
    g_assert_cmphex(icrc_of_packet(h, &e, &p), ==, 0);
    for (int n = 0; n < 3; n++) {
        peer_leave(&p);
        wait_link(h, 0);
        link_wish.offers = n & 1 ? 0 : HCA_INTRO_NO_ICRC;
        peer_connect(&p);
        wait_link(h, QHCA_LINK_UP);
        g_assert_cmpint(!!icrc_of_packet(h, &e, &p), ==,
                        agrees && link_wish.offers);
    }
    link_wish.offers = 0;
    link_stop(h, &p);
}

static void test_icrc(void)
{
    icrc_of("q35", true);
    icrc_of("q35 -global qhca.shm-icrc=on", false);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);

    qtest_add_func("/qhca-link/listens", test_listens);
    qtest_add_func("/qhca-link/connects", test_connects);
    qtest_add_func("/qhca-link/viommu", test_viommu);
    qtest_add_func("/qhca-link/full", test_full);
    qtest_add_func("/qhca-link/burst", test_burst);
    qtest_add_func("/qhca-link/set-link", test_set_link);
    qtest_add_func("/qhca-link/polls", test_polls);
    qtest_add_func("/qhca-link/polls-on", test_polls_on);
    qtest_add_func("/qhca-link/polls-idle", test_polls_idle);
    qtest_add_func("/qhca-link/polls-wrongly", test_polls_wrongly);
    qtest_add_func("/qhca-link/back-to-listener", test_back_to_listener);
    qtest_add_func("/qhca-link/back-to-connecter", test_back_to_connecter);
    qtest_add_func("/qhca-link/rude-introductions", test_rude_introductions);
    qtest_add_func("/qhca-link/unplug", test_unplug);
    qtest_add_func("/qhca-link/bad-slots", test_bad_slots);
    qtest_add_func("/qhca-link/garbage", test_garbage);
    qtest_add_func("/qhca-link/stopped", test_stopped);
    qtest_add_func("/qhca-link/dump", test_dump);
    qtest_add_func("/qhca-link/timeline", test_timeline);
    qtest_add_func("/qhca-link/icrc", test_icrc);
    return g_test_run();
}
