/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "churn.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define SECRET		0x5ec7ull	/* top 16 bits of a secret word */
#define LIVE_TAG	0x11feull
#define FIRST_OBJ	1030u		/* in the table's second chunk */
#define TABLE_CHUNK	1u
#define CHUNK_ENTRIES	1024u

struct churn_counts churn_counts;

bool churn_fail(struct node *h, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (!h->error[0])
		vsnprintf(h->error, 300, fmt, ap);
	va_end(ap);
	return false;
}

/* ---- slabs */

static uint8_t *word_at(struct node *h, const struct slab *s, uint32_t i)
{
	uint32_t off = SLAB_FIRST + 8 * i;

	return md_ptr(h->md, s->page[off / MD_PAGE] + off % MD_PAGE);
}

static uint64_t secret(const struct slab *s, uint32_t slab, uint32_t i)
{
	return SECRET << 48 | (uint64_t)(s->gen & 0xffffff) << 24 | slab << 8 |
	       (i & 0xff);
}

uint64_t live_word(struct node *h)
{
	return LIVE_TAG << 48 | world_rand(h->w);
}

static void slab_fill(struct node *h, int n, bool live)
{
	struct slab *s = &h->slab[n];
	uint64_t word = live_word(h);

	s->gen++;
	for (uint32_t i = 0; i < SLAB_LEN / 8; i++)
		put_le64(word_at(h, s, i), live ? word + i : secret(s, n, i));
}

static int slab_take(struct node *h, struct obj *o)
{
	uint32_t n = world_pick(h->w, NUM_SLABS);

	while (h->slab[n].owner)
		n = (n + 1) % NUM_SLABS;
	h->slab[n].owner = o;
	slab_fill(h, n, true);
	return n;
}

/* After this no key leads to the slab. */
static void slab_free(struct node *h, int n)
{
	if (n < 0)
		return;
	h->slab[n].owner = NULL;
	slab_fill(h, n, false);
}

bool keys_check(struct node *h)
{
	for (uint32_t n = 0; n < NUM_SLABS; n++) {
		struct slab *s = &h->slab[n];

		for (uint32_t i = 0; i < SLAB_LEN / 8; i++) {
			uint64_t v = get_le64(word_at(h, s, i));

			if (s->owner && v >> 48 == SECRET)
				return churn_fail(h, "host %u: slab %u has secret %#llx at %u, read through a dead key",
						  h->number, n,
						  (unsigned long long)v, 8 * i);
			if (!s->owner && v != secret(s, n, i))
				return churn_fail(h, "host %u: a dead key wrote %#llx to slab %u at %u",
						  h->number,
						  (unsigned long long)v, n, 8 * i);
		}
	}
	return true;
}

/* ---- objects */

static void taint_users(struct node *h, const struct obj *o)
{
	for (uint32_t i = 0; i < MAX_REQS; i++) {
		struct req *r = &h->req[i];

		if (r->busy && (r->use[0].obj == o || r->use[1].obj == o))
			r->conn->tainted = true;
	}
}

void obj_changed(struct node *h, struct obj *o)
{
	o->changes++;
	taint_users(h, o);
	taint_users(h->peer, o);
}

static struct qhca_pte *pte_of(struct node *h, const struct obj *o)
{
	return md_ptr(h->md, h->md->pt + 64ull * o->index);
}

static uint32_t next_octet(const struct obj *o)
{
	return (o->key & ~0xffu) | ((o->key + 1) & 0xff);
}

/* Makes the node of @o point to the pages of slab @n. */
static void fill_node(struct node *h, const struct obj *o, int n)
{
	for (int i = 0; i < 2; i++)
		put_le64(md_ptr(h->md, o->node + 8 * i),
			 h->slab[n].page[i] | QHCA_ATE_PRESENT |
			 QHCA_ATE_WRITE | QHCA_ATE_LEAF);
}

