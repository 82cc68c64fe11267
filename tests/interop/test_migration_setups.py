# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Guests move that are joined in other ways, that have more than one function or very many
objects, or that something else happens to as well."""

import functools

import pytest

from lab import content, devlink, move, note_leaks, verbs, wait_for
from lab.flows import ANSWERS, RDMA
from lab.functions import Functions
from lab.moving import (MOVABLE, assert_carries_on, idle_queues, move_beside,
                        move_under_traffic)
from lab.netdev import copy, statistics, stream
from lab.netns import may_have_taps

KINDS = ("rc-small", "rc-large", "ud")

pytestmark = pytest.mark.full


@pytest.fixture
def get(pairs):
    """get(...): a pair of qhca whose guests can move. Neither QEMU nor a kernel may complain,
    and the guests are given up after the test."""
    found = []

    def take(**options):
        found.append(pairs.get("qhca", "qhca", **{**MOVABLE, **options}))
        return found[0]
    yield take
    try:
        with content(*found[0]):
            pass
        note_leaks(*found[0])
    finally:
        found[0].close()


@pytest.fixture
def pair(pairs):
    """The pair of test_migration.py"""
    pair = pairs.get("qhca", "qhca", **MOVABLE)
    with content(*pair):
        yield pair


# -- links

def test_stream(get):
    """Two QEMUs of one guest take turns on the netdev of the peer, which listens."""
    pair = get(wire="stream")
    move_under_traffic(pair, [pair.b] * 3, KINDS)


@pytest.mark.skipif(not may_have_taps(), reason="this user may not open /dev/net/tun")
def test_taps(get):
    """A bridge learns where a guest is now."""
    pair = get(wire="tap")
    move_under_traffic(pair, [pair.b, pair.a, pair.b], KINDS)


def test_shared_memory(get):
    """The devices begin a new link, whichever of them moves."""
    pair = get(wire="shm")
    move_under_traffic(pair, [pair.b, pair.a, pair.b], KINDS)
    move_under_traffic(pair, [pair.a, pair.b], KINDS,
                       functools.partial(move.cancel, phase="pre-switchover"))
    # Alone, so that vCPUs wait in doorbells when the guest stops.
    move_under_traffic(pair, [pair.b, pair.a, pair.b], ANSWERS)


LOSS = {"inject-drop-ppm": 10000, "inject-corrupt-ppm": 1000}
# Nothing repairs the order of datagrams, whose numbers the programs expect to rise.
DISORDER = {"inject-duplicate-ppm": 10000, "inject-reorder-ppm": 10000}
REPAIRED = ("rc-small", "rc-large")


def test_loss(get):
    """Frames are lost and damaged all the time, and repeated and reordered later. The
    injector moves with its device, and goes on."""
    pair = get()
    pair.a.inject(LOSS)
    move_under_traffic(pair, [pair.b, pair.a], KINDS)
    before = pair.a.counters()["inject_dropped"]
    pair.a.inject(DISORDER)
    move_under_traffic(pair, [pair.b, pair.a], REPAIRED)
    assert pair.a.counters()["inject_dropped"] > before


# -- an IOMMU, virtual functions, very many objects

def test_iommu(get):
    """Both guests have an IOMMU, whose tables move with them."""
    pair = get(append="intel_iommu=on iommu.strict=1",
               args=("-device", "intel-iommu,intremap=off"))
    assert pair.b.exec("ls -d /sys/class/iommu/dmar0 /sys/kernel/iommu_groups/0").ok
    move_under_traffic(pair, [pair.b, pair.a, pair.b], (*RDMA, "kernel"))
    move_under_traffic(pair, [pair.b], KINDS, functools.partial(move.migrate, postcopy=True))


def test_functions(get):
    """Virtual functions move with their physical function, in traffic with each other and
    with another guest, and can be disabled and enabled at the destination."""
    pair = get(props=({"sriov-vfs": 3}, None), memory=1536)
    vfs = Functions(pair.a).enable(3)
    soak = verbs.program_commands("qhca-soak", "-n 500000", "")
    verify = verbs.program_commands("qhca-verify", "-t rc -n 1000")
    with verbs.Flow(vfs[0], pair.b, soak) as one, verbs.Flow(pair.b, vfs[1], verify) as two, \
            verbs.Flow(vfs[1], vfs[2], verify) as three, verbs.Flow(vfs[2], pair.a, soak) as four:
        running = [one, two, three, four]
        for node in pair.a, pair.b:
            print(move_beside(running, node))
        for flow in running:
            flow.end(900)
    vfs.disable()
    vfs.enable(3)
    verbs.pingpong(vfs[0], pair.b, "rc", "-n 200 -c")
    verbs.pingpong(vfs[1], vfs[2], "rc", "-n 200 -c")
    vfs.disable()


def ethernet(node):
    """What the administrator has chosen."""
    return node.out(f"for option in l x k g c; do ethtool -$option {node.netif}; done")


def test_ethernet_queues(get):
    """Several queues move under TCP both ways, with the distribution, the rings and the
    moderation that the administrator has chosen."""
    pair = get(cpus=2)
    for node in pair:
        node.exec(f"ethtool -X {node.netif} weight 1 3; ethtool -C {node.netif} rx-usecs 50; "
                  f"ethtool -G {node.netif} rx 256 tx 256")
    before = [ethernet(node) for node in pair]
    with stream(pair.a, pair.b) as forth, stream(pair.b, pair.a) as back:
        for node in pair.b, pair.a, pair.b:
            print(move.migrate(node))
            forth()
            back()
    assert [ethernet(node) for node in pair] == before
    # A queue that stayed behind would have the driver start the device anew.
    for node in pair:
        assert set(node.out(f"cat /sys/class/net/{node.netif}/queues/tx-*/tx_timeout").split()) == {"0"}
    for a, b in (pair.a, pair.b), (pair.b, pair.a):
        for queue, weights in enumerate(("1 0", "0 1")):
            b.exec(f"ethtool -X {b.netif} weight {weights}")
            name = f"rxq{queue}_bytes"
            had = statistics(b)[name]
            copy(a, b, b.ip4, 1024)
            assert statistics(b)[name] - had > 1 << 20
        assert statistics(a)["eth_tx_errors"] == 0


@pytest.mark.parametrize("qps, mrs", [(10000, 64), (64, 100000)])
def test_many(get, qps, mrs):
    """Idle queue pairs and regions move, and carry data afterwards."""
    pair = get(memory=2048)
    with idle_queues(pair, qps, mrs, timeout=900) as flow:
        moves = [move.migrate(node) for node in (pair.b, pair.a)]
        print(moves)
        assert_carries_on(pair, flow, timeout=600)
    assert all(moved.image < 2 << 20 for moved in moves), moves


# -- what else happens to a guest

@pytest.mark.parametrize("phase", ["active", "pre-switchover"])
def test_cancelled(pair, phase):
    """The guest stays where it is, and moves later."""
    move_under_traffic(pair, [pair.b, pair.a], KINDS, functools.partial(move.cancel, phase=phase))
    move_under_traffic(pair, [pair.b], KINDS)


def test_stopped(pair):
    """A guest that stands still moves, and stands still until it is told to go on."""
    with idle_queues(pair) as flow:
        for node in pair.b, pair.a:
            node.qmp("stop")
            print(move.migrate(node))
            assert node.qmp("query-status")["status"] == "paused"
            node.qmp("cont")
        assert_carries_on(pair, flow)


def test_link_down(pair):
    """The link of a guest is down while it moves, and comes up at the destination."""
    node = pair.b
    carrier = f"[ $(cat /sys/class/net/{node.netif}/carrier) = %d ]"
    with idle_queues(pair) as flow:
        node.set_link(False)
        node.wait_until(carrier % 0)
        print(move.migrate(node))
        node.wait_until(carrier % 1)
        assert_carries_on(pair, flow)


def test_unplug_requested(pair):
    """The guest is asked to give the device up, moves before it has, and gives it up there."""
    node = pair.b
    name = node.first_device["id"]
    node.qmp("stop")
    node.qmp("device_del", id=name)
    print(move.migrate(node))
    node.qmp("cont")
    wait_for(lambda: name not in {entry["name"] for entry in
                                  node.qmp("qom-list", path="/machine/peripheral")},
             90, "the end of the device")
    node.plug()
    node.configure()
    pair.wait_link()
    verbs.pingpong(pair.a, node, "rc", "-n 100 -c")


def test_reset_after(pair):
    """The driver resets the device, and the module is loaded anew, at the destination."""
    node = pair.b
    print(move.migrate(node))
    pci = devlink.device(node).removeprefix("pci/")
    for command in (f"devlink dev reload pci/{pci}", f"echo 1 > /sys/bus/pci/devices/{pci}/reset",
                    "rmmod qhca_ib; insmod /run/qhca/modules/qhca_ib.ko"):
        node.exec(command, timeout=120)
        node.configure()
        pair.wait_link()
        verbs.pingpong(pair.a, node, "rc", "-n 100 -c")
        print(move.migrate(node))
        verbs.pingpong(pair.a, node, "rc", "-n 100 -c")
