// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "verify.h"

void wrong(struct job *job, const struct lane *lane, const char *format, ...)
{
	char text[400];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	die("%s, seed %llu, round %u, lane %d: %s", job->peer.server ? "server" : "client",
	    (unsigned long long)job->set.seed, job->round, lane ? (int)lane->index : -1, text);
}

static struct lane *lane_of(struct job *job, const struct ibv_wc *wc)
{
	for (unsigned int i = 0; i < job->set.lanes; i++)
		if (job->lane[i].qp->qp_num == wc->qp_num ||
		    (job->lane[i].target && job->lane[i].target->qp_num == wc->qp_num))
			return &job->lane[i];
	wrong(job, NULL, "a completion of QP %u, which is not ours", wc->qp_num);
}

void check_send(struct job *job, const struct ibv_wc *wc)
{
	static const enum ibv_wc_opcode opcodes[OP_KINDS] = {
		IBV_WC_SEND, IBV_WC_SEND, IBV_WC_RDMA_WRITE, IBV_WC_RDMA_WRITE,
		IBV_WC_RDMA_READ, IBV_WC_COMP_SWAP, IBV_WC_FETCH_ADD,
		IBV_WC_ATOMIC_WRITE, IBV_WC_FLUSH,
	};
	struct lane *lane = lane_of(job, wc);
	unsigned int i = (uint32_t)wc->wr_id;
	const struct op *op = &lane->mine[i];

	if (wc->wr_id >> 32 != lane->index || i < lane->completed || i >= lane->posted)
		wrong(job, lane, "send completion %llx, posted %u, completed %u",
		      (unsigned long long)wc->wr_id, lane->posted, lane->completed);
	for (unsigned int k = lane->completed; k < i; k++)
		if (lane->mine[k].signalled)
			wrong(job, lane, "operation %u completes before %u", i, k);
	if (wc->status != IBV_WC_SUCCESS)
		wrong(job, lane, "%s of %u bytes (operation %u of %u): %s, vendor error %#x",
		      op_names[op->kind], op->size, i, lane->n_mine, ibv_wc_status_str(wc->status),
		      wc->vendor_err);
	if (!op->signalled)
		wrong(job, lane, "operation %u was not signalled", i);
	if (wc->opcode != opcodes[op->kind])
		wrong(job, lane, "%s completes with opcode %d", op_names[op->kind], wc->opcode);
	for (unsigned int k = lane->completed; k <= i; k++) {
		op = &lane->mine[k];
		if (!op_gathers(op->kind) && layout_differs(&lane->arena, &op->local))
			wrong(job, lane, "%s of %u bytes from %#x (operation %u) returned wrong data",
			      op_names[op->kind], op->size, op->remote, k);
	}
	lane->completed = i + 1;
}

/* A UD receive's first 40 bytes: zero and an IPv4 header, or an IPv6 header. */
static void check_grh(struct job *job, struct lane *lane, const uint8_t *grh)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	const uint8_t *src = lane->remote.gid.raw, *dst = job->peer.gid.raw;

	if (!memcmp(src, mapped, 12)) {
		if (grh[20] != 0x45 || grh[29] != 17 || memcmp(grh + 32, src + 12, 4) ||
		    memcmp(grh + 36, dst + 12, 4))
			wrong(job, lane, "the GRH holds no IPv4 header of the sender");
	} else if (grh[0] >> 4 != 6 || grh[6] != 17 || memcmp(grh + 8, src, 16) ||
		   memcmp(grh + 24, dst, 16)) {
		wrong(job, lane, "the GRH holds no IPv6 header of the sender");
	}
}

