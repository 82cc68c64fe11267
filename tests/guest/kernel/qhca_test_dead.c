// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * qhca_test_dead.ko: a kernel consumer whose device dies.
 *
 *   insmod qhca_test_dead.ko netdev=eth0
 *   insmod qhca_test_dead.ko netdev=eth0 scribble=1
 *
 * It makes its queues, says "ready" and waits for the device to die, which the
 * caller sees to; with scribble it writes a completion of its own into the ring of
 * a CQ instead, as a device would that has lost its mind, and the driver is to
 * notice.  The device is not recovered while the module holds it.  The results are
 * TAP in the kernel's log.  For qhca alone, since it looks into the driver's CQ.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "../../../drivers/infiniband/hw/qhca/queue.h"
#include "rdma_device.h"
#include "tap.h"

#define PATIENCE	(60 * HZ)
#define HANDLER_MS	2000

static char *netdev = "eth0";
module_param(netdev, charp, 0444);
MODULE_PARM_DESC(netdev, "network interface of the RDMA device");

static bool scribble;
module_param(scribble, bool, 0444);
MODULE_PARM_DESC(scribble, "write a bad completion into a CQ's ring");

/*
 * A CQ with a handler of ours.
 * @calls:  of the handler
 * @linger: the next call is to last until @leave, or HANDLER_MS
 * @inside: a call that lingers is under way
 */
struct watched_cq {
	struct ib_cq *cq;
	atomic_t calls;
	bool linger;
	bool leave;
	bool inside;
	struct completion entered;
};

/* A QP with an SRQ. */
struct shared_qp {
	struct ib_qp *qp;
	atomic_t last_wqe;
	struct completion event;
};

static struct test {
	struct ib_device *dev;
	struct ib_pd *pd;
	struct ib_srq *srq;
	struct ib_event_handler events;
	struct completion fatal;
	struct watched_cq idle, used;
	struct ib_cq *direct;	/* whose handler the core warns of */
	struct ib_qp *qp, *direct_qp;
	struct shared_qp shared[2];
} t;

static void device_event(struct ib_event_handler *handler,
			 struct ib_event *event)
{
	if (event->event == IB_EVENT_DEVICE_FATAL)
		complete(&t.fatal);
}

static void handle_completion(struct ib_cq *cq, void *context)
{
	struct watched_cq *w = context;
	unsigned int i;

	atomic_inc(&w->calls);
	if (!READ_ONCE(w->linger) || irqs_disabled() || in_interrupt())
		return;
	WRITE_ONCE(w->linger, false);
	WRITE_ONCE(w->inside, true);
	complete(&w->entered);
	for (i = 0; i < HANDLER_MS && !READ_ONCE(w->leave); i++)
		usleep_range(1000, 1100);
	/* This comes before the waiter of this call may continue. */
	smp_store_release(&w->inside, false);
}

static void handle_qp_event(struct ib_event *event, void *context)
{
	struct shared_qp *s = context;

	if (event->event != IB_EVENT_QP_LAST_WQE_REACHED)
		return;
	atomic_inc(&s->last_wqe);
	complete(&s->event);
}

static int make_cq(struct watched_cq *w)
{
	const struct ib_cq_init_attr attr = { .cqe = 64 };

	init_completion(&w->entered);
	w->cq = ib_create_cq(t.dev, handle_completion, NULL, w, &attr);
	return PTR_ERR_OR_ZERO(w->cq);
}

static struct ib_qp *make_qp(struct ib_cq *cq, struct ib_srq *srq,
			     struct shared_qp *s)
{
	struct ib_qp_init_attr init = {
		.event_handler = handle_qp_event, .qp_context = s,
		.send_cq = cq, .recv_cq = cq, .srq = srq,
		.qp_type = IB_QPT_RC, .sq_sig_type = IB_SIGNAL_REQ_WR,
		.cap = { .max_send_wr = 8, .max_recv_wr = 8,
			 .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_INIT, .port_num = QHCA_IB_PORT,
	};
	struct ib_qp *qp = ib_create_qp(t.pd, &init);
	int err;

	if (IS_ERR(qp))
		return qp;
	err = ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX |
			   IB_QP_PORT | IB_QP_ACCESS_FLAGS);
	if (!err)
		return qp;
	ib_destroy_qp(qp);
	return ERR_PTR(err);
}

