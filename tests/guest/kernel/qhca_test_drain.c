// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * qhca_test_drain.ko: a kernel consumer that drains its queue pairs.
 *
 *   insmod qhca_test_drain.ko netdev=eth0 gid_index=1
 *
 * Two RC QPs of one device are connected through its loopback.  One has
 * requests under way, done and not begun when it is drained; when that returns,
 * each must have completed exactly once, none of them later.  The results are
 * TAP in the kernel's log.  Any RDMA device over Ethernet will do.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/completion.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "loopback.h"
#include "rdma_device.h"
#include "tap.h"

#define REQUESTS	64
#define MESSAGE		64u	/* bytes */
#define PATIENCE	(30 * HZ)

static char *netdev = "eth0";
module_param(netdev, charp, 0444);
MODULE_PARM_DESC(netdev, "network interface of the RDMA device");

static int gid_index;
module_param(gid_index, int, 0444);
MODULE_PARM_DESC(gid_index, "index of the GID to use");

/* One work request. */
struct request {
	struct ib_cqe cqe;
	unsigned int done;	/* completions; CQ handlers of one CQ take turns */
	enum ib_wc_status status;
};

/*
 * What a case is: how many requests there are, which way the QP is drained, and
 * what must have completed afterwards.
 */
struct drain_case {
	const char *name;
	void (*drain)(struct ib_qp *qp);
	unsigned int sends, receives;	/* of the QP drained */
	unsigned int far_receives;	/* receives that the sends may use */
	bool sends_complete, receives_complete;
	/* The test waits for as many sends as find a receive. */
	bool wait;
	bool in_error;		/* the QP is in state ERR already */
	bool again;		/* the QP is drained twice */
	bool shared;		/* receives are an SRQ's; sends come from the peer */
};

struct test {
	struct ib_device *dev;
	struct ib_pd *pd;
	struct loopback loopback;
	void *buf;
	u64 dma;
	struct ib_cq *cq;
	struct ib_srq *srq;
	struct ib_qp *qp[2];	/* drained, peer */
	struct request send[REQUESTS], receive[REQUESTS], far[REQUESTS];
	unsigned int last_wqe;	/* events */
	struct completion last_wqe_event;
};

static void request_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct request *r = container_of(wc->wr_cqe, struct request, cqe);

	r->status = wc->status;
	/* Whoever sees that it is done sees how; with completions(). */
	smp_store_release(&r->done, r->done + 1);
}

static unsigned int completions(const struct request *r)
{
	/* This pairs with request_done(). */
	return smp_load_acquire(&r->done);
}

static void qp_event(struct ib_event *event, void *context)
{
	struct test *t = context;

	if (event->event == IB_EVENT_QP_LAST_WQE_REACHED) {
		t->last_wqe++;
		complete(&t->last_wqe_event);
	}
}

/* ------------------------------------------------------------------------
 * Requests
 */

static int post_send(struct test *t, struct ib_qp *qp, struct request *r)
{
	struct ib_sge sge = {
		.addr = t->dma, .length = MESSAGE,
		.lkey = t->pd->local_dma_lkey,
	};
	struct ib_send_wr wr = {
		.wr_cqe = &r->cqe, .opcode = IB_WR_SEND, .sg_list = &sge,
		.num_sge = 1, .send_flags = IB_SEND_SIGNALED,
	};

	r->cqe.done = request_done;
	return ib_post_send(qp, &wr, NULL);
}

static int post_receive(struct test *t, struct ib_qp *qp, struct request *r)
{
	struct ib_sge sge = {
		.addr = t->dma + MESSAGE, .length = MESSAGE,
		.lkey = t->pd->local_dma_lkey,
	};
	struct ib_recv_wr wr = {
		.wr_cqe = &r->cqe, .sg_list = &sge, .num_sge = 1,
	};

	r->cqe.done = request_done;
	return qp ? ib_post_recv(qp, &wr, NULL) :
		    ib_post_srq_recv(t->srq, &wr, NULL);
}

static bool wait_for_requests(struct test *t, struct request *r,
			      unsigned int n)
{
	unsigned long end = jiffies + PATIENCE;
	unsigned int i;

	for (i = 0; i < n; i++) {
		while (!completions(&r[i])) {
			if (time_after(jiffies, end))
				return false;
			if (t->cq->poll_ctx == IB_POLL_DIRECT)
				ib_process_cq_direct(t->cq, -1);
			cond_resched();
		}
	}
	return true;
}

/*
 * Each has completed once: the first @most with success or not, and from the
 * first that was flushed on all others, too.
 */
