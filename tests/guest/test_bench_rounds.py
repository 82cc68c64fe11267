# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The rounds of `make bench`, its tables of latencies and relations, and the plain programs that
run on the host meanwhile; without a guest."""

import json
import os
import re
import subprocess
import types

import pytest

import bench
from bench import host, odp, rounds, sizes, tcp
from lab import GuestError, Result, verbs
from lab import __main__ as commands

TAILS = """
 #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec]
 8       20000          11.09          2042.19      14.70              20.90            41.05         57.00                   497.00
---------------------------------------------------------------------------------------
"""
KINDS = ("qhca", "rxe", "qhca")


def case(test, size):
    return next(c for c in bench.CASES if (c.test, c.size) == (test, size))


def measured(values):
    """Measured of {(test, size, link): [{column: number}]}"""
    every = {(c.test, c.size): c for c in commands.EVERY_CASE}
    return rounds.Measured({(every[test, size], link): got
                            for (test, size, link), got in values.items()})


# -- what is measured -------------------------------------------------------

def test_tails_of_perftest(monkeypatch):
    """A latency is the average, as it was, and has the tail of the same run, which perftest
    has for a number of iterations."""
    asked = []

    def perftest(_server, _client, test, options):
        asked.append((test, options))
        return verbs.Run(Result("server", 0, "", ""), Result("client", 0, TAILS, ""),
                         verbs.table(TAILS))

    monkeypatch.setattr(verbs, "perftest", perftest)
    node = types.SimpleNamespace(kind="qhca", counters=lambda: {})
    got = bench.readings(node, node, case("send latency", 8), 3)
    assert got == {"t_avg": 20.9, "t_typical": 14.7, "p99": 57.0, "p999": 497.0}
    assert bench.measure(node, node, case("send latency", 8), 3) == 20.9
    assert asked[0] == ("ib_send_lat", "-s 8 -n 20000")
    node.kind = "rxe"
    bench.readings(node, node, case("atomic latency", 8), 3)
    assert asked[-1][1].split() == ["-n", "1000"]
    assert case("write bandwidth", 65536).length("qhca", 3) == "-D 3"


def test_pingpong_has_its_defaults(monkeypatch):
    def one(_server, _client, commands_of, _timeout, _check):
        node = types.SimpleNamespace(ibdev="qhca0", ip4="10.0.0.1", ip6=None, gid_index=lambda _: 1)
        _, command, port = commands_of(node, node)
        assert command == f"ibv_rc_pingpong -d qhca0 -g 1 -p {port}  10.0.0.1"
        return verbs.Run(None, Result(command, 0, "1000 iters in 0.10 seconds = 99.50 usec/iter", ""))

    monkeypatch.setattr(verbs, "_one", one)
    assert bench.measure(None, None, case("pingpong", 4096), 3) == 99.5


def test_ten_runs():
    """Ten pingpongs are ten, however many rounds there are; of all else each round has one."""
    ten, one = case("pingpong", 4096), case("write bandwidth", 65536)
    for number in (1, 2, 3, 7, 10, 12):
        assert sum(ten.runs_in(n, number) for n in range(number)) == 10
        assert [one.runs_in(n, number) for n in range(number)] == [1] * number


# -- rounds -----------------------------------------------------------------

class FakePair:
    """Two nodes whose ports know their kind and link"""

    def __init__(self):
        ports = [types.SimpleNamespace(kind=kind, link=n) for n, kind in enumerate(KINDS)]
        self.a = types.SimpleNamespace(release="6.12", ports=ports)
        self.closed = False

    def __iter__(self):
        return iter((self.a, self.a))

    def close(self):
        self.closed = True


@pytest.fixture
def world(monkeypatch, tmp_path):
    """Guests and a host in which a measurement is a number; `log` has which was when."""
    here = types.SimpleNamespace(log=[], pairs=[], broken=None, folder=tmp_path)

    def boot(_functions, _kernel, wire):
        assert wire == "both"
        here.pairs.append(FakePair())
        return here.pairs[-1]

    def readings(server, client, which, seconds):
        assert server is client and seconds == 1
        here.log.append((which.test, which.size, server.link))
        if here.log[-1] == here.broken:
            here.broken = None
            raise GuestError("the first of these")
        scale = {0: 4.0, 1: 1.0, 2: 100.0}[server.link]
        value = 1 / scale if which.unit == "us" else scale
        return {column: value * (5 if column == "p999" else 1) for column in which.columns}

    def plain(which, seconds):
        assert seconds == 1
        here.log.append((which.test, which.size, rounds.HOST))
        return {which.column: 50.0}

    monkeypatch.setattr(commands, "boot_bench", boot)
    monkeypatch.setattr(rounds, "readings", readings)
    monkeypatch.setattr(host, "build", lambda: None)
    monkeypatch.setattr(host, "readings", plain)
    monkeypatch.setattr(host, "distance", lambda: 60.0 + 10 * (len(here.log) % 7))
    monkeypatch.setattr(commands.paths, "kernel_release", lambda which=None: "6.12")
    monkeypatch.setattr(commands.paths, "BUILD", tmp_path)
    monkeypatch.setattr(commands, "how", lambda: "TCG")
    return here


def options(cases, **more):
    return types.SimpleNamespace(against=None, draw_only=False, wire="both", functions=0, seconds=1,
                                 kernel="default", cases=cases, rounds=3, **more)


def test_rounds_by_turns(world, capsys):
    """In each round a case is measured over one link after the other before the next case
    begins, and the plain programs are measured among them. What fails is shown and counted,
    and the other runs of it count."""
    cases = commands.cases("^write bandwidth 65536|^unix stream|^write latency 8")
    world.broken = ("write bandwidth", 65536, 1)
    assert commands.run_bench(options(cases)) == 1
    one = [("write bandwidth", 65536, 0), ("write bandwidth", 65536, 1),
           ("write bandwidth", 65536, 2), ("unix stream", 4096, rounds.HOST),
           ("write latency", 8, 0), ("write latency", 8, 1), ("write latency", 8, 2)]
    assert world.log == 3 * one
    assert [pair.closed for pair in world.pairs] == [True]
    shown = capsys.readouterr()
    assert "the first of these" in shown.err and "rxe FAILED" in shown.out
    # The bars are for either link.
    assert re.search(r"write bandwidth +\| +65536 \| MiB/s \| +4 \| +1 \| +4 \| +>= 80 MISSED", shown.out)
    assert re.search(r"write bandwidth +\| +65536 \| MiB/s \| +4 \| +100 \| +100 \| +>= 80 met", shown.out)
    assert re.search(r"unix stream +\| +4096 \| MiB/s \| +50 \|", shown.out)
    assert re.search(r"write latency +\| +8 \| memory \| +0.01 \| +0.01 \| +0.01 \| +0.05 \| +5 \|",
                     shown.out)
    assert re.search(r"write bandwidth 64 KiB / unix stream of 4 KiB \| socket \| +0.08 \| +>= 1 MISSED",
                     shown.out)
    assert re.search(r"write bandwidth 64 KiB / unix stream of 4 KiB \| memory \| +2 \| +>= 1 met",
                     shown.out)
    assert "by the size" not in shown.out and "on demand" not in shown.out
    # How far apart the processors were is measured before each case.
    assert shown.out.count("(processors 60 ns apart)") == 3
    assert "and back in 60 to 100 ns, median 90" in shown.out


def test_some_cases_are_written(world, capsys):
    """Some cases go to a file of their own; those of a whole run stay."""
    (world.folder / "bench.json").write_text("whole")
    cases = commands.cases("^send latency 8$|ring|pingpong")
    assert commands.run_bench(options(cases)) == 0
    assert world.log.count(("pingpong", 4096, 2)) == 10
    assert (world.folder / "bench.json").read_text() == "whole"
    assert "bench-cases.json" in capsys.readouterr().out
    rows = {row["test"]: row for row in json.loads((world.folder / "bench-cases.json").read_text())}
    assert rows["shared ring"]["host"] == 50.0
    assert len(rows["distance of the host's processors"]["host"]) == 16
    assert rows["send latency"]["shm ratio"] == 0.01
    assert rows["send latency"]["tails"]["memory"] == \
        {"t_avg": 0.01, "t_typical": 0.01, "p99": 0.01, "p999": 0.05}
    assert rows["pingpong"]["runs"]["socket"] == [0.25] * 10
    # Of a relation both sides must have been measured.
    assert [row["test"] for row in rows.values() if "over" in row] == \
        ["send latency 8 B: 99.9% / typical"]


def test_whole(world, monkeypatch, capsys):
    """Without CASES= all sections are measured, and bench.json has them all."""
    monkeypatch.setattr(commands.packets, "build", lambda: None)
    monkeypatch.setattr(commands.packets, "measure", lambda _: [])
    monkeypatch.setattr(commands, "run_bench_sizes", lambda *_: [
        bench.summary(c, [4.0], [2.0]) for c in sizes.CASES])
    monkeypatch.setattr(sizes, "draw", lambda rows, out: None)
    costs = odp.Costs({(m, q): 1.0 for m in odp.MODES for q in odp.QUANTILES})
    monkeypatch.setattr(odp, "measure", lambda *_: costs)
    monkeypatch.setattr(tcp, "measure", lambda *_: 5.0)
    monkeypatch.setattr(tcp, "beside", lambda *_: {"RDMA": (10.0, 6.0), "TCP": (10.0, 3.0)})
    assert commands.run_bench(options(commands.EVERY_CASE)) == 0
    printed = capsys.readouterr().out
    assert "by the size of the messages" in printed and "instructions for a packet" in printed
    rows = json.loads((world.folder / "bench.json").read_text())
    assert {row["test"] for row in rows} >= {c.test for c in [*commands.EVERY_CASE, *sizes.CASES]} | \
        {relation.name for relation in rounds.RELATIONS} | {*tcp.DIRECTIONS, "TCP beside RDMA"}
    assert "FAILED" not in printed


# -- relations --------------------------------------------------------------

def test_relations():
    """Both numbers of a relation are of one link, or the host's."""
    done = measured({("write latency", 65536, 0): [{"t_avg": 254.0}],
                     ("read latency", 65536, 0): [{"t_avg": 74.0}, {"t_avg": 80.0}, {"t_avg": 70.0}],
                     ("write latency", 65536, 2): [{"t_avg": 80.0}],
                     ("read latency", 65536, 2): [{"t_avg": 70.0}],
                     ("send latency", 4096, 2): [{"t_avg": 40.0}],
                     ("pingpong", 4096, 2): [{"round trip": us} for us in (80.0, 130.0, *[90.0] * 8)],
                     ("pingpong", 4096, 0): [{"round trip": 80.0}] * 10})
    names = {0: "socket", 2: "memory"}
    cells = rounds.relation_cells(rounds.relations(done, names), names)
    assert cells == [
        ["latency 64 KiB: write / read", "socket", "3.432", "<= 1.3 MISSED"],
        ["latency 64 KiB: write / read", "memory", "1.143", "<= 1.3 met"],
        # Each of the ten must be in time.
        ["pingpong, the slowest run / send latency 4 KiB", "memory", "3.25", "<= 3 MISSED"]]
    # Nine are not ten.
    del done.of[case("pingpong", 4096), 2][1]
    assert rounds.relation_cells(rounds.relations(done, names), names)[-1] == \
        ["pingpong, the slowest run / send latency 4 KiB", "memory", "FAILED", ""]


