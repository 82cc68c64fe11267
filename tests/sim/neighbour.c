/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * For `make study` (tests/study): a victim function and its neighbour, which share each
 * cache of an adapter in turn.
 *
 * Two virtual functions send messages of 8 bytes to themselves, over the adapter's
 * switch, one message at a time: the victim to a few objects again and again, and the
 * neighbour, more often, to more objects than the cache has lines, in random order.
 * The cache that is studied is small and the others hold everything.  Each object is a
 * key, a page, a pair of QPs, a CQ or an SRQ; the device uses its line for the message.
 *
 * The order of all messages is that of one seed, so the counts of both functions must
 * be those of the plain model, which makes the same look-ups.  The time of a message is
 * the simulator's, in which reads of tables cost what the study charges for them.
 *
 * Prints TAP, and each measurement as JSON in a comment.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "hca.h"
#include "plain.h"
#include "world.h"

#define PF_MEM		(2u << 20)
#define VF_MEM		(16u << 20)
#define PD		3u
#define IOVA		0x10000000ull
#define ACCESS		(QHCA_ACCESS_LOCAL_WRITE | QHCA_ACCESS_REMOTE_WRITE)
#define SETS		16u
#define BLOCKS		4u
#define VICTIM		32u		/* its objects: half of the lines */
#define NEIGHBOUR	256u
#define MASK_VICTIM	0x7u
#define MASK_NEIGHBOUR	0x8u
#define SHARE		16u		/* one access in so many is the victim's */
#define MESSAGES	1000u		/* of the victim */
#define COST_NS		20000u
#define LIMIT_NS	1000000000ull

enum situation { ALONE, BESIDE, MASKED, SITUATIONS };

static const char *const situation_names[SITUATIONS] = {
	[ALONE] = "alone", [BESIDE] = "beside", [MASKED] = "masked",
};

/* The caches that are studied.  That of stage 2 has no model: see study.rst. */
static const struct {
	const char *name;
	enum qhca_counter misses, evictions, conflicts;
} caches[QHCA_NUM_CACHES] = {
	[QHCA_CACHE_PT] = { "pt", QHCA_CNT_pt_misses, QHCA_CNT_pt_evictions,
			    QHCA_CNT_pt_conflicts },
	[QHCA_CACHE_AT] = { "at", QHCA_CNT_at_misses, QHCA_CNT_at_evictions,
			    QHCA_CNT_at_conflicts },
	[QHCA_CACHE_QD] = { "qp", QHCA_CNT_qpc_misses, QHCA_CNT_qpc_evictions,
			    QHCA_CNT_qpc_conflicts },
	[QHCA_CACHE_CQ] = { "cq", QHCA_CNT_cqc_misses, QHCA_CNT_cqc_evictions,
			    QHCA_CNT_cqc_conflicts },
	[QHCA_CACHE_SRQ] = { "srq", QHCA_CNT_srqc_misses, QHCA_CNT_srqc_evictions,
			     QHCA_CNT_srqc_conflicts },
};

struct function {
	struct md *md;
	uint32_t objects;
	uint64_t mask;			/* of blocks; 0: all */
	uint64_t before[3];		/* misses, evictions, conflicts */
	struct plain_counts model;
	struct md_mr mr[NEIGHBOUR];
	struct md_cq cq[NEIGHBOUR];
	struct md_srq srq[NEIGHBOUR];
	struct md_qp from[NEIGHBOUR], to[NEIGHBOUR];
};

struct study {
	struct world w;
	enum qhca_cache_id cache;
	enum situation situation;
	struct function fn[2];		/* the victim, its neighbour */
	struct plain *model;
	uint64_t ns;			/* of the victim's messages */
};

/* ---- objects */

