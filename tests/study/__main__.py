# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""`make study`: boots a guest, measures, writes tables, plots and the page."""

import argparse
import json
import os
import pathlib
import sys
import time

from lab import GuestError, paths
from lab.__main__ import how, say
from lab.ending import ended
from lab.pair import Node

from . import PROPS, Bench, differences, measure, neighbour, oracle, report


def boot(kernel):
    release = paths.kernel_release(kernel)
    say(f"booting a guest with kernel {release} under {how()}")
    # The device's link leads nowhere: all accesses are over its loopback.
    node = Node("a", "qhca", 1, netdevs=["hubport,hubid=0"], kernel=kernel, props=PROPS).boot()
    node.exec("echo 16 > /proc/sys/vm/nr_hugepages")
    return node


def compare(rows, path):
    """Says how these counts differ from an earlier run's; whether they do."""
    found, same = differences(rows, json.loads(path.read_text()))
    for question, unequal in found:
        print(f"  {question}: {unequal}", file=sys.stderr)
    say(f"{same - len(found)} of {same} measurements have the counts of {path.name}")
    return bool(found) or not same


def ask_oracle(rows, out):
    """Says how these counts differ from those of the model; whether they do."""
    found, compared = oracle.differences(rows, oracle.predictions(out))
    for sentence in found:
        print(f"  {sentence}", file=sys.stderr)
    say(f"{compared} measurements compared with the model of the caches: "
        + (f"{len(found)} differences" if found else "all counts are equal"))
    return bool(found)


def beside_neighbours(rows, out):
    """Adds the simulator's measurements; whether their counts differ from the model's."""
    say("a function beside one that thrashes the caches")
    measured, found = neighbour.measure(out / "sim")
    for sentence in found:
        print(f"  {sentence}", file=sys.stderr)
    rows += measured
    return bool(found)


def main():
    parser = argparse.ArgumentParser(prog="study", description=__doc__)
    parser.add_argument("--out", type=pathlib.Path, default=paths.BUILD / "study")
    parser.add_argument("--kernel", default="default")
    parser.add_argument("--compare", type=pathlib.Path, metavar="study.json",
                        help="an earlier run's, whose counts must be the same")
    parser.add_argument("--draw-only", action="store_true",
                        help="tables, plots and page of what was measured before")
    options = parser.parse_args()
    if options.draw_only:
        rows = json.loads((options.out / "study.json").read_text())
        report.write(rows, options.out, "earlier")
        return 0
    began = time.monotonic()
    node = boot(options.kernel)
    try:
        rows = measure(Bench(node), say)
        complaints = node.kernel_complaints()
    finally:
        node.close()
    if complaints:
        raise GuestError(f"the guest's kernel complains: {complaints}")
    where = (f"in a guest with kernel {paths.kernel_release(options.kernel)} under {how()}, "
             f"in {time.monotonic() - began:.0f} seconds")
    wrong = beside_neighbours(rows, options.out)
    different = options.compare is not None and compare(rows, options.compare)
    report.write(rows, options.out, where)
    wrong = ask_oracle(rows, options.out) or wrong
    say(f"{len(rows)} measurements; the page is {os.path.relpath(options.out)}/study.md")
    return 1 if different or wrong else 0


if __name__ == "__main__":
    sys.exit(ended("study", main))
