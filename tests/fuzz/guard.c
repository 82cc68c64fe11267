// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "guard.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alloc.h"
#include "wire/icrc.h"
#include "wire/pkt.h"
#include "wire/roce.h"

/*
 * DMA of one call: a WQE costs a handful, an acknowledgement may complete a
 * whole queue, a command may copy 4096 page addresses; depths are small here.
 */
#define DMA_A_CALL	4000u
#define DMA_A_PACKET	1000u
/* Frames beyond the budget, since the engine completes a turn that it has begun. */
#define FRAMES_MORE	2u
/* Questions of a call: there are few addresses, and none is asked twice. */
#define MESSAGES	8u
#define SETTLE_RUNS	20000u
#define STAIN_STACK	16384

struct guard_mode guard_mode;

static struct guard *spare[4];		/* given back, by number */
static size_t resting;			/* heap of those that exist */

void guard_fail(const char *fmt, ...)
{
	va_list ap;

	fflush(stdout);
	va_start(ap, fmt);
	fprintf(stderr, "# finding: ");
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	abort();
}

/* Gives this value to locals of the engine that it does not initialise. */
static __attribute__((noinline)) void stain_stack(void)
{
	uint8_t room[STAIN_STACK];

	if (!guard_mode.thorough)
		return;
	memset(room, guard_mode.stain, sizeof(room));
	__asm__ volatile("" : : "r"(room) : "memory");
}

/* FNV-1a over words, which is enough to tell two runs apart. */
void guard_digest(struct guard *g, const void *data, size_t len)
{
	const uint8_t *p = data;
	uint64_t h = g->digest, word;

	if (!guard_mode.compared)
		return;
	for (; len >= 8; p += 8, len -= 8) {
		memcpy(&word, p, 8);
		h = (h ^ word) * 0x100000001b3ull;
		h ^= h >> 29;
	}
	for (; len; p++, len--)
		h = (h ^ *p) * 0x100000001b3ull;
	g->digest = h;
}

/* ------------------------------------------------------------------------
 * Host operations
 */
/* An access of the device reaches its own registers, as writes. */
static void call_back(struct guard *g)
{
	qhca_doorbell(g->hca, 0, 0, QHCA_DB_SQ, 1ull << 32 | 2, g->md->host.now);
	qhca_reg_write(g->hca, 0, QHCA_REG_CMDQ_DOORBELL, ~0u, g->md->host.now);
	qhca_reg_write(g->hca, 0, QHCA_REG_CONTROL, QHCA_CONTROL_RESET,
		       g->md->host.now);
}

/* The sender of the frame that is being received changes an octet of it. */
static void change_frame(struct guard *g)
{
	if (g->shared_len)
		g->shared[g->dma * 7919 % g->shared_len] ^= (uint8_t)(g->dma | 1);
}

static bool dma_refused(struct guard *g, uint64_t addr, size_t len)
{
	g->dma++;
	change_frame(g);
	if (!g->dma_left--)
		guard_fail("one call makes more DMA accesses than any call needs");
	if (!len)
		guard_fail("the device makes a DMA access of 0 bytes, at least 1 is expected");
	if (g->reset_in && --g->reset_in == 0)
		call_back(g);
	if (g->fail_in && --g->fail_in == 0) {
		g->fail_in = g->fail_on;
		return true;
	}
	return addr < MD_PAGE || addr > GUARD_MEM || len > GUARD_MEM - addr;
}

/* Another processor overwrites what the device has just read. */
static void change_after(struct guard *g, uint64_t addr, size_t len)
{
	for (unsigned int i = 0; i < GUARD_CHANGES; i++) {
		uint64_t at = g->change[i].addr;

		if (!at || at < addr || at - addr >= len)
			continue;
		g->md->host.ram[at] = g->change[i].value;
		g->change[i].addr = 0;
	}
}

static int op_read(void *host, struct qhca_requester who, uint64_t addr,
		   void *buf, size_t len)
{
	struct guard *g = host;

	if (who.gvmi)
		guard_fail("DMA in the name of GVMI %u", who.gvmi);
	stain_stack();
	if (dma_refused(g, addr, len)) {
		memset(buf, guard_mode.stain, len);	/* not to be used */
		return -1;
	}
	memcpy(buf, g->md->host.ram + addr, len);
	change_after(g, addr, len);
	return 0;
}

