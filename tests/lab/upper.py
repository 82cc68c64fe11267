# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Interfaces above those of a guest's ports, and ports in a namespace of their own."""

import contextlib

from .namespace import NamespacePort, index_of
from .pair import Port, gid_text
from .script import script


class Upper(Port):
    """A bridge or a bond of ports qhca, with addresses of its own. It stands for a node
    wherever commands are run; its RDMA device is the one that has the addresses' GIDs."""

    def __init__(self, node, netif, link=9):
        super().__init__("qhca", link, index_of(node), node.mtu)
        self.guest = node
        self.netif = netif

    def _devices(self, rows):
        # The device of a bond's other port has its link-local GID, too.
        return {device for device, _, gid, netif, *_ in rows
                if netif == self.netif and gid == gid_text(self.ip4)}

    def await_gids(self):
        for address in self.ip4, self.ip6:
            self.wait_gid(address)
        return self


@contextlib.contextmanager
def uppers(pair, netif, name, *args):
    """Has both guests run a script of tests/interop/scripts that makes the interface; a list
    of Upper. Its arguments are MTU, IPV4, IPV6, and what args(node) says.

    Afterwards the interfaces are gone, and the ports as they were.
    """
    found = [Upper(node, netif) for node in pair]
    try:
        for upper in found:
            node = upper.guest
            node.exec(script(f"interop/scripts/{name}", node.mtu, upper.ip4, upper.ip6,
                             *(arg(node) for arg in args)))
        for upper, other in zip(found, reversed(found)):
            upper.await_gids()
            upper.wait_until(f"ping -c 1 -W 1 {other.ip4}", 60, f"ping by {netif}")
        yield found
    finally:
        for node in pair:
            node.exec(f"ip link del {netif}", check=False)
            node.configure()


@contextlib.contextmanager
def enclosed(node, namespace="blue"):
    """The guest's RDMA devices belong to namespaces meanwhile, and its first one is in one;
    a NamespacePort. Afterwards all is as it was."""
    device, netif = node.ibdev, node.netif
    # The kernel still cleans up after earlier namespaces.
    node.wait_until("rdma system set netns exclusive")
    try:
        node.exec(f"ip netns add {namespace} && ip -n {namespace} link set lo up && "
                  f"ip link set {netif} netns {namespace} && rdma dev set {device} netns {namespace}")
        port = NamespacePort(node, namespace, index_of(node))
        port.configure()
        yield port
    finally:
        node.exec(f"ip netns del {namespace}", check=False)
        node.wait_until(f"[ -e /sys/class/net/{netif} ] && [ -e /sys/class/infiniband/{device} ]")
        node.wait_until("rdma system set netns shared")
        node.configure()
