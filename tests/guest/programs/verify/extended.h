/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The extended interfaces of libibverbs, for what is written in terms of the others. */
#ifndef EXTENDED_H
#define EXTENDED_H

#include <infiniband/verbs.h>

/* What QPs of a type can be posted, IBV_QP_EX_WITH_*. */
uint64_t extended_ops(enum ibv_qp_type type);

/*
 * As ibv_post_send(), by one batch of ibv_wr_*(). Before it another is begun and
 * aborted, of which nothing may be seen.
 */
int extended_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr);

/* As ibv_create_cq() and ibv_poll_cq(), by ibv_create_cq_ex() and ibv_start_poll(). */
struct ibv_cq *extended_create_cq(struct ibv_context *ctx, int cqe,
				  struct ibv_comp_channel *channel);
int extended_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc);

#endif
