#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Configures one end of a link in a guest, and prints the name of its interface.
#
#   configure-port.sh qhca|rxe|none MAC MTU IPV4 IPV6 GID...
#
# It finds the interface by its MAC address, and returns when the RDMA port is active
# and has all the GIDs.

set -e
kind=$1 mac=$2 mtu=$3 ip4=$4 ip6=$5
shift 5
fail() { echo "$*" >&2; exit 1; }
# See PAUSE in guest.py.
pause() { read -rt 0.03 <> /run/pause || :; }
case $kind in
qhca)
	modprobe -a ib_uverbs rdma_ucm ib_umad
	for m in qhca qhca_ib; do
		[ -e /sys/module/$m ] || {
			[ -e /run/qhca/modules/$m.ko ] || fail "no $m.ko: run make modules"
			insmod /run/qhca/modules/$m.ko
		}
	done ;;
*) modprobe virtio_net ;;
esac
dev=
n=0
while [ -z "$dev" ]; do
	for d in /sys/class/net/*; do
		read -r address 2> /dev/null < "$d/address" || continue
		# A device that is being registered has no IPv6 yet.
		[ "$address" != "$mac" ] || [ ! -e /proc/sys/net/ipv6/conf/"${d##*/}" ] || dev=${d##*/}
	done
	n=$((n + 1))
	[ $n -lt 1500 ] || fail "no network device with address $mac and with IPv6"
	[ -n "$dev" ] || pause
done
echo 0 > /proc/sys/net/ipv6/conf/$dev/accept_dad
ip link set $dev mtu $mtu up
ip addr replace $ip4/24 dev $dev
ip -6 addr replace $ip6/64 dev $dev nodad
if [ "$kind" = rxe ]; then
	modprobe -a rdma_rxe ib_uverbs rdma_ucm ib_umad
	[ -e /sys/class/infiniband/rxe0 ] || rdma link add rxe0 type rxe netdev $dev
fi
[ "$kind" = none ] || {
	n=0
	until grep -q ACTIVE /sys/class/infiniband/${kind}*/ports/1/state 2> /dev/null; do
		n=$((n + 1))
		[ $n -lt 1500 ] || fail "no RDMA port became active"
		pause
	done
	# rxe and qhca fill the GID table from a work queue.
	n=0
	for gid; do
		until grep -qx $gid /sys/class/infiniband/*/ports/1/gids/*; do
			n=$((n + 1))
			[ $n -lt 1500 ] || fail "no GID $gid"
			pause
		done
	done
}
echo $dev
