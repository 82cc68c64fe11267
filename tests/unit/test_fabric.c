// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The switch: where frames go, when they arrive, and what becomes of those that do not.
 */
#include <stdio.h>

#include "unit.h"

#include "model/fabric.h"

#define BROADCAST	0xffffffffffffull
#define HOST(n)		(0x525400770000ull + (n))
#define GIGABIT		1000000000ull
#define US		1000ull
#define SECOND		1000000000ull
/* Takes 10 us on the wire at 1 Gb/s. */
#define TEN_US		(1250u - 24)

/* A switch with @ports ports that have peers. */
static struct fab_switch *switch_new(unsigned int ports)
{
	struct fab_settings set;
	struct fab_config cfg;
	struct fab_switch *sw;

	fab_config_default(&cfg);
	cfg.ports = 8;
	cfg.table = 64;
	fab_settings_default(&set);
	assert_null(fab_config_wrong(&cfg));
	assert_null(fab_settings_wrong(&set));
	sw = fab_switch_new(&cfg);
	assert_non_null(sw);
	for (unsigned int i = 0; i < ports; i++) {
		assert_int_equal(fab_port_add(sw, &set), i);
		fab_port_set_peer(sw, i, true);
	}
	return sw;
}

static void send_len(struct fab_switch *sw, unsigned int port, uint64_t to,
		     uint64_t from, uint32_t len)
{
	struct fab_frame *f = fab_frame_new(len);
	uint8_t head[14] = { 0 };

	assert_non_null(f);
	fab_mac_bytes(to, head);
	fab_mac_bytes(from, head + 6);
	memset(f->data, (int)port, len);
	memcpy(f->data, head, len < sizeof(head) ? len : sizeof(head));
	fab_receive(sw, port, f);
}

static void send(struct fab_switch *sw, unsigned int port, uint64_t to, uint64_t from)
{
	send_len(sw, port, to, from, 100);
}

/* Takes what is due; returns the number of frames. */
static unsigned int take(struct fab_switch *sw, unsigned int port)
{
	unsigned int n = 0;

	for (; fab_port_due(sw, port, 0); n++) {
		struct fab_frame *due = fab_port_due(sw, port, 0);

		assert_ptr_equal(fab_port_sent(sw, port), due);
		fab_frame_put(due);
	}
	return n;
}

/* Each port announces its host to all others. */
static void announce(struct fab_switch *sw, unsigned int ports)
{
	for (unsigned int i = 0; i < ports; i++)
		send(sw, i, BROADCAST, HOST(i));
	for (unsigned int i = 0; i < ports; i++) {
		assert_int_equal(take(sw, i), ports - 1);
		fab_port_clear(sw, i);
	}
}

static struct fab_counters *count(struct fab_switch *sw, unsigned int port)
{
	return &sw->port[port].count;
}

static void change(struct fab_switch *sw, unsigned int port, uint64_t rate,
		   uint64_t latency, uint64_t queue)
{
	struct fab_settings set = sw->port[port].set;

	set.rate = rate;
	set.latency = latency;
	set.queue = queue ? queue : set.queue;
	assert_null(fab_settings_wrong(&set));
	fab_port_set(sw, port, &set);
}

static void set_link(struct fab_switch *sw, unsigned int port, bool link)
{
	struct fab_settings set = sw->port[port].set;

	set.link = link;
	fab_port_set(sw, port, &set);
}

