# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Kernel consumers of a device that dies (kernel/qhca_test_dead.c)."""

import re

from lab import content, paths

NAME = "qhca_test_dead"


def run(node, tap_points, options="", when_ready=None):
    """Loads the module, whose cases count as tests, and waits for the recovery."""
    recoveries = f"ethtool -S {node.netif} | sed -n 's/.*drv_recoveries: //p'"
    before = int(node.out(recoveries))
    node.push(paths.BUILD / "modules" / node.release / f"{NAME}.ko", f"/tmp/{NAME}.ko")
    node.exec("dmesg -C")
    done = node.spawn(f"insmod /tmp/{NAME}.ko netdev={node.netif} {options}; code=$?; "
                      f"[ $code != 0 ] || rmmod {NAME}; exit $code")
    if when_ready:
        node.wait_until(f"dmesg | grep -q '{NAME}: ready'")
        when_ready()
    code = done.wait(240, check=False).code
    log = node.out("dmesg")
    node.wait_until(f'[ "$({recoveries})" = {before + 1} ]')
    node.configure()
    tap_points("\n".join(re.findall(rf"{NAME}: (.*)$", log, re.M)), code)
    return log


def test_dead_device(qhca_pair, tap_points):
    """Events that it owes are raised; handlers of CQs without QPs are not called."""
    node = qhca_pair.a
    with content(node):
        run(node, tap_points, when_ready=lambda: node.qmp(
            "qom-set", path="/machine/peripheral/nic0", property="inject-fatal", value=True))


def test_bad_completions(qhca_pair, tap_points):
    """What a device writes is looked up, and it dies of what leads to nothing."""
    node = qhca_pair.a
    with content(node):
        log = run(node, tap_points, "scribble=1")
    assert "completion of a request that was not posted" in log
    assert "dead: bad completion" in log
