// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Queues in memory: work requests, records, rings, and what the kernel keeps
 * there (protection entries, translation nodes, contexts), of two devices
 * whose queue pairs are connected.
 *
 * An input is a script for one of two villains.  A *process* writes what it
 * wants into its own queues and rings its own doorbell page; it must not kill
 * the device, not have it write anything but its own memory, and not disturb
 * another process, whose queue pair has to work afterwards.  A *kernel* writes
 * anything anywhere, and its devices must survive it.  In some inputs the region
 * that most requests use is on demand.
 */
#include "frame.h"
#include "guard.h"
#include "input.h"
#include "paging.h"
#include "transport/transport.h"


#define PD		1
#define OTHER_PD	2
#define BYSTANDER_PD	7
#define QKEY		0x1234
#define USER_PAGE	1
#define BYSTANDER_PAGE	2
#define LOG_DEPTH	3
#define DEPTH		(1u << LOG_DEPTH)
#define LOG_DEEP	7
#define LOG_STRIDE	7
#define LOG_RSTRIDE	6
#define MAX_OPS		250
#define FAST_PAGES	8u
#define BYSTANDER_LEN	3000u
#define BYSTANDER_ROUNDS 3000

enum { RC, RC_SRQ, UC, UD, GSI, RC_SELF, NUM_QPS };
static const uint8_t qp_type[NUM_QPS] = {
	QHCA_QPT_RC, QHCA_QPT_RC, QHCA_QPT_UC, QHCA_QPT_UD, QHCA_QPT_GSI,
	QHCA_QPT_RC,
};

enum {
	KEY_RW, KEY_READ, KEY_OTHER, KEY_FAST, KEY_MW1, KEY_MW2B, KEY_POOL,
	KEY_DEVMEM, KEY_DMA, KEY_RESERVED, NUM_KEYS
};
#define RW_IOVA		0x10000000ull
#define RW_LEN		(4 * 4096ull)
#define POOL_LEN	(2 * 4096ull)
#define ALL_RIGHTS	(QHCA_ACCESS_LOCAL_WRITE | QHCA_ACCESS_REMOTE_WRITE | \
			 QHCA_ACCESS_REMOTE_READ | QHCA_ACCESS_REMOTE_ATOMIC | \
			 QHCA_ACCESS_FLUSH_GLOBAL | QHCA_ACCESS_MW_BIND)

struct side {
	struct guard *g;
	struct md *md;
	struct md_cq cq, by_cq;
	struct md_srq srq;
	struct md_qp qp[NUM_QPS], by;
	struct md_mr rw, read, other, by_mr;
	uint64_t pool, fast_node, page_list;
	struct paging paging;
	uint32_t key[NUM_KEYS];
};

struct script {
	struct in *in;
	bool kernel, deep;		/* deep: more WQEs than are summarised */
	bool on_demand;			/* the region that most requests use */
	bool raw;			/* the UD QP is a raw packet QP instead */
	uint8_t tamper;			/* the next so many frames */
	struct side side[2];
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
	/* what work requests of its protection domain may change */
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
static void must(int status, const char *what)
{
	if (status)
		guard_fail("%s: command status %d", what, status);
}

static void make_cq(struct side *s, struct md_cq *cq, uint32_t log_depth)
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
	if (raw)
		make_rules(s);
}

static void connect_one(struct side *s, struct md_qp *qp, uint32_t dest_qpn,
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

static void connect_all(struct script *x)
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
}

static void make_side(struct script *x, unsigned int i, uint8_t how)
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

/* ------------------------------------------------------------------------
 * Work requests
 */
static uint32_t pick_key(struct in *in, const struct side *s)
{
	uint8_t how = in_u8(in);

	if (how < 96)
		return s->key[KEY_RW];
	if (how < 250)
		return s->key[how % NUM_KEYS];
	return (uint32_t)in_number(in);
}

static uint64_t pick_address(struct in *in)
{
	switch (in_u8(in) & 7) {
	case 0:
		return in_number(in);
	case 1:
		return RW_IOVA + RW_LEN - in_below(in, 300);
	case 2:
		return in_below(in, GUARD_MEM);
	case 3:
		return RW_IOVA + in_below(in, 16384);
	default:
		return RW_IOVA + 8 * in_below(in, 64);
	}
}

