// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * qhca_test_load.ko: a kernel consumer that keeps each qhca device busy.
 *
 * It is a client of the RDMA core: it begins when a device is registered and ends
 * when the device goes, by draining and destroying its queues as storage drivers
 * do.  In between, a thread for each way to poll a CQ repeats rounds: it registers
 * pages by a work request, writes them through the device's loopback, sends
 * messages, invalidates the region, and verifies what has arrived.  When requests
 * fail, because the device or its port goes, the thread builds its queues anew.
 *
 * /sys/module/qhca_test_load/parameters has the numbers of rounds that were
 * verified, of queues that were built, and of things that were wrong, which the
 * kernel's log describes.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/atomic.h>
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>

#include "loopback.h"

#define MESSAGES	32u
#define MESSAGE		256u	/* bytes */
#define PAGES		8u	/* of the region */
#define REQUESTS	(MESSAGES + 3)	/* of a round, receives aside */
#define PATIENCE	(120 * HZ)

static int rounds;
module_param(rounds, int, 0444);
MODULE_PARM_DESC(rounds, "rounds that were verified");

static uint rest;
module_param(rest, uint, 0444);
MODULE_PARM_DESC(rest, "pause after each round, in ms; 0: none");

static int builds;
module_param(builds, int, 0444);
MODULE_PARM_DESC(builds, "times that queues were built");

static int wrong;
module_param(wrong, int, 0444);
MODULE_PARM_DESC(wrong, "things that were wrong");

static DEFINE_SPINLOCK(count_lock);

static void count(int *what)
{
	spin_lock(&count_lock);
	(*what)++;
	spin_unlock(&count_lock);
}

struct request {
	struct ib_cqe cqe;
	struct worker *worker;
};

struct worker {
	struct ib_device *dev;
	struct task_struct *task;
	enum ib_poll_context poll;
	struct loopback loopback;
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct ib_qp *qp[2];	/* sends, receives */
	struct ib_mr *mr;
	void *from, *to;	/* PAGES each */
	dma_addr_t from_dma, to_dma;
	struct scatterlist sg[PAGES];
	struct request send, receive;
	atomic_t sends, receives;	/* completions of this round */
	bool failed;			/* one completion was in error */
	wait_queue_head_t wait;
};

/* What a device has. */
struct load {
	struct worker worker[3];
};

static void complain(struct worker *w, const char *what, int value)
{
	pr_info("%s: %s: %d\n", dev_name(&w->dev->dev), what, value);
	count(&wrong);
}

/* ------------------------------------------------------------------------
 * Completions
 */

static void check_status(struct worker *w, struct ib_wc *wc)
{
	switch (wc->status) {
	case IB_WC_SUCCESS:
		return;
	/* The queues are drained, the device is dead, or the port is down. */
	case IB_WC_WR_FLUSH_ERR:
	case IB_WC_RETRY_EXC_ERR:
		break;
	default:
		complain(w, "completion status", wc->status);
	}
	WRITE_ONCE(w->failed, true);
}

static void send_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct worker *w = container_of(wc->wr_cqe, struct worker, send.cqe);

	check_status(w, wc);
	atomic_inc(&w->sends);
	wake_up(&w->wait);
}

static void receive_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct worker *w = container_of(wc->wr_cqe, struct worker, receive.cqe);

	check_status(w, wc);
	atomic_inc(&w->receives);
	wake_up(&w->wait);
}

static bool round_over(struct worker *w)
{
	if (w->poll == IB_POLL_DIRECT)
		ib_process_cq_direct(w->cq, -1);
	return READ_ONCE(w->failed) ||
	       (atomic_read(&w->sends) == REQUESTS &&
		atomic_read(&w->receives) == MESSAGES);
}

/* ------------------------------------------------------------------------
 * A round
 */