static int set_up(void)
{
	struct ib_srq_init_attr attr = {
		.attr = { .max_wr = 8, .max_sge = 1 },
	};
	unsigned int i;
	int err;

	t.pd = ib_alloc_pd(t.dev, 0);
	if (IS_ERR(t.pd))
		return PTR_ERR(t.pd);
	t.srq = ib_create_srq(t.pd, &attr);
	if (IS_ERR(t.srq))
		return PTR_ERR(t.srq);
	err = make_cq(&t.idle) ?: make_cq(&t.used);
	if (err)
		return err;
	t.direct = ib_alloc_cq(t.dev, NULL, 64, 0, IB_POLL_DIRECT);
	if (IS_ERR(t.direct))
		return PTR_ERR(t.direct);
	t.direct_qp = make_qp(t.direct, NULL, NULL);
	if (IS_ERR(t.direct_qp))
		return PTR_ERR(t.direct_qp);
	t.qp = make_qp(t.used.cq, NULL, NULL);
	if (IS_ERR(t.qp))
		return PTR_ERR(t.qp);
	for (i = 0; i < ARRAY_SIZE(t.shared); i++) {
		init_completion(&t.shared[i].event);
		t.shared[i].qp = make_qp(t.used.cq, t.srq, &t.shared[i]);
		if (IS_ERR(t.shared[i].qp))
			return PTR_ERR(t.shared[i].qp);
	}
	init_completion(&t.fatal);
	INIT_IB_EVENT_HANDLER(&t.events, t.dev, device_event);
	ib_register_event_handler(&t.events);
	return 0;
}

static void drop_qp(struct ib_qp **qp)
{
	if (!IS_ERR_OR_NULL(*qp))
		ib_destroy_qp(*qp);
	*qp = NULL;
}

static void drop_cq(struct watched_cq *w)
{
	if (!IS_ERR_OR_NULL(w->cq))
		ib_destroy_cq(w->cq);
}

static void tear_down(void)
{
	if (t.events.device)
		ib_unregister_event_handler(&t.events);
	drop_qp(&t.qp);
	drop_qp(&t.direct_qp);
	drop_qp(&t.shared[0].qp);
	drop_qp(&t.shared[1].qp);
	if (!IS_ERR_OR_NULL(t.direct))
		ib_free_cq(t.direct);
	drop_cq(&t.idle);
	drop_cq(&t.used);
	if (!IS_ERR_OR_NULL(t.srq))
		ib_destroy_srq(t.srq);
	if (!IS_ERR_OR_NULL(t.pd))
		ib_dealloc_pd(t.pd);
}

static int post_receive(struct ib_qp *qp)
{
	const struct ib_recv_wr wr = { .wr_id = 77 };

	return ib_post_recv(qp, &wr, NULL);
}

static int to_error(struct ib_qp *qp)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };

	return ib_modify_qp(qp, &attr, IB_QP_STATE);
}

/* QPs whose receives are an SRQ's, as ib_drain_qp() would wait for them. */
static void test_last_wqe(void)
{
	struct shared_qp *s = &t.shared[0];

	point(!to_error(s->qp) &&
	      wait_for_completion_timeout(&s->event, PATIENCE),
	      "a QP put into error has reached its last receive");

	/* The core does not report it again for a QP that is in error already. */
	point(!to_error(s->qp) && !to_error(t.shared[1].qp) &&
	      !wait_for_completion_timeout(&s->event, HZ / 2) &&
	      atomic_read(&s->last_wqe) == 1 &&
	      atomic_read(&t.shared[1].last_wqe) == 1,
	      "it is told once, be it by the device or in its place");
}

/*
 * Each post to a dead device has the handlers called that have something to
 * flush.  The consumer of a CQ without QPs may be about to free what its handler
 * uses; and so may the one whose last QP is gone.
 */
static void test_handlers(void)
{
	unsigned int i;
	bool inside;

	drop_qp(&t.shared[0].qp);
	drop_qp(&t.shared[1].qp);

	WRITE_ONCE(t.used.linger, true);
	point(!post_receive(t.qp) &&
	      wait_for_completion_timeout(&t.used.entered, PATIENCE),
	      "the handler of a CQ in use is called");
	drop_qp(&t.qp);
	/* Pairs with the release in handle_completion(). */
	inside = smp_load_acquire(&t.used.inside);
	WRITE_ONCE(t.used.leave, true);
	point(!inside, "when its last QP is gone it does not run any more");
	for (i = 0; i < HANDLER_MS && READ_ONCE(t.used.inside); i++)
		usleep_range(1000, 1100);

	point(!atomic_read(&t.idle.calls),
	      "the handler of a CQ without QPs is not called");
}

