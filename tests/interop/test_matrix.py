# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Every kind of traffic, and in the middle of it every operation that stops, resizes,
resets or removes something.

Guest b is the one that suffers. A cell starts its traffic, performs its operation
several times, and looks at how each end of each flow took it: traffic goes on, or
has ended with the errors that the users' guide names. Then fresh traffic of the
same kinds has to work, and at the end all objects are gone. What arrives is always
verified, and the kernels look for writes to memory that is free.

With FULL=1 each operation meets all kinds at once and each kind alone, several times,
with fresh traffic after each cell. Otherwise it is the operations that have been known
to be hard, once each, with a flood and one kind more; the traffic of the next cell is
the fresh one. The last cell is that of an operation which all traffic survives, so its
traffic is the fresh one of the cell before it. QHCA_SEED has other kinds.

In shared memory vCPUs wait in doorbells for the answers of the kind that is named after
them. Alone it must have such waits before each operation, and after those that it survives.
It is in the sample there, too: with the flood amid the first operation, and alone amid all.
"""

import contextlib
import random
import re
from dataclasses import dataclass, field

import pytest

from lab import aer, wait_for
from lab.flows import ANSWERS, FLUSHED, KINDS, RDMA, REMOTE_ACCESS, RETRY_EXCEEDED, Traffic
from lab.link import FULL
from lab.pair import WIRE
from lab.sample import SEED
from lab.sleep import LONG, sleep_and_wake


# -- operations -----------------------------------------------------------------

def device_of(node):
    """The PCI address of its qhca."""
    return node.out("basename $(readlink -f /sys/bus/pci/drivers/qhca/0*)")


def mtu(pair, traffic):
    b = pair.b
    b.exec("for mtu in 1500 9000 1280 4200 1500 4200 9000 4200; do "
           f"ip link set {b.netif} mtu $mtu || exit; sleep 0.1; done", timeout=LONG)


def rings(pair, traffic):
    b = pair.b
    b.exec("for n in 64 1024 128 2048 256 512; do "
           f"ethtool -G {b.netif} rx $n tx $n || exit; sleep 0.1; done", timeout=LONG)


def resize(sig):
    return lambda pair, traffic: traffic.resize(sig)


def reload(pair, traffic):
    pair.b.exec(f"devlink dev reload pci/{device_of(pair.b)}", timeout=LONG)


def function_reset(pair, traffic):
    pair.b.exec(f"echo 1 > /sys/bus/pci/devices/{device_of(pair.b)}/reset", timeout=LONG)


def unbind(pair, traffic):
    b, device = pair.b, device_of(pair.b)
    b.exec(f"echo {device} > /sys/bus/pci/drivers/qhca/unbind", timeout=LONG)
    b.exec(f"echo {device} > /sys/bus/pci/drivers/qhca/bind", timeout=LONG)


def unplug(pair, traffic):
    pair.b.unplug()
    pair.b.plug()


def netdev(pair, traffic):
    b = pair.b
    b.exec(f"for i in 1 2 3; do ip link set {b.netif} down && sleep 0.1 && "
           f"ip link set {b.netif} up && sleep 0.1 || exit; done", timeout=LONG)


def link(pair, traffic):
    b = pair.b
    for up in (False, True):
        b.set_link(up)
        b.wait_until(f"[ $(cat /sys/class/net/{b.netif}/carrier) = {int(up)} ]")


def peer_process(pair, traffic):
    traffic.kill(pair.a, RDMA)


def peer_guest(pair, traffic):
    traffic.forget(pair.a)
    pair.a.kill()
    pair.a.close()
    pair.a.boot()


def suspend_devices(pair, traffic):
    """All devices, and up again, without the machine."""
    sleep_and_wake(pair.b, "cd /sys/power && echo 0 > /sys/module/suspend/parameters/pm_test_delay && "
                   "echo devices > pm_test && echo mem > state && echo none > pm_test", lambda: None)


def suspend(pair, traffic):
    """To memory, from which the monitor wakes the guest."""
    b = pair.b
    mark = b.qmp_client.mark()

    def wake():
        b.qmp_client.wait_event("SUSPEND", None, mark, LONG * b.patience)
        b.qmp("system_wakeup")

    # The reset at the wake-up takes away the address of the power management registers
    # (PMBASE and ACPI_CNTL of the LPC bridge), and SeaBIOS does not restore it. The next
    # suspend would return at once.
    bridge = "/sys/bus/pci/devices/0000:00:1f.0/config"
    b.exec(f"head -c 72 {bridge} | tail -c 8 > /tmp/lpc")
    sleep_and_wake(b, "echo mem > /sys/power/state", wake)
    b.exec(f"dd if=/tmp/lpc of={bridge} bs=1 seek=64 conv=notrunc status=none")


def fatal(pair, traffic):
    b = pair.b
    recoveries = f"ethtool -S {b.netif} | sed -n 's/.*drv_recoveries: //p'"
    before = int(b.out(recoveries))
    b.qmp("qom-set", path=f"/machine/peripheral/{b.first_device['id']}",
          property="inject-fatal", value=True)
    b.wait_until(f'[ "$({recoveries})" = {before + 1} ]', LONG)
    # It is counted before the device is up again.
    b.wait_until("grep -q ACTIVE /sys/class/infiniband/qhca*/ports/1/state", LONG)


def pci_error(pair, traffic):
    aer.inject(pair.b, "RCVR", "correctable", "RxErr")
    aer.inject(pair.b, "COMP_TIME", "nonfatal", "CmpltTO")


# What becomes of RDMA traffic at an end.
GOES_ON, MAY_END, ENDS, GONE = "goes on", "may end", "ends", "gone"


@dataclass(frozen=True)
class Operation:
    """What is done to b, and how RDMA traffic takes it at either end.

    Ethernet and the kernel consumer always go on, as soon as there is a device.
    """
    do: object
    times: int = 2
    a: str = GOES_ON
    b: str = GOES_ON
    anew: bool = False      # the interface has to be set up again each time
    hard: bool = False      # in each sample


OPERATIONS = {
    "mtu": Operation(mtu, 3, hard=True),
    "rings": Operation(rings, 3),
    "resize_cq": Operation(resize("USR1"), 5),
    "resize_srq": Operation(resize("USR2"), 5),
    "reload": Operation(reload, 3, ENDS, GONE),
    "flr": Operation(function_reset, 3, ENDS, GONE),
    "unbind": Operation(unbind, 3, ENDS, GONE, anew=True),
    "unplug": Operation(unplug, 2, ENDS, GONE, anew=True),
    # The kernel takes its IPv6 addresses away with the interface.
    "netdev": Operation(netdev, 2, MAY_END, MAY_END, anew=True),
    "link": Operation(link, 3, MAY_END, MAY_END),
    "peer_process": Operation(peer_process, 1, GONE, ENDS),
    "peer_guest": Operation(peer_guest, 1, GONE, ENDS),
    "suspend_devices": Operation(suspend_devices, 2, ENDS, GONE),
    "suspend": Operation(suspend, 2, ENDS, GONE),
    "fatal": Operation(fatal, 2, ENDS, GONE, hard=True),
    "pci_error": Operation(pci_error, 2),
}

# What is done to fresh traffic.
NOTHING = Operation(None, 0)


@dataclass(frozen=True)
class Cell:
    operation: str
    kinds: tuple = field(default=KINDS)

    @property
    def id(self):
        # "all" would be a part of rc-small.
        return f"{'every' if self.kinds == KINDS else '+'.join(self.kinds)}-{self.operation}"


def cells():
    if FULL:
        # The reset at a wake-up from memory also takes away the window of the extended
        # configuration space (PCIEXBAR of the host bridge), which SeaBIOS does not restore
        # before the kernel restores AER there. No later cell can have errors reported.
        return sorted((Cell(name, kinds) for kinds in (KINDS, *((kind,) for kind in KINDS))
                       for name in OPERATIONS), key=lambda cell: cell.operation == "suspend")
    others = [kind for kind in KINDS if kind != "flood"]
    random.Random(SEED).shuffle(others)
    hard = [name for name, operation in OPERATIONS.items() if operation.hard]
    # Those that the traffic survives come last.
    hard.sort(key=lambda name: (OPERATIONS[name].a, OPERATIONS[name].b) == (GOES_ON, GOES_ON))
    if WIRE != "shm":
        return [Cell(name, ("flood", kind)) for name, kind in zip(hard, others)]
    others.sort(key=lambda kind: kind not in ANSWERS)
    return [Cell(name, kinds) for name, kind in zip(hard, others)
            for kinds in (("flood", kind), ANSWERS)]


# -- cells ----------------------------------------------------------------------

def ends(kind, operation, node):
    """How RDMA traffic takes it there, or None."""
    if kind not in RDMA:
        return None
    expected = getattr(operation, node)
    # Datagrams go where nobody is.
    return GOES_ON if kind == "ud" and expected in (ENDS, MAY_END) else expected


def errors(kind, operation):
    """The completions in error that there may be."""
    allowed = {FLUSHED, RETRY_EXCEEDED}
    # A process that is killed loses its memory before its QPs, which nothing can then
    # bring in for.
    if kind == "paging" and operation.do == peer_process:
        allowed.add(REMOTE_ACCESS)
    return allowed


def judge(kind, operation, node, report):
    """Compares how an end took it with how it had to."""
    what = f"{kind} on {node} {operation}: {report}"
    expected = ends(kind, operation, node)
    assert report.sound, what
    assert report.statuses <= errors(kind, operation), what
    if expected == GONE:
        assert report.fatal, what
    elif expected == ENDS:
        assert report.ended and not report.fatal, what
    elif expected == GOES_ON:
        assert not report.ended and not report.statuses, what


def objects(node):
    """Numbers of RDMA objects, without the device's number, which changes."""
    return re.sub(r"^\d+: ", "", node.out("rdma res show"), flags=re.M)


