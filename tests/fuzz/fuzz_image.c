// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Hostile images (qhca_load()).
 *
 * The adapter has a physical function with all kinds of objects, one virtual function with
 * stage 2 that waits for its memory, and one that is at rest.  Each input begins with its
 * image, with the physical function's bus mastering or without: the input changes fields,
 * whole words, lengths and versions, cuts the image, or gives a piece of it to another
 * place.  Memory is as it was when the image was saved, or has changed as well.
 *
 * A refused image has a sentence and changes nothing.  With one that is accepted the
 * adapter goes on: software rings, makes commands, and time passes.  Then it is saved
 * again, which the engine checks with HCA_CHECKED as if it read the image.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alloc.h"
#include "guard.h"
#include "image/image.h"
#include "input.h"

#define PF_MEM		(3u << 20)
#define VF_MEM		(2u << 20)
#define WAITING		1u		/* GVMI */
#define AT_REST		2u
#define PD		3u
#define IOVA		0x10000000ull
#define MR_LEN		(4 * MD_PAGE)
#define MAX_CHANGES	8
#define ROUNDS		12u
#define STEP_NS		400000u
#define NUM_QPS		3

static struct setup {
	struct md *pf, *vf, *other;
	struct md_cq cq;
	struct md_srq srq;
	struct md_mr mr;
	struct md_qp qp[NUM_QPS];
	struct base {
		uint8_t *image, *pf_ram, *vf_ram;
		size_t len;
		size_t *field;		/* where sections and their fields begin */
		size_t num_fields;
	} base[2];			/* the second without bus mastering */
} setup;

static char err[300];

/* ---- memory */

/*
 * The row of a hostile image may lead anywhere, where an IOMMU of the host would stop it.
 * The fake host ends the program there, so such an access fails here.
 */
static bool allowed(const struct host *pf, struct qhca_requester who,
		    uint64_t addr, size_t len)
{
	const struct host *h = pf->of_fn[who.gvmi];
	uint64_t index = (addr - HOST_FRAMES) / HOST_PAGE;

	if (addr < HOST_FRAMES)
		return !h->s2_root && addr <= h->ram_len &&
		       len <= h->ram_len - addr;
	return h->s2_root && index < pf->num_frames &&
	       pf->frames[index].gvmi == who.gvmi && who.uplink_attr == h->s2_attr &&
	       len <= HOST_PAGE - addr % HOST_PAGE;
}

static struct qhca_host_ops ops;		/* of the host */

static int op_read(void *host, struct qhca_requester who, uint64_t addr,
		   void *buf, size_t len)
{
	return allowed(host, who, addr, len) ?
	       ops.dma_read(host, who, addr, buf, len) : -1;
}

static int op_write(void *host, struct qhca_requester who, uint64_t addr,
		    const void *buf, size_t len)
{
	return allowed(host, who, addr, len) ?
	       ops.dma_write(host, who, addr, buf, len) : -1;
}

/* ---- the image */

static void make_qps(struct setup *s)
{
	struct md_qp_init init = md_qp_rc(&s->cq, PD);
	struct md_conn conn = md_conn_rc();

	md_av(s->pf, &conn.av, 1, false);
	for (int i = 0; i < NUM_QPS; i++) {
		init.srq = i == 2 ? &s->srq : NULL;
		if (md_qp_create(s->pf, &s->qp[i], &init))
			guard_fail("CREATE_QP is refused");
	}
	for (int i = 0; i < 2; i++) {
		conn.dest_qpn = s->qp[!i].qpn;
		md_qp_connect(s->pf, &s->qp[i], &conn);
	}
	conn.dest_qpn = 77;
	md_av(s->pf, &conn.av, 9, false);	/* nobody */
	md_qp_connect(s->pf, &s->qp[2], &conn);
}