static int post_receives(struct worker *w)
{
	struct ib_sge sge = {
		.length = MESSAGE, .lkey = w->pd->local_dma_lkey,
	};
	struct ib_recv_wr wr = {
		.wr_cqe = &w->receive.cqe, .sg_list = &sge, .num_sge = 1,
	};
	unsigned int i;
	int err = 0;

	for (i = 0; i < MESSAGES && !err; i++) {
		sge.addr = w->to_dma + i * MESSAGE;
		err = ib_post_recv(w->qp[1], &wr, NULL);
	}
	return err;
}

/* The region is what the peer writes to: all pages but the first two. */
static int post_register_and_write(struct worker *w)
{
	struct ib_sge sge = {
		.addr = w->from_dma + 2 * PAGE_SIZE,
		.length = (PAGES - 2) * PAGE_SIZE,
		.lkey = w->pd->local_dma_lkey,
	};
	struct ib_rdma_wr write = {
		.wr = {
			.wr_cqe = &w->send.cqe, .opcode = IB_WR_RDMA_WRITE,
			.sg_list = &sge, .num_sge = 1,
			.send_flags = IB_SEND_SIGNALED,
		},
	};
	struct ib_reg_wr reg = {
		.wr = {
			.wr_cqe = &w->send.cqe, .opcode = IB_WR_REG_MR,
			.next = &write.wr, .send_flags = IB_SEND_SIGNALED,
		},
		.mr = w->mr,
		.access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE,
	};
	unsigned int n = PAGES - 2;

	ib_update_fast_reg_key(w->mr, w->mr->rkey + 1);
	if (ib_map_mr_sg(w->mr, w->sg + 2, n, NULL, PAGE_SIZE) != n)
		return -EINVAL;
	reg.key = w->mr->rkey;
	write.remote_addr = w->mr->iova;
	write.rkey = w->mr->rkey;
	return ib_post_send(w->qp[0], &reg.wr, NULL);
}

static int post_messages_and_invalidate(struct worker *w)
{
	struct ib_sge sge = {
		.length = MESSAGE, .lkey = w->pd->local_dma_lkey,
	};
	struct ib_send_wr wr = {
		.wr_cqe = &w->send.cqe, .opcode = IB_WR_SEND, .sg_list = &sge,
		.num_sge = 1, .send_flags = IB_SEND_SIGNALED,
	};
	unsigned int i;
	int err = 0;

	for (i = 0; i < MESSAGES && !err; i++) {
		sge.addr = w->from_dma + i * MESSAGE;
		err = ib_post_send(w->qp[0], &wr, NULL);
	}
	if (err)
		return err;
	/* The invalidation follows the WRITE, during which the region must exist. */
	wr.opcode = IB_WR_LOCAL_INV;
	wr.ex.invalidate_rkey = w->mr->rkey;
	wr.num_sge = 0;
	wr.send_flags |= IB_SEND_FENCE;
	return ib_post_send(w->qp[0], &wr, NULL);
}

static bool run_round(struct worker *w, u32 number)
{
	unsigned int messages = MESSAGES * MESSAGE;
	unsigned int written = (PAGES - 2) * PAGE_SIZE;

	atomic_set(&w->sends, 0);
	atomic_set(&w->receives, 0);
	memset32(w->from, number * 0x9e3779b1u, PAGES * PAGE_SIZE / 4);
	if (post_receives(w) || post_register_and_write(w) ||
	    post_messages_and_invalidate(w))
		return false;
	if (w->poll == IB_POLL_DIRECT) {
		unsigned long end = jiffies + PATIENCE;

		while (!round_over(w) && time_before(jiffies, end))
			usleep_range(100, 1000);
	} else {
		wait_event_timeout(w->wait, round_over(w), PATIENCE);
	}
	if (READ_ONCE(w->failed))
		return false;
	if (!round_over(w)) {
		complain(w, "completions are missing, there are",
			 atomic_read(&w->sends));
		return false;
	}
	if (memcmp(w->from, w->to, messages) ||
	    memcmp(w->from + 2 * PAGE_SIZE, w->to + 2 * PAGE_SIZE, written))
		complain(w, "wrong bytes in round", number);
	count(&rounds);
	if (rest)
		msleep(rest);
	return true;
}