def test_tail_that_failed():
    found = rounds.tails(measured({}), [case("write latency", 8)], {0: "socket"})
    assert rounds.tail_cells(found, {0: "socket"}) == \
        [["write latency", 8, "socket", *["FAILED"] * 5]]


# -- plain programs ---------------------------------------------------------

@pytest.fixture(scope="module")
def programs():
    host.build()


@pytest.mark.parametrize("size", (8, 1000, 4096, 65536))
@pytest.mark.parametrize("which", [c.program for c in host.CASES])
def test_plain(programs, which, size):
    """Every byte arrives, and the program says so."""
    plain = host.Plain("x", which, size)
    assert host.run(plain, 0.05, check=True) > 0
    assert host.run(plain, 0.05) > 0


def test_distance(programs, monkeypatch):
    if len(os.sched_getaffinity(0)) > 1:
        assert 1 < host.distance() < 100000
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    assert host.distance() is None


@pytest.mark.parametrize("text", ["true", "echo ns=x", "echo ns=50.0; exit 1"])
def test_distance_contradicts_itself(monkeypatch, tmp_path, capsys, text):
    """Then it is shown, and counts as a failure."""
    (tmp_path / "line").write_text(f"#!/bin/sh\n{text}\n")
    (tmp_path / "line").chmod(0o755)
    monkeypatch.setattr(host, "folder", lambda: tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    done = rounds.Measured()
    assert rounds.measure_distance(done) == "FAILED"
    assert done.failed == 1 and "line ended with" in capsys.readouterr().err


# What goes wrong with a frame, in place of the call by which a program moves it.
FAULTS = {
    # The frame before comes again.
    "stream, repeated": ("stream", "", "writev", """
        ssize_t planted(int fd, const struct iovec *iov, int n)
        {
            static struct iovec old[2];
            static int calls;
            if (++calls == 300)
                return writev(fd, old, 2);
            old[0] = iov[0];
            old[1] = iov[1];
            return writev(fd, iov, n);
        }"""),
    # The last frames are not sent, and their sender believes that they are.
    "stream, last ones lost": ("stream", "", "writev", """
        ssize_t planted(int fd, const struct iovec *iov, int n)
        {
            static int calls;
            return ++calls < 600 ? writev(fd, iov, n) : 4100;
        }"""),
    # One byte in the middle of a frame is another.
    "ring, torn": ("ring", "-c", "memcpy", """
        void *planted(void *to, const void *from, size_t n)
        {
            static int calls;
            memcpy(to, from, n);
            if (++calls == 300)
                ((char *)to)[n / 2]++;
            return to;
        }"""),
    # The slot still has what it had a round ago.
    "ring, stale": ("ring", "", "memcpy", """
        void *planted(void *to, const void *from, size_t n)
        {
            static int calls;
            return ++calls == 700 ? to : memcpy(to, from, n);
        }"""),
}


@pytest.mark.parametrize("name", FAULTS)
def test_plain_notices(tmp_path, name):
    """A program that does not move what it claims ends with an error."""
    program, option, call, text = FAULTS[name]
    (tmp_path / "planted.c").write_text(
        f"#include <string.h>\n#include <sys/uio.h>\n{text}\n")
    out = tmp_path / program
    for source, more in (("planted.c", []), (f"{program}.c", [f"-D{call}=planted"])):
        folder = tmp_path if source == "planted.c" else host.SOURCES
        subprocess.run(["cc", "-std=c11", "-D_GNU_SOURCE", "-O1", *more, "-c", folder / source,
                        "-o", tmp_path / f"{source}.o"], check=True)
    subprocess.run(["cc", "-std=c11", "-D_GNU_SOURCE", "-o", out, tmp_path / "planted.c.o",
                    tmp_path / f"{program}.c.o", host.SOURCES / "frames.c"], check=True)
    done = subprocess.run([out, "-t", "0.2", *option.split()], capture_output=True, text=True,
                          check=False, timeout=60)
    assert done.returncode == 1 and re.search("is not what was sent|have arrived", done.stderr), done


@pytest.mark.parametrize("text", [
    "echo frames=256 size=4096 checked=ends seconds=1.0 MiB/s=5000.0",
    "echo frames=256 size=8192 checked=ends seconds=1.0 MiB/s=2.0",
    "echo frames=256 size=4096 checked=all seconds=1.0 MiB/s=1.0",
    "echo frames=256 size=4096 checked=ends seconds=1.0 MiB/s=1.0; exit 1",
    "true",
])
def test_plain_contradicts_itself(monkeypatch, tmp_path, text):
    (tmp_path / "stream").write_text(f"#!/bin/sh\n{text}\n")
    (tmp_path / "stream").chmod(0o755)
    monkeypatch.setattr(host, "folder", lambda: tmp_path)
    with pytest.raises(host.Bad):
        host.run(host.CASES[0], 1)
