#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Prints a line for each entry of the GID tables of a guest that is in use: the RDMA
# device, the index, the GID, the network interface, and the type. Nothing if there is
# no RDMA device.

shopt -s nullglob
for d in /sys/class/infiniband/*; do
	for f in $d/ports/1/gids/*; do
		i=${f##*/}
		read -r gid < $f
		[ $gid = 0000:0000:0000:0000:0000:0000:0000:0000 ] || {
			read -r type < $d/ports/1/gid_attrs/types/$i
			read -r netif < $d/ports/1/gid_attrs/ndevs/$i
			echo ${d##*/} $i $gid $netif $type
		}
	done 2> /dev/null
done