static void place(struct node *h, struct obj *o)
{
	o->slab_off = 8 * world_pick(h->w, SLAB_LEN / 8 - 8);
	o->len = 64 + 8 * world_pick(h->w, (SLAB_LEN - o->slab_off) / 8 - 7);
	o->start = 0x100000ull * (1 + world_pick(h->w, 1000)) + SLAB_FIRST +
		   o->slab_off;
	o->access = world_chance(h->w, 700000) ?
		    QHCA_ACCESS_LOCAL_WRITE | ALL_REMOTE :
		    QHCA_ACCESS_LOCAL_WRITE | (world_rand(h->w) & ALL_REMOTE);
	o->pd = CHURN_PD;
	if (world_chance(h->w, 200000) && o->type != QHCA_PTE_MW1) {
		o->access |= QHCA_ACCESS_ZERO_BASED;
		o->start = 0;
	}
}

/* Writes the entry of a region; as a driver does, it writes ctrl last. */
static void write_region(struct node *h, struct obj *o)
{
	struct qhca_pte pte = { 0 };

	fill_node(h, o, o->slab);
	put_le32(&pte.access, o->access);
	put_le32(&pte.pd, o->pd);
	put_le32(&pte.at_key, o->index);
	put_le64(&pte.start, o->start);
	put_le64(&pte.length, o->len);
	put_le64(&pte.at_base, o->node);
	put_le64(&pte.at_offset, SLAB_FIRST + o->slab_off);
	put_le32(&pte.ctrl, QHCA_PTE_VALID | QHCA_PTE_MR << 4 |
			    (o->key & 0xff) << 8 | 12u << 16 | 1u << 24);
	md_pte_write(h->md, o->index, &pte);
}

/* Writes an entry that work requests may turn into a valid key. */
static void write_blank(struct node *h, struct obj *o)
{
	struct qhca_pte pte = { 0 };
	uint32_t ctrl = QHCA_PTE_INVALIDATED | QHCA_PTE_REMOTE_INV |
			o->type << 4 | (o->key & 0xff) << 8 | 12u << 16;

	put_le32(&pte.pd, CHURN_PD);
	if (o->type == QHCA_PTE_FAST_REG) {
		ctrl |= 1u << 24;
		put_le64(&pte.at_base, o->node);
		put_le32(&pte.pool_block, 2);
		put_le32(&pte.at_key, o->index);
	}
	put_le32(&pte.ctrl, ctrl);
	md_pte_write(h->md, o->index, &pte);
	o->blank = true;
}

static void is_dead(struct node *h, struct obj *o)
{
	o->state = DEAD;
	obj_changed(h, o);
	slab_free(h, o->slab);
	o->slab = -1;
	churn_counts.deaths++;
}

/* ---- by work requests */

/* Records that a request that changes @o is under way. */
static struct req *post_change(struct node *h, struct obj *o, struct conn *c,
			       enum obj_state state, uint8_t opcode,
			       struct md_wr *wr)
{
	struct req *r = req_new(h, c, false, opcode, &wr->wr_id);

	wr->opcode = opcode;
	wr->flags = QHCA_WQE_F_SIGNALED;
	r->obj = o;
	o->state = state;
	obj_changed(h, o);
	h->pending++;
	req_post(h, r, wr);
	return r;
}

