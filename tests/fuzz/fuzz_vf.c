// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A hostile virtual function beside its physical function and a neighbour.
 *
 * An input is what the software of the villain does: it writes registers, rings
 * doorbells, makes commands, overwrites its own memory with queues, contexts and keys in
 * it, and sends frames in the name of anybody.  While it works, nobody else does.  Then
 * the device may raise no interrupt of the other functions, write nothing of their
 * memory but contexts that it evicts, and count nothing for them but frames that they
 * have received and dropped; their settings stay, and each frame on the wire has the
 * villain's address and VLAN.
 *
 * From time to time the PF and the neighbour send each other data, while the villain's
 * queues go on: the data must arrive unchanged, and soon.
 *
 * The villain has none of the others' IP addresses as a GID.  The host domain gives no
 * IP addresses, so this is the business of its network.
 */
#include <string.h>

#include "frame.h"
#include "guard.h"
#include "input.h"

#define MEM		(3u << 19)
#define MAX_OPS		200
#define OPS_A_ROUND	25		/* between two looks at the others */
#define MAX_STARTS	6
#define FLOW_RUNS	20000u
#define IDLE_STEPS	40
#define STEP_NS		100000u
#define LEN		1500u
#define IOVA		0x10000000ull
#define PD		1
#define QKEY		0x1234
#define LOG_TX		3
#define RIGHTS		(QHCA_ACCESS_LOCAL_WRITE | QHCA_ACCESS_REMOTE_WRITE | \
			 QHCA_ACCESS_REMOTE_READ | QHCA_ACCESS_REMOTE_ATOMIC)

enum { PF, VILLAIN, NEIGHBOUR, NUM };	/* by GVMI */
enum { RC, UD, RAW, NUM_QPS };

struct end {
	struct md *md;
	struct md_cq cq;
	struct md_qp qp[NUM_QPS];
	struct md_mr mr;
	/* what it was when the villain began */
	uint64_t counter[QHCA_NUM_COUNTERS];
	struct hca_vf vf;
	uint32_t generation;
	uint8_t mac[6];
};

struct world {
	struct in *in;
	struct qhca_hca *hca;
	struct qhca_host_ops ops;	/* of the host */
	struct end end[NUM];
	uint64_t now, digest;
	bool alone;			/* only the villain works */
	unsigned int starts, round;
	uint64_t ring, frame;		/* the villain's Ethernet queue */
	uint32_t tx_pi;
};

static struct world *world;		/* the host's operations know no other way */

/* ------------------------------------------------------------------------
 * What the device may do
 */
static bool is_context(const struct md *md, uint64_t addr)
{
	static const uint8_t kinds[] = {
		QHCA_TABLE_QP, QHCA_TABLE_CQ, QHCA_TABLE_SRQ,
	};

	for (unsigned int i = 0; i < sizeof(kinds); i++)
		if (addr - md->table[kinds[i]] < 1u << 16)
			return true;
	return false;
}

static int op_write(void *host, struct qhca_requester who, uint64_t addr,
		    const void *buf, size_t len)
{
	uint16_t gvmi = who.gvmi;

	if (gvmi >= NUM)
		guard_fail("DMA in the name of GVMI %u", gvmi);
	if (world->alone && gvmi != VILLAIN &&
	    !is_context(world->end[gvmi].md, addr))
		guard_fail("the device writes %zu bytes at %#llx of function %u while only the villain works",
			   len, (unsigned long long)addr, gvmi);
	return world->ops.dma_write(host, who, addr, buf, len);
}

static void op_irq(void *host, uint16_t gvmi, unsigned int vector)
{
	if (world->alone && gvmi != VILLAIN)
		guard_fail("an interrupt of function %u while only the villain works",
			   gvmi);
	world->ops.raise_irq(host, gvmi, vector);
}

static void mix(struct world *x, const void *data, size_t len)
{
	const uint8_t *p = data;

	while (len--)
		x->digest = (x->digest ^ *p++) * 0x100000001b3ull;
}

