// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The device, its counters, two QPs, and memory: what all cases use. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "pool.h"

struct ibv_context *open_it(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = NULL;

	for (int i = 0; list && list[i]; i++)
		if (!device_name || !strcmp(ibv_get_device_name(list[i]), device_name)) {
			MUST(qhcadv_is_supported(list[i]));
			ctx = ibv_open_device(list[i]);
			break;
		}
	MUST(ctx);
	ibv_free_device_list(list);
	return ctx;
}

uint64_t counter(const char *name)
{
	unsigned long long value;
	char path[200];
	FILE *f;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/hw_counters/lifespan", device_name);
	f = fopen(path, "w");
	MUST(f);
	fputs("0", f);
	fclose(f);
	/* Values may be a tick old. */
	usleep(10000);
	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/hw_counters/%s", device_name, name);
	f = fopen(path, "r");
	MUST(f && fscanf(f, "%llu", &value) == 1);
	fclose(f);
	return value;
}

struct qhcadv_pool_attr query(struct ibv_context *ctx)
{
	struct qhcadv_pool_attr attr;

	errno = qhcadv_query_pool(ctx, &attr, sizeof(attr));
	MUST(!errno);
	return attr;
}

static void connect_qps(struct ends *e)
{
	const struct connection c = {
		.type = IBV_QPT_RC, .mtu = IBV_MTU_4096, .timeout = 18, .retry_cnt = 7,
		.rnr_retry = 7, .min_rnr_timer = 1, .rd_atomic = 4, .dest_rd_atomic = 4,
		.access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
	};

	MUST(!qp_reset(e->qp[0]) && !qp_reset(e->qp[1]));
	MUST(!qp_connect_pair(e->qp, &c, gid_index));
}

struct ends open_ends(void)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC, .sq_sig_all = 1,
		.cap = { .max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct ends e = { .ctx = open_it() };

	e.pd = ibv_alloc_pd(e.ctx);
	e.cq = ibv_create_cq(e.ctx, 64, NULL, NULL, 0);
	MUST(e.pd && e.cq);
	init.send_cq = init.recv_cq = e.cq;
	for (int i = 0; i < 2; i++)
		MUST((e.qp[i] = ibv_create_qp(e.pd, &init)));
	connect_qps(&e);
	return e;
}

enum ibv_wc_status move(struct ends *e, enum ibv_wr_opcode opcode, uint64_t local,
			uint32_t lkey, uint64_t remote, uint32_t rkey, uint32_t length)
{
	struct ibv_sge sge = { .addr = local, .lkey = lkey, .length = length };
	struct ibv_send_wr wr = {
		.opcode = opcode, .sg_list = &sge, .num_sge = 1,
		.wr.rdma = { .remote_addr = remote, .rkey = rkey },
	}, *bad;
	struct ibv_wc wc;
	int n;

	MUST(!ibv_post_send(e->qp[0], &wr, &bad));
	while (!(n = ibv_poll_cq(e->cq, 1, &wc)))
		;
	MUST(n == 1);
	if (wc.status)
		connect_qps(e);
	return wc.status;
}

enum ibv_wc_status write_to(struct ends *e, struct ibv_mr *from, struct ibv_mr *to,
			    uint32_t length)
{
	return move(e, IBV_WR_RDMA_WRITE, (uintptr_t)from->addr, from->lkey, (uintptr_t)to->addr,
		    to->rkey, length);
}

struct qhcadv_pool_mem *pool_mem(struct ibv_context *ctx, size_t length)
{
	struct qhcadv_pool_mem *mem = qhcadv_alloc_pool(ctx, length);

	MUST(mem);
	return mem;
}

void *pages(size_t length)
{
	void *p = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	MUST(p != MAP_FAILED);
	MUST(!madvise(p, length, MADV_NOHUGEPAGE));
	memset(p, 1, length);
	return p;
}

bool is_all(const void *p, uint8_t byte, size_t length)
{
	const uint8_t *b = p;

	return b[0] == byte && !memcmp(b, b + 1, length - 1);
}

int take_all(struct ibv_context *ctx, size_t length, struct qhcadv_pool_mem **mem)
{
	int n = 0;

	while ((mem[n] = qhcadv_alloc_pool(ctx, length)))
		MUST(++n < MAX_PIECES);
	MUST(errno == ENOSPC);
	return n;
}
