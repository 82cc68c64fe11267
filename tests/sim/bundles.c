/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "bundles.h"

#include <stdlib.h>
#include <string.h>

#define IPV4_UDP	(20 + 8)

static void keep(struct seen *s, const uint8_t *frame, size_t len)
{
	CHECK(s->num_kept < MAX_KEPT);
	if (s->num_kept == MAX_KEPT)
		return;
	s->kept[s->num_kept].len = len;
	memcpy(s->kept[s->num_kept++].data, frame, len);
}

static void see_message(struct seen *s, unsigned int from, const uint8_t *frame,
			size_t len, uint8_t kind)
{
	CHECK(kind >= PEER_ASK && kind < PEER_KINDS);
	kind %= PEER_KINDS;
	s->kind[kind]++;
	s->last[kind].len = len;
	memcpy(s->last[kind].data, frame, len);
	if (kind != PEER_ASK)
		return;
	s->asks_of[from]++;
	s->of[frame[11]].asks++;
}

static void see_packet(struct seen *s, unsigned int from, const uint8_t *frame,
		       size_t len, const struct hca_pkt *pkt)
{
	bool bundle = pkt->bundle;

	s->bundles += bundle;
	s->single += !bundle;
	s->of[frame[11]].bundles += bundle;
	s->of[frame[11]].single += !bundle;
	if (s->keep && !from)
		keep(s, frame, len);
}

bool see_frame(struct world *w, unsigned int from, uint8_t *frame, size_t len)
{
	struct seen *s = w->filter_arg;
	size_t type = get_be16(frame + 12) == 0x8100 ? 16 : 12, bth;
	struct hca_pkt pkt;

	bth = type + 2 + IPV4_UDP;
	if (len > s->longest)
		s->longest = len;
	if (get_be16(frame + type) == PEER_TYPE) {
		uint8_t kind = frame[type + 2 + PEER_KIND];

		see_message(s, from, frame, len, kind);
		if (s->drop && kind == s->drop)
			return false;
	} else if (hca_pkt_parse(frame + bth, len - bth, &pkt)) {
		s->roce_bytes[from] += len;
		if (pkt.payload_len)
			see_packet(s, from, frame, len, &pkt);
	}
	return len <= s->limit;
}

void watch(struct pair *p, struct seen *s)
{
	memset(s, 0, sizeof(*s));
	s->limit = SIZE_MAX;
	s->kept = calloc(MAX_KEPT, sizeof(*s->kept));
	/* A message is sent in one call of the engine. */
	p->w.budget = 64;
	p->w.filter = see_frame;
	p->w.filter_arg = s;
}

void unwatch(struct pair *p, struct seen *s)
{
	p->w.filter = NULL;
	free(s->kept);
}

void sleep_for(struct pair *p, uint64_t ns)
{
	uint64_t until = p->w.now + ns;

	while (p->w.now < until)
		world_wait(&p->w, until);
}

static uint8_t byte_at(uint8_t mark, uint32_t i)
{
	return (uint8_t)(mark + i + (i >> 8));
}

void fill_at(struct end *e, uint32_t off, uint8_t mark, uint32_t len)
{
	uint8_t data[PAIR_LEN];

	for (uint32_t i = 0; i < len; i++)
		data[i] = byte_at(mark, i);
	put_bytes(e, off, data, len);
}

bool holds(struct end *e, uint32_t off, uint8_t mark, uint32_t len)
{
	uint8_t data[PAIR_LEN];

	get_bytes(e, off, data, len);
	for (uint32_t i = 0; i < len; i++)
		if (data[i] != byte_at(mark, i))
			return false;
	return true;
}

void begin_write(struct pair *p, uint32_t len, uint8_t mark)
{
	fill_at(&p->a, 0, mark, len);
	post(p, &p->a, QHCA_WQE_WRITE, len, 0);
}

bool has_arrived(struct pair *p, uint32_t len, uint8_t mark)
{
	return holds(&p->b, 32768, mark, len);
}

void transfer(struct pair *p, uint8_t opcode, uint32_t len, uint8_t mark)
{
	bool read = opcode == QHCA_WQE_READ, send = opcode == QHCA_WQE_SEND;

	fill_at(read ? &p->b : &p->a, read ? 32768 : 0, mark, len);
	if (send || opcode == QHCA_WQE_WRITE_IMM)
		post_recv(&p->b, len);
	post(p, &p->a, opcode, len, 0);
	settle(p);
	if (read)
		CHECK(holds(&p->a, 0, mark, len));
	else
		CHECK(holds(&p->b, send ? 16384 : 32768, mark, len));
}

void until_bundles(struct pair *p, struct seen *s, unsigned int num)
{
	uint64_t until = p->w.now + SECOND;

	while (s->bundles < num && p->w.now < until)
		world_wait(&p->w, until);
	CHECK_EQ(s->bundles, num);
}

void discard_completions(struct md_cq *cq)
{
	struct qhca_cqe cqe;

	while (md_poll(cq, &cqe))
		;
}

void expect_message(int line, struct pair *p, struct seen *s, uint8_t mark, bool bundle)
{
	s->bundles = s->single = 0;
	transfer(p, QHCA_WQE_WRITE, MESSAGE, mark);
	if (s->bundles != bundle || s->single != (bundle ? 0 : 8))
		check_failed(line, "%u bundles and %u packets", s->bundles,
			     s->single);
}

bool goes_as_bundle(struct pair *p, struct seen *s, uint8_t mark)
{
	unsigned int bundles = s->bundles;

	begin_write(p, MESSAGE, mark);
	run_for(p, 200000);
	CHECK(has_arrived(p, MESSAGE, mark));
	discard_completions(&p->a.scq);
	return s->bundles == bundles + 1;
}

void lose_a_bundle(struct pair *p, struct seen *s)
{
	s->limit = TOO_SHORT;
	s->bundles = s->single = 0;
	transfer(p, QHCA_WQE_WRITE, MESSAGE, 7);
	CHECK_EQ(s->bundles, 1);
	CHECK_EQ(s->single, 8);
	s->limit = SIZE_MAX;
}
