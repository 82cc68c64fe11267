# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A guest moves to another QEMU while RDMA programs run on both sides.

The programs notice a pause and nothing else: no error, the same QP numbers and keys, each
byte right. The guests are joined by the switch, which learns where the guest is now. By
default one guest moves once; FULL=1 moves either side under each kind of traffic.
"""

import functools
import time

import pytest

from lab import content, move, verbs, wait_for
from lab.flows import RDMA
from lab.moving import MOVABLE, move_beside, move_under_traffic

# How long perftest runs: the guest moves meanwhile, which takes long on a busy host.
SECONDS = 40


@pytest.fixture
def pair(pairs):
    """A pair of qhca whose guests can move; neither QEMU nor a kernel may complain."""
    pair = pairs.get("qhca", "qhca", **MOVABLE)
    with content(*pair):
        yield pair
    assert pair.switches[0].said() == ""


@pytest.fixture(params=["client", "server"])
def side(request):
    return request.param


# -- perftest

PERFTEST = {
    "write_lat": ("ib_write_lat", "-s 8"),
}


@pytest.mark.full
@pytest.mark.parametrize("test", PERFTEST)
def test_perftest(pair, test, side):
    program, options = PERFTEST[test]
    commands = verbs.perftest_commands(program, f"{options} -D {SECONDS}")
    with verbs.Flow(pair.a, pair.b, commands) as flow:
        print(move_beside([flow], pair.b if side == "client" else pair.a))
        run = flow.end()
    assert verbs.table(run.client.out), run.client


# -- programs that verify

@pytest.mark.full
def test_atomics(pair, side):
    """Each FETCH_ADD returns what those before it have made, so each was done once."""
    commands = verbs.program_commands("qhca-soak", "-n 1000000", "")
    node = pair.b if side == "client" else pair.a
    with verbs.Flow(pair.a, pair.b, commands) as flow:
        for _ in range(3):
            print(move_beside([flow], node))
        flow.end(600)


# -- all at once, and over and over

KINDS = (*RDMA, "kernel")


def test_traffic(pair):
    """SENDs into a shared receive queue, WRITEs and READs, and datagrams, both ways."""
    move_under_traffic(pair, [pair.b], ("rc-small", "rc-large", "ud"))


@pytest.mark.full
def test_to_and_fro(pair):
    """Twenty moves under all kinds of traffic, on-demand memory and a kernel consumer
    included. The memory of the last QEMU is that of the second."""
    move_under_traffic(pair, [pair.a, pair.b], KINDS)
    held = [node.held() for node in pair]
    move_under_traffic(pair, [pair.b, pair.b, pair.a, pair.a] * 5, KINDS)
    assert all(now < before + (16 << 10) for now, before in zip([n.held() for n in pair], held))


@pytest.mark.full
def test_postcopy(pair):
    """The guest runs at its destination before its memory is there; the device waits for
    the pages that it needs."""
    move_under_traffic(pair, [pair.b, pair.a, pair.b], KINDS,
                       functools.partial(move.migrate, postcopy=True))


# -- in the middle of a page fault, of an RNR wait, of a READ, of an atomic

# How long the page is held back, s, which must be longer than a move takes; and code and
# length of the RNR timer, the longest one.
HOLD, RNR = 20, 0


def page_faults(node):
    counters = node.counters()
    return counters["page_faults1"] + counters["page_faults2"]


@pytest.mark.full
@pytest.mark.parametrize("op", ["write", "read"])
@pytest.mark.parametrize("mover", ["cold", "other"])
def test_fault(pair, op, mover):
    """The side that moves has the page fault, or waits for the other's: in an RNR wait
    with a WRITE, and for the response with a READ."""
    for node in pair:
        node.exec("modprobe fuse")
    node = pair.a if mover == "cold" else pair.b
    commands = verbs.program_commands("qhca-fault", *[f"-c wire -o {op} -H {HOLD * 1000} "
                                                      f"-t {RNR}"] * 2)
    before = page_faults(pair.a)
    with verbs.Flow(pair.a, pair.b, commands) as flow:
        wait_for(lambda: page_faults(pair.a) > before, 60, "the page fault")
        since = time.monotonic()
        print(move.migrate(node))
        assert flow.runs(), "the page came before the guest had moved"
        run = flow.end()
    assert "status=0" in run.client.out, run.client
    assert time.monotonic() - since < 4 * HOLD
