// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "unit.h"

struct pair {
	struct host *pf, *vf;		/* VF 2; VF 1 does not exist */
};

static struct pair pair_new(void)
{
	struct pair p = { .pf = host_new_ready() };

	p.vf = host_new_vf(p.pf, 2, NULL);
	return p;
}

static enum qhca_cmd_status set_vf(struct pair *p, uint32_t fields,
				   struct qhca_vf_config in)
{
	put_le32(&in.fields, fields);
	return host_cmd(p->pf, QHCA_CMD_SET_VF, 2, 0, &in, sizeof(in), NULL, 0);
}

static struct qhca_vf_state query(struct pair *p)
{
	struct qhca_vf_state out;

	assert_int_equal(host_cmd(p->pf, QHCA_CMD_QUERY_VF, 2, 0, NULL, 0, &out,
				  sizeof(out)), QHCA_CMD_OK);
	return out;
}

static void vf_ready(struct pair *p)
{
	struct qhca_init_hca in;

	host_enable(p->vf);
	host_init_default(p->vf, &in);
	assert_int_equal(host_init_hca(p->vf, &in), QHCA_CMD_OK);
	for (int i = 0; i < QHCA_NUM_TABLES; i++)
		host_map_table(p->vf, (enum qhca_table)i);
}

static enum qhca_cmd_status set_mac(struct host *h, const uint8_t mac[6])
{
	struct qhca_port_config in = { .rsvd0 = 0 };

	put_le32(&in.fields, QHCA_PORT_SET_MAC);
	memcpy(in.mac, mac, 6);
	return host_cmd(h, QHCA_CMD_SET_PORT, 0, 0, &in, sizeof(in), NULL, 0);
}

static const uint8_t given[6] = { 2, 1, 1, 1, 1, 1 };
static const uint8_t other[6] = { 2, 3, 3, 3, 3, 3 };

/* ------------------------------------------------------------------------ */
static void test_caps(void **state)
{
	struct pair p = pair_new();
	struct qhca_caps caps;

	(void)state;
	host_cmd(p.pf, QHCA_CMD_QUERY_CAPS, 0, 0, NULL, 0, &caps, sizeof(caps));
	assert_int_equal(get_le16(&caps.total_vfs), 2);
	assert_true(get_le64(&caps.features) & QHCA_FEAT_VF);
	assert_true(get_le64(&caps.features) & QHCA_FEAT_POLL_HINT);
	host_enable(p.vf);
	host_cmd(p.vf, QHCA_CMD_QUERY_CAPS, 0, 0, NULL, 0, &caps, sizeof(caps));
	assert_int_equal(get_le16(&caps.total_vfs), 0);
	assert_false(get_le64(&caps.features) & QHCA_FEAT_VF);
	assert_false(get_le64(&caps.features) & QHCA_FEAT_POLL_HINT);
	assert_true(get_le64(&caps.features) & QHCA_FEAT_STREAM_HINT);
	host_free(p.pf);

	p.pf = host_new_ready();
	assert_false(p.pf->fn->features & QHCA_FEAT_VF);
	assert_int_equal(host_cmd(p.pf, QHCA_CMD_QUERY_VF, 1, 0, NULL, 0, NULL,
				  0), QHCA_CMD_UNSUPPORTED);
	host_free(p.pf);
}

static void test_refused(void **state)
{
	struct pair p = pair_new();
	struct qhca_vf_config in = { .qos = 0 };
	uint64_t out;

	(void)state;
	vf_ready(&p);
	for (uint16_t op = QHCA_CMD_SET_VF; op <= QHCA_CMD_QUERY_VF_COUNTERS;
	     op++)
		assert_int_equal(host_cmd(p.vf, (enum qhca_opcode)op, 2, 0, &in,
					  sizeof(in), &out, sizeof(out)),
				 QHCA_CMD_NOT_PERMITTED);
	for (uint32_t i = 0; i < 70; i++)
		if (i != 2)
			assert_int_equal(host_cmd(p.pf, QHCA_CMD_SET_VF, i, 0,
						  &in, sizeof(in), NULL, 0),
					 QHCA_CMD_BAD_INDEX);
#define BAD(bits, field, value) do {					\
	struct qhca_vf_config c = { .field = value };			\
									\
	assert_int_equal(set_vf(&p, bits, c), QHCA_CMD_BAD_PARAM);	\
} while (0)
	BAD(0x80, qos, 0);
	BAD(QHCA_VF_SET_MAC, mac[0], 1);
	BAD(QHCA_VF_SET_VLAN, vlan, 4095);
	BAD(QHCA_VF_SET_VLAN, qos, 8);
	BAD(QHCA_VF_SET_LINK, link, 3);
	BAD(0, flags, 4);
	BAD(QHCA_VF_SET_BLOCKS, blocks[QHCA_CACHE_PT], 0x10);	/* it has 4 */
	in.max_rate = 5;
	in.min_rate = 6;
	assert_int_equal(set_vf(&p, QHCA_VF_SET_RATE, in), QHCA_CMD_BAD_PARAM);
	assert_int_equal(p.vf->fn->vf.min_rate, 0);
	host_free(p.pf);
}

