# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The programs beside this file, as kselftests under virtme-ng.

They need one guest with one device that leads nowhere, and print TAP; each
of their points counts as a test. FULL=1 makes them repeat more.
"""

import os
import pathlib
import re

import pytest

from lab import vng

HERE = pathlib.Path(__file__).resolve().parent
SCRIPTS = ("load.sh", "netdev.sh")
SOURCED = ("tap.sh",)
FULL = os.environ.get("FULL", "") not in ("", "0")


@pytest.fixture(scope="module")
def outputs():
    """{script: (exit code, output)}, all from one guest."""
    cycles = 50 if FULL else 3
    commands = [f"CYCLES={cycles} bash /run/qhca/{s} 2>&1; echo; echo @@ {s} $?" for s in SCRIPTS]
    done = vng.run("\n".join(commands), files={s: HERE / s for s in SCRIPTS + SOURCED},
                   timeout=900)
    parts = re.split(r"^@@ (\S+) (\d+)$", done.out, flags=re.M)
    assert len(parts) > 2 * len(SCRIPTS), f"not all ran: {done}"
    return {name: (int(code), text)
            for text, name, code in zip(parts[0::3], parts[1::3], parts[2::3])}


@pytest.mark.parametrize("script", SCRIPTS)
def test_kselftest(script, outputs, tap_points):
    code, text = outputs[script]
    assert re.search(r"^1\.\.\d+", text, re.M), f"no TAP plan: {text}"
    tap_points(text, code)
