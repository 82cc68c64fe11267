// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Two devices with keys and queues, and their queue pairs connected. */
#include "wqe_script.h"

static const uint8_t qp_type[NUM_QPS] = {
	QHCA_QPT_RC, QHCA_QPT_RC, QHCA_QPT_UC, QHCA_QPT_UD, QHCA_QPT_GSI,
	QHCA_QPT_RC,
};

/* ------------------------------------------------------------------------
 * Memory
 */
static void add_key(struct side *s, unsigned int which, uint32_t type,
		    uint32_t state, const struct qhca_pte *from)
{
	uint32_t index = s->md->next_key++;
	struct qhca_pte pte = *from;

	s->key[which] = index << 8 | (0x50 + which);
	put_le32(&pte.ctrl, get_le32(&pte.ctrl) | state | type << 4 |
			    (0x50 + which) << 8);
	put_le32(&pte.pd, which == KEY_DMA ? OTHER_PD : PD);
	put_le32(&pte.at_key, index);
	md_pte_write(s->md, index, &pte);
	/* Work requests of its protection domain may change this memory. */
	if (which != KEY_DMA)
		guard_allow(s->g, s->md->pt + 64ull * index, 64);
}

static void add_fast_reg(struct side *s)
{
	struct qhca_pte pte = { 0 };

	s->fast_node = md_alloc(s->md, 8 * FAST_PAGES, 64);
	s->page_list = md_alloc(s->md, 8 * FAST_PAGES, 64);
	for (uint32_t i = 0; i < FAST_PAGES; i++)
		put_le64(md_ptr(s->md, s->page_list + 8 * i),
			 s->rw.buf.page[i % s->rw.buf.num_pages]);
	put_le32(&pte.ctrl, 1u << 24 | 12u << 16 | QHCA_PTE_REMOTE_INV);
	put_le64(&pte.at_base, s->fast_node);
	put_le32(&pte.pool_block, FAST_PAGES);
	add_key(s, KEY_FAST, QHCA_PTE_FAST_REG, QHCA_PTE_INVALIDATED, &pte);
}

static void add_pool(struct side *s)
{
	struct qhca_pool_row row = { 0 };
	struct qhca_pte pte = { 0 };

	s->pool = md_alloc(s->md, POOL_LEN, MD_PAGE);
	put_le64(&row.addr, s->pool);
	put_le64(&row.length, POOL_LEN);
	md_cmd(s->md, QHCA_CMD_MAP_POOL_BLOCK, 1, 0, &row, sizeof(row), NULL, 0,
	       NULL);
	put_le32(&pte.access, ALL_RIGHTS);
	put_le64(&pte.start, RW_IOVA);
	put_le64(&pte.length, POOL_LEN - 64);
	put_le64(&pte.at_base, 64);
	put_le32(&pte.pool_block, 1);
	add_key(s, KEY_POOL, QHCA_PTE_POOL, QHCA_PTE_VALID, &pte);
	md_cmd(s->md, QHCA_CMD_MAP_POOL_KEY, s->key[KEY_POOL] >> 8, 0, NULL, 0,
	       NULL, 0, NULL);
	guard_allow(s->g, s->pool, POOL_LEN);
}

static void add_keys(struct side *s)
{
	struct qhca_pte pte = { 0 };

	put_le32(&pte.ctrl, QHCA_PTE_REMOTE_INV);
	add_key(s, KEY_MW1, QHCA_PTE_MW1, QHCA_PTE_INVALIDATED, &pte);
	add_key(s, KEY_MW2B, QHCA_PTE_MW2B, QHCA_PTE_INVALIDATED, &pte);
	add_fast_reg(s);
	add_pool(s);
	memset(&pte, 0, sizeof(pte));
	put_le32(&pte.access, ALL_RIGHTS);
	put_le64(&pte.start, RW_IOVA);
	put_le64(&pte.length, GUARD_DEVMEM);
	add_key(s, KEY_DEVMEM, QHCA_PTE_DEVMEM, QHCA_PTE_VALID, &pte);
	put_le64(&pte.start, 0);
	put_le64(&pte.length, UINT64_MAX);
	add_key(s, KEY_DMA, QHCA_PTE_DMA, QHCA_PTE_VALID, &pte);
	s->key[KEY_RESERVED] = QHCA_RESERVED_LKEY;
}

static void make_memory(struct side *s)
{
	md_reg_mr(s->md, &s->rw, PD, RW_IOVA, RW_LEN, ALL_RIGHTS);
	md_reg_mr(s->md, &s->read, PD, RW_IOVA, RW_LEN,
		  QHCA_ACCESS_REMOTE_READ | QHCA_ACCESS_MW_BIND);
	md_reg_mr(s->md, &s->other, OTHER_PD, RW_IOVA, RW_LEN, ALL_RIGHTS);
	md_reg_mr(s->md, &s->by_mr, BYSTANDER_PD, RW_IOVA, RW_LEN, ALL_RIGHTS);
	s->key[KEY_RW] = s->rw.key;
	s->key[KEY_READ] = s->read.key;
	s->key[KEY_OTHER] = s->other.key;
	guard_allow_buf(s->g, &s->rw.buf, 0, RW_LEN);
	guard_allow_buf(s->g, &s->by_mr.buf, 0, RW_LEN);
	guard_allow(s->g, s->md->pt + 64ull * (s->rw.key >> 8), 64);
	guard_allow(s->g, s->md->pt + 64ull * (s->read.key >> 8), 64);
	add_keys(s);
}

