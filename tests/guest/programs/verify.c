// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * qhca-verify: moves data both ways over queue pairs of one type and checks
 * every byte, completion and immediate against the plan (plan.h).
 *
 *   qhca-verify -d DEVICE -g GID-INDEX -p PORT [-l] [options HOST]
 *
 * Without HOST it serves one client. Each side may choose
 *
 *   -l late receives: posted while the messages arrive (RC)
 *   -G an SRQ that is too small and grows when it is full
 *
 * and the rest is the client's choice:
 *
 *   -t rc|uc|ud|xrc   -n ROUNDS   -q QPS   -m MTU   -S LARGEST-MESSAGE   -s SEED
 *   -e completion events   -r shared receive queue   -x loss is allowed (UC, UD)
 *   -A no atomics   -w ATOMIC WRITE and FLUSH too (RC)   -1 one SGE   -T SECONDS
 *   -W the extended API: ibv_wr_*(), ibv_start_poll()
 *   -o ACK-TIMEOUT (RC)
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "extended.h"
#include "peer.h"
#include "plan.h"

#define SQ_DEPTH (2 * ROUND_OPS)
#define INLINE_SIZE 256
#define RECEIVE_ID (1ull << 63)

/* A posted receive. */
struct slot {
	struct layout layout;
	uint32_t size;
	bool done;
};

struct lane {
	unsigned int index;
	struct ibv_qp *qp;
	struct ibv_qp *target;	/* XRC: what answers; qp asks */
	struct ibv_ah *ah;
	struct qp_address remote;
	uint32_t far_srqn;	/* XRC */
	struct region arena;	/* sources, and where READs land */
	struct region window;	/* what the other side works on */
	uint8_t *far_window;	/* model of the other side's window */
	uint64_t far_addr;
	uint32_t far_rkey;

	struct op mine[ROUND_OPS], theirs[ROUND_OPS];
	unsigned int n_mine, n_theirs;
	unsigned int posted, completed;
	unsigned int arrived;	/* index in theirs behind the last that took a receive */
};

struct job {
	struct peer peer;
	struct settings set;
	bool late;		/* receives are posted while the messages arrive */
	bool grows;		/* the SRQ is to */
	struct connection connection;
	unsigned int max_sge;
	unsigned int max_inline;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_srq *srq;
	unsigned int srq_size;
	struct ibv_xrcd *xrcd;
	struct lane lane[MAX_LANES];

	struct region inbox;	/* where receives land */
	struct slot *slot;
	unsigned int n_slots, posted_slots;
	unsigned int *slot_lane;

	uint32_t round;
	struct rng rng;
	uint8_t *scratch;
	unsigned int expected, received;
	uint64_t count[OP_KINDS], bytes, inlined, fenced, lost, grown;
};

static const struct {
	const char *name;
	enum ibv_qp_type type;
} types[] = { { "rc", IBV_QPT_RC }, { "uc", IBV_QPT_UC }, { "ud", IBV_QPT_UD },
	      { "xrc", IBV_QPT_XRC_SEND } };

static bool is_xrc(const struct job *job)
{
	return job->set.type == IBV_QPT_XRC_SEND;
}

static unsigned int mine(const struct job *job)
{
	return job->peer.server;
}

static void usage(void)
{
	die("usage: qhca-verify -d DEVICE -g GID-INDEX -p PORT [HOST [-t TYPE] ...]; see the source");
}