/* Posts binds and fast registrations; a bound window of type 1 moves. */
static void post_birth(struct node *h, struct obj *o, struct conn *c)
{
	struct qhca_wqe_bind bind = { 0 };
	struct qhca_wqe_reg reg = { .page_shift = 12 };
	struct md_wr wr = { 0 };

	if (!o->blank && o->state == DEAD)
		write_blank(h, o);
	o->next_slab = slab_take(h, o);
	o->next_key = next_octet(o);
	place(h, o);
	o->conn = o->type == QHCA_PTE_MW2B ? c : NULL;
	if (o->type == QHCA_PTE_FAST_REG) {
		uint32_t first = (SLAB_FIRST + o->slab_off) / MD_PAGE;

		for (uint32_t i = first; i < 2; i++)
			put_le64(md_ptr(h->md, o->list + 8 * (i - first)),
				 h->slab[o->next_slab].page[i]);
		put_le64(&reg.iova, o->start ? o->start :
					       SLAB_FIRST + o->slab_off);
		put_le64(&reg.length, o->len);
		put_le64(&reg.pages, o->list);
		put_le32(&reg.key, o->next_key);
		put_le32(&reg.access, o->access);
		put_le32(&reg.num_pages, 2 - first);
		wr.reg = &reg;
		churn_counts.regs++;
		post_change(h, o, c, BORN_SOON, QHCA_WQE_REG_MR, &wr);
		return;
	}
	o->access &= ~QHCA_ACCESS_LOCAL_WRITE;
	put_le64(&bind.addr, h->arena.iova + 2 * MD_PAGE * o->next_slab +
			     SLAB_FIRST + o->slab_off);
	put_le64(&bind.length, o->len);
	put_le32(&bind.mr_lkey, h->arena.key);
	put_le32(&bind.mw_rkey, o->key);
	put_le32(&bind.new_rkey, o->next_key);
	put_le32(&bind.access, o->access);
	if (!(o->access & QHCA_ACCESS_ZERO_BASED))
		o->start = get_le64(&bind.addr);
	wr.bind = &bind;
	churn_counts.windows++;
	post_change(h, o, c, BORN_SOON, QHCA_WQE_BIND_MW, &wr);
}

static void post_unbind(struct node *h, struct obj *o, struct conn *c)
{
	struct qhca_wqe_bind bind = { 0 };
	struct md_wr wr = { .bind = &bind };

	o->next_key = next_octet(o);
	put_le32(&bind.mr_lkey, h->arena.key);
	put_le32(&bind.mw_rkey, o->key);
	put_le32(&bind.new_rkey, o->next_key);
	post_change(h, o, c, DEAD_SOON, QHCA_WQE_BIND_MW, &wr);
}

static void post_local_inv(struct node *h, struct obj *o, struct conn *c)
{
	struct md_wr wr = { .imm = o->key };

	churn_counts.invs++;
	post_change(h, o, c, DEAD_SOON, QHCA_WQE_LOCAL_INV, &wr);
}

/* The peer invalidates the key; this host knows it when the message has arrived. */
static void post_send_inv(struct node *h, struct node *peer, struct obj *o,
			  struct conn *c)
{
	struct md_wr wr = { .opcode = QHCA_WQE_SEND_INV,
			    .flags = QHCA_WQE_F_SIGNALED, .imm = o->key };
	struct req *r;

	churn_counts.invs++;
	o->state = DEAD_SOON;
	obj_changed(h, o);
	h->pending++;
	recv_post(h, c, NULL)->obj = o;
	r = req_new(peer, c, false, QHCA_WQE_SEND_INV, &wr.wr_id);
	req_post(peer, r, &wr);
}

/* ---- by commands */

static void command(struct node *h, uint16_t opcode, uint32_t index,
		    uint32_t param, const void *in, uint32_t in_len)
{
	int status = md_cmd(h->md, opcode, index, param, in, in_len, NULL, 0,
			    NULL);

	if (status)
		churn_fail(h, "host %u: command %#x ends with status %d",
			   h->number, opcode, status);
}

static void invalidate(struct node *h, const struct obj *o, uint32_t what)
{
	command(h, QHCA_CMD_INVALIDATE_KEY, o->index, what, NULL, 0);
}

static void clear_ctrl(struct node *h, struct obj *o)
{
	struct qhca_pte *pte = pte_of(h, o);

	/* The entry still says which type of window it was, as the device requires. */
	put_le32(&pte->ctrl, get_le32(&pte->ctrl) & ~QHCA_PTE_STATE);
	o->blank = false;
}

/* Deregisters a key of any kind. */
static void dereg(struct node *h, struct obj *o)
{
	clear_ctrl(h, o);
	invalidate(h, o, QHCA_INVAL_PT | QHCA_INVAL_AT);
	is_dead(h, o);
}

