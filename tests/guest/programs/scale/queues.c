// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * qhca-queues: very many queues at once.
 *
 *   qhca-queues -d DEVICE -g GID-INDEX -p PORT [-n QPS] [-m MRS] [-s SEED] [-k FILE] [-a]
 *               [HOST]
 *
 * Each side makes QPS RC QPs, as many CQs, one for each QP, and a quarter as many
 * SRQs; each QP is connected to its like on the other side. Then each QP, in an
 * order that is random and the same on both sides, carries a WRITE, a SEND into
 * its SRQ and a READ, first from the client (with HOST) to the server, and then
 * the other way. All bytes are compared, all completions checked. With -k the
 * client then makes FILE, and keeps all queues until it is gone. With -a, which both
 * sides must have, the QPs carry data once more after that, by way of other regions.
 *
 * Each side also has MRS more regions of the same memory. Requests of a QP name one of
 * them when data are carried once more.
 *
 * Prints how long making, connecting and ending takes.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/peer.h"
#include "lib/tap.h"

#define WINDOW		32u		/* QPs at work at a time */
#define PER_SRQ		4u		/* QPs that share one */
#define WORDS		8u		/* of a message */
#define LEN		(WORDS * sizeof(uint64_t))
#define HANG_NS		60000000000ull

#define ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

/* What a QP has in memory, one area for each, of LEN bytes for each QP. */
enum area {
	WRITE_FROM, SEND_FROM, READ_TO,		/* of who asks */
	WRITE_TO, RECEIVE_TO, READ_FROM,	/* of who is asked */
	NUM_AREAS
};

struct target {
	uint64_t addr;
	uint32_t rkey, unused;
};

struct queues {
	struct peer peer;
	struct ibv_pd *pd;
	struct ibv_cq **cq;
	struct ibv_srq **srq;
	struct ibv_qp **qp;
	uint32_t *remote;		/* QP numbers */
	uint32_t *order;		/* a permutation of the QPs */
	uint8_t *buf;
	struct ibv_mr *mr, **more;
	struct target target;
	uint32_t *keys;			/* of the regions of the other side; the first is mr's */
	uint64_t seed;
	uint32_t num, num_srqs, num_more, used;
	const char *keep;
	bool again;
};

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

static uint64_t offset(const struct queues *q, enum area area, uint32_t i)
{
	return ((uint64_t)area * q->num + i) * LEN;
}

static uint64_t *words(const struct queues *q, enum area area, uint32_t i)
{
	return (uint64_t *)(q->buf + offset(q, area, i));
}

/* What QP @i carries out of @area in pass @pass. */
static uint64_t content(const struct queues *q, enum area area, int pass, uint32_t i, uint32_t word)
{
	return mix(q->seed ^ mix((uint64_t)i << 16 | word << 8 | area << 4 | pass));
}

static void fill(struct queues *q, enum area area, int pass)
{
	for (uint32_t i = 0; i < q->num; i++)
		for (uint32_t w = 0; w < WORDS; w++)
			words(q, area, i)[w] = content(q, area, pass, i, w);
}

/* Does @at hold what QP @i carries out of @area? */
static void compare(const struct queues *q, const uint64_t *at, enum area area, int pass,
		    uint32_t i, const char *what)
{
	for (uint32_t w = 0; w < WORDS; w++)
		if (at[w] != content(q, area, pass, i, w))
			die("word %u of the %s of QP %u is %#" PRIx64 ", not %#" PRIx64, w, what, i,
			    at[w], content(q, area, pass, i, w));
}

static void shuffle(struct queues *q, int pass)
{
	for (uint32_t i = 0; i < q->num; i++)
		q->order[i] = i;
	for (uint32_t i = q->num; i > 1; i--) {
		uint32_t k = mix(q->seed + (uint64_t)pass * q->num + i) % i, t = q->order[k];

		q->order[k] = q->order[i - 1];
		q->order[i - 1] = t;
	}
}

/* -- how long things take --------------------------------------------------- */

static void took(const struct queues *q, uint32_t n, const char *what, uint64_t since)
{
	uint64_t ns = now_ns() - since;

	if (q->peer.server)
		return;
	printf("# %u %s: %" PRIu64 " ms, %" PRIu64 " a second\n", n, what, ns / 1000000,
	       ns ? n * UINT64_C(1000000000) / ns : 0);
	fflush(stdout);
}

/* -- life ------------------------------------------------------------------- */

