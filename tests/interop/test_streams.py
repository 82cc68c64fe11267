# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Programs that poll while messages stream over a netdev: their vCPUs yield the processor,
and those of programs that exchange single messages do not."""

import pytest

from lab import content, verbs
from lab.link import qhca_links

ROUNDS = 6      # whether a poll finds an empty CQ depends on what else the host does


@pytest.fixture
def ends(pairs):
    if not any(link.wire == "stream" for link in qhca_links()):
        pytest.skip("in shared memory the vCPU does the device's work")
    pair = pairs.get("qhca", "qhca", wire="stream")
    with content(*pair):
        yield pair


def yields(pair):
    """Those of hints, of each end"""
    return [node.adapter_counters()["poll_yields"] for node in pair]


@pytest.mark.parametrize("test, size, both", [
    ("ib_write_bw", 65536, False), ("ib_write_bw", 8, False), ("ib_read_bw", 65536, False),
    ("ib_send_bw", 65536, True), ("ib_send_bw", 8, True)])
def test_streams(ends, test, size, both):
    """The client's program polls, and with SENDs that of the server does as well."""
    before = yields(ends)
    for _ in range(ROUNDS):
        verbs.perftest(*ends, test, f"-s {size} -n 5000")
        server, client = (now > was for now, was in zip(yields(ends), before))
        if client and (server or not both):
            break
    assert client and server == both


@pytest.mark.parametrize("test", ["ib_send_lat", "ib_write_lat", "ib_read_lat", "ib_atomic_lat"])
def test_single_messages(ends, test):
    before = yields(ends)
    verbs.perftest(*ends, test, "-n 2000")
    assert yields(ends) == before


def test_single_messages_of_pingpong(ends):
    before = yields(ends)
    verbs.pingpong(*ends, "rc", "-n 2000")
    assert yields(ends) == before