static void run_dead(void)
{
	if (to_error(t.shared[1].qp) ||
	    !wait_for_completion_timeout(&t.shared[1].event, PATIENCE)) {
		point(false, "a living device tells of the last receive");
		return;
	}
	pr_info("ready\n");
	if (!wait_for_completion_timeout(&t.fatal, PATIENCE)) {
		point(false, "the device dies");
		return;
	}
	test_last_wqe();
	test_handlers();
}

/* ------------------------------------------------------------------------
 * Bad completions
 */

struct bad_cqe {
	const char *name;
	u32 qpn;		/* 0: the QP's own number */
	u64 handle;
	u32 wqe;
	u32 flags;
};

static const struct bad_cqe bad_cqes[] = {
	{ "a handle that is no address", 0x00dead, 0xdeadbeefdeadbeefull, 0, 0 },
	{ "a QP that there is not", 0x00dead, 8, 0, QHCA_CQE_REQUESTER },
	{ "a receive that was not posted", 0, 0, 5, 0 },
	{ "a send that was not posted", 0, 0, 0, QHCA_CQE_REQUESTER },
	{ "a slot of an SRQ that there is not", 0, 0, 0, QHCA_CQE_SRQ },
	{ "a QP of another CQ", 1, 0, 0, QHCA_CQE_REQUESTER },
};

static void write_cqe(struct qhca_cq *cq, u32 index, const struct bad_cqe *b)
{
	struct qhca_cqe *slot = &cq->ring[index & (BIT(cq->log_depth) - 1)];
	struct qhca_cqe cqe = {
		.wr_id = cpu_to_le64(0xdeadbeefdeadbeefull),
		.handle = cpu_to_le64(b->handle),
		.qpn = cpu_to_le32(b->qpn ?: t.qp->qp_num),
		.wqe = cpu_to_le32(b->wqe),
		.opcode = QHCA_CQE_RECV,
		.flags = cpu_to_le32(b->flags | (index & BIT(cq->log_depth) ?
						 0 : QHCA_PHASE)),
	};

	*slot = cqe;
}

static void run_scribble(void)
{
	struct qhca_cq *cq = to_qcq(t.used.cq);
	struct ib_wc wc[8];
	unsigned int i;
	int n;

	if (post_receive(t.qp)) {
		point(false, "a receive is posted");
		return;
	}
	for (i = 0; i < ARRAY_SIZE(bad_cqes); i++)
		write_cqe(cq, i, &bad_cqes[i]);

	/* The bad completion kills the device, and the driver flushes the requests. */
	n = ib_poll_cq(t.used.cq, ARRAY_SIZE(wc), wc);
	point(wait_for_completion_timeout(&t.fatal, PATIENCE),
	      "a device that completes what was not posted is declared dead");
	for (i = 0; i < PATIENCE && !n; i++) {
		n = ib_poll_cq(t.used.cq, ARRAY_SIZE(wc), wc);
		schedule_timeout_uninterruptible(1);
	}
	point(n == 1 && wc[0].wr_id == 77 &&
	      wc[0].status == IB_WC_WR_FLUSH_ERR && wc[0].qp == t.qp,
	      "its completions are dropped, and what was posted is flushed");
}

static int __init qhca_test_dead_init(void)
{
	int err;

	t.dev = find_rdma_device(netdev);
	if (!t.dev)
		return -ENODEV;
	err = set_up();
	if (!err) {
		if (scribble)
			run_scribble();
		else
			run_dead();
		err = tap_end();
	} else {
		pr_info("# set-up: %d\n", err);
	}
	tear_down();
	ib_device_put(t.dev);
	return err;
}

static void __exit qhca_test_dead_exit(void)
{
}

module_init(qhca_test_dead_init);
module_exit(qhca_test_dead_exit);

MODULE_DESCRIPTION("Test of kernel consumers whose device dies");
MODULE_LICENSE("Dual BSD/GPL");
