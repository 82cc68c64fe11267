// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <string.h>

#include "traffic.h"

#define STRETCH	1000000ull	/* ns of polling, until the others and signals have their turn */
#define LOOKS	64		/* at the memory, between two at the clock */
#define PROBE	100000000ull	/* ns without a message, until this end looks for its peer */
#define SILENCE	20000000ull	/* ns without a message, until this end no longer only polls */

/* Both ends number their messages from 0; the client has the first word. */
static bool is_my_turn(const struct traffic *t, const struct lane *l)
{
	return l->expected == l->sent + t->peer.server;
}

static uint64_t seed_of(bool server, uint64_t number)
{
	return number * 2 + server + 1;
}

/* If a store of either end or a WRITE of the peer was lost, the slot may still have an old one. */
static void wrong_bytes(struct traffic *t, const struct lane *l, const uint8_t *slot)
{
	uint64_t number = l->expected;

	while (number >= t->shape->depth) {
		number -= t->shape->depth;
		if (flow_check(slot, seed_of(!t->peer.server, number), 0, t->shape->size)) {
			flow_bad(&t->flow, "message %llu has the bytes of %llu",
				 (unsigned long long)l->expected, (unsigned long long)number);
			return;
		}
	}
	flow_bad(&t->flow, "message %llu has wrong bytes", (unsigned long long)l->expected);
}

/* Nothing but the content tells of a message.  Its slot was zero before. */
static bool has_come(struct traffic *t, const struct lane *l)
{
	const uint32_t size = t->shape->size;
	uint8_t *slot = part_of(t, 0, WRITTEN, l->expected % t->shape->depth);
	uint64_t seed = seed_of(!t->peer.server, l->expected);

	if (!((volatile uint64_t *)slot)[size / sizeof(uint64_t) - 1])
		return false;
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (flow_check(slot, seed, 0, size)) {
		t->flow.verified++;
	} else {
		if (flow_check_partly(slot, seed, 0, size))
			return false;	/* the rest is on its way */
		wrong_bytes(t, l, slot);
	}
	memset(slot, 0, size);
	return true;
}

/*
 * Returns whether the queue has taken the request.  One of no bytes brings nothing: its
 * acknowledgement, or the want of it, tells whether the peer is there.
 */
static bool write_to_peer(struct traffic *t, struct lane *l, uint32_t len)
{
	const uint32_t slot = l->sent % t->shape->depth;
	struct ibv_sge sge = {
		(uintptr_t)part_of(t, 0, SOURCE, slot), len, t->mr->lkey,
	};
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = !!len,
		.wr.rdma = { l->target + (uint64_t)slot * t->shape->size, l->rkey },
	};

	if (l->posted - l->done == t->shape->depth)
		return false;
	if (len)
		flow_fill(part_of(t, 0, SOURCE, slot), seed_of(t->peer.server, l->sent), 0, len);
	return lane_post(t, l, &wr);
}

/*
 * The acknowledgement of what this end sent last came before the message, so that one look at
 * the queue, which does not wait, finds it.
 */
static void take(struct traffic *t, struct lane *l)
{
	struct ibv_wc wc[4];
	int n = ibv_poll_cq(t->send_cq, 4, wc);

	for (int i = 0; i < n; i++)
		complete_send(t, &wc[i]);
	l->expected++;
}

bool answer(struct traffic *t)
{
	struct lane *l = &t->lane[0];
	uint64_t now = now_ns(), end = now + STRETCH;

	if (!t->heard)
		t->heard = now;
	for (; now < end && !l->ended && !t->stopped && !t->fatal; now = now_ns())
		for (int i = 0; i < LOOKS; i++) {
			if (has_come(t, l)) {
				take(t, l);
				t->heard = now;
			}
			if (is_my_turn(t, l) && write_to_peer(t, l, t->shape->size))
				l->sent++;
		}
	/* Whoever waits has no request under way, which would fail without the peer. */
	if (now - t->heard > PROBE && l->posted == l->done && !l->ended && !t->stopped)
		write_to_peer(t, l, 0);
	return now - t->heard < SILENCE;
}
