// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * When the Ethernet queue may interrupt.
 */
#include "netdev.h"

/**
 * qhca_eth_arm - have the device interrupt for what NAPI has not consumed
 * @eth: port, whose queue exists
 */
void qhca_eth_arm(struct qhca_eth *eth)
{
	u32 seen = QHCA_PUT(QHCA_DB_ETH_ARM_RX, eth->rx.ci) |
		   QHCA_PUT(QHCA_DB_ETH_ARM_TX, eth->tx.ci);

	qhca_ring(&eth->core->qdev, QHCA_DB_ETH_ARM,
		  QHCA_ETHQ | (u64)seen << 32);
}
