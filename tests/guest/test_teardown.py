# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The rings of the Ethernet queue go while the stack sends as fast as it can.

The guest's kernel fills pages and objects that are freed, and looks at them when
they are used again: a frame that is posted into a ring which has been given back
is reported, or ends in a panic.
"""

import os

import pytest

from lab import content
from lab.pair import Node

FULL = os.environ.get("FULL", "") not in ("", "0")

# A panic ends QEMU, so that nobody waits for the guest.
POISON = "slub_debug=FZPU page_poison=1 init_on_free=1 panic=-1"
PEER = "10.77.0.9"
ROUNDS = 10 if FULL else 1

# Nobody is at that address; the interface forgets it whenever it goes down.
FLOOD = f"""
while :; do
	dd if=/dev/zero bs=1400 count=200000 > /dev/udp/{PEER}/9 || sleep 0.01
done 2> /dev/null
"""

# Each operation, with the interface in $dev and the function in $pci.  The console
# tells which was the last.
OPERATIONS = """
netdev() { for dev in /sys/bus/pci/devices/$pci/net/*; do dev=${dev##*/}; done; }
up() {
	for try in $(seq 3000); do
		netdev
		[ -e /sys/class/net/$dev ] && ip link set $dev up && break
		sleep 0.02
	done
	ip addr replace 10.77.0.1/24 dev $dev
	ip neigh replace %(peer)s lladdr 52:54:00:77:00:09 dev $dev nud permanent
}
sent() { cat /sys/class/net/$dev/statistics/tx_packets; }
# Until frames are going out again.
moving() {
	first=$(sent)
	for try in $(seq 3000); do
		[ $(sent) -gt $((first + 200)) ] && return
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
pci=$(basename $(readlink -f /sys/bus/pci/drivers/qhca/0*))
for round in $(seq %(rounds)d); do
	for operation in "mtu 1500" "rings 64" "mtu 4200" "rings 512" link "rings 128" reload \\
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
"""


def kernels():
    return ["default", pytest.param("backports", marks=pytest.mark.skipif(
        not FULL, reason="FULL=1 takes the newer kernel, too"))]


@pytest.mark.parametrize("kernel", kernels())
def test_flood(kernel):
    """Frames end in a hub, behind a port that nobody is connected to."""
    node = Node("a", "qhca", 1, netdevs=["hubport,hubid=0"], cpus=2, append=POISON, kernel=kernel,
                args=["-no-reboot", "-netdev", "hubport,hubid=0,id=sink"])
    with node, content(node):
        floods = [node.spawn(FLOOD) for _ in range(3)]
        done = node.exec(OPERATIONS % {"peer": PEER, "rounds": ROUNDS}, check=False,
                         timeout=180 * ROUNDS)
        assert done.ok, done
        for flood in floods:
            assert flood.poll() is None, "a sender ended"
            flood.kill()
            flood.wait(60, check=False)
        # What the rings left behind is looked at when it is used again.
        node.exec("rmmod qhca_ib qhca")
        node.exec("echo 3 > /proc/sys/vm/drop_caches; head -c 300M /dev/zero > /dev/shm/all; rm /dev/shm/all",
                  timeout=120)
        assert node.leaks() == ""
