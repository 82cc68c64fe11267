// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "frames.h"

static const uint8_t mac2[6] = { 2, 0, 0, 0, 0, 9 };

static void test_gids(void **state)
{
	struct host *h = host_new_ready();
	struct qhca_gid_entry none = { .rsvd = 0 };
	const struct hca_gid *gid;

	(void)state;
	assert_int_equal(hca_gid_find(h->fn, frame_gid4, HCA_VLAN_NONE), -1);
	assert_int_equal(set_gid(h, 5, frame_gid4, frame_mac, 0xffff),
			 QHCA_CMD_OK);
	assert_int_equal(set_gid(h, 3, frame_gid4, frame_mac, 100),
			 QHCA_CMD_OK);
	assert_int_equal(set_gid(h, 7, frame_gid4, frame_mac, 0xffff),
			 QHCA_CMD_OK);
	/* The VLAN is part of a GID; of two equal GIDs the lower index counts. */
	assert_int_equal(hca_gid_find(h->fn, frame_gid4, HCA_VLAN_NONE), 5);
	assert_int_equal(hca_gid_find(h->fn, frame_gid4, 100), 3);
	assert_int_equal(hca_gid_find(h->fn, frame_gid4, 101), -1);
	assert_int_equal(hca_gid_find(h->fn, frame_gid6, HCA_VLAN_NONE), -1);
	assert_int_equal(set_gid(h, 1, frame_gid4, frame_mac, 0xffff),
			 QHCA_CMD_OK);
	assert_int_equal(hca_gid_find(h->fn, frame_gid4, HCA_VLAN_NONE), 1);
	gid = hca_gid_get(h->fn, 3);
	assert_non_null(gid);
	assert_int_equal(gid->vlan, 100);
	assert_memory_equal(gid->smac, frame_mac, 6);
	assert_null(hca_gid_get(h->fn, 4));
	assert_null(hca_gid_get(h->fn, 8));
	assert_null(hca_gid_get(h->fn, UINT32_MAX));
	/* The GID is removed. */
	assert_int_equal(host_cmd(h, QHCA_CMD_SET_GID, 1, 0, &none,
				  sizeof(none), NULL, 0), QHCA_CMD_OK);
	assert_int_equal(hca_gid_find(h->fn, frame_gid4, HCA_VLAN_NONE), 5);
	host_free(h);
}

static void test_gid_errors(void **state)
{
	struct host *h = host_new_ready();
	uint8_t gid[16] = { 0 }, mac[6] = { 0 };
	struct qhca_gid_entry in = { .smac = { 2 } };

	(void)state;
	assert_int_equal(set_gid(h, 8, frame_gid4, frame_mac, 0xffff),
			 QHCA_CMD_BAD_INDEX);
	assert_int_equal(set_gid(h, 0, gid, frame_mac, 0xffff),
			 QHCA_CMD_BAD_PARAM);
	gid[0] = 0xff;
	assert_int_equal(set_gid(h, 0, gid, frame_mac, 0xffff),
			 QHCA_CMD_BAD_PARAM);
	memcpy(gid, frame_gid4, 16);
	gid[12] = 224;
	assert_int_equal(set_gid(h, 0, gid, frame_mac, 0xffff),
			 QHCA_CMD_BAD_PARAM);
	assert_int_equal(set_gid(h, 0, frame_gid4, mac, 0xffff),
			 QHCA_CMD_BAD_PARAM);
	mac[0] = 1;
	assert_int_equal(set_gid(h, 0, frame_gid4, mac, 0xffff),
			 QHCA_CMD_BAD_PARAM);
	assert_int_equal(set_gid(h, 0, frame_gid4, frame_mac, 4095),
			 QHCA_CMD_BAD_PARAM);
	/* The IPv4 flag must agree with the GID. */
	memcpy(in.gid, frame_gid4, 16);
	put_le16(&in.vlan, 0xffff);
	put_le32(&in.flags, QHCA_GID_VALID);
	assert_int_equal(host_cmd(h, QHCA_CMD_SET_GID, 0, 0, &in, sizeof(in),
				  NULL, 0), QHCA_CMD_BAD_PARAM);
	memcpy(in.gid, frame_gid6, 16);
	put_le32(&in.flags, QHCA_GID_VALID | QHCA_GID_IPV4);
	assert_int_equal(host_cmd(h, QHCA_CMD_SET_GID, 0, 0, &in, sizeof(in),
				  NULL, 0), QHCA_CMD_BAD_PARAM);
	assert_int_equal(h->fn->port.num_gids_valid, 0);
	host_free(h);
}