static uint32_t pick_length(struct in *in)
{
	switch (in_u8(in) & 7) {
	case 0:
		return (uint32_t)in_number(in);
	case 1:
		return 0;
	case 2:
		return 8;
	case 3:
		return in_below(in, 4000);
	default:
		return in_below(in, 256);
	}
}

static void pick_sges(struct in *in, const struct side *s, struct md_sge *sge,
		      uint32_t num)
{
	for (uint32_t i = 0; i < num; i++) {
		sge[i].addr = pick_address(in);
		sge[i].len = pick_length(in);
		sge[i].key = pick_key(in, s);
	}
}

static void pick_bind(struct in *in, const struct side *s,
		      struct qhca_wqe_bind *b)
{
	uint32_t window = s->key[in_u8(in) & 1 ? KEY_MW1 : KEY_MW2B];

	put_le64(&b->addr, pick_address(in));
	put_le64(&b->length, pick_length(in));
	put_le32(&b->mr_lkey, pick_key(in, s));
	put_le32(&b->mw_rkey, window);
	put_le32(&b->new_rkey, window);
	put_le32(&b->access, in_word(in, 2) & QHCA_ACCESS_MASK);
}

static void pick_reg(struct in *in, const struct side *s,
		     struct qhca_wqe_reg *r)
{
	put_le64(&r->iova, pick_address(in));
	put_le64(&r->length, pick_length(in));
	put_le64(&r->pages, s->page_list);
	put_le32(&r->key, s->key[KEY_FAST] & ~0xffu);
	put_le32(&r->access, in_word(in, 2) & QHCA_ACCESS_MASK);
	put_le32(&r->num_pages, in_below(in, FAST_PAGES + 2));
	r->page_shift = 12 + (in_u8(in) & 1);
}

static void pick_ud(struct script *x, struct side *s, struct qhca_wqe_ud *ud)
{
	uint8_t how = in_u8(x->in);
	struct side *to = how & 1 ? s : &x->side[s == &x->side[0]];

	put_le32(&ud->dest_qpn, how & 2 ? HCA_QPN_GSI : to->qp[UD].qpn);
	put_le32(&ud->qkey, how & 2 ? HCA_GSI_QKEY : QKEY);
	md_av(s->md, &ud->av, to->md->mac[5], how & 4);
}

/* Overwrite a few bytes of what has just been posted. */
static void spoil(struct script *x, struct side *s, const struct md_buf *b,
		  uint64_t off, uint32_t len)
{
	uint8_t how = in_u8(x->in), value;

	if (how < 160)
		return;
	for (unsigned int n = 1 + how % 6; n > 0; n--) {
		value = in_u8(x->in);
		md_buf_write(s->md, b, off + in_below(x->in, len), &value, 1);
	}
}

static void post_send(struct script *x, struct side *s)
{
	struct side *peer = &x->side[s == &x->side[0]];
	unsigned int q = in_below(x->in, NUM_QPS);
	struct md_qp *qp = &s->qp[q];
	uint8_t data[64] = { 0 };
	struct md_sge sge[4];
	struct qhca_wqe_bind bind = { 0 };
	struct qhca_wqe_reg reg = { 0 };
	struct qhca_wqe_ud ud = { 0 };
	struct md_wr wr = {
		.opcode = in_below(x->in, QHCA_WQE_NUM_OPCODES),
		.flags = in_u8(x->in) & 7, .sge = sge, .wr_id = qp->sq_pi,
		.inline_data = data,
	};
	uint64_t off = qp->sq_offset +
		       ((uint64_t)(qp->sq_pi % (1u << qp->init.sq_log_depth)) <<
			LOG_STRIDE);

	if (q == RC_SELF)
		peer = s;
	if (in_chance(x->in, 32)) {
		wr.flags |= QHCA_WQE_F_INLINE;
		wr.inline_len = in_below(x->in, 65);
	} else {
		wr.num_sge = in_u8(x->in) & 3;
		pick_sges(x->in, s, sge, wr.num_sge);
	}
	wr.imm = pick_key(x->in, wr.opcode == QHCA_WQE_SEND_INV ? peer : s);
	wr.raddr = pick_address(x->in);
	wr.rkey = pick_key(x->in, peer);
	if (wr.opcode == QHCA_WQE_FLUSH) {
		wr.flush_len = in_number(x->in);
		wr.flush_type = in_chance(x->in, 64) ? in_u8(x->in) :
						       QHCA_FLUSH_GLOBAL;
		wr.flush_level = in_below(x->in, 3);
	} else if (wr.opcode == QHCA_WQE_BIND_MW) {
		pick_bind(x->in, s, &bind);
		wr.bind = &bind;
	} else if (wr.opcode == QHCA_WQE_REG_MR) {
		pick_reg(x->in, s, &reg);
		wr.reg = &reg;
	} else if (q == UD || q == GSI) {
		pick_ud(x, s, &ud);
		wr.ud = &ud;
	}
	md_post_send(s->md, qp, &wr);
	spoil(x, s, &qp->buf, off, 1u << LOG_STRIDE);
	if (!in_chance(x->in, 64))
		guard_doorbell(s->g, USER_PAGE, QHCA_DB_SQ,
			       (uint64_t)qp->sq_pi << 32 | qp->qpn);
}

