// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * When the Ethernet queue may interrupt.
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
 * qhca_eth_arm - have the device interrupt for what NAPI has not consumed
 * @eth: port, whose queue exists
 *
 * NAPI may run at the same time and advance the indices.  Then the device
 * finds that they differ from its own, and raises the vector needlessly.
 */
void qhca_eth_arm(struct qhca_eth *eth)
{
	u32 seen = QHCA_PUT(QHCA_DB_ETH_ARM_RX, READ_ONCE(eth->rx.ci)) |
		   QHCA_PUT(QHCA_DB_ETH_ARM_TX, READ_ONCE(eth->tx.ci));

	qhca_ring(&eth->core->qdev, QHCA_DB_ETH_ARM,
		  QHCA_ETHQ | (u64)seen << 32);
}

static enum hrtimer_restart qhca_eth_arm_timer(struct hrtimer *timer)
{
	qhca_eth_arm(container_of(timer, struct qhca_eth, arm_timer));
	return HRTIMER_NORESTART;
}

/**
 * qhca_eth_arm_later - arm the queue when the next interrupt may come
 * @eth: port, whose queue exists
 *
 * Context: NAPI.
 */
void qhca_eth_arm_later(struct qhca_eth *eth)
{
	u32 usecs = READ_ONCE(eth->usecs);

	if (usecs)
		hrtimer_start(&eth->arm_timer, ns_to_ktime((u64)usecs * NSEC_PER_USEC),
			      HRTIMER_MODE_REL);
	else
		qhca_eth_arm(eth);
}

void qhca_coalesce_init(struct qhca_eth *eth)
{
	hrtimer_setup(&eth->arm_timer, qhca_eth_arm_timer, CLOCK_MONOTONIC,
		      HRTIMER_MODE_REL);
}

/* Called with NAPI disabled, which would start the timer again. */
void qhca_coalesce_stop(struct qhca_eth *eth)
{
	hrtimer_cancel(&eth->arm_timer);
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
 * The rings share an interrupt and so have one time, which rx-usecs sets.  A
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
