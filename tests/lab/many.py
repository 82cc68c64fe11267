# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""`make run` with three and more guests: rings and all-to-all traffic through the switch."""

import math

from . import verbs

# Messages of each flow of ib_write_bw; perftest posts at most so many at a time.
WRITES, DEPTH = 200, 64


def ring_of_pingpongs(group, iterations=200):
    """Each guest and its successor at once; [us an iteration of each]."""
    runs = verbs.together(group.ring(), verbs.pingpong_commands("rc", f"-n {iterations}"))
    return [verbs.pingpong_us(run) for run in runs]


def all_to_all_writes(group, size=65536, count=WRITES):
    """ib_write_bw from each guest to each other, as many flows at a time as there are
    guests; [MiB/s of all flows of a round]. perftest at times fails to measure its clock
    (verbs.NO_CLOCK), and such a flow does not count."""
    sums = []
    for distance in range(1, len(group)):
        runs = verbs.together(group.round(distance), verbs.perftest_commands(
            "ib_write_bw", f"-s {size} -n {count} -t {DEPTH}"))
        flows = [verbs.table(run.client.out)[0]["bw"] for run in runs]
        sums.append(sum(flow for flow in flows if 0 < flow < math.inf))
    return sums


def all_to_all_verified(group, options="", seed=1):
    """Data whose every byte is checked, from each guest to each other and back; the
    number of flows."""
    flows = 0
    for distance in range(1, len(group)):
        flows += len(verbs.together(group.round(distance), verbs.program_commands(
            "qhca-verify", f"{options} -s {seed + distance}"), timeout=300))
    return flows


def run_steps(group):
    """(name, label, function that returns [result, unit]) of what `make run` does."""
    def ring():
        us = ring_of_pingpongs(group)
        return [f"{min(us):.1f} to {max(us):.1f}", "us/iteration"]

    def writes(size):
        def step():
            sums = all_to_all_writes(group, size)
            return [f"{min(sums):.1f} to {max(sums):.1f}", "MiB/s, all flows"]
        return step

    def verified():
        return [str(all_to_all_verified(group, "-t rc -m 4096 -n 10")), "flows, all correct"]

    yield "ring of ibv_rc_pingpong", "4096 B", ring
    yield "all-to-all ib_write_bw", "64 KiB", writes(65536)
    yield "all-to-all ib_write_bw", "4 KiB", writes(4096)
    yield "all-to-all qhca-verify", "up to 64 KiB", verified


def port_rows(switch):
    """Rows of a table: what went through each port of the switch."""
    names = ("rx_frames", "rx_bytes", "tx_frames", "tx_bytes", "rx_flooded", "tx_queue_full")
    rows = [[port["name"], *(port["counters"][name] for name in names)]
            for port in switch.control("ports")]
    return ["port", *names], rows
