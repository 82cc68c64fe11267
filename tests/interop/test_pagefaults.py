# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Page faults between two guests: programs/paging/fault.c, whose pages come when it
likes (programs/paging/held.h); what they take, what they leave, and what is on the wire.

FULL=1 measures how little a fault disturbs others, for as long as that takes;
without, only that nobody else waits for the page. It lets more operations be
interrupted, and adds the newer kernel, whose Soft-RoCE has memory on demand too.
"""

import re
import statistics
from dataclasses import dataclass

import pytest

from lab import capture, devlink, verbs
from lab.link import FULL, Link, links

TIMER_CODE, TIMER = 31, 491.52e-3      # RNR timer

# Whose memory a request of programs/paging/fault.c misses.
REMOTE, LOCAL = ("write", "send", "atomic", "read"), ("gather", "scatter")


def faults(server, client, case, options="", **kwargs):
    """One run of the program; rows are the client's lines, {name: value}."""
    for node in server, client:
        node.exec("modprobe fuse")
    run = verbs.program(server, client, "qhca-fault", f"-c {case} {options}",
                        f"-c {case} {options}", **kwargs)
    run.rows = [dict(re.findall(r"(\w+)=(\S+)", line)) for line in run.client.out.splitlines()]
    return run


def balance(node):
    """Page faults that nobody has ended."""
    now = node.counters()
    return now["page_faults1"] - now["fault_resumes"] - now["fault_failures"] - \
        now["faults_forgotten"]


def of_qhca(*roles):
    """Links on which those who play the roles are ours."""
    return [link for link in links() if all(link.kinds[getattr(link, r)] == "qhca" for r in roles)]


BOTH = pytest.mark.parametrize("link", of_qhca("server", "client"), indirect=True,
                               ids=lambda link: link.id)


@pytest.fixture
def no_unsolicited_acks(ends):
    def switch(value):
        for node in ends:
            devlink.set_parameter(node, "unsolicited_acks", value)
            devlink.reload(node)
    switch("false")
    yield
    switch("true")


def resume_times(ends, number):
    rows = faults(*ends, "resume", f"-n {number} -H 20 -t {TIMER_CODE}").rows
    times = [int(row["ns"]) / 1e9 for row in rows]
    print(times)
    assert len(times) == number
    return times


@BOTH
def test_resume(ends):
    """With the unsolicited ACK a fault of 20 ms ends long before the timer does, unless
    a machine is busy just then; and only with it."""
    before = ends[1].counters()["rx_unsolicited_acks"]
    times = resume_times(ends, 10)
    assert statistics.median(times) < TIMER / 4
    early = [time for time in times if time < TIMER]
    assert len(early) <= ends[1].counters()["rx_unsolicited_acks"] - before


@BOTH
def test_resume_by_timer(ends, no_unsolicited_acks):
    times = resume_times(ends, 3)
    assert min(times) >= TIMER, times
    assert not ends[0].counters()["tx_unsolicited_acks"]


@pytest.mark.parametrize("link", of_qhca("server"), indirect=True, ids=lambda link: link.id)
def test_status(ends):
    """Memory that is not there any more, or not for that: what both sides see."""
    server, client = ends
    run = faults(*ends, "status", "-r" if client.kind == "rxe" else "")
    print(run.client.out)
    assert len(run.rows) == (7 if client.kind == "rxe" else 10)
    assert balance(server) == 0


def ended(ends):
    """Nothing is left of the faults on either side, once their pages have come."""
    for node in ends:
        node.wait_until("! grep -qs qhca_ /proc/[0-9]*/stack", what="the end of faults")
        assert "qhca-fault" not in node.out("rdma resource show qp; rdma resource show mr")
    assert [balance(node) for node in ends] == [0, 0]


@BOTH
@pytest.mark.parametrize("op", ["write", "read", "gather"] if FULL else ["write"])
def test_leaving(ends, op):
    """A region's end waits for no page."""
    faults(*ends, "leave", f"-o {op}")
    ended(ends)


@BOTH
@pytest.mark.parametrize("op", REMOTE + LOCAL if FULL else ["write", "gather"])
def test_dropping(ends, op):
    """Who waits for a region that goes learns of its end before the page comes, and
    can go on."""
    run = faults(*ends, "drop", f"-o {op}")
    print(run.client.out)
    ended(ends)


@BOTH
@pytest.mark.parametrize("op", ["write", "send", "read", "gather", "scatter"] if FULL else
                         ["write", "gather"])
def test_death(ends, op):
    """A process killed while it awaits a page that it would have to bring itself."""
    server, client = ends
    dies = client if op in ("gather", "scatter") else server
    run = faults(*ends, "die", f"-o {op}", check=False)
    survivor = run.server if dies is client else run.client
    assert survivor.ok, survivor
    assert not (run.client if dies is client else run.server).ok, "nobody was killed"
    dies.wait_until("! pgrep qhca-fault", what="the end of the process")
    ended(ends)