static void parse(struct job *job, int argc, char **argv)
{
	struct settings *s = &job->set;
	int o;

	*s = (struct settings) {
		.seed = 1, .type = IBV_QPT_RC, .mtu = 1024, .lanes = 1, .rounds = 20,
		.max_size = 65536, .seconds = 60, .timeout = 14,
	};
	while ((o = getopt(argc, argv, "d:g:p:t:n:q:m:S:s:T:o:erlxAwWG1")) != -1) {
		switch (o) {
		case 'd': job->peer.device = optarg; break;
		case 'g': job->peer.gid_index = atoi(optarg); break;
		case 'p': job->peer.port = atoi(optarg); break;
		case 'n': s->rounds = atoi(optarg); break;
		case 'q': s->lanes = atoi(optarg); break;
		case 'm': s->mtu = atoi(optarg); break;
		case 'S': s->max_size = strtoul(optarg, NULL, 0); break;
		case 's': s->seed = strtoull(optarg, NULL, 0); break;
		case 'T': s->seconds = atoi(optarg); break;
		case 'o': s->timeout = atoi(optarg); break;
		case 'e': s->flags |= USE_EVENTS; break;
		case 'r': s->flags |= USE_SRQ; break;
		case 'l': job->late = true; break;
		case 'x': s->flags |= LOSSY; break;
		case 'W': s->flags |= EXTENDED; break;
		case 'A': s->flags |= NO_ATOMICS; break;
		case 'w': s->flags |= USE_PLACE; break;
		case 'G': job->grows = true; break;
		case '1': s->flags |= NO_SPLIT; break;
		case 't':
			s->type = 0;
			for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
				if (!strcmp(optarg, types[i].name))
					s->type = types[i].type;
			break;
		default:
			usage();
		}
	}
	job->peer.host = optind < argc ? argv[optind] : NULL;
	if (!job->peer.port || s->lanes < 1 || s->lanes > MAX_LANES || !s->type ||
	    s->max_size < 1024 || s->max_size > 1u << 28)
		usage();
	if (s->type != IBV_QPT_UC && s->type != IBV_QPT_UD && s->flags & LOSSY)
		die("-x: RC and XRC lose nothing");
	if (s->flags & USE_PLACE && (s->type != IBV_QPT_RC || s->flags & NO_ATOMICS))
		die("-w: with RC, and not with -A");
	if (s->type == IBV_QPT_XRC_SEND)
		s->flags |= USE_SRQ;
}

static enum ibv_mtu mtu_code(uint32_t bytes)
{
	enum ibv_mtu code = IBV_MTU_256;

	while (code < IBV_MTU_4096 && 128u << code < bytes)
		code++;
	if (128u << code != bytes)
		die("an MTU of %u", bytes);
	return code;
}

/* -- resources -------------------------------------------------------------- */

static void register_region(struct job *job, struct region *region, size_t size, int access)
{
	region_new(region, size);
	region->mr = ibv_reg_mr(job->pd, region->mem, size, access);
	if (!region->mr)
		die("ibv_reg_mr of %zu bytes: %s", size, strerror(errno));
}

static struct ibv_qp *create_qp(struct job *job)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = job->set.type,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = job->pd,
		.send_cq = job->send_cq,
		.recv_cq = is_xrc(job) ? NULL : job->recv_cq,
		.srq = is_xrc(job) ? NULL : job->srq,
		.cap = {
			.max_send_wr = SQ_DEPTH,
			.max_recv_wr = job->srq ? 0 : 2 * ROUND_OPS,
			.max_send_sge = job->max_sge,
			.max_recv_sge = is_xrc(job) ? 0 : job->max_sge,
			.max_inline_data = INLINE_SIZE,
		},
	};
	struct ibv_qp *qp;

	if (job->set.flags & (EXTENDED | USE_PLACE))
		init.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	if (job->set.flags & EXTENDED)
		init.send_ops_flags |= extended_ops(job->set.type);
	if (job->set.flags & USE_PLACE)
		init.send_ops_flags |= IBV_QP_EX_WITH_ATOMIC_WRITE | IBV_QP_EX_WITH_FLUSH;
	qp = ibv_create_qp_ex(job->peer.ctx, &init);
	if (!qp)
		die("ibv_create_qp_ex: %s", strerror(errno));
	if (init.cap.max_inline_data < INLINE_SIZE)
		die("the QP takes %u bytes inline, not %d", init.cap.max_inline_data, INLINE_SIZE);
	job->max_inline = init.cap.max_inline_data;
	return qp;
}

static struct ibv_qp *create_target(struct job *job)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_XRC_RECV,
		.comp_mask = IBV_QP_INIT_ATTR_XRCD,
		.xrcd = job->xrcd,
	};
	struct ibv_qp *qp = ibv_create_qp_ex(job->peer.ctx, &init);

	if (!qp)
		die("ibv_create_qp_ex of an XRC target: %s", strerror(errno));
	return qp;
}

