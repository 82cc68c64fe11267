# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Sources of the fake host, relative to this directory.

HOST_SRCS := host.c command.c start.c address.c buffer.c key.c cq.c srq.c qp.c post.c odp.c
