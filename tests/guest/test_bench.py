# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""How `make bench` reads perftest and sums up; without a guest."""

import re
import types

import pytest

import bench
from bench import migration, odp, rounds, sizes, tcp
from lab import GuestError, Result, move, verbs
from lab import __main__ as commands

BANDWIDTH = """
 #bytes     #iterations    BW peak[MiB/sec]    BW average[MiB/sec]   MsgRate[Mpps]
 65536      5632             0.00               703.95               0.011263
---------------------------------------------------------------------------------------
"""
LATENCY = """
 #bytes        #iterations       t_avg[usec]    tps average
 8             13642             109.91         4549.01
---------------------------------------------------------------------------------------
"""


def case(test, size):
    return next(c for c in bench.CASES if (c.test, c.size) == (test, size))


def result(text, which):
    """What bench takes from a run whose client printed a table."""
    run = verbs.Run(Result("server", 0, "", ""), Result("client", 0, text, ""), verbs.table(text))
    return verbs.measured(run, which.column, which.size)


def test_columns():
    assert result(BANDWIDTH, case("write bandwidth", 65536)) == 703.95
    # The average, not the transactions a second beside it.
    assert result(LATENCY, case("write latency", 8)) == 109.91


def test_other_tables_are_refused():
    with pytest.raises(GuestError):
        result(BANDWIDTH, case("write bandwidth", 4096))
    with pytest.raises(GuestError):
        result("", case("write latency", 8))
    with pytest.raises(GuestError):
        result(BANDWIDTH + BANDWIDTH, case("write bandwidth", 65536))
    with pytest.raises(GuestError):
        result(LATENCY, case("message rate", 8))
    # perftest prints this where it failed to measure its clock.
    with pytest.raises(GuestError):
        result(LATENCY.replace("109.91", "inf"), case("write latency", 8))


def test_summary():
    write, latency = case("write bandwidth", 65536), case("write latency", 8)
    entry = bench.summary(write, [900.0, 100.0, 800.0], [30.0, 40.0, 50.0])
    assert entry == {"test": "write bandwidth", "size": 65536, "unit": "MiB/s",
                     "qhca": 800.0, "rxe": 40.0, "ratio": 20.0}
    assert write.verdict(80.0) == ">= 80 met"
    assert write.verdict(79.9) == ">= 80 MISSED"
    assert latency.verdict(0.02) == "<= 0.02 met"
    assert latency.verdict(0.021) == "<= 0.02 MISSED"
    assert case("pingpong", 4096).verdict(0.1) == latency.verdict(None) == ""
    assert bench.summary(write, [], [1.0])["ratio"] is None
    both = bench.summary(write, [800.0], [40.0], [1600.0, 1200.0, 2000.0])
    assert both["ratio"] == 20.0 and both["shm"] == 1600.0 and both["shm ratio"] == 40.0
    assert bench.summary(write, [800.0], [40.0], [])["shm ratio"] is None


def test_by_size():
    """The picture has a curve for each kind of device, without the sizes that failed."""
    rows = [bench.summary(c, [2.0 * c.size], [] if c.size == 64 else [1.0 * c.size])
            for c in reversed(sizes.CASES)]
    ours, theirs = sizes.curves(rows, "write bandwidth by size")
    assert ours[0] == "qhca" and theirs[0] == "Soft-RoCE"
    assert ours[1] == sorted(ours[1]) and ours[1][0] == 64 and ours[2][0] == 128.0
    assert theirs[1] == ours[1][1:] and theirs[2] == [float(size) for size in theirs[1]]
    assert sizes.curves([], "write bandwidth by size") == [("qhca", [], []), ("Soft-RoCE", [], [])]
    # bench.json names each measurement once.
    names = [(c.test, c.size) for c in commands.EVERY_CASE + sizes.CASES]
    assert len(set(names)) == len(names)
    assert {test for test, _, _ in sizes.PANELS} == {c.test for c in sizes.CASES}


