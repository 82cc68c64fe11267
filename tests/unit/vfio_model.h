/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What drivers/vfio/pci/qhca can reach, for a test of it: a model of the virtual machine's
 * memory, of the physical function and of VFIO's library. One file of a program includes it.
 *
 * The model knows three windows of pages, each mapped or not, writable or not, and
 * counts how often each page is pinned. It reads the tables as the device does. At
 * all times a page is pinned once if the device can reach it, and never unpinned while
 * it can.
 */
#ifndef QHCA_TEST_VFIO_MODEL_H
#define QHCA_TEST_VFIO_MODEL_H

#include <setjmp.h>
#include <stdarg.h>

#include "qhca_vfio.h"

#include <cmocka.h>

#define WINDOWS		3
#define PAGES		2048u		/* in each */

struct model_page {
	bool mapped, read_only;
	u64 at;				/* machine address */
	int pins;
};

/* Across nodes of each level, and at both ends of what there is. */
static const u64 window[WINDOWS] = {
	0, (1ull << 39) - PAGES / 2 * PAGE_SIZE, (1ull << 48) - PAGES * PAGE_SIZE,
};
static struct model_page page[WINDOWS][PAGES];
static long pins, maps, nodes;

static struct qhca_vfio vf;
static struct pci_dev pdev;

/* The physical function. */
static bool pf_dead;
static bool pf_restarts;		/* while it is asked to invalidate */
static u64 root;			/* 0: stage 2 is off, or the row is lost */
static bool lost;
static unsigned int resumes;
static bool resumed_ok;
static long acknowledged = -1;		/* pins at the last invalidation */
static unsigned int scarce;		/* one of so many nodes cannot be had */

static u64 number = 1;

static inline unsigned int any(unsigned int below)
{
	number = number * 6364136223846793005ull + 1442695040888963407ull;
	return (unsigned int)(number >> 33) % below;
}

static inline struct model_page *find(u64 addr)
{
	for (int w = 0; w < WINDOWS; w++)
		if (addr >= window[w] && addr - window[w] < PAGES * PAGE_SIZE)
			return &page[w][(addr - window[w]) / PAGE_SIZE];
	return NULL;
}

/* The entry for an address as the device finds it; not present: 0. */
static inline u64 device_finds(u64 addr)
{
	const u64 *node = (const u64 *)(uintptr_t)root;
	u64 entry = 0;
	int shift;

	if (!node || !pdev.master)
		return 0;
	for (int level = QHCA_S2_LEVELS; level; level--) {
		shift = QHCA_S2_PAGE_SHIFT + QHCA_AT_BITS * (level - 1);
		entry = node[addr >> shift & (QHCA_S2_ENTRIES - 1)];
		if (!(entry & QHCA_ATE_PRESENT))
			return 0;
		if (level > 1 && entry & QHCA_ATE_LEAF) {
			assert_int_equal(entry & QHCA_ATE_ADDR & ((1ull << shift) - 1), 0);
			return entry + (addr & ((1ull << shift) - 1) & QHCA_ATE_ADDR);
		}
		node = (const u64 *)(uintptr_t)(entry & QHCA_ATE_NODE);
	}
	return entry;
}

/* ---- threads that take memory away */

static struct task_struct thread;
struct task_struct *current = &thread;
static struct callback_head *thread_work;
static struct model_page *going;	/* 8 pages that VFIO is about to forget, or NULL */

int task_work_add(struct task_struct *task, struct callback_head *work, int notify)
{
	(void)notify;
	assert_true(task == &thread && !thread_work);
	thread_work = work;
	return 0;
}

/* The system call ends: VFIO has forgotten the pages by then. */
static inline void return_to_user(void)
{
	struct callback_head *work = thread_work;

	for (int i = 0; going && i < 8; i++)
		going[i].mapped = false;
	going = NULL;
	thread_work = NULL;
	if (work)
		work->func(work);
}

void others_run(void)
{
	assert_false(vf.lock.held);
	return_to_user();
}

/* ---- what the driver calls */

int vfio_pin_pages(struct vfio_device *vdev, u64 iova, int num, int prot, struct page **pages)
{
	struct model_page *p = find(iova);

	(void)vdev;
	assert_int_equal(num, 1);
	if (!p || !p->mapped)
		return -EINVAL;
	assert_true(!going || p < going || p >= going + 8);
	if (prot & IOMMU_WRITE && p->read_only)
		return -EPERM;
	p->pins++;
	pins++;
	*pages = (struct page *)(uintptr_t)p->at;
	return 1;
}

void vfio_unpin_pages(struct vfio_device *vdev, u64 iova, int num)
{
	struct model_page *p = find(iova);

	(void)vdev;
	assert_int_equal(num, 1);
	assert_true(p && p->pins > 0);
	pins--;
	if (!--p->pins)
		assert_int_equal(device_finds(iova), 0);
}

dma_addr_t dma_map_page(struct device *dev, struct page *p, size_t offset, size_t size,
			enum dma_data_direction dir)
{
	assert_true(dev == &pdev.dev && !offset && size == PAGE_SIZE);
	(void)dir;
	maps++;
	return (uintptr_t)p;
}

