#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# make: modules or programs of a few bytes

case "$*" in
*modules) echo one > qhca.ko; echo two > qhca_ib.ko; echo three > test.ko ;;
*) echo program > ../bin/qhca-verify ;;
esac
