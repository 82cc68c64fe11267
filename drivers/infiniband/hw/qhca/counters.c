// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The device's counters, under the names of the hardware ABI.
 */
#include "qhca_ib.h"

static const struct rdma_stat_desc qhca_stat_descs[] = {
#define QHCA_STAT_DESC(counter) { .name = #counter },
	QHCA_COUNTERS(QHCA_STAT_DESC)
#undef QHCA_STAT_DESC
};

/* An older device has fewer: they are only ever appended. */
static struct rdma_hw_stats *qhca_alloc_stats(struct ib_device *ibdev)
{
	u32 count = min_t(u32, to_qhca(ibdev)->qdev->caps.num_counters,
			  ARRAY_SIZE(qhca_stat_descs));

	return rdma_alloc_hw_stats_struct(qhca_stat_descs, count,
					  RDMA_HW_STATS_DEFAULT_LIFESPAN);
}

struct rdma_hw_stats *qhca_alloc_hw_device_stats(struct ib_device *ibdev)
{
	return qhca_alloc_stats(ibdev);
}

struct rdma_hw_stats *qhca_alloc_hw_port_stats(struct ib_device *ibdev,
					       u32 port)
{
	return qhca_alloc_stats(ibdev);
}

int qhca_get_hw_stats(struct ib_device *ibdev, struct rdma_hw_stats *stats,
		      u32 port, int index)
{
	int err;

	err = qhca_query_counters(to_qhca(ibdev)->qdev, 0,
				  stats->num_counters, stats->value);
	return err ? err : stats->num_counters;
}
