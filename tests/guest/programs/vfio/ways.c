// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Each way in which the software of a function can name memory to the device, tried
 * with addresses that are not the guest's.  The requests fail, nobody dies of it who
 * keeps the rules, and what is the guest's own goes on.
 */
#include "vfio/cases.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bytes.h"
#include "lib/tap.h"

static bool ends(struct guest *g, uint8_t opcode, uint32_t lkey, uint32_t rkey, uint64_t laddr,
		 uint64_t raddr, uint32_t len, enum qhca_wc_status want)
{
	enum qhca_wc_status status = guest_rdma(g, opcode, laddr, lkey, raddr, rkey, len);

	guest_reconnect(g);
	if (status != want)
		printf("# opcode %u, L_Key %#x, R_Key %#x: status %d\n", opcode, lkey, rkey,
		       status);
	return status == want;
}

/* A SEND to a receive buffer with @key. */
static bool receive_ends(struct guest *g, const struct md_mr *own, uint32_t key)
{
	struct md_sge sge = { .len = 64, .key = key };
	int first, second;

	md_post_recv(g->md, &g->qp[1], 0, &sge, 1);
	guest_post(g, QHCA_WQE_SEND, own->iova, own->key, 0, 0, 64);
	first = guest_poll(g, 20000);
	second = guest_poll(g, 20000);
	guest_reconnect(g);
	return (first == QHCA_WC_LOC_PROT_ERR && second == QHCA_WC_REM_OP_ERR) ||
	       (second == QHCA_WC_LOC_PROT_ERR && first == QHCA_WC_REM_OP_ERR);
}

/*
 * Every access by @key at address 0 fails, on either side of a connection.  Stage 2 has
 * refused each: what is beyond the guest's memory may look like an entry that is absent.
 */
static bool refused(struct guest *g, const struct md_mr *own, uint32_t key)
{
	unsigned long before = pinned(g).refused, num;
	uint64_t at = own->iova;
	bool ok = true;

	ok &= ends(g, QHCA_WQE_WRITE, own->key, key, at, 0, 64, QHCA_WC_REM_ACCESS_ERR);
	ok &= ends(g, QHCA_WQE_READ, own->key, key, at, 0, 64, QHCA_WC_REM_ACCESS_ERR);
	ok &= ends(g, QHCA_WQE_FETCH_ADD, own->key, key, at, 0, 8, QHCA_WC_REM_ACCESS_ERR);
	ok &= ends(g, QHCA_WQE_WRITE, key, own->key, 0, at, 64, QHCA_WC_LOC_PROT_ERR);
	ok &= ends(g, QHCA_WQE_READ, key, own->key, 0, at, 64, QHCA_WC_LOC_PROT_ERR);
	ok &= receive_ends(g, own, key);
	num = pinned(g).refused - before;
	if (num != 6)
		printf("# key %#x: stage 2 has refused %lu accesses\n", key, num);
	return ok && num == 6;
}

/* Nodes of a region: the root, an entry that leads to a node, and one to a page. */
void case_nodes(const char *address)
{
	uint64_t node, above;
	struct md_mr own;
	struct guest g;
	uint32_t gvmi;

	guest_open(&g, address);
	guest_start(&g);
	gvmi = g.md->host.gvmi;
	guest_region(&g, &own, PAGE);
	node = md_alloc(g.md, PAGE, PAGE);
	above = md_alloc(g.md, PAGE, PAGE);
	for (size_t i = 0; i < NUM_OUTSIDE; i++) {
		CHECK(refused(&g, &own, key_at(&g, outside[i], 1, gvmi)));
		put_le64(guest_ptr(&g, above), outside[i] | QHCA_ATE_PRESENT);
		CHECK(refused(&g, &own, key_at(&g, above, 2, gvmi)));
		put_le64(guest_ptr(&g, node), (outside[i] & QHCA_ATE_ADDR) | QHCA_ATE_PRESENT |
						      QHCA_ATE_WRITE);
		CHECK(refused(&g, &own, key_at(&g, node, 1, gvmi)));
	}
	check_alive(&g);
	guest_close(&g);
	tap_checked("no node leads outside the guest's memory");
}

/* A region of one page in a block of the pool. */
static uint32_t pool_key(struct guest *g, uint32_t block)
{
	uint32_t index = g->md->next_key++;
	struct qhca_pte pte = { 0 };

	put_le32(&pte.ctrl, QHCA_PUT(QHCA_PTE_STATE, QHCA_PTE_VALID) |
			    QHCA_PUT(QHCA_PTE_TYPE, QHCA_PTE_POOL) |
			    QHCA_PUT(QHCA_PTE_PAGE_SHIFT, 12u));
	put_le32(&pte.access, GUEST_ALL);
	put_le32(&pte.pd, GUEST_PD);
	put_le64(&pte.length, PAGE);
	put_le32(&pte.gvmi, g->md->host.gvmi);
	put_le32(&pte.pool_block, block);
	guest_pte(g, index, &pte);
	return index << 8;
}

