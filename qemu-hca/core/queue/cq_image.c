// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Completion queues and SRQs in the image: which exist, and what is not in contexts.
 */
#include "queue/queue_image.h"

#include "hca.h"

HCA_IMAGE_COVERS(struct hca_cq_slot, 8);
HCA_IMAGE_COVERS(struct hca_cqs, 32 + 16 * HCA_CQ_MAX_TIMERS);
HCA_IMAGE_COVERS(struct hca_srqslot, 8);
HCA_IMAGE_COVERS(struct hca_srqs, 16);

#define BITS	64u			/* of a map, in one piece */

/* Eight octets of a map, of the @n numbers that are left. */
static void piece(struct hca_image *im, const char *field, uint64_t *bits,
		  uint32_t n)
{
	hca_image_u64(im, field, bits);
	hca_image_check(im, field, n >= BITS || !(*bits >> n));
}

static void cqs_live(struct hca_image *im, struct hca_fn *fn)
{
	struct hca_cq_slot *slot = fn->cqs.slot;
	uint32_t n = fn->cqs.num;

	for (uint32_t i = 0; i < n; i += BITS) {
		uint64_t bits = 0;
		uint32_t end = n - i < BITS ? n - i : BITS;

		for (uint32_t k = 0; k < end && !im->loading; k++)
			bits |= (uint64_t)slot[i + k].live << k;
		if (hca_is_dead(fn))
			bits = 0;
		piece(im, "live", &bits, end);
		for (uint32_t k = 0; k < end && im->loading; k++)
			slot[i + k].live = bits >> k & 1;
	}
}

static void cq_timers(struct hca_image *im, struct hca_fn *fn)
{
	struct hca_cqs *cqs = &fn->cqs;
	uint32_t n = hca_is_dead(fn) ? 0 : cqs->num_timers;
	uint64_t latest = fn->hca->now + UINT16_MAX * 1000ull;

	hca_image_count(im, "number of timers", &n, HCA_CQ_MAX_TIMERS);
	for (uint32_t i = 0; i < n && !hca_image_failed(im); i++) {
		uint32_t cqn = cqs->timer[i].cqn;

		hca_image_u32(im, "timer", &cqn);
		hca_image_u64(im, "due", &cqs->timer[i].due);
		hca_image_check(im, "timer", hca_cq_exists(fn, cqn) &&
				!(im->loading && cqs->slot[cqn].timer));
		hca_image_check(im, "due", cqs->timer[i].due <= latest);
		if (!im->loading || hca_image_failed(im))
			continue;
		cqs->timer[cqs->num_timers++].cqn = cqn;
		cqs->slot[cqn].timer = true;
		cqs->first_due = 0;	/* hca_cqs_run() finds the true one */
	}
}

void hca_cqs_image(struct hca_image *im, struct hca_fn *fn)
{
	cqs_live(im, fn);
	cq_timers(im, fn);
	hca_image_layout(im, 2, HCA_CQ_LAYOUT);
}

void hca_srqs_image(struct hca_image *im, struct hca_fn *fn)
{
	struct hca_srqslot *slot = fn->srqs.slot;
	uint32_t n = hca_table_size(fn, QHCA_TABLE_SRQ);

	for (uint32_t i = 0; i < n; i += BITS) {
		uint64_t bits = 0;
		uint32_t end = n - i < BITS ? n - i : BITS;

		for (uint32_t k = 0; k < end && !im->loading; k++)
			bits |= (uint64_t)slot[i + k].live << k;
		if (hca_is_dead(fn))
			bits = 0;
		piece(im, "live", &bits, end);
		for (uint32_t k = 0; k < end; k++) {
			if (im->loading)
				slot[i + k].live = bits >> k & 1;
			hca_image_u8(im, "generation", &slot[i + k].generation);
		}
	}
	hca_image_layout(im, 2, HCA_SRQ_LAYOUT);
}
