# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What the host itself does in the same minutes: plain programs (in the folder plain) in which one
process gives another one frames as large as a packet, over a unix stream or through a ring.

They bound what a link can do on the machine at that time. One more finds out how far apart the
processors are, which on a virtual host may change at any time: what goes between processors
that share no cache is slower by a factor.
"""

import os
import pathlib
import re
import subprocess
from dataclasses import dataclass

from lab import paths

SOURCES = pathlib.Path(__file__).with_name("plain")
CHECK_SECONDS = 0.2
DISTANCE_SECONDS = 20


class Bad(ValueError):
    """A plain program does not build, or has not moved what it should."""


@dataclass(frozen=True)
class Plain:
    """One of the programs; where Case has a Case's guests, this has the host."""
    test: str
    program: str
    size: int = 4096
    column: str = "bw"
    unit: str = "MiB/s"

    def runs_in(self, _number, _rounds):
        return 1


CASES = [Plain("unix stream", "stream"), Plain("shared ring", "ring")]


def folder():
    return paths.BUILD / "tests" / "plain"


def build():
    """Compiles the programs."""
    done = subprocess.run(["make", "--no-print-directory", "-s", "-C", SOURCES,
                           f"BUILD={folder()}"], check=False, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise Bad(f"the programs of {os.path.relpath(SOURCES, paths.TOP)} do not build:\n{done.stdout}")


def run(case, seconds, check=False):
    """MiB/s of one run. Its receiver has counted the frames, of which it compares the ends, or
    with check all bytes."""
    try:
        done = subprocess.run([folder() / case.program, "-s", str(case.size), "-t", str(seconds),
                               *(["-c"] if check else [])], check=False, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=60 + 10 * seconds)
    except subprocess.TimeoutExpired as error:
        raise Bad(f"{case.program}: {error}") from None
    found = re.fullmatch(r"frames=(\d+) size=(\d+) checked=(\w+) seconds=(\S+) MiB/s=(\S+)\n",
                         done.stdout)
    if done.returncode or not found:
        raise Bad(f"{case.program} ended with {done.returncode}:\n{done.stdout}")
    frames, size, checked, took, rate = found.groups()
    told = int(frames) * int(size) / float(took) / (1 << 20)
    if (int(size), checked) != (case.size, "all" if check else "ends") or \
            abs(told - float(rate)) > 0.01 * told + 0.001:
        raise Bad(f"{case.program} contradicts itself: {done.stdout}")
    return float(rate)


def distance():
    """Nanoseconds in which a cache line goes from one processor to another one and back; None
    if there is one processor."""
    if len(os.sched_getaffinity(0)) == 1:
        return None
    try:
        done = subprocess.run([folder() / "line"], check=False, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=DISTANCE_SECONDS)
    except subprocess.TimeoutExpired as error:
        raise Bad(f"line: {error}") from None
    found = re.fullmatch(r"ns=(\d+\.\d)\n", done.stdout)
    if done.returncode or not found:
        raise Bad(f"line ended with {done.returncode}: {done.stdout}")
    return float(found[1])


def readings(case, seconds):
    """{column: number} of one run. A short one before it compares all bytes."""
    run(case, CHECK_SECONDS, check=True)
    return {case.column: run(case, seconds)}
