# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Two guests whose devices share memory; FULL=1 runs all tests of the matrix there, too."""

import pytest

from lab import content, verbs
from lab.link import FULL


@pytest.fixture
def shared(pairs):
    pair = pairs.get("qhca", "qhca", wire="shm")
    with content(*pair):
        yield pair


def counters(node):
    """Those of the device's adapter."""
    (info,) = node.qmp("query-qhca")
    return {counter["name"]: counter["value"] for counter in info["adapter"]}


def test_data(shared):
    """Every byte arrives, and through the memory."""
    before = counters(shared.a)
    verbs.verify(*shared, "-t rc -m 4096 -q 4 -w -n 20 -s 1", timeout=300)
    verbs.verify(*shared, "-t ud -q 2 -m 2048 -n 20 -s 2", timeout=300)
    verbs.perftest(*shared, "ib_read_bw", "-s 1048576 -n 20")
    verbs.perftest(*shared, "ib_write_bw", "-s 65536 -n 1000 -q 8")
    after = counters(shared.a)
    assert after["frames_sent"] > before["frames_sent"] + 1000
    assert after["frames_received"] > before["frames_received"] + 1000
    assert after["link_bad_slots"] == 0


def test_peer_killed(shared):
    """The link follows the peer, which gets new memory when it is back."""
    a, b = shared
    for node, other in ((b, a), (a, b)) if FULL else ((b, a),):
        connects = counters(other)["link_connects"]
        node.kill()
        node.close()
        other.wait_until(f"[ $(cat /sys/class/net/{other.netif}/carrier) = 0 ]")
        node.boot()
        other.wait_until(f"[ $(cat /sys/class/net/{other.netif}/carrier) = 1 ]")
        assert counters(other)["link_connects"] == connects + 1
        shared.wait_link()
        verbs.pingpong(a, b, "rc", "-n 100 -c")
