// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What is agreed and when: scen_bundles.c.  Here: what the device makes of single frames. */
#include "sending.h"
#include "wire/peers.h"

#define OWN	8192u
#define OVERHEAD 118u

static struct host *taker(void)
{
	struct host *h = host_new_bundles(OWN);

	assert_int_equal(set_gid(h, 2, frame_gid4, frame_mac, 0xffff),
			 QHCA_CMD_OK);
	assert_int_equal(set_gid(h, 3, frame_gid6, frame_mac, 100),
			 QHCA_CMD_OK);
	return h;
}

struct asking {
	int tag;			/* -1: none */
	uint8_t kind, version;
	uint32_t size, len;
	const char *magic;
	const uint8_t *to, *gid;
};

static const struct asking good = {
	.tag = -1, .kind = 1, .version = 1, .size = 4096, .len = 60,
	.magic = "qhca", .to = frame_mac, .gid = frame_gid4,
};

/* How many answers does a frame get? */
static unsigned int answers(struct host *h, const struct asking *a)
{
	static uint8_t f[QHCA_MAX_BUNDLE_FRAME];
	uint8_t *p = f + 12;
	unsigned int before = h->num_sent;

	memset(f, 0, sizeof(f));
	memcpy(f, a->to, 6);
	memcpy(f + 6, peer, 6);
	if (a->tag >= 0) {
		put_be16(p, 0x8100);
		put_be16(p + 2, (uint16_t)a->tag);
		p += 4;
	}
	put_be16(p, 0x88b5);
	memcpy(p + 2, a->magic, 4);
	p[6] = a->version;
	p[7] = a->kind;
	put_be32(p + 10, a->size);
	put_be32(p + 14, 77);
	memcpy(p + 18, a->gid, 16);
	qhca_rx_frame(h->hca, f, a->len, h->now);
	host_run(h);
	return h->num_sent - before;
}

static void test_answers(void **state)
{
	struct asking a = good;
	struct host *h = taker();
	const uint8_t *f;

	(void)state;
	assert_int_equal(answers(h, &a), 1);
	f = h->sent[0].data;
	assert_int_equal(h->sent[0].len, 60);
	assert_memory_equal(f, peer, 6);
	assert_memory_equal(f + 6, frame_mac, 6);
	assert_int_equal(f[14 + 5], 2);
	assert_int_equal(get_be32(f + 14 + 8), 4096);
	assert_int_equal(get_be32(f + 14 + 12), 77);
	/* No more than it takes itself. */
	a.size = 61440;
	assert_int_equal(answers(h, &a), 1);
	assert_int_equal(get_be32(h->sent[1].data + 14 + 8), OWN);
	assert_memory_equal(h->sent[1].data + 14 + 16, frame_gid4, 16);
	/* The GID is on a VLAN, and another is not, whatever its priority. */
	a.tag = 0x4000 | 100;
	a.gid = frame_gid6;
	assert_int_equal(answers(h, &a), 1);
	assert_int_equal(get_be16(h->sent[2].data + 14), 0x4000 | 100);
	assert_int_equal(h->sent[2].data[18 + 5], 2);
	/* A frame of that size has come. */
	a = good;
	a.kind = 3;
	a.len = 4096 + OVERHEAD;
	assert_int_equal(answers(h, &a), 1);
	assert_int_equal(h->sent[3].data[14 + 5], 4);
	/* ... which had a tag on the way, or has one. */
	a.tag = 100;
	a.gid = frame_gid6;
	assert_int_equal(answers(h, &a), 0);
	a.len += 4;
	assert_int_equal(answers(h, &a), 1);
	assert_int_equal(h->sent[4].data[18 + 5], 4);
	host_free(h);
}

