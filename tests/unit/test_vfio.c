// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * drivers/vfio/pci/qhca: what a function can reach, against a model of the virtual
 * machine's memory.
 *
 * The model knows three windows of pages, each mapped or not, writable or not, and
 * counts how often each page is pinned. The test reads the tables as the device does. At
 * all times a page is pinned once if the device can reach it, and never unpinned while
 * it can.
 */
#include <setjmp.h>
#include <stdarg.h>

#include "qhca_vfio.h"

#include <cmocka.h>

#define WINDOWS		3
#define PAGES		2048u		/* in each */
#define LIVES		4
#define ROUNDS		600

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

static unsigned int any(unsigned int below)
{
	number = number * 6364136223846793005ull + 1442695040888963407ull;
	return (unsigned int)(number >> 33) % below;
}

static struct model_page *find(u64 addr)
{
	for (int w = 0; w < WINDOWS; w++)
		if (addr >= window[w] && addr - window[w] < PAGES * PAGE_SIZE)
			return &page[w][(addr - window[w]) / PAGE_SIZE];
	return NULL;
}

/* The entry for an address as the device finds it; not present: 0. */
static u64 device_finds(u64 addr)
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
static void return_to_user(void)
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

/* VFIO's library: it writes the register, and others run before it returns. */
static void (*meanwhile)(void);

