/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "minidrv.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "odp.h"

#define CMD_OWN_WORD	offsetof(struct qhca_cmd_slot, status)
#define RUN_LIMIT	1000000

void md_die(const char *fmt, ...)
{
	va_list ap;

	fflush(stdout);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	abort();
}

static uint32_t md_rand(struct md *md)
{
	md->rng ^= md->rng << 13;
	md->rng ^= md->rng >> 17;
	md->rng ^= md->rng << 5;
	return md->rng;
}

/* ---- host operations */

static bool dma_bad(struct md *md, uint64_t addr, size_t len)
{
	if (md->dma_hook)
		md->dma_hook(md);
	if (md->fail_dma && !--md->fail_dma) {
		md->fail_dma = md->fail_dma_on;
		md->dma_failed++;
		return true;
	}
	return addr < MD_PAGE || addr > md->mem_len ||
	       len > md->mem_len - addr;
}

static void count_watched(struct md *md, uint64_t addr, size_t len, bool write)
{
	for (struct md_watch *w = md->watches; w; w = w->next)
		if (addr < w->first + w->len && w->first < addr + len)
			(*(write ? &w->writes : &w->reads))++;
}

static int op_dma_read(void *host, uint16_t gvmi, uint64_t addr, void *buf,
		       size_t len)
{
	struct md *md = host;

	(void)gvmi;
	md->dma_reads++;
	count_watched(md, addr, len, false);
	if (dma_bad(md, addr, len))
		return -1;
	memcpy(buf, md->mem + addr, len);
	return 0;
}

static int op_dma_write(void *host, uint16_t gvmi, uint64_t addr,
			const void *buf, size_t len)
{
	struct md *md = host;

	(void)gvmi;
	md->dma_writes++;
	count_watched(md, addr, len, true);
	if (dma_bad(md, addr, len))
		return -1;
	memcpy(md->mem + addr, buf, len);
	return 0;
}

static void op_raise_irq(void *host, unsigned int vector)
{
	struct md *md = host;

	md->irqs |= 1ull << vector;
}

static void *op_tx_reserve(void *host, size_t len)
{
	struct md *md = host;

	if (len > sizeof(md->frame))
		md_die("frame of %zu bytes", len);
	if (md->tx_room && !md->tx_room(md->tx_arg))
		return NULL;
	/* nothing of an old frame may be sent again */
	memset(md->frame, 0xee, len);
	return md->frame;
}

static void op_tx_commit(void *host, size_t len)
{
	struct md *md = host;

	if (md->tx)
		md->tx(md->tx_arg, md->frame, len);
}

static void op_trace(void *host, enum qhca_trace_id id, uint64_t a, uint64_t b,
		     uint64_t c, uint64_t d)
{
	struct md *md = host;

	if (md->trace)
		md->trace(md, id, a, b, c, d);
}

/* ---- memory */

void *md_own(struct md *md, size_t n, size_t size)
{
	void *p = calloc(n ? n : 1, size);

	md->owned = realloc(md->owned,
			    (md->num_owned + 1) * sizeof(*md->owned));
	md->owned[md->num_owned++] = p;
	return p;
}

uint64_t md_alloc(struct md *md, uint64_t len, uint64_t align)
{
	uint64_t addr = (md->brk + align - 1) & ~(align - 1);

	if (addr > md->mem_len || len > md->mem_len - addr)
		md_die("guest memory of %llu bytes is full",
		       (unsigned long long)md->mem_len);
	md->brk = addr + len;
	memset(md->mem + addr, 0, len);
	return addr;
}

void *md_ptr(struct md *md, uint64_t addr)
{
	return md->mem + addr;
}

static void shuffle(struct md *md, uint64_t *v, uint32_t n)
{
	for (uint32_t i = n; i > 1; i--) {
		uint32_t j = md_rand(md) % i;
		uint64_t t = v[i - 1];

		v[i - 1] = v[j];
		v[j] = t;
	}
}

/* A tree of nodes over @page[0 .. n); *levels as many as it takes. */
static uint64_t make_tree(struct md *md, const uint64_t *page, uint32_t n,
			  uint8_t *levels)
{
	uint32_t nodes = (n + 511) / 512;
	uint64_t *entry = calloc(nodes, sizeof(*entry)), root;

	for (uint32_t i = 0; i < nodes; i++) {
		uint32_t count = n - i * 512 < 512 ? n - i * 512 : 512;
		uint64_t node = md_alloc(md, count * 8, 64);

		for (uint32_t k = 0; k < count; k++)
			put_le64(md->mem + node + 8 * k, page[i * 512 + k]);
		entry[i] = node | QHCA_ATE_PRESENT;
	}
	++*levels;
	if (nodes == 1)
		root = entry[0] & QHCA_ATE_NODE;
	else
		root = make_tree(md, entry, nodes, levels);
	free(entry);
	return root;
}

