// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A hostile guest: all that the software of a function with stage 2 can do, while the
 * host domain brings its pages, refuses them, takes them away and gives it new rows.
 *
 * The tables are the host domain's, and honest.  The fake host (host.h) is the judge: a
 * DMA of the function that does not go to a page which it has at that moment, by the
 * address and with the attribute of its row, ends the program.  Nobody may touch the
 * memory of the host domain and of a neighbour that the test watches, and both execute
 * commands in the end.
 */
#include <stdio.h>
#include <string.h>

#include "alloc.h"
#include "guard.h"
#include "input.h"

#define PF_MEM		(3u << 20)
#define VF_MEM		(2u << 20)
#define GUEST		1u		/* GVMI */
#define NEIGHBOUR	2u
#define SECRET		8192u		/* bytes that are watched */
#define MAX_OPS		400
#define MAX_ASKS	16u
#define MAX_ROWS	20u		/* each takes memory of the host domain */
#define PD		3u
#define IOVA		0x10000000ull
#define MR_LEN		(4 * MD_PAGE)

struct script {
	struct in *in;
	struct md *pf, *vf, *other;
	struct host_watch watch[2];	/* of the PF and the neighbour */
	struct qhca_eqe ask[MAX_ASKS];
	unsigned int num_asks, rows;
	struct md_cq cq;
	struct md_mr mr;
	struct md_qp qp[2];
};

/* ---- the host domain */

static void map(struct script *s, uint64_t addr, uint64_t bits)
{
	struct host *pf = &s->pf->host, *vf = &s->vf->host;
	uint64_t was;

	if (addr >= VF_MEM)
		return;
	was = host_s2_entry(pf, vf, addr);
	if (was & QHCA_ATE_PRESENT)
		host_s2_bits(pf, vf, addr, (was | bits) & HCA_S2_NEEDS);
	else
		host_s2_map(pf, vf, addr, bits);
}

static void take_asks(struct script *s)
{
	struct qhca_eqe eqe;

	while (s->num_asks < MAX_ASKS && md_event(s->pf, &eqe)) {
		if (eqe.type == QHCA_EVENT_PAGE_FAULT ||
		    eqe.type == QHCA_EVENT_DEVICE_FATAL)
			guard_fail("the host domain receives event %#x", eqe.type);
		if (eqe.type != QHCA_EVENT_STAGE2_FAULT)
			continue;
		if (get_le32(&eqe.number) != GUEST)
			guard_fail("function %u faults in stage 2",
				   get_le32(&eqe.number));
		s->ask[s->num_asks++] = eqe;
	}
	qhca_doorbell(s->pf->host.hca, 0, 0, QHCA_DB_EQ_ARM,
		      (uint64_t)s->pf->eq_ci << 32, s->pf->host.now);
}

/* Serve or refuse the oldest.  A range may be any: at most 64 pages are brought. */
static bool serve(struct script *s, bool ok)
{
	const struct qhca_fault_info *info = &s->ask[0].fault;
	uint64_t addr, end, bits = 0;
	uint32_t token;

	take_asks(s);
	if (!s->num_asks)
		return false;
	addr = get_le64(&info->addr) & ~(MD_PAGE - 1ull);
	end = get_le64(&info->addr) + get_le64(&info->length);
	token = get_le32(&info->token);
	if (get_le32(&info->flags) & QHCA_FAULT_WRITE)
		bits |= QHCA_ATE_WRITE;
	if (get_le32(&s->ask[0].detail) == QHCA_STAGE2_PIN)
		bits |= QHCA_ATE_PINNED;
	for (int i = 0; ok && i < 64 && addr < end; i++, addr += MD_PAGE)
		map(s, addr, bits);
	memmove(s->ask, s->ask + 1, --s->num_asks * sizeof(s->ask[0]));
	/* The function may have been reset meanwhile. */
	md_cmd(s->pf, QHCA_CMD_STAGE2_RESUME, token,
	       (ok ? QHCA_RESUME_OK : QHCA_RESUME_FAIL) | GUEST << 16, NULL, 0,
	       NULL, 0, NULL);
	return true;
}

static struct script *now;