static void dereg_all(struct node *h)
{
	for (uint32_t i = 0; i < NUM_OBJS; i++)
		clear_ctrl(h, &h->obj[i]);
	command(h, QHCA_CMD_INVALIDATE_ALL, 0, QHCA_INVAL_PT | QHCA_INVAL_AT,
		NULL, 0);
	for (uint32_t i = 0; i < NUM_OBJS; i++)
		if (h->obj[i].state == LIVE)
			is_dead(h, &h->obj[i]);
}

/*
 * The driver unmaps the chunk of the table that holds the keys, and maps an empty one.
 */
static void table_goes(struct node *h)
{
	uint64_t chunk, at = h->md->pt + 64ull * CHUNK_ENTRIES * TABLE_CHUNK;

	command(h, QHCA_CMD_UNMAP_CHUNKS, TABLE_CHUNK,
		QHCA_TABLE_PT | 1 << 8, NULL, 0);
	for (uint32_t i = 0; i < NUM_OBJS; i++)
		if (h->obj[i].state == LIVE)
			is_dead(h, &h->obj[i]);
	for (uint32_t i = 0; i < NUM_OBJS; i++)
		h->obj[i].blank = false;
	memset(md_ptr(h->md, at), 0, 64 * CHUNK_ENTRIES);
	command(h, QHCA_CMD_INVALIDATE_ALL, 0, QHCA_INVAL_AT, NULL, 0);
	put_le64(&chunk, at);
	command(h, QHCA_CMD_MAP_CHUNKS, TABLE_CHUNK, QHCA_TABLE_PT | 1 << 8,
		&chunk, sizeof(chunk));
}

/* Gives the same key other memory, rights or another PD. */
static void rereg(struct node *h, struct obj *o)
{
	uint64_t start = o->start, len = o->len;
	uint32_t access = o->access, off = o->slab_off;
	int old = o->slab;
	bool move = world_pick(h->w, 2);

	clear_ctrl(h, o);
	invalidate(h, o, QHCA_INVAL_PT | QHCA_INVAL_AT);
	obj_changed(h, o);
	if (move)
		o->slab = slab_take(h, o);
	place(h, o);
	if (world_pick(h->w, 2)) {	/* the range stays as it was */
		o->start = start;
		o->len = len;
		o->slab_off = off;
		o->access = (o->access & ~QHCA_ACCESS_ZERO_BASED) |
			    (access & QHCA_ACCESS_ZERO_BASED);
	}
	o->pd = world_chance(h->w, 200000) ? OTHER_PD : CHURN_PD;
	if (move)
		slab_free(h, old);
	write_region(h, o);
	churn_counts.rereg++;
}

/* Moves the pages of the region, as the kernel does when it migrates memory. */
static void move_pages(struct node *h, struct obj *o)
{
	struct qhca_range range = { 0 };
	int old = o->slab;

	o->slab = slab_take(h, o);
	fill_node(h, o, o->slab);
	if (world_pick(h->w, 2)) {
		put_le64(&range.length, o->len);
		command(h, QHCA_CMD_INVALIDATE_RANGE, o->index, 0, &range,
			sizeof(range));
	} else {
		invalidate(h, o, QHCA_INVAL_AT);
	}
	slab_free(h, old);
}

/* A flushed request may have taken effect, so the driver ends its key. */
static void flushed(struct node *h, struct obj *o)
{
	dereg(h, o);
	slab_free(h, o->next_slab);
	o->next_slab = -1;
}

static void born(struct node *h, struct obj *o)
{
	int old = o->slab;

	o->key = o->next_key;
	o->slab = o->next_slab;
	o->next_slab = -1;
	o->state = LIVE;
	o->blank = false;
	slab_free(h, old);
	churn_counts.births++;
	churn_counts.deaths += old >= 0;
}

void obj_settled(struct node *h, struct obj *o, bool done)
{
	h->pending--;
	obj_changed(h, o);
	if (!done) {
		flushed(h, o);
	} else if (o->state == BORN_SOON) {
		born(h, o);
	} else {
		if (o->type == QHCA_PTE_MW1)
			o->key = o->next_key;
		o->blank = true;
		is_dead(h, o);
	}
}

