#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Joins interfaces to a bond, the first of them being the active one.
#
#   bond.sh MTU IPV4 IPV6 INTERFACE...

set -e
mtu=$1 ip4=$2 ip6=$3
shift 3
modprobe bonding max_bonds=0
ip link add bond0 type bond mode active-backup miimon 50
for interface; do
	ip link set "$interface" down
	ip link set "$interface" master bond0
done
echo 0 > /proc/sys/net/ipv6/conf/bond0/accept_dad
ip link set bond0 mtu "$mtu" up
ip addr add "$ip4/24" dev bond0
ip -6 addr add "$ip6/64" dev bond0 nodad
