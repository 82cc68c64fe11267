#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# make: modules or programs of a few bytes

for a; do
	case $a in
	M=*) [ ! -d "${a#M=}" ] || cd "${a#M=}" || exit ;;
	esac
done
case "$*" in
*modules) echo "$PWD: $*" >> $WORLD/made; echo one > qhca.ko; echo two > qhca_ib.ko; echo three > test.ko ;;
*) echo program > ../bin/qhca-verify ;;
esac
