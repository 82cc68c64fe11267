// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Regions and pages with wrong descriptions: the record of bugs, hostile.h. */
#include "hostile.h"

/* ------------------------------------------------------------------------
 * remap: a region whose pages are not what its entry says
 */
struct bad_region {
	const char *what;
	uint64_t root, leaf, length;
	uint8_t levels, shift;
};

/* Both ways: as the source of a send and as the target of a write. */
static void region_refused(const struct bad_region *b)
{
	struct qhca_pte pte = { 0 };
	struct md_sge sge = { IOVA, 8, 100 << 8 };
	struct md_wr wr = { .opcode = QHCA_WQE_SEND, .num_sge = 1,
			    .sge = &sge };
	uint64_t node;
	struct rig r;
	int status;

	for (int remote = 0; remote < 2; remote++) {
		rig_new(&r, false);
		node = md_alloc(r.md, 64, 64);
		put_le64(md_ptr(r.md, node), b->leaf);
		put_le32(&pte.ctrl, QHCA_PTE_VALID | QHCA_PTE_MR << 4 |
				    (uint32_t)b->shift << 16 |
				    (uint32_t)b->levels << 24);
		put_le32(&pte.access, RIGHTS);
		put_le32(&pte.pd, PD);
		put_le64(&pte.start, IOVA);
		put_le64(&pte.length, b->length);
		put_le64(&pte.at_base, b->root ? b->root : node);
		put_le32(&pte.at_key, 100);
		md_pte_write(r.md, 100, &pte);
		if (remote) {
			sge.key = r.mr.key;
			wr.opcode = QHCA_WQE_WRITE;
			wr.raddr = IOVA + (b->length - 8);
			wr.rkey = 100 << 8;
		} else {
			sge.addr = IOVA + (b->length - 8);
			sge.key = 100 << 8;
			wr.opcode = QHCA_WQE_SEND;
		}
		md_post_send(r.md, &r.qp[0], &wr);
		rig_ring(&r, &r.qp[0], 1);
		status = rig_poll(&r);
		if (remote ? status != QHCA_WC_REM_ACCESS_ERR &&
			     status != QHCA_WC_REM_OP_ERR :
			     status != QHCA_WC_LOC_PROT_ERR)
			fail_msg("%s: status %d", b->what, status);
		sge.addr = IOVA;
		rig_free(&r);
	}
}

