// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The Ethernet queue: transmission, reception and checksums of the network
 * device.
 *
 * Descriptors are copied before they are checked, since the driver can change
 * them at any time.  A ring that cannot be read stops its queue and nothing
 * else: RDMA goes on.
 */
#include "hca.h"

#define TXD_SIZE	((uint32_t)sizeof(struct qhca_eth_txd))
#define RXD_SIZE	((uint32_t)sizeof(struct qhca_eth_rxd))
#define RXC_SIZE	((uint32_t)sizeof(struct qhca_eth_rxc))

void hca_eth_reset(struct hca_fn *fn)
{
	memset(&fn->eth, 0, sizeof(fn->eth));
}

static struct hca_ethq *queue_get(struct hca_fn *fn, uint64_t number)
{
	if (number >= HCA_NUM_ETH_QUEUES || !fn->eth.queue[number].live)
		return NULL;
	return &fn->eth.queue[number];
}

static void interrupt(struct hca_fn *fn, struct hca_ethq *q)
{
	q->armed = false;
	hca_count(fn, QHCA_CNT_interrupts);
	fn->hca->ops.raise_irq(fn->hca->host, fn->cfg.gvmi, q->vector);
}

/* ------------------------------------------------------------------------
 * Transmit
 */
struct frame {				/* descriptors of one frame */
	unsigned int num;
	uint32_t len;			/* bytes, before a tag is inserted */
	struct {
		uint64_t addr;
		uint32_t len;
	} frag[QHCA_MAX_TX_FRAGS];
	uint16_t flags, vlan, csum_start, csum_offset;
};

enum take {
	TAKE_OK,			/* a whole frame */
	TAKE_WAIT,			/* its end has not been posted */
	TAKE_BAD,			/* not to be sent: drop up to its end */
	TAKE_STOP,			/* the ring cannot be read */
};

static int read_txd(struct hca_fn *fn, const struct hca_ethq *q,
		    uint32_t index, struct qhca_eth_txd *txd)
{
	uint32_t slot = index & ((1u << q->log_tx) - 1);

	return hca_dma_read(fn, q->tx_base + slot * TXD_SIZE, txd,
			    sizeof(*txd));
}

static void frame_first(struct frame *f, const struct qhca_eth_txd *txd)
{
	f->flags = get_le16(&txd->flags);
	f->vlan = get_le16(&txd->vlan);
	f->csum_start = get_le16(&txd->csum_start);
	f->csum_offset = get_le16(&txd->csum_offset);
}

/* Gather the descriptors of the frame at tx_ci, up to its EOP. */
static enum take take_frame(struct hca_fn *fn, const struct hca_ethq *q,
			    struct frame *f)
{
	struct qhca_eth_txd txd;
	bool too_long = false;

	f->flags = f->vlan = f->csum_start = f->csum_offset = 0;
	for (f->num = 0, f->len = 0; q->tx_ci + f->num != q->tx_pi;) {
		if (f->num == QHCA_MAX_TX_FRAGS)
			return TAKE_BAD;
		if (read_txd(fn, q, q->tx_ci + f->num, &txd))
			return TAKE_STOP;
		if (f->num == 0)
			frame_first(f, &txd);
		f->frag[f->num].addr = get_le64(&txd.addr);
		f->frag[f->num].len = get_le32(&txd.len);
		if (f->frag[f->num].len > QHCA_MAX_FRAME)
			too_long = true;
		else
			f->len += f->frag[f->num].len;
		f->num++;
		if (get_le16(&txd.flags) & QHCA_TXD_EOP)
			return too_long ? TAKE_BAD : TAKE_OK;
	}
	return TAKE_WAIT;
}

