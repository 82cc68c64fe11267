/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "upset.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ACCESS	(QHCA_ACCESS_LOCAL_WRITE | QHCA_ACCESS_REMOTE_WRITE | \
		 QHCA_ACCESS_REMOTE_READ)
#define IOVA	0x7f0000000000ull
#define GRH	40u			/* bytes before a datagram's */
#define HEAD	8u			/* a message begins with its seed */
#define MAX_SLOT 4096u
#define LOG_EQ	2			/* full soon, so that events are held */
#define EQ_REC	256u

/* ---- memory */

void give_back(struct node *n, const struct md_buf *b)
{
	for (uint32_t i = 0; i < b->num_pages; i++) {
		if (n->num_given == MAX_GIVEN)
			host_die("too many pages are given back");
		memset(md_ptr(n->md, b->page[i]), CANARY, MD_PAGE);
		n->given[n->num_given++] = b->page[i];
	}
}

bool check_given(struct upset *u, unsigned int host)
{
	struct node *n = &u->node[host];

	for (uint32_t i = 0; i < n->num_given; i++) {
		const uint8_t *p = md_ptr(n->md, n->given[i]);

		if (p[0] != CANARY || memcmp(p, p + 1, MD_PAGE - 1))
			return UPSET_FAIL(u, "host %u: page %#llx was written after it was given back",
					  host, (unsigned long long)n->given[i]);
	}
	return true;
}

void upset_fill(uint64_t seed, uint8_t *p, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++) {
		if (i % 8 == 0)
			seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		p[i] = seed >> (8 * (i % 8));
	}
}

static uint32_t slot_off(const struct conn *c, enum area area, uint32_t slot)
{
	return (area * SLOTS + slot) * c->slot_len;
}

static uint64_t slot_addr(const struct conn *c, const struct half *h,
			  enum area area, uint32_t slot)
{
	return h->mr.iova + slot_off(c, area, slot);
}

/* A message of @seed in a slot: the seed, and what follows from it. */
static void put_message(struct upset *u, struct conn *c, unsigned int host,
			enum area area, uint32_t slot, uint64_t seed)
{
	struct half *h = &c->half[host];
	uint8_t bytes[MAX_SLOT];

	put_le64(bytes, seed);
	upset_fill(seed, bytes + HEAD, c->slot_len - HEAD);
	md_buf_write(u->node[host].md, &h->mr.buf, slot_off(c, area, slot),
		     bytes, c->slot_len);
}

/* Are @len bytes of a slot those of @seed?  0: of the seed that they begin with. */
static bool message_is(struct upset *u, struct conn *c, unsigned int host,
		       enum area area, uint32_t slot, uint32_t skip,
		       uint64_t seed, uint32_t len)
{
	uint8_t got[MAX_SLOT], want[MAX_SLOT];

	md_buf_read(u->node[host].md, &c->half[host].mr.buf,
		    slot_off(c, area, slot) + skip, got, len);
	if (!seed)
		seed = get_le64(got);
	put_le64(want, seed);
	upset_fill(seed, want + HEAD, c->slot_len - HEAD);
	return !memcmp(got, want, len);
}

/* ---- opening */

static uint64_t static_seed(const struct half *h, uint32_t slot)
{
	return (uint64_t)h->memory << 32 | 0x80000000u | slot;
}

void conn_region(struct upset *u, struct conn *c, unsigned int host)
{
	struct half *h = &c->half[host];
	struct node *n = &u->node[host];
	uint32_t len = NUM_AREAS * SLOTS * c->slot_len;

	h->memory++;
	if (c->kind == PAGING) {
		h->odp = md_odp_reg(n->md, n->frames, UPSET_PD, IOVA, len,
				    ACCESS);
		h->mr = h->odp->mr;
	} else {
		md_reg_mr(n->md, &h->mr, UPSET_PD, IOVA, len, ACCESS);
	}
	for (uint32_t i = 0; i < SLOTS; i++)
		put_message(u, c, host, READ_FROM, i, static_seed(h, i));
}

/* A key for REG_MR of one page, that is not valid yet. */
static void make_fast_key(struct upset *u, struct conn *c, unsigned int host)
{
	struct md *md = u->node[host].md;
	struct half *h = &c->half[host];
	uint32_t index = md->next_key++;
	struct qhca_pte pte = { 0 };

	put_le32(&pte.ctrl, QHCA_PTE_INVALIDATED | QHCA_PTE_FAST_REG << 4 |
			    12u << 16 | 1u << 24);
	put_le32(&pte.pd, UPSET_PD);
	put_le32(&pte.at_key, index);
	put_le64(&pte.at_base, md_alloc(md, 4096, 64));
	put_le32(&pte.pool_block, 1);	/* pages that it can have */
	md_pte_write(md, index, &pte);
	h->fast_key = index << 8;
	h->list = md_alloc(md, 64, 64);
}