static void check_write(const struct guard *g, uint64_t addr, size_t len)
{
	uint64_t block, last = (addr + len - 1) / GUARD_BLOCK;

	for (block = addr / GUARD_BLOCK; !g->anything && block <= last; block++)
		if (!g->writable[block])
			guard_fail("the device writes %zu bytes at %#llx, where it may write none",
				   len, (unsigned long long)addr);
}

static int op_write(void *host, struct qhca_requester who, uint64_t addr,
		    const void *buf, size_t len)
{
	struct guard *g = host;

	if (who.gvmi)
		guard_fail("DMA in the name of GVMI %u", who.gvmi);
	stain_stack();
	if (dma_refused(g, addr, len))
		return -1;
	check_write(g, addr, len);
	memcpy(g->md->host.ram + addr, buf, len);
	return 0;
}

static void op_irq(void *host, uint16_t gvmi, unsigned int vector)
{
	struct guard *g = host;

	if (gvmi)
		guard_fail("an interrupt in the name of GVMI %u", gvmi);
	if (vector >= g->hca->pf.cfg.num_vectors)
		guard_fail("the device raises vector %u, there are %u",
			   vector, g->hca->pf.cfg.num_vectors);
	guard_digest(g, &vector, sizeof(vector));
}

static void *op_reserve(void *host, size_t len)
{
	struct guard *g = host;

	if (len > qhca_max_frame(g->hca))
		guard_fail("the device asks for room for a frame of %zu bytes, at most %zu are allowed",
			   len, qhca_max_frame(g->hca));
	g->raw_before = g->hca->pf.counter[QHCA_CNT_raw_tx_packets];
	g->messages_before = g->hca->hca.bundles.messages;
	if (g->blocked)
		return NULL;
	memset(g->md->host.frame, guard_mode.stain, len);
	return g->md->host.frame;
}

/* Is it a message of devices about bundles?  Where it begins; 0: it is none. */
static size_t message_at(const uint8_t *frame, size_t len)
{
	size_t at = len >= 18 && get_be16(frame + 12) == 0x8100 ? 18 : 14;

	if (len >= at && get_be16(frame + at - 2) == HCA_ETHERTYPE_PEERS)
		return at;
	/* One of them is a packet of IP. */
	return len >= at + 20 && get_be16(frame + at - 2) == HCA_ETHERTYPE_IPV4 &&
	       frame[at + 9] == 253 ? at + 20 : 0;
}

/* Long is only what shows that such frames come through. */
static void check_message(struct guard *g, const uint8_t *frame, size_t len)
{
	size_t shortest = HCA_MIN_FRAME + (get_be16(frame + 12) == 0x8100 ? 4 : 0);
	uint8_t kind = frame[message_at(frame, len) + 5];

	if (!g->messages_left--)
		guard_fail("one call sends more messages about bundles than there are reasons");
	if (kind < 1 || kind > 4 || len < shortest ||
	    (kind != 3 && len > shortest))
		guard_fail("the device sends a message about bundles of kind %u with %zu bytes",
			   kind, len);
}

/* Checks that any receiver accepts what the transport sends. */
static void check_frame(const struct guard *g, const uint8_t *frame, size_t len)
{
	size_t ip = 14, udp;
	struct hca_pkt pkt;
	uint32_t bth_len;

	if (get_be16(frame + 12) == 0x8100)
		ip += 4;
	udp = ip + (get_be16(frame + ip - 2) == 0x86dd ? 40 : 20);
	if (len < udp + 8 + HCA_BTH_LEN + 4 ||
	    get_be16(frame + udp + 2) != HCA_ROCE_UDP_PORT ||
	    get_be16(frame + udp + 4) != len - udp)
		guard_fail("the transport sends a frame of %zu bytes that is no RoCE packet", len);
	bth_len = len - udp - 8;
	if (!hca_pkt_parse(frame + udp + 8, bth_len, &pkt))
		guard_fail("the transport sends a malformed packet with opcode %#x",
			   frame[udp + 8]);
	if (get_le32(frame + len - 4) !=
	    (g->hca->pf.hca->wire.no_icrc ? 0 :
	     hca_icrc(frame + ip, udp - ip, bth_len - 4)))
		guard_fail("the transport sends a packet with a wrong ICRC");
}

