// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "guest.h"

#include <stdlib.h>
#include <string.h>

#include "bytes.h"

/* The device works by itself for so long in each round of a loop that waits. */
#define POLL_US		50
#define POLL_BUDGET	4

void guest_open_unmapped(struct guest *g, const char *address)
{
	struct qhca_config cfg = { 0 };
	uint32_t mac[2];

	memset(g, 0, sizeof(*g));
	guest_address = address;
	g->md = md_create(1, GUEST_MEMORY, &cfg);
	g->vfio = (struct vfio *)g->md->host.hca;
	vfio_set_master(g->vfio, true);
	/* The driver's addresses are those that the function may use. */
	mac[0] = qhca_reg_read(g->md->host.hca, g->md->host.gvmi, QHCA_REG_MAC_LO, 0);
	mac[1] = qhca_reg_read(g->md->host.hca, g->md->host.gvmi, QHCA_REG_MAC_HI, 0);
	put_le32(g->md->mac, mac[0]);
	put_le16(g->md->mac + 4, (uint16_t)mac[1]);
	g->md->host.gvmi = (uint16_t)qhca_reg_read(g->md->host.hca, g->md->host.gvmi, QHCA_REG_GVMI, 0);
}

void guest_open(struct guest *g, const char *address)
{
	guest_open_unmapped(g, address);
	if (guest_map(g, HOST_PAGE, GUEST_MEMORY - HOST_PAGE, true))
		host_die("VFIO does not map the guest's memory");
}

void guest_open_beside(struct guest *g, const char *address, struct guest *first)
{
	guest_beside = &first->md->host;
	guest_open_unmapped(g, address);
	guest_beside = NULL;
}

void guest_close(struct guest *g)
{
	md_destroy(g->md);
}

static void start(struct guest *g, bool scatter)
{
	struct md_init init = {
		.log_qp = 6, .log_cq = 6, .log_srq = 4, .log_pt = 8, .scatter = scatter,
	};

	md_start(g->md, &init);
	md_cq_create(g->md, &g->cq, 6);
	guest_connect(g);
}

void guest_start(struct guest *g)
{
	start(g, false);
}

void guest_start_scattered(struct guest *g)
{
	start(g, true);
}

void guest_connect(struct guest *g)
{
	struct md_qp_init init = {
		.type = QHCA_QPT_RC, .flags = QHCA_QP_SIG_ALL | QHCA_QP_KERNEL,
		/* The nodes of scattered queues lead to a page for each of their parts. */
		.sq_log_depth = g->md->init.scatter ? 8 : 5,
		.rq_log_depth = g->md->init.scatter ? 8 : 2,
		.sq_log_stride = QHCA_MIN_LOG_WQE_STRIDE,
		.rq_log_stride = QHCA_MIN_LOG_RWQE_STRIDE,
		.pd = GUEST_PD, .send_cq = &g->cq, .recv_cq = &g->cq,
	};
	struct md_conn conn = {
		.access = GUEST_ALL, .mtu = QHCA_MTU_4096, .timeout = 14, .retry_cnt = 7,
		.rnr_retry = 7, .min_rnr_timer = 1, .max_rd_atomic = 4,
		.max_dest_rd_atomic = 4,
	};

	md_av(g->md, &conn.av, g->md->mac[5], false);
	for (int i = 0; i < 2; i++)
		if (md_qp_create(g->md, &g->qp[i], &init))
			host_die("a queue pair is refused");
	for (int i = 0; i < 2; i++) {
		conn.dest_qpn = g->qp[!i].qpn;
		md_qp_connect(g->md, &g->qp[i], &conn);
	}
}

void guest_reconnect(struct guest *g)
{
	struct qhca_cqe cqe;

	md_qp_destroy(g->md, &g->qp[0]);
	md_qp_destroy(g->md, &g->qp[1]);
	while (md_poll(&g->cq, &cqe))
		;
	g->md->next_qpn = 2;
	guest_connect(g);
}

