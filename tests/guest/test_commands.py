# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Commands and object numbers of qhca.ko (kernel/qhca_test_commands.c)."""

import re

import pytest

from lab import content, paths


@pytest.fixture
def node(qhca_pair):
    """Without the RDMA driver, whose place the test's takes."""
    found = qhca_pair.b
    for name in ("qhca_test_commands", "qhca_test_fail"):
        found.push(paths.BUILD / "modules" / found.release / f"{name}.ko", f"/tmp/{name}.ko")
    found.exec("rmmod qhca_ib")
    with content(found):
        yield found
    found.exec("rmmod qhca_test_fail qhca_test_commands; :", check=False)
    found.configure()
    qhca_pair.wait_link()


def run(node, options=""):
    """The test's TAP."""
    name = "qhca_test_commands"
    log = node.out(f"dmesg -C; insmod /tmp/{name}.ko {options}; dmesg", timeout=300)
    return "\n".join(re.findall(rf"{name}: (.*)$", log, re.M))


def test_reserved_slots(node, tap_points):
    """An invalidation goes past commands that have no slot yet."""
    tap_points(run(node))


def test_table_without_memory(node, tap_points):
    """The table grows no more: numbers come from what there is of it."""
    node.exec("insmod /tmp/qhca_test_fail.ko kinds=16 size=131072 nth=2 times=1000000",
              timeout=120)
    tap_points(run(node, "numbers=8192"))
    # Two chunks have 4096 numbers, so it has tried, and asked for no warning.
    failed = node.out("cat /sys/module/qhca_test_fail/parameters/failed")
    assert "dma_alloc_attrs" in failed and "__GFP_NOWARN" in failed, failed
