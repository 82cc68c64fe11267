// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "host.h"

/* ---- callbacks */

static bool dma_ok(struct host *h, uint64_t addr, size_t len)
{
	if (h->fail_in && --h->fail_in == 0) {
		if (h->fail_on)
			h->fail_in = 1;
		return false;
	}
	if (h->bad_last && addr <= h->bad_last && addr + len > h->bad_first)
		return false;
	return len && addr >= RAM_BASE && len <= RAM_SIZE &&
	       addr - RAM_BASE <= RAM_SIZE - len;
}

static bool watched(const struct host *h, uint64_t addr, size_t len)
{
	return h->watch_last && addr <= h->watch_last &&
	       addr + len > h->watch_first;
}

static void meanwhile(struct host *h)
{
	if (h->meanwhile)
		h->meanwhile(h);
}

static int dma_read(void *host, uint16_t gvmi, uint64_t addr, void *buf,
		    size_t len)
{
	struct host *h = host;

	assert_int_equal(gvmi, h->hca ? h->fn->cfg.gvmi : gvmi);
	meanwhile(h);
	h->reads++;
	h->watch_reads += watched(h, addr, len);
	if (!dma_ok(h, addr, len))
		return -1;
	memcpy(buf, h->ram + (addr - RAM_BASE), len);
	return 0;
}

static int dma_write(void *host, uint16_t gvmi, uint64_t addr, const void *buf,
		     size_t len)
{
	struct host *h = host;

	(void)gvmi;
	meanwhile(h);
	h->writes++;
	h->watch_writes += watched(h, addr, len);
	if (!dma_ok(h, addr, len))
		return -1;
	memcpy(h->ram + (addr - RAM_BASE), buf, len);
	return 0;
}

static void raise_irq(void *host, unsigned int vector)
{
	struct host *h = host;

	assert_true(vector < QHCA_MAX_VECTORS);
	h->irqs[vector]++;
	meanwhile(h);
}

static void *tx_reserve(void *host, size_t len)
{
	struct host *h = host;

	assert_true(len <= sizeof(h->room));
	meanwhile(h);
	h->reserved = h->tx_full ? 0 : len;
	return h->tx_full ? NULL : h->room;
}

static void tx_commit(void *host, size_t len)
{
	struct host *h = host;

	assert_true(len <= h->reserved);
	h->reserved = 0;
	if (h->num_sent < MAX_SENT) {
		h->sent[h->num_sent].len = len;
		memcpy(h->sent[h->num_sent].data, h->room, len);
	}
	h->num_sent++;
	meanwhile(h);
}

/* ---- life */

void host_config(struct qhca_config *cfg)
{
	qhca_config_default(cfg);
	cfg->log_max_pt = 10;
	cfg->log_max_qp = 6;
	cfg->log_max_cq = 6;
	cfg->log_max_srq = 5;
	cfg->log_max_eq = 3;
	cfg->log_max_cq_depth = 10;
	cfg->log_max_eq_depth = 8;
	cfg->num_vectors = 8;
	cfg->num_gids = 8;
	cfg->num_db_pages = 16;
	cfg->max_pool_blocks = 4;
	cfg->max_pool_keys = 3;
	cfg->max_mcast_members = 4;
}

struct host *host_new(const struct qhca_config *cfg)
{
	static const struct qhca_host_ops ops = {
		.dma_read = dma_read, .dma_write = dma_write,
		.dma_write_release = dma_write, .raise_irq = raise_irq,
		.tx_reserve = tx_reserve, .tx_commit = tx_commit,
	};
	struct host *h = calloc(1, sizeof(*h));
	struct qhca_config small;
	char err[200];

	assert_non_null(h);
	h->ram = calloc(1, RAM_SIZE);
	assert_non_null(h->ram);
	h->next = RAM_BASE;
	host_config(&small);
	h->hca = qhca_create(cfg ? cfg : &small, &ops, h, err, sizeof(err));
	if (!h->hca)
		fail_msg("%s", err);
	h->fn = &h->hca->pf;
	qhca_set_link(h->hca, true, 0);
	return h;
}

void host_free(struct host *h)
{
	qhca_destroy(h->hca);
	free(h->ram);
	free(h);
}

uint64_t host_alloc(struct host *h, size_t len, size_t align)
{
	uint64_t addr = (h->next + align - 1) & ~(uint64_t)(align - 1);

	h->next = addr + len;
	assert_true(h->next <= RAM_BASE + RAM_SIZE);
	memset(h->ram + (addr - RAM_BASE), 0, len);
	return addr;
}

