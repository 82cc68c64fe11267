# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Memory on demand: what a page that is not there costs a WRITE, beside one that
was prefetched and one that is pinned (guest/programs/fault.c, case cost)."""

import re

from lab import verbs
from lab.guest import GuestError

KERNEL = "backports"        # the guest's own has no memory on demand in Soft-RoCE

# Bytes of a page, and of each WRITE; rounds over 64 pages of 4 KiB or 8 of 2 MiB.
ROUNDS = {4096: 8, 2 << 20: 12}
HUGE_PAGES = 8
MODES = {"cold": "write to a page not there", "advised": "write to a page prefetched",
         "pinned": "write to a page pinned", "advice": "prefetch of a page"}
QUANTILES = {"median": "median", "p99": "99%"}


def measure(server, client, size):
    """{(mode, quantile): us} between two ports"""
    server.exec(f"echo {HUGE_PAGES} > /proc/sys/vm/nr_hugepages")
    text = ""
    for mode in ("cold", "advised", "pinned"):
        options = f"-c cost -z {size} -n {ROUNDS[size]} -m {mode}"
        try:
            run = verbs.program(server, client, "qhca-fault", options, options, timeout=300)
        except GuestError:
            # Soft-RoCE refuses advice, with an errno of its own for it.
            if server.kind != "rxe" or mode != "advised":
                raise
            continue
        text += run.server.out + run.client.out
    return parse(text, size, may_lack=("advised", "advice") if server.kind == "rxe" else ())


def parse(text, size, may_lack=()):
    """The numbers of the program's lines, which there must be of all other modes."""
    values = {}
    for line in re.findall(r"^cost (.*)$", text, re.M):
        row = dict(re.findall(r"(\w+)=(\S+)", line))
        if int(row["size"]) != size:
            raise ValueError(f"asked for {size} bytes, got {line}")
        for quantile in QUANTILES:
            values[row["mode"], quantile] = float(row[quantile])
    missing = {(m, q) for m in MODES if m not in may_lack for q in QUANTILES} - set(values)
    if missing:
        raise ValueError(f"no {sorted(missing)} in {text}")
    return values


def summary(size, qhca, rxe):
    """The entries of build/bench.json for both's numbers, of which one may be None."""
    rows = []
    for mode, label in MODES.items():
        for quantile, shown in QUANTILES.items():
            q, r = (v and v.get((mode, quantile)) for v in (qhca, rxe))
            rows.append({"test": f"on demand: {label}, {shown}", "size": size, "unit": "us",
                         "qhca": q, "rxe": r,
                         "ratio": q / r if q is not None and r else None})
    return rows
