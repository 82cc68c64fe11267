// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * qhca-sweep's cases of regions and what can be registered as one.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <infiniband/qhcadv.h>
#include <linux/udmabuf.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sweep.h"

#define ACCESS	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)
#define DM_SIZE	4096u

static struct {
	struct ibv_mr *mr;
	struct ibv_mw *mw;
	struct ibv_dm *dm;
	struct ibv_pd *pd;
	struct qhcadv_pool_mem *pool;
	int dmabuf;
	struct ibv_qp *qp[2];
	uint8_t *cold;
} o;

static void dereg(struct sweep *s)
{
	(void)s;
	MUST(!ibv_dereg_mr(o.mr));
}

static int reg_small(struct sweep *s)
{
	o.mr = ibv_reg_mr(s->pd, s->mem, SMALL_MEMORY, ACCESS);
	return failed(o.mr);
}

static int reg_large(struct sweep *s)
{
	o.mr = ibv_reg_mr(s->pd, s->mem, LARGE_MEMORY, ACCESS);
	return failed(o.mr);
}

/* Another and larger memory, so that all that belongs to the region is made anew. */
static void prepare_rereg(struct sweep *s)
{
	MUST(!reg_small(s));
}

static int rereg(struct sweep *s)
{
	int rc = ibv_rereg_mr(o.mr, IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_ACCESS,
			      NULL, s->mem + SMALL_MEMORY, LARGE_MEMORY / 2, ACCESS);

	return rc ? errno ? errno : EIO : 0;
}

static bool on_demand(struct sweep *s)
{
	return s->attr.odp_caps.general_caps & IBV_ODP_SUPPORT;
}

static bool on_demand_implicit(struct sweep *s)
{
	return s->attr.odp_caps.general_caps & IBV_ODP_SUPPORT_IMPLICIT;
}

static int reg_on_demand(struct sweep *s)
{
	o.mr = ibv_reg_mr(s->pd, s->mem, LARGE_MEMORY, ACCESS | IBV_ACCESS_ON_DEMAND);
	return failed(o.mr);
}

static int reg_implicit(struct sweep *s)
{
	o.mr = ibv_reg_mr(s->pd, NULL, SIZE_MAX, ACCESS | IBV_ACCESS_ON_DEMAND);
	return failed(o.mr);
}

static void prepare_on_demand(struct sweep *s)
{
	MUST(!reg_on_demand(s));
}

static void prepare_implicit(struct sweep *s)
{
	MUST(!reg_implicit(s));
}

static int prefetch(struct sweep *s)
{
	struct ibv_sge sge = { (uintptr_t)s->mem, LARGE_MEMORY, o.mr->lkey };

	return ibv_advise_mr(s->pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, IBV_ADVISE_MR_FLAG_FLUSH,
			     &sge, 1);
}

static bool has_dmabuf(struct sweep *s)
{
	(void)s;
	return !access("/dev/udmabuf", W_OK);
}