void md_buf_alloc(struct md *md, struct md_buf *b, uint64_t len)
{
	uint32_t pages = (len + MD_PAGE - 1) / MD_PAGE;
	uint64_t base = md_alloc(md, (uint64_t)pages * MD_PAGE, MD_PAGE), *leaf;

	b->len = len;
	b->levels = 0;
	b->root = base;
	b->odp = NULL;
	b->num_pages = pages;
	b->page = md_own(md, b->num_pages, sizeof(*b->page));
	for (uint32_t i = 0; i < b->num_pages; i++)
		b->page[i] = base + (uint64_t)i * MD_PAGE;
	if (!md->init.scatter || !b->num_pages)
		return;
	shuffle(md, b->page, b->num_pages);
	leaf = calloc(b->num_pages, sizeof(*leaf));
	for (uint32_t i = 0; i < b->num_pages; i++)
		leaf[i] = b->page[i] | QHCA_ATE_PRESENT | QHCA_ATE_WRITE |
			  QHCA_ATE_LEAF;
	b->root = make_tree(md, leaf, b->num_pages, &b->levels);
	free(leaf);
}

static uint8_t *buf_at(struct md *md, const struct md_buf *b, uint64_t off,
		       uint64_t *len)
{
	uint64_t in_page = MD_PAGE - off % MD_PAGE;

	if (off >= b->len)
		md_die("driver: offset %llu of a buffer of %llu bytes",
		       (unsigned long long)off, (unsigned long long)b->len);
	if (*len > in_page)
		*len = in_page;
	if (b->odp && !md_odp_touch(b->odp, off / MD_PAGE))
		md_die("driver: no frame for the processor's access");
	return md->mem + b->page[off / MD_PAGE] + off % MD_PAGE;
}

void md_buf_write(struct md *md, const struct md_buf *b, uint64_t off,
		  const void *data, uint64_t len)
{
	const uint8_t *from = data;

	while (len) {
		uint64_t n = len;
		uint8_t *to = buf_at(md, b, off, &n);

		memcpy(to, from, n);
		from += n;
		off += n;
		len -= n;
	}
}

void md_buf_read(struct md *md, const struct md_buf *b, uint64_t off,
		 void *data, uint64_t len)
{
	uint8_t *to = data;

	while (len) {
		uint64_t n = len;
		const uint8_t *from = buf_at(md, b, off, &n);

		memcpy(to, from, n);
		to += n;
		off += n;
		len -= n;
	}
}

void md_watch(struct md *md, struct md_watch *watch, const struct md_buf *buf,
	      uint64_t off, uint64_t len)
{
	uint64_t room = len;
	uint8_t *at = buf_at(md, buf, off, &room);

	*watch = (struct md_watch){
		.first = at - md->mem, .len = len, .next = md->watches,
	};
	md->watches = watch;
}

uint32_t md_buf_get32(struct md *md, const struct md_buf *b, uint64_t off)
{
	uint32_t v;

	md_buf_read(md, b, off, &v, 4);
	return get_le32(&v);
}

void md_buf_put32(struct md *md, const struct md_buf *b, uint64_t off,
		  uint32_t v)
{
	uint32_t le;

	put_le32(&le, v);
	md_buf_write(md, b, off, &le, 4);
}

static void buf_describe(const struct md_buf *b, struct qhca_buf *to)
{
	put_le64(&to->base, b->root);
	put_le32(&to->length, b->len);
	to->page_shift = 12;
	to->levels = b->levels;
}

/* ---- life cycle */

struct md *md_create(unsigned int number, uint64_t mem_len,
		     const struct qhca_config *cfg)
{
	static const struct qhca_host_ops ops = {
		.dma_read = op_dma_read, .dma_write = op_dma_write,
		.dma_write_release = op_dma_write,
		.raise_irq = op_raise_irq,
		.tx_reserve = op_tx_reserve, .tx_commit = op_tx_commit,
		.trace = op_trace,
	};
	struct md *md = calloc(1, sizeof(*md));
	struct qhca_config c = *cfg;
	char err[200];

	md->mem_len = mem_len;
	md->mem = calloc(1, mem_len);
	md->rng = 0x9e3779b9u + number;
	memcpy(md->mac, (uint8_t[]){ 2, 0, 0, 0, 0, number }, 6);
	memcpy(md->gid, (uint8_t[16]){ [10] = 0xff, [11] = 0xff, [12] = 10,
				       [15] = number }, 16);
	memcpy(c.mac, md->mac, 6);
	md->hca = qhca_create(&c, &ops, md, err, sizeof(err));
	if (!md->hca)
		md_die("qhca_create: %s", err);
	qhca_set_link(md->hca, true, md->now);
	return md;
}

void md_destroy(struct md *md)
{
	qhca_destroy(md->hca);
	while (md->num_owned)
		free(md->owned[--md->num_owned]);
	free(md->owned);
	free(md->mem);
	free(md);
}

void md_settle(struct md *md)
{
	for (int i = 0; i < RUN_LIMIT; i++)
		if (!qhca_run(md->hca, md->now, 64).more)
			return;
	md_die("the engine does not come to rest");
}

bool md_dead(struct md *md)
{
	return qhca_reg_read(md->hca, QHCA_REG_STATUS, md->now) &
	       QHCA_STATUS_FATAL;
}