/* A mask has 16 bits, and a cache may have 64 blocks. */
static void test_many_blocks(void **state)
{
	static const uint16_t blocks[] = { 16, 32, 64 };
	struct qhca_vf_config in = { .blocks = { 0x8000 } };

	(void)state;
	for (unsigned int i = 0; i < 3; i++) {
		struct qhca_geometry geometry = { 1, blocks[i] };
		struct qhca_init_hca init = { .flags = 0 };
		struct qhca_config cfg;
		struct pair p;

		host_config(&cfg);
		cfg.cache_max[QHCA_CACHE_PT] = geometry;
		cfg.cache_default[QHCA_CACHE_PT] = geometry;
		p.pf = host_new(&cfg);
		p.vf = host_new_vf(p.pf, 2, NULL);
		host_enable(p.pf);
		host_init_default(p.pf, &init);
		assert_int_equal(host_init_hca(p.pf, &init), QHCA_CMD_OK);
		assert_int_equal(set_vf(&p, QHCA_VF_SET_BLOCKS, in),
				 QHCA_CMD_OK);
		host_free(p.pf);
	}
}

/* What the host of the device has chosen holds until SET_VF names blocks. */
static void test_own_blocks(void **state)
{
	struct pair p = { .pf = host_new_ready() };
	struct qhca_vf_config in = { .blocks = { [QHCA_CACHE_AT] = 3 } };
	struct qhca_config cfg;

	(void)state;
	host_config(&cfg);
	cfg.vf_blocks = 0x4;
	p.vf = host_new_vf(p.pf, 2, &cfg);
	assert_int_equal(p.vf->fn->cache[QHCA_CACHE_AT].blocks, 0x4);
	assert_int_equal(set_vf(&p, QHCA_VF_SET_BLOCKS, in), QHCA_CMD_OK);
	assert_int_equal(p.vf->fn->cache[QHCA_CACHE_AT].blocks, 0x3);
	assert_int_equal(p.vf->fn->cache[QHCA_CACHE_PT].blocks, 0x4);
	/* The host domain's driver lays down 0 with all that it sets. */
	in.blocks[QHCA_CACHE_AT] = 0;
	assert_int_equal(set_vf(&p, QHCA_VF_SET_BLOCKS, in), QHCA_CMD_OK);
	assert_int_equal(p.vf->fn->cache[QHCA_CACHE_AT].blocks, 0x4);
	qhca_vf_enable(p.pf->hca, 2, false, 0);
	assert_int_equal(p.vf->fn->cache[QHCA_CACHE_AT].blocks, 0x4);
	assert_int_equal(p.pf->fn->cache[QHCA_CACHE_AT].blocks, 0);
	host_free(p.pf);
}

