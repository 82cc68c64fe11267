/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A queue of frames in memory that two processes share, one of which produces frames
 * and one of which consumes them.
 *
 * The queue is a ring of slots of equal size.  There are no shared indices: a byte in
 * each slot says whose slot it is, and each end goes around the ring by itself.  The
 * producer fills the slots that are its own, in order, and hands each over; the
 * consumer hands each back.  So a peer that writes nonsense can spoil the frames that
 * it sends or ought to receive, and nothing else.  Whatever is in shared memory may
 * change at any time: this code reads a slot's length once and checks it, keeps its
 * position in private memory, and reads nothing else that the peer writes, but flags
 * that ask for a wake-up.
 *
 * An end that has nothing to do says so in a flag and sleeps; the other end then has to
 * wake it, by whatever the two have agreed on.  Each of the two writes first, and then
 * looks at what the other has written, with a full fence between: the one that sleeps
 * looks for frames after it has set the flag, and the one that sends looks at the flag
 * after it has handed over the frame.
 *
 * The header of a slot has its fields where the open protocol SimBricks has them, with
 * room for the time that synchronised links need.
 */
#ifndef HCA_LINK_SLOTS_H
#define HCA_LINK_SLOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HCA_SLOT_HEADER		64u
#define HCA_SLOTS_MIN		4u	/* slots in a queue, a power of two */
#define HCA_SLOTS_MAX		4096u
#define HCA_SLOT_ROOM_MAX	65472u	/* bytes of a frame: the length has 16 bits */

/* Who owns a slot, and what is in it: the last byte of the header. */
#define HCA_SLOT_FULL		0x80u	/* it is the consumer's */
#define HCA_SLOT_TYPE		0x7fu
#define HCA_SLOT_TERMINATE	0x00u	/* the peer ends */
#define HCA_SLOT_SYNC		0x01u	/* time only: for synchronised links */
#define HCA_SLOT_PACKET		0x40u	/* an Ethernet frame without FCS */

/* The beginning of a slot; the frame follows.  Byte order is the host's. */
struct hca_slot {
	uint16_t len;			/* bytes of the frame */
	uint8_t port;			/* 0 */
	uint8_t rsvd[45];
	uint64_t time;			/* picoseconds; 0 on an unsynchronised link */
	uint8_t rsvd2[7];
	uint8_t own_type;		/* HCA_SLOT_FULL, HCA_SLOT_TYPE */
};

/* What stands before the slots; each flag has a cache line of its own. */
struct hca_slots_flags {
	uint32_t consumer_sleeps;	/* the producer has to wake it */
	uint8_t rsvd[60];
	uint32_t producer_waits;	/* for room; the consumer has to wake it */
	uint8_t rsvd2[60];
};

/*
 * One end of a queue.  All of it is private memory but what the pointers lead to.  An
 * end is either the producer or the consumer; one thread at a time may use it, except
 * for hca_slots_pending(), hca_slots_sleep() and hca_slots_wake().
 */
struct hca_slots {
	struct hca_slots_flags *flags;
	uint8_t *slots;
	uint32_t count;			/* a power of two */
	uint32_t room;			/* bytes of a frame */
	uint32_t stride;		/* bytes from one slot to the next */
	uint32_t pos;			/* free-running: the slot that is next */
};

/* What hca_slots_peek() has found. */
enum hca_slots_found {
	HCA_SLOTS_EMPTY,
	HCA_SLOTS_FRAME,
	HCA_SLOTS_NO_FRAME,		/* of another type, to be skipped */
	HCA_SLOTS_BAD,			/* longer than its slot, to be skipped */
};

/*
 * Bytes of shared memory of a queue of @count slots for frames of @room bytes; 0 if
 * there is no such queue.  It is a multiple of 64.
 */
size_t hca_slots_size(uint32_t count, uint32_t room);
/*
 * Use the queue at @mem, which is aligned to 64 bytes and has hca_slots_size() bytes,
 * not 0.  The queue begins with memory that is all zero.
 */
void hca_slots_init(struct hca_slots *q, void *mem, uint32_t count,
		    uint32_t room);

/* ---- the producer */

/*
 * Room for a frame of q->room bytes, or NULL if the queue is full.  Without a call of
 * hca_slots_commit() it stays free.
 */
uint8_t *hca_slots_reserve(struct hca_slots *q);
/* Hand the frame over that fills @len bytes, at most q->room, of the room reserved. */
void hca_slots_commit(struct hca_slots *q, size_t len);
/* Does the consumer have to be woken?  To be called after frames were handed over. */
bool hca_slots_wakes_consumer(struct hca_slots *q);
/*
 * The queue is full: ask for a wake-up when it is half empty.  Returns true if there is
 * room now; a wake-up may come all the same, at any time later.
 */
bool hca_slots_wait_room(struct hca_slots *q);
/*
 * Ask for a wake-up when the queue is half empty; returns true if it is.  A producer that
 * waits calls this after each wake-up: the consumer may have sent that for an earlier
 * wait, and may have taken the flag of this one with it.
 */
bool hca_slots_wait_half(struct hca_slots *q);
/* Are at least half of the slots free, as far as the producer may know? */
bool hca_slots_half_free(const struct hca_slots *q);

/* ---- the consumer */

/* Is there anything in the queue?  Any thread may call this. */
bool hca_slots_pending(const struct hca_slots *q);
/*
 * The oldest frame.  It stays in shared memory, so its bytes may change; @len has been
 * checked.  Unless the queue is empty, hca_slots_pop() has to follow.
 */
enum hca_slots_found hca_slots_peek(const struct hca_slots *q,
				    const uint8_t **frame, size_t *len);
/* Hand the slot back. */
void hca_slots_pop(struct hca_slots *q);
/* Does the producer have to be woken?  To be called after slots were handed back. */
bool hca_slots_wakes_producer(struct hca_slots *q);
/*
 * Ask for a wake-up with the next frame.  The caller has to call hca_slots_pending()
 * before it sleeps.
 */
void hca_slots_sleep(const struct hca_slots *q);
/*
 * The consumer is awake.  Returns whether it takes back a wake-up that it has asked for; if the
 * producer sends that at this very moment, it may say so all the same.
 */
bool hca_slots_wake(const struct hca_slots *q);

#endif /* HCA_LINK_SLOTS_H */
