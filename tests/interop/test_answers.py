# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Programs that answer each other over shared memory: their vCPUs wait in the doorbells, and
nobody wakes the devices' threads. How often this is so depends on what else the host does, so
each test goes on until it has seen it, for some rounds."""

import pathlib

import pytest

from lab import content, verbs
from lab.flows import grown, hits

ROUNDS = 8
COUNT = 5000        # messages of each side


@pytest.fixture
def ends(pairs):
    pair = pairs.get("qhca", "qhca", wire="shm")
    with content(*pair):
        yield pair


def until_they_wait(pair, run, least):
    """Runs something until more than so many doorbells of each end have waited with success."""
    for _ in range(ROUNDS):
        before = hits(pair)
        run()
        if min(grown(hits(pair), before)) > least:
            return
    assert False, "no vCPU waits for its answers"


def sleeps(pair):
    """How often each end's device has slept, as the kernel has counted: a QEMU's threads without
    the first one, which waits for much else. Its vCPUs do not sleep while a program polls."""
    found = []
    for node in pair:
        pid = node.child.pid
        tasks = pathlib.Path(f"/proc/{pid}/task").iterdir()
        texts = [(task / "status").read_text() for task in tasks if task.name != str(pid)]
        found.append(sum(int(text.split("\nvoluntary_ctxt_switches:")[1].split()[0])
                         for text in texts))
    return found


@pytest.mark.parametrize("test, size", [("ib_write_lat", 8), ("ib_send_lat", 4096)])
def test_latency(ends, test, size):
    """Most messages need no wake-up, by the device's counters and by the kernel's."""
    most, fewest = 0, 2 * COUNT
    for _ in range(ROUNDS):
        hit, slept = hits(ends), sleeps(ends)
        verbs.perftest(*ends, test, f"-s {size} -n {COUNT}")
        most = max(most, min(grown(hits(ends), hit)))
        fewest = min(fewest, max(grown(sleeps(ends), slept)))
        if most > COUNT // 2 and fewest < COUNT // 2:
            return
    assert most > COUNT // 2 and fewest < COUNT // 2


def test_latency_of_many_packets(ends):
    """A device that is slow for other reasons takes so long for these that it often gives up."""
    until_they_wait(ends, lambda: verbs.perftest(*ends, "ib_write_lat", f"-s 65536 -n {COUNT}"),
                    COUNT // 50)


def test_pingpong(ends):
    """With bytes that are compared."""
    until_they_wait(ends, lambda: verbs.pingpong(*ends, "rc", f"-n {COUNT} -c"), COUNT // 2)


def acks_exceed(node, number):
    """A condition for bash"""
    return f"[ $(cat /sys/class/infiniband/{node.ibdev}/hw_counters/tx_acks) -gt {number} ]"


def stop_and_continue(pair):
    pair.b.qmp("stop")
    pair.b.qmp("cont")


def pull_the_cable(pair):
    b = pair.b
    for up in (False, True):
        b.set_link(up)
        b.wait_until(f"[ $(cat /sys/class/net/{b.netif}/carrier) = {int(up)} ]")


@pytest.mark.parametrize("operation", [stop_and_continue, pull_the_cable])
def test_amid(ends, operation):
    """The peer's VM stops, or its cable is pulled, while vCPUs wait: the programs go on."""
    def run():
        with verbs.Flow(*ends, verbs.perftest_commands("ib_write_lat", "-s 8 -D 6")) as flow:
            ends.a.wait_until(acks_exceed(ends.a, ends.a.counters()["tx_acks"] + COUNT))
            for _ in range(3):
                operation(ends)
            flow.end()
    until_they_wait(ends, run, 100)


def test_killed(ends):
    """The peer's program dies while vCPUs wait for its messages: the next ones find no trace."""
    a, b = ends
    for _ in range(3):
        with verbs.Flow(a, b, verbs.perftest_commands("ib_write_lat", "-s 8 -n 1000000")) as flow:
            a.wait_until(acks_exceed(a, a.counters()["tx_acks"] + COUNT))
            flow.sides[1].kill()
            b.exec(f"ping -q -c 3 -i 0.1 -W 5 {a.ip4}")
        verbs.pingpong(a, b, "rc", "-n 100 -c")
