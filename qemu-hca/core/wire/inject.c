// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The injector: faults of the wire, for tests.
 *
 * A pseudorandom generator of its own decides, so that the same seed and the
 * same frames give the same faults.  Held frames have slots of fixed size,
 * allocated when the device is created; a fault that needs a slot is left out
 * when there is none.
 */
#include <stdio.h>
#include <stdlib.h>

#include "hca.h"

#define MILLION	1000000u

bool hca_inject_create(struct hca *hca)
{
	struct hca_inject *inj = &hca->inject;

	inj->cfg.seed = hca_pf(hca)->cfg.seed;
	inj->rng = hca_pf(hca)->cfg.seed;
	inj->data = malloc((size_t)HCA_INJECT_STORE * QHCA_MAX_FRAME);
	return inj->data;
}

void hca_inject_destroy(struct hca *hca)
{
	free(hca->inject.data);
	hca->inject.data = NULL;
}

void hca_inject_forget(struct hca_fn *fn)
{
	struct hca_inject *inj = &fn->hca->inject;

	for (unsigned int i = 0; inj->held && i < HCA_INJECT_STORE; i++)
		if (inj->slot[i].used && inj->slot[i].gvmi == fn->cfg.gvmi)
			hca_inject_drop(inj, &inj->slot[i]);
}