int md_cmd(struct md *md, uint16_t opcode, uint32_t index, uint32_t param,
	   const void *in, uint32_t in_len, void *out, uint32_t out_len,
	   uint64_t *out_param)
{
	struct qhca_cmd_slot *slot = md_ptr(md, md->cmdq);

	memset(slot, 0, sizeof(*slot));
	put_le16(&slot->opcode, opcode);
	put_le32(&slot->index, index);
	put_le32(&slot->param, param);
	if (in) {
		memcpy(md_ptr(md, md->in_mbox), in, in_len);
		put_le64(&slot->in_addr, md->in_mbox);
		put_le32(&slot->in_len, in_len);
	}
	if (out) {
		put_le64(&slot->out_addr, md->out_mbox);
		put_le32(&slot->out_len, out_len);
	}
	put_le32(&slot->status, QHCA_CMD_OWN);
	qhca_reg_write(md->hca, QHCA_REG_CMDQ_DOORBELL, 1, md->now);
	for (int i = 0; get_le32(&slot->status) & QHCA_CMD_OWN; i++) {
		if (i == RUN_LIMIT)
			md_die("command %#x is not answered", opcode);
		qhca_run(md->hca, md->now, 4);
	}
	if (out)
		memcpy(out, md_ptr(md, md->out_mbox), out_len);
	if (out_param)
		*out_param = get_le64(&slot->out_param);
	return get_le32(&slot->status) & QHCA_CMD_STATUS;
}

static void must(int status, const char *what)
{
	if (status)
		md_die("%s: command status %d", what, status);
}

static void init_hca(struct md *md)
{
	static const uint8_t entry[] = { 6, 10, 7, 7, 7 };
	uint8_t log[] = { md->init.log_pt, md->init.log_qp, md->init.log_cq,
			  md->init.log_srq, 4 };
	struct qhca_init_hca in = { 0 };
	uint64_t chunk[QHCA_MAX_CHUNKS];

	for (int t = 0; t < QHCA_NUM_TABLES; t++) {
		in.table[t].log_entries = log[t];
		in.table[t].log_chunk = 16;
	}
	for (int c = 0; c < QHCA_NUM_CACHES; c++) {
		put_le16(&in.cache[c].sets, md->init.cache[c].sets);
		put_le16(&in.cache[c].blocks, md->init.cache[c].blocks);
	}
	put_le32(&in.flags, md->init.flags);
	must(md_cmd(md, QHCA_CMD_INIT_HCA, 0, 0, &in, sizeof(in), NULL, 0,
		    NULL), "INIT_HCA");
	for (int t = 0; t < QHCA_NUM_TABLES; t++) {
		uint32_t bytes = 1u << (log[t] + entry[t]);
		uint32_t n = (bytes + 0xffff) >> 16;

		md->table[t] = md_alloc(md, (uint64_t)n << 16, MD_PAGE);
		for (uint32_t i = 0; i < n; i++)
			put_le64(&chunk[i], md->table[t] + ((uint64_t)i << 16));
		must(md_cmd(md, QHCA_CMD_MAP_CHUNKS, 0, t | n << 8, chunk,
			    8 * n, NULL, 0, NULL), "MAP_CHUNKS");
	}
	md->pt = md->table[QHCA_TABLE_PT];
}

static void init_eq(struct md *md)
{
	struct qhca_eqc_sw in = { 0 };
	uint32_t ring = 64u << md->init.log_eq;

	md->eq_ring = md_alloc(md, ring + 128, MD_PAGE);
	md->eq_rec = md->eq_ring + ring;
	md->eq_ci = 0;
	put_le64(&in.buf.base, md->eq_ring);
	put_le32(&in.buf.length, ring + 128);
	in.buf.page_shift = 12;
	put_le32(&in.rec_offset, ring);
	in.log_depth = md->init.log_eq;
	must(md_cmd(md, QHCA_CMD_CREATE_EQ, 0, 0, &in, sizeof(in), NULL, 0,
		    NULL), "CREATE_EQ");
}

static void make_gid(uint8_t gid[16], unsigned int number, uint8_t net, bool v6)
{
	memset(gid, 0, 16);
	if (v6) {
		gid[0] = 0xfe;
		gid[1] = 0x80;
	} else {
		gid[10] = gid[11] = 0xff;
		gid[12] = 10;
	}
	gid[13] = net;
	gid[15] = number;
}

int md_set_gid(struct md *md, uint32_t index, uint8_t net, bool v6,
	       uint16_t vlan)
{
	struct qhca_gid_entry gid = { 0 };

	make_gid(gid.gid, md->mac[5], net, v6);
	memcpy(gid.smac, md->mac, 6);
	put_le16(&gid.vlan, vlan);
	put_le32(&gid.flags, QHCA_GID_VALID | (v6 ? 0 : QHCA_GID_IPV4));
	return md_cmd(md, QHCA_CMD_SET_GID, index, 0, &gid, sizeof(gid), NULL,
		      0, NULL);
}