/* ---- event queues */

static void open_eq(struct upset *u, struct conn *c, unsigned int host)
{
	struct half *h = &c->half[host];
	struct md *md = u->node[host].md;
	struct qhca_eqc_sw in = { .log_depth = LOG_EQ };

	md_buf_alloc(md, &h->eq, MD_PAGE);
	put_le64(&in.buf.base, h->eq.page[0]);
	put_le32(&in.buf.length, MD_PAGE);
	in.buf.page_shift = 12;
	put_le32(&in.rec_offset, EQ_REC);
	put_le16(&in.vector, 1);
	if (md_cmd(md, QHCA_CMD_CREATE_EQ, 1 + c->kind, 0, &in, sizeof(in),
		   NULL, 0, NULL))
		host_die("CREATE_EQ refused");
	h->eq_live = true;
	h->eq_ci = 0;
}

bool half_close_eq(struct upset *u, struct conn *c, unsigned int host)
{
	struct half *h = &c->half[host];

	if (md_cmd(u->node[host].md, QHCA_CMD_DESTROY_EQ, 1 + c->kind, 0, NULL,
		   0, NULL, 0, NULL))
		return UPSET_FAIL(u, "DESTROY_EQ refused");
	h->eq_live = false;
	give_back(&u->node[host], &h->eq);
	return true;
}

/* Checks that events are of the present CQ, and of none that has been destroyed. */
static bool poll_eq(struct upset *u, struct conn *c, unsigned int host)
{
	struct half *h = &c->half[host];
	struct md *md = u->node[host].md;
	uint32_t ci = h->eq_ci;

	for (;; h->eq_ci++) {
		const struct qhca_eqe *e =
			md_ptr(md, h->eq.page[0] +
			       64 * (h->eq_ci & ((1u << LOG_EQ) - 1)));
		bool phase = !(h->eq_ci >> LOG_EQ & 1);

		if (!!(get_le32(&e->phase) & QHCA_PHASE) != phase)
			break;
		if (e->type != QHCA_EVENT_COMPLETION ||
		    get_le32(&e->number) != h->cq.cqn)
			return UPSET_FAIL(u, "host %u kind %u: event %u of %u, not of CQ %u",
					  host, c->kind, e->type,
					  get_le32(&e->number), h->cq.cqn);
	}
	if (h->eq_ci == ci)
		return true;
	put_le32(md_ptr(md, h->eq.page[0] + EQ_REC), h->eq_ci);
	qhca_doorbell(md->host.hca, 0, 0, QHCA_DB_EQ_ARM,
		      (uint64_t)h->eq_ci << 32 | (1 + c->kind), host_clock(&md->host));
	return true;
}

/* ---- multicast */

static const uint8_t group[16] = { [10] = 0xff, 0xff, 239, 1, 2, 3 };

bool conn_member(struct upset *u, struct conn *c, unsigned int host, bool member)
{
	struct half *h = &c->half[host];

	if (h->member == member)
		return true;
	h->member = member;
	return !md_cmd(u->node[host].md, member ? QHCA_CMD_ATTACH_MCAST :
						  QHCA_CMD_DETACH_MCAST,
		       h->qp.qpn, 0, group, 16, NULL, 0, NULL) ||
	       UPSET_FAIL(u, "host %u: %s of a group refused", host,
			  member ? "attach" : "detach");
}

static void to_group(struct qhca_wqe_ud *ud)
{
	static const uint8_t mac[6] = { 0x01, 0x00, 0x5e, 1, 2, 3 };

	memcpy(ud->av.dgid, group, 16);
	memcpy(ud->av.dmac, mac, 6);
	put_le32(&ud->dest_qpn, 0xffffff);
}

/* ---- halves */

