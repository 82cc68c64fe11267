# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Virtual functions passed on by qhca_vfio.ko, with programs/vfio in the place of a
virtual machine: what is pinned, memory that comes and goes, hostile software; and what
the host does to functions that are in use.

The kernel looks for writes to memory that is free.
"""

import contextlib
import os
import time

import pytest

from lab import content, devlink, note_leaks, paths, script
from lab.functions import Functions
from lab.guest import WATCHFUL, wait_for
from lab.pair import Node

ASSIGNED = "qhca_test_assigned"
FULL = os.environ.get("FULL", "") not in ("", "0")
NUMBER = 2
CASES = ("copy", "interrupt", "reset", "read-only", "bus-addresses", "large", "twice", "replace",
         "traffic", "both", "limit", "discard", "flr", "death", "commands", "outside",
         "promises", "vectors", "nodes", "pool", "queues", "changed")
# The kernel asks a user to give a device up.
ASKED = "dmesg | grep -q 'until released by user'"
# Of what goes on and on while memory comes and goes.
SECONDS = 60 if FULL else 3


@pytest.fixture(scope="module")
def guest():
    node = Node("a", "qhca", 1, netdevs=["hubport,hubid=0"], append=WATCHFUL, memory=1024, cpus=2,
                props={"sriov-vfs": NUMBER}).boot()
    yield node
    note_leaks(node)
    node.close()


class Passed:
    """A virtual function that is bound to qhca-vfio."""

    def __init__(self, node, folder, number):
        self.node = node
        self.gvmi = number + 1
        self.address = node.out(script("guest/scripts/bind-vfio.sh", folder)).split()[-1]

    def stat(self, name):
        return int(self.node.out(f"cat /sys/bus/pci/devices/{self.address}/stage2/{name}"))

    def run(self, *cases, seconds=3, timeout=300, environment=""):
        return self.node.exec(f"SECONDS_EACH={seconds} {environment} qhca-vfio {self.address} "
                              f"{' '.join(cases)} 2>&1", timeout=timeout, check=False)

    def spawn(self, *cases, seconds):
        return self.node.spawn(f"SECONDS_EACH={seconds} exec qhca-vfio {self.address} {' '.join(cases)}")

    def counters(self):
        """What the device counts for the function."""
        (info,) = self.node.qmp("query-qhca")
        (row,) = (vf for vf in info["vfs"] if vf["gvmi"] == self.gvmi)
        return {counter["name"]: counter["value"] for counter in row["counters"]}

    def wait_busy(self):
        wait_for(lambda: self.stat("pages_fault") > 0, 60 * self.node.patience, "faults")


def enabled(guest):
    """All functions, bound."""
    made = Functions(guest)
    guest.exec(f"echo 0 > {made.folder}/sriov_drivers_autoprobe")
    made.write(NUMBER)
    return [Passed(guest, f"{made.folder}/virtfn{n}", n) for n in range(NUMBER)]


def disable(guest):
    made = Functions(guest)
    made.write(0)
    guest.exec(f"echo 1 > {made.folder}/sriov_drivers_autoprobe")


@pytest.fixture(scope="module")
def kept(guest):
    """Functions that one test has left as another wants them: to enable them, and to disable
    them, takes seconds."""
    left = []
    yield left
    if left and guest.running:
        disable(guest)


@pytest.fixture
def functions(guest, kept):
    """They come for the test, and are gone after it, with nothing pinned."""
    if kept:
        kept.clear()
        disable(guest)
    with content(guest):
        yield enabled(guest)
        disable(guest)


@pytest.fixture
def function(functions):
    return functions[0]


@pytest.fixture
def users(guest, kept, request):
    """The functions, of a test that leaves them with nothing pinned."""
    found = kept.pop() if kept else enabled(guest)
    before = request.session.testsfailed
    with content(guest):
        yield found
        if request.session.testsfailed == before and all(idle(each) for each in found):
            kept.append(found)
        else:
            disable(guest)


@pytest.fixture
def user(users):
    return users[0]


def idle(function):
    return function.stat("pages_fault") == 0 and function.stat("pages_device") == 0 and \
        function.stat("nodes") == 0


@pytest.mark.parametrize("case", CASES)
def test_case(user, case, tap_points):
    done = user.run(case, seconds=SECONDS)
    print(done.out)
    assert idle(user)
    tap_points(done.out, done.code)


def test_frames(guest, user, tap_points):
    """Descriptors of Ethernet queues; the physical function sends what the function is to
    receive."""
    asking = guest.spawn(f"ping -i 0.5 -w 60 -I {guest.netif} 10.77.0.99")
    done = user.run("frames")
    asking.kill()
    print(done.out)
    assert idle(user)
    tap_points(done.out, done.code)


def test_two_of_one_guest(users, tap_points):
    one, other = users
    done = one.run("beside", environment=f"BESIDE={other.address}")
    print(done.out)
    assert idle(one) and idle(other)
    tap_points(done.out, done.code)


def test_swapped(guest, user, tap_points):
    guest.exec(script("guest/scripts/swap-file.sh"))
    done = user.run("swapped")
    guest.exec("swapoff /swapfile")
    print(done.out)
    assert idle(user)
    tap_points(done.out, done.code)


def test_counters(function):
    """The device uses the cache of stage 2, and counts what it asks the driver for."""
    busy = function.spawn("traffic", seconds=20)
    function.wait_busy()
    wanted = ("s2_hits", "s2_misses", "s2_node_reads", "s2_invalidations", "page_faults2",
              "tx_rnr_fault2", "pin_requests", "fault_resumes")
    wait_for(lambda: all(function.counters()[name] for name in wanted),
             20 * function.node.patience, "counters")
    now = function.counters()
    print({name: now[name] for name in wanted})
    assert now["s2_hits"] > now["s2_misses"] and now["page_faults1"] == 0
    busy.kill()
    busy.wait(60, check=False)


def test_two_at_once(users, tap_points):
    """One takes memory away under traffic, the other breaks all rules."""
    busy = users[0].spawn("traffic", seconds=20 if FULL else 12)
    users[0].wait_busy()
    hostile = users[1].run("commands", "outside", "promises")
    print(hostile.out)
    tap_points(hostile.out, hostile.code)
    done = busy.wait(120, check=False)
    print(done.out)
    tap_points(done.out, done.code)


def test_reset_by_the_administrator(function):
    """The function's user loses its work, and nothing stays pinned for it."""
    busy = function.spawn("traffic", seconds=20)
    function.wait_busy()
    before = function.stat("tables")
    function.node.exec(f"echo 1 > /sys/bus/pci/devices/{function.address}/reset")
    assert function.stat("tables") > before
    busy.kill()
    busy.wait(60, check=False)
    wait_for(lambda: idle(function), 30 * function.node.patience, "nothing pinned")
    again = function.run("copy")
    assert again.ok, again