/* Many that are short, and all without a completion. */
static void post_many(struct script *x, struct side *s)
{
	struct md_qp *qp = &s->qp[RC];
	struct md_wr wr = { .opcode = QHCA_WQE_WRITE };

	for (uint32_t n = in_below(x->in, 80); n > 0; n--)
		md_post_send(s->md, qp, &wr);
	guard_doorbell(s->g, USER_PAGE, QHCA_DB_SQ,
		       (uint64_t)qp->sq_pi << 32 | qp->qpn);
}

static void post_recv(struct script *x, struct side *s)
{
	unsigned int q = in_below(x->in, NUM_QPS);
	struct md_qp *qp = &s->qp[q];
	struct md_sge sge[3];
	uint32_t num = 1 + in_below(x->in, 3);
	uint64_t off;

	pick_sges(x->in, s, sge, num);
	if (q == RC_SRQ) {
		off = (uint64_t)s->srq.free << LOG_RSTRIDE;
		md_srq_post(s->md, &s->srq, 0x5000, sge, num);
		s->srq.free %= DEPTH;	/* the list may have been spoilt */
		spoil(x, s, &s->srq.buf, off, 1u << LOG_RSTRIDE);
		return;
	}
	off = qp->rq_offset + ((uint64_t)(qp->rq_pi % DEPTH) << LOG_RSTRIDE);
	md_post_recv(s->md, qp, 0x6000 + qp->rq_pi, sge, num);
	spoil(x, s, &qp->buf, off, 1u << LOG_RSTRIDE);
}

/* ------------------------------------------------------------------------
 * What changes behind the device's back
 */
static uint64_t byte_of(struct script *x, const struct md_buf *b, uint64_t from,
			uint64_t len)
{
	uint64_t off = from + in_below(x->in, (uint32_t)len);

	return b->page[off / MD_PAGE] + off % MD_PAGE;
}

/* A byte that the process may write. */
static uint64_t process_byte(struct script *x, struct side *s)
{
	uint8_t how = in_u8(x->in);
	const struct md_qp *qp = &s->qp[how % NUM_QPS];

	if (how < 96)
		return byte_of(x, &qp->buf, 0, qp->rec_offset);
	if (how < 160)			/* the two pointers, mostly */
		return byte_of(x, &qp->buf, qp->rec_offset, how & 1 ? 8 : 128);
	if (how < 192)
		return byte_of(x, &s->srq.buf, 0, s->srq.rec_offset + 8);
	if (how < 224)
		return byte_of(x, &s->cq.buf, s->cq.rec_offset,
			       how & 1 ? 4 : 128);
	if (how < 240)
		return byte_of(x, &s->cq.buf, 0, s->cq.rec_offset);
	return byte_of(x, &s->rw.buf, 0, RW_LEN);
}

/* A byte of what the kernel keeps for the device. */
static uint64_t kernel_byte(struct script *x, struct side *s)
{
	struct md *md = s->md;
	uint8_t how = in_u8(x->in);

	if (how < 64)
		return md->pt + 64ull * QHCA_FIRST_KEY_INDEX +
		       in_below(x->in, 64 * (NUM_KEYS + 2));
	if (how < 96)			/* nodes, of regions and of queues */
		return (how & 1 ? s->rw.buf.root : how & 2 ? s->cq.buf.root :
			s->qp[how % NUM_QPS].buf.root) + in_below(x->in, 64);
	if (how < 160)
		return md->table[QHCA_TABLE_QP] + 1024 +
		       in_below(x->in, 1024 * (NUM_QPS + 2));
	if (how < 184)
		return md->table[QHCA_TABLE_CQ] + in_below(x->in, 256);
	if (how < 208)
		return md->table[QHCA_TABLE_SRQ] + in_below(x->in, 128);
	if (how < 216)
		return md->table[QHCA_TABLE_EQ] + in_below(x->in, 128);
	if (how < 224)
		return md->eq_rec + in_below(x->in, 128);
	if (how < 236)
		return (how & 1 ? s->page_list : s->fast_node) +
		       in_below(x->in, 8 * FAST_PAGES);
	return in_below(x->in, GUARD_MEM - 8);
}

