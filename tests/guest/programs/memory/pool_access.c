// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Cases of access: what a key of pool memory opens, and what it does not. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "pool.h"

/* Data, first and last byte of a whole block included; no translation. */
void case_data(void)
{
	struct ends e = open_ends();
	struct qhcadv_pool_mem *mem = pool_mem(e.ctx, query(e.ctx).largest_free);
	uint64_t direct = counter("pool_direct_uses"), at = counter("at_hits") + counter("at_misses");
	uint64_t nodes = counter("at_node_reads");
	struct ibv_mr *mr = ibv_reg_mr(e.pd, mem->addr, mem->length, RW), *zero;
	uint8_t *b = mem->addr;

	MUST(mr);
	for (size_t i = 0; i < 8192; i++)
		b[i] = i * 7;
	b[mem->length - 1] = 1;
	MUST(move(&e, IBV_WR_RDMA_WRITE, mr->lkey ? (uintptr_t)b : 0, mr->lkey,
		   (uintptr_t)b + mem->length - 8192, mr->rkey, 8192) == IBV_WC_SUCCESS);
	MUST(!memcmp(b, b + mem->length - 8192, 8192));
	MUST(counter("pool_direct_uses") >= direct + 4);
	MUST(counter("at_hits") + counter("at_misses") == at && counter("at_node_reads") == nodes);
	/* The user chooses the addresses. */
	zero = ibv_reg_mr_iova(e.pd, b + PAGE, PAGE, 0x1000000, RW);
	MUST(zero);
	memset(b, 0x3c, 64);
	MUST(move(&e, IBV_WR_RDMA_WRITE, (uintptr_t)b, mr->lkey, 0x1000000 + 100, zero->rkey, 64) ==
	      IBV_WC_SUCCESS);
	MUST(is_all(b + PAGE + 100, 0x3c, 64));
	MUST(!ibv_dereg_mr(zero) && !ibv_dereg_mr(mr) && !qhcadv_free_pool(e.ctx, mem));
}

/* An access fails if its key, address, length or right alone is wrong. */
void case_permission(void)
{
	struct ends e = open_ends();
	struct qhcadv_pool_mem *mem = pool_mem(e.ctx, 4 * PAGE);
	uintptr_t b = (uintptr_t)mem->addr;
	struct ibv_mr *mr = ibv_reg_mr(e.pd, mem->addr, mem->length, RW);
	struct ibv_mr *part = ibv_reg_mr(e.pd, (void *)(b + PAGE), PAGE, IBV_ACCESS_REMOTE_READ);
	struct ibv_pd *other_pd = ibv_alloc_pd(e.ctx);
	struct ibv_mr *other = ibv_reg_mr(other_pd, mem->addr, mem->length, RW);

	MUST(mr && part && other);
	memset(mem->addr, 0x11, PAGE);
	memset((void *)(b + PAGE), 0x22, 3 * PAGE);
	MUST(move(&e, IBV_WR_RDMA_READ, b, mr->lkey, b + PAGE, part->rkey, PAGE) == IBV_WC_SUCCESS);
	memset(mem->addr, 0x11, PAGE);
	MUST(move(&e, IBV_WR_RDMA_READ, b, mr->lkey, b + PAGE, part->rkey ^ 1, 64) ==
	      IBV_WC_REM_ACCESS_ERR);
	MUST(move(&e, IBV_WR_RDMA_READ, b, mr->lkey, b + PAGE - 1, part->rkey, 64) ==
	      IBV_WC_REM_ACCESS_ERR);
	MUST(move(&e, IBV_WR_RDMA_READ, b, mr->lkey, b + PAGE, part->rkey, PAGE + 1) ==
	      IBV_WC_REM_ACCESS_ERR);
	MUST(move(&e, IBV_WR_RDMA_WRITE, b, mr->lkey, b + PAGE, part->rkey, 64) ==
	      IBV_WC_REM_ACCESS_ERR);
	MUST(move(&e, IBV_WR_RDMA_READ, b, mr->lkey, b + PAGE, other->rkey, 64) ==
	      IBV_WC_REM_ACCESS_ERR);
	MUST(move(&e, IBV_WR_RDMA_READ, b, part->lkey, b + PAGE, mr->rkey, 64) ==
	      IBV_WC_LOC_PROT_ERR);
	MUST(move(&e, IBV_WR_RDMA_WRITE, b, other->lkey, b + PAGE, mr->rkey, 64) ==
	      IBV_WC_LOC_PROT_ERR);
	MUST(is_all(mem->addr, 0x11, PAGE) && is_all((void *)(b + PAGE), 0x22, 3 * PAGE));
	/* A dead key opens nothing. */
	MUST(!ibv_dereg_mr(part));
	MUST(move(&e, IBV_WR_RDMA_READ, b, mr->lkey, b + PAGE, part->rkey, 64) ==
	      IBV_WC_REM_ACCESS_ERR);
}

