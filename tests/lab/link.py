# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The links that two-guest tests run over, each with its roles."""

import os
from dataclasses import dataclass

from .pair import WIRE, WIRES

FULL = os.environ.get("FULL", "") not in ("", "0")


@dataclass(frozen=True)
class Link:
    """The kinds of the two ends of a pair, and the guest that is the server."""
    kinds: tuple
    server: int = 0
    wire: str = WIRE        # how two devices qhca are joined

    @property
    def client(self):
        return 1 - self.server

    @property
    def id(self):
        wire = "" if self.wire == "stream" or self.has_rxe else f"_{self.wire}"
        return f"{self.kinds[self.client]}_to_{self.kinds[self.server]}{wire}"

    @property
    def has_rxe(self):
        return "rxe" in self.kinds

    @property
    def options(self):
        """The arguments of Pair beside the kinds."""
        # Soft-RoCE has an ICRC of its own for FLUSH.
        own = {"rxe-flush": "on"}
        if self.has_rxe:
            return {"props": tuple(own if kind == "qhca" else None for kind in self.kinds)}
        return {"wire": self.wire} if self.wire != WIRE else {}


def wires():
    """How two devices qhca are joined in tests that have no Soft-RoCE: with FULL=1 both ways,
    else the one that LINK= names."""
    return WIRES if FULL and WIRE == "stream" and not os.environ.get("QHCA_KINDS") else (WIRE,)


def links():
    """qhca to itself, and to Soft-RoCE in both directions; with FULL=1, to itself in shared
    memory as well.

    QHCA_KINDS=rxe,rxe runs the same tests over something else; with LINK=shm, qhca meets
    itself in shared memory in all tests.
    """
    own = os.environ.get("QHCA_KINDS")
    if own:
        return [Link(tuple(own.split(",")))]
    more = [Link(("qhca", "qhca"), wire="shm")] if FULL and WIRE == "stream" else []
    return [Link(("qhca", "qhca")), *more, Link(("qhca", "rxe"), 0), Link(("qhca", "rxe"), 1)]


def qhca_links():
    """The links with the qhca device at both ends."""
    return [link for link in links() if os.environ.get("QHCA_KINDS") or not link.has_rxe]

