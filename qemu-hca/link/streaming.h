/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Payload into memory that another processor reads, by stores that go past the caches.
 *
 * A plain store first fetches its cache line, and the peer's processor was the last to read
 * it.  Where the two share a cache, that costs little.  Where they do not (two sockets, or
 * groups of cores with a cache each), the 64 lines of a frame of 4 KiB took 1.6 us, and a
 * tenth of that on the same machine while its processors were near each other.  A streaming
 * store fetches nothing, so 4 KiB take 0.3 us wherever the peer runs.  But it then reads
 * them from memory, and a cache that it shares would have been faster.
 *
 * The host decides where the two run, and may move them at any time.  So this code
 * measures: now and then it times a copy of each kind, of the same size.
 */
#ifndef HCA_LINK_STREAMING_H
#define HCA_LINK_STREAMING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Fewer bytes are always stored plainly.  The frames of an Ethernet MTU of 1500 are among
 * them: streaming would save them little, and their sums are computed in the slot, for which
 * the device would fetch them from memory.
 */
#define HCA_STREAMING_MIN	2048u
/*
 * So many copies lie between one comparison and the next.  It is an odd prime, since packets of
 * a message, slots, and QPs that take turns mostly are powers of two: with 256 the plain copy
 * was always the same packet of a READ, and the streamed one the next.  The plain copy is always
 * the first of the two.  If the kinds took turns at that, then of two packets to a message, one
 * would be the plain copy again each time.
 */
#define HCA_STREAMING_EVERY	257u
#define HCA_STREAMING_LEAD	4u	/* a lead of so many comparisons changes the kind */

/*
 * What one producer knows about its peer; it begins with all zero.  One thread at a time
 * may use it.
 */
struct hca_streaming {
	uint64_t plain;			/* ticks that the plain copy has taken */
	size_t plain_len;		/* its bytes; 0: no comparison has begun */
	uint32_t copies;		/* of HCA_STREAMING_MIN bytes and more */
	uint32_t lead;			/* by how many comparisons streaming is ahead */
	bool on;			/* copies are streamed */
};

/*
 * As memcpy(), by the stores that suit the peer.  Whoever sees a later store of this thread
 * that has release semantics sees the bytes.  Returns whether they were streamed.
 */
bool hca_streaming_copy(struct hca_streaming *v, void *to, const void *from, size_t len);

/* ---- what it consists of */

/* As memcpy(), by streaming stores where the processor has them (x86). */
void hca_streaming_store(void *to, const void *from, size_t len);
/*
 * One copy was timed with each kind of stores, in the same unit.  Plain stores that take
 * more than twice as long have to fetch their lines from afar.
 */
void hca_streaming_compare(struct hca_streaming *v, uint64_t plain, uint64_t streamed);

#endif /* HCA_LINK_STREAMING_H */