static bool completed_once(struct request *r, unsigned int n,
			   unsigned int most)
{
	bool flushed = false;
	unsigned int i;

	for (i = 0; i < n; i++) {
		if (completions(&r[i]) != 1) {
			pr_info("# request %u of %u completed %u times\n", i,
				n, r[i].done);
			return false;
		}
		if (r[i].status == IB_WC_SUCCESS && !flushed && i < most)
			continue;
		flushed = true;
		if (r[i].status != IB_WC_WR_FLUSH_ERR) {
			pr_info("# request %u of %u: %s\n", i, n,
				ib_wc_status_msg(r[i].status));
			return false;
		}
	}
	return true;
}

/* ------------------------------------------------------------------------
 * Queue pairs
 */

static void end_queues(struct test *t)
{
	int i;

	for (i = 0; i < 2; i++) {
		if (!IS_ERR_OR_NULL(t->qp[i]))
			ib_destroy_qp(t->qp[i]);
		t->qp[i] = NULL;
	}
	if (!IS_ERR_OR_NULL(t->srq))
		ib_destroy_srq(t->srq);
	if (!IS_ERR_OR_NULL(t->cq))
		ib_free_cq(t->cq);
	t->srq = NULL;
	t->cq = NULL;
}

static int make_queues(struct test *t, enum ib_poll_context poll, bool shared)
{
	struct ib_srq_init_attr srq_attr = {
		.attr = { .max_wr = REQUESTS, .max_sge = 1 },
	};
	struct ib_qp_init_attr attr = {
		.event_handler = qp_event,
		.qp_context = t,
		.qp_type = IB_QPT_RC,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		/* One more request of each kind, by which the queues are drained. */
		.cap = {
			.max_send_wr = REQUESTS + 1,
			.max_recv_wr = REQUESTS + 1,
			.max_send_sge = 1, .max_recv_sge = 1,
		},
	};
	int i, err;

	t->qp[0] = NULL;
	t->qp[1] = NULL;
	t->srq = NULL;
	t->last_wqe = 0;
	reinit_completion(&t->last_wqe_event);
	memset(t->send, 0, sizeof(t->send));
	memset(t->receive, 0, sizeof(t->receive));
	memset(t->far, 0, sizeof(t->far));

	t->cq = ib_alloc_cq(t->dev, t, 8 * REQUESTS, 0, poll);
	if (IS_ERR(t->cq))
		return PTR_ERR(t->cq);
	attr.send_cq = t->cq;
	attr.recv_cq = t->cq;
	if (shared) {
		t->srq = ib_create_srq(t->pd, &srq_attr);
		if (IS_ERR(t->srq))
			return PTR_ERR(t->srq);
	}
	for (i = 0; i < 2; i++) {
		attr.srq = i ? NULL : t->srq;
		t->qp[i] = ib_create_qp(t->pd, &attr);
		if (IS_ERR(t->qp[i]))
			return PTR_ERR(t->qp[i]);
	}
	err = loopback_connect(&t->loopback, t->qp[0], t->qp[1]->qp_num, 0);
	return err ?: loopback_connect(&t->loopback, t->qp[1],
				       t->qp[0]->qp_num, 0);
}

/* ------------------------------------------------------------------------
 * Cases
 */

static bool drained(struct test *t, const struct drain_case *c)
{
	struct ib_qp_attr error = { .qp_state = IB_QPS_ERR };
	struct ib_qp *qp = t->qp[0];
	unsigned int i;
	int err = 0;

	for (i = 0; !err && i < c->far_receives; i++)
		err = post_receive(t, t->qp[1], &t->far[i]);
	for (i = 0; !err && i < c->receives; i++)
		err = post_receive(t, qp, &t->receive[i]);
	for (i = 0; !err && i < c->sends; i++)
		err = post_send(t, qp, &t->send[i]);
	if (err) {
		pr_info("# posting: %d\n", err);
		return false;
	}
	if (c->wait && !wait_for_requests(t, t->send, c->far_receives)) {
		pr_info("# the sends do not complete\n");
		return false;
	}
	if (c->in_error && ib_modify_qp(qp, &error, IB_QP_STATE))
		return false;

	c->drain(qp);
	if (c->sends_complete &&
	    !completed_once(t->send, c->sends, c->far_receives))
		return false;
	if (c->receives_complete && !completed_once(t->receive, c->receives, 0))
		return false;
	if (!c->again)
		return true;

	/* Nothing more completes when the QP is drained once more. */
	c->drain(qp);
	return completed_once(t->send, c->sends, c->far_receives) &&
	       completed_once(t->receive, c->receives, 0);
}

/*
 * Receives of an SRQ: some have been used and some are being used when the QP
 * is drained.  Those that the QP took complete, once, and the rest are left to
 * the SRQ.  (The core polls what the QP took, but does not wait for handlers
 * that run at the time; the end of the queues does.)
 */