static void post(struct setup *s, unsigned int qp, uint8_t opcode)
{
	struct md_sge sge = { IOVA, 3000, s->mr.key };
	struct md_wr wr = {
		.opcode = opcode, .flags = QHCA_WQE_F_SIGNALED, .num_sge = 1,
		.sge = &sge, .raddr = IOVA + 4096, .rkey = s->mr.key,
	};

	md_post_send(s->pf, &s->qp[qp], &wr);
	md_ring(s->pf, &s->qp[qp]);
}

/* Frames are in the loopback queue and in the injector, and packets outstanding. */
static void make_traffic(struct setup *s)
{
	struct qhca_inject_config cfg = {
		.rule[QHCA_INJECT_DELAY].ppm = 300000, .delay_ns = 5000000,
		.on_tx = true, .seed = 7,
	};

	if (!qhca_inject_set(s->pf->host.hca, &cfg, err, sizeof(err)))
		guard_fail("the injector is not set: %s", err);
	for (int i = 0; i < 3; i++) {
		post(s, 0, QHCA_WQE_WRITE);
		post(s, 1, QHCA_WQE_READ);
		post(s, 2, QHCA_WQE_WRITE);
	}
	md_arm(&s->cq, false);
	qhca_run(s->pf->host.hca, s->pf->host.now, 20);
	for (uint32_t i = 0; i < 40; i++)	/* EQ 0 is full: they are held */
		hca_event(hca_pf(&s->pf->host.hca->hca), QHCA_EVENT_QP_FATAL,
			  2 + i % 9, 0);
	post(s, 2, QHCA_WQE_WRITE);
}

/* Where the values are that a change should meet: each byte of small sections. */
static void find_fields(struct base *b)
{
	size_t at = HCA_IMAGE_MAGIC_LEN;

	b->field = calloc(b->len, sizeof(*b->field));
	while (at + HCA_IMAGE_HEADER <= b->len) {
		uint32_t len = get_le32(b->image + at + HCA_IMAGE_HEADER - 4);
		size_t end = at + HCA_IMAGE_HEADER + (len < 600 ? len : 600);

		for (; at < end; at++)
			b->field[b->num_fields++] = at;
		at += len < 600 ? 0 : len - 600;
	}
}

static void save(struct setup *s, struct base *b)
{
	void *image;

	if (!qhca_freeze(s->pf->host.hca, s->pf->host.now, err, sizeof(err)))
		guard_fail("qhca_freeze(): %s", err);
	image = qhca_save(s->pf->host.hca, &b->len, err, sizeof(err));
	if (!image)
		guard_fail("qhca_save(): %s", err);
	b->image = image;
	b->pf_ram = malloc(PF_MEM);
	b->vf_ram = malloc(VF_MEM);
	memcpy(b->pf_ram, s->pf->host.ram, PF_MEM);
	memcpy(b->vf_ram, s->vf->host.ram, VF_MEM);
	find_fields(b);
}

/* First without bus mastering: stopping the machine changes nothing then. */
static void save_both(struct setup *s)
{
	s->pf->host.no_dma = true;
	save(s, &s->base[1]);
	qhca_thaw(s->pf->host.hca, s->pf->host.now);
	s->pf->host.no_dma = false;
	save(s, &s->base[0]);
}

/* The device of the function asks for the memory of its command slots. */
static void make_wait(struct setup *s)
{
	struct host *vf = &s->vf->host;

	host_s2_open(&s->pf->host, vf, 0x77);
	vf->slots = host_alloc(vf, 4096, 4096);
	qhca_reg_write(vf->hca, WAITING, QHCA_REG_CMDQ_LOG_SLOTS, 2, vf->now);
	qhca_reg_write(vf->hca, WAITING, QHCA_REG_CMDQ_BASE_LO,
		       (uint32_t)vf->slots, vf->now);
	qhca_reg_write(vf->hca, WAITING, QHCA_REG_CONTROL, QHCA_CONTROL_ENABLE,
		       vf->now);
	qhca_reg_write(vf->hca, WAITING, QHCA_REG_CMDQ_DOORBELL, 3, vf->now);
	qhca_run(vf->hca, vf->now, 4);
}