static void on_wire(void *arg, const uint8_t *frame, size_t len)
{
	struct world *x = arg;
	const struct hca_fn *fn = x->hca->hca.fn[VILLAIN];

	mix(x, frame, len);
	if (!x->alone)
		return;
	if (memcmp(frame + 6, fn->port.mac, 6))
		guard_fail("a frame with an address that is not the villain's");
	if (fn->vf.vlan && (get_be16(frame + 12) != HCA_ETHERTYPE_VLAN ||
			    (get_be16(frame + 14) & 0xfff) != fn->vf.vlan))
		guard_fail("a frame outside of the villain's VLAN");
}

/* Frames that a function receives, whoever sends them, count; so does what they cost. */
static bool may_count(unsigned int id)
{
	switch (id) {
	case QHCA_CNT_switched_packets: case QHCA_CNT_eth_rx_filtered:
	case QHCA_CNT_rx_packets: case QHCA_CNT_rx_bytes:
	case QHCA_CNT_rx_dropped: case QHCA_CNT_rx_malformed:
	case QHCA_CNT_rx_icrc_errors: case QHCA_CNT_rx_no_qp:
	case QHCA_CNT_rx_bad_pkey: case QHCA_CNT_rx_bad_qkey:
	case QHCA_CNT_rx_bad_state: case QHCA_CNT_ud_dropped:
	case QHCA_CNT_qpc_hits: case QHCA_CNT_qpc_misses:
	case QHCA_CNT_qpc_evictions: case QHCA_CNT_qpc_conflicts:
	case QHCA_CNT_qpc_writebacks:
		return true;
	default:
		return false;
	}
}

static void remember(struct world *x)
{
	for (unsigned int i = 0; i < NUM; i++) {
		const struct hca_fn *fn = x->hca->hca.fn[i];
		struct end *e = &x->end[i];

		memcpy(e->counter, fn->counter, sizeof(e->counter));
		e->vf = fn->vf;
		e->generation = fn->generation;
		memcpy(e->mac, fn->port.mac, 6);
	}
}

static void compare(struct world *x)
{
	for (unsigned int i = 0; i < NUM; i++) {
		const struct hca_fn *fn = x->hca->hca.fn[i];
		const struct end *e = &x->end[i];

		if (memcmp(&e->vf, &fn->vf, sizeof(e->vf)))
			guard_fail("the settings of function %u change", i);
		if (i == VILLAIN)
			continue;
		if (fn->status & QHCA_STATUS_FATAL)
			guard_fail("function %u dies", i);
		if (fn->generation != e->generation || !fn->enabled)
			guard_fail("function %u is reset", i);
		if (memcmp(e->mac, fn->port.mac, 6))
			guard_fail("the address of function %u changes", i);
		for (unsigned int id = 0; id < QHCA_NUM_COUNTERS; id++)
			if (fn->counter[id] != e->counter[id] && !may_count(id))
				guard_fail("function %u counts %llu of counter %u",
					   i, (unsigned long long)
					   (fn->counter[id] - e->counter[id]), id);
	}
}

/* ------------------------------------------------------------------------
 * Time
 */
static void set_time(struct world *x, uint64_t now)
{
	x->now = now;
	for (unsigned int i = 0; i < NUM; i++)
		x->end[i].md->host.now = now;
}

static void run(struct world *x, unsigned int budget)
{
	qhca_run(x->hca, x->now, budget);
}

static void pass_time(struct world *x)
{
	set_time(x, x->now + STEP_NS);
	run(x, 64);
}

/* ------------------------------------------------------------------------
 * Functions
 */
static void must(int status, const char *what)
{
	if (status)
		guard_fail("%s: command status %d", what, status);
}

static void make_end(struct world *x, unsigned int i)
{
	static const uint8_t type[] = { QHCA_QPT_RC, QHCA_QPT_UD, QHCA_QPT_RAW };
	const struct md_init init = { .log_pt = 8, .log_qp = 5, .log_cq = 4,
				      .log_srq = 3 };
	struct end *e = &x->end[i];

	md_start(e->md, &init);
	md_cq_create(e->md, &e->cq, 6);
	md_reg_mr(e->md, &e->mr, PD, IOVA, 4 * MD_PAGE, RIGHTS);
	for (unsigned int q = 0; q < (i == VILLAIN ? NUM_QPS : 1); q++) {
		struct md_qp_init qi = {
			.type = type[q], .sq_log_depth = 3, .sq_log_stride = 7,
			.rq_log_depth = 3, .rq_log_stride = 6, .pd = PD,
			.send_cq = &e->cq, .recv_cq = &e->cq,
		};

		must(md_qp_create(e->md, &e->qp[q], &qi), "CREATE_QP");
	}
}

