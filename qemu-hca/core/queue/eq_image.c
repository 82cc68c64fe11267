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

/*
 * Every object can hold an event, so those of one source are a bit for each object, and
 * then what the objects of the bits hold, in so many octets:
 *
 *   kinds    in the order in which they were raised, each one more than its number, in
 *            a nibble; none if the source has one kind
 *   detail   the largest that objects of the source have; QPs have none
 *   EQ       if it is not EQ 0
 *
 * The order among objects is lost, which software cannot rely on.
 */
struct form {
	uint8_t kinds, detail, eqn;
};

static struct form form_of(const struct hca_fn *fn, enum hca_event_source source)
{
	static const struct form form[HCA_NUM_EVENT_SOURCES] = {
		[HCA_SOURCE_QP] = { .kinds = 4 },
		[HCA_SOURCE_SRQ] = { .kinds = 1, .detail = 2 },
		[HCA_SOURCE_CQ] = { .detail = 1 },
		[HCA_SOURCE_COMPLETION] = { .detail = 4, .eqn = 1 },
		[HCA_SOURCE_PORT] = { .detail = 4 },
		[HCA_SOURCE_STAGE2] = { 0 },
	};
	struct form f = form[source];

	/* The limit of an SRQ is at most its depth. */
	if (source == HCA_SOURCE_SRQ && fn->cfg.log_max_wq_depth >= 16)
		f.detail = 3;
	return f;
}

_Static_assert(HCA_MAX_LOG_EQ <= 8, "an EQ is one octet");

/* A number of 0 to 4 octets. */
static void octets(struct hca_image *im, const char *field, uint32_t *v,
		   unsigned int n)
{
	uint8_t raw[4] = { 0 };

	if (!im->loading) {
		put_le32(raw, *v);
		hca_image_check(im, field, n == 4 || !(*v >> 8 * n));
	}
	hca_image_bytes(im, field, raw, n);
	*v = get_le32(raw);
}

static uint32_t pack_kinds(const struct hca_held *h)
{
	uint32_t packed = 0;

	for (unsigned int i = 0; i < h->count; i++)
		packed |= ((h->order >> 4 * i & 15) + 1) << 4 * i;
	return packed;
}

static void unpack_kinds(struct hca_image *im, uint32_t packed,
			 struct hca_held *h)
{
	for (; packed & 15; packed >>= 4, h->count++)
		h->order |= ((packed & 15) - 1) << 4 * h->count;
	hca_image_check(im, "kinds", h->count && !packed);
}

static void held_node(struct hca_image *im, struct hca_fn *fn, uint32_t node,
		      struct form form)
{
	struct hca_held h = im->loading ? (struct hca_held){ 0 } :
			    fn->eqs.held[node];
	uint32_t packed = pack_kinds(&h), eqn = h.eqn;

	hca_image_check(im, "kinds", form.kinds || im->loading || packed == 1);
	if (form.kinds)
		octets(im, "kinds", &packed, form.kinds);
	else
		packed = 1;
	octets(im, "detail", &h.detail, form.detail);
	octets(im, "EQ", &eqn, form.eqn);
	if (!im->loading)
		return;
	unpack_kinds(im, packed, &h);
	hca_image_check(im, "object", hca_held_possible(fn, node, &h));
	hca_image_check(im, "EQ", hca_eq_live(fn, eqn));
	if (!hca_image_failed(im))
		hca_held_load(fn, &fn->eqs.eq[eqn], node, &h);
}

/* At most 64 objects, from @node on. */
static void held_piece(struct hca_image *im, struct hca_fn *fn, uint32_t node,
		       uint32_t n, struct form form)
{
	uint64_t bits = 0;

	for (uint32_t i = 0; i < n && !im->loading; i++)
		bits |= (uint64_t)fn->eqs.held[node + i].linked << i;
	hca_image_u64(im, "objects", &bits);
	hca_image_check(im, "objects", n == 64 || !(bits >> n));
	for (uint32_t i = 0; i < n && !hca_image_failed(im); i++)
		if (bits >> i & 1)
			held_node(im, fn, node + i, form);
}

static void held_source(struct hca_image *im, struct hca_fn *fn,
			enum hca_event_source source)
{
	const struct form form = form_of(fn, source);
	uint32_t node = fn->eqs.base[source], end = fn->eqs.base[source + 1];
	bool any = false;

	for (uint32_t i = node; i < end && !im->loading; i++)
		any |= fn->eqs.held[i].linked;
	hca_image_bool(im, "any", &any);
	for (; any && node < end && !hca_image_failed(im); node += 64)
		held_piece(im, fn, node, end - node < 64 ? end - node : 64, form);
}

/* An event that version 1 has saved is one that this version can save. */
static void fit(struct hca_image *im, const struct hca_fn *fn, uint32_t node,
		const struct hca_eq *eq, struct hca_held *h)
{
	enum hca_event_source source = hca_held_source(&fn->eqs, node);
	struct form form = form_of(fn, source);

	if (!form.detail)
		h->detail = 0;		/* as it is in all events of these sources */
	hca_image_check(im, "detail", form.detail == 4 ||
			!(h->detail >> 8 * form.detail));
	hca_image_check(im, "EQ", form.eqn || eq == &fn->eqs.eq[QHCA_EQN_ASYNC]);
}

/* Version 1 had a list for each EQ. */
static void held_list(struct hca_image *im, struct hca_fn *fn, struct hca_eq *eq)
{
	uint32_t n = 0, node = 0;

	hca_image_count(im, "number of objects", &n, hca_num_nodes(fn));
	for (; n && !hca_image_failed(im); n--) {
		struct hca_held h = { 0 };

		hca_image_u32(im, "object", &node);
		hca_image_u32(im, "detail", &h.detail);
		hca_image_u8(im, "number of kinds", &h.count);
		hca_image_check(im, "number of kinds", h.count && h.count <= 8);
		for (unsigned int i = 0; i < h.count && i < 8; i++) {
			uint8_t kind = 0;

			hca_image_u8(im, "kind", &kind);
			h.order |= (uint32_t)(kind & 15) << 4 * i;
		}
		hca_image_check(im, "object", hca_held_possible(fn, node, &h) &&
				!fn->eqs.held[node].linked);
		if (!hca_image_failed(im))
			fit(im, fn, node, eq, &h);
		if (!hca_image_failed(im))
			hca_held_load(fn, eq, node, &h);
	}
}

void hca_held_image(struct hca_image *im, struct hca_fn *fn)
{
	for (unsigned int i = 0; im->version > 1 && i < HCA_NUM_EVENT_SOURCES; i++)
		held_source(im, fn, (enum hca_event_source)i);
	for (uint32_t i = 0; im->version == 1 && i < hca_num_eqs(fn); i++)
		if (fn->eqs.eq[i].live)
			held_list(im, fn, &fn->eqs.eq[i]);
	if (im->loading && !hca_image_failed(im)) {
		hca_held_recount(fn, true);
		hca_fn_wake(fn);
	}
}