static void test_forwards(void **state)
{
	struct fab_switch *sw = switch_new(4);

	(void)state;
	/* Unknown: to all but where it came from; known: to one. */
	send(sw, 0, HOST(1), HOST(0));
	assert_int_equal(take(sw, 0), 0);
	for (unsigned int i = 1; i < 4; i++)
		assert_int_equal(take(sw, i), 1);
	assert_int_equal(count(sw, 0)->rx_flooded, 1);
	send(sw, 1, HOST(0), HOST(1));
	assert_int_equal(take(sw, 0), 1);
	assert_int_equal(take(sw, 2) + take(sw, 3), 0);
	send(sw, 0, HOST(1), HOST(0));
	assert_int_equal(take(sw, 1), 1);
	assert_int_equal(count(sw, 0)->rx_flooded, 1);
	/* A group is always for all. */
	send(sw, 0, 0x01005e000001, HOST(0));
	for (unsigned int i = 0; i < 4; i++)
		assert_int_equal(take(sw, i), i != 0);
	assert_int_equal(count(sw, 0)->macs_learned, 1);
	assert_int_equal(count(sw, 0)->rx_frames, 3);
	assert_int_equal(count(sw, 0)->rx_bytes, 300);
	assert_int_equal(count(sw, 1)->tx_frames, 3);
	assert_int_equal(count(sw, 1)->tx_bytes, 300);
	fab_switch_free(sw);
}

static void test_data_is_unchanged(void **state)
{
	struct fab_switch *sw = switch_new(3);
	struct fab_frame *f = fab_frame_new(FAB_MAX_FRAME), *due;
	uint8_t *copy = malloc(FAB_MAX_FRAME);
	uint64_t random = 2;

	(void)state;
	assert_true(f && copy);
	for (unsigned int i = 0; i < FAB_MAX_FRAME; i++)
		f->data[i] = (uint8_t)host_random(&random);
	f->data[0] = 2;
	f->data[6] = 2;
	memcpy(copy, f->data, FAB_MAX_FRAME);
	fab_receive(sw, 0, f);
	for (unsigned int i = 1; i < 3; i++) {
		due = fab_port_due(sw, i, 0);
		assert_non_null(due);
		assert_int_equal(due->len, FAB_MAX_FRAME);
		assert_memory_equal(due->data, copy, FAB_MAX_FRAME);
		assert_int_equal(take(sw, i), 1);
	}
	free(copy);
	fab_switch_free(sw);
}

/* What is not forwarded, each with its counter; none of it teaches the switch much. */
static void test_refuses(void **state)
{
	struct fab_switch *sw = switch_new(2);

	(void)state;
	announce(sw, 2);
	for (uint32_t len = 0; len < 14; len++)
		send_len(sw, 0, HOST(1), HOST(0), len);
	assert_int_equal(count(sw, 0)->rx_runts, 14);
	send_len(sw, 0, HOST(1), HOST(0), 14);
	assert_int_equal(take(sw, 1), 1);
	send(sw, 0, HOST(1), BROADCAST);
	send(sw, 0, HOST(1), 0);
	assert_int_equal(count(sw, 0)->rx_bad_source, 2);
	send(sw, 0, 0x0180c2000000, HOST(0));
	send(sw, 0, 0x0180c200000f, HOST(0));
	assert_int_equal(count(sw, 0)->rx_link_local, 2);
	send(sw, 0, HOST(0), HOST(0));
	assert_int_equal(count(sw, 0)->rx_own_side, 1);
	assert_int_equal(take(sw, 0) + take(sw, 1), 0);
	send(sw, 0, 0x0180c2000010, HOST(0));
	assert_int_equal(take(sw, 1), 1);
	assert_int_equal(sw->table.num, 2);
	fab_switch_free(sw);
}

/* A port that sends from many addresses has its limit, and no other port notices. */
static void test_addresses_have_a_limit(void **state)
{
	struct fab_switch *sw = switch_new(3);
	struct fab_settings set = sw->port[0].set;

	(void)state;
	announce(sw, 3);
	set.macs = 5;
	fab_port_set(sw, 0, &set);
	for (unsigned int i = 0; i < 1000; i++)
		send(sw, 0, HOST(1), HOST(100 + i));
	assert_int_equal(count(sw, 0)->macs_learned, 4);
	assert_int_equal(count(sw, 0)->macs_refused, 996);
	assert_int_equal(take(sw, 1), 1000);
	send(sw, 1, HOST(2), HOST(1));
	assert_int_equal(count(sw, 1)->rx_flooded, 0);
	/* Of an address that is not learned the frames are flooded. */
	send(sw, 1, HOST(1000), HOST(1));
	assert_int_equal(count(sw, 1)->rx_flooded, 1);
	fab_switch_free(sw);
}