static void connect_end(struct world *x, unsigned int i, unsigned int q,
			unsigned int to)
{
	struct end *e = &x->end[i];
	struct md_conn c = {
		.dest_qpn = x->end[to].qp[RC].qpn, .sq_psn = 7, .rq_psn = 7,
		.qkey = QKEY, .access = RIGHTS, .mtu = QHCA_MTU_256,
		.timeout = 14, .retry_cnt = 7, .rnr_retry = 7,
		.min_rnr_timer = 1, .max_rd_atomic = 2,
		.max_dest_rd_atomic = 2,
	};

	md_av(e->md, &c.av, x->end[to].md->mac[5], false);
	md_qp_connect(e->md, &e->qp[q], &c);
}

/* The villain has an Ethernet queue and QPs that name those of others. */
static void start_villain(struct world *x)
{
	struct end *e = &x->end[VILLAIN];
	struct qhca_ethq_config q = { .log_tx = LOG_TX, .log_rx = LOG_TX };
	struct qhca_port_config port = { .rsvd0 = 0 };

	if (x->starts++ == MAX_STARTS)
		return;
	make_end(x, VILLAIN);
	for (unsigned int i = 0; i < NUM_QPS; i++)
		connect_end(x, VILLAIN, i, x->starts & 1 ? PF : NEIGHBOUR);
	x->ring = md_alloc(e->md, 4096, 4096);
	x->frame = md_alloc(e->md, 8192, 4096);
	x->tx_pi = 0;
	put_le64(&q.tx_base, x->ring);
	put_le64(&q.rx_base, x->ring + 1024);
	put_le64(&q.rxc_base, x->ring + 2048);
	put_le64(&q.rec_base, x->ring + 3072);
	must(md_cmd(e->md, QHCA_CMD_CREATE_ETHQ, 0, 0, &q, sizeof(q), NULL, 0,
		    NULL), "CREATE_ETHQ");
	put_le32(&port.fields, QHCA_PORT_SET_RX);
	put_le32(&port.rx_flags, QHCA_RX_ENABLE | QHCA_RX_PROMISC);
	must(md_cmd(e->md, QHCA_CMD_SET_PORT, 0, 0, &port, sizeof(port), NULL,
		    0, NULL), "SET_PORT");
}

/* The host domain lays down what the input says. */
static void set_villain(struct world *x)
{
	struct qhca_vf_config in = { .mac = { 2, 7, 7, 7, 7, 7 }, .qos = 3 };
	uint8_t how = in_u8(x->in);

	put_le32(&in.fields, (how & 1 ? QHCA_VF_SET_MAC : 0) |
		 (how & 2 ? QHCA_VF_SET_VLAN : 0) |
		 (how & 4 ? QHCA_VF_SET_RATE : 0) |
		 (how & 8 ? QHCA_VF_SET_BLOCKS : 0));
	put_le16(&in.vlan, 5);
	put_le32(&in.max_rate, 100);
	for (unsigned int i = 0; i < QHCA_NUM_CACHES; i++)
		put_le16(&in.blocks[i], 1);
	must(md_cmd(x->end[PF].md, QHCA_CMD_SET_VF, VILLAIN, 0, &in, sizeof(in),
		    NULL, 0, NULL), "SET_VF");
}

static void open_world(struct world *x)
{
	struct qhca_config cfg;
	struct hca *hca;

	guard_config(&cfg);
	x->end[PF].md = md_create(1, MEM, &cfg);
	x->hca = x->end[PF].md->host.hca;
	x->end[VILLAIN].md = md_create_vf(x->end[PF].md, VILLAIN, MEM, &cfg);
	x->end[NEIGHBOUR].md = md_create_vf(x->end[PF].md, NEIGHBOUR, MEM, &cfg);
	x->end[PF].md->host.tx = on_wire;
	x->end[PF].md->host.tx_arg = x;
	hca = &x->hca->hca;
	x->ops = hca->ops;
	hca->ops.dma_write = hca->ops.dma_write_release = op_write;
	hca->ops.raise_irq = op_irq;
	set_time(x, 1000);
	make_end(x, PF);
	make_end(x, NEIGHBOUR);
	connect_end(x, PF, RC, NEIGHBOUR);
	connect_end(x, NEIGHBOUR, RC, PF);
	set_villain(x);
	start_villain(x);
}

