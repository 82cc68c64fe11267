// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The driver's part of what "rdma resource show" reports about an object.
 *
 * The kernel asks for every object, also when the user wants no driver's part.
 * So only the raw entries, "rdma resource show -r", come from the device, whose
 * caches a query disturbs.
 */
#include <net/netlink.h>
#include <uapi/rdma/rdma_netlink.h>

#include "queue.h"

static int qhca_nest_end(struct sk_buff *msg, struct nlattr *nest, int err)
{
	if (err) {
		nla_nest_cancel(msg, nest);
		return -EMSGSIZE;
	}
	nla_nest_end(msg, nest);
	return 0;
}

/*
 * The owner of a queue may change the threshold in the queue's record without
 * a call.  The one in effect is in the raw entry.
 */
int qhca_fill_res_cq_entry(struct sk_buff *msg, struct ib_cq *ibcq)
{
	struct qhca_cq *cq = to_qcq(ibcq);
	struct nlattr *nest;
	int err;

	nest = nla_nest_start(msg, RDMA_NLDEV_ATTR_DRIVER);
	if (!nest)
		return -EMSGSIZE;

	err = rdma_nl_put_driver_u32(msg, "cqn", cq->cqn) ?:
	      rdma_nl_put_driver_u32(msg, "eqn", qhca_eq_number(cq->eq)) ?:
	      rdma_nl_put_driver_u32(msg, "depth", BIT(cq->log_depth)) ?:
	      rdma_nl_put_driver_u32(msg, "threshold", cq->threshold) ?:
	      rdma_nl_put_driver_u32(msg, "levels", cq->buf.at.levels) ?:
	      rdma_nl_put_driver_u32(msg, "moder_count", cq->moder_count) ?:
	      rdma_nl_put_driver_u32(msg, "moder_usec", cq->moder_usec);
	if (!err && cq->ring)
		err = rdma_nl_put_driver_u32(msg, "ci", READ_ONCE(cq->ci));
	return qhca_nest_end(msg, nest, err);
}

int qhca_fill_res_cq_entry_raw(struct sk_buff *msg, struct ib_cq *ibcq)
{
	struct qhca_ib_dev *dev = to_qhca(ibcq->device);
	struct qhca_cqc cqc;
	struct qhca_cmd cmd = {
		.opcode = QHCA_CMD_QUERY_CQ,
		.index = to_qcq(ibcq)->cqn,
		.out = &cqc,
		.out_len = sizeof(cqc),
	};
	int err;

	err = qhca_cmd_exec(dev->qdev, &cmd);
	return err ? err : nla_put(msg, RDMA_NLDEV_ATTR_RES_RAW, sizeof(cqc),
				   &cqc);
}

int qhca_fill_res_qp_entry(struct sk_buff *msg, struct ib_qp *ibqp)
{
	struct qhca_qp *qp = to_qqp(ibqp);
	struct nlattr *nest;
	int err;

	nest = nla_nest_start(msg, RDMA_NLDEV_ATTR_DRIVER);
	if (!nest)
		return -EMSGSIZE;

	err = rdma_nl_put_driver_u32_hex(msg, "flags", qp->flags) ?:
	      rdma_nl_put_driver_u32(msg, "db_page", qp->db_page) ?:
	      rdma_nl_put_driver_u32(msg, "sq_depth", qp->sq.depth) ?:
	      rdma_nl_put_driver_u32(msg, "rq_depth", qp->rq.depth) ?:
	      rdma_nl_put_driver_u32(msg, "rq_threshold", qp->rq_threshold) ?:
	      rdma_nl_put_driver_u32(msg, "max_inline", qp->max_inline) ?:
	      rdma_nl_put_driver_u32(msg, "levels", qp->buf.at.levels);
	if (!err && !qp->is_user)
		err = rdma_nl_put_driver_u32(msg, "sq_pi", qp->sq.pi) ?:
		      rdma_nl_put_driver_u32(msg, "sq_ci", qp->sq.ci) ?:
		      rdma_nl_put_driver_u32(msg, "rq_pi", qp->rq.pi) ?:
		      rdma_nl_put_driver_u32(msg, "rq_ci", qp->rq.ci);
	return qhca_nest_end(msg, nest, err);
}

