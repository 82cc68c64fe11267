# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Memory on demand: programs/odp.c, perftest with it, counters, the wire."""

import pytest

from lab import verbs


@pytest.fixture(scope="module")
def pair(pairs):
    return pairs.get("qhca", "qhca")


@pytest.fixture
def ends(pair):
    seen = [len(node.kernel_complaints()) for node in pair]
    yield pair.a, pair.b
    for node, before in zip(pair, seen):
        assert node.running, f"QEMU of {node.name} ended: {node.trouble()}"
        complaints = node.kernel_complaints()[before:]
        assert not complaints, f"kernel of {node.name}: {complaints}"


def test_cases(ends, tap_points):
    node, _ = ends
    done = node.exec(f"qhca-odp -d {node.ibdev} -g {node.gid_index()} -s 10 2>&1",
                     timeout=240, check=False)
    print(done.out)
    tap_points(done.out, done.code)
    assert "odp" not in node.out("rdma resource show mr"), "regions were left"


@pytest.mark.parametrize("test", ["ib_write_bw", "ib_read_bw", "ib_send_bw", "ib_write_lat"])
def test_perftest(ends, test):
    """Buffers that neither side has pinned."""
    before = [node.counters() for node in ends]
    assert verbs.perftest(*ends, test, "-s 65536 -n 50 --odp").rows
    moved = [{name: value - was[name] for name, value in node.counters().items()}
             for node, was in zip(ends, before)]
    assert any(m["page_faults1"] for m in moved), "perftest met no page fault"
    assert all(m["fault_resumes"] and m["fault_resumes"] <= m["page_faults1"]
               for m in moved if m["page_faults1"])
    assert not any(m["fault_failures"] for m in moved)
    if test != "ib_read_bw":
        assert any(m["tx_rnr_fault1"] for m in moved), "nobody was told to wait"
