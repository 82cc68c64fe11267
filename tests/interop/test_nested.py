# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A virtual machine in guest a, which has a virtual function by qhca_vfio.ko, and guest b:
the inner machine's modules and programs are those of any guest, and what is pinned of its
memory is what the device needs, and what it has touched."""

import pytest

from lab import content, script, verbs
from lab.functions import Functions
from lab.nested import Nested, Shell
from lab.pair import Pair

MAC = "52:54:00:77:00:10"


class Machines:
    """The pair, and the machine inside of a."""

    def __init__(self, pair, shell):
        self.a, self.b = pair
        functions = Functions(self.a)
        self.a.exec(f"echo 0 > {functions.folder}/sriov_drivers_autoprobe")
        functions.write(1)
        self.a.exec(f"ip link set {self.a.netif} vf 0 mac {MAC}")
        self.address = self.a.out(script("guest/scripts/bind-vfio.sh",
                                         f"{functions.folder}/virtfn0")).split()[-1]
        self.inner = Nested(self.a, shell, self.address, MAC)

    def stat(self, name):
        return int(self.a.out(f"cat /sys/bus/pci/devices/{self.address}/stage2/{name}"))

    def pinned(self):
        return self.stat("pages_fault"), self.stat("pages_device")


@pytest.fixture(scope="module")
def machines():
    shell = Shell()
    pair = Pair(props=({"sriov-vfs": 1}, None), a_args=shell.options()).boot()
    made = Machines(pair, shell)
    yield made
    made.inner.close()
    pair.close()
    shell.close()


@pytest.fixture
def inner(machines):
    if not machines.inner.running:
        machines.inner.setup = False
        machines.inner.start().wait_ready()
        # The firmware and the kernel have seen the function, and no driver has it.
        assert machines.pinned() == (0, 0)
        machines.inner.configure()
    with content(machines.a, machines.b, machines.inner):
        yield machines.inner


def report(machines, what):
    fault, device = machines.pinned()
    names = ("faults", "pin_requests", "refused", "invalidations", "large_pages", "nodes")
    print(f"{what}: {fault} pages pinned because of faults, {device} for the device;",
          ", ".join(f"{name} {machines.stat(name)}" for name in names))
    return fault, device


def test_start(machines, inner):
    """Nothing was pinned when the machine had started; then what the drivers gave the device."""
    fault, device = report(machines, "driver loaded")
    assert device > 0
    assert (fault + device) * 4096 < inner.memory << 18, "a quarter of its memory"
    assert machines.stat("broken") == 0


@pytest.mark.parametrize("inside", ["server", "client"])
def test_pingpong(machines, inner, inside):
    ends = (inner, machines.b) if inside == "server" else (machines.b, inner)
    verbs.pingpong(*ends, "rc", "-n 200 -c")
    report(machines, "ibv_rc_pingpong")


@pytest.mark.parametrize("options", ["-o", "-O"], ids=["explicit", "implicit"])
def test_odp(machines, inner, options):
    """Pages may be absent for the inner machine's driver, and for the outer one's."""
    for ends in (inner, machines.b), (machines.b, inner):
        verbs.pingpong(*ends, "rc", f"{options} -n 50 -c")
    assert inner.counters()["page_faults1"] > 0
    report(machines, "ODP")


@pytest.mark.parametrize("test, options", [
    ("ib_send_bw", "-s 65536 -n 100"), ("ib_write_bw", "-s 65536 -n 100"), ("ib_atomic_bw", "-n 100")])
def test_bandwidth(machines, inner, test, options):
    run = verbs.perftest(inner, machines.b, test, options)
    print(verbs.measured(run, "bw"))
    report(machines, test)
