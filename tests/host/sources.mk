# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Sources of the fake host, relative to this directory: the host alone, and the host
# with the small driver.

BASE_SRCS := host.c ring.c command.c tables.c stage2.c migrate.c
HOST_SRCS := $(BASE_SRCS) start.c address.c buffer.c key.c cq.c srq.c qp.c post.c odp.c
