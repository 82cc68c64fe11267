# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""How `make bench AGAINST=COMMIT` measures builds by turns and sums up; without a guest."""

import argparse
import json
import pathlib
import re
import types

import pytest

import bench
from bench import against, host
from lab import GuestError, paths
from lab import __main__ as commands

BANDWIDTH, LATENCY = bench.CASES[0], next(c for c in bench.CASES if c.unit == "us")


def test_each_is_first_in_turn():
    rounds = [against.order(n, ["old", "new", "vfs"]) for n in range(6)]
    assert [r[0] for r in rounds] == 2 * ["old", "new", "vfs"]
    assert all(sorted(r) == ["new", "old", "vfs"] for r in rounds)


def test_spread():
    assert against.spread([3.0, 1.0, None, 2.0]) == (2.0, 1.0, 3.0)
    assert against.spread([None]) is None


def test_ratios_are_by_round():
    """Of a machine that becomes slower from round to round, the ratios stay."""
    assert against.beside([200.0, 100.0, 50.0], [100.0, 50.0, 25.0]) == (2.0, 2.0, 2.0)
    assert against.beside([None, 100.0], [100.0, 50.0]) == (2.0, 2.0, 2.0)
    assert against.beside([100.0, None], [None, 50.0]) is None


@pytest.mark.parametrize("case, ratios, words", [
    (BANDWIDTH, (1.0, 0.9, 1.1), "within noise"),
    (LATENCY, (1.0, 1.0, 1.2), "within noise"),
    (BANDWIDTH, (1.1, 1.05, 1.2), "faster"),
    (BANDWIDTH, (0.9, 0.8, 0.95), "slower"),
    (LATENCY, (1.1, 1.05, 1.2), "slower"),
    (LATENCY, (0.9, 0.8, 0.95), "faster"),
    (LATENCY, None, ""),
])
def test_verdict(case, ratios, words):
    assert against.verdict(case, ratios) == words


def test_summary():
    old, new = against.summary(BANDWIDTH, {
        "old": {"qhca": [800.0, 400.0, 600.0], "rxe": [40.0, 20.0, 30.0]},
        "new": {"qhca": [840.0, 420.0, None], "rxe": [20.0, 20.0, 20.0]}})
    assert old["tree"] == "old" and old["ratio"] == 20.0 and "verdict" not in old
    assert old["qhca spread"] == (600.0, 400.0, 800.0) and old["qhca"] == [800.0, 400.0, 600.0]
    assert new["qhca spread"] == (630.0, 420.0, 840.0) and new["ratio"] == 31.5
    assert new["qhca beside"] == (1.05, 1.05, 1.05) and new["verdict"] == "faster"
    assert against.failed(old) == 0 and against.failed(new) == 1
    assert len(against.cells(old)) == len(against.cells(new)) == len(against.HEAD)
    lost, = against.summary(BANDWIDTH, {"old": {"qhca": [1.0], "rxe": [None]}})
    assert lost["ratio"] is None and "FAILED" in against.cells(lost)


def test_entrants():
    """The older tree's guests have its build; idle virtual functions are this tree's."""
    old, new, idle = against.entrants("/x/against/c59740ea3518", 4)
    assert old.name == "c59740ea3518"
    assert old.options == {"build": pathlib.Path("/x/against/c59740ea3518/build")}
    assert (new.functions, new.options, idle.functions, idle.options) == (0, {}, 4, {})
    assert len(against.entrants("/x/against/c59740ea3518", 0)) == 2


def test_build_of_another_tree(tmp_path, monkeypatch):
    """Its QEMU, modules and provider, which QHCA_QEMU does not override."""
    monkeypatch.setenv("QHCA_QEMU", "/bin/true")
    monkeypatch.delenv("QEMU_SANITIZE", raising=False)
    qemu = tmp_path / "qemu/bin/qemu-system-x86_64"
    module = tmp_path / "modules/6.12/qhca.ko"
    for path in (qemu, module, tmp_path / "provider/qhca.driver"):
        path.parent.mkdir(parents=True)
        path.write_text("")
    with pytest.raises(paths.Missing):
        paths.qemu(tmp_path)
    qemu.chmod(0o755)
    assert paths.qemu(tmp_path) == str(qemu) and paths.qemu() == "/bin/true"
    assert paths.modules("6.12", tmp_path) == [module]
    assert paths.provider(tmp_path) == tmp_path / "provider" and paths.programs(tmp_path) is None


