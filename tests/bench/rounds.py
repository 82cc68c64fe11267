# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Rounds of measurements by turns, and what is read from them: medians, tails, and relations
between measurements of one link."""

import statistics
import sys
from dataclasses import dataclass, field

from lab.ending import ERRORS

from . import CASES, TAILS, host, readings, verdict

HOST = "host"           # where plain programs run; guests have the numbers of their links


@dataclass
class Measured:
    """What the rounds have read."""
    # The keys are (case, link or HOST); each reading has {column: number} of one run.
    of: dict = field(default_factory=dict)
    # How far apart the host's processors were before each case, in nanoseconds.
    distances: list = field(default_factory=list)
    failed: int = 0

    def numbers(self, case, where, column=None):
        """Those of a column, by default the case's own, of all runs that have not failed"""
        return [reading[column or case.column] for reading in self.of.get((case, where), ())]


def measure(cases, pair, links, options, say):
    """Measures all cases in rounds: what is to be compared is measured within seconds.

    links has the numbers of the pair's links; say() prints a line of progress.
    """
    done = Measured({(case, where): [] for case in cases for where in places(case, links)})
    for n in range(options.rounds):
        say(f"round {n + 1} of {options.rounds}")
        for case in cases:
            for _ in range(case.runs_in(n, options.rounds)):
                apart = measure_distance(done)
                shown = [measure_one(done, case, where, pair, options.seconds)
                         for where in places(case, links)]
                say(f"  {case.program} {case.size} B: {', '.join(shown)} {case.unit}"
                    f" (processors {apart})")
    return done


def measure_distance(done):
    """How far apart the host's processors are, which goes into done; a word about it."""
    try:
        found = host.distance()
    except ERRORS as error:
        done.failed += 1
        print(error, file=sys.stderr, flush=True)
        return "FAILED"
    if found is None:
        return "1"
    done.distances.append(found)
    return f"{found:.0f} ns apart"


def places(case, links):
    return (HOST,) if isinstance(case, host.Plain) else links


def measure_one(done, case, where, pair, seconds):
    """One run, which goes into done; a word about it."""
    name = HOST
    try:
        if where == HOST:
            got = host.readings(case, seconds)
        else:
            a, b = (node.ports[where] for node in pair)
            name = a.kind
            got = readings(a, b, case, seconds)
    except ERRORS as error:
        done.failed += 1
        print(error, file=sys.stderr, flush=True)
        return f"{name} FAILED"
    done.of[case, where].append(got)
    return f"{name} {got[case.column]:.4g}"


def median(values):
    return statistics.median(values) if values else None


def show(value):
    return "FAILED" if value is None else f"{value:.4g}"


# -- tails ------------------------------------------------------------------

TAILS_HEAD = ["test", "size", "over", "average us", *(f"{name} us" for name in TAILS.values()),
              "99.9% / typical"]


def tails(done, cases, names):
    """{(case, link): {column: median}} of the latencies. names is {link: what it is called}"""
    return {(case, link): {column: median(done.numbers(case, link, column))
                           for column in case.columns}
            for case in cases if case in CASES and case.has_tails for link in names}


def tail_cells(found, names):
    """Rows by TAILS_HEAD"""
    return [[case.test, case.size, names[link], *(show(row[column]) for column in case.columns),
             show(row["p999"] and row["p999"] / row["t_typical"])]
            for (case, link), row in found.items()]


# -- relations --------------------------------------------------------------

@dataclass(frozen=True)
class Term:
    """A number of a relation: the median of a case's runs, or what `of` takes in its place."""
    test: str
    size: int
    column: str = None
    of: callable = statistics.median

    @property
    def case(self):
        return next(c for c in [*CASES, *host.CASES] if (c.test, c.size) == (self.test, self.size))

    def where(self, link):
        return places(self.case, (link,))[0]

    def value(self, done, link):
        """The number over a link, or on the host; or None if runs have failed without which
        there is none."""
        values = done.numbers(self.case, self.where(link), self.column)
        whole = len(values) >= (getattr(self.case, "runs", None) or 1)
        return self.of(values) if whole else None

    def asked_for(self, done, link):
        """Was it to be measured?"""
        return (self.case, self.where(link)) in done.of


@dataclass(frozen=True)
class Relation:
    """One measurement of a link divided by another one of the same link, or by one of the
    host; bar is as a Case's, and less_is_better says from which side."""
    name: str
    above: Term
    below: Term
    bar: float = None
    less_is_better: bool = False

    def asked_for(self, done, link):
        return self.above.asked_for(done, link) and self.below.asked_for(done, link)

    def ratio(self, done, link):
        """None: a side has failed"""
        above, below = self.above.value(done, link), self.below.value(done, link)
        return above / below if above is not None and below else None


def _tail(test):
    return Relation(f"{test} 8 B: 99.9% / typical", Term(test, 8, "p999"),
                    Term(test, 8, "t_typical"), 10, True)


RELATIONS = [
    *(Relation(f"{test} 64 KiB / unix stream of 4 KiB", Term(test, 65536),
               Term("unix stream", 4096), 1) for test in ("write bandwidth", "read bandwidth")),
    Relation("write bandwidth 64 KiB / shared ring of 4 KiB", Term("write bandwidth", 65536),
             Term("shared ring", 4096)),
    *(Relation(f"{test}: 1 MiB / 64 KiB", Term(test, 1048576), Term(test, 65536), 1)
      for test in ("write bandwidth", "read bandwidth", "send bandwidth")),
    *(_tail(f"{name} latency") for name in ("write", "send", "read", "atomic")),
    Relation("latency 64 KiB: write / read", Term("write latency", 65536),
             Term("read latency", 65536), 1.3, True),
    Relation("pingpong, the slowest run / send latency 4 KiB", Term("pingpong", 4096, of=max),
             Term("send latency", 4096), 3, True),
]

RELATIONS_HEAD = ["within one link", "over", "ratio", "bar"]


def relations(done, names):
    """[(relation, link, ratio)] of those of which both sides are among the cases"""
    return [(relation, link, relation.ratio(done, link)) for relation in RELATIONS
            for link in names if relation.asked_for(done, link)]


def relation_cells(rows, names):
    """Rows by RELATIONS_HEAD"""
    return [[relation.name, names[link], show(ratio),
             verdict(ratio, relation.bar, relation.less_is_better)]
            for relation, link, ratio in rows]
