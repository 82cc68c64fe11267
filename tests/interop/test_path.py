# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""`make path` can follow messages between two guests."""

import pytest

from lab import timeline, verbs
from lab.link import FULL, Link, qhca_links

# Each kind of link has steps of its own; without FULL=1 it is the one that other tests have less.
WIRES = sorted({link.wire for link in qhca_links()} | {"shm"}) if FULL else ["shm"]
CASES = [("ib_write_lat", 65536), ("ib_send_lat", 8), ("ib_read_lat", 4096)]


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("program, size", CASES if FULL else CASES[:1])
def test_messages(pairs, wire, program, size):
    link = Link(("qhca", "qhca"), wire=wire)
    pair = pairs.get(*link.kinds, **link.options)
    with timeline.recorded(*pair) as marks:
        verbs.perftest(*pair, program, f"-s {size} -n 100")
    messages = timeline.follow_all(*marks)
    # Those that the device finds without a doorbell are not among them.
    assert len(messages) >= 50
    for message in messages:
        order = [message[step].ns for step in ("doorbell", "engine", "first out", "first in")
                 if step in message]
        assert order == sorted(order) and len(order) >= 3
        assert timeline.goal(message).ns >= message["last in"].ns
    assert any("wake" in m if wire == "shm" else "flush" in m for m in messages)
