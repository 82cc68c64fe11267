# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Entry points that libibverbs and the usual kernel consumers never use, and calls that
meet each other.

An ordinary user with raw commands (programs/uverbs/undo.c), a kernel consumer of the
rarer calls (kernel/qhca_test_callers.c), a region that is described while it changes
(programs/memory/rereg.c), and what happens while the RDMA device is being removed
(kernel/qhca_test_remove.c). The guest finds memory that is used after it was freed, as
far as a kernel can that was not built for it. After each test the core has nothing
left, and the driver can be unbound.
"""

import re

import pytest

from lab import content, paths, script
from lab.pair import Node

FINDS = "slub_debug=FZPU page_poison=1 init_on_free=1"
NOBODY = 65534
HELD = 8    # changes of a region, by kernel/qhca_test_rereg.c


@pytest.fixture(scope="module")
def guest():
    node = Node("a", "qhca", 1, netdevs=["hubport,hubid=0"], append=FINDS, memory=768,
                cpus=2).boot()
    yield node
    node.close()


@pytest.fixture
def node(guest):
    before = resources(guest)
    with content(guest):
        yield guest
        # Of an object that was left behind, this would read freed memory.
        assert resources(guest) == before
        rebind(guest)


def resources(node):
    return node.out(script("guest/scripts/rdma-resources.sh"))


def rebind(node):
    """Unbinding waits for every object; its end shows that none was left."""
    address = node.out(f"basename $(readlink -f /sys/class/infiniband/{node.ibdev}/device)")
    node.exec(f"cd /sys/bus/pci/drivers/qhca && echo {address} > unbind && echo {address} > bind")
    node.configure()


def push_module(node, name):
    node.push(paths.BUILD / "modules" / node.release / f"{name}.ko", f"/tmp/{name}.ko")


def load(node, name, parameters, timeout=120):
    """Runs a test that is a module; its TAP and exit code."""
    push_module(node, name)
    done = node.exec(script("guest/scripts/run-module.sh", name, *parameters.split()), timeout,
                     check=False)
    log = done.out.rpartition(f"{name}: begins")[2]
    return "\n".join(re.findall(rf"{name}: (.*)$", log, re.M)), done.code


def test_ordinary_user(node, tap_points):
    """Undone creations, memberships, regions; then the end of the process."""
    done = node.exec(f"qhca-undo -d {node.ibdev} -g {node.gid_index()} -u {NOBODY} 2>&1",
                     timeout=180, check=False)
    print(done.out)
    tap_points(done.out, done.code)


@pytest.mark.full
def test_region_changes(node, tap_points):
    """A region is described while it changes between the pool's memory and the process's.

    The two rarely meet in the few instructions of a change, least of all where processors
    take turns in one thread. So kernel/qhca_test_rereg.c holds some changes there.
    """
    name = "qhca_test_rereg"
    push_module(node, name)
    node.exec(f"insmod /tmp/{name}.ko", timeout=120)
    try:
        done = node.exec(f"qhca-rereg -d {node.ibdev} 2>&1", timeout=300, check=False)
        held = node.out(f"cat /sys/module/{name}/parameters/held")
    finally:
        node.exec(f"rmmod {name}", timeout=120)
    print(done.out)
    tap_points(done.out, done.code)
    assert int(held) == HELD


def test_kernel_callers(node, tap_points):
    tap_points(*load(node, "qhca_test_callers", f"netdev={node.netif}"))


def test_refusal(node, tap_points):
    """A device that will not give memory back is given up, and recovers."""
    before = node.out("dmesg | grep -c ': recovered' || :")
    tap_points(*load(node, "qhca_test_callers", f"netdev={node.netif} refuse=1"))
    node.wait_until(f"[ $(dmesg | grep -c ': recovered') -gt {before} ]",
                    what="the recovery of the device")
    node.configure()


def while_removed(node, tap_points, parameters, act=None):
    """Loads kernel/qhca_test_remove.c, acts when it is ready, and counts its points."""
    name = "qhca_test_remove"
    push_module(node, name)
    node.exec("dmesg -C")
    job = node.spawn(f"insmod /tmp/{name}.ko netdev={node.netif} {parameters}; code=$?; "
                     f"[ $code != 0 ] || rmmod {name}; exit $code")
    if act:
        node.wait_until(f"dmesg | grep -q '{name}: ready'")
        act()
    code = job.wait(240, check=False).code
    tap_points("\n".join(re.findall(rf"{name}: (.*)$", node.out("dmesg"), re.M)), code)


def test_event_at_removal(node, tap_points):
    """The driver is unbound while another processor dispatches the device's death."""
    while_removed(node, tap_points, "")
    node.wait_until("dmesg | grep -q ': recovered'", what="the recovery of the device")
    node.configure()


@pytest.mark.full
def test_shutdown_in_a_stop(node, tap_points):
    """The machine is shut down while a reload waits for a consumer's request."""
    address = node.out(f"basename $(readlink -f /sys/class/infiniband/{node.ibdev}/device)")
    jobs = []
    while_removed(node, tap_points, "shutdown=1", lambda: jobs.append(
        node.spawn(f"devlink dev reload pci/{address}")))
    jobs[0].wait(120, check=False)
    # What has been shut down stays so until it is bound again.
    node.exec(f"cd /sys/bus/pci/drivers/qhca && echo {address} > unbind && echo {address} > bind")
    node.configure()