static void close_world(struct world *x)
{
	md_destroy_vf(x->end[VILLAIN].md);
	md_destroy_vf(x->end[NEIGHBOUR].md);
	md_destroy(x->end[PF].md);
}

/* ------------------------------------------------------------------------
 * The others
 */
static uint8_t byte_at(const struct world *x, unsigned int from, uint32_t i)
{
	return (uint8_t)(i * 3 + x->round * 29 + from * 101);
}

static void send_data(struct world *x, unsigned int from, unsigned int to)
{
	struct end *e = &x->end[from];
	struct md_sge sge = { IOVA, LEN, e->mr.key };
	struct md_wr wr = {
		.opcode = QHCA_WQE_WRITE, .flags = QHCA_WQE_F_SIGNALED,
		.num_sge = 1, .sge = &sge, .raddr = IOVA + 2 * MD_PAGE,
		.rkey = x->end[to].mr.key,
	};
	uint8_t data[LEN];

	for (uint32_t i = 0; i < LEN; i++)
		data[i] = byte_at(x, from, i);
	md_buf_write(e->md, &e->mr.buf, 0, data, LEN);
	md_post_send(e->md, &e->qp[RC], &wr);
	md_ring(e->md, &e->qp[RC]);
}

static void wait_for(struct world *x, unsigned int from)
{
	struct end *e = &x->end[from];
	struct qhca_cqe cqe;

	for (unsigned int i = 0; !md_poll(&e->cq, &cqe); i++) {
		if (i == FLOW_RUNS)
			guard_fail("function %u waits for its data to arrive",
				   from);
		if (i % 16)
			run(x, 16);
		else
			pass_time(x);
	}
	if (cqe.status != QHCA_WC_SUCCESS)
		guard_fail("a request of function %u ends with status %u", from,
			   cqe.status);
}

static void check_data(struct world *x, unsigned int from, unsigned int to)
{
	struct end *e = &x->end[to];
	uint8_t data[LEN];

	md_buf_read(e->md, &e->mr.buf, 2 * MD_PAGE, data, LEN);
	for (uint32_t i = 0; i < LEN; i++)
		if (data[i] != byte_at(x, from, i))
			guard_fail("byte %u of what function %u sent is wrong",
				   i, from);
}

static void others_work(struct world *x)
{
	x->alone = false;
	x->round++;
	send_data(x, PF, NEIGHBOUR);
	send_data(x, NEIGHBOUR, PF);
	wait_for(x, PF);
	wait_for(x, NEIGHBOUR);
	check_data(x, PF, NEIGHBOUR);
	check_data(x, NEIGHBOUR, PF);
	must(md_cmd(x->end[PF].md, QHCA_CMD_NOP, 0, 0, NULL, 0, NULL, 0, NULL),
	     "NOP");
	for (unsigned int i = 0; i < IDLE_STEPS; i++)
		pass_time(x);		/* until the device does not linger any more */
	remember(x);
	x->alone = true;
}

/* ------------------------------------------------------------------------
 * The villain
 */
static void write_register(struct world *x)
{
	static const uint32_t known[] = {
		QHCA_REG_CONTROL, QHCA_REG_CMDQ_DOORBELL, QHCA_REG_CMDQ_LOG_SLOTS,
		QHCA_REG_CMDQ_BASE_LO, QHCA_REG_CMDQ_BASE_HI,
	};
	uint32_t reg = in_chance(x->in, 200) ? IN_ONE_OF(x->in, known) :
		       in_below(x->in, 0x200) * 4;

	qhca_reg_write(x->hca, VILLAIN, reg, (uint32_t)in_number(x->in), x->now);
}

static void ring_doorbell(struct world *x)
{
	static const uint32_t known[] = {
		QHCA_DB_SQ, QHCA_DB_CQ_ARM, QHCA_DB_EQ_ARM, QHCA_DB_ETH_TX,
		QHCA_DB_ETH_ARM,
	};

	qhca_doorbell(x->hca, VILLAIN, in_below(x->in, 5),
		      IN_ONE_OF(x->in, known),
		      in_number(x->in) << 32 | in_below(x->in, 8), x->now);
}

