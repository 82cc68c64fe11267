# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A kernel, or a sanitized QEMU, that complains fails a test, whenever it does."""

import os
import re
import subprocess
import sys

import pytest

from lab import content, paths, unheard

# Of reports of a guest's kernel, a line each.
REPORTS = {
    "kasan": "BUG: KASAN: slab-use-after-free in qhca_odp_put+0x1f/0x90 [qhca_ib]",
    "lockdep": "WARNING: possible circular locking dependency detected",
    "sleep": "BUG: sleeping function called from invalid context at mm/slub.c:1",
    "slub": "BUG kmalloc-1k (Tainted: G           OE     ): Poison overwritten",
    "poison": "pagealloc: memory corruption",
    "crash": "Oops: general protection fault, probably for non-canonical address 0xdffffc0000000003",
}

# What pytest runs within test_between_tests, with a guest that has a console and
# no machine.
INNER = """
import pytest
from lab import guest as guests

@pytest.fixture(scope="module")
def guest(tmp_path_factory):
    node = guests.Guest("a", log_dir=tmp_path_factory.mktemp("log"))
    guests._running.append(node)
    yield node
    report(node, "BUG: as it ends")
    node.close()

def report(node, text):
    with open(node.console_log, "a") as f:
        f.write(text + "\\n")

def test_sound(guest):
    report(guest, "e1000: link is up")

def test_complaint(guest):
    report(guest, "WARNING: in the test")

def test_sound_again(guest):
    pass

def test_qemu(guest):
    with open(guest.qemu_log, "a") as f:
        f.write("../src/util/iov.c:1:2: runtime error: null pointer\\n")

@pytest.fixture
def failing():
    yield
    assert False, "what else went wrong"

def test_two_failures(guest, failing):
    report(guest, "BUG: KASAN: beside it")

def test_last(guest):
    pass
"""


@pytest.mark.parametrize("report", REPORTS.values(), ids=REPORTS)
def test_command(qhca_pair, report):
    """A complaint during a command that succeeds fails the test once."""
    node = qhca_pair.a
    with pytest.raises(AssertionError, match="kernel or QEMU of a: .*" + re.escape(report[:20])):
        with content(*qhca_pair):
            node.exec(["/bin/sh", "-c", f"echo '<4>{report}' > /dev/kmsg"])
    assert unheard() == []


def test_no_command(qhca_pair):
    """The complaint comes while nobody waits for the guest."""
    node = qhca_pair.b
    with content(*qhca_pair):
        node.exec("(sleep 0.2; echo '<3>BUG: on its own' > /dev/kmsg) > /dev/null 2>&1 &")
    node.wait_console("BUG: on its own")
    lines = unheard()
    assert len(lines) == 1 and lines[0].startswith("b: ") and "BUG: on its own" in lines[0]


def test_between_tests(tmp_path):
    """The test that has just run fails, however its own end was."""
    file = tmp_path / "test_inner.py"
    file.write_text(INNER)
    env = dict(os.environ, PYTHONPATH=os.fspath(paths.TOP / "tests"))
    done = subprocess.run([sys.executable, "-m", "pytest", "-p", "conftest", "-p", "no:cacheprovider",
                           "--rootdir", tmp_path, "-c", os.devnull, "--color=no", "-rA", file],
                          env=env, cwd=tmp_path, stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    print(done.stdout)
    assert done.returncode == 1 and done.stdout.endswith("6 passed, 4 failed\n")
    errors = [line for line in done.stdout.splitlines() if line.startswith("ERROR ")]
    assert [e.split("::")[1].split()[0] for e in errors] == \
        ["test_complaint", "test_qemu", "test_two_failures", "test_last"]
    for text in ("a: WARNING: in the test", "a: BUG: KASAN: beside it", "what else went wrong",
                 "runtime error: null pointer", "a: BUG: as it ends"):
        assert text in done.stdout
