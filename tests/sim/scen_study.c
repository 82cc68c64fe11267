/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The messages of `make study` (tests/study), without a guest: over the loopback of
 * one device, with the local side in memory of the pool, whose key is in the bank.
 * The device has to look its caches up as the oracle of the study (oracle.c) assumes:
 * for each packet the protection cache once and the translation cache once a page,
 * in this order, and neither cache for the local side.
 */
#include <stdio.h>

#include "hca.h"
#include "message.h"
#include "pair.h"
#include "pattern.h"
#include "plain.h"

#define KEYS		12u
#define PAGES		3u		/* of a region, to which messages begin */
#define REGION_PAGES	(PAGES + 2)
#define POOL_IOVA	0x70000000ull
#define POOL_LEN	16384u
#define MESSAGES	150u

struct studied {
	struct md_mr mr[KEYS];
	uint32_t pool_key;
	struct plain *pt, *at;
	uint64_t before[4];
};

/* A block of the pool and a key for all of it, which the bank holds. */
static uint32_t pool_key(struct md *md)
{
	struct qhca_pool_row row = { 0 };
	struct qhca_pte pte = { 0 };
	uint32_t index = md->next_key++;

	put_le64(&row.addr, md_alloc(md, POOL_LEN, MD_PAGE));
	put_le64(&row.length, POOL_LEN);
	CHECK_EQ(md_cmd(md, QHCA_CMD_MAP_POOL_BLOCK, 1, 0, &row, sizeof(row),
			NULL, 0, NULL), 0);
	put_le32(&pte.ctrl, QHCA_PTE_VALID | QHCA_PTE_POOL << 4);
	put_le32(&pte.access, ALL_ACCESS);
	put_le32(&pte.pd, PAIR_PD);
	put_le32(&pte.at_key, index);
	put_le64(&pte.start, POOL_IOVA);
	put_le64(&pte.length, POOL_LEN);
	put_le32(&pte.pool_block, 1);
	md_pte_write(md, index, &pte);
	CHECK_EQ(md_cmd(md, QHCA_CMD_MAP_POOL_KEY, index, 0, NULL, 0, NULL, 0,
			NULL), 0);
	return index << 8;
}

static void counts(const struct end *e, uint64_t to[4])
{
	to[0] = count_of(e, QHCA_CNT_pt_hits);
	to[1] = count_of(e, QHCA_CNT_pt_misses);
	to[2] = count_of(e, QHCA_CNT_at_hits);
	to[3] = count_of(e, QHCA_CNT_at_misses);
}

static void study_begin(struct pair *p, struct studied *s)
{
	const struct hca *hca = &p->a.md->host.hca->hca;

	p->a.conn.mtu = p->b.conn.mtu = QHCA_MTU_1024;
	connect_pair(p);
	for (uint32_t i = 0; i < KEYS; i++)
		md_reg_mr(p->a.md, &s->mr[i], PAIR_PD,
			  PAIR_IOVA + (i + 1) * 0x100000,
			  REGION_PAGES * MD_PAGE, ALL_ACCESS);
	s->pool_key = pool_key(p->a.md);
	s->pt = plain_new(hca->cache.pt.geometry.sets,
			  hca->cache.pt.geometry.blocks);
	s->at = plain_new(hca->cache.at.geometry.sets,
			  hca->cache.at.geometry.blocks);
	counts(&p->a, s->before);
}

static void predict(struct studied *s, const struct message *m,
		    struct pattern_access a)
{
	struct plain_name name = { .index = s->mr[a.key].key >> 8 };

	for (uint32_t i = 0; i < message_packets(m); i++) {
		struct message_part part = message_part(m, i);

		name.page = 0;
		plain_access(s->pt, name);
		for (uint32_t page = part.first; page <= part.last; page++) {
			name.page = a.page + page;
			plain_access(s->at, name);
		}
	}
}

static void study_message(struct pair *p, struct studied *s,
			  const struct message *m, struct pattern_access a)
{
	static const uint8_t opcode[MESSAGE_NUM_KINDS] = {
		[MESSAGE_WRITE] = QHCA_WQE_WRITE,
		[MESSAGE_READ] = QHCA_WQE_READ,
		[MESSAGE_FETCH_ADD] = QHCA_WQE_FETCH_ADD,
		[MESSAGE_COMPARE_SWAP] = QHCA_WQE_CMP_SWAP,
	};
	struct md_sge sge = { POOL_IOVA, m->bytes, s->pool_key };
	struct md_wr wr = {
		.opcode = opcode[m->kind], .flags = QHCA_WQE_F_SIGNALED,
		.num_sge = 1, .sge = &sge, .rkey = s->mr[a.key].key,
		.raddr = s->mr[a.key].iova + a.page * MD_PAGE + m->offset,
	};
	const struct plain_counts *pt = plain_counts(s->pt);
	const struct plain_counts *at = plain_counts(s->at);
	uint64_t bank = count_of(&p->a, QHCA_CNT_pool_bank_hits);
	struct qhca_cqe cqe;
	uint64_t now[4];

	post_wr(&p->a, &wr);
	settle(p);
	CHECK(md_poll(&p->a.scq, &cqe) && !cqe.status);
	predict(s, m, a);
	counts(&p->a, now);
	CHECK_EQ(now[0] - s->before[0], pt->hits);
	CHECK_EQ(now[1] - s->before[1], pt->misses);
	CHECK_EQ(now[2] - s->before[2], at->hits);
	CHECK_EQ(now[3] - s->before[3], at->misses);
	/* Each packet accesses the requester's memory once. */
	CHECK_EQ(count_of(&p->a, QHCA_CNT_pool_bank_hits) - bank,
		 message_packets(m));
	if (!check_ok())
		note("message of kind %d, %u bytes from %u of page %u of key %u",
		     m->kind, m->bytes, m->offset, a.page, a.key);
}

static void study_messages(struct pair *p)
{
	static const struct message messages[] = {
		{ MESSAGE_WRITE, 0, 8 }, { MESSAGE_WRITE, 0, 4096 },
		{ MESSAGE_WRITE, 512, 8192 }, { MESSAGE_WRITE, 8, 1032 },
		{ MESSAGE_READ, 0, 8 }, { MESSAGE_READ, 0, 4096 },
		{ MESSAGE_READ, 512, 8192 }, { MESSAGE_FETCH_ADD, 0, 8 },
		{ MESSAGE_COMPARE_SWAP, 4088, 8 },
	};
	struct pattern order = pattern_begin(PATTERN_RANDOM, KEYS, PAGES);
	struct studied s;

	study_begin(p, &s);
	for (uint32_t i = 0; i < MESSAGES && check_ok(); i++)
		for (uint32_t k = 0; k < sizeof(messages) / sizeof(*messages) &&
		     check_ok(); k++)
			study_message(p, &s, &messages[k], pattern_next(&order));
	plain_free(s.pt);
	plain_free(s.at);
}

const struct scenario study_scenarios[] = {
	NAMED(RC, "study: messages", study_messages, .loop = true),
	NAMED(RC, "study: messages (roomy)", study_messages, .loop = true,
	      .roomy = true),
	{ 0 }
};