void half_open(struct upset *u, struct conn *c, unsigned int host)
{
	struct half *h = &c->half[host];
	struct md *md = u->node[host].md;
	struct md_qp_init init = {
		.type = c->kind == DATAGRAM ? QHCA_QPT_UD : QHCA_QPT_RC,
		.pd = UPSET_PD, .flags = c->kind == KERNEL ? QHCA_QP_KERNEL : 0,
		.sq_log_depth = 4, .sq_log_stride = 7, .rq_log_depth = 4,
		.rq_log_stride = 5, .send_cq = &h->cq, .recv_cq = &h->cq,
	};

	if (!h->eq_live)
		open_eq(u, c, host);
	md->cq_eqn = 1 + c->kind;
	md_cq_create(md, &h->cq, 6 + world_pick(&u->w, 2));
	h->next_log = 0;
	if (c->kind == RC_SRQ) {
		md_srq_create(md, &h->srq, UPSET_PD, 5, 6, 0);
		init.srq = &h->srq;
	}
	if (md_qp_create(md, &h->qp, &init))
		host_die("CREATE_QP refused");
	h->live = true;
	h->connected = h->member = false;
	if (c->kind == DATAGRAM && !conn_member(u, c, host, true))
		host_die("%s", u->error);
}

void node_open(struct upset *u, unsigned int host)
{
	struct node *n = &u->node[host];

	n->up = true;
	n->num_given = 0;
	n->frames = md_frames_new(n->md, NUM_FRAMES);
	for (int k = 0; k < NUM_CONNS; k++) {
		half_open(u, &u->conn[k], host);
		conn_region(u, &u->conn[k], host);
	}
	eth_open(u, host);
}

void conn_connect(struct upset *u, struct conn *c)
{
	uint32_t psn[2] = { world_rand(&u->w) & 0xffffff,
			    world_rand(&u->w) & 0xffffff };

	for (unsigned int i = 0; i < 2; i++) {
		/* The test does not know whether the last key is valid. */
		if (c->kind == KERNEL)
			make_fast_key(u, c, i);
	}
	for (unsigned int i = 0; i < 2; i++) {
		struct md_conn attr = {
			.dest_qpn = c->half[!i].qp.qpn, .sq_psn = psn[i],
			.rq_psn = psn[!i], .mtu = QHCA_MTU_1024,
			.qkey = UPSET_QKEY, .access = ACCESS, .timeout = 8,
			.retry_cnt = 6, .rnr_retry = 6, .min_rnr_timer = 1,
			.max_rd_atomic = 4, .max_dest_rd_atomic = 4,
		};

		md_av(u->node[i].md, &attr.av, !i + 1, false);
		md_qp_connect(u->node[i].md, &c->half[i].qp, &attr);
		c->half[i].connected = true;
	}
	c->hurt = c->broken = false;
}

/* ---- closing */

bool half_forget(struct upset *u, struct conn *c, unsigned int host)
{
	struct half *h = &c->half[host];

	/* Earlier completions are still in the CQ, and no more arrive. */
	if (!conn_poll(u, c, host))
		return false;
	h->connected = false;
	h->gen++;
	memset(h->out, 0, sizeof(h->out));
	memset(h->in, 0, sizeof(h->in));
	return true;
}

bool half_close(struct upset *u, struct conn *c, unsigned int host)
{
	struct half *h = &c->half[host];
	struct node *n = &u->node[host];

	if (md_cmd(n->md, QHCA_CMD_DESTROY_CQ, h->cq.cqn, 0, NULL, 0, NULL, 0,
		   NULL) != QHCA_CMD_IN_USE)
		return UPSET_FAIL(u, "a CQ goes though its QP is there");
	if (md_qp_destroy(n->md, &h->qp))
		return UPSET_FAIL(u, "DESTROY_QP refused");
	h->live = false;
	give_back(n, &h->qp.buf);
	if (!half_forget(u, c, host))
		return false;
	if (md_cmd(n->md, QHCA_CMD_DESTROY_CQ, h->cq.cqn, 0, NULL, 0, NULL, 0,
		   NULL))
		return UPSET_FAIL(u, "DESTROY_CQ refused");
	give_back(n, &h->cq.buf);
	/* Earlier events of the CQ may still be in the EQ, and no more arrive. */
	if (!poll_eq(u, c, host))
		return false;
	if (c->kind != RC_SRQ)
		return true;
	if (md_cmd(n->md, QHCA_CMD_DESTROY_SRQ, h->srq.srqn, 0, NULL, 0, NULL,
		   0, NULL))
		return UPSET_FAIL(u, "DESTROY_SRQ refused");
	give_back(n, &h->srq.buf);
	return true;
}

