/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "load.h"

#define SRQ_MAX_LOG_DEPTH 6
#define TIME_LIMIT	60000000000ull	/* ns of virtual time */

static bool side_done(const struct side *s)
{
	const struct side *p = s->peer;
	uint32_t next = s->expected;

	if (s->completed < s->total)
		return false;
	if (unreliable(s))
		return true;
	while (next < p->total && !takes_recv(p->op[next].opcode))
		next++;
	return p->posted == p->total && next >= p->total;
}

static bool all_done(const struct load *l)
{
	for (uint32_t i = 0; i < l->num_pairs; i++)
		for (int h = 0; h < 2; h++)
			if (!side_done(&l->side[i][h]))
				return false;
	return true;
}

/* One of its SRQs becomes larger, in two steps with work between them. */
static void grow_srq(struct load *l, struct side *s)
{
	struct md_srq *srq = srq_of(s, world_pick(l->w, XRC_SRQS));

	if (!srq || srq->log_depth == SRQ_MAX_LOG_DEPTH)
		return;
	if (srq->grown_rec)
		md_srq_grow_end(s->md, srq);
	else
		md_srq_grow_begin(s->md, srq);
}

static void act(struct load *l, struct side *s)
{
	uint32_t recv_ppm = l->plan->slow_recv ? 20000 : 500000;

	if (world_chance(l->w, 10000))
		grow_srq(l, s);

	if (world_chance(l->w, recv_ppm))
		load_post_recvs(l, s);
	if (world_chance(l->w, 300000))
		load_post_sends(l, s);
}

static bool stuck(struct load *l)
{
	for (uint32_t i = 0; i < l->num_pairs; i++)
		for (int h = 0; h < 2; h++) {
			struct side *s = &l->side[i][h];

			if (!side_done(s))
				return !FAIL(l, "stuck: host %d qp %u type %u: %u of %u done, %u posted, %u receives",
					     h + 1, s->qp.qpn, s->type,
					     s->completed, s->total, s->posted,
					     s->recv_done);
		}
	return false;
}

static bool check_regions(struct load *l)
{
	for (uint32_t i = 0; i < l->num_pairs; i++)
		for (int h = 0; h < 2; h++) {
			struct side *s = &l->side[i][h];

			if (!load_same(l, s, &s->src, s->src_model, 0, REGION,
				       "source region", 0))
				return false;
			if (!unreliable(s) &&
			    !load_same(l, s, &s->dst, s->dst_model, 0, REGION,
				       "target region", 0))
				return false;
		}
	return true;
}

static bool tear_down(struct load *l)
{
	struct qhca_query_qp q;

	for (uint32_t i = 0; i < l->num_pairs; i++)
		for (int h = 0; h < 2; h++) {
			struct side *s = &l->side[i][h];

			if (md_qp_query(s->md, &s->qp, &q))
				return FAIL(l, "QUERY_QP refused");
			if (q.ctx.state != QHCA_QPS_RTS)
				return FAIL(l, "qp %u ends in state %u",
					    s->qp.qpn, q.ctx.state);
			if (md_qp_destroy(s->md, &s->qp) ||
			    (is_xrc(s) && md_qp_destroy(s->md, &s->tgt)))
				return FAIL(l, "DESTROY_QP refused");
		}
	return true;
}

static bool run(struct load *l)
{
	struct world *w = l->w;

	w->link = l->plan->link;
	while (!all_done(l)) {
		for (uint32_t i = 0; i < l->num_pairs; i++)
			for (int h = 0; h < 2; h++)
				act(l, &l->side[i][h]);
		/* All requests may wait for a page while no timer runs. */
		world_wait(w, w->now + 20000);
		for (unsigned int n = 0; n < l->num_nodes; n++)
			if (!load_page_work(l, n))
				return false;
		if (!load_guest_work(l))
			return false;
		for (unsigned int n = 0; n < l->num_nodes; n++)
			if (world_chance(w, 400000) &&
			    !load_poll_cqs(l, n, 1 + world_pick(w, 16)))
				return false;
		if (w->now > TIME_LIMIT)
			return !stuck(l);
	}
	/* Packets that arrive late must do no harm. */
	world_run(w, w->now + 10000000);
	for (unsigned int n = 0; n < l->num_nodes; n++)
		if (!load_poll_cqs(l, n, 100000))
			return false;
	return load_check_frames(l) && load_check_guests(l) &&
	       check_regions(l) && tear_down(l);
}

const char *workload_run(struct world *w, const struct plan *plan)
{
	static char error[512];
	struct load *l = calloc(1, sizeof(*l));

	l->w = w;
	l->plan = plan;
	load_setup(l);
	if (run(l))
		l->error[0] = 0;
	for (uint32_t i = 0; i < l->num_pairs; i++)
		for (int h = 0; h < 2; h++) {
			free(l->side[i][h].src_model);
			free(l->side[i][h].dst_model);
		}
	load_close_guests(l);
	memcpy(error, l->error, sizeof(error));
	free(l);
	return error[0] ? error : NULL;
}
