/*
 * qhca adapter: when each step of a message happens
 *
 * A message passes several threads on its way from a doorbell to the peer's
 * memory.  Trace events show the steps, but each line of QEMU's log costs more
 * than most steps take.  So this keeps marks in memory, with the clock that all
 * processes of the host share, and writes them into a file when it ends: the
 * property timeline names the file and begins, and an empty one ends.
 *
 * Any thread makes marks, without a lock.  The newest QHCA_MARKS ones are kept.
 * One that a thread makes while the file is written may be lost.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "hw/core/cpu.h"
#include "qapi/error.h"
#include "qemu/main-loop.h"
#include "qemu/timer.h"
#include "qhca-dev.h"

#define QHCA_MARKS  (1u << 16)

struct QhcaMark {
    int64_t ns;                 /* of the host's monotonic clock */
    uint64_t a;
    uint64_t b;
    uint8_t what;               /* QhcaMarkKind */
    char who;
};

/* The names in the file, and what follows them. */
static const char *const qhca_mark_names[] = {
    [QHCA_MARK_NONE]     = "none",
    [QHCA_MARK_DOORBELL] = "doorbell",  /* GVMI, value */
    [QHCA_MARK_ENTER]    = "enter",
    [QHCA_MARK_TX]       = "tx",        /* QPN, opcode << 24 | PSN */
    [QHCA_MARK_RX]       = "rx",        /* QPN, opcode << 24 | PSN */
    [QHCA_MARK_PLACED]   = "placed",
    [QHCA_MARK_CQE]      = "cqe",       /* CQN, QPN */
    [QHCA_MARK_WAKE]     = "wake",
    [QHCA_MARK_KICK]     = "kick",
    [QHCA_MARK_SLEEP]    = "sleep",
    [QHCA_MARK_AWAKE]    = "awake",
    [QHCA_MARK_YIELD]    = "yield",
    [QHCA_MARK_YIELDED]  = "yielded",
    [QHCA_MARK_FLUSH]    = "flush",     /* bytes */
    [QHCA_MARK_GOT]      = "got",       /* bytes */
};

static char qhca_who(QhcaState *s)
{
    if (current_cpu) {
        return 'v';             /* a vCPU */
    }
    return qemu_thread_is_self(&s->thread) ? 'd' : 'm';
}

void qhca_mark_now(QhcaState *s, QhcaMarkKind what, uint64_t a, uint64_t b)
{
    QhcaTimeline *t = &s->timeline;
    QhcaMark *mark = &t->mark[qatomic_fetch_inc(&t->num) % QHCA_MARKS];

    mark->ns = get_clock();
    mark->a = a;
    mark->b = b;
    mark->what = what;
    mark->who = qhca_who(s);
}

void qhca_mark_trace(QhcaState *s, enum qhca_trace_id id, uint64_t a,
                     uint64_t b, uint64_t c)
{
    switch (id) {
    case QHCA_TRACE_TX:
        qhca_mark_now(s, QHCA_MARK_TX, a, b << 24 | c);
        break;
    case QHCA_TRACE_RX:
        qhca_mark_now(s, QHCA_MARK_RX, a, b << 24 | c);
        break;
    case QHCA_TRACE_COMPLETION:
        qhca_mark_now(s, QHCA_MARK_CQE, a, b);
        break;
    default:
        break;
    }
}

uint64_t qhca_mark_mask(QhcaState *s)
{
    return !s->timeline.on ? 0 : UINT64_C(1) << QHCA_TRACE_TX |
                                 UINT64_C(1) << QHCA_TRACE_RX |
                                 UINT64_C(1) << QHCA_TRACE_COMPLETION;
}

static void qhca_timeline_switch(QhcaState *s, bool on)
{
    bool entered = qhca_enter(s);       /* false: there is no engine yet */

    /* Whoever sees it on sees the memory of the marks: pairs with qhca_mark(). */
    qatomic_store_release(&s->timeline.on, on);
    if (entered) {
        qhca_trace_refresh(s);
        qhca_leave(s);
    }
}

/* In the order in which the marks were made. */
static bool qhca_timeline_write(QhcaState *s, Error **errp)
{
    QhcaTimeline *t = &s->timeline;
    uint32_t num = qatomic_read(&t->num);
    FILE *file = fopen(t->path, "w");

    if (!file) {
        error_setg_errno(errp, errno, "timeline=%s", t->path);
        return false;
    }
    for (uint32_t i = num > QHCA_MARKS ? num - QHCA_MARKS : 0; i != num; i++) {
        const QhcaMark *mark = &t->mark[i % QHCA_MARKS];

        fprintf(file, "%" PRId64 " %c %s %" PRIu64 " %" PRIu64 "\n", mark->ns,
                mark->who, qhca_mark_names[mark->what], mark->a, mark->b);
    }
    if (fclose(file)) {
        error_setg_errno(errp, errno, "timeline=%s", t->path);
        return false;
    }
    return true;
}

static char *qhca_timeline_get(Object *obj, Error **errp)
{
    return g_strdup(QHCA(obj)->timeline.path ?: "");
}

static void qhca_timeline_set(Object *obj, const char *value, Error **errp)
{
    QhcaState *s = QHCA(obj);
    QhcaTimeline *t = &s->timeline;

    if (t->on) {
        bool written;

        qhca_timeline_switch(s, false);
        written = qhca_timeline_write(s, errp);
        g_clear_pointer(&t->path, g_free);
        if (!written) {
            return;     /* An error that takes effect would be none. */
        }
    }
    if (*value) {
        /* Kept until the device goes: a thread may be about to make a mark. */
        if (!t->mark) {
            t->mark = g_new0(QhcaMark, QHCA_MARKS);
        }
        t->path = g_strdup(value);
        qatomic_set(&t->num, 0);
        qhca_timeline_switch(s, true);
    }
}

void qhca_timeline_class_init(ObjectClass *klass)
{
    object_class_property_add_str(klass, "timeline", qhca_timeline_get,
                                  qhca_timeline_set);
    object_class_property_set_description(klass, "timeline",
        "file for the times of each step of messages, written when this is "
        "set to an empty string");
}

void qhca_timeline_finalize(QhcaState *s)
{
    g_free(s->timeline.path);
    g_free(s->timeline.mark);
}
