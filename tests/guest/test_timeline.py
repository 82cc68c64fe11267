# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""How `make path` follows messages through the timelines of two devices; without a guest."""

import pytest

from lab import timeline


def lines(*marks):
    """A timeline: each mark is "us who what", and for a packet its opcode and PSN."""
    text = []
    for mark in marks:
        us, who, what, *packet = mark.split()
        b = int(packet[0], 16) << 24 | int(packet[1]) if packet else 0
        text.append(f"{int(us) * 1000} {who} {what} 7 {b}\n")
    return "".join(text)


WRITE = (
    lines("100 v doorbell", "101 v enter", "102 v tx 06 10", "103 v tx 07 11", "104 d tx 08 12",
          "105 d wake", "120 d awake", "121 d rx 11 12", "122 d placed", "123 d cqe"),
    lines("90 d sleep", "108 d awake", "109 d rx 06 10", "110 d placed", "111 d rx 07 11",
          "112 d placed", "113 d rx 08 12", "114 d placed", "115 d tx 11 12", "116 d wake"),
)
READ = (
    lines("200 v doorbell", "201 v enter", "202 v tx 0c 20", "220 d awake", "221 d rx 0d 20",
          "222 d placed", "223 d rx 0f 21", "224 d placed", "225 d cqe"),
    lines("208 d awake", "209 d rx 0c 20", "210 d placed", "211 d tx 0d 20", "212 d tx 0f 21"),
)


def followed(a, b):
    """{step: us after the doorbell} of the only message."""
    (message,) = timeline.follow_all(timeline.parse(a), timeline.parse(b))
    return {step: (mark.ns - message["doorbell"].ns) // 1000 for step, mark in message.items()}


@pytest.mark.parametrize("turned", [False, True])
def test_write(turned):
    found = followed(*(WRITE[::-1] if turned else WRITE))
    assert found == {"doorbell": 0, "engine": 1, "first out": 2, "last out": 4, "wake": 5, "awake": 8,
                     "first in": 9, "last in": 13, "placed": 14, "answer out": 15,
                     "answer awake": 20, "answer in": 21, "cqe": 23}


def test_read():
    """A READ's data is at its goal with the last response."""
    found = followed(*READ)
    assert found["read placed"] == 24 and found["cqe"] == 25
    assert found["answer in"] == 23 and found["answer out"] == 11 and "placed" not in found


def test_without_doorbell():
    """A message that the device found by itself has no beginning, and is left out."""
    a, b = WRITE
    a = "\n".join(line for line in a.splitlines() if "doorbell" not in line)
    assert timeline.follow_all(timeline.parse(a), timeline.parse(b)) == []


def test_lost():
    """One that the peer has not received is left out, and the next one is not."""
    a, b = WRITE
    later = lines("300 v doorbell", "301 v enter", "302 v tx 0a 13")
    gone = "\n".join(line for line in b.splitlines() if " rx " not in line)
    arrived = lines("310 d rx 0a 13", "311 d placed")
    assert timeline.follow_all(timeline.parse(a + later), timeline.parse(gone)) == []
    assert followed(a + later, gone + "\n" + arrived)["placed"] == 11


def test_order_of_lines():
    """Threads may have noted marks in another order than that of their times."""
    a, b = WRITE
    assert followed("\n".join(reversed(a.splitlines())), b) == followed(a, b)


def several(times):
    """Messages, each of which is placed so many microseconds after its doorbell."""
    return [{"doorbell": timeline.Mark(0, "v", "doorbell", 0, 0),
             "placed": timeline.Mark(us * 1000, "d" if us < 500 else "m", "placed", 0, 0)}
            for us in times]


def test_table():
    rows = timeline.table(several([*range(1, 100), 1000]))
    assert rows[0] == ["the doorbell reaches the device", "sender", "vCPU", "0.0", "0.0"]
    assert rows[1][:3] == ["all of it is in memory", "receiver", "device's thread"]
    assert 48 < float(rows[1][3]) < 53 and rows[1][4] == "1000.0"


def test_rare_steps():
    """A step of a part of the messages says so, and one that hardly any has is left out."""
    messages = several(range(1, 101))
    for message in messages[:50]:
        message["wake"] = timeline.Mark(500, "v", "wake", 0, 0)
    messages[0]["flush"] = messages[0]["doorbell"]
    shares = {row.what: row.share for row in timeline.average(messages)}
    assert shares["the peer is woken"] == 0.5
    assert "it goes to the netdev" not in shares
