// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Event queues and the events that they hold, in the image.
 */
#include "queue/queue_image.h"

#include "queue/held.h"

HCA_IMAGE_COVERS(struct hca_qbuf, 64);
HCA_IMAGE_COVERS(struct hca_eq, 104);
HCA_IMAGE_COVERS(struct hca_held, 20);
HCA_IMAGE_COVERS(struct hca_eqs, 344);

static void buffer(struct hca_image *im, struct hca_qbuf *qb)
{
	hca_image_u64(im, "buffer", &qb->base);
	hca_image_u32(im, "buffer length", &qb->length);
	hca_image_u8(im, "buffer page_shift", &qb->page_shift);
	hca_image_u8(im, "buffer levels", &qb->levels);
}

static void eq_fields(struct hca_image *im, const struct hca_fn *fn,
		      struct hca_eq *eq)
{
	buffer(im, &eq->buf);
	hca_image_u32(im, "rec_offset", &eq->rec_offset);
	hca_image_u32(im, "pi", &eq->pi);
	hca_image_u32(im, "ci", &eq->ci);
	hca_image_u32(im, "overruns", &eq->overruns);
	hca_image_u16(im, "vector", &eq->vector);
	hca_image_u8(im, "log_depth", &eq->log_depth);
	hca_image_bool(im, "armed", &eq->armed);
	hca_image_check(im, "queue", hca_eq_fault(fn, eq) < 0);
	hca_image_check(im, "ci", hca_image_failed(im) ||
			eq->pi - eq->ci <= 1u << eq->log_depth);
}

static void cmd_events(struct hca_image *im, struct hca_eqs *eqs)
{
	hca_image_u32(im, "commands held", &eqs->cmd_held);
	for (unsigned int i = 0; i < HCA_NUM_CMD_SLOTS; i++) {
		if (!(eqs->cmd_held >> i & 1))
			continue;
		hca_image_u32(im, "command detail", &eqs->cmd[i].detail);
		hca_image_u16(im, "command token", &eqs->cmd[i].token);
		hca_image_u8(im, "command status", &eqs->cmd[i].status);
	}
	hca_image_check(im, "commands held", !eqs->cmd_held ||
			eqs->eq[QHCA_EQN_ASYNC].live);
}

void hca_eqs_image(struct hca_image *im, struct hca_fn *fn)
{
	struct hca_eqs *eqs = &fn->eqs;
	uint32_t n = hca_num_eqs(fn);

	for (uint32_t i = 0; i < n; i++) {
		struct hca_eq *eq = &eqs->eq[i];

		hca_image_bool(im, "live", &eq->live);
		if (!eq->live)
			continue;
		eq_fields(im, fn, eq);
		if (im->loading)
			eq->held_head = eq->held_tail = HCA_HELD_NONE;
	}
	cmd_events(im, eqs);
}

/* ---- held events */

/* Kinds of event, one octet each, the first that was raised first. */
static void kinds(struct hca_image *im, struct hca_held *h)
{
	hca_image_u8(im, "number of kinds", &h->count);
	hca_image_check(im, "number of kinds", h->count && h->count <= 8);
	for (unsigned int i = 0; i < h->count && i < 8; i++) {
		uint8_t kind = h->order >> 4 * i & 15;

		hca_image_u8(im, "kind", &kind);
		if (im->loading)
			h->order |= (uint32_t)(kind & 15) << 4 * i;
	}
}

static void held_of(struct hca_image *im, struct hca_fn *fn, struct hca_eq *eq)
{
	struct hca_held *held = fn->eqs.held, h;
	uint32_t n = 0, node;

	for (node = eq->held_head; !im->loading && node != HCA_HELD_NONE;
	     node = held[node].next)
		n++;
	hca_image_count(im, "number of objects", &n, hca_num_nodes(fn));
	node = eq->held_head;
	for (; n && !hca_image_failed(im); n--) {
		h = im->loading ? (struct hca_held){ 0 } : held[node];
		hca_image_u32(im, "object", &node);
		hca_image_u32(im, "detail", &h.detail);
		kinds(im, &h);
		hca_image_check(im, "object", hca_held_possible(fn, node, &h) &&
				(!im->loading || !held[node].linked));
		if (!im->loading)
			node = held[node].next;
		else if (!hca_image_failed(im))
			hca_held_load(fn, eq, node, &h);
	}
}

void hca_held_image(struct hca_image *im, struct hca_fn *fn)
{
	uint32_t n = hca_num_eqs(fn);

	for (uint32_t i = 0; i < n; i++)
		if (fn->eqs.eq[i].live)
			held_of(im, fn, &fn->eqs.eq[i]);
	if (im->loading && !hca_image_failed(im)) {
		hca_held_recount(fn, true);
		hca_fn_wake(fn);
	}
}