static uint64_t pick_byte(struct script *x, struct side *s)
{
	return x->kernel && in_chance(x->in, 176) ? kernel_byte(x, s) :
						    process_byte(x, s);
}

static void scribble(struct script *x, struct side *s)
{
	uint64_t at = pick_byte(x, s), v;
	uint8_t how = in_u8(x->in);

	if (how < 128) {
		s->md->mem[at] ^= (uint8_t)(1u << how % 8);
		return;
	}
	v = in_number(x->in);
	for (unsigned int i = 0; i < (how & 3) + 1u && at % 4 + i < 4; i++)
		s->md->mem[at + i] = (uint8_t)(v >> 8 * i);
}

static void change_later(struct script *x, struct side *s)
{
	unsigned int i = in_below(x->in, GUARD_CHANGES);

	s->g->change[i].addr = pick_byte(x, s);
	s->g->change[i].value = in_u8(x->in);
}

/* ------------------------------------------------------------------------
 * Work
 */

/*
 * Whoever is at the other end is in league with the villain: a frame is lost,
 * or another packet.  Not one to the bystander, though, whose peer is not.
 */
static bool tamper(struct script *x, unsigned int i, struct frame *f)
{
	static const uint8_t opcode[] = {
		HCA_OP_ACK, HCA_OP_ATOMIC_ACK, HCA_OP_READ_RESP_ONLY,
		HCA_OP_READ_RESP_FIRST, HCA_OP_READ_RESP_MIDDLE,
		HCA_OP_READ_RESP_LAST, HCA_OP_FLUSH, HCA_OP_ATOMIC_WRITE,
	};
	bool v6 = get_be16(f->data + 12) == HCA_ETHERTYPE_IPV6;
	uint8_t *bth = f->data + 14 + (v6 ? 40 : 20) + 8;
	uint8_t how = in_u8(x->in);

	x->tamper--;
	if (how < 64)
		return false;
	if (how < 128)			/* mostly of the same length */
		bth[0] = (bth[0] & HCA_SVC_MASK) | IN_ONE_OF(x->in, opcode);
	else if (how < 192)
		bth[11] = (uint8_t)(bth[11] + in_u8(x->in) % 8 - 4);
	else
		bth[in_below(x->in, 20)] ^= in_u8(x->in);
	if (how & 1)
		f->len = (size_t)(bth - f->data) + 12 + 4 + 8 + 4;
	frame_fix(f, FRAME_ALL);
	return get_be24(bth + 5) != x->side[!i].by.qpn;
}

static bool exchange(struct script *x, unsigned int i)
{
	const struct guard_frame *sent;
	struct frame f;
	bool any = false;

	/* what comes meanwhile waits for the next round */
	for (unsigned int n = x->side[i].g->num; n > 0; n--) {
		sent = guard_sent(x->side[i].g);
		any = true;
		if (!(sent->data[0] & 1) &&
		    memcmp(sent->data, x->side[!i].md->mac, 6))
			continue;
		f.len = sent->len;
		memset(f.data, 0, 200);
		memcpy(f.data, sent->data, sent->len);
		if (!x->tamper || tamper(x, i, &f))
			guard_rx(x->side[!i].g, f.data, f.len);
	}
	return any;
}

/* One round; the clock goes on to the next timer when both are idle. */
static void pump(struct script *x, unsigned int budget)
{
	uint64_t now = x->side[0].md->now, next = QHCA_NEVER;
	struct qhca_run_result r;
	bool busy = false;

	for (unsigned int i = 0; i < 2; i++) {
		r = guard_run(x->side[i].g, budget);
		busy |= r.more;
		next = r.deadline < next ? r.deadline : next;
	}
	for (unsigned int i = 0; i < 2; i++)
		busy |= exchange(x, i);
	now = busy || next == QHCA_NEVER || next < now ? now + 1000 : next;
	x->side[0].md->now = x->side[1].md->now = now;
}

