/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "pair.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MEM_LEN		(16u << 20)

static char failure[300];
static bool verbose;


void check_failed(int line, const char *fmt, ...)
{
	size_t len;
	va_list ap;

	if (failure[0])
		return;
	len = snprintf(failure, sizeof(failure), "line %d: ", line);
	va_start(ap, fmt);
	vsnprintf(failure + len, sizeof(failure) - len, fmt, ap);
	va_end(ap);
}

void note(const char *fmt, ...)
{
	va_list ap;

	printf("# ");
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
}

bool check_ok(void)
{
	return !failure[0];
}

/* ---- life */

static void make_qp(struct end *e, const struct pair_options *o,
		    struct md_srq *srq, bool is_b)
{
	struct md_qp_init qi = {
		.type = o->type, .pd = PAIR_PD, .flags = o->qp_flags,
		.sq_log_depth = o->log_sq ? o->log_sq : 6, .sq_log_stride = 8,
		.rq_log_depth = 6, .rq_log_stride = 7,
		.send_cq = &e->scq, .recv_cq = &e->rcq,
	};

	if (o->srq)
		qi.srq = srq;
	if (o->xrc) {
		qi.type = is_b ? QHCA_QPT_XRC_TGT : QHCA_QPT_XRC_INI;
		qi.xrcd = PAIR_XRCD;
		qi.pd = is_b ? PAIR_PD + 9 : PAIR_PD;	/* the SRQ's counts */
	}
	if (md_qp_create(e->md, &e->qp, &qi))
		host_die("CREATE_QP");
}

static void open_end(struct pair *p, struct end *e, unsigned int host,
		     const struct pair_options *o)
{
	uint8_t log_cq = o->log_cq ? o->log_cq : 8;

	e->md = p->w.host[host];
	e->host = host;
	md_cq_create(e->md, &e->scq, log_cq);
	md_cq_create_moderated(e->md, &e->rcq, log_cq, o->moder_count,
			       o->moder_usec);
	md_reg_mr(e->md, &e->mr, PAIR_PD, PAIR_IOVA, PAIR_LEN, ALL_ACCESS);
	if (o->srq)
		md_srq_create(e->md, &e->srq, PAIR_PD, 4, 6, 0);
	if (o->xrc && md_xsrq_create(e->md, &e->srq, PAIR_PD, 4, 6, PAIR_XRCD,
				     &e->rcq))
		host_die("CREATE_SRQ for XRC");
	make_qp(e, o, &e->srq, e == &p->b);
	e->conn = (struct md_conn){
		.sq_psn = 0xfffffa, .rq_psn = 0xfffffa, .mtu = QHCA_MTU_1024,
		.access = ALL_ACCESS, .timeout = 8, .retry_cnt = 3,
		.rnr_retry = 3, .min_rnr_timer = 1, .max_rd_atomic = 4,
		.max_dest_rd_atomic = 4, .qkey = PAIR_QKEY,
	};
}

bool is_datagram(const struct pair *p)
{
	return p->type == QHCA_QPT_UD || p->type == QHCA_QPT_GSI;
}

static void aim(struct end *e, const struct end *o)
{
	md_av(e->md, &e->conn.av, o->md->mac[5], false);
	e->conn.dest_qpn = o->qp.qpn;
}

void restart_pair(struct pair *p, const struct pair_options *o)
{
	struct md_init init = { .scatter = true, .log_eq = o->log_eq,
				.flags = o->init_flags };

	/* These are the smallest caches: every access misses. */
	for (int c = 0; c < QHCA_NUM_CACHES && !o->roomy; c++)
		init.cache[c] = (struct qhca_geometry){ 1, 1 };
	p->type = o->type;
	for (unsigned int h = 0; h < p->w.num_hosts; h++)
		md_start(p->w.host[h], &init);
	open_end(p, &p->a, 0, o);
	open_end(p, &p->b, o->loop ? 0 : 1, o);
	aim(&p->a, &p->b);
	aim(&p->b, &p->a);
	put_le32(&p->ud.dest_qpn, p->b.qp.qpn);
	put_le32(&p->ud.qkey, PAIR_QKEY);
	p->ud.av = p->a.conn.av;
}