/* Drop descriptors up to and including the next EOP, as far as posted. */
static void skip_frame(struct hca_fn *fn, struct hca_ethq *q)
{
	struct qhca_eth_txd txd;
	unsigned int n;

	q->skip = true;
	for (n = 0; n < QHCA_MAX_TX_FRAGS && q->tx_ci != q->tx_pi; n++) {
		if (read_txd(fn, q, q->tx_ci, &txd)) {
			q->stopped = true;
			return;
		}
		q->tx_ci++;
		if (get_le16(&txd.flags) & QHCA_TXD_EOP) {
			q->skip = false;
			return;
		}
	}
}

static bool frame_valid(const struct hca_fn *fn, const struct frame *f)
{
	if (f->len < HCA_ETH_HLEN ||
	    f->len > fn->port.eth_mtu + HCA_ETH_HLEN + HCA_VLAN_HLEN ||
	    f->flags & QHCA_TXD_TSO)
		return false;
	return !(f->flags & QHCA_TXD_CSUM) ||
	       (uint32_t)f->csum_start + f->csum_offset + 2 <= f->len;
}

/* Copy the fragments to @p.  -1: one of them cannot be read. */
static int gather(struct hca_fn *fn, const struct frame *f, uint8_t *p)
{
	unsigned int i;

	for (i = 0; i < f->num; p += f->frag[i].len, i++)
		if (f->frag[i].len &&
		    hca_s2_fetch(fn, f->frag[i].addr, 0, p, f->frag[i].len))
			return -1;
	return 0;
}

/*
 * Ask the host domain for what fn->mem.fault describes.  false: it has answered that
 * there is no such page.  That is for this frame or descriptor alone: the page may be
 * there when the next one needs it.
 */
static bool ask(struct hca_fn *fn, enum qhca_fault_cause cause)
{
	struct hca_s2_ask *eth = &fn->s2.eth;

	if (eth->waits)
		return true;		/* in its turn */
	if (eth->failed && eth->addr == fn->mem.fault.bus) {
		eth->failed = false;
		return false;
	}
	hca_count(fn, QHCA_CNT_page_faults2);
	hca_count(fn, cause == QHCA_FAULT_ETH_TX ? QHCA_CNT_fault_eth_tx :
						   QHCA_CNT_fault_eth_rx);
	hca_s2_ask(fn, eth, cause, fn->mem.fault.bus, fn->mem.fault.bus_len,
		   fn->mem.fault.write);
	return true;
}

/* Must the frame wait for one of its fragments? */
static bool frame_waits(struct hca_fn *fn, struct hca_ethq *q,
			const struct frame *f)
{
	unsigned int i;

	for (i = 0; fn->s2.mode && i < f->num; i++)
		if (hca_s2_present(fn, f->frag[i].addr, f->frag[i].len,
				   false) == HCA_MEM_FAULT) {
			q->waits = ask(fn, QHCA_FAULT_ETH_TX);
			return q->waits;
		}
	return false;
}

static void complete_csum(const struct hca_fn *fn, const struct frame *f,
			  uint8_t *p)
{
	uint16_t sum;

	if (!(f->flags & QHCA_TXD_CSUM) ||
	    !(fn->features & QHCA_FEAT_ETH_CSUM))
		return;
	sum = hca_csum_fold(hca_csum_add(0, p + f->csum_start,
					 f->len - f->csum_start));
	put_be16(p + f->csum_start + f->csum_offset, sum ? sum : 0xffff);
}

/*
 * Build the frame in @room, which is memory of the link.  The payload is read
 * to its final place; only the two addresses move when a tag is inserted.
 */
static int build(struct hca_fn *fn, const struct frame *f, uint8_t *room,
		 size_t *len)
{
	bool tag = f->flags & QHCA_TXD_VLAN;
	uint8_t *p = room + (tag ? HCA_VLAN_HLEN : 0);

	if (gather(fn, f, p))
		return -1;
	complete_csum(fn, f, p);
	*len = f->len;
	if (tag) {
		memmove(room, p, 12);
		put_be16(room + 12, HCA_ETHERTYPE_VLAN);
		put_be16(room + 14, f->vlan);
		*len += HCA_VLAN_HLEN;
	}
	if (*len < HCA_MIN_FRAME) {
		memset(room + *len, 0, HCA_MIN_FRAME - *len);
		*len = HCA_MIN_FRAME;
	}
	return 0;
}