static void test_set_query(void **state)
{
	struct pair p = pair_new();
	struct qhca_vf_config in = {
		.mac = { 2, 1, 1, 1, 1, 1 }, .vlan = 9, .qos = 3,
		.link = QHCA_VF_LINK_UP, .flags = QHCA_VF_TRUST,
		.max_rate = 1000, .min_rate = 10,
		.blocks = { [QHCA_CACHE_AT] = 3 },
	};
	struct qhca_vf_state s = query(&p);

	(void)state;
	assert_int_equal(get_le16(&s.config.flags), QHCA_VF_SPOOFCHK);
	assert_int_equal(get_le32(&s.generation), 1);
	assert_int_equal(set_vf(&p, 0x7f, in), QHCA_CMD_OK);
	s = query(&p);
	assert_memory_equal(&s.config, &in, sizeof(in));
	assert_memory_equal(s.mac, given, 6);
	assert_int_equal(get_le32(&s.status), QHCA_STATUS_READY);
	in.max_rate = 0;
	in.vlan = 1;
	assert_int_equal(set_vf(&p, QHCA_VF_SET_RATE, in), QHCA_CMD_OK);
	/* One field applies, and the others stay as they are. */
	s = query(&p);
	assert_int_equal(get_le16(&s.config.vlan), 9);
	assert_int_equal(get_le32(&s.config.max_rate), 0);
	qhca_vf_enable(p.pf->hca, 2, false, 0);
	s = query(&p);
	assert_int_equal(get_le32(&s.status), ~0u);
	assert_int_equal(get_le16(&s.config.vlan), 0);
	assert_int_equal(get_le32(&s.generation), 2);
	host_free(p.pf);
}

/*
 * A reset of the PF leaves the VF and its settings alone: it would be free of them until
 * the host domain is back.  They end with the VF.
 */
static void test_forgotten(void **state)
{
	struct pair p = pair_new();
	struct qhca_vf_config in = { .vlan = 9, .link = QHCA_VF_LINK_DOWN };

	(void)state;
	set_vf(&p, QHCA_VF_SET_VLAN | QHCA_VF_SET_LINK, in);
	vf_ready(&p);
	qhca_reset(p.pf->hca, 0, 0);
	assert_int_equal(p.vf->fn->vf.vlan, 9);
	assert_false(hca_link_word(p.vf->fn) & QHCA_LINK_UP);
	assert_true(p.vf->fn->initialised);
	qhca_vf_enable(p.pf->hca, p.vf->fn->cfg.gvmi, false, 0);
	assert_int_equal(p.vf->fn->vf.vlan, 0);
	assert_int_equal(p.vf->fn->vf.flags, QHCA_VF_SPOOFCHK);
	qhca_vf_enable(p.pf->hca, p.vf->fn->cfg.gvmi, true, 0);
	assert_true(hca_link_word(p.vf->fn) & QHCA_LINK_UP);
	host_free(p.pf);
}

static bool linked(struct host *h)
{
	return qhca_reg_read(h->hca, h->gvmi, QHCA_REG_LINK, 0) & QHCA_LINK_UP;
}

/* A PCI reset of the PF forgets also what was laid down for a VF that is not enabled. */
static void test_forgotten_while_disabled(void **state)
{
	struct pair p = pair_new();
	struct qhca_vf_config in = { .vlan = 9, .max_rate = 100 };

	(void)state;
	qhca_vf_enable(p.pf->hca, 2, false, 0);
	set_vf(&p, QHCA_VF_SET_VLAN | QHCA_VF_SET_RATE, in);
	qhca_reset(p.pf->hca, 0, 0);
	assert_int_equal(p.vf->fn->vf.vlan, 9);
	qhca_pci_reset(p.pf->hca, 0, 0);
	assert_int_equal(p.vf->fn->vf.vlan, 0);
	assert_int_equal(p.vf->fn->rate.max.rate, 0);
	assert_int_equal(p.vf->fn->vf.flags, QHCA_VF_SPOOFCHK);
	host_free(p.pf);
}

/*
 * VFs that are enabled after a PCI reset of the PF have no settings yet.  They are kept
 * off the network until the PF's driver has had the occasion to lay them down.
 */
