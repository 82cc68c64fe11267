// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "traffic.h"

#define GRH	40u	/* bytes in front of a datagram */

/* In front of each message. */
struct head {
	uint64_t number;
	uint64_t lane;
};

static uint8_t *receive_slot(const struct traffic *t, uint32_t slot)
{
	return t->mem + (size_t)slot * t->shape->size;
}

static uint8_t *send_slot(const struct traffic *t, unsigned int lane, uint32_t slot)
{
	return receive_slot(t, SRQ_SLOTS + lane * t->shape->depth + slot);
}

/* A device that is gone refuses all requests; its event tells of that. */
static void posted(struct traffic *t, int rc, const char *what)
{
	if (rc && rc != EIO)
		flow_bad(&t->flow, "%s: %s", what, strerror(rc));
}

void post_receive(struct traffic *t, uint32_t slot)
{
	struct ibv_sge sge = {
		(uintptr_t)receive_slot(t, slot), t->shape->size, t->mr->lkey,
	};
	struct ibv_recv_wr wr = { .wr_id = slot, .sg_list = &sge, .num_sge = 1 }, *failed;

	posted(t, ibv_post_srq_recv(t->srq, &wr, &failed), "ibv_post_srq_recv");
}

/* READs and WRITEs take turns; one reads what no one writes. */
static void build_access(struct traffic *t, struct lane *l, struct ibv_send_wr *wr)
{
	unsigned int lane = l - t->lane;
	uint32_t slot = l->posted % t->shape->depth;
	uint64_t window = (uint64_t)t->shape->depth * t->shape->size;

	wr->opcode = slot % 2 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE;
	wr->wr.rdma.remote_addr = l->target + (uint64_t)slot * t->shape->size;
	wr->wr.rdma.rkey = l->rkey;
	if (wr->opcode == IBV_WR_RDMA_READ) {
		wr->wr.rdma.remote_addr += window * READ_ONLY;
		wr->sg_list->addr = (uintptr_t)part_of(t, lane, READ_INTO, slot);
		memset(part_of(t, lane, READ_INTO, slot), 0, t->shape->size);
	} else {
		wr->sg_list->addr = (uintptr_t)part_of(t, lane, SOURCE, slot);
	}
	wr->sg_list->length = t->shape->size;
}

static void build_message(struct traffic *t, struct lane *l, struct ibv_send_wr *wr)
{
	unsigned int lane = l - t->lane;
	struct head head = { .number = l->sent, .lane = lane };
	uint8_t *slot = send_slot(t, lane, l->posted % t->shape->depth);
	/* All sizes to the largest, in no order that a queue's depth divides. */
	uint32_t room = t->shape->size - sizeof(head) - (t->shape->type == IBV_QPT_UD ? GRH : 0);
	uint32_t len = l->sent * 37 % (room + 1);

	memcpy(slot, &head, sizeof(head));
	flow_fill(slot + sizeof(head), head.number * LANES + lane, 0, len);
	wr->opcode = IBV_WR_SEND;
	wr->sg_list->addr = (uintptr_t)slot;
	wr->sg_list->length = sizeof(head) + len;
	if (l->ah) {
		wr->wr.ud.ah = l->ah;
		wr->wr.ud.remote_qpn = l->there.qpn;
		wr->wr.ud.remote_qkey = TEST_QKEY;
	}
}

bool lane_post(struct traffic *t, struct lane *l, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *failed;
	int rc;

	wr->wr_id = (l - t->lane) | (uint64_t)l->posted << 8;
	wr->send_flags = IBV_SEND_SIGNALED;
	rc = ibv_post_send(l->qp, wr, &failed);
	if (rc) {
		posted(t, rc, "ibv_post_send");
		return false;
	}
	l->posted++;
	return true;
}

void lane_fill(struct traffic *t, struct lane *l)
{
	while (!l->ended && l->posted - l->done < t->shape->depth) {
		struct ibv_sge sge = { .lkey = t->mr->lkey };
		struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1 };

		if (t->shape->memory)
			build_access(t, l, &wr);
		else
			build_message(t, l, &wr);
		if (!lane_post(t, l, &wr))
			return;
		l->sent++;
	}
}

static void lane_error(struct traffic *t, struct lane *l, enum ibv_wc_status status)
{
	t->statuses |= 1u << status;
	if (l->ended)
		return;
	l->ended = true;
	t->ended++;
}

void complete_send(struct traffic *t, const struct ibv_wc *wc)
{
	unsigned int lane = wc->wr_id & 0xff;
	struct lane *l = &t->lane[lane];
	uint32_t slot = l->done % t->shape->depth;

	if (wc->wr_id >> 8 != l->done)
		flow_bad(&t->flow, "request %llu completed in place of %u",
			 (unsigned long long)wc->wr_id >> 8, l->done);
	l->done++;
	if (wc->status != IBV_WC_SUCCESS) {
		lane_error(t, l, wc->status);
		return;
	}
	t->flow.sent++;
	if (!t->shape->memory || t->shape->answers)
		return;
	if (wc->opcode == IBV_WC_RDMA_READ) {
		uint64_t off = (uint64_t)slot * t->shape->size;

		if (flow_check(part_of(t, lane, READ_INTO, slot),
			       part_seed(!t->peer.server, lane, READ_ONLY), off, t->shape->size))
			t->flow.verified++;
		else
			flow_bad(&t->flow, "lane %u: a READ brought wrong bytes", lane);
	} else {
		/* The data that the peer has written by now show how far it is. */
		uint64_t off = (uint64_t)slot * t->shape->size;

		if (!flow_check_partly(part_of(t, lane, WRITTEN, slot),
				       part_seed(!t->peer.server, lane, SOURCE), off,
				       t->shape->size))
			flow_bad(&t->flow, "lane %u: the peer wrote wrong bytes", lane);
	}
}

static void verify_message(struct traffic *t, const uint8_t *slot, const struct ibv_wc *wc)
{
	uint32_t len = wc->byte_len;
	struct lane *l;
	struct head head;

	if (t->shape->type == IBV_QPT_UD) {
		slot += GRH;
		len -= GRH;
	}
	memcpy(&head, slot, sizeof(head));
	if (len < sizeof(head) || head.lane >= t->shape->lanes) {
		flow_bad(&t->flow, "a message of %u bytes without a head", len);
		return;
	}
	l = &t->lane[head.lane];
	if (l->qp->qp_num != wc->qp_num || head.number < l->expected ||
	    (t->shape->type == IBV_QPT_RC && head.number != l->expected)) {
		flow_bad(&t->flow, "lane %llu: message %llu in place of %llu",
			 (unsigned long long)head.lane, (unsigned long long)head.number,
			 (unsigned long long)l->expected);
		return;
	}
	l->expected = head.number + 1;
	if (flow_check(slot + sizeof(head), head.number * LANES + head.lane, 0, len - sizeof(head)))
		t->flow.verified++;
	else
		flow_bad(&t->flow, "lane %llu: message %llu has wrong bytes",
			 (unsigned long long)head.lane, (unsigned long long)head.number);
}

void complete_receive(struct traffic *t, const struct ibv_wc *wc)
{
	if (wc->status != IBV_WC_SUCCESS) {
		t->statuses |= 1u << wc->status;
		return;
	}
	verify_message(t, receive_slot(t, wc->wr_id), wc);
	post_receive(t, wc->wr_id);
}
