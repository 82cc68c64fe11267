# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""`make run`, `make shell` and `make bench` end with one line, not with a traceback."""

import os
import pathlib
import pty
import signal
import subprocess
import types

import pytest

import bench
from lab import GuestError, Result, __main__ as lab_main, paths, verbs

FAKE = pathlib.Path(__file__).with_name("qemu_of_python.py")
TABLE = """\
---------------------------------------------------------------------------------------
 #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]
 65536      {}              0.00               {}                 {}
---------------------------------------------------------------------------------------
"""


@pytest.fixture
def start(tmp_path):
    """Starts the lab with a QEMU that is a few lines of Python."""
    guest = tmp_path / "guest"
    guest.mkdir()
    (guest / "env").write_text("image=/none\ntree=/none\nkernel-6.12=/none\ndefault=6.12\n")
    (guest / "initramfs-6.12").write_text("")
    children = []

    def go(*args, **kwargs):
        env = dict(os.environ, BUILD=str(tmp_path), QHCA_QEMU=str(FAKE), QHCA_ACCEL="tcg",
                   PYTHONPATH=str(paths.TOP / "tests"), FAKE_QEMU=kwargs.pop("does", ""))
        env.pop("QHCA_KERNEL", None)
        kwargs = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, **kwargs}
        children.append(subprocess.Popen(
            ["/usr/bin/python3", "-m", "lab", *args], env=env, text=True, start_new_session=True,
            stderr=subprocess.PIPE, **kwargs))
        return children[-1]
    yield go
    for child in children:
        child.kill()
        child.communicate()


@pytest.mark.parametrize("whom", ["all", "itself"])
def test_interrupted(start, whom):
    """Ctrl-C goes to all processes of the terminal's group, QEMU possibly among them."""
    child = start("run")
    assert "booting two guests" in child.stdout.readline()
    (os.killpg if whom == "all" else os.kill)(child.pid, signal.SIGINT)
    _, err = child.communicate(timeout=60)
    assert err == "lab: interrupted\n"
    assert child.returncode == 130


INTERRUPTED_FORK = """\
import os, signal
from lab import process
os.register_at_fork(after_in_child=lambda: os.kill(os.getpid(), signal.SIGINT))
child = process.spawn(["/bin/sh", "-c", "echo begun; kill -INT $$; echo goes on"], process_group=0)
print(child.wait())
"""


def test_interrupted_at_a_fork():
    """Ctrl-C reaches a child of the lab that is still a copy of the lab."""
    child = subprocess.run(["/usr/bin/python3", "-c", INTERRUPTED_FORK], capture_output=True, timeout=60,
                           text=True, env=dict(os.environ, PYTHONPATH=str(paths.TOP / "tests")))
    assert (child.stdout, child.stderr) == (f"begun\n{-signal.SIGINT}\n", "")


def test_qemu_ends(start):
    """QEMU ends in the middle of a command, which the lab does not report as a timeout."""
    child = start("run", does="ends")
    _, err = child.communicate(timeout=60)
    assert child.returncode == 1
    assert err.startswith("lab: a: ") and "Traceback" not in err, err


def test_nobody_reads(start):
    reader, writer = os.pipe()
    os.close(reader)
    child = start("run", stdout=writer)
    os.close(writer)
    _, err = child.communicate(timeout=60)
    assert child.returncode == 128 + signal.SIGPIPE
    assert err == ""


def test_shell_through_a_pipe(start):
    """make shell | tee log: commands come from a terminal, output goes elsewhere."""
    ours, theirs = pty.openpty()
    try:
        child = start("shell", stdin=theirs, does="leaves")
        out, err = child.communicate(timeout=60)
        assert (child.returncode, err) == (0, "") and out.startswith("booting;")
    finally:
        os.close(ours)
        os.close(theirs)


def ran(table, err=""):
    """The result of a run of perftest whose client printed a table."""
    run = verbs.Run(Result("server", 0, "said by the server", ""), Result("client", 0, table, err))
    run.rows = verbs.table(table)
    return run


@pytest.mark.parametrize("table", [TABLE.format(0, "0.00", "0.000000"), TABLE.format(9, "nan", "0.1"),
                                   TABLE.format(9, "inf", "0.1"), ""],
                         ids=["zero", "nan", "inf", "nothing"])
def test_zero_is_no_result(table):
    with pytest.raises(GuestError, match="(?s)no result.*said by the server"):
        verbs.measured(ran(table), "bw")


