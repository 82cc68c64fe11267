#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Performs every operation that replaces the rings of the Ethernet interface, while
# something floods it.
#
#   ethernet-operations.sh ROUNDS PEER
#
# PEER is the address that is flooded. The interface forgets it whenever it goes down.
# The kernel's log names each operation, so that the last one before a panic is known.

rounds=$1 peer=$2
netdev() { for dev in /sys/bus/pci/devices/$pci/net/*; do dev=${dev##*/}; done; }
up() {
	for _ in $(seq 3000); do
		netdev
		[ -e /sys/class/net/$dev ] && ip link set $dev up && break
		sleep 0.02
	done
	ip addr replace 10.77.0.1/24 dev $dev
	ip neigh replace $peer lladdr 52:54:00:77:00:09 dev $dev nud permanent
}
sent() { cat /sys/class/net/$dev/statistics/tx_packets; }
# Until frames are going out again.
moving() {
	first=$(sent)
	for _ in $(seq 3000); do
		[ "$(sent)" -gt $((first + 200)) ] && return
		sleep 0.02
	done
	echo "nothing is sent after $1" >&2
	return 1
}
mtu() { ip link set $dev mtu $1; }
rings() { ethtool -G $dev tx $1 rx $1; }
link() { ip link set $dev down; }
reload() { devlink dev reload pci/$pci; }
flr() { echo 1 > /sys/bus/pci/devices/$pci/reset; }
rebind() {
	echo $pci > /sys/bus/pci/drivers/qhca/unbind
	echo $pci > /sys/bus/pci/drivers/qhca/bind
}
pci=$(basename "$(readlink -f /sys/bus/pci/drivers/qhca/0*)")
for _ in $(seq "$rounds"); do
	for operation in "mtu 1500" "rings 64" "mtu 4200" "rings 512" link "rings 128" reload \
			 flr "mtu 1500" rebind "mtu 4200"; do
		up
		moving "$last" || exit 1
		last=$operation
		echo "<4>test_teardown: $operation" > /dev/kmsg
		$operation || { echo "$operation fails" >&2; exit 1; }
	done
done
up
moving "$last"
