// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Processes that open the function more than once, or two functions. */
#include "vfio/cases.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/tap.h"

/* A child that has the function's descriptors and a copy of the memory, and goes. */
static pid_t child_of(struct guest *g, const struct md_mr *mr, unsigned int seed, int go)
{
	char byte;
	pid_t pid = fork();

	if (pid)
		return pid;
	if (read(go, &byte, 1) != 1)
		_exit(1);
	/* What the device has written since is not in this copy. */
	_exit(!matches(g, mr, seed));
}

/*
 * The function stays who it is while a process has it: a second descriptor and those of a
 * child come and go.  The device writes to the memory of the process that has mapped it.
 */
void case_twice(const char *address)
{
	struct md_mr from, to;
	unsigned long tables;
	int fd, status, go[2];
	struct guest g;
	pid_t child;

	guest_open(&g, address);
	guest_start(&g);
	guest_region(&g, &from, 4 * PAGE);
	guest_region(&g, &to, 4 * PAGE);
	fill(&g, &from, 31);
	CHECK(copy(&g, &from, &to) == QHCA_WC_SUCCESS);
	tables = vfio_stat(g.vfio, "tables");
	fd = vfio_open_again(g.vfio);
	CHECK(fd >= 0);
	close(fd);
	CHECK(!pipe(go));
	child = child_of(&g, &to, 31, go[0]);
	fill(&g, &from, 32);
	CHECK(copy(&g, &from, &to) == QHCA_WC_SUCCESS);
	CHECK(write(go[1], "x", 1) == 1);
	CHECK(waitpid(child, &status, 0) == child && !status);
	CHECK(matches(&g, &to, 32));
	close(go[0]);
	close(go[1]);
	CHECK(vfio_stat(g.vfio, "tables") == tables);
	check_alive(&g);
	guest_close(&g);
	tap_checked("a function is opened twice, and its process forks");
}

/* The page at @at, which both functions of a guest write to. */
static void write_page(struct guest *g, uint64_t at, unsigned int seed)
{
	struct md_mr from;
	uint32_t key = key_at(g, at, 0, g->md->host.gvmi);

	guest_region(g, &from, PAGE);
	fill(g, &from, seed);
	CHECK(guest_rdma(g, QHCA_WQE_WRITE, from.iova, from.key, 0, key, PAGE) ==
	      QHCA_WC_SUCCESS);
	from.buf.root = at;
	CHECK(matches(g, &from, seed));
}

/* Two functions of one guest: pages that both have go when the guest loses them. */
void case_beside(const char *address)
{
	const char *other = getenv("BESIDE");
	const uint64_t at = GUEST_MEMORY - PAGE;
	struct guest g, h;

	if (!other) {
		tap_skip("two functions of one guest", "BESIDE names none");
		return;
	}
	guest_open_unmapped(&g, address);
	CHECK(!guest_map(&g, HOST_PAGE, at - HOST_PAGE, true));
	CHECK(!guest_map(&g, at, PAGE, true));
	guest_start(&g);
	guest_open_beside(&h, other, &g);
	guest_start(&h);
	for (unsigned int round = 0; round < 20; round++) {
		unsigned long before[] = { pinned(&g).fault, pinned(&h).fault };

		write_page(&g, at, 2 * round);
		write_page(&h, at, 2 * round + 1);
		CHECK(pinned(&g).fault == before[0] + 2 && pinned(&h).fault == before[1] + 2);
		CHECK(!guest_unmap(&g, at, PAGE));
		CHECK(pinned(&g).fault == before[0] + 1 && pinned(&h).fault == before[1] + 1);
		CHECK(!guest_map(&g, at, PAGE, true));
	}
	check_alive(&h);
	guest_close(&h);
	check_alive(&g);
	/* It comes back to a guest that is at work. */
	guest_open_beside(&h, other, &g);
	guest_start(&h);
	CHECK(!guest_unmap(&g, HOST_PAGE, at - HOST_PAGE));
	CHECK(pinned(&g).device == 0 && pinned(&h).device == 0);
	CHECK(pinned(&g).fault == 0 && pinned(&h).fault == 0);
	guest_close(&h);
	guest_close(&g);
	tap_checked("two functions of one guest");
}
