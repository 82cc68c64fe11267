/*
 * Test of the qhca RDMA adapter: vCPUs that wait in a doorbell for the answer
 *
 * These are tests of qhca-lock-test.c, which includes this file, and has the device and the
 * parts that stand for the link.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef TESTS_QTEST_QHCA_LOCK_ANSWERS_H
#define TESTS_QTEST_QHCA_LOCK_ANSWERS_H

#define RUN             16              /* doorbells that answer, until vCPUs wait */
#define FIRST           64              /* waits after which answers are to be prompt */
#define TRY             256             /* waits after the 16th until one more does not wait */
#define TRY_MAX         4096            /* each time twice as many */
#define MISSES          16              /* in a row, after which they no longer wait */

static CPUState cpu;

static void answers_start(void)
{
    static char peer;

    start();
    current_cpu = &cpu;
    s->yield_max_us = PATIENCE_MS * 1000;   /* however busy the host is, none is skipped */
    s->await_max_us = 60;
    s->link.peer = (QhcaPeer *)&peer;       /* nobody here looks into it */
    answer_in = 0;
}

static void answers_stop(void)
{
    current_cpu = NULL;
    answer_in = 0;
    s->waiters = 0;
    s->link.peer = NULL;
    stop();
}

/* Of the doorbells that ring. */
static MemTxAttrs ring_attrs;

/* Ring a send queue's doorbell.  Did the vCPU wait? */
static bool rings(QhcaFunction *f)
{
    const uint64_t waited = s->stats.awaits;

    g_assert_cmpint(qhca_doorbells_ops.write_with_attrs(f, QHCA_DB_SQ, 0, 8, ring_attrs), ==,
                    MEMTX_OK);
    g_assert_false(attends);
    g_assert_true(bql_locked());
    return s->stats.awaits != waited;
}

/* Answer a message that the thread has received some time ago. */
static bool answers_after(QhcaFunction *f, int64_t ns)
{
    qhca_lock(s);
    parts_messages++;
    qhca_received(s);
    s->await.came_at -= ns;
    qhca_leave_undone(s);
    return rings(f);
}

#define LONG_NS         ((int64_t)PATIENCE_MS * SCALE_MS)

/* At once: in the future, so that it does not matter what else the host does. */
static bool answers(void)
{
    return answers_after(&s->pf, -LONG_NS);
}

/*
 * The answer comes while the vCPU waits, after two slices of waiting, and the next doorbell
 * follows promptly, or late.  The time between doorbells is always about the same.
 */
static bool exchanges(bool prompt)
{
    bool waited;

    s->await.came_at = prompt ? LONG_NS : -LONG_NS;
    s->await.came_at += get_clock();
    s->await.rung_at = get_clock() - LONG_NS;
    answer_in = 3;
    waited = rings(&s->pf);
    if (waited) {
        g_assert_cmpuint(answer_in, ==, 0);
        g_assert_false(has_bql);
        g_assert_cmpint(s->await.came_at, <=, get_clock());
        g_assert_cmpint(s->await.came_at, >, get_clock() - LONG_NS);
    } else {
        answer_in = 0;
        parts_messages++;   /* to the thread */
    }
    return waited;
}

/*
 * Answer so many messages without a wait, after which the next one waits; but up to twice as many,
 * as chance has it, if vCPUs have waited in vain.
 */
static void learn(unsigned int least)
{
    const unsigned int run = RUN + s->await.more_run;

    g_assert_cmpuint(run, >=, least);
    g_assert_cmpuint(run, <, least == RUN ? RUN + 1 : 2 * least);
    s->await.run = 0;
    for (unsigned int i = 0; i < run - 1; i++) {
        g_assert_false(answers());
        g_assert_true(rung_with_bql);
    }
    answer_in = 2;
    g_assert_true(answers());
    g_assert_cmpuint(answer_in, ==, 0);
    g_assert_cmpuint(s->await.waits, ==, 1);
}

static void never_wait(QhcaFunction *f, int64_t ns)
{
    for (int i = 0; i < 3 * RUN; i++) {
        g_assert_false(answers_after(f, ns));
    }
}

