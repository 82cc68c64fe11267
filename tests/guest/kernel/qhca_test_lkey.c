// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * qhca_test_lkey.ko: a kernel consumer of the reserved L_Key.
 *
 *   insmod qhca_test_lkey.ko netdev=eth0 gid_index=1 strict=0
 *
 * Two RC QPs of one device are connected through its loopback.  Requests name
 * their local memory by its bus address and the reserved L_Key.  The device takes
 * that key for sends and receives, and for READs and WRITEs too unless it is in
 * strict mode, which the caller sets by devlink and tells by strict=1.  The key
 * that the RDMA core gives consumers is good for all of them in either mode.  The
 * results are TAP in the kernel's log.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/delay.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "loopback.h"
#include "rdma_device.h"
#include "tap.h"

#define MESSAGE		256u	/* bytes */
#define PATIENCE	(60 * HZ)

static char *netdev = "eth0";
module_param(netdev, charp, 0444);
MODULE_PARM_DESC(netdev, "network interface of the RDMA device");

static int gid_index;
module_param(gid_index, int, 0444);
MODULE_PARM_DESC(gid_index, "index of the GID to use");

static bool strict;
module_param(strict, bool, 0444);
MODULE_PARM_DESC(strict, "the device is in strict mode");

struct test {
	struct ib_device *dev;
	struct loopback loopback;
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct ib_qp *qp[2];	/* makes requests, answers */
	u8 *buf;		/* near memory, far memory, MESSAGE each */
	u64 dma;
};

enum { NEAR, FAR };

static u64 dma_of(const struct test *t, int which)
{
	return t->dma + which * MESSAGE;
}

static void drop_qps(struct test *t)
{
	int i;

	for (i = 0; i < 2; i++) {
		if (!IS_ERR_OR_NULL(t->qp[i]))
			ib_destroy_qp(t->qp[i]);
		t->qp[i] = NULL;
	}
}

static int make_qps(struct test *t)
{
	const int access = IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE;
	struct ib_qp_init_attr init = {
		.send_cq = t->cq, .recv_cq = t->cq,
		.qp_type = IB_QPT_RC, .sq_sig_type = IB_SIGNAL_ALL_WR,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4,
			 .max_send_sge = 1, .max_recv_sge = 1 },
	};
	int i, err = 0;

	for (i = 0; i < 2; i++) {
		t->qp[i] = ib_create_qp(t->pd, &init);
		if (IS_ERR(t->qp[i]))
			return PTR_ERR(t->qp[i]);
	}
	for (i = 0; i < 2 && !err; i++)
		err = loopback_connect(&t->loopback, t->qp[i],
				       t->qp[!i]->qp_num, access);
	return err;
}

/* The status of the next completion; -ETIME: there is none. */
static int completion(struct test *t, const struct ib_qp *of)
{
	unsigned long end = jiffies + PATIENCE;
	struct ib_wc wc;

	while (!time_after(jiffies, end)) {
		if (ib_poll_cq(t->cq, 1, &wc) == 1) {
			if (wc.qp == of)
				return wc.status;
			continue;
		}
		usleep_range(100, 200);
	}
	return -ETIME;
}

static int post_receive(struct test *t, u32 lkey)
{
	struct ib_sge sge = {
		.addr = dma_of(t, FAR), .length = MESSAGE, .lkey = lkey,
	};
	struct ib_recv_wr wr = { .sg_list = &sge, .num_sge = 1 };

	return ib_post_recv(t->qp[1], &wr, NULL);
}

/* A request whose near memory has @lkey; the status that it completes with. */
static int request(struct test *t, enum ib_wr_opcode opcode, u32 lkey)
{
	struct ib_sge sge = {
		.addr = dma_of(t, NEAR), .length = MESSAGE, .lkey = lkey,
	};
	struct ib_rdma_wr wr = {
		.wr = { .opcode = opcode, .sg_list = &sge, .num_sge = 1 },
		.remote_addr = dma_of(t, FAR),
		.rkey = t->pd->unsafe_global_rkey,
	};
	int err;

	err = make_qps(t);
	if (!err && opcode == IB_WR_SEND)
		err = post_receive(t, lkey);
	if (!err)
		err = ib_post_send(t->qp[0], &wr.wr, NULL);
	if (!err)
		err = completion(t, t->qp[0]);
	drop_qps(t);
	return err;
}

