#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# The netdev of qhca.ko as far as one guest can tell: addresses, MTU, filters,
# rings, counters. Prints TAP. Loads the module if need be.
#
#   netdev.sh [MODULES-DIRECTORY]

MODULES=${1:-/run/qhca/modules}
# shellcheck source=tests/guest/tap.sh
. "$(dirname "$0")/tap.sh"

find_netdev()
{
	for d in /sys/class/net/*; do
		[ "$(readlink -f "$d/device/driver")" = /sys/bus/pci/drivers/qhca ] || continue
		echo "${d##*/}"
		return
	done
}

counter()
{
	ethtool -S "$dev" | sed -n "s/^ *$1: //p"
}

carrier()
{
	[ "$(cat "/sys/class/net/$dev/carrier" 2> /dev/null)" = "$1" ]
}

sends()
{
	local before
	before=$(counter eth_tx_packets)
	# Nobody answers; that the request leaves is all that is asked.
	arping -q -c 1 -w 1 -I "$dev" 192.0.2.2 > /dev/null 2>&1 ||
		ping -q -c 1 -W 1 -I "$dev" 192.0.2.2 > /dev/null 2>&1
	await 600 eval "[ \"\$(counter eth_tx_packets)\" -gt $before ]"
}

grep -q '^qhca ' /proc/modules || insmod "$MODULES/qhca.ko"
# The name is final once udev has settled.
await 600 eval '[ -n "$(find_netdev)" ]'
! command -v udevadm > /dev/null || udevadm settle
dev=$(find_netdev)
if [ -z "$dev" ]; then
	echo "1..0 # SKIP no qhca netdev"
	exit 0
fi
dmesg -C
echo 1..15

ip link set "$dev" up && ip addr replace 192.0.2.1/24 dev "$dev"
ok $? "the interface goes up"
await 600 carrier 1
ok $? "it has a carrier"
ethtool -i "$dev" | grep -qx 'driver: qhca'
ok $? "ethtool names the driver"
ethtool "$dev" | grep -q 'Speed: [0-9]*Mb/s'
ok $? "ethtool tells the speed"
sends
ok $? "frames leave"

status=0
for mtu in 68 1500 4200 9000; do
	ip link set "$dev" mtu $mtu || status=1
	[ "$(cat "/sys/class/net/$dev/mtu")" = $mtu ] || status=1
done
ip addr replace 192.0.2.1/24 dev "$dev"
ok $status "the MTU can be 68 to 9000"
! ip link set "$dev" mtu 9001 2> /dev/null
ok $? "a larger one is refused"
sends
ok $? "frames leave at MTU 9000"
ip link set "$dev" mtu 1500

old=$(cat "/sys/class/net/$dev/address")
ip link set "$dev" address 02:00:5e:00:53:01 &&
	[ "$(cat "/sys/class/net/$dev/address")" = 02:00:5e:00:53:01 ] &&
	ip link set "$dev" address "$old"
ok $? "the address can be changed while up"

ip link set "$dev" promisc on && ip link set "$dev" promisc off &&
	ip link set "$dev" allmulticast on && ip link set "$dev" allmulticast off
ok $? "promiscuous and all-multicast modes"

status=0
for ((i = 0; i < 100; i++)); do
	printf -v mac '01:00:5e:00:01:%02x' $i
	ip maddr add "$mac" dev "$dev" || status=1
done
for ((i = 0; i < 100; i++)); do
	printf -v mac '01:00:5e:00:01:%02x' $i
	ip maddr del "$mac" dev "$dev" || status=1
done
ok $status "more multicast addresses than the device's list holds"

ethtool -G "$dev" rx 128 tx 64 && sends && ethtool -G "$dev" rx 512 tx 512 && sends
ok $? "rings can be resized while up"
! ethtool -G "$dev" rx 100 2> /dev/null && ! ethtool -G "$dev" tx 2 2> /dev/null
ok $? "other sizes are refused"

status=0
for ((i = 0; i < 20; i++)); do
	ip link set "$dev" down && ip link set "$dev" up || status=1
done
ok $status "20 times down and up"

content
exit $((failed > 0))
