// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Images of an adapter: what is refused, and with which sentence; what is not in the
 * simulator's worlds.  The simulator moves hosts in the middle of traffic (--migrate).
 */
#include <stdio.h>

#include "image/image.h"
#include "qp_setup.h"

static char err[300];
static const struct qhca_geometry geometry = { 4, 2 };

#define MEMORY_PIECE	64u		/* of the memory beside a golden image */

struct image {
	uint8_t *bytes;
	size_t len;
};

static struct image save(struct host *h)
{
	struct image im;

	if (!qhca_is_frozen(h->hca))
		assert_true(qhca_freeze(h->hca, host_clock(h), err, sizeof(err)));
	im.bytes = qhca_save(h->hca, &im.len, err, sizeof(err));
	assert_non_null(im.bytes);
	return im;
}

static bool load(struct host *h, struct image im)
{
	err[0] = 0;
	return qhca_load(h->hca, im.bytes, im.len, err, sizeof(err));
}

/* Where the fields of section @name of a function begin; 0: there is none. */
static size_t section(struct image im, const char *name, uint32_t gvmi)
{
	size_t at = HCA_IMAGE_MAGIC_LEN;

	while (at < im.len) {
		const uint8_t *head = im.bytes + at;

		at += HCA_IMAGE_HEADER;
		if (!strcmp((const char *)head, name) &&
		    get_le32(head + HCA_IMAGE_NAME_LEN + 4) == gvmi)
			return at;
		at += get_le32(head + HCA_IMAGE_HEADER - 4);
	}
	return 0;
}

/* @h, which is something else, refuses the image with this sentence and goes on. */
static void refuses(struct host *h, struct image im, const char *why)
{
	uint64_t counted = COUNT(h, commands);
	struct image before, after;

	before = save(h);
	assert_false(load(h, im));
	assert_string_equal(err, why);
	after = save(h);
	assert_int_equal(before.len, after.len);
	assert_memory_equal(before.bytes, after.bytes, after.len);
	free(before.bytes);
	free(after.bytes);
	qhca_thaw(h->hca, host_clock(h));
	assert_int_equal(COUNT(h, commands), counted);
}

static void test_not_frozen(void **state)
{
	struct host *h = host_new(NULL);
	size_t len;

	(void)state;
	assert_null(qhca_save(h->hca, &len, err, sizeof(err)));
	assert_string_equal(err, "the adapter is not frozen");
	h->fn->hca->entered = true;
	assert_false(qhca_load(h->hca, "", 0, err, sizeof(err)));
	assert_string_equal(err, "the adapter is in the middle of a call");
	h->fn->hca->entered = false;
	host_free(h);
}

static void test_other_configuration(void **state)
{
	struct host *h = ready(geometry), *vf, *other;
	struct image im = save(h);
	struct qhca_config cfg;

	(void)state;
	host_config(&cfg);
	cfg.num_gids--;
	other = host_new(&cfg);
	refuses(other, im, "section config: gids is 0x8 (8) there and 0x7 (7) here");
	host_free(other);
	host_config(&cfg);
	cfg.mac[5] ^= 1;
	other = host_new(&cfg);
	assert_false(load(other, im));
	assert_non_null(strstr(err, "section config: mac is "));
	host_free(other);
	other = host_new(NULL);
	vf = host_new_vf(other, 3, NULL);
	assert_false(load(other, im));
	assert_string_equal(err, "section config: the set of functions (sriov-vfs) is 0x1 (1) there and 0x9 (9) here");
	(void)vf;
	host_free(other);
	free(im.bytes);
	qhca_thaw(h->hca, h->now);
	host_free(h);
}

