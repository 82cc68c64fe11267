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
 * measures: now and then it times one copy of each kind, one after the other.
 */
#ifndef HCA_LINK_STREAMING_H
#define HCA_LINK_STREAMING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HCA_STREAMING_MIN	1024u	/* bytes; fewer are always stored plainly */
#define HCA_STREAMING_LEAD	4u	/* comparisons that change the kind */

/*
 * What one producer knows about its peer; it begins with all zero.  One thread at a time
 * may use it.
 */
struct hca_streaming {
	uint64_t plain;			/* ticks that the plain copy has taken */
	size_t plain_len;		/* its bytes */
	uint32_t copies;		/* of HCA_STREAMING_MIN bytes and more */
	uint32_t lead;			/* comparisons that streaming is ahead */
	bool on;			/* copies are streamed */
};

/*
 * As memcpy(), by the stores that suit the peer.  Whoever sees a later store of this thread
 * sees the bytes.  Returns whether they were streamed.
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