static void create_lane(struct job *job, unsigned int index)
{
	struct lane *lane = &job->lane[index];
	size_t window = round_bytes(&job->set);

	lane->index = index;
	lane->qp = create_qp(job);
	if (is_xrc(job))
		lane->target = create_target(job);
	register_region(job, &lane->arena, window + ROUND_OPS * (LAYOUT_SLACK + 8) + 64,
			IBV_ACCESS_LOCAL_WRITE);
	register_region(job, &lane->window, window, job->connection.access);
	lane->far_window = malloc(window);
	if (!lane->far_window)
		die("no memory");
	fill(job->set.seed + 2 * index + mine(job), lane->window.mem, window);
	memcpy(lane->window.model, lane->window.mem, window);
	fill(job->set.seed + 2 * index + !mine(job), lane->far_window, window);
}

static struct ibv_cq *create_cq(struct job *job, int cqe)
{
	if (job->set.flags & EXTENDED)
		return extended_create_cq(job->peer.ctx, cqe, job->channel);
	return ibv_create_cq(job->peer.ctx, cqe, NULL, job->channel, 0);
}

static void create_srq(struct job *job, unsigned int slots)
{
	struct ibv_srq_init_attr_ex init = {
		.attr = { .max_wr = job->grows ? 3 : slots, .max_sge = job->max_sge },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
		.srq_type = IBV_SRQT_BASIC,
		.pd = job->pd,
	};
	struct ibv_xrcd_init_attr domain = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT,
	};

	if (is_xrc(job)) {
		job->xrcd = ibv_open_xrcd(job->peer.ctx, &domain);
		if (!job->xrcd)
			die("ibv_open_xrcd: %s", strerror(errno));
		init.comp_mask |= IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
		init.srq_type = IBV_SRQT_XRC;
		init.xrcd = job->xrcd;
		init.cq = job->recv_cq;
	}
	job->srq = ibv_create_srq_ex(job->peer.ctx, &init);
	if (!job->srq)
		die("ibv_create_srq_ex: %s", strerror(errno));
	job->srq_size = init.attr.max_wr;
}

static void create_all(struct job *job)
{
	const struct settings *s = &job->set;
	unsigned int cqes = s->lanes * SQ_DEPTH, slots = 2 * s->lanes * ROUND_OPS;
	size_t inbox = s->lanes * round_bytes(s) + slots * (LAYOUT_SLACK + GRH_LEN + PIECE_GAP) + 64;

	job->connection = (struct connection) {
		.type = s->type, .mtu = mtu_code(s->mtu), .timeout = s->timeout, .retry_cnt = 7,
		.rnr_retry = 7, .min_rnr_timer = 12, .rd_atomic = 4, .dest_rd_atomic = 4,
		.access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			  IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
	};
	if (s->flags & USE_PLACE)
		job->connection.access |= IBV_ACCESS_FLUSH_GLOBAL;
	if (s->type == IBV_QPT_UC || s->type == IBV_QPT_UD)
		job->connection.access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	job->max_sge = s->flags & NO_SPLIT ? 1 : MAX_PIECES;
	if ((int)job->max_sge > job->peer.attr.max_sge)
		die("the device takes %d SGEs", job->peer.attr.max_sge);
	if (s->flags & (USE_SRQ | LOSSY))
		inbox = slots * ((size_t)largest_message(s) + LAYOUT_SLACK + GRH_LEN);

	job->pd = ibv_alloc_pd(job->peer.ctx);
	job->channel = s->flags & USE_EVENTS ? ibv_create_comp_channel(job->peer.ctx) : NULL;
	job->send_cq = create_cq(job, cqes);
	job->recv_cq = create_cq(job, slots);
	if (!job->pd || !job->send_cq || !job->recv_cq || (s->flags & USE_EVENTS && !job->channel))
		die("cannot create PD, CQs and channel: %s", strerror(errno));
	if (s->flags & USE_SRQ)
		create_srq(job, slots);
	register_region(job, &job->inbox, inbox, IBV_ACCESS_LOCAL_WRITE);
	job->slot = calloc(slots, sizeof(*job->slot));
	job->slot_lane = calloc(slots, sizeof(*job->slot_lane));
	job->scratch = malloc(s->max_size + GRH_LEN);
	if (!job->slot || !job->slot_lane || !job->scratch)
		die("no memory");
	for (unsigned int i = 0; i < s->lanes; i++)
		create_lane(job, i);
}

