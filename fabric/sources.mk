# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The sources of the switch for make; include this file from any directory.

FABRIC_MODEL_SRCS := $(addprefix model/,frame.c mac_table.c shaper.c backlog.c fabric.c)
# Of the program, what uses no sockets, and the rest.
FABRIC_PURE_SRCS := $(addprefix program/,stream.c units.c)
FABRIC_PROGRAM_SRCS := $(FABRIC_PURE_SRCS) $(addprefix program/,loop.c options.c port.c peer.c \
	listener.c commands.c control.c main.c)
