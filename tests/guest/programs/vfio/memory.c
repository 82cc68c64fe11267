// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What is pinned, and when. */
#include "vfio/cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "bytes.h"
#include "lib/tap.h"

struct pinned pinned(const struct guest *g)
{
	return (struct pinned){
		.fault = vfio_stat(g->vfio, "pages_fault"),
		.device = vfio_stat(g->vfio, "pages_device"),
		.faults = vfio_stat(g->vfio, "faults"),
		.refused = vfio_stat(g->vfio, "refused"),
	};
}

static uint8_t pattern(uint64_t i, unsigned int seed)
{
	return (uint8_t)(i * 7 + (i >> 12) * 13 + seed * 31);
}

void fill(struct guest *g, const struct md_mr *mr, unsigned int seed)
{
	uint8_t *p = guest_ptr(g, mr->buf.root);

	for (uint64_t i = 0; i < mr->len; i++)
		p[i] = pattern(i, seed);
}

bool matches(struct guest *g, const struct md_mr *mr, unsigned int seed)
{
	const uint8_t *p = guest_ptr(g, mr->buf.root);

	for (uint64_t i = 0; i < mr->len; i++)
		if (p[i] != pattern(i, seed))
			return false;
	return true;
}

int copy(struct guest *g, const struct md_mr *from, const struct md_mr *to)
{
	return guest_rdma(g, QHCA_WQE_WRITE, from->iova, from->key, to->iova, to->key,
			  (uint32_t)from->len);
}

/* At start nothing is pinned; then what the device needs, and what is touched. */
void case_copy(const char *address)
{
	const unsigned int pages = 24;
	struct md_mr from, to, idle;
	struct pinned now, before;
	struct guest g;

	guest_open(&g, address);
	before = pinned(&g);
	CHECK(before.fault == 0 && before.device == 0);
	guest_start(&g);
	now = pinned(&g);
	CHECK(now.fault == 0 && now.device > 0 && now.refused == before.refused);
	printf("# pinned for the device: %lu pages\n", now.device);
	guest_region(&g, &from, pages * PAGE);
	guest_region(&g, &to, pages * PAGE);
	guest_region(&g, &idle, pages * PAGE);
	fill(&g, &from, 1);
	CHECK(copy(&g, &from, &to) == QHCA_WC_SUCCESS);
	CHECK(matches(&g, &to, 1));
	now = pinned(&g);
	printf("# pinned because of %lu faults: %lu pages; touched: %u\n",
	       now.faults - before.faults, now.fault, 2 * pages);
	CHECK(now.fault == 2 * pages && now.faults > before.faults);

	/* What is there faults no more. */
	fill(&g, &from, 2);
	CHECK(copy(&g, &from, &to) == QHCA_WC_SUCCESS);
	CHECK(matches(&g, &to, 2));
	CHECK(pinned(&g).faults == now.faults);
	CHECK(guest_fatal(&g, 0, NULL) == 0);
	guest_close(&g);
	tap_checked("a copy pins what it touches");
}

static void arm_eq(struct guest *g)
{
	qhca_doorbell(g->md->host.hca, g->md->host.gvmi, 0, QHCA_DB_EQ_ARM,
		      QHCA_EQN_ASYNC | (uint64_t)g->md->eq_ci << 32, 0);
}

void case_interrupt(const char *address)
{
	struct md_mr from, to;
	struct qhca_eqe eqe;
	unsigned long faults;
	struct guest g;

	guest_open(&g, address);
	faults = pinned(&g).faults;
	guest_start(&g);
	guest_region(&g, &from, PAGE);
	guest_region(&g, &to, PAGE);
	vfio_interrupts(g.vfio, 0, 0);
	arm_eq(&g);
	md_arm(&g.cq, false);
	CHECK(copy(&g, &from, &to) == QHCA_WC_SUCCESS);
	CHECK(vfio_interrupts(g.vfio, 0, 5000) == 1);
	CHECK(md_event(g.md, &eqe) && eqe.type == QHCA_EVENT_COMPLETION);
	/* The fault was the host's affair. */
	CHECK(!md_event(g.md, &eqe));
	CHECK(pinned(&g).faults > faults);
	guest_close(&g);
	tap_checked("a completion interrupts, and no fault of stage 2 is an event");
}

static bool reset_releases(struct guest *g, int (*reset)(struct vfio *v))
{
	struct md_mr from, to;
	struct pinned now;
	bool worked;

	guest_start(g);
	guest_region(g, &from, 4 * PAGE);
	guest_region(g, &to, 4 * PAGE);
	fill(g, &from, 3);
	worked = copy(g, &from, &to) == QHCA_WC_SUCCESS && matches(g, &to, 3);
	now = pinned(g);
	worked = worked && now.fault && now.device;
	if (reset(g->vfio))
		return false;
	vfio_set_master(g->vfio, true);
	/* The old tables are emptied after the reset. */
	for (int i = 0; i < 1000 && (now.fault || now.device); i++) {
		guest_wait(g);
		now = pinned(g);
	}
	return worked && !now.fault && !now.device;
}

