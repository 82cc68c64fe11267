/*
 * qhca adapter: a bounded ring of frames, one producer and one consumer
 *
 * The ring is one of bytes rather than slots, so that small frames stay in the
 * host's caches and large ones still fit.  A record is a header and the frame.
 * It starts on a cache line and does not wrap: if it does not fit before the
 * end, a header with the value SKIP fills the rest.
 *
 * A reset discards the frames of a ring.  It may happen while the consumer uses
 * a frame: a netdev delivers the frame to another device, and the guest aims
 * that device's interrupt at something that resets this one.  So the indices
 * never go back.  Discarding moves the tail up to the head.  A frame that the
 * consumer has peeked at keeps its place until the consumer pops it, and the
 * tail moves then.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef QHCA_RING_H
#define QHCA_RING_H

#include "qemu/atomic.h"
#include "qemu/memalign.h"

#define QHCA_RING_ALIGN 64u
#define QHCA_RING_SKIP  UINT32_MAX

typedef struct QhcaRingHeader {
    uint32_t len;
    uint32_t rsvd[3];
} QhcaRingHeader;

typedef struct QhcaRing {
    uint8_t *buf;
    uint32_t size;          /* power of two */
    uint32_t head;          /* free-running; the producer's */
    uint32_t tail;          /* free-running; the consumer's */
    uint32_t reserved;      /* producer: where the reserved record starts */
    uint32_t next;          /* consumer: the tail after qhca_ring_pop() */
    bool peeked;            /* consumer: it uses the record at the tail */
} QhcaRing;

static inline void qhca_ring_init(QhcaRing *ring, uint32_t size)
{
    *ring = (QhcaRing) {
        .buf = qemu_memalign(QHCA_RING_ALIGN, size),
        .size = size,
    };
}

static inline void qhca_ring_destroy(QhcaRing *ring)
{
    qemu_vfree(ring->buf);
    *ring = (QhcaRing) { };
}

static inline bool qhca_ring_empty(const QhcaRing *ring)
{
    return qatomic_read(&ring->head) == qatomic_read(&ring->tail);
}

static inline bool qhca_ring_half_free(const QhcaRing *ring)
{
    return qatomic_read(&ring->head) - qatomic_read(&ring->tail) <=
           ring->size / 2;
}

/*
 * Discard all frames.  Producer and consumer must not run at the same time, but
 * the consumer may have called the caller, between qhca_ring_peek() and
 * qhca_ring_pop().
 */
static inline void qhca_ring_discard(QhcaRing *ring)
{
    if (ring->peeked) {
        ring->next = ring->head;
    } else {
        qatomic_store_release(&ring->tail, ring->head);
    }
}

static inline QhcaRingHeader *qhca_ring_at(const QhcaRing *ring, uint32_t pos)
{
    return (QhcaRingHeader *)(ring->buf + (pos & (ring->size - 1)));
}

static inline uint32_t qhca_ring_stride(size_t len)
{
    return ROUND_UP(sizeof(QhcaRingHeader) + len, QHCA_RING_ALIGN);
}

/* Room for a frame of @len bytes, or NULL. */
static inline void *qhca_ring_reserve(QhcaRing *ring, size_t len)
{
    uint32_t stride = qhca_ring_stride(len);
    uint32_t head = ring->head;
    uint32_t room = ring->size - (head - qatomic_load_acquire(&ring->tail));
    uint32_t to_end = ring->size - (head & (ring->size - 1));

    if (to_end < stride) {
        if (room < to_end) {
            return NULL;
        }
        qhca_ring_at(ring, head)->len = QHCA_RING_SKIP;
        head += to_end;
        room -= to_end;
    }
    if (room < stride) {
        return NULL;
    }
    ring->reserved = head;
    return qhca_ring_at(ring, head) + 1;
}

static inline void qhca_ring_commit(QhcaRing *ring, size_t len)
{
    qhca_ring_at(ring, ring->reserved)->len = len;
    qatomic_store_release(&ring->head, ring->reserved + qhca_ring_stride(len));
}

/*
 * The oldest frame, or NULL.  It stays where it is until qhca_ring_pop(), which
 * has to follow before the next peek.
 */
static inline void *qhca_ring_peek(QhcaRing *ring, size_t *len)
{
    uint32_t head = qatomic_load_acquire(&ring->head);
    uint32_t tail = ring->tail;
    QhcaRingHeader *header;

    assert(!ring->peeked);
    if (tail == head) {
        return NULL;
    }
    header = qhca_ring_at(ring, tail);
    if (header->len == QHCA_RING_SKIP) {
        tail = ROUND_UP(tail + 1, ring->size);
        qatomic_store_release(&ring->tail, tail);
        header = qhca_ring_at(ring, tail);
    }
    /* Only QEMU writes here; a frame beyond the head would go to the netdev. */
    assert(qhca_ring_stride(header->len) <= head - tail);
    ring->next = tail + qhca_ring_stride(header->len);
    ring->peeked = true;
    *len = header->len;
    return header + 1;
}

/* Release the frame peeked at; does nothing if the ring has been destroyed. */
static inline void qhca_ring_pop(QhcaRing *ring)
{
    if (ring->peeked) {
        ring->peeked = false;
        qatomic_store_release(&ring->tail, ring->next);
    }
}

#endif /* QHCA_RING_H */
