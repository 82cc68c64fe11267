# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What queue pairs at rest cost the host: next to no processor time, over either kind of link."""

import contextlib
import os
import statistics
import time

import pytest

from lab import verbs
from lab.link import qhca_links

pytestmark = pytest.mark.full

QUEUES = 1000
# Windows with queue pairs and windows without alternate, so that what else a guest does in the
# minutes after its boot is in both.
ROUNDS, SECONDS, SETTLE = 5, 8, 2
MOST = 0.01         # of a processor
TICKS = os.sysconf("SC_CLK_TCK")


@pytest.fixture(params=qhca_links(), ids=lambda link: link.id)
def link(request):
    return request.param


def ticks(node):
    """{thread of QEMU: the processor time that it has had}"""
    folder = f"/proc/{node.child.pid}/task"
    found = {}
    for task in os.listdir(folder):
        with contextlib.suppress(FileNotFoundError):
            with open(f"{folder}/{task}/stat", encoding="ascii", errors="replace") as f:
                name, fields = f.read().split(" (", 1)[1].rsplit(") ", 1)
                fields = fields.split()
                found[f"{name} {task}"] = int(fields[11]) + int(fields[12])
    return found


def shares(nodes):
    """[{thread: its share of a processor}] of the QEMU of each guest, in the same seconds"""
    time.sleep(SETTLE)
    before, start = [ticks(node) for node in nodes], time.monotonic()
    time.sleep(SECONDS)
    after, took = [ticks(node) for node in nodes], time.monotonic() - start
    return [{thread: (value - old.get(thread, 0)) / TICKS / took for thread, value in new.items()}
            for old, new in zip(before, after)]


@contextlib.contextmanager
def idle_queues(server, client, number):
    """Within this context both guests have so many connected QPs that have carried data, in
    processes that do nothing: the server's waits for the client, which is stopped."""
    kept = "/tmp/idle"
    commands = verbs.program_commands("qhca-queues", f"-n {number} -k {kept}", f"-n {number}")
    with verbs.Flow(server, client, commands) as flow:
        client.wait_until(f"[ -e {kept} ]", timeout=180)
        flow.sides[1].kill("STOP")
        yield
        assert flow.runs()
        flow.sides[1].kill("CONT")
        client.exec(f"rm {kept}")
        flow.end()


def test_queues_at_rest(ends):
    """A guest with a thousand idle QPs takes at most a hundredth of a processor more than the
    same guest without them."""
    without, having = [], []
    for _ in range(ROUNDS):
        without.append(shares(ends))
        with idle_queues(*ends, QUEUES):
            having.append(shares(ends))
    for n, node in enumerate(ends):
        bare, loaded = ([sum(window[n].values()) for window in windows]
                        for windows in (without, having))
        more = statistics.median(loaded) - statistics.median(bare)
        text = (f"{node.name}: {100 * statistics.median(bare):.2f} % of a processor "
                f"({100 * min(bare):.2f} to {100 * max(bare):.2f}) without, "
                f"{100 * statistics.median(loaded):.2f} % ({100 * min(loaded):.2f} to "
                f"{100 * max(loaded):.2f}) with {QUEUES} idle QPs: {100 * more:+.2f} %")
        print(text)
        assert more < MOST, (text, having[-1][n])
