// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The small driver: its host, its commands, and its start */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

#include "bytes.h"

/* ---- the host itself */

/* The driver of function @number, and the configuration with its MAC. */
static struct md *new_driver(unsigned int number, struct qhca_config *cfg)
{
	struct md *md = calloc(1, sizeof(*md));

	md->rng = 0x9e3779b9u + number;
	memcpy(md->mac, (uint8_t[]){ 2, 0, 0, 0, 0, number }, 6);
	memcpy(md->gid, (uint8_t[16]){ [10] = 0xff, [11] = 0xff, [12] = 10,
				       [15] = number }, 16);
	memcpy(cfg->mac, md->mac, 6);
	return md;
}

struct md *md_create(unsigned int number, uint64_t mem_len,
		     const struct qhca_config *cfg)
{
	struct qhca_config c = *cfg;
	struct md *md = new_driver(number, &c);

	host_open(&md->host, mem_len, &c);
	return md;
}

struct md *md_create_vf(struct md *pf, uint16_t gvmi, uint64_t mem_len,
			const struct qhca_config *cfg)
{
	struct qhca_config c = *cfg;
	struct md *md = new_driver(pf->mac[5] + 16u * gvmi, &c);

	host_open_vf(&md->host, mem_len, &pf->host, gvmi, &c);
	return md;
}

static void free_driver(struct md *md)
{
	while (md->num_owned)
		free(md->owned[--md->num_owned]);
	free(md->owned);
	free(md);
}

void md_destroy(struct md *md)
{
	host_close(&md->host);
	free_driver(md);
}

void md_destroy_vf(struct md *md)
{
	host_close_vf(&md->host);
	free_driver(md);
}

void *md_own(struct md *md, size_t n, size_t size)
{
	void *p = calloc(n ? n : 1, size);

	md->owned = realloc(md->owned,
			    (md->num_owned + 1) * sizeof(*md->owned));
	md->owned[md->num_owned++] = p;
	return p;
}

uint32_t md_rand(struct md *md)
{
	md->rng ^= md->rng << 13;
	md->rng ^= md->rng >> 17;
	md->rng ^= md->rng << 5;
	return md->rng;
}

bool md_dead(struct md *md)
{
	return qhca_reg_read(md->host.hca, md->host.gvmi, QHCA_REG_STATUS, host_clock(&md->host)) &
	       QHCA_STATUS_FATAL;
}

/* ---- commands */

int md_cmd(struct md *md, uint16_t opcode, uint32_t index, uint32_t param,
	   const void *in, uint32_t in_len, void *out, uint32_t out_len,
	   uint64_t *out_param)
{
	struct qhca_cmd_slot slot = { 0 }, *done;

	put_le16(&slot.opcode, opcode);
	put_le32(&slot.index, index);
	put_le32(&slot.param, param);
	if (in) {
		memcpy(md_ptr(md, md->in_mbox), in, in_len);
		put_le64(&slot.in_addr, md->in_mbox);
		put_le32(&slot.in_len, in_len);
	}
	if (out) {
		put_le64(&slot.out_addr, md->out_mbox);
		put_le32(&slot.out_len, out_len);
	}
	done = host_cmd_begin(&md->host, &slot, 0);
	/* Other work continues meanwhile, and may last longer than the command. */
	for (int i = 0; get_le32(&done->status) & QHCA_CMD_OWN; i++) {
		if (i == HOST_RUN_LIMIT)
			host_die("the device does not answer command %#x",
				 opcode);
		if (!qhca_run(md->host.hca, host_clock(&md->host), 4).more &&
		    md->host.idle)
			md->host.idle(&md->host);
	}
	if (out)
		memcpy(out, md_ptr(md, md->out_mbox), out_len);
	if (out_param)
		*out_param = get_le64(&done->out_param);
	return get_le32(&done->status) & QHCA_CMD_STATUS;
}

void md_must(int status, const char *what)
{
	if (status)
		host_die("%s: command status %d", what, status);
}

/* ---- from reset to queues */

static void init_hca(struct md *md)
{
	uint8_t log[] = { md->init.log_pt, md->init.log_qp, md->init.log_cq,
			  md->init.log_srq, 4 };
	struct qhca_init_hca in = { 0 };

	for (int t = 0; t < QHCA_NUM_TABLES; t++) {
		in.table[t].log_entries = log[t];
		in.table[t].log_chunk = 16;
	}
	for (int c = 0; c < QHCA_NUM_CACHES; c++) {
		put_le16(&in.cache[c].sets, md->init.cache[c].sets);
		put_le16(&in.cache[c].blocks, md->init.cache[c].blocks);
	}
	put_le16(&in.s2.sets, md->init.s2.sets);
	put_le16(&in.s2.blocks, md->init.s2.blocks);
	put_le32(&in.flags, md->init.flags);
	md_must(host_init_hca(&md->host, &in), "INIT_HCA");
	for (int t = 0; t < QHCA_NUM_TABLES; t++)
		md->table[t] = host_map_table(&md->host, (enum qhca_table)t);
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
	md->host.next = md->host.first;

	qhca_reg_write(md->host.hca, md->host.gvmi, QHCA_REG_CONTROL, QHCA_CONTROL_RESET,
		       host_clock(&md->host));
	host_enable_slots(&md->host, 0);
	md->in_mbox = md_alloc(md, MD_PAGE, MD_PAGE);
	md->out_mbox = md_alloc(md, MD_PAGE, MD_PAGE);
	md_must(md_cmd(md, QHCA_CMD_QUERY_CAPS, 0, 0, NULL, 0, &md->caps,
		    sizeof(md->caps), NULL), "QUERY_CAPS");
	init_hca(md);
	init_eq(md);
	init_port(md);
}