@BOTH
@pytest.mark.parametrize("kind", ["rc", "ud"])
def test_beside(ends, kind):
    """Nobody else waits for a page: a second pair of QPs is done with all its requests
    before the page comes that one waits for."""
    run = faults(*ends, "beside", "-u" if kind == "ud" else "")
    assert [int(row["requests"]) for row in run.rows] == [500]


@pytest.mark.alone
@pytest.mark.full
@BOTH
@pytest.mark.parametrize("kind", ["rc", "ud"])
def test_isolation(ends, kind):
    """A second pair of QPs while one waits for pages of 200 ms.

    Its neighbour waits for one page after another; what differs is whether a request in
    the device waits, or the driver alone. The two alternate after a page or two, so that
    other work on the machine, which may slow them threefold, slows both alike.
    """
    hold = 200
    length, rounds, turns = 150, 5, 64
    run = faults(*ends, "isolate", f"-H {hold} -T {length} -n {rounds} -s {turns} "
                 f"{'-u' if kind == 'ud' else ''}", timeout=900)
    print(run.client.out)
    present, absent = ([{name: float(value) for name, value in row.items()} for row in run.rows
                        if row["fault"] == fault] for fault in "01")
    assert len(present) == len(absent) == rounds
    for row in absent:
        # A fault was outstanding all the time, and nobody else waited for its page.
        assert row["writes"] >= turns * max(1, 2 * length // hold - 1)
        assert row["p99"] < hold * 1000 / 2
    ratio = {name: statistics.median(after[name] / before[name]
                                     for before, after in zip(present, absent))
             for name in ("rate", "p99")}
    print(ratio)
    assert ratio["rate"] >= 0.9 and ratio["p99"] <= 1.1, ratio


# -- on the wire

# Requests that meet a page which is not there, and comes after so many ms. The
# RNR timer, of code 24, is so long that a tick of rxe's clock does not matter.
HOLD, WIRE_CODE, WIRE_TIMER = 0.1, 24, 0.04096
TICK = 0.004


@dataclass
class Captured:
    """What requests to cold pages left between two ends."""
    at_client: object           # the capture there
    client: str                 # kind of end
    faults: list


@dataclass
class Fault:
    """A request of programs/paging/fault.c: 4096 bytes in packets of 1024, of which
    the third is the first to meet the cold page; or an atomic."""
    op: str
    qpn: int                    # the client's
    peer: int
    psn: int
    seconds: float              # as the client sees it
    cold: str                   # kind of the end with the cold page

    @property
    def cold_psn(self):
        return (self.psn + (0 if self.op == "atomic" else 2)) & 0xFFFFFF


def cold_operations(server, client, kernel):
    """What can meet a cold page between two kinds of ends."""
    # Soft-RoCE of kernel 7.3 writes to the beginning of a page on demand what is
    # for its middle.
    rxe = ("atomic", "read", "gather") if kernel == "backports" else ()
    return [op for op in REMOTE + LOCAL
            if (client if op in LOCAL else server).kind == "qhca" or op in rxe]


def cold_request(server, client, op):
    for node in server, client:
        node.exec("modprobe fuse")
    run = verbs.program(server, client, "qhca-fault", *[
        f"-c wire -o {op} -H {HOLD * 1000:.0f} -t {WIRE_CODE}"] * 2)
    *numbers, ns = map(int, re.search(r"qpn=(\d+) peer=(\d+) psn=(\d+) ns=(\d+)",
                                      run.client.out).groups())
    return Fault(op, *numbers, ns / 1e9, (client if op in LOCAL else server).kind)


# The links, and the kernel that both guests have.
WIRES = [(link, "default") for link in links()]
if FULL:
    WIRES += [(Link(("qhca", "rxe"), server), "backports") for server in (0, 1)]


@pytest.fixture(scope="module")
def captures():
    return {}


@pytest.fixture
def captured(link, kernel, pairs, captures, tmp_path_factory):
    if (link, kernel) not in captures:
        options = {} if kernel == "default" else {"kernel": kernel}
        pair = pairs.get(*link.kinds, **link.options, **options)
        ends = pair.nodes[link.server], pair.nodes[link.client]
        folder = tmp_path_factory.mktemp("capture")
        with pair.capture(folder):
            faults = [cold_request(*ends, op) for op in cold_operations(*ends, kernel)]
        captures[link, kernel] = Captured(folder / f"{ends[1].name}.pcap", ends[1].kind, faults)
    return captures[link, kernel]


ALL_WIRES = pytest.mark.parametrize(
    "link, kernel", WIRES, indirect=["link"],
    ids=[link.id + ("" if kernel == "default" else "_newer_kernel") for link, kernel in WIRES])


def exchange(path, fault):
    """(time, from the client?, opcode, PSN, syndrome or None) of a request's packets"""
    for f in capture.packets(path):
        if f.dest_qp not in (fault.qpn, fault.peer) or (f.psn - fault.psn + 1) & 0xFFFFFF > 64:
            continue
        answer = f.opcode in (0x0D, 0x0F, 0x10, 0x11, 0x12)
        if answer or f.opcode == 0x0E:
            if f.dest_qp == fault.qpn:
                yield f.time, False, f.opcode, f.psn, f.bth[12] if answer else None
        elif f.dest_qp == fault.peer:
            yield f.time, True, f.opcode, f.psn, None


def is_rnr(syndrome):
    return syndrome is not None and syndrome >> 5 == 1


def is_nak(syndrome):
    return syndrome is not None and syndrome >> 5 == 3


def faults_of(captured, *ops):
    """Those of a qhca; another end may serve its faults as it likes."""
    return [f for f in captured.faults if f.op in ops and f.cold == "qhca"]


@ALL_WIRES
def test_cold(captured):
    """Each request that met a cold page has waited for it; its data were right."""
    assert captured.faults
    for fault in captured.faults:
        assert fault.seconds >= HOLD, fault


@ALL_WIRES
def test_cold_target(captured):
    """WRITE, SEND and atomics into a cold page: an RNR NAK with the PSN that met
    it, silence until its timer or an unsolicited ACK, and again from that PSN."""
    for fault in faults_of(captured, "write", "send", "atomic"):
        naks, repeated = 0, 0
        asleep, sent = None, None       # since when; the newest PSN
        timer = None                    # the newest NAK's
        packets = list(exchange(captured.at_client, fault))
        met = next(time for time, out, _, psn, _ in packets if out and psn == fault.cold_psn)
        for time, out, opcode, psn, syndrome in packets:
            if not out:
                assert not is_nak(syndrome), f"{fault}: a NAK {syndrome:#x}"
                if is_rnr(syndrome):
                    naks += 1
                    assert psn == fault.cold_psn, f"{fault}: RNR NAK of PSN {psn}"
                    timer = capture.RNR_TIMER[syndrome & 31] / 1000
                    # It grows with the age of the fault.
                    assert timer == WIRE_TIMER or WIRE_TIMER < timer < time - met
                    asleep = time
                elif opcode == 0x11 and psn == (fault.cold_psn - 1) & 0xFFFFFF and \
                        captured.client == "qhca":
                    asleep = None       # unsolicited, and honoured
            elif asleep is None:
                repeated += naks > 0 and psn == fault.cold_psn
                sent = psn
            elif sent is not None and psn == (sent + 1) & 0xFFFFFF:
                sent = psn              # what was on its way as the NAK came
            else:
                # rxe does not take an RNR NAK for an ACK of what came before.
                oldest = fault.psn if captured.client == "rxe" else fault.cold_psn
                assert psn in (oldest, fault.cold_psn), f"{fault}: goes on with PSN {psn}"
                tick = TICK if captured.client == "rxe" else 0
                assert time - asleep >= timer - tick, \
                    f"{fault}: goes on {time - asleep:.4f} s after the RNR NAK"
                asleep, sent = None, psn
                repeated += psn == fault.cold_psn
        assert naks, f"{fault}: no RNR NAK among {packets}"
        assert repeated, f"{fault}: not sent again: {packets}"


@ALL_WIRES
def test_cold_source(captured):
    """A READ of a cold page has no NAK and a late response."""
    for fault in faults_of(captured, "read"):
        packets = list(exchange(captured.at_client, fault))
        assert not [p for p in packets if is_rnr(p[4]) or is_nak(p[4])], packets
        asked = next(time for time, out, *_ in packets if out)
        late = [time for time, out, _, psn, _ in packets if not out and psn == fault.cold_psn]
        assert late and late[0] - asked >= HOLD, packets


@ALL_WIRES
def test_cold_requester(captured):
    """The requester sends a cold source late, and its peer receives no reason."""
    for fault in faults_of(captured, "gather", "scatter"):
        packets = list(exchange(captured.at_client, fault))
        assert not [p for p in packets if is_rnr(p[4]) or is_nak(p[4])], packets
        if fault.op == "scatter":
            requests = [p for p in packets if p[1]]
            assert requests[-1][3] == fault.cold_psn, "asked for again from where it was cold"
            assert requests[-1][0] - requests[0][0] >= HOLD, packets
            continue
        times = {psn: time for time, out, _, psn, _ in packets if out}
        assert len(times) == 4 and sum(out for _, out, *_ in packets) == 4, packets
        assert times[fault.cold_psn] - times[fault.psn] >= HOLD, packets