static bool serve_idle(struct host *h)
{
	(void)h;
	return serve(now, true);
}

static void new_row(struct script *s)
{
	if (s->rows++ < MAX_ROWS)
		host_s2_open(&s->pf->host, &s->vf->host, (uint16_t)s->rows);
}

static void host_domain(struct script *s)
{
	struct host *pf = &s->pf->host, *vf = &s->vf->host;
	uint64_t addr = (uint64_t)in_below(s->in, VF_MEM / MD_PAGE) * MD_PAGE;

	switch (in_u8(s->in) & 15) {
	case 0:
		host_s2_unmap(pf, vf, addr);
		break;
	case 1:
		host_s2_unmap_all(pf, vf);
		break;
	case 2:
		map(s, addr, 0);
		break;
	case 3:
		map(s, addr, QHCA_ATE_WRITE);
		break;
	case 4:
		map(s, addr, QHCA_ATE_WRITE | QHCA_ATE_PINNED);
		break;
	case 5:
		if (host_s2_present(pf, vf, addr))
			host_s2_bits(pf, vf, addr, 0);
		host_s2_invalidate(pf, vf, addr, MD_PAGE);
		break;
	case 6:
		new_row(s);
		break;
	case 7:
		qhca_reset(vf->hca, GUEST, vf->now);
		break;
	case 8:
		qhca_vf_enable(vf->hca, GUEST, false, vf->now);
		host_s2_unmap_all(pf, vf);
		qhca_vf_enable(vf->hca, GUEST, true, vf->now);
		break;
	default:
		serve(s, in_chance(s->in, 230));
		break;
	}
}

/* ---- the guest */

/* An address: its own memory, the host domain's, machine addresses, or any. */
static uint64_t address(struct script *s)
{
	uint8_t how = in_u8(s->in);

	if (how < 150)
		return (uint64_t)in_below(s->in, VF_MEM / 64) * 64;
	if (how < 170)
		return s->mr.iova + in_below(s->in, MR_LEN);
	if (how < 200)
		return HOST_FRAMES + (uint64_t)in_below(s->in, 4096) * 512;
	if (how < 220)
		return s->watch[0].first + in_below(s->in, SECRET);
	return in_number(s->in) << (how & 31);
}

static uint64_t word(struct script *s)
{
	uint8_t how = in_u8(s->in);

	if (how < 100)
		return address(s);
	if (how < 160)
		return (address(s) & QHCA_ATE_ADDR) | QHCA_ATE_PRESENT |
		       (how & (QHCA_ATE_LEAF | QHCA_ATE_WRITE | QHCA_ATE_PINNED));
	return in_number(s->in);
}

/* Somewhere in what the device and the guest share. */
static uint64_t shared_place(struct script *s)
{
	uint8_t how = in_u8(s->in);

	if (how < 100)
		return s->vf->table[how % QHCA_NUM_TABLES] +
		       in_below(s->in, 1024) * 8;
	if (how < 160)
		return s->qp[how & 1].buf.page[0] + in_below(s->in, 512) * 8;
	if (how < 180)
		return s->cq.buf.page[0] + in_below(s->in, 512) * 8;
	if (how < 220)
		return s->mr.buf.root + in_below(s->in, 8) * 8;
	return MD_PAGE + in_below(s->in, (VF_MEM - MD_PAGE) / 8) * 8ull;
}

static void scribble(struct script *s)
{
	uint64_t at = shared_place(s) & ~7ull;

	if (at >= MD_PAGE && at < VF_MEM)
		put_le64(host_ptr(&s->vf->host, at), word(s));
}

