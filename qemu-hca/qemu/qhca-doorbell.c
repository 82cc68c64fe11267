/*
 * qhca adapter: doorbells, and those that are deferred
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/main-loop.h"
#include "qhca-dev.h"
#include "trace.h"

/*
 * Ring the doorbells deferred so far.  doorbell_lock is not held meanwhile: a
 * doorbell fetches a context, and the fault of that access may ring another
 * doorbell on this very stack.
 */
void qhca_take_doorbells(QhcaState *s, uint64_t now)
{
    const QhcaDoorbell *db;
    uint32_t num;

    if (!qatomic_read(&s->num_doorbells)) {
        return;
    }
    WITH_QEMU_LOCK_GUARD(&s->doorbell_lock) {
        db = s->doorbell[s->doorbell_side];
        num = s->num_doorbells;
        s->doorbell_side ^= 1;
        qatomic_set(&s->num_doorbells, 0);
    }
    for (uint32_t i = 0; i < num; i++) {
        qhca_doorbell(s->hca, db[i].gvmi, db[i].page, db[i].offset,
                      db[i].value, now);
    }
}

/* Forget the doorbells of a function that were deferred. */
void qhca_drop_doorbells(QhcaFunction *f)
{
    QhcaState *s = f->s;
    QhcaDoorbell *db;
    uint32_t num = 0;

    QEMU_LOCK_GUARD(&s->doorbell_lock);

    db = s->doorbell[s->doorbell_side];
    for (uint32_t i = 0; i < s->num_doorbells; i++) {
        if (db[i].gvmi != f->gvmi) {
            db[num++] = db[i];
        }
    }
    qatomic_set(&s->num_doorbells, num);
}

/* Is it one after which a vCPU may wait for the answer, without the BQL? */
static bool qhca_doorbell_may_wait(const QhcaDoorbell *db)
{
    return db->offset == QHCA_DB_SQ && !db->gvmi && db->alone;
}

/*
 * In the engine: ring the deferred doorbells first, and then this one.  Returns whether a message
 * has come for which the vCPU was to wait.
 */
static bool qhca_doorbell_now(QhcaState *s, const QhcaDoorbell *db)
{
    bool awaits = qhca_doorbell_may_wait(db) && qhca_will_await(s);
    uint64_t now = qhca_now(s);

    qhca_mark(s, QHCA_MARK_ENTER, 0, 0);
    qhca_take_doorbells(s, now);
    qhca_doorbell(s->hca, db->gvmi, db->page, db->offset, db->value, now);
    qhca_slice(s, s->inline_budget);
    awaits = awaits && qhca_await(s);
    qhca_leave(s);
    return awaits;
}

/* Has a vIOMMU been turned on since the vCPU came without the BQL? */
static bool qhca_doorbell_lacks_bql(QhcaState *s)
{
    return s->dma_iommu && !bql_locked();
}

static bool qhca_doorbell_put_off(QhcaState *s, const QhcaDoorbell *db)
{
    QEMU_LOCK_GUARD(&s->doorbell_lock);

    if (s->num_doorbells == QHCA_MAX_DOORBELLS) {
        return false;
    }
    s->doorbell[s->doorbell_side][s->num_doorbells] = *db;
    qatomic_set(&s->num_doorbells, s->num_doorbells + 1);
    s->stats.doorbells_deferred++;
    trace_qhca_doorbell_deferred(s, db->gvmi, db->page, db->offset,
                                 db->value);
    return true;
}

/* Nobody could wait until it is served: it is lost if too many have been put off. */
static void qhca_doorbell_put_off_or_refuse(QhcaState *s, const QhcaDoorbell *db)
{
    if (!qhca_doorbell_put_off(s, db)) {
        s->stats.mmio_refused++;
        trace_qhca_mmio_refused(s, db->gvmi, db->page * QHCA_DB_PAGE_SIZE +
                                db->offset);
    }
}

/* A doorbell has been put off, and whoever had the engine may not have seen it. */
static void qhca_doorbell_serve(QhcaState *s)
{
    smp_mb();       /* pairs with the one after dropping the lock */
    if (!qhca_trylock(s) || !qhca_have_engine(s)) {
        return;
    }
    if (qhca_doorbell_lacks_bql(s)) {
        qhca_leave_undone(s);           /* the bottom half serves it */
        return;
    }
    qhca_slice(s, s->inline_budget);
    qhca_leave(s);
}