static void make_pair(struct study *s, struct function *f, uint32_t i)
{
	bool srq = s->cache == QHCA_CACHE_SRQ;
	struct md_qp_init init = {
		.type = QHCA_QPT_RC, .pd = PD, .sq_log_depth = 2,
		.sq_log_stride = 7, .rq_log_depth = 2, .rq_log_stride = 6,
		.send_cq = &f->cq[s->cache == QHCA_CACHE_CQ ? i : 0],
		.recv_cq = &f->cq[srq ? 1 : 0],
		.srq = srq ? &f->srq[i] : NULL,
	};
	struct md_conn conn = {
		.mtu = QHCA_MTU_1024, .access = ACCESS, .timeout = 18,
		.retry_cnt = 1, .rnr_retry = 1, .max_rd_atomic = 1,
		.max_dest_rd_atomic = 1,
	};

	if (s->cache == QHCA_CACHE_CQ && i)
		md_cq_create(f->md, &f->cq[i], 4);
	if (srq)
		md_srq_create(f->md, &f->srq[i], PD, 2, 6, 0);
	if (md_qp_create(f->md, &f->from[i], &init) ||
	    md_qp_create(f->md, &f->to[i], &init))
		host_die("CREATE_QP");
	md_av(f->md, &conn.av, f->md->mac[5], false);
	conn.dest_qpn = f->to[i].qpn;
	md_qp_connect(f->md, &f->from[i], &conn);
	conn.dest_qpn = f->from[i].qpn;
	md_qp_connect(f->md, &f->to[i], &conn);
}

/* A pair is two lines of the cache of QPs. */
static uint32_t num_pairs(const struct study *s, const struct function *f)
{
	switch (s->cache) {
	case QHCA_CACHE_QD:
		return f->objects / 2;
	case QHCA_CACHE_CQ:
	case QHCA_CACHE_SRQ:
		return f->objects;
	default:
		return 1;
	}
}

static void make_objects(struct study *s, struct function *f)
{
	uint32_t keys = s->cache == QHCA_CACHE_PT ? f->objects : 1, i;
	uint64_t pages = s->cache == QHCA_CACHE_AT ? f->objects : 1;

	md_cq_create(f->md, &f->cq[0], 4);
	if (s->cache == QHCA_CACHE_SRQ)
		md_cq_create(f->md, &f->cq[1], 4);	/* of what is received */
	for (i = 0; i < keys; i++)
		md_reg_mr(f->md, &f->mr[i], PD, IOVA, pages * MD_PAGE, ACCESS);
	for (i = 0; i < num_pairs(s, f); i++)
		make_pair(s, f, i);
}

static void begin(struct study *s)
{
	struct md_init init = { .scatter = true, .log_qp = 10, .log_cq = 10,
				.log_srq = 9 };
	const struct qhca_fetch_cost cost = { COST_NS, COST_NS, COST_NS };
	struct qhca_config cfg;
	char err[160];

	qhca_config_default(&cfg);
	cfg.log_max_qp = cfg.log_max_cq = cfg.log_max_srq = cfg.log_max_pt = 10;
	cfg.num_db_pages = 16;
	world_init(&s->w, 1 + s->cache, 1, PF_MEM, &cfg);
	for (int i = 0; i < 2; i++) {
		struct function *f = &s->fn[i];

		f->objects = i ? NEIGHBOUR : VICTIM;
		if (s->situation == MASKED)
			f->mask = i ? MASK_NEIGHBOUR : MASK_VICTIM;
		cfg.vf_blocks = (uint16_t)f->mask;
		f->md = md_create_vf(s->w.host[0], (uint16_t)(1 + i), VF_MEM,
				     &cfg);
	}
	for (int c = 0; c < QHCA_NUM_CACHES; c++)
		init.cache[c] = cfg.cache_max[c];
	init.cache[s->cache] = (struct qhca_geometry){ SETS, BLOCKS };
	md_start(s->w.host[0], &init);
	memset(init.cache, 0, sizeof(init.cache));	/* as it is */
	for (int i = 0; i < 2; i++) {
		md_start(s->fn[i].md, &init);
		make_objects(s, &s->fn[i]);
	}
	if (!qhca_fetch_cost_set(s->w.host[0]->host.hca, &cost, err, sizeof(err)))
		host_die("%s", err);
	s->model = plain_new(SETS, BLOCKS);
}

static void end(struct study *s)
{
	plain_free(s->model);
	for (int i = 0; i < 2; i++)
		md_destroy_vf(s->fn[i].md);
	world_fini(&s->w);
}

