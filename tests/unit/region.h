/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A region and accesses to it, for the tests of keys and memory.
 */
#ifndef QHCA_TEST_REGION_H
#define QHCA_TEST_REGION_H

#include "unit.h"

#define PD	7u
#define QPN	5u
#define INDEX	17u
#define OCTET	0x5au
#define KEY	(INDEX << 8 | OCTET)
#define START	0x7f0000001234ull	/* an address of a process */
#define PAGES	5u
#define LENGTH	(PAGES * 4096 - 0x234 - 100)

#define RW (QHCA_ACCESS_LOCAL_WRITE | QHCA_ACCESS_REMOTE_WRITE | \
	    QHCA_ACCESS_REMOTE_READ | QHCA_ACCESS_REMOTE_ATOMIC | \
	    QHCA_ACCESS_MW_BIND)

struct region {
	struct qhca_pte *pte;
	uint64_t node;
	uint64_t page[PAGES];		/* bus addresses, not in order */
};

static inline struct qhca_pte *pte_of(struct host *h, uint32_t index)
{
	uint64_t addr;

	assert_true(hca_table_entry(h->fn, QHCA_TABLE_PT, index, &addr));
	return host_ptr(h, addr);
}

static inline void set_ctrl(struct qhca_pte *pte, unsigned int state,
		     unsigned int type, uint8_t octet, unsigned int shift,
		     unsigned int levels)
{
	put_le32(&pte->ctrl, QHCA_PUT(QHCA_PTE_STATE, state) |
		 QHCA_PUT(QHCA_PTE_TYPE, type) |
		 QHCA_PUT(QHCA_PTE_OCTET, (uint32_t)octet) |
		 QHCA_PUT(QHCA_PTE_PAGE_SHIFT, shift) |
		 QHCA_PUT(QHCA_PTE_LEVELS, levels));
}

/* A region of PAGES pages at INDEX, one level. */
static inline struct region make_region(struct host *h)
{
	struct region r = { .pte = pte_of(h, INDEX) };
	unsigned int i;

	r.node = host_alloc(h, PAGES * 8, 64);
	for (i = 0; i < PAGES; i++) {
		r.page[i] = host_alloc(h, 2 * 4096, 4096);
		put_le64(host_ptr(h, r.node + i * 8), r.page[i] |
			 QHCA_ATE_PRESENT | QHCA_ATE_WRITE);
	}
	memset(r.pte, 0, sizeof(*r.pte));
	put_le32(&r.pte->access, RW);
	put_le32(&r.pte->pd, PD);
	put_le32(&r.pte->at_key, INDEX);
	put_le64(&r.pte->start, START);
	put_le64(&r.pte->length, LENGTH);
	put_le64(&r.pte->at_base, r.node);
	put_le64(&r.pte->at_offset, START & 0xfff);
	set_ctrl(r.pte, QHCA_PTE_VALID, QHCA_PTE_MR, OCTET, 12, 1);
	return r;
}

static inline struct hca_mem_req req(uint64_t addr, uint64_t len, uint32_t access,
			       bool remote)
{
	return (struct hca_mem_req){
		.addr = addr, .len = len, .key = KEY, .pd = PD, .qpn = QPN,
		.access = access, .remote = remote,
	};
}

/* Byte @i of the region as it lies in memory. */
static inline uint8_t *byte_at(struct host *h, const struct region *r, uint64_t i)
{
	uint64_t at = (START & 0xfff) + i;

	return host_ptr(h, r->page[at >> 12] + (at & 0xfff));
}

static inline void inval(struct host *h, uint32_t index, uint32_t what)
{
	assert_int_equal(host_cmd(h, QHCA_CMD_INVALIDATE_KEY, index, what,
				  NULL, 0, NULL, 0), QHCA_CMD_OK);
}

static inline void inval_both(struct host *h, uint32_t index)
{
	inval(h, index, QHCA_INVAL_PT | QHCA_INVAL_AT);
}

/* Checks that check, write and read refuse @q and touch nothing; returns the reason. */
static inline enum hca_mem_reason refused(struct host *h, struct hca_mem_req q)
{
	uint64_t errors = COUNT(h, protection_errors);
	uint64_t at = COUNT(h, at_hits) + COUNT(h, at_misses);
	uint64_t writes = h->writes;
	uint8_t buf[HCA_MEM_MAX_LEN];

	memset(buf, 0xee, sizeof(buf));
	h->fn->mem.reason = HCA_PROT_NONE;
	assert_int_equal(hca_mem_check(h->fn, &q), HCA_MEM_PROT);
	assert_int_equal(hca_mem_write(h->fn, &q, buf), HCA_MEM_PROT);
	assert_int_equal(hca_mem_read(h->fn, &q, buf), HCA_MEM_PROT);
	assert_int_equal(COUNT(h, protection_errors), errors + 3);
	/* Protection is checked before translation, and nothing was touched. */
	assert_int_equal(COUNT(h, at_hits) + COUNT(h, at_misses), at);
	assert_int_equal(h->writes, writes);
	return h->fn->mem.reason;
}

#endif /* QHCA_TEST_REGION_H */