/* Does a request complete with @status, and move data only with success? */
static bool ends_with(struct test *t, enum ib_wr_opcode opcode, u32 lkey,
		      enum ib_wc_status status)
{
	u8 *from = t->buf, *to = t->buf + MESSAGE;
	bool moved;
	int got;

	if (opcode == IB_WR_RDMA_READ)
		swap(from, to);
	memset(from, 0x5a, MESSAGE);
	memset(to, 0xa5, MESSAGE);
	got = request(t, opcode, lkey);
	moved = !memcmp(from, to, MESSAGE);
	if (got != status || (!moved && memchr_inv(to, 0xa5, MESSAGE)))
		pr_info("# status %d, data %s\n", got,
			moved ? "moved" : "not moved");
	return got == status && moved == (status == IB_WC_SUCCESS);
}

static void run(struct test *t)
{
	const enum ib_wc_status other = strict ? IB_WC_LOC_PROT_ERR :
						 IB_WC_SUCCESS;
	const u32 reserved = t->dev->local_dma_lkey;
	const u32 usual = t->pd->local_dma_lkey;

	point((reserved == usual) == !strict,
	      "consumers get the reserved key unless the device is strict");
	point(ends_with(t, IB_WR_SEND, reserved, IB_WC_SUCCESS),
	      "the reserved key is good for a send and a receive");
	point(ends_with(t, IB_WR_RDMA_WRITE, reserved, other),
	      "the reserved key of a WRITE is %s",
	      strict ? "refused" : "good");
	point(ends_with(t, IB_WR_RDMA_READ, reserved, other),
	      "the reserved key of a READ is %s",
	      strict ? "refused" : "good");
	point(ends_with(t, IB_WR_SEND, usual, IB_WC_SUCCESS) &&
	      ends_with(t, IB_WR_RDMA_WRITE, usual, IB_WC_SUCCESS) &&
	      ends_with(t, IB_WR_RDMA_READ, usual, IB_WC_SUCCESS),
	      "the key that consumers get is good for all of them");
}

static int set_up(struct test *t)
{
	const struct ib_cq_init_attr attr = { .cqe = 16 };
	int err;

	err = loopback_address(&t->loopback, t->dev, gid_index);
	if (err)
		return err;
	t->buf = kzalloc(2 * MESSAGE, GFP_KERNEL);
	if (!t->buf)
		return -ENOMEM;
	t->dma = ib_dma_map_single(t->dev, t->buf, 2 * MESSAGE,
				   DMA_BIDIRECTIONAL);
	if (ib_dma_mapping_error(t->dev, t->dma)) {
		err = -ENOMEM;
		goto err_free;
	}
	t->pd = ib_alloc_pd(t->dev, IB_PD_UNSAFE_GLOBAL_RKEY);
	if (IS_ERR(t->pd)) {
		err = PTR_ERR(t->pd);
		goto err_unmap;
	}
	t->cq = ib_create_cq(t->dev, NULL, NULL, NULL, &attr);
	if (IS_ERR(t->cq)) {
		err = PTR_ERR(t->cq);
		goto err_pd;
	}
	return 0;

err_pd:
	ib_dealloc_pd(t->pd);
err_unmap:
	ib_dma_unmap_single(t->dev, t->dma, 2 * MESSAGE, DMA_BIDIRECTIONAL);
err_free:
	kfree(t->buf);
	return err;
}

static void tear_down(struct test *t)
{
	ib_destroy_cq(t->cq);
	ib_dealloc_pd(t->pd);
	ib_dma_unmap_single(t->dev, t->dma, 2 * MESSAGE, DMA_BIDIRECTIONAL);
	kfree(t->buf);
}

static int __init qhca_test_lkey_init(void)
{
	struct test t = { .dev = find_rdma_device(netdev) };
	int err;

	if (!t.dev)
		return -ENODEV;
	err = set_up(&t);
	if (!err) {
		run(&t);
		tear_down(&t);
		err = tap_end();
	}
	ib_device_put(t.dev);
	return err;
}

static void __exit qhca_test_lkey_exit(void)
{
}

module_init(qhca_test_lkey_init);
module_exit(qhca_test_lkey_exit);

MODULE_DESCRIPTION("Test of the reserved L_Key");
MODULE_LICENSE("Dual BSD/GPL");
