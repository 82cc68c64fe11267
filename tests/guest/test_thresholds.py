# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Queues whose software index the device knows from memory alone: when it
looks there again, by the counters that a guest reads, for each threshold there
is; and what seems empty or full but is not.

qhca-thresholds makes the accesses, in one guest, through the device's loopback. FULL=1
takes deeper queues.
"""

import json

import pytest

from lab import content, devlink
from lab.link import FULL

DEPTH = 64 if FULL else 16
ROUNDS = 3                      # times that a queue is gone through


@pytest.fixture
def guest(qhca_pair):
    """One of a pair that other tests have booted; the other is not needed."""
    with content(qhca_pair.a):
        yield qhca_pair.a


def queues(node, command, timeout=120):
    out = node.out(f"qhca-thresholds -d {node.ibdev} -g {node.gid_index()} {command}", timeout)
    return [json.loads(line) for line in out.splitlines()]


def kept_up(kind, depth, threshold):
    """Accesses between two looks, when each finds that software has kept up."""
    if kind == "cq":
        return min(threshold + 1, depth)
    capacity = depth - (kind == "srq")  # an SRQ holds one less than it has slots
    return max(capacity - threshold + 1, 1)


def expected(kind, depth, threshold, accesses, keeps_up):
    """The accesses, from 0, at which the device looks."""
    if keeps_up:
        period = kept_up(kind, depth, threshold)
        # Of a receive queue it knows nothing before the first.
        return list(range(period if kind == "cq" else 0, accesses, period))
    if kind == "cq":
        # Before access N, N entries are in use: it begins at threshold + 1.
        return list(range(threshold + 1, depth))
    capacity = depth - (kind == "srq")
    return [n for n in range(capacity) if n == 0 or capacity - n < threshold]


@pytest.mark.parametrize("kind", ["cq", "rq", "srq"])
def test_thresholds(guest, kind):
    """For each threshold the device looks exactly when it should, and nobody rings."""
    accesses = ROUNDS * DEPTH
    runs = queues(guest, f"thresholds {kind} {DEPTH} {accesses}", 600)
    assert [(run["threshold"], run["keeps_up"]) for run in runs] == \
        [(t, keeps_up) for t in range(1, DEPTH + 1) for keeps_up in (True, False)]
    for run in runs:
        threshold, n, looks = run["threshold"], run["accesses"], run["refetched_at"]
        want = expected(kind, DEPTH, threshold, n, run["keeps_up"])
        assert looks == want, run
        assert run[f"{kind}_refetches"] == len(want), run
        # One look costs one read. Those of a CQ are one in threshold + 1, which for
        # thresholds from half the depth on is under one in depth - threshold, too.
        if run["keeps_up"]:
            spared = threshold if kind == "cq" else DEPTH - (kind == "srq") - threshold
            assert (len(looks) - (kind != "cq")) * max(spared, 0) < n, run
            if kind == "cq" and threshold >= DEPTH // 2:
                assert len(looks) * (DEPTH - threshold) < n, run
        # No doorbell for what was posted, none for what was consumed: one at most
        # for each request sent.
        assert run["doorbells_of_filling"] == 0, run
        assert run["sq_doorbells"] <= n and run["cq_arms"] == 0, run
        assert run["doorbells_ignored"] == 0 and run["tx_rnr_no_wqe"] == 0, run
        assert run["cq_overruns"] == 0, run


def test_bad_thresholds(guest):
    """What a queue cannot have is refused, by the library or by the kernel."""
    assert queues(guest, f"refused {DEPTH}") == [{"what": "refused"}]


@pytest.mark.parametrize("kind", ["rq", "srq"])
def test_refilled(guest, kind):
    """A queue that seems empty and has been refilled in memory: no RNR NAK."""
    refilled, empty = queues(guest, f"refilled {kind} {DEPTH} {ROUNDS}")
    assert refilled["refetches_before_rnr"] == ROUNDS, refilled
    assert refilled["tx_rnr_no_wqe"] == refilled["rx_rnr"] == 0, refilled
    # One that is empty: the counters do tell of it.
    assert empty["tx_rnr_no_wqe"] >= 1 and empty["rx_rnr"] >= 1, empty


def test_drained(guest):
    """A CQ that seems full and has been drained in memory: no overrun."""
    (run,) = queues(guest, f"drained {DEPTH} {ROUNDS}")
    assert run["refetches_before_overrun"] == run["cq_refetches"] == ROUNDS, run
    assert run["completions"] == ROUNDS * DEPTH + 1 and run["cq_overruns"] == 0, run


def test_overrun(guest):
    """A CQ that is full: one event, the last CQE intact, and other queues as before."""
    overrun, after = queues(guest, f"overrun {DEPTH}")
    assert overrun["cq_error_events"] == 1 and overrun["cq_overruns"] == 1, overrun
    assert overrun["qp_fatal_events"] == 2 and overrun["other_events"] == 0, overrun
    assert overrun["completions"] == DEPTH, overrun
    assert after["what"] == "drained" and after["cq_overruns"] == 0, after


# -- the driver's thresholds ------------------------------------------------

def set_defaults(node, percent):
    for kind, value in percent.items():
        devlink.set_parameter(node, f"{kind}_threshold_percent", value)
    devlink.reload(node)


def cached_contexts(node):
    """How often the device has looked into its cache of CQs' contexts, {counter: number}."""
    return {name: value for name, value in node.counters().items() if name.startswith("cqc_")}


def check_shown(node, percent):
    """rdma shows of each CQ what its owner asked for, and does not look at the device's
    contexts for it."""
    before = cached_contexts(node)
    cqs = json.loads(node.out("rdma -j -dd resource show cq"))
    assert cqs
    for cq in cqs:
        assert cq["drv_threshold"] == cq["drv_depth"] * percent // 100, cq
    assert cached_contexts(node) == before


def check_defaults(node, percent):
    check_shown(node, percent["cq"])
    for kind, value in percent.items():
        assert devlink.parameter(node, f"{kind}_threshold_percent") == value
        (run,) = queues(node, f"default {kind} {DEPTH}")
        want = expected(kind, DEPTH, DEPTH * value // 100, DEPTH, False)
        assert run["refetched_at"] == want, run


def test_default_thresholds(guest):
    """Queues whose owner asks for none: a part of the depth, by devlink."""
    percent = {"cq": 50, "rq": 25, "srq": 25}
    check_defaults(guest, percent)
    for kind in percent:
        refused = devlink.set_parameter(guest, f"{kind}_threshold_percent", 101, check=False)
        assert not refused.ok and "101 is over 100 percent" in refused.err, refused
    try:
        set_defaults(guest, {"cq": 25, "rq": 50, "srq": 100})
        check_defaults(guest, {"cq": 25, "rq": 50, "srq": 100})
    finally:
        set_defaults(guest, percent)
    check_defaults(guest, percent)


# -- CQs that change while they are used ------------------------------------

@pytest.mark.parametrize("how", ["poll", "events"])
def test_resize_under_traffic(guest, how):
    """Every completion comes once and in order, with the right data, whatever the size."""
    resizes = 2000 if FULL else 100
    (run,) = queues(guest, f"resize {resizes} {how}", 600)
    assert run["resizes"] == resizes and run["messages"] > 10 * resizes, run
    assert run["completions"] == 2 * run["messages"], run
    assert run["cq_overruns"] == run["tx_rnr_no_wqe"] == 0, run
    assert (run["cq_arms"] > 0) == (how == "events"), run


def test_moderation(guest):
    """An event comes with the completion that fills the count, or after the period."""
    (run,) = queues(guest, "moderation 4")
    assert run["valid"] == 10, run
