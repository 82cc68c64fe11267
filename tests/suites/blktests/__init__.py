# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""blktests' tests of NVMe over RDMA and of SRP, which scripts/suites.sh builds from a tree that is
not in Debian (BLKTESTS_SRC=).

Each test is a case. Initiator and target are in one guest, and reach each other by the address
of the guest's only RDMA device: packets come back inside the adapter, and the suite would take
any other device as well. Before each test it makes a device of Soft-RoCE on each interface that
has no RDMA device, and removes it afterwards.
"""

import functools
import re

from lab import paths
from lab.guest import GuestError
from lab.script import script

from .. import Case, Program, Skipped

HERE = "/run/qhca/blktests"
RESULTS = "/tmp/blktests"
# The image must hold an XFS file system. The suite does some things a thousand times.
SETTINGS = (f"PATH={HERE}/bin:$PATH USE_RXE=1 NVMET_TRTYPES=rdma NVMET_BLKDEV_TYPES=device "
            "NVME_IMG_SIZE=350M NVME_NUM_ITER=10 TIMEOUT=20")
LIMIT = 900
VERSION = "the suite takes the end of Debian's kernel version, +deb13, for a part of a number"
KNOWN = {"nvme/047": {"qhca": VERSION, "rxe": VERSION}}
# (whose fault it is, what says so): on some kernels, or now and then, and over TCP as well.
RACES = {
    "nvme/054": ("the target of Linux 7.3 refuses to preempt a reservation without the other's key",
                 "NVMe status: Invalid Field in Command"),
    # Connect Invalid Host, with the bit Do Not Retry.
    "nvme/061": ("the suite offers its subsystem before it allows the host, which connects in between "
                 "and then gives up", "failed to connect queue: 0 ret=16772"),
}


def folder():
    """What scripts/suites.sh has built, or None."""
    path = paths.BUILD / "blktests"
    return path if path.is_dir() else None


def verdict(output):
    """(passed, failed or skipped, why) of what `check` prints of one test, which may run under
    several conditions."""
    found = re.findall(r"^\w+/\d+.*\[(passed|failed|not run)\]\n((?: .*\n|\n)*)", output, re.M)
    if not found:
        return "failed", f"no result in: {output}"
    results = [result for result, _ in found]
    if "passed" in results and "failed" not in results:
        return "passed", ""
    said = found[results.index("failed") if "failed" in results else 0][1]
    # Measurements, and what it shortens, have three dots; a difference has a head.
    lines = [line.strip() for line in said.splitlines()
             if not re.search(r"\.\.\.|^ *(---|\+\+\+|@@) ", line)]
    if "failed" in results:
        return "failed", "\n".join(line for line in lines if line[:1] in "+-") or said
    return "skipped", "; ".join(filter(None, lines)) or "the suite skips it"


def case(name):
    def run(server, client):
        server.exec(script("suites/blktests/prepare.sh", HERE), timeout=120)
        server.exec("dmesg -C")
        ended = server.exec(f"cd {HERE}/tree && {SETTINGS} ./check -o {RESULTS} {name} 2>&1",
                            timeout=LIMIT, check=False)
        result, why = verdict(ended.out)
        if result == "skipped":
            raise Skipped(why)
        if result == "failed":
            told = server.out("dmesg | grep -o 'failed to connect queue.*' || true")
            raise GuestError(f"{why}\n{told}".strip())
    race, like = RACES.get(name, ("", ""))
    return Case(name, run, known=KNOWN.get(name, {}), race=race, like=like)


@functools.cache
def program(group):
    """The Program of a group, with its tests that need no block device of the machine."""
    tests = sorted(path for path in (folder() / "tree/tests" / group).iterdir() if path.name.isdigit())
    return Program(f"blktests {group}", None, tuple(
        case(f"{group}/{path.name}") for path in tests if re.search(r"^test\(\)", path.read_text(), re.M)))
