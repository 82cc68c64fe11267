// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* From an enabled device to one with tables */
#include "host.h"

#include "bytes.h"

/* log2 of the bytes of an entry */
static const uint8_t entry_size[QHCA_NUM_TABLES] = {
	[QHCA_TABLE_PT] = 6, [QHCA_TABLE_QP] = 10, [QHCA_TABLE_CQ] = 7,
	[QHCA_TABLE_SRQ] = 7, [QHCA_TABLE_EQ] = 7,
};

enum qhca_cmd_status host_init_hca(struct host *h,
				   const struct qhca_init_hca *in)
{
	h->init = *in;
	return host_cmd(h, QHCA_CMD_INIT_HCA, 0, 0, in, sizeof(*in), NULL, 0);
}

uint64_t host_map_table(struct host *h, enum qhca_table table)
{
	const struct qhca_init_table *row = &h->init.table[table];
	uint64_t bytes = 1ull << (row->log_entries + entry_size[table]);
	uint64_t size = 1ull << row->log_chunk, first;
	uint32_t n = (uint32_t)((bytes + size - 1) / size);
	__le64 addr[QHCA_MAX_CHUNKS];

	first = host_alloc(h, n * size, HOST_PAGE);
	for (uint32_t i = 0; i < n; i++)
		put_le64(&addr[i], first + i * size);
	if (host_cmd(h, QHCA_CMD_MAP_CHUNKS, 0, table | n << 8, addr, n * 8,
		     NULL, 0))
		host_die("the device refuses the memory of table %d", table);
	return first;
}
