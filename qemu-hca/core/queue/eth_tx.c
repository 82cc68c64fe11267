// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Transmission of Ethernet queues.
 *
 * Descriptors are copied before they are checked, since the driver can change
 * them at any time.  A ring that cannot be read stops its queue and nothing
 * else: RDMA goes on.
 */
#include "hca.h"

#define TXD_SIZE	((uint32_t)sizeof(struct qhca_eth_txd))

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

/* Must the frame wait for one of its fragments? */
static bool frame_waits(struct hca_fn *fn, struct hca_ethq *q,
			const struct frame *f)
{
	unsigned int i;

	for (i = 0; fn->s2.mode && i < f->num; i++)
		if (hca_s2_present(fn, f->frag[i].addr, f->frag[i].len,
				   false) == HCA_MEM_FAULT) {
			q->waits = hca_ethq_ask(fn, QHCA_FAULT_ETH_TX);
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
		hca_ethq_interrupt(fn, q);
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

void hca_eth_tx_doorbell(struct hca_fn *fn, uint64_t value)
{
	struct hca_ethq *q = hca_ethq_get(fn, value & QHCA_DB_NUMBER);
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
