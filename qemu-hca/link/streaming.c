// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Stores past the caches; streaming.h says what for.
 */
#include <string.h>
#ifdef __SSE2__
#include <x86intrin.h>
#endif
#include "streaming.h"

void hca_streaming_compare(struct hca_streaming *v, uint64_t plain, uint64_t streamed)
{
	if (plain / 2 > streamed)
		v->lead += v->lead < HCA_STREAMING_LEAD;
	else
		v->lead -= v->lead > 0;
	/* In between it stays as it is, since a copy may have been interrupted. */
	if (v->lead == HCA_STREAMING_LEAD)
		v->on = true;
	else if (!v->lead)
		v->on = false;
}

#ifdef __SSE2__

#define LINE	64u

/* The time at which all stores so far have left the processor's store buffer. */
static uint64_t ticks_after_stores(void)
{
	_mm_mfence();
	_mm_lfence();
	return __rdtsc();
}

void hca_streaming_store(void *to, const void *from, size_t len)
{
	const uint8_t *src = from;
	uint8_t *dst = to;
	size_t head = -(uintptr_t)dst & (LINE - 1);

	if (len < head + LINE) {
		memcpy(dst, src, len);
		return;
	}
	memcpy(dst, src, head);
	for (dst += head, src += head, len -= head; len >= LINE;
	     dst += LINE, src += LINE, len -= LINE) {
		__m128i a = _mm_loadu_si128((const __m128i *)src);
		__m128i b = _mm_loadu_si128((const __m128i *)src + 1);
		__m128i c = _mm_loadu_si128((const __m128i *)src + 2);
		__m128i d = _mm_loadu_si128((const __m128i *)src + 3);

		_mm_stream_si128((__m128i *)dst, a);
		_mm_stream_si128((__m128i *)dst + 1, b);
		_mm_stream_si128((__m128i *)dst + 2, c);
		_mm_stream_si128((__m128i *)dst + 3, d);
	}
	memcpy(dst, src, len);
	/* Without it, a later store could be seen before these. */
	_mm_sfence();
}

bool hca_streaming_copy(struct hca_streaming *v, void *to, const void *from, size_t len)
{
	uint64_t since;

	if (len < HCA_STREAMING_MIN) {
		memcpy(to, from, len);
		return false;
	}
	if (v->copies++ % HCA_STREAMING_EVERY == 0) {
		since = ticks_after_stores();
		memcpy(to, from, len);
		v->plain = ticks_after_stores() - since;
		v->plain_len = len;
		return false;
	}
	/* Sizes may take turns, so the next one of the same size is the other copy. */
	if (len == v->plain_len) {
		since = ticks_after_stores();
		hca_streaming_store(to, from, len);
		hca_streaming_compare(v, v->plain, ticks_after_stores() - since);
		v->plain_len = 0;
		return true;
	}
	if (v->on) {
		hca_streaming_store(to, from, len);
		return true;
	}
	memcpy(to, from, len);
	return false;
}

#else

void hca_streaming_store(void *to, const void *from, size_t len)
{
	memcpy(to, from, len);
}

bool hca_streaming_copy(struct hca_streaming *v, void *to, const void *from, size_t len)
{
	(void)v;
	memcpy(to, from, len);
	return false;
}

#endif
