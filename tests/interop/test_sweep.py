# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Each step of whatever makes something fails once, one after the other.

tests/guest/programs/sweep/sweep.c does so, and has two ways to make a step fail: the
calls of the drivers by qhca_test_fail.ko, in any kernel, and, where the kernel can
inject faults, all allocations and copies of a system call. Nothing may be left
behind, which the numbers of objects tell, and on the kernel that finds faults its
leak detector and its check of DMA mappings.

Without FULL=1 every so many a step of the device's own operations is tried; QHCA_SEED
has others.
"""

import pytest

from lab import paths
from lab.flows import Traffic
from lab.link import FULL
from lab.sample import SEED

MODULE = "qhca_test_fail"

# Numbers of RDMA objects, without the device's own number, which changes.
OBJECTS = "rdma res show | sed 's/^[0-9]*: //;s/ *$//'"

# Every how many a step without FULL=1: the slow ones less often.
DEVICE = {"bind": 16, "reload": 14, "reset": 14, "mtu": 1, "rings": 1, "up": 1}

# Looking for what is left behind takes longer than a sample of a case, so that the
# samples of all share one look.
of_device = pytest.mark.parametrize(
    "cases", [pytest.param([case], id=case) for case in DEVICE] if FULL else
    [pytest.param(list(DEVICE), id="all")])


@pytest.fixture
def node(watchful):
    """A guest, which afterwards has as many objects as before, leaks none, and
    passes traffic."""
    node = watchful.b
    before = node.out(OBJECTS)
    yield node
    node.configure()
    watchful.wait_link()
    for report in Traffic(watchful, ("rc-small", "flood")).start().wait_progress().stop().values():
        assert report.sound and not report.ended, report
    node.wait_until(f"[ \"$({OBJECTS})\" = '{before}' ]", what="as many objects as before")
    assert node.leaks() == ""


@pytest.fixture
def calls(node):
    """Has the drivers' calls fail."""
    path = f"/tmp/{MODULE}.ko"
    node.push(paths.BUILD / "modules" / node.release / f"{MODULE}.ko", path)
    # A ring that is filled is one long sequence of calls.
    node.exec(f"insmod {path} repeat={0 if FULL else 2}", timeout=120)
    yield "-i calls"
    node.exec(f"rmmod {MODULE}", timeout=120)


@pytest.fixture
def system(node):
    """Has what the kernel does for a system call fail."""
    if not paths.finds_faults(node.release):
        pytest.skip("this kernel cannot inject faults")
    node.exec("modprobe -q udmabuf", check=False)
    return "-i nth"


def sweep(node, tap_points, options):
    done = node.exec(f"qhca-sweep -d {node.ibdev} -g {node.gid_index()} {options}", timeout=3600,
                     check=False)
    tap_points(done.out + done.err, done.code)


def sweep_device(node, tap_points, cases, injection):
    for case in cases:
        steps = "" if FULL else f"-e {DEVICE[case]} -f {1 + SEED % DEVICE[case]}"
        sweep(node, tap_points, f"{injection} -c {case} {steps}")


def test_sweep_objects(node, calls, tap_points):
    node.exec("modprobe -q udmabuf", check=False)
    sweep(node, tap_points, calls)


@of_device
def test_sweep_device(node, calls, tap_points, cases):
    sweep_device(node, tap_points, cases, calls)


@pytest.mark.full
def test_sweep_objects_by_system_call(node, system, tap_points):
    sweep(node, tap_points, system)


@pytest.mark.full
@of_device
def test_sweep_device_by_system_call(node, system, tap_points, cases):
    sweep_device(node, tap_points, cases, system)