/* ---- the model */

static void expect(struct study *s, uint16_t who, uint32_t index, uint32_t page)
{
	struct plain_name name = { .guest = 1u + who, .index = index,
				   .page = page };
	struct plain_counts *mine = &s->fn[who].model;
	struct plain_counts before = *plain_counts(s->model);
	const struct plain_counts *after = plain_counts(s->model);

	if (!plain_lookup(s->model, name))
		plain_fill_in(s->model, name, s->fn[who].mask);
	mine->misses += after->misses - before.misses;
	mine->evictions += after->evictions - before.evictions;
	mine->conflicts += after->conflicts - before.conflicts;
}

/* The lines that the device uses for a message to object @i, in this order. */
static void expect_message(struct study *s, uint16_t who, uint32_t i)
{
	const struct function *f = &s->fn[who];

	switch (s->cache) {
	case QHCA_CACHE_PT:
		expect(s, who, f->mr[i].key >> 8, 0);
		break;
	case QHCA_CACHE_AT:
		expect(s, who, f->mr[0].key >> 8, i);
		break;
	case QHCA_CACHE_QD:
		expect(s, who, f->from[i].qpn, 0);
		expect(s, who, f->to[i].qpn, 0);
		expect(s, who, f->from[i].qpn, 0);	/* the acknowledgement */
		break;
	case QHCA_CACHE_CQ:
		expect(s, who, f->cq[i].cqn, 0);
		break;
	default:
		expect(s, who, f->srq[i].srqn, 0);
		break;
	}
}

/* ---- messages */

static void take_receive(struct function *f, uint32_t i)
{
	struct qhca_cqe cqe;

	if (!md_poll(&f->cq[1], &cqe) || cqe.status)
		host_die("a message is not received");
	md_srq_free(f->md, &f->srq[i], get_le32(&cqe.wqe));
}

static void post(struct study *s, struct function *f, uint32_t i)
{
	bool pairs = num_pairs(s, f) > 1, key = s->cache == QHCA_CACHE_PT;
	struct md_qp *qp = &f->from[pairs ? i : 0];
	const struct md_mr *mr = &f->mr[key ? i : 0];
	struct md_sge sge = { f->mr[0].iova, 8, f->mr[0].key };
	uint64_t data = i;
	struct md_wr wr = {
		.opcode = s->cache == QHCA_CACHE_SRQ ? QHCA_WQE_SEND : QHCA_WQE_WRITE,
		.flags = QHCA_WQE_F_SIGNALED | QHCA_WQE_F_INLINE,
		.wr_id = qp->sq_pi, .inline_data = &data,
		.inline_len = sizeof(data), .rkey = mr->key,
		.raddr = mr->iova + (s->cache == QHCA_CACHE_AT ? i : 0) * MD_PAGE,
	};

	if (s->cache == QHCA_CACHE_SRQ)
		md_srq_post(f->md, &f->srq[i], 0, &sge, 1);
	md_post_send(f->md, qp, &wr);
	md_ring(f->md, qp);
}

/* One message, to its completion; all that it has cost is paid then. */
static uint64_t message(struct study *s, uint16_t who, uint32_t i)
{
	struct function *f = &s->fn[who];
	struct md_cq *cq = &f->cq[s->cache == QHCA_CACHE_CQ ? i : 0];
	const struct hca *hca = &f->md->host.hca->hca;
	bool srq = s->cache == QHCA_CACHE_SRQ, done = false;
	uint64_t start = s->w.now;
	struct qhca_cqe cqe;

	expect_message(s, who, i);
	f->md->host.now = s->w.now;
	post(s, f, i);
	while (!done || hca_stalled(hca)) {
		if (s->w.now - start > LIMIT_NS)
			host_die("a message does not complete");
		world_wait(&s->w, s->w.now + 100);
		done = done || md_poll(cq, &cqe);
	}
	if (cqe.status)
		host_die("a message completes with status %u", cqe.status);
	if (srq)
		take_receive(f, i);
	f->from[num_pairs(s, f) > 1 ? i : 0].sq_ci++;
	return s->w.now - start;
}

