/*
 * qhca adapter: vCPUs that wait in a doorbell for its answer
 *
 * Two programs that answer each other, one message at a time, wait for each message.  One that
 * polls a CQ says so after a while (qhca-hint.c).  One that polls the memory where a WRITE is to
 * come never does: the device's thread must be woken for the WRITE, and takes the processor
 * from the very program that waits, which takes longer than all else.  So when doorbells
 * promptly follow messages, one after the other, the vCPU waits in the next ones until a message
 * has come, and does the device's work meanwhile.
 *
 * What the program would do after the doorbell, but for waiting, is late by that.  Then its next
 * doorbell follows the message less promptly, and soon there are no such waits.  Software that
 * rings several doorbells before it waits would see each of them wait for a message, which it
 * then gets one by one; and software to which messages come that have nothing to do with its
 * doorbells would wait as well.  To find these out, a doorbell does not wait now and then: if the
 * next one precedes the message, or comes earlier than it did with waits, twice, there are no more.
 *
 * The physical function has all this on a link over shared memory.  On other links frames come
 * to the main loop.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/timer.h"
#include "hw/core/cpu.h"
#include "qhca-dev.h"

#define QHCA_AWAIT_RUN      16          /* doorbells until vCPUs wait */
#define QHCA_AWAIT_BREAK    2           /* of the run, for a doorbell that answers no message */
#define QHCA_AWAIT_DOUBLED_MAX 4
#define QHCA_AWAIT_LATER_NS (20 * SCALE_US)     /* what the thread received takes effect */
#define QHCA_AWAIT_PROMPT_NS (10 * SCALE_US)     /* and what the vCPU has, */
#define QHCA_AWAIT_FIRST    64          /* but not in the first waits: the peer's do not yet */
#define QHCA_AWAIT_SCORE    64
#define QHCA_AWAIT_MISS     4           /* of the score */
#define QHCA_AWAIT_TRY      256         /* waits until one more doorbell does not wait, */
#define QHCA_AWAIT_TRY_MAX  4096        /* and each time twice as many until the next */
#define QHCA_AWAIT_MEDIAN   16          /* a step of the time between doorbells is this part */
#define QHCA_AWAIT_BUDGET   16          /* frames */

uint64_t qhca_messages(QhcaState *s)
{
    return qhca_answered(s->hca, 0);
}

void qhca_received(QhcaState *s)
{
    const uint64_t messages = qhca_messages(s);

    if (messages != s->await.received) {
        s->await.received = messages;
        s->await.came_at = get_clock();
    }
}

void qhca_await_forget(QhcaState *s)
{
    memset(&s->await, 0, sizeof(s->await));
    if (s->hca) {
        s->await.messages = s->await.received = qhca_messages(s);
    }
}

/*
 * If it was right until now that vCPUs wait, they may soon do so again.  Else it takes longer.
 * Both ends count the same messages, and waits are of use if those of both begin at about the same
 * time: so how much longer is left to chance.
 */
static void qhca_await_stop(QhcaAwait *await, bool was_right)
{
    uint32_t least;

    qatomic_set(&await->score, 0);
    await->doubled = was_right ? 0 : MIN(await->doubled + 1, QHCA_AWAIT_DOUBLED_MAX);
    least = QHCA_AWAIT_RUN << await->doubled;
    await->more_run = was_right ? 0 : least - QHCA_AWAIT_RUN + g_random_int_range(0, least);
}

/* No vCPU waits yet.  Does this doorbell answer a message? */
static void qhca_await_learn(QhcaAwait *await, bool answers)
{
    if (answers) {
        await->run++;
    } else {
        await->run -= MIN(await->run, QHCA_AWAIT_BREAK);
    }
    if (await->run >= QHCA_AWAIT_RUN + await->more_run) {
        qatomic_set(&await->score, QHCA_AWAIT_SCORE);
        await->run = 0;
        await->waits = 0;
        await->next_try = QHCA_AWAIT_RUN;
        await->try_after = QHCA_AWAIT_TRY;
        await->doubted = false;
        await->proved = false;
        await->interval = 0;
    }
}

/*
 * The time between doorbells that wait: its median, in which those do not count for much between
 * which the host did something else.
 */
static void qhca_await_measure(QhcaAwait *await, int64_t interval)
{
    const int64_t step = await->interval / QHCA_AWAIT_MEDIAN + 1;

    if (!await->interval) {
        await->interval = interval;
    } else {
        await->interval += interval > await->interval ? step : -step;
    }
}

/* Returns whether nothing is left of the score, so that the waits end. */
static bool qhca_await_pay(QhcaAwait *await, uint32_t price)
{
    qatomic_set(&await->score, await->score - MIN(await->score, price));
    return !await->score;
}

/*
 * For a hint, or a wait that others have ended.  If the waits end by that, it says little of how
 * right they were.  But there may have been many, or the last one was in vain.
 */
static void qhca_await_pay_one(QhcaAwait *await)
{
    const bool many = await->waits >= QHCA_AWAIT_TRY;

    if (qhca_await_pay(await, 1) && (many || await->last == QHCA_AWAIT_MISSED)) {
        qhca_await_stop(await, many);
    }
}