/* A host that has moved is found behind its new port. */
static void test_moves(void **state)
{
	struct fab_switch *sw = switch_new(3);

	(void)state;
	announce(sw, 3);
	send(sw, 1, BROADCAST, HOST(0));
	assert_int_equal(take(sw, 0) + take(sw, 2), 2);
	send(sw, 2, HOST(0), HOST(2));
	assert_int_equal(take(sw, 0), 0);
	assert_int_equal(take(sw, 1), 1);
	assert_int_equal(count(sw, 1)->macs_moved, 1);
	fab_switch_free(sw);
}

static void test_ages(void **state)
{
	struct fab_switch *sw = switch_new(3);

	(void)state;
	announce(sw, 3);
	fab_advance(sw, FAB_DEFAULT_AGE);
	send(sw, 0, HOST(1), HOST(0));
	assert_int_equal(count(sw, 0)->rx_flooded, 0);
	fab_advance(sw, FAB_DEFAULT_AGE + 1);
	send(sw, 0, HOST(1), HOST(0));
	assert_int_equal(count(sw, 0)->rx_flooded, 1);
	fab_switch_free(sw);
}

/* Time until something happens; it happens then, and not before. */
static void expect(struct fab_switch *sw, unsigned int port, uint64_t when)
{
	assert_int_equal(take(sw, port), 0);
	while (fab_deadline(sw) < when)
		fab_advance(sw, fab_deadline(sw));
	assert_int_equal(take(sw, port), 0);
	assert_int_equal(fab_deadline(sw), when);
	fab_advance(sw, when);
	assert_int_equal(take(sw, port), 1);
}

static void test_latency(void **state)
{
	struct fab_switch *sw = switch_new(2);

	(void)state;
	announce(sw, 2);
	change(sw, 1, 0, 50 * US, 0);
	assert_int_equal(fab_deadline(sw), FAB_NEVER);
	fab_advance(sw, 7);
	send(sw, 0, HOST(1), HOST(0));
	fab_advance(sw, 9);
	send(sw, 0, HOST(1), HOST(0));
	expect(sw, 1, 7 + 50 * US);
	/* A smaller latency does not overtake. */
	change(sw, 1, 0, 0, 0);
	send(sw, 0, HOST(1), HOST(0));
	assert_int_equal(take(sw, 1), 0);
	assert_int_equal(fab_deadline(sw), 9 + 50 * US);
	fab_advance(sw, 9 + 50 * US);
	assert_int_equal(take(sw, 1), 2);
	assert_int_equal(fab_deadline(sw), FAB_NEVER);
	fab_switch_free(sw);
}

static void test_rate(void **state)
{
	struct fab_switch *sw = switch_new(2);

	(void)state;
	announce(sw, 2);
	change(sw, 1, GIGABIT, 5 * US, 0);
	for (unsigned int i = 0; i < 3; i++)
		send_len(sw, 0, HOST(1), HOST(0), TEN_US);
	for (unsigned int i = 1; i <= 3; i++)
		expect(sw, 1, 10 * i * US + 5 * US);
	/* A caller that looks late finds all that the rate allowed until then. */
	fab_advance(sw, SECOND);
	for (unsigned int i = 0; i < 10; i++)
		send_len(sw, 0, HOST(1), HOST(0), TEN_US);
	fab_advance(sw, SECOND + 77 * US);
	assert_int_equal(take(sw, 1), 7);
	fab_switch_free(sw);
}