/* Each byte of the header of a section, and sections in another order. */
static void test_other_versions(void **state)
{
	struct host *h = ready(geometry), *other = host_new(NULL);
	struct image im = save(h);
	uint8_t *qp = im.bytes + section(im, "qp", 0) - HCA_IMAGE_HEADER;

	(void)state;
	qp[HCA_IMAGE_NAME_LEN] = 3;
	refuses(other, im, "section qp has version 3, and up to 2 can be read here");
	qp[HCA_IMAGE_NAME_LEN] = 0;
	refuses(other, im, "section qp has version 0, and up to 2 can be read here");
	qp[HCA_IMAGE_NAME_LEN] = 2;
	qp[0] = 'x';
	refuses(other, im, "section xp is unknown here: a newer version of the adapter has saved it");
	memcpy(qp, "cq", 2);
	refuses(other, im, "section cq of function 0 comes where section qp of function 0 should be");
	memcpy(qp, "qp", 2);
	qp[HCA_IMAGE_NAME_LEN + 4] = 1;
	refuses(other, im, "section qp of function 1 comes where section qp of function 0 should be");
	qp[HCA_IMAGE_NAME_LEN + 4] = 0;
	assert_true(load(other, im));
	free(im.bytes);
	host_free(other);
	host_free(h);
}

/* Contexts in memory have a layout, which an older adapter does not know. */
static void test_other_layout(void **state)
{
	static const char * const name[] = { "qp", "cq", "srq" };
	struct host *h = ready(geometry), *other = host_new(NULL);
	struct image im = save(h);
	char why[100];

	(void)state;
	for (unsigned int i = 0; i < 3; i++) {
		size_t at = section(im, name[i], 0);
		uint8_t *layout = im.bytes + at +
				  get_le32(im.bytes + at - 4) - 4;

		assert_int_equal(get_le32(layout), 1);
		put_le32(layout, 2);
		snprintf(why, sizeof(why), "section %s: contexts in memory have layout 2, and up to 1 can be read here",
			 name[i]);
		refuses(other, im, why);
		put_le32(layout, 0);
		assert_false(load(other, im));
		put_le32(layout, 1);
	}
	assert_true(load(other, im));
	free(im.bytes);
	host_free(other);
	host_free(h);
}

/* The same host as that of ready(), without the features @lacks. */
static struct host *with_fewer(uint64_t lacks)
{
	struct qhca_config cfg;
	struct qhca_init_hca in;
	struct host *h;

	host_config(&cfg);
	cfg.features &= ~lacks;
	h = host_new(&cfg);
	host_enable(h);
	host_init_default(h, &in);
	assert_int_equal(host_init_hca(h, &in), QHCA_CMD_OK);
	return h;
}

static uint64_t features(struct host *h)
{
	struct qhca_caps caps;

	assert_int_equal(host_cmd(h, QHCA_CMD_QUERY_CAPS, 0, 0, NULL, 0, &caps,
				  sizeof(caps)), QHCA_CMD_OK);
	return get_le64(&caps.features);
}

/*
 * The image of an adapter with fewer features, as an older one has them, is read by one
 * with more: software goes on with the features that it knows until the next reset.  The
 * way back is refused.
 */
static void test_other_features(void **state)
{
	const uint64_t lacks = QHCA_FEAT_XRC | QHCA_FEAT_RAW_PACKET;
	struct host *h = with_fewer(lacks), *other = with_fewer(0);
	struct image im = save(h), more = save(other);
	uint64_t all = other->fn->features;

	(void)state;
	assert_int_equal(h->fn->features, all & ~lacks);
	assert_int_equal(section(im, "flow", 0), 0);
	assert_int_not_equal(section(more, "flow", 0), 0);
	assert_true(load(other, im));
	memcpy(other->ram, h->ram, h->ram_len);
	qhca_thaw(other->hca, host_clock(other));
	assert_int_equal(features(other), all & ~lacks);
	qhca_reset(other->hca, 0, host_clock(other));
	host_enable(other);
	assert_int_equal(features(other), all);

	assert_false(load(h, more));
	assert_non_null(strstr(err, "section config: features is 0x"));
	assert_non_null(strstr(err, "which lacks 0x1000020"));
	qhca_thaw(h->hca, host_clock(h));
	assert_int_equal(features(h), all & ~lacks);
	free(im.bytes);
	free(more.bytes);
	host_free(other);
	host_free(h);
}

