/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * For tests/bench/packets.py: a number of messages of one kind between two engines, so
 * that the instructions of each engine can be counted.
 *
 *	packets WRITE|SEND|READ[-shm][-vfs] BYTES MESSAGES [GIDS]
 *
 * With -shm, frames go through memory that both hosts share, without ICRC.  With -vfs, each
 * adapter has IDLE_VFS virtual functions that are ready and do nothing.
 *
 * With GIDS, each host has so many GIDs, each with a MAC address of its own, as it has with
 * VLAN or macvlan devices; the messages are between the last of them.
 *
 * The link loses and delays nothing, the caches have their default size and hold
 * everything, and each message is a packet, because the path MTU is that of the longest
 * message.  An engine works in one of two functions only, requester_works() and
 * responder_works(), which valgrind can tell apart; the driver that posts and polls, and
 * the link, work elsewhere.
 *
 * The program prints how many packets each side has sent for the messages.  It ends with
 * an error if a message does not complete, or if data arrives other than it was sent.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "minidrv.h"

#define MEM_LEN		(16u << 20)
#define IOVA		0x10000000ull
#define PD		3u
#define MAX_LEN		4096u		/* bytes of a message: the path MTU */
#define SLOTS		128u		/* messages in the air, each in a page of its own */
#define BUDGET		16u		/* of qhca_run(): an eighth of the messages */
#define ROUND_NS	1000u
#define MAX_ROUNDS	10000u		/* without a message to post */
#define MAX_MESSAGES	1000000u
#define MAX_GIDS	128u
#define IDLE_VFS	4u		/* as README's example has */
#define ACCESS		(QHCA_ACCESS_LOCAL_WRITE | QHCA_ACCESS_REMOTE_WRITE | \
			 QHCA_ACCESS_REMOTE_READ)

struct frame {
	size_t len;
	uint8_t data[QHCA_MAX_FRAME];
};

/* One host, and the frames that have arrived at it. */
struct side {
	struct md *md;
	struct side *peer;
	struct md_cq scq, rcq;
	struct md_qp qp;
	struct md_mr mr;
	struct md *vf[IDLE_VFS];
	bool ring;			/* the driver has a doorbell to ring */
	bool shm;			/* frames are in shared memory */
	uint64_t sent;			/* packets */
	uint32_t num_frames;
	struct frame frame[4 * SLOTS];
};

struct request {
	uint8_t opcode;			/* enum qhca_wqe_opcode */
	bool shm, vfs;
	uint32_t len;
	uint32_t messages;
	uint32_t gids;			/* 0: one, with the host's MAC address */
};

/* ---- the link */

static void on_tx(void *arg, const uint8_t *frame, size_t len)
{
	struct side *from = arg, *to = from->peer;
	struct frame *f = &to->frame[to->num_frames];

	if (to->num_frames == sizeof(to->frame) / sizeof(to->frame[0]))
		host_die("more than %u frames are on the link", to->num_frames);
	to->num_frames++;
	f->len = len;
	memcpy(f->data, frame, len);
	from->sent++;
}

/* ---- the engines, and nothing else */

static inline void works(struct side *s)
{
	struct host *h = &s->md->host;

	if (s->ring)
		qhca_doorbell(h->hca, 0, 0, QHCA_DB_SQ,
			      (uint64_t)s->qp.sq_pi << 32 | s->qp.qpn, h->now);
	for (uint32_t i = 0; i < s->num_frames; i++) {
		const struct frame *f = &s->frame[i];

		if (s->shm)
			qhca_rx_shared(h->hca, f->data, f->len, h->now);
		else
			qhca_rx_frame(h->hca, f->data, f->len, h->now);
	}
	s->ring = false;
	s->num_frames = 0;
	qhca_run(h->hca, h->now, BUDGET);
}

/* Not static: the names are those that valgrind looks for. */
void requester_works(struct side *s);
void responder_works(struct side *s);

__attribute__((noinline, noclone)) void requester_works(struct side *s)
{
	works(s);
}

__attribute__((noinline, noclone)) void responder_works(struct side *s)
{
	works(s);
}

/* ---- the driver */

static void open_side(struct side *s, struct side *peer, unsigned int number,
		      const struct qhca_config *cfg)
{
	struct md_init init = { .scatter = true };
	struct md_qp_init qi = {
		.type = QHCA_QPT_RC, .pd = PD, .sq_log_depth = 7,
		.sq_log_stride = 7, .rq_log_depth = 7, .rq_log_stride = 6,
		.send_cq = &s->scq, .recv_cq = &s->rcq,
	};

	s->peer = peer;
	s->md = md_create(number, MEM_LEN, cfg);
	s->md->host.tx = on_tx;
	s->md->host.tx_arg = s;
	s->md->host.now = ROUND_NS;
	md_start(s->md, &init);
	md_cq_create(s->md, &s->scq, 8);
	md_cq_create(s->md, &s->rcq, 8);
	md_reg_mr(s->md, &s->mr, PD, IOVA, SLOTS * MAX_LEN, ACCESS);
	if (md_qp_create(s->md, &s->qp, &qi))
		host_die("CREATE_QP fails");
}

