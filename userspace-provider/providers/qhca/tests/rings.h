/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What the parts of the test of rings share.
 */
#ifndef __QHCA_TEST_RINGS_H__
#define __QHCA_TEST_RINGS_H__

#include "qhca.h"

#define check(cond) check_at(cond, #cond, __LINE__)

struct qhca_context *test_context(void);
void check_at(bool ok, const char *what, int line);
/* The last value rung at @offset, once; 0: none. */
uint64_t take_doorbell(unsigned int offset);
struct qhca_qp *new_qp(enum qhca_qp_type type, uint32_t send_wr,
		       uint32_t recv_wr, uint32_t sge, uint32_t inl);
void free_qp(struct qhca_qp *qp);
struct qhca_cq *new_cq(uint32_t cqe);
void free_cq(struct qhca_cq *cq);
/* As the device writes completion number @pi of @ring. */
void put_cqe(struct qhca_cq_ring *ring, uint32_t pi, const void *handle,
	     uint32_t wqe, uint8_t opcode, uint32_t flags);
void test_lock(void);
void test_polls(void);
void test_polls_in_streams(void);
void test_polls_of_server(void);
void test_polls_after_reset(void);
void test_srq(void);
void test_srq_grows(void);

#endif /* __QHCA_TEST_RINGS_H__ */
