// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Rings of EQs and CQs, made by hand */
#include "host.h"

#include "bytes.h"

struct ring host_ring(struct host *h, unsigned int log_depth)
{
	struct ring r = { .log_depth = log_depth };
	size_t size = (size_t)64 << log_depth;

	if (size < 128)
		size = 128;
	r.base = host_alloc(h, size + 128, 128);
	r.rec_offset = (uint32_t)size;
	r.record = r.base + size;
	put_le64(&r.buf.base, r.base);
	put_le32(&r.buf.length, (uint32_t)size + 128);
	return r;
}

enum qhca_cmd_status host_create_eq(struct host *h, uint32_t eqn,
				    const struct ring *ring, uint16_t vector)
{
	struct qhca_eqc_sw in = {
		.buf = ring->buf, .log_depth = (uint8_t)ring->log_depth,
	};

	put_le32(&in.rec_offset, ring->rec_offset);
	put_le16(&in.vector, vector);
	return host_cmd(h, QHCA_CMD_CREATE_EQ, eqn, 0, &in, sizeof(in), NULL,
			0);
}

enum qhca_cmd_status host_create_cq(struct host *h, uint32_t cqn,
				    const struct ring *ring, uint32_t eqn)
{
	struct qhca_cqc_sw in = {
		.buf = ring->buf, .log_depth = (uint8_t)ring->log_depth,
	};

	put_le32(&in.rec_offset, ring->rec_offset);
	put_le32(&in.eqn, eqn);
	put_le32(&in.threshold, 1u << ring->log_depth);
	return host_cmd(h, QHCA_CMD_CREATE_CQ, cqn, 0, &in, sizeof(in), NULL,
			0);
}

static uint64_t entry(const struct ring *ring, uint32_t i)
{
	return ring->base + 64ull * (i & ((1u << ring->log_depth) - 1));
}

struct qhca_eqe *host_eqe(struct host *h, const struct ring *ring, uint32_t i)
{
	return host_ptr(h, entry(ring, i));
}

struct qhca_cqe *host_cqe(struct host *h, const struct ring *ring, uint32_t i)
{
	return host_ptr(h, entry(ring, i));
}

static bool phase_of(const struct ring *ring, uint32_t i)
{
	return !(i >> ring->log_depth & 1);
}

bool host_eqe_valid(struct host *h, const struct ring *ring, uint32_t i)
{
	return !!(get_le32(&host_eqe(h, ring, i)->phase) & QHCA_PHASE) ==
	       phase_of(ring, i);
}

bool host_cqe_valid(struct host *h, const struct ring *ring, uint32_t i)
{
	return !!(get_le32(&host_cqe(h, ring, i)->flags) & QHCA_PHASE) ==
	       phase_of(ring, i);
}

void host_set_ci(struct host *h, const struct ring *ring, uint32_t ci)
{
	put_le32(host_ptr(h, ring->record), ci);
}
