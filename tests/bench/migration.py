# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What a migration costs, by how much the guest has set up: `make bench CASES=migration`.

A guest with idle queue pairs and regions moves, while a peer measures the latency of READs
from its memory. Neither the device's image nor the time may depend on the number of objects.
"""

import statistics
from dataclasses import dataclass

from lab import move, verbs
from lab.guest import GuestError
from lab.moving import MOVABLE, assert_carries_on, idle_queues, wait_traffic

# How the guests are made: these need memory for the most objects.
OPTIONS = {**MOVABLE, "memory": 2048}

# (queue pairs, regions)
POINTS = ((1, 1), (100, 1), (10000, 1), (1, 1000), (1, 100000))
# Moves of each, and READs meanwhile, for which the moves have to be over before. ACK timeouts
# of 0.27 s: what is lost in the pause is repeated that much later, or twice, and so on.
MOVES, READS, TIMEOUT = 3, 200000, 16
MOST_BYTES = 2 << 20


@dataclass
class Point:
    """What the moves with so many objects took."""
    qps: int
    mrs: int
    moves: list                 # of move.Move
    spike: float                # ms: the longest that a READ of the peer took

    def median(self, name):
        """The median of a number that each Move has"""
        return statistics.median(getattr(moved, name) for moved in self.moves)


def _probe(pair):
    return verbs.Flow(pair.b, pair.a, verbs.perftest_commands(
        "ib_read_lat", f"-s 8 -n {READS} -u {TIMEOUT}"))


def measure(pair, qps, mrs):
    """A Point: guest b moves, and guest a is the peer."""
    with idle_queues(pair, qps, mrs, timeout=120 + qps // 10 + mrs // 100) as idle:
        with _probe(pair) as probe:
            wait_traffic(pair.b)
            moves = [move.migrate(pair.b) for _ in range(MOVES)]
            if not probe.runs():
                raise GuestError(f"{READS} READs have ended before the guest had moved")
            run = probe.end(600)
        assert_carries_on(pair, idle, timeout=600)
    run.rows = verbs.table(run.client.out)
    return Point(qps, mrs, moves, verbs.measured(run, "t_max") / 1000)


HEAD = ["QPs", "MRs", "downtime ms", "longest READ of the peer ms", "image bytes", "save ms",
        "load ms", "memory sent MiB"]


def cells(point):
    """The row of the table, by HEAD"""
    return [point.qps, point.mrs, f"{point.median('downtime'):.0f}", f"{point.spike:.0f}",
            f"{max(moved.image for moved in point.moves)}",
            f"{point.median('save') / 1000:.1f}", f"{point.median('load') / 1000:.1f}",
            f"{point.median('ram') / (1 << 20):.0f}"]


def summary(point):
    """The entry of build/bench-migration.json"""
    return {"qps": point.qps, "mrs": point.mrs, "spike": point.spike,
            "moves": [vars(moved) for moved in point.moves]}


def verdicts(points):
    """Sentences on what must not depend on the number of objects."""
    images = sorted({moved.image for point in points for moved in point.moves})
    yield (f"the image has {images[0]} to {images[-1]} bytes, and less than {MOST_BYTES}: "
           + ("met" if 0 < images[0] and images[-1] < MOST_BYTES else "MISSED"))
    few, *more = points
    for name in "save", "load":
        ratios = [point.median(name) / few.median(name) for point in more if few.median(name)]
        yield (f"{name} takes {min(ratios, default=0):.2g} to {max(ratios, default=0):.2g} times as "
               f"long as with {few.qps} QP and {few.mrs} MR")

