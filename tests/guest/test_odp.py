# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Memory on demand: programs/paging/odp*.c and pages.c, perftest with it, counters, the wire.

FULL=1 touches 100,000 scattered pages in place of 5,000, deregisters 10,000
regions in place of 500, has the storm last 60 s in place of 5, and moves 4 GiB
through a guest of 2 GiB in place of 96 MiB through a control group of 32 MiB.
"""

import os
import re

import pytest

from lab import Pair, content, script, verbs
from lab.link import FULL

# perftest's programs that have --odp: READ, atomics, SEND, WRITE over RC and XRC.
PERFTESTS = [("ib_write_bw", "-s 65536"), ("ib_read_bw", "-s 65536"), ("ib_send_bw", "-s 65536")]
if FULL:
    PERFTESTS += [("ib_write_lat", "-s 65536"), ("ib_atomic_bw", ""),
                  ("ib_send_bw", "-s 65536 -c XRC"), ("ib_read_lat", "-s 65536"),
                  ("ib_send_lat", "-s 65536"), ("ib_atomic_lat", ""),
                  ("ib_write_bw", "-s 65536 -b"), ("ib_send_bw", "-s 65536 -b"),
                  ("ib_read_bw", "-s 65536 -b"), ("ib_send_bw", "-s 65536 --use-srq"),
                  ("ib_write_bw", "-s 65536 -q 4"), ("ib_atomic_bw", "-A CMP_AND_SWAP"),
                  ("ib_write_bw", "-s 65536 -c XRC"), ("ib_read_bw", "-s 65536 -c XRC"),
                  ("ib_send_lat", "-s 65536 -c XRC")]


@pytest.fixture(scope="module")
def pair(pairs, wire):
    return pairs.get("qhca", "qhca", wire=wire)


@pytest.fixture
def ends(pair):
    with content(*pair):
        yield pair.a, pair.b


def test_cases(ends, tap_points):
    node, _ = ends
    done = node.exec(f"qhca-odp -d {node.ibdev} -g {node.gid_index()} -s 10 2>&1",
                     timeout=240, check=False)
    print(done.out)
    tap_points(done.out, done.code)
    assert "odp" not in node.out("rdma resource show mr"), "regions were left"


def test_large(ends, tap_points):
    """Regions on demand cost what is used of them, not what they span."""
    node, _ = ends
    done = node.exec(f"qhca-large -d {node.ibdev} -g {node.gid_index()} 2>&1", timeout=240, check=False)
    print(done.out)
    tap_points(done.out, done.code)


def test_tables_are_charged(ends, tap_points):
    """A process pays for its tables, be they made by itself or by a kernel thread for it."""
    node, _ = ends
    done = node.exec(script("guest/scripts/charged-tables.sh", node.ibdev), timeout=240, check=False)
    print(done.out)
    tap_points(done.out, done.code)


@pytest.mark.parametrize("test, options", PERFTESTS)
def test_perftest(ends, test, options):
    """Buffers that neither side has pinned."""
    before = [node.counters() for node in ends]
    assert verbs.perftest(*ends, test, f"{options} -n 50 --odp").rows
    moved = [{name: value - was[name] for name, value in node.counters().items()}
             for node, was in zip(ends, before)]
    assert any(m["page_faults1"] for m in moved), "perftest met no page fault"
    assert all(m["fault_resumes"] and m["fault_resumes"] <= m["page_faults1"]
               for m in moved if m["page_faults1"])
    assert not any(m["fault_failures"] for m in moved)
    # In both directions the fault of what is sent may bring the pages that are written to:
    # they are the next ones, and in memory.
    if not test.startswith("ib_read") and "-b" not in options.split():
        assert any(m["tx_rnr_fault1"] for m in moved), "no side sent an RNR NAK for a page fault"


def test_perftest_datagrams(ends):
    """UD: the source is on demand, the target is not, whose datagrams would be
    lost and perftest wait for them for ever: it does not look at the capabilities,
    which say so. UC it refuses whatever they say."""
    server, client = ends
    before = client.counters()["fault_gather"]
    gids = [node.gid_index() for node in ends]
    command = "ib_send_bw -c UD -F -s 4096 -n 50 -d"
    run = verbs.client_server(server, client, f"{command} {server.ibdev} -x {gids[0]} -p 18444",
                              f"{command} {client.ibdev} -x {gids[1]} -p 18444 --odp {server.ip4}",
                              ready=verbs.listening(18444))
    assert verbs.table(run.client.out)
    assert client.counters()["fault_gather"] > before
    run = verbs.perftest(*ends, "ib_send_bw", "-c UC -n 50 --odp", timeout=30, check=False)
    assert not run.server.ok and "ODP is not available on UC" in run.server.out + run.server.err


def pages(ends, mode, options, tap_points, timeout=120, prefix=""):
    """programs/paging/pages.c; the memory is the first end's."""
    server, client = ends
    options = f"-m {mode} {options}"
    done = verbs.program(server, client, f"{prefix}qhca-pages", options, options,
                         timeout=timeout, check=False)
    leftovers = server.out("rdma resource show mr")
    print(done.server, done.client)
    tap_points(done.server.out, done.server.code)
    tap_points(done.client.out, done.client.code)
    assert "mrlen" not in leftovers, f"regions were left: {leftovers}"


