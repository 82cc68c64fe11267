/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Rates of a function: at most max_rate, and min_rate before others.
 *
 * Each rate is a bucket of tokens, one for each bit that the function may send.  It
 * fills at the rate, up to what the rate is worth in HCA_RATE_WINDOW_NS.  The function
 * may send while its bucket of max_rate is not empty, and a frame takes what it has,
 * which may be more than there is: the bucket then owes the rest, so frames need not be
 * measured before they are sent, and may be longer than the window.  Whoever finds the
 * bucket empty waits until it has what the rate is worth in HCA_RATE_PAUSE_NS: a host
 * need not call the engine for each frame.
 *
 * An acknowledgement does not ask, but it takes tokens.  Once the bucket owes a whole
 * window, further ones are free: a function that receives much must not be silent for
 * long afterwards.
 *
 * While the bucket of min_rate is not empty, the function has had less than its
 * guarantee, and the scheduler prefers it.
 */
#ifndef HCA_CORE_RATE_H
#define HCA_CORE_RATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hca;
struct hca_fn;

#define HCA_RATE_WINDOW_NS	10000000u
#define HCA_RATE_PAUSE_NS	1000000u

struct hca_bucket {
	uint64_t filled;		/* when, ns */
	int64_t level;			/* thousandths of a bit: Mb/s times ns */
	uint32_t rate;			/* Mb/s; 0: there is none */
};

struct hca_rate {
	struct hca_bucket max, min;
	bool used;			/* min has paid since hca_rate_owed() */
};

/* The functions whose rates matter, bit by GVMI. */
struct hca_rates {
	uint64_t held;			/* something waits for max_rate */
	uint64_t guaranteed;		/* there is a min_rate */
};

/* Mb/s, 0: none.  Buckets are full at first; what waits asks again soon. */
void hca_rate_set(struct hca_fn *fn, uint32_t max_rate, uint32_t min_rate);
/*
 * Must what the function wants to send wait?  If so the function is held from now on,
 * which is counted, until hca_rates_release() finds tokens.
 */
bool hca_rate_waits(struct hca_fn *fn);
/* Is the function held? */
bool hca_rate_is_held(const struct hca_fn *fn);
/* A frame of @len bytes, from the Ethernet header to the ICRC, has been sent. */
void hca_rate_sent(struct hca_fn *fn, size_t len);

/* Call @released for each held function that has tokens again and is held no more. */
void hca_rates_release(struct hca *hca, void (*released)(struct hca_fn *fn));
/* When the first of the held functions has tokens, ns; QHCA_NEVER. */
uint64_t hca_rates_deadline(const struct hca *hca);

/*
 * How many of the longest frames the function must send to have had its guarantee,
 * rounded up.  0: it has had it, or has none.
 */
unsigned int hca_rate_owed(struct hca_fn *fn);
/* Has it sent anything since it was asked that? */
bool hca_rate_used(const struct hca_fn *fn);

#endif /* HCA_CORE_RATE_H */