/* Software may go on with hints where nobody takes them: on a link of another kind. */
static void test_hints_go_nowhere(void **state)
{
	const uint64_t hints = QHCA_FEAT_POLL_HINT | QHCA_FEAT_STREAM_HINT;
	struct host *h = with_fewer(0), *other = with_fewer(hints);
	struct host *vf = host_new_vf(h, 1, NULL), *other_vf;
	uint64_t all = h->fn->features;
	struct qhca_config none;
	struct image im;

	(void)state;
	assert_int_equal(all & hints, hints);
	host_config(&none);
	none.mac[5]++;
	none.features &= ~hints;
	other_vf = host_new_vf(other, 1, &none);
	host_enable(vf);
	assert_true(vf->fn->features & QHCA_FEAT_STREAM_HINT);
	im = save(h);
	assert_true(load(other, im));
	assert_int_equal(other_vf->fn->features, vf->fn->features);
	memcpy(other->ram, h->ram, h->ram_len);
	qhca_thaw(other->hca, host_clock(other));
	assert_int_equal(features(other), all);
	/* Each function finds at its own next reset that there are none. */
	qhca_reset(other->hca, 1, host_clock(other));
	host_enable(other_vf);
	assert_int_equal(features(other_vf) & hints, 0);
	assert_int_equal(features(other), all);
	qhca_reset(other->hca, 0, host_clock(other));
	host_enable(other);
	assert_int_equal(features(other), all & ~hints);
	free(im.bytes);
	host_free(other);
	host_free(h);
}

/* An adapter from before sections had features has saved them without the feature. */
static void test_section_without_feature(void **state)
{
	struct host *h = with_fewer(0), *other = with_fewer(0);
	struct image im = save(h);
	uint8_t *field = im.bytes + section(im, "config", 0);

	(void)state;
	while (get_le64(field) != h->fn->features)
		field += 8;
	put_le64(field, h->fn->features & ~QHCA_FEAT_SRQ);
	assert_false(load(other, im));		/* resizing what there is not */
	assert_string_equal(err, "section config: features has a value that it cannot have");
	put_le64(field, h->fn->features &
		 ~(QHCA_FEAT_SRQ | QHCA_FEAT_SRQ_RESIZE | QHCA_FEAT_POOL |
		   QHCA_FEAT_RAW_PACKET));
	assert_true(load(other, im));
	free(im.bytes);
	host_free(other);
	host_free(h);
}

/* What a function asks the host domain for does not go beyond the last address. */
static void test_request_wraps(void **state)
{
	struct host *h = ready(geometry), *vf = host_new_vf(h, 1, NULL);
	struct image im = save(h);
	/* Behind the row, "dead", and the generation and three states of the request. */
	uint8_t *addr = im.bytes + section(im, "stage2", 1) + 18 + 1 + 4;

	(void)state;
	(void)vf;
	put_le64(addr, UINT64_MAX);
	put_le64(addr + 8, 1);
	assert_true(load(h, im));
	put_le64(addr + 8, 2);
	assert_false(load(h, im));
	assert_string_equal(err, "section stage2 of function 1: request length has a value that it cannot have");
	/* A request that waits names at least one byte. */
	put_le64(addr + 8, 0);
	assert_true(load(h, im));
	addr[-3] = 1;
	assert_false(load(h, im));
	assert_string_equal(err, "section stage2 of function 1: request length has a value that it cannot have");
	free(im.bytes);
	host_free(h);
}

/* No part of an image is an image. */
static void test_truncated(void **state)
{
	struct host *h = ready(geometry), *other = host_new(NULL);
	struct image im = save(h), part = im;

	(void)state;
	for (part.len = 0; part.len < im.len;
	     part.len += part.len % 16 ? 13 : 97)
		assert_false(load(other, part));
	part.len = im.len - 1;
	refuses(other, part, "it ends in section injector");
	assert_true(load(other, im));
	free(im.bytes);
	host_free(other);
	host_free(h);
}

