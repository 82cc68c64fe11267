/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The ring of responder resources.
 *
 * A READ, atomic, ATOMIC WRITE or FLUSH that the responder has accepted takes
 * the next resource, which keeps what its answer needs.  The device keeps the
 * resource after the answer, to answer a duplicate of the request, until a later
 * request takes it (IBTA 9.7.5.1.1, 9.7.4.1).
 */
#include "transport/transport.h"

/* ---- a resource for one more answer */

/* Is an answer due that the device has not given before? */
static bool is_owed_first(const struct hca_resource *r)
{
	return (r->flags & (HCA_RES_F_PENDING | HCA_RES_F_REPLAY)) ==
	       HCA_RES_F_PENDING;
}

/*
 * A resource whose answer is only to be repeated is available: the peer may
 * have received that answer long ago.
 */
static bool oldest_is_free(const struct hca_qp *qp)
{
	return !is_owed_first(&qp->res[qp->res_head]);
}

bool hca_resource_available(const struct hca_qp *qp, uint8_t type)
{
	unsigned int owed = 0;

	if (type == HCA_RES_NONE)
		return true;
	if (type == HCA_RES_PLACE)
		return oldest_is_free(qp);
	for (unsigned int i = 0; i < HCA_MAX_RD_ATOMIC; i++)
		owed += is_owed_first(&qp->res[i]) &&
			qp->res[i].type != HCA_RES_PLACE;
	return owed < qp->sw.max_dest_rd_atomic && oldest_is_free(qp);
}

struct hca_resource *hca_resource_new(struct hca_qp *qp, uint8_t type,
				      const struct hca_pkt *pkt)
{
	struct hca_resource *r = &qp->res[qp->res_head];

	if (r->flags & HCA_RES_F_PENDING)
		qp->res_pending--;
	*r = (struct hca_resource){
		.addr = pkt->va,
		.rkey = pkt->rkey,
		.psn = pkt->psn,
		.start = pkt->psn,
		.next = pkt->psn,
		.type = type,
		.flags = HCA_RES_F_PENDING,
	};
	qp->res_head = (qp->res_head + 1) % HCA_MAX_RD_ATOMIC;
	qp->res_pending++;
	return r;
}

/* ---- answers that are due */

struct hca_resource *hca_resource_owed(struct hca_qp *qp)
{
	if (!qp->res_pending)
		return NULL;
	for (unsigned int i = 0; i < HCA_MAX_RD_ATOMIC; i++) {
		unsigned int slot = (qp->res_head + i) % HCA_MAX_RD_ATOMIC;

		if (qp->res[slot].flags & HCA_RES_F_PENDING)
			return &qp->res[slot];
	}
	return NULL;
}

void hca_resource_settle(struct hca_qp *qp, struct hca_resource *r)
{
	r->flags = 0;
	qp->res_pending--;
}

void hca_resource_settle_all(struct hca_qp *qp)
{
	for (unsigned int i = 0; i < HCA_MAX_RD_ATOMIC; i++)
		qp->res[i].flags = 0;
	qp->res_pending = 0;
}

/* ---- answers that are due again */

/* Does the duplicate @pkt ask for what @r has answered, or for its tail? */
static bool answers(const struct hca_qp *qp, const struct hca_resource *r,
		    const struct hca_pkt *pkt)
{
	uint32_t index = (pkt->psn - r->psn) & HCA_PSN_MASK;
	uint64_t skip = (uint64_t)index * qp->mtu;

	if (r->type != HCA_RES_READ)
		return !index;
	return index < hca_packets(r->value, qp->mtu) &&
	       pkt->rkey == r->rkey && pkt->va == r->addr + skip &&
	       pkt->dma_len == r->value - skip;
}

struct hca_resource *hca_resource_find(struct hca_qp *qp, uint8_t type,
				       const struct hca_pkt *pkt)
{
	/* The newest first: PSNs begin anew, and an old resource may have the same. */
	for (unsigned int i = 1; i <= HCA_MAX_RD_ATOMIC; i++) {
		unsigned int slot = (qp->res_head + HCA_MAX_RD_ATOMIC - i) %
				    HCA_MAX_RD_ATOMIC;

		if (qp->res[slot].type == type &&
		    answers(qp, &qp->res[slot], pkt))
			return &qp->res[slot];
	}
	return NULL;
}

bool hca_resource_repeat(struct hca_qp *qp, struct hca_resource *r,
			 uint32_t psn)
{
	if (r->flags & HCA_RES_F_PENDING) {
		/* The device will send this response anyway. */
		if (!hca_psn_before(psn, r->next))
			return false;
	} else {
		r->flags = HCA_RES_F_PENDING | HCA_RES_F_REPLAY;
		qp->res_pending++;
	}
	r->flags |= HCA_RES_F_AGAIN;
	r->start = r->next = psn;
	return true;
}
