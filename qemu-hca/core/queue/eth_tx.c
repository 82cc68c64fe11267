// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Transmission of Ethernet queues.
 *
 * Descriptors are copied before they are checked, since the driver can change
 * them at any time.  A ring that cannot be read stops its queue and nothing
 * else: RDMA goes on.
 */
#include "hca.h"
#include "wire/large_segment.h"
#include "wire/trailer.h"

#define TXD_SIZE	((uint32_t)sizeof(struct qhca_eth_txd))

struct frame {				/* descriptors of one frame */
	unsigned int num;
	uint32_t len;			/* bytes, before a tag is inserted */
	struct {
		uint64_t addr;
		uint32_t len;
	} frag[QHCA_MAX_TX_FRAGS];
	uint16_t flags, vlan, csum_start, csum_offset, mss, hdr_len;
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
	f->mss = get_le16(&txd->mss);
	f->hdr_len = get_le16(&txd->hdr_len);
}

/* Gather the descriptors of the frame at tx_ci, up to its EOP. */
static enum take take_frame(struct hca_fn *fn, const struct hca_ethq *q,
			    struct frame *f)
{
	struct qhca_eth_txd txd;
	bool too_long = false;

	f->flags = 0;
	for (f->num = 0, f->len = 0; q->tx_ci + f->num != q->tx_pi;) {
		if (f->num == QHCA_MAX_TX_FRAGS)
			return TAKE_BAD;
		if (read_txd(fn, q, q->tx_ci + f->num, &txd))
			return TAKE_STOP;
		if (f->num == 0)
			frame_first(f, &txd);
		f->frag[f->num].addr = get_le64(&txd.addr);
		f->frag[f->num].len = get_le32(&txd.len);
		if (f->frag[f->num].len > QHCA_MAX_TSO_FRAME)
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

/*
 * The longest frame that software may give, or segment of one.  Neither of two tags, as an
 * interface of a VLAN in a VLAN sends them, counts in the MTU.
 */
static uint32_t longest(const struct hca_fn *fn)
{
	return fn->port.eth_mtu + HCA_ETH_HLEN + 2 * HCA_VLAN_HLEN;
}

static struct hca_tso tso_of(const struct frame *f)
{
	return (struct hca_tso){
		.len = f->len, .mss = f->mss, .hdr_len = f->hdr_len,
		.l4 = f->csum_start,
	};
}

static bool tso_valid(const struct hca_fn *fn, const struct frame *f)
{
	struct hca_tso tso = tso_of(f);

	return fn->features & QHCA_FEAT_ETH_TSO && f->flags & QHCA_TXD_CSUM &&
	       f->csum_offset == HCA_TSO_CSUM && hca_tso_valid(&tso, longest(fn));
}

static bool frame_valid(const struct hca_fn *fn, const struct frame *f)
{
	if (f->flags & QHCA_TXD_TSO)
		return tso_valid(fn, f);
	if (f->len < HCA_ETH_HLEN || f->len > longest(fn))
		return false;
	return !(f->flags & QHCA_TXD_CSUM) ||
	       (uint32_t)f->csum_start + f->csum_offset + 2 <= f->len;
}

/*
 * Copy @len bytes of the frame from byte @skip on, which it has, to @p.  -1: some cannot
 * be read.
 */
static int gather(struct hca_fn *fn, const struct frame *f, uint32_t skip,
		  uint32_t len, uint8_t *p)
{
	for (unsigned int i = 0; len; i++) {
		uint32_t part = f->frag[i].len;

		if (skip >= part) {
			skip -= part;
			continue;
		}
		part -= skip;
		if (part > len)
			part = len;
		if (hca_s2_fetch(fn, f->frag[i].addr + skip, 0, p, part))
			return -1;
		skip = 0;
		p += part;
		len -= part;
	}
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

static size_t room_for(uint32_t frame)
{
	size_t len = frame + HCA_VLAN_HLEN;

	return len < HCA_MIN_FRAME ? HCA_MIN_FRAME : len;
}

/*
 * Frames are built in memory of the link.  The payload is read to its final place; only
 * the two addresses move when a tag is inserted.
 */
static uint8_t *place(const struct frame *f, uint8_t *room)
{
	return room + (f->flags & QHCA_TXD_VLAN ? HCA_VLAN_HLEN : 0);
}

/*
 * Send what lies at place(), @len bytes.  false: it goes nowhere.  @sent: the bytes that were
 * sent.
 */
static bool end_built(struct hca_fn *fn, const struct frame *f, uint8_t *room,
		      size_t len, size_t *sent)
{
	if (f->flags & QHCA_TXD_VLAN) {
		memmove(room, room + HCA_VLAN_HLEN, 12);
		put_be16(room + 12, HCA_ETHERTYPE_VLAN);
		put_be16(room + 14, f->vlan);
		len += HCA_VLAN_HLEN;
	}
	if (len < HCA_MIN_FRAME) {
		memset(room + len, 0, HCA_MIN_FRAME - len);
		len = HCA_MIN_FRAME;
	}
	*sent = len;
	return hca_tx_eth_end(fn, len);
}

static void send_built(struct hca_fn *fn, const struct frame *f, uint8_t *room,
		       size_t len)
{
	if (!end_built(fn, f, room, len, &len))
		return;
	hca_count(fn, QHCA_CNT_eth_tx_packets);
	hca_count_n(fn, QHCA_CNT_eth_tx_bytes, len);
	hca_rate_sent(fn, len);
}

/* The bytes of @num frames, of which the last one has what the others leave of @payload. */
static uint32_t bytes_of(const struct frame *f, uint32_t payload, unsigned int num)
{
	uint32_t headers = f->hdr_len, last;

	if (f->flags & QHCA_TXD_VLAN)
		headers += HCA_VLAN_HLEN;
	last = headers + payload - (num - 1) * f->mss;
	if (last < HCA_MIN_FRAME)
		last = HCA_MIN_FRAME;
	return (num - 1) * (headers + f->mss) + last;
}

/* Send @num segments in one frame, and count what each of them would be. */
static void send_large(struct hca_fn *fn, const struct frame *f, uint8_t *room,
		       uint32_t payload, unsigned int num)
{
	size_t len = f->hdr_len + (size_t)payload + HCA_TRAILER;

	if (!end_built(fn, f, room, len, &len))
		return;
	fn->hca->bundles.large_sent++;
	hca_count_n(fn, QHCA_CNT_eth_tx_packets, num);
	hca_count_n(fn, QHCA_CNT_eth_tx_bytes, bytes_of(f, payload, num));
	hca_rate_sent(fn, len);
}

/* What becomes of a frame. */
enum send {
	SEND_DONE,			/* it is software's again */
	SEND_BAD,			/* likewise, and counts as an error */
	SEND_LATER,			/* there is no room, or no turn for the rest */
};

static enum send send_whole(struct hca_fn *fn, const struct frame *f)
{
	uint8_t *room = hca_tx_eth_begin(fn, room_for(f->len));

	if (!room)
		return SEND_LATER;
	if (gather(fn, f, 0, f->len, place(f, room)))
		return SEND_BAD;
	complete_csum(fn, f, place(f, room));
	send_built(fn, f, room, f->len);
	return SEND_DONE;
}

/* Frames to several receivers are as much work as one to each of them. */
static unsigned int take_copies(struct hca *hca)
{
	unsigned int copies = hca->wire.copies;

	hca->wire.copies = 0;
	return copies;
}

static uint16_t tag_of(const struct frame *f)
{
	return f->flags & QHCA_TXD_VLAN ? f->vlan : HCA_VLAN_NONE;
}

/*
 * Send the next segment of a frame whose headers are at @hdr, or the next ones that stay
 * together, @budget at most.  @num: how many.
 */
static enum send send_segment(struct hca_fn *fn, struct hca_ethq *q,
			      const struct frame *f, const struct hca_tso *tso,
			      const uint8_t *hdr, unsigned int budget,
			      unsigned int *num)
{
	uint8_t *room, *p;
	uint32_t len;

	if (hca_rate_waits(fn))
		return SEND_LATER;
	len = hca_large_payload(fn, tso, hdr, tag_of(f), q->tx_sent, budget);
	*num = (len + tso->mss - 1u) / tso->mss;
	room = hca_tx_eth_begin(fn, room_for(tso->hdr_len + len +
					     (*num > 1 ? HCA_TRAILER : 0)));
	if (!room)
		return SEND_LATER;
	p = place(f, room);
	memcpy(p, hdr, tso->hdr_len);
	if (gather(fn, f, tso->hdr_len + q->tx_sent, len, p + tso->hdr_len))
		return SEND_BAD;
	hca_tso_finish(tso, p, q->tx_sent, len);
	if (*num > 1) {
		hca_trailer_put(p + tso->hdr_len + len, tso->mss);
		send_large(fn, f, room, len, *num);
	} else {
		send_built(fn, f, room, tso->hdr_len + len);
	}
	q->tx_sent += len;
	return SEND_DONE;
}

/*
 * Send up to @budget segments, and count them in @done.  Whoever changes descriptors or
 * headers between two calls gets segments that do not go together, or an error.
 */
static enum send send_segments(struct hca_fn *fn, struct hca_ethq *q,
			       const struct frame *f, unsigned int budget,
			       unsigned int *done)
{
	struct hca_tso tso = tso_of(f);
	uint8_t hdr[QHCA_MAX_TSO_HDR];
	enum send send = SEND_DONE;
	unsigned int num;

	if (gather(fn, f, 0, tso.hdr_len, hdr) || !hca_tso_parse(&tso, hdr) ||
	    q->tx_sent >= tso.len - tso.hdr_len)
		return SEND_BAD;
	while (q->tx_sent != tso.len - tso.hdr_len) {
		if (*done >= budget)
			return SEND_LATER;
		send = send_segment(fn, q, f, &tso, hdr, budget - *done, &num);
		if (send != SEND_DONE)
			return send;
		*done += num + take_copies(fn->hca);
	}
	hca_count(fn, QHCA_CNT_eth_tx_tso);
	return SEND_DONE;
}

/* Send a frame, which is valid, or so much of it as @budget allows. */
static enum send send_frame(struct hca_fn *fn, struct hca_ethq *q,
			    const struct frame *f, unsigned int budget,
			    unsigned int *done)
{
	if (hca_rate_waits(fn))
		return SEND_LATER;
	if (!hca_tx_eth_linked(fn))
		return SEND_DONE;
	if (frame_waits(fn, q, f))
		return SEND_LATER;
	if (f->flags & QHCA_TXD_TSO)
		return send_segments(fn, q, f, budget, done);
	return send_whole(fn, f);
}

/*
 * Take one frame from the ring, or what @budget allows of one that is segmented.  Returns
 * how much work that was; 0: there is nothing to do now.
 */
static unsigned int tx_one(struct hca_fn *fn, struct hca_ethq *q,
			   unsigned int budget)
{
	enum send send = SEND_BAD;
	unsigned int done = 0;
	struct frame f;

	if (q->stopped || q->waits || q->tx_ci == q->tx_pi)
		return 0;
	if (q->skip) {
		skip_frame(fn, q);
		return 1;
	}
	switch (take_frame(fn, q, &f)) {
	case TAKE_WAIT:
		q->partial = true;
		return 0;
	case TAKE_STOP:
		q->stopped = true;	/* until the queue is destroyed */
		return 0;
	case TAKE_BAD:
		hca_count(fn, QHCA_CNT_eth_tx_errors);
		q->tx_sent = 0;
		skip_frame(fn, q);
		return 1;
	case TAKE_OK:
		break;
	}
	if (frame_valid(fn, &f))
		send = send_frame(fn, q, &f, budget, &done);
	if (send == SEND_LATER)
		return done;
	if (send == SEND_BAD)
		hca_count(fn, QHCA_CNT_eth_tx_errors);
	q->tx_sent = 0;
	q->tx_ci += f.num;
	return done ? done : 1 + take_copies(fn->hca);
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

/* Let a queue send while it has something to send, and tell what it has sent. */
static unsigned int run_queue(struct hca_fn *fn, struct hca_ethq *q,
			      unsigned int budget)
{
	unsigned int done = 0, did;

	for (did = 1; did && done < budget && hca_wire_takes_eth(fn) &&
	     !q->partial; done += did)
		did = tx_one(fn, q, budget - done);
	tx_tell(fn, q);
	hca_ethq_update(fn, q);
	return done;
}

/* The next call begins behind the queue with which this one has begun. */
unsigned int hca_eth_run(struct hca_fn *fn, unsigned int budget)
{
	struct hca_eth *eth = &fn->eth;
	unsigned int done = 0, first = eth->turn, i;

	take_copies(fn->hca);
	for (i = 0; i < HCA_NUM_ETH_QUEUES && eth->posted && done < budget; i++) {
		unsigned int number = (first + i) % HCA_NUM_ETH_QUEUES;

		if (!(eth->posted >> number & 1))
			continue;
		if (!done)
			eth->turn = (uint8_t)((number + 1) % HCA_NUM_ETH_QUEUES);
		done += run_queue(fn, &eth->queue[number], budget - done);
	}
	return done;
}

bool hca_eth_pending(const struct hca_fn *fn)
{
	return fn->eth.posted && !hca_rate_is_held(fn);
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
	} else {
		hca_fn_wake(fn);
		q->tx_pi = pi;
		q->partial = false;
		if (pi == q->tx_ci)
			q->tx_sent = 0;		/* software has taken the frame back */
	}
	hca_ethq_update(fn, q);
}