static void poll_cq(struct script *x, struct side *s)
{
	struct qhca_cqe cqe;
	uint32_t slot;

	for (unsigned int n = 1 + in_below(x->in, 32); n > 0; n--) {
		if (!md_poll(&s->cq, &cqe))
			return;
		slot = get_le32(&cqe.wqe);
		if (get_le32(&cqe.flags) & QHCA_CQE_SRQ && slot < DEPTH)
			md_srq_free(s->md, &s->srq, slot);
		guard_digest(s->g, &cqe, sizeof(cqe));
	}
}

/* The process has but its own page; to the kernel all belong. */
static void doorbell(struct script *x, struct side *s)
{
	uint32_t page = x->kernel ? in_below(x->in, 4) : USER_PAGE;
	uint32_t offset = in_chance(x->in, 32) ? 8 * in_below(x->in, 6) :
						 8 * in_below(x->in, 2);
	uint64_t value = offset ? in_below(x->in, 3) : in_below(x->in, 12);
	uint8_t how = in_u8(x->in);

	if (how & 1)
		value |= QHCA_DB_CQ_SOLICITED;
	value |= (how < 240 ? how >> 2 : in_number(x->in)) << 32;
	guard_doorbell(s->g, page, offset, value);
}

/* What a process may ask its kernel for. */
static void modify(struct script *x, struct side *s)
{
	static const uint8_t to[] = { QHCA_QPS_ERR, QHCA_QPS_SQD, QHCA_QPS_RTS,
				      QHCA_QPS_RESET };
	unsigned int q = in_below(x->in, NUM_QPS);
	struct side *peer = q == RC_SELF ? s : &x->side[s == &x->side[0]];
	struct qhca_modify_qp in = { 0 };
	struct md_qp *qp = &s->qp[q];

	if (in_chance(x->in, 64)) {
		guard_cmd(s->g, QHCA_CMD_QUERY_QP, qp->qpn, 0, NULL, 0);
		return;
	}
	in.ctx.state = IN_ONE_OF(x->in, to);
	put_le32(&in.attr_mask, QHCA_QP_ATTR_STATE);
	guard_cmd(s->g, QHCA_CMD_MODIFY_QP, qp->qpn, 0, &in, sizeof(in));
	if (in.ctx.state != QHCA_QPS_RESET || x->kernel)
		return;
	/* the driver's own part of it, and up again */
	must(md_qp_modify(s->md, qp, QHCA_QPS_RESET, 0, NULL), "to RESET");
	connect_one(s, qp, peer->qp[q].qpn, peer->md->mac[5], 9);
}

static void invalidate(struct script *x, struct side *s)
{
	uint32_t key = s->key[in_below(x->in, NUM_KEYS)];

	if (x->kernel && in_chance(x->in, 128))
		s->g->fail_in = 1 + in_below(x->in, 100);
	else if (x->kernel)
		guard_cmd(s->g, QHCA_CMD_INVALIDATE_KEY, key >> 8,
			  1 + in_below(x->in, 3), NULL, 0);
}

/* A kernel takes things away in the middle of what goes on. */
static void upset(struct script *x, struct side *s)
{
	const struct md_qp *qp = &s->qp[in_below(x->in, NUM_QPS)];

	switch (in_below(x->in, 8)) {
	case 0:
	case 1:
		guard_cmd(s->g, QHCA_CMD_DESTROY_QP, qp->qpn, 0, NULL, 0);
		break;
	case 2:
		guard_cmd(s->g, QHCA_CMD_DESTROY_CQ, in_below(x->in, 4), 0,
			  NULL, 0);
		break;
	case 3:
		guard_cmd(s->g, QHCA_CMD_DESTROY_SRQ, in_below(x->in, 2), 0,
			  NULL, 0);
		break;
	case 4:
		guard_cmd(s->g, QHCA_CMD_DESTROY_EQ, 0, 0, NULL, 0);
		break;
	case 5:
		s->g->reset_in = 1 + in_below(x->in, 100);
		break;
	case 6:
		guard_reg_write(s->g, QHCA_REG_CONTROL, QHCA_CONTROL_RESET);
		break;
	default:
		qhca_inject_fatal(s->g->hca);
		break;
	}
}