void *guest_ptr(struct guest *g, uint64_t addr)
{
	return md_ptr(g->md, addr);
}

int guest_map(struct guest *g, uint64_t addr, uint64_t len, bool writable)
{
	return vfio_map(g->vfio, addr, guest_ptr(g, addr), len, writable);
}

int guest_unmap(struct guest *g, uint64_t addr, uint64_t len)
{
	return vfio_unmap(g->vfio, addr, len);
}

void guest_pte(struct guest *g, uint32_t index, const struct qhca_pte *pte)
{
	memcpy(guest_ptr(g, g->md->pt + sizeof(*pte) * index), pte, sizeof(*pte));
}

void guest_own(struct guest *g, uint32_t key)
{
	struct qhca_pte *pte = guest_ptr(g, g->md->pt + sizeof(*pte) * QHCA_KEY_INDEX(key));

	put_le32(&pte->gvmi, g->md->host.gvmi);
}

void guest_region(struct guest *g, struct md_mr *mr, uint64_t len)
{
	md_reg_mr(g->md, mr, GUEST_PD, 0x10000000ull * (g->md->next_key + 1), len, GUEST_ALL);
	guest_own(g, mr->key);
}

void guest_post(struct guest *g, uint8_t opcode, uint64_t local, uint32_t lkey,
		uint64_t remote, uint32_t rkey, uint32_t len)
{
	struct md_sge sge = { .addr = local, .len = len, .key = lkey };
	struct md_wr wr = {
		.opcode = opcode, .num_sge = 1, .sge = &sge, .raddr = remote, .rkey = rkey,
	};

	md_post_send(g->md, &g->qp[0], &wr);
	/* The store of sq_pi precedes the load of sq_active. */
	__sync_synchronize();
	md_ring(g->md, &g->qp[0]);
}

void guest_wait(struct guest *g)
{
	qhca_run(g->md->host.hca, g->md->host.now, POLL_BUDGET);
}

/* Has the device written the next CQE?  Its phase is written last. */
static bool completed(struct guest *g)
{
	uint32_t slot = g->cq.ci & ((1u << g->cq.log_depth) - 1);
	bool want = !(g->cq.ci >> g->cq.log_depth & 1);
	uint32_t flags = md_buf_get32(g->md, &g->cq.buf,
				      64ull * slot + offsetof(struct qhca_cqe, flags));

	__sync_synchronize();
	return !!(flags & QHCA_PHASE) == want;
}

int guest_poll(struct guest *g, unsigned int ms)
{
	struct qhca_cqe cqe;

	for (uint64_t us = 0; !completed(g); us += POLL_US) {
		if (us >= 1000ull * ms)
			return -1;
		guest_wait(g);
	}
	md_poll(&g->cq, &cqe);
	return cqe.status;
}

enum qhca_wc_status guest_rdma(struct guest *g, uint8_t opcode, uint64_t local, uint32_t lkey,
			       uint64_t remote, uint32_t rkey, uint32_t len)
{
	int status;

	guest_post(g, opcode, local, lkey, remote, rkey, len);
	status = guest_poll(g, 20000);
	if (status < 0)
		host_die("no completion within 20 s");
	return (enum qhca_wc_status)status;
}

uint32_t guest_fatal(struct guest *g, unsigned int ms, uint32_t *info)
{
	uint32_t status;

	for (uint64_t us = 0;; us += POLL_US) {
		status = qhca_reg_read(g->md->host.hca, g->md->host.gvmi, QHCA_REG_STATUS, 0);
		if (status & QHCA_STATUS_FATAL || us >= 1000ull * ms)
			break;
		guest_wait(g);
	}
	if (info)
		*info = qhca_reg_read(g->md->host.hca, g->md->host.gvmi, QHCA_REG_FATAL_INFO, 0);
	return status & QHCA_STATUS_FATAL ? QHCA_GET(QHCA_STATUS_FATAL_CAUSE, status) : 0;
}
