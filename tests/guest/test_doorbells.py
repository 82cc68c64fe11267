# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""How often software has to ring, by the device's counters.

FULL=1 makes ten million requests with pauses instead of a hundred thousand, and
runs more of perftest.
"""

import re

import pytest

from lab import verbs
from lab.link import FULL

REQUESTS = 20000
SOAK = 10_000_000 if FULL else 100_000


def spent(node, run):
    """What each counter of the node's device counts during run()."""
    before = node.counters()
    run()
    after = node.counters()
    return {name: after[name] - value for name, value in before.items()}


@pytest.fixture
def ends(pairs, wire):
    return pairs.get("qhca", "qhca", wire=wire).nodes


@pytest.mark.parametrize("options", ["ib_write_bw", "ib_read_bw -o 16"] + [
    "ib_write_bw -Q 1", "ib_write_bw -b", "ib_send_bw", "ib_send_bw -e"] * FULL)
def test_many_outstanding(ends, options):
    """With 64 small requests under way, less than one doorbell in 16 requests:
    the device finds the others by looking at the queue again."""
    server, client = ends
    test, _, options = options.partition(" ")
    done = spent(client, lambda: verbs.perftest(server, client, test,
                                                f"-s 8 -t 64 -n {REQUESTS} {options}"))
    print({name: done[name] for name in ("sq_doorbells", "sq_wqes_found", "cq_arms")})
    assert done["sq_doorbells"] + done["sq_wqes_found"] >= REQUESTS, done
    assert done["sq_doorbells"] * 16 < REQUESTS, done
    # No doorbell reports that completions were consumed or receives posted.
    assert done["doorbells_ignored"] == 0, done
    assert "-e" in options or done["cq_arms"] == 0, done


def test_soak(ends, tap_points):
    """Requests with pauses of all lengths, polled for and slept for: a doorbell
    left out that was needed would leave the program waiting (programs/scale/soak.c)."""
    server, client = ends
    runs = []

    def run():
        runs.append(verbs.program(server, client, "qhca-soak", "", f"-n {SOAK}",
                                  timeout=60 + SOAK // 2000, check=False))
    done = spent(client, run)
    run, = runs
    print(run.client.out, {name: done[name] for name in ("sq_doorbells", "sq_wqes_found", "cq_arms")})
    assert run.server.ok, run.server
    tap_points(run.client.out + run.client.err, run.client.code)
    # So it was put to the test: most requests had no doorbell, many arms neither.
    asked = int(re.search(r"(\d+) arms", run.client.out)[1])
    assert done["sq_doorbells"] * 4 < SOAK <= done["sq_doorbells"] + done["sq_wqes_found"], done
    assert 0 < done["cq_arms"] < asked, (done, asked)


def test_no_doorbell_for_receives(ends):
    """A receiver rings for nothing at all."""
    server, client = ends
    done = spent(server, lambda: verbs.perftest(server, client, "ib_send_bw", "-s 8 -n 2000"))
    assert done["completions"] >= 2000, done
    assert done["sq_doorbells"] == 0 and done["cq_arms"] == 0, done
    assert done["rq_refetches"] * 2 < 2000, done
