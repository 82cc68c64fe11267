# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Devices with fewer interrupts than queues, as virtual functions may be."""

import pytest

from lab import content, verbs


pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def pair(pairs, wire):
    return pairs.get("qhca", "qhca", wire=wire, props=({"vectors": 1}, {"vectors": 2}))


@pytest.fixture
def ends(pair):
    with content(*pair):
        yield pair.a, pair.b


def interrupts(node):
    """The number of the device's interrupts that are in use."""
    return int(node.out("grep -c qhca /proc/interrupts"))


def test_shared(ends):
    """Commands, Ethernet and completions, each of which waits for its interrupt."""
    a, b = ends
    assert [interrupts(node) for node in ends] == [1, 2]
    assert " 0% packet loss" in a.out(f"ping -c 5 -i 0.02 -W 30 {b.ip4}")
    for server, client in (a, b), (b, a):
        verbs.pingpong(server, client, "rc", "-n 200 -e -c")


def test_life(ends):
    """Those that share an interrupt come and go one by one."""
    for node in ends:
        for _ in range(3):
            node.exec(f"ip link set {node.netif} down && ip link set {node.netif} up")
        node.exec("rmmod qhca_ib qhca")
        assert node.out("grep qhca /proc/interrupts || :") == ""
        node.configure()
    verbs.pingpong(*ends, "rc", "-n 100 -e -c")
