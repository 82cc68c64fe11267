// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * drivers/vfio/pci/qhca: what a function can reach, against a model of the virtual
 * machine's memory.
 */
#include "vfio_model.h"

#define LIVES		4
#define ROUNDS		600

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
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