/* A rate that is set while frames wait is that of the frame at the front. */
static void test_rate_changes(void **state)
{
	struct fab_switch *sw = switch_new(2);

	(void)state;
	announce(sw, 2);
	change(sw, 1, FAB_MIN_RATE, 0, 0);
	send_len(sw, 0, HOST(1), HOST(0), TEN_US);
	send_len(sw, 0, HOST(1), HOST(0), TEN_US);
	fab_advance(sw, SECOND);
	change(sw, 1, GIGABIT, 0, 0);
	expect(sw, 1, SECOND + 10 * US);
	change(sw, 1, 0, 0, 0);
	assert_int_equal(take(sw, 1), 1);
	assert_int_equal(fab_deadline(sw), FAB_NEVER);
	fab_switch_free(sw);
}

/* The tail is dropped, and no more than the limit is held, wherever frames are. */
static void test_queue(void **state)
{
	struct fab_switch *sw = switch_new(3);
	const uint32_t num = 56, limit = num * 1250;

	(void)state;
	announce(sw, 3);
	change(sw, 1, GIGABIT, 100 * US, limit);
	for (unsigned int i = 0; i < num + 9; i++)
		send_len(sw, 0, HOST(1), HOST(0), TEN_US);
	assert_int_equal(count(sw, 1)->tx_queue_full, 9);
	assert_int_equal(sw->port[1].backlog.bytes, limit);
	assert_int_equal(sw->port[1].peak, limit);
	/* What is on the way counts, and what the caller does not take. */
	fab_advance(sw, SECOND);
	send_len(sw, 0, HOST(1), HOST(0), TEN_US);
	assert_int_equal(count(sw, 1)->tx_queue_full, 10);
	assert_int_equal(take(sw, 1), num);
	send_len(sw, 0, HOST(1), HOST(0), TEN_US);
	assert_int_equal(count(sw, 1)->tx_queue_full, 10);
	/* Meanwhile other ports are as usual. */
	send(sw, 0, HOST(2), HOST(0));
	assert_int_equal(take(sw, 2), 1);
	/* One that is made smaller keeps what it holds. */
	change(sw, 2, FAB_MIN_RATE, 0, FAB_MAX_QUEUE);
	for (unsigned int i = 0; i < 100; i++)
		send_len(sw, 0, HOST(2), HOST(0), TEN_US);
	change(sw, 2, FAB_MIN_RATE, 0, FAB_MIN_QUEUE);
	send(sw, 0, HOST(2), HOST(0));
	assert_int_equal(count(sw, 2)->tx_queue_full, 1);
	assert_int_equal(sw->port[2].backlog.bytes, 100 * 1250);
	fab_switch_free(sw);
}

/* A link that is down passes nothing, and its host is forgotten. */
static void test_link(void **state)
{
	struct fab_switch *sw = switch_new(3);

	(void)state;
	announce(sw, 3);
	change(sw, 1, FAB_MIN_RATE, 0, 0);
	send(sw, 0, HOST(1), HOST(0));
	send(sw, 0, HOST(1), HOST(0));
	set_link(sw, 1, false);
	assert_int_equal(count(sw, 1)->tx_link_down, 2);
	assert_int_equal(fab_deadline(sw), FAB_NEVER);
	send(sw, 1, HOST(0), HOST(1));
	assert_int_equal(count(sw, 1)->rx_link_down, 1);
	send(sw, 0, HOST(1), HOST(0));
	assert_int_equal(count(sw, 0)->rx_flooded, 1);
	assert_int_equal(take(sw, 2), 1);
	assert_int_equal(sw->port[1].backlog.bytes, 0);
	set_link(sw, 1, true);
	change(sw, 1, 0, 0, 0);
	send(sw, 0, HOST(1), HOST(0));
	assert_int_equal(take(sw, 1) + take(sw, 2), 2);
	fab_switch_free(sw);
}