static void command(struct script *s)
{
	static const uint32_t lens[] = { 0, 8, 16, 32, 64, 128, 192, 4096 };
	struct qhca_cmd_slot slot = { 0 };
	uint64_t in_addr = address(s), out_addr = address(s);
	uint32_t words = in_below(s->in, 16), in_len = IN_ONE_OF(s->in, lens);

	for (uint32_t i = 0; i < words; i++)
		if (in_addr < VF_MEM - 256 && in_addr >= MD_PAGE)
			put_le64(host_ptr(&s->vf->host,
					  (in_addr & ~7ull) + 8 * i), word(s));
	put_le16(&slot.opcode, in_u8(s->in) % 0x90);
	put_le32(&slot.index, (uint32_t)in_number(s->in));
	put_le32(&slot.param, (uint32_t)in_number(s->in));
	put_le64(&slot.in_addr, in_addr);
	put_le64(&slot.out_addr, out_addr);
	put_le32(&slot.in_len, in_len);
	put_le32(&slot.out_len, IN_ONE_OF(s->in, lens));
	host_cmd_begin(&s->vf->host, &slot, 0);
}

static uint32_t a_key(struct script *s)
{
	uint8_t how = in_u8(s->in);

	return how < 120 ? s->mr.key : how < 200 ? QHCA_RESERVED_LKEY :
	       (uint32_t)in_number(s->in);
}

/* A request between its two queue pairs, with any addresses. */
static void post(struct script *s)
{
	static const uint8_t opcodes[] = {
		QHCA_WQE_SEND, QHCA_WQE_WRITE, QHCA_WQE_READ, QHCA_WQE_WRITE,
		QHCA_WQE_FETCH_ADD, QHCA_WQE_CMP_SWAP, QHCA_WQE_FLUSH,
		QHCA_WQE_ATOMIC_WRITE,
	};
	struct md_qp *qp = &s->qp[in_u8(s->in) & 1];
	struct md_sge sge = { address(s), in_below(s->in, 9000), a_key(s) };
	struct md_wr wr = {
		.opcode = IN_ONE_OF(s->in, opcodes),
		.flags = QHCA_WQE_F_SIGNALED, .num_sge = 1, .sge = &sge,
		.raddr = address(s), .rkey = a_key(s), .flush_type = 1,
		.flush_len = 64,
	};

	if (wr.opcode >= QHCA_WQE_CMP_SWAP && wr.opcode != QHCA_WQE_READ)
		sge.len = 8;
	md_post_recv(s->vf, qp, 1, &sge, 1);
	md_post_send(s->vf, qp, &wr);
	qhca_doorbell(s->vf->host.hca, GUEST, 0, QHCA_DB_SQ,
		      (uint64_t)qp->sq_pi << 32 | qp->qpn, s->vf->host.now);
}

static void doorbell(struct script *s)
{
	static const uint32_t offsets[] = {
		QHCA_DB_SQ, QHCA_DB_CQ_ARM, QHCA_DB_EQ_ARM, QHCA_DB_ETH_TX,
		QHCA_DB_ETH_ARM,
	};

	qhca_doorbell(s->vf->host.hca, GUEST, 0, IN_ONE_OF(s->in, offsets),
		      in_number(s->in) << 32 | in_below(s->in, 8),
		      s->vf->host.now);
}

/* Registers; the command queue may be anywhere. */
static void registers(struct script *s)
{
	struct host *h = &s->vf->host;
	uint64_t base = address(s) & ~(uint64_t)(MD_PAGE - 1);

	if (in_chance(s->in, 60)) {
		qhca_reg_write(h->hca, GUEST, QHCA_REG_CONTROL,
			       QHCA_CONTROL_RESET, h->now);
		return;
	}
	qhca_reg_write(h->hca, GUEST, QHCA_REG_CONTROL, 0, h->now);
	qhca_reg_write(h->hca, GUEST, QHCA_REG_CMDQ_LOG_SLOTS, 0, h->now);
	if (in_chance(s->in, 128))
		base = h->slots;
	qhca_reg_write(h->hca, GUEST, QHCA_REG_CMDQ_BASE_LO, (uint32_t)base,
		       h->now);
	qhca_reg_write(h->hca, GUEST, QHCA_REG_CMDQ_BASE_HI,
		       (uint32_t)(base >> 32), h->now);
	qhca_reg_write(h->hca, GUEST, QHCA_REG_CONTROL, QHCA_CONTROL_ENABLE,
		       h->now);
}

static void frame(struct script *s)
{
	uint8_t data[128];

	in_fill(s->in, data, sizeof(data));
	memcpy(data, s->vf->mac, 6);
	qhca_rx_frame(s->vf->host.hca, data, 60 + in_below(s->in, 68),
		      s->vf->host.now);
}

