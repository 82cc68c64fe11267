// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "unit.h"

static int refuse_dma(void *host, struct qhca_requester who, uint64_t addr,
		      void *buf, size_t len)
{
	(void)host;
	(void)who;
	(void)addr;
	(void)buf;
	(void)len;
	return -1;
}

static void test_config_errors(void **state)
{
	static const struct qhca_host_ops ops = { .dma_read = refuse_dma };
	struct qhca_config good, cfg;
	struct qhca_hca *hca;
	char err[256];

	(void)state;
	host_config(&good);
#define BAD(word, change) do {						\
	cfg = good;							\
	change;								\
	err[0] = 0;							\
	assert_null(qhca_create(&cfg, &ops, NULL, err, sizeof(err)));	\
	if (!strstr(err, word))						\
		fail_msg("\"%s\" does not say \"%s\"", err, word);	\
} while (0)
	BAD("mac", cfg.mac[0] = 1);
	BAD("mac", memset(cfg.mac, 0, 6));
	BAD("log-max-pt", cfg.log_max_pt = 25);
	BAD("log-max-qp", cfg.log_max_qp = 24);
	BAD("log-max-cq", cfg.log_max_cq = 25);
	BAD("log-max-srq", cfg.log_max_srq = 0);
	BAD("log-max-eq", cfg.log_max_eq = 9);
	BAD("log-max-wq-depth", cfg.log_max_wq_depth = 17);
	BAD("log-max-cq-depth", cfg.log_max_cq_depth = 25);
	BAD("log-max-eq-depth", cfg.log_max_eq_depth = 21);
	BAD("vectors", cfg.num_vectors = 65);
	BAD("vectors", cfg.num_vectors = 0);
	BAD("gids", cfg.num_gids = 257);
	BAD("doorbell-pages", cfg.num_db_pages = 0);
	BAD("flows", cfg.max_flows = QHCA_MAX_FLOWS + 1);
	BAD("link-speed", cfg.link_speed = 0x10000);
	BAD("link-speed", cfg.link_speed = 0);
	BAD("max-bundle", cfg.max_bundle = 511);
	BAD("max-bundle", cfg.max_bundle = QHCA_MAX_BUNDLE + 1);
	BAD("devmem-size", cfg.devmem_size = 1);
	BAD("pt-cache-max-sets=3", cfg.cache_max[QHCA_CACHE_PT].sets = 3);
	BAD("cq-cache-sets=2048", cfg.cache_default[QHCA_CACHE_CQ].sets = 2048);
	hca = qhca_create(&good, &ops, NULL, err, sizeof(err));
	assert_non_null(hca);
	qhca_destroy(hca);
	qhca_destroy(NULL);
}

static void test_defaults(void **state)
{
	struct qhca_config cfg;
	struct host *h;

	(void)state;
	qhca_config_default(&cfg);
	h = host_new(&cfg);
	/* There are 131,072 regions, 16,384 QPs and CQs, 4,096 SRQs at the least. */
	assert_true(cfg.log_max_pt >= 17 && cfg.log_max_qp >= 14);
	assert_true(cfg.log_max_cq >= 14 && cfg.log_max_srq >= 12);
	host_free(h);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_config_errors),
	cmocka_unit_test(test_defaults),
};
TEST_MAIN(tests)
