# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Memory on demand: what a page that is not there costs a WRITE, beside one that
was prefetched and one that is pinned (guest/programs/paging/fault.c, case cost)."""

import re
from dataclasses import dataclass, field

from lab import verbs
from lab.guest import GuestError

KERNEL = "backports"        # the guest's own has no memory on demand in Soft-RoCE

# Bytes of a page, and of each WRITE; rounds over 64 pages of 4 KiB or 8 of 2 MiB.
ROUNDS = {4096: 8, 2 << 20: 12}
HUGE_PAGES = 8
MODES = {"cold": "write to a page not there", "advised": "write to a page prefetched",
         "pinned": "write to a page pinned", "advice": "prefetch of a page"}
PREFETCHED = ("advised", "advice")      # there are none where prefetch is refused
QUANTILES = {"median": "median", "p99": "99%"}


@dataclass
class Costs:
    """What one of them measured: {(mode, quantile): us}; and the error with which
    it refuses to prefetch, or None if it does not."""
    us: dict = field(default_factory=dict)
    refusal: str = None


def measure(server, client, size):
    """Costs between two ports. Soft-RoCE may refuse to prefetch."""
    server.exec(f"echo {HUGE_PAGES} > /proc/sys/vm/nr_hugepages")
    text, refusal = "", None
    for mode in ("cold", "advised", "pinned"):
        options = f"-c cost -z {size} -n {ROUNDS[size]} -m {mode}"
        may_refuse = server.kind == "rxe" and mode in PREFETCHED
        run = verbs.program(server, client, "qhca-fault", options, options, timeout=300,
                            check=not may_refuse)
        if run.server.ok and run.client.ok:
            text += run.server.out + run.client.out
        else:
            refusal = refused(run)
    return parse(text, size, refusal)


def refused(run):
    """The error of the server's ibv_advise_mr(), in words; GuestError if it was another."""
    found = re.search(r"^ibv_advise_mr: (.+)$", run.server.err, re.M)
    if run.server.ok or not found:
        raise GuestError(f"{run.client}\n{run.server}")
    return found[1]


def parse(text, size, refusal=None):
    """The numbers of the program's lines, which there must be of all modes that are
    not refused."""
    values = {}
    for line in re.findall(r"^cost (.*)$", text, re.M):
        row = dict(re.findall(r"(\w+)=(\S+)", line))
        if int(row["size"]) != size:
            raise ValueError(f"asked for {size} bytes, got {line}")
        for quantile in QUANTILES:
            values[row["mode"], quantile] = float(row[quantile])
    missing = {(m, q) for m in MODES if not (refusal and m in PREFETCHED)
               for q in QUANTILES} - set(values)
    if missing:
        raise ValueError(f"no {sorted(missing)} in {text}")
    return Costs(values, refusal)


def summary(size, qhca, rxe):
    """The entries of build/bench.json for both's Costs, of which one may be None for
    a measurement that failed. What Soft-RoCE refuses has a `refusal`."""
    rows = []
    for mode, label in MODES.items():
        for quantile, shown in QUANTILES.items():
            q, r = (costs and costs.us.get((mode, quantile)) for costs in (qhca, rxe))
            row = {"test": f"on demand: {label}, {shown}", "size": size, "unit": "us",
                   "qhca": q, "rxe": r, "ratio": q / r if q is not None and r else None}
            if rxe and rxe.refusal and mode in PREFETCHED:
                row["refusal"] = rxe.refusal
            rows.append(row)
    return rows


def failed(row):
    """Is a number missing that nobody has refused?"""
    return row["qhca"] is None or (row["rxe"] is None and "refusal" not in row)
