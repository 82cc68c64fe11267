// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "traffic.h"

#ifndef MADV_PAGEOUT
#define MADV_PAGEOUT 21
#endif

#define PAGE	4096u
#define ACCESS	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

uint8_t *part_of(const struct traffic *t, unsigned int lane, enum part part, uint32_t slot)
{
	size_t index = ((size_t)lane * PARTS + part) * t->shape->depth + slot;

	return t->mem + index * t->shape->size;
}

/* What a lane's memory holds, and what its peer's requests bring there. */
uint64_t part_seed(bool server, unsigned int lane, enum part part)
{
	return (lane * PARTS + part) * 2 + server + 1;
}

/*
 * Memory on demand is a file's: its pages can be taken from the process at any
 * time and come back as they were.
 */
static void create_memory(struct traffic *t)
{
	int fd = memfd_create("traffic", MFD_CLOEXEC), access = ACCESS;

	if (t->shape->memory)
		t->mem_size = (size_t)t->shape->lanes * PARTS * t->shape->depth * t->shape->size;
	else
		t->mem_size = (size_t)(SRQ_SLOTS + t->shape->lanes * t->shape->depth) * t->shape->size;
	MUST(fd >= 0 && !ftruncate(fd, t->mem_size));
	t->mem = mmap(NULL, t->mem_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	MUST(t->mem != MAP_FAILED);
	close(fd);
	for (unsigned int l = 0; t->shape->memory && l < t->shape->lanes; l++) {
		size_t len = (size_t)t->shape->depth * t->shape->size;

		flow_fill(part_of(t, l, READ_ONLY, 0), part_seed(t->peer.server, l, READ_ONLY), 0, len);
		flow_fill(part_of(t, l, SOURCE, 0), part_seed(t->peer.server, l, SOURCE), 0, len);
	}
	if (t->shape->on_demand)
		access |= IBV_ACCESS_ON_DEMAND;
	t->mr = ibv_reg_mr(t->pd, t->mem, t->mem_size, access);
	if (!t->mr)
		die("ibv_reg_mr: %s", strerror(errno));
}

/* Takes pages away, a stretch at a time, for as long as there is traffic. */
static void *pager(void *arg)
{
	struct traffic *t = arg;
	uint64_t seed = now_ns() | 1;

	while (!__atomic_load_n(&t->stop_pager, __ATOMIC_RELAXED)) {
		size_t off, len;

		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		off = (seed >> 33) % (t->mem_size / PAGE) * PAGE;
		len = ((seed >> 20) % 64 + 1) * PAGE;
		if (len > t->mem_size - off)
			len = t->mem_size - off;
		madvise(t->mem + off, len, seed >> 63 ? MADV_DONTNEED : MADV_PAGEOUT);
		usleep(2000);
	}
	return NULL;
}

static void create_queues(struct traffic *t)
{
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = SRQ_SLOTS, .max_sge = 1 } };

	t->channel = ibv_create_comp_channel(t->peer.ctx);
	t->pd = ibv_alloc_pd(t->peer.ctx);
	MUST(t->channel && t->pd);
	t->send_cq = ibv_create_cq(t->peer.ctx, LANES * MOST_DEPTH, NULL, t->channel, 0);
	t->recv_cq = ibv_create_cq(t->peer.ctx, SRQ_SLOTS, NULL, t->channel, 1 %
				   t->peer.ctx->num_comp_vectors);
	t->srq = ibv_create_srq(t->pd, &srq);
	if (!t->send_cq || !t->recv_cq || !t->srq)
		die("queues: %s", strerror(errno));
}

static void create_lane(struct traffic *t, struct lane *l)
{
	struct ibv_qp_init_attr init = {
		.qp_type = t->shape->type, .send_cq = t->send_cq, .recv_cq = t->recv_cq,
		.srq = t->srq,
		.cap = { .max_send_wr = t->shape->depth, .max_send_sge = 1 },
	};

	l->qp = ibv_create_qp(t->pd, &init);
	if (!l->qp)
		die("ibv_create_qp: %s", strerror(errno));
	/* So that it is taken for no other's that had its number before. */
	l->here = (struct qp_address){ .qpn = l->qp->qp_num, .psn = now_ns() / 1000 & 0xffffff,
				       .gid = t->peer.gid };
}

