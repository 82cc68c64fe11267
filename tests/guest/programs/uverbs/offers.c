// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * qhca-offers: what programs written for other adapters expect of this one, within
 * one guest: regions without bytes and without memory, windows whose key the program
 * chooses, the device's clock, addresses that no packet can have, and as many address
 * handles as the device says.  Prints TAP.
 *
 *   qhca-offers -g GID-INDEX [-d DEVICE] [-a]
 *
 * -a: make all the address handles there may be, which takes long
 */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "lib/peer.h"
#include "lib/tap.h"

#define SIZE	4096u
#define SOON	30000000000ull		/* ns */
#define RIGHTS	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | \
		 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_MW_BIND)

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_qp *qp[2];
static struct ibv_mr *mr;
static uint8_t *buf;
static int gid_index;

static const struct connection conn = {
	.type = IBV_QPT_RC, .mtu = IBV_MTU_1024, .timeout = 14, .retry_cnt = 7,
	.rnr_retry = 7, .min_rnr_timer = 12, .rd_atomic = 1, .dest_rd_atomic = 1,
	.access = RIGHTS & ~IBV_ACCESS_MW_BIND,
};

static struct ibv_qp *new_qp(void)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC, .send_cq = cq, .recv_cq = cq,
		.cap = { .max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 2,
			 .max_recv_sge = 2 },
	};
	struct ibv_qp *made = ibv_create_qp(pd, &init);

	MUST(made);
	return made;
}

static void connect_anew(void)
{
	for (int i = 0; i < 2; i++) {
		if (qp[i])
			MUST(!ibv_destroy_qp(qp[i]));
		qp[i] = new_qp();
	}
	MUST(!qp_connect_pair(qp, &conn, gid_index));
}

static enum ibv_wc_status completion(struct ibv_wc *wc)
{
	uint64_t end = now_ns() + SOON;
	int n;

	while (!(n = ibv_poll_cq(cq, 1, wc)) && now_ns() < end)
		;
	MUST(n == 1);
	return wc->status;
}

/* The status of a request on the first QP. */
static enum ibv_wc_status request(struct ibv_send_wr wr)
{
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	wr.send_flags |= IBV_SEND_SIGNALED;
	MUST(!ibv_post_send(qp[0], &wr, &bad));
	return completion(&wc);
}

static enum ibv_wc_status rdma(enum ibv_wr_opcode opcode, struct ibv_sge sge, uint64_t raddr,
			       uint32_t rkey)
{
	return request((struct ibv_send_wr) {
		.opcode = opcode, .sg_list = &sge, .num_sge = 1,
		.wr.rdma = { raddr, rkey },
	});
}

/* -- regions without bytes ----------------------------------------------------- */

static void region_without_bytes(void)
{
	struct ibv_mr *none = ibv_reg_mr(pd, buf, 0, RIGHTS);
	struct ibv_sge sge = { (uintptr_t)buf, 8, mr->lkey };

	if (!tap_point(none, "a region of length 0"))
		return;
	tap_point(rdma(IBV_WR_RDMA_WRITE, (struct ibv_sge) { (uintptr_t)buf, 0, none->lkey },
		       (uintptr_t)buf, none->rkey) == IBV_WC_SUCCESS,
		  "nothing is written to it");
	tap_point(rdma(IBV_WR_RDMA_WRITE, sge, (uintptr_t)buf, none->rkey) ==
		  IBV_WC_REM_ACCESS_ERR, "8 bytes are not");
	connect_anew();
	MUST(!ibv_rereg_mr(none, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
			   RIGHTS & ~IBV_ACCESS_MW_BIND));
	tap_point(!ibv_rereg_mr(none, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, buf, SIZE, 0) &&
		  rdma(IBV_WR_RDMA_WRITE, sge, (uintptr_t)buf + 8, none->rkey) ==
		  IBV_WC_SUCCESS, "it gets memory");
	tap_point(!ibv_dereg_mr(none), "its end");
}

/* -- a region without memory --------------------------------------------------- */

