# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""qhca beside Soft-RoCE: what is measured, and how it is summed up.

Both run in the same two guests and in turns, so that what else the machine
does meets both; the median of a few rounds stands for each.
"""

import statistics
from dataclasses import dataclass

from lab import verbs


@dataclass(frozen=True)
class Case:
    """One line of the table. `bar` bounds qhca / rxe from below, or above
    for latencies, where less is better."""
    test: str
    program: str
    size: int
    column: str             # of perftest's table
    unit: str
    bar: float = None

    @property
    def options(self):
        # Atomics have the one size, and no option for it.
        return "" if self.program.startswith("ib_atomic") else f"-s {self.size}"

    def verdict(self, ratio):
        if self.bar is None or ratio is None:
            return ""
        met = ratio <= self.bar if self.unit == "us" else ratio >= self.bar
        sign = "<=" if self.unit == "us" else ">="
        return f"{sign} {self.bar:g} {'met' if met else 'MISSED'}"


CASES = [
    Case("write bandwidth", "ib_write_bw", 65536, "bw", "MiB/s", 20),
    Case("write bandwidth", "ib_write_bw", 4096, "bw", "MiB/s", 15),
    Case("read bandwidth", "ib_read_bw", 65536, "bw", "MiB/s"),
    Case("read bandwidth", "ib_read_bw", 4096, "bw", "MiB/s"),
    Case("send bandwidth", "ib_send_bw", 65536, "bw", "MiB/s"),
    Case("send bandwidth", "ib_send_bw", 4096, "bw", "MiB/s"),
    Case("message rate", "ib_write_bw", 8, "mpps", "Mpps", 10),
    Case("write latency", "ib_write_lat", 8, "t_avg", "us", 0.2),
    Case("send latency", "ib_send_lat", 8, "t_avg", "us"),
    Case("read latency", "ib_read_lat", 8, "t_avg", "us"),
    Case("atomic latency", "ib_atomic_lat", 8, "t_avg", "us"),
]


def measure(server, client, case, seconds):
    """One run of one case between two ports; a number in the case's unit."""
    return verbs.measure(server, client, case.program, f"{case.options} -D {seconds}",
                         case.column, case.size)


def summary(case, qhca, rxe, shm=None):
    """The entry of build/bench.json for the rounds' numbers of both, and of qhca in shared
    memory if that was measured, too."""
    q, r, s = (statistics.median(v) if v else None for v in (qhca, rxe, shm))
    entry = {"test": case.test, "size": case.size, "unit": case.unit, "qhca": q, "rxe": r,
             "ratio": q / r if q is not None and r else None}
    if shm is not None:
        entry.update({"shm": s, "shm ratio": s / r if s is not None and r else None})
    return entry