static void open_vfs(struct side *s, const struct qhca_config *cfg)
{
	const struct md_init init = { .scatter = true };

	for (uint16_t i = 0; i < IDLE_VFS; i++) {
		s->vf[i] = md_create_vf(s->md, i + 1, MEM_LEN, cfg);
		md_start(s->vf[i], &init);
	}
}

static void close_side(struct side *s)
{
	for (uint32_t i = 0; i < IDLE_VFS && s->vf[i]; i++)
		md_destroy_vf(s->vf[i]);
	md_destroy(s->md);
	free(s);
}

static struct qhca_gid_entry gid_of(const struct side *s, uint32_t index)
{
	struct qhca_gid_entry gid = {
		.gid = { [10] = 0xff, 0xff, 10, s->md->mac[5], 0, (uint8_t)index },
	};

	memcpy(gid.smac, s->md->mac, 6);
	gid.smac[4] = (uint8_t)(index + 1);
	put_le16(&gid.vlan, QHCA_GID_NO_VLAN);
	put_le32(&gid.flags, QHCA_GID_VALID | QHCA_GID_IPV4);
	return gid;
}

static void set_gids(struct side *s, uint32_t num)
{
	for (uint32_t i = 0; i < num; i++) {
		struct qhca_gid_entry gid = gid_of(s, i);

		if (host_cmd(&s->md->host, QHCA_CMD_SET_GID, i, 0, &gid,
			     sizeof(gid), NULL, 0))
			host_die("SET_GID fails");
	}
}

static void connect_side(struct side *s, uint32_t gids)
{
	struct md_conn conn = {
		.dest_qpn = s->peer->qp.qpn, .sq_psn = 100, .rq_psn = 100,
		.mtu = QHCA_MTU_4096, .access = ACCESS, .timeout = 18,
		.retry_cnt = 1, .rnr_retry = 1, .max_rd_atomic = 16,
		.max_dest_rd_atomic = 16,
	};

	md_av(s->md, &conn.av, s->peer->md->mac[5], false);
	if (gids) {
		struct qhca_gid_entry gid = gid_of(s->peer, gids - 1);

		memcpy(conn.av.dgid, gid.gid, sizeof(conn.av.dgid));
		memcpy(conn.av.dmac, gid.smac, sizeof(conn.av.dmac));
		conn.av.sgid_index = (uint8_t)(gids - 1);
	}
	md_qp_connect(s->md, &s->qp, &conn);
}

static void post(struct side *a, struct side *b, const struct request *r,
		 uint32_t slot)
{
	struct md_sge from = { a->mr.iova + slot * MAX_LEN, r->len, a->mr.key };
	struct md_sge to = { b->mr.iova + slot * MAX_LEN, r->len, b->mr.key };
	struct md_wr wr = {
		.opcode = r->opcode, .flags = QHCA_WQE_F_SIGNALED,
		.wr_id = slot, .num_sge = 1, .sge = &from, .raddr = to.addr,
		.rkey = to.key,
	};

	if (r->opcode == QHCA_WQE_SEND)
		md_post_recv(b->md, &b->qp, slot, &to, 1);
	md_post_send(a->md, &a->qp, &wr);
}

/* Takes what has completed; returns how many. */
static uint32_t poll(struct md_cq *cq)
{
	struct qhca_cqe cqe;
	uint32_t n = 0;

	for (; md_poll(cq, &cqe); n++)
		if (cqe.status)
			host_die("a message completes with status %u", cqe.status);
	return n;
}

/*
 * As many messages are under way as there are slots, like perftest's.  The device looks at
 * its send queue with each ACK; because it sends a few of them at a time, ACKs of some
 * arrive while others wait, and each look finds requests.
 */
