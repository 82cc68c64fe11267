// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Memory that comes and goes. */
#include "vfio/cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "bytes.h"
#include "lib/tap.h"
#include "odp.h"

/* Other pages take the place of a range, as after a balloon has been blown up. */
static void replace(struct guest *g, uint64_t addr, uint64_t len)
{
	void *p = guest_ptr(g, addr);

	if (mmap(p, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		 0) != p)
		host_die("no memory");
}

void case_replace(const char *address)
{
	struct md_mr from, to;
	struct pinned before;
	struct guest g;
	uint64_t at;

	guest_open_unmapped(&g, address);
	/* The last part of the memory is a mapping of its own. */
	at = GUEST_MEMORY - 8 * PAGE;
	CHECK(!guest_map(&g, HOST_PAGE, at - HOST_PAGE, true));
	CHECK(!guest_map(&g, at, 8 * PAGE, true));
	guest_start(&g);
	guest_region(&g, &from, 8 * PAGE);
	g.md->host.next = at;
	guest_region(&g, &to, 8 * PAGE);
	for (unsigned int round = 0; round < 50; round++) {
		before = pinned(&g);
		fill(&g, &from, round);
		CHECK(copy(&g, &from, &to) == QHCA_WC_SUCCESS);
		CHECK(matches(&g, &to, round));
		CHECK(pinned(&g).faults > before.faults);
		CHECK(!guest_unmap(&g, at, 8 * PAGE));
		CHECK(pinned(&g).fault == 8);
		replace(&g, at, 8 * PAGE);
		CHECK(!guest_map(&g, at, 8 * PAGE, true));
	}
	CHECK(vfio_stat(g.vfio, "invalidations") >= 50);
	guest_close(&g);
	tap_checked("a page that is replaced is found again");
}

double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

double duration(void)
{
	const char *text = getenv("SECONDS_EACH");

	return text ? atof(text) : 3;
}

bool is_canary(const uint8_t *p, uint64_t len)
{
	for (uint64_t i = 0; i < len; i++)
		if (p[i] != CANARY)
			return false;
	return true;
}

uint8_t *canaries_new(void)
{
	uint8_t *p = mmap(NULL, CANARIES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			  0);

	if (p == MAP_FAILED)
		host_die("no memory");
	memset(p, CANARY, CANARIES);
	return p;
}

bool canaries_free(uint8_t *p)
{
	bool clean = is_canary(p, CANARIES);

	munmap(p, CANARIES);
	return clean;
}

/*
 * Requests of 64 KiB are under way to a range that is taken away.  From then on the
 * process uses the memory for itself, and nobody else may write there.
 */
static bool take_under_traffic(struct guest *g, const struct md_mr *from,
			       const struct md_mr *to)
{
	uint8_t *p = guest_ptr(g, to->buf.root);
	unsigned int posted = 8, failed = 0;
	bool clean;
	int status;

	for (unsigned int i = 0; i < posted; i++)
		guest_post(g, QHCA_WQE_WRITE, from->iova, from->key, to->iova, to->key,
			   (uint32_t)from->len);
	for (int rounds = rand() % 64; rounds; rounds--)
		guest_wait(g);
	if (guest_unmap(g, to->buf.root, to->len))
		return false;
	memset(p, CANARY, to->len);
	while (posted--) {
		status = guest_poll(g, 20000);
		if (status < 0)
			return false;
		failed += status != QHCA_WC_SUCCESS;
	}
	clean = is_canary(p, to->len);
	if (guest_map(g, to->buf.root, to->len, true))
		return false;
	/* Work that was under way at QP 1 ends with it. */
	if (failed)
		guest_reconnect(g);
	return clean;
}

void case_traffic(const char *address)
{
	const uint64_t len = 16 * PAGE, at = GUEST_MEMORY - len;
	double end = seconds() + duration();
	unsigned int rounds = 0;
	struct md_mr from, to;
	uint64_t mark;
	struct guest g;

	guest_open_unmapped(&g, address);
	CHECK(!guest_map(&g, HOST_PAGE, at - HOST_PAGE, true));
	CHECK(!guest_map(&g, at, len, true));
	guest_start(&g);
	guest_region(&g, &from, len);
	fill(&g, &from, 8);
	mark = g.md->host.next;
	g.md->host.next = at;
	guest_region(&g, &to, len);
	do {
		g.md->host.next = mark;
		CHECK(take_under_traffic(&g, &from, &to));
		rounds++;
	} while (seconds() < end && !tap_check_has_failed());
	printf("# taken away under traffic %u times\n", rounds);
	CHECK(guest_fatal(&g, 0, NULL) == 0);
	CHECK(copy(&g, &from, &to) == QHCA_WC_SUCCESS);
	CHECK(matches(&g, &to, 8));
	guest_close(&g);
	tap_checked("nothing is written to memory that was taken away");
}