static int map_block(struct guest *g, uint32_t block, uint64_t at)
{
	struct qhca_pool_row row = { 0 };

	put_le64(&row.addr, at);
	put_le64(&row.length, PAGE);
	return md_cmd(g->md, QHCA_CMD_MAP_POOL_BLOCK, block, 0, &row, sizeof(row), NULL, 0, NULL);
}

static int unmap_block(struct guest *g, uint32_t block)
{
	return md_cmd(g->md, QHCA_CMD_UNMAP_POOL_BLOCK, block, 0, NULL, 0, NULL, 0, NULL);
}

/* Rows of the pool bank are bus addresses: the guest's, that fault, or nobody's. */
void case_pool(const char *address)
{
	const uint64_t at = GUEST_MEMORY - PAGE;
	struct pinned now;
	struct md_mr own;
	struct guest g;

	guest_open_unmapped(&g, address);
	CHECK(!guest_map(&g, HOST_PAGE, at - HOST_PAGE, true));
	CHECK(!guest_map(&g, at, PAGE, true));
	guest_start(&g);
	guest_region(&g, &own, PAGE);
	fill(&g, &own, 22);
	CHECK(map_block(&g, 1, at) == QHCA_CMD_OK);
	now = pinned(&g);
	CHECK(guest_rdma(&g, QHCA_WQE_WRITE, own.iova, own.key, 0, pool_key(&g, 1), PAGE) ==
	      QHCA_WC_SUCCESS);
	CHECK(!memcmp(guest_ptr(&g, at), guest_ptr(&g, own.buf.root), PAGE));
	CHECK(pinned(&g).fault == now.fault + 2 && pinned(&g).faults > now.faults);
	CHECK(!guest_unmap(&g, at, PAGE));
	memset(guest_ptr(&g, at), 0, PAGE);
	CHECK(refused(&g, &own, pool_key(&g, 1)));
	CHECK(((uint8_t *)guest_ptr(&g, at))[0] == 0);
	CHECK(unmap_block(&g, 1) == QHCA_CMD_OK);
	for (size_t i = 0; i < NUM_OUTSIDE; i++) {
		CHECK(map_block(&g, 1, outside[i] & QHCA_ATE_ADDR) == QHCA_CMD_OK);
		CHECK(refused(&g, &own, pool_key(&g, 1)));
		CHECK(unmap_block(&g, 1) == QHCA_CMD_OK);
	}
	check_alive(&g);
	guest_close(&g);
	tap_checked("blocks of the pool are translated by stage 2");
}

/* Commands that give the device a queue; each begins with where its buffer is. */
static const struct {
	uint16_t opcode;
	uint32_t index, param, len;
} queue_commands[] = {
	{ QHCA_CMD_CREATE_EQ, 1, 0, sizeof(struct qhca_eqc_sw) },
	{ QHCA_CMD_CREATE_CQ, 9, 0, sizeof(struct qhca_cqc_sw) },
	{ QHCA_CMD_MODIFY_CQ, 0, QHCA_CQ_ATTR_RESIZE, sizeof(struct qhca_cqc_sw) },
	{ QHCA_CMD_CREATE_SRQ, 1, 0, sizeof(struct qhca_srqc_sw) },
	{ QHCA_CMD_RESIZE_SRQ, 1, 0, sizeof(struct qhca_srqc_sw) },
	{ QHCA_CMD_CREATE_QP, 9, 0, sizeof(struct qhca_qpc_sw) },
};

/* Each of them with a buffer at @base. */
static bool queues_refused(struct guest *g, uint64_t base, uint8_t levels)
{
	uint8_t in[QHCA_MAILBOX_SIZE] = { 0 };
	struct qhca_buf buf = { .page_shift = 12, .levels = levels };
	bool ok = true;
	int status;

	put_le64(&buf.base, base);
	put_le32(&buf.length, PAGE);
	memcpy(in, &buf, sizeof(buf));
	for (size_t i = 0; i < sizeof(queue_commands) / sizeof(queue_commands[0]); i++) {
		status = md_cmd(g->md, queue_commands[i].opcode, queue_commands[i].index,
				queue_commands[i].param, in, queue_commands[i].len, NULL, 0,
				NULL);
		/* A range that wraps is no range; what it is refused with may differ. */
		if (status == QHCA_CMD_DMA_ERR || (base > UINT64_MAX - PAGE && status))
			continue;
		printf("# command %#x, %u levels, at %#llx: status %d\n",
		       queue_commands[i].opcode, levels, (unsigned long long)base, status);
		ok = false;
	}
	return ok;
}

