// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The command queue in the image.
 *
 * A frozen engine has no command in its middle (hca_cmdq_finish()), but a command may be
 * held, until memory that it gives the device is pinned.  It has had no effect then, so
 * its slot and what has been read of its mailbox are all there is.
 */
#include "parts_image.h"

#include "hca.h"

HCA_IMAGE_COVERS(struct hca_cmdq, 8448);

static void rung(struct hca_image *im, struct hca_cmdq *q)
{
	uint32_t n = q->count;

	hca_image_count(im, "number of slots rung", &n, HCA_NUM_CMD_SLOTS);
	for (uint32_t i = 0; i < n && !hca_image_failed(im); i++) {
		uint8_t *slot = &q->order[(q->head + i) % HCA_NUM_CMD_SLOTS];

		hca_image_u8(im, "slot", slot);
		hca_image_check(im, "slot", *slot < 1u << q->log_slots &&
				!(im->loading && q->pending >> *slot & 1));
		if (!im->loading || hca_image_failed(im))
			continue;
		q->pending |= 1u << *slot;
		q->count++;
	}
}

static void held(struct hca_image *im, struct hca_fn *fn)
{
	struct hca_cmdq *q = &fn->cmdq;

	hca_image_u32(im, "current slot", &q->current);
	hca_image_check(im, "current slot", q->current < 1u << q->log_slots);
	hca_image_bytes(im, "command", &q->slot, sizeof(q->slot));
	hca_image_u8(im, "phase", &q->phase);
	hca_image_check(im, "phase", q->phase < HCA_CMD_EXECUTES);
	if (im->loading && !hca_image_failed(im))
		hca_image_check(im, "command", hca_cmdq_hold(fn));
	if (q->phase == HCA_CMD_NAMED && !hca_image_failed(im))
		hca_image_bytes(im, "mailbox", q->in, hca_cmdq_in_len(fn));
}

void hca_commands_image(struct hca_image *im, struct hca_fn *fn)
{
	struct hca_cmdq *q = &fn->cmdq;
	bool dead = hca_is_dead(fn), running = q->running && !dead;

	hca_image_u64(im, "base", &q->base);
	hca_image_u32(im, "log_slots", &q->log_slots);
	if (!(fn->status & QHCA_STATUS_ENABLED) || dead)
		return;
	hca_image_check(im, "base", !(q->base & 4095));
	hca_image_check(im, "log_slots", q->log_slots <= QHCA_MAX_LOG_CMD_SLOTS);
	if (hca_image_failed(im))
		return;
	rung(im, q);
	hca_image_bool(im, "slots pinned", &q->slots_pinned);
	hca_image_bool(im, "held", &running);
	hca_image_check(im, "held", !running || fn->s2.mode != HCA_S2_OFF);
	if (running)
		held(im, fn);
	if (!im->loading || hca_image_failed(im))
		return;
	/* Which of its memory is pinned is looked at from the beginning. */
	q->running = running;
	q->pin = (struct hca_pin_place){ 0 };
	hca_fn_wake(fn);
}
