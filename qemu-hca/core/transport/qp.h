/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Queue pairs: contexts, states, commands.
 *
 * All state of a QP is in its context (struct qhca_qpc in host memory), which the
 * queue descriptor cache holds as struct hca_qp.  Beyond the context, struct hca_qp
 * has copies of ring entries only.  They are lost when the line is evicted, so every
 * part of the transport reads an entry again if its copy is missing.
 *
 * Outside contexts there is one struct hca_qpslot for each possible QPN,
 * allocated once, so that doorbells, timers and the scheduler touch no host
 * memory and the device does not grow with the number of QPs.
 */
#ifndef HCA_CORE_QP_H
#define HCA_CORE_QP_H

#include <stdbool.h>
#include <stdint.h>

#include "qhca.h"
#include "mem/descriptor_cache.h"
#include "handler.h"
#include "transport/linger.h"
#include "transport/state.h"
#include "queue/qbuf.h"
#include "queue/wq.h"

#define HCA_QPN_GSI		1
#define HCA_FIRST_USER_QPN	2
#define HCA_QPN_MASK		0xffffffu
#define HCA_QPN_MCAST		0xffffffu

/* ---- hardware part of the context */

/*
 * A responder resource: a READ, atomic, ATOMIC WRITE or FLUSH that was accepted,
 * kept to be answered in order and answered again (IBTA 9.7.5.1.1, 9.7.4.1).
 */
struct hca_resource_hw {
	__le64 addr;			/* remote address of the first byte */
	__le64 value;			/* atomic: original; READ: length in bytes,
					   XRC: the SRQ in the upper half */
	__le32 rkey;
	__le32 psn;			/* first PSN; HCA_RES_* in the top octet */
	__le32 start;			/* first PSN of the (re-)request served,
					   HCA_RES_F_* in the top octet */
	__le32 next;			/* next response PSN to send */
};
QHCA_ASSERT_SIZE(struct hca_resource_hw, 32);

/* A page fault that one direction of the QP waits for (paging.h). */
struct hca_fault_hw {
	__le64 addr;			/* first address that is not present */
	__le64 len;			/* bytes wanted from there */
	__le64 time;			/* ns, when it was raised */
	__le32 token;			/* 0: none */
	__le32 key;			/* as given */
	__le32 flags;			/* QHCA_FAULT_* */
	__le32 done;			/* bytes of the message before @addr */
	__le32 psn;			/* requester: the first PSN that waits */
	__le32 bus_len;
	__le64 bus;			/* stage 2: bus address, bytes wanted there */
};
QHCA_ASSERT_SIZE(struct hca_fault_hw, 56);

enum hca_fault_dir { HCA_FAULT_DIR_RESP, HCA_FAULT_DIR_REQ,
		     HCA_NUM_FAULT_DIRS };

#define HCA_RES_NONE		0u
#define HCA_RES_READ		1u
#define HCA_RES_ATOMIC		2u
#define HCA_RES_PLACE		3u	/* ATOMIC WRITE, FLUSH */
#define HCA_RES_F_PENDING	1u	/* an answer is to be sent */
#define HCA_RES_F_REPLAY	2u	/* ... again, for a duplicate request */
#define HCA_RES_F_BAD		4u	/* the page of the answer is unavailable */
#define HCA_RES_F_CHECKED	8u	/* the request's look-up is its first packet's */
#define HCA_RES_F_AGAIN		16u	/* it was asked for again: in packets */

/*
 * Fields of the hardware part, once: X(bits, name).  Widest first, so that
 * the packed order has natural alignment.
 */
