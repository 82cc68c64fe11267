// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "receive.h"

#include "sending.h"
#include "wire/icrc.h"

static void test_tx(void **state)
{
	struct host *h = with_gids();

	(void)state;
	assert_true(send_to(h, peer, 32, 7));
	hca_tx_begin(h->fn, 100);
	/* The frame is longer than its room: the device sends nothing. */
	hca_tx_end(h->fn, 101, 14, 20);
	assert_int_equal(h->num_sent, 1);
	assert_int_equal(h->sent[0].len, 74);
	assert_int_equal(mark_of(h, 0), 7);
	assert_int_equal(COUNT(h, tx_packets), 1);
	assert_int_equal(COUNT(h, tx_bytes), 74);
	/* The device drops a frame that was begun and not ended. */
	assert_non_null(hca_tx_begin(h->fn, 100));
	assert_true(send_to(h, peer, 32, 8));
	assert_int_equal(h->num_sent, 2);
	/* Without a begin the device sends nothing. */
	hca_tx_end(h->fn, 50, 14, 20);
	assert_int_equal(h->num_sent, 2);
	assert_null(hca_tx_begin(h->fn, QHCA_MAX_FRAME + 1));
	host_free(h);
}

static void test_tx_blocked(void **state)
{
	struct host *h = with_gids();

	(void)state;
	h->tx_full = true;
	assert_false(send_to(h, peer, 32, 1));
	assert_true(h->fn->hca->wire.tx_blocked);
	h->tx_full = false;
	assert_false(send_to(h, peer, 32, 1));	/* until the host says so */
	qhca_tx_ready(h->hca, 0);
	assert_true(send_to(h, peer, 32, 1));
	/* A reset forgets that the link was full; the host reports it again. */
	h->tx_full = true;
	assert_false(send_to(h, peer, 32, 1));
	qhca_reset(h->hca, 0, 0);
	assert_false(h->fn->hca->wire.tx_blocked);
	assert_false(send_to(h, peer, 32, 1));
	qhca_tx_ready(h->hca, 0);
	/* A link that is down accepts everything and sends nothing. */
	assert_false(send_to(h, peer, 32, 1));
	qhca_set_link(h->hca, false, 0);
	assert_true(send_to(h, peer, 32, 1));
	assert_int_equal(h->num_sent, 1);
	host_free(h);
}

static void test_loopback(void **state)
{
	struct host *h = with_gids();
	static const uint8_t other[6] = { 2, 0, 0, 0, 0, 2 };
	unsigned int i;

	(void)state;
	/* The destination GID is not one of ours, so the frames end as Ethernet. */
	assert_true(send_to(h, frame_mac, 32, 1));
	assert_int_equal(h->num_sent, 0);
	assert_int_equal(COUNT(h, loopback_packets), 1);
	/* The device does not deliver it at once. */
	assert_int_equal(COUNT(h, eth_rx_filtered), 0);
	assert_true(hca_wire_pending(h->fn->hca));
	host_run(h);
	assert_int_equal(COUNT(h, eth_rx_filtered), 1);
	/* The smac of a GID is ours too; the link does not matter. */
	set_gid(h, 5, frame_gid6, other, 0xffff);
	qhca_set_link(h->hca, false, 0);
	assert_true(send_to(h, other, 32, 1));
	assert_int_equal(COUNT(h, loopback_packets), 2);
	host_run(h);
	qhca_set_link(h->hca, true, 0);
	/*
	 * The queue is bounded: a full ring accepts no more frames, whatever their destination
	 * is.
	 */
	for (i = 0; i < HCA_LOOP_FRAMES; i++)
		assert_true(send_to(h, frame_mac, 32, 1));
	assert_false(send_to(h, frame_mac, 32, 1));
	assert_false(send_to(h, peer, 32, 1));
	assert_false(h->fn->hca->wire.tx_blocked);
	assert_int_equal(hca_wire_run(h->fn->hca, 10), 10);
	assert_true(send_to(h, peer, 32, 1));
	host_run(h);
	assert_int_equal(COUNT(h, eth_rx_filtered), 2 + HCA_LOOP_FRAMES);
	host_free(h);
}

static void test_loopback_mcast(void **state)
{
	struct host *h = with_gids();
	static const uint8_t group[6] = { 1, 0, 0x5e, 1, 2, 3 };

	(void)state;
	assert_true(send_to(h, group, 32, 1));	/* no members */
	assert_int_equal(COUNT(h, loopback_packets), 0);
	h->fn->port.num_members = 1;
	assert_true(send_to(h, group, 32, 2));
	assert_int_equal(COUNT(h, loopback_packets), 1);
	assert_int_equal(h->num_sent, 2);
	h->fn->hca->wire.tx_no_loop = true;
	assert_true(send_to(h, group, 32, 3));
	assert_int_equal(COUNT(h, loopback_packets), 1);
	assert_false(h->fn->hca->wire.tx_no_loop);	/* for one frame */
	h->fn->port.num_members = 0;
	host_free(h);
}

/*
 * The room for a frame is memory that the peer can change.  It makes the shortest packet,
 * which the device gives its ICRC for the loopback, look as if its headers were longer.
 */
static void test_tx_changed_by_peer(void **state)
{
	struct frame_spec s = frame_default(false);
	struct host *h = with_gids();
	uint8_t built[QHCA_MAX_FRAME], *room;
	const uint8_t *looped = h->hca->hca.wire.loop;
	size_t len;

	(void)state;
	s.payload = 16;
	memcpy(s.dmac, h->fn->port.mac, 6);
	len = frame_build(built, &s);
	put_be16(built + 12, HCA_ETHERTYPE_VLAN);
	put_be16(built + 16, HCA_ETHERTYPE_IPV6);
	put_le32(built + len - 4, 0);
	qhca_link_without_icrc(h->hca, true);
	room = hca_tx_begin(h->fn, len);
	memcpy(room, built, len);
	hca_tx_end(h->fn, len, 14, 20);
	assert_memory_equal(looped, built, len - 4);
	assert_int_equal(get_le32(looped + len - 4),
			 hca_icrc(built + 14, 20, len - 42 - 4));
	host_free(h);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_tx),
	cmocka_unit_test(test_tx_blocked),
	cmocka_unit_test(test_tx_changed_by_peer),
	cmocka_unit_test(test_loopback),
	cmocka_unit_test(test_loopback_mcast),
};
TEST_MAIN(tests)
