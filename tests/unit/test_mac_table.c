// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The switch's table of MAC addresses, against a plain array.
 */
#include "unit.h"

#include "model/mac_table.h"

#define AGE	1000u
#define PORTS	4u

static struct fab_mac_table *table_new(uint32_t size)
{
	struct fab_mac_table *t = malloc(sizeof(*t));

	assert_non_null(t);
	assert_true(fab_mac_table_init(t, size, PORTS, AGE, 5));
	return t;
}

static void table_free(struct fab_mac_table *t)
{
	fab_mac_table_fini(t);
	free(t);
}

static void test_words(void **state)
{
	const uint8_t mac[6] = { 0x52, 0x54, 0, 0x77, 0xfe, 1 };
	uint8_t back[6];

	(void)state;
	assert_int_equal(fab_mac_word(mac), 0x52540077fe01);
	fab_mac_bytes(0x52540077fe01, back);
	assert_memory_equal(mac, back, 6);
}

static void test_learns(void **state)
{
	struct fab_mac_table *t = table_new(8);

	(void)state;
	assert_int_equal(fab_mac_table_find(t, 77, 0), -1);
	assert_int_equal(fab_mac_table_learn(t, 77, 2, 8, 0), FAB_LEARNED_NEW);
	assert_int_equal(fab_mac_table_learn(t, 77, 2, 8, 1), FAB_LEARNED_KNOWN);
	assert_int_equal(fab_mac_table_find(t, 77, 1), 2);
	assert_int_equal(fab_mac_table_learn(t, 77, 3, 8, 2), FAB_LEARNED_MOVED);
	assert_int_equal(fab_mac_table_find(t, 77, 2), 3);
	assert_int_equal(t->of_port[2], 0);
	assert_int_equal(t->of_port[3], 1);
	table_free(t);
}

/* An address stays for the ageing time after it was seen last, and no longer. */
static void test_ages(void **state)
{
	struct fab_mac_table *t = table_new(8);

	(void)state;
	fab_mac_table_learn(t, 1, 0, 8, 0);
	fab_mac_table_learn(t, 2, 0, 8, 10);
	fab_mac_table_learn(t, 1, 0, 8, 20);
	assert_int_equal(fab_mac_table_find(t, 2, 10 + AGE), 0);
	assert_int_equal(fab_mac_table_find(t, 2, 11 + AGE), -1);
	assert_int_equal(fab_mac_table_find(t, 1, 20 + AGE), 0);
	assert_int_equal(fab_mac_table_find(t, 1, 21 + AGE), -1);
	assert_int_equal(t->num, 0);
	table_free(t);
}

/* A port at its limit keeps what it has, and takes nothing from other ports. */
static void test_limit(void **state)
{
	struct fab_mac_table *t = table_new(5);

	(void)state;
	fab_mac_table_learn(t, 1, 1, 8, 0);
	for (uint64_t mac = 10; mac < 20; mac++)
		assert_int_equal(fab_mac_table_learn(t, mac, 0, 3, 1),
				 mac < 13 ? FAB_LEARNED_NEW : FAB_LEARNED_REFUSED);
	assert_int_equal(fab_mac_table_learn(t, 12, 0, 3, 1), FAB_LEARNED_KNOWN);
	assert_int_equal(fab_mac_table_learn(t, 1, 0, 3, 1), FAB_LEARNED_REFUSED);
	assert_int_equal(fab_mac_table_find(t, 1, 1), 1);
	/* The table itself has five. */
	assert_int_equal(fab_mac_table_learn(t, 30, 2, 8, 1), FAB_LEARNED_NEW);
	assert_int_equal(fab_mac_table_learn(t, 31, 2, 8, 1), FAB_LEARNED_REFUSED);
	/* What has aged makes room. */
	assert_int_equal(fab_mac_table_learn(t, 31, 2, 8, AGE + 1), FAB_LEARNED_NEW);
	table_free(t);
}

static void test_forgets_a_port(void **state)
{
	struct fab_mac_table *t = table_new(16);
	const struct fab_mac_entry *e = NULL;
	uint64_t mac = 0;

	(void)state;
	for (mac = 0; mac < 9; mac++)
		fab_mac_table_learn(t, mac, (uint16_t)(mac % 3), 8, mac);
	fab_mac_table_forget(t, 1);
	mac = 0;
	while ((e = fab_mac_table_next(t, e))) {
		mac += mac % 3 == 1;
		assert_int_equal(e->mac, mac);
		assert_int_equal(e->port, mac % 3);
		mac++;
	}
	assert_int_equal(mac, 9);
	assert_int_equal(t->num, 6);
	assert_int_equal(t->of_port[1], 0);
	table_free(t);
}

#define MACS	40u

struct plain {
	int port[MACS];
	uint64_t seen[MACS];
};

static unsigned int plain_count(const struct plain *p, int port, uint64_t now)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < MACS; i++)
		n += (port < 0 ? p->port[i] >= 0 : p->port[i] == port) &&
		     now - p->seen[i] <= AGE;
	return n;
}

static void plain_expire(struct plain *p, uint64_t now)
{
	for (unsigned int i = 0; i < MACS; i++)
		if (p->port[i] >= 0 && now - p->seen[i] > AGE)
			p->port[i] = -1;
}

static void plain_forget(struct plain *p, int port)
{
	for (unsigned int i = 0; i < MACS; i++)
		if (p->port[i] == port)
			p->port[i] = -1;
}

static enum fab_learned plain_learn(struct plain *p, uint64_t mac, int port,
				    unsigned int limit, uint32_t size, uint64_t now)
{
	int was;

	plain_expire(p, now);
	was = p->port[mac];
	if (was != port && plain_count(p, port, now) >= limit)
		return FAB_LEARNED_REFUSED;
	if (was < 0 && plain_count(p, -1, now) >= size)
		return FAB_LEARNED_REFUSED;
	p->port[mac] = port;
	p->seen[mac] = now;
	return was < 0 ? FAB_LEARNED_NEW : was == port ? FAB_LEARNED_KNOWN : FAB_LEARNED_MOVED;
}

/* Whatever happens in whatever order, the table does what the array does. */
static void test_as_the_array(void **state)
{
	const uint32_t size = 24;
	uint64_t random = 1, now = 0;
	struct fab_mac_table *t = table_new(size);
	struct plain p;

	(void)state;
	memset(p.port, 0xff, sizeof(p.port));
	for (unsigned int step = 0; step < 40000; step++) {
		uint64_t r = host_random(&random), mac = r % MACS;
		uint16_t port = (uint16_t)(r >> 8 & 3);

		now += r >> 16 & 0x3f;
		if (!(r >> 32 & 15)) {
			fab_mac_table_forget(t, port);
			plain_forget(&p, port);
		} else if (r >> 32 & 1) {
			plain_expire(&p, now);
			assert_int_equal(fab_mac_table_find(t, mac, now), p.port[mac]);
		} else {
			assert_int_equal(fab_mac_table_learn(t, mac, port, 9, now),
					 plain_learn(&p, mac, port, 9, size, now));
		}
		fab_mac_table_expire(t, now);
		assert_int_equal(t->num, plain_count(&p, -1, now));
	}
	table_free(t);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_words),
	cmocka_unit_test(test_learns),
	cmocka_unit_test(test_ages),
	cmocka_unit_test(test_limit),
	cmocka_unit_test(test_forgets_a_port),
	cmocka_unit_test(test_as_the_array),
};

TEST_MAIN(tests)
