#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# make: modules or programs of a few bytes, and the installation of a kernel's modules

last='' tree=''
for a; do
	[ "$last" != -C ] || tree=$a
	last=$a
	case $a in
	INSTALL_MOD_PATH=*) root=${a#*=}/lib/modules ;;
	esac
done
for a; do
	case $a in
	M=*) [ ! -d "${a#M=}" ] || cd "${a#M=}" || exit ;;
	esac
done
case "$*" in
*modules_install)
	echo "$PWD: $*" >> $WORLD/made
	root=$root/$(cat $tree/include/config/kernel.release)
	mkdir -p $root/kernel && cp $tree/drivers/one.ko $tree/modules.order $tree/modules.builtin $root &&
		echo ext4 > $root/ext4.ko && touch $root/modules.dep && ln -s $tree $root/build ;;
*modules) echo "$PWD: $*" >> $WORLD/made; echo one > qhca.ko; echo two > qhca_ib.ko; echo three > test.ko ;;
*) echo program > ../bin/qhca-verify ;;
esac
