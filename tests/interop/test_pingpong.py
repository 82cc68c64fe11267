# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""libibverbs' own examples, each checking its data (-c)."""

import itertools

import pytest

from lab import verbs


def ours(value):
    return pytest.param(value, marks=pytest.mark.ours)


@pytest.mark.parametrize("kind", ["rc", "uc", "srq"])
@pytest.mark.parametrize("ip", [4, 6], ids=["ipv4", "ipv6"])
def test_pingpong(ends, kind, ip):
    verbs.pingpong(*ends, kind, "-n 100 -c", ip=ip)


@pytest.mark.parametrize("ip", [4, 6], ids=["ipv4", "ipv6"])
def test_ud(ends, ip):
    verbs.pingpong(*ends, "ud", "-n 100 -s 2048 -c", ip=ip)


@pytest.mark.parametrize("kind", ["rc", "ud", ours("uc"), ours("srq")])
def test_events(ends, kind):
    verbs.pingpong(*ends, kind, "-n 100 -e")


@pytest.mark.parametrize("mtu", [1024, 4096, *map(ours, (256, 512, 2048))])
@pytest.mark.parametrize("kind", ["rc", ours("uc")])
def test_mtu(ends, kind, mtu):
    verbs.pingpong(*ends, kind, f"-n 20 -s 20001 -m {mtu} -c")


@pytest.mark.full
@pytest.mark.parametrize("size", [0, 1, 1 << 20, 16 << 20])
def test_size(ends, size):
    if not size and "rxe" in (end.kind for end in ends):
        pytest.skip("Soft-RoCE registers no region of zero bytes")
    verbs.pingpong(*ends, "rc", f"-n 20 -s {size} -c")


def test_receive_depth_of_one(ends):
    """Almost every message meets no receive, and waits for one."""
    verbs.pingpong(*ends, "rc", "-n 50 -r 1")


_vlans = itertools.count(5)


@pytest.fixture
def vlan(ends):
    """(server's address, client's) on a VLAN of their own."""
    tag = next(_vlans)
    addresses = (f"10.98.{tag}.1", f"10.98.{tag}.2")
    for node, address in zip(ends, addresses):
        node.exec(f"modprobe 8021q; ip link add link {node.netif} name v{tag} type vlan id {tag} && "
                  f"ip addr add {address}/24 dev v{tag} && ip link set v{tag} up")
    for node, address in zip(ends, addresses):
        node.wait_gid(address)
    ends[0].wait_until(f"ping -c 1 -W 1 {addresses[1]}")
    yield addresses
    for node in ends:
        node.exec(f"ip link del v{tag}")
        node.gids(refresh=True)


def test_vlan(ends, vlan):
    verbs.pingpong(*ends, "rc", "-n 100 -c", ip=vlan)
    verbs.pingpong(*ends, "uc", "-n 100 -c", ip=vlan)
    verbs.pingpong(*ends, "ud", "-n 100 -s 1024 -c", ip=vlan)
    verbs.perftest(*ends, "ib_read_bw", "-s 65536 -n 20", ip=vlan)
