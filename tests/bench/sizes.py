# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Bandwidth and latency by the size of the messages: what is measured, and the picture."""

from . import Case

CASES = [Case("write bandwidth by size", "ib_write_bw", size, "bw", "MiB/s")
         for size in (64, 256, 1024, 4096, 16384, 65536, 262144, 1048576)] + \
        [Case("write latency by size", "ib_write_lat", size, "t_avg", "us")
         for size in (8, 64, 512, 4096, 32768)]

PANELS = [("write bandwidth by size", "Bandwidth: more is better", "MiB/s"),
          ("write latency by size", "Latency: less is better", "us")]


def curves(rows, test):
    """[(label, sizes, values)] of both kinds of device, without what failed"""
    mine = sorted((row for row in rows if row["test"] == test), key=lambda row: row["size"])
    found = []
    for label, kind in (("qhca", "qhca"), ("Soft-RoCE", "rxe")):
        points = [(row["size"], row[kind]) for row in mine if row[kind] is not None]
        found.append((label, *map(list, zip(*points))) if points else (label, [], []))
    return found


def draw(rows, out):
    """bench.svg and bench.png, of the entries of bench.json"""
    # Only who draws needs python3-matplotlib.
    from lab.figure import Plots  # pylint: disable=import-outside-toplevel
    Plots(out).draw_beside("bench", [(title, "bytes of a WRITE", unit, curves(rows, test))
                                     for test, title, unit in PANELS])