/* Returns whether a message has come for which the vCPU was to wait. */
static bool qhca_doorbell_take(QhcaState *s, const QhcaDoorbell *db)
{
    if (qatomic_read(&s->dma_iommu) && !bql_locked()) {
        QhcaDoorbell waits_not = *db;

        /* The vIOMMU may be off again when the BQL is taken, and nobody waits with that. */
        waits_not.alone = false;
        BQL_LOCK_GUARD();
        return qhca_doorbell_take(s, &waits_not);
    }
    if (!qatomic_read(&s->running)) {
        /* A debugger's: the engine is frozen.  It is served when the VM runs. */
        qhca_doorbell_put_off_or_refuse(s, db);
        return false;
    }
    if (qhca_nested(s)) {
        qhca_doorbell_put_off_or_refuse(s, db);
        qhca_kick(s);
        return false;
    }
    if (!qhca_enter_soon(s)) {
        if (qhca_doorbell_put_off(s, db)) {
            qhca_doorbell_serve(s);
            return false;
        }
        if (!qhca_enter(s)) {
            return false;
        }
    }
    if (qhca_doorbell_lacks_bql(s)) {
        qhca_leave_undone(s);
        return qhca_doorbell_take(s, db);
    }
    return qhca_doorbell_now(s, db);
}

/*
 * A vCPU that waits does so without the BQL, for which qhca_yield() has the reasons, and the
 * engine's lock is not taken before the BQL is dropped.  The main loop takes the processor from
 * the vCPU to run a timer, for example.  If it found the BQL taken it would sleep, and be too late
 * for it again and again, since the vCPU has it anew a microsecond after it has dropped it.
 * Where vCPUs have the BQL, and their accesses no attributes that tell them from other devices',
 * none waits.
 */
static bool qhca_doorbell_unlocks(QhcaState *s, const QhcaDoorbell *db)
{
    return qhca_doorbell_may_wait(db) && bql_locked() && qhca_awaits(s) && !qhca_nested(s) &&
           !qatomic_read(&s->dma_iommu);
}

static void qhca_doorbell_ring(QhcaState *s, const QhcaDoorbell *db)
{
    const bool unlocks = qhca_doorbell_unlocks(s, db);
    uint64_t sent = qatomic_read(&s->stats.frames_sent);
    bool came;

    qhca_mark(s, QHCA_MARK_DOORBELL, db->gvmi, db->value);
    if (unlocks) {
        bql_unlock();
    }
    came = qhca_doorbell_take(s, db);
    if (unlocks) {
        bql_lock();
    }
    if (!came && qatomic_read(&s->stats.frames_sent) != sent) {
        /* The BQL stays: answers to single messages were later without it. */
        qhca_yield(s, &s->doorbell_yields, false);
    }
}

/*
 * ------------------------------------------------------------------------
 * BAR 2: doorbells
 */
static uint64_t qhca_doorbells_read(void *opaque, hwaddr addr,
                                    unsigned int size)
{
    return 0;
}

static MemTxResult qhca_doorbells_write(void *opaque, hwaddr addr, uint64_t value,
                                        unsigned int size, MemTxAttrs attrs)
{
    QhcaFunction *f = opaque;
    QhcaDoorbell db = {
        .page = addr / QHCA_DB_PAGE_SIZE,
        .offset = addr % QHCA_DB_PAGE_SIZE,
        .gvmi = f->gvmi,
        .value = value,
        .alone = qhca_is_alone(attrs),
    };

    if (size != 8) {
        db.offset = QHCA_DB_PAGE_SIZE - 1; /* none: the engine counts it */
    }
    if (db.offset != QHCA_DB_POLL) {
        qhca_doorbell_ring(f->s, &db);
    } else {
        qhca_hint(f->s, &db);
    }
    return MEMTX_OK;
}

const MemoryRegionOps qhca_doorbells_ops = {
    .read = qhca_doorbells_read,
    .write_with_attrs = qhca_doorbells_write,
    .endianness = DEVICE_LITTLE_ENDIAN,
    .valid = { .min_access_size = 1, .max_access_size = 8, .unaligned = true },
    .impl = { .min_access_size = 1, .max_access_size = 8, .unaligned = true },
};