static void init_port(struct md *md)
{
	struct qhca_port_config port = { 0 };

	put_le32(&port.fields, QHCA_PORT_SET_MTU);
	put_le32(&port.eth_mtu, md->init.eth_mtu);
	must(md_cmd(md, QHCA_CMD_SET_PORT, 0, 0, &port, sizeof(port), NULL, 0,
		    NULL), "SET_PORT");
	must(md_set_gid(md, 0, 0, false, QHCA_GID_NO_VLAN), "SET_GID");
	must(md_set_gid(md, 1, 0, true, QHCA_GID_NO_VLAN), "SET_GID");
}

void md_start(struct md *md, const struct md_init *init)
{
	md->init = *init;
	if (!md->init.eth_mtu)
		md->init.eth_mtu = 4200;
	if (!md->init.log_pt)
		md->init.log_pt = 10;
	if (!md->init.log_qp)
		md->init.log_qp = 8;
	if (!md->init.log_cq)
		md->init.log_cq = 8;
	if (!md->init.log_srq)
		md->init.log_srq = 6;
	if (!md->init.log_eq)
		md->init.log_eq = 10;
	md->next_key = QHCA_FIRST_KEY_INDEX;
	md->next_qpn = 2;
	md->next_cqn = md->next_srqn = md->cq_eqn = 0;
	md->brk = MD_PAGE;

	qhca_reg_write(md->hca, QHCA_REG_CONTROL, QHCA_CONTROL_RESET, md->now);
	md->cmdq = md_alloc(md, MD_PAGE, MD_PAGE);
	md->in_mbox = md_alloc(md, MD_PAGE, MD_PAGE);
	md->out_mbox = md_alloc(md, MD_PAGE, MD_PAGE);
	qhca_reg_write(md->hca, QHCA_REG_CMDQ_LOG_SLOTS, 0, md->now);
	qhca_reg_write(md->hca, QHCA_REG_CMDQ_BASE_LO, md->cmdq, md->now);
	qhca_reg_write(md->hca, QHCA_REG_CMDQ_BASE_HI, md->cmdq >> 32, md->now);
	qhca_reg_write(md->hca, QHCA_REG_CONTROL, QHCA_CONTROL_ENABLE, md->now);
	if (!(qhca_reg_read(md->hca, QHCA_REG_STATUS, md->now) &
	      QHCA_STATUS_ENABLED))
		md_die("the command queue does not come up");
	must(md_cmd(md, QHCA_CMD_QUERY_CAPS, 0, 0, NULL, 0, &md->caps,
		    sizeof(md->caps), NULL), "QUERY_CAPS");
	init_hca(md);
	init_eq(md);
	init_port(md);
}

bool md_event(struct md *md, struct qhca_eqe *eqe)
{
	uint32_t depth = 1u << md->init.log_eq;
	const struct qhca_eqe *e = md_ptr(md, md->eq_ring +
					  64ull * (md->eq_ci % depth));
	bool want = !(md->eq_ci >> md->init.log_eq & 1);

	if (!!(get_le32(&e->phase) & QHCA_PHASE) != want)
		return false;
	*eqe = *e;
	md->eq_ci++;
	put_le32(md_ptr(md, md->eq_rec), md->eq_ci);
	return true;
}

/* ---- memory regions */

void md_pte_write(struct md *md, uint32_t index, const struct qhca_pte *pte)
{
	memcpy(md_ptr(md, md->pt + 64ull * index), pte, sizeof(*pte));
}

void md_reg_mr(struct md *md, struct md_mr *mr, uint32_t pd, uint64_t iova,
	       uint64_t len, uint32_t access)
{
	uint32_t index = md->next_key++, octet = md_rand(md) & 0xff;
	struct qhca_pte pte = { 0 };

	md_buf_alloc(md, &mr->buf, len + iova % MD_PAGE);
	mr->iova = iova;
	mr->len = len;
	mr->pd = pd;
	mr->access = access;
	mr->key = index << 8 | octet;
	put_le32(&pte.ctrl, QHCA_PTE_VALID | QHCA_PTE_MR << 4 | octet << 8 |
			    12u << 16 | (uint32_t)mr->buf.levels << 24);
	put_le32(&pte.access, access);
	put_le32(&pte.pd, pd);
	put_le32(&pte.at_key, index);
	put_le64(&pte.start, iova);
	put_le64(&pte.length, len);
	put_le64(&pte.at_base, mr->buf.root);
	put_le64(&pte.at_offset, iova % MD_PAGE);
	md_pte_write(md, index, &pte);
}

/* ---- completion queues */

void md_cq_create(struct md *md, struct md_cq *cq, uint32_t log_depth)
{
	md_cq_create_moderated(md, cq, log_depth, 0, 0);
}

void md_cq_create_moderated(struct md *md, struct md_cq *cq, uint32_t log_depth,
			    uint16_t count, uint16_t usec)
{
	struct qhca_cqc_sw in = { 0 };

	memset(cq, 0, sizeof(*cq));
	cq->md = md;
	cq->cqn = md->next_cqn++;
	cq->log_depth = log_depth;
	cq->rec_offset = 64u << log_depth;
	if (cq->rec_offset < 128)
		cq->rec_offset = 128;
	md_buf_alloc(md, &cq->buf, cq->rec_offset + 128);
	buf_describe(&cq->buf, &in.buf);
	put_le32(&in.rec_offset, cq->rec_offset);
	put_le32(&in.eqn, md->cq_eqn);
	put_le32(&in.threshold, 1u << log_depth >> 1);
	put_le16(&in.moder_count, count);
	put_le16(&in.moder_usec, usec);
	in.log_depth = log_depth;
	must(md_cmd(md, QHCA_CMD_CREATE_CQ, cq->cqn, 0, &in, sizeof(in), NULL,
		    0, NULL), "CREATE_CQ");
}