def test_recovery_of_the_physical_function(guest, function):
    """It dies and is reset: its user's function dies with it, and can be started again
    by its own software."""
    busy = function.spawn("traffic", seconds=20)
    function.wait_busy()
    before = function.stat("tables")
    guest.qmp("qom-set", path="/machine/peripheral/nic0", property="inject-fatal", value=True)
    wait_for(lambda: function.stat("tables") > before, 60 * guest.patience, "new tables")
    assert function.stat("broken") == 0
    busy.kill()
    busy.wait(60, check=False)
    again = function.run("copy", "reset")
    assert again.ok, again


HEALTH = "devlink health {} {} reporter fatal {}"


def die(guest):
    """The physical function, for good."""
    name = devlink.device(guest)
    guest.exec(HEALTH.format("set", name, "auto_recover false"))
    guest.qmp("qom-set", path="/machine/peripheral/nic0", property="inject-fatal", value=True)
    guest.wait_until(HEALTH.format("show", name, "| grep -q 'state error'"))


@contextlib.contextmanager
def dead(guest):
    """The physical function is dead meanwhile, and recovered after it."""
    name = devlink.device(guest)
    try:
        die(guest)
        yield
        guest.exec(HEALTH.format("recover", name, ""), timeout=120)
    finally:
        guest.exec(HEALTH.format("set", name, "auto_recover true"))


def check_host(guest, device):
    """The driver of the host has the virtual function, and can work with it."""
    guest.exec(f"echo qhca > {device}/driver_override")
    guest.exec(f"echo $(basename $(readlink -f {device})) > /sys/bus/pci/drivers/qhca/bind",
               timeout=120)
    assert guest.out(f"ls {device}/net") and guest.out(f"ls {device}/infiniband")
    guest.exec(f"echo $(basename $(readlink -f {device})) > {device}/driver/unbind")


def test_left_while_the_physical_function_is_dead(guest, function):
    """The user leaves, and so does qhca-vfio. Stage 2 of the function is off when the
    device is up again: the driver that has the function next needs it off."""
    busy = function.spawn("traffic", seconds=600)
    function.wait_busy()
    device = f"/sys/bus/pci/devices/{function.address}"
    with dead(guest):
        busy.kill()
        busy.wait(60, check=False)
        guest.exec(f"echo {function.address} > {device}/driver/unbind")
    check_host(guest, device)


