// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The states of the parts of a QP, as a table: names, transitions, who may be in
 * them, properties.
 */
#include "transport/transport.h"

#ifdef HCA_CHECKED
#include <stdio.h>
#include <stdlib.h>
#endif

#define REQ(state)	(1u << HCA_REQ_##state)
#define RESP(state)	(1u << HCA_RESP_##state)
#define REQF(state)	(1u << HCA_REQF_##state)
#define RESPF(state)	(1u << HCA_RESPF_##state)
#define ANY		0xffu

/* States of the QP. */
#define S(state)	(1u << QHCA_QPS_##state)
#define SENDS		(S(RTS) | S(SQD))
#define RECEIVES	(S(RTR) | SENDS | S(SQE))
#define LIVES		(S(RESET) | S(INIT) | RECEIVES)

/* Types of the QP. */
#define RELIABLE	(1u << QHCA_QPT_RC | 1u << QHCA_QPT_XRC_INI | \
			 1u << QHCA_QPT_XRC_TGT)
#define UC		(1u << QHCA_QPT_UC)
#define UNRELIABLE	(UC | 1u << QHCA_QPT_UD | 1u << QHCA_QPT_GSI | \
			 1u << QHCA_QPT_RAW)

struct part_state {
	const char *name;
	uint8_t from;			/* bit n: may follow state n */
	uint8_t qp_states;		/* bit n: a QP in state n may be in it */
	uint8_t types;			/* bit n: a QP of type n may be in it */
	uint8_t properties;		/* HCA_PS_* */
};

static const struct part_state requester[] = {
	[HCA_REQ_READY] = { "ready", ANY, ANY, ANY, 0 },
	[HCA_REQ_ACK_WAIT] = { "ack-wait", REQ(READY), SENDS, RELIABLE, 0 },
	[HCA_REQ_RNR_WAIT] = { "rnr-wait", REQ(READY) | REQ(ACK_WAIT), SENDS,
			       RELIABLE, 0 },
};

static const struct part_state responder[] = {
	[HCA_RESP_READY] = {
		"ready", RESP(NAK_DUE) | RESP(NAK_SENT) | RESP(DROPPING),
		LIVES, ANY, 0,
	},
	[HCA_RESP_NAK_DUE] = {
		"nak-due", RESP(READY) | RESP(NAK_SENT), RECEIVES, RELIABLE,
		HCA_PS_NAK_DUE,
	},
	[HCA_RESP_NAK_SENT] = {
		"nak-sent", RESP(NAK_DUE), RECEIVES, RELIABLE, 0,
	},
	[HCA_RESP_FATAL_NAK_DUE] = {
		"fatal-nak-due", RESP(READY) | RESP(NAK_DUE) | RESP(NAK_SENT),
		RECEIVES, RELIABLE, HCA_PS_NAK_DUE | HCA_PS_NO_REQUESTS,
	},
	[HCA_RESP_STOPPED] = {
		"stopped", ANY, S(ERR), ANY, HCA_PS_NO_REQUESTS,
	},
	[HCA_RESP_DROPPING] = { "dropping", RESP(READY), RECEIVES, UC, 0 },
};

static const struct part_state requester_fault[] = {
	[HCA_REQF_NONE] = { "none", ANY, ANY, ANY, 0 },
	[HCA_REQF_GATHER] = {
		"gather", REQF(NONE) | REQF(FAILED), SENDS | S(SQE), ANY,
		HCA_PS_WAITS,
	},
	[HCA_REQF_SCATTER] = {
		"scatter", REQF(NONE) | REQF(GATHER) | REQF(FAILED), SENDS,
		RELIABLE, HCA_PS_WAITS | HCA_PS_NO_RESPONSES,
	},
	[HCA_REQF_FAILED] = { "failed", REQF(GATHER), SENDS, ANY, 0 },
};

static const struct part_state responder_fault[] = {
	[HCA_RESPF_NONE] = { "none", ANY, ANY, ANY, 0 },
	[HCA_RESPF_DROPPED] = {
		"dropped", RESPF(NONE) | RESPF(FAILED), RECEIVES, UNRELIABLE,
		HCA_PS_WAITS,
	},
	[HCA_RESPF_REQUEST] = {
		"request", RESPF(NONE), RECEIVES, RELIABLE,
		HCA_PS_WAITS | HCA_PS_HOLDS_REQUEST | HCA_PS_NAKED,
	},
	[HCA_RESPF_READ] = {
		"read", RESPF(NONE), RECEIVES, RELIABLE,
		HCA_PS_WAITS | HCA_PS_HOLDS_READS,
	},
	[HCA_RESPF_READ_NAKED] = {
		"read-naked", RESPF(READ), RECEIVES, RELIABLE,
		HCA_PS_WAITS | HCA_PS_HOLDS_READS | HCA_PS_NAKED,
	},
	[HCA_RESPF_REQUEST_READ] = {
		"request-read", RESPF(REQUEST), RECEIVES, RELIABLE,
		HCA_PS_WAITS | HCA_PS_HOLDS_REQUEST | HCA_PS_HOLDS_READS |
		HCA_PS_NAKED,
	},
	[HCA_RESPF_FAILED] = {
		"failed", RESPF(DROPPED), RECEIVES, UNRELIABLE, 0,
	},
};