static void pass_time(struct script *s)
{
	static const uint32_t step[] = { 0, 100, 20000, 200000, 20000000 };
	uint64_t at = s->pf->host.now + IN_ONE_OF(s->in, step);

	s->pf->host.now = s->vf->host.now = s->other->host.now = at;
	for (int i = 0; i < 50; i++)
		if (!qhca_run(s->pf->host.hca, at, 16).more)
			break;
}

static void step(struct script *s)
{
	uint8_t op = in_u8(s->in);

	if (op < 50)
		command(s);
	else if (op < 90)
		scribble(s);
	else if (op < 130)
		post(s);
	else if (op < 145)
		doorbell(s);
	else if (op < 150)
		registers(s);
	else if (op < 155)
		frame(s);
	else if (op < 200)
		pass_time(s);
	else
		host_domain(s);
}

/* ---- one input */

static void open_adapter(struct script *s)
{
	const struct md_init init = { .log_pt = 8, .log_qp = 5, .log_cq = 4,
				      .log_srq = 3, .log_eq = 3,
				      .scatter = true, .s2 = { 4, 2 } };
	struct qhca_config cfg;

	guard_config(&cfg);
	cfg.devmem = NULL;
	cfg.devmem_size = 0;
	cfg.max_bundle = GUARD_BUNDLE;
	s->pf = md_create(1, PF_MEM, &cfg);
	s->vf = md_create_vf(s->pf, GUEST, VF_MEM, &cfg);
	s->other = md_create_vf(s->pf, NEIGHBOUR, VF_MEM, &cfg);
	md_start(s->pf, &init);
	md_start(s->other, &init);
	host_watch(&s->pf->host, &s->watch[0],
		   md_alloc(s->pf, SECRET, MD_PAGE), SECRET);
	host_watch(&s->other->host, &s->watch[1],
		   md_alloc(s->other, SECRET, MD_PAGE), SECRET);
	new_row(s);
	s->vf->host.idle = serve_idle;
	md_start(s->vf, &init);
}

static void open_guest(struct script *s)
{
	struct md_qp_init qi = md_qp_rc(&s->cq, PD);
	struct md_conn conn = md_conn_rc();

	md_cq_create(s->vf, &s->cq, 4);
	md_reg_mr(s->vf, &s->mr, PD, IOVA, MR_LEN,
		  QHCA_ACCESS_LOCAL_WRITE | QHCA_ACCESS_REMOTE_WRITE |
		  QHCA_ACCESS_REMOTE_READ | QHCA_ACCESS_REMOTE_ATOMIC);
	md_av(s->vf, &conn.av, s->vf->mac[5], false);
	for (int i = 0; i < 2; i++)
		if (md_qp_create(s->vf, &s->qp[i], &qi))
			guard_fail("CREATE_QP is refused");
	for (int i = 0; i < 2; i++) {
		conn.dest_qpn = s->qp[!i].qpn;
		md_qp_connect(s->vf, &s->qp[i], &conn);
	}
}

static void check(struct script *s)
{
	struct md *md[] = { s->pf, s->other };

	for (int i = 0; i < 2; i++) {
		if (s->watch[i].reads || s->watch[i].writes)
			guard_fail("memory of function %u is accessed",
				   md[i]->host.gvmi);
		if (md_dead(md[i]) || md_cmd(md[i], QHCA_CMD_NOP, 0, 0, NULL, 0,
					     NULL, 0, NULL))
			guard_fail("function %u does not live on",
				   md[i]->host.gvmi);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct in in = { data, data + size };
	struct script s = { .in = &in };

	now = &s;
	open_adapter(&s);
	open_guest(&s);
	for (int i = 0; i < MAX_OPS && in_more(&in); i++)
		step(&s);
	pass_time(&s);
	check(&s);
	md_destroy_vf(s.vf);
	md_destroy_vf(s.other);
	md_destroy(s.pf);
	if (alloc_live())
		guard_fail("%zu bytes are lost", alloc_live());
	return 0;
}
