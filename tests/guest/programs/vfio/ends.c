// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* A function, or the process that has it, ends in the middle of its work. */
#include "vfio/cases.h"

#include <errno.h>
#include <linux/pci_regs.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bytes.h"
#include "lib/tap.h"

#define LEN		(16 * PAGE)
#define REPEATED	(1u << 30)

/* A life of the function, from its reset to a copy that works. */
static void begin_life(struct guest *g, struct md_mr *from, struct md_mr *to, unsigned int seed)
{
	guest_start(g);
	guest_region(g, from, LEN);
	guest_region(g, to, LEN);
	fill(g, from, seed);
	CHECK(copy(g, from, to) == QHCA_WC_SUCCESS);
	CHECK(matches(g, to, seed));
}

/* The driver gives pages up after the reset. */
static bool all_given_up(struct guest *g)
{
	struct pinned now = pinned(g);

	for (int i = 0; i < 10000 && (now.fault || now.device); i++) {
		guest_wait(g);
		now = pinned(g);
	}
	return !now.fault && !now.device;
}

/*
 * Requests of 64 KiB are under way when the function is reset.  What it could reach is
 * given up then: the process frees these pages, and nobody may write to them.
 */
static void reset_under_traffic(struct guest *g, int (*reset)(struct vfio *v), unsigned int round)
{
	struct md_mr from, to;
	uint8_t *others;

	begin_life(g, &from, &to, round);
	for (int i = 0; i < 8; i++)
		guest_post(g, QHCA_WQE_WRITE, from.iova, from.key, to.iova, to.key, LEN);
	for (int rounds = rand() % 64; rounds; rounds--)
		guest_wait(g);
	CHECK(!reset(g->vfio));
	vfio_set_master(g->vfio, true);
	CHECK(all_given_up(g));
	CHECK(!madvise(guest_ptr(g, HOST_PAGE), g->md->host.next - HOST_PAGE, MADV_DONTNEED));
	others = canaries_new();
	/* The next life gets pages of its own. */
	begin_life(g, &from, &to, round + 1);
	CHECK(canaries_free(others));
}

void case_flr(const char *address)
{
	double end = seconds() + duration();
	unsigned int rounds = 0;
	struct guest g;

	guest_open(&g, address);
	do {
		reset_under_traffic(&g, rounds & 1 ? vfio_reset : vfio_flr, rounds);
		rounds++;
	} while (seconds() < end && !tap_check_has_failed());
	printf("# reset under traffic %u times\n", rounds);
	CHECK(guest_fatal(&g, 0, NULL) == 0);
	guest_close(&g);
	tap_checked("nothing is written to memory of an earlier life");
}

/* A region of REPEATED bytes, which are two megabytes of memory over and over. */
static uint32_t repeated_key(struct guest *g)
{
	const unsigned int entries = PAGE / sizeof(uint64_t);
	uint64_t pages = md_alloc(g->md, entries * PAGE, PAGE);
	uint64_t node = md_alloc(g->md, PAGE, PAGE), root = md_alloc(g->md, PAGE, PAGE);
	uint64_t *low = guest_ptr(g, node), *high = guest_ptr(g, root);
	uint32_t key = key_at(g, root, 2, g->md->host.gvmi);
	struct qhca_pte *pte = guest_ptr(g, g->md->pt + sizeof(*pte) * QHCA_KEY_INDEX(key));

	for (unsigned int i = 0; i < entries; i++) {
		put_le64(&low[i], (pages + i * PAGE) | QHCA_ATE_PRESENT | QHCA_ATE_WRITE);
		put_le64(&high[i], node | QHCA_ATE_PRESENT);
	}
	put_le64(&pte->length, REPEATED);
	return key;
}