static const struct {
	const struct part_state *state;
	uint8_t num;
} parts[QHCA_NUM_QP_PARTS] = {
	[QHCA_PART_REQUESTER] = { requester, HCA_NUM_REQ },
	[QHCA_PART_RESPONDER] = { responder, HCA_NUM_RESP },
	[QHCA_PART_REQUESTER_FAULT] = { requester_fault, HCA_NUM_REQF },
	[QHCA_PART_RESPONDER_FAULT] = { responder_fault, HCA_NUM_RESPF },
};

const char *qhca_qp_part_state(enum qhca_qp_part part, unsigned int state)
{
	if ((unsigned int)part >= QHCA_NUM_QP_PARTS || state >= parts[part].num)
		return NULL;
	return parts[part].state[state].name;
}

static uint8_t state_of(const struct hca_qp *qp, enum qhca_qp_part part)
{
	switch (part) {
	case QHCA_PART_REQUESTER:
		return qp->s_state;
	case QHCA_PART_RESPONDER:
		return qp->r_state;
	case QHCA_PART_REQUESTER_FAULT:
		return qp->f_req;
	default:
		return qp->f_resp;
	}
}

static void set_state(struct hca_qp *qp, enum qhca_qp_part part, uint8_t state)
{
	switch (part) {
	case QHCA_PART_REQUESTER:
		qp->s_state = state;
		break;
	case QHCA_PART_RESPONDER:
		qp->r_state = state;
		break;
	case QHCA_PART_REQUESTER_FAULT:
		qp->f_req = state;
		break;
	default:
		qp->f_resp = state;
		break;
	}
}

bool hca_qp_has(const struct hca_qp *qp, enum qhca_qp_part part, uint8_t ps)
{
	return parts[part].state[state_of(qp, part)].properties & ps;
}

/* Stop here, since the engine has a defect; in other builds go on. */
static void stop_unless(bool right, const struct hca_qp *qp, const char *what)
{
#ifdef HCA_CHECKED
	if (right)
		return;
	fprintf(stderr, "QP %u (type %u, state %u): %s:", qp->qpn, qp->type,
		qp->state, what);
	for (unsigned int i = 0; i < QHCA_NUM_QP_PARTS; i++)
		fprintf(stderr, " %u", state_of(qp, i));
	fprintf(stderr, "\n");
	abort();
#else
	(void)right, (void)qp, (void)what;
#endif
}

void hca_qp_enter(struct hca_fn *fn, struct hca_qp *qp,
		  enum qhca_qp_part part, uint8_t state)
{
	const struct part_state *to = &parts[part].state[state];
	uint8_t from = state_of(qp, part);

	if (from == state)
		return;
	stop_unless(to->from >> from & 1, qp, to->name);
	hca_trace(fn, QHCA_TRACE_QP_PART, qp->qpn, part, from, state);
	set_state(qp, part, state);
}

bool hca_qp_parts_sane(const struct hca_qp *qp)
{
	for (unsigned int i = 0; i < QHCA_NUM_QP_PARTS; i++) {
		uint8_t state = state_of(qp, i);

		if (state >= parts[i].num ||
		    !(parts[i].state[state].qp_states >> qp->state & 1) ||
		    !(parts[i].state[state].types >> qp->type & 1))
			return false;
	}
	return true;
}

static bool token_sane(const struct hca_qp *qp, uint32_t token, uint32_t dir)
{
	return token & HCA_FAULT_TOKEN_GEN &&
	       (token & ~HCA_FAULT_TOKEN_GEN) == (qp->qpn | dir);
}

bool hca_qp_faults_sane(const struct hca_qp *qp)
{
	const struct hca_fault *req = &qp->fault[HCA_FAULT_DIR_REQ];
	const struct hca_fault *resp = &qp->fault[HCA_FAULT_DIR_RESP];
	uint32_t cause = QHCA_GET(QHCA_FAULT_CAUSE, req->flags);

	if (hca_qp_has(qp, QHCA_PART_REQUESTER_FAULT, HCA_PS_WAITS) &&
	    ((cause != QHCA_FAULT_GATHER && cause != QHCA_FAULT_SCATTER) ||
	     !token_sane(qp, req->token, HCA_FAULT_TOKEN_DIR)))
		return false;
	cause = QHCA_GET(QHCA_FAULT_CAUSE, resp->flags);
	return !hca_qp_has(qp, QHCA_PART_RESPONDER_FAULT, HCA_PS_WAITS) ||
	       (cause >= QHCA_FAULT_RECV && cause <= QHCA_FAULT_ATOMIC &&
		token_sane(qp, resp->token, 0));
}

void hca_qp_check(const struct hca_qp *qp)
{
	stop_unless(hca_qp_parts_sane(qp), qp, "impossible combination");
	stop_unless(hca_qp_faults_sane(qp), qp, "impossible fault");
}

void hca_qp_part_info(const struct hca_qp *qp, struct qhca_qp_info *info)
{
	for (unsigned int i = 0; i < QHCA_NUM_QP_PARTS; i++)
		info->part[i] = state_of(qp, i);
}
