/*
 * qhca adapter: how the device's thread waits for work
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/processor.h"
#include "qemu/timer.h"
#include "qhca-dev.h"
#include "trace.h"

#define QHCA_POLL_START_NS  4000

/* Is there a reason not to sleep? */
static bool qhca_thread_called(QhcaState *s)
{
    return qatomic_read(&s->kicked) || qatomic_read(&s->quit) ||
           (s->link.path && qhca_link_called(s));
}

/* Sleep until there is one.  Returns whether the thread slept. */
static bool qhca_thread_sleep(QhcaState *s)
{
    if (s->link.path) {
        return qhca_link_sleep(s);
    }
    qemu_event_reset(&s->wake);
    if (qhca_thread_called(s)) {
        return false;
    }
    qemu_event_wait(&s->wake);
    return true;
}

/* Poll before sleeping, as long as recent waits have been short. */
void qhca_wait(QhcaState *s, uint64_t *poll_ns)
{
    const uint64_t max = s->poll_max_us * 1000ull;
    const int64_t start = get_clock();
    uint64_t waited;

    if (*poll_ns) {
        s->stats.thread_polls++;
        do {
            if (qhca_thread_called(s)) {
                s->stats.thread_poll_hits++;
                return;
            }
            cpu_relax();
        } while (get_clock() - start < *poll_ns);
    }
    trace_qhca_thread_sleep(s, *poll_ns);
    qhca_mark(s, QHCA_MARK_SLEEP, 0, 0);
    if (!qhca_thread_sleep(s)) {
        return;
    }
    qhca_mark(s, QHCA_MARK_AWAKE, 0, 0);
    s->stats.thread_sleeps++;
    waited = get_clock() - start;
    if (waited > max) {
        *poll_ns = *poll_ns / 2 < QHCA_POLL_START_NS ? 0 : *poll_ns / 2;
    } else if (waited > *poll_ns) {
        *poll_ns = MIN(max, *poll_ns ? *poll_ns * 2 : QHCA_POLL_START_NS);
    }
}
