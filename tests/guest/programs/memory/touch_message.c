// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Messages of qhca-touch: of several packets, and atomic operations, one at a time.
 *
 * The local side of a message is memory of the pool.  Its key is in the bank of the
 * device, so that the device looks no cache up for it, and the look-ups that it counts
 * are those by the R_Key.  As all pages of a region are one page of memory, a message
 * that is longer than a page writes the same word more than once; all words of a
 * message are therefore equal.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "touch.h"

static void open_room(struct touch *t)
{
	if (t->room)
		return;
	t->room = touch_pool_alloc(t->ctx, MESSAGE_MAX);
	t->room_mr = ibv_reg_mr(t->pd, t->room->addr, MESSAGE_MAX, ACCESS);
	if (!t->room_mr)
		die("ibv_reg_mr of the pool's memory: %s", strerror(errno));
}

void drop_room(struct touch *t)
{
	if (!t->room)
		return;
	if (ibv_dereg_mr(t->room_mr))
		die("ibv_dereg_mr: %s", strerror(errno));
	touch_pool_free(t->ctx, t->room);
}

static void fill_words(uint64_t *word, uint32_t bytes, uint64_t value)
{
	for (uint32_t i = 0; i < bytes / 8; i++)
		word[i] = value;
}

static void expect_words(const struct touch *t, const uint64_t *word, uint32_t bytes,
			 uint64_t value)
{
	for (uint32_t i = 0; i < bytes / 8; i++)
		if (word[i] != value)
			die("message %" PRIu64 ": word %u is %" PRIu64 ", not %" PRIu64,
			    t->num_accesses, i, word[i], value);
}

/* Posts a message, and takes its completion. */
static void exchange(struct touch *t, const struct message *m, uint64_t *remote,
		     uint32_t rkey, uint64_t compare)
{
	static const enum ibv_wr_opcode opcode[MESSAGE_NUM_KINDS] = {
		[MESSAGE_WRITE] = IBV_WR_RDMA_WRITE,
		[MESSAGE_READ] = IBV_WR_RDMA_READ,
		[MESSAGE_FETCH_ADD] = IBV_WR_ATOMIC_FETCH_AND_ADD,
		[MESSAGE_COMPARE_SWAP] = IBV_WR_ATOMIC_CMP_AND_SWP,
	};
	struct ibv_sge sge = { (uintptr_t)t->room->addr, m->bytes, t->room_mr->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = opcode[m->kind],
		.send_flags = IBV_SEND_SIGNALED,
	}, *bad;
	struct ibv_wc wc;
	int n, err;

	if (message_is_atomic(m)) {
		wr.wr.atomic.remote_addr = (uintptr_t)remote;
		wr.wr.atomic.rkey = rkey;
		wr.wr.atomic.compare_add = m->kind == MESSAGE_FETCH_ADD ? 1 : compare;
		wr.wr.atomic.swap = compare + 1;
	} else {
		wr.wr.rdma.remote_addr = (uintptr_t)remote;
		wr.wr.rdma.rkey = rkey;
	}
	err = ibv_post_send(t->qp[0], &wr, &bad);
	if (err)
		die("ibv_post_send: %s", strerror(err));
	do
		n = ibv_poll_cq(t->cq, 1, &wc);
	while (!n);
	if (n < 0 || wc.status != IBV_WC_SUCCESS)
		die("message %" PRIu64 " failed: %s", t->num_accesses,
		    n < 0 ? "no completion" : ibv_wc_status_str(wc.status));
}

/* The words that the message names hold @value before it; returns what they hold after it. */
static uint64_t do_message(struct touch *t, const struct message *m, struct pattern_access a,
			   uint64_t value)
{
	struct region *r = &t->region[a.key];
	uint64_t *remote = (uint64_t *)(r->base + a.page * t->page_size + m->offset);
	uint64_t *local = t->room->addr;

	t->num_accesses++;
	if (m->kind == MESSAGE_WRITE)
		fill_words(local, m->bytes, t->num_accesses);
	else
		fill_words(local, m->bytes, ~value);
	exchange(t, m, remote, r->mr->rkey, value);
	switch (m->kind) {
	case MESSAGE_WRITE:
		expect_words(t, remote, m->bytes, t->num_accesses);
		return t->num_accesses;
	case MESSAGE_READ:
		expect_words(t, local, m->bytes, value);
		return value;
	default:
		expect_words(t, local, m->bytes, value);
		expect_words(t, remote, m->bytes, value + 1);
		return value + 1;
	}
}

void do_messages(struct touch *t, const struct message *m, const char *order,
		 unsigned int keys, unsigned int pages)
{
	enum pattern_kind kind;
	struct pattern_access a;
	struct pattern p;
	uint64_t *value = calloc(keys + 1, sizeof(*value)), n, counted;

	if (!value || !keys || !pages || !pattern_kind_of(order, &kind))
		die("there is no order %s of %u keys and %u pages", order, keys, pages);
	if (t->memory != MEMORY_SMALL || keys > t->num_regions ||
	    pages + message_pages(m) - 1 > t->pages)
		die("messages to %u pages of %u keys need as many small regions of %u pages",
		    pages, keys, pages + message_pages(m) - 1);
	open_room(t);
	p = pattern_begin(kind, keys, pages);
	for (unsigned int k = 0; k < keys; k++) {
		value[k] = 1000000ull * (k + 1);
		fill_words((uint64_t *)t->region[k].base, SMALL_PAGE, value[k]);
	}
	counted = pattern_counted(&p);
	for (n = pattern_items(&p) + counted; n; n--) {
		if (n == counted)
			do_mark(t);
		a = pattern_next(&p);
		value[a.key] = do_message(t, m, a, value[a.key]);
	}
	/* check_regions() wants them so: no access of do_write() has been here. */
	for (unsigned int k = 0; k < keys; k++) {
		memset(t->region[k].base, 0, SMALL_PAGE);
		memset(t->region[k].written, 0, sizeof(t->region[k].written));
	}
	free(value);
}