/* The operation that a message is: the next one, or in LOSSY mode what its tag says. */
static struct op *sender_of(struct job *job, struct lane *lane, const uint8_t *data, uint32_t len,
			    uint32_t *index, uint32_t *round)
{
	if (job->set.flags & LOSSY) {
		if (!parse_tag(data, len, round, index))
			wrong(job, lane, "a message of %u bytes has no tag", len);
		return *round == job->round && *index < lane->n_theirs ? &lane->theirs[*index] : NULL;
	}
	while (lane->arrived < lane->n_theirs && !op_takes_receive(lane->theirs[lane->arrived].kind))
		lane->arrived++;
	if (lane->arrived == lane->n_theirs)
		wrong(job, lane, "one receive more than messages");
	*round = job->round;
	*index = lane->arrived++;
	return &lane->theirs[*index];
}

static void check_message(struct job *job, struct lane *lane, const struct ibv_wc *wc,
			  const struct op *op)
{
	enum ibv_wc_opcode opcode = op_is_send(op->kind) ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM;
	uint32_t len = op->size + (job->set.type == IBV_QPT_UD ? GRH_LEN : 0);

	if (wc->opcode != opcode)
		wrong(job, lane, "%s arrives with opcode %d", op_names[op->kind], wc->opcode);
	if (wc->byte_len != len)
		wrong(job, lane, "%s of %u bytes arrives with byte_len %u", op_names[op->kind],
		      len, wc->byte_len);
	if (!!(wc->wc_flags & IBV_WC_WITH_IMM) != op_carries_imm(op->kind))
		wrong(job, lane, "%s arrives with flags %#x", op_names[op->kind], wc->wc_flags);
	if (op_carries_imm(op->kind) && be32toh(wc->imm_data) != op->imm)
		wrong(job, lane, "%s arrives with immediate %#x, not %#x", op_names[op->kind],
		      be32toh(wc->imm_data), op->imm);
	if (job->set.type == IBV_QPT_UD &&
	    (!(wc->wc_flags & IBV_WC_GRH) || wc->src_qp != lane->remote.qpn))
		wrong(job, lane, "a datagram arrives from QP %u with flags %#x", wc->src_qp, wc->wc_flags);
}

void check_receive(struct job *job, const struct ibv_wc *wc)
{
	unsigned int header = job->set.type == IBV_QPT_UD ? GRH_LEN : 0, i = (uint32_t)wc->wr_id;
	struct lane *lane = lane_of(job, wc);
	struct slot *slot = &job->slot[i];
	uint32_t index, round;
	struct op *op;

	if (!(wc->wr_id & RECEIVE_ID) || i >= job->posted_slots || slot->done)
		wrong(job, lane, "receive completion %llx", (unsigned long long)wc->wr_id);
	if (wc->status != IBV_WC_SUCCESS)
		wrong(job, lane, "receive of %u bytes: %s, vendor error %#x", slot->size,
		      ibv_wc_status_str(wc->status), wc->vendor_err);
	for (unsigned int k = 0; !job->srq && k < i; k++)
		if (!job->slot[k].done && job->slot_lane[k] == lane->index)
			wrong(job, lane, "receive %u completes before %u", i, k);
	if (job->set.flags & LOSSY && (wc->byte_len < header + TAG_LEN || wc->byte_len > slot->size))
		wrong(job, lane, "a message of %u bytes", wc->byte_len);
	slot->done = true;
	job->received++;
	if (job->set.flags & LOSSY)
		gather(job->inbox.mem, &slot->layout, job->scratch, wc->byte_len);
	op = sender_of(job, lane, job->scratch + header, wc->byte_len - header, &index, &round);
	if (op)
		check_message(job, lane, wc, op);
	if (wc->opcode != IBV_WC_RECV)
		return;
	make_payload(&job->set, !mine(job), lane->index, round, index, job->scratch + header,
		     wc->byte_len - header);
	if (header) {
		gather(job->inbox.mem, &slot->layout, job->scratch, header);
		check_grh(job, lane, job->scratch);
	}
	scatter(job->inbox.model, &slot->layout, job->scratch, wc->byte_len);
	if (layout_differs(&job->inbox, &slot->layout))
		wrong(job, lane, "%u bytes arrived wrong (operation %u of round %u)", wc->byte_len,
		      index, round);
}
