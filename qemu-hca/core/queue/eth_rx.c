// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Reception by Ethernet queues, and their arming.
 *
 * Descriptors are copied before they are checked, since the driver can change
 * them at any time.
 */
#include "hca.h"

#define RXD_SIZE	((uint32_t)sizeof(struct qhca_eth_rxd))
#define RXC_SIZE	((uint32_t)sizeof(struct qhca_eth_rxc))

static bool mac_wanted(const struct hca_fn *fn, const uint8_t *mac)
{
	static const uint8_t broadcast[6] = {
		0xff, 0xff, 0xff, 0xff, 0xff, 0xff
	};
	uint32_t flags = hca_rx_flags(fn), i;

	if (!(flags & QHCA_RX_ENABLE))
		return false;
	if (flags & QHCA_RX_PROMISC || !memcmp(mac, broadcast, 6) ||
	    !memcmp(mac, fn->port.mac, 6))
		return true;
	if (!(mac[0] & 1))
		return false;
	if (flags & QHCA_RX_ALLMULTI)
		return true;
	for (i = 0; i < fn->eth.num_mcast; i++)
		if (!memcmp(mac, fn->eth.mcast[i], 6))
			return true;
	return false;
}

/*
 * Is the checksum of the transport right?  The frame may have one 802.1Q tag.
 */
static bool rx_csum_ok(const struct hca_fn *fn, const uint8_t *frame,
		       size_t len, uint16_t *vlan)
{
	size_t off = HCA_ETH_HLEN;
	uint16_t type = get_be16(frame + 12);

	*vlan = HCA_VLAN_NONE;
	if (type == HCA_ETHERTYPE_VLAN && len >= off + HCA_VLAN_HLEN) {
		*vlan = get_be16(frame + 14);
		type = get_be16(frame + 16);
		off += HCA_VLAN_HLEN;
	}
	if (!(fn->features & QHCA_FEAT_ETH_CSUM))
		return false;
	if (type == HCA_ETHERTYPE_IPV4)
		return hca_ipv4_csum_ok(frame + off, len - off);
	return type == HCA_ETHERTYPE_IPV6 &&
	       hca_ipv6_csum_ok(frame + off, len - off);
}

/*
 * Is a buffer posted?  If the device knows of none, it reads the record first.
 */
static bool have_buffer(struct hca_fn *fn, struct hca_ethq *q)
{
	uint8_t raw[4];
	uint32_t pi;

	if (q->rx_pi != q->rx_ci)
		return true;
	if (hca_dma_read(fn, q->rec_base, raw, sizeof(raw)))
		return false;
	pi = get_le32(raw);
	if (pi - q->rx_ci > 1u << q->log_rx)
		return false;		/* not sane: ignored */
	q->rx_pi = pi;
	return q->rx_pi != q->rx_ci;
}

static int read_rxd(struct hca_fn *fn, const struct hca_ethq *q, uint32_t index,
		    struct qhca_eth_rxd *rxd)
{
	uint32_t slot = index & ((1u << q->log_rx) - 1);

	return hca_dma_read(fn, q->rx_base + slot * RXD_SIZE, rxd,
			    sizeof(*rxd));
}

/*
 * Ask for the first of the posted buffers that is absent.  Each is looked at once;
 * one that is taken away again is asked for when a frame needs it.  The next call goes on
 * where this one ends.
 */
static void look_ahead(struct hca_fn *fn, struct hca_ethq *q)
{
	struct qhca_eth_rxd rxd;
	uint32_t len, n;

	if (fn->restore || fn->s2.mode != HCA_S2_ON || fn->s2.eth.waits ||
	    !have_buffer(fn, q))
		return;
	if (q->rx_looked - q->rx_ci > q->rx_pi - q->rx_ci)
		q->rx_looked = q->rx_ci;	/* it has fallen behind */
	for (n = 0; n < HCA_ETH_LOOK_AHEAD && q->rx_looked != q->rx_pi;
	     n++, q->rx_looked++) {
		if (read_rxd(fn, q, q->rx_looked, &rxd))
			return;
		len = get_le32(&rxd.len);
		if (len > QHCA_MAX_FRAME)
			len = QHCA_MAX_FRAME;
		if (hca_s2_present(fn, get_le64(&rxd.addr), len, true) ==
		    HCA_MEM_FAULT &&
		    hca_ethq_ask(fn, QHCA_FAULT_ETH_RX))
			return;
	}
}

/* The outcome of a frame for the next buffer. */
enum store {
	STORE_OK,
	STORE_LOST,			/* memory is unreachable */
	STORE_ABSENT,			/* the buffer is, in stage 2 */
};

static enum store store_failed(struct hca_fn *fn, enum hca_mem_status status)
{
	return status == HCA_MEM_FAULT && hca_ethq_ask(fn, QHCA_FAULT_ETH_RX) ?
	       STORE_ABSENT : STORE_LOST;
}