/* splitmix64: any seed will do, zero included. */
static uint64_t next_random(struct hca_inject *inj)
{
	uint64_t z = inj->rng += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

/* Below @n, which is far below 2^64, so that the bias does not matter. */
static uint64_t random_below(struct hca_inject *inj, uint64_t n)
{
	return next_random(inj) % n;
}

bool hca_inject_rules(struct hca_inject *inj,
		      const struct qhca_inject_config *cfg, char *err,
		      size_t err_len)
{
	unsigned int k;

	for (k = 0; k < QHCA_NUM_INJECT_KINDS; k++)
		if (cfg->rule[k].ppm > MILLION) {
			snprintf(err, err_len,
				 "a probability of %u parts in a million is over 1000000",
				 cfg->rule[k].ppm);
			return false;
		}
	if (cfg->delay_ns > HCA_INJECT_MAX_DELAY) {
		snprintf(err, err_len, "a delay may be 10 seconds at most");
		return false;
	}
	if (cfg->seed != inj->cfg.seed)
		inj->rng = cfg->seed;
	inj->cfg = *cfg;
	inj->seen = 0;
	inj->any = false;
	for (k = 0; k < QHCA_NUM_INJECT_KINDS; k++)
		if (cfg->rule[k].ppm || cfg->rule[k].nth)
			inj->any = true;
	return true;
}

bool qhca_inject_set(struct qhca_hca *dev, const struct qhca_inject_config *cfg,
		     char *err, size_t err_len)
{
	struct hca *hca = &dev->hca;

	return hca_inject_rules(&hca->inject, cfg, err, err_len);
}

void qhca_inject_get(const struct qhca_hca *dev, struct qhca_inject_config *cfg)
{
	const struct hca *hca = &dev->hca;

	*cfg = hca->inject.cfg;
}

/*
 * Draw one random number for each rule with a probability, so that the effect
 * of one rule on a frame does not depend on the effects of others.
 */
uint32_t hca_inject_decide(struct hca_inject *inj)
{
	const struct qhca_inject_rule *rule = inj->cfg.rule;
	uint32_t fate = 0;
	unsigned int k;

	inj->seen++;
	for (k = 0; k < QHCA_NUM_INJECT_KINDS; k++) {
		if (rule[k].nth == inj->seen)
			fate |= 1u << k;
		if (rule[k].ppm && random_below(inj, MILLION) < rule[k].ppm)
			fate |= 1u << k;
	}
	return fate;
}

void hca_inject_flip(struct hca_inject *inj, uint8_t *frame, size_t from,
		     size_t len)
{
	uint64_t bit;

	if (from >= len)
		return;
	bit = random_below(inj, (uint64_t)(len - from) * 8);
	frame[from + bit / 8] ^= (uint8_t)(1u << bit % 8);
}

static uint8_t *data_of(const struct hca_inject *inj,
			const struct hca_inject_frame *f)
{
	return inj->data + (size_t)(f - inj->slot) * QHCA_MAX_FRAME;
}

const uint8_t *hca_inject_data(const struct hca_inject *inj,
			       const struct hca_inject_frame *f)
{
	return data_of(inj, f);
}

bool hca_inject_hold(struct hca_fn *fn, const uint8_t *frame, size_t len,
		     bool rx, bool swap, uint64_t due)
{
	struct hca_inject *inj = &fn->hca->inject;
	struct hca_inject_frame *f;
	unsigned int i;

	for (i = 0; i < HCA_INJECT_STORE; i++)
		if (!inj->slot[i].used)
			break;
	if (i == HCA_INJECT_STORE || len > QHCA_MAX_FRAME)
		return false;
	f = &inj->slot[i];
	f->due = due;
	f->order = inj->order++;
	f->len = (uint32_t)len;
	f->gvmi = fn->cfg.gvmi;
	f->used = true;
	f->rx = rx;
	f->swap = swap;
	memcpy(data_of(inj, f), frame, len);
	inj->held++;
	return true;
}

void hca_inject_passed(struct hca_inject *inj, bool rx, uint64_t now)
{
	unsigned int i;

	for (i = 0; inj->held && i < HCA_INJECT_STORE; i++)
		if (inj->slot[i].used && inj->slot[i].swap &&
		    inj->slot[i].rx == rx) {
			inj->slot[i].swap = false;
			inj->slot[i].due = now;
		}
}

struct hca_inject_frame *hca_inject_due(struct hca_inject *inj, uint64_t now)
{
	struct hca_inject_frame *best = NULL;
	unsigned int i;

	for (i = 0; inj->held && i < HCA_INJECT_STORE; i++) {
		struct hca_inject_frame *f = &inj->slot[i];

		if (f->used && f->due <= now &&
		    (!best || f->order < best->order))
			best = f;
	}
	return best;
}

void hca_inject_drop(struct hca_inject *inj, struct hca_inject_frame *f)
{
	f->used = false;
	inj->held--;
}

uint64_t hca_inject_deadline(const struct hca_inject *inj)
{
	uint64_t first = QHCA_NEVER;
	unsigned int i;

	for (i = 0; inj->held && i < HCA_INJECT_STORE; i++)
		if (inj->slot[i].used && inj->slot[i].due < first)
			first = inj->slot[i].due;
	return first;
}

#define FATE(kind)	(1u << QHCA_INJECT_##kind)

unsigned int hca_inject_apply(struct hca_fn *fn, uint8_t *frame, size_t len,
			      size_t payload, bool rx)
{
	struct hca_inject *inj = &fn->hca->inject;
	uint32_t fate = hca_inject_decide(inj);

	if (fate & FATE(DROP)) {
		hca_count(fn, QHCA_CNT_inject_dropped);
		return 0;
	}
	if (fate & FATE(CORRUPT)) {
		hca_inject_flip(inj, frame, payload, len);
		hca_count(fn, QHCA_CNT_inject_corrupted);
	}
	if (fate & FATE(DUPLICATE) &&
	    hca_inject_hold(fn, frame, len, rx, false, fn->hca->now))
		hca_count(fn, QHCA_CNT_inject_duplicated);
	if (fate & FATE(DELAY) &&
	    hca_inject_hold(fn, frame, len, rx, false,
			    fn->hca->now + inj->cfg.delay_ns)) {
		hca_count(fn, QHCA_CNT_inject_delayed);
		return 0;
	}
	if (fate & FATE(REORDER) &&
	    hca_inject_hold(fn, frame, len, rx, true,
			    fn->hca->now + HCA_INJECT_REORDER_NS)) {
		hca_count(fn, QHCA_CNT_inject_reordered);
		return 0;
	}
	return 1;
}
