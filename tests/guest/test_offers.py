# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What programs, tools and monitoring made for other adapters expect of this one.

Regions without bytes and without memory, keys of windows, the clock and address
handles (programs/uverbs/offers.c); the port's counters in sysfs; what ibstat shows;
the queues of the interface as the kernel's netlink family "netdev" has them.
"""

import re

import pytest

from lab import content
from lab.pair import Node
from lab.script import TESTS


@pytest.fixture(scope="module")
def node():
    guest = Node("a", "qhca", 1, netdevs=["hubport,hubid=0"], memory=512).boot()
    with content(guest):
        yield guest
    guest.close()


def offers(node, options=""):
    return node.exec(f"qhca-offers -d {node.ibdev} -g {node.gid_index()} {options} 2>&1",
                     timeout=600, check=False)


def test_programs(node, tap_points):
    done = offers(node)
    print(done.out)
    tap_points(done.out, done.code)


@pytest.mark.full
def test_all_address_handles(node, tap_points):
    done = offers(node, "-a")
    tap_points(done.out, done.code)


def test_port_counters(node):
    """They are the device's counters, as performance management defines them."""
    offers(node)
    rows = node.out(f"cd /sys/class/infiniband/{node.ibdev}/ports/1/counters && grep . *")
    shown = {name: int(value) for name, value in re.findall(r"(\S+):(\d+)", rows)}
    counters = node.counters()
    assert shown["port_xmit_packets"] == counters["tx_packets"] > 0
    assert shown["port_rcv_packets"] == counters["rx_packets"] > 0
    assert shown["port_xmit_data"] == counters["tx_bytes"] // 4
    assert shown["port_rcv_data"] == counters["rx_bytes"] // 4
    assert shown["port_rcv_errors"] == 0 and "unicast_xmit_packets" not in shown


def test_link_downed(node):
    path = f"/sys/class/infiniband/{node.ibdev}/ports/1/counters/link_downed"
    before = int(node.out(f"cat {path}"))
    node.qmp("set_link", name="nic0", up=False)
    node.wait_until(f"[ $(cat {path}) = {before + 1} ]", what="the link's end")
    node.qmp("set_link", name="nic0", up=True)
    node.configure()


def test_identity(node):
    shown = node.out(f"ibstat {node.ibdev}")
    assert "CA type: qhca" in shown
    assert re.search(r"Hardware version: 1\b", shown)
    assert re.search(r"Firmware version: \d+\.\d+", shown)
    board = node.out(f"cat /sys/class/infiniband/{node.ibdev}/board_id")
    assert re.fullmatch(r"[0-9a-f]{4}:[0-9a-f]{4}", board.strip())


def queues(node):
    """({queue: NAPI id}, {NAPI id: irq}, {queue: (packets, bytes)})"""
    text = (TESTS / "guest/scripts/netdev-queues.py").read_text()
    out = node.out(["python3", "-c", text, node.netif])
    napis = re.findall(r"queue (\w+ \d+) napi (\d+)", out)
    irqs = re.findall(r"napi (\d+) irq (\d+)$", out, re.M)
    stats = re.findall(r"stats (\w+ \d+) (\d+) (\d+)", out)
    return ({queue: int(napi) for queue, napi in napis},
            {int(napi): int(irq) for napi, irq in irqs if int(irq)},
            {queue: (int(packets), int(length)) for queue, packets, length in stats})


def test_queues(node):
    napis, irqs, before = queues(node)
    assert napis["rx 0"] == napis["tx 0"] > 0
    irq = irqs[napis["rx 0"]]
    assert "qhca" in node.out(f"grep '^ *{irq}:' /proc/interrupts")
    node.exec(f"ping -c 3 -W 1 -I {node.netif} 192.0.2.99", check=False)
    after = queues(node)[2]
    assert after["tx 0"][0] > before["tx 0"][0] and after["tx 0"][1] > before["tx 0"][1]
    stats = node.out(f"ethtool -S {node.netif}")
    assert int(re.search(r"txq0_packets: (\d+)", stats).group(1)) >= after["tx 0"][0]


def test_queues_of_a_stopped_interface(node):
    node.exec(f"ip link set {node.netif} down")
    try:
        assert not queues(node)[0]
    finally:
        node.exec(f"ip link set {node.netif} up")
        node.configure()