/* ---- results */

static uint64_t counted(const struct study *s, uint16_t who,
			enum qhca_counter id)
{
	return qhca_counter(s->w.host[0]->host.hca, (uint16_t)(1 + who), id);
}

static void read_counts(const struct study *s, uint16_t who, uint64_t to[3])
{
	to[0] = counted(s, who, caches[s->cache].misses);
	to[1] = counted(s, who, caches[s->cache].evictions);
	to[2] = counted(s, who, caches[s->cache].conflicts);
}

/* From now on; and the model has in it what the cache has. */
static void mark(struct study *s)
{
	for (uint16_t who = 0; who < 2; who++) {
		read_counts(s, who, s->fn[who].before);
		memset(&s->fn[who].model, 0, sizeof(s->fn[who].model));
	}
}

static bool equal(const struct study *s, uint16_t who)
{
	const struct plain_counts *m = &s->fn[who].model;
	const uint64_t want[3] = { m->misses, m->evictions, m->conflicts };
	const uint64_t *before = s->fn[who].before;
	uint64_t now[3];
	bool same = true;

	read_counts(s, who, now);
	for (int i = 0; i < 3; i++)
		same &= now[i] - before[i] == want[i];
	if (!same)
		printf("# function %u: %llu misses, %llu evictions, %llu conflicts; the model has %llu, %llu, %llu\n",
		       1u + who, (unsigned long long)(now[0] - before[0]),
		       (unsigned long long)(now[1] - before[1]),
		       (unsigned long long)(now[2] - before[2]),
		       (unsigned long long)want[0], (unsigned long long)want[1],
		       (unsigned long long)want[2]);
	return same;
}

static void run(struct study *s)
{
	uint32_t pairs = s->cache == QHCA_CACHE_QD ? 2 : 1;

	/* Each function sends every message once, the neighbour first. */
	for (int who = 1; who >= 0; who--)
		for (uint32_t i = 0; i < s->fn[who].objects / pairs; i++)
			message(s, (uint16_t)who, i);
	mark(s);
	for (uint32_t n = 0; n < MESSAGES; n++) {
		for (uint32_t i = 1; s->situation != ALONE && i < SHARE; i++)
			message(s, 1, world_pick(&s->w, NEIGHBOUR / pairs));
		s->ns += message(s, 0, world_pick(&s->w, VICTIM / pairs));
	}
}

static bool measure(enum qhca_cache_id cache, enum situation situation,
		    unsigned int number)
{
	struct study *s = calloc(1, sizeof(*s));
	uint64_t now[3];
	bool ok;

	s->cache = cache;
	s->situation = situation;
	begin(s);
	run(s);
	ok = equal(s, 0) & equal(s, 1);
	read_counts(s, 0, now);
	printf("# {\"sweep\": \"neighbour\", \"cache\": \"%s\", \"situation\": \"%s\", \"sets\": %u, \"blocks\": %u, \"accesses\": %u, \"lines\": %u, \"misses\": %llu, \"evictions\": %llu, \"conflicts\": %llu, \"simulated_ns\": %llu}\n",
	       caches[cache].name, situation_names[situation], SETS, BLOCKS,
	       MESSAGES, cache == QHCA_CACHE_QD ? 2 : 1,
	       (unsigned long long)(now[0] - s->fn[0].before[0]),
	       (unsigned long long)(now[1] - s->fn[0].before[1]),
	       (unsigned long long)(now[2] - s->fn[0].before[2]),
	       (unsigned long long)s->ns);
	printf("%s %u - %s, %s: the counts are the model's\n", ok ? "ok" : "not ok",
	       number, caches[cache].name, situation_names[situation]);
	fflush(stdout);
	end(s);
	free(s);
	return ok;
}

int main(void)
{
	unsigned int number = 0;
	bool ok = true;

	for (int c = 0; c < QHCA_NUM_CACHES; c++)
		for (int i = 0; i < SITUATIONS; i++)
			ok &= measure((enum qhca_cache_id)c, (enum situation)i,
				      ++number);
	printf("1..%u\n", number);
	return !ok;
}