/*
 * The process gives pages up and does not unmap them, as a balloon does in a VMM that
 * does not know of the device.  What the device has stays pinned until it is unmapped,
 * and is nobody else's memory.
 */
/* One round of case_discard(). */
static void discard_under_traffic(struct guest *g, const struct md_mr *from,
				  const struct md_mr *to, unsigned int round)
{
	const uint64_t at = to->buf.root;
	unsigned long before;
	uint8_t *others;

	CHECK(!guest_map(g, at, to->len, true));
	fill(g, from, round);
	CHECK(copy(g, from, to) == QHCA_WC_SUCCESS);
	CHECK(matches(g, to, round));
	before = pinned(g).fault;
	for (int i = 0; i < 8; i++)
		guest_post(g, QHCA_WQE_WRITE, from->iova, from->key, to->iova, to->key,
			   (uint32_t)to->len);
	CHECK(!madvise(guest_ptr(g, at), to->len, MADV_DONTNEED));
	/* Pages that had been freed would be among these. */
	others = canaries_new();
	for (int i = 0; i < 8; i++)
		CHECK(guest_poll(g, 20000) == QHCA_WC_SUCCESS);
	CHECK(canaries_free(others));
	CHECK(pinned(g).fault == before);
	CHECK(!guest_unmap(g, at, to->len));
	CHECK(pinned(g).fault == before - to->len / PAGE);
}

void case_discard(const char *address)
{
	const uint64_t len = 16 * PAGE, at = GUEST_MEMORY - len;
	double end = seconds() + duration();
	unsigned int rounds = 0;
	struct md_mr from, to;
	struct guest g;

	guest_open_unmapped(&g, address);
	CHECK(!guest_map(&g, HOST_PAGE, at - HOST_PAGE, true));
	guest_start(&g);
	guest_region(&g, &from, len);
	g.md->host.next = at;
	guest_region(&g, &to, len);
	do {
		discard_under_traffic(&g, &from, &to, rounds++);
	} while (seconds() < end && !tap_check_has_failed());
	printf("# discarded under traffic %u times\n", rounds);
	guest_close(&g);
	tap_checked("what the process discards stays pinned until it is unmapped");
}

static unsigned long swapped_kib(void)
{
	FILE *file = fopen("/proc/self/status", "r");
	unsigned long kib = 0;
	char line[256];

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "VmSwap: %lu", &kib) == 1)
			break;
	if (file)
		fclose(file);
	return kib;
}

/* Memory that the system has to read from storage first. */
void case_swapped(const char *address)
{
	const uint64_t len = 64 * PAGE;
	struct md_mr from, to;
	unsigned long before;
	struct pinned now;
	struct guest g;

	guest_open_unmapped(&g, address);
	/* A huge page of which a part is pinned is not swapped. */
	madvise(g.md->host.ram, GUEST_MEMORY, MADV_NOHUGEPAGE);
	CHECK(!guest_map(&g, HOST_PAGE, GUEST_MEMORY - HOST_PAGE, true));
	guest_start(&g);
	guest_region(&g, &from, len);
	guest_region(&g, &to, len);
	fill(&g, &from, 12);
	fill(&g, &to, 13);
	CHECK(!madvise(guest_ptr(&g, from.buf.root), len, MADV_PAGEOUT));
	CHECK(!madvise(guest_ptr(&g, to.buf.root), len, MADV_PAGEOUT));
	before = swapped_kib();
	CHECK(before >= len >> 10);
	CHECK(copy(&g, &from, &to) == QHCA_WC_SUCCESS);
	CHECK(swapped_kib() < before);
	CHECK(matches(&g, &to, 12));
	now = pinned(&g);
	printf("# %lu KiB were in swap; %lu faults\n", before, now.faults);
	CHECK(now.fault == 2 * len / PAGE);
	guest_close(&g);
	tap_checked("memory is read from swap when the device needs it");
}