void md_arm(struct md_cq *cq, bool solicited)
{
	qhca_doorbell(cq->md->hca, 0, QHCA_DB_CQ_ARM,
		      (uint64_t)cq->ci << 32 | cq->cqn |
		      (solicited ? QHCA_DB_CQ_SOLICITED : 0), cq->md->now);
}

bool md_poll(struct md_cq *cq, struct qhca_cqe *cqe)
{
	uint32_t slot = cq->ci & ((1u << cq->log_depth) - 1);
	bool want = !(cq->ci >> cq->log_depth & 1);

	md_buf_read(cq->md, &cq->buf, 64ull * slot, cqe, sizeof(*cqe));
	if (!!(get_le32(&cqe->flags) & QHCA_PHASE) != want)
		return false;
	cq->ci++;
	md_buf_put32(cq->md, &cq->buf, cq->rec_offset, cq->ci);
	return true;
}

/* ---- shared receive queues */

static void fill_rwqe(struct md *md, const struct md_buf *b, uint64_t off,
		      uint64_t wr_id, const struct md_sge *sge, uint32_t num_sge)
{
	uint8_t raw[16 + 16 * MD_MAX_SGE];

	put_le64(raw, wr_id);
	put_le16(raw + 8, num_sge);
	for (uint32_t i = 0; i < num_sge; i++) {
		put_le64(raw + 16 + 16 * i, sge[i].addr);
		put_le32(raw + 24 + 16 * i, sge[i].len);
		put_le32(raw + 28 + 16 * i, sge[i].key);
	}
	/* all but `next` and what follows it in the header */
	md_buf_write(md, b, off, raw, 10);
	md_buf_write(md, b, off + 16, raw + 16, 16 * num_sge);
}

static int srq_create(struct md *md, struct md_srq *srq, uint32_t pd,
		      uint32_t log_depth, uint32_t log_stride,
		      struct qhca_srqc_sw *in)
{
	uint32_t depth = 1u << log_depth;
	int status;

	memset(srq, 0, sizeof(*srq));
	srq->srqn = md->next_srqn++;
	srq->log_depth = log_depth;
	srq->log_stride = log_stride;
	srq->rec_offset = ((depth << log_stride) + 127) & ~127u;
	md_buf_alloc(md, &srq->buf, srq->rec_offset + 128);
	for (uint32_t i = 0; i < depth; i++) {
		uint16_t next;

		put_le16(&next, (i + 1) & (depth - 1));
		md_buf_write(md, &srq->buf, ((uint64_t)i << log_stride) + 10,
			     &next, 2);
	}
	srq->tail = depth - 1;
	srq->wr_id = md_own(md, depth, sizeof(*srq->wr_id));
	buf_describe(&srq->buf, &in->buf);
	put_le64(&in->handle, MD_SRQ_HANDLE | srq->srqn);
	put_le32(&in->rec_offset, srq->rec_offset);
	put_le32(&in->pd, pd);
	in->log_depth = log_depth;
	in->log_stride = log_stride;
	in->max_sge = ((1u << log_stride) - 16) / 16 < 32 ?
		      ((1u << log_stride) - 16) / 16 : 32;
	status = md_cmd(md, QHCA_CMD_CREATE_SRQ, srq->srqn, 0, in, sizeof(*in),
			NULL, 0, NULL);
	if (status)
		md->next_srqn--;
	return status;
}

void md_srq_create(struct md *md, struct md_srq *srq, uint32_t pd,
		   uint32_t log_depth, uint32_t log_stride, uint32_t limit)
{
	struct qhca_srqc_sw in = { 0 };

	put_le32(&in.limit, limit);
	put_le32(&in.threshold, 1u << log_depth >> 2);
	must(srq_create(md, srq, pd, log_depth, log_stride, &in),
	     "CREATE_SRQ");
}

void md_srq_create_threshold(struct md *md, struct md_srq *srq, uint32_t pd,
			     uint32_t log_depth, uint32_t log_stride,
			     uint32_t threshold)
{
	struct qhca_srqc_sw in = { 0 };

	put_le32(&in.threshold, threshold);
	must(srq_create(md, srq, pd, log_depth, log_stride, &in),
	     "CREATE_SRQ");
}

int md_xsrq_create(struct md *md, struct md_srq *srq, uint32_t pd,
		   uint32_t log_depth, uint32_t log_stride, uint32_t xrcd,
		   const struct md_cq *cq)
{
	struct qhca_srqc_sw in = { .flags = QHCA_SRQ_XRC };

	put_le32(&in.threshold, 1u << log_depth >> 2);
	put_le32(&in.xrcd, xrcd);
	put_le32(&in.cqn, cq->cqn);
	return srq_create(md, srq, pd, log_depth, log_stride, &in);
}