/* Only a vCPU's doorbells of the physical function's send queues wait, after some answers. */
static void test_answers(void)
{
    QhcaFunction vf = { .gvmi = 1 };
    QhcaPeer *peer;

    answers_start();
    peer = s->link.peer;
    vf.s = s;
    vf.dev = s->pf.dev;
    never_wait(&vf, -LONG_NS);
    never_wait(&s->pf, LONG_NS);        /* late */
    current_cpu = NULL;
    never_wait(&s->pf, -LONG_NS);
    current_cpu = &cpu;
    ring_attrs.memory = 1;              /* another device's, which may rely on the BQL */
    never_wait(&s->pf, -LONG_NS);
    ring_attrs.memory = 0;
    qatomic_set(&s->dma_iommu, true);
    never_wait(&s->pf, -LONG_NS);
    qatomic_set(&s->dma_iommu, false);
    s->await_max_us = 0;
    never_wait(&s->pf, -LONG_NS);
    s->await_max_us = 60;
    s->link.down = true;
    never_wait(&s->pf, -LONG_NS);
    s->link.down = false;
    s->link.peer = NULL;
    never_wait(&s->pf, -LONG_NS);
    s->link.peer = peer;
    rings(&s->pf);                      /* has seen what came meanwhile */
    for (int i = 0; i < 3 * RUN; i++) {
        s->await.came_at = get_clock() + LONG_NS;
        g_assert_false(rings(&s->pf));  /* none came */
    }
    s->await.run = 0;
    /* Those that answer nothing break a run, though not at once. */
    for (int i = 0; i < 10; i++) {
        g_assert_false(answers());
        g_assert_false(answers());
        g_assert_false(rings(&s->pf));
    }
    learn(RUN);
    g_assert_cmpuint(s->stats.await_hits, ==, 1);
    /* Doorbells of others do not wait, and change nothing. */
    ring_doorbell();
    g_assert_false(rings(&vf));
    current_cpu = NULL;
    g_assert_false(rings(&s->pf));
    current_cpu = &cpu;
    ring_attrs.memory = 1;
    g_assert_false(rings(&s->pf));
    ring_attrs.memory = 0;
    g_assert_cmpint(qhca_doorbells_ops.write_with_attrs(&s->pf, QHCA_DB_CQ_ARM, 0, 8,
                                                        (MemTxAttrs) { 0 }), ==, MEMTX_OK);
    g_assert_cmpuint(s->stats.awaits, ==, 1);
    /* The peer is woken before the vCPU waits for it. */
    peer_sleeps = true;
    g_assert_true(exchanges(true));
    g_assert_cmpuint(s->stats.await_hits, ==, 2);
    answers_stop();
}

/* What the thread receives counts as well. */
static void test_answers_thread(void)
{
    const gint64 end = g_get_monotonic_time() + PATIENCE_MS * 1000;

    answers_start();
    answer_in = 1;
    qhca_kick(s);
    while (!qatomic_read(&s->await.came_at)) {
        g_assert_cmpint(g_get_monotonic_time(), <, end);
        g_usleep(100);
    }
    answers_stop();
}

/* One in many does not wait, and each time it is one in twice as many. */
static void test_answers_try(void)
{
    unsigned int next = RUN, after = TRY;

    answers_start();
    learn(RUN);
    for (unsigned int i = 2; i < 5 * TRY_MAX; i++) {
        bool tries = i == next;

        if (tries) {
            next += after;
            after = MIN(2 * after, TRY_MAX);
        }
        g_assert_cmpint(exchanges(true), ==, !tries);
    }
    answers_stop();
}

/* The next doorbell that does not wait: without a wait the program does not wait, or is faster. */
static bool try_fails(bool faster)
{
    while (exchanges(true)) {
    }
    if (faster) {
        s->await.came_at = get_clock() + LONG_NS;
        s->await.rung_at = get_clock() - LONG_NS / 2;
    } else {
        parts_messages--;       /* the one that exchanges() had come to the thread */
    }
    answer_in = 2;
    rings(&s->pf);
    answer_in = 0;
    return !s->await.score;
}

/* Two in a row that do not wait have to find out that waits are of no use. */
static void test_answers_doubt(void)
{
    answers_start();
    learn(RUN);
    g_assert_false(try_fails(false));
    g_assert_cmpuint(s->await.next_try, ==, 2 * RUN);
    g_assert_true(try_fails(false));
    learn(2 * RUN);
    g_assert_false(try_fails(true));
    g_assert_false(try_fails(true));
    g_assert_true(try_fails(true));
    learn(4 * RUN);                     /* no try had been good, though there were many waits */
    g_assert_false(try_fails(true));
    g_assert_false(s->await.doubted);   /* how long it takes is not known so early */
    g_assert_false(try_fails(true));
    while (exchanges(true)) {
    }
    exchanges(true);                    /* this try was good */
    g_assert_false(s->await.doubted);
    g_assert_false(try_fails(true));
    g_assert_true(try_fails(true));
    learn(RUN);                         /* it was right for long, and the doubt is forgotten */
    g_assert_false(try_fails(false));
    answers_stop();
}

