/*
 * qhca adapter: a bounded ring of frames, one producer and one consumer
 *
 * Bytes rather than slots, so that small frames stay in the host's caches and
 * large ones still fit.  A record is a header and the frame, starts on a cache
 * line and does not wrap: when it does not fit before the end, a header that
 * says SKIP fills the rest.
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

/* Neither side may be at work. */
static inline void qhca_ring_clear(QhcaRing *ring)
{
    ring->head = 0;
    ring->tail = 0;
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

/* The oldest frame, or NULL; it stays until qhca_ring_pop(). */
static inline void *qhca_ring_peek(QhcaRing *ring, size_t *len)
{
    uint32_t head = qatomic_load_acquire(&ring->head);
    QhcaRingHeader *header;

    if (ring->tail == head) {
        return NULL;
    }
    header = qhca_ring_at(ring, ring->tail);
    if (header->len == QHCA_RING_SKIP) {
        qatomic_store_release(&ring->tail,
                              ROUND_UP(ring->tail + 1, ring->size));
        header = qhca_ring_at(ring, ring->tail);
    }
    *len = header->len;
    return header + 1;
}

static inline void qhca_ring_pop(QhcaRing *ring, size_t len)
{
    qatomic_store_release(&ring->tail, ring->tail + qhca_ring_stride(len));
}

#endif /* QHCA_RING_H */