static void test_no_answer(void **state)
{
	struct host *h = taker();
	struct asking a;

	(void)state;
#define SILENT(change) do {						\
	a = good;							\
	change;								\
	assert_int_equal(answers(h, &a), 0);				\
} while (0)
	SILENT(a.size = 511);
	SILENT(a.size = 0);
	SILENT(a.version = 2);
	SILENT(a.kind = 0);
	SILENT(a.kind = 5);
	SILENT(a.magic = "qhcb");
	SILENT(a.to = peer);
	SILENT(a.len = 45);
	SILENT((a.tag = 100, a.gid = frame_gid6, a.len = 49));
	/* RoCE to it would be for software, or for whoever is behind a router. */
	SILENT(a.gid = frame_gid6);
	SILENT(a.tag = 100);
	SILENT((a.kind = 3, a.gid = frame_gid6, a.len = 4096 + OVERHEAD));
	/* It has asked nobody. */
	SILENT(a.kind = 2);
	SILENT(a.kind = 4);
	/* The frame is shorter than it says, or longer than the device takes. */
	SILENT((a.kind = 3, a.len = 4096 + OVERHEAD - 1));
	SILENT((a.kind = 3, a.size = OWN + 1, a.len = OWN + 1 + OVERHEAD));
#undef SILENT
	assert_int_equal(answers(h, &good), 1);
	host_free(h);
}

/* @kind of the answers from @first on */
static void expect_kinds(const struct host *h, unsigned int first, uint8_t kind)
{
	for (; first < h->num_sent; first++)
		assert_int_equal(h->sent[first].data[14 + 5], kind);
}

/* What finds no room in the link is sent when there is some, and OFFERs leave places. */
static void test_owed(void **state)
{
	struct asking ask = good, probe = good;
	struct host *h = taker();
	uint64_t owing = 1;

	(void)state;
	probe.kind = 3;
	probe.len = 4096 + OVERHEAD;
	h->tx_full = true;
	for (unsigned int i = 0; i < 10; i++)
		assert_int_equal(answers(h, &ask), 0);
	assert_int_equal(h->fn->peers.num_owed, 4);
	for (unsigned int i = 0; i < 10; i++)
		assert_int_equal(answers(h, &probe), 0);
	assert_int_equal(h->fn->peers.num_owed, 8);
	assert_int_equal(h->fn->hca->bundles.owing, owing);
	assert_false(qhca_run(h->hca, h->now, 64).more);
	h->tx_full = false;
	qhca_tx_ready(h->hca, h->now);
	host_run(h);
	assert_int_equal(h->num_sent, 8);
	h->num_sent = 4;
	expect_kinds(h, 0, 2);
	h->num_sent = 8;
	expect_kinds(h, 4, 4);
	assert_int_equal(h->fn->hca->bundles.owing, 0);
	assert_int_equal(qhca_query_bundles(h->hca).messages, 8);
	/* A function that is reset owes nothing, and so does one whose link has been down. */
	h->tx_full = true;
	answers(h, &ask);
	assert_int_equal(h->fn->hca->bundles.owing, owing);
	qhca_set_link(h->hca, false, h->now);
	qhca_set_link(h->hca, true, h->now);
	assert_int_equal(h->fn->hca->bundles.owing, 0);
	answers(h, &ask);
	assert_int_equal(h->fn->hca->bundles.owing, owing);
	qhca_reset(h->hca, 0, h->now);
	assert_int_equal(h->fn->hca->bundles.owing, 0);
	h->tx_full = false;
	qhca_tx_ready(h->hca, h->now);
	host_run(h);
	assert_int_equal(h->num_sent, 8);
	host_free(h);
}

/* A device without bundles has nothing to say, and takes no longer frames. */
static void test_without_bundles(void **state)
{
	struct host *h = with_gids();
	struct asking a = good;

	(void)state;
	assert_int_equal(answers(h, &a), 0);
	assert_int_equal(qhca_max_frame(h->hca), QHCA_MAX_FRAME);
	a.len = QHCA_MAX_FRAME + 1;
	assert_int_equal(answers(h, &a), 0);
	assert_int_equal(qhca_counter(h->hca, 0, QHCA_CNT_rx_dropped), 1);
	host_free(h);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_answers),
	cmocka_unit_test(test_no_answer),
	cmocka_unit_test(test_owed),
	cmocka_unit_test(test_without_bundles),
};

TEST_MAIN(tests)
