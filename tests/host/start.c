// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* From reset to a device that can have queues */
#include "internal.h"

#include "bytes.h"

static void init_hca(struct md *md)
{
	static const uint8_t entry[] = { 6, 10, 7, 7, 7 };
	uint8_t log[] = { md->init.log_pt, md->init.log_qp, md->init.log_cq,
			  md->init.log_srq, 4 };
	struct qhca_init_hca in = { 0 };
	uint64_t chunk[QHCA_MAX_CHUNKS];

	for (int t = 0; t < QHCA_NUM_TABLES; t++) {
		in.table[t].log_entries = log[t];
		in.table[t].log_chunk = 16;
	}
	for (int c = 0; c < QHCA_NUM_CACHES; c++) {
		put_le16(&in.cache[c].sets, md->init.cache[c].sets);
		put_le16(&in.cache[c].blocks, md->init.cache[c].blocks);
	}
	put_le32(&in.flags, md->init.flags);
	md_must(md_cmd(md, QHCA_CMD_INIT_HCA, 0, 0, &in, sizeof(in), NULL, 0,
		    NULL), "INIT_HCA");
	for (int t = 0; t < QHCA_NUM_TABLES; t++) {
		uint32_t bytes = 1u << (log[t] + entry[t]);
		uint32_t n = (bytes + 0xffff) >> 16;

		md->table[t] = md_alloc(md, (uint64_t)n << 16, MD_PAGE);
		for (uint32_t i = 0; i < n; i++)
			put_le64(&chunk[i], md->table[t] + ((uint64_t)i << 16));
		md_must(md_cmd(md, QHCA_CMD_MAP_CHUNKS, 0, t | n << 8, chunk,
			    8 * n, NULL, 0, NULL), "MAP_CHUNKS");
	}
	md->pt = md->table[QHCA_TABLE_PT];
}

static void init_eq(struct md *md)
{
	struct qhca_eqc_sw in = { 0 };
	uint32_t ring = 64u << md->init.log_eq;

	md->eq_ring = md_alloc(md, ring + 128, MD_PAGE);
	md->eq_rec = md->eq_ring + ring;
	md->eq_ci = 0;
	put_le64(&in.buf.base, md->eq_ring);
	put_le32(&in.buf.length, ring + 128);
	in.buf.page_shift = 12;
	put_le32(&in.rec_offset, ring);
	in.log_depth = md->init.log_eq;
	md_must(md_cmd(md, QHCA_CMD_CREATE_EQ, 0, 0, &in, sizeof(in), NULL, 0,
		    NULL), "CREATE_EQ");
}

static void init_port(struct md *md)
{
	struct qhca_port_config port = { 0 };

	put_le32(&port.fields, QHCA_PORT_SET_MTU);
	put_le32(&port.eth_mtu, md->init.eth_mtu);
	md_must(md_cmd(md, QHCA_CMD_SET_PORT, 0, 0, &port, sizeof(port), NULL, 0,
		    NULL), "SET_PORT");
	md_must(md_set_gid(md, 0, 0, false, QHCA_GID_NO_VLAN), "SET_GID");
	md_must(md_set_gid(md, 1, 0, true, QHCA_GID_NO_VLAN), "SET_GID");
}

void md_start(struct md *md, const struct md_init *init)
{
	md->init = *init;
	if (!md->init.eth_mtu)
		md->init.eth_mtu = 4200;
	if (!md->init.log_pt)
		md->init.log_pt = 10;
	if (!md->init.log_qp)
		md->init.log_qp = 8;
	if (!md->init.log_cq)
		md->init.log_cq = 8;
	if (!md->init.log_srq)
		md->init.log_srq = 6;
	if (!md->init.log_eq)
		md->init.log_eq = 10;
	md->next_key = QHCA_FIRST_KEY_INDEX;
	md->next_qpn = 2;
	md->next_cqn = md->next_srqn = md->cq_eqn = 0;
	md->brk = MD_PAGE;

	qhca_reg_write(md->hca, QHCA_REG_CONTROL, QHCA_CONTROL_RESET, md->now);
	md->cmdq = md_alloc(md, MD_PAGE, MD_PAGE);
	md->in_mbox = md_alloc(md, MD_PAGE, MD_PAGE);
	md->out_mbox = md_alloc(md, MD_PAGE, MD_PAGE);
	qhca_reg_write(md->hca, QHCA_REG_CMDQ_LOG_SLOTS, 0, md->now);
	qhca_reg_write(md->hca, QHCA_REG_CMDQ_BASE_LO, md->cmdq, md->now);
	qhca_reg_write(md->hca, QHCA_REG_CMDQ_BASE_HI, md->cmdq >> 32, md->now);
	qhca_reg_write(md->hca, QHCA_REG_CONTROL, QHCA_CONTROL_ENABLE, md->now);
	if (!(qhca_reg_read(md->hca, QHCA_REG_STATUS, md->now) &
	      QHCA_STATUS_ENABLED))
		md_die("the command queue does not come up");
	md_must(md_cmd(md, QHCA_CMD_QUERY_CAPS, 0, 0, NULL, 0, &md->caps,
		    sizeof(md->caps), NULL), "QUERY_CAPS");
	init_hca(md);
	init_eq(md);
	init_port(md);
}
