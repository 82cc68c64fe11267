/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "load.h"

#define SRQ_LOG_DEPTH	4
#define IOVA		0x7f0000000000ull
#define QKEY		0x1234

static void init_region(struct load *l, struct side *s, struct md_mr *mr,
			uint8_t **model, uint32_t pd, uint32_t len,
			uint32_t access)
{
	struct memory *m = &l->memory[s->node];
	struct md *md = s->md;
	/* Atomics need multiples of 8. */
	uint64_t iova = IOVA + (world_pick(l->w, 4096) & ~7u);

	if (world_chance(l->w, l->plan->odp) && m->frames)
		*mr = md_odp_reg(md, m->frames, pd, iova, len, access)->mr;
	else
		md_reg_mr(md, mr, pd, iova, len, access);
	*model = malloc(len);
	load_fill(world_rand(l->w), *model, len);
	md_buf_write(md, &mr->buf, mr->iova % 4096, *model, len);
}

/* The other half of an XRC connection: a target, and SRQs that it serves. */
static void init_xrc(struct load *l, struct side *s, uint32_t pd,
		     const struct md_qp_init *like)
{
	struct world *w = l->w;
	/* The device uses the domain of the SRQ for the access, never that of the target. */
	struct md_qp_init init = {
		.type = QHCA_QPT_XRC_TGT, .pd = pd + 10, .db_page = like->db_page,
		.xrcd = 1 + world_pick(w, 2),
	};

	if (md_qp_create(s->md, &s->tgt, &init))
		host_die("CREATE_QP of an XRC target refused");
	for (int i = 0; i < XRC_SRQS; i++)
		if (md_xsrq_create(s->md, &s->xsrq[i], pd, SRQ_LOG_DEPTH,
				   5 + world_pick(w, 6), init.xrcd,
				   &l->cq[s->node]))
			host_die("CREATE_SRQ for XRC refused");
}

static void init_side(struct load *l, struct side *s, unsigned int node,
		      uint8_t type)
{
	struct world *w = l->w;
	struct md *md = l->node[node];
	uint32_t pd = 5 + world_pick(w, 3);
	struct md_qp_init init = {
		.type = type, .pd = pd,
		.sq_log_depth = 2 + world_pick(w, 5),
		.sq_log_stride = 7 + world_pick(w, 4),
		.rq_log_depth = 5, .rq_log_stride = 5 + world_pick(w, 6),
		.rq_threshold = world_pick(w, 33),
		.flags = world_chance(w, 100000) ? QHCA_QP_SIG_ALL : 0,
		.send_cq = &l->cq[node], .recv_cq = &l->cq[node],
	};
	uint8_t *unused;
	uint64_t base;

	s->md = md;
	s->node = node;
	s->type = type;
	s->depth = 1u << init.sq_log_depth;
	s->total = 1 + world_pick(w, l->plan->ops);
	s->recv_len = l->plan->big_ppm ? MAX_BIG : 4 * l->plan->max_len;
	if (type != QHCA_QPT_XRC_INI && l->plan->srq &&
	    world_chance(w, 500000)) {
		md_srq_create(md, &s->srq_room, pd, SRQ_LOG_DEPTH,
			      5 + world_pick(w, 6), 0);
		init.srq = s->srq = &s->srq_room;
	}
	init.flags &= ~QHCA_QP_SIG_ALL;
	if (type == QHCA_QPT_XRC_INI)
		init_xrc(l, s, pd, &init);
	if (md_qp_create(md, &s->qp, &init))
		host_die("CREATE_QP refused");
	init_region(l, s, &s->src, &s->src_model, pd, REGION,
		    QHCA_ACCESS_LOCAL_WRITE);
	init_region(l, s, &s->dst, &s->dst_model, pd,
		    type == QHCA_QPT_UC ? 8 * REGION : REGION,
		    QHCA_ACCESS_LOCAL_WRITE | QHCA_ACCESS_REMOTE_WRITE |
		    QHCA_ACCESS_REMOTE_READ | QHCA_ACCESS_REMOTE_ATOMIC |
		    QHCA_ACCESS_FLUSH_GLOBAL);
	base = RECV_SLOTS * (uint64_t)s->recv_len;
	init_region(l, s, &s->recv, &unused, pd, base,
		    QHCA_ACCESS_LOCAL_WRITE);
	free(unused);
	s->src_ring = (struct claims){ .size = REGION };
	s->dst_ring = (struct claims){ .base = ATOMIC_AREA,
		.size = (type == QHCA_QPT_UC ? 8 * REGION : REGION) -
			ATOMIC_AREA };
}

