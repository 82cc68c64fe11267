# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Guests' clocks: timers of theirs are set beside those of devices and hosts."""

import time

import pytest


@pytest.mark.parametrize("end", [0, 1])
def test_clock(qhca_pair, end):
    """It runs as fast as the host's, however busy that was as it was calibrated."""
    def read():
        """(before, the guest's clock, after), in s"""
        before = time.monotonic()
        seconds = float(node.out("cut -d ' ' -f 1 /proc/uptime"))
        return before, seconds, time.monotonic()

    node = qhca_pair.nodes[end]
    first = read()
    time.sleep(1)
    last = read()
    tick = 0.02         # of what is shown
    assert last[1] - first[1] + tick >= 0.95 * (last[0] - first[2])
    assert last[1] - first[1] - tick <= 1.05 * (last[2] - first[0])