void open_pair(struct pair *p, const struct pair_options *o)
{
	struct qhca_config cfg;

	memset(p, 0, sizeof(*p));
	p->w.verbose = verbose;
	qhca_config_default(&cfg);
	cfg.log_max_qp = cfg.log_max_cq = 10;
	cfg.log_max_pt = 12;
	cfg.log_max_srq = 8;
	cfg.num_db_pages = 16;
	cfg.rxe_flush = o->rxe_flush;
	cfg.max_bundle = o->max_bundle;
	world_init(&p->w, o->seed + 1, o->hosts ? o->hosts : 2, MEM_LEN, &cfg);
	restart_pair(p, o);
}

void connect_pair(struct pair *p)
{
	md_qp_connect(p->a.md, &p->a.qp, &p->a.conn);
	md_qp_connect(p->b.md, &p->b.qp, &p->b.conn);
}

void reconnect_pair(struct pair *p, uint32_t psn)
{
	CHECK_EQ(md_qp_modify(p->a.md, &p->a.qp, QHCA_QPS_RESET, 0, NULL), 0);
	CHECK_EQ(md_qp_modify(p->b.md, &p->b.qp, QHCA_QPS_RESET, 0, NULL), 0);
	p->a.conn.sq_psn = p->b.conn.rq_psn = psn & 0xffffff;
	p->b.conn.sq_psn = p->a.conn.rq_psn = (psn * 7) & 0xffffff;
	connect_pair(p);
}

void close_pair(struct pair *p)
{
	CHECK_EQ(md_qp_destroy(p->a.md, &p->a.qp), 0);
	CHECK_EQ(md_qp_destroy(p->b.md, &p->b.qp), 0);
	world_fini(&p->w);
}

void settle(struct pair *p)
{
	world_run(&p->w, p->w.now + 10000000000ull);
}

void run_for(struct pair *p, uint64_t ns)
{
	world_run(&p->w, p->w.now + ns);
}

void post(struct pair *p, struct end *e, uint8_t opcode, uint32_t len,
		 uint8_t flags)
{
	struct md_sge sge = { e->mr.iova, len, e->mr.key };
	struct end *o = e == &p->a ? &p->b : &p->a;
	struct md_wr wr = {
		.opcode = opcode, .flags = flags | QHCA_WQE_F_SIGNALED,
		.wr_id = e->qp.sq_pi, .num_sge = 1, .sge = &sge,
		.raddr = o->mr.iova + 32768, .rkey = o->mr.key,
		.ud = is_datagram(p) ? &p->ud : NULL,
		.xrc_srqn = o->srq.srqn,
	};

	md_post_send(e->md, &e->qp, &wr);
	md_ring(e->md, &e->qp);
}

void post_wr(struct end *e, struct md_wr *wr)
{
	wr->wr_id = e->qp.sq_pi;
	md_post_send(e->md, &e->qp, wr);
	md_ring(e->md, &e->qp);
}

void post_recv(struct end *e, uint32_t len)
{
	struct md_sge sge = { e->mr.iova + 16384, len, e->mr.key };

	if (e->qp.init.srq)
		md_srq_post(e->md, e->qp.init.srq, e->qp.init.srq->pi, &sge, 1);
	else if (e->qp.init.type == QHCA_QPT_XRC_TGT)
		md_srq_post(e->md, &e->srq, e->srq.pi, &sge, 1);
	else
		md_post_recv(e->md, &e->qp, e->qp.rq_pi, &sge, 1);
}

void expect(int line, struct md_cq *cq, const uint8_t *status, uint32_t n,
	    uint32_t first)
{
	struct qhca_cqe cqe;

	for (uint32_t i = 0; i < n; i++) {
		if (!md_poll(cq, &cqe)) {
			check_failed(line, "%u completions, not %u", i, n);
			return;
		}
		if (get_le64(&cqe.wr_id) != first + i || cqe.status != status[i])
			check_failed(line, "completion %u is of request %llu, status %u",
				     i, (unsigned long long)get_le64(&cqe.wr_id),
				     cqe.status);
	}
	if (md_poll(cq, &cqe))
		check_failed(line, "more than %u completions", n);
}

void expect_none(struct md_cq *cq)
{
	struct qhca_cqe cqe;

	CHECK(!md_poll(cq, &cqe));
}

int next_event(struct end *e, uint32_t number)
{
	struct qhca_eqe eqe;

	do {
		if (!md_event(e->md, &eqe))
			return 0;
	} while (eqe.type == QHCA_EVENT_QP_COMM_EST ||
		 eqe.type == QHCA_EVENT_COMPLETION);
	CHECK_EQ(get_le32(&eqe.number), number);
	return eqe.type;
}

