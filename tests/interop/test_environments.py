# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Guests in other environments than the usual one: behind an IOMMU of each kind, with little
memory, with four processors; and ports in a bridge, a bond and a namespace.

Other tests have the rest: Documentation/programs.rst has the list.
"""

import contextlib
from dataclasses import dataclass, field

import pytest

from lab import content, verbs, wait_for
from lab.upper import enclosed, uppers

# The device's DMA is translated, and a mapping that ends is gone at once, not some time later.
STRICT = '[ "$(cat /sys/bus/pci/drivers/qhca/0*/iommu_group/type)" = DMA ]'

# The Extended Capability Register of the guest's VT-d, and bits of it.
ECAP = "0x$(cat /sys/class/iommu/dmar0/intel-iommu/ecap)"
SMTS, FLTS = 43, 47


def vtd(**properties):
    """QEMU's VT-d."""
    return ["-device", ",".join(["intel-iommu", *(f"{name.replace('_', '-')}={value}"
                                                  for name, value in properties.items())])]


@dataclass(frozen=True)
class Environment:
    """Options of both guests, and shell conditions that hold only there."""
    name: str
    options: dict
    signs: tuple = ()
    driver: str = ""                    # what it is called in a kernel that has it
    flows: int = 1                      # data tests at once
    replugged: bool = False             # does the device go and come, too?
    faults: tuple = field(default=("DMAR:.*fault", "DMAR: .DMA", "virtio_iommu.*fault",
                                   "page allocation failure", "Out of memory"))


VTD = "intel_iommu_ops"
SCALABLE = {"append": "intel_iommu=on,sm_on iommu.strict=1"}

ENVIRONMENTS = (
    # The kernel has second-stage tables, and interrupts are remapped.
    Environment("iommu-scalable", {**SCALABLE, "args": vtd(x_scalable_mode="on", intremap="on")},
                (STRICT, f"(({ECAP} >> {SMTS} & 1))", "dmesg | grep -q 'Enable scalable mode'",
                 "dmesg | grep -q 'Enabled IRQ remapping'"), VTD, replugged=True),
    Environment("iommu-first-stage",
                {**SCALABLE, "args": vtd(x_scalable_mode="on", x_flts="on", intremap="off")},
                (STRICT, f"(({ECAP} >> {FLTS} & 1))"), VTD),
    Environment("iommu-lazy", {"append": "intel_iommu=on iommu.strict=0", "args": vtd(intremap="off")},
                (STRICT.replace("DMA ]", "DMA-FQ ]"),), VTD),
    Environment("virtio-iommu", {"append": "iommu.strict=1", "args": ["-device", "virtio-iommu-pci"]},
                (STRICT, "readlink -f /sys/bus/pci/drivers/qhca/0*/iommu | grep -q virtio"),
                "viommu_ops", replugged=True),
    Environment("little-memory", {"memory": 256},
                ("(($(awk '/MemTotal/ {print $2}' /proc/meminfo) < 256 << 10))",)),
    Environment("four-processors", {"cpus": 4}, ("[ $(nproc) = 4 ]",), flows=4),
)


def work(server, client):
    """Programs that compare what arrives with what was sent, or count it."""
    verbs.pingpong(server, client, "rc", "-n 100 -c")
    verbs.pingpong(server, client, "ud", "-n 100 -s 1024 -c")
    verbs.verify(server, client, "-t rc -n 100 -s 3")
    assert verbs.perftest(server, client, "ib_write_bw", "-s 65536 -n 50").rows
    verbs.rping(server, client)


def needs(pair, module):
    if not pair.a.exec(f"modprobe -n {module}", check=False).ok:
        pytest.skip(f"this kernel has no {module}")


def said(node, patterns):
    """Lines of the kernel's log that have one of the patterns."""
    return node.out(f"dmesg | grep -E '{'|'.join(patterns)}' || :")