/* A loaded adapter forgets what it was, and counts on from what the other had. */
static void test_instead(void **state)
{
	struct host *h = ready(geometry), *other = ready(geometry);
	struct qhca_qpc_sw sw = good(other);
	struct image im = save(h), again;
	uint64_t commands = COUNT(h, commands);

	(void)state;
	assert_int_equal(create(other, QPN, &sw), QHCA_CMD_OK);
	to_rts(other, QPN);
	assert_true(other->fn->qps.slot[QPN].live);
	assert_true(load(other, im));
	assert_false(other->fn->qps.slot[QPN].live);
	assert_int_equal(COUNT(other, commands), commands);
	again = save(other);
	assert_int_equal(im.len, again.len);
	assert_memory_equal(im.bytes, again.bytes, im.len);
	free(im.bytes);
	free(again.bytes);
	host_free(other);
	host_free(h);
}

/* A context that is another one by then is fatal, and for nothing but its function. */
static void test_context_changed(void **state)
{
	struct host *h = ready(geometry);
	struct qhca_qpc_sw sw = good(h);
	struct image im;
	uint64_t addr;

	(void)state;
	assert_int_equal(create(h, QPN, &sw), QHCA_CMD_OK);
	to_rts(h, QPN);
	im = save(h);
	assert_true(load(h, im));
	assert_true(hca_table_entry(h->fn, QHCA_TABLE_QP, QPN, &addr));
	memset(host_ptr(h, addr), 0, 1024);
	qhca_thaw(h->hca, h->now);
	assert_int_equal(QHCA_GET(QHCA_STATUS_FATAL_CAUSE, h->fn->status),
			 QHCA_FATAL_CONTEXT);
	/* A dead function moves as well. */
	host_move(h, 77);
	assert_true(hca_is_dead(h->fn));
	qhca_reset(h->hca, 0, host_clock(h));
	assert_false(hca_is_dead(h->fn));
	free(im.bytes);
	host_free(h);
}

/* A reset that waits for the end of the freeze travels, and takes effect there. */
static void test_reset_waits(void **state)
{
	struct host *h = ready(geometry);
	struct image im;

	(void)state;
	assert_true(qhca_freeze(h->hca, h->now, err, sizeof(err)));
	qhca_pci_reset(h->hca, 0, h->now);
	qhca_set_link(h->hca, false, h->now);
	im = save(h);
	assert_true(load(h, im));
	assert_true(h->fn->initialised);
	qhca_thaw(h->hca, 123456);
	assert_false(h->fn->initialised);
	assert_false(h->fn->hca->link_up);
	assert_int_equal(qhca_reg_read(h->hca, 0, QHCA_REG_CLOCK_LO, 123457), 1);
	free(im.bytes);
	host_free(h);
}

/* DESTROY_EQ of the queue that has held events, which takes more than one slice. */
static void test_destroy_eq(void **state)
{
	struct host *h = ready(geometry);
	uint32_t number = h->fn->eqs.base[HCA_SOURCE_SRQ], i;
	struct qhca_cmd_slot slot = { 0 };
	struct ring eq;

	(void)state;
	eq = host_ring(h, 1);
	assert_int_equal(host_create_eq(h, 1, &eq, 0), QHCA_CMD_OK);
	for (i = 0; i < number; i++)
		hca_event(h->fn, QHCA_EVENT_QP_FATAL, i, 0);
	host_move(h, 5);
	put_le16(&slot.opcode, QHCA_CMD_DESTROY_EQ);
	host_cmd_begin(h, &slot, 0);
	host_move(h, 6);		/* IN_USE, since the CQ refers to it */
	assert_true(hca_eq_live(h->fn, 0));
	assert_int_equal(host_cmd(h, QHCA_CMD_DESTROY_CQ, CQN, 0, NULL, 0, NULL,
				  0), QHCA_CMD_OK);
	slot.index = 0;
	host_cmd_begin(h, &slot, 0);
	host_move(h, 7);
	host_run(h);
	assert_false(hca_eq_live(h->fn, 0));
	host_free(h);
}