static int map_chunk(struct guest *g, uint64_t at)
{
	uint64_t chunk;

	put_le64(&chunk, at);
	return md_cmd(g->md, QHCA_CMD_MAP_CHUNKS, 0, QHCA_TABLE_CQ, &chunk, sizeof(chunk), NULL,
		      0, NULL);
}

static int create_ethq(struct guest *g, uint64_t tx, uint64_t rx, uint64_t rxc, uint64_t rec)
{
	struct qhca_ethq_config in = { .log_tx = 3, .log_rx = 3 };

	put_le64(&in.tx_base, tx);
	put_le64(&in.rx_base, rx);
	put_le64(&in.rxc_base, rxc);
	put_le64(&in.rec_base, rec);
	return md_cmd(g->md, QHCA_CMD_CREATE_ETHQ, 0, 0, &in, sizeof(in), NULL, 0, NULL);
}

/* Memory that commands give the device: all of it must be the guest's. */
void case_queues(const char *address)
{
	uint64_t node, own;
	struct guest g;

	guest_open(&g, address);
	guest_start(&g);
	node = md_alloc(g.md, PAGE, PAGE);
	own = md_alloc(g.md, PAGE, PAGE);
	for (size_t i = 0; i < NUM_OUTSIDE; i++) {
		uint64_t page = outside[i] & QHCA_ATE_ADDR;

		CHECK(queues_refused(&g, page, 0));
		CHECK(queues_refused(&g, page, 1));
		put_le64(guest_ptr(&g, node), page | QHCA_ATE_PRESENT | QHCA_ATE_WRITE);
		CHECK(queues_refused(&g, node, 1));
		CHECK(map_chunk(&g, page) == QHCA_CMD_DMA_ERR);
		CHECK(create_ethq(&g, page, own, own, own) == QHCA_CMD_DMA_ERR);
		CHECK(create_ethq(&g, own, page, own, own) == QHCA_CMD_DMA_ERR);
		CHECK(create_ethq(&g, own, own, page, own) == QHCA_CMD_DMA_ERR);
		CHECK(create_ethq(&g, own, own, own, page) == QHCA_CMD_DMA_ERR);
	}
	check_alive(&g);
	guest_close(&g);
	tap_checked("no queue or table is outside the guest's memory");
}

/* The function writes completions, or reads requests, and dies of that. */
static void use_and_die(struct guest *g)
{
	struct md_mr mr;
	struct md_sge sge;
	uint32_t info;

	guest_region(g, &mr, PAGE);
	sge = (struct md_sge){ .addr = mr.iova + 64, .len = 64, .key = mr.key };
	md_post_recv(g->md, &g->qp[1], 0, &sge, 1);
	md_arm(&g->cq, false);
	guest_post(g, QHCA_WQE_SEND, mr.iova, mr.key, 0, 0, 64);
	CHECK(guest_fatal(g, 10000, &info) == QHCA_FATAL_STAGE2);
	CHECK(info == QHCA_STAGE2_NOT_PINNED);
}

static uint64_t page_entry(uint64_t page)
{
	return (page & QHCA_ATE_ADDR) | QHCA_ATE_PRESENT | QHCA_ATE_WRITE;
}

/* The nodes of a queue that exists lead elsewhere. */
static void lead(struct guest *g, const struct md_buf *buf, uint64_t to)
{
	uint64_t *node = guest_ptr(g, buf->root);

	CHECK(buf->levels == 1);
	for (uint32_t page = 0; page < buf->num_pages; page++)
		put_le64(&node[page], page_entry(to));
}

/* The same with an event queue, which completions of a new CQ go to. */
static void lead_events(struct guest *g, uint64_t to)
{
	const uint32_t ring = 128 * sizeof(struct qhca_eqe);
	uint64_t page = md_alloc(g->md, 3 * PAGE, PAGE);
	uint64_t node = md_alloc(g->md, PAGE, PAGE), *entry = guest_ptr(g, node);
	struct qhca_eqc_sw in = {
		.buf = { .page_shift = 12, .levels = 1 }, .log_depth = 7,
	};

	put_le64(&in.buf.base, node);
	put_le32(&in.buf.length, ring + sizeof(struct qhca_eq_record));
	put_le32(&in.rec_offset, ring);
	for (int i = 0; i < 3; i++)
		put_le64(&entry[i], page_entry(page + i * PAGE));
	CHECK(md_cmd(g->md, QHCA_CMD_CREATE_EQ, 1, 0, &in, sizeof(in), NULL, 0, NULL) ==
	      QHCA_CMD_OK);
	g->md->cq_eqn = 1;
	md_cq_create(g->md, &g->cq, 6);
	guest_reconnect(g);
	put_le64(&entry[0], page_entry(to));
}