@pytest.mark.full
@pytest.mark.parametrize("environment", ENVIRONMENTS, ids=lambda environment: environment.name)
def test_guests(pairs, environment):
    pair = pairs.get("qhca", "qhca", **environment.options)
    a, b = pair
    known = f"grep -qw {environment.driver} /proc/kallsyms"
    if environment.driver and not a.exec(known, check=False).ok:
        pytest.skip("this kernel has no driver for the IOMMU")
    with content(*pair):
        for node in pair:
            for sign in environment.signs:
                assert node.exec(sign, check=False).ok, f"{node.name}: not {sign}"
        work(a, b)
        work(b, a)
        verbs.together([(a, b)] * environment.flows,
                       verbs.program_commands("qhca-verify", "-t rc -n 100 -s 4"), timeout=300)
        if environment.replugged:
            b.unplug()
            b.plug()
            b.configure()
            pair.wait_link()
            work(a, b)
        for node in pair:
            assert not said(node, environment.faults)


@pytest.mark.full
def test_bridge(qhca_pair):
    """The address is the bridge's, and so is the MAC address of RDMA packets. Another port of
    the bridge reaches the other guest meanwhile."""
    needs(qhca_pair, "bridge")
    inner = {node: f"10.86.0.{10 + n}" for n, node in enumerate(qhca_pair)}
    macs = {node: f"02:00:00:00:86:{n:02x}" for n, node in enumerate(qhca_pair)}
    with content(*qhca_pair), contextlib.ExitStack() as stack:
        for node in qhca_pair:
            stack.callback(node.exec, "ip netns del inner", check=False)
        a, b = stack.enter_context(uppers(qhca_pair, "br0", "bridge.sh", lambda node: node.netif,
                                          macs.get, inner.get))
        work(a, b)
        work(b, a)
        b.exec(f"ip netns exec inner ping -c 3 -W 5 {inner[a.guest]}")
        assert a.out(f"ip neigh show {b.ip4} dev br0").split()[2] == macs[b.guest]


@pytest.mark.full
def test_namespace(qhca_pair):
    """The whole device belongs to a namespace, and to no other."""
    a, b = qhca_pair
    with content(*qhca_pair):
        with enclosed(b) as inside:
            assert inside.out("ls /sys/class/infiniband").split() == [inside.ibdev]
            assert not b.out("ls /sys/class/infiniband")
            work(a, inside)
            work(inside, a)
        work(a, b)


def active(bond, port):
    """Waits until that port of its guest is the active one of the bond."""
    name = bond.guest.ports[port].netif
    bond.wait_until(f'[ "$(cat /sys/class/net/bond0/bonding/active_slave)" = {name} ]')


@pytest.mark.full
def test_bond(pairs):
    """The addresses' GIDs are those of the active port's device, and move to the other's when
    its link goes: what connects from then on goes there. Connections of the device whose link
    has gone end, since it cannot move them."""
    pair = pairs.get("qhca+qhca", "qhca+qhca", wire="stream")
    needs(pair, "bonding")
    devices = {node: [port.ibdev for port in node.ports] for node in pair}

    def device_of(bond, port):
        wait_for(lambda: bond.await_gids().ibdev == devices[bond.guest][port], 60,
                 f"{bond.guest.name}: the GIDs are not those of port {port}")

    with content(*pair), uppers(pair, "bond0", "bond.sh", *(
            lambda node, n=n: node.ports[n].netif for n in (0, 1))) as bonds:
        for lost, port in (None, 0), (0, 1), (1, 0):
            for bond in bonds:
                if lost is not None:
                    bond.guest.qmp("set_link", name=f"nic{lost}", up=False)
                    bond.guest.qmp("set_link", name=f"nic{port}", up=True)
            for bond in bonds:
                active(bond, port)
                device_of(bond, port)
            before = [bond.counters()["tx_packets"] for bond in bonds]
            work(*bonds)
            for bond, sent in zip(bonds, before):
                assert bond.counters()["tx_packets"] > sent + 100
        for bond in bonds:
            bond.guest.qmp("set_link", name="nic1", up=True)
