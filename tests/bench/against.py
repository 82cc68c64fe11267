# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Builds of several trees by turns, each beside Soft-RoCE in its own two guests.

All guests are up at once, and those of one build at a time run: the others' processors
are stopped. So every build meets the same machine, and in each round each case is
measured within seconds for all of them.
"""

import contextlib
import pathlib
import statistics
from dataclasses import dataclass

KINDS = ("qhca", "rxe")


@dataclass(frozen=True)
class Entrant:
    """A build of the device, its drivers and its provider, and what is special about it."""
    name: str
    build: pathlib.Path = None      # of scripts/against.sh; None: this checkout's
    functions: int = 0              # idle virtual functions

    @property
    def options(self):
        """The arguments of Pair that select the build."""
        return {"build": self.build} if self.build else {}


def entrants(folder, functions):
    """Those of make bench AGAINST=..., the older tree first."""
    folder = pathlib.Path(folder)
    found = [Entrant(folder.name, folder / "build"), Entrant("this tree")]
    if functions:
        found.append(Entrant(f"with {functions} idle VFs", functions=functions))
    return found


def order(number, names):
    """The names in the order of a round. Each is first in turn, as what comes first may
    find the machine in another state than what comes later."""
    names = list(names)
    turn = number % len(names)
    return names[turn:] + names[:turn]


@contextlib.contextmanager
def alone(pair):
    """The guests of this pair run within the context, and stand still outside."""
    for node in pair:
        node.qmp("cont")
    try:
        yield pair
    finally:
        for node in pair:
            if node.running:
                node.qmp("stop")


def spread(values):
    """(median, least, greatest) of those that were measured, or None"""
    values = [v for v in values if v is not None]
    return (statistics.median(values), min(values), max(values)) if values else None


def beside(values, others):
    """The spread of the ratios of two lists, round by round."""
    return spread([v / o if v is not None and o else None for v, o in zip(values, others)])


def verdict(case, ratios):
    """What the rounds say of a build beside the first one: their ratios agree that it is
    faster or slower, or they do not."""
    if ratios is None:
        return ""
    _, least, greatest = ratios
    if least <= 1 <= greatest:
        return "within noise"
    less = greatest < 1
    return "faster" if less == (case.unit == "us") else "slower"


def summary(case, values):
    """Entries of build/bench-against.json, one for each entrant.

    values is {entrant's name: {kind: one number for each round, None if it failed}}, and
    the first entrant is what the others are compared with.
    """
    first = next(iter(values.values()))
    rows = []
    for name, of in values.items():
        spreads = {kind: spread(of[kind]) for kind in KINDS}
        row = {"test": case.test, "size": case.size, "unit": case.unit, "tree": name,
               **{kind: of[kind] for kind in KINDS},
               **{f"{kind} spread": spreads[kind] for kind in KINDS},
               "ratio": spreads["qhca"][0] / spreads["rxe"][0] if all(spreads.values()) else None}
        if of is not first:
            row.update({f"{kind} beside": beside(of[kind], first[kind]) for kind in KINDS})
            row["verdict"] = verdict(case, row["qhca beside"])
        rows.append(row)
    return rows


def failed(row):
    """How many of its measurements failed?"""
    return sum(value is None for kind in KINDS for value in row[kind])


HEAD = ["test", "size", "unit", "tree", "qhca", "rxe", "qhca / rxe", "qhca beside the first",
        "rxe beside the first", ""]


def show(spread_of):
    """A median and its range"""
    if spread_of is None:
        return "FAILED"
    return "{:.4g} ({:.4g} to {:.4g})".format(*spread_of)


def cells(row):
    """The row of the table, by HEAD"""
    return [row["test"], row["size"], row["unit"], row["tree"],
            *(show(row[f"{kind} spread"]) for kind in KINDS),
            "FAILED" if row["ratio"] is None else f"{row['ratio']:.4g}",
            *(show(row[f"{kind} beside"]) if f"{kind} beside" in row else "" for kind in KINDS),
            row.get("verdict", "")]
