# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""qhca beside Soft-RoCE: what is measured, and how it is summed up.

Both run in the same two guests and in turns, so that what else the machine
does meets both; the median of a few rounds stands for each.
"""

import statistics
from dataclasses import dataclass

from lab import verbs

# Columns that perftest has for a number of iterations, and not for a time.
TAILS = {"t_typical": "typical", "p99": "99%", "p999": "99.9%"}

# Iterations of a latency, of messages up to a packet and of larger ones. Of the many, the
# 99.9% have some twenty beyond them; those of Soft-RoCE take as long.
FEW, MANY = {True: 1000, False: 300}, {True: 20000, False: 5000}


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
    runs: int = None        # in all rounds together; None: one in each

    @property
    def options(self):
        # Atomics have the one size, and no option for it.
        return "" if self.program.startswith("ib_atomic") else f"-s {self.size}"

    @property
    def has_tails(self):
        """Does the program measure each message by itself?"""
        return self.program.endswith("_lat")

    @property
    def columns(self):
        return (self.column, *TAILS) if self.has_tails else (self.column,)

    def length(self, kind, seconds):
        """Options that say how long a run between devices of a kind lasts"""
        if not self.has_tails:
            return f"-D {seconds}"
        return f"-n {(FEW if kind == 'rxe' else MANY)[self.size <= 4096]}"

    def runs_in(self, number, rounds):
        """How many runs does a round have?"""
        if self.runs is None:
            return 1
        return self.runs * (number + 1) // rounds - self.runs * number // rounds

    def verdict(self, ratio):
        return verdict(ratio, self.bar, self.unit == "us")


def verdict(ratio, bar, less_is_better):
    """What the table says of a ratio beside its bar"""
    if bar is None or ratio is None:
        return ""
    met = ratio <= bar if less_is_better else ratio >= bar
    return f"{'<=' if less_is_better else '>='} {bar:.3g} {'met' if met else 'MISSED'}"


PINGPONG = "ibv_rc_pingpong"

CASES = [
    Case("write bandwidth", "ib_write_bw", 65536, "bw", "MiB/s", 80),
    Case("write bandwidth", "ib_write_bw", 4096, "bw", "MiB/s", 70),
    Case("write bandwidth", "ib_write_bw", 1048576, "bw", "MiB/s", 80),
    Case("read bandwidth", "ib_read_bw", 65536, "bw", "MiB/s", 80),
    Case("read bandwidth", "ib_read_bw", 4096, "bw", "MiB/s", 50),
    Case("read bandwidth", "ib_read_bw", 1048576, "bw", "MiB/s", 80),
    Case("send bandwidth", "ib_send_bw", 65536, "bw", "MiB/s", 45),
    Case("send bandwidth", "ib_send_bw", 4096, "bw", "MiB/s", 40),
    Case("send bandwidth", "ib_send_bw", 1048576, "bw", "MiB/s", 45),
    Case("message rate", "ib_write_bw", 8, "mpps", "Mpps", 100),
    Case("write latency", "ib_write_lat", 8, "t_avg", "us", 1 / 50),
    Case("send latency", "ib_send_lat", 8, "t_avg", "us", 1 / 70),
    Case("read latency", "ib_read_lat", 8, "t_avg", "us", 1 / 40),
    Case("atomic latency", "ib_atomic_lat", 8, "t_avg", "us", 1 / 40),
    Case("write latency", "ib_write_lat", 65536, "t_avg", "us"),
    Case("read latency", "ib_read_lat", 65536, "t_avg", "us"),
    Case("send latency", "ib_send_lat", 4096, "t_avg", "us"),
    # As everybody runs it first: messages of 4096 bytes, of which 1,000 go to and fro.
    Case("pingpong", PINGPONG, 4096, "round trip", "us", runs=10),
]


def readings(server, client, case, seconds):
    """One run of one case between two ports; {column: number}"""
    if case.program == PINGPONG:
        return {case.column: verbs.pingpong_us(verbs.pingpong(server, client))}
    return verbs.measure_columns(server, client, case.program,
                                 f"{case.options} {case.length(client.kind, seconds)}",
                                 case.columns, case.size)


def measure(server, client, case, seconds):
    """One run of one case between two ports; a number in the case's unit."""
    return readings(server, client, case, seconds)[case.column]


def summary(case, qhca, rxe, shm=None):
    """The entry of build/bench.json for the rounds' numbers of both, and of qhca in shared
    memory if that was measured, too."""
    q, r, s = (statistics.median(v) if v else None for v in (qhca, rxe, shm))
    entry = {"test": case.test, "size": case.size, "unit": case.unit, "qhca": q, "rxe": r,
             "ratio": q / r if q is not None and r else None}
    if shm is not None:
        entry.update({"shm": s, "shm ratio": s / r if s is not None and r else None})
    return entry