static void test_kept_off(void **state)
{
	struct pair p = pair_new();
	struct qhca_vf_config in = { .vlan = 9 };
	struct qhca_init_hca init;
	struct ring eq;

	(void)state;
	assert_true(linked(p.vf));
	qhca_vf_enable(p.pf->hca, 2, false, 0);
	qhca_pci_reset(p.pf->hca, 0, 0);
	qhca_vf_enable(p.pf->hca, 2, true, 0);
	vf_ready(&p);
	eq = host_ring(p.vf, 3);
	assert_int_equal(host_create_eq(p.vf, 0, &eq, 0), QHCA_CMD_OK);
	assert_false(linked(p.vf));
	assert_true(linked(p.pf));
	assert_false(hca_fn_linked(p.vf->fn));
	qhca_set_link(p.pf->hca, false, 0);	/* no change for the VF */
	qhca_set_link(p.pf->hca, true, 0);
	assert_false(host_eqe_valid(p.vf, &eq, 0));

	host_enable(p.pf);
	assert_int_equal(set_vf(&p, QHCA_VF_SET_VLAN, in), QHCA_CMD_OK);
	assert_false(linked(p.vf));
	host_init_default(p.pf, &init);
	assert_int_equal(host_init_hca(p.pf, &init), QHCA_CMD_OK);
	assert_true(linked(p.vf));
	assert_int_equal(p.vf->fn->vf.vlan, 9);
	assert_true(host_eqe_valid(p.vf, &eq, 0));
	assert_int_equal(host_eqe(p.vf, &eq, 0)->type, QHCA_EVENT_PORT_CHANGE);

	qhca_reset(p.pf->hca, 0, 0);		/* a device reset keeps settings */
	assert_true(linked(p.vf));
	qhca_pci_reset(p.pf->hca, 2, 0);	/* FLR of a VF too */
	assert_true(linked(p.vf));
	assert_int_equal(p.vf->fn->vf.vlan, 9);
	host_free(p.pf);
}

static uint32_t mac_lo(struct pair *p)
{
	return qhca_reg_read(p->pf->hca, 2, QHCA_REG_MAC_LO, 0);
}

static void test_mac(void **state)
{
	struct pair p = pair_new();
	struct qhca_vf_config in = { .mac = { 2, 1, 1, 1, 1, 1 } };
	uint32_t first = mac_lo(&p);

	(void)state;
	vf_ready(&p);
	assert_int_equal(set_vf(&p, QHCA_VF_SET_MAC, in), QHCA_CMD_OK);
	assert_memory_equal(p.vf->fn->port.mac, given, 6);
	assert_int_equal(mac_lo(&p), first);	/* until it is reset */
	assert_int_equal(set_mac(p.vf, other), QHCA_CMD_NOT_PERMITTED);
	assert_memory_equal(p.vf->fn->port.mac, given, 6);
	assert_int_equal(set_mac(p.vf, given), QHCA_CMD_OK);
	in.flags = QHCA_VF_TRUST;
	set_vf(&p, QHCA_VF_SET_TRUST, in);
	assert_int_equal(set_mac(p.vf, other), QHCA_CMD_OK);
	/* Software has set an address of its own. */
	set_vf(&p, QHCA_VF_SET_MAC, in);
	assert_memory_equal(p.vf->fn->port.mac, other, 6);
	qhca_reset(p.pf->hca, 2, 0);
	assert_int_equal(mac_lo(&p), get_le32(given));
	assert_memory_equal(p.vf->fn->port.mac, given, 6);
	host_free(p.pf);
}

/* A VF without trust has the address that it is given, whatever it chose before. */
static void test_mac_is_forced(void **state)
{
	struct pair p = pair_new();
	struct qhca_vf_config in = { .mac = { 2, 1, 1, 1, 1, 1 } };
	struct qhca_vf_config none = { .qos = 0 };

	(void)state;
	vf_ready(&p);
	assert_int_equal(set_mac(p.vf, other), QHCA_CMD_OK);
	set_vf(&p, QHCA_VF_SET_MAC, in);	/* after its own choice */
	assert_memory_equal(p.vf->fn->port.mac, given, 6);
	assert_int_equal(p.pf->hca->hca.sw.claim[2], HCA_MAC_ASSIGNED);
	in.mac[5] = 9;				/* the choice is forgotten */
	set_vf(&p, QHCA_VF_SET_MAC, in);
	assert_memory_equal(p.vf->fn->port.mac, in.mac, 6);

	in.flags = QHCA_VF_TRUST;		/* a choice ends with the trust */
	set_vf(&p, QHCA_VF_SET_TRUST, in);
	assert_int_equal(set_mac(p.vf, other), QHCA_CMD_OK);
	set_vf(&p, QHCA_VF_SET_MAC, in);
	assert_memory_equal(p.vf->fn->port.mac, other, 6);
	set_vf(&p, QHCA_VF_SET_TRUST, none);
	assert_memory_equal(p.vf->fn->port.mac, in.mac, 6);

	set_vf(&p, QHCA_VF_SET_MAC, none);	/* no rule any more */
	assert_memory_equal(p.vf->fn->port.mac, in.mac, 6);
	assert_int_equal(p.pf->hca->hca.sw.claim[2], HCA_MAC_CHOSEN);
	assert_int_equal(set_mac(p.vf, other), QHCA_CMD_OK);
	set_vf(&p, QHCA_VF_SET_TRUST, none);
	assert_memory_equal(p.vf->fn->port.mac, other, 6);
	qhca_reset(p.pf->hca, 2, 0);
	assert_memory_equal(p.vf->fn->port.mac, p.vf->fn->cfg.mac, 6);
	host_free(p.pf);
}