/* Serves page faults of stage 1 until the request completes; counts them. */
static int serve(struct guest *g, struct md_odp *odp, unsigned int *faults)
{
	double end = seconds() + 20;
	struct qhca_fault_info info;
	uint32_t qpn, flags;
	int status;

	while ((status = guest_poll(g, 0)) < 0 && seconds() < end) {
		if (!md_fault(g->md, &qpn, &info)) {
			guest_wait(g);
			continue;
		}
		/* Those of stage 2 are the host's affair. */
		flags = get_le32(&info.flags);
		CHECK(!(flags & QHCA_FAULT_STAGE2));
		CHECK(md_odp_map(odp, md_odp_page(odp, get_le64(&info.addr)),
				 flags & QHCA_FAULT_WRITE));
		CHECK(!md_resume(g->md, get_le32(&info.token), true));
		++*faults;
	}
	return status;
}

/*
 * A region on demand, with fewer frames than pages: a page is absent for the guest's
 * driver first, and then its frame for the host's.
 */
void case_both(const char *address)
{
	const unsigned int pages = 8;
	unsigned int faults = 0;
	struct md_frames *frames;
	struct pinned before;
	struct md_odp *odp;
	struct md_mr from;
	struct guest g;
	uint8_t *data;

	guest_open(&g, address);
	guest_start(&g);
	guest_region(&g, &from, pages * PAGE);
	frames = md_frames_new(g.md, 3);
	odp = md_odp_reg(g.md, frames, GUEST_PD, 0x40000000, pages * PAGE, GUEST_ALL);
	guest_own(&g, odp->mr.key);
	data = malloc(from.len);
	before = pinned(&g);
	for (unsigned int round = 0; round < 20; round++) {
		fill(&g, &from, round);
		guest_post(&g, QHCA_WQE_WRITE, from.iova, from.key, odp->mr.iova, odp->mr.key,
			   (uint32_t)from.len);
		CHECK(serve(&g, odp, &faults) == QHCA_WC_SUCCESS);
		md_buf_read(g.md, &odp->mr.buf, 0, data, from.len);
		CHECK(!memcmp(data, guest_ptr(&g, from.buf.root), from.len));
	}
	printf("# %u faults of stage 1, %lu of stage 2\n", faults,
	       pinned(&g).faults - before.faults);
	CHECK(faults >= pages);
	CHECK(pinned(&g).faults > before.faults);
	CHECK(md_frames_check(g.md, frames) == 0);
	CHECK(guest_fatal(&g, 0, NULL) == 0);
	free(data);
	guest_close(&g);
	tap_checked("one access takes the faults of both stages");
}

/* A process without privileges may pin as much as its limit says. */
void case_limit(const char *address)
{
	const uint64_t allowed = 4 << 20, len = 8 << 20;
	struct rlimit old, limit;
	struct pinned before, now;
	struct md_mr from, to;
	struct guest g;

	getrlimit(RLIMIT_MEMLOCK, &old);
	limit = old;
	limit.rlim_cur = allowed;
	guest_open_unmapped(&g, address);
	before = pinned(&g);
	/* VFIO asks for privileges when memory is mapped. */
	CHECK(!seteuid(65534) && !setrlimit(RLIMIT_MEMLOCK, &limit));
	CHECK(!guest_map(&g, HOST_PAGE, GUEST_MEMORY - HOST_PAGE, true));
	CHECK(!seteuid(0));
	guest_start(&g);
	guest_region(&g, &from, len);
	guest_region(&g, &to, len);
	fill(&g, &from, 9);
	CHECK(copy(&g, &from, &to) != QHCA_WC_SUCCESS);
	now = pinned(&g);
	printf("# pinned under a limit of %llu pages: %lu\n", (unsigned long long)allowed / PAGE,
	       now.fault + now.device);
	CHECK((now.fault + now.device) * PAGE <= allowed);
	CHECK(now.refused > before.refused);
	CHECK(guest_fatal(&g, 0, NULL) == 0);
	guest_close(&g);
	setrlimit(RLIMIT_MEMLOCK, &old);
	tap_checked("RLIMIT_MEMLOCK bounds what is pinned");
}
