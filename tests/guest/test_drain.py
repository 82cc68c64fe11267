# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A kernel consumer that drains its queue pairs (kernel/qhca_test_drain.c)."""

import re

from lab import content, paths


def drain(node, tap_points):
    """Runs the module's cases in a guest; each counts as a test."""
    name = "qhca_test_drain"
    node.push(paths.BUILD / "modules" / node.release / f"{name}.ko", f"/tmp/{name}.ko")
    gid = node.gid_index()
    netdev = node.out(f"cat /sys/class/infiniband/{node.ibdev}/ports/1/gid_attrs/ndevs/{gid}")
    with content(node):
        done = node.exec(f"echo {name}: begins > /dev/kmsg; "
                         f"insmod /tmp/{name}.ko netdev={netdev} gid_index={gid}; code=$?; "
                         f"[ $code != 0 ] || rmmod {name}; dmesg; exit $code", timeout=300, check=False)
    log = done.out.rpartition(f"{name}: begins")[2]
    text = "\n".join(re.findall(rf"{name}: (.*)$", log, re.M))
    tap_points(text, done.code)


def test_drain(qhca_pair, tap_points):
    drain(qhca_pair.a, tap_points)