/* ---- what happens */

static void make(struct node *h, struct obj *o, struct conn *conns)
{
	struct conn *c = &conns[0];

	if (o->type == QHCA_PTE_MR) {
		o->key = next_octet(o);
		o->slab = slab_take(h, o);
		place(h, o);
		o->state = LIVE;
		obj_changed(h, o);
		write_region(h, o);
		churn_counts.births++;
		return;
	}
	if (o->type == QHCA_PTE_MW2B)
		c = &conns[1 + world_pick(h->w, NUM_CONNS - 1)];
	if (!c->broken && conn_room(c, h->number))
		post_birth(h, o, c);
}

static void change_region(struct node *h, struct obj *o)
{
	switch (world_pick(h->w, 4)) {
	case 0:
		rereg(h, o);
		break;
	case 1:
		move_pages(h, o);
		break;
	default:
		dereg(h, o);
		break;
	}
}

static void change_key(struct node *h, struct node *peer, struct obj *o,
		       struct conn *conns)
{
	struct conn *c = o->conn ? o->conn : &conns[0];

	if (c->broken || world_pick(h->w, 4) == 0 ||
	    !conn_room(c, h->number) || !conn_room(c, peer->number))
		dereg(h, o);
	else if (o->type == QHCA_PTE_MW1 && world_pick(h->w, 2))
		post_birth(h, o, c);		/* bound to another place */
	else if (o->type == QHCA_PTE_MW1)
		post_unbind(h, o, c);
	else if (world_pick(h->w, 2))
		post_local_inv(h, o, c);
	else
		post_send_inv(h, peer, o, c);
}

void keys_churn(struct node *h, struct node *peer, struct conn *conns)
{
	struct obj *o = &h->obj[world_pick(h->w, NUM_OBJS)];

	if (!h->pending && world_chance(h->w, 30000)) {
		if (world_pick(h->w, 2))
			dereg_all(h);
		else
			table_goes(h);
	}
	if (o->state == DEAD)
		make(h, o, conns);
	else if (o->state == LIVE && o->type == QHCA_PTE_MR)
		change_region(h, o);
	else if (o->state == LIVE)
		change_key(h, peer, o, conns);
}

void keys_setup(struct node *h)
{
	static const uint8_t type[NUM_OBJS] = {
		QHCA_PTE_MR, QHCA_PTE_MR, QHCA_PTE_MR, QHCA_PTE_MR,
		QHCA_PTE_FAST_REG, QHCA_PTE_FAST_REG, QHCA_PTE_MW1,
		QHCA_PTE_MW1, QHCA_PTE_MW2B, QHCA_PTE_MW2B,
	};
	struct qhca_pte *pte;

	md_reg_mr(h->md, &h->arena, CHURN_PD, 1ull << 40,
		  NUM_SLABS * 2 * MD_PAGE, QHCA_ACCESS_LOCAL_WRITE);
	pte = md_ptr(h->md, h->md->pt + 64ull * (h->arena.key >> 8));
	put_le32(&pte->access, QHCA_ACCESS_LOCAL_WRITE | QHCA_ACCESS_MW_BIND);
	for (uint32_t i = 0; i < NUM_SLABS; i++) {
		h->slab[i].page[0] = h->arena.buf.page[2 * i];
		h->slab[i].page[1] = h->arena.buf.page[2 * i + 1];
		slab_fill(h, i, false);
	}
	for (uint32_t i = 0; i < NUM_OBJS; i++) {
		struct obj *o = &h->obj[i];

		o->index = FIRST_OBJ + i;
		o->key = o->index << 8 | world_pick(h->w, 256);
		o->type = type[i];
		o->slab = o->next_slab = -1;
		o->node = md_alloc(h->md, 64, 64);
		o->list = md_alloc(h->md, 64, 64);
		/* Requests that come too early find this entry. */
		place(h, o);
	}
}
