// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* QPs of qhca-touch, and READs over many of them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "touch.h"

void make_pair(struct touch *t, struct ibv_qp *qp[2], unsigned int depth)
{
	const struct connection c = {
		.type = IBV_QPT_RC, .mtu = IBV_MTU_1024,
		/* No timer runs: the loopback loses nothing, and a repetition would count. */
		.timeout = 0,
		.retry_cnt = 7, .rnr_retry = 7, .min_rnr_timer = 12,
		.rd_atomic = 1, .dest_rd_atomic = 1,
		.access = ACCESS & ~IBV_ACCESS_LOCAL_WRITE,
	};

	for (int i = 0; i < 2; i++) {
		struct ibv_qp_init_attr init = {
			.qp_type = IBV_QPT_RC,
			.send_cq = t->cq,
			.recv_cq = t->cq,
			.cap = { .max_send_wr = depth, .max_recv_wr = 1, .max_send_sge = 1,
				 .max_recv_sge = 1, .max_inline_data = 8 },
		};

		qp[i] = ibv_create_qp(t->pd, &init);
		if (!qp[i])
			die("ibv_create_qp: %s", strerror(errno));
	}
	errno = qp_connect_pair(qp, &c, t->gid_index);
	if (errno)
		die("the QPs do not connect: %s", strerror(errno));
}

void end_pair(struct ibv_qp *qp[2])
{
	if (ibv_destroy_qp(qp[0]) || ibv_destroy_qp(qp[1]))
		die("a QP does not go away: %s", strerror(errno));
}

static uint64_t word_value(unsigned int queue)
{
	return (queue + 1) * 0x9e3779b97f4a7c15ull;
}

void do_queues(struct touch *t, unsigned int num)
{
	if (t->num_queues || !num)
		die("queues are made once");
	t->queue = calloc(num, sizeof(*t->queue));
	t->words = calloc(num + 1, sizeof(*t->words));
	if (!t->queue || !t->words)
		die("out of memory");
	t->words_mr = ibv_reg_mr(t->pd, t->words, (num + 1) * sizeof(*t->words),
				 ACCESS);
	if (!t->words_mr)
		die("ibv_reg_mr: %s", strerror(errno));
	for (t->num_queues = 0; t->num_queues < num; t->num_queues++) {
		t->words[t->num_queues] = word_value(t->num_queues);
		make_pair(t, t->queue[t->num_queues], 1);
	}
}

/* Queue @i reads its word into the last one. */
static void do_read(struct touch *t, unsigned int i)
{
	uint64_t *to = &t->words[t->num_queues];
	struct ibv_sge sge = { (uintptr_t)to, sizeof(*to), t->words_mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = i, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_READ,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { (uintptr_t)&t->words[i], t->words_mr->rkey },
	}, *bad;
	struct ibv_wc wc;
	int n, err = ibv_post_send(t->queue[i][0], &wr, &bad);

	if (err)
		die("ibv_post_send: %s", strerror(err));
	do
		n = ibv_poll_cq(t->cq, 1, &wc);
	while (!n);
	if (n < 0 || wc.status != IBV_WC_SUCCESS || wc.wr_id != i || *to != word_value(i))
		die("queue %u did not read its word: %s", i,
		    n < 0 ? "no completion" : ibv_wc_status_str(wc.status));
	t->num_accesses++;
}

void do_queue_pattern(struct touch *t, const char *name, unsigned int queues)
{
	enum pattern_kind kind;
	struct pattern p;
	uint64_t n;

	if (!pattern_kind_of(name, &kind) || !queues || queues > t->num_queues)
		die("there is no pattern %s of %u queues", name, queues);
	p = pattern_begin(kind, queues, 1);
	for (n = pattern_items(&p); n; n--)
		do_read(t, pattern_next(&p).key);
	do_mark(t);
	for (n = pattern_counted(&p); n; n--)
		do_read(t, pattern_next(&p).key);
}

void drop_queues(struct touch *t)
{
	for (unsigned int i = 0; i < t->num_queues; i++)
		end_pair(t->queue[i]);
	if (t->words_mr && ibv_dereg_mr(t->words_mr))
		die("ibv_dereg_mr: %s", strerror(errno));
	free(t->words);
	free(t->queue);
}