static void connect_qp(struct job *job, struct ibv_qp *qp, enum ibv_qp_type type, uint32_t psn,
		       const struct qp_address *remote)
{
	struct connection c = job->connection;
	int rc;

	c.type = type;
	rc = qp_connect(qp, &c, job->peer.gid_index, remote, psn);
	if (rc)
		die("cannot connect QP %u: %s", qp->qp_num, strerror(rc));
}

static void connect_lane(struct job *job, struct lane *lane)
{
	struct rng rng = rng_for(job->set.seed, 3, (uint64_t)mine(job) << 32 | lane->index, job->round);
	struct {
		struct qp_address qp, target;
		uint64_t addr;
		uint32_t rkey, srqn;
	} here = {
		.qp = { lane->qp->qp_num, rng_below(&rng, 1 << 24), job->peer.gid },
		.addr = (uintptr_t)lane->window.mem,
		.rkey = ((struct ibv_mr *)lane->window.mr)->rkey,
	}, there;

	if (is_xrc(job)) {
		here.target = (struct qp_address) {
			lane->target->qp_num, rng_below(&rng, 1 << 24), job->peer.gid,
		};
		if (ibv_get_srq_num(job->srq, &here.srqn))
			die("ibv_get_srq_num: %s", strerror(errno));
	}

	peer_exchange(&job->peer, &here, &there, sizeof(here));
	lane->remote = there.qp;
	lane->far_addr = there.addr;
	lane->far_rkey = there.rkey;
	lane->far_srqn = there.srqn;
	if (is_xrc(job)) {
		/* Who asks here is answered by the other side's target, and vice versa. */
		connect_qp(job, lane->qp, IBV_QPT_XRC_SEND, here.qp.psn, &there.target);
		connect_qp(job, lane->target, IBV_QPT_XRC_RECV, here.target.psn, &there.qp);
	} else {
		connect_qp(job, lane->qp, job->set.type, here.qp.psn, &there.qp);
	}
	if (job->set.type == IBV_QPT_UD && !lane->ah) {
		struct ibv_ah_attr path = path_to(&there.qp.gid, job->peer.gid_index);

		lane->ah = ibv_create_ah(job->pd, &path);
		if (!lane->ah)
			die("ibv_create_ah: %s", strerror(errno));
	}
}

static void destroy_all(struct job *job)
{
	int rc = 0;

	for (unsigned int i = 0; i < job->set.lanes; i++) {
		struct lane *lane = &job->lane[i];

		if (lane->ah)
			rc |= ibv_destroy_ah(lane->ah);
		rc |= ibv_destroy_qp(lane->qp);
		if (lane->target)
			rc |= ibv_destroy_qp(lane->target);
		rc |= ibv_dereg_mr(lane->arena.mr);
		rc |= ibv_dereg_mr(lane->window.mr);
	}
	if (job->srq)
		rc |= ibv_destroy_srq(job->srq);
	if (job->xrcd)
		rc |= ibv_close_xrcd(job->xrcd);
	rc |= ibv_destroy_cq(job->send_cq);
	rc |= ibv_destroy_cq(job->recv_cq);
	if (job->channel)
		rc |= ibv_destroy_comp_channel(job->channel);
	rc |= ibv_dereg_mr(job->inbox.mr);
	rc |= ibv_dealloc_pd(job->pd);
	if (rc)
		die("destroying: %s", strerror(rc));
}

/* -- a round's plan --------------------------------------------------------- */

/* Fences what overlaps a READ that may have to be repeated. */
static void plan_fences(struct lane *lane)
{
	unsigned int first = 0;

	for (unsigned int i = 0; i < lane->n_mine; i++) {
		struct op *op = &lane->mine[i];

		if (op->kind == OP_READ || op_is_send(op->kind))
			continue;
		for (unsigned int k = first; k < i; k++) {
			const struct op *read = &lane->mine[k];

			if (read->kind == OP_READ && read->remote < op->remote + op->size &&
			    op->remote < read->remote + read->size)
				op->fenced = true;
		}
		if (op->fenced)
			first = i;
	}
}