def test_by_size_is_measured(monkeypatch, capsys):
    """make bench measures each size on both links; one that fails is in the table, and the
    others are measured all the same."""
    def measured(server, client, which, seconds):
        assert server is not client and server.kind == client.kind and seconds == 3
        if (server.kind, which.size) == ("rxe", 64):
            raise GuestError("64 bytes")
        return {"qhca": 4.0, "rxe": 2.0}[server.kind]

    monkeypatch.setattr(bench, "measure", measured)
    monkeypatch.setattr(commands.paths, "kernel_release", lambda which=None: "6.12")
    monkeypatch.setattr(commands, "how", lambda: "TCG")
    pair = [types.SimpleNamespace(ports=[types.SimpleNamespace(kind=kind)
                                         for kind in ("qhca", "rxe")]) for _ in range(2)]
    rows = commands.run_bench_sizes(pair, 3)
    assert [(r["test"], r["size"]) for r in rows] == [(c.test, c.size) for c in sizes.CASES]
    assert [r["ratio"] for r in rows if r["size"] != 64] == [2.0] * (len(rows) - 2)
    assert [r["rxe"] for r in rows if r["size"] == 64] == [None, None]
    assert "64 bytes" in capsys.readouterr().err
    options = types.SimpleNamespace(rounds=3, kernel="default", functions=0, wire="stream",
                                    cases=commands.EVERY_CASE)
    commands.print_bench(options, rounds.Measured(), (0, 1), rows, [])
    printed = capsys.readouterr().out
    assert re.search(r"write bandwidth by size +\| +64 \| MiB/s \| +4 \| FAILED", printed)
    assert "shared memory" not in printed


def test_by_size_is_drawn(tmp_path):
    """SVG and PNG, and the same SVG for the same numbers."""
    pytest.importorskip("matplotlib", reason="make bench installs python3-matplotlib")
    rows = [bench.summary(c, [2.0 * c.size], [1.0 * c.size]) for c in sizes.CASES]
    sizes.draw(rows, tmp_path)
    first = (tmp_path / "bench.svg").read_text()
    assert "<svg" in first and (tmp_path / "bench.png").read_bytes().startswith(b"\x89PNG")
    sizes.draw(rows, tmp_path)
    assert (tmp_path / "bench.svg").read_text() == first


def test_on_demand():
    line = "cost size=4096 mode={} median={} p99={} n=512\n"
    text = "".join(line.format(mode, n, 10 * n) for n, mode in enumerate(odp.MODES, 1))
    costs = odp.parse(text, 4096)
    assert costs.us["pinned", "median"] == 3 and costs.us["cold", "p99"] == 10
    rows = odp.summary(4096, costs, odp.Costs({key: 2 * v for key, v in costs.us.items()}))
    assert len(rows) == 8 and {r["ratio"] for r in rows} == {0.5}
    assert rows[0] == {"test": "on demand: write to a page not there, median", "size": 4096,
                       "unit": "us", "qhca": 1, "rxe": 2, "ratio": 0.5}
    assert not any(odp.failed(row) for row in rows)
    assert odp.summary(4096, costs, None)[0]["ratio"] is None
    assert all(odp.failed(row) for row in odp.summary(4096, costs, None))
    with pytest.raises(ValueError):
        odp.parse(text, 2 << 20)
    with pytest.raises(ValueError):
        odp.parse(text.replace("advice", "advise"), 4096)


