// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Multicast membership of datagram QPs.
 */
#include "qhca_ib.h"

static int qhca_mcast_cmd(struct ib_qp *ibqp, const union ib_gid *gid,
			  u16 opcode)
{
	struct qhca_mgid mgid;

	memcpy(mgid.gid, gid->raw, sizeof(mgid.gid));
	return qhca_create_object(to_qhca(ibqp->device), opcode,
				  to_qqp(ibqp)->qpn, &mgid, sizeof(mgid));
}

int qhca_attach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid)
{
	return qhca_mcast_cmd(ibqp, gid, QHCA_CMD_ATTACH_MCAST);
}

int qhca_detach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid)
{
	int err;

	err = qhca_mcast_cmd(ibqp, gid, QHCA_CMD_DETACH_MCAST);
	return qhca_is_dead(to_qhca(ibqp->device)) ? 0 : err;
}