static bool exchange(struct ibv_sge from, struct ibv_sge to)
{
	struct ibv_recv_wr rwr = { .sg_list = &to, .num_sge = 1 }, *bad_rwr;
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_SEND, .sg_list = &from, .num_sge = 1,
		.send_flags = IBV_SEND_SIGNALED,
	}, *bad;
	struct ibv_wc wc[2];

	MUST(!ibv_post_recv(qp[1], &rwr, &bad_rwr) && !ibv_post_send(qp[0], &wr, &bad));
	return completion(&wc[0]) == IBV_WC_SUCCESS && completion(&wc[1]) == IBV_WC_SUCCESS;
}

static void region_without_memory(void)
{
	struct ibv_mr *null = ibv_alloc_null_mr(pd);
	struct ibv_sge memory = { (uintptr_t)buf, 64, mr->lkey }, nothing = { 0, 64, 0 };
	uint8_t zeros[64] = { };

	if (!tap_point(null, "a null region"))
		return;
	nothing.lkey = null->lkey;
	memset(buf, 0x5a, 2 * sizeof(zeros));
	tap_point(exchange(nothing, memory) && !memcmp(buf, zeros, 64) && buf[64] == 0x5a,
		  "zeros are sent from it");
	memset(buf, 0x5a, sizeof(zeros));
	tap_point(exchange(memory, nothing), "a message that it receives");
	tap_point(exchange(nothing, memory) && !memcmp(buf, zeros, 64), "is lost");
	tap_point(rdma(IBV_WR_RDMA_WRITE, memory, 0, null->lkey) == IBV_WC_REM_ACCESS_ERR,
		  "its key is none for the peer");
	connect_anew();
	tap_point(!ibv_dereg_mr(null), "its end");
}

/* -- windows whose key the program chooses ------------------------------------- */

static enum ibv_wc_status bind(struct ibv_mw *mw, uint32_t rkey)
{
	return request((struct ibv_send_wr) {
		.opcode = IBV_WR_BIND_MW,
		.bind_mw = { .mw = mw, .rkey = rkey,
			     .bind_info = { mr, (uintptr_t)buf, 64, RIGHTS & ~(IBV_ACCESS_MW_BIND |
					    IBV_ACCESS_LOCAL_WRITE) } },
	});
}

static enum ibv_wc_status invalidate(uint32_t rkey)
{
	return request((struct ibv_send_wr) {
		.opcode = IBV_WR_LOCAL_INV, .invalidate_rkey = rkey,
	});
}

static void windows(void)
{
	struct ibv_mw *mw[2] = { ibv_alloc_mw(pd, IBV_MW_TYPE_2), ibv_alloc_mw(pd, IBV_MW_TYPE_2) };
	struct ibv_qp *swap;

	MUST(mw[0] && mw[1]);
	tap_point(bind(mw[0], 0x42) == IBV_WC_SUCCESS && bind(mw[1], 0xabcdef42) == IBV_WC_SUCCESS &&
		  (mw[0]->rkey & 0xff) == 0x42 && (mw[1]->rkey & 0xff) == 0x42 &&
		  mw[0]->rkey != mw[1]->rkey, "the low octet of a window's key is chosen");
	/* The windows belong to the QP that bound them, so the other one asks. */
	swap = qp[0], qp[0] = qp[1], qp[1] = swap;
	tap_point(rdma(IBV_WR_RDMA_READ, (struct ibv_sge) { (uintptr_t)buf + 64, 8, mr->lkey },
		       (uintptr_t)buf, mw[1]->rkey) == IBV_WC_SUCCESS,
		  "the peer uses the key that the window has");
	swap = qp[0], qp[0] = qp[1], qp[1] = swap;
	/* It is bound: this fails, and the program thinks that the key has changed. */
	MUST(invalidate(mw[1]->rkey) == IBV_WC_SUCCESS);
	tap_point(bind(mw[0], 0x43) == IBV_WC_MW_BIND_ERR, "a bound window is not bound again");
	connect_anew();
	mw[1]->rkey ^= 0xff;
	tap_point(bind(mw[1], 0x44) == IBV_WC_SUCCESS, "a window whose octet the program forgot");
	tap_point(!ibv_dealloc_mw(mw[0]) && !ibv_dealloc_mw(mw[1]), "their end");
	connect_anew();
}

/* -- the clock ------------------------------------------------------------------ */

