/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Posts that cross the moment at which the device stops watching a send queue.
 *
 * Software stores sq_pi and later loads sq_active, and rings the doorbell if that is
 * zero; meanwhile the device is between any two of its memory accesses.  The scenarios
 * try every place for the store and every later place for the load.  Nothing else
 * happens that would make the device look at the queue, so a lost wake-up shows as a
 * request that the device never executes.  The rules: Documentation/hardware.rst,
 * Doorbell suppression.
 */
#include "pair.h"
#include "transport/linger.h"

struct crossing {
	struct pair *p;
	uint64_t store, load;		/* before these accesses */
	uint64_t accesses;
	bool stored, loaded, ring;
	uint32_t posts;
};

/* A WRITE of 8 bytes from @e to b, without a doorbell. */
static void store(struct pair *p, struct end *e)
{
	struct md_sge sge = { p->a.mr.iova, 8, p->a.mr.key };
	struct md_wr wr = {
		.opcode = QHCA_WQE_WRITE, .flags = QHCA_WQE_F_SIGNALED,
		.wr_id = e->qp.sq_pi, .num_sge = 1, .sge = &sge,
		.raddr = p->b.mr.iova + 32768, .rkey = p->b.mr.key,
	};

	md_post_send(e->md, &e->qp, &wr);
}

static void soft_store(struct crossing *c)
{
	c->stored = true;
	for (uint32_t i = 0; i < c->posts; i++)
		store(c->p, &c->p->a);
}

/* The doorbell reaches the device only after its present access. */
static void soft_load(struct crossing *c)
{
	struct md_qp *qp = &c->p->a.qp;

	c->loaded = true;
	c->ring = !md_buf_get32(c->p->a.md, &qp->buf, qp->rec_offset + 64);
}

static void meanwhile(struct host *h, enum host_call call)
{
	struct crossing *c = h->meanwhile_arg;

	if (call != HOST_DMA)
		return;
	if (c->accesses == c->store)
		soft_store(c);
	if (c->accesses == c->load)
		soft_load(c);
	c->accesses++;
}

/* Rings for the software that has loaded zero, and for no other. */
static void ring_if_asked(struct crossing *c)
{
	if (!c->ring)
		return;
	c->ring = false;
	md_ring(c->p->a.md, &c->p->a.qp);
}

static bool run_once(struct crossing *c, uint32_t under_way)
{
	struct pair *p = c->p;
	uint32_t want = under_way + c->posts, done = 0;
	struct md *md = p->a.md;
	struct qhca_cqe cqe;

	c->accesses = 0;
	c->stored = c->loaded = c->ring = false;
	for (uint32_t i = 0; i < under_way; i++)
		store(p, &p->a);
	md_ring(md, &p->a.qp);
	md->host.meanwhile = meanwhile;
	md->host.meanwhile_arg = c;
	while (world_step(&p->w, p->w.now + 1000000) && !c->loaded)
		;
	md->host.meanwhile = NULL;
	/* The device has come to rest before that place. */
	if (!c->stored)
		soft_store(c);
	if (!c->loaded)
		soft_load(c);
	ring_if_asked(c);
	settle(p);
	for (; md_poll(&p->a.scq, &cqe); done++)
		CHECK_EQ(cqe.status, 0);
	if (done != want)
		check_failed(__LINE__, "%u of %u requests executed: stored before access %llu, loaded before %llu",
			     done, want, (unsigned long long)c->store,
			     (unsigned long long)c->load);
	/* A device without work never leaves sq_active set. */
	CHECK_EQ(md_buf_get32(md, &p->a.qp.buf, p->a.qp.rec_offset + 64), 0);
	return c->accesses > c->load;
}

static void cross(struct pair *p, uint32_t under_way, uint32_t posts,
		  uint32_t accesses)
{
	struct crossing c = { .p = p, .posts = posts };
	bool more = true;

	for (c.store = 0; more && check_ok(); c.store++)
		for (c.load = c.store, more = true; more && check_ok(); c.load++)
			if (!run_once(&c, under_way)) {
				more = c.load > c.store;
				break;
			}
	/* Otherwise the store crossed no access of the device. */
	CHECK(c.store >= accesses);
}

static void posts_cross_one(struct pair *p)
{
	connect_pair(p);
	/* sq_active stays zero, with nothing to clear. */
	cross(p, 1, 1, 4);
}