#define HCA_QPC_HW_FIELDS(X) \
	X(64, r_addr)		/* WRITE in progress: next address */ \
	X(64, kept_deadline)	/* while frozen: the timer, and other things on */ \
	X(64, rsvd64b) \
	X(32, sq_pi)		/* requester: producer index last seen */ \
	X(32, sq_ci)		/* oldest send WQE not completed */ \
	X(32, sq_cur)		/* send WQE at the cursor */ \
	X(32, sq_max)		/* one past the newest WQE begun */ \
	X(32, s_psn)		/* next PSN to send */ \
	X(32, s_una)		/* oldest PSN not acknowledged */ \
	X(32, s_max)		/* one past the newest PSN sent */ \
	X(32, s_cur_psn)	/* first PSN of sq_cur */ \
	X(32, s_ci_psn)		/* first PSN of sq_ci */ \
	X(32, s_asked)		/* one past the newest PSN that asks for a response */ \
	X(32, rq_pi)		/* responder: producer index last seen */ \
	X(32, rq_ci)		/* receive WQEs taken */ \
	X(32, r_psn)		/* next PSN expected */ \
	X(32, r_msn)		/* messages completed, 24 bits */ \
	X(32, r_ack_psn)	/* PSN of the pending ACK */ \
	X(32, r_nak_psn)	/* PSN of the pending NAK, or last ACK */ \
	X(32, r_len)		/* message in progress: bytes received */ \
	X(32, r_left)		/* WRITE in progress: bytes to come */ \
	X(32, r_rkey)		/* WRITE in progress */ \
	X(32, r_slot)		/* receive WQE in progress: number or slot */ \
	X(32, r_srq)		/* XRC: SRQ of the message (hca_xsrq.token) */ \
	X(32, kept_work)	/* ... the chip (qp_image.h) */ \
	X(32, kept_db_pi) \
	X(32, rsvd32c) \
	X(8, s_flags)		/* HCA_SF_* */ \
	X(8, s_state)		/* enum hca_requester */ \
	X(8, r_flags)		/* HCA_RF_* */ \
	X(8, r_state)		/* enum hca_responder */ \
	X(8, state)		/* enum qhca_qp_state */ \
	X(8, s_reads)		/* requests outstanding that have a response */ \
	X(8, s_retry)		/* retries left */ \
	X(8, s_rnr)		/* RNR retries left */ \
	X(8, r_op)		/* message in progress: enum hca_rmsg */ \
	X(8, r_syndrome)	/* its syndrome (AETH) */ \
	X(8, r_unacked)		/* packets since the last acknowledgement */ \
	X(8, res_head)		/* slot the next resource takes */ \
	X(8, res_pending)	/* resources with an answer to send */ \
	X(8, counter_set)	/* that counts for the QP; 0: none of its own */ \
	X(8, f_req)		/* enum hca_requester_fault */ \
	X(8, f_resp)		/* enum hca_responder_fault */

struct hca_qpc_hw {
#define HCA_LE_8(name)		__u8 name;
#define HCA_LE_16(name)		__le16 name;
#define HCA_LE_32(name)		__le32 name;
#define HCA_LE_64(name)		__le64 name;
#define HCA_LE_FIELD(bits, name) HCA_LE_##bits(name)
	HCA_QPC_HW_FIELDS(HCA_LE_FIELD)
#undef HCA_LE_FIELD
#undef HCA_LE_8
#undef HCA_LE_16
#undef HCA_LE_32
#undef HCA_LE_64
	struct hca_resource_hw res[HCA_MAX_RD_ATOMIC];
	struct hca_fault_hw fault[HCA_NUM_FAULT_DIRS];
	__u8 rsvd[QHCA_QPC_HW_SIZE - 24 - 96 - 16 - 32 * HCA_MAX_RD_ATOMIC -
		  56 * HCA_NUM_FAULT_DIRS];
};
QHCA_ASSERT_SIZE(struct hca_qpc_hw, QHCA_QPC_HW_SIZE);

/* s_flags: requester */
#define HCA_SF_ACTIVE		0x01u	/* record.sq_active is set */
#define HCA_SF_WENT_BACK	0x02u	/* for a NAK; once until progress */
#define HCA_SF_DRAINING		0x04u	/* SQD, not drained yet */
#define HCA_SF_EXCUSED		0x08u	/* the ACK timer has started again for nothing
					   but a blocked link; once until progress or
					   a going back */
#define HCA_SF_AGAIN		0x10u	/* gone back for a loss: what goes again goes in
					   packets; until progress */
