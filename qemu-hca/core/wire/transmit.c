// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Frames out: the device reserves room for a frame, builds it there and
 * commits it.
 *
 * A frame is built in the host's transmit ring, so that it is copied only when
 * it is also looped back.  Room in both the ring and the loopback queue is
 * required before a frame begins, since its destination is known only when it
 * is complete.  While the link is down the device builds frames in a scratch
 * buffer, and only those that are looped back arrive.
 */
#include <stdlib.h>

#include "hca.h"

#define IPV4_HLEN	20
#define IPV6_HLEN	40

bool hca_wire_create(struct hca *hca)
{
	struct hca_wire *w = &hca->wire;

	w->scratch = malloc(QHCA_MAX_FRAME);
	w->rx_scratch = malloc(QHCA_MAX_FRAME);
	w->loop = malloc((size_t)HCA_LOOP_FRAMES * QHCA_MAX_FRAME);
	return w->scratch && w->rx_scratch && w->loop;
}

void hca_wire_destroy(struct hca *hca)
{
	free(hca->wire.scratch);
	free(hca->wire.rx_scratch);
	free(hca->wire.loop);
	memset(&hca->wire, 0, sizeof(hca->wire));
}

void hca_wire_reset(struct hca *hca)
{
	hca->wire.tx_frame = NULL;
	hca->wire.loop_ci = hca->wire.loop_pi;
	hca->wire.tx_no_loop = false;
	/*
	 * A host without room reports this again, and one that has dropped its
	 * frames may not.
	 */
	hca->wire.tx_blocked = false;
}
static bool loop_full(const struct hca_wire *w)
{
	return w->loop_pi - w->loop_ci == HCA_LOOP_FRAMES;
}

static void loop_push(struct hca_fn *fn, const uint8_t *frame, size_t len)
{
	struct hca_wire *w = &fn->hca->wire;
	uint32_t slot = w->loop_pi % HCA_LOOP_FRAMES;

	if (loop_full(w))
		return;			/* the frame is lost, as on a wire */
	memcpy(w->loop + (size_t)slot * QHCA_MAX_FRAME, frame, len);
	w->loop_len[slot] = (uint32_t)len;
	w->loop_pi++;
	hca_count(fn, QHCA_CNT_loopback_packets);
}

uint8_t *hca_tx_begin(struct hca_fn *fn, size_t max_len)
{
	struct hca_wire *w = &fn->hca->wire;

	w->tx_frame = NULL;
	if (max_len > QHCA_MAX_FRAME || loop_full(w))
		return NULL;
	w->tx_scratch = !fn->hca->link_up;
	if (w->tx_scratch) {
		w->tx_frame = w->scratch;
	} else if (!w->tx_blocked) {
		w->tx_frame = fn->hca->ops.tx_reserve(fn->hca->host, max_len);
		w->tx_blocked = !w->tx_frame;
	}
	w->tx_room = max_len;
	return w->tx_frame;
}

/* Does the frame at @frame go to this device, to the link, or to both? */
static bool loops_only(struct hca_fn *fn, const uint8_t *frame)
{
	return !(frame[0] & 1) && hca_mac_is_ours(fn, frame);
}

static bool loops_too(const struct hca_fn *fn, const uint8_t *frame)
{
	return frame[0] & 1 && fn->port.num_members &&
	       !fn->hca->wire.tx_no_loop;
}

/* Commit the frame last reserved, or loop it back. */
static void emit(struct hca_fn *fn, const uint8_t *frame, size_t len)
{
	if (loops_only(fn, frame)) {
		loop_push(fn, frame, len);
		return;
	}
	if (loops_too(fn, frame))
		loop_push(fn, frame, len);
	if (!fn->hca->wire.tx_scratch)
		fn->hca->ops.tx_commit(fn->hca->host, len);
}

/* The offset of the BTH in a frame that this device has built. */
static size_t own_bth_offset(const uint8_t *frame)
{
	size_t off = HCA_ETH_HLEN;
	uint16_t ethertype = get_be16(frame + 12);

	if (ethertype == HCA_ETHERTYPE_VLAN) {
		ethertype = get_be16(frame + 16);
		off += HCA_VLAN_HLEN;
	}
	return off + HCA_UDP_HLEN +
	       (ethertype == HCA_ETHERTYPE_IPV6 ? IPV6_HLEN : IPV4_HLEN);
}

void hca_tx_end(struct hca_fn *fn, size_t len)
{
	struct hca_wire *w = &fn->hca->wire;
	uint8_t *frame = w->tx_frame;

	w->tx_frame = NULL;
	if (!frame || len > w->tx_room || len < HCA_ETH_HLEN)
		return;
	hca_count(fn, QHCA_CNT_tx_packets);
	hca_count_n(fn, QHCA_CNT_tx_bytes, len);
	if (!hca_inject_active(&fn->hca->inject, false)) {
		emit(fn, frame, len);
	} else if (hca_inject_apply(fn, frame, len, own_bth_offset(frame),
				    false)) {
		emit(fn, frame, len);
		hca_inject_passed(&fn->hca->inject, false, fn->hca->now);
	}
	w->tx_no_loop = false;
}

void hca_tx_raw(struct hca_fn *fn, size_t len)
{
	struct hca_wire *w = &fn->hca->wire;
	uint8_t *frame = w->tx_frame;
	bool stays;

	w->tx_frame = NULL;
	if (!frame || len > w->tx_room || len < HCA_ETH_HLEN)
		return;
	stays = loops_only(fn, frame);
	hca_count(fn, QHCA_CNT_raw_tx_packets);
	if (stays || hca_flow_wants(fn, frame, len))
		loop_push(fn, frame, len);
	if (!stays && !w->tx_scratch)
		fn->hca->ops.tx_commit(fn->hca->host, len);
}

bool hca_tx_release(struct hca_fn *fn, const struct hca_inject_frame *f)
{
	uint8_t *frame = hca_tx_begin(fn, f->len);

	if (!frame)
		return false;
	memcpy(frame, hca_inject_data(&fn->hca->inject, f), f->len);
	fn->hca->wire.tx_frame = NULL;
	emit(fn, frame, f->len);
	return true;
}

void qhca_tx_ready(struct qhca_hca *dev, uint64_t now)
{
	struct hca *hca = &dev->hca;

	if (!hca->entered)
		hca->now = now;
	hca->wire.tx_blocked = false;
}