static void set_next(struct md *md, const struct md_srq *srq,
		     const struct md_buf *b, uint32_t slot, uint32_t to)
{
	uint16_t next;

	put_le16(&next, to);
	md_buf_write(md, b, ((uint64_t)slot << srq->log_stride) + 10, &next, 2);
}

bool md_srq_post(struct md *md, struct md_srq *srq, uint64_t wr_id,
		 const struct md_sge *sge, uint32_t num_sge)
{
	uint64_t off = (uint64_t)srq->free << srq->log_stride;
	uint16_t next;

	if (srq->free == srq->tail)
		return false;
	md_buf_read(md, &srq->buf, off + 10, &next, 2);
	fill_rwqe(md, &srq->buf, off, wr_id, sge, num_sge);
	if (srq->grown_rec)
		fill_rwqe(md, &srq->grown, off, wr_id, sge, num_sge);
	srq->wr_id[srq->free] = wr_id;
	srq->free = get_le16(&next);
	md_buf_put32(md, &srq->buf, srq->rec_offset, ++srq->pi);
	if (srq->grown_rec)
		md_buf_put32(md, &srq->grown, srq->grown_rec, srq->pi);
	return true;
}

void md_srq_free(struct md *md, struct md_srq *srq, uint32_t slot)
{
	set_next(md, srq, &srq->buf, srq->tail, slot);
	if (srq->grown_rec)
		set_next(md, srq, &srq->grown, srq->tail, slot);
	srq->tail = slot;
}

void md_srq_grow_begin(struct md *md, struct md_srq *srq)
{
	uint64_t len = 1ull << (srq->log_depth + srq->log_stride);
	uint8_t *copy = malloc(len);

	srq->grown_rec = (2 * len + 127) & ~127u;
	md_buf_alloc(md, &srq->grown, srq->grown_rec + 128);
	md_buf_read(md, &srq->buf, 0, copy, len);
	md_buf_write(md, &srq->grown, 0, copy, len);
	free(copy);
	md_buf_put32(md, &srq->grown, srq->grown_rec, srq->pi);
}

void md_srq_grow_end(struct md *md, struct md_srq *srq)
{
	uint32_t depth = 1u << srq->log_depth;
	struct md_buf old = srq->buf;
	struct qhca_srqc_sw in = { .log_depth = srq->log_depth + 1 };
	uint64_t *wr_id = md_own(md, 2 * depth, sizeof(*wr_id));
	uint8_t *rubbish;

	buf_describe(&srq->grown, &in.buf);
	put_le32(&in.rec_offset, srq->grown_rec);
	put_le32(&in.threshold, depth >> 1);
	must(md_cmd(md, QHCA_CMD_RESIZE_SRQ, srq->srqn, 0, &in, sizeof(in),
		    NULL, 0, NULL), "RESIZE_SRQ");

	rubbish = malloc(old.len);
	memset(rubbish, 0xee, old.len);
	md_buf_write(md, &old, 0, rubbish, old.len);
	free(rubbish);
	srq->buf = srq->grown;
	srq->rec_offset = srq->grown_rec;
	srq->grown_rec = 0;
	srq->log_depth++;
	memcpy(wr_id, srq->wr_id, depth * sizeof(*wr_id));
	srq->wr_id = wr_id;
	for (uint32_t i = depth; i < 2 * depth; i++)
		md_srq_free(md, srq, i);
}

/* ---- queue pairs */