/* ---- a table in which many entries share places of the hashes, and some are equal */

static struct hca_gid some_gid(uint64_t *seed)
{
	struct hca_gid gid = { .flags = QHCA_GID_VALID | QHCA_GID_IPV4 };
	uint32_t r;

	*seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
	r = (uint32_t)(*seed >> 33);
	memcpy(gid.gid, (uint8_t[16]){ [10] = 0xff, 0xff, 10 }, 16);
	gid.gid[15] = r % 64;
	gid.vlan = r >> 8 & 1 ? HCA_VLAN_NONE : r >> 9 & 3;
	/* One of 512, and many of these have the same hash. */
	memcpy(gid.smac, mac2, 6);
	put_be16(gid.smac + 4, (uint16_t)((r >> 11 & 511) * 40503));
	return gid;
}

static int scan_gids(const struct hca_fn *fn, const struct hca_gid *wanted)
{
	for (unsigned int i = 0; i < fn->cfg.num_gids; i++) {
		const struct hca_gid *gid = hca_gid_get(fn, i);

		if (gid && gid->vlan == wanted->vlan &&
		    !memcmp(gid->gid, wanted->gid, 16))
			return (int)i;
	}
	return -1;
}

static bool scan_macs(const struct hca_fn *fn, const uint8_t mac[6])
{
	for (unsigned int i = 0; i < fn->cfg.num_gids; i++) {
		const struct hca_gid *gid = hca_gid_get(fn, i);

		if (gid && !memcmp(gid->smac, mac, 6))
			return true;
	}
	return !memcmp(fn->port.mac, mac, 6);
}

static void test_full_table(void **state)
{
	struct qhca_config cfg;
	struct host *h;
	uint64_t seed = 1;

	(void)state;
	qhca_config_default(&cfg);
	cfg.num_gids = HCA_MAX_GIDS;
	h = host_new(&cfg);
	for (unsigned int round = 0; round < 40; round++) {
		for (unsigned int i = 0; i < 2 * HCA_MAX_GIDS; i++)
			h->fn->port.gid[i % HCA_MAX_GIDS] = some_gid(&seed);
		/* Some rounds leave holes; the others fill the table. */
		for (unsigned int i = round % 3; i && i < HCA_MAX_GIDS; i += 7)
			h->fn->port.gid[i].flags = 0;
		hca_gids_changed(h->fn);
		for (unsigned int i = 0; i < 2 * HCA_MAX_GIDS; i++) {
			struct hca_gid gid = some_gid(&seed);

			assert_int_equal(hca_gid_find(h->fn, gid.gid, gid.vlan),
					 scan_gids(h->fn, &gid));
			assert_int_equal(hca_mac_is_ours(h->fn, gid.smac),
					 scan_macs(h->fn, gid.smac));
		}
	}
	host_free(h);
}

static void test_own_macs(void **state)
{
	struct host *h = host_new_ready();
	struct qhca_port_config pc = { .mac = { 2, 7, 7, 7, 7, 7 } };

	(void)state;
	assert_true(hca_mac_is_ours(h->fn, frame_mac));
	assert_false(hca_mac_is_ours(h->fn, mac2));
	set_gid(h, 0, frame_gid4, mac2, 0xffff);
	assert_true(hca_mac_is_ours(h->fn, mac2));
	put_le32(&pc.fields, QHCA_PORT_SET_MAC);
	assert_int_equal(host_cmd(h, QHCA_CMD_SET_PORT, 0, 0, &pc, sizeof(pc),
				  NULL, 0), QHCA_CMD_OK);
	assert_false(hca_mac_is_ours(h->fn, frame_mac));
	assert_true(hca_mac_is_ours(h->fn, pc.mac));
	assert_true(hca_mac_is_ours(h->fn, mac2));
	/* The permanent address register does not change. */
	assert_int_equal(qhca_reg_read(h->hca, 0, QHCA_REG_MAC_LO, 0),
			 get_le32(frame_mac));
	host_free(h);
}

