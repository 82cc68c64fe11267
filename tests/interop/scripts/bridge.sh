#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Makes a bridge of an interface and of one that leads to the namespace `inner`, which gets
# an address. The bridge has a MAC address that none of its ports has.
#
#   bridge.sh MTU IPV4 IPV6 INTERFACE MAC ADDRESS-IN-INNER

set -e
mtu=$1 ip4=$2 ip6=$3 interface=$4 mac=$5 inner=$6
modprobe bridge
ip link add br0 address "$mac" type bridge
ip link set br0 mtu "$mtu"
echo 0 > /proc/sys/net/ipv6/conf/br0/accept_dad
ip netns add inner
ip link add inner0 mtu "$mtu" master br0 type veth peer name eth0 mtu "$mtu" netns inner
ip link set inner0 up
ip -n inner addr add "$inner/24" dev eth0
ip -n inner link set eth0 up
ip link set "$interface" master br0
ip link set br0 up
ip addr add "$ip4/24" dev br0
ip -6 addr add "$ip6/64" dev br0 nodad