def wait_goes_on(traffic, kinds):
    """Waits until there is more traffic of these kinds, for which vCPUs wait if they may."""
    traffic.wait_progress(kinds)
    if traffic.kinds == ANSWERS and kinds and all(traffic.pair.shm):
        traffic.wait_answers()


@contextlib.contextmanager
def under_way(pair, kinds):
    """Traffic of these kinds."""
    traffic = Traffic(pair, kinds)
    try:
        traffic.start()
        wait_goes_on(traffic, kinds)
        yield traffic
    finally:
        traffic.abandon()


def perform(pair, traffic, operation):
    for _ in range(operation.times if FULL else 1):
        operation.do(pair, traffic)
        if operation.anew:
            pair.b.configure()
    # A device that was reset has its GIDs anew.
    if not operation.anew:
        pair.b.configure()
    pair.wait_link()
    for node in pair:
        traffic.wait_over(node, [kind for kind in traffic.kinds
                                 if ends(kind, operation, node.name) in (ENDS, GONE)])
    goes_on = {kind for kind in traffic.kinds
               if kind not in RDMA or (operation.a, operation.b) == (GOES_ON, GOES_ON)}
    if not all(traffic.here.values()):
        goes_on &= {"kernel"}
    wait_goes_on(traffic, goes_on)


def run_cell(pair, cell):
    operation = OPERATIONS[cell.operation]
    before = [objects(node) for node in pair]
    with under_way(pair, cell.kinds) as traffic:
        perform(pair, traffic, operation)
        for (kind, node), report in traffic.stop().items():
            judge(kind, operation, node, report)
    if FULL:
        with under_way(pair, cell.kinds) as traffic:
            for (kind, node), report in traffic.stop().items():
                judge(kind, NOTHING, node, report)
    for node, most in zip(pair, before):
        wait_for(lambda: objects(node) == most, 60 * node.patience,
                 f"{node.name}: objects are left behind, where there was {most}")


@pytest.mark.parametrize("cell", cells(), ids=lambda cell: cell.id)
def test_matrix(watchful, cell):
    run_cell(watchful, cell)