static void delay_all(struct pair *p, bool rx)
{
	struct qhca_inject_config cfg = {
		.on_rx = rx, .on_tx = !rx, .delay_ns = 1000,
	};
	char err[100];

	cfg.rule[QHCA_INJECT_DELAY].ppm = 1000000;
	assert_true(qhca_inject_set(p->pf->hca, &cfg, err, sizeof(err)));
}

/* The VF sends a frame to the wire, which the injector delays. */
static void send_delayed(struct pair *p)
{
	struct hca_fn *fn = p->vf->fn;
	uint8_t *f = hca_tx_begin(fn, 100);

	assert_non_null(f);
	memset(f, 0, 100);
	memcpy(f, given, 6);
	memcpy(f + 6, fn->port.mac, 6);
	hca_tx_end(fn, 100, 14, 20);
	assert_int_equal(p->pf->hca->hca.inject.held, 1);
}

/* What the injector holds does not get around the settings that have come since. */
static void test_held_frames(void **state)
{
	static const struct {
		uint32_t fields;
		struct qhca_vf_config in;
		bool kept;
	} cases[] = {
		{ QHCA_VF_SET_VLAN, { .vlan = 7 }, false },
		{ QHCA_VF_SET_VLAN, { .qos = 7 }, false },
		{ QHCA_VF_SET_LINK, { .link = QHCA_VF_LINK_DOWN }, false },
		{ QHCA_VF_SET_MAC, { .mac = { 2, 8, 8, 8, 8, 8 } }, false },
		{ QHCA_VF_SET_SPOOFCHK, { .flags = 0 }, false },
		{ QHCA_VF_SET_VLAN, { .vlan = 0 }, true },
		{ QHCA_VF_SET_RATE, { .max_rate = 10 }, true },
	};

	(void)state;
	for (unsigned int i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct pair p = pair_new();
		unsigned int kept = cases[i].kept;

		delay_all(&p, false);
		send_delayed(&p);
		assert_int_equal(set_vf(&p, cases[i].fields, cases[i].in),
				 QHCA_CMD_OK);
		host_run_at(p.pf, p.pf->now + 2000);
		assert_int_equal(p.pf->num_sent, kept);
		assert_int_equal(p.pf->hca->hca.inject.held, 0);
		host_free(p.pf);
	}
}

/* The VF's software learns of its link by an event, and only of a change. */
static void test_link_event(void **state)
{
	struct pair p = pair_new();
	struct qhca_vf_config in = { .link = QHCA_VF_LINK_UP };
	struct ring eq;

	(void)state;
	vf_ready(&p);
	eq = host_ring(p.vf, 3);
	assert_int_equal(host_create_eq(p.vf, 0, &eq, 0), QHCA_CMD_OK);
	set_vf(&p, QHCA_VF_SET_LINK, in);	/* the link is up as before */
	assert_false(host_eqe_valid(p.vf, &eq, 0));
	qhca_set_link(p.pf->hca, false, 0);	/* the port's, not the VF's */
	assert_false(host_eqe_valid(p.vf, &eq, 0));
	in.link = QHCA_VF_LINK_DOWN;
	set_vf(&p, QHCA_VF_SET_LINK, in);
	assert_true(host_eqe_valid(p.vf, &eq, 0));
	assert_int_equal(host_eqe(p.vf, &eq, 0)->type, QHCA_EVENT_PORT_CHANGE);
	in.link = QHCA_VF_LINK_AUTO;
	set_vf(&p, QHCA_VF_SET_LINK, in);	/* the link is down as before */
	assert_false(host_eqe_valid(p.vf, &eq, 1));
	qhca_set_link(p.pf->hca, true, 0);
	assert_true(host_eqe_valid(p.vf, &eq, 1));
	host_free(p.pf);
}

