# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A guest moves to another QEMU while RDMA programs run on both sides.

The programs notice a pause and nothing else: no error, the same QP numbers and keys, each
byte right. The guests are joined by the switch, which learns where the guest is now.
"""

import re

import pytest

from lab import content, move
from lab.flows import Traffic

MOVABLE = {"wire": "switch", "movable": True}


@pytest.fixture
def pair(pairs):
    """A pair of qhca whose guests can move; neither QEMU nor a kernel may complain."""
    pair = pairs.get("qhca", "qhca", **MOVABLE)
    with content(*pair):
        yield pair
    assert pair.switches[0].said() == ""


def identity(node):
    """Numbers of the QPs and keys of the MRs in a guest."""
    found = node.out("rdma -dd res show qp; rdma -dd res show mr")
    return sorted(re.findall(r"lqpn \d+|rqpn \d+|rkey \S+|lkey \S+", found))


def move_under_traffic(pair, nodes, kinds, **options):
    """Moves nodes one after the other under traffic both ways, which verifies itself."""
    traffic = Traffic(pair, kinds).start()
    try:
        traffic.wait_progress()
        for node in nodes:
            before = identity(node)
            print(move.migrate(node, **options))
            assert before and identity(node) == before
            traffic.wait_progress()
        reports = traffic.stop()
    finally:
        traffic.abandon()
    wrong = {end: report.text for end, report in reports.items()
             if not report.sound or report.ended}
    assert not wrong, wrong


def test_traffic(pair):
    """SENDs into a shared receive queue, WRITEs and READs, and datagrams, both ways."""
    move_under_traffic(pair, [pair.b], ("rc-small", "rc-large", "ud"))