static void send_frame(struct hca_fn *fn, const struct frame *f,
		       uint8_t *room)
{
	size_t len;

	if (build(fn, f, room, &len)) {
		hca_count(fn, QHCA_CNT_eth_tx_errors);
		return;
	}
	if (!hca_tx_eth_end(fn, len))
		return;
	hca_count(fn, QHCA_CNT_eth_tx_packets);
	hca_count_n(fn, QHCA_CNT_eth_tx_bytes, len);
	hca_rate_sent(fn, len);
}

/* The transmit side is dead until the queue is destroyed. */
static bool stop(struct hca_ethq *q)
{
	q->stopped = true;
	return false;
}

static size_t room_for(const struct frame *f)
{
	size_t len = f->len + HCA_VLAN_HLEN;

	return len < HCA_MIN_FRAME ? HCA_MIN_FRAME : len;
}

/* Take one frame from the ring; false: nothing to do now. */
static bool tx_one(struct hca_fn *fn, struct hca_ethq *q)
{
	struct frame f;
	uint8_t *room;

	if (q->stopped || q->waits || q->tx_ci == q->tx_pi)
		return false;
	if (q->skip) {
		skip_frame(fn, q);
		return true;
	}
	switch (take_frame(fn, q, &f)) {
	case TAKE_WAIT:
		q->partial = true;
		return false;
	case TAKE_STOP:
		return stop(q);
	case TAKE_BAD:
		hca_count(fn, QHCA_CNT_eth_tx_errors);
		skip_frame(fn, q);
		return true;
	case TAKE_OK:
		break;
	}
	if (!frame_valid(fn, &f)) {
		hca_count(fn, QHCA_CNT_eth_tx_errors);
	} else if (hca_rate_waits(fn)) {
		return false;
	} else if (hca_tx_eth_linked(fn)) {
		if (frame_waits(fn, q, &f))
			return false;
		room = hca_tx_eth_begin(fn, room_for(&f));
		if (!room)
			return false;
		send_frame(fn, &f, room);
	}
	q->tx_ci += f.num;
	return true;
}

/* Publish tx_ci, then raise the interrupt if software waits for it. */
static void tx_tell(struct hca_fn *fn, struct hca_ethq *q)
{
	uint8_t raw[4];

	if (q->tx_ci == q->tx_ci_told)
		return;
	put_le32(raw, q->tx_ci);
	if (hca_dma_write_release(fn, q->rec_base +
				  offsetof(struct qhca_eth_record, tx_ci),
				  raw, sizeof(raw)))
		q->stopped = true;
	q->tx_ci_told = q->tx_ci;
	if (q->armed)
		interrupt(fn, q);
}

/* Frames to several receivers are as much work as one to each of them. */
static unsigned int take_copies(struct hca *hca)
{
	unsigned int copies = hca->wire.copies;

	hca->wire.copies = 0;
	return copies;
}

unsigned int hca_eth_run(struct hca_fn *fn, unsigned int budget)
{
	unsigned int done = 0, i;

	take_copies(fn->hca);
	for (i = 0; i < HCA_NUM_ETH_QUEUES; i++) {
		struct hca_ethq *q = &fn->eth.queue[i];

		if (!q->live)
			continue;
		while (done < budget && hca_wire_takes_eth(fn) &&
		       !q->partial && tx_one(fn, q))
			done += 1 + take_copies(fn->hca);
		tx_tell(fn, q);
	}
	return done;
}

