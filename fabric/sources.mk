# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The sources of the switch for make; include this file from any directory.

FABRIC_MODEL_SRCS := $(addprefix model/,frame.c mac_table.c shaper.c backlog.c fabric.c)