/* The driver registers no range that is not within one piece of the process's own. */
void case_refused(void)
{
	struct ends e = open_ends();
	struct qhcadv_pool_mem *one = pool_mem(e.ctx, 4 * PAGE), *two = pool_mem(e.ctx, 4 * PAGE);
	struct ibv_context *ctx2 = open_it();
	struct ibv_pd *pd2 = ibv_alloc_pd(ctx2);
	uint64_t direct;
	struct ibv_mr *mr;
	char *at;

	/* The access goes past the end, into what follows in the block. */
	MUST(!ibv_reg_mr(e.pd, one->addr, 4 * PAGE + 1, RW));
	MUST(!ibv_reg_mr(e.pd, (char *)one->addr + 4 * PAGE - 1, 2, RW));
	/* The two pieces are neighbours in the process, and perhaps in the block. */
	at = mmap(NULL, 8 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(at != MAP_FAILED);
	MUST(mremap(one->addr, 4 * PAGE, 4 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, at) == at);
	MUST(mremap(two->addr, 4 * PAGE, 4 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, at + 4 * PAGE) ==
	      at + 4 * PAGE);
	MUST(!ibv_reg_mr(e.pd, at, 8 * PAGE, RW));
	MUST(!ibv_reg_mr(e.pd, at + 2 * PAGE, 4 * PAGE, RW));
	/* A piece that was moved is still the same memory. */
	MUST((mr = ibv_reg_mr(e.pd, at + 4 * PAGE, 4 * PAGE, RW)));
	MUST(qhcadv_free_pool(e.ctx, two) == EBUSY);
	MUST(!ibv_dereg_mr(mr));
	/* The piece belongs to another context, though of this process. */
	MUST(!ibv_reg_mr(pd2, at, PAGE, RW));
	/* Pool memory does not fault, so it cannot be on demand. */
	MUST(!ibv_reg_mr(e.pd, at, PAGE, RW | IBV_ACCESS_ON_DEMAND));
	/* The process may not write there either. */
	MUST(!mprotect(at, PAGE, PROT_READ));
	MUST(!ibv_reg_mr(e.pd, at, PAGE, RW));
	MUST((mr = ibv_reg_mr(e.pd, at, PAGE, IBV_ACCESS_REMOTE_READ)) && !ibv_dereg_mr(mr));
	/* Other memory at the address of pool memory is not pool memory. */
	MUST(mmap(at + PAGE, PAGE, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at + PAGE);
	direct = counter("pool_direct_uses");
	MUST((mr = ibv_reg_mr(e.pd, at + PAGE, PAGE, RW)));
	MUST(move(&e, IBV_WR_RDMA_WRITE, (uintptr_t)at + PAGE, mr->lkey, (uintptr_t)at + PAGE + 64,
		   mr->rkey, 64) == IBV_WC_SUCCESS);
	MUST(counter("pool_direct_uses") == direct);
	MUST(!ibv_reg_mr(e.pd, at + PAGE, 2 * PAGE, RW));
	MUST(!ibv_reg_mr(e.pd, at, 2 * PAGE, IBV_ACCESS_REMOTE_READ));
}

/* From ordinary memory into the pool and back, the keys staying. */
void case_rereg(void)
{
	struct ends e = open_ends();
	struct qhcadv_pool_mem *mem = pool_mem(e.ctx, 4 * PAGE);
	uint8_t *plain = pages(2 * PAGE);
	struct ibv_mr *from = ibv_reg_mr(e.pd, plain + PAGE, PAGE, RW);
	struct ibv_mr *mr = ibv_reg_mr(e.pd, plain, PAGE, RW);
	uint32_t rkey = mr->rkey;
	uint64_t direct;

	memset(plain + PAGE, 0x5a, PAGE);
	MUST(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, (char *)mem->addr + PAGE,
			    PAGE, 0) && mr->rkey == rkey);
	direct = counter("pool_direct_uses");
	MUST(write_to(&e, from, mr, PAGE) == IBV_WC_SUCCESS);
	MUST(counter("pool_direct_uses") == direct + 1);
	MUST(is_all((char *)mem->addr + PAGE, 0x5a, PAGE) && is_all(plain, 1, PAGE));
	MUST(qhcadv_free_pool(e.ctx, mem) == EBUSY);
	/* Only the rights change. */
	MUST(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_REMOTE_READ));
	MUST(write_to(&e, from, mr, PAGE) == IBV_WC_REM_ACCESS_ERR);
	MUST(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, RW));
	MUST(write_to(&e, from, mr, 64) == IBV_WC_SUCCESS);
	MUST(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, mem->addr, 5 * PAGE, 0));
	/* The region leaves the pool. */
	MUST(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, plain, PAGE, 0));
	MUST(!qhcadv_free_pool(e.ctx, mem));
	MUST(write_to(&e, from, mr, PAGE) == IBV_WC_SUCCESS && is_all(plain, 0x5a, PAGE));
}