static void connect_pair(struct load *l, struct side *a, struct side *b)
{
	struct world *w = l->w;
	uint8_t mtu = 1 + world_pick(w, 5);
	struct side *s[2] = { a, b };
	struct md_conn c[2];
	bool v6 = world_chance(w, 300000);

	for (int i = 0; i < 2; i++) {
		/* PSNs near the end of the number space show errors of wrapping. */
		uint32_t psn = world_chance(w, 500000) ?
			       0xffffff - world_pick(w, 40) :
			       world_rand(w) & 0xffffff;

		c[i] = (struct md_conn){
			.sq_psn = psn, .mtu = mtu, .qkey = QKEY,
			.access = QHCA_ACCESS_REMOTE_WRITE |
				  QHCA_ACCESS_REMOTE_READ |
				  QHCA_ACCESS_REMOTE_ATOMIC |
				  QHCA_ACCESS_FLUSH_GLOBAL,
			.timeout = 8 + world_pick(w, 3), .retry_cnt = 7,
			.rnr_retry = 7, .min_rnr_timer = 1 + world_pick(w, 14),
			.max_rd_atomic = 1 + world_pick(w, 16),
		};
		md_av(s[i]->md, &c[i].av, s[!i]->md->mac[5], v6);
		s[i]->mtu = s[i]->type == QHCA_QPT_UD ? 4096 : 128u << mtu;
		s[i]->peer = s[!i];
	}
	for (int i = 0; i < 2; i++) {
		c[i].dest_qpn = s[!i]->qp.qpn;
		c[i].rq_psn = c[!i].sq_psn;
		c[i].max_dest_rd_atomic = c[!i].max_rd_atomic;
		put_le32(&s[i]->ud.dest_qpn, s[!i]->qp.qpn);
		put_le32(&s[i]->ud.qkey, QKEY);
		s[i]->ud.av = c[i].av;
		if (is_xrc(s[i])) {
			md_qp_connect(s[i]->md, &s[i]->tgt, &c[i]);
			c[i].dest_qpn = s[!i]->tgt.qpn;
		}
		md_qp_connect(s[i]->md, &s[i]->qp, &c[i]);
	}
}

static void open_nodes(struct load *l)
{
	load_create_guests(l);
	for (unsigned int h = 0; h < 2; h++) {
		l->node[h] = l->w->host[h];
		md_start(l->node[h], &l->plan->init[h]);
	}
	l->num_nodes = 2;
	load_open_guests(l);
	for (unsigned int n = 0; n < l->num_nodes; n++) {
		md_cq_create(l->node[n], &l->cq[n], 11);
		/* The host domain handles events on behalf of the guests. */
		if (l->plan->odp && (!l->guests || l->node[n] != l->guests->pf))
			l->memory[n].frames =
				md_frames_new(l->node[n], l->plan->frames);
	}
}

void load_setup(struct load *l)
{
	struct world *w = l->w;

	open_nodes(l);
	l->num_pairs = l->plan->pairs;
	for (uint32_t i = 0; i < l->num_pairs; i++) {
		static const uint8_t types[] = {
			QHCA_QPT_RC, QHCA_QPT_RC, QHCA_QPT_RC, QHCA_QPT_UC,
			QHCA_QPT_UD, QHCA_QPT_XRC_INI,
		};
		uint8_t type = types[world_pick(w, l->plan->reliable_only ?
						   3 : sizeof(types))];
		unsigned int node[2] = { 0, 1 };

		load_pick_nodes(l, node);
		for (unsigned int h = 0; h < 2; h++)
			init_side(l, &l->side[i][h], node[h], type);
		connect_pair(l, &l->side[i][0], &l->side[i][1]);
	}
}