/* Put the frame into the next buffer and complete it. */
static enum store rx_store(struct hca_fn *fn, struct hca_ethq *q,
			   const uint8_t *frame, size_t len,
			   const struct hca_rss_hash *hash)
{
	uint32_t slot = q->rx_ci & ((1u << q->log_rx) - 1), room, flags = 0;
	enum hca_mem_status status = HCA_MEM_OK;
	struct qhca_eth_rxc rxc = { 0 };
	struct qhca_eth_rxd rxd;
	uint16_t vlan;

	if (read_rxd(fn, q, q->rx_ci, &rxd))
		return STORE_LOST;
	if (rx_csum_ok(fn, frame, len, &vlan))
		flags |= QHCA_RXC_CSUM_OK;
	room = get_le32(&rxd.len);
	if (len > room) {
		len = room;
		flags |= QHCA_RXC_TRUNC;
	}
	if (len)
		status = hca_s2_store(fn, get_le64(&rxd.addr), frame, len);
	if (status)
		return store_failed(fn, status);
	if (hash->valid)
		flags |= QHCA_RXC_HASH | (hash->l4 ? QHCA_RXC_HASH_L4 : 0);
	if (!(q->rx_ci >> q->log_rx & 1))
		flags |= QHCA_RXC_PHASE;
	put_le32(&rxc.len, (uint32_t)len);
	put_le16(&rxc.index, (uint16_t)slot);
	put_le16(&rxc.vlan, vlan);
	put_le32(&rxc.hash, hash->value);
	put_le32(&rxc.flags, flags);
	if (hca_dma_write_release(fn, q->rxc_base + slot * RXC_SIZE, &rxc,
				  sizeof(rxc)))
		return STORE_LOST;
	q->rx_ci++;
	return STORE_OK;
}

static enum store rx_take(struct hca_fn *fn, struct hca_ethq *q,
			  const uint8_t *frame, size_t len,
			  const struct hca_rss_hash *hash)
{
	enum store store = STORE_LOST;

	if (have_buffer(fn, q))
		store = rx_store(fn, q, frame, len, hash);
	look_ahead(fn, q);
	return store;
}

/* The queue for a frame with this hash; NULL: there is no queue. */
static struct hca_ethq *queue_for(struct hca_fn *fn,
				  const struct hca_rss_hash *hash)
{
	const struct hca_rss *rss = &fn->eth.rss;
	struct hca_ethq *q = NULL;

	if (hash->valid)
		q = hca_ethq_get(fn, rss->queue[hash->value & (rss->num - 1u)]);
	return q ? q : hca_ethq_get(fn, fn->eth.first);
}

bool hca_eth_rx(struct hca_fn *fn, const uint8_t *frame, size_t len)
{
	struct hca_rss_hash hash = { .valid = false };
	struct hca_ethq *q;

	if (!mac_wanted(fn, frame)) {
		hca_count(fn, QHCA_CNT_eth_rx_filtered);
		return false;
	}
	if (fn->eth.rss.num)
		hash = hca_rss_hash(&fn->eth.rss, frame, len);
	q = queue_for(fn, &hash);
	if (!q) {
		hca_count(fn, QHCA_CNT_eth_rx_filtered);
		return false;
	}
	switch (rx_take(fn, q, frame, len, &hash)) {
	case STORE_OK:
		break;
	case STORE_LOST:
		hca_count(fn, QHCA_CNT_eth_rx_no_buffer);
		return true;
	case STORE_ABSENT:
		hca_count(fn, QHCA_CNT_eth_fault_dropped);
		return true;
	}
	hca_count(fn, QHCA_CNT_eth_rx_packets);
	hca_count_n(fn, QHCA_CNT_eth_rx_bytes, len);
	if (q->armed)
		hca_ethq_interrupt(fn, q);
	return true;
}

/* RDMA shares the link, so it must not wait for Ethernet buffers. */
bool qhca_can_receive(const struct qhca_hca *dev)
{
	const struct hca *hca = &dev->hca;

	return hca->link_up && !hca->frozen &&
	       (!hca_is_dead(hca_pf(hca)) ||
				!hca_switch_idle(&hca->sw));
}

void hca_eth_resume(struct hca_fn *fn)
{
	for (unsigned int i = 0; i < HCA_NUM_ETH_QUEUES; i++) {
		struct hca_ethq *q = &fn->eth.queue[i];

		if (!q->live)
			continue;
		q->waits = false;
		hca_ethq_update(fn, q);
		look_ahead(fn, q);
	}
}

void hca_eth_arm_doorbell(struct hca_fn *fn, uint64_t value)
{
	struct hca_ethq *q = hca_ethq_get(fn, value & QHCA_DB_NUMBER);
	uint32_t seen = (uint32_t)(value >> 32);

	if (!q) {
		hca_count(fn, QHCA_CNT_doorbells_ignored);
		return;
	}
	q->armed = QHCA_GET(QHCA_DB_ETH_ARM_RX, seen) == (q->rx_ci & 0xffff) &&
		   QHCA_GET(QHCA_DB_ETH_ARM_TX, seen) ==
		   (q->tx_ci_told & 0xffff);
	if (!q->armed)
		hca_ethq_interrupt(fn, q);
	look_ahead(fn, q);
}
