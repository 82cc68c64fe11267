// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Rates of a function: two buckets of tokens.  rate.h explains them.
 */
#include "wire/rate.h"

#include "hca.h"

#define TOKENS_A_BYTE	8000		/* thousandths of a bit */
#define LONGEST_FILL	1000000000ull	/* ns; no bucket owes as much as this */

static int64_t capacity(const struct hca_bucket *b)
{
	return (int64_t)b->rate * HCA_RATE_WINDOW_NS;
}

/* Tokens in the bucket at time @now. */
static int64_t level_at(const struct hca_bucket *b, uint64_t now)
{
	uint64_t ns = now - b->filled;
	int64_t level;

	if (ns > LONGEST_FILL)
		return capacity(b);
	level = b->level + (int64_t)(ns * b->rate);
	return level < capacity(b) ? level : capacity(b);
}

static void take(struct hca_bucket *b, uint64_t now, size_t len)
{
	if (!b->rate)
		return;
	b->level = level_at(b, now);
	b->filled = now;
	if (b->level > -capacity(b))
		b->level -= (int64_t)len * TOKENS_A_BYTE;
}

static void set_rate(struct hca_bucket *b, uint64_t now, uint32_t rate)
{
	if (b->rate == rate)
		return;
	b->rate = rate;
	b->filled = now;
	b->level = capacity(b);
}

static uint64_t bit(const struct hca_fn *fn)
{
	return 1ull << fn->cfg.gvmi;
}

void hca_rate_set(struct hca_fn *fn, uint32_t max_rate, uint32_t min_rate)
{
	struct hca_rates *rates = &fn->hca->rates;

	set_rate(&fn->rate.max, fn->hca->now, max_rate);
	set_rate(&fn->rate.min, fn->hca->now, min_rate);
	if (min_rate)
		rates->guaranteed |= bit(fn);
	else
		rates->guaranteed &= ~bit(fn);
}

bool hca_rate_is_held(const struct hca_fn *fn)
{
	return fn->hca->rates.held & bit(fn);
}

bool hca_rate_waits(struct hca_fn *fn)
{
	const struct hca_bucket *b = &fn->rate.max;

	if (!b->rate)
		return false;
	if (hca_rate_is_held(fn))
		return true;
	if (level_at(b, fn->hca->now) > 0)
		return false;
	hca_count(fn, QHCA_CNT_rate_waits);
	fn->hca->rates.held |= bit(fn);
	return true;
}

void hca_rate_sent(struct hca_fn *fn, size_t len)
{
	take(&fn->rate.max, fn->hca->now, len);
	take(&fn->rate.min, fn->hca->now, len);
	fn->rate.used = true;
}

/* When a held function may send again. */
static uint64_t end_of_pause(const struct hca_bucket *b)
{
	int64_t wanted = (int64_t)b->rate * HCA_RATE_PAUSE_NS - b->level;

	if (wanted <= 0)
		return b->filled;
	return b->filled + ((uint64_t)wanted + b->rate - 1) / b->rate;
}

void hca_rates_release(struct hca *hca, void (*released)(struct hca_fn *fn))
{
	for (uint16_t gvmi = 0; gvmi < HCA_MAX_FNS && hca->rates.held >> gvmi;
	     gvmi++) {
		struct hca_fn *fn = hca->fn[gvmi];

		if (!(hca->rates.held >> gvmi & 1) ||
		    end_of_pause(&fn->rate.max) > hca->now)
			continue;
		hca->rates.held &= ~bit(fn);
		hca_fn_wake(fn);
		released(fn);
	}
}

uint64_t hca_rates_deadline(const struct hca *hca)
{
	uint64_t first = QHCA_NEVER, at;

	for (uint16_t gvmi = 0; gvmi < HCA_MAX_FNS && hca->rates.held >> gvmi;
	     gvmi++) {
		if (!(hca->rates.held >> gvmi & 1))
			continue;
		at = end_of_pause(&hca->fn[gvmi]->rate.max);
		if (at < first)
			first = at;
	}
	return first;
}

bool hca_rate_used(const struct hca_fn *fn)
{
	return fn->rate.used;
}

unsigned int hca_rate_owed(struct hca_fn *fn)
{
	int64_t level = fn->rate.min.rate ?
			level_at(&fn->rate.min, fn->hca->now) : 0;

	if (level <= 0)
		return 0;
	fn->rate.used = false;
	return (unsigned int)(level / (QHCA_MAX_FRAME * TOKENS_A_BYTE)) + 1;
}