void conn_resize_cq(struct upset *u, struct conn *c, unsigned int host)
{
	struct half *h = &c->half[host];
	struct md *md = u->node[host].md;
	struct qhca_cqc_sw in = { 0 };

	if (h->next_log)
		/* Software has not found the marker yet. */
		return;
	h->next_log = 6 + world_pick(&u->w, 3);
	h->next_rec = 64u << h->next_log;
	md_buf_alloc(md, &h->next_buf, h->next_rec + 128);
	put_le64(&in.buf.base, h->next_buf.root);
	put_le32(&in.buf.length, h->next_buf.len);
	in.buf.page_shift = 12;
	in.buf.levels = h->next_buf.levels;
	put_le32(&in.rec_offset, h->next_rec);
	put_le32(&in.threshold, 1u << h->next_log >> 1);
	in.log_depth = h->next_log;
	if (md_cmd(md, QHCA_CMD_MODIFY_CQ, h->cq.cqn, QHCA_CQ_ATTR_RESIZE, &in,
		   sizeof(in), NULL, 0, NULL))
		host_die("MODIFY_CQ refused");
}

/*
 * The marker: the completions go on in the new ring, and the driver frees the old one.
 */
static void resized(struct upset *u, struct half *h, unsigned int host,
		    uint32_t next)
{
	struct md_buf old = h->cq.buf;

	h->cq.buf = h->next_buf;
	h->cq.rec_offset = h->next_rec;
	h->cq.log_depth = h->next_log;
	h->cq.ci = next;
	h->next_log = 0;
	md_buf_put32(u->node[host].md, &h->cq.buf, h->cq.rec_offset, next);
	give_back(&u->node[host], &old);
}

/* ---- requests */

static int free_slot(const struct req *r)
{
	for (uint32_t i = 0; i < SLOTS; i++)
		if (!r[i].busy)
			return (int)i;
	return -1;
}

uint32_t conn_outstanding(const struct conn *c, unsigned int host, bool recv)
{
	const struct req *r = recv ? c->half[host].in : c->half[host].out;
	uint32_t n = 0;

	for (uint32_t i = 0; i < SLOTS; i++)
		n += r[i].busy;
	return n;
}

static uint64_t wr_id_of(const struct half *h, bool recv, uint32_t slot)
{
	return (uint64_t)h->gen << 32 | (recv ? 0x100 : 0) | slot;
}

/* false: no room. */
static bool post_recv(struct upset *u, struct conn *c, unsigned int host)
{
	struct half *h = &c->half[host];
	struct md *md = u->node[host].md;
	int slot = free_slot(h->in);
	struct md_sge sge = { .len = c->slot_len, .key = h->mr.key };

	if (slot < 0)
		return false;
	sge.addr = slot_addr(c, h, RECV_TO, slot);
	if (c->kind == RC_SRQ) {
		if (!md_srq_post(md, &h->srq, wr_id_of(h, true, slot), &sge, 1))
			return false;
	} else {
		md_post_recv(md, &h->qp, wr_id_of(h, true, slot), &sge, 1);
	}
	h->in[slot] = (struct req){ .busy = true };
	return true;
}

static void post_one(struct upset *u, struct conn *c, unsigned int host,
		     uint32_t slot, uint8_t opcode, bool silent)
{
	struct half *h = &c->half[host], *peer = &c->half[!host];
	bool read = opcode == QHCA_WQE_READ;
	uint32_t room = c->slot_len - (c->kind == DATAGRAM ? GRH : 0);
	struct req *r = &h->out[slot];
	struct qhca_wqe_ud ud = { 0 };
	struct md_sge sge = {
		.addr = slot_addr(c, h, read ? READ_TO : SEND_FROM, slot),
		.len = HEAD + world_pick(&u->w, room - HEAD + 1),
		.key = h->mr.key,
	};
	struct md_wr wr = {
		.opcode = opcode, .flags = silent ? 0 : QHCA_WQE_F_SIGNALED,
		.wr_id = wr_id_of(h, false, slot), .num_sge = 1, .sge = &sge,
		.raddr = slot_addr(c, peer, read ? READ_FROM : WRITE_TO, slot),
		.rkey = peer->mr.key,
	};

	*r = (struct req){
		.busy = true, .silent = silent, .opcode = opcode,
		.len = sge.len, .memory = peer->memory, .order = ++u->serial,
		.seed = read ? static_seed(peer, slot) : ++u->serial,
	};
	if (!read)
		put_message(u, c, host, SEND_FROM, slot, r->seed);
	if (c->kind == DATAGRAM) {
		md_av(u->node[host].md, &ud.av, !host + 1, false);
		put_le32(&ud.dest_qpn, peer->qp.qpn);
		put_le32(&ud.qkey, UPSET_QKEY);
		if (peer->member && world_pick(&u->w, 2))
			to_group(&ud);
		wr.ud = &ud;
	}
	md_post_send(u->node[host].md, &h->qp, &wr);
}

