/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What functions of one adapter leave each other: time, the rates that the host domain
 * has set, and lines of the caches.
 *
 * Functions of the first host send to the wire, to themselves or to the second host,
 * and the scenarios compare counters.  Where nobody needs frames on the wire, they get lost.
 */
#include "hca.h"
#include "pair.h"
#include "plain.h"

#define FNS		4u		/* virtual functions at most */
#define QPS		64u
#define OUTSTANDING	8u		/* requests of a QP */
#define VF_MEM		(8u << 20)
#define BYTES		32768u		/* of a request */
#define MS		1000000ull

enum whom { NOBODY, ITSELF, OTHER };	/* RC QPs send to itself and to the other host */

struct sender {				/* a function */
	struct md *md;
	struct md_cq cq;
	struct md_mr mr;
	uint32_t num_qps;
	uint8_t opcode;
	enum whom to;
	struct end *other;		/* whose regions have equal addresses */
	struct md_qp qp[QPS], target[QPS];
};

struct adapter {
	struct pair *p;
	struct sender fn[1 + FNS];	/* by GVMI */
	unsigned int num;
};

static void set_vf(struct adapter *a, uint16_t gvmi,
		   const struct qhca_vf_config *config)
{
	CHECK_EQ(md_cmd(a->p->a.md, QHCA_CMD_SET_VF, gvmi, 0, config,
			sizeof(*config), NULL, 0, NULL), 0);
}

static void set_rates(struct adapter *a, uint16_t gvmi, uint32_t max,
		      uint32_t min)
{
	struct qhca_vf_config config = { 0 };

	put_le32(&config.fields, QHCA_VF_SET_RATE);
	put_le32(&config.max_rate, max);
	put_le32(&config.min_rate, min);
	set_vf(a, gvmi, &config);
}

static uint64_t count_fn(const struct adapter *a, uint16_t gvmi,
			 enum qhca_counter id)
{
	return qhca_counter(a->p->a.md->host.hca, gvmi, id);
}

/* The physical function, and @vfs virtual ones. */
static void open_adapter(struct adapter *a, struct pair *p, unsigned int vfs)
{
	const struct md_init init = { .scatter = true };
	struct qhca_config cfg;

	memset(a, 0, sizeof(*a));
	a->p = p;
	a->num = 1 + vfs;
	a->fn[0].md = p->a.md;
	qhca_config_default(&cfg);
	cfg.log_max_qp = cfg.log_max_cq = 8;
	cfg.log_max_pt = 10;
	for (uint16_t gvmi = 1; gvmi <= vfs; gvmi++) {
		a->fn[gvmi].md = md_create_vf(p->a.md, gvmi, VF_MEM, &cfg);
		md_start(a->fn[gvmi].md, &init);
	}
	for (unsigned int i = 0; i < a->num; i++) {
		struct sender *s = &a->fn[i];

		s->other = &p->b;
		md_cq_create(s->md, &s->cq, 10);
		md_reg_mr(s->md, &s->mr, PAIR_PD, PAIR_IOVA, PAIR_LEN,
			  ALL_ACCESS);
	}
}

static void close_adapter(struct adapter *a)
{
	for (unsigned int i = 1; i < a->num; i++)
		md_destroy_vf(a->fn[i].md);
}

static void make_qp(struct md *md, struct md_cq *cq, uint8_t type,
		    struct md_qp *qp)
{
	struct md_qp_init qi = {
		.type = type, .pd = PAIR_PD, .sq_log_depth = 4,
		.sq_log_stride = 7, .rq_log_depth = 2, .rq_log_stride = 7,
		.send_cq = cq, .recv_cq = cq,
	};

	CHECK_EQ(md_qp_create(md, qp, &qi), 0);
}

