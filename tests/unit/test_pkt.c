// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "unit.h"

#include "wire/pkt.h"

/* RDMA WRITE Only with Immediate to QP 0x11, PSN 0xabcdef, by hand. */
static const uint8_t write_imm[] = {
	0x0b, 0xf0, 0xff, 0xff, 0x00, 0x00, 0x00, 0x11,
	0x80, 0xab, 0xcd, 0xef,
	0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08,	/* address */
	0x00, 0x00, 0x2a, 0x07,				/* R_Key */
	0x00, 0x00, 0x00, 0x05,				/* length */
	0xde, 0xad, 0xbe, 0xef,				/* immediate */
	'h', 'e', 'l', 'l', 'o', 0, 0, 0,		/* 3 of padding */
	0x11, 0x22, 0x33, 0x44,				/* ICRC */
};

static void test_parse_write(void **state)
{
	struct hca_pkt p;

	(void)state;
	assert_true(hca_pkt_parse(write_imm, sizeof(write_imm), &p));
	assert_int_equal(p.service, HCA_SVC_RC);
	assert_int_equal(p.op, HCA_OP_WRITE_ONLY_IMM);
	assert_true(p.solicited);
	assert_true(p.ack_req);
	assert_int_equal(p.pkey, 0xffff);
	assert_int_equal(p.dest_qpn, 0x11);
	assert_int_equal(p.psn, 0xabcdef);
	assert_int_equal(p.va, 0x0102030405060708);
	assert_int_equal(p.rkey, 0x2a07);
	assert_int_equal(p.dma_len, 5);
	assert_memory_equal(p.imm, "\xde\xad\xbe\xef", 4);
	assert_int_equal(p.payload_len, 5);
	assert_memory_equal(p.payload, "hello", 5);
}

static void test_build_write(void **state)
{
	struct hca_pkt p;
	uint8_t out[HCA_MAX_TRANSPORT_LEN];

	(void)state;
	assert_true(hca_pkt_parse(write_imm, sizeof(write_imm), &p));
	assert_int_equal(hca_pkt_build(&p, out), 32);
	assert_memory_equal(out, write_imm, 32);
}

/*
 * XRC (IBTA A14): the XRCETH comes between the BTH and what the operation has;
 * responses have none.  By hand.
 */
static const uint8_t xrc_send[] = {		/* SEND Only */
	0xa4, 0x60, 0xff, 0xff, 0x00, 0x00, 0x02, 0x34,
	0x00, 0x12, 0x34, 0x56,
	0x00, 0xab, 0xcd, 0xef,				/* XRCETH */
	'a', 'b', 0, 0,					/* 2 of padding */
	0, 0, 0, 0,
};
static const uint8_t xrc_send_inv[] = {		/* SEND Last with Invalidate */
	0xb6, 0x40, 0xff, 0xff, 0x00, 0x00, 0x02, 0x34,
	0x80, 0x00, 0x00, 0x01,
	0x00, 0x00, 0x00, 0x05,
	0x00, 0x00, 0x2b, 0x11,				/* IETH */
	0, 0, 0, 0,
};
static const uint8_t xrc_write_imm[] = {	/* RDMA WRITE Only with Immediate */
	0xab, 0xc0, 0xff, 0xff, 0x00, 0x00, 0x02, 0x34,
	0x80, 0x00, 0x00, 0x02,
	0x00, 0x00, 0x00, 0x05,
	0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08,
	0x00, 0x00, 0x2a, 0x07, 0x00, 0x00, 0x00, 0x04,	/* RETH */
	0xde, 0xad, 0xbe, 0xef,				/* immediate */
	'd', 'a', 't', 'a',
	0, 0, 0, 0,
};
static const uint8_t xrc_read[] = {		/* RDMA READ Request */
	0xac, 0x40, 0xff, 0xff, 0x00, 0x00, 0x02, 0x34,
	0x80, 0x00, 0x00, 0x03,
	0x00, 0x00, 0x00, 0x06,
	0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08,
	0x00, 0x00, 0x2a, 0x07, 0x00, 0x01, 0x00, 0x00,
	0, 0, 0, 0,
};
static const uint8_t xrc_fetch_add[] = {
	0xb4, 0x40, 0xff, 0xff, 0x00, 0x00, 0x02, 0x34,
	0x80, 0x00, 0x00, 0x04,
	0x00, 0x00, 0x00, 0x07,
	0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08,
	0x00, 0x00, 0x2a, 0x07,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x05,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,	/* AtomicETH */
	0, 0, 0, 0,
};
static const uint8_t xrc_ack[] = {
	0xb1, 0x40, 0xff, 0xff, 0x00, 0x00, 0x02, 0x35,
	0x00, 0x00, 0x00, 0x04,
	0x1f, 0x00, 0x00, 0x09,				/* AETH */
	0, 0, 0, 0,
};

