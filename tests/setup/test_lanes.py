# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Two pytests at once report as one does (lab/lanes.py)."""

import fcntl
import os
import signal
import subprocess
import sys
import textwrap
import threading

import pytest

from lab import lanes, paths, wait_for
from lab.turns import Turns

# In place of pytest: a path names a file with what to print, line by line, and what to do.
PYTEST = '''
import os, pathlib, sys, time
code = 0
try:
    for line in pathlib.Path(sys.argv[-1]).read_text().splitlines():
        if line.startswith("wait "):
            while not os.path.exists(line[5:]):
                time.sleep(0.01)
        elif line.startswith("made "):
            pathlib.Path(line[5:]).touch()
        elif line.startswith("exit "):
            sys.exit(int(line[5:]))
        elif line.startswith("part "):
            print(line[5:], end="", flush=True)
        else:
            print(line, flush=True)
except KeyboardInterrupt:
    print("=== 1 passed, interrupted ===", flush=True)
    print("1 passed, 0 failed", flush=True)
    sys.exit(2)
'''


@pytest.fixture
def lane(tmp_path):
    """start(text, text): a process with a lane for each text"""
    (tmp_path / "pytest").mkdir()
    (tmp_path / "pytest/__init__.py").write_text("")
    (tmp_path / "pytest/__main__.py").write_text(PYTEST)

    def start(*texts):
        argv = [sys.executable, "-m", "lab.lanes", "-v"]
        for n, text in enumerate(texts):
            (tmp_path / f"lane{n}").write_text(textwrap.dedent(text).format(folder=tmp_path))
            argv += ["--", str(tmp_path / f"lane{n}")]
        return subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, cwd=tmp_path,
            env=dict(os.environ, PYTHONPATH=f"{tmp_path}:{paths.TOP / 'tests'}",
                     PYTHONDONTWRITEBYTECODE="1"))
    return start


def ended(process):
    """(exit code, lines)"""
    out, _ = process.communicate(timeout=60)
    return process.returncode, out.splitlines()


def test_reports_as_one(lane):
    """Lines of tests come as they end, and whole; reports after all tests, lane by lane."""
    code, out = ended(lane("""\
        === test session starts ===
        collected 2 items
        made {folder}/begun
        wait {folder}/middle
        a.py::one PASSED
        made {folder}/one
        === FAILURES ===
        why a failed
        === 1 failed, 1 passed in 3.1s ===
        1 passed, 1 failed
        exit 1
        """, """\
        === test session starts ===
        collected 1 item
        wait {folder}/begun
        part b.py::one_
        made {folder}/middle
        wait {folder}/one
        part PASSED

        === 1 passed, 2 skipped in 1s ===
        1 passed, 0 failed, 2 skipped
        """))
    assert code == 1
    report = ["=== FAILURES ===", "why a failed", "=== 1 failed, 1 passed in 3.1s ===",
              "=== 1 passed, 2 skipped in 1s ===", "2 passed, 1 failed, 2 skipped"]
    first = ["=== test session starts ===", "collected 2 items", "a.py::one PASSED"]
    second = ["collected 1 item", "b.py::one_PASSED"]
    assert out[-len(report):] == report
    progress = out[:-len(report)]
    assert [line for line in progress if line in first] == first
    assert [line for line in progress if line in second] == second
    assert len(progress) == len(first + second)


def test_lane_without_tests(lane):
    """T= may select tests of one lane alone."""
    code, out = ended(lane("=== 1 deselected in 1s ===\n0 passed, 0 failed\nexit 5\n",
                           "=== 1 passed in 1s ===\n1 passed, 0 failed\n"))
    assert code == 0 and out[-1] == "1 passed, 0 failed"
    assert lanes.exit_code([5, 5]) == 5 and lanes.exit_code([5, 1]) == 1
    assert lanes.exit_code([-9, 0]) == 9


def test_lane_that_dies(lane):
    """One that ends without a count is a failure."""
    code, out = ended(lane("a.py::one PASSED\nexit 3\n",
                           "=== 1 passed in 1s ===\n1 passed, 0 failed\n"))
    assert code == 3 and out[-1] == "1 passed, 1 failed"


def test_nobody_reads(lane, tmp_path):
    """`make check | head`: all lanes end when the first cannot write."""
    process = lane("a.py::one PASSED\nwait {folder}/closed\na.py::two PASSED\nwait {folder}/never\n",
                   "=== test session starts ===\nwait {folder}/never\n")
    assert process.stdout.readline() == "a.py::one PASSED\n"
    process.stdout.close()
    (tmp_path / "closed").touch()
    assert process.wait(60) != 0


def test_head_of_a_lane(lane):
    """What the second lane says before it collects is printed if it gets no further, and the
    seed of its samples always."""
    _, out = ended(lane("=== 1 passed in 1s ===\n1 passed, 0 failed\n",
                        "samples are those of 7\nINTERNALERROR> no\nexit 3\n"))
    assert "samples are those of 7" in out and "INTERNALERROR> no" in out
    assert out[-1] == "1 passed, 1 failed"


def test_interrupted(lane, tmp_path):
    """Ctrl-C reaches all, and each reports what it has done."""
    process = lane("a.py::one PASSED\nmade {folder}/a\nwait {folder}/never\n",
                   "b.py::one PASSED\nmade {folder}/b\nwait {folder}/never\n")
    for name in "ab":
        wait_for(lambda name=name: (tmp_path / name).exists(), 60, name)
    # As a terminal does.
    children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(process.pid)],
                              stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    for pid in (process.pid, *map(int, children)):
        os.kill(pid, signal.SIGINT)
    code, out = ended(process)
    assert code == 2 and out[-1] == "2 passed, 0 failed"


def test_alone(tmp_path):
    """One that measures waits for what runs, and what comes then waits for it."""
    running, most = set(), {}
    may_end = {name: threading.Event() for name in ("first", "second", "alone", "late")}

    def run(name):
        with Turns(tmp_path).take(alone=name == "alone"):
            running.add(name)
            most[name] = len(running)
            may_end[name].wait(60)
            running.discard(name)

    threads = {name: threading.Thread(target=run, args=[name]) for name in may_end}
    for name in "first", "second":
        threads[name].start()
    wait_for(lambda: len(running) == 2, 60, "two at once")
    threads["alone"].start()
    # It has the gate once it waits for the others.
    wait_for(lambda: is_locked(tmp_path / "gate"), 60, "one that wants to be alone")
    threads["late"].start()
    may_end["late"].set()
    for name in "first", "second":
        may_end[name].set()
    wait_for(lambda: "alone" in most, 60, "its turn")
    assert "late" not in most
    may_end["alone"].set()
    for thread in threads.values():
        thread.join(60)
    assert most["alone"] == most["late"] == 1 and not running


def is_locked(path):
    with open(path, "w", encoding="ascii") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False
