// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * When an Ethernet queue may interrupt.
 *
 * The device raises the vector once for each arming, so the driver moderates
 * interrupts by arming later: when NAPI has consumed everything, it starts a
 * timer, which arms the queue.  A frame that finds the queue idle for longer
 * than that interrupts at once, and under load there is one interrupt in each
 * period.  Nothing is lost meanwhile, because arming passes the indices that
 * NAPI has reached: if the device is beyond them, it interrupts immediately.
 */
#define QHCA_COMPAT_HRTIMER

#include <linux/qhca/compat.h>

#include "netdev.h"

/**
 * qhca_queue_arm - have the device interrupt for what NAPI has not consumed
 * @q: queue, which exists in the device
 *
 * NAPI may run at the same time and advance the indices.  Then the device
 * finds that they differ from its own, and raises the vector needlessly.
 */
void qhca_queue_arm(struct qhca_queue *q)
{
	u32 seen = QHCA_PUT(QHCA_DB_ETH_ARM_RX, READ_ONCE(q->rx.ci)) |
		   QHCA_PUT(QHCA_DB_ETH_ARM_TX, READ_ONCE(q->tx.ci));

	qhca_ring(&q->eth->core->qdev, QHCA_DB_ETH_ARM,
		  q->index | (u64)seen << 32);
}

static enum hrtimer_restart qhca_queue_arm_timer(struct hrtimer *timer)
{
	qhca_queue_arm(container_of(timer, struct qhca_queue, arm_timer));
	return HRTIMER_NORESTART;
}

/**
 * qhca_queue_arm_later - arm the queue when the next interrupt may come
 * @q: queue, which exists in the device
 *
 * Context: NAPI.
 */
void qhca_queue_arm_later(struct qhca_queue *q)
{
	u32 usecs = READ_ONCE(q->eth->usecs);

	if (usecs)
		hrtimer_start(&q->arm_timer, ns_to_ktime((u64)usecs * NSEC_PER_USEC),
			      HRTIMER_MODE_REL);
	else
		qhca_queue_arm(q);
}

void qhca_coalesce_init(struct qhca_queue *q)
{
	hrtimer_setup(&q->arm_timer, qhca_queue_arm_timer, CLOCK_MONOTONIC,
		      HRTIMER_MODE_REL);
}

/* Called when no poll runs any more, which would start the timer again. */
void qhca_coalesce_stop(struct qhca_queue *q)
{
	hrtimer_cancel(&q->arm_timer);
}

int qhca_get_coalesce(struct net_device *netdev,
		      struct ethtool_coalesce *coalesce,
		      struct kernel_ethtool_coalesce *kernel_coalesce,
		      struct netlink_ext_ack *extack)
{
	struct qhca_eth *eth = netdev_priv(netdev);

	coalesce->rx_coalesce_usecs = eth->usecs;
	coalesce->tx_coalesce_usecs = eth->usecs;
	return 0;
}

/*
 * The rings of a queue share an interrupt and so have one time, which rx-usecs sets, for
 * all queues.  A
 * tool that sets rx-usecs alone passes the tx-usecs that it has been shown.
 */
int qhca_set_coalesce(struct net_device *netdev,
		      struct ethtool_coalesce *coalesce,
		      struct kernel_ethtool_coalesce *kernel_coalesce,
		      struct netlink_ext_ack *extack)
{
	struct qhca_eth *eth = netdev_priv(netdev);
	u32 rx = coalesce->rx_coalesce_usecs;
	u32 tx = coalesce->tx_coalesce_usecs;

	if (rx > QHCA_ETH_MAX_USECS) {
		NL_SET_ERR_MSG_FMT(extack, "at most %u microseconds",
				   QHCA_ETH_MAX_USECS);
		return -EINVAL;
	}
	if (tx != rx && tx != eth->usecs) {
		NL_SET_ERR_MSG(extack,
			       "the rings share an interrupt: rx-usecs is for both");
		return -EINVAL;
	}
	/* If the timer runs, it still ends at the former time. */
	WRITE_ONCE(eth->usecs, rx);
	return 0;
}
