/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A host with tables whose chunks a test maps itself.
 */
#ifndef QHCA_TEST_TABLES_H
#define QHCA_TEST_TABLES_H

#include "unit.h"

static inline struct host *with_tables(void)
{
	struct host *h = host_new(NULL);
	struct qhca_init_hca in;

	host_enable(h);
	host_init_default(h, &in);
	assert_int_equal(host_init_hca(h, &in), QHCA_CMD_OK);
	return h;
}

static inline enum qhca_cmd_status map(struct host *h, uint32_t first, uint32_t param,
				       const uint64_t *addr, uint32_t n)
{
	__le64 in[QHCA_MAX_CHUNKS];
	uint32_t i;

	for (i = 0; i < n; i++)
		put_le64(&in[i], addr[i]);
	return host_cmd(h, QHCA_CMD_MAP_CHUNKS, first, param, in, n * 8, NULL,
			0);
}

static inline enum qhca_cmd_status unmap(struct host *h, uint32_t first,
					 uint32_t param)
{
	return host_cmd(h, QHCA_CMD_UNMAP_CHUNKS, first, param, NULL, 0, NULL,
			0);
}

#endif /* QHCA_TEST_TABLES_H */
