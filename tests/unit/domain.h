/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A host domain and its one guest, a function with stage 2.  The fake host ends the
 * program when a DMA reaches a page that the function does not have now.
 */
#ifndef QHCA_TEST_DOMAIN_H
#define QHCA_TEST_DOMAIN_H

#include "qp_setup.h"

#include "transport/transport.h"

#define GVMI	3
#define ATTR	0x51
#define PRESENT	(QHCA_ATE_WRITE)
#define PINNED	(QHCA_ATE_WRITE | QHCA_ATE_PINNED)

struct domain {				/* the host domain, and its one guest */
	struct host *pf, *vf;
	struct ring eq;			/* EQ 0 of the host domain */
	uint32_t ci;
	bool absent;			/* answer nothing */
	bool fail;			/* answer RESUME_FAIL */
	unsigned int pins, faults;
	struct qhca_eqe last;
};

static inline enum qhca_cmd_status answer(struct domain *d, uint32_t token,
					  uint32_t how)
{
	return host_cmd(d->pf, QHCA_CMD_STAGE2_RESUME, token, how | GVMI << 16,
			NULL, 0, NULL, 0);
}

/* Take one event of stage 2 and do what it asks for.  false: there is none. */
static inline bool serve(struct domain *d)
{
	const struct qhca_fault_info *info = &d->last.fault;
	uint64_t addr, end, bits = 0;
	bool pin;

	if (!host_eqe_valid(d->pf, &d->eq, d->ci))
		return false;
	d->last = *host_eqe(d->pf, &d->eq, d->ci++);
	host_set_ci(d->pf, &d->eq, d->ci);
	if (d->last.type != QHCA_EVENT_STAGE2_FAULT)
		return true;
	assert_int_equal(get_le32(&d->last.number), GVMI);
	assert_int_equal(QHCA_GET(QHCA_FAULT_GVMI, get_le32(&info->flags)),
			 GVMI);
	assert_true(get_le32(&info->flags) & QHCA_FAULT_STAGE2);
	assert_int_equal(get_le32(&info->key), 0);
	pin = get_le32(&d->last.detail) == QHCA_STAGE2_PIN;
	*(pin ? &d->pins : &d->faults) += 1;
	if (d->absent)
		return true;
	if (d->fail) {
		assert_int_equal(answer(d, get_le32(&info->token),
					QHCA_RESUME_FAIL), QHCA_CMD_OK);
		return true;
	}
	bits = (get_le32(&info->flags) & QHCA_FAULT_WRITE ? QHCA_ATE_WRITE : 0) |
	       (pin ? QHCA_ATE_PINNED : 0);
	addr = get_le64(&info->addr);
	end = addr + get_le64(&info->length);
	for (addr &= ~4095ull; addr < end; addr += 4096)
		if (!host_s2_present(d->pf, d->vf, addr))
			host_s2_map(d->pf, d->vf, addr, bits);
		else
			host_s2_bits(d->pf, d->vf, addr,
				     QHCA_ATE_WRITE |
				     (pin ? QHCA_ATE_PINNED : 0));
	assert_int_equal(answer(d, get_le32(&info->token), QHCA_RESUME_OK),
			 QHCA_CMD_OK);
	return true;
}

static inline bool serve_idle(struct host *h)
{
	return serve(h->idle_arg);
}

static inline void initialise_cache(struct host *h, uint16_t sets, uint16_t blocks)
{
	struct qhca_init_hca in;

	host_init_default(h, &in);
	put_le16(&in.s2.sets, sets);
	put_le16(&in.s2.blocks, blocks);
	assert_int_equal(host_init_hca(h, &in), QHCA_CMD_OK);
	for (int t = 0; t < QHCA_NUM_TABLES; t++)
		host_map_table(h, (enum qhca_table)t);
}

static inline void initialise(struct host *h)
{
	initialise_cache(h, 0, 0);
}

/* A host domain that is ready and a function that has a row and nothing else. */
static inline struct domain *domain_new_cache(uint16_t sets, uint16_t blocks)
{
	struct domain *d = calloc(1, sizeof(*d));

	d->pf = host_new(NULL);
	d->vf = host_new_vf(d->pf, GVMI, NULL);
	host_enable(d->pf);
	initialise_cache(d->pf, sets, blocks);
	d->eq = host_ring(d->pf, 6);
	assert_int_equal(host_create_eq(d->pf, 0, &d->eq, 0), QHCA_CMD_OK);
	host_s2_open(d->pf, d->vf, ATTR);
	d->vf->idle = serve_idle;
	d->vf->idle_arg = d;
	return d;
}

