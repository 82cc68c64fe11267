// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Queues in memory: work requests, records, rings, and what the kernel keeps
 * there (protection entries, translation nodes, contexts), of two devices
 * whose queue pairs are connected.
 *
 * Beside the script's requests, a queue pair of the other process has requests within
 * and beyond the limits of its queues (wqe_limits.c): the device executes the former
 * and no other.
 *
 * An input is a script for one of two villains.  A *process* writes what it
 * wants into its own queues and rings its own doorbell page; it must not kill
 * the device, not have it write anything but its own memory, and not disturb
 * another process, whose queue pair has to work afterwards.  A *kernel* writes
 * anything anywhere, and its devices must survive it.  In some inputs the region
 * that most requests use is on demand.
 */
#include "frame.h"
#include "transport/transport.h"
#include "wqe_script.h"

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
	/* In most cases the input has one of the two pointers. */
	if (how < 160)
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
		s->md->host.ram[at] ^= (uint8_t)(1u << how % 8);
		return;
	}
	v = in_number(x->in);
	for (unsigned int i = 0; i < (how & 3) + 1u && at % 4 + i < 4; i++)
		s->md->host.ram[at + i] = (uint8_t)(v >> 8 * i);
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
 * The peer helps the villain: it drops a frame, or sends another packet instead.  The
 * function drops a changed frame to the bystander, whose peer does not help.
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
	return get_be24(bth + 5) != x->side[!i].by.qpn &&
	       get_be24(bth + 5) != x->side[!i].lim.qpn;
}

static bool exchange(struct script *x, unsigned int i)
{
	const struct guard_frame *sent;
	struct frame f;
	bool any = false;

	/* Frames that arrive meanwhile wait for the next round. */
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

void pump(struct script *x, unsigned int budget)
{
	uint64_t now = x->side[0].md->host.now, next = QHCA_NEVER;
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
	x->side[0].md->host.now = x->side[1].md->host.now = now;
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

/* The process has its own page only, the kernel has all. */
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

/* The changes of state that a process may request of its kernel. */
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
	/* The driver makes its own part of the change; then the QP goes back to RTS. */
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

/* A kernel destroys objects under traffic. */
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
		qhca_inject_fatal(s->g->hca, 0);
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
	else if (op < 106)
		check_limits(x);
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