static void plan_request(struct job *job, struct lane *lane, unsigned int i, uint32_t *at)
{
	struct op *op = &lane->mine[i];

	if (op_is_place(op->kind)) {
		op->local.n = 0;
	} else if (op_is_word(op->kind)) {
		*at = (*at + 7) & ~7u;
		op->local.n = 1;
		op->local.piece[0] = (struct piece) { *at, 8 };
		*at += 8 + rng_below(&job->rng, PIECE_GAP);
	} else {
		lay_out(&job->rng, op->size, job->max_sge, at, &op->local);
	}
	op->signalled = i == lane->n_mine - 1 || rng_below(&job->rng, 3);
	op->is_inline = op_gathers(op->kind) && op->size <= job->max_inline &&
			rng_below(&job->rng, 2);
	if (op_gathers(op->kind)) {
		make_payload(&job->set, mine(job), lane->index, job->round, i, job->scratch, op->size);
		scatter(lane->arena.mem, &op->local, job->scratch, op->size);
		scatter(lane->arena.model, &op->local, job->scratch, op->size);
	}
	apply(lane->far_window, op, job->scratch);
	if (!op_gathers(op->kind) && !op_is_place(op->kind))
		scatter(lane->arena.model, &op->local, job->scratch, op->size);
	job->count[op->kind]++;
	job->bytes += op->size;
	job->inlined += op->is_inline;
}

/* Receives of one lane, or any lane's with an SRQ. */
static void plan_receive(struct job *job, unsigned int lane, uint32_t size, uint32_t *at)
{
	struct slot *slot = &job->slot[job->n_slots];

	slot->size = size;
	slot->done = false;
	lay_out(&job->rng, size, job->max_sge, at, &slot->layout);
	if (*at > job->inbox.size)
		die("the inbox is too small: a mistake of the test");
	job->slot_lane[job->n_slots++] = lane;
}

static uint32_t receive_size(struct job *job, const struct op *op)
{
	uint32_t header = job->set.type == IBV_QPT_UD ? GRH_LEN : 0;

	if (job->set.flags & (USE_SRQ | LOSSY))
		return largest_message(&job->set) + header;
	if (op->kind == OP_WRITE_IMM)
		return rng_below(&job->rng, 8);
	return op->size + header + (rng_below(&job->rng, 2) ? rng_below(&job->rng, PIECE_GAP) : 0);
}

static void plan_lane(struct job *job, struct lane *lane, uint32_t *inbox_at)
{
	const struct settings *s = &job->set;
	uint32_t at = rng_below(&job->rng, 64);

	lane->n_mine = plan_ops(s, mine(job), lane->index, job->round, lane->mine);
	lane->n_theirs = plan_ops(s, !mine(job), lane->index, job->round, lane->theirs);
	lane->posted = lane->completed = lane->arrived = 0;
	fill(payload_key(s, mine(job), lane->index, job->round, ~0u), lane->arena.mem, lane->arena.size);
	memcpy(lane->arena.model, lane->arena.mem, lane->arena.size);
	for (unsigned int i = 0; i < lane->n_mine; i++)
		plan_request(job, lane, i, &at);
	if (at > lane->arena.size)
		die("the arena is too small: a mistake of the test");
	plan_fences(lane);
	for (unsigned int i = 0; i < lane->n_theirs; i++) {
		struct op *op = &lane->theirs[i];

		if (op->kind == OP_WRITE || op->kind == OP_WRITE_IMM)
			make_payload(s, !mine(job), lane->index, job->round, i, job->scratch, op->size);
		apply(lane->window.model, op, job->scratch);
		if (!op_takes_receive(op->kind))
			continue;
		job->expected++;
		for (int copies = s->flags & LOSSY ? 2 : 1; copies; copies--)
			plan_receive(job, lane->index, receive_size(job, op), inbox_at);
	}
}

static void plan_round(struct job *job)
{
	uint32_t at = 0;

	job->rng = rng_for(job->set.seed, 4, mine(job), job->round);
	job->n_slots = job->posted_slots = job->expected = job->received = 0;
	fill(payload_key(&job->set, mine(job), ~0u, job->round, 0), job->inbox.mem, job->inbox.size);
	memcpy(job->inbox.model, job->inbox.mem, job->inbox.size);
	for (unsigned int i = 0; i < job->set.lanes; i++)
		plan_lane(job, &job->lane[i], &at);
}

/* -- posting ---------------------------------------------------------------- */

static unsigned int sge_list(const struct region *region, const struct layout *layout,
			     struct ibv_sge *sge)
{
	for (unsigned int i = 0; i < layout->n; i++)
		sge[i] = (struct ibv_sge) {
			.addr = (uintptr_t)region->mem + layout->piece[i].at,
			.length = layout->piece[i].len,
			.lkey = ((struct ibv_mr *)region->mr)->lkey,
		};
	return layout->n;
}