static void post_receive(struct queues *q, uint32_t srq, uint32_t slot)
{
	uint64_t at = offset(q, RECEIVE_TO, slot);
	struct ibv_sge sge = { (uintptr_t)q->buf + at, LEN, q->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = slot, .sg_list = &sge, .num_sge = 1 }, *bad;
	int rc = ibv_post_srq_recv(q->srq[srq], &wr, &bad);

	if (rc)
		die("ibv_post_srq_recv of SRQ %u: %s", srq, strerror(rc));
}

/* Slots of an SRQ are those of the QPs that share it. */
static uint32_t srq_of(uint32_t i)
{
	return i / PER_SRQ;
}

static void make_srqs(struct queues *q)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = PER_SRQ, .max_sge = 1 } };
	uint64_t start = now_ns();

	for (uint32_t i = 0; i < q->num_srqs; i++) {
		q->srq[i] = ibv_create_srq(q->pd, &init);
		if (!q->srq[i])
			die("ibv_create_srq of number %u: %s", i, strerror(errno));
	}
	took(q, q->num_srqs, "SRQs are made", start);
	for (uint32_t i = 0; i < q->num; i++)
		post_receive(q, srq_of(i), i);
}

static void make_cqs(struct queues *q)
{
	uint64_t start = now_ns();

	for (uint32_t i = 0; i < q->num; i++) {
		q->cq[i] = ibv_create_cq(q->peer.ctx, 8, NULL, NULL, 0);
		if (!q->cq[i])
			die("ibv_create_cq of number %u: %s", i, strerror(errno));
	}
	took(q, q->num, "CQs are made", start);
}

static void make_qps(struct queues *q)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .cap = { 4, 0, 1, 0, 0 } };
	uint64_t start = now_ns();

	for (uint32_t i = 0; i < q->num; i++) {
		init.send_cq = init.recv_cq = q->cq[i];
		init.srq = q->srq[srq_of(i)];
		q->qp[i] = ibv_create_qp(q->pd, &init);
		if (!q->qp[i])
			die("ibv_create_qp of number %u: %s", i, strerror(errno));
	}
	took(q, q->num, "QPs are made", start);
}

/* One side after the other: neither's socket holds so many. */
static void exchange(struct queues *q, const uint32_t *mine, uint32_t *theirs, uint32_t num)
{
	size_t len = num * sizeof(*mine);

	if (q->peer.server) {
		peer_send(&q->peer, mine, len);
		peer_receive(&q->peer, theirs, len);
	} else {
		peer_receive(&q->peer, theirs, len);
		peer_send(&q->peer, mine, len);
	}
}

static void exchange_numbers(struct queues *q)
{
	uint32_t *mine = calloc(q->num, sizeof(*mine));

	for (uint32_t i = 0; i < q->num; i++)
		mine[i] = q->qp[i]->qp_num;
	exchange(q, mine, q->remote, q->num);
	free(mine);
}

/* Register the other regions, and exchange the keys of all. */
static void make_regions(struct queues *q)
{
	uint32_t *mine = calloc(q->num_more + 1, sizeof(*mine));
	uint64_t start = now_ns();

	mine[0] = q->mr->rkey;
	for (uint32_t i = 0; i < q->num_more; i++) {
		q->more[i] = ibv_reg_mr(q->pd, q->buf, NUM_AREAS * q->num * LEN, ACCESS);
		if (!q->more[i])
			die("ibv_reg_mr of number %u: %s", i, strerror(errno));
		mine[i + 1] = q->more[i]->rkey;
	}
	if (q->num_more)
		took(q, q->num_more, "more regions are made", start);
	exchange(q, mine, q->keys, q->num_more + 1);
	free(mine);
}

static void connect_qps(struct queues *q)
{
	const struct connection conn = {
		.type = IBV_QPT_RC, .mtu = IBV_MTU_1024, .timeout = 18, .retry_cnt = 7,
		.rnr_retry = 7, .min_rnr_timer = 1, .rd_atomic = 1, .dest_rd_atomic = 1,
		.access = ACCESS,
	};
	struct qp_address here = { .psn = 1, .gid = q->peer.gid }, there;
	uint64_t start;

	peer_exchange(&q->peer, &here, &there, sizeof(here));
	start = now_ns();
	for (uint32_t i = 0; i < q->num; i++) {
		int rc;

		there.qpn = q->remote[i];
		there.psn = i;
		rc = qp_connect(q->qp[i], &conn, q->peer.gid_index, &there, i);
		if (rc)
			die("connecting QP %u: %s", i, strerror(rc));
	}
	took(q, q->num, "QPs are connected", start);
	peer_barrier(&q->peer);
}

