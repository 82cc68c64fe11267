#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Life cycle of qhca.ko: load, unload, unbind, bind, function level reset,
# reload. Prints TAP. Needs one qhca device; leaves the module unloaded.
#
#   load.sh [MODULES-DIRECTORY]

MODULES=${1:-/run/qhca/modules}
CYCLES=${CYCLES:-10}
DRIVER=/sys/bus/pci/drivers/qhca
# shellcheck source=tests/guest/tap.sh
. "$(dirname "$0")/tap.sh"

functions()
{
	for f in /sys/bus/pci/devices/*; do
		[ "$(cat "$f/vendor"):$(cat "$f/device")" = 0x1af4:0x10f0 ] && echo "${f##*/}"
	done
}

load()
{
	insmod "$MODULES/qhca.ko"
}

unload()
{
	rmmod qhca
}

netdev()
{
	[ -n "$(ls "/sys/bus/pci/devices/$pci/net" 2> /dev/null)" ]
}

# The interface's name now. udev may give it another one at any time until it
# has settled, and cannot once the interface is up.
interface()
{
	! command -v udevadm > /dev/null || udevadm settle
	ls "/sys/bus/pci/devices/$pci/net"
}

ifindex()
{
	cat "/sys/bus/pci/devices/$pci/net"/*/ifindex
}

carrier()
{
	grep -q 1 "/sys/bus/pci/devices/$pci/net"/*/carrier
}

no_netdev()
{
	! netdev
}

# What would stay visible if something were not given back. (Memory is not
# counted: the slabs' sizes are not the driver's alone.)
leftovers()
{
	grep qhca /proc/interrupts
	grep -E '(0000:)?[0-9a-f]+ : qhca$' /proc/iomem
	ls -d /sys/bus/auxiliary/devices/qhca.* 2> /dev/null
	no_netdev || echo netdev
}

pci=$(functions | head -n 1)
if [ -z "$pci" ]; then
	echo "1..0 # SKIP no qhca device"
	exit 0
fi
if grep -q '^qhca_ib ' /proc/modules; then
	rmmod qhca_ib
fi
if grep -q '^qhca ' /proc/modules; then
	rmmod qhca
fi
dmesg -C
echo 1..10

load && await 600 netdev
ok $? "the module loads and makes a netdev"
[ -e "$DRIVER/$pci" ] && ls -d "/sys/bus/pci/devices/$pci"/qhca.rdma.* > /dev/null
ok $? "there is an auxiliary device"
unload && no_netdev
ok $? "the module unloads"

status=0
for ((i = 0; i < CYCLES; i++)); do
	load && await 600 netdev && unload || status=1
done
ok $status "$CYCLES cycles of load and unload"

status=0
load
for ((i = 0; i < CYCLES; i++)); do
	ip link set "$(interface)" up && unload && load && await 600 netdev || status=1
done
ok $status "$CYCLES cycles with the interface up"

echo "$pci" > $DRIVER/unbind && no_netdev && echo "$pci" > $DRIVER/bind && await 600 netdev
ok $? "unbind and bind"

ip link set "$(interface)" up
index=$(ifindex)
echo 1 > "/sys/bus/pci/devices/$pci/reset" && [ "$(ifindex)" = "$index" ] && await 600 carrier
ok $? "function level reset keeps the netdev"

if command -v devlink > /dev/null; then
	devlink dev reload "pci/$pci" && await 600 carrier
	ok $? "devlink reload"
else
	ok 0 "devlink reload # SKIP no devlink"
fi

unload
left=$(leftovers)
[ -z "$left" ]
ok $? "nothing is left behind${left:+: $left}"
content
exit $((failed > 0))