@pytest.fixture(scope="module")
def swap(pair):
    """Guest a swaps to a file, and has a group for 32 MiB."""
    pair.a.exec(script("guest/scripts/swap-file.sh"), timeout=60)
    yield
    if pair.a.running:
        pair.a.exec("swapoff /swapfile; rm /swapfile; rmdir /sys/fs/cgroup/small", timeout=120)


def test_scattered(ends, tap_points):
    """An implicit region's tables follow what a peer touches."""
    number = 100_000 if FULL else 5000
    pages(ends, "scatter", f"-i -n {number}", tap_points, timeout=1200 if FULL else 120)


@pytest.mark.usefixtures("swap")
@pytest.mark.parametrize("implicit", ["", "-i"], ids=["explicit", "implicit"])
def test_storm(ends, implicit, tap_points):
    """Pages go in every way there is under the peer's traffic; none is written afterwards."""
    seconds = 60 if FULL else 5
    pages(ends, "storm", f"{implicit} -T {seconds}", tap_points, timeout=120 + 4 * seconds)


@pytest.mark.full
@pytest.mark.usefixtures("swap")
def test_more_than_memory(ends, tap_points):
    """A peer writes and reads back three times what the process may have in memory."""
    pages(ends, "bulk", "-M 96", tap_points, timeout=240,
          prefix="[ ! -d /sys/fs/cgroup/small ] || echo $$ > /sys/fs/cgroup/small/cgroup.procs; ")


def test_deregistration(ends):
    """It takes less than twice as long on demand as pinned."""
    node, _ = ends
    number = 10_000 if FULL else 500
    out = node.out(f"qhca-odp -d {node.ibdev} -g {node.gid_index()} -r {number}", timeout=600)
    print(out)
    took = {name: int(ns) for name, ns in re.findall(r"^(\w+) (\d+)", out, re.M)}
    assert took["unused"] < 2 * took["pinned"], out
    assert took["present"] < 2 * took["pinned"], out


if os.environ.get("QHCA_KERNEL") == "debug":
    def test_leaks(ends):
        """The tests above have left nothing behind."""
        for node in ends:
            assert node.leaks() == ""


if FULL:
    def test_more_than_guest(pairs, tmp_path, tap_points):
        """4 GiB in a guest of 2 GiB with a disk for swapping."""
        pairs.close()
        disk = tmp_path / "swap"
        with open(disk, "wb") as f:
            f.truncate(6 << 30)
        args = ["-drive", f"if=none,id=swap,file={disk},format=raw,cache=unsafe",
                "-device", "virtio-blk-pci,drive=swap,serial=qhca-swap"]
        with Pair(("qhca", "qhca"), mtu=4200, a_args={"memory": 2048, "args": args}) as pair:
            pair.a.exec(script("guest/scripts/swap-disk.sh", "qhca-swap"), timeout=60)
            pages(pair, "bulk", "-M 4096", tap_points, timeout=3000)
            assert not pair.a.kernel_complaints() and not pair.b.kernel_complaints()