static void connect_lane(struct traffic *t, unsigned int index)
{
	struct lane *l = &t->lane[index];
	struct { uint64_t addr; uint32_t rkey, pad; } mine = { }, theirs;
	int rc;

	if (t->shape->memory)
		mine.addr = (uintptr_t)part_of(t, index, WRITTEN, 0);
	mine.rkey = t->mr->rkey;
	peer_exchange(&t->peer, &mine, &theirs, sizeof(mine));
	l->target = theirs.addr;
	l->rkey = theirs.rkey;
	peer_exchange(&t->peer, &l->here, &l->there, sizeof(l->here));
	rc = qp_connect(l->qp, &t->conn, t->peer.gid_index, &l->there, l->here.psn);
	if (rc)
		die("connecting a QP: %s", strerror(rc));
	if (t->shape->type == IBV_QPT_UD) {
		struct ibv_ah_attr path = path_to(&l->there.gid, t->peer.gid_index);

		l->ah = ibv_create_ah(t->pd, &path);
		if (!l->ah)
			die("ibv_create_ah: %s", strerror(errno));
	}
}

void traffic_open(struct traffic *t)
{
	t->conn = (struct connection){
		.type = t->shape->type, .mtu = IBV_MTU_1024, .timeout = 18, .retry_cnt = 7,
		.rnr_retry = 7, .min_rnr_timer = 12, .rd_atomic = 4, .dest_rd_atomic = 4,
		.access = ACCESS,
	};
	peer_open(&t->peer);
	create_queues(t);
	create_memory(t);
	for (unsigned int l = 0; l < t->shape->lanes; l++)
		create_lane(t, &t->lane[l]);
	for (uint32_t slot = 0; slot < SRQ_SLOTS && !t->shape->memory; slot++)
		post_receive(t, slot);
	for (unsigned int l = 0; l < t->shape->lanes; l++)
		connect_lane(t, l);
	MUST(!ibv_req_notify_cq(t->send_cq, 0) && !ibv_req_notify_cq(t->recv_cq, 0));
	if (t->shape->on_demand)
		MUST(!pthread_create(&t->pager, NULL, pager, t));
	peer_barrier(&t->peer);
	/* From now on each end stands by itself, as the network may go. */
	close(t->peer.sock);
}

/* Of a device that is gone, the library frees what it has of the object. */
static void ended(struct traffic *t, int rc, const char *what)
{
	if (rc && !(t->fatal && rc == EIO))
		flow_bad(&t->flow, "%s: %s", what, strerror(rc));
}

void traffic_close(struct traffic *t)
{
	if (t->shape->on_demand) {
		__atomic_store_n(&t->stop_pager, true, __ATOMIC_RELAXED);
		pthread_join(t->pager, NULL);
	}
	for (unsigned int l = 0; l < t->shape->lanes; l++) {
		ended(t, ibv_destroy_qp(t->lane[l].qp), "ibv_destroy_qp");
		if (t->lane[l].ah)
			ended(t, ibv_destroy_ah(t->lane[l].ah), "ibv_destroy_ah");
	}
	ended(t, ibv_destroy_srq(t->srq), "ibv_destroy_srq");
	ended(t, ibv_destroy_cq(t->send_cq), "ibv_destroy_cq");
	ended(t, ibv_destroy_cq(t->recv_cq), "ibv_destroy_cq");
	ended(t, ibv_destroy_comp_channel(t->channel), "ibv_destroy_comp_channel");
	ended(t, ibv_dereg_mr(t->mr), "ibv_dereg_mr");
	ended(t, ibv_dealloc_pd(t->pd), "ibv_dealloc_pd");
	ended(t, ibv_close_device(t->peer.ctx), "ibv_close_device");
	munmap(t->mem, t->mem_size);
}