static void connect(struct sender *s, struct md *md, struct md_qp *qp,
		    uint32_t dest, uint8_t number)
{
	struct md_conn conn = {
		.dest_qpn = dest,
		.mtu = s->to == OTHER ? QHCA_MTU_1024 : QHCA_MTU_4096,
		.access = ALL_ACCESS,
		/* At low rates a request takes longer than this timeout. */
		.timeout = s->opcode == QHCA_WQE_READ ? 18 : 8,
		.retry_cnt = 1, .max_rd_atomic = 8,
		.max_dest_rd_atomic = 8,
	};

	md_av(md, &conn.av, number, false);
	md_qp_connect(md, qp, &conn);
}

static void post_one(struct sender *s, uint32_t i)
{
	struct md_sge sge = { s->mr.iova, BYTES, s->mr.key };
	struct md_wr wr = {
		.opcode = s->opcode, .flags = QHCA_WQE_F_SIGNALED, .wr_id = i,
		.num_sge = 1, .sge = &sge, .raddr = s->mr.iova + 32768,
		.rkey = s->to == OTHER ? s->other->mr.key : s->mr.key,
	};

	md_post_send(s->md, &s->qp[i], &wr);
	md_ring(s->md, &s->qp[i]);
}

static void make_ends(struct sender *s, uint32_t i)
{
	struct md *far = s->to == OTHER ? s->other->md : s->md;

	make_qp(s->md, &s->cq, QHCA_QPT_RC, &s->qp[i]);
	make_qp(far, s->to == OTHER ? &s->other->rcq : &s->cq, QHCA_QPT_RC,
		&s->target[i]);
	connect(s, far, &s->target[i], s->qp[i].qpn, s->md->mac[5]);
	connect(s, s->md, &s->qp[i], s->target[i].qpn, far->mac[5]);
}

/* The function begins to send by @num QPs. */
static void start(struct sender *s, uint8_t opcode, enum whom to, uint32_t num)
{
	s->opcode = opcode;
	s->to = to;
	s->num_qps = num;
	for (uint32_t i = 0; i < num; i++) {
		if (to == NOBODY) {
			make_qp(s->md, &s->cq, QHCA_QPT_UC, &s->qp[i]);
			connect(s, s->md, &s->qp[i], 99, 2);
		} else {
			make_ends(s, i);
		}
	}
	for (uint32_t n = 0; n < OUTSTANDING; n++)
		for (uint32_t i = 0; i < num; i++)
			post_one(s, i);
}

/* All functions keep their QPs busy for @ns. */
static void keep_busy(struct adapter *a, uint64_t ns)
{
	struct world *w = &a->p->w;
	uint64_t end = w->now + ns;
	struct qhca_cqe cqe;

	while (w->now < end && check_ok()) {
		for (unsigned int i = 0; i < a->num; i++) {
			struct sender *s = &a->fn[i];

			s->md->host.now = w->now;
			while (md_poll(&s->cq, &cqe)) {
				CHECK_EQ(cqe.status, 0);
				s->qp[get_le64(&cqe.wr_id)].sq_ci++;
				post_one(s, (uint32_t)get_le64(&cqe.wr_id));
			}
		}
		world_wait(w, end);
	}
}

/* ---- time */

/* Functions with 1, 64 and 2 busy QPs send equally much. */
static void equal_shares(struct pair *p)
{
	static const uint32_t qps[] = { 1, 64, 2 };
	uint64_t sent[3], all = 0;
	struct adapter a;

	p->w.filter = drop_all;
	open_adapter(&a, p, 2);
	for (uint16_t i = 0; i < a.num; i++)
		start(&a.fn[i], QHCA_WQE_WRITE, NOBODY, qps[i]);
	keep_busy(&a, MS / 4);
	for (uint16_t i = 0; i < a.num; i++)
		sent[i] = count_fn(&a, i, QHCA_CNT_tx_packets);
	keep_busy(&a, 2 * MS);
	for (uint16_t i = 0; i < a.num; i++) {
		sent[i] = count_fn(&a, i, QHCA_CNT_tx_packets) - sent[i];
		all += sent[i];
	}
	note("functions with 1, 64 and 2 QPs send %llu, %llu, %llu packets",
	     (unsigned long long)sent[0], (unsigned long long)sent[1],
	     (unsigned long long)sent[2]);
	CHECK(all > 3000);
	for (int i = 0; i < 3; i++)
		CHECK(sent[i] * 3 > all - all / 20 &&
		      sent[i] * 3 < all + all / 20);
	close_adapter(&a);
}

