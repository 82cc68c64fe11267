// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Cases of several processes: fork, strangers, and one that is killed. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pool.h"

void case_fork(void)
{
	struct ends e = open_ends();
	struct qhcadv_pool_mem *mem = pool_mem(e.ctx, 4 * PAGE);
	struct ibv_mr *mr = ibv_reg_mr(e.pd, mem->addr, mem->length, RW);
	uintptr_t b = (uintptr_t)mem->addr;
	unsigned char resident;
	int status;
	pid_t child;

	memset(mem->addr, 0x42, mem->length);
	/* A child does not inherit it, and madvise() cannot change that. */
	MUST(madvise(mem->addr, mem->length, MADV_DOFORK));
	child = fork();
	if (!child)
		_exit(!(mincore(mem->addr, PAGE, &resident) && errno == ENOMEM));
	MUST(waitpid(child, &status, 0) == child && WIFEXITED(status) && !WEXITSTATUS(status));
	MUST(is_all(mem->addr, 0x42, mem->length));
	MUST(move(&e, IBV_WR_RDMA_WRITE, b, mr->lkey, b + PAGE, mr->rkey, 64) == IBV_WC_SUCCESS);
}

struct told {				/* reported by the other process */
	uint64_t addr, length, total;
	uint32_t lkey, rkey;
};

/* A process that owns @length bytes of the pool (0: all there is, in pieces). */
static pid_t start_owner(size_t length, uint8_t byte, struct told *told, int *end)
{
	static struct qhcadv_pool_mem *mem[MAX_PIECES];
	int to[2], from[2];
	pid_t child;
	char c;

	MUST(!pipe(to) && !pipe(from));
	child = fork();
	MUST(child >= 0);
	if (!child) {
		struct told mine = { 0 };
		struct ends e = open_ends();
		struct ibv_mr *mr = NULL;
		int n = 1;

		close(from[1]);
		if (length)
			mem[0] = pool_mem(e.ctx, length);
		else
			n = take_all(e.ctx, 16 * PAGE, mem);
		for (int i = 0; i < n; i++) {
			memset(mem[i]->addr, byte, mem[i]->length);
			mine.total += mem[i]->length;
			MUST((mr = ibv_reg_mr(e.pd, mem[i]->addr, mem[i]->length, RW)));
		}
		MUST(mr);
		mine.addr = (uintptr_t)mem[n - 1]->addr;
		mine.length = mem[n - 1]->length;
		mine.lkey = mr->lkey;
		mine.rkey = mr->rkey;
		MUST(write(to[1], &mine, sizeof(mine)) == sizeof(mine));
		/* Works until the parent ends or kills it. */
		while (move(&e, IBV_WR_RDMA_WRITE, mine.addr, mine.lkey, mine.addr + 4 * PAGE,
			    mine.rkey, 4 * PAGE) == IBV_WC_SUCCESS)
			if (length && read(from[0], &c, 1) >= 0)
				break;
		_exit(!is_all(mem[0]->addr, byte, mem[0]->length));
	}
	close(to[1]);
	close(from[0]);
	MUST(read(to[0], told, sizeof(*told)) == sizeof(*told));
	close(to[0]);
	*end = from[1];
	return child;
}

/* Neither the other's keys nor its addresses with one's own keys give access. */
void case_two_processes(void)
{
	struct qhcadv_pool_mem *mem;
	struct told told;
	struct ibv_mr *mr, *at;
	int status, end;
	struct ends e;
	uintptr_t b;
	pid_t child = start_owner(16 * PAGE, 0xbb, &told, &end);

	e = open_ends();
	mem = pool_mem(e.ctx, 16 * PAGE);
	memset(mem->addr, 0xaa, mem->length);
	b = (uintptr_t)mem->addr;
	MUST((mr = ibv_reg_mr(e.pd, mem->addr, mem->length, RW)));

	MUST(move(&e, IBV_WR_RDMA_READ, b, mr->lkey, told.addr, told.rkey, 64) ==
	      IBV_WC_REM_ACCESS_ERR);
	MUST(move(&e, IBV_WR_RDMA_WRITE, b, mr->lkey, told.addr, told.rkey, 64) ==
	      IBV_WC_REM_ACCESS_ERR);
	MUST(move(&e, IBV_WR_RDMA_WRITE, told.addr, told.lkey, b, mr->rkey, 64) ==
	      IBV_WC_LOC_PROT_ERR);
	MUST(move(&e, IBV_WR_RDMA_READ, told.addr, told.lkey, b, mr->rkey, 64) ==
	      IBV_WC_LOC_PROT_ERR);
	/* The loop tries every octet of the other's key. */
	for (uint32_t octet = 0; octet < 256; octet++)
		MUST(move(&e, IBV_WR_RDMA_READ, b, mr->lkey, told.addr,
			   (told.rkey & ~0xffu) | octet, 64) == IBV_WC_REM_ACCESS_ERR);
	/* The access goes past one's own end, where the other's memory may follow in the block. */
	MUST(move(&e, IBV_WR_RDMA_READ, b, mr->lkey, b + 16 * PAGE, mr->rkey, 64) ==
	      IBV_WC_REM_ACCESS_ERR);
	MUST(move(&e, IBV_WR_RDMA_READ, b, mr->lkey, b - 64, mr->rkey, 64) ==
	      IBV_WC_REM_ACCESS_ERR);
	MUST(is_all(mem->addr, 0xaa, mem->length));

	/* The other's address names memory of this process. */
	MUST((at = ibv_reg_mr_iova(e.pd, mem->addr, PAGE, told.addr, RW)));
	memset((void *)(b + PAGE), 0, PAGE);
	MUST(move(&e, IBV_WR_RDMA_READ, b + PAGE, mr->lkey, told.addr, at->rkey, PAGE) ==
	      IBV_WC_SUCCESS);
	MUST(is_all((void *)(b + PAGE), 0xaa, PAGE));

	close(end);
	MUST(waitpid(child, &status, 0) == child && WIFEXITED(status) && !WEXITSTATUS(status));
}

/* The memory of a process that was killed, with its requests under way. */
void case_killed(void)
{
	static struct qhcadv_pool_mem *mem[MAX_PIECES];
	struct qhcadv_pool_attr attr;
	struct ibv_context *ctx;
	struct told told;
	int status, end, n;
	pid_t child = start_owner(0, 0xdd, &told, &end);

	ctx = open_it();
	attr = query(ctx);
	MUST(told.total == attr.total && !attr.free);
	errno = 0;
	MUST(!qhcadv_alloc_pool(ctx, PAGE) && errno == ENOSPC);
	MUST(!kill(child, SIGKILL));
	MUST(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
	MUST(query(ctx).free == attr.total);
	n = take_all(ctx, 16 * PAGE, mem);
	for (int i = 0; i < n; i++)
		MUST(is_all(mem[i]->addr, 0, mem[i]->length));
}

/* For tests that take the device away: all of the pool, in use until killed. */
void case_hold(void)
{
	struct told told;
	struct ends e;
	int end;

	start_owner(0, 0x99, &told, &end);
	e = open_ends();
	MUST(!query(e.ctx).free);
	printf("# holding %llu KiB\n", (unsigned long long)told.total >> 10);
	alarm(0);
	pause();
}
