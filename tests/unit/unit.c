// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "unit.h"

void host_config(struct qhca_config *cfg)
{
	qhca_config_default(cfg);
	cfg->log_max_pt = 10;
	cfg->log_max_qp = 6;
	cfg->log_max_cq = 6;
	cfg->log_max_srq = 5;
	cfg->log_max_eq = 3;
	cfg->log_max_cq_depth = 10;
	cfg->log_max_eq_depth = 8;
	cfg->num_vectors = 8;
	cfg->num_gids = 8;
	cfg->num_db_pages = 16;
	cfg->max_pool_blocks = 4;
	cfg->max_pool_keys = 3;
	cfg->max_mcast_members = 4;
}

struct host *host_new(const struct qhca_config *cfg)
{
	struct host *h = calloc(1, sizeof(*h));
	struct qhca_config small;

	assert_non_null(h);
	host_config(&small);
	host_open(h, RAM_SIZE, cfg ? cfg : &small);
	h->fn = &h->hca->pf;
	return h;
}

struct host *host_new_vf(struct host *pf, uint16_t gvmi,
			 const struct qhca_config *cfg)
{
	struct host *h = calloc(1, sizeof(*h));
	struct qhca_config small;

	assert_non_null(h);
	host_config(&small);
	small.mac[5] = (uint8_t)(small.mac[5] + gvmi);
	host_open_vf(h, RAM_SIZE, pf, gvmi, cfg ? cfg : &small);
	h->fn = hca_fn_of(&h->hca->hca, gvmi);
	return h;
}

void host_free(struct host *h)
{
	for (uint16_t gvmi = 1; gvmi <= QHCA_MAX_VFS; gvmi++) {
		struct host *vf = h->of_fn[gvmi];

		if (vf)
			host_close_vf(vf);
		free(vf);
	}
	host_close(h);
	free(h);
}

void host_init_default(struct host *h, struct qhca_init_hca *in)
{
	const struct qhca_config *cfg = &h->fn->cfg;
	unsigned int i;

	memset(in, 0, sizeof(*in));
	in->table[QHCA_TABLE_PT].log_entries = cfg->log_max_pt;
	in->table[QHCA_TABLE_QP].log_entries = cfg->log_max_qp;
	in->table[QHCA_TABLE_CQ].log_entries = cfg->log_max_cq;
	in->table[QHCA_TABLE_SRQ].log_entries = cfg->log_max_srq;
	in->table[QHCA_TABLE_EQ].log_entries = cfg->log_max_eq;
	for (i = 0; i < QHCA_NUM_TABLES; i++)
		in->table[i].log_chunk = QHCA_MIN_LOG_CHUNK;
}

static void make_ready(struct host *h, const struct qhca_init_hca *in)
{
	unsigned int i;

	assert_int_equal(host_init_hca(h, in), QHCA_CMD_OK);
	for (i = 0; i < QHCA_NUM_TABLES; i++)
		host_map_table(h, (enum qhca_table)i);
}

struct host *host_new_ready(void)
{
	struct host *h = host_new(NULL);
	struct qhca_init_hca in;

	host_enable(h);
	host_init_default(h, &in);
	make_ready(h, &in);
	return h;
}

struct host *host_new_bundles(uint32_t max_bundle)
{
	struct qhca_init_hca in;
	struct qhca_config cfg;
	struct host *h;

	host_config(&cfg);
	cfg.max_bundle = max_bundle;
	h = host_new(&cfg);
	host_enable(h);
	host_init_default(h, &in);
	assert_int_equal(host_init_hca(h, &in), QHCA_CMD_OK);
	return h;
}

struct host *host_new_cache(enum qhca_cache_id id, uint16_t sets,
			    uint16_t blocks)
{
	struct host *h = host_new(NULL);
	struct qhca_init_hca in;

	host_enable(h);
	host_init_default(h, &in);
	put_le16(&in.cache[id].sets, sets);
	put_le16(&in.cache[id].blocks, blocks);
	make_ready(h, &in);
	return h;
}

uint64_t host_count(const struct host *h, enum qhca_counter id)
{
	return qhca_counter(h->hca, h->gvmi, id);
}

uint64_t host_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

size_t host_move(struct host *pf, uint64_t skew)
{
	size_t len = host_migrate(pf, skew);

	for (uint16_t gvmi = 0; gvmi <= QHCA_MAX_VFS; gvmi++)
		if (pf->of_fn[gvmi])
			pf->of_fn[gvmi]->fn = hca_fn_of(&pf->hca->hca, gvmi);
	return len;
}
