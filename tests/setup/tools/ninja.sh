#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# ninja: the provider, and with the target all rdma-core's libraries

mkdir -p lib bin
echo library > lib/libqhca.so.1.0.56
echo test > bin/qhca_test_rings
case " $* " in
*" all "*)
	for l in ibverbs.so.1 mlx5.so.1 rdmacm.so.1; do
		echo $l > lib/lib$l.65.0
		ln -sf lib$l.65.0 lib/lib$l
		ln -sf lib$l lib/lib${l%.1}
	done
	for l in qhca.so.1.0.56 mlx5.so.1 rxe.so; do
		name=lib${l%%.*}-rdmav34.so
		[ $l = rxe.so ] && echo rxe > lib/$name || ln -sf lib$l lib/$name
	done ;;
esac