/* What the functions send in @ns, in thousandths of all that is sent. */
static void share(struct adapter *a, uint64_t ns, uint64_t *sent)
{
	uint64_t all = 0;

	for (uint16_t i = 0; i < a->num; i++)
		sent[i] = count_fn(a, i, QHCA_CNT_tx_bytes);
	keep_busy(a, ns);
	for (uint16_t i = 0; i < a->num; i++) {
		sent[i] = count_fn(a, i, QHCA_CNT_tx_bytes) - sent[i];
		all += sent[i];
	}
	for (uint16_t i = 0; i < a->num; i++)
		sent[i] = all ? sent[i] * 1000 / all : 0;
}

/*
 * A guarantee of a half beside three others; the others share the rest.  When it is taken
 * away all have the same, however long the function was ahead of the others.
 */
static void guarantee(struct pair *p, enum whom to, uint32_t qps)
{
	uint64_t sent[4], all = 0, start_ns;
	struct adapter a;

	open_adapter(&a, p, 3);
	for (uint16_t i = 0; i < a.num; i++)
		start(&a.fn[i], QHCA_WQE_WRITE, to, i == 1 ? qps : 16);
	keep_busy(&a, MS);			/* it finds out whether bundles pass */
	for (uint16_t i = 0; i < a.num; i++)
		all -= count_fn(&a, i, QHCA_CNT_tx_bytes);
	start_ns = p->w.now;
	keep_busy(&a, MS);
	for (uint16_t i = 0; i < a.num; i++)
		all += count_fn(&a, i, QHCA_CNT_tx_bytes);
	/* This is the rate of all functions together. */
	set_rates(&a, 1, 0, (uint32_t)(all * 8 * 1000 / (p->w.now - start_ns) / 2));
	keep_busy(&a, 12 * MS);			/* the window is full at first */
	share(&a, 4 * MS, sent);
	note("the guaranteed function has %llu thousandths",
	     (unsigned long long)sent[1]);
	CHECK(sent[1] > 400);
	for (int i = 0; i < 4; i++)
		CHECK(i == 1 || sent[i] > 125);
	set_rates(&a, 1, 0, 0);
	share(&a, 4 * MS, sent);
	note("without guarantee it has %llu", (unsigned long long)sent[1]);
	for (int i = 0; i < 4; i++)
		CHECK(sent[i] > 225 && sent[i] < 275);
	close_adapter(&a);
}

static void guaranteed(struct pair *p)
{
	p->w.filter = drop_all;
	guarantee(p, NOBODY, 1);
}

/* A bundle is more than the function lacks, and its tokens pay for all of it. */
static void guaranteed_in_bundles(struct pair *p)
{
	guarantee(p, OTHER, 16);
	CHECK(qhca_query_bundles(p->a.md->host.hca).sent > 1000);
}

/* ---- rates */

/* Bytes in a long time are within 5 % of what the rate permits. */
static void limited(struct pair *p, uint8_t opcode, enum whom to)
{
	static const uint32_t rate[] = { 0, 20, 1000, 4000 };
	uint64_t sent[4], time = 200 * MS;
	struct adapter a;

	p->w.filter = drop_all;
	open_adapter(&a, p, 3);
	for (uint16_t i = 1; i < a.num; i++) {
		set_rates(&a, i, rate[i], 0);
		start(&a.fn[i], opcode, to, 1 + 3 * i);
	}
	keep_busy(&a, 20 * MS);			/* the window is full at first */
	for (uint16_t i = 1; i < a.num; i++)
		sent[i] = count_fn(&a, i, QHCA_CNT_tx_bytes);
	keep_busy(&a, time);
	for (uint16_t i = 1; i < a.num; i++) {
		uint64_t wanted = rate[i] * time / 8000;

		sent[i] = count_fn(&a, i, QHCA_CNT_tx_bytes) - sent[i];
		note("at %u Mb/s %llu bytes are sent, which should be %llu",
		     rate[i], (unsigned long long)sent[i],
		     (unsigned long long)wanted);
		CHECK(sent[i] > wanted - wanted / 20);
		CHECK(sent[i] < wanted + wanted / 20);
		CHECK(count_fn(&a, i, QHCA_CNT_rate_waits) > 10);
		CHECK_EQ(count_fn(&a, i, QHCA_CNT_ack_timeouts), 0);
	}
	CHECK_EQ(count_fn(&a, 0, QHCA_CNT_rate_waits), 0);
	close_adapter(&a);
}