static inline struct domain *domain_new(void)
{
	return domain_new_cache(0, 0);
}

static inline struct domain *domain_ready(void)
{
	struct domain *d = domain_new();

	host_enable(d->vf);
	initialise(d->vf);
	return d;
}

static inline void domain_free(struct domain *d)
{
	host_free(d->pf);
	free(d);
}

static inline uint32_t status_of(struct host *h)
{
	return qhca_reg_read(h->hca, h->gvmi, QHCA_REG_STATUS, h->now);
}

static inline void check_dead(struct host *h, uint32_t why)
{
	assert_true(status_of(h) & QHCA_STATUS_FATAL);
	assert_int_equal(QHCA_GET(QHCA_STATUS_FATAL_CAUSE, status_of(h)),
			 QHCA_FATAL_STAGE2);
	assert_int_equal(qhca_reg_read(h->hca, h->gvmi, QHCA_REG_FATAL_INFO,
				       h->now), why);
}

static inline enum qhca_cmd_status nop(struct host *h)
{
	return host_cmd(h, QHCA_CMD_NOP, 0, 0, NULL, 0, NULL, 0);
}

/* An access by a region of type DMA: its addresses are bus addresses. */
static inline struct hca_mem_req bus_req(struct domain *d, uint64_t addr, uint64_t len,
					 uint32_t access)
{
	uint64_t pte_addr;
	struct qhca_pte *pte;

	assert_true(hca_table_entry(d->vf->fn, QHCA_TABLE_PT, 9, &pte_addr));
	pte = host_ptr(d->vf, pte_addr);
	put_le32(&pte->ctrl, QHCA_PUT(QHCA_PTE_STATE, QHCA_PTE_VALID) |
			     QHCA_PUT(QHCA_PTE_TYPE, QHCA_PTE_DMA));
	put_le32(&pte->access, QHCA_ACCESS_LOCAL_WRITE);
	put_le64(&pte->length, UINT64_MAX);
	put_le32(&pte->gvmi, GVMI);
	return (struct hca_mem_req){ .addr = addr, .len = len, .key = 9 << 8,
				     .access = access };
}

static inline void post_send(struct host *h, const struct qhca_qpc_sw *sw, uint64_t at)
{
	uint64_t base = get_le64(&sw->buf.base);
	uint8_t *wqe = host_ptr(h, base);
	struct qhca_sq_wqe *w = (void *)wqe;

	w->opcode = QHCA_WQE_SEND;
	w->num_sge = 1;
	put_le64(wqe + 64, at);
	put_le32(wqe + 72, 100);
	put_le32(wqe + 76, QHCA_RESERVED_LKEY);
	put_le32(host_ptr(h, base + 1280), 1);
	qhca_doorbell(h->hca, h->gvmi, 0, QHCA_DB_SQ, QPN | 1ull << 32, h->now);
}

/* EQ 0, a CQ and a QP that can send. */
static inline struct ring open_qp(struct domain *d, struct qhca_qpc_sw *sw)
{
	struct ring eq = host_ring(d->vf, 6), cq = host_ring(d->vf, 6);
	struct qhca_gid_entry gid = { 0 };

	assert_int_equal(host_create_eq(d->vf, 0, &eq, 0), QHCA_CMD_OK);
	assert_int_equal(host_create_cq(d->vf, CQN, &cq, 0), QHCA_CMD_OK);
	memcpy(gid.gid, peer_gid, 16);
	gid.gid[15] = 1;
	memcpy(gid.smac, d->vf->fn->port.mac, 6);	/* it is checked */
	put_le16(&gid.vlan, QHCA_GID_NO_VLAN);
	put_le32(&gid.flags, QHCA_GID_VALID | QHCA_GID_IPV4);
	assert_int_equal(host_cmd(d->vf, QHCA_CMD_SET_GID, 0, 0, &gid,
				  sizeof(gid), NULL, 0), QHCA_CMD_OK);
	*sw = good(d->vf);
	put_le16(&sw->flags, QHCA_QP_HAS_SQ | QHCA_QP_HAS_RQ | QHCA_QP_KERNEL);
	assert_int_equal(create(d->vf, QPN, sw), QHCA_CMD_OK);
	to_rts(d->vf, QPN);
	return eq;
}

#endif /* QHCA_TEST_DOMAIN_H */
