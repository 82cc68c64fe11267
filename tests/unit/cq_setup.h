/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A CQ with its EQ, and the operations that its tests use.
 */
#ifndef QHCA_TEST_CQ_SETUP_H
#define QHCA_TEST_CQ_SETUP_H

#include "unit.h"

#define CQN	9u
#define PAGE	3u

struct setup {
	struct host *h;
	struct ring cq, eq;
};

struct options {
	unsigned int log_depth;
	uint32_t threshold;
	uint16_t moder_count, moder_usec;
	uint8_t flags;
};

static inline struct setup setup(struct options o)
{
	struct setup s = { .h = host_new_ready() };
	struct qhca_cqc_sw in = { 0 };

	s.eq = host_ring(s.h, 6);
	s.cq = host_ring(s.h, o.log_depth);
	assert_int_equal(host_create_eq(s.h, 0, &s.eq, 0), QHCA_CMD_OK);
	in.buf = s.cq.buf;
	in.log_depth = (uint8_t)o.log_depth;
	in.flags = o.flags;
	put_le32(&in.rec_offset, s.cq.rec_offset);
	put_le32(&in.db_page, PAGE);
	put_le32(&in.threshold, o.threshold);
	put_le16(&in.moder_count, o.moder_count);
	put_le16(&in.moder_usec, o.moder_usec);
	assert_int_equal(host_cmd(s.h, QHCA_CMD_CREATE_CQ, CQN, 0, &in,
				  sizeof(in), NULL, 0), QHCA_CMD_OK);
	return s;
}

static inline bool post(struct setup *s, uint32_t n, uint8_t status, bool solicited)
{
	struct qhca_cqe cqe = { .status = status };

	put_le32(&cqe.wqe, n);
	put_le32(&cqe.flags, (solicited ? QHCA_CQE_SOLICITED : 0) |
		 QHCA_CQE_REQUESTER);
	return hca_cq_post(s->h->fn, CQN, &cqe);
}

static inline void arm(struct setup *s, uint32_t ci, bool solicited)
{
	qhca_doorbell(s->h->hca, 0, PAGE, QHCA_DB_CQ_ARM, CQN |
		      (solicited ? QHCA_DB_CQ_SOLICITED : 0) |
		      (uint64_t)ci << 32, s->h->now);
}

static inline uint32_t events(struct setup *s)
{
	return s->h->fn->eqs.eq[0].pi;
}

static inline uint32_t armed(struct setup *s)
{
	return get_le32((uint8_t *)host_ptr(s->h, s->cq.record) +
			offsetof(struct qhca_cq_record, armed));
}

static inline const struct qhca_cqc *query(struct setup *s)
{
	static struct qhca_cqc out;

	assert_int_equal(host_cmd(s->h, QHCA_CMD_QUERY_CQ, CQN, 0, NULL, 0,
				  &out, sizeof(out)), QHCA_CMD_OK);
	return &out;
}

#endif /* QHCA_TEST_CQ_SETUP_H */
