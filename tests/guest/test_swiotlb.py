# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A kernel that bounces all DMA (swiotlb=force), as that of an encrypted guest does.

RDMA is there, consumers in the kernel use it, and processes are refused what could
not work: their memory, their queues and the memory pool. Behind an IOMMU nothing is
refused, whether or not the kernel synchronises DMA.
"""

import pytest

from lab import content, devlink, paths
from lab.pair import Node

from test_drain import drain

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def node():
    with Node("a", "qhca", 1, netdevs=["hubport,hubid=0"], append="swiotlb=force") as guest:
        with content(guest):
            yield guest


def test_driver_binds(node):
    """There is no memory pool, and one line that says so."""
    log = node.out("dmesg")
    assert "software IO TLB" in log and "bounce" in log
    assert log.count("memory pool: none, since DMA is bounced") == 1
    assert log.count("DMA is bounced (swiotlb)") == 1
    assert node.ibdev


def test_kernel_consumer(node, tap_points):
    drain(node, tap_points)


def test_processes_are_refused(node):
    """By an error and a message, not by completions that never come."""
    gid = node.gid_index()
    for command, what in (
            (f"ibv_rc_pingpong -d {node.ibdev} -g {gid}", "Couldn't register MR"),
            (f"qhca-odp -d {node.ibdev} -g {gid}", "set-up: Operation not supported"),
            (f"qhca-pool -d {node.ibdev} -g {gid} query", "errno 95")):
        done = node.exec(f"timeout 30 {command} 2>&1", check=False)
        assert not done.ok and done.code != 124, done
        assert what in done.out, done
    assert "is refused: its DMA would be bounced (swiotlb)" in node.out("dmesg")
    caps = node.out(f"ibv_devinfo -v -d {node.ibdev}")
    assert "ODP_SUPPORT" not in caps.partition("general_odp_caps")[2].split("rc_odp_caps")[0], caps


@pytest.fixture(scope="module")
def behind_iommu():
    with Node("a", "qhca", 1, netdevs=["hubport,hubid=0"], append="intel_iommu=on iommu.strict=1",
              args=["-device", "intel-iommu,intremap=off"]) as guest:
        with content(guest):
            yield guest


@pytest.mark.parametrize("synchronised", [False, True], ids=["usual", "synchronised"])
def test_iommu(behind_iommu, synchronised):
    """An IOMMU translates: all of RDMA works.

    After the kernel has bounced a part of a page once, it cannot tell any more which
    of a device's memory it has to synchronise, and says that of all of it.
    """
    node = behind_iommu
    if not node.exec("ls /sys/class/iommu/* /sys/kernel/iommu_groups/*", check=False).ok:
        pytest.skip("this kernel has no driver for the IOMMU")
    if synchronised:
        name = "qhca_test_fail"
        node.push(paths.BUILD / "modules" / node.release / f"{name}.ko", f"/tmp/{name}.ko")
        node.exec(f"insmod /tmp/{name}.ko kinds=16 && echo 1 > /sys/module/{name}/parameters/sync "
                  f"&& rmmod {name}", timeout=120)
    devlink.reload(node)
    before = node.counters()["pool_direct_uses"]
    done = node.exec(f"qhca-pool -d {node.ibdev} -g {node.gid_index()} query data 2>&1",
                     timeout=120, check=False)
    assert done.ok, done
    # The pool's memory was reached by its rows, whose addresses the IOMMU translates.
    assert node.counters()["pool_direct_uses"] > before
    log = node.out("dmesg")
    assert "bounced" not in log, log