static void open_adapter(struct setup *s)
{
	static const struct md_init init = {
		.log_pt = 6, .log_qp = 5, .log_cq = 4, .log_srq = 3, .log_eq = 1,
		.cache = {
			[QHCA_CACHE_PT] = { 2, 2 }, [QHCA_CACHE_AT] = { 2, 2 },
			[QHCA_CACHE_QD] = { 1, 2 }, [QHCA_CACHE_CQ] = { 1, 1 },
			[QHCA_CACHE_SRQ] = { 1, 1 },
		},
	};
	struct qhca_config cfg;

	guard_config(&cfg);
	s->pf = md_create(1, PF_MEM, &cfg);
	s->vf = md_create_vf(s->pf, WAITING, VF_MEM, &cfg);
	s->other = md_create_vf(s->pf, AT_REST, VF_MEM, &cfg);
	md_start(s->pf, &init);
	md_cq_create_moderated(s->pf, &s->cq, 4, 5, 3000);
	md_srq_create(s->pf, &s->srq, PD, 3, 6, 0);
	md_reg_mr(s->pf, &s->mr, PD, IOVA, MR_LEN,
		  QHCA_ACCESS_LOCAL_WRITE | QHCA_ACCESS_REMOTE_WRITE |
		  QHCA_ACCESS_REMOTE_READ | QHCA_ACCESS_REMOTE_ATOMIC);
	make_qps(s);
	make_wait(s);
	make_traffic(s);
	save_both(s);
	ops = s->pf->host.hca->hca.ops;
	s->pf->host.hca->hca.ops.dma_read = op_read;
	s->pf->host.hca->hca.ops.dma_write = op_write;
	s->pf->host.hca->hca.ops.dma_write_release = op_write;
}

/* ---- an input */

static const struct base *base;			/* of the input */

static size_t place(struct in *in, size_t len)
{
	size_t at = in_chance(in, 200) ?
		    base->field[in_below(in, (uint32_t)base->num_fields)] :
		    in_below(in, (uint32_t)len);

	return at < len ? at : 0;
}

static void put_number(struct in *in, uint8_t *image, size_t len)
{
	static const uint8_t size[] = { 1, 2, 4, 8 };
	size_t at = place(in, len), n = IN_ONE_OF(in, size);
	uint8_t raw[8];

	put_le64(raw, in_number(in));
	memcpy(image + at, raw, n < len - at ? n : len - at);
}

/* A piece is written over another one. */
static void copy_piece(struct in *in, uint8_t *image, size_t len)
{
	size_t from = place(in, len), to = place(in, len);
	size_t n = 1 + in_below(in, 200);

	if (n > len - from)
		n = len - from;
	if (n > len - to)
		n = len - to;
	memmove(image + to, image + from, n);
}

/* Changes the image; returns its length. */
static size_t change(struct in *in, uint8_t *image, size_t len)
{
	switch (in_below(in, 8)) {
	case 0:
		return place(in, len);
	case 1:
		copy_piece(in, image, len);
		return len;
	case 2:
		image[place(in, len)] ^= (uint8_t)(1u << in_below(in, 8));
		return len;
	default:
		put_number(in, image, len);
		return len;
	}
}

static void restore_memory(struct setup *s, struct in *in)
{
	memcpy(s->pf->host.ram, base->pf_ram, PF_MEM);
	memcpy(s->vf->host.ram, base->vf_ram, VF_MEM);
	/* What was memory of contexts, rings or records may be something else. */
	for (unsigned int i = in_chance(in, 40) ? 1 + in_below(in, 4) : 0; i; i--)
		s->pf->host.ram[MD_PAGE + in_below(in, PF_MEM - MD_PAGE)] =
			in_u8(in);
}