def test_a_result():
    assert verbs.measured(ran(TABLE.format(100, "557.80", "0.0089")), "bw") == 557.8


NO_CLOCK = ran(TABLE.format(5632, "0.00", "0.000000"),
               "Correlation coefficient r^2: 0.672 < 0.9\n")


@pytest.mark.parametrize("failures", [1, verbs.TRIES - 1, verbs.TRIES])
def test_clock_not_measured(monkeypatch, failures):
    """perftest's 0 for messages that it did transfer, since its measurement of the TSC was
    disturbed, is no result of the device's: the run is repeated, but not for ever."""
    runs = [NO_CLOCK] * failures + [ran(TABLE.format(5632, "557.80", "0.0089"))]
    monkeypatch.setattr(verbs, "perftest", lambda *_: runs.pop(0))
    node = types.SimpleNamespace(counters=lambda: {})
    if failures < verbs.TRIES:
        assert verbs.measure(node, node, "ib_write_bw", "-D 3", "bw") == 557.8
    else:
        with pytest.raises(GuestError, match="client failed to measure its clock"):
            verbs.measure(node, node, "ib_write_bw", "-D 3", "bw")


def test_clock_measured_later(monkeypatch):
    """The programs for latency measure the TSC twice, and report by the second time."""
    runs = [ran(TABLE.format(5632, "557.80", "0.0089"), NO_CLOCK.client.err)]
    monkeypatch.setattr(verbs, "perftest", lambda *_: runs.pop(0))
    node = types.SimpleNamespace(counters=lambda: {})
    assert verbs.measure(node, node, "ib_write_bw", "-D 3", "bw") == 557.8


@pytest.mark.parametrize("err", ["", NO_CLOCK.client.err])
def test_zero_is_not_repeated(monkeypatch, err):
    """A run without one completion may be a device that hangs: the first one fails, and
    says what the devices have counted in it."""
    runs = [ran(TABLE.format(0, "0.00", "0.000000"), err)]
    counts = iter([{"tx_packets": 7, "sq_doorbells": 3}, {"tx_packets": 9, "sq_doorbells": 3}])
    client = types.SimpleNamespace(counters=lambda: next(counts))
    server = types.SimpleNamespace(counters=lambda: {"tx_packets": 5})
    monkeypatch.setattr(verbs, "perftest", lambda *_: runs.pop(0))
    with pytest.raises(GuestError, match="(?s)no completion while.*said by the server"
                       ".*server's device: nothing\n.*client's device: tx_packets \\+2$"):
        verbs.measure(server, client, "ib_write_bw", "-D 3", "bw")


@pytest.mark.parametrize("found, shown", [("557.80", "557.8"), ("0.02", "0.02")])
def test_run_shows_small_results(monkeypatch, found, shown):
    monkeypatch.setattr(verbs, "perftest", lambda *_: ran(TABLE.format(1, found, "0.0")))
    steps = {name: step for name, _, step in lab_main.run_steps(*Two())}
    assert steps["ib_write_bw"]() == [shown, "MiB/s"]


def test_run_with_zero_fails(monkeypatch, capsys):
    """It fails, with what both sides printed, and goes on to the next test."""
    zero = ran(TABLE.format(0, "0.00", "0.000000"))
    monkeypatch.setattr(lab_main, "boot", lambda *_, **__: Two())
    monkeypatch.setattr(paths, "kernel_release", lambda *_: "6.12")
    monkeypatch.setattr(lab_main, "how", lambda: "TCG")
    monkeypatch.setattr(verbs, "perftest", lambda *_: zero)
    monkeypatch.setattr(verbs, "pingpong", lambda *_: verbs.Run(
        None, Result("pingpong", 0, "1000 iters in 0.28 seconds = 279.53 usec/iter\n", "")))
    assert lab_main.run(types.SimpleNamespace(kinds="qhca,qhca", kernel="default",
                                              guests=2, wire="stream")) == 1
    out, err = capsys.readouterr()
    assert "279.53" in out and out.count("FAILED") == 6
    assert err.count("said by the server") == 6
    with pytest.raises(GuestError, match="(?s)bw.*no result.*said by the server"):
        bench.measure(*Two(), bench.CASES[0], 3)


class Two:
    shm = (False,)

    def __iter__(self):
        return iter([types.SimpleNamespace(kind="qhca", counters=lambda: {})] * 2)

    def close(self):
        pass