/* ------------------------------------------------------------------------
 * Queues
 */
void must(int status, const char *what)
{
	if (status)
		guard_fail("%s: command status %d", what, status);
}

void make_cq(struct side *s, struct md_cq *cq, uint32_t log_depth)
{
	md_cq_create(s->md, cq, log_depth);
	guard_allow_buf(s->g, &cq->buf, 0, 64u << log_depth);
	guard_allow_buf(s->g, &cq->buf, cq->rec_offset + 64, 64);
}

static void make_qp(struct side *s, struct md_qp *qp, uint8_t type,
		    uint16_t flags, uint8_t log_depth, uint32_t pd,
		    uint32_t page, struct md_cq *cq, struct md_srq *srq)
{
	struct md_qp_init init = {
		.type = type, .flags = flags, .sq_log_depth = log_depth,
		.sq_log_stride = LOG_STRIDE, .rq_log_depth = LOG_DEPTH,
		.rq_log_stride = LOG_RSTRIDE, .pd = pd, .db_page = page,
		.send_cq = cq, .recv_cq = cq, .srq = srq,
	};

	must(md_qp_create(s->md, qp, &init), "CREATE_QP");
	guard_allow_buf(s->g, &qp->buf, qp->rec_offset + 64, 64);
}

/* The raw packet QP has copies of all frames, and those that are nobody's. */
static void make_rules(struct side *s)
{
	static const uint8_t type[] = { QHCA_FLOW_NORMAL, QHCA_FLOW_SNIFFER };
	struct qhca_flow rule = { 0 };

	put_le32(&rule.qpn, s->qp[UD].qpn);
	for (uint32_t i = 0; i < sizeof(type); i++) {
		rule.type = type[i];
		must(md_cmd(s->md, QHCA_CMD_CREATE_FLOW, i, 0, &rule,
			    sizeof(rule), NULL, 0, NULL), "CREATE_FLOW");
	}
}

static void make_queues(struct side *s, bool kernel, bool deep, bool raw)
{
	make_cq(s, &s->cq, deep ? 8 : 5);
	make_cq(s, &s->by_cq, 4);
	md_srq_create(s->md, &s->srq, PD, LOG_DEPTH, LOG_RSTRIDE, 2);
	for (unsigned int q = 0; q < NUM_QPS; q++)
		make_qp(s, &s->qp[q], raw && q == UD ? QHCA_QPT_RAW : qp_type[q],
			(kernel && q & 1 ? QHCA_QP_KERNEL : 0) |
			(q == UC ? QHCA_QP_SIG_ALL : 0),
			deep && q == RC ? LOG_DEEP : LOG_DEPTH, PD, USER_PAGE,
			&s->cq, q == RC_SRQ ? &s->srq : NULL);
	make_qp(s, &s->by, QHCA_QPT_RC, 0, LOG_DEPTH, BYSTANDER_PD,
		BYSTANDER_PAGE, &s->by_cq, NULL);
	make_limits(s);
	if (raw)
		make_rules(s);
}

void connect_one(struct side *s, struct md_qp *qp, uint32_t dest_qpn,
		 unsigned int dest_host, uint8_t timeout)
{
	struct md_conn c = {
		.dest_qpn = dest_qpn, .sq_psn = 0xfffff8, .rq_psn = 0xfffff8,
		.qkey = QKEY, .access = ALL_RIGHTS, .mtu = QHCA_MTU_256,
		.timeout = timeout, .retry_cnt = 7, .rnr_retry = 7,
		.min_rnr_timer = 1, .max_rd_atomic = 2,
		.max_dest_rd_atomic = 2,
	};

	md_av(s->md, &c.av, dest_host, false);
	md_qp_connect(s->md, qp, &c);
}

void connect_all(struct script *x)
{
	for (unsigned int i = 0; i < 2; i++) {
		struct side *s = &x->side[i], *to = &x->side[!i];

		for (unsigned int q = 0; q < NUM_QPS; q++) {
			if (q == RC_SELF)
				to = s;
			connect_one(s, &s->qp[q], to->qp[q].qpn,
				    to->md->mac[5], 9);
		}
		to = &x->side[!i];
		connect_one(s, &s->by, to->by.qpn, to->md->mac[5], 10);
	}
	connect_limits(x, 0x100);
}

void make_side(struct script *x, unsigned int i, uint8_t how)
{
	struct md_init init = { .eth_mtu = 4200, .log_pt = 8, .log_qp = 5,
				.log_cq = 4, .log_srq = 3,
				.scatter = how & 2 || x->on_demand };
	struct side *s = &x->side[i];

	memset(s, 0, sizeof(*s));
	s->g = guard_take(1 + i);
	s->md = s->g->md;
	if (how & 4)
		for (int c = 0; c < QHCA_NUM_CACHES; c++)
			init.cache[c] = (struct qhca_geometry){ 1, 1 };
	md_start(s->md, &init);
	guard_allow_driver(s->g);
	make_memory(s);
	make_queues(s, x->kernel, x->deep, x->raw);
	if (x->on_demand)
		paging_start(&s->paging, s->g, &s->rw);
	s->g->anything = x->kernel;
	s->g->ours = true;
}