static void test_settings(void **state)
{
	struct host *h = host_new_ready();
	struct qhca_port_config in = { .mac = { 1 } };
	struct qhca_port_info info;
	struct qhca_port out;

	(void)state;
#define SET() host_cmd(h, QHCA_CMD_SET_PORT, 0, 0, &in, sizeof(in), NULL, 0)
	put_le32(&in.fields, 8);
	assert_int_equal(SET(), QHCA_CMD_BAD_PARAM);
	put_le32(&in.fields, QHCA_PORT_SET_MAC);
	assert_int_equal(SET(), QHCA_CMD_BAD_PARAM);
	put_le32(&in.fields, QHCA_PORT_SET_MTU);
	put_le32(&in.eth_mtu, 67);
	assert_int_equal(SET(), QHCA_CMD_BAD_PARAM);
	put_le32(&in.eth_mtu, HCA_LIMIT_ETH_MTU + 1);
	assert_int_equal(SET(), QHCA_CMD_BAD_PARAM);
	put_le32(&in.eth_mtu, HCA_LIMIT_ETH_MTU);
	assert_int_equal(SET(), QHCA_CMD_OK);
	put_le32(&in.fields, QHCA_PORT_SET_RX);
	put_le32(&in.rx_flags, 8);
	assert_int_equal(SET(), QHCA_CMD_BAD_PARAM);
	put_le32(&in.rx_flags, QHCA_RX_ENABLE);
	assert_int_equal(SET(), QHCA_CMD_OK);
	put_le32(&in.rx_flags, 0);	/* a field that does not apply */
	put_le32(&in.fields, 0);
	assert_int_equal(SET(), QHCA_CMD_OK);
	assert_int_equal(h->fn->port.rx_flags, QHCA_RX_ENABLE);

	assert_int_equal(host_cmd(h, QHCA_CMD_QUERY_PORT, 0, 0, NULL, 0, &out,
				  sizeof(out)), QHCA_CMD_OK);
	assert_int_equal(get_le32(&out.eth_mtu), HCA_LIMIT_ETH_MTU);
	assert_int_equal(get_le32(&out.link), 1 | 1000 << 8);
	assert_memory_equal(out.mac, frame_mac, 6);
	qhca_query_port(h->hca, 0, &info);
	assert_true(info.enabled && info.link_up && !info.fatal);
	assert_int_equal(info.eth_mtu, HCA_LIMIT_ETH_MTU);
	set_gid(h, 0, frame_gid4, frame_mac, 0xffff);
	set_gid(h, 3, frame_gid6, frame_mac, 0xffff);
	qhca_query_port(h->hca, 0, &info);
	assert_int_equal(info.num_gids_valid, 2);
	/* A reset sets all of them back. */
	qhca_reset(h->hca, 0, 0);
	qhca_query_port(h->hca, 0, &info);
	assert_int_equal(info.eth_mtu, 1500);
	assert_int_equal(info.num_gids_valid, 0);
	assert_int_equal(h->fn->port.rx_flags, 0);
	assert_int_equal(hca_gid_find(h->fn, frame_gid4, HCA_VLAN_NONE), -1);
	host_free(h);
}

static void test_link(void **state)
{
	struct host *h = host_new_ready();
	struct ring eq = host_ring(h, 3);

	(void)state;
	assert_int_equal(host_create_eq(h, 0, &eq, 0), QHCA_CMD_OK);
	assert_false(host_eqe_valid(h, &eq, 0));	/* not the state now */
	qhca_set_link(h->hca, true, 0);
	assert_false(host_eqe_valid(h, &eq, 0));
	qhca_set_link(h->hca, false, 0);
	assert_int_equal(host_eqe(h, &eq, 0)->type, QHCA_EVENT_PORT_CHANGE);
	assert_int_equal(get_le32(&host_eqe(h, &eq, 0)->number), 1);
	assert_false(get_le32(&host_eqe(h, &eq, 0)->detail) & QHCA_LINK_UP);
	assert_false(qhca_can_receive(h->hca));
	qhca_set_link(h->hca, true, 0);
	assert_true(get_le32(&host_eqe(h, &eq, 1)->detail) & QHCA_LINK_UP);
	assert_true(qhca_can_receive(h->hca));
	host_free(h);
}

/* ------------------------------------------------------------------------
 * Multicast members; the QPs are made live by hand
 */
static void fake_ud(struct host *h, uint32_t qpn)
{
	h->fn->qps.slot[qpn].live = 1;
	h->fn->qps.slot[qpn].type = QHCA_QPT_UD;
}

static enum qhca_cmd_status member(struct host *h, enum qhca_opcode op,
				   uint32_t qpn, uint8_t group)
{
	struct qhca_mgid in = { .gid = { 0xff, 0x0e, [15] = group } };

	return host_cmd(h, op, qpn, 0, &in, sizeof(in), NULL, 0);
}

