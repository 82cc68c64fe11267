# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The list of the engine's sources for make; include it from any directory.

QHCA_CORE_SRCS := $(shell sed '/^\#/d' \
	$(dir $(lastword $(MAKEFILE_LIST)))sources.txt)
