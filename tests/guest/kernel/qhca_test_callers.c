// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * qhca_test_callers.ko: what callers in the kernel ask of the driver and
 * processes never do.
 *
 *   insmod qhca_test_callers.ko netdev=eth0 refuse=0
 *
 * Memory of the process that loads the module is registered as RDS does it,
 * with neither user context nor udata, pinned and on demand; a datagram QP is
 * attached to one group more than once; the event of a CQ arrives while the CQ
 * has no QP; a QP is connected to a peer whose MAC address its consumer does not
 * know, as SMC-R does.  With refuse=1 instead a CQ and a QP are destroyed behind
 * the driver's back, so that the device refuses to destroy them once more: the
 * driver must end them all the same, and give the device up.  The results are
 * TAP in the kernel's log.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/completion.h>
#include <linux/etherdevice.h>
#include <linux/interrupt.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/uaccess.h>

/* For its numbers of objects, and the seam to qhca.ko. */
#include "queue.h"
#include "rdma_device.h"
#include "tap.h"

#define REGION		(16 * PAGE_SIZE)
#define PATIENCE	(60 * HZ)

static char *netdev = "eth0";
module_param(netdev, charp, 0444);
MODULE_PARM_DESC(netdev, "network interface of the RDMA device");

static int refuse;
module_param(refuse, int, 0444);
MODULE_PARM_DESC(refuse, "1: have the device refuse, which is the end of it");

struct test {
	struct ib_device *dev;
	struct ib_pd *pd;
};

/* ------------------------------------------------------------------------
 * Regions of a process, made by the kernel
 */

static bool register_memory(struct test *t, unsigned long addr, int access,
			    bool prefetch)
{
	struct ib_sge sge = { .addr = addr, .length = REGION };
	struct ib_mr *mr;
	int err = 0;

	mr = ib_reg_user_mr(t->pd, addr, REGION, addr, access);
	if (IS_ERR(mr)) {
		pr_info("# registration: %ld\n", PTR_ERR(mr));
		return false;
	}
	if (mr->length != REGION || mr->iova != addr) {
		pr_info("# %llu bytes at %#llx\n", mr->length, mr->iova);
		err = -EINVAL;
	}
	sge.lkey = mr->lkey;
	if (!err && prefetch)
		err = ib_advise_mr(t->pd, IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH,
				   IB_UVERBS_ADVISE_MR_FLAG_FLUSH, &sge, 1);
	if (err)
		pr_info("# region: %d\n", err);
	return !ib_dereg_mr(mr) && !err;
}

static void run_regions(struct test *t)
{
	const int access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ |
			   IB_ACCESS_REMOTE_WRITE;
	unsigned long addr;

	addr = vm_mmap(NULL, 0, REGION, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, 0);
	if (IS_ERR_VALUE(addr)) {
		point(false, "memory of the process");
		return;
	}
	point(register_memory(t, addr, access, false), "memory of a process");
	if (t->dev->attrs.kernel_cap_flags & IBK_ON_DEMAND_PAGING)
		point(register_memory(t, addr, access | IB_ACCESS_ON_DEMAND,
				      true), "memory of a process, on demand");
	vm_munmap(addr, REGION);
}

/* ------------------------------------------------------------------------
 * Multicast
 */

static struct ib_qp *make_qp(struct test *t, struct ib_cq *cq,
			     struct ib_srq *srq, enum ib_qp_type type)
{
	struct ib_qp_init_attr attr = {
		.qp_type = type,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.send_cq = cq, .recv_cq = cq, .srq = srq,
		.cap = {
			.max_send_wr = 4, .max_recv_wr = srq ? 0 : 4,
			.max_send_sge = 1, .max_recv_sge = srq ? 0 : 1,
		},
	};

	return ib_create_qp(t->pd, &attr);
}

static bool attach_often(struct ib_qp *qp)
{
	union ib_gid gid = { .raw = { 0xff, 0x0e, [15] = 0x77 } };
	union ib_gid other = { .raw = { 0xff, 0x0e, [15] = 0x78 } };

	return !ib_attach_mcast(qp, &gid, 0) &&
	       !ib_attach_mcast(qp, &gid, 0) &&
	       !ib_attach_mcast(qp, &other, 0) &&
	       !ib_attach_mcast(qp, &gid, 0xc001) &&
	       !ib_detach_mcast(qp, &gid, 0) &&
	       !ib_detach_mcast(qp, &other, 0) &&
	       ib_detach_mcast(qp, &other, 0) == -EINVAL &&
	       !ib_detach_mcast(qp, &gid, 0) &&
	       !ib_detach_mcast(qp, &gid, 0) &&
	       ib_detach_mcast(qp, &gid, 0) == -EINVAL;
}