static void try_command(struct setup *s, uint16_t opcode, uint32_t index)
{
	struct qhca_cmd_slot slot = { 0 };
	struct host *h = &s->pf->host;

	put_le16(&slot.opcode, opcode);
	put_le32(&slot.index, index);
	put_le64(&slot.out_addr, s->pf->out_mbox);
	put_le32(&slot.out_len, QHCA_MAILBOX_SIZE);
	put_le32(&slot.flags, QHCA_CMD_F_EVENT);
	put_le32(&slot.status, QHCA_CMD_OWN);
	memcpy(h->ram + h->slots, &slot, sizeof(slot));
	qhca_reg_write(h->hca, 0, QHCA_REG_CMDQ_DOORBELL, 1, h->now);
}

static void go_on(struct setup *s, struct in *in)
{
	static const uint16_t opcode[] = {
		QHCA_CMD_QUERY_QP, QHCA_CMD_QUERY_CQ, QHCA_CMD_QUERY_SRQ,
		QHCA_CMD_QUERY_EQ, QHCA_CMD_DESTROY_QP, QHCA_CMD_DESTROY_CQ,
		QHCA_CMD_DESTROY_EQ, QHCA_CMD_DESTROY_SRQ,
		QHCA_CMD_TEARDOWN_HCA, QHCA_CMD_INVALIDATE_ALL,
		QHCA_CMD_QUERY_COUNTERS, QHCA_CMD_QUERY_VF,
	};
	struct host *h = &s->pf->host;
	uint64_t now = h->now;

	for (unsigned int i = 0; i < ROUNDS; i++, now += STEP_NS) {
		uint32_t qpn = 2 + i % 4;

		qhca_doorbell(h->hca, 0, 0, QHCA_DB_SQ,
			      (uint64_t)in_u8(in) << 32 | qpn, now);
		qhca_doorbell(h->hca, 0, 0, QHCA_DB_EQ_ARM,
			      (uint64_t)in_u8(in) << 32, now);
		try_command(s, IN_ONE_OF(in, opcode), in_below(in, 8));
		for (int k = 0; k < 20 && qhca_run(h->hca, now, 32).more; k++)
			continue;
		qhca_tx_ready(h->hca, now);
	}
	qhca_vf_enable(h->hca, WAITING, in_chance(in, 128), now);
	qhca_run(h->hca, now, 32);
	h->now = now;
}

static void save_again(struct setup *s)
{
	struct qhca_hca *hca = s->pf->host.hca;
	void *image;
	size_t len;

	if (!qhca_freeze(hca, s->pf->host.now, err, sizeof(err)))
		guard_fail("qhca_freeze(): %s", err);
	image = qhca_save(hca, &len, err, sizeof(err));
	if (!image)
		guard_fail("qhca_save(): %s", err);
	free(image);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct in in = { data, data + size };
	struct setup *s = &setup;
	size_t live, len;
	uint8_t *image;

	if (!s->base[0].image)
		open_adapter(s);
	base = &s->base[in_chance(&in, 64)];
	len = base->len;
	image = malloc(len);
	memcpy(image, base->image, len);
	for (uint32_t i = in_below(&in, MAX_CHANGES); i && len; i--)
		len = change(&in, image, len);
	image = realloc(image, len ? len : 1);		/* ASan sees its end */
	restore_memory(s, &in);
	live = alloc_live();
	if (!qhca_load(s->pf->host.hca, image, len, err, sizeof(err))) {
		if (!err[0] || strlen(err) > sizeof(err) - 2)
			guard_fail("no sentence");
		if (alloc_live() != live)
			guard_fail("%zu bytes after a refused image, and %zu before",
				   alloc_live(), live);
	} else {
		s->pf->host.no_dma = in_chance(&in, 64);
		qhca_thaw(s->pf->host.hca, s->pf->host.now);
		s->pf->host.no_dma = false;
		qhca_may_dma(s->pf->host.hca, s->pf->host.now);
		go_on(s, &in);
		save_again(s);
	}
	free(image);
	return 0;
}
