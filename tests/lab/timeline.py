# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The way of a message from the doorbell to the peer's memory, with times: `make path`.

The device's property timeline records a mark for each step, with a clock that both QEMUs
share (qemu-hca/qemu/qhca-timeline.c). The messages of one pair of queue pairs are found in
the timelines of both ends by their PSNs, and their steps are averaged: for a typical message,
over the tenth of all messages in the middle, by how long they take to the peer's memory; for
the worst hundredth, over those.
"""

import bisect
import collections
import contextlib
import itertools
import pathlib
import tempfile
from dataclasses import dataclass

# Opcodes of RC, by what they mean here: the first and the last packets of a request.
READ_REQUEST, ACK = 0x0C, 0x11
FIRST = {0x00, 0x04, 0x05, 0x06, 0x0A, 0x0B, READ_REQUEST}
LAST = {0x02, 0x03, 0x04, 0x05, 0x08, 0x09, 0x0A, 0x0B, READ_REQUEST}
FIRST_RESPONSE, LAST_RESPONSE = {0x0D, 0x10}, {0x0F, 0x10}

WHO = {"v": "vCPU", "d": "device's thread", "m": "main loop"}

# A message whose steps lie further apart is not one message: packets were lost between.
LONGEST = 1_000_000_000


@dataclass(frozen=True)
class Mark:
    """A line of a timeline."""
    ns: int
    who: str
    what: str
    a: int
    b: int

    @property
    def opcode(self):
        return self.b >> 24

    @property
    def psn(self):
        return self.b & 0xFFFFFF


def parse(text):
    """The marks of a timeline, in order of time: threads may have noted them in another."""
    marks = []
    for line in text.splitlines():
        ns, who, what, a, b = line.split()
        marks.append(Mark(int(ns), who, what, int(a), int(b)))
    return sorted(marks, key=lambda mark: mark.ns)


class End:
    """The timeline of one device, to look things up in."""

    def __init__(self, marks):
        self.marks = marks
        self.by_what = collections.defaultdict(list)
        self.packets = {}
        for mark in marks:
            self.by_what[mark.what].append(mark)
            if mark.what in ("tx", "rx"):
                # The first of several: what is sent again has gone another way.
                self.packets.setdefault((mark.what, mark.opcode, mark.psn), mark)
        self.times = {what: [m.ns for m in found] for what, found in self.by_what.items()}

    def after(self, what, ns):
        """The first mark of a kind at or after a time; None: there is none."""
        at = bisect.bisect_left(self.times.get(what, ()), ns)
        return self.by_what[what][at] if at < len(self.times.get(what, ())) else None

    def before(self, what, ns):
        """The last mark of a kind at or before a time; None: there is none."""
        at = bisect.bisect_right(self.times.get(what, ()), ns)
        return self.by_what[what][at - 1] if at else None

    def between(self, what, first, last):
        """The first mark of a kind at or after one mark and before another; None: none."""
        found = first and last and self.after(what, first.ns)
        return found if found and found.ns <= last.ns else None


def requests(end):
    """[(doorbell, first packet, last packet)] of the messages that an end has sent, each
    after a doorbell of its own."""
    found, doorbell, first = [], None, None
    for mark in end.marks:
        if mark.what == "doorbell":
            doorbell = mark
        elif mark.what == "tx" and mark.opcode in FIRST | LAST:
            if mark.opcode in FIRST:
                first = mark
            if mark.opcode in LAST and first and doorbell:
                found.append((doorbell, first, mark))
            if mark.opcode in LAST:
                first = doorbell = None
    return found


def _answer(end, first, last):
    """The first packet of an end's that answers a request: an ACK, or a READ's responses."""
    if first.opcode != READ_REQUEST:
        return end.packets.get(("tx", ACK, last.psn))
    return next((end.packets[key] for opcode in FIRST_RESPONSE
                 if (key := ("tx", opcode, first.psn)) in end.packets), None)


def _last_response(end, what, opening):
    """The last packet of a READ's responses that begin with an opening one."""
    if not opening:
        return None
    at = bisect.bisect_left(end.times[what], opening.ns)
    return next((m for m in itertools.islice(end.by_what[what], at, None)
                 if m.opcode in LAST_RESPONSE), None)