static void limited_writes(struct pair *p)
{
	limited(p, QHCA_WQE_WRITE, NOBODY);
}

/* A message that stops in its middle for want of tokens uses up no retries. */
static void limited_reliable_writes(struct pair *p)
{
	limited(p, QHCA_WQE_WRITE, ITSELF);
}

/* READ responses wait, and the requester's retries last. */
static void limited_reads(struct pair *p)
{
	limited(p, QHCA_WQE_READ, ITSELF);
}

/* Nothing happens while all functions wait for tokens: the host need not poll. */
static void waits_quietly(struct pair *p)
{
	struct adapter a;
	uint64_t calls = 0, end;

	p->w.filter = drop_all;
	open_adapter(&a, p, 1);
	set_rates(&a, 1, 8, 0);			/* a byte each microsecond */
	start(&a.fn[1], QHCA_WQE_WRITE, NOBODY, 8);
	keep_busy(&a, 30 * MS);
	for (end = p->w.now + 100 * MS; p->w.now < end; calls++)
		world_wait(&p->w, end);
	note("%llu calls in 100 ms", (unsigned long long)calls);
	/* The function sends 12 packets in each 50 ms, each with some calls around it. */
	CHECK(calls < 600);
	/* Without its rate it sends all that is left at once. */
	set_rates(&a, 1, 0, 0);
	end = p->w.now;
	settle(p);
	CHECK(p->w.now - end < MS);
	CHECK(count_fn(&a, 1, QHCA_CNT_completions) > 0);
	close_adapter(&a);
}

/* ---- caches */

#define KEYS		24u		/* of the victim: half of the cache */
#define MANY		200u		/* of the neighbour */

struct reader {
	struct md *md;
	struct md_mr mr[MANY];
	uint32_t num;
	uint64_t mask;			/* of blocks of the protection cache */
};

/* One access to a key, as the transport makes it, and what the oracle says of it. */
static void touch(struct reader *r, struct plain *oracle, uint16_t gvmi,
		  uint32_t k, struct plain_counts *mine)
{
	struct hca_fn *fn = hca_fn_of(&r->md->host.hca->hca, gvmi);
	struct hca_mem_req req = {
		.addr = r->mr[k].iova, .len = 8, .key = r->mr[k].key,
		.pd = PAIR_PD, .access = QHCA_ACCESS_REMOTE_READ, .remote = true,
	};
	struct plain_name name = { .guest = gvmi, .index = req.key >> 8 };
	struct plain_counts before = *plain_counts(oracle);
	const struct plain_counts *after = plain_counts(oracle);
	uint8_t data[8];

	CHECK_EQ(hca_mem_read(fn, &req, data), HCA_MEM_OK);
	if (!plain_lookup(oracle, name))
		plain_fill_in(oracle, name, r->mask);
	mine->hits += after->hits - before.hits;
	mine->misses += after->misses - before.misses;
	mine->evictions += after->evictions - before.evictions;
	mine->conflicts += after->conflicts - before.conflicts;
}

static void open_reader(struct reader *r, struct md *md, uint32_t num)
{
	r->md = md;
	r->num = num;
	for (uint32_t k = 0; k < num; k++)
		md_reg_mr(md, &r->mr[k], PAIR_PD, PAIR_IOVA, MD_PAGE,
			  ALL_ACCESS);
}