def test_interrupts_change_while_the_physical_function_is_dead(guest, function, tap_points):
    """The kernel writes the command register back in the middle of such a change. The program
    takes all memory away, which switches bus mastering off, and wants it again afterwards."""
    out = "/tmp/broken.tap"
    busy = function.spawn(f"broken > {out}", seconds=0)
    guest.wait_until(f"grep -q '^# at work' {out}")
    with dead(guest):
        guest.wait_until(f"grep -q '^# broken' {out}")
    done = busy.wait(120, check=False)
    points = guest.out(f"cat {out}")
    print(points)
    tap_points(points, done.code)


def test_disabled_in_use(guest, functions):
    """The kernel asks the users to give the devices up, and waits for them; then the functions
    are gone, and nobody writes to what was their users' memory.  Again and again."""
    folder, rounds, end = Functions(guest).folder, 0, time.monotonic() + SECONDS
    while not rounds or time.monotonic() < end:
        busy = [each.spawn("traffic", seconds=600) for each in functions]
        for each in functions:
            each.wait_busy()
        guest.exec("dmesg -C")
        disable = guest.spawn(f"echo 0 > {folder}/sriov_numvfs")
        guest.wait_until(ASKED)
        for process in busy:
            process.kill()
        # Pages that have been written to since they were freed make the kernel complain.
        guest.exec(["python3", "-c", "bytearray(b'x') * (256 << 20)"])
        for process in busy:
            process.wait(60, check=False)
        assert disable.wait(120).ok
        functions = enabled(guest)
        rounds += 1
    print(f"disabled in use {rounds} times")


@contextlib.contextmanager
def assigned(guest):
    """Another hypervisor has a virtual function, which keeps all enabled."""
    guest.push(paths.BUILD / "modules" / guest.release / f"{ASSIGNED}.ko", f"/tmp/{ASSIGNED}.ko")
    guest.exec(f"insmod /tmp/{ASSIGNED}.ko")
    try:
        yield
    finally:
        guest.exec(f"rmmod {ASSIGNED}")


def test_physical_function_goes_alone(guest, functions):
    """qhca-vfio cannot do without the driver of the physical function, whose unbinding waits
    for the user."""
    pci = devlink.device(guest).removeprefix("pci/")
    driver = "/sys/bus/pci/drivers/qhca"
    busy = functions[0].spawn("traffic", seconds=600)
    functions[0].wait_busy()
    guest.exec("dmesg -C")
    with assigned(guest):
        unbind = guest.spawn(f"echo {pci} > {driver}/unbind")
        guest.wait_until(ASKED)
        assert unbind.poll() is None
        busy.kill()
        busy.wait(60, check=False)
        assert unbind.wait(120).ok
        left = "/sys/bus/pci/drivers/qhca-vfio/0*"
        assert guest.out(f"ls -d {left} 2> /dev/null || :") == ""
        guest.exec(f"echo {pci} > {driver}/bind", timeout=120)
    again = Passed(guest, f"{Functions(guest).folder}/virtfn0", 0).run("copy")
    assert again.ok, again


def test_physical_function_goes_dead(guest, functions):
    """Stage 2 of a function cannot be switched off before the driver of the physical function
    goes. The one that comes does that, for the driver that has the function next."""
    pci = devlink.device(guest).removeprefix("pci/")
    driver = "/sys/bus/pci/drivers/qhca"
    busy = functions[0].spawn("traffic", seconds=600)
    functions[0].wait_busy()
    with assigned(guest):
        die(guest)
        busy.kill()
        busy.wait(60, check=False)
        guest.exec(f"echo {pci} > {driver}/unbind", timeout=120)
        guest.exec(f"echo {pci} > {driver}/bind", timeout=120)
        check_host(guest, f"{Functions(guest).folder}/virtfn0")


def test_unplugged_in_use(guest):
    """The whole device goes, and waits for the user of a function as well. The last test: the
    guest's kernel ejects the slot twice, so that a device that comes at once would go, too."""
    with content(guest):
        function, _ = enabled(guest)
        busy = function.spawn("traffic", seconds=600)
        function.wait_busy()
        guest.exec("dmesg -C")
        guest.spawn(f"until {ASKED}; do :; done; kill -9 -- -{busy.pid}")
        guest.unplug(240)
        busy.wait(60, check=False)
        for driver in "qhca", "qhca-vfio":
            left = guest.out(f"ls /sys/bus/pci/drivers/{driver} | grep ^0 || :")
            assert left == "", f"{driver} has {left}"
        guest.exec("rmmod qhca_vfio qhca_ib qhca", timeout=120)