static bool drained_shared(struct test *t, const struct drain_case *c)
{
	unsigned int i, taken = 0;
	bool left = false;
	int err = 0;

	for (i = 0; !err && i < c->receives; i++)
		err = post_receive(t, NULL, &t->receive[i]);
	for (i = 0; !err && i < c->sends / 2; i++)
		err = post_send(t, t->qp[1], &t->send[i]);
	if (err || !wait_for_requests(t, t->send, c->sends / 2) ||
	    !wait_for_requests(t, t->receive, c->sends / 2))
		return false;
	for (; !err && i < c->sends; i++)
		err = post_send(t, t->qp[1], &t->send[i]);
	if (err)
		return false;

	c->drain(t->qp[0]);
	if (!wait_for_completion_timeout(&t->last_wqe_event, PATIENCE) ||
	    t->last_wqe != 1) {
		pr_info("# %u events of the last request\n", t->last_wqe);
		return false;
	}
	end_queues(t);
	for (i = 0; i < c->receives; i++) {
		struct request *r = &t->receive[i];

		if (completions(r) > 1 || (r->done && left)) {
			pr_info("# receive %u completed %u times\n", i,
				r->done);
			return false;
		}
		left |= !r->done;
		taken += r->done;
	}
	if (taken < c->sends / 2 || taken > c->sends) {
		pr_info("# %u receives completed of %u messages\n", taken,
			c->sends);
		return false;
	}
	return true;
}

static const struct drain_case cases[] = {
	{ "nothing posted", ib_drain_qp, 0, 0, 0, true, true },
	{ "receives", ib_drain_qp, 0, REQUESTS, 0, true, true },
	{ "sends that wait for a receive", ib_drain_qp, REQUESTS, 0, 0, true,
	  true },
	{ "sends under way, some done", ib_drain_qp, REQUESTS, REQUESTS,
	  REQUESTS, true, true },
	{ "sends done, waiting and not begun", ib_drain_qp, REQUESTS, REQUESTS,
	  REQUESTS / 2, true, true, .wait = true },
	{ "the send queue alone", ib_drain_sq, REQUESTS, 0, 8, true, false,
	  .wait = true },
	{ "the receive queue alone", ib_drain_rq, 0, REQUESTS, 0, false, true },
	{ "a QP in error", ib_drain_qp, REQUESTS, REQUESTS, 0, true, true,
	  .in_error = true },
	{ "twice", ib_drain_qp, REQUESTS, REQUESTS, 8, true, true,
	  .wait = true, .again = true },
	{ "a shared receive queue", ib_drain_qp, REQUESTS / 2, REQUESTS, 0,
	  .shared = true },
};

static void run_cases(struct test *t)
{
	static const struct {
		enum ib_poll_context poll;
		const char *name;
	} contexts[] = {
		{ IB_POLL_SOFTIRQ, "softirq" },
		{ IB_POLL_WORKQUEUE, "workqueue" },
		{ IB_POLL_DIRECT, "polled" },
	};
	const struct drain_case *c;
	unsigned int i;
	int err;

	for (i = 0; i < ARRAY_SIZE(contexts); i++) {
		for (c = cases; c < cases + ARRAY_SIZE(cases); c++) {
			err = make_queues(t, contexts[i].poll, c->shared);
			if (err)
				pr_info("# making queues: %d\n", err);
			point(!err && (c->shared ? drained_shared(t, c) :
						   drained(t, c)),
			      "%s, %s", c->name, contexts[i].name);
			end_queues(t);
		}
	}
}

static int set_up(struct test *t)
{
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
	t->pd = ib_alloc_pd(t->dev, 0);
	if (IS_ERR(t->pd)) {
		err = PTR_ERR(t->pd);
		goto err_unmap;
	}
	init_completion(&t->last_wqe_event);
	return 0;

err_unmap:
	ib_dma_unmap_single(t->dev, t->dma, 2 * MESSAGE, DMA_BIDIRECTIONAL);
err_free:
	kfree(t->buf);
	return err;
}

static void tear_down(struct test *t)
{
	ib_dealloc_pd(t->pd);
	ib_dma_unmap_single(t->dev, t->dma, 2 * MESSAGE, DMA_BIDIRECTIONAL);
	kfree(t->buf);
}

static int __init qhca_test_drain_init(void)
{
	struct test *t;
	int err;

	t = kzalloc(sizeof(*t), GFP_KERNEL);
	if (!t)
		return -ENOMEM;
	t->dev = find_rdma_device(netdev);
	if (!t->dev) {
		err = -ENODEV;
		goto out;
	}
	err = set_up(t);
	if (err)
		goto out_device;

	run_cases(t);
	tear_down(t);
	err = tap_end();

out_device:
	ib_device_put(t->dev);
out:
	kfree(t);
	return err;
}

static void __exit qhca_test_drain_exit(void)
{
}

module_init(qhca_test_drain_init);
module_exit(qhca_test_drain_exit);

MODULE_DESCRIPTION("Test of draining queue pairs");
MODULE_LICENSE("Dual BSD/GPL");