static uint64_t read_clock(void)
{
	struct ibv_values_ex values = { .comp_mask = IBV_VALUES_MASK_RAW_CLOCK };

	MUST(!ibv_query_rt_values_ex(ctx, &values));
	MUST(values.comp_mask == IBV_VALUES_MASK_RAW_CLOCK);
	return values.raw_clock.tv_nsec;
}

static uint64_t timestamp(struct ibv_cq_ex *ex)
{
	struct ibv_poll_cq_attr attr = { };
	uint64_t end = now_ns() + SOON, at;

	while (ibv_start_poll(ex, &attr))
		MUST(now_ns() < end);
	at = ibv_wc_read_completion_ts(ex);
	ibv_end_poll(ex);
	return at;
}

static void device_clock(void)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 16, .wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP,
	};
	struct ibv_values_ex values = { .comp_mask = IBV_VALUES_MASK_RAW_CLOCK };
	struct ibv_cq *old = cq;
	struct ibv_cq_ex *ex = ibv_create_cq_ex(ctx, &attr);
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE,
				  .send_flags = IBV_SEND_SIGNALED }, *bad;
	uint64_t before, at;

	MUST(ex);
	if (!tap_point(!ibv_query_rt_values_ex(ctx, &values), "the clock is read"))
		return;
	cq = ibv_cq_ex_to_cq(ex);
	connect_anew();
	before = read_clock();
	MUST(!ibv_post_send(qp[0], &wr, &bad));
	at = timestamp(ex);
	tap_point(before <= at && at <= read_clock(),
		  "a completion's timestamp is between two readings of the clock");
	values.comp_mask = IBV_VALUES_MASK_RAW_CLOCK << 1;
	tap_point(ibv_query_rt_values_ex(ctx, &values) == EINVAL, "it has no other values");
	cq = old;
	connect_anew();
	MUST(!ibv_destroy_cq(ibv_cq_ex_to_cq(ex)));
}

/* -- address handles ------------------------------------------------------------ */

static void addresses(bool all)
{
	union ibv_gid gid, other = { .raw = { 0xff, 0x01, 0, 0, 2, 0xc9, 1, 0x85 } };
	struct ibv_device_attr attr;
	struct ibv_ah_attr path;
	struct ibv_ah **ah;
	int n, i;

	MUST(!ibv_query_gid(ctx, 1, gid_index, &gid) && !ibv_query_device(ctx, &attr));
	path = path_to(&other, gid_index);
	errno = 0;
	tap_point(!ibv_create_ah(pd, &path) && errno == EINVAL,
		  "no address has GIDs of two IP versions");

	tap_point(attr.max_ah > 1000 && attr.max_ah < 1 << 20, "a number of address handles");
	if (!all)
		return;
	path = path_to(&gid, gid_index);
	MUST(ah = calloc(attr.max_ah + 1, sizeof(*ah)));
	for (n = 0; n <= attr.max_ah && (ah[n] = ibv_create_ah(pd, &path)); n++)
		;
	tap_point(n == attr.max_ah && errno == ENOMEM, "that a process can make");
	for (i = 0; i < n; i++)
		MUST(!ibv_destroy_ah(ah[i]));
	ah[0] = ibv_create_ah(pd, &path);
	tap_point(ah[0] && !ibv_destroy_ah(ah[0]), "again, after they ended");
	free(ah);
}

int main(int argc, char **argv)
{
	const char *device = NULL;
	bool all = false;
	int option;

	while ((option = getopt(argc, argv, "d:g:a")) != -1) {
		if (option == 'd')
			device = optarg;
		else if (option == 'g')
			gid_index = parse_number(optarg, 0, 255);
		else if (option == 'a')
			all = true;
		else
			return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	ctx = device_open(device);
	MUST(ctx);
	pd = ibv_alloc_pd(ctx);
	cq = ibv_create_cq(ctx, 16, NULL, NULL, 0);
	buf = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(pd && cq && buf != MAP_FAILED);
	mr = ibv_reg_mr(pd, buf, SIZE, RIGHTS);
	MUST(mr);
	connect_anew();

	region_without_bytes();
	region_without_memory();
	windows();
	device_clock();
	addresses(all);
	return tap_end();
}