/* A raw packet QP may send any frame of a length that Ethernet allows. */
static void check_raw_frame(const struct guard *g, size_t len)
{
	if (len < HCA_MIN_FRAME ||
	    len > g->hca->pf.port.eth_mtu + HCA_ETH_HLEN + HCA_VLAN_HLEN)
		guard_fail("a raw packet QP sends a frame of %zu bytes, from %u to %u are allowed",
			   len, HCA_MIN_FRAME, g->hca->pf.port.eth_mtu +
			   HCA_ETH_HLEN + HCA_VLAN_HLEN);
}

static void op_commit(void *host, size_t len)
{
	struct guard *g = host;
	/* Software may send what looks like one. */
	bool message = g->hca->hca.bundles.messages != g->messages_before;
	struct guard_frame *f;

	if (message)
		check_message(g, g->md->host.frame, len);
	else if (!g->frames_left--)
		guard_fail("one call sends more frames than its budget allows");
	else if (g->hca->pf.counter[QHCA_CNT_raw_tx_packets] != g->raw_before)
		check_raw_frame(g, len);
	else if (g->ours)
		check_frame(g, g->md->host.frame, len);
	guard_digest(g, g->md->host.frame, len);
	if (g->num == GUARD_FRAMES)
		return;
	f = &g->wire[(g->first + g->num++) % GUARD_FRAMES];
	f->len = len;
	f->message = message;
	memcpy(f->data, g->md->host.frame, len);
}

static void op_trace(void *host, uint16_t gvmi, enum qhca_trace_id id,
		     uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
	uint64_t v[] = { gvmi, id, a, b, c, d };

	guard_digest(host, v, sizeof(v));
}

/* ------------------------------------------------------------------------
 * Life
 */
void guard_config(struct qhca_config *cfg)
{
	qhca_config_default(cfg);
	cfg->log_max_pt = 8;
	cfg->log_max_qp = 5;
	cfg->log_max_cq = 4;
	cfg->log_max_srq = 3;
	cfg->log_max_eq = 4;
	cfg->log_max_wq_depth = 9;
	cfg->log_max_cq_depth = 10;
	cfg->log_max_eq_depth = 10;
	cfg->num_vectors = 8;
	cfg->num_gids = 4;
	cfg->num_db_pages = 4;
	cfg->max_pool_blocks = 3;
	cfg->max_pool_keys = 3;
	cfg->max_mcast_members = 4;
	for (int c = 0; c < QHCA_NUM_CACHES; c++) {
		cfg->cache_max[c] = (struct qhca_geometry){ 16, 4 };
		cfg->cache_default[c] = (struct qhca_geometry){ 4, 2 };
	}
}

static struct guard *create(unsigned int number)
{
	static const struct qhca_host_ops ops = {
		.dma_read = op_read, .dma_write = op_write,
		.dma_write_release = op_write, .raise_irq = op_irq,
		.tx_reserve = op_reserve, .tx_commit = op_commit,
		.trace = op_trace,
	};
	struct guard *g = calloc(1, sizeof(*g));
	size_t before = alloc_live();
	struct qhca_config cfg;

	guard_config(&cfg);
	cfg.devmem = g->devmem;
	cfg.devmem_size = sizeof(g->devmem);
	cfg.max_bundle = GUARD_BUNDLE;
	g->md = md_create(number, GUARD_MEM, &cfg);
	g->hca = g->md->host.hca;
	g->hca->hca.ops = ops;
	g->hca->hca.host = g;
	g->at_rest = alloc_live() - before;
	resting += g->at_rest;
	return g;
}

static void no_faults(struct qhca_hca *hca, uint64_t seed)
{
	struct qhca_inject_config none = { .seed = seed };
	char err[100];

	if (!qhca_inject_set(hca, &none, err, sizeof(err)))
		guard_fail("%s", err);
}

