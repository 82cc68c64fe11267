/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * How often an access looks a cache up: once by protection key for each packet
 * whose bytes are read or written, once for each page of them.  The plain model of
 * the caches (tests/unit/plain.h) makes the look-ups that hardware.rst names, and
 * the device's counters have to be the model's after each message.
 */
#include <stdio.h>
#include <string.h>

#include "hca.h"
#include "pair.h"
#include "plain.h"

#define KEYS		12u
#define MESSAGES	600u
#define MTU		1024u
#define REGION_LEN	(8u * MTU)	/* two pages */
#define RECV_AT		16384u		/* where post_recv() has the bytes go */

struct oracle {
	struct plain *pt, *at;
	/* the counters before the message */
	uint64_t pt_hits, pt_misses, at_hits, at_misses;
};

static struct plain *model_of(const struct hca_cache *c)
{
	return plain_new(c->geometry.sets, c->geometry.blocks);
}

static void oracle_begin(struct oracle *o, struct end *e)
{
	o->pt = model_of(&e->md->host.hca->hca.cache.pt);
	o->at = model_of(&e->md->host.hca->hca.cache.at);
	o->pt_hits = count_of(e, QHCA_CNT_pt_hits);
	o->pt_misses = count_of(e, QHCA_CNT_pt_misses);
	o->at_hits = count_of(e, QHCA_CNT_at_hits);
	o->at_misses = count_of(e, QHCA_CNT_at_misses);
}

static void oracle_end(struct oracle *o)
{
	plain_free(o->pt);
	plain_free(o->at);
}

static void oracle_check(const struct oracle *o, struct end *e)
{
	const struct plain_counts *pt = plain_counts(o->pt);
	const struct plain_counts *at = plain_counts(o->at);

	CHECK_EQ(count_of(e, QHCA_CNT_pt_hits) - o->pt_hits, pt->hits);
	CHECK_EQ(count_of(e, QHCA_CNT_pt_misses) - o->pt_misses, pt->misses);
	CHECK_EQ(count_of(e, QHCA_CNT_at_hits) - o->at_hits, at->hits);
	CHECK_EQ(count_of(e, QHCA_CNT_at_misses) - o->at_misses, at->misses);
}

/* The packets of @len bytes from @at of a region whose key is @key. */
static void oracle_message(struct oracle *o, uint32_t key, uint32_t at,
			   uint32_t len)
{
	struct plain_name name = { .index = key >> 8 };

	for (uint32_t done = 0; done < len; done += MTU) {
		uint32_t part = len - done < MTU ? len - done : MTU;

		name.page = 0;
		plain_access(o->pt, name);
		for (name.page = (at + done) / MD_PAGE;
		     name.page <= (at + done + part - 1) / MD_PAGE; name.page++)
			plain_access(o->at, name);
	}
}

struct lookups {
	struct oracle a, b;
	struct md_mr mr[KEYS];		/* of b */
	uint64_t rng;
};

static uint32_t below(struct lookups *l, uint32_t n)
{
	l->rng = l->rng * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(l->rng >> 33) % n;
}

static void message(struct pair *p, struct lookups *l, uint8_t opcode,
		    uint32_t number)
{
	bool eight = opcode == QHCA_WQE_FETCH_ADD ||
		     opcode == QHCA_WQE_CMP_SWAP ||
		     opcode == QHCA_WQE_ATOMIC_WRITE;
	uint32_t len = eight ? 8 : below(l, 2) ? 5 * MTU : 1 + below(l, 5 * MTU);
	uint32_t at = 8 * below(l, (REGION_LEN - len) / 8 + 1);
	const struct md_mr *mr = &l->mr[below(l, KEYS)];
	struct md_sge sge = { p->a.mr.iova, len, p->a.mr.key };
	struct md_wr wr = {
		.opcode = opcode, .flags = QHCA_WQE_F_SIGNALED, .num_sge = 1,
		.sge = &sge, .raddr = mr->iova + at, .rkey = mr->key,
	};
	struct qhca_cqe cqe;

	if (opcode == QHCA_WQE_SEND)
		post_recv(&p->b, len);
	post_wr(&p->a, &wr);
	settle(p);
	CHECK(md_poll(&p->a.scq, &cqe) && !cqe.status);
	oracle_message(&l->a, p->a.mr.key, 0, len);
	if (opcode == QHCA_WQE_SEND) {
		CHECK(md_poll(&p->b.rcq, &cqe) && !cqe.status);
		oracle_message(&l->b, p->b.mr.key, RECV_AT, len);
	} else {
		oracle_message(&l->b, mr->key, at, len);
	}
	oracle_check(&l->a, &p->a);
	oracle_check(&l->b, &p->b);
	if (!check_ok())
		note("message %u, opcode %u, %u bytes from %u", number, opcode,
		     len, at);
}

static void lookups_begin(struct pair *p, struct lookups *l)
{
	l->rng = 1;
	p->a.conn.mtu = p->b.conn.mtu = QHCA_MTU_1024;
	connect_pair(p);
	for (uint32_t i = 0; i < KEYS; i++)
		md_reg_mr(p->b.md, &l->mr[i], PAIR_PD,
			  PAIR_IOVA + (i + 1) * 0x100000, REGION_LEN,
			  ALL_ACCESS);
	oracle_begin(&l->a, &p->a);
	oracle_begin(&l->b, &p->b);
}

static void lookups_end(struct lookups *l)
{
	oracle_end(&l->a);
	oracle_end(&l->b);
}

static void each_packet_once(struct pair *p)
{
	static const uint8_t opcodes[] = {
		QHCA_WQE_WRITE, QHCA_WQE_READ, QHCA_WQE_SEND,
		QHCA_WQE_FETCH_ADD, QHCA_WQE_CMP_SWAP, QHCA_WQE_ATOMIC_WRITE,
	};
	struct lookups l;

	lookups_begin(p, &l);
	for (uint32_t i = 0; i < MESSAGES && check_ok(); i++)
		message(p, &l, opcodes[below(&l, sizeof(opcodes))], i);
	lookups_end(&l);
}

/* The same messages of one kind, so that the scenario's name says which kind differs. */
static void one_kind(struct pair *p, uint8_t opcode)
{
	struct lookups l;

	lookups_begin(p, &l);
	for (uint32_t i = 0; i < 100 && check_ok(); i++)
		message(p, &l, opcode, i);
	lookups_end(&l);
}

static void write_packets(struct pair *p)
{
	one_kind(p, QHCA_WQE_WRITE);
}

static void read_packets(struct pair *p)
{
	one_kind(p, QHCA_WQE_READ);
}

static void send_packets(struct pair *p)
{
	one_kind(p, QHCA_WQE_SEND);
}

static void atomics(struct pair *p)
{
	one_kind(p, QHCA_WQE_FETCH_ADD);
}

#define LOOKUP(fn, ...) NAMED(RC, "look-ups: " #fn, fn, __VA_ARGS__)

const struct scenario lookup_scenarios[] = {
	LOOKUP(write_packets), LOOKUP(read_packets), LOOKUP(send_packets),
	LOOKUP(atomics), LOOKUP(each_packet_once),
	LOOKUP(each_packet_once, .roomy = true),
	{ 0 }
};