/* Binds a window of type 1. */
static void bind_window(struct ends *e, struct ibv_mw *mw, struct ibv_mr *mr, uint64_t addr,
			uint64_t length)
{
	struct ibv_mw_bind bind = {
		.bind_info = { .mr = mr, .addr = addr, .length = length,
			       .mw_access_flags = IBV_ACCESS_REMOTE_WRITE },
		.send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_wc wc;
	int n;

	MUST(!ibv_bind_mw(e->qp[1], mw, &bind));
	while (!(n = ibv_poll_cq(e->cq, 1, &wc)))
		;
	MUST(n == 1 && wc.status == IBV_WC_SUCCESS);
}

/* Binds like any region, and cannot end before the window, whose key is on chip, too. */
void case_window(void)
{
	struct ends e = open_ends();
	struct qhcadv_pool_mem *mem = pool_mem(e.ctx, 4 * PAGE);
	uintptr_t b = (uintptr_t)mem->addr;
	struct ibv_mr *mr = ibv_reg_mr(e.pd, mem->addr, mem->length, RW | IBV_ACCESS_MW_BIND);
	struct ibv_mw *mw = ibv_alloc_mw(e.pd, IBV_MW_TYPE_1);
	uint64_t lookups;

	MUST(mr && mw);
	bind_window(&e, mw, mr, b + PAGE, 64);
	memset(mem->addr, 0x77, 64);
	lookups = counter("pt_hits") + counter("pt_misses");
	MUST(move(&e, IBV_WR_RDMA_WRITE, b, mr->lkey, b + PAGE, mw->rkey, 64) == IBV_WC_SUCCESS);
	MUST(counter("pt_hits") + counter("pt_misses") == lookups);
	MUST(is_all((void *)(b + PAGE), 0x77, 64));
	MUST(move(&e, IBV_WR_RDMA_WRITE, b, mr->lkey, b + PAGE, mw->rkey, 65) ==
	      IBV_WC_REM_ACCESS_ERR);
	MUST(ibv_dereg_mr(mr) == EBUSY);
	MUST(!ibv_dealloc_mw(mw) && !ibv_dereg_mr(mr) && !qhcadv_free_pool(e.ctx, mem));
}

/* Which key qhca_test_bind.ko binds a window to, when it is deregistered; 0: none. */
static void bind_at_dereg(uint32_t index)
{
	FILE *file = fopen("/sys/module/qhca_test_bind/parameters/index", "w");

	MUST(file && fprintf(file, "%u\n", index) > 0 && !fclose(file));
}

/* A bind crosses the deregistration, which fails: the key keeps its place on chip. */
void case_crossed(void)
{
	struct ends e = open_ends();
	struct qhcadv_pool_mem *mem = pool_mem(e.ctx, 2 * PAGE);
	uintptr_t b = (uintptr_t)mem->addr;
	struct ibv_mr *mr = ibv_reg_mr(e.pd, mem->addr, mem->length, RW | IBV_ACCESS_MW_BIND);
	uint64_t bank, lookups;
	int err;

	MUST(mr);
	bind_at_dereg(mr->lkey >> 8);
	err = ibv_dereg_mr(mr);
	bind_at_dereg(0);
	MUST(err == EBUSY);
	bank = counter("pool_bank_hits");
	lookups = counter("pt_hits") + counter("pt_misses");
	MUST(move(&e, IBV_WR_RDMA_WRITE, b, mr->lkey, b + PAGE, mr->rkey, 64) == IBV_WC_SUCCESS);
	MUST(counter("pool_bank_hits") == bank + 2);
	MUST(counter("pt_hits") + counter("pt_misses") == lookups);
	MUST(!ibv_dereg_mr(mr) && !qhcadv_free_pool(e.ctx, mem));
}

/*
 * More regions than the device keeps on chip, and a window: each is counted, and all
 * work. A place that becomes free is taken by the next region.
 */
void case_bank(void)
{
	struct ends e = open_ends();
	struct qhcadv_pool_mem *mem = pool_mem(e.ctx, 2 * PAGE);
	uint32_t places = query(e.ctx).max_keys, more = 3;
	struct ibv_mr **mr = calloc(places + more, sizeof(*mr));
	struct ibv_mw *mw = ibv_alloc_mw(e.pd, IBV_MW_TYPE_1);
	uint8_t *b = mem->addr;
	uint64_t full = counter("pool_bank_full"), bank;

	MUST(mr && mw && places >= 2);
	for (uint32_t i = 0; i < places; i++)
		MUST((mr[i] = ibv_reg_mr(e.pd, b, PAGE, RW | IBV_ACCESS_MW_BIND)));
	MUST(counter("pool_bank_full") == full);
	for (uint32_t i = places; i < places + more; i++)
		MUST((mr[i] = ibv_reg_mr(e.pd, b + PAGE, PAGE, RW)));
	MUST(counter("pool_bank_full") == full + more);
	bind_window(&e, mw, mr[0], (uintptr_t)b, 64);
	MUST(counter("pool_bank_full") == full + more + 1);

	bank = counter("pool_bank_hits");
	memset(b + PAGE, 0x3c, PAGE);
	/* The data go from a region without a place into the window, which has none either. */
	MUST(move(&e, IBV_WR_RDMA_WRITE, (uintptr_t)b + PAGE, mr[places]->lkey, (uintptr_t)b,
		   mw->rkey, 64) == IBV_WC_SUCCESS);
	MUST(is_all(b, 0x3c, 64) && counter("pool_bank_hits") == bank);
	MUST(write_to(&e, mr[places], mr[1], PAGE) == IBV_WC_SUCCESS && is_all(b, 0x3c, PAGE));
	MUST(counter("pool_bank_hits") > bank);

	MUST(!ibv_dereg_mr(mr[1]) && (mr[1] = ibv_reg_mr(e.pd, b, PAGE, RW)));
	MUST(counter("pool_bank_full") == full + more + 1);
	MUST(!ibv_dealloc_mw(mw));
	for (uint32_t i = 0; i < places + more; i++)
		MUST(!ibv_dereg_mr(mr[i]));
	MUST(!qhcadv_free_pool(e.ctx, mem));
	free(mr);
}
