# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Traffic of several kinds between two guests; the programs verify it themselves.

    traffic = Traffic(pair, KINDS).start()
    traffic.wait_progress()
    ...
    for (kind, node), report in traffic.stop().items():
        assert report.sound

Programs: tests/guest/programs/traffic/traffic.c and flood.c; the kernel consumer is
tests/guest/kernel/qhca_test_load.c. All of a guest's programs are started, looked at
and stopped by one command in it, since a guest that is busy takes long for each.
"""

import re
import shlex
from dataclasses import dataclass, field

from . import paths, verbs
from .guest import GuestError, wait_for
from .script import script

FLUSHED = 5             # IBV_WC_WR_FLUSH_ERR
REMOTE_ACCESS = 10      # IBV_WC_REM_ACCESS_ERR
RETRY_EXCEEDED = 12     # IBV_WC_RETRY_EXC_ERR

# How many messages show that traffic goes on.
RDMA = {"rc-small": 500, "rc-large": 10, "ud": 500, "paging": 10, "answers": 500}
ENOUGH = {**RDMA, "flood": 50, "kernel": 10}
KINDS = tuple(ENOUGH)

# Pauses of the traffic in a guest on a slow kernel, ms.  Without them the guest has no
# time for anything else: setting one MTU has taken more than ten seconds.
REST = 200

MODULE = "qhca_test_load"

# Seconds for whatever is asked of guests that are busy.
LONG = 240

# Each message of this kind answers one of the peer's.
ANSWERS = ("answers",)


def hits(pair):
    """Doorbells of each end that have waited for a message, until it came"""
    return [node.adapter_counters()["await_hits"] for node in pair]


def grown(now, before):
    return [n - b for n, b in zip(now, before)]


@dataclass
class Report:
    """The report of one end."""
    text: str
    code: int = 0
    ended: bool = False                 # by itself, because its queues or device did
    fatal: bool = False                 # the device went
    statuses: set = field(default_factory=set)  # of completions in error

    @property
    def sound(self):
        """Was all arrived data correct, and was each failure one that the test allows?"""
        return self.code == 0


def rest(node):
    return REST if node.patience > 1 else 0


class Traffic:
    """Kinds of traffic between a and b of a pair."""

    def __init__(self, pair, kinds=KINDS):
        self.pair = pair
        self.kinds = kinds
        self.here = {"a": [k for k in kinds if k != "kernel"], "b": list(kinds)}

    def _run(self, node, commands, timeout=LONG):
        return node.exec(script("lab/scripts/flow.sh", commands), timeout=timeout)

    def _each(self, command, timeout=LONG):
        """Runs a command of flow.sh with the kinds of each node that has any."""
        jobs = [(node, node.spawn(script("lab/scripts/flow.sh",
                                         f"{command} {' '.join(self.here[node.name])}")))
                for node in self.pair if self.here[node.name]]
        return {node.name: job.wait(timeout) for node, job in jobs}

    def start(self):
        a, b = self.pair
        ports = {kind: verbs.next_port() for kind in self.kinds}
        for node, other in (a, b), (b, a):
            lines = []
            for kind in self.here[node.name]:
                if kind in RDMA:
                    host = "" if node is a else a.ip4
                    lines.append(f"run {kind} qhca-traffic -d {node.ibdev} -g {node.gid_index()} "
                                 f"-p {ports[kind]} -k {kind} -o flow.{kind}.progress "
                                 f"-r {rest(node)} {host}")
            for kind in set(RDMA) & set(self.here[node.name]) if node is a else ():
                lines.append(f"await_or_over {kind} {shlex.quote(verbs.listening(ports[kind]))}")
            self._run(node, "\n".join(lines))
        if "kernel" in self.kinds:
            path = f"/tmp/{MODULE}.ko"
            if not b.exec(f"test -e {path}", check=False).ok:
                b.push(paths.BUILD / "modules" / b.release / f"{MODULE}.ko", path)
            b.exec(f"insmod {path} rest={rest(b)}", timeout=LONG)
        if "flood" in self.kinds:
            # The others do not meet as soon beside it.
            self.wait_progress(set(self.kinds) - {"flood"})
            for node, other in (a, b), (b, a):
                self._run(node, f"run flood qhca-flood -p {ports['flood']} -o flow.flood.progress "
                                f"-r {rest(node)} {other.ip4}")
        return self

    def wait_progress(self, kinds=None, timeout=LONG):
        """Waits until each end has verified more messages."""
        kinds = self.kinds if kinds is None else kinds
        wanted = {node: " ".join(f"{k}:{ENOUGH[k]}" for k in here if k in kinds)
                  for node, here in self.here.items()}
        # Both at once: each counts from where it begins.
        jobs = [node.spawn(script("lab/scripts/flow.sh", f"progress {wanted[node.name]}"))
                for node in self.pair if wanted[node.name]]
        try:
            for job in jobs:
                job.wait(timeout)
        except GuestError as error:
            raise GuestError(f"no progress: {error}\n{self._state()}") from None
        return self

    def wait_answers(self, least=100):
        """Waits until doorbells of both ends have waited for their answers, which they do in
        shared memory while nobody else sends."""
        before = hits(self.pair)
        wait_for(lambda: min(grown(hits(self.pair), before)) >= least, LONG * self.pair.a.patience,
                 f"doorbells that wait, {before} at first", interval=0.2)

    def _state(self):
        return "\n".join(f"{name}: {done.out}" for name, done in self._each("state").items())

    def resize(self, sig):
        """Has all ends resize queues, and waits until they have."""
        try:
            self._each(f"resize {sig}")
        except GuestError as error:
            raise GuestError(f"queues are not resized: {error}\n{self._state()}") from None

    def wait_over(self, node, kinds, timeout=LONG):
        """Waits until the ends have exited by themselves."""
        kinds = [k for k in kinds if k in self.here[node.name]]
        try:
            self._run(node, "".join(f"await over {k}\n" for k in kinds), timeout)
        except GuestError as error:
            raise GuestError(f"{kinds} of {node.name} do not end: {error}\n{self._state()}") from None

    def forget(self, node):
        """Forgets the programs of a guest that has ended."""
        self.here[node.name] = []

    def kill(self, node, kinds):
        """Kills ends, as if they had crashed."""
        for k in kinds:
            if k in self.here[node.name]:
                self.here[node.name].remove(k)
                self._run(node, f"tell KILL {k}; await over {k}")

    def stop(self):
        """Ends all; {(kind, node's name): Report}."""
        ends = {node: [k for k in here if k != "kernel"] for node, here in self.here.items()}
        reports = {}
        if "kernel" in self.here["b"]:
            reports["kernel", "b"] = self._stop_consumer()
        self.here = ends
        # No end may go while the other has requests on the way to it.
        self._each("report")
        done = self._each("finish")
        self.here = {"a": [], "b": []}
        for node, result in done.items():
            for part in result.out.split("flow ")[1:]:
                kind, code, *_ = part.split()
                reports[kind, node] = Report(part, int(code), "report: ended" in part,
                                             " fatal," in part,
                                             {int(n) for n in re.findall(r" status (\d+),", part)})
        return reports

    def _stop_consumer(self):
        done = self.pair.b.out(f"cat /sys/module/{MODULE}/parameters/wrong; "
                               f"dmesg | grep {MODULE}: | tail -n 5; rmmod {MODULE}", timeout=LONG)
        return Report(done, 1 if int(done.split()[0]) else 0)

    def abandon(self):
        """After a failure: kills all programs that still run."""
        for node in self.pair:
            if node.running and self.here[node.name]:
                node.exec(script("lab/scripts/flow.sh", "abandon"), check=False)