static void test_xrc(void **state)
{
	static const struct {
		const uint8_t *frame;
		size_t len;
		uint32_t srqn, payload;
	} f[] = {
#define XRC_FRAME(f, srqn, payload) { f, sizeof(f), srqn, payload }
		XRC_FRAME(xrc_send, 0xabcdef, 2), XRC_FRAME(xrc_send_inv, 5, 0),
		XRC_FRAME(xrc_write_imm, 5, 4), XRC_FRAME(xrc_read, 6, 0),
		XRC_FRAME(xrc_fetch_add, 7, 0), XRC_FRAME(xrc_ack, 0, 0),
	};

	(void)state;
	for (size_t i = 0; i < sizeof(f) / sizeof(*f); i++) {
		size_t head = f[i].len - 4 - f[i].payload -
			      hca_pkt_pad(f[i].payload);
		struct hca_pkt p = { .xrc_srqn = 0 };
		uint8_t out[HCA_MAX_TRANSPORT_LEN];

		assert_true(hca_pkt_parse(f[i].frame, f[i].len, &p));
		assert_int_equal(p.service, HCA_SVC_XRC);
		assert_int_equal(p.xrc_srqn, f[i].srqn);
		assert_int_equal(p.payload_len, f[i].payload);
		assert_ptr_equal(p.payload, f[i].frame + head);
		if (p.what & (HCA_H_RETH | HCA_H_ATOMIC)) {
			assert_int_equal(p.va, 0x0102030405060708);
			assert_int_equal(p.rkey, 0x2a07);
		}
		/* Decoding what was encoded gives the same bytes. */
		assert_int_equal(hca_pkt_build(&p, out), head);
		assert_memory_equal(out, f[i].frame, head);
		/* The packet is one byte shorter than its headers. */
		assert_false(hca_pkt_parse(f[i].frame, head + 3, &p));
	}
	/* The octet before the SRQN is reserved. */
	{
		uint8_t reserved[sizeof(xrc_send)];
		struct hca_pkt p;

		memcpy(reserved, xrc_send, sizeof(reserved));
		reserved[12] = 0xff;
		assert_true(hca_pkt_parse(reserved, sizeof(reserved), &p));
		assert_int_equal(p.xrc_srqn, 0xabcdef);
	}
}

static void test_truncated(void **state)
{
	struct hca_pkt p;

	(void)state;
	/* Headers, ICRC and pad must fit; the rest is payload. */
	for (size_t len = 16; len < sizeof(write_imm); len++)
		assert_int_equal(hca_pkt_parse(write_imm, len, &p),
				 len >= 32 + 4 + 3);
}

static void test_refused(void **state)
{
	uint8_t ack[20] = { HCA_OP_ACK, 0, 0xff, 0xff };
	struct hca_pkt p;

	(void)state;
	assert_true(hca_pkt_parse(ack, 20, &p));
	assert_int_equal(p.payload_len, 0);
	ack[1] = 0x01;				/* transport version 1 */
	assert_false(hca_pkt_parse(ack, 20, &p));
	ack[1] = 0;
	/* This opcode has no payload. */
	uint8_t longer[24];

	memcpy(longer, ack, 20);
	assert_false(hca_pkt_parse(longer, 24, &p));
	ack[0] = 0x15;				/* reserved */
	assert_false(hca_pkt_parse(ack, 20, &p));
	ack[0] = 0x81;				/* congestion notification */
	assert_false(hca_pkt_parse(ack, 20, &p));
	ack[0] = HCA_SVC_UC | HCA_OP_READ_REQ;
	assert_false(hca_pkt_parse(ack, 20, &p));
	ack[0] = HCA_SVC_UD | HCA_OP_SEND_FIRST;
	assert_false(hca_pkt_parse(ack, 20, &p));
}