/* A program that does something else before it answers is not made to wait for long. */
static void test_answers_late(void)
{
    unsigned int waits;

    answers_start();
    learn(RUN);
    for (waits = 1; s->await.score; waits++) {
        exchanges(false);
        g_assert_cmpuint(waits, <=, 2 * MISSES);
    }
    g_assert_cmpuint(waits, >, MISSES / 2);
    /* Then it takes longer to find out anew, but not if it was right for long. */
    for (int doubled = 1; doubled < 6; doubled++) {
        learn(RUN << MIN(doubled, 4));
        while (s->await.score) {
            exchanges(false);
        }
    }
    learn(RUN << 4);
    for (int i = 0; i < TRY; i++) {
        exchanges(i % 5);           /* one in five is late, which is not too many */
        g_assert_cmpuint(s->await.score, >, 32);
    }
    while (s->await.score) {
        exchanges(false);
    }
    learn(RUN);
    answers_stop();
}

/* An answer may be a little late after the first waits, and not after later ones. */
static void test_answers_first(void)
{
    bool seen = false;

    answers_start();
    learn(RUN);
    while (s->await.score && s->await.waits < FIRST + RUN) {
        uint32_t score = s->await.score;
        bool first = s->await.waits <= FIRST, judged = s->await.last == QHCA_AWAIT_CAME;

        s->await.came_at = get_clock() - 15 * SCALE_US;
        answer_in = 2;
        rings(&s->pf);
        if (answer_in) {
            answer_in = 0;
            parts_messages++;
        }
        if (first && s->await.waits > 2) {
            seen |= judged && s->await.score >= score;      /* the host may do else meanwhile */
            s->await.score = 2 * MISSES;
        } else if (!first && judged) {
            g_assert_cmpuint(s->await.score, <, score);
        }
        s->await.interval = 0;
    }
    g_assert_true(seen);
    answers_stop();
}

/* Nothing comes.  The vCPU waits for a short time, and a few times. */
static void test_answers_missed(void)
{
    unsigned int waits = 0;
    uint64_t yields;

    answers_start();
    learn(RUN);
    yield_us = 2 * s->await_max_us; /* the host is busy */
    s->await.waits = RUN;           /* so that no doorbell is to see what happens without */
    yields = s->stats.yields;
    for (;;) {
        s->await.came_at = get_clock() + LONG_NS;   /* not that it were late */
        sends = true;
        if (!rings(&s->pf)) {
            break;
        }
        sends = false;
        waits++;
        g_assert_cmpuint(waits, <=, MISSES + 1);
        g_assert_cmpuint(s->stats.yields, ==, yields + waits);
    }
    sends = false;
    yield_us = 0;
    g_assert_cmpuint(waits, >=, MISSES - 1);
    g_assert_cmpuint(s->stats.await_hits, ==, 1);
    learn(2 * RUN);
    answers_stop();
}

/* A part of a long message ends no wait, and a wait in which only a part comes counts back little. */
static void test_answers_parts(void)
{
    answers_start();
    learn(RUN);
    s->await.next_try = 0;
    part_in = 2;
    g_assert_true(exchanges(true));
    g_assert_cmpuint(part_in, ==, 0);
    g_assert_cmpuint(s->await.last, ==, QHCA_AWAIT_CAME);
    for (int i = 0; i < RUN; i++) {
        uint32_t score = s->await.score;

        s->await.came_at = get_clock() + LONG_NS;
        part_in = 2;
        g_assert_true(rings(&s->pf));
        g_assert_cmpuint(part_in, ==, 0);
        g_assert_cmpuint(s->await.last, ==, QHCA_AWAIT_NONE);
        if (i) {
            g_assert_cmpuint(s->await.score, ==, score - 1);
        }
    }
    answers_stop();
}

/*
 * Somebody else wants the engine, before a wait or in it.  It ends, and counts back a little,
 * unless the message has come before.
 */