/* Ports come and go; the number that is free is used again, and nothing is left of it. */
static void test_ports(void **state)
{
	struct fab_switch *sw = switch_new(8);
	struct fab_settings set = sw->port[0].set;

	(void)state;
	assert_int_equal(fab_port_add(sw, &set), -1);
	announce(sw, 8);
	change(sw, 3, GIGABIT, 50, 0);
	send(sw, 0, HOST(3), HOST(0));
	fab_port_remove(sw, 3);
	assert_int_equal(sw->table.of_port[3], 0);
	fab_port_remove(sw, 5);
	send(sw, 0, HOST(3), HOST(0));
	for (unsigned int i = 1; i < 8; i++)
		assert_int_equal(take(sw, i), i != 3 && i != 5);
	assert_int_equal(fab_port_add(sw, &set), 3);
	assert_int_equal(sw->port[3].set.rate, 0);
	assert_int_equal(count(sw, 3)->tx_link_down, 0);
	/* It has no peer yet. */
	send(sw, 0, BROADCAST, HOST(0));
	assert_int_equal(sw->port[3].backlog.bytes, 0);
	fab_port_set_peer(sw, 3, true);
	send(sw, 0, BROADCAST, HOST(0));
	assert_int_equal(take(sw, 3), 1);
	fab_switch_free(sw);
}

static void test_settings(void **state)
{
	struct fab_settings good, set;

	(void)state;
	fab_settings_default(&good);
	for (unsigned int i = 0; i < 7; i++) {
		const char *words[] = { "rate", "rate", "burst", "latency", "queue", "queue",
					"addresses" };

		set = good;
		set.rate = i == 0 ? FAB_MIN_RATE - 1 : i == 1 ? FAB_MAX_RATE + 1 : 0;
		set.burst = i == 2 ? FAB_MAX_BURST + 1 : FAB_MAX_BURST;
		set.latency = i == 3 ? FAB_MAX_LATENCY + 1 : FAB_MAX_LATENCY;
		set.queue = i == 4 ? FAB_MIN_QUEUE - 1 : i == 5 ? FAB_MAX_QUEUE + 1 :
			    FAB_MIN_QUEUE;
		set.macs = i == 6 ? FAB_MAX_MACS + 1 : FAB_MAX_MACS;
		assert_non_null(fab_settings_wrong(&set));
		assert_non_null(strstr(fab_settings_wrong(&set), words[i]));
	}
}

/* The sentences state the limits that the header has. */
static void test_limits_are_told(void **state)
{
	struct fab_config cfg = { .ports = 0 };
	char text[80];

	(void)state;
	snprintf(text, sizeof(text), "a switch has 1 to %u ports", FAB_MAX_PORTS);
	assert_string_equal(fab_config_wrong(&cfg), text);
	cfg.ports = FAB_MAX_PORTS;
	snprintf(text, sizeof(text), "the MAC table has 1 to %u entries", FAB_MAX_MACS);
	assert_string_equal(fab_config_wrong(&cfg), text);
	cfg.table = FAB_MAX_MACS;
	snprintf(text, sizeof(text), "addresses age in %llu s to %llu s",
		 FAB_MIN_AGE / SECOND, FAB_MAX_AGE / SECOND);
	assert_string_equal(fab_config_wrong(&cfg), text);
	cfg.age = FAB_MIN_AGE;
	assert_null(fab_config_wrong(&cfg));
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_forwards),
	cmocka_unit_test(test_data_is_unchanged),
	cmocka_unit_test(test_refuses),
	cmocka_unit_test(test_addresses_have_a_limit),
	cmocka_unit_test(test_moves),
	cmocka_unit_test(test_ages),
	cmocka_unit_test(test_latency),
	cmocka_unit_test(test_rate),
	cmocka_unit_test(test_rate_changes),
	cmocka_unit_test(test_queue),
	cmocka_unit_test(test_link),
	cmocka_unit_test(test_ports),
	cmocka_unit_test(test_settings),
	cmocka_unit_test(test_limits_are_told),
};

TEST_MAIN(tests)