ssize_t vfio_pci_core_write(struct vfio_device *vdev, const char *buf, size_t count, loff_t *ppos)
{
	loff_t first = *ppos;

	(void)vdev;
	if (first <= PCI_COMMAND && first + (loff_t)count > PCI_COMMAND)
		pdev.master = buf[PCI_COMMAND - first] & PCI_COMMAND_MASTER;
	*ppos += (loff_t)count;
	if (meanwhile)
		meanwhile();
	meanwhile = NULL;
	return (ssize_t)count;
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

/* ---- the test */

static void work(void)
{
	vf.work.function(&vf.work);
}

static void check(void)
{
	long count = 0;
	u64 entry;

	for (int w = 0; w < WINDOWS; w++)
		for (unsigned int i = 0; i < PAGES; i++) {
			const struct model_page *p = &page[w][i];

			count += p->pins;
			entry = device_finds(window[w] + i * PAGE_SIZE);
			if (!entry)
				continue;
			assert_true(p->mapped && p->pins);
			assert_int_equal(entry & QHCA_ATE_ADDR, p->at);
			assert_int_equal(!!(entry & QHCA_ATE_WRITE), !p->read_only);
		}
	assert_int_equal(count, pins);
	assert_int_equal(maps, pins);
	assert_int_equal(vf.stats.pages_fault + vf.stats.pages_device, pins);
	assert_int_equal(vf.stats.nodes.value, nodes);
}

/* Machine memory: in order, so that there are large pages, or in disorder. */
static void new_memory(bool in_order)
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

static void fault(u64 addr, u64 length, bool write, bool device)
{
	struct qhca_eqe eqe = {
		.number = 1,
		.detail = device ? QHCA_STAGE2_PIN : QHCA_STAGE2_PRESENT,
		.fault = { .addr = addr, .length = length,
			   .flags = write ? QHCA_FAULT_WRITE : 0 },
	};

	qhca_s2_fault(&vf, &eqe);
}

static void do_fault(u64 addr)
{
	const struct model_page *p = find(addr);
	bool write = any(2), device = !any(3);
	u64 length = (any(4) ? any(20) : any(700)) * PAGE_SIZE + any(PAGE_SIZE);
	unsigned int before = resumes;
	u64 entry;

	fault(addr + any(PAGE_SIZE), length, write, device);
	work();
	assert_int_equal(resumes, before + 1);
	if (!p->mapped || (write && p->read_only))
		assert_false(resumed_ok);
	else if (!scarce)
		assert_true(resumed_ok);
	entry = device_finds(addr);
	if (resumed_ok && root && pdev.master) {
		assert_true(entry & QHCA_ATE_PRESENT);
		if (device)
			assert_true(entry & QHCA_ATE_PINNED);
	}
}

static void do_unmap(int w, unsigned int first)
{
	unsigned int num = 1 + (any(4) ? any(40) : any(1200));

	if (!any(4)) {		/* a whole large page */
		first &= ~511u;
		num = 512;
	}
	num = min(num, PAGES - first);
	qhca_s2_unmap(&vf.core.vdev, window[w] + first * PAGE_SIZE, num * PAGE_SIZE);
	return_to_user();
	for (unsigned int i = first; i < first + num; i++) {
		assert_int_equal(page[w][i].pins, 0);
		assert_int_equal(device_finds(window[w] + i * PAGE_SIZE), 0);
		page[w][i].mapped = any(8);
	}
}

static void do_physical_function(void)
{
	pf_dead = !pf_dead;
	if (pf_dead)
		return;
	/* Its reset has made the row lost. */
	root = 0;
	qhca_s2_restart(&vf);
	assert_false(vf.broken);
	assert_true(pdev.master);
}

static void do_something(void)
{
	int w = (int)any(WINDOWS);
	unsigned int i = any(PAGES);

	switch (any(20)) {
	case 0:
	case 1:
		do_unmap(w, i);
		break;
	case 2:			/* addresses that nobody has */
		fault(any(2) ? UINT64_MAX - any(8192) : 1ull << (48 + any(16)), UINT64_MAX, 1, 0);
		work();
		assert_false(resumed_ok);
		break;
	case 3:
		if (!any(10))
			qhca_s2_reset(&vf);
		break;
	case 4:
		if (!any(10))
			do_physical_function();
		break;
	case 5:
		if (!any(30)) {
			qhca_s2_unmap(&vf.core.vdev, 0, UINT64_MAX);
			return_to_user();
			assert_int_equal(pins, 0);
		}
		break;
	default:
		do_fault(window[w] + i * PAGE_SIZE);
	}
}

static void life(unsigned long *large)
{
	new_memory(any(2));
	assert_int_equal(qhca_s2_open(&vf), 0);
	assert_int_equal(pins, 0);
	pdev.master = vf.master = true;
	scarce = any(3) ? 0 : 20;
	for (int i = 0; i < ROUNDS; i++) {
		do_something();
		*large = max(*large, vf.stats.large);
		if (i % 16 == 0)
			check();
	}
	scarce = 0;
	pdev.master = false;
	qhca_s2_close(&vf);
	assert_true(!pins && !maps && !nodes && !vf.stats.large);
	pf_dead = false;
	root = 0;
}

static void start(void)
{
	memset(&vf, 0, sizeof(vf));
	vf.core.pdev = &pdev;
	INIT_LIST_HEAD(&vf.dead);
	INIT_LIST_HEAD(&vf.holds);
	assert_int_equal(qhca_s2_faults_init(&vf), 0);
}

static void test_lives(void **state)
{
	unsigned long large = 0;

	(void)state;
	for (number = 1; number <= 8; number++) {
		u64 seed = number;

		start();
		for (int i = 0; i < LIVES; i++)
			life(&large);
		qhca_s2_faults_exit(&vf);
		number = seed;
	}
	assert_true(large > 0);
}

/* A large page is one entry, is split by what is taken from it, and joined again. */
static void test_large(void **state)
{
	u64 entry;

	(void)state;
	start();
	new_memory(true);
	assert_int_equal(qhca_s2_open(&vf), 0);
	pdev.master = vf.master = true;
	fault(0, 512 * PAGE_SIZE, true, false);
	work();
	assert_int_equal(vf.stats.large, 1);
	assert_int_equal(vf.stats.pages_fault, 512);
	check();
	/* One page of it has to stay: the rights differ. */
	fault(7 * PAGE_SIZE, 1, true, true);
	work();
	assert_int_equal(vf.stats.large, 0);
	check();
	fault(0, 512 * PAGE_SIZE, true, true);
	work();
	assert_int_equal(vf.stats.large, 1);
	assert_int_equal(vf.stats.pages_device, 512);
	qhca_s2_unmap(&vf.core.vdev, 9 * PAGE_SIZE, PAGE_SIZE);
	/* Nothing is given up before the device knows. */
	assert_int_equal(acknowledged, 512);
	assert_int_equal(pins, 511);
	assert_int_equal(vf.stats.large, 0);
	assert_int_equal(device_finds(9 * PAGE_SIZE), 0);
	entry = device_finds(10 * PAGE_SIZE);
	assert_int_equal(entry & QHCA_ATE_ADDR, page[0][10].at);
	check();

	/* In order, but not aligned. */
	qhca_s2_unmap(&vf.core.vdev, 0, 512 * PAGE_SIZE);
	for (unsigned int i = 0; i < 512; i++)
		page[0][i].at += PAGE_SIZE;
	fault(0, 512 * PAGE_SIZE, true, false);
	work();
	assert_int_equal(vf.stats.large, 0);
	check();
	qhca_s2_close(&vf);
	qhca_s2_faults_exit(&vf);
}

/* A reset neither unpins nor leaves the device what was pinned. */
static void test_reset(void **state)
{
	(void)state;
	start();
	new_memory(true);
	assert_int_equal(qhca_s2_open(&vf), 0);
	pdev.master = vf.master = true;
	fault(0, 4 * PAGE_SIZE, true, true);
	work();
	qhca_s2_reset(&vf);
	assert_int_equal(pins, 4);
	assert_int_equal(device_finds(0), 0);
	work();
	assert_int_equal(pins, 0);

	/* A fault that could not be noted: the function begins anew. */
	fault(0, 1, true, false);
	work();
	vf.pool->empty = true;
	fault(PAGE_SIZE, 1, true, false);
	work();
	assert_int_equal(device_finds(0), 0);
	work();
	assert_int_equal(pins, 0);
	vf.pool->empty = false;
	qhca_s2_close(&vf);
	qhca_s2_faults_exit(&vf);
}

/* Who leaves while the physical function is away leaves nothing behind. */
static void test_leave(void **state)
{
	(void)state;
	start();
	new_memory(true);
	assert_int_equal(qhca_s2_open(&vf), 0);
	pdev.master = vf.master = true;
	pf_dead = true;
	/* VFIO disables the device, and the physical function comes back. */
	qhca_s2_leave(&vf);
	pdev.master = false;
	pf_dead = false;
	qhca_s2_restart(&vf);
	assert_false(pdev.master);
	/* The physical function may also come back later. */
	pf_dead = lost = true;
	root = 0;
	qhca_s2_close(&vf);
	assert_true(lost);
	pf_dead = false;
	qhca_s2_restart(&vf);
	assert_true(!lost && !root && !pdev.master);
	assert_true(!pins && !nodes);
	qhca_s2_faults_exit(&vf);
}

/*
 * Software that resets its QPs faults as fast as it likes, and nobody has to answer. What
 * the driver notes of that is bounded, and the function ends.
 */
static void test_flood(void **state)
{
	long i;

	(void)state;
	start();
	new_memory(true);
	assert_int_equal(qhca_s2_open(&vf), 0);
	pdev.master = vf.master = true;
	for (i = 0; i < 2 * QHCA_S2_MAX_FAULTS; i++)
		fault(0, 1, true, false);
	assert_true(vf.pool->taken <= QHCA_S2_MAX_FAULTS);
	work();
	assert_int_equal(vf.pool->taken, 0);
	assert_int_equal(device_finds(0), 0);
	work();
	fault(0, 1, true, false);
	work();
	assert_true(device_finds(0) & QHCA_ATE_PRESENT);
	qhca_s2_close(&vf);
	qhca_s2_faults_exit(&vf);
}

/* A page that VFIO is taking away is not pinned again. */
static void test_taken_away(void **state)
{
	(void)state;
	start();
	new_memory(true);
	assert_int_equal(qhca_s2_open(&vf), 0);
	pdev.master = vf.master = true;
	fault(0, 16 * PAGE_SIZE, true, false);
	work();
	assert_int_equal(pins, 16);
	/* The function faults while VFIO waits for the driver. */
	going = &page[0][0];
	fault(3 * PAGE_SIZE, PAGE_SIZE, true, false);
	qhca_s2_unmap(&vf.core.vdev, 0, 8 * PAGE_SIZE);
	work();
	assert_null(going);
	assert_false(resumed_ok);
	assert_int_equal(pins, 8);

	/* Faults elsewhere do not wait, and stop short of the range. */
	going = &page[0][8];
	qhca_s2_unmap(&vf.core.vdev, 0, 8 * PAGE_SIZE);
	qhca_s2_unmap(&vf.core.vdev, 8 * PAGE_SIZE, 8 * PAGE_SIZE);
	page[0][7].mapped = true;
	fault(7 * PAGE_SIZE, 4 * PAGE_SIZE, true, false);
	work();
	assert_true(resumed_ok && going);
	assert_int_equal(pins, 1);
	return_to_user();

	/* A process that closes the device does not wait for the thread. */
	fault(20 * PAGE_SIZE, PAGE_SIZE, true, false);
	qhca_s2_unmap(&vf.core.vdev, 20 * PAGE_SIZE, PAGE_SIZE);
	qhca_s2_close(&vf);
	assert_non_null(thread_work);
	return_to_user();
	qhca_s2_holds_end(&vf);
	qhca_s2_faults_exit(&vf);
}

/* Without the physical function memory is given up by ending the function's DMA. */
static void test_broken(void **state)
{
	(void)state;
	start();
	new_memory(true);
	assert_int_equal(qhca_s2_open(&vf), 0);
	pdev.master = vf.master = true;
	fault(0, 4 * PAGE_SIZE, true, false);
	work();
	pf_dead = true;
	qhca_s2_unmap(&vf.core.vdev, PAGE_SIZE, PAGE_SIZE);
	assert_true(vf.broken && !pdev.master);
	assert_int_equal(pins, 3);
	pf_dead = false;
	qhca_s2_restart(&vf);
	assert_true(!vf.broken && pdev.master);
	work();
	assert_int_equal(pins, 0);

	/* A new life may begin before the failure is noticed. */
	return_to_user();
	fault(0, 4 * PAGE_SIZE, true, false);
	work();
	pf_dead = pf_restarts = true;
	qhca_s2_unmap(&vf.core.vdev, PAGE_SIZE, PAGE_SIZE);
	assert_true(!vf.broken && pdev.master);
	assert_int_equal(pins, 0);
	return_to_user();
	qhca_s2_close(&vf);
	qhca_s2_faults_exit(&vf);
}

/* ---- the command register, which its user and the driver write */

static ssize_t write_command(u16 value)
{
	const char bytes[2] = { (char)(value & 0xff), (char)(value >> 8) };
	loff_t pos = PCI_COMMAND;

	return qhca_vfio_write_config(&vf, bytes, sizeof(bytes), &pos);
}

static void pf_dies(void)
{
	fault(0, PAGE_SIZE, true, false);
	work();
	pf_dead = true;
	qhca_s2_unmap(&vf.core.vdev, 0, PAGE_SIZE);
	assert_true(vf.broken && !pdev.master);
	return_to_user();
}

static void pf_is_back(void)
{
	pf_dead = false;
	root = 0;
	qhca_s2_restart(&vf);
	assert_false(vf.broken);
}

/* What the user writes while the driver does is in force when both are done. */
static void test_command(void **state)
{
	const char header[8] = { 0 };
	loff_t pos = PCI_STATUS;

	(void)state;
	start();
	new_memory(true);
	assert_int_equal(qhca_s2_open(&vf), 0);
	assert_int_equal(write_command(PCI_COMMAND_MASTER), 2);
	assert_true(pdev.master);

	/* Bus mastering is switched on as the function breaks, and waits for its end. */
	assert_int_equal(write_command(0), 2);
	meanwhile = pf_dies;
	assert_int_equal(write_command(PCI_COMMAND_MASTER), 2);
	assert_true(vf.broken && !pdev.master);
	assert_int_equal(write_command(PCI_COMMAND_MASTER), -EIO);
	pf_is_back();
	assert_true(pdev.master);

	/* It is switched off as the driver switches it on again. */
	meanwhile = pf_is_back;
	assert_int_equal(write_command(0), 2);
	assert_false(pdev.master);
	pf_is_back();
	assert_false(pdev.master);

	/* One write is beside the register, and one is longer. */
	assert_int_equal(write_command(PCI_COMMAND_MASTER), 2);
	assert_int_equal(qhca_vfio_write_config(&vf, header, 2, &pos), 2);
	assert_true(pdev.master);
	pos = 0;
	assert_int_equal(qhca_vfio_write_config(&vf, header, sizeof(header), &pos),
			 sizeof(header));
	assert_false(pdev.master);
	pf_is_back();
	assert_false(pdev.master);
	qhca_s2_close(&vf);
	qhca_s2_faults_exit(&vf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lives),
		cmocka_unit_test(test_large),
		cmocka_unit_test(test_reset),
		cmocka_unit_test(test_taken_away),
		cmocka_unit_test(test_leave),
		cmocka_unit_test(test_flood),
		cmocka_unit_test(test_broken),
		cmocka_unit_test(test_command),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