/*
 * Software leads a queue elsewhere, behind the back of the command that made it, before the
 * device has used the page with its first entry: it remembers where pages are.
 */
void case_changed(const char *address)
{
	struct guest g;

	guest_open(&g, address);
	for (size_t i = 0; i < NUM_OUTSIDE; i++) {
		guest_start_scattered(&g);
		lead(&g, &g.cq.buf, outside[i]);
		use_and_die(&g);
		guest_start_scattered(&g);
		if (i % 3 == 2)
			lead_events(&g, outside[i]);
		else
			lead(&g, &g.qp[i % 3].buf, outside[i]);
		use_and_die(&g);
	}
	guest_start(&g);
	check_alive(&g);
	guest_close(&g);
	tap_checked("a queue that is led outside ends the function");
}

struct nic {
	uint64_t tx, rx, rxc, rec;
	uint32_t tx_pi, rx_pi;
};

static void send_frame(struct guest *g, struct nic *n, uint64_t at)
{
	struct qhca_eth_txd *txd = guest_ptr(g, n->tx + n->tx_pi++ % 8 * sizeof(*txd));

	memset(txd, 0, sizeof(*txd));
	put_le64(&txd->addr, at);
	put_le32(&txd->len, 64);
	put_le16(&txd->flags, QHCA_TXD_EOP);
	qhca_doorbell(g->md->host.hca, g->md->host.gvmi, 0, QHCA_DB_ETH_TX,
		      (uint64_t)n->tx_pi << 32, 0);
}

static bool frames_sent(struct guest *g, const struct nic *n)
{
	struct qhca_eth_record *rec = guest_ptr(g, n->rec);

	for (int i = 0; i < 200000 && get_le32(&rec->tx_ci) != n->tx_pi; i++)
		guest_wait(g);
	return get_le32(&rec->tx_ci) == n->tx_pi;
}

/* A receive buffer, for the frames that the test has the physical function send. */
static bool buffer_refused(struct guest *g, struct nic *n, uint64_t at)
{
	struct qhca_eth_rxd *rxd = guest_ptr(g, n->rx + n->rx_pi++ % 8 * sizeof(*rxd));
	struct qhca_eth_record *rec = guest_ptr(g, n->rec);
	unsigned long before = pinned(g).refused;
	struct qhca_port_config in = { 0 };

	put_le64(&rxd->addr, at);
	put_le32(&rxd->len, PAGE);
	put_le32(&rec->rx_pi, n->rx_pi);
	put_le32(&in.fields, QHCA_PORT_SET_RX);
	put_le32(&in.rx_flags, QHCA_RX_ENABLE);
	if (md_cmd(g->md, QHCA_CMD_SET_PORT, 0, 0, &in, sizeof(in), NULL, 0, NULL))
		return false;
	for (int i = 0; i < 20000 && pinned(g).refused == before; i++)
		usleep(1000);
	return pinned(g).refused > before;
}

/* Descriptors of Ethernet queues. */
void case_frames(const char *address)
{
	struct nic n = { 0 };
	unsigned long before;
	struct guest g;
	uint64_t own;

	guest_open(&g, address);
	guest_start(&g);
	n.tx = md_alloc(g.md, PAGE, PAGE);
	n.rx = md_alloc(g.md, PAGE, PAGE);
	n.rxc = md_alloc(g.md, PAGE, PAGE);
	n.rec = md_alloc(g.md, PAGE, PAGE);
	own = md_alloc(g.md, PAGE, PAGE);
	memset(guest_ptr(&g, own), 0xff, 6);
	memcpy((uint8_t *)guest_ptr(&g, own) + 6, g.md->mac, 6);
	CHECK(create_ethq(&g, n.tx, n.rx, n.rxc, n.rec) == QHCA_CMD_OK);
	send_frame(&g, &n, own);
	CHECK(frames_sent(&g, &n));
	CHECK(pinned(&g).fault == 1);
	for (size_t i = 0; i < NUM_OUTSIDE; i++) {
		before = pinned(&g).refused;
		send_frame(&g, &n, outside[i]);
		CHECK(frames_sent(&g, &n));
		CHECK(pinned(&g).refused > before);
	}
	CHECK(buffer_refused(&g, &n, GUEST_MEMORY));
	send_frame(&g, &n, own);
	CHECK(frames_sent(&g, &n));
	check_alive(&g);
	guest_close(&g);
	tap_checked("no frame is outside the guest's memory");
}