/* Makes all as new, except for what the device itself may have kept. */
static void renew(struct guard *g)
{
	struct md *md = g->md;

	while (md->num_owned)
		free(md->owned[--md->num_owned]);
	memset(md->host.ram, 0, GUARD_MEM);
	md->host.now = 1000;
	md->rng = 0x9e3779b9u;
	md->pt = 0;
	memset(md->table, 0, sizeof(md->table));
	g->digest = 0xcbf29ce484222325ull;
	g->anything = true;
	memset(g->writable, 0, sizeof(g->writable));
	memset(g->change, 0, sizeof(g->change));
	memset(g->devmem, 0, sizeof(g->devmem));
	g->fail_in = g->reset_in = 0;
	g->fail_on = g->blocked = g->ours = false;
	g->first = g->num = 0;
	g->dma_left = g->frames_left = UINT64_MAX;
	g->messages_left = UINT32_MAX;
	/* Tokens depend on the number of questions since the device exists. */
	g->hca->hca.bundles = (struct hca_bundles){ 0 };
	qhca_trace_mask(g->hca, guard_mode.compared ? ~0ull : 0);
	/* A change of the seed restarts the sequence. */
	no_faults(g->hca, 2);
	no_faults(g->hca, 1);
	qhca_tx_ready(g->hca, md->host.now);
	qhca_set_link(g->hca, true, md->host.now);
	qhca_reset(g->hca, 0, md->host.now);
	/* What a frame in shared memory becomes depends on it. */
	g->dma = 0;
}

struct guard *guard_take(unsigned int number)
{
	struct guard *g = guard_mode.fresh ? NULL : spare[number];

	if (g)
		spare[number] = NULL;
	else
		g = create(number);
	renew(g);
	return g;
}

void guard_give(struct guard *g)
{
	unsigned int number = g->md->mac[5];
	size_t before;

	qhca_reset(g->hca, 0, g->md->host.now);
	if (!guard_mode.fresh && !spare[number]) {
		spare[number] = g;
		return;
	}
	before = alloc_live();
	md_destroy(g->md);
	if (before - alloc_live() != g->at_rest)
		guard_fail("the creation of a device allocated %zu bytes, its destruction freed %zu",
			   g->at_rest, before - alloc_live());
	resting -= g->at_rest;
	free(g);
}

void guard_check_heap(void)
{
	if (alloc_live() != resting)
		guard_fail("devices at rest hold %zu bytes, %zu are expected",
			   alloc_live(), resting);
}

void guard_forget(void)
{
	resting = alloc_live();
}

/* ------------------------------------------------------------------------
 * Where the device may write
 */
void guard_allow(struct guard *g, uint64_t addr, uint64_t len)
{
	g->anything = false;
	memset(g->writable + addr / GUARD_BLOCK, 1,
	       (addr + len - 1) / GUARD_BLOCK - addr / GUARD_BLOCK + 1);
}

void guard_allow_buf(struct guard *g, const struct md_buf *b, uint64_t off,
		     uint64_t len)
{
	uint64_t here;

	for (; len; off += here, len -= here) {
		here = MD_PAGE - off % MD_PAGE;
		here = here < len ? here : len;
		guard_allow(g, b->page[off / MD_PAGE] + off % MD_PAGE, here);
	}
}

void guard_page(struct guard *g, uint64_t addr, bool allowed)
{
	memset(g->writable + addr / GUARD_BLOCK, allowed,
	       MD_PAGE / GUARD_BLOCK);
}

void guard_allow_driver(struct guard *g)
{
	const struct qhca_config *cfg = &g->hca->pf.cfg;
	const struct md *md = g->md;

	guard_allow(g, md->host.slots, sizeof(struct qhca_cmd_slot));
	guard_allow(g, md->out_mbox, QHCA_MAILBOX_SIZE);
	/* Of the EQ only the ring counts; software writes the first half of the record. */
	guard_allow(g, md->eq_ring, md->eq_rec - md->eq_ring);
	guard_allow(g, md->table[QHCA_TABLE_QP], 1024u << cfg->log_max_qp);
	guard_allow(g, md->table[QHCA_TABLE_CQ], 128u << cfg->log_max_cq);
	guard_allow(g, md->table[QHCA_TABLE_SRQ], 128u << cfg->log_max_srq);
	guard_allow(g, md->table[QHCA_TABLE_EQ], 128u << cfg->log_max_eq);
}

/* ------------------------------------------------------------------------
 * Calls
 */
static void begin(struct guard *g, uint64_t packets)
{
	g->dma_left = DMA_A_CALL + DMA_A_PACKET * packets;
	g->frames_left = packets + FRAMES_MORE;
	g->messages_left = MESSAGES;
	stain_stack();
}

static void end(struct guard *g)
{
	g->dma_left = g->frames_left = UINT64_MAX;
	g->messages_left = UINT32_MAX;
}

