# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Guests that are saved, and restored later (Documentation/migration.rst)."""

import pytest

from lab import content, flows, move, verbs
from lab.moving import MOVABLE, assert_carries_on, idle_queues

pytestmark = pytest.mark.full


@pytest.fixture
def pair(pairs):
    pair = pairs.get("qhca", "qhca", **MOVABLE)
    with content(*pair):
        yield pair
    assert pair.switches[0].said() == ""


def test_loadvm(pair):
    """A guest goes back in time while it has no connections, with savevm and loadvm."""
    verbs.pingpong(pair.a, pair.b)
    counted = pair.b.counters()["tx_packets"]
    assert pair.b.hmp("savevm before") == ""
    verbs.pingpong(pair.a, pair.b)
    assert pair.b.counters()["tx_packets"] > counted
    assert pair.b.hmp("loadvm before") == ""
    pair.b.agent.unsync()
    pair.b.exec("true")
    verbs.pingpong(pair.a, pair.b)
    verbs.verify(pair.b, pair.a, "-t rc -n 10")


def test_savevm_under_traffic(pair):
    """Traffic notices a pause when the guest is saved."""
    commands = verbs.program_commands("qhca-verify", "-t rc -n 1000 -s 3")
    with verbs.Flow(pair.a, pair.b, commands) as flow:
        assert pair.b.hmp("savevm busy") == ""
        assert flow.runs()
        flow.end(600)


def test_file(pair, tmp_path):
    """A guest waits in a file while its connections are at rest."""
    with idle_queues(pair) as flow:
        snapshot = move.save(pair.b, tmp_path)
        move.restore(pair.b, snapshot)
        assert_carries_on(pair, flow)


def test_both_ends(pair, tmp_path):
    """Both ends are saved at rest and go on; restored later, they go on from there."""
    with idle_queues(pair) as flow:
        snapshots = [move.save(node, tmp_path) for node in pair]
        for node in pair:
            node.qmp("cont")
        assert_carries_on(pair, flow)
        for node, snapshot in zip(pair, snapshots):
            move.restore(node, snapshot)
        # They run again in the guests that were restored.
        for side in flow.sides:
            side.result = None
        assert_carries_on(pair, flow)


def test_one_end(pair, tmp_path):
    """One end alone goes back in time. Requests of both sides, which do not know that, end
    with the error of the page, and what connects anew works."""
    kinds = "rc-small", "rc-large"
    traffic = flows.Traffic(pair, kinds).start()
    try:
        traffic.wait_progress()
        snapshot = move.save(pair.b, tmp_path)
        pair.b.qmp("cont")
        traffic.wait_progress()
        move.restore(pair.b, snapshot)
        for node in pair:
            traffic.wait_over(node, kinds)
        reports = traffic.stop()
    finally:
        traffic.abandon()
    assert len(reports) == 4
    for end, report in reports.items():
        assert report.sound and report.ended and not report.fatal, (end, report.text)
        assert report.statuses == {flows.RETRY_EXCEEDED, flows.FLUSHED}, (end, report.text)
    verbs.pingpong(pair.a, pair.b, "rc", "-n 100 -c")
    verbs.verify(pair.b, pair.a, "-t rc -n 10")