/* Those that are over when the peer acknowledges something new. */
#define HCA_SF_TO_PROGRESS	(HCA_SF_WENT_BACK | HCA_SF_EXCUSED | HCA_SF_AGAIN)

/* r_flags: responder */
#define HCA_RF_ACK		0x01u	/* an ACK is due */
#define HCA_RF_UNSOLICITED	0x02u	/* an ACK is due: a fault is resolved */
#define HCA_RF_RWQE		0x04u	/* r_slot holds a receive WQE */
#define HCA_RF_COMM_EST		0x08u	/* event was raised */
#define HCA_RF_LAST_WQE		0x10u	/* event was raised */

enum hca_rmsg {				/* r_op */
	HCA_RMSG_NONE = 0, HCA_RMSG_SEND = 1, HCA_RMSG_WRITE = 2,
};

/* ---- host order working copy */

struct hca_resource {
	uint64_t addr;
	uint64_t value;			/* atomic: original; READ: length */
	uint32_t srq;			/* XRC READ: hca_xsrq.token */
	uint32_t rkey;
	uint32_t psn;			/* first of the original request */
	uint32_t start, next;		/* of the request being answered */
	uint8_t type;			/* HCA_RES_* */
	uint8_t flags;			/* HCA_RES_F_* */
};

struct hca_fault {
	uint64_t addr, len;
	uint64_t time;			/* ns */
	uint32_t token, key, flags, done, psn;
	uint32_t bus_len;		/* of a fault of stage 2 also these */
	uint64_t bus;
};

/* What an acknowledgement needs to know about a send WQE. */
struct hca_swqe_sum {
	uint32_t num;
	uint32_t length;
	uint64_t wr_id;
	uint32_t packets;		/* PSNs it uses; 0: local operation */
	uint8_t opcode;
	uint8_t flags;
	uint8_t kind;			/* HCA_WK_* */
};
/*
 * A power of two.  A WQE that is sent without a response has one packet of the window's at
 * least, so the summaries of all such fit.  READs and atomics that follow a full window may
 * replace some of them, whose WQEs are fetched again.
 */
#define HCA_SUM_RING	256

struct hca_qp {
	uint32_t qpn;
	struct qhca_qpc_sw sw;		/* as given; fields below are decoded */
	struct hca_qbuf buf;
	uint64_t handle;
	uint32_t sq_offset, rq_offset, rec_offset;
	uint32_t sq_depth, rq_depth;	/* WQEs; 0: none */
	uint32_t pd;			/* XRC target: of the request's SRQ */
	uint32_t db_page, send_cqn, recv_cqn, srqn, xrcd;
	uint32_t rq_threshold, qkey, dest_qpn, access;
	uint32_t mtu;			/* bytes */
	uint16_t flags;			/* QHCA_QP_* */
	uint16_t max_inline;
	uint8_t type;			/* enum qhca_qp_type */

	/* the hardware part */
#define HCA_HOST_FIELD(bits, name) uint##bits##_t name;
	HCA_QPC_HW_FIELDS(HCA_HOST_FIELD)
#undef HCA_HOST_FIELD
	struct hca_resource res[HCA_MAX_RD_ATOMIC];
	struct hca_fault fault[HCA_NUM_FAULT_DIRS];	/* of f_resp, f_req */

	/* copies of ring entries, lost on eviction */
	struct hca_swqe cur;		/* at the cursor */
	struct hca_swqe ahead;		/* the one behind it, read early */
	struct hca_swqe ack;		/* being answered (READ, ATOMIC) */
	struct hca_rwqe rwqe;		/* receive in progress */
	uint64_t sum_valid[HCA_SUM_RING / 64];	/* bit by place in `sum` */
	/* Whoever makes a context clears what is before this only: it is long. */
	struct hca_swqe_sum sum[HCA_SUM_RING];
};