static void check_counts(struct adapter *a, uint16_t gvmi,
			 const struct plain_counts *want)
{
	CHECK_EQ(count_fn(a, gvmi, QHCA_CNT_pt_hits), want->hits);
	CHECK_EQ(count_fn(a, gvmi, QHCA_CNT_pt_misses), want->misses);
	CHECK_EQ(count_fn(a, gvmi, QHCA_CNT_pt_evictions), want->evictions);
	CHECK_EQ(count_fn(a, gvmi, QHCA_CNT_pt_conflicts), want->conflicts);
}

static void set_blocks(struct adapter *a, uint16_t gvmi, uint16_t blocks)
{
	struct qhca_vf_config config = { 0 };

	put_le32(&config.fields, QHCA_VF_SET_BLOCKS);
	put_le16(&config.blocks[QHCA_CACHE_PT], blocks);
	set_vf(a, gvmi, &config);
}

/* The share of hits of a victim beside a neighbour that has no locality, in 1/1000. */
static uint64_t victim(struct pair *p, bool masks)
{
	static struct reader r[2];
	struct plain_counts counts[2] = { { 0 } };
	struct qhca_cache_info info;
	struct plain *oracle;
	struct adapter a;

	memset(r, 0, sizeof(r));
	open_adapter(&a, p, 2);
	qhca_query_cache(p->a.md->host.hca, QHCA_CACHE_PT, &info);
	CHECK_EQ(info.geometry.sets, 16);
	CHECK_EQ(info.geometry.blocks, 4);
	oracle = plain_new(16, 4);
	for (uint16_t i = 0; i < 2; i++) {
		open_reader(&r[i], a.fn[1 + i].md, i ? MANY : KEYS);
		if (masks) {
			r[i].mask = i ? 0x8 : 0x7;
			set_blocks(&a, 1 + i, (uint16_t)r[i].mask);
		}
	}
	for (uint32_t n = 0; n < 40000; n++) {
		/* The neighbour accesses more often than the victim. */
		uint16_t who = n % 16 != 0;

		touch(&r[who], oracle, 1 + who,
		      world_pick(&p->w, r[who].num), &counts[who]);
	}
	check_counts(&a, 1, &counts[0]);
	check_counts(&a, 2, &counts[1]);
	plain_free(oracle);
	close_adapter(&a);
	return counts[0].hits * 1000 / (counts[0].hits + counts[0].misses);
}

static void small_caches(struct pair *p)
{
	struct md_init init = { .scatter = true };

	for (int c = 0; c < QHCA_NUM_CACHES; c++)
		init.cache[c] = (struct qhca_geometry){ 16, 4 };
	md_start(p->a.md, &init);
}

static uint64_t hits_beside(struct pair *p, bool masks)
{
	uint64_t hits;

	small_caches(p);
	hits = victim(p, masks);
	note("hits of the victim: %llu in 1000", (unsigned long long)hits);
	/* small_caches() has lost the QPs that close_pair() will destroy. */
	restart_pair(p, &(struct pair_options){ .type = QHCA_QPT_RC });
	return hits;
}

/* A neighbour without locality takes the victim's lines. */
static void thrashing_neighbour(struct pair *p)
{
	CHECK(hits_beside(p, false) < 500);
}

/* Masks of blocks keep it off them. */
static void neighbour_in_its_blocks(struct pair *p)
{
	CHECK(hits_beside(p, true) > 980);
}

#define SHARES(fn, ...) \
	NAMED(RC, "shares: " #fn, fn, .roomy = true, __VA_ARGS__)

const struct scenario share_scenarios[] = {
	SHARES(equal_shares), SHARES(guaranteed),
	SHARES(guaranteed_in_bundles, .max_bundle = 32768),
	SHARES(limited_writes), SHARES(limited_reliable_writes),
	SHARES(limited_reads), SHARES(waits_quietly),
	SHARES(thrashing_neighbour), SHARES(neighbour_in_its_blocks),
	{ 0 }
};
