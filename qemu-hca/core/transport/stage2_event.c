/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Faults of stage 2 on their way to the host domain.
 *
 * A function can have one pin request, one fault of Ethernet and two faults of each
 * QP, and EQ 0 of the host domain may be full.  So a QP whose event is to be written
 * is linked into a list of its function, and the event is made from the QP's context
 * when there is room, as a held event of stage 1 is.  A fault that has ended by then,
 * or has been replaced by one of stage 1, has no event.
 */
#include "transport/transport.h"

static bool next_ask(struct hca_fn *fn, struct hca_s2_ask *ask,
		     struct qhca_fault_info *info)
{
	uint32_t gvmi = fn->cfg.gvmi, cause = ask->cause;

	if (!ask->unposted)
		return false;
	ask->unposted = false;
	memset(info, 0, sizeof(*info));
	put_le32(&info->token, ask->token);
	put_le32(&info->flags, QHCA_FAULT_STAGE2 |
			       (ask->write ? QHCA_FAULT_WRITE : 0) |
			       QHCA_PUT(QHCA_FAULT_CAUSE, cause) |
			       QHCA_PUT(QHCA_FAULT_GVMI, gvmi));
	put_le64(&info->addr, ask->addr);
	put_le64(&info->length, ask->len);
	return true;
}

/* The next direction of a QP; false: the list is empty. */
static bool unlink_next(struct hca_fn *fn, uint32_t *qpn, unsigned int *dir)
{
	struct hca_s2_link *link;

	*qpn = fn->s2.first;
	if (!*qpn)
		return false;
	link = &fn->qps.s2_link[*qpn];
	*dir = link->dirs & 1u << HCA_FAULT_DIR_RESP ? HCA_FAULT_DIR_RESP :
						       HCA_FAULT_DIR_REQ;
	link->dirs &= (uint8_t)~(1u << *dir);
	if (link->dirs)
		return true;
	fn->s2.first = link->next;
	if (!fn->s2.first)
		fn->s2.last = 0;
	return true;
}

bool hca_stage2_next(struct hca_fn *fn, struct qhca_fault_info *info,
		     enum qhca_stage2_want *want)
{
	unsigned int dir;
	uint32_t qpn;

	*want = QHCA_STAGE2_PIN;
	if (next_ask(fn, &fn->s2.pin, info))
		return true;
	*want = QHCA_STAGE2_PRESENT;
	if (next_ask(fn, &fn->s2.eth, info))
		return true;
	while (unlink_next(fn, &qpn, &dir))
		if (hca_fault_find(fn, qpn, dir, true, info))
			return true;
	return false;
}