bool hca_eth_pending(const struct hca_fn *fn)
{
	unsigned int i;

	if (hca_rate_is_held(fn))
		return false;
	for (i = 0; i < HCA_NUM_ETH_QUEUES; i++) {
		const struct hca_ethq *q = &fn->eth.queue[i];

		if (q->live && !q->stopped && !q->partial && !q->waits &&
		    q->tx_ci != q->tx_pi)
			return true;
	}
	return false;
}

/* ------------------------------------------------------------------------
 * Receive
 */
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
 * one that is taken away again is asked for when a frame needs it.
 */
static void look_ahead(struct hca_fn *fn, struct hca_ethq *q)
{
	struct qhca_eth_rxd rxd;
	uint32_t len;

	if (fn->restore || fn->s2.mode != HCA_S2_ON || fn->s2.eth.waits ||
	    !have_buffer(fn, q))
		return;
	if (q->rx_looked - q->rx_ci > q->rx_pi - q->rx_ci)
		q->rx_looked = q->rx_ci;	/* it has fallen behind */
	for (; q->rx_looked != q->rx_pi; q->rx_looked++) {
		if (read_rxd(fn, q, q->rx_looked, &rxd))
			return;
		len = get_le32(&rxd.len);
		if (len > QHCA_MAX_FRAME)
			len = QHCA_MAX_FRAME;
		if (hca_s2_present(fn, get_le64(&rxd.addr), len, true) ==
		    HCA_MEM_FAULT &&
		    ask(fn, QHCA_FAULT_ETH_RX))
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
	return status == HCA_MEM_FAULT && ask(fn, QHCA_FAULT_ETH_RX) ?
	       STORE_ABSENT : STORE_LOST;
}

/* Put the frame into the next buffer and complete it. */
static enum store rx_store(struct hca_fn *fn, struct hca_ethq *q,
			   const uint8_t *frame, size_t len)
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
	if (!(q->rx_ci >> q->log_rx & 1))
		flags |= QHCA_RXC_PHASE;
	put_le32(&rxc.len, (uint32_t)len);
	put_le16(&rxc.index, (uint16_t)slot);
	put_le16(&rxc.vlan, vlan);
	put_le32(&rxc.flags, flags);
	if (hca_dma_write_release(fn, q->rxc_base + slot * RXC_SIZE, &rxc,
				  sizeof(rxc)))
		return STORE_LOST;
	q->rx_ci++;
	return STORE_OK;
}

static enum store rx_take(struct hca_fn *fn, struct hca_ethq *q,
			  const uint8_t *frame, size_t len)
{
	enum store store = STORE_LOST;

	if (have_buffer(fn, q))
		store = rx_store(fn, q, frame, len);
	look_ahead(fn, q);
	return store;
}