static void end_all(struct queues *q)
{
	uint64_t start = now_ns();

	for (uint32_t i = 0; i < q->num; i++)
		if ((errno = ibv_destroy_qp(q->qp[i])))
			die("ibv_destroy_qp of number %u: %s", i, strerror(errno));
	took(q, q->num, "QPs are gone", start);
	start = now_ns();
	for (uint32_t i = 0; i < q->num_srqs; i++)
		if ((errno = ibv_destroy_srq(q->srq[i])))
			die("ibv_destroy_srq of number %u: %s", i, strerror(errno));
	took(q, q->num_srqs, "SRQs are gone", start);
	start = now_ns();
	for (uint32_t i = 0; i < q->num; i++)
		if ((errno = ibv_destroy_cq(q->cq[i])))
			die("ibv_destroy_cq of number %u: %s", i, strerror(errno));
	took(q, q->num, "CQs are gone", start);
}

/* -- data ------------------------------------------------------------------- */

/* The next completion of QP @i, which must come. */
static struct ibv_wc next(struct queues *q, uint32_t i, enum ibv_wc_opcode opcode)
{
	uint64_t start = now_ns();
	struct ibv_wc wc;
	int n;

	while (!(n = ibv_poll_cq(q->cq[i], 1, &wc)))
		if (now_ns() - start > HANG_NS)
			die("QP %u has no completion", i);
	if (n < 0 || wc.status)
		die("QP %u: %s", i, n < 0 ? "the CQ is broken" : ibv_wc_status_str(wc.status));
	if (wc.opcode != opcode || wc.qp_num != q->qp[i]->qp_num)
		die("QP %u (%#x) has the completion of %#x, %d", i, q->qp[i]->qp_num, wc.qp_num,
		    wc.opcode);
	return wc;
}

static void ask(struct queues *q, uint32_t i)
{
	const enum area from[] = { WRITE_FROM, SEND_FROM, READ_TO };
	const enum area to[] = { WRITE_TO, 0, READ_FROM };
	const enum ibv_wr_opcode opcode[] = { IBV_WR_RDMA_WRITE, IBV_WR_SEND, IBV_WR_RDMA_READ };
	struct ibv_send_wr wr[3] = { 0 }, *bad;
	struct ibv_sge sge[3];
	uint32_t key = q->keys[mix(q->seed + i) % q->used];
	int rc;

	for (int k = 0; k < 3; k++) {
		sge[k] = (struct ibv_sge) { (uintptr_t)words(q, from[k], i), LEN, q->mr->lkey };
		wr[k].wr_id = k;
		wr[k].next = k < 2 ? &wr[k + 1] : NULL;
		wr[k].sg_list = &sge[k];
		wr[k].num_sge = 1;
		wr[k].opcode = opcode[k];
		wr[k].send_flags = IBV_SEND_SIGNALED;
		if (opcode[k] != IBV_WR_SEND) {
			wr[k].wr.rdma.remote_addr = q->target.addr + offset(q, to[k], i);
			wr[k].wr.rdma.rkey = key;
		}
	}
	rc = ibv_post_send(q->qp[i], wr, &bad);
	if (rc)
		die("ibv_post_send to QP %u: %s", i, strerror(rc));
}

static void asked(struct queues *q, int pass, uint32_t i)
{
	const enum ibv_wc_opcode opcode[] = { IBV_WC_RDMA_WRITE, IBV_WC_SEND, IBV_WC_RDMA_READ };

	for (uint64_t k = 0; k < 3; k++)
		if (next(q, i, opcode[k]).wr_id != k)
			die("QP %u completes out of order", i);
	compare(q, words(q, READ_TO, i), READ_FROM, pass, i, "READ");
}

static void ask_all(struct queues *q, int pass)
{
	uint64_t start = now_ns();

	for (uint32_t n = 0; n < q->num + WINDOW; n++) {
		if (n >= WINDOW && n - WINDOW < q->num)
			asked(q, pass, q->order[n - WINDOW]);
		if (n < q->num)
			ask(q, q->order[n]);
	}
	took(q, q->num, "QPs carry a WRITE, a SEND and a READ", start);
}

static void answer_all(struct queues *q, int pass)
{
	for (uint32_t n = 0; n < q->num; n++) {
		uint32_t i = q->order[n];
		struct ibv_wc wc = next(q, i, IBV_WC_RECV);

		if (wc.byte_len != LEN || wc.wr_id >= q->num || srq_of(wc.wr_id) != srq_of(i))
			die("QP %u receives %u bytes into slot %" PRIu64, i, wc.byte_len, wc.wr_id);
		compare(q, words(q, RECEIVE_TO, wc.wr_id), SEND_FROM, pass, i, "SEND");
		compare(q, words(q, WRITE_TO, i), WRITE_FROM, pass, i, "WRITE");
		post_receive(q, srq_of(i), wc.wr_id);
	}
}

