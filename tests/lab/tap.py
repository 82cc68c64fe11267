# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Runs programs that print TAP, and reads TAP, one test for each point.

A program fails as a whole, besides its failed points, if it ends with a
signal or an error that no point explains, prints fewer points than planned,
or takes too long.
"""

import os
import re
import selectors
import subprocess
import time
from dataclasses import dataclass, field

from . import process

POINT = re.compile(r"^(?P<indent>\s*)(?P<not>not )?ok\b\s*(?P<number>\d+)?\s*(?:- )?(?P<name>[^#]*)"
                   r"(?:#\s*(?P<directive>SKIP|TODO|XFAIL)\b\s*(?P<reason>.*))?", re.I)
PLAN = re.compile(r"^1\.\.(\d+)(?:\s*#\s*SKIP\b\s*(?P<reason>.*))?", re.I)


@dataclass
class Point:
    name: str
    outcome: str            # passed, failed, skipped
    text: str = ""
    seconds: float = 0.0


@dataclass
class Reader:
    """Feed it lines; it returns a Point when a line is one."""
    planned: int = None
    points: list = field(default_factory=list)
    skip_all: str = None
    _notes: list = field(default_factory=list)
    _since: float = field(default_factory=time.monotonic)

    def feed(self, line):
        line = line.rstrip("\n")
        # The kernel's console prefixes, when TAP comes through it.
        line = re.sub(r"^\[ *\d+\.\d+\] ", "", line)
        plan = PLAN.match(line)
        if plan:
            self.planned = int(plan.group(1))
            if self.planned == 0:
                self.skip_all = plan.group("reason") or "skipped"
            return None
        match = POINT.match(line)
        # Indented points belong to a point that follows.
        if not match or match.group("indent"):
            self._notes = self._notes[-200:] + [line]
            return None
        directive = (match.group("directive") or "").upper()
        outcome = "failed" if match.group("not") else "passed"
        text = "\n".join(self._notes)
        if directive in ("SKIP", "TODO", "XFAIL"):
            outcome, text = "skipped", match.group("reason") or directive.lower()
        name = match.group("name").strip() or f"point {match.group('number') or len(self.points) + 1}"
        now = time.monotonic()
        point = Point(name, outcome, text, now - self._since)
        self._since, self._notes = now, []
        self.points.append(point)
        return point

    def verdict(self, code=0):
        """What is wrong with the whole, or None."""
        tail = "\n".join(self._notes[-60:])
        if self.skip_all is not None:
            return None
        if code and code < 0:
            return f"ended by signal {-code}\n{tail}"
        if not self.points:
            return f"no TAP points, exit code {code}\n{tail}"
        if self.planned is not None and self.planned != len(self.points):
            return f"{len(self.points)} points of {self.planned}, exit code {code}\n{tail}"
        if code and all(p.outcome != "failed" for p in self.points):
            return f"exit code {code} though no point failed\n{tail}"
        return None


def run(argv, *, timeout=300, env=None, cwd=None, log=None):
    """Yields Points as the program prints them, then ("end", verdict)."""
    reader = Reader()
    child = process.spawn(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, env=dict(os.environ, **(env or {})), cwd=cwd)
    deadline = time.monotonic() + timeout
    verdict = None
    pending = b""
    sink = open(log, "wb") if log else None
    try:
        with selectors.DefaultSelector() as selector:
            selector.register(child.stdout, selectors.EVENT_READ)
            while True:
                left = deadline - time.monotonic()
                if left <= 0 or not selector.select(left):
                    verdict = f"took longer than {timeout} s"
                    break
                chunk = os.read(child.stdout.fileno(), 65536)
                if not chunk:
                    break
                if sink:
                    sink.write(chunk)
                *lines, pending = (pending + chunk).split(b"\n")
                for line in lines:
                    point = reader.feed(line.decode(errors="replace"))
                    if point:
                        yield point
        if verdict is None:
            point = reader.feed(pending.decode(errors="replace")) if pending else None
            if point:
                yield point
            verdict = reader.verdict(child.wait(max(1, deadline - time.monotonic())))
        else:
            verdict += "\n" + "\n".join(reader._notes[-60:])
    finally:
        process.stop(child)
        child.stdout.close()
        if sink:
            sink.close()
    yield "end", verdict, reader.skip_all