def test_prefetch_refused():
    """What is not there because Soft-RoCE refuses it is no failure, and says why."""
    def ended(code, err):
        return Result("qhca-fault", code, "", err)

    lost = ended(1, "the peer has gone\n")
    assert odp.refused(verbs.Run(ended(1, "ibv_advise_mr: No space left on device\n"), lost)) == \
        "No space left on device"
    with pytest.raises(GuestError):
        odp.refused(verbs.Run(ended(1, "ibv_reg_mr: Cannot allocate memory\n"), lost))
    with pytest.raises(GuestError):
        odp.refused(verbs.Run(ended(0, ""), lost))
    line = "cost size=4096 mode={} median=1 p99=2 n=512\n"
    some = line.format("cold") + line.format("pinned")
    with pytest.raises(ValueError):
        odp.parse(some, 4096)
    costs = odp.parse(some, 4096, "No space left on device")
    rows = odp.summary(4096, odp.Costs({(m, q): 1 for m in odp.MODES for q in odp.QUANTILES}),
                       costs)
    assert [row.get("refusal") for row in rows] == \
        2 * [None] + 2 * ["No space left on device"] + 2 * [None] + 2 * ["No space left on device"]
    assert [row["rxe"] is None for row in rows] == ["refusal" in row for row in rows]
    assert not any(odp.failed(row) for row in rows)
    # Of qhca nothing may be missing.
    assert odp.failed(odp.summary(4096, odp.Costs(), costs)[2])


def test_move_measured():
    """A Move is of the device's own lines, of which a machine with several devices has more."""
    text = ("qhca_saved dev 0x55 9216 bytes\n"
            "vmstate_downtime_save type=iterable idstr=ram instance_id=0 downtime=9\n"
            "vmstate_downtime_save type=non-iterable idstr=0000:01:00.0/qhca instance_id=0 downtime=420\n"
            "vmstate_downtime_load type=non-iterable idstr=0000:00:03.0/virtio-rng instance_id=0 downtime=8\n"
            "vmstate_downtime_load type=non-iterable idstr=0000:01:00.0/qhca instance_id=0 downtime=77\n")
    info = {"downtime": 31, "total-time": 800, "ram": {"transferred": 3 << 20}}
    assert move.measured(text, info) == move.Move(31, 800, 3 << 20, 9216, 420, 77)


@pytest.mark.parametrize("options, error, runs", [
    ("-R", f"Event: {verbs.NOT_LISTENING}", 3),
    ("-R", "Event: RDMA_CM_EVENT_REJECTED; error: 28.", 1),
    ("", f"Event: {verbs.NOT_LISTENING}", 1),
])
def test_perftest_does_not_count(monkeypatch, options, error, runs):
    """The lab repeats a run whose client connected before its server listened, and no other."""
    ended = []

    def fails(*_, **__):
        ended.append(None)
        raise GuestError(error)

    monkeypatch.setattr(verbs, "client_server", fails)
    monkeypatch.setattr(verbs, "gid_options", lambda *_: ("", ""))
    node = types.SimpleNamespace(kind="qhca", ibdev="qhca0", ip4="192.0.2.1")
    with pytest.raises(GuestError):
        verbs.perftest(node, node, "ib_write_bw", options)
    assert len(ended) == runs


def moves(**numbers):
    """Three moves, of which the second has these numbers, and the others more and fewer."""
    return [move.Move(total=1, **{name: value * times for name, value in
                                  {"downtime": 50, "ram": 1 << 20, **numbers}.items()})
            for times in (2, 1, 0)]


def test_migration_rows():
    """Medians, in the units of the head; READs are whole round trips."""
    point = migration.Point(100, 1, moves(image=1000, save=1500, load=20000, ram=3 << 20), 812.4)
    assert dict(zip(migration.HEAD, migration.cells(point))) == {
        "QPs": 100, "MRs": 1, "downtime ms": "50", "longest READ of the peer ms": "812",
        "image bytes": "2000", "save ms": "1.5", "load ms": "20.0", "memory sent MiB": "3"}
    assert migration.summary(point)["moves"][1]["save"] == 1500


