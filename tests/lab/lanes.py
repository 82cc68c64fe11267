# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Runs several pytests at once, and reports as one does.

    python -m lab.lanes OPTION... -- PATH... -- PATH...

Each group of paths is a lane, a pytest of its own with the options. Their lines are
printed whole as they come; what a pytest reports at its end is printed when all have
ended, lane by lane, and then the one line that counts.

A guest under software emulation keeps one processor busy, so two lanes with guests take
little more time than the longer of them.
"""

import os
import re
import signal
import subprocess
import sys
import threading

from lab import process

# Where pytest's report at its end begins.
REPORT = re.compile(r"=+ (ERRORS|FAILURES|PASSES|warnings summary|slowest .*|short test summary info|"
                    r"!* ?.*(passed|failed|skipped|error|no tests ran|deselected).*) =+$|!+ .* !+$")
COUNT = re.compile(r"(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$")
NOTHING = 5             # pytest's exit code when it has found no test


class Lane:
    """One pytest: what it says, its counts and its exit code."""

    def __init__(self, number, argv, write):
        self.number = number
        self.report = []
        self.counts = None
        self._write = write
        self._begun = number == 0
        self._ending = False
        self.child = process.spawn(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   text=True, errors="replace")
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self):
        head = []
        for line in self.child.stdout:
            if found := COUNT.fullmatch(line.rstrip("\n")):
                self.counts = [int(n or 0) for n in found.groups()]
                continue
            self._ending = self._ending or bool(REPORT.match(line))
            # The heads of several are alike but for the number of tests.
            self._begun = self._begun or line.startswith("collect")
            if self._ending:
                self.report.append(line)
            elif self._begun or line.startswith("samples are"):
                self._write(line)
            else:
                head.append(line)
        if not self._begun:
            self.report[:0] = head

    def wait(self):
        """Waits for the end; returns the exit code."""
        while True:
            try:
                self._reader.join()
                return self.child.wait()
            except KeyboardInterrupt:
                # It reaches the children as well, which end and report.
                signal.signal(signal.SIGINT, signal.SIG_IGN)


def exit_code(codes):
    """That of one pytest with all tests: a lane without tests does not count beside others."""
    found = [code for code in codes if code != NOTHING]
    return max((abs(code) for code in found), default=NOTHING)


def total(lanes):
    """The line that counts; a lane that has none ended before its end, which is a failure."""
    passed, failed, skipped = map(sum, zip(*(lane.counts or (0, 1, 0) for lane in lanes)))
    return f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else "")


def run(options, groups, out=sys.stdout):
    """Runs a lane for each group of paths; returns the exit code."""
    lock = threading.Lock()
    lanes = []
    closed = False

    def terminate(*_):
        for lane in lanes:
            lane.child.terminate()

    def write(line):
        nonlocal closed
        with lock:
            try:
                if not closed:
                    out.write(line)
                    out.flush()
            except OSError:
                # Nobody reads any more: the lanes end, and are read until then.
                closed = True
                terminate()

    signal.signal(signal.SIGTERM, terminate)
    for n, paths in enumerate(groups):
        lanes.append(Lane(n, [sys.executable, "-m", "pytest", *options, *paths], write))
    if closed:
        terminate()         # those too that began after it
    codes = [lane.wait() for lane in lanes]
    for lane in lanes:
        for line in lane.report:
            write(line)
    write(total(lanes) + "\n")
    if closed:
        os.dup2(os.open(os.devnull, os.O_WRONLY), out.fileno())
    return exit_code(codes) or int(closed)


def main(arguments):
    groups = [[]]
    for argument in arguments:
        if argument == "--":
            groups.append([])
        else:
            groups[-1].append(argument)
    return run(groups[0], groups[1:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
