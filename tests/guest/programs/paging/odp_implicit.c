// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The implicit region: all of memory by one key. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "odp.h"

/* Memory that is mapped after the region was made is part of it. */
static void implicit_new_memory(struct ibv_mr *mr, struct area *a, struct area *all)
{
	struct ibv_sge sge;

	*all = (struct area){ mmap(NULL, LEN, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), mr };
	do_op(IBV_WR_RDMA_WRITE, a, 0, all, 0, LEN);
	CHECK(is_filled(all->mem + 4096, LEN - 4096, 51 + 13));

	for (int how = 0; how < 3; how++)
		for (int flush = 0; flush < 2; flush++) {
			put_away(all);
			sge = (struct ibv_sge){ (uintptr_t)all->mem, LEN,
						mr->lkey };
			CHECK(!ibv_advise_mr(t.pd, how, flush ?
					     IBV_ADVISE_MR_FLAG_FLUSH : 0,
					     &sge, 1));
		}
	do_op(IBV_WR_RDMA_WRITE, a, 0, all, 0, LEN);
	CHECK(is_filled(all->mem + 4096, LEN - 4096, 51 + 13));
}

/* A window on part of the region */
static void implicit_window(struct ibv_mr *mr, struct area *a, struct area *all)
{
	struct ibv_mw_bind bind = { .send_flags = IBV_SEND_SIGNALED };
	struct ibv_mw *mw = ibv_alloc_mw(t.pd, IBV_MW_TYPE_1);
	struct area out;

	CHECK(mw);
	bind.bind_info = (struct ibv_mw_bind_info){
		.mr = mr, .addr = (uintptr_t)all->mem + 100, .length = LEN / 2,
		.mw_access_flags = IBV_ACCESS_REMOTE_WRITE,
	};
	put_away(all);
	CHECK(mw && !ibv_bind_mw(t.qp[1], mw, &bind));
	CHECK(completion() == IBV_WC_SUCCESS);
	if (mw) {
		struct ibv_mr window = { .rkey = mw->rkey };

		out = (struct area){ all->mem, &window };
		do_op(IBV_WR_RDMA_WRITE, a, 4096, &out, 100, LEN / 2);
		CHECK(is_filled(all->mem + 100, 3000, 51 + 13));
		post(IBV_WR_RDMA_WRITE, a, 0, &out, 99, 2);
		CHECK(completion() == IBV_WC_REM_ACCESS_ERR);
		CHECK(!ibv_dealloc_mw(mw));
	}
}

/* Addresses where nothing is mapped any more, or nothing can be */
static void implicit_absent(struct ibv_mr *mr, struct area *a, struct area *all)
{
	struct ibv_sge sge;
	struct area out;

	drop_qps();
	make_qps();
	munmap(all->mem, LEN);
	post(IBV_WR_RDMA_WRITE, a, 0, all, 0, 100);
	CHECK(completion() == IBV_WC_REM_ACCESS_ERR);
	sge = (struct ibv_sge){ (uintptr_t)all->mem, LEN, mr->lkey };
	CHECK(ibv_advise_mr(t.pd, 0, IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1));
	for (int bit = 46; bit < 64; bit++) {
		drop_qps();
		make_qps();
		out = (struct area){ (uint8_t *)(1ull << bit), mr };
		post(IBV_WR_RDMA_WRITE, a, 0, &out, 0, 100);
		CHECK(completion() == IBV_WC_REM_ACCESS_ERR);
	}
	drop_qps();
}

/* The region is deregistered while faults are served, and pages are taken away. */
static void implicit_dereg_in_fault(void)
{
	struct area a, b, all;

	for (int i = 0; i < 20 && !tap_check_has_failed(); i++) {
		struct ibv_mr *end;

		a = make_area(ACCESS);
		b = make_area(ACCESS);
		end = ibv_reg_mr(t.pd, NULL, SIZE_MAX, ACCESS);
		CHECK(end);
		all = (struct area){ b.mem, end };
		make_qps();
		for (int k = 0; k < 8; k++)
			post(IBV_WR_RDMA_WRITE, &a, 0, &all, 0, LEN);
		if (i & 1)
			usleep(100 * i);
		put_away(&b);
		if (i % 3 == 0)
			munmap(b.mem, LEN);
		CHECK(!end || !ibv_dereg_mr(end));
		drop_qps();
		drop_area(&a);
		CHECK(!ibv_dereg_mr(b.mr));
		if (i % 3)
			munmap(b.mem, LEN);
	}
}

/* All of memory by one key. */
void test_implicit(void)
{
	struct area a = make_area(ACCESS), b = make_area(ACCESS), all;
	struct ibv_mr *mr = ibv_reg_mr(t.pd, NULL, SIZE_MAX,
				       ACCESS | IBV_ACCESS_MW_BIND);
	struct ibv_device_attr_ex attr = { 0 };

	CHECK(!ibv_query_device_ex(t.ctx, NULL, &attr));
	CHECK(attr.odp_caps.general_caps & IBV_ODP_SUPPORT_IMPLICIT);
	if (!mr)
		die("ibv_reg_mr of all memory: %s", strerror(errno));
	CHECK(!ibv_reg_mr(t.pd, a.mem, SIZE_MAX, ACCESS));
	CHECK(!ibv_reg_mr(t.pd, NULL, SIZE_MAX, ACCESS & ~IBV_ACCESS_ON_DEMAND));
	CHECK(!ibv_dereg_mr(a.mr));
	CHECK(!ibv_dereg_mr(b.mr));
	a.mr = b.mr = mr;

	make_qps();
	fill(a.mem, LEN, 51);
	do_op(IBV_WR_RDMA_WRITE, &a, 0, &b, 0, LEN);
	CHECK(is_filled(b.mem, LEN, 51));
	put_away(&a);
	do_op(IBV_WR_RDMA_READ, &a, 0, &b, 0, LEN);
	CHECK(is_filled(a.mem, LEN, 51));
	put_away(&b);
	do_op(IBV_WR_ATOMIC_FETCH_AND_ADD, &a, 8, &b, 8192, 8);
	CHECK(*(uint64_t *)(b.mem + 8192) == 5);

	implicit_new_memory(mr, &a, &all);
	implicit_window(mr, &a, &all);
	implicit_absent(mr, &a, &all);
	CHECK(!ibv_dereg_mr(mr));
	munmap(a.mem, LEN);
	munmap(b.mem, LEN);
	implicit_dereg_in_fault();
}