def test_migration_verdicts():
    few = migration.Point(1, 1, [move.Move(1, 1, 1, image=1000, save=10, load=10)], 1.0)
    many = migration.Point(9, 1, [move.Move(1, 1, 1, image=1004, save=20, load=5)], 1.0)
    image, save, load = migration.verdicts([few, many])
    assert image == "the image has 1000 to 1004 bytes, and less than 2097152: met"
    assert save == "save takes 2 to 2 times as long as with 1 QP and 1 MR" and " 0.5 to 0.5 " in load
    many.moves[0].image = 2 << 20
    assert next(migration.verdicts([few, many])).endswith("MISSED")
    # A device whose trace has not been found has no image.
    few.moves[0].image = 0
    assert next(migration.verdicts([few])).endswith("MISSED")


def test_migration_and_tcp_are_cases():
    assert commands.cases("migration") == commands.MIGRATION
    assert commands.cases("tcp") == commands.TCP
    assert commands.cases("write") not in (commands.MIGRATION, commands.TCP)


IPERF = '{"end": {"sum_received": {"bits_per_second": 838860800.0}}}'


def test_tcp_is_read():
    assert tcp.received(IPERF) == 100.0
    for wrong in ("", "{}", '{"error": "unable to connect"}', IPERF.replace("838860800.0", "0")):
        with pytest.raises(GuestError):
            tcp.received(wrong)


def test_tcp_is_summed_up():
    row = tcp.summary("TCP, a to b", [300.0, 100.0, 200.0], [100.0])
    assert (row["qhca"], row["virtio"], row["ratio"]) == (200.0, 100.0, 2.0)
    assert tcp.summary("TCP, a to b", [], [1.0])["ratio"] is None
    parts = tcp.shares([{"RDMA": (1000.0, 500.0), "TCP": (200.0, 30.0)}])
    assert [(r["test"], r["share"]) for r in parts] == [("RDMA beside TCP", 0.5),
                                                        ("TCP beside RDMA", 0.15)]
    rows = [row, tcp.summary("TCP, b to a", [1.0], [2.0])]
    (_, alone), (_, beside) = tcp.tables(tcp.Streams(rows, parts, 0))
    assert [cells[-1] for cells in alone] == [">= 1 met", ">= 1 MISSED"]
    assert [cells[-1] for cells in beside] == [">= 0.4 met", ">= 0.2 MISSED"]
    none = tcp.Streams([tcp.summary("TCP, a to b", [], [])], tcp.shares([]), 0)
    (_, alone), (_, beside) = tcp.tables(none)
    assert alone[0][2:] == ["FAILED", "FAILED", "FAILED", ""]
    assert all(cells[2:] == ["FAILED", "FAILED", "FAILED", ""] for cells in beside)


def test_tcp_beside_rdma_is_counted():
    """The rates of a window are those of counters between two moments of the guest's clock."""
    text = "100.00 90.0\n1000\n2000\n102.00 91.0\n{}\n{}".format(1000 + (8 << 20), 2000 + (2 << 20))
    server = types.SimpleNamespace(ibdev="qhca0", netif="eth0", out=lambda command, timeout: text)
    assert tcp.rates(server, 2) == {"RDMA": 4.0, "TCP": 1.0}


def test_tcp_failures_are_counted(monkeypatch):
    """One interface that fails is in the table, and the other is measured all the same."""
    def measured(server, client, seconds):
        if server.kind == "rxe":
            raise GuestError("no route")
        return 5.0

    def fails(*arguments):
        raise GuestError("it has ended")
    monkeypatch.setattr(tcp, "measure", measured)
    monkeypatch.setattr(tcp, "beside", fails)
    pair = [types.SimpleNamespace(ports=[types.SimpleNamespace(kind=kind)
                                         for kind in ("qhca", "rxe")]) for _ in range(2)]
    said = []
    streams = tcp.run(pair, 2, 3, said.append)
    assert [(r["qhca"], r["virtio"]) for r in streams.alone] == [(5.0, None)] * 2
    assert [r["share"] for r in streams.beside] == [None, None] and streams.failed == 6
    assert sum("no route" in line for line in said) == 4