int state_of(struct end *e)
{
	struct qhca_query_qp q = { 0 };

	CHECK_EQ(md_qp_query(e->md, &e->qp, &q), 0);
	return q.ctx.state;
}


void open_second(struct pair *p, struct end *a, struct end *b,
		 const struct pair_options *o)
{
	struct end *from[2] = { &p->a, &p->b }, *to[2] = { a, b };

	for (int i = 0; i < 2; i++) {
		*to[i] = *from[i];
		md_cq_create(to[i]->md, &to[i]->scq, 8);
		md_cq_create(to[i]->md, &to[i]->rcq, 8);
		make_qp(to[i], o, &from[i]->srq, i);
	}
	aim(a, b);
	aim(b, a);
	a->conn.sq_psn = b->conn.rq_psn = 100;
	b->conn.sq_psn = a->conn.rq_psn = 0xffffff;
	md_qp_connect(a->md, &a->qp, &a->conn);
	md_qp_connect(b->md, &b->qp, &b->conn);
}

void close_second(struct end *a, struct end *b)
{
	CHECK_EQ(md_qp_destroy(a->md, &a->qp), 0);
	CHECK_EQ(md_qp_destroy(b->md, &b->qp), 0);
}

void get_bytes(struct end *e, uint32_t off, void *data, uint32_t len)
{
	md_buf_read(e->md, &e->mr.buf, off + e->mr.iova % MD_PAGE, data, len);
}

void put_bytes(struct end *e, uint32_t off, const void *data, uint32_t len)
{
	md_buf_write(e->md, &e->mr.buf, off + e->mr.iova % MD_PAGE, data, len);
}

void check_works(int line, struct pair *p)
{
	uint32_t sent = p->a.qp.sq_pi, posted = p->b.qp.rq_pi;
	struct qhca_cqe cqe;

	post_recv(&p->b, 100);
	post(p, &p->a, QHCA_WQE_SEND, 8, 0);
	settle(p);
	if (!md_poll(&p->a.scq, &cqe) || cqe.status ||
	    get_le64(&cqe.wr_id) != sent)
		check_failed(line, "a SEND does not complete well");
	if (!md_poll(&p->b.rcq, &cqe) || cqe.status ||
	    get_le32(&cqe.byte_len) != (is_datagram(p) ? 48 : 8))
		check_failed(line, "receive %u does not complete well", posted);
}

bool drop_all(struct world *w, unsigned int from, uint8_t *frame, size_t len)
{
	(void)w; (void)from; (void)frame; (void)len;
	return false;
}

/* ---- the program */

static bool run_one(const struct scenario *s)
{
	struct pair p;

	failure[0] = 0;
	open_pair(&p, &s->options);
	s->run(&p);
	close_pair(&p);
	if (failure[0])
		printf("# %s\n", failure);
	return !failure[0];
}

int main(int argc, char **argv)
{
	static const struct scenario *const table[] = {
		error_scenarios, key_scenarios, window_scenarios,
		fast_reg_scenarios, queue_scenarios, wire_scenarios,
		state_scenarios, dma_scenarios, fault_scenarios,
		fault_end_scenarios, xrc_scenarios, doorbell_scenarios,
		cost_scenarios, threshold_scenarios, place_scenarios,
		raw_scenarios, economy_scenarios, lookup_scenarios,
		isolation_scenarios, study_scenarios,
		share_scenarios, function_scenarios, stage2_scenarios,
		stage2_key_scenarios, stage2_isolation_scenarios,
		bundle_watched_scenarios, bundle_question_scenarios,
		bundle_scenarios, bundle_between_scenarios, bundle_end_scenarios,
		bundle_function_scenarios, bundle_hostile_scenarios,
		bundle_doubt_scenarios, bundle_reasons_scenarios,
	};
	unsigned int number = 0, bad = 0;
	const char *only = argc > 1 ? argv[1] : NULL;

	/* The arguments are [NAME [-v]]. */
	verbose = argc > 2 && !strcmp(argv[2], "-v");

	for (size_t t = 0; t < sizeof(table) / sizeof(*table); t++)
		for (const struct scenario *s = table[t]; s->name; s++) {
			bool ok;

			if (only && strcmp(only, s->name))
				continue;
			ok = run_one(s);
			printf("%s %u - %s\n", ok ? "ok" : "not ok", ++number,
			       s->name);
			fflush(stdout);
			bad += !ok;
		}
	printf("1..%u\n", number);
	return bad != 0;
}
