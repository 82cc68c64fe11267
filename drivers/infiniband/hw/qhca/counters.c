// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The device's counters, under the names of the hardware ABI.
 *
 * The device's directory in sysfs has all of them.  A port's are also what
 * `rdma statistic` shows, and those must fit one netlink message, which holds
 * less than the device counts.  So a port lacks the counters of least use to a
 * verbs consumer, and the last ones for which there is no room.  (Optional
 * counters of the core's would not help: their list must fit a message, too.)
 */
#include <net/netlink.h>

#include "qhca_ib.h"

/*
 * Bytes that a message with counters needs for the device's name and the like.
 */
#define QHCA_STAT_OTHERS	256

static const struct rdma_stat_desc qhca_stat_descs[] = {
#define QHCA_STAT_DESC(counter) { .name = #counter },
	QHCA_COUNTERS(QHCA_STAT_DESC)
#undef QHCA_STAT_DESC
};

/* An older device has fewer counters: new ones are only ever appended. */
static u32 qhca_num_stats(struct ib_device *ibdev)
{
	return min_t(u32, to_qhca(ibdev)->qdev->caps.num_counters,
		     ARRAY_SIZE(qhca_stat_descs));
}

/*
 * Ports do not show the counters of commands and events, those of Ethernet,
 * which ethtool shows, those of injected faults, and the details of page
 * faults.
 */
static bool qhca_stat_is_rare(u32 counter)
{
	return (counter >= QHCA_CNT_commands &&
		counter <= QHCA_CNT_interrupts) ||
	       (counter >= QHCA_CNT_eth_tx_packets &&
		counter <= QHCA_CNT_inject_delayed) ||
	       (counter >= QHCA_CNT_fault_gather &&
		counter <= QHCA_CNT_fault_us_more);
}

/* Bytes of a counter in a message: a nest of name and value. */
static int qhca_stat_size(const char *name)
{
	return nla_total_size(nla_total_size(strlen(name) + 1) +
			      nla_total_size_64bit(sizeof(u64)));
}

struct rdma_hw_stats *qhca_alloc_hw_device_stats(struct ib_device *ibdev)
{
	return rdma_alloc_hw_stats_struct(qhca_stat_descs,
					  qhca_num_stats(ibdev),
					  RDMA_HW_STATS_DEFAULT_LIFESPAN);
}

/* Returns the bytes that are left; less than 0: there was no room for it. */
static int qhca_port_add(struct qhca_port_stats *port, u32 *shown, u32 counter,
			 int room)
{
	room -= qhca_stat_size(qhca_stat_descs[counter].name);
	if (room >= 0) {
		port->desc[*shown] = qhca_stat_descs[counter];
		port->counter[(*shown)++] = counter;
	}
	return room;
}

struct rdma_hw_stats *qhca_alloc_hw_port_stats(struct ib_device *ibdev,
					       u32 port_num)
{
	struct qhca_ib_dev *dev = to_qhca(ibdev);
	struct qhca_port_stats *port = &dev->port_stats;
	int room = NLMSG_DEFAULT_SIZE - QHCA_STAT_OTHERS;
	u32 i, num = qhca_num_stats(ibdev), shown = 0;

	/* The core expects those of QPs first, see qp_counters.c. */
	for (i = 0; qhca_has_qp_counters(dev) && qhca_qp_counter(i) >= 0; i++)
		room = qhca_port_add(port, &shown, qhca_qp_counter(i), room);
	for (i = 0; i < num && room >= 0; i++)
		if (!qhca_stat_is_rare(i) &&
		    !(qhca_has_qp_counters(dev) && qhca_is_qp_counter(i)))
			room = qhca_port_add(port, &shown, i, room);
	return rdma_alloc_hw_stats_struct(port->desc, shown,
					  RDMA_HW_STATS_DEFAULT_LIFESPAN);
}

/* What QPs with counters of their own have counted, the core adds. */
static int qhca_get_port_stats(struct ib_device *ibdev,
			       struct rdma_hw_stats *stats)
{
	struct qhca_ib_dev *dev = to_qhca(ibdev);
	const struct qhca_port_stats *port = &dev->port_stats;
	u32 num = qhca_num_stats(ibdev);
	u64 *value;
	int err, i;

	value = kcalloc(num, sizeof(*value), GFP_KERNEL);
	if (!value)
		return -ENOMEM;
	err = qhca_has_qp_counters(dev) ?
	      qhca_query_counter_set(dev->qdev, 0, 0, num, value) :
	      qhca_query_counters(dev->qdev, 0, num, value);
	for (i = 0; !err && i < stats->num_counters; i++)
		stats->value[i] = value[port->counter[i]];
	kfree(value);
	return err;
}

/*
 * All counters are read, whichever @index names: it takes one command anyway.
 */
int qhca_get_hw_stats(struct ib_device *ibdev, struct rdma_hw_stats *stats,
		      u32 port, int index)
{
	int err;

	if (port)
		err = qhca_get_port_stats(ibdev, stats);
	else
		err = qhca_query_counters(to_qhca(ibdev)->qdev, 0,
					  stats->num_counters, stats->value);
	return err ? err : stats->num_counters;
}