/* A QP whose ACK timeout is 0 sends again what was on its way. */
static void check_no_timeout(uint8_t timeout, bool sends)
{
	struct host *h = ready(geometry);
	struct qhca_qpc_sw sw = good(h), attr = attributes();
	struct hca_qp *qp;
	uint64_t sent;

	attr.timeout = timeout;
	assert_int_equal(create(h, QPN, &sw), QHCA_CMD_OK);
	assert_int_equal(modify(h, QPN, QHCA_QPS_INIT, TO_INIT, &attr), 0);
	assert_int_equal(modify(h, QPN, QHCA_QPS_RTR, TO_RTR, &attr), 0);
	assert_int_equal(modify(h, QPN, QHCA_QPS_RTS, TO_RTS, &attr), 0);
	/* The message is a SEND without data. */
	((uint8_t *)host_ptr(h, get_le64(&sw.buf.base)))[0] = QHCA_WQE_SEND;
	qhca_doorbell(h->hca, 0, 0, QHCA_DB_SQ, 1ull << 32 | QPN, h->now);
	host_run(h);
	qp = hca_qp_get(h->fn, QPN);
	assert_int_equal(qp->s_max - qp->s_una, 1);
	sent = COUNT(h, tx_packets);
	host_move(h, 99);
	host_run(h);
	assert_int_equal(COUNT(h, tx_packets), sent + sends);
	host_free(h);
}

static void test_no_timeout(void **state)
{
	(void)state;
	check_no_timeout(0, true);
	check_no_timeout(14, false);
}

/* Frames in the loopback queue keep their order, wherever the oldest one lies. */
static void test_frames(void **state)
{
	struct host *h = ready(geometry);
	struct hca_wire *w = &h->hca->hca.wire;

	(void)state;
	w->loop_ci = w->loop_pi = HCA_LOOP_FRAMES - 1;
	for (uint32_t i = 0; i < 3; i++) {
		uint32_t slot = w->loop_pi++ % HCA_LOOP_FRAMES;

		w->looped[slot] = (struct hca_looped){ .to = 1, .len = 60 + i };
		memset(w->loop + slot * QHCA_MAX_FRAME, (int)(i + 1), 60 + i);
		hca_places_take(&w->loop_places, 0);
	}
	host_move(h, 3);
	w = &h->hca->hca.wire;
	/* Thawing delivers no frames: qhca_run() does that. */
	assert_int_equal(w->loop_pi - w->loop_ci, 3);
	assert_int_equal(w->loop_places.of[0], 3);
	for (uint32_t i = 0; i < 3; i++) {
		uint32_t slot = (w->loop_ci + i) % HCA_LOOP_FRAMES;

		assert_int_equal(w->looped[slot].len, 60 + i);
		assert_int_equal(w->loop[slot * QHCA_MAX_FRAME + 59 + i], i + 1);
	}
	host_run(h);
	assert_int_equal(w->loop_pi, w->loop_ci);
	host_free(h);
}

/*
 * A function that waited for its rate when the machine went back in time waits no
 * more, and without a rate a bucket is never in debt: nobody divides by it.
 */
static void test_rate_held(void **state)
{
	struct host *h = ready(geometry), *vf = host_new_vf(h, 1, NULL);
	struct image im = save(h);
	uint8_t *level = im.bytes + section(im, "rate", 1) + 8;

	(void)state;
	qhca_thaw(h->hca, host_clock(h));
	hca_rate_set(vf->fn, 1, 0);
	while (!hca_rate_waits(vf->fn))
		hca_rate_sent(vf->fn, QHCA_MAX_FRAME);
	assert_true(qhca_freeze(h->hca, host_clock(h), err, sizeof(err)));
	assert_true(load(h, im));
	assert_false(hca_rate_is_held(vf->fn));
	memset(level, 0xff, 8);			/* -1 */
	assert_false(load(h, im));
	assert_string_equal(err, "section rate of function 1: level has a value that it cannot have");
	free(im.bytes);
	qhca_thaw(h->hca, host_clock(h));
	host_run(h);
	host_free(h);
}