#define BURST	5u			/* a registration, writes, its end */

/* The request at the ends of a burst that has no message. */
static void post_local(struct upset *u, struct conn *c, unsigned int host,
		       uint32_t slot, struct md_wr *wr)
{
	struct half *h = &c->half[host];

	wr->wr_id = wr_id_of(h, false, slot);
	h->out[slot] = (struct req){
		.busy = true, .silent = !wr->flags, .opcode = wr->opcode,
		.order = ++u->serial,
	};
	md_post_send(u->node[host].md, &h->qp, wr);
}

/*
 * A kernel consumer's: register a page, write a few times, and invalidate the key,
 * which alone is signalled.
 */
static bool post_registered(struct upset *u, struct conn *c, unsigned int host)
{
	struct half *h = &c->half[host];
	struct md *md = u->node[host].md;
	struct qhca_wqe_reg reg = { .page_shift = 12 };
	struct md_wr wr = { .opcode = QHCA_WQE_REG_MR, .reg = &reg };
	uint32_t slot[BURST], n = 0;

	for (uint32_t i = 0; i < SLOTS; i++) {
		if (h->out[i].opcode == QHCA_WQE_LOCAL_INV && h->out[i].busy)
			return false;	/* the key is in use */
		if (!h->out[i].busy && n < BURST)
			slot[n++] = i;
	}
	if (n < BURST)
		return false;
	h->fast_key = (h->fast_key & ~0xffu) | ((h->fast_key + 1) & 0xff);
	put_le64(md_ptr(md, h->list), h->mr.buf.page[0]);
	put_le64(&reg.iova, IOVA);
	put_le64(&reg.length, MD_PAGE);
	put_le64(&reg.pages, h->list);
	put_le32(&reg.key, h->fast_key);
	put_le32(&reg.num_pages, 1);
	put_le32(&reg.access, ACCESS);
	post_local(u, c, host, slot[0], &wr);
	for (uint32_t i = 1; i < BURST - 1; i++)
		post_one(u, c, host, slot[i], QHCA_WQE_WRITE, true);
	wr.opcode = QHCA_WQE_LOCAL_INV;
	wr.flags = QHCA_WQE_F_SIGNALED;
	wr.imm = h->fast_key;
	post_local(u, c, host, slot[BURST - 1], &wr);
	return true;
}

/* Until the queue is full, or the peer has no receive left. */
void conn_post(struct upset *u, struct conn *c, unsigned int host)
{
	static const uint8_t opcodes[] = {
		QHCA_WQE_WRITE, QHCA_WQE_READ, QHCA_WQE_SEND,
	};
	struct half *h = &c->half[host];
	int slot;

	if (c->broken || !h->live || !c->half[!host].live)
		return;
	if (c->kind == KERNEL)
		post_registered(u, c, host);
	while ((slot = free_slot(h->out)) >= 0) {
		uint8_t opcode = c->kind == RC_SRQ || c->kind == DATAGRAM ?
				 QHCA_WQE_SEND : opcodes[world_pick(&u->w, 3)];

		/* Lost datagrams have left their receives posted. */
		if (opcode == QHCA_WQE_SEND && !post_recv(u, c, !host) &&
		    c->kind != DATAGRAM)
			break;
		post_one(u, c, host, (uint32_t)slot, opcode, false);
	}
	md_ring(u->node[host].md, &h->qp);
	md_arm(&h->cq, world_pick(&u->w, 2));
}

/* ---- completions */

static bool sent_right(struct upset *u, struct conn *c, unsigned int host,
		       const struct req *r, uint32_t slot)
{
	if (r->opcode == QHCA_WQE_READ)
		return message_is(u, c, host, READ_TO, slot, 0, r->seed, r->len);
	/* The peer may have registered other memory by now. */
	return r->opcode != QHCA_WQE_WRITE || !c->half[!host].live ||
	       !u->node[!host].up || c->half[!host].memory != r->memory ||
	       message_is(u, c, !host, WRITE_TO, slot, 0, r->seed, r->len);
}

