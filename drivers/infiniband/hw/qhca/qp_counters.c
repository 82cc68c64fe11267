// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Counters of single QPs, "rdma statistic qp".
 *
 * What the core calls a counter is a set of the device, whose number is the
 * counter's id.  The device counts what a QP does in the set that the QP is
 * bound to, and the number of sets is limited.  A set keeps its values when its
 * QPs leave it, so the driver remembers what they were when the set got its
 * present owner.
 *
 * The core adds the counters of QPs, by their place in the list, to those of
 * the port, which therefore begin with the same counters (counters.c) and are
 * read from set 0: it has what no other set has counted.
 */
#include "queue.h"

/* In the order in which the port has them, too. */
static const u16 qhca_qp_counters[] = {
	QHCA_CNT_tx_packets, QHCA_CNT_tx_bytes,
	QHCA_CNT_rx_packets, QHCA_CNT_rx_bytes,
	QHCA_CNT_tx_acks, QHCA_CNT_rx_acks,
	QHCA_CNT_tx_nak_seq, QHCA_CNT_rx_nak_seq,
	QHCA_CNT_tx_nak_invalid, QHCA_CNT_tx_nak_access, QHCA_CNT_tx_nak_op,
	QHCA_CNT_rx_nak_invalid, QHCA_CNT_rx_nak_access, QHCA_CNT_rx_nak_op,
	QHCA_CNT_tx_rnr_no_wqe, QHCA_CNT_tx_rnr_fault1, QHCA_CNT_tx_rnr_fault2,
	QHCA_CNT_rx_rnr, QHCA_CNT_duplicate_requests, QHCA_CNT_out_of_sequence,
	QHCA_CNT_ack_timeouts, QHCA_CNT_retransmitted_packets,
	QHCA_CNT_retry_exceeded, QHCA_CNT_rnr_retry_exceeded,
	QHCA_CNT_rx_bad_qkey, QHCA_CNT_ud_dropped, QHCA_CNT_uc_dropped,
};

/* All of these are read at once. */
#define QHCA_QP_COUNTER_FIRST	QHCA_CNT_tx_packets
#define QHCA_QP_COUNTER_SPAN	(QHCA_CNT_uc_dropped - QHCA_CNT_tx_packets + 1)

/**
 * struct qhca_counter_set - a set in use
 * @base: its values when its present owner got it
 */
struct qhca_counter_set {
	u64 base[QHCA_QP_COUNTER_SPAN];
};

/* Can QPs have counters of their own?  Set 0 is all QPs'. */
bool qhca_has_qp_counters(struct qhca_ib_dev *dev)
{
	return dev->qdev->caps.num_counter_sets > 1;
}

/* The number of the @i-th counter that QPs have, or -1 if there is none. */
int qhca_qp_counter(unsigned int i)
{
	return i < ARRAY_SIZE(qhca_qp_counters) ? qhca_qp_counters[i] : -1;
}

bool qhca_is_qp_counter(u32 counter)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(qhca_qp_counters); i++)
		if (qhca_qp_counters[i] == counter)
			return true;
	return false;
}

static int qhca_counter_set_read(struct qhca_ib_dev *dev, u32 set, u64 *values)
{
	return qhca_query_counter_set(dev->qdev, set, QHCA_QP_COUNTER_FIRST,
				      QHCA_QP_COUNTER_SPAN, values);
}

static int qhca_set_qp_counters(struct ib_qp *ibqp, u32 set)
{
	struct qhca_cmd cmd = {
		.opcode = QHCA_CMD_SET_QP_COUNTERS,
		.index = to_qqp(ibqp)->qpn,
		.param = set,
	};

	return qhca_cmd_exec(to_qhca(ibqp->device)->qdev, &cmd);
}

static int qhca_counter_alloc(struct rdma_counter *counter)
{
	struct qhca_ib_dev *dev = to_qhca(counter->device);
	u32 last = dev->qdev->caps.num_counter_sets - 1;
	struct qhca_counter_set *set;
	int err;

	set = kzalloc_obj(*set);
	if (!set)
		return -ENOMEM;
	/*
	 * The core forgets the number of a counter after its deallocation, and
	 * cannot list another one of that number until then.
	 */
	err = xa_alloc_cyclic(&dev->counter_sets, &counter->id, set,
			      XA_LIMIT(1, last), &dev->next_counter_set,
			      GFP_KERNEL);
	if (err < 0)
		goto free;
	err = qhca_counter_set_read(dev, counter->id, set->base);
	if (err)
		goto erase;
	return 0;

erase:
	xa_erase(&dev->counter_sets, counter->id);
free:
	counter->id = 0;
	kfree(set);
	return err;
}

static int qhca_counter_dealloc(struct rdma_counter *counter)
{
	struct qhca_ib_dev *dev = to_qhca(counter->device);

	if (counter->id)
		kfree(xa_erase(&dev->counter_sets, counter->id));
	return 0;
}

/* The core holds the counter's lock here and in the two functions below. */
static int qhca_counter_bind_qp(struct rdma_counter *counter, QHCA_BOUND_QP)
{
	bool fresh = !counter->id;
	int err;

	if (fresh) {
		err = qhca_counter_alloc(counter);
		if (err)
			return err;
	}
	err = qhca_set_qp_counters(ibqp, counter->id);
	if (!err) {
		ibqp->counter = counter;
	} else if (fresh) {
		qhca_counter_dealloc(counter);
		counter->id = 0;
	}
	return err;
}

static int qhca_counter_unbind_qp(QHCA_BOUND_QP)
{
	int err = qhca_set_qp_counters(ibqp, 0);

	/* The QPs of a dead device count nothing more. */
	if (err && err != -EIO)
		return err;
	ibqp->counter = NULL;
	return 0;
}

static struct rdma_hw_stats *
qhca_counter_alloc_stats(struct rdma_counter *counter)
{
	struct qhca_ib_dev *dev = to_qhca(counter->device);

	return rdma_alloc_hw_stats_struct(dev->port_stats.desc,
					  ARRAY_SIZE(qhca_qp_counters),
					  RDMA_HW_STATS_DEFAULT_LIFESPAN);
}

static int qhca_counter_update_stats(struct rdma_counter *counter)
{
	struct qhca_ib_dev *dev = to_qhca(counter->device);
	struct qhca_counter_set *set;
	u64 values[QHCA_QP_COUNTER_SPAN];
	unsigned int i, at;
	int err;

	set = xa_load(&dev->counter_sets, counter->id);
	if (!set)
		return -EINVAL;
	err = qhca_counter_set_read(dev, counter->id, values);
	if (err)
		return err;
	for (i = 0; i < ARRAY_SIZE(qhca_qp_counters); i++) {
		at = qhca_qp_counters[i] - QHCA_QP_COUNTER_FIRST;
		counter->stats->value[i] = values[at] - set->base[at];
	}
	return 0;
}

const struct ib_device_ops qhca_qp_counter_ops = {
	.counter_alloc_stats = qhca_counter_alloc_stats,
	.counter_bind_qp = qhca_counter_bind_qp,
	.counter_dealloc = qhca_counter_dealloc,
	.counter_unbind_qp = qhca_counter_unbind_qp,
	.counter_update_stats = qhca_counter_update_stats,
	QHCA_OPS_COUNTER_OBJ
};