/* ------------------------------------------------------------------------
 * Queues
 */

static void end_queues(struct worker *w)
{
	int i;

	for (i = 0; i < 2; i++) {
		if (w->qp[i]) {
			ib_drain_qp(w->qp[i]);
			ib_destroy_qp(w->qp[i]);
		}
		w->qp[i] = NULL;
	}
	if (w->mr)
		ib_dereg_mr(w->mr);
	w->mr = NULL;
	if (w->cq)
		ib_free_cq(w->cq);
	w->cq = NULL;
}

static int make_qp(struct worker *w, int i)
{
	/* One more request of each kind, by which the queues are drained. */
	struct ib_qp_init_attr attr = {
		.qp_type = IB_QPT_RC,
		.send_cq = w->cq, .recv_cq = w->cq,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.cap = {
			.max_send_wr = REQUESTS + 1,
			.max_recv_wr = MESSAGES + 1,
			.max_send_sge = 1, .max_recv_sge = 1,
		},
	};
	struct ib_qp *qp = ib_create_qp(w->pd, &attr);

	if (IS_ERR(qp))
		return PTR_ERR(qp);
	w->qp[i] = qp;
	return 0;
}

static int make_queues(struct worker *w)
{
	struct ib_cq *cq;
	struct ib_mr *mr;
	int err;

	WRITE_ONCE(w->failed, false);
	cq = ib_alloc_cq(w->dev, w, 2 * (REQUESTS + MESSAGES + 2), 0, w->poll);
	if (IS_ERR(cq))
		return PTR_ERR(cq);
	w->cq = cq;
	mr = ib_alloc_mr(w->pd, IB_MR_TYPE_MEM_REG, PAGES);
	if (IS_ERR(mr))
		return PTR_ERR(mr);
	w->mr = mr;
	err = make_qp(w, 0) ?: make_qp(w, 1);
	if (err)
		return err;
	return loopback_connect(&w->loopback, w->qp[0], w->qp[1]->qp_num, 0) ?:
	       loopback_connect(&w->loopback, w->qp[1], w->qp[0]->qp_num,
				IB_ACCESS_REMOTE_WRITE);
}

/* A GID that can be used now; those of an interface come and go with it. */
static bool find_address(struct worker *w)
{
	int i;

	for (i = 0; i < 16; i++) {
		const struct ib_gid_attr *gid;
		bool fits;

		gid = rdma_get_gid_attr(w->dev, LOOPBACK_PORT, i);
		if (IS_ERR(gid))
			continue;
		fits = gid->gid_type == IB_GID_TYPE_ROCE_UDP_ENCAP;
		rdma_put_gid_attr(gid);
		if (fits && !loopback_address(&w->loopback, w->dev, i))
			return true;
	}
	return false;
}

static int work(void *arg)
{
	struct worker *w = arg;
	u32 number = 0;

	while (!kthread_should_stop()) {
		if (!find_address(w) || make_queues(w)) {
			end_queues(w);
			schedule_timeout_interruptible(HZ / 10);
			continue;
		}
		count(&builds);
		while (!kthread_should_stop() && run_round(w, number))
			number++;
		end_queues(w);
	}
	return 0;
}

/* ------------------------------------------------------------------------
 * Devices
 */

