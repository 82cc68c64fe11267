// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory of the hostile processes: what regions and queues are made of, how it
 * comes and goes under them, and addresses to give to the kernel.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"
#include "lib/peer.h"

#define PAGE	4096u
#define PIECE	(64u << 10)	/* the memory that comes and goes together */

/* Pages to point the kernel at, one after the other, with room between them. */
enum { BAD_BEFORE, GOOD, BAD_AFTER, READ_ONLY, FLAPPING, TRAPS };

static uint8_t *traps;
static int backing = -1;	/* of those pieces of the arena that are a file's */

static uint8_t *trap(unsigned int which)
{
	return traps + which * PAGE;
}

void memory_start(struct worker *w)
{
	const int rw = PROT_READ | PROT_WRITE;

	w->arena = mmap(NULL, ARENA_SIZE, rw, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	traps = mmap(NULL, TRAPS * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(w->arena != MAP_FAILED && traps != MAP_FAILED);
	MUST(!mprotect(trap(GOOD), PAGE, rw) && !mprotect(trap(FLAPPING), PAGE, rw) &&
	     !mprotect(trap(READ_ONLY), PAGE, PROT_READ));
	backing = memfd_create("fuzz", 0);
	MUST(backing >= 0 && !ftruncate(backing, ARENA_SIZE));
	for (unsigned int i = 0; i < 2; i++) {
		w->thread[i].scratch = mmap(NULL, SCRATCH_SIZE, rw, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		MUST(w->thread[i].scratch != MAP_FAILED);
	}
}

uint8_t *any_memory(struct thread *t, size_t *len)
{
	size_t most = *len, offset = below(&t->rng, ARENA_SIZE);

	if (chance(&t->rng, 50))
		offset &= ~(size_t)(PAGE - 1);
	if (most > ARENA_SIZE - offset)
		most = ARENA_SIZE - offset;
	*len = 1 + below(&t->rng, most);
	return t->worker->arena + offset;
}

uint8_t *any_pages(struct thread *t, size_t len)
{
	size_t pages = (len + PAGE - 1) / PAGE;

	return t->worker->arena + below(&t->rng, ARENA_SIZE / PAGE - pages) * (size_t)PAGE;
}

uint64_t any_pointer(struct thread *t, const void *good, size_t len, size_t head)
{
	struct rng *r = &t->rng;

	if (len > PAGE)
		len = PAGE;
	if (chance(r, 80))
		return (uintptr_t)good;
	switch (below(r, 9)) {
	case 0: return 0;
	case 1: return 0xffff888000000000ull + (rnd(r) & 0x3ffffff8);
	case 2: return rnd(r);
	case 3: return (uintptr_t)trap(READ_ONLY);
	case 4: return (uintptr_t)trap(BAD_AFTER);
	case 5: return (uintptr_t)trap(FLAPPING);
	/* The kernel cannot write the head of the answer, but can write what the driver adds. */
	case 6: return (uintptr_t)trap(GOOD) - head;
	/* Here it is the other way round. */
	case 7: return (uintptr_t)trap(BAD_AFTER) - head;
	default: return (uintptr_t)trap(BAD_AFTER) - below(r, len + 1);
	}
}

/* New pages in place of those of a piece: anonymous, or a file's. */
static void replace(struct thread *t, uint8_t *piece)
{
	const int rw = PROT_READ | PROT_WRITE;
	size_t offset = piece - t->worker->arena;

	note(t, "mmap %zx", offset);
	if (chance(&t->rng, 50))
		mmap(piece, PIECE, rw, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	else
		mmap(piece, PIECE, rw, MAP_FIXED | MAP_SHARED, backing, offset);
}

static void advise(struct thread *t, uint8_t *piece)
{
	static const int advice[] = {
		MADV_DONTNEED, MADV_FREE, MADV_PAGEOUT, MADV_COLD, MADV_HUGEPAGE, MADV_NOHUGEPAGE,
		MADV_DOFORK, MADV_DONTFORK, MADV_REMOVE, MADV_POPULATE_WRITE, MADV_MERGEABLE,
	};
	unsigned int i = below(&t->rng, sizeof(advice) / sizeof(advice[0]));

	note(t, "madvise %zx %d", (size_t)(piece - t->worker->arena), advice[i]);
	madvise(piece, PIECE, advice[i]);
}

static void flap(struct thread *t)
{
	const int rw = PROT_READ | PROT_WRITE;

	note(t, "flap");
	if (chance(&t->rng, 50))
		mprotect(trap(FLAPPING), PAGE, PROT_NONE);
	else
		munmap(trap(FLAPPING), PAGE);
	sched_yield();
	mmap(trap(FLAPPING), PAGE, rw, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

void memory_step(struct thread *t)
{
	const int rw = PROT_READ | PROT_WRITE;
	uint8_t *piece = t->worker->arena + below(&t->rng, ARENA_SIZE / PIECE) * (size_t)PIECE;
	uint8_t *other = t->worker->arena + below(&t->rng, ARENA_SIZE / PIECE) * (size_t)PIECE;

	switch (below(&t->rng, 8)) {
	case 0:
		replace(t, piece);
		break;
	case 1:
		note(t, "munmap %zx", (size_t)(piece - t->worker->arena));
		munmap(piece, PIECE);
		sched_yield();
		replace(t, piece);
		break;
	case 2:
		note(t, "mremap %zx", (size_t)(piece - t->worker->arena));
		if (piece != other)
			mremap(piece, PIECE, PIECE, MREMAP_MAYMOVE | MREMAP_FIXED, other);
		replace(t, piece);
		break;
	case 3:
		note(t, "mprotect %zx", (size_t)(piece - t->worker->arena));
		mprotect(piece, PIECE, chance(&t->rng, 50) ? PROT_READ : PROT_NONE);
		sched_yield();
		mprotect(piece, PIECE, rw);
		break;
	case 4:
		note(t, "truncate");
		if (!ftruncate(backing, below(&t->rng, ARENA_SIZE)))
			sched_yield();
		if (ftruncate(backing, ARENA_SIZE))
			note(t, "truncate fails");
		break;
	case 5:
		flap(t);
		break;
	default:
		advise(t, piece);
	}
}
