/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * States of the parts of a QP.
 *
 * Besides the state that software knows (enum qhca_qp_state), four parts of a QP
 * have a state of their own: its requester, its responder, and for each of these
 * the page fault that it waits for.  state.c has a table with the name of each
 * state, the states that may precede it, the QPs that may be in it, and its
 * properties.  What is no state but a debt or a memory, such as "an ACK is due"
 * or "the event was raised", is a flag (HCA_SF_*, HCA_RF_*).
 *
 * A context that comes back from memory with a combination that the table does
 * not permit is refused.  Builds with HCA_CHECKED (the unit tests, simulator and
 * fuzz targets) also stop at a transition that the table does not have.
 */
#ifndef HCA_CORE_STATE_H
#define HCA_CORE_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "qhca.h"

struct hca_fn;
struct hca_qp;

/* hca_qp.s_state */
enum hca_requester {
	HCA_REQ_READY,		/* no timer runs */
	HCA_REQ_ACK_WAIT,	/* the local ACK timeout runs */
	HCA_REQ_RNR_WAIT,	/* the time of an RNR NAK runs; nothing is sent */
	HCA_NUM_REQ
};

/* hca_qp.r_state */
enum hca_responder {
	HCA_RESP_READY,		/* the request with r_psn is next */
	HCA_RESP_NAK_DUE,	/* a NAK is to be sent, and lets the peer go on */
	HCA_RESP_NAK_SENT,	/* ... has been sent: no other for the same gap */
	HCA_RESP_FATAL_NAK_DUE,	/* a NAK, or an ACK, is to be sent; then the QP ends */
	HCA_RESP_STOPPED,	/* the QP is in ERR */
	HCA_RESP_DROPPING,	/* UC: up to the next first packet */
	HCA_NUM_RESP
};

/* hca_qp.f_req */
enum hca_requester_fault {
	HCA_REQF_NONE,
	HCA_REQF_GATHER,	/* the packet fault.psn waits for its payload */
	HCA_REQF_SCATTER,	/* the response s_una waits for its target */
	HCA_REQF_FAILED,	/* packet fault.psn ends in error in its turn */
	HCA_NUM_REQF
};

/* hca_qp.f_resp */
enum hca_responder_fault {
	HCA_RESPF_NONE,
	HCA_RESPF_DROPPED,	/* unreliable: the packet was dropped */
	HCA_RESPF_REQUEST,	/* the next request waits; RNR NAKs for it */
	HCA_RESPF_READ,		/* the response to a READ waits */
	HCA_RESPF_READ_NAKED,	/* ... and a request got an RNR NAK for it */
	HCA_RESPF_REQUEST_READ,	/* the next request waits, and a READ behind it */
	HCA_RESPF_FAILED,	/* unreliable: the next packet for the page fails */
	HCA_NUM_RESPF
};

/* Properties of states. */
#define HCA_PS_NAK_DUE		0x01u	/* responder: a NAK is to be sent */
#define HCA_PS_NO_REQUESTS	0x02u	/* responder: requests are ignored */
#define HCA_PS_WAITS		0x04u	/* fault: it is outstanding */
#define HCA_PS_HOLDS_REQUEST	0x08u	/* fault: of the next request in order */
#define HCA_PS_HOLDS_READS	0x10u	/* fault: no READ response goes out */
#define HCA_PS_NAKED		0x20u	/* fault: the peer had RNR NAKs for it */
#define HCA_PS_NO_RESPONSES	0x40u	/* fault: no response is taken */

/* Has the state that @part of @qp is in the property @ps? */
bool hca_qp_has(const struct hca_qp *qp, enum qhca_qp_part part, uint8_t ps);
/* Move @part to @state, which it may be in already.  The caller marks @qp dirty. */
void hca_qp_enter(struct hca_fn *fn, struct hca_qp *qp,
		  enum qhca_qp_part part, uint8_t state);
/* May a QP of this type and state have its parts in their states? */
bool hca_qp_parts_sane(const struct hca_qp *qp);
/*
 * Can the device have made the records of its faults that wait?  Not if the cause of one
 * belongs to the other direction or to no QP, or if its token is not one of @qp.
 */
bool hca_qp_faults_sane(const struct hca_qp *qp);
/* With HCA_CHECKED: stop unless both. */
void hca_qp_check(const struct hca_qp *qp);
void hca_qp_part_info(const struct hca_qp *qp, struct qhca_qp_info *info);

#endif /* HCA_CORE_STATE_H */