static void posts_cross_lingering(struct pair *p)
{
	p->w.link.delay = 2000;
	connect_pair(p);
	cross(p, 3, 2, 7);
}

/*
 * ... and the link loses the responses that would make the device look, but each
 * third.
 */
static bool drop_from_b(struct world *w, unsigned int from, uint8_t *frame,
			size_t len)
{
	uint32_t *answers = w->filter_arg;

	(void)frame; (void)len;
	return !from || !(++*answers % 3);
}

static void posts_cross_losses(struct pair *p)
{
	uint32_t answers = 0;

	p->w.filter = drop_from_b;
	p->w.filter_arg = &answers;
	p->a.conn.retry_cnt = 7;
	connect_pair(p);
	cross(p, 3, 1, 7);
}

static uint32_t active(struct pair *p)
{
	return md_buf_get32(p->a.md, &p->a.qp.buf, p->a.qp.rec_offset + 64);
}

/*
 * Software need not ring with several requests under way; it has to with one, or when
 * no response arrives for the time that hardware.rst specifies.
 */
static void lingering_ends(struct pair *p)
{
	uint64_t rung, now;

	p->w.link.delay = 20000;
	connect_pair(p);
	post(p, &p->a, QHCA_WQE_WRITE, 8, 0);
	md_settle(p->a.md);
	CHECK_EQ(active(p), 0);			/* one request is under way */
	post(p, &p->a, QHCA_WQE_WRITE, 8, 0);
	md_settle(p->a.md);
	CHECK_EQ(active(p), 1);			/* two requests are under way */
	rung = count_of(&p->a, QHCA_CNT_sq_doorbells);
	for (int i = 0; i < 50; i++)
		post(p, &p->a, QHCA_WQE_WRITE, 8, 0);
	CHECK_EQ(count_of(&p->a, QHCA_CNT_sq_doorbells), rung);
	settle(p);
	CHECK_EQ(active(p), 0);
	CHECK_EQ(count_of(&p->a, QHCA_CNT_sq_doorbells), rung);
	CHECK_EQ(count_of(&p->a, QHCA_CNT_sq_wqes_found), 50);
	CHECK_EQ(p->a.qp.sq_pi, 52);

	/* From now on the link loses all responses. */
	p->w.filter = drop_all;
	post(p, &p->a, QHCA_WQE_WRITE, 8, 0);
	post(p, &p->a, QHCA_WQE_WRITE, 8, 0);
	md_settle(p->a.md);
	CHECK_EQ(active(p), 1);
	now = p->w.now;
	/* The device finds the request in the end. */
	post(p, &p->a, QHCA_WQE_WRITE, 8, 0);
	world_run(&p->w, now + HCA_LINGER_ACKED_NS + 1000);
	CHECK_EQ(count_of(&p->a, QHCA_CNT_sq_wqes_found), 51);
	world_run(&p->w, now + HCA_LINGER_END_NS);
	CHECK_EQ(active(p), 1);
	world_run(&p->w, now + HCA_LINGER_END_NS + 3 * HCA_LINGER_ACKED_NS);
	CHECK_EQ(active(p), 0);
	p->w.filter = NULL;
	settle(p);
	for (uint32_t i = 0; i < 55; i++) {
		struct qhca_cqe cqe;

		CHECK(md_poll(&p->a.scq, &cqe));
		CHECK_EQ(cqe.status, 0);
		CHECK_EQ(get_le64(&cqe.wr_id), i);
	}
}

/* A steady stream of 64 outstanding small writes. */
static void few_doorbells(struct pair *p)
{
	uint32_t done = 0;
	struct qhca_cqe cqe;
	uint64_t rung;

	p->w.link.delay = 5000;
	connect_pair(p);
	while (done < 4000 && check_ok()) {
		while (p->a.qp.sq_pi - done < 64 && p->a.qp.sq_pi < 4000)
			post(p, &p->a, QHCA_WQE_WRITE, 8, 0);
		world_step(&p->w, p->w.now + 1000);
		while (md_poll(&p->a.scq, &cqe)) {
			CHECK_EQ(cqe.status, 0);
			done++;
		}
	}
	rung = count_of(&p->a, QHCA_CNT_sq_doorbells);
	CHECK(rung * 16 < 4000);
	CHECK_EQ(rung + count_of(&p->a, QHCA_CNT_sq_wqes_found) >=
		 4000, 1);
}