static void test_counters(void **state)
{
	struct pair p = pair_new();
	uint64_t out[2];

	(void)state;
	host_enable(p.vf);
	host_cmd(p.vf, QHCA_CMD_NOP, 0, 0, NULL, 0, NULL, 0);
	assert_int_equal(host_cmd(p.pf, QHCA_CMD_QUERY_VF_COUNTERS, 2,
				  QHCA_CNT_commands, NULL, 0, out, sizeof(out)),
			 QHCA_CMD_OK);
	assert_int_equal(get_le64(&out[0]), COUNT(p.vf, commands));
	assert_int_equal(get_le64(&out[0]), 1);
	assert_int_equal(host_cmd(p.pf, QHCA_CMD_QUERY_VF_COUNTERS, 2,
				  QHCA_NUM_COUNTERS, NULL, 0, out, sizeof(out)),
			 QHCA_CMD_BAD_PARAM);
	host_free(p.pf);
}

static uint64_t vf_commands(struct pair *p)
{
	uint64_t out;

	assert_int_equal(host_cmd(p->pf, QHCA_CMD_QUERY_VF_COUNTERS, 2,
				  QHCA_CNT_commands, NULL, 0, &out, sizeof(out)),
			 QHCA_CMD_OK);
	return get_le64(&out);
}

/* What the host reads goes on through the VF's resets, and ends with the VF. */
static void test_counters_go_on(void **state)
{
	struct pair p = pair_new();

	(void)state;
	for (uint64_t i = 1; i < 4; i++) {
		host_enable(p.vf);
		host_cmd(p.vf, QHCA_CMD_NOP, 0, 0, NULL, 0, NULL, 0);
		assert_int_equal(vf_commands(&p), i);
		assert_int_equal(COUNT(p.vf, commands), 1);
		qhca_reset(p.pf->hca, 2, 0);
		assert_int_equal(vf_commands(&p), i);
		assert_int_equal(COUNT(p.vf, commands), 0);
	}
	qhca_vf_enable(p.pf->hca, 2, false, 0);
	qhca_vf_enable(p.pf->hca, 2, true, 0);
	assert_int_equal(vf_commands(&p), 0);
	host_free(p.pf);
}

/* The host's driver lays settings down before VFs can use its INIT_HCA. */
static void test_early(void **state)
{
	struct pair p = { .pf = host_new(NULL) };
	struct qhca_vf_config in = { .vlan = 9 };
	struct qhca_vf_state s;

	(void)state;
	p.vf = host_new_vf(p.pf, 2, NULL);
	host_enable(p.pf);
	assert_int_equal(set_vf(&p, QHCA_VF_SET_VLAN, in), QHCA_CMD_OK);
	s = query(&p);
	assert_int_equal(get_le16(&s.config.vlan), 9);
	assert_int_equal(vf_commands(&p), 0);
	host_free(p.pf);
}

/* A dead PF stops nobody else, and a dead VF neither. */
static void test_others_run(void **state)
{
	struct pair p = pair_new();

	(void)state;
	vf_ready(&p);
	qhca_inject_fatal(p.pf->hca, 0);
	assert_int_equal(host_cmd(p.vf, QHCA_CMD_NOP, 0, 0, NULL, 0, NULL, 0),
			 QHCA_CMD_OK);
	assert_true(qhca_can_receive(p.pf->hca));
	qhca_inject_fatal(p.pf->hca, 2);
	assert_false(qhca_run(p.pf->hca, 0, 10).more);
	assert_int_equal(qhca_run(p.pf->hca, 0, 10).deadline, QHCA_NEVER);
	assert_int_equal(p.pf->hca->hca.active, 0);
	host_free(p.pf);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_caps),
	cmocka_unit_test(test_refused),
	cmocka_unit_test(test_many_blocks),
	cmocka_unit_test(test_own_blocks),
	cmocka_unit_test(test_set_query),
	cmocka_unit_test(test_forgotten),
	cmocka_unit_test(test_forgotten_while_disabled),
	cmocka_unit_test(test_kept_off),
	cmocka_unit_test(test_mac),
	cmocka_unit_test(test_mac_is_forced),
	cmocka_unit_test(test_held_frames),
	cmocka_unit_test(test_link_event),
	cmocka_unit_test(test_counters),
	cmocka_unit_test(test_counters_go_on),
	cmocka_unit_test(test_early),
	cmocka_unit_test(test_others_run),
};
TEST_MAIN(tests)