bool hca_eth_rx(struct hca_fn *fn, const uint8_t *frame, size_t len)
{
	struct hca_ethq *q = queue_get(fn, 0);

	if (!q || !mac_wanted(fn, frame)) {
		hca_count(fn, QHCA_CNT_eth_rx_filtered);
		return false;
	}
	switch (rx_take(fn, q, frame, len)) {
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
		interrupt(fn, q);
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

/* ------------------------------------------------------------------------
 * Doorbells and commands
 */
void hca_eth_tx_doorbell(struct hca_fn *fn, uint64_t value)
{
	struct hca_ethq *q = queue_get(fn, value & QHCA_DB_NUMBER);
	uint32_t pi = (uint32_t)(value >> 32);

	if (!q) {
		hca_count(fn, QHCA_CNT_doorbells_ignored);
		return;
	}
	if (pi - q->tx_ci > 1u << q->log_tx) {
		q->stopped = true;
		return;
	}
	hca_fn_wake(fn);
	q->tx_pi = pi;
	q->partial = false;
}

void hca_eth_resume(struct hca_fn *fn)
{
	for (unsigned int i = 0; i < HCA_NUM_ETH_QUEUES; i++) {
		fn->eth.queue[i].waits = false;
		if (fn->eth.queue[i].live)
			look_ahead(fn, &fn->eth.queue[i]);
	}
}

void hca_eth_arm_doorbell(struct hca_fn *fn, uint64_t value)
{
	struct hca_ethq *q = queue_get(fn, value & QHCA_DB_NUMBER);
	uint32_t seen = (uint32_t)(value >> 32);

	if (!q) {
		hca_count(fn, QHCA_CNT_doorbells_ignored);
		return;
	}
	q->armed = QHCA_GET(QHCA_DB_ETH_ARM_RX, seen) == (q->rx_ci & 0xffff) &&
		   QHCA_GET(QHCA_DB_ETH_ARM_TX, seen) ==
		   (q->tx_ci_told & 0xffff);
	if (!q->armed)
		interrupt(fn, q);
	look_ahead(fn, q);
}

enum qhca_cmd_status hca_cmd_set_mcast(struct hca_fn *fn,
				       struct hca_cmd_ctx *ctx)
{
	const struct qhca_mcast_list *in = (const void *)ctx->in;
	uint32_t count = get_le32(&in->count), i;

	if (count > QHCA_MAX_ETH_MCAST)
		return hca_cmd_bad(ctx, offsetof(struct qhca_mcast_list, count));
	for (i = 0; i < count; i++)
		if (!(in->entry[i].mac[0] & 1))
			return hca_cmd_bad(ctx, offsetof(struct qhca_mcast_list,
							 entry[i]));
	for (i = 0; i < count; i++)
		memcpy(fn->eth.mcast[i], in->entry[i].mac, 6);
	fn->eth.num_mcast = count;
	return QHCA_CMD_OK;
}

int hca_ethq_fault(const struct hca_fn *fn, const struct hca_ethq *q)
{
	if (q->tx_base & 63)
		return offsetof(struct qhca_ethq_config, tx_base);
	if (q->rx_base & 63)
		return offsetof(struct qhca_ethq_config, rx_base);
	if (q->rxc_base & 63)
		return offsetof(struct qhca_ethq_config, rxc_base);
	if (q->rec_base & 63)
		return offsetof(struct qhca_ethq_config, rec_base);
	if (q->log_tx > HCA_LIMIT_LOG_ETH_RING)
		return offsetof(struct qhca_ethq_config, log_tx);
	if (q->log_rx > HCA_LIMIT_LOG_ETH_RING)
		return offsetof(struct qhca_ethq_config, log_rx);
	if (q->vector >= fn->cfg.num_vectors)
		return offsetof(struct qhca_ethq_config, vector);
	return -1;
}

enum qhca_cmd_status hca_cmd_create_ethq(struct hca_fn *fn,
					 struct hca_cmd_ctx *ctx)
{
	const struct qhca_ethq_config *in = (const void *)ctx->in;
	struct hca_ethq q = {
		.live = true, .log_tx = in->log_tx, .log_rx = in->log_rx,
		.vector = get_le16(&in->vector),
		.tx_base = get_le64(&in->tx_base),
		.rx_base = get_le64(&in->rx_base),
		.rxc_base = get_le64(&in->rxc_base),
		.rec_base = get_le64(&in->rec_base),
	};
	int bad;

	bad = hca_ethq_fault(fn, &q);
	if (bad >= 0)
		return hca_cmd_bad(ctx, (size_t)bad);
	if (fn->eth.queue[ctx->index].live)
		return QHCA_CMD_IN_USE;
	fn->eth.queue[ctx->index] = q;
	return QHCA_CMD_OK;
}

enum qhca_cmd_status hca_cmd_destroy_ethq(struct hca_fn *fn,
					  struct hca_cmd_ctx *ctx)
{
	struct hca_ethq *q = queue_get(fn, ctx->index);

	if (!q)
		return QHCA_CMD_BAD_STATE;
	memset(q, 0, sizeof(*q));
	return QHCA_CMD_OK;
}