/* While messages arrive, and take from what is posted. */
static void grow(struct job *job)
{
	struct ibv_srq_attr attr = { .max_wr = job->srq_size + 1 };
	int rc = ibv_modify_srq(job->srq, &attr, IBV_SRQ_MAX_WR);

	if (rc)
		die("ibv_modify_srq to %u: %s", attr.max_wr, strerror(rc));
	rc = ibv_query_srq(job->srq, &attr);
	if (rc || attr.max_wr <= job->srq_size)
		die("the SRQ has %u after it had %u: %s", attr.max_wr, job->srq_size, strerror(rc));
	job->srq_size = attr.max_wr;
	job->grown++;
}

static void post_receive(struct job *job)
{
	unsigned int i = job->posted_slots++;
	struct slot *slot = &job->slot[i];
	struct ibv_sge sge[MAX_PIECES];
	struct ibv_recv_wr wr = { .wr_id = RECEIVE_ID | i, .sg_list = sge }, *bad;
	int rc;

	wr.num_sge = sge_list(&job->inbox, &slot->layout, sge);
	if (job->srq)
		while ((rc = ibv_post_srq_recv(job->srq, &wr, &bad)) == ENOMEM && job->grows)
			grow(job);
	else
		rc = ibv_post_recv(job->lane[job->slot_lane[i]].qp, &wr, &bad);
	if (rc)
		die("posting a receive: %s", strerror(rc));
}

static void build(struct job *job, struct lane *lane, unsigned int i, struct ibv_send_wr *wr,
		  struct ibv_sge *sge)
{
	static const enum ibv_wr_opcode opcodes[OP_KINDS] = {
		IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM,
		IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD,
		IBV_WR_ATOMIC_WRITE, IBV_WR_FLUSH,
	};
	const struct op *op = &lane->mine[i];

	*wr = (struct ibv_send_wr) {
		.wr_id = (uint64_t)lane->index << 32 | i,
		.opcode = opcodes[op->kind],
		.sg_list = sge,
		.num_sge = sge_list(&lane->arena, &op->local, sge),
		.imm_data = htobe32(op->imm),
		.send_flags = (op->signalled ? IBV_SEND_SIGNALED : 0) |
			      (op->fenced ? IBV_SEND_FENCE : 0) |
			      (op->is_inline ? IBV_SEND_INLINE : 0) |
			      (op_takes_receive(op->kind) ? IBV_SEND_SOLICITED : 0),
	};
	job->fenced += op->fenced;
	if (is_xrc(job))
		wr->qp_type.xrc.remote_srqn = lane->far_srqn;
	if (job->set.type == IBV_QPT_UD) {
		wr->wr.ud.ah = lane->ah;
		wr->wr.ud.remote_qpn = lane->remote.qpn;
		wr->wr.ud.remote_qkey = TEST_QKEY;
	} else if (op->kind == OP_CMP_SWAP || op->kind == OP_FETCH_ADD) {
		bool add = op->kind == OP_FETCH_ADD;

		wr->wr.atomic.remote_addr = lane->far_addr + op->remote;
		wr->wr.atomic.rkey = lane->far_rkey;
		wr->wr.atomic.compare_add = add ? op->operand : op->compare;
		wr->wr.atomic.swap = op->operand;
	} else {
		wr->wr.rdma.remote_addr = lane->far_addr + op->remote;
		wr->wr.rdma.rkey = lane->far_rkey;
	}
}

/* Inline data are the device's once posted: what was their source is spoilt. */
static void spoil(struct lane *lane, const struct op *op)
{
	for (unsigned int i = 0; i < op->local.n; i++) {
		const struct piece *p = &op->local.piece[i];

		memset(lane->arena.mem + p->at, 0xee, p->len);
		memset(lane->arena.model + p->at, 0xee, p->len);
	}
}

