# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Hostile processes beside one that checks its data: programs/fuzz/fuzz.c.

A guest with two processors, whose kernel poisons what it frees, so that a use after
that does not go unnoticed. FULL=1 fuzzes for an hour, with a seed that is new each
time; QHCA_FUZZ_SECONDS, QHCA_FUZZ_SEED and QHCA_FUZZ_ROUND say otherwise.
"""

import os
import re
import tempfile
import time

import pytest

from lab import GuestError, content, paths
from lab.link import FULL
from lab.pair import Node

SECONDS = int(os.environ.get("QHCA_FUZZ_SECONDS", 3600 if FULL else 20))
SEED = int(os.environ.get("QHCA_FUZZ_SEED", time.time() if FULL else 1))
ROUND = int(os.environ.get("QHCA_FUZZ_ROUND", 0))

DIR = "/run/qhca-fuzz"
POISON = "slub_debug=FZP page_poison=1 init_on_free=1"

MAGIC, LINE = b"QHCAFUZZ", 128      # of fuzz.h: LOG_MAGIC, struct log_line


def last_operations(node):
    """What each thread of the fuzzer did last, from the guest's memory, whose kernel
    need not run any more."""
    if not node.running:
        return "(QEMU has ended)"
    with tempfile.NamedTemporaryFile(dir=node.dir) as file:
        # QEMU maps memory above 2 GiB elsewhere; this guest has less.
        node.qmp("pmemsave", val=0, size=min(node.memory, 2048) << 20, filename=file.name)
        memory = file.read()
    found = {}
    at = memory.find(MAGIC)
    while at >= 0:
        text = memory[at + len(MAGIC):at + LINE].split(b"\0")[0].decode(errors="replace")
        place = re.match(r"(\d+)\.(\d+)\.(\d+) ", text)
        if place and at % LINE == 0:
            found[tuple(int(n) for n in place.groups())] = text
        at = memory.find(MAGIC, at + 1)
    return "\n".join(["last operations (round.thread.number):"] +
                     [text for _, text in sorted(found.items())][-200:])


def inject_when_asked(node, run):
    """Fatal errors are the host's to inject: the fuzzer asks for one by a file."""
    while run.poll() is None:
        asked = node.exec(f"for i in $(seq 20); do [ ! -e {DIR}/inject ] || exit 0; sleep 0.05; done; "
                          "exit 1", check=False)
        if asked.ok:
            node.qmp("qom-set", path="/machine/peripheral/nic0", property="inject-fatal", value=True)
            node.exec(f"rm {DIR}/inject")


@pytest.fixture
def node():
    guest = Node("a", "qhca", 1, netdevs=["hubport,hubid=0"], cpus=2, append=POISON).boot()
    yield guest
    guest.close()


def test_uverbs(node):
    patience = 60 * node.patience
    try:
        with content(node):
            run = node.spawn(f"exec qhca-fuzz -d {node.ibdev} -s {SEED} -r {ROUND} -t {SECONDS} "
                             f"-p {patience} -D {DIR} -F 2>&1")
            # It sees to its own end: nothing in it may take longer than its patience.
            inject_when_asked(node, run)
            done = run.wait(check=False)
            print(done.out)
            victim = node.exec(f"tail -n 20 {DIR}/victim.*", check=False).out
            assert done.ok, f"{done}\n{victim}"
            # Nothing is left, in the driver or in the device.
            node.exec("rmmod qhca_ib qhca")
        runs = int(re.search(r"(\d+) runs of the victim", done.out)[1])
        assert runs, f"no run of the victim was left alone: {done.out}"
        assert node.leaks() == ""
    except (AssertionError, GuestError, TimeoutError) as error:
        log = paths.LOGS / "fuzz.log"
        log.write_text(last_operations(node) + "\n")
        raise AssertionError(f"{error}\nthe last operations are in {log}") from error
