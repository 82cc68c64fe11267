# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The measure of instructions for a packet: what it counts, and how it is shown."""

import json
import re
import subprocess

import pytest

from bench import packets
from lab import paths

PROGRAM = paths.BUILD / "tests" / "sim" / "packets"


def program(*argv):
    return subprocess.run([PROGRAM, *argv], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, timeout=60, check=False)


@pytest.mark.parametrize("kind", packets.KINDS)
@pytest.mark.parametrize("size", packets.SIZES)
def test_each_message_is_a_packet(kind, size):
    done = program(kind, str(size), "640")
    assert done.returncode == 0, done.stderr
    sent = re.fullmatch(r"640 messages: (\d+) packets of the requester, (\d+) of the responder\n",
                        done.stdout)
    assert int(sent[1]) == 640
    # A response for each READ, and a few ACKs for the others.
    assert int(sent[2]) == 640 if kind.startswith("READ") else 0 < int(sent[2]) <= 160


@pytest.mark.parametrize("argv", [
    (), ("WRITE",), ("WRITE", "8"), ("WRITE", "8", "1", "1", "1"), ("WRITE", "8", "1", "0"),
    ("WRITE", "8", "1", "129"), ("write", "8", "1"), ("", "8", "1"), ("WRITE-", "8", "1"),
    ("WRITE-vfs-shm", "8", "1"), ("WRITE-shmx", "8", "1"),
    ("WRITE", "0", "1"), ("WRITE", "4097", "1"), ("WRITE", "-8", "1"), ("WRITE", "8x", "1"),
    ("WRITE", "", "1"), ("WRITE", " 8", "1"), ("WRITE", "8", "0"), ("WRITE", "8", "1000001"),
    ("WRITE", "8", "99999999999999999999"), ("WRITE", "8", "+1")], ids=str)
def test_bad_arguments(argv):
    done = program(*argv)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("usage: packets ")


@pytest.mark.parametrize("side", packets.SIDES)
def test_counts(side):
    """They are the same in each run, and twice as many messages cost twice as much."""
    costs = [packets.engine_cost(packets.run(PROGRAM, "WRITE", 4096, n, side))
             for n in (1280, 1280, 2560, 3840)]
    assert costs[0] == costs[1]
    first, second = costs[2] - costs[1], costs[3] - costs[2]
    assert first > 1280 * 100
    assert abs(second - first) < first / 100


def test_payload_costs():
    few, many = (packets.per_message(PROGRAM, "WRITE", size, "responder") for size in (8, 4096))
    assert many > few


@pytest.mark.parametrize("side", packets.SIDES)
def test_many_gids(side):
    """A packet costs the same, however many GIDs with MAC addresses of their own there are."""
    few, many = (packets.per_message(PROGRAM, "WRITE", 8, side, gids=gids) for gids in (1, 128))
    assert abs(many - few) <= few / 100


def test_failed_program():
    with pytest.raises(packets.Bad, match=r"packets WRITE 5000 1 ends with 2:\nusage"):
        packets.run(PROGRAM, "WRITE", 5000, 1, "requester")


PROFILE = """fn=hca_run
10 7
cfn=tx_reserve
calls=2 105
263 200
cfn=hca_other
calls=1 5
12 31
fn=hca_other
cfn=tx_commit
calls=1 99
7 50
fn=tx_commit
99 45
cfn=on_tx
calls=1 8
100 5

totals: 300
"""


def test_host_is_left_out():
    assert packets.engine_cost(PROFILE) == 50


@pytest.mark.parametrize("old, new, sentence", [
    ("totals", "nothing", "no total"),
    ("tx_commit", "commit_tx", "has not called tx_commit of its host"),
])
def test_strange_profile(old, new, sentence):
    """A call of the host's that got another name is noticed, not counted as the engine's."""
    with pytest.raises(packets.Bad, match=sentence):
        packets.engine_cost(PROFILE.replace(old, new))


def test_recorded_values_are_complete():
    compiler, rows = packets.recorded()
    assert compiler
    assert [(row["kind"], row["size"]) for row in rows] == \
        [(kind, size) for kind in packets.KINDS for size in packets.SIZES]
    assert all(row[side] > 0 for row in rows for side in packets.SIDES)


def test_table(tmp_path):
    """Values beside those that were recorded, of which some may be missing."""
    rows = [{"kind": "WRITE", "size": 8, "requester": 900, "responder": 220},
            {"kind": "SEND", "size": 8, "requester": 100, "responder": 200}]
    packets.record([{**rows[0], "requester": 1000, "responder": 200}], tmp_path / "old.json")
    by, before = packets.recorded(tmp_path / "old.json")
    assert by == packets.compiler()
    assert packets.table(rows, before) == [
        ["WRITE", 8, 900, 1000, "-10.0%", 220, 200, "+10.0%"],
        ["SEND", 8, 100, "", "", 200, "", ""]]
    assert json.loads((tmp_path / "old.json").read_text())["rows"] == before