static void test_answers_wanted(void)
{
    answers_start();
    learn(RUN);
    g_assert_true(exchanges(true));
    s->await.next_try = 0;
    for (int come_late = 0; come_late < 2; come_late++) {
        for (int i = 0; i < RUN; i++) {
            uint32_t score = s->await.score;

            others_in = come_late ? 2 : 0;
            qatomic_set(&s->waiters, !come_late);
            s->await.came_at = get_clock() + LONG_NS;
            g_assert_cmpint(rings(&s->pf), ==, come_late);
            if (i) {
                g_assert_cmpuint(s->await.score, ==, score - 1);
            }
        }
    }
    g_assert_cmpuint(s->stats.await_hits, ==, 2);
    qatomic_set(&s->waiters, 1);
    answer_in = 1;
    rings(&s->pf);
    g_assert_cmpuint(s->await.last, ==, QHCA_AWAIT_CAME);
    while (s->await.score) {
        rings(&s->pf);
    }
    g_assert_cmpuint(s->await.doubled, ==, 0);      /* nobody has waited in vain */
    qatomic_set(&s->waiters, 0);
    /* It is as it was before how long it takes to begin anew, but if there have been many. */
    for (int many = 0; many < 2; many++) {
        s->await.doubled = 3;
        s->await.more_run = 7 * RUN;
        learn(RUN << 3);
        s->await.waits = many ? TRY : RUN + 1;
        qatomic_set(&s->waiters, 1);
        while (s->await.score) {
            rings(&s->pf);
        }
        qatomic_set(&s->waiters, 0);
        g_assert_cmpuint(s->await.doubled, ==, many ? 0 : 3);
        g_assert_cmpuint(s->await.more_run, ==, many ? 0 : 7 * RUN);
    }
    answers_stop();
}

/* The message comes in the doorbell's own slice: there is nothing to wait for. */
static void test_answers_at_once(void)
{
    uint64_t slices;

    answers_start();
    learn(RUN);
    slices = s->stats.slices;
    s->await.came_at = get_clock() + LONG_NS;
    answer_in = 1;
    g_assert_false(rings(&s->pf));
    g_assert_cmpuint(answer_in, ==, 0);
    g_assert_cmpuint(s->stats.slices, ==, slices + 1);
    g_assert_cmpuint(s->stats.await_hits, ==, 1);
    g_assert_cmpuint(s->await.last, ==, QHCA_AWAIT_CAME);
    answers_stop();
}

/*
 * The host takes the processor in a slice until the time of the wait is over.  Then there is one
 * slice more, if there is work for it.  What a slice sends wakes the peer at once.
 */
static void test_answers_slices(void)
{
    for (unsigned int slices = 2; slices < 4; slices++) {
        answers_start();
        learn(RUN);
        slice_us = 1000;
        answer_in = 1 + slices;         /* the doorbell has a slice of its own */
        g_assert_true(rings(&s->pf));
        g_assert_cmpuint(s->stats.await_hits, ==, slices == 2 ? 2 : 1);
        slice_us = 0;
        answers_stop();
    }
    answers_start();
    learn(RUN);
    s->await_max_us = 1000;
    sends_in = 2;
    answer_in = 3;
    g_assert_true(rings(&s->pf));
    g_assert_false(peer_sleeps);
    g_assert_cmpuint(answer_in, ==, 0);
    answers_stop();
}

/* Does a hint attend as a doorbell that waits does, and is no nap for it? */
static bool hint_attends(void)
{
    const uint64_t polls = s->stats.polls;

    naps = has_bql = false;
    poll_in_vain(&s->pf);
    g_assert_cmpuint(s->stats.polls, ==, polls + 1);
    g_assert_false(attends);
    g_assert_cmpint(naps, !=, has_bql);     /* this is written while a vCPU attends */
    return has_bql;
}

/* A program polls whose doorbells wait, if there is a peer that it could wait for. */
static void test_answers_hint(void)
{
    QhcaPeer *peer;

    answers_start();
    peer = s->link.peer;
    qatomic_set(&s->link.asleep, true);
    g_assert_false(hint_attends());
    learn(RUN);
    g_assert_true(hint_attends());
    s->link.down = true;
    g_assert_false(hint_attends());
    s->link.down = false;
    s->link.peer = NULL;
    g_assert_false(hint_attends());
    s->link.peer = peer;
    /* This program only polls, and the other one may have ended. */
    for (int i = 0; i < 64 - 1; i++) {
        g_assert_true(hint_attends());
    }
    g_assert_false(hint_attends());
    g_assert_cmpuint(s->await.doubled, ==, 0);
    /* If the last wait was in vain it takes longer to begin anew, ... */
    for (int doubled = 1; doubled < 3; doubled++) {
        learn(RUN << (doubled - 1));
        s->await.last = QHCA_AWAIT_MISSED;
        while (s->await.score) {
            hint_attends();
        }
        g_assert_cmpuint(s->await.doubled, ==, doubled);
    }
    /* ... but no longer if there have been many. */
    learn(RUN << 2);
    for (int i = 0; i < TRY; i++) {
        exchanges(true);
    }
    while (s->await.score) {
        hint_attends();
    }
    learn(RUN);
    qatomic_set(&s->link.asleep, false);
    answers_stop();
}

#endif /* TESTS_QTEST_QHCA_LOCK_ANSWERS_H */