static void do_pass(struct queues *q, int pass)
{
	bool asks = q->peer.server == (pass == 1);

	shuffle(q, pass);
	if (asks) {
		fill(q, WRITE_FROM, pass);
		fill(q, SEND_FROM, pass);
	} else {
		fill(q, READ_FROM, pass);
	}
	peer_barrier(&q->peer);
	if (asks)
		ask_all(q, pass);
	else
		answer_all(q, pass);
	peer_barrier(&q->peer);
}

/* -- both ------------------------------------------------------------------- */

static void keep(const char *path)
{
	int fd = open(path, O_CREAT | O_EXCL | O_WRONLY, 0600);

	if (fd < 0)
		die("%s: %s", path, strerror(errno));
	close(fd);
	while (!access(path, F_OK))
		usleep(20000);
}

static void set_up(struct queues *q)
{
	struct target mine;

	q->num_srqs = (q->num + PER_SRQ - 1) / PER_SRQ;
	q->pd = ibv_alloc_pd(q->peer.ctx);
	q->cq = calloc(q->num, sizeof(*q->cq));
	q->srq = calloc(q->num_srqs, sizeof(*q->srq));
	q->qp = calloc(q->num, sizeof(*q->qp));
	q->remote = calloc(q->num, sizeof(*q->remote));
	q->order = calloc(q->num, sizeof(*q->order));
	q->more = calloc(q->num_more + 1, sizeof(*q->more));
	q->keys = calloc(q->num_more + 1, sizeof(*q->keys));
	q->buf = calloc(NUM_AREAS * q->num, LEN);
	q->used = 1;
	if (!q->pd || !q->cq || !q->srq || !q->qp || !q->remote || !q->order || !q->more ||
	    !q->keys || !q->buf)
		die("cannot begin: %s", strerror(errno));
	q->mr = ibv_reg_mr(q->pd, q->buf, NUM_AREAS * q->num * LEN, ACCESS);
	if (!q->mr)
		die("ibv_reg_mr: %s", strerror(errno));
	mine = (struct target) { (uintptr_t)q->buf, q->mr->rkey };
	peer_exchange(&q->peer, &mine, &q->target, sizeof(mine));
}

static void tear_down(struct queues *q)
{
	for (uint32_t i = 0; i < q->num_more; i++)
		ibv_dereg_mr(q->more[i]);
	ibv_dereg_mr(q->mr);
	ibv_dealloc_pd(q->pd);
	peer_close(&q->peer);
	free(q->buf);
	free(q->keys);
	free(q->more);
	free(q->order);
	free(q->remote);
	free(q->qp);
	free(q->srq);
	free(q->cq);
}

int main(int argc, char **argv)
{
	struct queues q = { .num = 1024, .seed = 1 };
	int o;

	while ((o = getopt(argc, argv, PEER_OPTIONS "n:m:s:k:a")) != -1) {
		if (peer_option(&q.peer, o, optarg))
			continue;
		switch (o) {
		case 'n': q.num = parse_number(optarg, 0, INT_MAX); break;
		case 'm': q.num_more = parse_number(optarg, 0, 1u << 20); break;
		case 's': q.seed = parse_number(optarg, 0, ULONG_MAX); break;
		case 'k': q.keep = optarg; break;
		case 'a': q.again = true; break;
		default: die("usage: qhca-queues -d DEVICE -g GID-INDEX -p PORT [-n QPS] [-m MRS] [-s SEED] [-k FILE] [-a] [HOST]");
		}
	}
	q.peer.host = optind < argc ? argv[optind] : NULL;
	if (!q.num || q.num > 1u << 20)
		die("%u is no number of QPs", q.num);
	peer_open(&q.peer);
	set_up(&q);
	make_srqs(&q);
	make_cqs(&q);
	make_qps(&q);
	exchange_numbers(&q);
	make_regions(&q);
	connect_qps(&q);
	do_pass(&q, 0);
	do_pass(&q, 1);
	if (!q.peer.server) {
		tap_point(true, "%u QPs, %u CQs and %u SRQs carry data both ways", q.num, q.num,
			  q.num_srqs);
		if (q.keep)
			keep(q.keep);
	}
	peer_barrier(&q.peer);
	if (q.again) {
		q.used = q.num_more + 1;
		q.seed++;
		do_pass(&q, 0);
		do_pass(&q, 1);
		if (!q.peer.server)
			tap_point(true, "all of them carry data again");
	}
	end_all(&q);
	peer_barrier(&q.peer);
	if (!q.peer.server)
		tap_point(true, "all queues are destroyed");
	tear_down(&q);
	return tap_end();
}