void dma_unmap_page(struct device *dev, dma_addr_t addr, size_t size,
		    enum dma_data_direction dir)
{
	assert_true(dev == &pdev.dev && !(addr & (size - 1)));
	(void)dir;
	maps--;
}

void *dma_alloc_coherent(struct device *dev, size_t size, dma_addr_t *addr, int gfp)
{
	void *p;

	(void)dev;
	(void)gfp;
	if (scarce && !any(scarce))
		return NULL;
	p = aligned_alloc(size, size);
	memset(p, 0, size);
	*addr = (uintptr_t)p;
	nodes++;
	return p;
}

void dma_free_coherent(struct device *dev, size_t size, void *p, dma_addr_t addr)
{
	(void)dev;
	assert_true((uintptr_t)p == addr);
	/* What the device would read here leads nowhere. */
	memset(p, 0xfe, size);
	free(p);
	nodes--;
}

/* VFIO's library: others run while it has the register. Whoever gives memory up waits for it. */
static void (*meanwhile)(void);

static inline void run_meanwhile(void)
{
	assert_int_equal(vf.srcu.readers, 1);
	if (meanwhile)
		meanwhile();
	meanwhile = NULL;
}

ssize_t vfio_pci_core_write(struct vfio_device *vdev, const char *buf, size_t count, loff_t *ppos)
{
	loff_t first = *ppos;

	(void)vdev;
	/* No other call of the user's is under way. */
	assert_true(vf.user_lock.held);
	if (first <= PCI_COMMAND && first + (loff_t)count > PCI_COMMAND)
		pdev.master = buf[PCI_COMMAND - first] & PCI_COMMAND_MASTER;
	*ppos += (loff_t)count;
	run_meanwhile();
	return (ssize_t)count;
}

/* It writes back what it has read, and knows nothing of the rest. */
long vfio_pci_core_ioctl(struct vfio_device *vdev, unsigned int cmd, unsigned long arg)
{
	bool master = pdev.master;

	assert_true(vdev == &vf.core.vdev && cmd == VFIO_DEVICE_SET_IRQS);
	assert_true(vf.user_lock.held);
	run_meanwhile();
	pdev.master = master;
	return (long)arg;
}

struct device *qhca_stage2_table_device(struct qhca_stage2 *s2)
{
	(void)s2;
	return NULL;
}

int qhca_stage2_set(struct qhca_stage2 *s2, dma_addr_t at, u8 page_shift, u8 levels)
{
	(void)s2;
	assert_true(page_shift == QHCA_S2_PAGE_SHIFT && levels == QHCA_S2_LEVELS);
	/* A reset calls it, and may wait neither for pins nor for their lock. */
	assert_false(vf.lock.held);
	if (pf_dead)
		return -EIO;
	lost = false;
	root = at;
	return 0;
}

int qhca_stage2_unset(struct qhca_stage2 *s2)
{
	(void)s2;
	if (pf_dead)
		return -EIO;
	lost = false;
	root = 0;
	return 0;
}

int qhca_stage2_invalidate(struct qhca_stage2 *s2, u64 start, u64 length)
{
	(void)s2;
	assert_true(length && start + length - 1 >= start);
	acknowledged = pins;
	if (pf_restarts) {
		pf_restarts = pf_dead = false;
		root = 0;
		vf.lock.held = false;	/* by that thread */
		qhca_s2_restart(&vf);
		vf.lock.held = true;
		return -EIO;
	}
	return pf_dead ? -EIO : 0;
}

int qhca_stage2_resume(struct qhca_stage2 *s2, u32 token, bool ok)
{
	(void)s2;
	(void)token;
	resumes++;
	resumed_ok = ok;
	return 0;
}

static inline void work(void)
{
	vf.work.function(&vf.work);
}

/* Machine memory: in order, so that there are large pages, or in disorder. */
static inline void new_memory(bool in_order)
{
	u64 at = 1ull << 30;

	for (int w = 0; w < WINDOWS; w++)
		for (unsigned int i = 0; i < PAGES; i++) {
			at += PAGE_SIZE * (in_order ? 1 : 1 + any(2));
			page[w][i] = (struct model_page){
				.mapped = true,
				.read_only = !in_order && i / 64 % 5 == 0,
				.at = in_order ? ((w + 1ull) << 32) + window[w] % (2 << 20) +
						 i * PAGE_SIZE : at,
			};
		}
}

static inline void fault(u64 addr, u64 length, bool write, bool device)
{
	struct qhca_eqe eqe = {
		.number = 1,
		.detail = device ? QHCA_STAGE2_PIN : QHCA_STAGE2_PRESENT,
		.fault = { .addr = addr, .length = length,
			   .flags = write ? QHCA_FAULT_WRITE : 0 },
	};

	qhca_s2_fault(&vf, &eqe);
}

static inline void start(void)
{
	memset(&vf, 0, sizeof(vf));
	vf.core.pdev = &pdev;
	INIT_LIST_HEAD(&vf.dead);
	INIT_LIST_HEAD(&vf.holds);
	assert_int_equal(qhca_s2_faults_init(&vf), 0);
}

#endif