int md_qp_create(struct md *md, struct md_qp *qp,
		 const struct md_qp_init *init)
{
	struct qhca_qpc_sw in = { 0 };
	bool xrc = init->type == QHCA_QPT_XRC_INI ||
		   init->type == QHCA_QPT_XRC_TGT;
	uint32_t sq_len = 0, rq_len = 0;
	uint16_t flags = init->flags;
	int status;

	memset(qp, 0, sizeof(*qp));
	qp->init = *init;
	qp->qpn = init->type == QHCA_QPT_GSI ? 1 : md->next_qpn;
	if (init->type != QHCA_QPT_XRC_TGT)
		flags |= QHCA_QP_HAS_SQ;
	if (init->srq)
		flags |= QHCA_QP_SRQ;
	else if (!init->no_rq && !xrc)
		flags |= QHCA_QP_HAS_RQ;
	if (flags & QHCA_QP_HAS_SQ)
		sq_len = 1u << (init->sq_log_depth + init->sq_log_stride);
	if (flags & QHCA_QP_HAS_RQ)
		rq_len = 1u << (init->rq_log_depth + init->rq_log_stride);
	qp->rq_offset = sq_len;
	if (rq_len)
		qp->rq_offset = (sq_len + (1u << init->rq_log_stride) - 1) &
				~((1u << init->rq_log_stride) - 1);
	qp->rec_offset = (qp->rq_offset + rq_len + 127) & ~127u;
	md_buf_alloc(md, &qp->buf, qp->rec_offset + 128);
	buf_describe(&qp->buf, &in.buf);
	put_le64(&in.handle, MD_QP_HANDLE | qp->qpn);
	put_le32(&in.rq_offset, qp->rq_offset);
	put_le32(&in.rec_offset, qp->rec_offset);
	in.type = init->type;
	put_le16(&in.flags, flags);
	if (flags & QHCA_QP_HAS_SQ) {
		in.sq_log_depth = init->sq_log_depth;
		in.sq_log_stride = init->sq_log_stride;
		in.sq_max_sge = ((1u << init->sq_log_stride) - 64) / 16;
		if (in.sq_max_sge > MD_MAX_SGE)
			in.sq_max_sge = MD_MAX_SGE;
		put_le16(&in.max_inline, in.sq_max_sge * 16);
	}
	if (flags & QHCA_QP_HAS_RQ) {
		in.rq_log_depth = init->rq_log_depth;
		in.rq_log_stride = init->rq_log_stride;
		in.rq_max_sge = ((1u << init->rq_log_stride) - 16) / 16;
		if (in.rq_max_sge > MD_MAX_SGE)
			in.rq_max_sge = MD_MAX_SGE;
		put_le32(&in.rq_threshold, init->rq_threshold);
	}
	put_le32(&in.pd, init->pd);
	put_le32(&in.db_page, init->db_page);
	if (flags & QHCA_QP_HAS_SQ)
		put_le32(&in.send_cqn, init->send_cq->cqn);
	if (!xrc)
		put_le32(&in.recv_cqn, init->recv_cq->cqn);
	if (init->srq)
		put_le32(&in.srqn, init->srq->srqn);
	put_le32(&in.xrcd, init->xrcd);
	status = md_cmd(md, QHCA_CMD_CREATE_QP, qp->qpn, 0, &in, sizeof(in),
			NULL, 0, NULL);
	if (!status && init->type != QHCA_QPT_GSI)
		md->next_qpn++;
	return status;
}

int md_qp_modify(struct md *md, struct md_qp *qp, uint8_t state, uint32_t mask,
		 const struct md_conn *c)
{
	struct qhca_modify_qp in = { 0 };
	int status;

	put_le32(&in.attr_mask, mask | QHCA_QP_ATTR_STATE);
	in.ctx.state = state;
	if (mask & QHCA_QP_ATTR_SQD_EVENT)
		put_le16(&in.ctx.flags, QHCA_QP_SQD_EVENT);
	if (c) {
		put_le32(&in.ctx.qkey, c->qkey);
		put_le32(&in.ctx.dest_qpn, c->dest_qpn);
		put_le32(&in.ctx.sq_psn, c->sq_psn);
		put_le32(&in.ctx.rq_psn, c->rq_psn);
		put_le32(&in.ctx.access, c->access);
		in.ctx.path_mtu = c->mtu;
		in.ctx.timeout = c->timeout;
		in.ctx.retry_cnt = c->retry_cnt;
		in.ctx.rnr_retry = c->rnr_retry;
		in.ctx.min_rnr_timer = c->min_rnr_timer;
		in.ctx.max_rd_atomic = c->max_rd_atomic;
		in.ctx.max_dest_rd_atomic = c->max_dest_rd_atomic;
		in.ctx.av = c->av;
	}
	status = md_cmd(md, QHCA_CMD_MODIFY_QP, qp->qpn, 0, &in, sizeof(in),
			NULL, 0, NULL);
	if (!status && state == QHCA_QPS_RESET) {
		qp->sq_pi = qp->rq_pi = qp->sq_ci = qp->rq_ci = 0;
		md_buf_put32(md, &qp->buf, qp->rec_offset, 0);
		md_buf_put32(md, &qp->buf, qp->rec_offset + 4, 0);
	}
	return status;
}

void md_qp_connect(struct md *md, struct md_qp *qp, const struct md_conn *c)
{
	bool dgram = qp->init.type == QHCA_QPT_UD ||
		     qp->init.type == QHCA_QPT_GSI;
	bool requester = qp->init.type == QHCA_QPT_RC ||
			 qp->init.type == QHCA_QPT_XRC_INI;
	bool target = qp->init.type == QHCA_QPT_XRC_TGT;
	bool responder = qp->init.type == QHCA_QPT_RC || target;
	uint32_t init = QHCA_QP_ATTR_PKEY_INDEX, rtr = 0;
	uint32_t rts = QHCA_QP_ATTR_SQ_PSN;

	init |= dgram ? QHCA_QP_ATTR_QKEY : QHCA_QP_ATTR_ACCESS;
	if (!dgram)
		rtr = QHCA_QP_ATTR_AV | QHCA_QP_ATTR_PATH_MTU |
		      QHCA_QP_ATTR_DEST_QPN | QHCA_QP_ATTR_RQ_PSN;
	if (responder)
		rtr |= QHCA_QP_ATTR_MAX_DEST_RD_ATOMIC |
		       QHCA_QP_ATTR_MIN_RNR_TIMER;
	if (requester)
		rts |= QHCA_QP_ATTR_TIMEOUT | QHCA_QP_ATTR_RETRY_CNT |
		       QHCA_QP_ATTR_RNR_RETRY | QHCA_QP_ATTR_MAX_RD_ATOMIC;
	if (target)
		rts |= QHCA_QP_ATTR_TIMEOUT;
	if (qp->init.type == QHCA_QPT_RAW)	/* has none of these */
		init = rtr = rts = 0;
	must(md_qp_modify(md, qp, QHCA_QPS_INIT, init, c), "to INIT");
	must(md_qp_modify(md, qp, QHCA_QPS_RTR, rtr, c), "to RTR");
	must(md_qp_modify(md, qp, QHCA_QPS_RTS, rts, c), "to RTS");
}