static uint64_t rings(struct pair *p)
{
	return count_of(&p->a, QHCA_CNT_sq_doorbells);
}

/* How software posts in rounds(): the number of requests, one every @every ns. */
struct pace {
	uint32_t requests, window, every;
	uint32_t signaled;		/* one in so many requests has a CQE */
};

#define POLL_BATCH	16u

/*
 * Software has at most @window requests of 8 bytes whose completion it does not know:
 * when it has posted as many, and not before, it requests a completion, as perftest
 * does.
 */
static void rounds(struct pair *p, const struct pace *pace)
{
	uint32_t known = 0;
	struct qhca_cqe cqe;

	while (known < pace->requests && check_ok()) {
		struct md_sge sge = { p->a.mr.iova, 8, p->a.mr.key };
		uint64_t until = p->w.now + pace->every;
		uint32_t n = p->a.qp.sq_pi;
		struct md_wr wr = {
			.opcode = QHCA_WQE_WRITE, .wr_id = n,
			.flags = n % pace->signaled == pace->signaled - 1 ?
				 QHCA_WQE_F_SIGNALED : 0,
			.num_sge = 1, .sge = &sge,
			.raddr = p->b.mr.iova + 32768, .rkey = p->b.mr.key,
		};

		if (n < pace->requests && n - known < pace->window) {
			md_post_send(p->a.md, &p->a.qp, &wr);
			md_ring(p->a.md, &p->a.qp);
		}
		while (p->w.now < until)
			world_wait(&p->w, until);
		if (n + 1 - known < pace->window && n + 1 < pace->requests)
			continue;
		for (uint32_t i = 0; i < POLL_BATCH && md_poll(&p->a.scq, &cqe);
		     i++) {
			CHECK_EQ(cqe.status, 0);
			known = get_le64(&cqe.wr_id) + 1;
		}
	}
}

/*
 * The responder answers every request before software posts the next one, although
 * software does not wait for responses: it may have 64 requests under way.
 */
static void few_doorbells_in_step(struct pair *p)
{
	static const struct pace paces[] = {
		{ 4096, 64, 5000, 64 }, { 4096, 64, 5000, 1 },
		{ 4096, 64, 20000, 64 }, { 4096, 64, 15000, 16 },
	};

	p->w.link.delay = 1000;
	connect_pair(p);
	for (unsigned int i = 0; i < sizeof(paces) / sizeof(*paces); i++) {
		uint64_t before = rings(p);

		reconnect_pair(p, 1000 * i);
		rounds(p, &paces[i]);
		if ((rings(p) - before) * 16 >= paces[i].requests)
			check_failed(__LINE__, "pace %u: %llu doorbells", i,
				     (unsigned long long)(rings(p) - before));
	}
	/* Without work the device stops watching the queue. */
	settle(p);
	CHECK_EQ(active(p), 0);
}

/*
 * Makes one request at a time, the next one when the completion has arrived; returns
 * the ns of each.
 */
static uint64_t ping(struct pair *p)
{
	bool done = false, more = true;
	uint64_t began = p->w.now;
	struct qhca_cqe cqe;

	post(p, &p->a, QHCA_WQE_WRITE, 8, 0);
	while (more && !done) {
		more = world_step(&p->w, p->w.now + 1000);
		done = md_poll(&p->a.scq, &cqe);
	}
	CHECK(done);
	return p->w.now - began;
}

/*
 * The device sends each request at once: always if the peer is far, and almost always
 * if it is near.
 */
static void one_at_a_time(struct pair *p)
{
	uint64_t alone, apart = 0, sum = 0;

	p->w.link.delay = HCA_LINGER_NS;
	connect_pair(p);
	alone = ping(p);
	for (int i = 0; i < 500 && check_ok(); i++)
		CHECK(ping(p) < alone + HCA_LINGER_NS / 20);
	CHECK_EQ(rings(p), 501);
	p->w.link.delay = 5000;
	reconnect_pair(p, 77);
	for (int i = 0; i < 500 && check_ok(); i++) {
		settle(p);
		world_wait(&p->w, p->w.now + HCA_LINGER_NS);
		apart += ping(p);
	}
	for (int i = 0; i < 5000 && check_ok(); i++)
		sum += ping(p);
	CHECK(sum <= 10 * apart * 21 / 20);
}

