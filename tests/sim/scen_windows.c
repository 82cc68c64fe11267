/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Memory windows: what a bound one gives, and which binds are refused.
 */
#include "keys.h"

static void bound_window_works(struct pair *p)
{
	static const uint8_t types[] = { QHCA_PTE_MW1, QHCA_PTE_MW2B };

	open_windows(p);
	for (unsigned int i = 0; i < 2; i++) {
		uint32_t mw = new_window(&p->b, types[i]);

		post_bind(&p->b, mw, mw ^ 1, TARGET_LEN, RIGHTS);
		settle(p);
		EXPECT(&p->b.scq, i, QHCA_WC_SUCCESS);
		fill_source(&p->a, 0x70 + i);
		post_remote(&p->a, QHCA_WQE_WRITE, mw ^ 1, TARGET_LEN);
		post_remote(&p->a, QHCA_WQE_READ, mw ^ 1, TARGET_LEN);
		settle(p);
		EXPECT(&p->a.scq, 2 * i, QHCA_WC_SUCCESS, QHCA_WC_SUCCESS);
		CHECK(target_is(&p->b, 0x70 + i));
	}
}

/* A window may be flushed if its own rights say so, the whole of it or a part. */
static void window_is_flushed(struct pair *p)
{
	static const uint8_t types[] = { QHCA_PTE_MW1, QHCA_PTE_MW2B };
	struct md_wr flush = { .opcode = QHCA_WQE_FLUSH,
			       .flags = QHCA_WQE_F_SIGNALED,
			       .flush_type = QHCA_FLUSH_GLOBAL };

	open_windows(p);
	for (unsigned int i = 0; i < 2; i++) {
		uint32_t mw = new_window(&p->b, types[i]);
		uint32_t bare = new_window(&p->b, types[i]);

		reconnect_pair(p, 20 + i);
		post_bind(&p->b, mw, mw ^ 1, TARGET_LEN, QHCA_ACCESS_FLUSH_GLOBAL);
		post_bind(&p->b, bare, bare ^ 1, TARGET_LEN, RIGHTS);
		settle(p);
		EXPECT(&p->b.scq, 0, QHCA_WC_SUCCESS, QHCA_WC_SUCCESS);
		flush.rkey = mw ^ 1;
		flush.flush_level = QHCA_FLUSH_REGION;
		post_wr(&p->a, &flush);
		flush.flush_level = QHCA_FLUSH_RANGE;
		flush.raddr = p->b.mr.iova + TARGET;
		flush.flush_len = TARGET_LEN;
		post_wr(&p->a, &flush);
		settle(p);
		EXPECT(&p->a.scq, 0, QHCA_WC_SUCCESS, QHCA_WC_SUCCESS);
		flush.rkey = bare ^ 1;
		post_wr(&p->a, &flush);
		settle(p);
		EXPECT(&p->a.scq, 2, QHCA_WC_REM_ACCESS_ERR);
	}
}

static void unbound_window_is_dead(struct pair *p)
{
	open_windows(p);
	CHECK_DEAD(p, &p->a, new_window(&p->b, QHCA_PTE_MW1));
	reconnect_pair(p, 5);
	CHECK_DEAD(p, &p->a, new_window(&p->b, QHCA_PTE_MW2B));
}

static void old_window_key_is_dead(struct pair *p)
{
	uint32_t mw = new_window(&p->b, QHCA_PTE_MW1);

	open_windows(p);
	post_bind(&p->b, mw, mw ^ 1, TARGET_LEN, RIGHTS);
	post_bind(&p->b, mw ^ 1, mw ^ 2, TARGET_LEN, RIGHTS);
	settle(p);
	EXPECT(&p->b.scq, 0, QHCA_WC_SUCCESS, QHCA_WC_SUCCESS);
	post_remote(&p->a, QHCA_WQE_WRITE, mw ^ 2, 8);
	settle(p);
	EXPECT(&p->a.scq, 0, QHCA_WC_SUCCESS);
	CHECK_DEAD(p, &p->a, mw ^ 1);
	reconnect_pair(p, 9);
	post_bind(&p->b, mw ^ 2, mw ^ 3, 0, 0);
	settle(p);
	EXPECT(&p->b.scq, 0, QHCA_WC_SUCCESS);
	CHECK_DEAD(p, &p->a, mw ^ 2);
	reconnect_pair(p, 10);
	CHECK_DEAD(p, &p->a, mw ^ 3);
}

static void window_gives_only_its_rights(struct pair *p)
{
	uint32_t mw = new_window(&p->b, QHCA_PTE_MW2B);

	open_windows(p);
	post_bind(&p->b, mw, mw ^ 1, TARGET_LEN / 2, QHCA_ACCESS_REMOTE_READ);
	settle(p);
	EXPECT(&p->b.scq, 0, QHCA_WC_SUCCESS);
	CHECK_DEAD(p, &p->a, mw ^ 1);
	reconnect_pair(p, 3);
	check_dead(__LINE__, p, &p->a, mw ^ 1, QHCA_WQE_FETCH_ADD);
}