static bool collect(struct hca_fn *fn, uint32_t qpn, void *arg)
{
	(void)fn;
	*(uint64_t *)arg |= 1ull << qpn;
	return true;
}

static uint64_t members(struct host *h, uint8_t group)
{
	uint8_t gid[16] = { 0xff, 0x0e, [15] = group };
	uint64_t mask = 0;
	bool any = hca_mcast_for_each(h->fn, gid, collect, &mask);

	assert_int_equal(any, mask != 0);
	assert_int_equal(hca_mcast_any(h->fn, gid), mask != 0);
	return mask;
}

static void test_mcast(void **state)
{
	struct host *h = host_new_ready();
	struct qhca_mgid bad = { .gid = { 0xfe, 0x80 } };

	(void)state;
	fake_ud(h, 4);
	fake_ud(h, 5);
	assert_int_equal(host_cmd(h, QHCA_CMD_ATTACH_MCAST, 4, 0, &bad,
				  sizeof(bad), NULL, 0), QHCA_CMD_BAD_PARAM);
	assert_int_equal(member(h, QHCA_CMD_ATTACH_MCAST, 6, 1),
			 QHCA_CMD_BAD_STATE);
	assert_int_equal(member(h, QHCA_CMD_ATTACH_MCAST, 64, 1),
			 QHCA_CMD_BAD_INDEX);
	h->fn->qps.slot[7].live = 1;		/* RC */
	assert_int_equal(member(h, QHCA_CMD_ATTACH_MCAST, 7, 1),
			 QHCA_CMD_BAD_STATE);
	assert_int_equal(members(h, 1), 0);
	assert_int_equal(member(h, QHCA_CMD_ATTACH_MCAST, 4, 1), QHCA_CMD_OK);
	assert_int_equal(member(h, QHCA_CMD_ATTACH_MCAST, 4, 1), QHCA_CMD_OK);
	assert_int_equal(member(h, QHCA_CMD_ATTACH_MCAST, 5, 1), QHCA_CMD_OK);
	assert_int_equal(member(h, QHCA_CMD_ATTACH_MCAST, 4, 2), QHCA_CMD_OK);
	assert_int_equal(member(h, QHCA_CMD_ATTACH_MCAST, 4, 3), QHCA_CMD_OK);
	assert_int_equal(member(h, QHCA_CMD_ATTACH_MCAST, 5, 3),
			 QHCA_CMD_NO_RESOURCE);
	assert_int_equal(members(h, 1), 1 << 4 | 1 << 5);
	assert_int_equal(members(h, 2), 1 << 4);
	assert_int_equal(member(h, QHCA_CMD_DETACH_MCAST, 5, 2),
			 QHCA_CMD_BAD_STATE);
	assert_int_equal(member(h, QHCA_CMD_DETACH_MCAST, 4, 2), QHCA_CMD_OK);
	assert_int_equal(members(h, 2), 0);
	hca_mcast_drop_qp(h->fn, 4);
	assert_int_equal(members(h, 1), 1 << 5);
	assert_int_equal(members(h, 3), 0);
	assert_int_equal(h->fn->port.num_members, 1);
	h->fn->qps.slot[4].live = h->fn->qps.slot[5].live = 0;
	h->fn->qps.slot[7].live = 0;
	host_free(h);
}

/* The violation counters stay at their maximum, and do not wrap. */
static void test_violations_saturate(void **state)
{
	struct host *h = host_new_ready();
	struct qhca_port out;

	(void)state;
	h->fn->port.qkey_violations = UINT32_MAX - 1;
	h->fn->port.pkey_violations = 7;
	for (int i = 0; i < 3; i++) {
		hca_port_violation(&h->fn->port.qkey_violations);
		hca_port_violation(&h->fn->port.pkey_violations);
	}
	assert_int_equal(host_cmd(h, QHCA_CMD_QUERY_PORT, 0, 0, NULL, 0, &out,
				  sizeof(out)), QHCA_CMD_OK);
	assert_int_equal(get_le32(&out.qkey_violations), UINT32_MAX);
	assert_int_equal(get_le32(&out.pkey_violations), 10);
	host_free(h);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_gids),
	cmocka_unit_test(test_gid_errors),
	cmocka_unit_test(test_full_table),
	cmocka_unit_test(test_own_macs),
	cmocka_unit_test(test_settings),
	cmocka_unit_test(test_link),
	cmocka_unit_test(test_mcast),
	cmocka_unit_test(test_violations_saturate),
};
TEST_MAIN(tests)
