# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A guest moves to another QEMU while RDMA programs run on both sides.

The programs notice a pause and nothing else: no error, the same QP numbers and keys, each
byte right. The guests are joined by the switch, which learns where the guest is now. By
default one guest moves once; FULL=1 moves either side under each kind of traffic.
"""

import contextlib
import functools
import re
import time

import pytest

from lab import content, move, verbs, wait_for
from lab.flows import RDMA
from lab.moving import MOVABLE, move_beside, move_under_traffic
from lab.nvme import serving

# How long programs run: all start and the guest moves meanwhile, which takes long on a busy host.
SECONDS = 150


def movable(pairs, peer):
    """A pair whose guest b, which has qhca, can move; that of a is the peer."""
    props = {"props": (None, {"rxe-flush": "on"})} if peer == "rxe" else {}
    return pairs.get(peer, "qhca", **props, **MOVABLE)


@contextlib.contextmanager
def sound(pair):
    """Neither QEMU nor a kernel nor the switch may complain."""
    with content(*pair):
        yield pair
    assert pair.switches[0].said() == ""


@pytest.fixture
def pair(pairs):
    with sound(movable(pairs, "qhca")) as pair:
        yield pair


@pytest.fixture(params=["qhca", "rxe"])
def peer(request, pairs):
    """A pair, of whose guests b is the one to move, and a has either kind of device."""
    with sound(movable(pairs, request.param)) as pair:
        yield pair


@pytest.fixture(params=["client", "server"])
def side(request):
    """What the guest that moves is."""
    return request.param


@contextlib.contextmanager
def flows(server, client, *commands):
    """Programs that all run at the same time, each with a Flow."""
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(verbs.Flow(server, client, each)) for each in commands]


def roles(pair, side):
    """(server, client), of which b is the one that the test says."""
    return (pair.a, pair.b) if side == "client" else (pair.b, pair.a)


# -- other people's programs

PERFTEST = (
    ("ib_write_lat", "-s 8"), ("ib_write_bw", "-s 65536"), ("ib_read_bw", "-s 65536"),
    ("ib_send_bw", "--use-srq -s 4096"), ("ib_atomic_bw", ""), ("ib_send_bw", "-c UD -s 1024"),
)
# Soft-RoCE has none.
PERFTEST_XRC = (("ib_write_bw", "-c XRC -s 4096"), ("ib_send_bw", "-c XRC -s 4096"))


def connected(node):
    """How many queue pairs of perftest are, not counting those of XRC."""
    return len(re.findall(r"type (?:RC|UD) state RT[RS]\b.*\bcomm ib_", node.out("rdma res show qp")))


@pytest.mark.full
def test_perftest(peer, side):
    """All of them at once, so each has requests under way when the guest stops."""
    tests = PERFTEST + (PERFTEST_XRC if peer.a.kind == "qhca" else ())
    commands = [verbs.perftest_commands(program, f"{options} -D {SECONDS}")
                for program, options in tests]
    with flows(*roles(peer, side), *commands) as running:
        wait_for(lambda: connected(peer.b) == len(PERFTEST), 60 * peer.b.patience,
                 "queue pairs of the programs")
        print(move_beside(running, peer.b))
        runs = [flow.end() for flow in running]
    for run in runs:
        (row,) = verbs.table(run.client.out)
        print(run.client.command, row)
        assert row["iterations"] > 0, run.client


PINGS = 5000


def rping_commands(server, client):
    """rping of 4 KiB each way, which compares what comes back."""
    options = f"-a {server.ip4} -V -S 4096 -C {PINGS}"
    return f"rping -s {options}", f"rping -c {options}", verbs.cm_listening(7174)


@pytest.mark.full
def test_rping(peer, side):
    with flows(*roles(peer, side), rping_commands) as (flow,):
        print(move_beside([flow], peer.b))
        run = flow.end(600)
    assert "error" not in run.client.err + run.server.err, run


VERIFIED = ("--rw=randwrite --bsrange=4k-64k --size=16M --verify=crc32c --verify_fatal=1 "
            f"--verify_backlog=64 --time_based --runtime={SECONDS}")


@pytest.mark.full
@pytest.mark.parametrize("mover", ["target", "host"])
def test_nvme(pair, mover):
    """NVMe-oF: all that is written is read again and verified; no connection ends."""
    with serving(pair.a, pair.b) as nvme:
        nvme.connect(loss=600)
        job = nvme.host.spawn(nvme.fio(VERIFIED))
        nvme.wait_busy()
        said = len(nvme.host.out("dmesg"))
        # Each request is registered anew, so that neither keys nor connections are compared.
        print(move.migrate(pair.a if mover == "target" else pair.b))
        assert job.poll() is None, job.poll()
        done = job.wait(300)
        assert "err= 0" in done.out, done
        assert "econnect" not in nvme.host.out("dmesg")[said:]
        nvme.disconnect()


# -- programs that verify

KEPT = "/tmp/kept"


def verify_commands(kind, options=""):
    """As long as the file is there on the client's side; a round is of dozens of messages."""
    return verbs.program_commands("qhca-verify", f"-t {kind} -n 20 -k {KEPT} {options}")


@pytest.mark.full
def test_data(peer, side):
    """Each byte of SENDs, WRITEs, READs and atomics of all sizes, and each completion."""
    # READs that come again after requests of no bytes end a QP of rxe.
    kinds = (("rc",), ("xrc",)) if peer.a.kind == "qhca" else (("rc", "-z"),)
    server, client = roles(peer, side)
    client.exec(f"touch {KEPT}")
    with flows(server, client, *(verify_commands(*kind) for kind in kinds)) as running:
        print(move_beside(running, peer.b))
        client.exec(f"rm {KEPT}")
        for flow in running:
            flow.end(600)


@pytest.mark.full
def test_atomics(peer, side):
    """Each FETCH_ADD returns what those before it have made, so each was done once."""
    commands = verbs.program_commands("qhca-soak", "-n 1000000", "")
    with flows(*roles(peer, side), commands) as (flow,):
        for _ in range(3):
            print(move_beside([flow], peer.b))
        flow.end(600)


# All RDMA packets from and to the peer are so late that many are on their way at any time.
LATE = {"inject-delay-ppm": 1000000, "inject-delay-ns": 50000000}


@pytest.mark.full
def test_outstanding(pair):
    """READs and atomics wait for their results in both directions when the guest stops, and
    have them once."""
    soak = verbs.program_commands("qhca-soak", "-n 60000", "")
    counters = "duplicate_requests", "retransmitted_packets"
    before = [pair.b.counters()[name] for name in counters]
    pair.a.inject(LATE)
    for node in pair:
        node.exec(f"touch {KEPT}")
    try:
        with flows(pair.a, pair.b, soak, verify_commands("rc")) as there, \
                flows(pair.b, pair.a, soak, verify_commands("rc")) as back:
            print(move_beside(there + back, pair.b))
            for node in pair:
                node.exec(f"rm {KEPT}")
            for flow in there + back:
                flow.end(600)
    finally:
        pair.a.inject(dict.fromkeys(LATE, 0))
    # Requests of b had no answer yet, and a repeated some to which b had replied.
    repeated = [pair.b.counters()[name] - was for name, was in zip(counters, before)]
    assert all(repeated), dict(zip(counters, repeated))


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
