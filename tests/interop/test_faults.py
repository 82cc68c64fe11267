# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Programs over a wire that loses, repeats, reorders and corrupts.

The device of guest a injects, both ways, and the counters of both ends must
tell of the faults and of their repair. UC and UD lose messages on such a
wire by right, so it is RC that has to arrive whole.
"""

import pytest

from lab import verbs
from lab.link import FULL

FAULTS = {"inject-drop-ppm": 10000, "inject-duplicate-ppm": 10000,
          "inject-reorder-ppm": 10000, "inject-corrupt-ppm": 1000}

INJECTED = ["inject_dropped", "inject_duplicated", "inject_reordered", "inject_corrupted"]
REPAIRS = ["rx_icrc_errors", "retransmitted_packets", "duplicate_requests", "out_of_sequence"]
COUNTERS = INJECTED + REPAIRS

# perftest's tests of latency are not for such a wire. Their server ends when it has all
# messages: if the last acknowledgement is lost, the client's QP has no peer to ask again.
RUNS = (
    ("ib_write_bw", "-s 65536 -n 150"), ("ib_read_bw", "-s 65536 -n 150"),
    ("ib_send_bw", "-s 65536 -n 150"), ("ib_atomic_bw", "-n 500"),
)


@pytest.fixture(scope="module")
def pair(pairs, wire):
    return pairs.get("qhca", "qhca", wire=wire)


@pytest.fixture
def faulty(pair):
    """The pair while a injects; afterwards the wire is sound again."""
    pair.a.inject(FAULTS)
    try:
        yield pair
    finally:
        pair.a.inject(dict.fromkeys(FAULTS, 0))
        verbs.pingpong(pair.b, pair.a)


def change(pair, run):
    """What run() adds to the counters of both ends, {name: sum}."""
    before = [node.counters() for node in pair]
    run()
    after = [node.counters() for node in pair]
    return {name: sum(a[name] - b[name] for a, b in zip(after, before)) for name in COUNTERS}


def assert_repaired(more):
    unseen = [name for name in COUNTERS if more[name] <= 0]
    assert not unseen, f"nothing counted as {unseen}: {more}"


def test_perftest(faulty):
    def runs():
        for test, options in RUNS:
            # Soon, for much is lost; but eight times in 3.6 s, for a host may be busy.
            rows = verbs.perftest(faulty.b, faulty.a, test, f"{options} -u 15", timeout=300).rows
            assert rows, "perftest printed no table"
    assert_repaired(change(faulty, runs))


# tests/sim has more shapes, in virtual time.
@pytest.mark.parametrize("shape", [
    "-t rc", *(pytest.param(shape, marks=pytest.mark.full)
               for shape in ("-t rc -q 4 -r -S 8192", "-t rc -m 256 -S 16384"))])
def test_data(faulty, shape):
    """Every byte, completion and immediate is right, either way round."""
    def runs():
        for ends in (faulty.nodes, faulty.nodes[::-1]):
            verbs.verify(*ends, f"{shape} -n 60 -s 7 -o 15", timeout=300)
    assert_repaired(change(faulty, runs))


@pytest.fixture
def late(pair):
    """The pair while a has RDMA frames later than Ethernet ones that were sent after
    them. Tests, too, must not take that for granted which is only usual."""
    faults = {"inject-delay-ppm": 1000000, "inject-delay-ns": 60000000, "inject-direction": "rx"}
    before = pair.a.counters()["inject_delayed"]
    pair.a.inject(faults)
    try:
        yield pair
    finally:
        pair.a.inject({**dict.fromkeys(faults, 0), "inject-direction": "both"})
    assert pair.a.counters()["inject_delayed"] > before


def test_late_data(late):
    """UC completes what is sent, so a round of verify has to end with a message that
    tells of its arrival."""
    verbs.verify(*late, "-t uc -m 4096 -S 2048 -n 20 -s 43", timeout=300)


@pytest.mark.parametrize("client", [0, pytest.param(1, marks=pytest.mark.full)],
                         ids=["requests", "answers"])
def test_late_cases(late, client, tap_points):
    """The responder has no receives, however late the requester learns of it."""
    ends = late.nodes[1 - client], late.nodes[client]
    done = verbs.program(*ends, "qhca-cases", "", "-k RNR", timeout=120, check=False)
    assert done.server.ok, done.server
    tap_points(done.client.out + done.client.err, done.client.code)


@pytest.mark.parametrize("seed", [1, 2] if FULL else [1])
def test_churn(faulty, seed, tap_points):
    """Keys live and die under traffic (programs/memory/churn.c)."""
    seconds = 60 if FULL else 10
    done = verbs.program(*faulty, "qhca-churn", f"-s {seed}", f"-s {seed + 100} -T {seconds}",
                         timeout=seconds + 120, check=False)
    assert done.server.ok, done.server
    tap_points(done.client.out + done.client.err, done.client.code)