static void run_multicast(struct test *t)
{
	struct ib_cq *cq = ib_alloc_cq(t->dev, t, 16, 0, IB_POLL_DIRECT);
	struct ib_qp *qp;
	int err;

	if (IS_ERR(cq)) {
		point(false, "a CQ");
		return;
	}
	qp = make_qp(t, cq, NULL, IB_QPT_UD);
	if (IS_ERR(qp)) {
		point(false, "a datagram QP");
	} else {
		point(attach_often(qp), "a QP attached to a group thrice");
		err = ib_destroy_qp(qp);
		point(!err, "the end of that QP");
	}
	ib_free_cq(cq);
}

/* ------------------------------------------------------------------------
 * A CQ whose event arrives while no QP uses the CQ
 */

static void note_event(struct ib_cq *cq, void *context)
{
	complete(context);
}

static struct ib_qp *make_receiver(struct test *t, struct ib_cq *cq)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_INIT, .port_num = QHCA_IB_PORT,
	};
	struct ib_qp *qp = make_qp(t, cq, NULL, IB_QPT_RC);

	if (IS_ERR(qp))
		return NULL;
	if (!ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX |
			  IB_QP_PORT | IB_QP_ACCESS_FLAGS))
		return qp;
	ib_destroy_qp(qp);
	return NULL;
}

/* Have the device complete a receive request, by an error of the QP. */
static bool complete_one(struct ib_cq *cq, struct ib_qp *qp)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };
	unsigned long end = jiffies + PATIENCE;
	const struct ib_recv_wr wr = {};
	struct ib_wc wc;
	int n;

	if (ib_post_recv(qp, &wr, NULL) ||
	    ib_modify_qp(qp, &attr, IB_QP_STATE))
		return false;
	/*
	 * The device writes the event before it takes another command, such as
	 * that which destroys the QP.
	 */
	while (!(n = ib_poll_cq(cq, 1, &wc)) && time_before(jiffies, end))
		schedule_timeout_uninterruptible(1);
	return n == 1 && wc.status == IB_WC_WR_FLUSH_ERR;
}

/*
 * The interrupt of completion vector 0.  qhca.ko gives the first MSI-X vector to
 * asynchronous events and the next ones to Ethernet queues, of which it makes as
 * many as it may ever use.
 */
static int find_interrupt(struct test *t)
{
	struct qhca_dev *qdev = to_qhca(t->dev)->qdev;

	return pci_irq_vector(qdev->pdev, 1 + qdev->netdev->num_rx_queues);
}

/* An event of the QP, whose interrupt arrives after the end of the QP. */
static bool delay_event(struct test *t, struct ib_cq *cq, struct ib_qp *qp,
			struct completion *called)
{
	int irq = find_interrupt(t);
	bool ok;

	disable_irq(irq);
	ok = ib_req_notify_cq(cq, IB_CQ_NEXT_COMP) >= 0 &&
	     complete_one(cq, qp);
	/* Were this another interrupt, the handler would be called now. */
	if (wait_for_completion_timeout(called, HZ / 10)) {
		pr_info("# the interrupt was not held back\n");
		ok = false;
	}
	ib_destroy_qp(qp);
	enable_irq(irq);
	/* The interrupt is raised again at once; then it has been handled. */
	return ok && !wait_for_completion_timeout(called, HZ / 2);
}

/*
 * The consumer has armed the CQ once, and waits for the event, which the device
 * sends once.  The driver may not call the handler of a CQ without QPs, so it
 * owes the event to the next QP.
 */
static void run_late_event(struct test *t)
{
	const struct ib_cq_init_attr attr = { .cqe = 16 };
	DECLARE_COMPLETION_ONSTACK(called);
	struct ib_cq *cq = ib_create_cq(t->dev, note_event, NULL, &called,
					&attr);
	struct ib_qp *qp;

	if (IS_ERR(cq)) {
		point(false, "a CQ with a handler");
		return;
	}
	qp = make_receiver(t, cq);
	point(qp && delay_event(t, cq, qp, &called),
	      "a handler is not called while its CQ has no QP");
	qp = make_receiver(t, cq);
	point(qp && complete_one(cq, qp) &&
	      wait_for_completion_timeout(&called, PATIENCE),
	      "it is called for the next QP, though the CQ was armed before");
	if (qp)
		ib_destroy_qp(qp);
	ib_destroy_cq(cq);
}

/* ------------------------------------------------------------------------
 * A peer whose MAC address the consumer does not know
 */

static const struct ib_gid_attr *find_ipv4_gid(struct ib_device *dev)
{
	const struct ib_gid_attr *attr;
	u32 i;

	for (i = 0; i < dev->port_data[QHCA_IB_PORT].immutable.gid_tbl_len;
	     i++) {
		attr = rdma_get_gid_attr(dev, QHCA_IB_PORT, i);
		if (IS_ERR(attr))
			continue;
		if (ipv6_addr_v4mapped((struct in6_addr *)&attr->gid))
			return attr;
		rdma_put_gid_attr(attr);
	}
	return NULL;
}