class FakePair:
    """Two nodes with two ports each, which note whether their guest runs."""

    def __init__(self, speed):
        self.running = self.closed = False
        self.speed = speed
        self.node = types.SimpleNamespace(qmp=self._qmp, running=True)
        self.node.ports = [types.SimpleNamespace(kind=kind, pair=self) for kind in against.KINDS]

    def __iter__(self):
        return iter((self.node, self.node))

    def _qmp(self, command):
        self.running = {"cont": True, "stop": False}[command]

    def close(self):
        self.closed = True


def test_by_turns(monkeypatch, tmp_path, capsys):
    """One pair runs at a time; a run that fails is shown, and the others count."""
    pairs, measured = [], []

    def boot(functions, _kernel, _wire, **options):
        pairs.append(FakePair(10.0 if "build" in options else 20.0 + functions))
        pairs[-1].running = True
        return pairs[-1]

    def measure(server, client, case, seconds):
        assert server.pair is client.pair and server.kind == client.kind and seconds == 1
        assert [pair for pair in pairs if pair.running] == [server.pair]
        measured.append((case, pairs.index(server.pair), server.kind))
        if len(measured) == 2:
            raise GuestError("the first of rxe")
        return server.pair.speed if server.kind == "qhca" else 2.0

    monkeypatch.setattr(commands, "boot_bench", boot)
    monkeypatch.setattr(bench, "measure", measure)
    monkeypatch.setattr(commands.paths, "kernel_release", lambda which=None: "6.12")
    monkeypatch.setattr(commands.paths, "BUILD", tmp_path)
    monkeypatch.setattr(commands, "how", lambda: "TCG")
    options = types.SimpleNamespace(against="/x/old", functions=4, rounds=2, kernel="default",
                                    cases=[BANDWIDTH, LATENCY], wire="stream", seconds=1)
    assert commands.run_bench_against(options) == 1
    assert all(pair.closed for pair in pairs) and len(pairs) == 3
    assert [m for m in measured if m[2] == "qhca"] == \
        [(case, pair, "qhca") for turn in ((0, 1, 2), (1, 2, 0)) for case in (BANDWIDTH, LATENCY)
         for pair in turn]
    rows = json.loads((tmp_path / "bench-against.json").read_text())
    assert [(r["tree"], r["ratio"]) for r in rows[:3]] == \
        [("old", 5.0), ("this tree", 10.0), ("with 4 idle VFs", 12.0)]
    assert rows[0]["rxe"] == [None, 2.0] and [against.failed(r) for r in rows] == [1, 0, 0, 0, 0, 0]
    assert [r.get("verdict") for r in rows] == [None, "faster", "faster", None, "slower", "slower"]
    shown = capsys.readouterr()
    assert "the first of rxe" in shown.err
    assert re.search(r"this tree +\| +20 \(20 to 20\) \| +2 \(2 to 2\) \| +10 \|", shown.out)


def test_one_kind_of_link(monkeypatch):
    monkeypatch.setattr(commands, "boot_bench", None)
    with pytest.raises(ValueError, match="LINK=both"):
        commands.run_bench(types.SimpleNamespace(against="/x/old", wire="both"))


def test_some_cases():
    """Those of which "test size" matches; a name that matches none is refused with all names."""
    assert [(c.test, c.size) for c in commands.cases("^write.* 65536$|^atomic")] == \
        [("write bandwidth", 65536), ("atomic latency", 8), ("write latency", 65536)]
    assert commands.cases("stream|ring") == host.CASES
    with pytest.raises(argparse.ArgumentTypeError, match="matches none of: write bandwidth 65536,"):
        commands.cases("bandwidth 3")
    with pytest.raises(argparse.ArgumentTypeError, match="CASES=\\(: "):
        commands.cases("(")
    # Builds are compared by their guests, and the host's programs are none of theirs.
    with pytest.raises(ValueError, match="AGAINST= measures guests"):
        commands.run_bench(types.SimpleNamespace(against="/x/old", wire="stream", cases=host.CASES))