void *host_ptr(struct host *h, uint64_t addr)
{
	assert_true(addr >= RAM_BASE && addr < RAM_BASE + RAM_SIZE);
	return h->ram + (addr - RAM_BASE);
}

void host_enable(struct host *h)
{
	h->slots = host_alloc(h, 64 << QHCA_MAX_LOG_CMD_SLOTS, 4096);
	qhca_reg_write(h->hca, QHCA_REG_CMDQ_LOG_SLOTS, QHCA_MAX_LOG_CMD_SLOTS,
		       h->now);
	qhca_reg_write(h->hca, QHCA_REG_CMDQ_BASE_LO, (uint32_t)h->slots,
		       h->now);
	qhca_reg_write(h->hca, QHCA_REG_CMDQ_BASE_HI,
		       (uint32_t)(h->slots >> 32), h->now);
	qhca_reg_write(h->hca, QHCA_REG_CONTROL, QHCA_CONTROL_ENABLE, h->now);
	assert_true(qhca_reg_read(h->hca, QHCA_REG_STATUS, h->now) &
		    QHCA_STATUS_ENABLED);
}

void host_init_default(struct host *h, struct qhca_init_hca *in)
{
	const struct qhca_config *cfg = &h->fn->cfg;
	unsigned int i;

	memset(in, 0, sizeof(*in));
	in->table[QHCA_TABLE_PT].log_entries = cfg->log_max_pt;
	in->table[QHCA_TABLE_QP].log_entries = cfg->log_max_qp;
	in->table[QHCA_TABLE_CQ].log_entries = cfg->log_max_cq;
	in->table[QHCA_TABLE_SRQ].log_entries = cfg->log_max_srq;
	in->table[QHCA_TABLE_EQ].log_entries = cfg->log_max_eq;
	for (i = 0; i < QHCA_NUM_TABLES; i++)
		in->table[i].log_chunk = QHCA_MIN_LOG_CHUNK;
}

enum qhca_cmd_status host_init_hca(struct host *h,
				   const struct qhca_init_hca *in)
{
	return host_cmd(h, QHCA_CMD_INIT_HCA, 0, 0, in, sizeof(*in), NULL, 0);
}

void host_map_table(struct host *h, enum qhca_table table)
{
	uint32_t n = hca_table_chunks(h->fn, table), i;
	size_t size = (size_t)1 << h->fn->tables.map[table].log_chunk;
	__le64 addr[QHCA_MAX_CHUNKS];

	for (i = 0; i < n; i++)
		put_le64(&addr[i], host_alloc(h, size, 4096));
	assert_int_equal(host_cmd(h, QHCA_CMD_MAP_CHUNKS, 0, table | n << 8,
				  addr, n * 8, NULL, 0), QHCA_CMD_OK);
}

static void make_ready(struct host *h, const struct qhca_init_hca *in)
{
	unsigned int i;

	assert_int_equal(host_init_hca(h, in), QHCA_CMD_OK);
	for (i = 0; i < QHCA_NUM_TABLES; i++)
		host_map_table(h, (enum qhca_table)i);
}

struct host *host_new_ready(void)
{
	struct host *h = host_new(NULL);
	struct qhca_init_hca in;

	host_enable(h);
	host_init_default(h, &in);
	make_ready(h, &in);
	return h;
}

struct host *host_new_cache(enum qhca_cache_id id, uint16_t sets,
			    uint16_t blocks)
{
	struct host *h = host_new(NULL);
	struct qhca_init_hca in;

	host_enable(h);
	host_init_default(h, &in);
	put_le16(&in.cache[id].sets, sets);
	put_le16(&in.cache[id].blocks, blocks);
	make_ready(h, &in);
	return h;
}

/* ---- work */

void host_run(struct host *h)
{
	unsigned int i;

	for (i = 0; i < 100000; i++)
		if (!qhca_run(h->hca, h->now, 16).more)
			return;
	fail_msg("the engine never becomes idle");
}

void host_run_at(struct host *h, uint64_t now)
{
	h->now = now;
	host_run(h);
}

struct qhca_cmd_slot host_cmd_slot(struct host *h,
				   const struct qhca_cmd_slot *slot,
				   unsigned int number)
{
	struct qhca_cmd_slot done = *slot;
	uint64_t addr = h->slots + number * sizeof(done);

	put_le32(&done.status, QHCA_CMD_OWN);
	memcpy(host_ptr(h, addr), &done, sizeof(done));
	qhca_reg_write(h->hca, QHCA_REG_CMDQ_DOORBELL, 1u << number, h->now);
	host_run(h);
	memcpy(&done, host_ptr(h, addr), sizeof(done));
	return done;
}