static void test_remap(void **state)
{
	const uint64_t good = 0x100000 | QHCA_ATE_PRESENT | QHCA_ATE_WRITE;
	const uint64_t nowhere = 1ull << 40;
	const struct bad_region bad[] = {
		{ "no page", 0, 0, 4096, 1, 12 },
		{ "longer than its node", 0, good, 2 * 4096, 1, 12 },
		{ "longer than its levels reach", 0, good, 513 * 4096, 1, 12 },
		{ "page outside of memory", 0, nowhere | 5, 4096, 1, 12 },
		{ "page at the end of addresses", 0, ~0xfffull | 5, 4096, 1,
		  12 },
		{ "node outside of memory", nowhere, 0, 4096, 1, 12 },
		{ "node at the end of addresses", ~0x3full, 0, 1u << 20, 1,
		  12 },
		{ "node not aligned", 0x1001, 0, 4096, 1, 12 },
		{ "too many levels", 0, good, 4096, 6, 12 },
		{ "pages too small", 0, good, 4096, 1, 11 },
		{ "pages too large", 0, good, 4096, 1, 40 },
		{ "contiguous, outside of memory", nowhere, 0, 4096, 0, 12 },
		{ "contiguous, over the end of memory", GUARD_MEM - 4096, 0,
		  4104, 0, 12 },
		{ "contiguous, over the end of addresses", ~0xfffull, 0, 8192,
		  0, 12 },
	};

	(void)state;
	for (unsigned int i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		region_refused(&bad[i]);
}

/* A fast registration of more pages than there is room for. */
static void test_remap_fast_reg(void **state)
{
	struct md_qp_init init = {
		.type = QHCA_QPT_RC, .flags = QHCA_QP_KERNEL,
		.sq_log_depth = LOG_DEPTH, .sq_log_stride = LOG_STRIDE,
		.rq_log_depth = LOG_DEPTH, .rq_log_stride = LOG_RSTRIDE,
		.pd = PD,
	};
	struct qhca_wqe_reg reg = { .page_shift = 12 };
	struct md_wr wr = { .opcode = QHCA_WQE_REG_MR, .reg = &reg,
			    .flags = QHCA_WQE_F_SIGNALED };
	static const uint32_t pages[] = { 0, 5, 512, 513, 4096, 4097,
					  0x7fffffff, 0xffffffff };
	struct qhca_pte pte = { 0 };
	uint64_t node;
	struct rig r;

	(void)state;
	for (unsigned int i = 0; i < 8; i++) {
		rig_new(&r, false);
		node = md_alloc(r.md, 64, 64);
		guard_allow(r.g, node, 32);	/* four entries; 64 bytes */
		put_le32(&pte.ctrl, QHCA_PTE_INVALIDATED |
				    QHCA_PTE_FAST_REG << 4 | 12u << 16 |
				    1u << 24);
		put_le32(&pte.pd, PD);
		put_le32(&pte.at_key, 100);
		put_le64(&pte.at_base, node);
		put_le32(&pte.pool_block, 4);
		md_pte_write(r.md, 100, &pte);
		guard_allow(r.g, r.md->pt + 6400, 64);
		init.send_cq = init.recv_cq = &r.cq;
		assert_int_equal(md_qp_create(r.md, &r.qp[0], &init),
				 QHCA_CMD_OK);
		rig_allow_queue(&r, &r.qp[0].buf, r.qp[0].rec_offset);
		rig_connect(&r, &r.qp[0], r.qp[0].qpn, 1);
		put_le64(&reg.pages, r.mr.buf.page[0]);
		put_le64(&reg.length, 4096);
		put_le32(&reg.key, 100 << 8 | 1);
		put_le32(&reg.num_pages, pages[i]);
		md_post_send(r.md, &r.qp[0], &wr);
		rig_ring(&r, &r.qp[0], 1);
		assert_int_equal(rig_poll(&r), QHCA_WC_MW_BIND_ERR);
		rig_free(&r);
	}
}

/* ------------------------------------------------------------------------
 * length: sums and products that overflow
 */
static void test_length_chunks(void **state)
{
	static const struct {
		uint32_t first, count, len;
	} bad[] = {
		{ 0, 0, 0 }, { 0, 1, 0 }, { 0, 1, 16 }, { 0, 2, 8 },
		{ 0, 513, 4096 }, { 0, 0x200000, 0 }, { 0, 0xffffff, 4096 },
		{ 0xffffffff, 1, 8 }, { 0xffffffff, 2, 16 },
		{ 0x80000000, 1, 8 }, { 1, 0xffffff, 8 },
	};
	uint8_t in[4096] = { 0 };
	struct rig r;

	(void)state;
	rig_new(&r, false);
	/* Each of the tables here has one chunk. */
	for (uint32_t t = 0; t < QHCA_NUM_TABLES; t++)
		for (uint32_t count = 1; count <= QHCA_MAX_CHUNKS; count *= 2) {
			uint32_t first = count == 1, param = t | count << 8;

			assert_int_equal(rig_cmd(&r, QHCA_CMD_MAP_CHUNKS, first,
					     param, in, 8 * count),
					 QHCA_CMD_BAD_INDEX);
			assert_int_equal(rig_cmd(&r, QHCA_CMD_UNMAP_CHUNKS, first,
					     param, NULL, 0),
					 QHCA_CMD_BAD_INDEX);
		}
	for (unsigned int t = 0; t < 256; t++)
		for (unsigned int i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
			uint32_t param = t | bad[i].count << 8;

			assert_int_not_equal(rig_cmd(&r, QHCA_CMD_MAP_CHUNKS,
						 bad[i].first, param, in,
						 bad[i].len), QHCA_CMD_OK);
			/* These have a bad mailbox, and UNMAP_CHUNKS has none. */
			if (i > 0 && i < 4)
				continue;
			assert_int_not_equal(rig_cmd(&r, QHCA_CMD_UNMAP_CHUNKS,
						 bad[i].first, param, NULL, 0),
					     QHCA_CMD_OK);
		}
	rig_assert_works(&r, 300);
	rig_free(&r);
}

/* Rings and records that lie in their buffer only modulo 2^32 or 2^64. */
static void test_length_queue(void **state)
{
	static const struct {
		uint64_t base;
		uint32_t length, offset, record;
	} bad[] = {
		{ 0, RECORD, 4096, RECORD },
		{ 0, RECORD + 128, 4096, UINT32_MAX - 127 },
		{ 0, RECORD + 128, UINT32_MAX - 127, RECORD },
		{ 0, RECORD + 128, UINT32_MAX - 1023, RECORD },
		{ 0, RECORD + 127, 4096, RECORD },
		{ 0, 0, 4096, RECORD },
		{ ~63ull, RECORD + 128, 4096, RECORD },
		{ ~0ull << 12, UINT32_MAX, 4096, RECORD },
		{ 32, RECORD + 128, 4096, RECORD },
	};
	struct qhca_qpc_sw in;
	struct rig r;
	uint64_t base;

	(void)state;
	rig_new(&r, false);
	rig_fill_qp(&r, &in);
	base = get_le64(&in.buf.base);
	for (unsigned int i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		put_le64(&in.buf.base, bad[i].base < 64 ? base + bad[i].base :
							  bad[i].base);
		put_le32(&in.buf.length, bad[i].length);
		put_le32(&in.rq_offset, bad[i].offset);
		put_le32(&in.rec_offset, bad[i].record);
		assert_int_equal(rig_cmd(&r, QHCA_CMD_CREATE_QP, 9, 0, &in,
				     sizeof(in)), QHCA_CMD_BAD_PARAM);
	}
	rig_free(&r);
}

/* Ranges of regions, requests and invalidations that wrap. */
static void test_length_range(void **state)
{
	static const struct {
		uint64_t addr;
		uint32_t len;
	} bad[] = {
		{ IOVA - 1, 8 }, { IOVA + MR_LEN - 7, 8 }, { IOVA, MR_LEN + 1 },
		{ UINT64_MAX - 3, 8 }, { UINT64_MAX, 1 }, { IOVA, 0x80000000 },
		{ 0, 8 }, { IOVA - 0x7fffffff, 0x80000000 },
	};
	struct qhca_range range;
	struct md_sge sge;
	struct md_wr wr = { .num_sge = 1, .sge = &sge };
	struct rig r;
	int status;

	(void)state;
	for (unsigned int i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		rig_new(&r, false);
		sge = (struct md_sge){ bad[i].addr, bad[i].len, r.mr.key };
		wr.opcode = QHCA_WQE_SEND;
		md_post_send(r.md, &r.qp[0], &wr);
		rig_ring(&r, &r.qp[0], 1);
		status = rig_poll(&r);
		/* The valid part of a long message may have been sent. */
		assert_true(status == QHCA_WC_LOC_PROT_ERR ||
			    (bad[i].addr == IOVA && status != QHCA_WC_SUCCESS));
		put_le64(&range.start, bad[i].addr);
		put_le64(&range.length, UINT64_MAX - 1);
		assert_int_equal(rig_cmd(&r, QHCA_CMD_INVALIDATE_RANGE,
				     r.mr.key >> 8, 0, &range, sizeof(range)),
				 bad[i].addr > 2 ? QHCA_CMD_BAD_PARAM :
						   QHCA_CMD_OK);
		rig_free(&r);
	}
}

/* Segments that together are longer than a message, or than 2^32. */
static void test_length_message(void **state)
{
	struct md_sge sge[4];
	struct md_wr wr = { .opcode = QHCA_WQE_SEND, .num_sge = 4,
			    .sge = sge };
	struct rig r;

	(void)state;
	rig_new(&r, false);
	for (int i = 0; i < 4; i++)
		sge[i] = (struct md_sge){ IOVA, 0x40000000, r.mr.key };
	sge[3].len = 0x40000008;	/* 8, modulo 2^32 */
	md_post_send(r.md, &r.qp[0], &wr);
	rig_ring(&r, &r.qp[0], 1);
	assert_int_equal(rig_poll(&r), QHCA_WC_LOC_LEN_ERR);
	rig_free(&r);
}

/* ------------------------------------------------------------------------
 * unmap: what was never made, undone
 */
static void test_unmap(void **state)
{
	static const uint16_t opcodes[] = {
		QHCA_CMD_DESTROY_QP, QHCA_CMD_DESTROY_CQ, QHCA_CMD_DESTROY_SRQ,
		QHCA_CMD_DESTROY_EQ, QHCA_CMD_QUERY_QP, QHCA_CMD_QUERY_CQ,
		QHCA_CMD_QUERY_SRQ, QHCA_CMD_QUERY_EQ, QHCA_CMD_MODIFY_SRQ,
	};
	struct qhca_mgid mgid = { { 0xff } };
	struct rig r;

	(void)state;
	rig_new(&r, false);
	for (unsigned int i = 0; i < 9; i++)
		for (uint32_t index = 5; index < 40; index++) {
			int status = rig_cmd(&r, opcodes[i], index, 0, NULL, 0);

			assert_true(status == QHCA_CMD_BAD_STATE ||
				    status == QHCA_CMD_BAD_INDEX);
		}
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(rig_cmd(&r, QHCA_CMD_UNMAP_POOL_BLOCK, i, 0, NULL,
				     0), QHCA_CMD_BAD_STATE);
	assert_int_equal(rig_cmd(&r, QHCA_CMD_DESTROY_ETHQ, 0, 0, NULL, 0),
			 QHCA_CMD_BAD_STATE);
	assert_int_equal(rig_cmd(&r, QHCA_CMD_DETACH_MCAST, r.qp[0].qpn, 0, &mgid,
			     sizeof(mgid)), QHCA_CMD_BAD_STATE);
	/* The command runs twice. */
	assert_int_equal(md_qp_destroy(r.md, &r.qp[0]), QHCA_CMD_OK);
	assert_int_equal(md_qp_destroy(r.md, &r.qp[0]), QHCA_CMD_BAD_STATE);
	rig_free(&r);
}

/* A command that maps half of its chunks, and then fails. */
static void test_unmap_half(void **state)
{
	struct qhca_init_hca in;
	uint64_t chunk[4];
	struct rig r;

	(void)state;
	memset(&r, 0, sizeof(r));
	rig_start(&r);
	assert_int_equal(rig_cmd(&r, QHCA_CMD_TEARDOWN_HCA, 0, 0, NULL, 0),
			 QHCA_CMD_OK);
	rig_fill_init(&in, 1);
	in.table[QHCA_TABLE_QP].log_entries = 4;
	in.table[QHCA_TABLE_QP].log_chunk = 12;
	assert_int_equal(rig_cmd(&r, QHCA_CMD_INIT_HCA, 0, 0, &in, sizeof(in)),
			 QHCA_CMD_OK);
	for (int i = 0; i < 4; i++)
		put_le64(&chunk[i], 0x100000 + 4096 * (uint64_t)i);
	put_le64(&chunk[3], 0x100001);
	assert_int_equal(rig_cmd(&r, QHCA_CMD_MAP_CHUNKS, 0,
			     QHCA_TABLE_QP | 4 << 8, chunk, sizeof(chunk)),
			 QHCA_CMD_BAD_PARAM);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(rig_cmd(&r, QHCA_CMD_UNMAP_CHUNKS, i,
				     QHCA_TABLE_QP | 1 << 8, NULL, 0),
				 QHCA_CMD_NOT_MAPPED);
	/* One chunk is mapped already, so the device maps none of the others. */
	put_le64(&chunk[3], 0x103000);
	assert_int_equal(rig_cmd(&r, QHCA_CMD_MAP_CHUNKS, 2,
			     QHCA_TABLE_QP | 1 << 8, chunk, 8), QHCA_CMD_OK);
	assert_int_equal(rig_cmd(&r, QHCA_CMD_MAP_CHUNKS, 0,
			     QHCA_TABLE_QP | 4 << 8, chunk, sizeof(chunk)),
			 QHCA_CMD_IN_USE);
	assert_int_equal(rig_cmd(&r, QHCA_CMD_UNMAP_CHUNKS, 0,
			     QHCA_TABLE_QP | 4 << 8, NULL, 0),
			 QHCA_CMD_NOT_MAPPED);
	assert_int_equal(rig_cmd(&r, QHCA_CMD_UNMAP_CHUNKS, 2,
			     QHCA_TABLE_QP | 1 << 8, NULL, 0), QHCA_CMD_OK);
	rig_free(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_remap),
		cmocka_unit_test(test_remap_fast_reg),
		cmocka_unit_test(test_length_chunks),
		cmocka_unit_test(test_length_queue),
		cmocka_unit_test(test_length_range),
		cmocka_unit_test(test_length_message),
		cmocka_unit_test(test_unmap),
		cmocka_unit_test(test_unmap_half),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
