// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* ATOMIC WRITE and FLUSH: what they do, and what the responder refuses. */
#include <stddef.h>
#include <string.h>

#include "cases.h"

#define VALUE 0x0123456789abcdefull
/* In device_cap_flags_ex; verbs.h has no name for it. */
#define CAP_FLUSH_PERSISTENT (1ull << 39)
#define RIGHTS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)

static struct ibv_mr *flushable;

static void may_flush(struct connection *c)
{
	c->access |= IBV_ACCESS_FLUSH_GLOBAL;
}

static void may_flush_all(struct connection *c)
{
	c->access |= IBV_ACCESS_FLUSH_GLOBAL | IBV_ACCESS_FLUSH_PERSISTENT;
}

static void no_remote_write(struct connection *c)
{
	c->access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
}

static void post_flush(struct test *t, uint64_t id, uint64_t addr, uint32_t len, uint8_t level)
{
	post(t, &(struct request) { .id = id, .opcode = IBV_WR_FLUSH, .len = len, .addr = addr,
				    .rkey = t->far.rkey, .flags = IBV_SEND_SIGNALED,
				    .flush_type = IBV_FLUSH_GLOBAL, .flush_level = level });
}

/* -- what they do ----------------------------------------------------------- */

static void completes_as(struct test *t, uint64_t id, enum ibv_wc_opcode opcode)
{
	struct ibv_wc wc;

	if (!EXPECT(t, next_wc(t, t->send_cq, &wc, SOON), "no completion of %llu",
		    (unsigned long long)id))
		return;
	EXPECT(t, wc.wr_id == id && wc.status == IBV_WC_SUCCESS && wc.opcode == opcode,
	       "completion of %llu with status %d, opcode %d", (unsigned long long)wc.wr_id,
	       wc.status, wc.opcode);
}

static void store_client(struct test *t)
{
	uint64_t value = VALUE;

	memcpy(t->buf + 16, &value, sizeof(value));
	for (uint64_t i = 0; i < 8; i++)
		post(t, &(struct request) { .id = i, .opcode = IBV_WR_ATOMIC_WRITE, .at = 16,
					    .len = 8, .addr = t->far.addr + 8 * i,
					    .rkey = t->far.rkey, .flags = IBV_SEND_SIGNALED });
	for (uint64_t i = 0; i < 8; i++)
		completes_as(t, i, IBV_WC_ATOMIC_WRITE);
	expect_state(t, IBV_QPS_RTS);
	meet(t);
}

static void store_server(struct test *t)
{
	uint64_t value;

	meet(t);
	for (int i = 0; i < 9; i++) {
		memcpy(&value, t->buf + 8 * i, sizeof(value));
		EXPECT(t, value == (i < 8 ? VALUE : 0x5a5a5a5a5a5a5a5aull),
		       "word %d is %#llx", i, (unsigned long long)value);
	}
}

static void flush_client(struct test *t)
{
	peer_receive(t->peer, &t->far, sizeof(t->far));
	memset(t->buf, 0x77, 30000);
	post_rdma(t, 1, IBV_WR_RDMA_WRITE, 30000);
	post_flush(t, 2, t->far.addr, 30000, IBV_FLUSH_RANGE);
	post_flush(t, 3, t->far.addr, 0, IBV_FLUSH_RANGE);
	post_flush(t, 4, t->far.addr, t->far.len, IBV_FLUSH_RANGE);
	/* For a flush of the whole region, address and length have no meaning. */
	post_flush(t, 5, 1, 0x7fffffff, IBV_FLUSH_MR);
	completes_as(t, 1, IBV_WC_RDMA_WRITE);
	for (int i = 2; i <= 5; i++)
		completes_as(t, i, IBV_WC_FLUSH);
	expect_state(t, IBV_QPS_RTS);
	meet(t);
}

static void flush_server(struct test *t)
{
	flushable = ibv_reg_mr(t->pd, t->buf, BUFFER_SIZE, RIGHTS | IBV_ACCESS_FLUSH_GLOBAL);
	if (EXPECT(t, flushable, "ibv_reg_mr of a region that may be flushed"))
		t->mine.rkey = flushable->rkey;
	peer_send(t->peer, &t->mine, sizeof(t->mine));
	meet(t);
	EXPECT(t, t->buf[0] == 0x77 && t->buf[29999] == 0x77 && t->buf[30000] == 0x5a,
	       "the WRITE before the FLUSH is not there");
	if (flushable)
		ibv_dereg_mr(flushable);
}

