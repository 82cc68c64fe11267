# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""How often software has to ring, by the device's counters."""

import pytest

from lab import verbs


def counters(node):
    folder = f"/sys/class/infiniband/{node.ibdev}/hw_counters"
    return {name: int(value) for name, value in
            (line.split(":") for line in node.out(f"cd {folder} && grep -v nothing *").splitlines())}


def spent(node, run):
    """What each counter of the node's device counts during run()."""
    before = counters(node)
    run()
    after = counters(node)
    return {name: after[name] - value for name, value in before.items() if name != "lifespan"}


@pytest.fixture
def ends(pairs):
    return pairs.get("qhca", "qhca").nodes


def test_no_doorbell_for_receives(ends):
    """A receiver rings for nothing at all."""
    server, client = ends
    done = spent(server, lambda: verbs.perftest(server, client, "ib_send_bw", "-s 8 -n 2000"))
    assert done["completions"] >= 2000, done
    assert done["sq_doorbells"] == 0 and done["cq_arms"] == 0, done
    assert done["rq_refetches"] * 2 < 2000, done