static int map_pages(struct worker *w)
{
	unsigned int i;

	w->from = (void *)__get_free_pages(GFP_KERNEL,
					   get_order(PAGES * PAGE_SIZE));
	w->to = (void *)__get_free_pages(GFP_KERNEL | __GFP_ZERO,
					 get_order(PAGES * PAGE_SIZE));
	if (!w->from || !w->to)
		return -ENOMEM;
	w->from_dma = ib_dma_map_single(w->dev, w->from, PAGES * PAGE_SIZE,
					DMA_BIDIRECTIONAL);
	if (ib_dma_mapping_error(w->dev, w->from_dma))
		return -ENOMEM;
	w->to_dma = ib_dma_map_single(w->dev, w->to, PAGES * PAGE_SIZE,
				      DMA_BIDIRECTIONAL);
	if (ib_dma_mapping_error(w->dev, w->to_dma)) {
		ib_dma_unmap_single(w->dev, w->from_dma, PAGES * PAGE_SIZE,
				    DMA_BIDIRECTIONAL);
		return -ENOMEM;
	}
	sg_init_table(w->sg, PAGES);
	for (i = 0; i < PAGES; i++) {
		sg_set_buf(&w->sg[i], w->to + i * PAGE_SIZE, PAGE_SIZE);
		sg_dma_address(&w->sg[i]) = w->to_dma + i * PAGE_SIZE;
		sg_dma_len(&w->sg[i]) = PAGE_SIZE;
	}
	return 0;
}

static void free_pages_of(struct worker *w)
{
	free_pages((unsigned long)w->from, get_order(PAGES * PAGE_SIZE));
	free_pages((unsigned long)w->to, get_order(PAGES * PAGE_SIZE));
}

static void unmap_pages(struct worker *w)
{
	ib_dma_unmap_single(w->dev, w->from_dma, PAGES * PAGE_SIZE,
			    DMA_BIDIRECTIONAL);
	ib_dma_unmap_single(w->dev, w->to_dma, PAGES * PAGE_SIZE,
			    DMA_BIDIRECTIONAL);
	free_pages_of(w);
}

static int start_worker(struct worker *w, struct ib_device *dev,
			enum ib_poll_context poll)
{
	int err;

	w->dev = dev;
	w->poll = poll;
	w->send.cqe.done = send_done;
	w->receive.cqe.done = receive_done;
	init_waitqueue_head(&w->wait);
	w->pd = ib_alloc_pd(dev, 0);
	if (IS_ERR(w->pd))
		return PTR_ERR(w->pd);
	err = map_pages(w);
	if (err)
		goto err_pd;
	w->task = kthread_run(work, w, "qhca_load%d", poll);
	if (IS_ERR(w->task)) {
		err = PTR_ERR(w->task);
		w->task = NULL;
		unmap_pages(w);
		goto err_dealloc;
	}
	return 0;

err_pd:
	free_pages_of(w);
err_dealloc:
	ib_dealloc_pd(w->pd);
	return err;
}

static void end_load(struct load *load)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(load->worker); i++) {
		struct worker *w = &load->worker[i];

		if (!w->task)
			continue;
		kthread_stop(w->task);
		unmap_pages(w);
		ib_dealloc_pd(w->pd);
	}
	kfree(load);
}

static struct ib_client load_client;

static int load_add(struct ib_device *dev)
{
	struct load *load;
	int i, err;

	if (strncmp(dev_name(&dev->dev), "qhca", 4))
		return -EOPNOTSUPP;
	load = kzalloc(sizeof(*load), GFP_KERNEL);
	if (!load)
		return -ENOMEM;
	for (i = 0; i < ARRAY_SIZE(load->worker); i++) {
		/* The workers take IB_POLL_DIRECT, IB_POLL_SOFTIRQ and IB_POLL_WORKQUEUE. */
		err = start_worker(&load->worker[i], dev, i);
		if (err) {
			end_load(load);
			return err;
		}
	}
	ib_set_client_data(dev, &load_client, load);
	return 0;
}

static void load_remove(struct ib_device *dev, void *data)
{
	end_load(data);
}

static struct ib_client load_client = {
	.name = KBUILD_MODNAME,
	.add = load_add,
	.remove = load_remove,
};

static int __init qhca_test_load_init(void)
{
	return ib_register_client(&load_client);
}
module_init(qhca_test_load_init);

static void __exit qhca_test_load_exit(void)
{
	ib_unregister_client(&load_client);
}
module_exit(qhca_test_load_exit);

MODULE_DESCRIPTION("Load by a kernel consumer");
MODULE_LICENSE("Dual BSD/GPL");