static void transfer(struct side *a, struct side *b, const struct request *r)
{
	uint32_t posted = 0, sent = 0, received = 0, rounds = 0;
	bool receives = r->opcode == QHCA_WQE_SEND;

	while (sent < r->messages || (receives && received < r->messages) ||
	       a->num_frames || b->num_frames) {
		if (rounds++ == MAX_ROUNDS)
			host_die("%u messages complete of %u", sent, posted);
		for (; posted < r->messages && posted - sent < SLOTS &&
		       !(receives && posted - received == SLOTS); posted++) {
			post(a, b, r, posted % SLOTS);
			rounds = 0;
		}
		a->ring = posted > sent &&
			  !md_buf_get32(a->md, &a->qp.buf, a->qp.rec_offset + 64);
		requester_works(a);
		responder_works(b);
		sent += poll(&a->scq);
		received += poll(&b->rcq);
		a->md->host.now += ROUND_NS;
		b->md->host.now += ROUND_NS;
	}
}

/* ---- data */

static void fill(struct side *s, uint8_t salt)
{
	uint8_t data[MAX_LEN];

	for (uint32_t slot = 0; slot < SLOTS; slot++) {
		for (uint32_t i = 0; i < MAX_LEN; i++)
			data[i] = (uint8_t)(i * 7 + slot + salt);
		md_buf_write(s->md, &s->mr.buf, slot * MAX_LEN, data, MAX_LEN);
	}
}

static void check(struct side *a, struct side *b, const struct request *r)
{
	uint32_t slots = r->messages < SLOTS ? r->messages : SLOTS;
	uint8_t x[MAX_LEN], y[MAX_LEN];

	for (uint32_t slot = 0; slot < slots; slot++) {
		md_buf_read(a->md, &a->mr.buf, slot * MAX_LEN, x, r->len);
		md_buf_read(b->md, &b->mr.buf, slot * MAX_LEN, y, r->len);
		if (memcmp(x, y, r->len))
			host_die("the data of message %u differs", slot);
	}
}

static void measure(const struct request *r)
{
	struct side *a = calloc(1, sizeof(*a)), *b = calloc(1, sizeof(*b));
	struct qhca_config cfg;

	qhca_config_default(&cfg);
	open_side(a, b, 1, &cfg);
	open_side(b, a, 2, &cfg);
	if (r->vfs) {
		open_vfs(a, &cfg);
		open_vfs(b, &cfg);
	}
	a->shm = b->shm = r->shm;
	qhca_link_is_shared(a->md->host.hca, r->shm);
	qhca_link_is_shared(b->md->host.hca, r->shm);
	qhca_link_without_icrc(a->md->host.hca, r->shm);
	qhca_link_without_icrc(b->md->host.hca, r->shm);
	set_gids(a, r->gids);
	set_gids(b, r->gids);
	connect_side(a, r->gids);
	connect_side(b, r->gids);
	fill(a, 0);
	fill(b, 101);
	a->sent = b->sent = 0;
	transfer(a, b, r);
	check(a, b, r);
	printf("%u messages: %llu packets of the requester, %llu of the responder\n",
	       r->messages, (unsigned long long)a->sent,
	       (unsigned long long)b->sent);
	close_side(a);
	close_side(b);
}

/* ---- the program */

static bool number(const char *text, uint32_t max, uint32_t *to)
{
	char *end;
	unsigned long n;

	errno = 0;
	n = strtoul(text, &end, 10);
	if (errno || *end || text[0] < '0' || text[0] > '9' || !n || n > max)
		return false;
	*to = (uint32_t)n;
	return true;
}

/* Is @ending how @text goes on?  Then @text is what follows it. */
static bool goes_on(const char **text, const char *ending)
{
	size_t len = strlen(ending);

	if (strncmp(*text, ending, len))
		return false;
	*text += len;
	return true;
}

static bool kind(struct request *r, const char *text)
{
	if (goes_on(&text, "WRITE"))
		r->opcode = QHCA_WQE_WRITE;
	else if (goes_on(&text, "SEND"))
		r->opcode = QHCA_WQE_SEND;
	else if (goes_on(&text, "READ"))
		r->opcode = QHCA_WQE_READ;
	else
		return false;
	r->shm = goes_on(&text, "-shm");
	r->vfs = goes_on(&text, "-vfs");
	return !*text;
}

static bool parse(struct request *r, int argc, char **argv)
{
	return (argc == 4 || argc == 5) && kind(r, argv[1]) &&
	       number(argv[2], MAX_LEN, &r->len) &&
	       number(argv[3], MAX_MESSAGES, &r->messages) &&
	       (argc == 4 || number(argv[4], MAX_GIDS, &r->gids));
}

int main(int argc, char **argv)
{
	struct request r = { 0 };

	if (!parse(&r, argc, argv)) {
		fprintf(stderr,
			"usage: packets WRITE|SEND|READ[-shm][-vfs] BYTES MESSAGES [GIDS] (1 to %u, 1 to %u, 1 to %u)\n",
			MAX_LEN, MAX_MESSAGES, MAX_GIDS);
		return 2;
	}
	measure(&r);
	return 0;
}