/* The device has work for seconds when nobody asks for more. */
static void work_for_ever(const char *address)
{
	uint32_t from, to;
	struct guest g;

	guest_open(&g, address);
	guest_start(&g);
	from = repeated_key(&g);
	to = repeated_key(&g);
	for (unsigned int posted = 0;; posted++) {
		if (posted >= 8)
			guest_poll(&g, 20000);
		guest_post(&g, QHCA_WQE_WRITE, 0, from, 0, to, REPEATED);
	}
}

/* The VMM is killed while its guest is at work; its pages are others' then. */
void case_death(const char *address)
{
	double end = seconds() + duration();
	unsigned int rounds = 0;
	struct md_mr from, to;
	uint8_t *others;
	struct guest g;
	pid_t child;

	do {
		fflush(stdout);
		child = fork();
		if (!child)
			work_for_ever(address);
		usleep(500000 + (unsigned int)rand() % 500000);
		kill(child, SIGKILL);
		CHECK(waitpid(child, NULL, 0) == child);
		vfio_wait_free(address, 10000);
		others = canaries_new();

		guest_open(&g, address);
		CHECK(pinned(&g).fault == 0 && pinned(&g).device == 0);
		begin_life(&g, &from, &to, rounds++);
		CHECK(canaries_free(others));
		guest_close(&g);
	} while (seconds() < end && !tap_check_has_failed());
	printf("# killed under traffic %u times\n", rounds);
	tap_checked("nothing is left of a process that was killed");
}

/* A thread that changes the function's interrupts all the time. */
struct changer {
	struct vfio *vfio;
	pthread_t thread;
	bool end;
	unsigned int failed;
};

static void *change(void *arg)
{
	struct changer *c = arg;

	while (!__atomic_load_n(&c->end, __ATOMIC_RELAXED))
		c->failed += vfio_set_vectors(c->vfio) != 0;
	return NULL;
}

static void changer_start(struct changer *c, struct guest *g)
{
	*c = (struct changer){ .vfio = g->vfio };
	if (pthread_create(&c->thread, NULL, change, c))
		host_die("no thread");
}

/* No change is under way after this. */
static void changer_end(struct changer *c)
{
	__atomic_store_n(&c->end, true, __ATOMIC_RELAXED);
	pthread_join(c->thread, NULL);
	CHECK(c->failed == 0);
}

static bool is_master(struct guest *g)
{
	return vfio_config_read(g->vfio, PCI_COMMAND) & PCI_COMMAND_MASTER;
}

static bool is_broken(struct guest *g)
{
	return vfio_stat(g->vfio, "broken");
}

/* Tells the test what it waits for. */
static void tell(const char *what)
{
	printf("# %s\n", what);
	fflush(stdout);
}

/*
 * All memory goes while the physical function is dead, and it comes back later.  The kernel
 * writes the command register back in the middle of each change of interrupts; nobody does
 * that to a function that has lost bus mastering, or has got it back.
 */
void case_broken(const char *address)
{
	struct md_mr from, to;
	struct changer c;
	struct guest g;
	double end;

	guest_open(&g, address);
	begin_life(&g, &from, &to, 1);
	changer_start(&c, &g);
	tell("at work");
	CHECK(guest_fatal(&g, 60000, NULL) != 0);
	CHECK(!guest_unmap(&g, HOST_PAGE, GUEST_MEMORY - HOST_PAGE));
	CHECK(is_broken(&g));
	changer_end(&c);
	CHECK(!is_master(&g));
	CHECK(vfio_config_write(g.vfio, PCI_COMMAND, PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER) ==
	      -EIO);
	CHECK(!is_master(&g));

	changer_start(&c, &g);
	tell("broken");
	/* The test lets it come back, and may itself be slow beside a thread that never rests. */
	for (end = seconds() + 300; is_broken(&g) && seconds() < end;)
		guest_wait(&g);
	CHECK(!is_broken(&g));
	changer_end(&c);
	CHECK(is_master(&g));
	guest_close(&g);
	tap_checked("interrupts change while the function breaks and gets a new life");
}