enum qhca_cmd_status host_cmd(struct host *h, enum qhca_opcode opcode,
			      uint32_t index, uint32_t param, const void *in,
			      uint32_t in_len, void *out, uint32_t out_len)
{
	struct qhca_cmd_slot slot = { 0 };
	uint64_t mark = h->next, in_addr, out_addr;

	in_addr = host_alloc(h, QHCA_MAILBOX_SIZE, 64);
	out_addr = host_alloc(h, QHCA_MAILBOX_SIZE, 64);
	if (in_len)
		memcpy(host_ptr(h, in_addr), in, in_len);
	put_le16(&slot.opcode, (uint16_t)opcode);
	put_le32(&slot.index, index);
	put_le32(&slot.param, param);
	put_le64(&slot.in_addr, in_addr);
	put_le64(&slot.out_addr, out_addr);
	put_le32(&slot.in_len, in_len);
	put_le32(&slot.out_len, out_len);
	slot = host_cmd_slot(h, &slot, 0);
	assert_false(get_le32(&slot.status) & QHCA_CMD_OWN);
	if (out_len)
		memcpy(out, host_ptr(h, out_addr), out_len);
	h->next = mark;
	return (enum qhca_cmd_status)(get_le32(&slot.status) &
				      QHCA_CMD_STATUS);
}

/* ---- queues */

struct ring host_ring(struct host *h, unsigned int log_depth)
{
	struct ring r = { .log_depth = log_depth };
	size_t size = (size_t)64 << log_depth;

	if (size < 128)
		size = 128;
	r.base = host_alloc(h, size + 128, 128);
	r.rec_offset = (uint32_t)size;
	r.record = r.base + size;
	put_le64(&r.buf.base, r.base);
	put_le32(&r.buf.length, (uint32_t)size + 128);
	return r;
}

enum qhca_cmd_status host_create_eq(struct host *h, uint32_t eqn,
				    const struct ring *ring, uint16_t vector)
{
	struct qhca_eqc_sw in = {
		.buf = ring->buf, .log_depth = (uint8_t)ring->log_depth,
	};

	put_le32(&in.rec_offset, ring->rec_offset);
	put_le16(&in.vector, vector);
	return host_cmd(h, QHCA_CMD_CREATE_EQ, eqn, 0, &in, sizeof(in), NULL,
			0);
}

enum qhca_cmd_status host_create_cq(struct host *h, uint32_t cqn,
				    const struct ring *ring, uint32_t eqn)
{
	struct qhca_cqc_sw in = {
		.buf = ring->buf, .log_depth = (uint8_t)ring->log_depth,
	};

	put_le32(&in.rec_offset, ring->rec_offset);
	put_le32(&in.eqn, eqn);
	put_le32(&in.threshold, 1u << ring->log_depth);
	return host_cmd(h, QHCA_CMD_CREATE_CQ, cqn, 0, &in, sizeof(in), NULL,
			0);
}

static uint64_t entry(const struct ring *ring, uint32_t i)
{
	return ring->base + 64ull * (i & ((1u << ring->log_depth) - 1));
}

struct qhca_eqe *host_eqe(struct host *h, const struct ring *ring, uint32_t i)
{
	return host_ptr(h, entry(ring, i));
}

struct qhca_cqe *host_cqe(struct host *h, const struct ring *ring, uint32_t i)
{
	return host_ptr(h, entry(ring, i));
}

static bool phase_of(const struct ring *ring, uint32_t i)
{
	return !(i >> ring->log_depth & 1);
}

bool host_eqe_valid(struct host *h, const struct ring *ring, uint32_t i)
{
	return !!(get_le32(&host_eqe(h, ring, i)->phase) & QHCA_PHASE) ==
	       phase_of(ring, i);
}

bool host_cqe_valid(struct host *h, const struct ring *ring, uint32_t i)
{
	return !!(get_le32(&host_cqe(h, ring, i)->flags) & QHCA_PHASE) ==
	       phase_of(ring, i);
}

void host_set_ci(struct host *h, const struct ring *ring, uint32_t ci)
{
	put_le32(host_ptr(h, ring->record), ci);
}

uint64_t host_count(const struct host *h, enum qhca_counter id)
{
	return qhca_counter(h->hca, id);
}

uint64_t host_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}