static void prepare_dmabuf(struct sweep *s)
{
	struct udmabuf_create create = { .flags = UDMABUF_FLAGS_CLOEXEC, .size = SMALL_MEMORY * 4 };
	int device = open("/dev/udmabuf", O_RDWR | O_CLOEXEC);

	(void)s;
	create.memfd = memfd_create("sweep", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	MUST(device >= 0 && (int)create.memfd >= 0);
	MUST(!ftruncate(create.memfd, create.size));
	MUST(!fcntl(create.memfd, F_ADD_SEALS, F_SEAL_SHRINK));
	o.dmabuf = ioctl(device, UDMABUF_CREATE, &create);
	MUST(o.dmabuf >= 0);
	close(create.memfd);
	close(device);
}

static int reg_dmabuf(struct sweep *s)
{
	o.mr = ibv_reg_dmabuf_mr(s->pd, 0, SMALL_MEMORY * 4, 0, o.dmabuf, ACCESS);
	return failed(o.mr);
}

static void close_dmabuf(struct sweep *s)
{
	(void)s;
	close(o.dmabuf);
}

static void dereg_dmabuf(struct sweep *s)
{
	dereg(s);
	close_dmabuf(s);
}

static int alloc_mw(struct sweep *s)
{
	o.mw = ibv_alloc_mw(s->pd, IBV_MW_TYPE_2);
	return failed(o.mw);
}

static void dealloc_mw(struct sweep *s)
{
	(void)s;
	MUST(!ibv_dealloc_mw(o.mw));
}

static bool has_dm(struct sweep *s)
{
	return s->attr.max_dm_size >= DM_SIZE;
}

static int alloc_dm(struct sweep *s)
{
	struct ibv_alloc_dm_attr attr = { .length = DM_SIZE };

	o.dm = ibv_alloc_dm(s->ctx, &attr);
	return failed(o.dm);
}

static void free_dm(struct sweep *s)
{
	(void)s;
	MUST(!ibv_free_dm(o.dm));
}

static void prepare_dm(struct sweep *s)
{
	MUST(!alloc_dm(s));
}

static int reg_dm(struct sweep *s)
{
	o.mr = ibv_reg_dm_mr(s->pd, o.dm, 0, DM_SIZE, ACCESS | IBV_ACCESS_ZERO_BASED);
	return failed(o.mr);
}

static void dereg_dm(struct sweep *s)
{
	dereg(s);
	free_dm(s);
}

static bool has_pool(struct sweep *s)
{
	struct qhcadv_pool_attr attr;

	return qhcadv_is_supported(s->ctx->device) &&
	       !qhcadv_query_pool(s->ctx, &attr, sizeof(attr)) && attr.largest_free >= SMALL_MEMORY;
}

static int alloc_pool(struct sweep *s)
{
	o.pool = qhcadv_alloc_pool(s->ctx, SMALL_MEMORY);
	return failed(o.pool);
}

static void free_pool(struct sweep *s)
{
	MUST(!qhcadv_free_pool(s->ctx, o.pool));
}

static void prepare_pool(struct sweep *s)
{
	MUST(!alloc_pool(s));
}

static int reg_pool(struct sweep *s)
{
	o.mr = ibv_reg_mr(s->pd, o.pool->addr, o.pool->length, ACCESS);
	return failed(o.mr);
}

static void dereg_pool(struct sweep *s)
{
	dereg(s);
	free_pool(s);
}

/* -- a page fault of the device's ----------------------------------------- */

static void prepare_fault(struct sweep *s)
{
	static const struct connection c = {
		.type = IBV_QPT_RC, .mtu = IBV_MTU_1024, .timeout = 18, .retry_cnt = 7,
		.rnr_retry = 7, .min_rnr_timer = 12, .rd_atomic = 1, .dest_rd_atomic = 1,
		.access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
	};
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC, .send_cq = s->cq, .recv_cq = s->cq,
		.cap = { .max_send_wr = 4, .max_send_sge = 1 },
	};

	for (int i = 0; i < 2; i++) {
		o.qp[i] = ibv_create_qp(s->pd, &init);
		MUST(o.qp[i]);
	}
	MUST(!qp_connect_pair(o.qp, &c, s->gid_index));
	o.cold = mmap(NULL, LARGE_MEMORY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(o.cold != MAP_FAILED);
	o.mr = ibv_reg_mr(s->pd, NULL, SIZE_MAX, ACCESS | IBV_ACCESS_ON_DEMAND);
	MUST(o.mr);
}

/* A READ from one page that is not there into another. */
static int fault(struct sweep *s)
{
	struct ibv_sge sge = { (uintptr_t)o.cold, 64, o.mr->lkey };
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_RDMA_READ, .send_flags = IBV_SEND_SIGNALED, .sg_list = &sge,
		.num_sge = 1,
		.wr.rdma = { (uintptr_t)o.cold + LARGE_MEMORY / 2, o.mr->rkey },
	}, *bad;
	uint64_t end = now_ns() + 120000000000ull;
	struct ibv_wc wc;
	int n, rc = ibv_post_send(o.qp[0], &wr, &bad);

	if (rc)
		return rc;
	do
		n = ibv_poll_cq(s->cq, 1, &wc);
	while (!n && now_ns() < end);
	/* Without any completion it would hang. */
	MUST(n == 1);
	return wc.status == IBV_WC_SUCCESS ? 0 : EIO;
}

static void end_fault(struct sweep *s)
{
	for (int i = 0; i < 2; i++)
		MUST(!ibv_destroy_qp(o.qp[i]));
	dereg(s);
	munmap(o.cold, LARGE_MEMORY);
}

const struct sweep_case sweep_memory[] = {
	{ "mr-small", NULL, reg_small, dereg },
	{ "mr-large", NULL, reg_large, dereg },
	{ "mr-rereg", prepare_rereg, rereg, dereg, dereg },
	{ "mr-on-demand", NULL, reg_on_demand, dereg, NULL, on_demand },
	{ "mr-implicit", NULL, reg_implicit, dereg, NULL, on_demand_implicit },
	{ "mr-prefetch", prepare_on_demand, prefetch, dereg, dereg, on_demand },
	{ "mr-prefetch-implicit", prepare_implicit, prefetch, dereg, dereg, on_demand_implicit },
	{ "mr-dmabuf", prepare_dmabuf, reg_dmabuf, dereg_dmabuf, close_dmabuf, has_dmabuf },
	{ "mw", NULL, alloc_mw, dealloc_mw },
	{ "dm", NULL, alloc_dm, free_dm, NULL, has_dm },
	{ "mr-dm", prepare_dm, reg_dm, dereg_dm, free_dm, has_dm },
	{ "pool", NULL, alloc_pool, free_pool, NULL, has_pool },
	{ "mr-pool", prepare_pool, reg_pool, dereg_pool, free_pool, has_pool },
	{ "fault", prepare_fault, fault, end_fault, end_fault, on_demand_implicit },
	{ }
};
