# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What the simulator prints of a seed with -v shows whether a change changes anything."""

import re
import subprocess

from lab import paths


def verbose(seed):
    done = subprocess.run([paths.BUILD / "tests" / "sim" / "sim", "--seed", str(seed), "-v"],
                          stdout=subprocess.PIPE, text=True, timeout=600, check=True)
    digest = re.findall(r"^# digest ([0-9a-f]{16}) of trace and frames$", done.stdout, re.M)
    counters = {(host, name): int(value) for host, name, value in re.findall(
        r"^# counter host (\d) function 0 (\w+) (\d+)$", done.stdout, re.M)}
    assert len(digest) == 1
    return done.stdout, digest[0], counters


def test_repeats():
    assert verbose(3) == verbose(3)


def test_digest_is_the_seeds():
    digests = {verbose(seed)[1] for seed in (3, 4, 5)}
    assert len(digests) == 3


def test_counters():
    """All that are not zero, of both hosts: here frames that the simulator counts, too."""
    text, _, counters = verbose(3)
    frames = int(re.search(r", (\d+) frames, ", text)[1])
    assert counters["1", "tx_packets"] + counters["2", "tx_packets"] == frames
    assert counters["1", "commands"] and counters["2", "pt_misses"]
    assert 0 not in counters.values()