def follow(sender, receiver, doorbell, first, last):
    """{step: mark} of one message, in the order of STEPS; None: it cannot be followed."""
    steps = {"doorbell": doorbell, "engine": sender.between("enter", doorbell, first),
             "first out": first, "last out": last}
    steps["first in"] = receiver.packets.get(("rx", first.opcode, first.psn))
    steps["last in"] = receiver.packets.get(("rx", last.opcode, last.psn))
    if not steps["first in"] or not steps["last in"]:
        return None
    steps["wake"] = sender.between("wake", first, steps["first in"])
    steps["flush"] = sender.between("flush", first, steps["first in"])
    steps["awake"] = receiver.between("awake", first, steps["first in"])
    steps["got"] = receiver.between("got", first, steps["first in"])
    steps["placed"] = receiver.after("placed", steps["last in"].ns)
    answer = steps["answer out"] = _answer(receiver, first, last)
    ack = answer and sender.packets.get(("rx", answer.opcode, answer.psn))
    if first.opcode == READ_REQUEST:
        steps["placed"] = None
        ack = _last_response(sender, "rx", ack)
        steps["read placed"] = ack and sender.after("placed", ack.ns)
    steps["answer awake"] = answer and ack and sender.between("awake", answer, ack)
    steps["answer in"] = ack
    steps["cqe"] = ack and sender.after("cqe", ack.ns)
    return {step: steps[step] for step, *_ in STEPS if steps.get(step)}


# (key, end, what happens there), in order.
STEPS = [
    ("doorbell", "sender", "the doorbell reaches the device"),
    ("engine", "sender", "it has the engine"),
    ("first out", "sender", "the first packet is built"),
    ("wake", "sender", "the peer is woken"),
    ("flush", "sender", "it goes to the netdev"),
    ("awake", "receiver", "the device's thread is awake"),
    ("got", "receiver", "it comes from the netdev"),
    ("first in", "receiver", "the first packet is taken"),
    ("last out", "sender", "the last packet is built"),
    ("last in", "receiver", "the last packet is taken"),
    ("placed", "receiver", "all of it is in memory"),
    ("answer out", "receiver", "the answer is built"),
    ("answer awake", "sender", "the device's thread is awake"),
    ("answer in", "sender", "the answer is taken"),
    ("read placed", "sender", "all of it is in memory"),
    ("cqe", "sender", "the completion is written"),
]


def goal(steps):
    """The mark at which a message's data is where it belongs."""
    return steps.get("placed") or steps.get("read placed")


def follow_all(marks_a, marks_b):
    """The steps of all messages in both directions that reached their goal."""
    a, b = End(marks_a), End(marks_b)
    found = []
    for sender, receiver in ((a, b), (b, a)):
        for request in requests(sender):
            steps = follow(sender, receiver, *request)
            if steps and goal(steps) and _took(steps) < LONGEST:
                found.append(steps)
    return found


def _took(steps):
    return goal(steps).ns - steps["doorbell"].ns


@dataclass
class Row:
    """A step of several messages: when, on average, and who made it, as a rule."""
    what: str
    end: str
    who: str
    share: float            # of the messages have this step
    us: float               # after the doorbell


def average(messages):
    """The Rows of messages."""
    rows = []
    for key, end, what in STEPS:
        have = [m for m in messages if key in m]
        # What happens in a few messages is not a part of the way.
        if len(have) * 10 < len(messages) or not have:
            continue
        who = collections.Counter(m[key].who for m in have).most_common(1)[0][0]
        us = sum(m[key].ns - m["doorbell"].ns for m in have) / len(have) / 1000
        rows.append(Row(what, end, WHO[who], len(have) / len(messages), us))
    return rows


def typical(messages):
    """The tenth of the messages in the middle, by how long they take."""
    ranked = sorted(messages, key=_took)
    half = max(len(ranked) // 20, 1)
    middle = len(ranked) // 2
    return ranked[max(middle - half, 0):middle + half]


def worst(messages):
    """The hundredth that takes longest."""
    ranked = sorted(messages, key=_took)
    return ranked[-max(len(ranked) // 100, 1):]


HEAD = ["step", "where", "by", "us", "worst 1%"]


def table(messages):
    """Rows for print_table(): the typical message, beside the worst hundredth."""
    slow = {(row.what, row.end): row for row in average(worst(messages))}
    rows = []
    for row in average(typical(messages)):
        other = slow.pop((row.what, row.end), None)
        share = f" ({row.share:.0%})" if row.share < 0.995 else ""
        rows.append([row.what + share, row.end, row.who, f"{row.us:.1f}",
                     f"{other.us:.1f}" if other else "-"])
    rows += [[row.what, row.end, row.who, "-", f"{row.us:.1f}"] for row in slow.values()]
    return rows


@contextlib.contextmanager
def recorded(*nodes):
    """Within this context the first devices of the nodes record; yields a list that has
    the marks of each afterwards."""
    with tempfile.TemporaryDirectory(prefix="qhca-timeline-") as folder:
        files = [pathlib.Path(folder, str(n)) for n in range(len(nodes))]
        marks = []
        for node, file in zip(nodes, files):
            node.set_property("timeline", str(file))
        try:
            yield marks
        finally:
            for node in nodes:
                if node.running:
                    node.set_property("timeline", "")
        marks += [parse(file.read_text()) for file in files]