/* ------------------------------------------------------------------------
 * Images of versions that were released
 */

/* What the host of each golden image had done: it must stay as it is. */
static struct host *golden_host(void)
{
	struct host *h = ready(geometry), *vf = host_new_vf(h, 1, NULL);
	struct qhca_vf_config set = { .qos = 3 };
	struct qhca_inject_config inject = {
		.rule[QHCA_INJECT_DELAY].nth = 1, .delay_ns = 7000000,
		.on_tx = true, .seed = 42,
	};
	struct qhca_qpc_sw sw = good(h);

	(void)vf;
	host_run_at(h, 1000000);
	assert_true(qhca_inject_set(h->hca, &inject, err, sizeof(err)));
	put_le32(&set.fields, QHCA_VF_SET_VLAN | QHCA_VF_SET_RATE);
	put_le16(&set.vlan, 77);
	put_le32(&set.max_rate, 1000);
	assert_int_equal(host_cmd(h, QHCA_CMD_SET_VF, 1, 0, &set, sizeof(set),
				  NULL, 0), QHCA_CMD_OK);
	assert_int_equal(create(h, QPN, &sw), QHCA_CMD_OK);
	to_rts(h, QPN);
	qhca_doorbell(h->hca, 0, 0, QHCA_DB_SQ, 1ull << 32 | QPN, h->now);
	host_run(h);
	for (uint32_t i = 0; i < 70; i++)	/* of 64 entries */
		hca_event(h->fn, QHCA_EVENT_QP_SQ_DRAINED, 6 + i % 58, 0);
	hca_event(h->fn, QHCA_EVENT_CQ_ERROR, 9, 123);
	host_run_at(h, 1050000);
	return h;
}

static void check_golden(struct host *h)
{
	const struct hca_inject *inject = &h->hca->hca.inject;
	const struct hca_fn *vf = h->hca->hca.fn[1];
	struct hca_held *held = h->fn->eqs.held;
	const struct hca_qpslot *slot;

	assert_int_equal(h->hca->hca.now, 1050000);
	assert_int_equal(inject->cfg.seed, 42);
	assert_int_equal(inject->held, 1);
	assert_int_equal(inject->slot[0].due, 8000000);
	assert_int_equal(vf->vf.vlan, 77);
	assert_int_equal(vf->vf.qos, 3);
	assert_int_equal(vf->rate.max.rate, 1000);
	assert_int_equal(COUNT(h, tx_packets), 1);
	assert_int_equal(h->fn->port.num_gids_valid, 1);
	assert_int_equal(h->fn->port.eth_mtu, 4200);
	assert_true(hca_eq_live(h->fn, 0));
	assert_int_equal(h->fn->eqs.eq[0].pi, 64);
	held += h->fn->eqs.base[HCA_SOURCE_CQ] + 9;
	assert_true(held->linked);
	assert_int_equal(held->detail, 123);

	qhca_thaw(h->hca, 1050000);
	slot = &h->fn->qps.slot[QPN];
	assert_true(slot->live && slot->state == QHCA_QPS_RTS && slot->has_sq);
	assert_int_not_equal(slot->heap_pos, 0);
	assert_int_equal(h->fn->cqs.slot[CQN].refs, 2);
	assert_int_equal(h->fn->eqs.eq[0].refs, 1);
	/* The timer of 4.096 us * 2^14 fires when it would have, and is excused once. */
	assert_in_range(slot->deadline, 1050000, 1000000 + 4 * (4096ull << 14));
	host_run_at(h, slot->deadline);
	assert_int_equal(COUNT(h, tx_packets), 1);
	host_run_at(h, slot->deadline);
	assert_int_equal(COUNT(h, tx_packets), 2);
}

