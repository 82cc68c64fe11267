#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Moves the interface of a PCI function to a network namespace, which it makes.
#
#   enter-namespace.sh NAMESPACE FUNCTION
#
# FUNCTION is the function's folder in sysfs.

set -e
namespace=$1 function=$2
if [ ! -e /run/netns/"$namespace" ]; then
	ip netns add "$namespace"
	# A TCP connection whose process and peer are gone keeps the namespace as long as it
	# tries to close, which takes minutes.
	ip netns exec "$namespace" busybox sysctl -qw net.ipv4.tcp_orphan_retries=1
fi
ip -n "$namespace" link set lo up
n=0
until [ -n "$(ls "$function"/net 2> /dev/null)" ] && [ -n "$(ls "$function"/infiniband 2> /dev/null)" ]; do
	n=$((n + 1))
	[ $n -lt 1500 ] || { echo "$function has no interface" >&2; exit 1; }
	# See PAUSE in guest.py.
	read -rt 0.03 <> /run/pause || :
done
# The interface's name is final once udev has settled.
! command -v udevadm > /dev/null || udevadm settle
ip link set "$(ls "$function"/net)" netns "$namespace"