/*
 * The last doorbell did not wait, to see what happens.  Two such doorbells in a row must say that
 * waits are of no use: one may be that of another program.  How long it takes with waits is not
 * known yet in the first ones.
 */
static void qhca_await_tried(QhcaAwait *await, bool fresh, int64_t interval)
{
    const bool known = await->waits > QHCA_AWAIT_FIRST;

    if (fresh && !(known && interval < await->interval * 3 / 4)) {
        await->doubted = false;
        await->proved |= known;
    } else if (await->doubted) {
        qhca_await_stop(await, await->proved);
    } else {
        await->doubted = true;
        await->next_try = await->waits + QHCA_AWAIT_RUN;
    }
}

/* What the last doorbell did was right if this one follows its message, and promptly. */
static void qhca_await_judge(QhcaAwait *await, bool fresh, int64_t since, int64_t interval)
{
    const int64_t prompt_ns = await->waits <= QHCA_AWAIT_FIRST ? QHCA_AWAIT_LATER_NS :
                                                                 QHCA_AWAIT_PROMPT_NS;

    switch (await->last) {
    case QHCA_AWAIT_NONE:
        qhca_await_pay_one(await);
        return;
    case QHCA_AWAIT_TRIED:
        qhca_await_tried(await, fresh, interval);
        return;
    case QHCA_AWAIT_CAME:
        qhca_await_measure(await, interval);
        if (since <= prompt_ns) {
            qatomic_set(&await->score, MIN(await->score + 1, QHCA_AWAIT_SCORE));
            return;
        }
        break;
    case QHCA_AWAIT_MISSED:
        break;
    }
    if (qhca_await_pay(await, QHCA_AWAIT_MISS)) {
        qhca_await_stop(await, await->waits >= QHCA_AWAIT_TRY);
    }
}

bool qhca_awaits(QhcaState *s)
{
    return qatomic_read(&s->await.score) && s->link.peer && !s->link.down;
}

/* One that waits for single messages seldom polls.  This may also be another program. */
bool qhca_awaits_hinted(QhcaState *s)
{
    if (!qhca_awaits(s)) {
        return false;
    }
    qhca_await_pay_one(&s->await);
    return true;
}

bool qhca_will_await(QhcaState *s)
{
    QhcaAwait *await = &s->await;
    const bool can_wait = s->await_max_us && s->link.peer && !s->link.down && current_cpu &&
                          !qatomic_read(&s->dma_iommu) && !icount_enabled();
    int64_t now, interval, since;
    uint64_t messages;
    bool fresh;

    if (!can_wait) {
        return false;
    }
    now = get_clock();
    messages = qhca_messages(s);
    fresh = await->messages != messages;
    since = now - await->came_at;
    interval = now - await->rung_at;
    await->messages = messages;
    await->acks = qhca_counter(s->hca, 0, QHCA_CNT_tx_acks);
    await->rung_at = now;
    if (await->score) {
        qhca_await_judge(await, fresh, since, interval);
    } else {
        qhca_await_learn(await, fresh && since <= QHCA_AWAIT_LATER_NS);
    }
    if (!await->score) {
        return false;
    }
    if (++await->waits == await->next_try) {
        await->next_try += await->try_after;
        await->try_after = MIN(await->try_after * 2, QHCA_AWAIT_TRY_MAX);
        await->last = QHCA_AWAIT_TRIED;
        return false;
    }
    qhca_link_attend(s);
    return true;
}

/* With the lock held, since the peer's answer is awaited here. */
static void qhca_await_wake_peer(QhcaState *s)
{
    if (qhca_link_wakes_peer(s)) {
        qhca_link_wake_peer(s);
    }
}

/*
 * A wait that ends because somebody else wants the engine says little, and so does one in which
 * a part of a long message has come.
 */
bool qhca_await(QhcaState *s)
{
    QhcaAwait *await = &s->await;
    const int64_t max = s->await_max_us * (int64_t)SCALE_US;
    int64_t end = get_clock() + max;
    bool came = qhca_messages(s) != await->messages, part;

    if (came || qhca_is_wanted(s)) {
        qhca_link_attended(s);
        await->last = came ? QHCA_AWAIT_CAME : QHCA_AWAIT_NONE;
        return came;
    }
    s->stats.awaits++;
    do {
        qhca_await_wake_peer(s);        /* for what this vCPU has sent */
        qhca_slice(s, QHCA_AWAIT_BUDGET);
        came = qhca_messages(s) != await->messages;
        if (!came && s->link.sent) {
            qhca_await_wake_peer(s);    /* for what the slice has sent to others */
        }
    } while (!came && qhca_polled_again(s, &end, max / 2));
    qhca_link_attended(s);
    s->stats.await_hits += came;
    part = qhca_counter(s->hca, 0, QHCA_CNT_tx_acks) != await->acks;
    await->last = came ? QHCA_AWAIT_CAME :
                  part || qhca_is_wanted(s) ? QHCA_AWAIT_NONE : QHCA_AWAIT_MISSED;
    return came;
}
