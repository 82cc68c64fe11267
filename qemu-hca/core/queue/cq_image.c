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

/*
 * Eight octets that say which of the next objects exist, of @n that are left.  @live is that
 * of the first, and those of the others follow @stride octets apart.
 */
static void live_piece(struct hca_image *im, const struct hca_fn *fn, bool *live,
		       size_t stride, uint32_t n)
{
	uint64_t bits = 0;

	n = n < BITS ? n : BITS;
	for (uint32_t i = 0; i < n && !im->loading && !hca_is_dead(fn); i++)
		bits |= (uint64_t)live[i * stride] << i;
	hca_image_u64(im, "live", &bits);
	hca_image_check(im, "live", n == BITS || !(bits >> n));
	for (uint32_t i = 0; i < n && im->loading; i++)
		live[i * stride] = bits >> i & 1;
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
	for (uint32_t i = 0; i < fn->cqs.num; i += BITS)
		live_piece(im, fn, &fn->cqs.slot[i].live,
			   sizeof(fn->cqs.slot[i]), fn->cqs.num - i);
	cq_timers(im, fn);
	hca_image_layout(im, 2, HCA_CQ_LAYOUT);
}

void hca_srqs_image(struct hca_image *im, struct hca_fn *fn)
{
	struct hca_srqslot *slot = fn->srqs.slot;
	uint32_t n = hca_table_size(fn, QHCA_TABLE_SRQ);

	for (uint32_t i = 0; i < n; i++) {
		if (i % BITS == 0)
			live_piece(im, fn, &slot[i].live, sizeof(slot[i]), n - i);
		hca_image_u8(im, "generation", &slot[i].generation);
	}
	hca_image_layout(im, 2, HCA_SRQ_LAYOUT);
}