static void step(struct script *x)
{
	uint8_t op = in_u8(x->in);
	struct side *s = &x->side[op & 1];

	if (x->on_demand && op % 8 >= 6)
		paging_step(&s->paging, x->in);
	else if (op < 68)
		post_send(x, s);
	else if (op < 72)
		post_many(x, s);
	else if (op < 104)
		post_recv(x, s);
	else if (op < 110)
		x->tamper = 1 + in_below(x->in, 8);
	else if (op < 144)
		scribble(x, s);
	else if (op < 160)
		change_later(x, s);
	else if (op < 216)
		pump(x, 1 + in_below(x->in, 48));
	else if (op < 228)
		poll_cq(x, s);
	else if (op < 240)
		doorbell(x, s);
	else if (op < 250)
		modify(x, s);
	else if (op < 254 || !x->kernel)
		invalidate(x, s);
	else
		upset(x, s);
}

/* ------------------------------------------------------------------------
 * The other process
 */
static uint8_t pattern(uint32_t i)
{
	return (uint8_t)(i * 7 + 3);
}

static bool poll_ok(struct md_cq *cq, const char *what)
{
	struct qhca_cqe cqe;

	if (!md_poll(cq, &cqe))
		return false;
	if (cqe.status)
		guard_fail("the bystander's %s ends with status %u", what,
			   cqe.status);
	return true;
}

static void check_bystander(struct script *x)
{
	struct side *from = &x->side[0], *to = &x->side[1];
	struct md_sge gather = { RW_IOVA, BYSTANDER_LEN, from->by_mr.key };
	struct md_sge scatter = { RW_IOVA, BYSTANDER_LEN, to->by_mr.key };
	struct md_wr wr = { .opcode = QHCA_WQE_SEND, .num_sge = 1,
			    .sge = &gather, .flags = QHCA_WQE_F_SIGNALED };
	uint8_t data[BYSTANDER_LEN];
	bool sent = false, got = false;

	for (uint32_t i = 0; i < BYSTANDER_LEN; i++)
		data[i] = pattern(i);
	md_buf_write(from->md, &from->by_mr.buf, 0, data, sizeof(data));
	md_post_recv(to->md, &to->by, 2, &scatter, 1);
	md_post_send(from->md, &from->by, &wr);
	guard_doorbell(from->g, BYSTANDER_PAGE, QHCA_DB_SQ,
		       (uint64_t)from->by.sq_pi << 32 | from->by.qpn);
	for (int i = 0; i < BYSTANDER_ROUNDS && !(sent && got); i++) {
		pump(x, 64);
		sent |= poll_ok(&from->by_cq, "send");
		got |= poll_ok(&to->by_cq, "receive");
	}
	if (!sent || !got)
		guard_fail("the bystander starves: %d %d", sent, got);
	md_buf_read(to->md, &to->by_mr.buf, 0, data, sizeof(data));
	for (uint32_t i = 0; i < BYSTANDER_LEN; i++)
		if (data[i] != pattern(i))
			guard_fail("the bystander's data are wrong at %u", i);
}

static void check_not_dead(struct script *x)
{
	for (unsigned int i = 0; i < 2; i++)
		if (hca_is_dead(&x->side[i].g->hca->pf))
			guard_fail("a process killed the device: STATUS %#x, info %#x",
				   x->side[i].g->hca->pf.status,
				   x->side[i].g->hca->pf.fatal_info);
}

uint64_t fuzz_one(const uint8_t *data, size_t size)
{
	static struct script x;
	struct in in = { data, data + size };
	uint64_t digest = 0;
	uint8_t how = in_u8(&in);

	x.in = &in;
	x.kernel = how & 1;
	x.deep = how & 0x80;
	x.on_demand = how & 0x40;
	x.raw = !(how & 0x20);
	x.tamper = 0;
	make_side(&x, 0, how);
	make_side(&x, 1, how >> 2);
	connect_all(&x);
	for (int i = 0; i < MAX_OPS && in_more(&in); i++) {
		step(&x);
		if (!x.kernel)
			check_not_dead(&x);
	}
	for (unsigned int i = 0; i < 2; i++)
		memset(x.side[i].g->change, 0, sizeof(x.side[i].g->change));
	x.tamper = 0;
	if (!x.kernel)
		check_bystander(&x);
	for (unsigned int i = 0; i < 2; i++) {
		guard_check_alive(x.side[i].g);
		digest = digest * 31 + x.side[i].g->digest;
	}
	for (unsigned int i = 0; i < 2; i++)
		guard_give(x.side[i].g);
	return digest;
}
