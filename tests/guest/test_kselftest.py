# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The programs beside this file, as kselftests.

They need one guest with one device that leads nowhere, and print TAP; each
of their points counts as a test. FULL=1 makes them repeat more, under virtme-ng, whose
guests read each file from the host and take several times as long as the lab's.
"""

import pathlib
import re

import pytest

from lab import content, vng
from lab.link import FULL
from lab.pair import Node

HERE = pathlib.Path(__file__).resolve().parent
SCRIPTS = ("load.sh", "netdev.sh")
SOURCED = ("tap.sh",)


def run(command, files):
    """Runs a shell command in a guest whose modules are not loaded; returns a Result."""
    if FULL:
        return vng.run(command, files=files, timeout=900)
    with Node("a", "qhca", 1, netdevs=["hubport,hubid=0"], files=files, setup=False) as node, \
            content(node):
        return node.exec(command, timeout=900)


@pytest.fixture(scope="module")
def outputs():
    """{script: (exit code, output)}, all from one guest."""
    cycles = 50 if FULL else 3
    commands = [f"CYCLES={cycles} bash /run/qhca/{s} 2>&1; echo; echo @@ {s} $?" for s in SCRIPTS]
    done = run("\n".join(commands), {s: HERE / s for s in SCRIPTS + SOURCED})
    parts = re.split(r"^@@ (\S+) (\d+)$", done.out, flags=re.M)
    assert len(parts) > 2 * len(SCRIPTS), f"not all ran: {done}"
    return {name: (int(code), text)
            for text, name, code in zip(parts[0::3], parts[1::3], parts[2::3])}


@pytest.mark.parametrize("script", SCRIPTS)
def test_kselftest(script, outputs, tap_points):
    code, text = outputs[script]
    assert re.search(r"^1\.\.\d+", text, re.M), f"no TAP plan: {text}"
    tap_points(text, code)