static void post_place(struct job *job, struct lane *lane)
{
	unsigned int i = lane->posted;
	const struct op *op = &lane->mine[i];
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(lane->qp);
	uint64_t addr = lane->far_addr + op->remote;
	int rc;

	ibv_wr_start(qp);
	qp->wr_id = (uint64_t)lane->index << 32 | i;
	qp->wr_flags = (op->signalled ? IBV_SEND_SIGNALED : 0) |
		       (op->fenced ? IBV_SEND_FENCE : 0);
	job->fenced += op->fenced;
	if (op->kind == OP_ATOMIC_WRITE)
		ibv_wr_atomic_write(qp, lane->far_rkey, addr, &op->operand);
	else
		ibv_wr_flush(qp, lane->far_rkey, addr, op->size, IBV_FLUSH_GLOBAL,
			     op->match ? IBV_FLUSH_MR : IBV_FLUSH_RANGE);
	rc = ibv_wr_complete(qp);
	if (rc)
		die("posting %s: %s", op_names[op->kind], strerror(rc));
	lane->posted++;
}

static void post_chain(struct job *job, struct lane *lane)
{
	struct ibv_send_wr wr[8], *bad;
	struct ibv_sge sge[8][MAX_PIECES];
	unsigned int most = 1 + rng_below(&job->rng, 8), first = lane->posted, n = 0;
	int rc;

	if (op_is_place(lane->mine[first].kind)) {
		post_place(job, lane);
		return;
	}
	while (n < most && first + n < lane->n_mine && !op_is_place(lane->mine[first + n].kind))
		n++;
	for (unsigned int i = 0; i < n; i++) {
		build(job, lane, first + i, &wr[i], sge[i]);
		if (i)
			wr[i - 1].next = &wr[i];
	}
	if (job->set.flags & EXTENDED)
		rc = extended_post_send(lane->qp, wr);
	else
		rc = ibv_post_send(lane->qp, wr, &bad);
	if (rc)
		die("posting %u sends: %s", n, strerror(rc));
	lane->posted += n;
	for (unsigned int i = first; i < first + n; i++)
		if (lane->mine[i].is_inline)
			spoil(lane, &lane->mine[i]);
}

/* -- completions ------------------------------------------------------------ */

__attribute__((noreturn, format(printf, 3, 4)))
static void wrong(struct job *job, const struct lane *lane, const char *format, ...)
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

static void check_send(struct job *job, const struct ibv_wc *wc)
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

static void check_receive(struct job *job, const struct ibv_wc *wc)
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

static unsigned int poll_cq(struct job *job, struct ibv_cq *cq,
			    void (*check)(struct job *job, const struct ibv_wc *wc))
{
	struct ibv_wc wc[16];
	int n;

	if (job->set.flags & EXTENDED)
		n = extended_poll_cq(cq, 16, wc);
	else
		n = ibv_poll_cq(cq, 16, wc);
	if (n < 0)
		wrong(job, NULL, "ibv_poll_cq gives %d", n);
	for (int i = 0; i < n; i++)
		check(job, &wc[i]);
	return n;
}

static unsigned int poll_both(struct job *job)
{
	return poll_cq(job, job->recv_cq, check_receive) + poll_cq(job, job->send_cq, check_send);
}

static void sleep_for_event(struct job *job, int ms)
{
	struct pollfd fd = { .fd = job->channel->fd, .events = POLLIN };
	struct ibv_cq *cq;
	void *context;

	if (ibv_req_notify_cq(job->send_cq, 0) || ibv_req_notify_cq(job->recv_cq, 0))
		wrong(job, NULL, "ibv_req_notify_cq: %s", strerror(errno));
	if (poll_both(job) || poll(&fd, 1, ms) <= 0)
		return;
	if (ibv_get_cq_event(job->channel, &cq, &context))
		wrong(job, NULL, "ibv_get_cq_event: %s", strerror(errno));
	ibv_ack_cq_events(cq, 1);
}

static bool finished(const struct job *job)
{
	for (unsigned int i = 0; i < job->set.lanes; i++)
		if (job->lane[i].completed < job->lane[i].n_mine)
			return false;
	return job->set.flags & LOSSY || job->received == job->expected;
}

static void stuck(struct job *job)
{
	for (unsigned int i = 0; i < job->set.lanes; i++) {
		struct lane *lane = &job->lane[i];

		fprintf(stderr, "lane %u (QP %u, state %d): %u operations, %u posted, %u completed; next: %s of %u\n",
			i, lane->qp->qp_num, qp_state(lane->qp), lane->n_mine, lane->posted,
			lane->completed, op_names[lane->mine[lane->completed % ROUND_OPS].kind],
			lane->mine[lane->completed % ROUND_OPS].size);
	}
	wrong(job, NULL, "stuck: %u messages of %u arrived, %u receives posted", job->received,
	      job->expected, job->posted_slots);
}