static void window_ends_where_it_ends(struct pair *p)
{
	uint32_t mw = new_window(&p->b, QHCA_PTE_MW1);

	open_windows(p);
	post_bind(&p->b, mw, mw ^ 1, TARGET_LEN - 1, RIGHTS);
	settle(p);
	EXPECT(&p->b.scq, 0, QHCA_WC_SUCCESS);
	fill_target(&p->b, 0x5a);
	post_remote(&p->a, QHCA_WQE_WRITE, mw ^ 1, TARGET_LEN);
	settle(p);
	EXPECT(&p->a.scq, 0, QHCA_WC_REM_ACCESS_ERR);
	CHECK(target_is(&p->b, 0x5a));
}

static void window_of_other_qp(struct pair *p)
{
	static const struct pair_options o = { .type = QHCA_QPT_RC };
	uint32_t one = new_window(&p->b, QHCA_PTE_MW1);
	uint32_t two = new_window(&p->b, QHCA_PTE_MW2B);
	struct end a2, b2;

	open_windows(p);
	open_second(p, &a2, &b2, &o);
	post_bind(&p->b, one, one ^ 1, TARGET_LEN, RIGHTS);
	post_bind(&p->b, two, two ^ 1, TARGET_LEN, RIGHTS);
	settle(p);
	EXPECT(&p->b.scq, 0, QHCA_WC_SUCCESS, QHCA_WC_SUCCESS);
	/* Any QP of the PD may use a window of type 1, one QP that of type 2B. */
	post_remote(&a2, QHCA_WQE_WRITE, one ^ 1, 8);
	settle(p);
	EXPECT(&a2.scq, 0, QHCA_WC_SUCCESS);
	post_inv(&b2, QHCA_WQE_LOCAL_INV, two ^ 1);
	settle(p);
	EXPECT(&b2.scq, 0, QHCA_WC_MW_BIND_ERR);
	post_remote(&p->a, QHCA_WQE_WRITE, two ^ 1, 8);
	settle(p);
	EXPECT(&p->a.scq, 0, QHCA_WC_SUCCESS);
	close_second(&a2, &b2);
	open_second(p, &a2, &b2, &o);
	CHECK_DEAD(p, &a2, two ^ 1);
	close_second(&a2, &b2);
}

/* A bind that must be refused ends b's QP with MW_BIND_ERR. */
static void bind_refused(int line, struct pair *p, uint32_t mw,
			 uint32_t new_key, uint64_t len, uint32_t access)
{
	struct qhca_cqe cqe = { 0 };

	reconnect_pair(p, line);
	post_bind(&p->b, mw, new_key, len, access);
	settle(p);
	if (!md_poll(&p->b.scq, &cqe) || cqe.status != QHCA_WC_MW_BIND_ERR)
		check_failed(line, "status %u of a bad bind", cqe.status);
	CHECK_EQ(state_of(&p->b), QHCA_QPS_ERR);
}

static void bad_binds(struct pair *p)
{
	uint32_t mw = new_window(&p->b, QHCA_PTE_MW2B);
	uint32_t one = new_window(&p->b, QHCA_PTE_MW1);

	connect_pair(p);
	/* The region does not permit binding yet. */
	bind_refused(__LINE__, p, mw, mw ^ 1, 8, RIGHTS);
	allow_bind(&p->b);
	CHECK_EQ(md_cmd(p->b.md, QHCA_CMD_INVALIDATE_KEY, p->b.mr.key >> 8,
			QHCA_INVAL_PT, NULL, 0, NULL, 0, NULL), 0);
	bind_refused(__LINE__, p, mw, mw ^ 0x100, 8, RIGHTS);
	bind_refused(__LINE__, p, one ^ 1, one ^ 2, 8, RIGHTS);
	bind_refused(__LINE__, p, mw, mw ^ 1, 0, RIGHTS);
	bind_refused(__LINE__, p, mw, mw ^ 1, PAIR_LEN, RIGHTS);
	bind_refused(__LINE__, p, mw, mw ^ 1, 8, QHCA_ACCESS_LOCAL_WRITE);
	bind_refused(__LINE__, p, one, one ^ 1, 8,
		     RIGHTS | QHCA_ACCESS_ZERO_BASED);
	bind_refused(__LINE__, p, p->b.mr.key, p->b.mr.key, 8, RIGHTS);
	reconnect_pair(p, 1);
	CHECK_DEAD(p, &p->a, mw ^ 1);
}

const struct scenario window_scenarios[] = {
	KERNEL(bound_window_works), KERNEL(window_is_flushed),
	KERNEL(unbound_window_is_dead),
	KERNEL(old_window_key_is_dead),
	KERNEL(window_gives_only_its_rights),
	KERNEL(window_ends_where_it_ends),
	KERNEL(window_of_other_qp),
	KERNEL(bad_binds),
	/* The caches have stale lines that nothing but invalidation removes. */
	ROOMY(old_window_key_is_dead),
	{ 0 }
};