/* Does SET_GID name an address of the others? */
static bool takes_their_ip(const struct qhca_cmd_slot *slot, const uint8_t *in)
{
	return get_le16(&slot->opcode) == QHCA_CMD_SET_GID &&
	       (in[15] == 1 || in[15] == 33);
}

static void make_command(struct world *x)
{
	struct md *md = x->end[VILLAIN].md;
	uint8_t *in = md_ptr(md, md->in_mbox);
	struct qhca_cmd_slot slot = { 0 }, *done;

	put_le16(&slot.opcode, (uint16_t)in_below(x->in, 0xa2));
	put_le32(&slot.index, (uint32_t)in_number(x->in));
	put_le32(&slot.param, (uint32_t)in_number(x->in));
	put_le32(&slot.in_len, in_below(x->in, 64) * 8);
	put_le32(&slot.out_len, in_below(x->in, 64) * 8);
	put_le64(&slot.in_addr, md->in_mbox);
	put_le64(&slot.out_addr, md->out_mbox);
	in_fill(x->in, in, in_below(x->in, 64));
	if (takes_their_ip(&slot, in))
		return;
	done = host_cmd_begin(&md->host, &slot, 0);
	run(x, 64);
	if (get_le16(&slot.opcode) >= 0x80 && get_le16(&slot.opcode) < 0xa0 &&
	    get_le32(&done->status) == QHCA_CMD_OK)
		guard_fail("the villain has made a command of the host domain");
}

static void scribble(struct world *x)
{
	struct host *h = &x->end[VILLAIN].md->host;
	uint64_t at = MD_PAGE + in_below(x->in, (uint32_t)(h->next - MD_PAGE));

	h->ram[at] = in_u8(x->in);
}

/* A packet that the neighbour or the PF would take, if it came from their peer. */
static void forge(struct world *x, struct frame *f)
{
	const uint8_t number[] = { 17, 1, 33, 99 };	/* addresses */
	unsigned int to = in_chance(x->in, 128) ? PF : NEIGHBOUR;
	struct end *e = &x->end[to];
	uint8_t how = in_u8(x->in), from = number[in_u8(x->in) & 3];
	struct hca_path path = { .vlan = how & 1 ? 5 : 0xffff, .hop_limit = 64 };
	struct hca_pkt pkt = {
		.opcode = how & 2 ? HCA_OP_WRITE_ONLY : HCA_OP_ACK,
		.pkey = 0xffff, .dest_qpn = e->qp[RC].qpn,
		.psn = 7 + 6 * x->round + (in_u8(x->in) & 3),
		.va = IOVA + 2 * MD_PAGE,
		.rkey = e->mr.key, .dma_len = how & 2 ? 16 : 0,
		.payload_len = how & 2 ? 16 : 0,
	};

	memcpy(path.dmac, e->md->mac, 6);
	memcpy(path.smac, x->end[in_u8(x->in) % NUM].md->mac, 6);
	if (how & 4)
		memcpy(path.smac, x->hca->hca.fn[VILLAIN]->port.mac, 6);
	if (how & 8)
		memset(path.dmac, 0xff, 6);
	memcpy(path.sgid, e->md->gid, 16);
	memcpy(path.dgid, e->md->gid, 16);
	path.sgid[15] = from;
	frame_build(f, &path, &pkt, 1);
	frame_fix(f, FRAME_ALL);
	for (unsigned int i = 0; how & 16 && i < 3; i++)
		f->data[in_below(x->in, (uint32_t)f->len)] = in_u8(x->in);
}

/* Make TCP of the frame, which the device sends in segments of a few bytes. */
static void segment(struct frame *f, struct qhca_eth_txd *txd)
{
	put_be16(f->data + 12, HCA_ETHERTYPE_IPV4);
	f->data[14] = 0x45;
	put_be16(f->data + 20, 0);
	f->data[23] = 6;
	f->data[46] = 0x50;
	put_le16(&txd->flags, QHCA_TXD_EOP | QHCA_TXD_TSO | QHCA_TXD_CSUM);
	put_le16(&txd->csum_start, 34);
	put_le16(&txd->csum_offset, HCA_TSO_CSUM);
	put_le16(&txd->mss, QHCA_MIN_TSO_MSS);
	put_le16(&txd->hdr_len, 54);
}

