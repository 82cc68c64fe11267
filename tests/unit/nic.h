/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * An Ethernet queue for tests of eth*.c.
 */
#ifndef QHCA_TEST_NIC_H
#define QHCA_TEST_NIC_H

#include "frames.h"

#define VECTOR	5u

struct nic {
	struct host *h;
	uint32_t number;		/* of the queue */
	unsigned int log;		/* of all rings */
	uint64_t tx, rx, rxc, rec;
	uint64_t buf;			/* of receive buffers, 2 KiB each */
	uint32_t tx_pi, rx_pi;
};

static inline enum qhca_cmd_status set_rx(struct host *h, uint32_t flags)
{
	struct qhca_port_config in = { .rsvd0 = 0 };

	put_le32(&in.fields, QHCA_PORT_SET_RX);
	put_le32(&in.rx_flags, flags);
	return host_cmd(h, QHCA_CMD_SET_PORT, 0, 0, &in, sizeof(in), NULL, 0);
}

static inline struct qhca_ethq_config config_of(const struct nic *n)
{
	struct qhca_ethq_config in = {
		.log_tx = (uint8_t)n->log, .log_rx = (uint8_t)n->log,
	};

	put_le64(&in.tx_base, n->tx);
	put_le64(&in.rx_base, n->rx);
	put_le64(&in.rxc_base, n->rxc);
	put_le64(&in.rec_base, n->rec);
	put_le16(&in.vector, (uint16_t)((VECTOR + n->number) % 8));
	return in;
}

static inline enum qhca_cmd_status create(struct nic *n,
					  const struct qhca_ethq_config *in)
{
	return host_cmd(n->h, QHCA_CMD_CREATE_ETHQ, n->number, 0, in,
			sizeof(*in), NULL, 0);
}

/* Queue @number of @h, with rings of 2^@log. */
static inline struct nic nic_on(struct host *h, uint32_t number,
				unsigned int log)
{
	struct nic n = { .h = h, .number = number, .log = log };
	struct qhca_ethq_config in;

	n.tx = host_alloc(n.h, 32u << log, 64);
	n.rx = host_alloc(n.h, 16u << log, 64);
	n.rxc = host_alloc(n.h, 16u << log, 64);
	n.rec = host_alloc(n.h, 128, 64);
	n.buf = host_alloc(n.h, 2048u << log, 64);
	in = config_of(&n);
	assert_int_equal(create(&n, &in), QHCA_CMD_OK);
	assert_int_equal(set_rx(n.h, QHCA_RX_ENABLE), QHCA_CMD_OK);
	return n;
}

static inline struct nic nic_new(unsigned int log)
{
	return nic_on(host_new_ready(), 0, log);
}

static inline uint32_t slot(const struct nic *n, uint32_t i)
{
	return i & ((1u << n->log) - 1);
}

/* ---- transmit */

static inline struct qhca_eth_txd *put_txd(struct nic *n, uint64_t addr,
					   uint32_t len, uint16_t flags)
{
	struct qhca_eth_txd *txd;

	txd = host_ptr(n->h, n->tx + slot(n, n->tx_pi++) * sizeof(*txd));
	memset(txd, 0, sizeof(*txd));
	put_le64(&txd->addr, addr);
	put_le32(&txd->len, len);
	put_le16(&txd->flags, flags);
	return txd;
}

static inline void kick(struct nic *n)
{
	qhca_doorbell(n->h->hca, 0, 0, QHCA_DB_ETH_TX,
		      (uint64_t)n->tx_pi << 32 | n->number, n->h->now);
	host_run(n->h);
}

static inline uint32_t tx_ci(struct nic *n)
{
	return get_le32((uint8_t *)host_ptr(n->h, n->rec) +
			offsetof(struct qhca_eth_record, tx_ci));
}

static inline void arm(struct nic *n, uint16_t rx, uint16_t tx)
{
	qhca_doorbell(n->h->hca, 0, 0, QHCA_DB_ETH_ARM,
		      (uint64_t)rx << 32 | (uint64_t)tx << 48 | n->number,
		      n->h->now);
}

/* A frame of @len octets in memory. */
static inline uint64_t make_frame(struct nic *n, uint32_t len)
{
	uint64_t addr = host_alloc(n->h, len + 8, 64);
	uint8_t *p = host_ptr(n->h, addr);
	uint32_t i;

	for (i = 0; i < len; i++)
		p[i] = (uint8_t)(i * 13 + 5);
	return addr;
}

/* ---- receive */

static inline void post_rx(struct nic *n, uint32_t len)
{
	struct qhca_eth_rxd *rxd;

	rxd = host_ptr(n->h, n->rx + slot(n, n->rx_pi) * sizeof(*rxd));
	put_le64(&rxd->addr, n->buf + 2048 * slot(n, n->rx_pi));
	put_le32(&rxd->len, len);
	put_le32(host_ptr(n->h, n->rec), ++n->rx_pi);
}

static inline const struct qhca_eth_rxc *rxc(struct nic *n, uint32_t i)
{
	return host_ptr(n->h, n->rxc + slot(n, i) * 16);
}

static inline bool rxc_valid(struct nic *n, uint32_t i)
{
	return !!(get_le32(&rxc(n, i)->flags) & QHCA_RXC_PHASE) ==
	       !(i >> n->log & 1);
}

static inline void rx(struct nic *n, const uint8_t *frame, size_t len)
{
	qhca_rx_frame(n->h->hca, frame, len, n->h->now);
}

#endif /* QHCA_TEST_NIC_H */