static bool received_right(struct upset *u, struct conn *c, unsigned int host,
			   uint32_t slot, uint32_t len)
{
	uint32_t skip = c->kind == DATAGRAM ? GRH : 0;

	return len >= skip + HEAD && len <= c->slot_len &&
	       message_is(u, c, host, RECV_TO, slot, skip, 0, len - skip);
}

/* Requests before @last that are not signalled have ended well. */
static bool end_silent(struct upset *u, struct conn *c, unsigned int host,
		       const struct req *last)
{
	struct half *h = &c->half[host];
	bool ok = true;

	for (uint32_t i = 0; i < SLOTS; i++) {
		struct req *r = &h->out[i];

		if (!r->busy || !r->silent || r->order >= last->order)
			continue;
		r->busy = false;
		ok &= sent_right(u, c, host, r, i);
	}
	return ok || UPSET_FAIL(u, "host %u kind %u: wrong bytes of a request without a completion",
				host, c->kind);
}

static bool take(struct upset *u, struct conn *c, unsigned int host,
		 const struct qhca_cqe *cqe)
{
	struct half *h = &c->half[host];
	uint64_t wr_id = get_le64(&cqe->wr_id);
	bool recv = wr_id & 0x100;
	uint32_t slot = wr_id & 0xff;
	struct req *r = recv ? &h->in[slot] : &h->out[slot], was;

	if (wr_id >> 32 != h->gen || slot >= SLOTS || !r->busy)
		return UPSET_FAIL(u, "host %u kind %u: a completion of nothing (%#llx, status %u)",
				  host, c->kind, (unsigned long long)wr_id,
				  cqe->status);
	was = *r;
	r->busy = false;
	if (!recv && !end_silent(u, c, host, &was))
		return false;
	if (recv && c->kind == RC_SRQ)
		md_srq_free(u->node[host].md, &h->srq, get_le32(&cqe->wqe));
	if (cqe->status) {
		c->broken = true;
		return c->hurt ||
		       UPSET_FAIL(u, "host %u kind %u: opcode %u ends with status %u",
				  host, c->kind, was.opcode, cqe->status);
	}
	if (recv ? received_right(u, c, host, slot, get_le32(&cqe->byte_len)) :
		   sent_right(u, c, host, &was, slot))
		return true;
	return UPSET_FAIL(u, "host %u kind %u: wrong bytes of %s %u (opcode %u)",
			  host, c->kind, recv ? "receive" : "request", slot,
			  was.opcode);
}

bool conn_poll(struct upset *u, struct conn *c, unsigned int host)
{
	struct half *h = &c->half[host];
	struct qhca_cqe cqe;
	bool any = false;

	while (md_poll(&h->cq, &cqe)) {
		any = true;
		if (cqe.opcode == QHCA_CQE_RESIZED)
			resized(u, h, host, get_le32(&cqe.wqe));
		else if (!take(u, c, host, &cqe))
			return false;
	}
	if (any && world_pick(&u->w, 2))
		md_arm(&h->cq, false);
	/* Software arms the EQ seldom, so that the device holds events. */
	return world_pick(&u->w, 50) || poll_eq(u, c, host);
}

/* ---- pages */

static struct md_odp *odp_of(struct node *n, uint32_t key)
{
	for (uint32_t i = 0; i < n->frames->num_odp; i++)
		if (n->frames->odp[i]->mr.key == key)
			return n->frames->odp[i];
	return NULL;
}

/* Serves the faults that wait, and takes a page away. */
bool node_faults(struct upset *u, unsigned int host)
{
	struct node *n = &u->node[host];
	struct md_odp *odp = u->conn[PAGING].half[host].odp;
	struct qhca_fault_info info;
	uint32_t qpn, page, last;

	while (md_fault(n->md, &qpn, &info)) {
		struct md_odp *at = odp_of(n, get_le32(&info.key));
		uint64_t addr = get_le64(&info.addr);

		if (!at)
			return UPSET_FAIL(u, "host %u: fault of key %#x", host,
					  get_le32(&info.key));
		page = md_odp_page(at, addr);
		last = md_odp_page(at, addr + get_le64(&info.length) - 1);
		for (; page <= last; page++)
			md_odp_map(at, page, true);
		md_resume(n->md, get_le32(&info.token), true);
	}
	if (world_pick(&u->w, 4) == 0)
		md_odp_take(odp, world_pick(&u->w, md_odp_pages(odp)));
	return !n->frames->corrupt ||
	       UPSET_FAIL(u, "host %u: a page was written after it was given up",
			  host);
}