int md_qp_query(struct md *md, struct md_qp *qp, struct qhca_query_qp *out)
{
	return md_cmd(md, QHCA_CMD_QUERY_QP, qp->qpn, 0, NULL, 0, out,
		      sizeof(*out), NULL);
}

int md_qp_destroy(struct md *md, struct md_qp *qp)
{
	return md_cmd(md, QHCA_CMD_DESTROY_QP, qp->qpn, 0, NULL, 0, NULL, 0,
		      NULL);
}

static void fill_body(struct qhca_sq_wqe *w, const struct md_wr *wr)
{
	switch (wr->opcode) {
	case QHCA_WQE_CMP_SWAP:
	case QHCA_WQE_FETCH_ADD:
		put_le64(&w->atomic.raddr, wr->raddr);
		put_le32(&w->atomic.rkey, wr->rkey);
		put_le64(&w->atomic.swap_add, wr->swap_add);
		put_le64(&w->atomic.compare, wr->compare);
		break;
	case QHCA_WQE_FLUSH:
		put_le64(&w->flush.raddr, wr->raddr);
		put_le32(&w->flush.rkey, wr->rkey);
		put_le32(&w->flush.length, wr->flush_len);
		w->flush.type = wr->flush_type;
		w->flush.level = wr->flush_level;
		break;
	case QHCA_WQE_BIND_MW:
		w->bind = *wr->bind;
		break;
	case QHCA_WQE_REG_MR:
		w->reg = *wr->reg;
		break;
	default:
		if (wr->ud) {
			w->ud = *wr->ud;
			break;
		}
		put_le64(&w->rdma.raddr, wr->raddr);
		put_le32(&w->rdma.rkey, wr->rkey);
		break;
	}
}

void md_post_send(struct md *md, struct md_qp *qp, const struct md_wr *wr)
{
	uint32_t slot = qp->sq_pi & ((1u << qp->init.sq_log_depth) - 1);
	uint64_t off = qp->sq_offset +
		       ((uint64_t)slot << qp->init.sq_log_stride);
	struct qhca_sq_wqe w = { 0 };
	uint8_t seg[16];

	w.opcode = wr->opcode;
	w.flags = wr->flags;
	w.num_sge = wr->num_sge;
	put_le32(&w.imm, wr->imm);
	put_le64(&w.wr_id, wr->wr_id);
	put_le32(&w.inline_len, wr->inline_len);
	put_le32(&w.xrc_srqn, wr->xrc_srqn);
	fill_body(&w, wr);
	md_buf_write(md, &qp->buf, off, &w, sizeof(w));
	if (wr->flags & QHCA_WQE_F_INLINE) {
		md_buf_write(md, &qp->buf, off + 64, wr->inline_data,
			     wr->inline_len);
	} else {
		for (uint32_t i = 0; i < wr->num_sge; i++) {
			put_le64(seg, wr->sge[i].addr);
			put_le32(seg + 8, wr->sge[i].len);
			put_le32(seg + 12, wr->sge[i].key);
			md_buf_write(md, &qp->buf, off + 64 + 16 * i, seg, 16);
		}
	}
	md_buf_put32(md, &qp->buf, qp->rec_offset, ++qp->sq_pi);
}

void md_ring(struct md *md, struct md_qp *qp)
{
	if (!md_buf_get32(md, &qp->buf, qp->rec_offset + 64))
		qhca_doorbell(md->hca, qp->init.db_page, QHCA_DB_SQ,
			      (uint64_t)qp->sq_pi << 32 | qp->qpn, md->now);
}

void md_post_recv(struct md *md, struct md_qp *qp, uint64_t wr_id,
		  const struct md_sge *sge, uint32_t num_sge)
{
	uint32_t slot = qp->rq_pi & ((1u << qp->init.rq_log_depth) - 1);

	fill_rwqe(md, &qp->buf, qp->rq_offset +
		  ((uint64_t)slot << qp->init.rq_log_stride), wr_id, sge,
		  num_sge);
	md_buf_put32(md, &qp->buf, qp->rec_offset + 4, ++qp->rq_pi);
}

void md_av_net(const struct md *md, struct qhca_av *av, unsigned int number,
	       uint32_t index, uint8_t net, bool v6)
{
	memset(av, 0, sizeof(*av));
	memcpy(av->dmac, md->mac, 6);
	av->dmac[5] = number;
	make_gid(av->dgid, number, net, v6);
	av->sgid_index = index;
	av->hop_limit = 64;
}

void md_av(const struct md *md, struct qhca_av *av, unsigned int number,
	   bool v6)
{
	md_av_net(md, av, number, v6, 0, v6);
}
