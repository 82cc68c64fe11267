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
 * then gets one by one.  To find this out, a doorbell does not wait now and then: if the next
 * one precedes the message, there are no such waits either.
 *
 * Only a link over shared memory has all this, and only for the physical function.  On others
 * frames come to the main loop.
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
#define QHCA_AWAIT_TRY      256         /* doorbells, of which one does not wait */
#define QHCA_AWAIT_BUDGET   16          /* frames */
#define QHCA_AWAIT_WAIT_NS  (30 * SCALE_US)     /* for the next frame */
#define QHCA_AWAIT_MAX_NS   (60 * SCALE_US)     /* of a vCPU, and of the BQL with TCG */

uint64_t qhca_messages(QhcaState *s)
{
    return qhca_counter(s->hca, 0, QHCA_CNT_tx_acks);
}

void qhca_received(QhcaState *s, uint64_t before)
{
    if (qhca_messages(s) != before) {
        s->await.came_at = get_clock();
    }
}

static void qhca_await_stop(QhcaAwait *await, bool was_right)
{
    await->score = 0;
    await->doubled = was_right ? 0 : MIN(await->doubled + 1, QHCA_AWAIT_DOUBLED_MAX);
}

/* No vCPU waits yet.  Does this doorbell answer a message? */
static void qhca_await_learn(QhcaAwait *await, bool answers)
{
    if (answers) {
        await->run++;
    } else {
        await->run -= MIN(await->run, QHCA_AWAIT_BREAK);
    }
    if (await->run >= QHCA_AWAIT_RUN << await->doubled) {
        await->score = QHCA_AWAIT_SCORE;
        await->run = 0;
        await->waits = 0;
        await->last = QHCA_AWAIT_NONE;
    }
}

/* What the last doorbell did was right if this one follows its message, and promptly. */
static void qhca_await_judge(QhcaAwait *await, bool fresh, int64_t since)
{
    const int64_t prompt_ns = await->waits <= QHCA_AWAIT_FIRST ? QHCA_AWAIT_LATER_NS :
                                                                 QHCA_AWAIT_PROMPT_NS;
    bool right = await->last == QHCA_AWAIT_CAME && since <= prompt_ns;

    if (await->last == QHCA_AWAIT_NONE) {
        return;
    }
    if (await->last == QHCA_AWAIT_TRIED) {
        if (!fresh) {
            qhca_await_stop(await, false);
        }
        return;
    }
    if (right) {
        await->score = MIN(await->score + 1, QHCA_AWAIT_SCORE);
    } else if (await->score > QHCA_AWAIT_MISS) {
        await->score -= QHCA_AWAIT_MISS;
    } else {
        qhca_await_stop(await, await->waits >= QHCA_AWAIT_TRY);
    }
}

bool qhca_will_await(QhcaState *s)
{
    QhcaAwait *await = &s->await;
    const uint64_t messages = qhca_messages(s);
    const bool fresh = await->messages != messages;
    const int64_t since = get_clock() - await->came_at;

    if (!s->link.path || !current_cpu || qatomic_read(&s->dma_iommu)) {
        return false;
    }
    await->messages = messages;
    if (await->score) {
        qhca_await_judge(await, fresh, since);
    } else {
        qhca_await_learn(await, fresh && since <= QHCA_AWAIT_LATER_NS);
    }
    if (!await->score) {
        return false;
    }
    if (++await->waits % QHCA_AWAIT_TRY == QHCA_AWAIT_RUN) {
        await->last = QHCA_AWAIT_TRIED;
        return false;
    }
    qhca_link_attend(s);
    return true;
}

/*
 * The peer is woken with the lock held, since its answer is awaited here.  A wait that ends
 * because somebody else wants the engine says nothing.
 */
void qhca_await(QhcaState *s)
{
    QhcaAwait *await = &s->await;
    const int64_t end = get_clock() + QHCA_AWAIT_MAX_NS;
    bool came;

    s->stats.awaits++;
    do {
        if (qhca_link_wakes_peer(s)) {
            qhca_link_wake_peer(s);
        }
        qhca_slice(s, QHCA_AWAIT_BUDGET);
        came = qhca_messages(s) != await->messages;
    } while (!came && qhca_polled_again(s, end, QHCA_AWAIT_WAIT_NS));
    qhca_link_attended(s);
    qhca_received(s, await->messages);
    s->stats.await_hits += came;
    await->last = came ? QHCA_AWAIT_CAME :
                  qhca_is_wanted(s) ? QHCA_AWAIT_NONE : QHCA_AWAIT_MISSED;
}