/* This machine reports no memory as persistent, so a region may not ask for it. */
static void persistent_server(struct test *t)
{
	struct ibv_device_attr_ex attr;
	struct ibv_mr *mr;

	EXPECT(t, !ibv_query_device_ex(t->peer->ctx, NULL, &attr), "ibv_query_device_ex");
	if (!t->is_rxe)
		EXPECT(t, !(attr.device_cap_flags_ex & CAP_FLUSH_PERSISTENT),
		       "the device says that it can flush to persistence");
	mr = ibv_reg_mr(t->pd, t->buf, BUFFER_SIZE, RIGHTS | IBV_ACCESS_FLUSH_PERSISTENT);
	if (!EXPECT(t, !mr, "RAM was registered as persistent"))
		ibv_dereg_mr(mr);
}

/* -- what is refused -------------------------------------------------------- */

static void offer_no_write(struct test *t)
{
	offer_access(t, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
}

static void offer_flush(struct test *t)
{
	offer_access(t, RIGHTS | IBV_ACCESS_FLUSH_GLOBAL);
}

static void nothing(struct test *t)
{
	(void)t;
}

#define PLACE(text, ...) {							\
	.name = text, .client = refused_client, .server = refused_server,	\
	.flags = WITH_PLACE, .adjust = may_flush,				\
	.data = &(const struct refused) { __VA_ARGS__ } }

#define GLOBAL .flush_type = IBV_FLUSH_GLOBAL
#define REGION .flush_level = IBV_FLUSH_MR

const struct test_case place_cases[] = {
	{ "ATOMIC WRITE", store_client, store_server, .flags = WITH_PLACE },
	{ "FLUSH behind a WRITE", flush_client, flush_server, .flags = WITH_PLACE,
	  .adjust = may_flush },
	{ "no memory is persistent", nothing, persistent_server },
	PLACE("ATOMIC WRITE with another key octet", IBV_WR_ATOMIC_WRITE, 8, NO_ACCESS,
	      .rkey_xor = 1),
	PLACE("ATOMIC WRITE past the region's end", IBV_WR_ATOMIC_WRITE, 8, NO_ACCESS,
	      .addr_add = BUFFER_SIZE),
	PLACE("ATOMIC WRITE to a region without that right", IBV_WR_ATOMIC_WRITE, 8, NO_ACCESS,
	      .offer = offer_no_write),
	PLACE("ATOMIC WRITE at an odd address", IBV_WR_ATOMIC_WRITE, 8, INVALID, .addr_add = 4),
	{
		.name = "ATOMIC WRITE to a QP without that right", .flags = WITH_PLACE,
		.client = refused_client, .server = refused_server, .adjust = no_remote_write,
		.data = &(const struct refused) { IBV_WR_ATOMIC_WRITE, 8, INVALID },
	},
	PLACE("FLUSH with another key octet", IBV_WR_FLUSH, 64, NO_ACCESS, GLOBAL, .rkey_xor = 1,
	      .offer = offer_flush),
	PLACE("FLUSH of a region with another key octet", IBV_WR_FLUSH, 64, NO_ACCESS, GLOBAL,
	      REGION, .rkey_xor = 1, .offer = offer_flush),
	PLACE("FLUSH past the region's end", IBV_WR_FLUSH, 64, NO_ACCESS, GLOBAL,
	      .addr_add = BUFFER_SIZE - 63, .offer = offer_flush),
	PLACE("FLUSH of a region without that right", IBV_WR_FLUSH, 64, NO_ACCESS, GLOBAL),
	{
		.name = "FLUSH to persistence of RAM", .flags = WITH_PLACE,
		.client = refused_client, .server = refused_server, .adjust = may_flush_all,
		.data = &(const struct refused) {
			IBV_WR_FLUSH, 64, NO_ACCESS, .offer = offer_flush,
			.flush_type = IBV_FLUSH_PERSISTENT },
	}, {
		.name = "FLUSH to a QP without that right", .flags = WITH_PLACE,
		.client = refused_client, .server = refused_server,
		.data = &(const struct refused) {
			IBV_WR_FLUSH, 64, INVALID, GLOBAL, .offer = offer_flush },
	},
	{ }
};