void case_reset(const char *address)
{
	unsigned long refused;
	struct guest g;

	guest_open(&g, address);
	refused = pinned(&g).refused;
	CHECK(reset_releases(&g, vfio_reset));
	CHECK(reset_releases(&g, vfio_flr));
	CHECK(reset_releases(&g, vfio_flr));
	/* The function's own reset leaves the pages where they are. */
	guest_start(&g);
	CHECK(pinned(&g).device > 0);
	guest_start(&g);
	CHECK(pinned(&g).refused == refused);
	CHECK(guest_fatal(&g, 0, NULL) == 0);
	guest_close(&g);
	tap_checked("a reset gives up what was pinned");
}

/* Memory that the process has mapped read-only. */
void case_read_only(const char *address)
{
	struct md_mr other, sealed;
	unsigned long refused;
	struct guest g;

	guest_open_unmapped(&g, address);
	refused = pinned(&g).refused;
	CHECK(!guest_map(&g, HOST_PAGE, GUEST_MEMORY / 2 - HOST_PAGE, true));
	CHECK(!guest_map(&g, GUEST_MEMORY / 2, GUEST_MEMORY / 2, false));
	guest_start(&g);
	guest_region(&g, &other, 2 * PAGE);
	g.md->host.next = GUEST_MEMORY / 2;
	guest_region(&g, &sealed, 2 * PAGE);
	fill(&g, &sealed, 4);
	fill(&g, &other, 5);
	CHECK(guest_rdma(&g, QHCA_WQE_READ, other.iova, other.key, sealed.iova, sealed.key,
			 2 * PAGE) == QHCA_WC_SUCCESS);
	CHECK(matches(&g, &other, 4));
	fill(&g, &other, 5);
	CHECK(copy(&g, &other, &sealed) == QHCA_WC_REM_ACCESS_ERR);
	CHECK(matches(&g, &sealed, 4));
	CHECK(pinned(&g).refused > refused);
	CHECK(guest_fatal(&g, 0, NULL) == 0);
	guest_close(&g);
	tap_checked("memory mapped read-only is read, and not written");
}

/* A key whose addresses are bus addresses, those of the guest. */
static uint32_t dma_key(struct guest *g)
{
	uint32_t index = g->md->next_key++;
	struct qhca_pte pte = { 0 };

	put_le32(&pte.ctrl, QHCA_PTE_VALID | QHCA_PTE_DMA << 4 | 12u << 16);
	put_le32(&pte.access, GUEST_ALL);
	put_le32(&pte.pd, GUEST_PD);
	put_le32(&pte.at_key, index);
	put_le64(&pte.length, UINT64_MAX);
	put_le32(&pte.gvmi, g->md->host.gvmi);
	guest_pte(g, index, &pte);
	return index << 8;
}

/* The reserved L_Key and DMA keys skip stage 1, and not stage 2. */
void case_bus_addresses(const char *address)
{
	struct md_mr from, to;
	struct pinned now;
	struct guest g;
	uint32_t key;

	guest_open(&g, address);
	guest_start(&g);
	key = dma_key(&g);
	guest_region(&g, &from, 3 * PAGE);
	guest_region(&g, &to, 3 * PAGE);
	fill(&g, &from, 6);
	now = pinned(&g);
	CHECK(guest_rdma(&g, QHCA_WQE_WRITE, from.buf.root, QHCA_RESERVED_LKEY, to.buf.root, key,
			 3 * PAGE) == QHCA_WC_SUCCESS);
	CHECK(matches(&g, &to, 6));
	CHECK(pinned(&g).fault == now.fault + 6);
	CHECK(pinned(&g).faults > now.faults);

	/* The first page of the guest is not mapped. */
	CHECK(guest_rdma(&g, QHCA_WQE_WRITE, 64, QHCA_RESERVED_LKEY, to.buf.root, key, 64) ==
	      QHCA_WC_LOC_PROT_ERR);
	CHECK(guest_fatal(&g, 0, NULL) == 0);
	guest_close(&g);
	tap_checked("the reserved L_Key and DMA keys are translated by stage 2");
}

/* 2 MiB that follow each other in memory are one entry, until a page of it goes. */
void case_large(const char *address)
{
	const uint64_t size = 2 << 20;
	struct md_mr from, to;
	struct guest g;
	bool huge;

	guest_open_unmapped(&g, address);
	huge = !madvise(g.md->host.ram, GUEST_MEMORY, MADV_HUGEPAGE);
	CHECK(!guest_map(&g, HOST_PAGE, GUEST_MEMORY - HOST_PAGE, true));
	guest_start(&g);
	g.md->host.next = (g.md->host.next + size - 1) & ~(size - 1);
	/* A huge page needs the same alignment on both sides. */
	huge = huge && !((uintptr_t)g.md->host.ram & (size - 1));
	guest_region(&g, &from, size);
	guest_region(&g, &to, size);
	fill(&g, &from, 7);
	CHECK(copy(&g, &from, &to) == QHCA_WC_SUCCESS);
	CHECK(matches(&g, &to, 7));
	printf("# large pages: %lu\n", vfio_stat(g.vfio, "large_pages"));
	if (huge)
		CHECK(vfio_stat(g.vfio, "large_pages") > 0);
	CHECK(!guest_unmap(&g, HOST_PAGE, GUEST_MEMORY - HOST_PAGE));
	CHECK(vfio_stat(g.vfio, "large_pages") == 0);
	CHECK(pinned(&g).fault == 0 && pinned(&g).device == 0);
	guest_close(&g);
	tap_checked("large pages come and go");
}