/* ---- on-chip state of each QPN */
struct hca_qpslot {
	uint64_t deadline;		/* ns, while heap_pos is not 0 */
	uint32_t heap_pos;		/* 1-based place in the timer heap */
	uint32_t next;			/* scheduler's list; 0: the last */
	uint32_t db_pi;			/* sq_pi of the last doorbell */
	uint32_t db_page;
	uint8_t live;			/* exists */
	uint8_t type;			/* enum qhca_qp_type */
	uint8_t state;			/* enum qhca_qp_state */
	uint8_t work;			/* HCA_WORK_* */
	uint8_t has_sq;
	struct hca_linger_qp linger;
};
QHCA_ASSERT_SIZE(struct hca_qpslot, 64);

/* In the list of QPs with an event of stage 2 to be written (stage2_event.c). */
struct hca_s2_link {
	uint32_t next;			/* QPN; 0: the last */
	uint8_t dirs;			/* bit by enum hca_fault_dir; 0: not in the list */
};

struct hca_qps {
	struct hca_qpslot *slot;	/* [num_slots] */
	struct hca_s2_link *s2_link;	/* [num_slots]; NULL in the physical function */
	/*
	 * [2^cfg.log_max_qp] of the QPN's last fault, for its token.  In a virtual
	 * function it survives resets: the host domain may still be at work on a fault
	 * of stage 2 from before.
	 */
	uint8_t *fault_gen;
	uint32_t num_slots;
	uint32_t num_timers;		/* for which hca_sched has room */
	struct hca_qp scratch;		/* of one command */
};

/*
 * INIT_HCA, and TEARDOWN_HCA or reset: the cache with @geometry (validated)
 * and the table of 2^cfg.log_max_qp slots.  init: false when memory is short.
 * Both may be called in any order any number of times.
 */
bool hca_qps_init(struct hca_fn *fn, struct qhca_geometry geometry);
void hca_qps_fini(struct hca_fn *fn);
/* What survives resets, from the function's creation to its end.  false: no memory. */
bool hca_qps_create(struct hca_fn *fn);
void hca_qps_destroy(struct hca_fn *fn);

enum qhca_cmd_status hca_cmd_create_qp(struct hca_fn *fn,
				       struct hca_cmd_ctx *cmd);
enum qhca_cmd_status hca_cmd_modify_qp(struct hca_fn *fn,
				       struct hca_cmd_ctx *cmd);
enum qhca_cmd_status hca_cmd_query_qp(struct hca_fn *fn,
				      struct hca_cmd_ctx *cmd);
enum qhca_cmd_status hca_cmd_destroy_qp(struct hca_fn *fn,
					struct hca_cmd_ctx *cmd);

/* Refer to the CQs and the SRQ of a QP that comes to be.  false: one does not exist. */
bool hca_qp_ref(struct hca_fn *fn, const struct hca_qp *qp);

/* May the QP join multicast groups: does it exist, and is it UD? */
bool hca_qp_is_ud(const struct hca_fn *fn, uint32_t qpn);

/* Does the QP exist, and is it a raw packet QP? */
bool hca_qp_is_raw(const struct hca_fn *fn, uint32_t qpn);

/* false: no such QP.  Does not disturb the cache. */
bool hca_qp_info(struct hca_fn *fn, uint32_t qpn,
		 struct qhca_qp_info *info);

/* Does the QP take its receive WQEs from SRQs? */
static inline bool hca_qp_uses_srq(const struct hca_qp *qp)
{
	return qp->flags & QHCA_QP_SRQ || qp->type == QHCA_QPT_XRC_TGT;
}

static inline bool hca_qp_is_xrc(const struct hca_qp *qp)
{
	return qp->type == QHCA_QPT_XRC_INI || qp->type == QHCA_QPT_XRC_TGT;
}

static inline bool hca_qp_is_reliable(const struct hca_qp *qp)
{
	return qp->type == QHCA_QPT_RC || hca_qp_is_xrc(qp);
}

/*
 * NULL: no such QP, or its context is not mapped, unreachable or corrupt; the last
 * two are fatal for the function.  The pointer is valid until the next get of
 * another QP.
 */
struct hca_qp *hca_qp_get(struct hca_fn *fn, uint32_t qpn);
void hca_qp_dirty(struct hca_fn *fn, struct hca_qp *qp);

#endif /* HCA_CORE_QP_H */
