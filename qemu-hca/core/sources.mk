# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Source files of the engine, relative to this directory.

QHCA_CORE_SRCS := \
	hca.c regs.c cmd.c table.c cache.c pte.c mem.c pool.c key.c qbuf.c \
	eq.c cq.c \
	wire.c inject.c eth.c flow.c port.c \
	qp.c qp_cmd.c srq.c wq.c flush.c pkt.c icrc.c sched.c linger.c cost.c \
	roce.c requester.c responder.c response.c reply.c unreliable.c \
	datagram.c raw.c fault.c