static void send_frames(struct world *x)
{
	struct md *md = x->end[VILLAIN].md;
	uint8_t how = in_u8(x->in), num = 1 + (how & 15);
	struct qhca_eth_txd txd = { 0 };
	struct frame f;

	forge(x, &f);
	put_le16(&txd.flags, QHCA_TXD_EOP);
	if (how & 0x80)
		segment(&f, &txd);
	memcpy(md_ptr(md, x->frame), f.data, f.len);
	put_le64(&txd.addr, x->frame);
	put_le32(&txd.len, (uint32_t)f.len);
	for (; num; num--) {
		memcpy(md_ptr(md, x->ring + x->tx_pi++ % (1u << LOG_TX) *
			      sizeof(txd)), &txd, sizeof(txd));
		qhca_doorbell(x->hca, VILLAIN, 0, QHCA_DB_ETH_TX,
			      (uint64_t)x->tx_pi << 32, x->now);
		if (num % (1u << LOG_TX) == 1)
			run(x, 8);
	}
}

static void post_request(struct world *x)
{
	struct end *e = &x->end[VILLAIN];
	struct md_qp *qp = &e->qp[in_below(x->in, NUM_QPS)];
	unsigned int to = in_below(x->in, NUM);
	struct md_sge sge = { IOVA, in_below(x->in, 512), e->mr.key };
	struct qhca_wqe_ud ud = { 0 };
	struct qhca_wqe_bind bind = { .mr_lkey = e->mr.key };
	struct qhca_wqe_reg reg = { 0 };
	struct md_wr wr = {
		.opcode = in_below(x->in, 16), .flags = in_u8(x->in) &
			  (uint8_t)~QHCA_WQE_F_INLINE,
		.num_sge = 1, .sge = &sge, .raddr = IOVA + in_number(x->in),
		.rkey = x->end[to].mr.key, .bind = &bind, .reg = &reg,
	};

	put_le32(&ud.dest_qpn, x->end[to].qp[RC].qpn);
	put_le32(&ud.qkey, QKEY);
	md_av(e->md, &ud.av, x->end[to].md->mac[5], false);
	if (qp == &e->qp[UD])
		wr.ud = &ud;
	md_post_send(e->md, qp, &wr);
	md_ring(e->md, qp);
}

/* The host resets the villain, or the villain starts again by itself. */
static void begin_again(struct world *x)
{
	struct hca_fn *fn = x->hca->hca.fn[VILLAIN];
	uint8_t how = in_u8(x->in);

	if (how < 64)
		qhca_pci_reset(x->hca, VILLAIN, x->now);
	else if (how < 96)
		qhca_inject_fatal(x->hca, VILLAIN);
	if (how & 1 || !fn->initialised || fn->status & QHCA_STATUS_FATAL)
		start_villain(x);
}

static void villain_works(struct world *x)
{
	static void (*const op[])(struct world *x) = {
		write_register, ring_doorbell, make_command, make_command,
		scribble, scribble, scribble, send_frames, send_frames,
		send_frames, post_request, post_request, begin_again, pass_time,
	};

	op[in_below(x->in, sizeof(op) / sizeof(*op))](x);
	run(x, in_u8(x->in) & 31);
}

uint64_t fuzz_one(const uint8_t *data, size_t size)
{
	struct in in = { data, data + size };
	struct world x = { .in = &in, .digest = 0xcbf29ce484222325ull };

	world = &x;
	open_world(&x);
	others_work(&x);
	for (unsigned int i = 1; in_more(&in) && i < MAX_OPS; i++) {
		villain_works(&x);
		if (i % OPS_A_ROUND)
			continue;
		compare(&x);
		others_work(&x);
	}
	compare(&x);
	others_work(&x);
	for (unsigned int i = 0; i < NUM; i++)
		mix(&x, x.hca->hca.fn[i]->counter,
		    sizeof(x.hca->hca.fn[i]->counter));
	close_world(&x);
	return x.digest;
}
