# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Virtual functions of a guest's qhca device, each in a network namespace of its own.

    with Pair(props=({"sriov-vfs": 4}, None)) as (a, b):
        vfs = Functions(a).enable(4)
        verbs.pingpong(vfs[0], vfs[1])
        verbs.pingpong(b, vfs[2])
"""

import json

from . import devlink
from .guest import wait_for
from .namespace import NamespacePort, index_of
from .script import script


class Function(NamespacePort):
    """A virtual function. It stands for a node wherever commands are run: these run in
    its namespace, and see no other interface."""

    def __init__(self, node, number, folder):
        # Addresses of the port's network; those of guests end in 1 and 2.
        super().__init__(node, f"vf{number}", 16 * index_of(node) + number)
        self.number = number
        self.folder = f"{folder}/virtfn{number}"

    @property
    def address(self):
        """The PCI address."""
        return self.guest.out(f"basename $(readlink -f {self.folder})")

    def _devices(self, rows):
        # The names of interfaces are unique within a namespace only.
        return set(self.out(f"ls {self.folder}/infiniband").split())

    def bind(self):
        self.guest.exec(f"echo {self.address} > /sys/bus/pci/drivers/qhca/bind", timeout=120)

    def unbind(self):
        self.guest.exec(f"echo {self.address} > /sys/bus/pci/drivers/qhca/unbind", timeout=120)

    def enter(self, rdma=False):
        """Moves the interface to the namespace, and sets it up there.

        rdma: the RDMA device as well, which each namespace sees unless RDMA devices
        belong to namespaces.
        """
        self.guest.exec(script("lab/scripts/enter-namespace.sh", self.namespace, self.folder),
                        timeout=120)
        if rdma:
            self.guest.exec(f"rdma dev set $(ls {self.folder}/infiniband) netns {self.namespace}")
        self.configure()
        return self

    def set(self, what, check=True):
        """set("vlan 5"): as the administrator of the host does."""
        return self.guest.exec(f"ip link set {self.guest.netif} vf {self.number} {what}",
                               check=check)

    def shown(self):
        """What "ip link show" of the host reports of it."""
        out = self.guest.out(f"ip -s -j -d link show {self.guest.netif}")
        info = json.loads(out)[0]["vfinfo_list"][self.number]
        return {"mac": info.get("address"), **info}

    def statistics(self):
        """The counters of the interface and of the device, {name: value}."""
        rows = (line.partition(":") for line in
                self.out(f"ethtool -S {self.netif}").splitlines()[1:])
        return {name.strip(): int(value) for name, _, value in rows}

    def wait_carrier(self, up, timeout=60):
        path = f"/sys/class/net/{self.netif}/carrier"
        self.wait_until(f"[ $(cat {path}) = {int(up)} ]", timeout, f"carrier {int(up)}")


class Functions:
    """The virtual functions of a node; an empty list until they are enabled."""

    def __init__(self, node):
        self.node = node
        self.folder = "/sys/bus/pci/devices/" + devlink.device(node).removeprefix("pci/")
        self.list = []

    def __getitem__(self, number):
        return self.list[number]

    def __iter__(self):
        return iter(self.list)

    def write(self, number, timeout=240, check=True):
        """Writes sriov_numvfs."""
        return self.node.exec(f"echo {number} > {self.folder}/sriov_numvfs", timeout, check)

    def enable(self, number, rdma=False):
        """Enables so many and gives each its address and a namespace.

        The addresses are set before the driver binds, as a function that runs keeps the
        address that it has.
        """
        autoprobe = f"{self.folder}/sriov_drivers_autoprobe"
        self.node.exec(f"echo 0 > {autoprobe}")
        self.write(number)
        # Without it the driver would not bind by hand either.
        self.node.exec(f"echo 1 > {autoprobe}")
        self.list = [Function(self.node, n, self.folder) for n in range(number)]
        for vf in self:
            vf.set(f"mac {vf.mac}")
            vf.bind()
            vf.enter(rdma)
        return self

    def disable(self):
        self.write(0)
        self.forget()

    def forget(self):
        """They are gone: removes the namespaces."""
        for vf in self:
            self.node.exec(f"ip netns del {vf.namespace}")
        self.list = []

    def bound(self):
        """The number of functions, the physical one included, that the driver has."""
        return int(self.node.out("ls -d /sys/bus/pci/drivers/qhca/0* 2> /dev/null | wc -l"))

    def wait_up(self, timeout=60):
        """Waits until all have recovered, as their interfaces' carriers tell.

        The RDMA device is looked up by its interface: while a function recovers it may have no
        GID yet, or be registered anew."""
        up = "ip link show {0} up | grep -q LOWER_UP && rdma link show | grep -qE 'ACTIVE .*netdev {0}( |$)'"
        for vf in self:
            wait_for(lambda vf=vf: vf.exec(up.format(vf.netif), check=False).ok,
                     timeout * self.node.patience, f"{vf.name} up", interval=0.2)