/* @e WRITEs the number of its WRITEs; only one in 32 has a CQE. */
static void say(struct end *e, const struct end *to)
{
	uint32_t n = e->qp.sq_pi;
	struct md_sge sge = { e->mr.iova, 8, e->mr.key };
	struct md_wr wr = {
		.opcode = QHCA_WQE_WRITE, .wr_id = n,
		.flags = n % 32 == 31 ? QHCA_WQE_F_SIGNALED : 0,
		.num_sge = 1, .sge = &sge,
		.raddr = to->mr.iova + 1024, .rkey = to->mr.key,
	};
	struct qhca_cqe cqe;

	while (md_poll(&e->scq, &cqe))
		CHECK_EQ(cqe.status, 0);
	n++;
	put_bytes(e, 0, &n, sizeof(n));
	md_post_send(e->md, &e->qp, &wr);
	md_ring(e->md, &e->qp);
}

/* Runs until the peer has written @n to @e. */
static void hear(struct pair *p, struct end *e, uint32_t n)
{
	uint32_t is = ~n;

	while (is != n && check_ok()) {
		CHECK(world_step(&p->w, p->w.now + 1000));
		get_bytes(e, 1024, &is, sizeof(is));
	}
}

/*
 * A question and an answer that both sides detect by polling memory: the device delays
 * neither.
 */
static void one_answer_at_a_time(struct pair *p)
{
	uint64_t began, alone = 0;

	p->w.link.delay = 5000;
	connect_pair(p);
	for (uint32_t i = 1; i <= 2000 && check_ok(); i++) {
		began = p->w.now;
		say(&p->a, &p->b);
		hear(p, &p->b, i);
		say(&p->b, &p->a);
		hear(p, &p->a, i);
		if (!alone)
			alone = p->w.now - began;
		CHECK(p->w.now - began <= alone + HCA_LINGER_NS / 20);
	}
}

/*
 * Requests without completions, far apart from each other: the device learns not to
 * look at the queue again after each of them.
 */
static void idle_looks_end(struct pair *p)
{
	const struct pace pace = { 2048, 64, 3 * HCA_LINGER_END_NS, 64 };

	connect_pair(p);
	rounds(p, &pace);
	CHECK(rings(p) * 10 >= 9 * 2048);
	settle(p);
	CHECK_EQ(active(p), 0);
}

/*
 * More QPs at once than the device may watch: it stops watching the others, and they
 * work.
 */
static void many_linger(struct pair *p)
{
	const struct pair_options o = { .type = QHCA_QPT_RC };
	static struct end a[HCA_LINGER_MAX + 8], b[HCA_LINGER_MAX + 8];
	const uint32_t n = HCA_LINGER_MAX + 8;
	uint32_t lingering = 0;
	struct qhca_cqe cqe;

	p->w.link.delay = 20000;
	for (uint32_t i = 0; i < n; i++)
		open_second(p, &a[i], &b[i], &o);
	for (uint32_t i = 0; i < n; i++)
		for (int k = 0; k < 3; k++) {
			store(p, &a[i]);
			md_ring(a[i].md, &a[i].qp);
		}
	md_settle(p->a.md);
	for (uint32_t i = 0; i < n; i++)
		lingering += md_buf_get32(a[i].md, &a[i].qp.buf,
					  a[i].qp.rec_offset + 64);
	CHECK_EQ(lingering, HCA_LINGER_MAX);
	/* The driver destroys the QP while the device watches it. */
	CHECK_EQ(md_qp_modify(a[0].md, &a[0].qp, QHCA_QPS_RESET, 0, NULL), 0);
	for (uint32_t i = 1; i < n; i++) {
		store(p, &a[i]);
		md_ring(a[i].md, &a[i].qp);
	}
	settle(p);
	for (uint32_t i = 1; i < n; i++)
		for (int k = 0; k < 4; k++)
			CHECK(md_poll(&a[i].scq, &cqe) && !cqe.status);
	for (uint32_t i = 0; i < n; i++)
		close_second(&a[i], &b[i]);
}

const struct scenario doorbell_scenarios[] = {
	RC(posts_cross_one), RC(posts_cross_lingering), RC(posts_cross_losses),
	RC(lingering_ends), RC(few_doorbells), RC(many_linger),
	RC(few_doorbells_in_step), RC(one_at_a_time),
	RC(one_answer_at_a_time), RC(idle_looks_end),
	{ 0 }
};
