# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Instructions that an engine executes for a packet: tests/sim/packets.c under callgrind.

valgrind counts the instructions of one engine of the two, and does so for two numbers of
messages: the difference is free of what each run does once. What the fake host does in
the engine's calls of it is left out, because a real host does something else there.
The counts of one program are the same in each run; they change with the compiler, and
with the processor's extensions that the C library and libdeflate make use of.
"""

import json
import os
import pathlib
import re
import subprocess
import tempfile

from lab import paths

# With -shm they go through shared memory, without ICRC; with -vfs, each adapter has four
# idle virtual functions.
KINDS = tuple(name + link + vfs for vfs in ("", "-vfs") for link in ("", "-shm")
              for name in ("WRITE", "SEND", "READ"))
SIZES = (8, 4096)
SIDES = ("requester", "responder")
COUNTS = (1280, 2560)        # messages of the two runs
RECORDED = pathlib.Path(__file__).with_name("packets.json")

# The calls that the engine makes of its host (tests/host/host.c).
HOST_CALLS = {"dma_read", "dma_write", "raise_irq", "tx_reserve", "tx_commit", "trace"}
# Those that every side makes, whatever the messages are.
NEEDED_CALLS = {"tx_reserve", "tx_commit"}


class Bad(ValueError):
    """The program or valgrind did not do what a measurement needs."""


def build():
    """Compiles the simulator's program; its path."""
    folder, top = paths.BUILD / "tests" / "sim", paths.TOP
    done = subprocess.run(
        ["make", "--no-print-directory", "-s", "-C", top / "tests" / "sim",
         f"-j{os.cpu_count()}", f"BUILD={folder}", f"ENGINE={top}/qemu-hca/core",
         f"ABI={top}/drivers/include", folder / "packets"],
        check=False, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        raise Bad(f"tests/sim/packets.c does not build:\n{done.stderr}")
    return folder / "packets"


def engine_cost(profile):
    """The instructions of a callgrind profile without those of the host's calls."""
    total = re.search(r"^(?:totals|summary): (\d+)$", profile, re.M)
    if not total:
        raise Bad("the profile has no total")
    calls = re.findall(r"^cfn=(\w+)\ncalls=.*\n\S+ (\d+)$", profile, re.M)
    missing = NEEDED_CALLS - {name for name, _ in calls}
    if missing:
        raise Bad(f"the engine has not called {', '.join(sorted(missing))} of its host")
    return int(total[1]) - sum(int(cost) for name, cost in calls if name in HOST_CALLS)


def run(program, kind, size, messages, side, gids=0):
    """Runs the program under callgrind; the profile of one side.

    With gids, so many addresses: see the program."""
    with tempfile.TemporaryDirectory(prefix="qhca-packets-") as folder:
        out = pathlib.Path(folder) / "profile"
        # A fixed environment, which lies on the stack: addresses are the same each time.
        try:
            done = subprocess.run(
                ["/usr/bin/valgrind", "-q", "--tool=callgrind", f"--callgrind-out-file={out}",
                 "--compress-strings=no", "--compress-pos=no", f"--toggle-collect={side}_works",
                 str(program), kind, str(size), str(messages),
                 *([str(gids)] if gids else [])],
                env={"PATH": "/usr/bin:/bin"}, check=False, text=True, timeout=300,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        except FileNotFoundError:
            raise Bad("there is no valgrind: run `make setup`") from None
        if done.returncode:
            raise Bad(f"packets {kind} {size} {messages} ends with {done.returncode}:\n{done.stdout}")
        return out.read_text()


def per_message(program, kind, size, side, counts=COUNTS, gids=0):
    """Instructions of a side for a message, which is a packet and a share of an ACK."""
    few, many = (engine_cost(run(program, kind, size, count, side, gids)) for count in counts)
    return round((many - few) / (counts[1] - counts[0]))


def measure(program):
    """[{kind, size, requester, responder}]"""
    return [{"kind": kind, "size": size,
             **{side: per_message(program, kind, size, side) for side in SIDES}}
            for kind in KINDS for size in SIZES]


def compiler():
    done = subprocess.run([os.environ.get("CC") or "cc", "--version"], stdout=subprocess.PIPE,
                          text=True, check=True)
    return done.stdout.splitlines()[0]


# -- recorded values ----------------------------------------------------------

def record(rows, path=RECORDED):
    """Writes the values that later ones are shown beside."""
    text = ",\n  ".join(json.dumps(row) for row in rows)
    path.write_text(f'{{"compiler": {json.dumps(compiler())},\n "rows": [\n  {text}]}}\n')


def recorded(path=RECORDED):
    """(compiler, rows) that record() wrote"""
    entry = json.loads(path.read_text())
    return entry["compiler"], entry["rows"]


HEAD = ["instructions for a packet", "size",
        *(cell for side in SIDES for cell in (side, "recorded", "change"))]


def table(rows, before):
    """The rows of a table with HEAD: values beside those of a list of earlier rows."""
    old = {(row["kind"], row["size"]): row for row in before}
    cells = []
    for row in rows:
        line = [row["kind"], row["size"]]
        for side in SIDES:
            then = old.get((row["kind"], row["size"]), {}).get(side)
            line += [row[side], *(("", "") if then is None else
                                  (then, f"{100 * (row[side] - then) / then:+.1f}%"))]
        cells.append(line)
    return cells