/* Bytes of headers after BTH by operation, for RC (IBTA table 38). */
static void test_lengths(void **state)
{
	static const struct {
		uint8_t opcode, len;
	} want[] = {
		{ 0x00, 0 }, { 0x01, 0 }, { 0x02, 0 }, { 0x03, 4 },
		{ 0x04, 0 }, { 0x05, 4 }, { 0x06, 16 }, { 0x07, 0 },
		{ 0x08, 0 }, { 0x09, 4 }, { 0x0a, 16 }, { 0x0b, 20 },
		{ 0x0c, 16 }, { 0x0d, 4 }, { 0x0e, 0 }, { 0x0f, 4 },
		{ 0x10, 4 }, { 0x11, 4 }, { 0x12, 12 }, { 0x13, 28 },
		{ 0x14, 28 }, { 0x16, 4 }, { 0x17, 4 }, { 0x1c, 20 },
		{ 0x1d, 16 }, { 0x24, 0 }, { 0x2b, 20 }, { 0x64, 8 },
		{ 0x65, 12 }, { 0xa4, 4 }, { 0xac, 20 }, { 0xb1, 4 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(want) / sizeof(*want); i++)
		assert_int_equal(hca_pkt_header_len(want[i].opcode),
				 HCA_BTH_LEN + want[i].len);
}

/* What is built is parsed again, for each opcode there is. */
static void test_round_trip(void **state)
{
	uint8_t out[HCA_MAX_TRANSPORT_LEN + 12];
	uint64_t seed = 1;

	(void)state;
	for (unsigned int op = 0; op < 256; op++) {
		struct hca_pkt a = { .opcode = op }, b = { 0 };
		uint32_t what = hca_pkt_what(op);
		size_t len;

		if (!what)
			continue;
		a.solicited = op & 1;
		a.ack_req = op & 2;
		a.pkey = 0x7fff;
		a.dest_qpn = host_random(&seed) & 0xffffff;
		a.psn = host_random(&seed) & 0xffffff;
		a.va = host_random(&seed);
		a.rkey = host_random(&seed);
		a.dma_len = host_random(&seed);
		a.swap_add = host_random(&seed);
		a.compare = host_random(&seed);
		a.orig = host_random(&seed);
		a.syndrome = 0xe3;	/* the high bit is ignored */
		a.msn = host_random(&seed) & 0xffffff;
		a.qkey = host_random(&seed);
		a.src_qpn = host_random(&seed) & 0xffffff;
		a.xrc_srqn = host_random(&seed) & 0xffffff;
		a.payload_len = what & HCA_OPF_PAYLOAD ? op % 5 : 0;
		len = hca_pkt_build(&a, out);
		assert_int_equal(len, hca_pkt_header_len(op));
		len += a.payload_len + hca_pkt_pad(a.payload_len) + 4;
		assert_true(hca_pkt_parse(out, len, &b));
		assert_int_equal(b.opcode, op);
		assert_int_equal(b.solicited, a.solicited);
		assert_int_equal(b.ack_req, a.ack_req);
		assert_int_equal(b.dest_qpn, a.dest_qpn);
		assert_int_equal(b.psn, a.psn);
		assert_int_equal(b.payload_len, a.payload_len);
		if (what & (HCA_H_RETH | HCA_H_ATOMIC)) {
			assert_int_equal(b.va, a.va);
			assert_int_equal(b.rkey, a.rkey);
		}
		if (what & HCA_H_ATOMIC)
			assert_int_equal(b.compare, a.compare);
		if (what & HCA_H_AETH) {
			assert_int_equal(b.syndrome, 0x63);
			assert_int_equal(b.msn, a.msn);
		}
		if (what & HCA_H_DETH)
			assert_int_equal(b.src_qpn, a.src_qpn);
		if (what & HCA_H_XRCETH)
			assert_int_equal(b.xrc_srqn, a.xrc_srqn);
	}
}

static void test_ipv4_header(void **state)
{
	/* 10.0.0.1 sends 44 bytes of UDP payload to 10.0.0.2. */
	static const uint8_t want[] = {
		2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1,
		0x81, 0x00, 0x60, 0x05, 0x08, 0x00,
		0x45, 0x88, 0x00, 0x48, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11,
		0x26, 0x1b, 10, 0, 0, 1, 10, 0, 0, 2,
		0xc1, 0x23, 0x12, 0xb7, 0x00, 0x34, 0x00, 0x00,
	};
	struct hca_path path = {
		.dmac = { 2, 0, 0, 0, 0, 2 }, .smac = { 2, 0, 0, 0, 0, 1 },
		.sgid = { [10] = 0xff, 0xff, 10, 0, 0, 1 },
		.dgid = { [10] = 0xff, 0xff, 10, 0, 0, 2 },
		.vlan = 5, .sl = 3, .traffic_class = 0x88, .hop_limit = 64,
		.sport = 0xc123,
	};
	uint8_t out[80];
	size_t ip_off;

	(void)state;
	assert_int_equal(hca_path_build(&path, out, 44, &ip_off),
			 sizeof(want));
	assert_int_equal(ip_off, 18);
	assert_memory_equal(out, want, sizeof(want));
	/* With its checksum in place a header sums to zero. */
	assert_int_equal(hca_ipv4_checksum(out + 18), 0);
}

static void test_ipv6_header(void **state)
{
	struct hca_path path = {
		.sgid = { 0xfe, 0x80, [15] = 1 }, .dgid = { 0xfe, 0x80, [15] = 2 },
		.vlan = 0xffff, .traffic_class = 0x12, .hop_limit = 7,
		.flow_label = 0xabcde, .sport = 0xc000,
	};
	uint8_t out[80];
	size_t ip_off;

	(void)state;
	assert_int_equal(hca_path_build(&path, out, 20, &ip_off), 62);
	assert_int_equal(ip_off, 14);
	assert_memory_equal(out + 12, "\x86\xdd\x61\x2a\xbc\xde\x00\x1c\x11\x07",
			    10);
	assert_memory_equal(out + 22, path.sgid, 16);
	assert_memory_equal(out + 38, path.dgid, 16);
	assert_memory_equal(out + 54, "\xc0\x00\x12\xb7\x00\x1c\x00\x00", 8);
}

/* Headers whose lengths were changed are those that would have been built. */
static void test_set_len(void **state)
{
	static const size_t lens[] = { 16, 20, 1040, 16, 4124, 0xffe3 };
	struct hca_path path = {
		.dmac = { 2, 0, 0, 0, 0, 2 }, .smac = { 2, 0, 0, 0, 0, 1 },
		.traffic_class = 0x88, .hop_limit = 64, .sport = 0xc123,
		.flow_label = 0xabcde,
	};
	uint8_t changed[HCA_MAX_PATH_LEN], built[HCA_MAX_PATH_LEN];
	size_t len, ip_off;

	(void)state;
	for (int kind = 0; kind < 4; kind++) {
		bool v4 = kind & 1;

		path.vlan = kind & 2 ? 5 : 0xffff;
		memset(path.sgid, v4 ? 0 : 0x20, 16);
		memset(path.sgid + 10, 0xff, 2);
		memcpy(path.sgid + 12, (uint8_t[]){ 10, 0, 0, 1 }, 4);
		memcpy(path.dgid, path.sgid, 16);
		path.dgid[15] = 2;
		assert_int_equal(hca_gid_is_ipv4(path.sgid), v4);
		len = hca_path_build(&path, changed, 44, &ip_off);
		for (size_t i = 0; i < sizeof(lens) / sizeof(*lens); i++) {
			size_t off;

			hca_path_set_len(changed, len, ip_off, lens[i]);
			assert_int_equal(hca_path_build(&path, built, lens[i],
							&off), len);
			assert_memory_equal(changed, built, len);
		}
	}
	assert_int_equal(len, 14 + 4 + 20 + 8);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_parse_write),
	cmocka_unit_test(test_build_write),
	cmocka_unit_test(test_xrc),
	cmocka_unit_test(test_truncated),
	cmocka_unit_test(test_refused),
	cmocka_unit_test(test_lengths),
	cmocka_unit_test(test_round_trip),
	cmocka_unit_test(test_ipv4_header),
	cmocka_unit_test(test_ipv6_header),
	cmocka_unit_test(test_set_len),
};

TEST_MAIN(tests)