int qhca_fill_res_qp_entry_raw(struct sk_buff *msg, struct ib_qp *ibqp)
{
	struct qhca_ib_dev *dev = to_qhca(ibqp->device);
	struct qhca_query_qp out;
	struct qhca_cmd cmd = {
		.opcode = QHCA_CMD_QUERY_QP,
		.index = to_qqp(ibqp)->qpn,
		.out = &out,
		.out_len = sizeof(out),
	};
	int err;

	err = qhca_cmd_exec(dev->qdev, &cmd);
	return err ? err : nla_put(msg, RDMA_NLDEV_ATTR_RES_RAW, sizeof(out),
				   &out);
}

int qhca_fill_res_mr_entry(struct sk_buff *msg, struct ib_mr *ibmr)
{
	struct qhca_mr *mr = to_qmr(ibmr);
	struct qhca_odp_tables tables = {};
	u32 page_shift, levels, block = 0;
	struct nlattr *nest;
	int access, err;
	bool pool;

	/*
	 * rereg_user_mr() may replace all of this at the same time, and free
	 * it.
	 */
	spin_lock(&mr->lock);
	access = mr->access;
	page_shift = mr->at.page_shift;
	levels = mr->at.levels;
	tables.nodes = mr->at.num_nodes;
	pool = mr->pool;
	if (pool)
		block = mr->pool->block;
	spin_unlock(&mr->lock);

	if (mr->odp)
		qhca_odp_tables(mr->odp, &tables);
	nest = nla_nest_start(msg, RDMA_NLDEV_ATTR_DRIVER);
	if (!nest)
		return -EMSGSIZE;

	err = rdma_nl_put_driver_u32(msg, "index", mr->index) ?:
	      rdma_nl_put_driver_u32_hex(msg, "access", access) ?:
	      rdma_nl_put_driver_u32(msg, "page_shift", page_shift) ?:
	      rdma_nl_put_driver_u32(msg, "levels", levels) ?:
	      rdma_nl_put_driver_u32(msg, "nodes", tables.nodes);
	if (!err && pool)
		err = rdma_nl_put_driver_u32(msg, "pool_block", block);
	if (!err && mr->odp)
		err = rdma_nl_put_driver_u32(msg, "odp", 1) ?:
		      rdma_nl_put_driver_u32(msg, "stretches",
					     tables.stretches) ?:
		      rdma_nl_put_driver_u32(msg, "table_kib",
					     tables.bytes >> 10);
	if (!err && mr->pages)
		err = rdma_nl_put_driver_u32(msg, "max_pages", mr->max_pages);
	return qhca_nest_end(msg, nest, err);
}

int qhca_fill_res_mr_entry_raw(struct sk_buff *msg, struct ib_mr *ibmr)
{
	struct qhca_ib_dev *dev = to_qhca(ibmr->device);
	struct qhca_pte pte = *qhca_pte(dev->qdev, to_qmr(ibmr)->index);

	return nla_put(msg, RDMA_NLDEV_ATTR_RES_RAW, sizeof(pte), &pte);
}

int qhca_fill_res_srq_entry(struct sk_buff *msg, struct ib_srq *ibsrq)
{
	struct qhca_srq *srq = to_qsrq(ibsrq);
	struct nlattr *nest;
	int err;

	nest = nla_nest_start(msg, RDMA_NLDEV_ATTR_DRIVER);
	if (!nest)
		return -EMSGSIZE;

	err = rdma_nl_put_driver_u32(msg, "depth", BIT(srq->log_depth)) ?:
	      rdma_nl_put_driver_u32(msg, "threshold", srq->threshold) ?:
	      rdma_nl_put_driver_u32(msg, "max_sge", srq->max_sge) ?:
	      rdma_nl_put_driver_u32(msg, "levels", srq->buf.at.levels);
	return qhca_nest_end(msg, nest, err);
}

int qhca_fill_res_srq_entry_raw(struct sk_buff *msg, struct ib_srq *ibsrq)
{
	struct qhca_srqc srqc;
	int err;

	err = qhca_srq_query(to_qsrq(ibsrq), &srqc);
	return err ? err : nla_put(msg, RDMA_NLDEV_ATTR_RES_RAW, sizeof(srqc),
				   &srqc);
}