/* Memory that is not zero: address and length, 4 octets each, and as many octets. */
static void write_memory(FILE *f, const struct host *h)
{
	static const uint8_t zero[MEMORY_PIECE];
	uint8_t head[8];

	for (uint32_t at = 0; at < h->ram_len; at += MEMORY_PIECE) {
		if (!memcmp(h->ram + at, zero, MEMORY_PIECE))
			continue;
		put_le32(head, at);
		put_le32(head + 4, MEMORY_PIECE);
		assert_int_equal(fwrite(head, 1, sizeof(head), f), sizeof(head));
		assert_int_equal(fwrite(h->ram + at, 1, MEMORY_PIECE, f),
				 MEMORY_PIECE);
	}
}

static void read_memory(FILE *f, struct host *h)
{
	uint8_t head[8];

	memset(h->ram, 0, h->ram_len);
	while (fread(head, 1, sizeof(head), f) == sizeof(head)) {
		uint32_t at = get_le32(head), len = get_le32(head + 4);

		assert_true(at <= h->ram_len && len <= h->ram_len - at);
		assert_int_equal(fread(h->ram + at, 1, len, f), len);
	}
}

static void write_golden(const char *image, const char *memory)
{
	struct host *h = golden_host();
	struct image im = save(h);
	FILE *f = fopen(image, "w"), *m = fopen(memory, "w");

	assert_true(f && m);
	assert_int_equal(fwrite(im.bytes, 1, im.len, f), im.len);
	write_memory(m, h);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(fclose(m), 0);
	free(im.bytes);
	host_free(h);
}

/*
 * An image that an older engine has saved, and the memory beside it, which has the
 * contexts as that engine has written them.  GOLDEN_WRITE=1 writes the files if the image
 * is not there: for a new version, never again for a released one.
 */
static void check_version(const char *image, const char *memory)
{
	static uint8_t bytes[1u << 20];
	struct image im = { .bytes = bytes };
	struct host *h = ready(geometry), *vf = host_new_vf(h, 1, NULL);
	FILE *f = fopen(image, "r"), *m;

	(void)vf;
	if (!f && getenv("GOLDEN_WRITE")) {
		write_golden(image, memory);
		f = fopen(image, "r");
	}
	m = fopen(memory, "r");
	assert_true(f && m);
	im.len = fread(bytes, 1, sizeof(bytes), f);
	read_memory(m, h);
	fclose(f);
	fclose(m);
	if (!load(h, im))
		fail_msg("%s: %s", image, err);
	h->now = 1050000;
	check_golden(h);
	host_free(h);
}

static void test_golden(void **state)
{
	(void)state;
	check_version(GOLDEN "/golden-1.image", GOLDEN "/golden-1.memory");
	check_version(GOLDEN "/golden-2.image", GOLDEN "/golden-2.memory");
	check_version(GOLDEN "/golden-3.image", GOLDEN "/golden-3.memory");
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_not_frozen),
	cmocka_unit_test(test_other_configuration),
	cmocka_unit_test(test_other_versions),
	cmocka_unit_test(test_other_layout),
	cmocka_unit_test(test_other_features),
	cmocka_unit_test(test_hints_go_nowhere),
	cmocka_unit_test(test_section_without_feature),
	cmocka_unit_test(test_request_wraps),
	cmocka_unit_test(test_truncated),
	cmocka_unit_test(test_instead),
	cmocka_unit_test(test_context_changed),
	cmocka_unit_test(test_reset_waits),
	cmocka_unit_test(test_destroy_eq),
	cmocka_unit_test(test_no_timeout),
	cmocka_unit_test(test_frames),
	cmocka_unit_test(test_rate_held),
	cmocka_unit_test(test_golden),
};
TEST_MAIN(tests)
