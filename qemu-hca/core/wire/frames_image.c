// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Frames that the adapter keeps, in its image: those that are looped back, and those
 * that the injector holds.
 */
#include "wire/wire_image.h"

#include "hca.h"

HCA_IMAGE_COVERS(struct hca_looped, 16);
HCA_IMAGE_COVERS(struct hca_inject_frame, 32);
HCA_IMAGE_COVERS(struct hca_inject, 2200);

/* Are these functions that take frames? */
static bool fns_enabled(const struct hca *hca, uint64_t fns)
{
	return !(fns & ~hca->sw.fns);
}

static bool fn_enabled(const struct hca *hca, uint16_t gvmi)
{
	return gvmi < HCA_MAX_FNS && fns_enabled(hca, 1ull << gvmi);
}

static void frame(struct hca_image *im, uint32_t *len, uint8_t *data)
{
	hca_image_u32(im, "length of a frame", len);
	hca_image_check(im, "length of a frame",
			*len >= HCA_ETH_HLEN && *len <= QHCA_MAX_FRAME);
	if (!hca_image_failed(im))
		hca_image_bytes(im, "frame", data, *len);
}

/* The oldest is in the first place of the queue after loading. */
void hca_wire_image(struct hca_image *im, struct hca_fn *fn)
{
	struct hca *hca = fn->hca;
	struct hca_wire *w = &hca->wire;
	uint32_t n = w->loop_pi - w->loop_ci;

	hca_image_count(im, "number of frames", &n, HCA_LOOP_FRAMES);
	for (uint32_t i = 0; i < n && !hca_image_failed(im); i++) {
		uint32_t slot = (w->loop_ci + i) % HCA_LOOP_FRAMES;
		struct hca_looped *l = &w->looped[slot];

		hca_image_u64(im, "receivers", &l->to);
		hca_image_check(im, "receivers", fns_enabled(hca, l->to));
		hca_image_u16(im, "sender", &l->from);
		hca_image_check(im, "sender",
				l->from < HCA_MAX_FNS && hca->fn[l->from]);
		frame(im, &l->len, w->loop + (size_t)slot * QHCA_MAX_FRAME);
		if (!im->loading || hca_image_failed(im))
			continue;
		w->loop_pi++;
		hca_places_take(&w->loop_places, l->from);
	}
}

static void rules(struct hca_image *im, struct qhca_inject_config *cfg)
{
	uint32_t n = QHCA_NUM_INJECT_KINDS;

	hca_image_count(im, "number of rules", &n, QHCA_NUM_INJECT_KINDS);
	for (uint32_t i = 0; i < n; i++) {
		hca_image_u32(im, "probability", &cfg->rule[i].ppm);
		hca_image_u64(im, "nth", &cfg->rule[i].nth);
	}
	hca_image_u64(im, "delay", &cfg->delay_ns);
	hca_image_bool(im, "on_rx", &cfg->on_rx);
	hca_image_bool(im, "on_tx", &cfg->on_tx);
	hca_image_u64(im, "seed", &cfg->seed);
}

static void held(struct hca_image *im, const struct hca *hca,
		 struct hca_inject *inj, struct hca_inject_frame *f)
{
	uint64_t latest = hca->now + HCA_INJECT_MAX_DELAY;

	hca_image_u64(im, "due", &f->due);
	hca_image_check(im, "due", f->due <= latest);
	hca_image_u64(im, "order", &f->order);
	hca_image_u16(im, "function", &f->gvmi);
	hca_image_check(im, "function", fn_enabled(hca, f->gvmi));
	hca_image_bool(im, "rx", &f->rx);
	hca_image_bool(im, "swap", &f->swap);
	frame(im, &f->len, inj->data +
	      (size_t)(f - inj->slot) * QHCA_MAX_FRAME);
	f->used = true;
}

void hca_inject_image(struct hca_image *im, struct hca_fn *fn)
{
	struct hca *hca = fn->hca;
	struct hca_inject *inj = &hca->inject;
	struct qhca_inject_config cfg = inj->cfg;
	uint32_t n = inj->held, at = 0;
	char why[100];

	rules(im, &cfg);
	if (im->loading && !hca_image_failed(im) &&
	    !hca_inject_rules(inj, &cfg, why, sizeof(why)))
		hca_image_refuse(im, "%s", why);
	hca_image_u64(im, "random number", &inj->rng);
	hca_image_u64(im, "frames seen", &inj->seen);
	hca_image_u64(im, "next order", &inj->order);
	hca_image_count(im, "number of frames", &n, HCA_INJECT_STORE);
	for (; n && !hca_image_failed(im); n--, at++) {
		while (!im->loading && !inj->slot[at].used)
			at++;
		held(im, hca, inj, &inj->slot[at]);
		if (im->loading)
			inj->held++;
	}
}