static bool connect_to_self(struct ib_qp *qp, const struct ib_gid_attr *gid)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_RTR, .path_mtu = IB_MTU_256,
		.dest_qp_num = qp->qp_num, .min_rnr_timer = 12,
		.ah_attr.type = RDMA_AH_ATTR_TYPE_ROCE,
	};
	struct net_device *own = to_qhca(qp->device)->qdev->netdev;
	union ib_gid dgid = gid->gid;
	struct ib_qp_init_attr init;
	int err;

	rdma_ah_set_port_num(&attr.ah_attr, QHCA_IB_PORT);
	rdma_ah_set_grh(&attr.ah_attr, &dgid, 0, gid->index, 64, 0);
	err = ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_AV |
			   IB_QP_PATH_MTU | IB_QP_DEST_QPN | IB_QP_RQ_PSN |
			   IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER);
	if (!err)
		err = ib_query_qp(qp, &attr, IB_QP_AV, &init);
	if (err)
		pr_info("# the QP is not connected: %d\n", err);
	return !err && ether_addr_equal(attr.ah_attr.roce.dmac, own->dev_addr);
}

static void run_unresolved(struct test *t)
{
	struct ib_cq *cq = ib_alloc_cq(t->dev, t, 16, 0, IB_POLL_DIRECT);
	const struct ib_gid_attr *gid = find_ipv4_gid(t->dev);
	struct ib_qp *qp = IS_ERR(cq) ? NULL : make_receiver(t, cq);

	point(qp && gid && connect_to_self(qp, gid),
	      "a peer whose MAC address the consumer did not resolve");
	if (qp)
		ib_destroy_qp(qp);
	if (gid)
		rdma_put_gid_attr(gid);
	if (!IS_ERR(cq))
		ib_free_cq(cq);
}

/* ------------------------------------------------------------------------
 * A device that refuses
 */

static bool take(struct test *t, u16 opcode, u32 index)
{
	struct qhca_cmd cmd = { .opcode = opcode, .index = index };

	return !qhca_cmd_exec(to_qhca(t->dev)->qdev, &cmd);
}

/*
 * Only the first of the three is refused: what comes after finds a dead device.
 * The core only warns of a CQ that is not destroyed, and frees it.
 */
static void run_refusal(struct test *t)
{
	struct ib_srq_init_attr srq_attr = {
		.attr = { .max_wr = 4, .max_sge = 1 },
	};
	struct qhca_ib_dev *dev = to_qhca(t->dev);
	struct ib_srq *srq;
	struct ib_cq *cq, *first;
	struct ib_qp *qp;
	u32 cqn, srqn;

	first = ib_alloc_cq(t->dev, t, 16, 0, IB_POLL_DIRECT);
	cq = ib_alloc_cq(t->dev, t, 16, 0, IB_POLL_DIRECT);
	srq = ib_create_srq(t->pd, &srq_attr);
	if (IS_ERR(first) || IS_ERR(cq) || IS_ERR(srq)) {
		point(false, "queues");
		return;
	}
	qp = make_qp(t, cq, srq, IB_QPT_RC);
	if (IS_ERR(qp)) {
		point(false, "a QP");
		return;
	}
	cqn = to_qcq(first)->cqn;
	srqn = to_qsrq(srq)->srqn;
	point(take(t, QHCA_CMD_DESTROY_CQ, cqn) &&
	      take(t, QHCA_CMD_DESTROY_QP, to_qqp(qp)->qpn),
	      "objects that the device has lost");
	ib_free_cq(first);
	point(!xa_load(&dev->cqs, cqn), "a CQ that it refuses to destroy ends");
	point(qhca_is_dead(dev), "the device is given up");
	point(!ib_destroy_qp(qp), "so does a QP");
	ib_destroy_srq(srq);
	point(!xa_load(&dev->srqs, srqn), "and its SRQ");
	ib_free_cq(cq);
}

static int __init qhca_test_callers_init(void)
{
	struct test t = { .dev = find_rdma_device(netdev) };
	int err = 0;

	if (!t.dev)
		return -ENODEV;
	t.pd = ib_alloc_pd(t.dev, 0);
	if (IS_ERR(t.pd)) {
		err = PTR_ERR(t.pd);
		goto out;
	}
	if (refuse) {
		run_refusal(&t);
	} else {
		run_regions(&t);
		run_multicast(&t);
		run_late_event(&t);
		run_unresolved(&t);
	}
	ib_dealloc_pd(t.pd);
	err = tap_end();
out:
	ib_device_put(t.dev);
	return err;
}

static void __exit qhca_test_callers_exit(void)
{
}

module_init(qhca_test_callers_init);
module_exit(qhca_test_callers_exit);

MODULE_DESCRIPTION("Test of what the kernel asks of the RDMA driver");
MODULE_LICENSE("Dual BSD/GPL");
