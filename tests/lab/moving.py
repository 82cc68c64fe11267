# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Moves guests while programs run in them, and shows that these notice a pause alone.

    with verbs.Flow(pair.a, pair.b, commands) as flow:
        print(move_beside([flow], pair.b))
        flow.end()
"""

import re

from . import move, verbs
from .flows import Traffic
from .guest import wait_for

# How a pair is made whose guests can move.
MOVABLE = {"wire": "switch", "movable": True}

# A key, and the part of it that registration anew does not change: all but eight bits.
WHOLE, INDEX = r"\S+", r"\S+(?=\S\S)"


def assert_runs(flows):
    for flow in flows:
        assert flow.runs(), "a flow has ended before the guest had moved: " + "\n".join(
            str(side.poll()) for side in flow.sides)


def wait_traffic(node, packets=200, flows=()):
    """Waits until a node with qhca has received so many RDMA packets more; flows run meanwhile."""
    before = node.counters()["rx_packets"]

    def received():
        assert_runs(flows)
        return node.counters()["rx_packets"] >= before + packets

    wait_for(received, 120 * node.patience, f"traffic to {node.name}", interval=0.2)


def identity(node, key=WHOLE):
    """Numbers of the QPs and keys of the MRs in a guest, or the indices in these, as kernel
    consumers change the rest with each registration."""
    found = node.out("rdma -dd res show qp; rdma -dd res show mr")
    return sorted(re.findall(rf"[lr]qpn \d+|[lr]key {key}", found))


def move_beside(flows, node, *, packets=200, key=WHOLE, **options):
    """Moves a node while flows run, none of which may end before it has moved, and shows
    that there is traffic before and after, and that no QP or key has changed; a Move.

    A flow may still make objects while the node moves.
    """
    wait_traffic(node, packets, flows)
    before = identity(node, key)
    moved = move.migrate(node, **options)
    wait_traffic(node, packets, flows)
    assert_runs(flows)
    after = identity(node, key)
    assert before and set(before) <= set(after), (before, after)
    return moved


def move_under_traffic(pair, nodes, kinds, migrate=move.migrate):
    """Moves nodes one after the other under traffic both ways, which verifies itself."""
    key = INDEX if "kernel" in kinds else WHOLE
    traffic = Traffic(pair, kinds).start()
    try:
        traffic.wait_progress()
        for node in nodes:
            before = identity(node, key)
            print(migrate(node))
            assert before and identity(node, key) == before
            traffic.wait_progress()
        reports = traffic.stop()
    finally:
        traffic.abandon()
    wrong = {end: report.text for end, report in reports.items()
             if not report.sound or report.ended}
    assert not wrong, wrong


def idle_queues(pair, qps=64, mrs=64, kept="/tmp/kept", timeout=120):
    """Queue pairs that are connected and at rest until the file is gone from b, and regions
    beside them; a Flow."""
    options = f"-n {qps} -m {mrs} -a"
    commands = verbs.program_commands("qhca-queues", f"{options} -k {kept}", options)
    flow = verbs.Flow(pair.a, pair.b, commands)
    try:
        pair.b.wait_until(f"[ -e {kept} ] || ! [ -d /proc/{flow.sides[1].pid} ]", timeout)
        assert flow.runs(), flow.end()
    except BaseException:
        flow.close()
        raise
    return flow


def assert_carries_on(pair, flow, kept="/tmp/kept", timeout=180):
    """The queue pairs carry data in both directions, every byte of which is right."""
    pair.b.exec(f"rm {kept}")
    run = flow.end(timeout)
    assert "carry data again" in run.client.out and "not ok" not in run.client.out, run.client