struct qhca_run_result guard_run(struct guard *g, unsigned int budget)
{
	struct qhca_run_result r;

	begin(g, budget);
	r = qhca_run(g->hca, g->md->host.now, budget);
	end(g);
	if (hca_is_dead(&g->hca->pf) && (r.more || r.deadline != QHCA_NEVER))
		guard_fail("a dead device asks to run, it should be idle");
	return r;
}

void guard_rx(struct guard *g, const uint8_t *frame, size_t len)
{
	/* The copy is as long as the frame, so that the sanitizer reports a read beyond it. */
	uint8_t *copy = malloc(len ? len : 1);

	memcpy(copy, frame, len);
	begin(g, len / 256);		/* as many packets as a bundle may have */
	g->frames_left = 0;		/* qhca_run() sends the answers */
	/* ... but those to messages about bundles, of which each gets one at most. */
	g->messages_left = !!message_at(frame, len);
	if (g->memory) {
		g->shared = copy;
		g->shared_len = len;
		qhca_rx_shared(g->hca, copy, len, g->md->host.now);
		g->shared_len = 0;
	} else {
		qhca_rx_frame(g->hca, copy, len, g->md->host.now);
	}
	end(g);
	free(copy);
}

void guard_doorbell(struct guard *g, uint32_t page, uint32_t offset,
		    uint64_t value)
{
	begin(g, 0);
	g->frames_left = 0;
	qhca_doorbell(g->hca, 0, page, offset, value, g->md->host.now);
	end(g);
}

void guard_reg_write(struct guard *g, uint32_t offset, uint32_t value)
{
	begin(g, 0);
	g->frames_left = 0;
	qhca_reg_write(g->hca, 0, offset, value, g->md->host.now);
	end(g);
}

uint32_t guard_reg_read(struct guard *g, uint32_t offset)
{
	uint32_t value;

	begin(g, 0);
	g->dma_left = 0;		/* a read of a register has no effect */
	g->frames_left = 0;
	value = qhca_reg_read(g->hca, 0, offset, g->md->host.now);
	end(g);
	guard_digest(g, &value, sizeof(value));
	return value;
}

int guard_cmd(struct guard *g, uint16_t opcode, uint32_t index, uint32_t param,
	      const void *in, uint32_t in_len)
{
	struct qhca_cmd_slot *slot = md_ptr(g->md, g->md->host.slots);

	memset(slot, 0, sizeof(*slot));
	if (in)
		memcpy(md_ptr(g->md, g->md->in_mbox), in, in_len);
	put_le16(&slot->opcode, opcode);
	put_le32(&slot->index, index);
	put_le32(&slot->param, param);
	put_le64(&slot->in_addr, g->md->in_mbox);
	put_le64(&slot->out_addr, g->md->out_mbox);
	put_le32(&slot->in_len, in_len);
	put_le32(&slot->out_len, QHCA_MAILBOX_SIZE);
	put_le32(&slot->status, QHCA_CMD_OWN);
	guard_reg_write(g, QHCA_REG_CMDQ_DOORBELL, 1);
	for (int i = 0; i < 100; i++) {
		if (!(get_le32(&slot->status) & QHCA_CMD_OWN))
			return get_le32(&slot->status) & QHCA_CMD_STATUS;
		guard_run(g, 4);
	}
	return -1;
}

static void see_qp(void *arg, const struct qhca_qp_info *info)
{
	struct guard *g = arg;

	guard_digest(g, &info->qpn, sizeof(info->qpn));
	guard_digest(g, &info->sq_pi, sizeof(info->sq_pi));
	guard_digest(g, &info->rq_psn, sizeof(info->rq_psn));
}

static bool see_line(void *arg, const struct qhca_cache_line *line)
{
	guard_digest(arg, &line->index, sizeof(line->index));
	guard_digest(arg, &line->addr, sizeof(line->addr));
	return true;
}

void guard_observe(struct guard *g)
{
	struct qhca_cache_info cache;
	struct qhca_port_info port;
	uint32_t lines;

	begin(g, 0);
	qhca_for_each_qp(g->hca, 0, see_qp, g);
	for (int c = 0; c < QHCA_NUM_CACHES; c++) {
		qhca_query_cache(g->hca, c, &cache);
		lines = (uint32_t)cache.geometry.sets * cache.geometry.blocks;
		if (cache.valid > lines)
			guard_fail("cache %d has %u of %u lines", c,
				   cache.valid, lines);
		qhca_for_each_cache_line(g->hca, c, 0, see_line, g);
	}
	qhca_query_port(g->hca, 0, &port);
	guard_digest(g, &port.eth_mtu, sizeof(port.eth_mtu));
	end(g);
}

