/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Work queue entries as the engine holds them: copied once from the ring,
 * validated, in host byte order.
 */
#ifndef HCA_CORE_WQ_H
#define HCA_CORE_WQ_H

#include <stdbool.h>
#include <stdint.h>

#include "qhca.h"
#include "mem/mem.h"

struct hca_qp;
struct hca_srq;

/* Limits; QUERY_CAPS reports them. */
#define HCA_MAX_SGE			32	/* segments of a WQE */
#define HCA_MAX_INLINE			512	/* bytes: the room of 32 segments */
#define HCA_MAX_LOG_WQE_STRIDE		10
#define HCA_MAX_LOG_RWQE_STRIDE		10
#define HCA_MAX_MSG_SIZE		0x80000000u	/* bytes: 2 GiB */
#define HCA_MAX_RD_ATOMIC		16	/* resources of a QP, both ways */

struct hca_seg {
	uint64_t addr;
	uint32_t length;
	uint32_t lkey;
};

/* A segment list and the place of the last access, as most are sequential. */
struct hca_sgl {
	uint32_t num;
	uint32_t hint;			/* a segment, and */
	uint64_t base;			/* the offset at which it begins */
	uint64_t length;		/* bytes in all */
	struct hca_seg seg[HCA_MAX_SGE];
};

/* Kinds of opcode.  Each opcode has one of them; IMM and INV may be added. */
#define HCA_WK_SEND	0x01u
#define HCA_WK_WRITE	0x02u
#define HCA_WK_READ	0x04u
#define HCA_WK_ATOMIC	0x08u
#define HCA_WK_LOCAL	0x10u		/* no packet */
#define HCA_WK_IMM	0x20u
#define HCA_WK_INV	0x40u
#define HCA_WK_PLACE	0x80u		/* answered by an empty READ response */
#define HCA_WK_RESPONSE (HCA_WK_READ | HCA_WK_ATOMIC | HCA_WK_PLACE)

struct hca_wqe_info {
	uint8_t kind;			/* HCA_WK_*; 0: no such opcode */
	uint8_t types;			/* bit n: enum qhca_qp_type n */
	uint64_t feature;		/* QHCA_FEAT_* it needs, or 0 */
};

/* A send WQE.  Good while @valid and @num is the number wanted. */
struct hca_swqe {
	uint32_t num;			/* free-running */
	bool valid;
	uint8_t error;			/* enum qhca_wc_status found on reading */
	uint8_t opcode;			/* enum qhca_wqe_opcode */
	uint8_t flags;			/* QHCA_WQE_F_* */
	uint8_t kind;			/* HCA_WK_* */
	uint32_t length;		/* bytes of the message */
	uint32_t packets;		/* PSNs it uses; 0: local */
	uint64_t wr_id;
	struct qhca_sq_wqe wire;	/* header as posted */
	union {
		struct hca_sgl sgl;
		uint8_t data[HCA_MAX_INLINE];
	};
};

/* A receive WQE of an RQ or SRQ. */
struct hca_rwqe {
	uint32_t num;			/* RQ: free-running; SRQ: slot */
	bool valid;
	bool kernel;			/* the reserved L_Key is allowed */
	uint8_t error;			/* enum qhca_wc_status */
	uint32_t next;			/* SRQ: slot that follows */
	uint32_t pd;
	uint64_t wr_id;
	struct hca_sgl sgl;
};

/*
 * Copy send WQE @num of @qp from the ring and check it.  @w->error is the
 * completion status of a malformed WQE, or 0.  -1: the ring cannot be read.
 */
int hca_swqe_fetch(struct hca_fn *fn, struct hca_qp *qp, uint32_t num,
		   struct hca_swqe *w);

/* Do the request's packets carry its bytes? */
static inline bool hca_swqe_has_data(const struct hca_swqe *w)
{
	return !(w->kind & HCA_WK_RESPONSE) ||
	       w->opcode == QHCA_WQE_ATOMIC_WRITE;
}

/* PSNs a message of @length bytes takes. */
static inline uint32_t hca_packets(uint32_t length, uint32_t mtu)
{
	return length ? (length - 1) / mtu + 1 : 1;
}

/*
 * Copy a part of the message: from its segments or inline data to @buf, or
 * from @data into its segments.  @offset + @len is within the message.
 */
enum hca_mem_status hca_swqe_gather(struct hca_fn *fn,
				    const struct hca_qp *qp,
				    struct hca_swqe *w, uint32_t offset,
				    void *buf, uint32_t len);
enum hca_mem_status hca_swqe_scatter(struct hca_fn *fn,
				     const struct hca_qp *qp,
				     struct hca_swqe *w, uint32_t offset,
				     const void *data, uint32_t len);

/*
 * Receive WQE @num of the QP's own queue, or slot @num of an SRQ.  As
 * hca_swqe_fetch().
 */
int hca_rwqe_fetch(struct hca_fn *fn, struct hca_qp *qp, uint32_t num,
		   struct hca_rwqe *w);
int hca_rwqe_fetch_srq(struct hca_fn *fn, struct hca_srq *srq,
		       uint32_t slot, struct hca_rwqe *w);
enum hca_mem_status hca_rwqe_scatter(struct hca_fn *fn,
				     const struct hca_qp *qp,
				     struct hca_rwqe *w, uint32_t offset,
				     const void *data, uint32_t len);

/* Are messages of a type of QPs datagrams of UD? */
static inline bool hca_type_is_datagram(uint8_t type)
{
	return type == QHCA_QPT_UD || type == QHCA_QPT_GSI;
}

/* Is a message one frame, whatever its length? */
static inline bool hca_type_is_framed(uint8_t type)
{
	return hca_type_is_datagram(type) || type == QHCA_QPT_RAW;
}

#endif /* HCA_CORE_WQ_H */
