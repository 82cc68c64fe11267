#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Prepares a guest of virtme-ng, whose files for the test are in /mnt, as the other
# guests are prepared by their /init. It is sourced.

export PATH=/run/qhca/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export HOME=/root LC_ALL=C.UTF-8
mkdir -p /run/qhca
mount --bind /mnt /run/qhca
# These are modules of a kernel that the tree does not know.
[ ! -d "/media/$(uname -r)" ] || mount --bind /media /usr/lib/modules
for so in /run/qhca/provider/libqhca-rdmav*.so; do
	[ ! -e "$so" ] || {
		libdir=/usr/lib/x86_64-linux-gnu
		cp -a /run/qhca/provider/lib/* $libdir/
		[ ! -d /run/qhca/provider/providers ] || cp -a /run/qhca/provider/providers/* $libdir/libibverbs/
		ln -sf "../$(basename "$(readlink "$so")")" "$libdir/libibverbs/${so##*/}"
		mkdir -p /etc/libibverbs.d
		cp /run/qhca/provider/qhca.driver /etc/libibverbs.d/
	}
done
ulimit -l unlimited