void guard_settle(struct guard *g)
{
	for (unsigned int i = 0; guard_run(g, 16).more; i++)
		if (i == SETTLE_RUNS)
			guard_fail("the device does not come to rest");
}

void guard_unblock(struct guard *g)
{
	g->blocked = false;
	qhca_tx_ready(g->hca, g->md->host.now);
}

const struct guard_frame *guard_sent(struct guard *g)
{
	struct guard_frame *f = &g->wire[g->first];

	if (!g->num)
		return NULL;
	g->first = (g->first + 1) % GUARD_FRAMES;
	g->num--;
	return f;
}

/* ------------------------------------------------------------------------
 * Is it alive?
 */
#define LAST_PAGE	(GUARD_MEM - MD_PAGE)

void guard_disable(struct guard *g)
{
	guard_reg_write(g, QHCA_REG_CONTROL, 0);
	for (unsigned int i = 0; i < SETTLE_RUNS; i++) {
		uint32_t status = guard_reg_read(g, QHCA_REG_STATUS);

		if (!(status & QHCA_STATUS_ENABLED) ||
		    status & QHCA_STATUS_FATAL)
			return;
		guard_run(g, 1);
	}
	guard_fail("the device does not finish its command");
}

/*
 * Moves the command queue to a page of our own, since the old page may hold anything.
 */
static void own_queue(struct guard *g)
{
	guard_disable(g);
	guard_reg_write(g, QHCA_REG_CMDQ_LOG_SLOTS, QHCA_MAX_LOG_CMD_SLOTS);
	guard_reg_write(g, QHCA_REG_CMDQ_BASE_LO, LAST_PAGE);
	guard_reg_write(g, QHCA_REG_CMDQ_BASE_HI, 0);
	guard_reg_write(g, QHCA_REG_CONTROL, QHCA_CONTROL_ENABLE);
}

static void nop(struct guard *g)
{
	struct qhca_cmd_slot *slot = md_ptr(g->md, LAST_PAGE);
	uint32_t held = g->hca->pf.eqs.cmd_held, number = 0;

	/* A slot whose event is held cannot be used. */
	while (held >> number & 1 && number < HCA_NUM_CMD_SLOTS - 1)
		number++;
	slot += number;
	memset(slot, 0, sizeof(*slot));
	put_le32(&slot->status, QHCA_CMD_OWN);
	guard_reg_write(g, QHCA_REG_CMDQ_DOORBELL, 1u << number);
	for (int i = 0; get_le32(&slot->status) & QHCA_CMD_OWN; i++) {
		if (hca_is_dead(&g->hca->pf))
			return;
		if (i == 100)
			guard_fail("the device does not answer a NOP");
		guard_run(g, 8);
	}
	if (get_le32(&slot->status))
		guard_fail("a NOP ends with status %u, 0 is expected", get_le32(&slot->status));
}

void guard_check_alive(struct guard *g)
{
	g->fail_in = g->reset_in = 0;
	memset(g->change, 0, sizeof(g->change));
	if (!g->anything)
		guard_allow(g, LAST_PAGE, MD_PAGE);
	if (g->blocked)
		guard_unblock(g);
	if (!hca_is_dead(&g->hca->pf)) {
		own_queue(g);
		nop(g);
	}
	guard_observe(g);
	guard_digest(g, g->md->host.ram, GUARD_MEM);
	guard_digest(g, g->hca->pf.counter, sizeof(g->hca->pf.counter));
	guard_reg_write(g, QHCA_REG_CONTROL, QHCA_CONTROL_RESET);
	if (guard_reg_read(g, QHCA_REG_STATUS) != QHCA_STATUS_READY)
		guard_fail("STATUS is %#x after a reset, %#x is expected",
			   g->hca->pf.status, QHCA_STATUS_READY);
	own_queue(g);
	nop(g);
	if (hca_is_dead(&g->hca->pf))
		guard_fail("the device dies after a reset");
}