static void run_posted(struct job *job)
{
	uint64_t end = now_ns() + job->set.seconds * 1000000000ull;

	while (!finished(job)) {
		unsigned int did = 0;

		if (job->posted_slots < job->n_slots) {
			post_receive(job);
			did++;
		}
		for (unsigned int i = 0; i < job->set.lanes; i++) {
			struct lane *lane = &job->lane[i];

			if (lane->posted < lane->n_mine) {
				post_chain(job, lane);
				did++;
			}
		}
		did += poll_both(job);
		if (!did && now_ns() > end)
			stuck(job);
		if (!did && job->channel)
			sleep_for_event(job, 1000);
	}
}

/* In LOSSY mode what is late may still come: until nothing has for a while. */
static void drain(struct job *job)
{
	uint64_t last = now_ns();

	while (now_ns() - last < 100000000)
		if (poll_both(job))
			last = now_ns();
	if (job->received < job->expected)
		job->lost += job->expected - job->received;
	for (unsigned int i = 0; i < job->set.lanes; i++)
		if (qp_reset(job->lane[i].qp))
			wrong(job, &job->lane[i], "cannot reset the QP");
}

static void check_regions(struct job *job)
{
	const uint8_t *at = region_differs(&job->inbox);

	if (at)
		wrong(job, NULL, "byte %#zx of the inbox is wrong", at - job->inbox.mem);
	for (unsigned int i = 0; i < job->set.lanes; i++) {
		struct lane *lane = &job->lane[i];

		at = region_differs(&lane->window);
		if (at)
			wrong(job, lane, "byte %#zx of the window is %#x, not %#x", at - lane->window.mem,
			      *at, lane->window.model[at - lane->window.mem]);
		at = region_differs(&lane->arena);
		if (at)
			wrong(job, lane, "byte %#zx of the arena is %#x, not %#x", at - lane->arena.mem,
			      *at, lane->arena.model[at - lane->arena.mem]);
	}
}

static void run_round(struct job *job)
{
	plan_round(job);
	while (job->posted_slots < job->n_slots && !job->late)
		post_receive(job);
	peer_barrier(&job->peer);
	run_posted(job);
	peer_barrier(&job->peer);
	if (job->set.flags & LOSSY)
		drain(job);
	check_regions(job);
	if (job->set.flags & LOSSY) {
		/* Both QPs of a lane are reset before either is connected. */
		peer_barrier(&job->peer);
		for (unsigned int i = 0; i < job->set.lanes; i++)
			connect_lane(job, &job->lane[i]);
		peer_barrier(&job->peer);
	}
}

static void report(const struct job *job)
{
	printf("verify: ok, seed %llu, %u rounds, %u lanes, %llu bytes;",
	       (unsigned long long)job->set.seed, job->set.rounds, job->set.lanes,
	       (unsigned long long)job->bytes);
	for (int k = 0; k < OP_KINDS; k++)
		if (job->count[k])
			printf(" %s %llu", op_names[k], (unsigned long long)job->count[k]);
	printf(" inline %llu fenced %llu", (unsigned long long)job->inlined,
	       (unsigned long long)job->fenced);
	if (job->grown)
		printf(" grown %llu", (unsigned long long)job->grown);
	if (job->set.flags & LOSSY)
		printf(" lost %llu", (unsigned long long)job->lost);
	printf("\n");
}

int main(int argc, char **argv)
{
	static struct job job;

	parse(&job, argc, argv);
	peer_open(&job.peer);
	if (job.peer.server)
		peer_receive(&job.peer, &job.set, sizeof(job.set));
	else
		peer_send(&job.peer, &job.set, sizeof(job.set));
	create_all(&job);
	for (unsigned int i = 0; i < job.set.lanes; i++)
		connect_lane(&job, &job.lane[i]);
	peer_barrier(&job.peer);
	for (job.round = 0; job.round < job.set.rounds; job.round++)
		run_round(&job);
	peer_barrier(&job.peer);
	destroy_all(&job);
	peer_close(&job.peer);
	report(&job);
	return 0;
}
