# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Deaths of the device, starts that fail, one after the other, and PCI errors.

kernel/qhca_test_fail.c makes starts fail or the device die in them: all of them
allocate memory that the device is to use. kernel/qhca_test_slot.c resets the slot as
the PCI core does after an error.
"""

import json
import os
import re

import pytest

from lab import content, devlink, paths, script, wait_for
from lab.sleep import sleep_and_wake

FULL = os.environ.get("FULL", "") not in ("", "0")

ATTEMPTS = 5
PARAMETERS = "/sys/module/qhca_test_fail/parameters"


class Victim:
    """A guest whose device is made to die."""

    def __init__(self, node):
        self.node = node
        self.pci = devlink.device(node).removeprefix("pci/")

    def die(self):
        self.node.qmp("qom-set", path="/machine/peripheral/nic0", property="inject-fatal", value=True)

    def let(self, **parameters):
        """What goes wrong from now on."""
        for name, value in parameters.items():
            self.node.exec(f"echo {value} > {PARAMETERS}/{name}")

    def fail(self, times):
        """So many starts, from the next one on, fail."""
        self.let(times=times, nth=1)

    def mark(self):
        """The log begins here."""
        self.node.exec("dmesg -C")

    def wait_log(self, text, count=1):
        self.node.wait_until(f"[ $(dmesg | grep -c '{text}') -ge {count} ]", what=f"{count} x {text}")

    def logged(self, text):
        return int(self.node.out(f"dmesg | grep -c '{text}' || :"))

    def attempts(self):
        return int(self.node.out(f"ethtool -S {self.node.netif} | sed -n 's/.*drv_recoveries: //p'"))

    def wait_left_down(self):
        self.wait_log("left down until it is reset or reloaded")

    def is_up(self):
        return self.node.exec("ls /sys/class/infiniband/*/ports/1/state && "
                              f"[ $(cat /sys/class/net/{self.node.netif}/carrier) = 1 ]",
                              check=False).ok


@pytest.fixture(scope="module")
def pair(pairs, wire):
    """Afterwards the devices pass traffic."""
    found = pairs.get("qhca", "qhca", wire=wire)
    name = "qhca_test_fail"
    found.b.push(paths.BUILD / "modules" / found.b.release / f"{name}.ko", f"/tmp/{name}.ko")
    found.b.exec(f"insmod /tmp/{name}.ko kinds=16", timeout=120)
    yield found
    found.b.exec(f"rmmod {name}", timeout=120)
    found.wait_link()


@pytest.fixture
def victim(pair):
    found = Victim(pair.b)
    # A reload ends the count of attempts, so each test has five.
    found.node.exec(f"devlink dev reload pci/{found.pci}")
    found.node.configure()
    found.mark()
    try:
        with content(*pair):
            yield found
    finally:
        found.let(nth=0, die=0)


class Reporter:
    """A health reporter of the victim's driver."""

    def __init__(self, victim, name):
        self.node = victim.node
        self.args = f"pci/{victim.pci} reporter {name}"

    def show(self):
        shown = json.loads(self.node.out(f"devlink -j health show {self.args}"))
        ((entry,),) = shown["health"].values()
        return entry

    def do(self, command, *options):
        return self.node.exec(" ".join(("devlink health", command, self.args, *options)), timeout=120)


def test_reporters(victim):
    """devlink counts a death and its recovery, and keeps a dump of the first one."""
    fatal = Reporter(victim, "fatal")
    fatal.do("dump clear")
    before = fatal.show()
    assert before["state"] == "healthy" and before["auto_recover"] is True
    assert "dead" not in fatal.do("diagnose").out.split("last_death")[0]
    victim.die()
    victim.wait_log("qhca .*: recovered")
    victim.node.configure()
    after = fatal.show()
    assert after["state"] == "healthy"
    assert (after["error"], after["recover"]) == (before["error"] + 1, before["recover"] + 1)
    dump = fatal.do("dump show").out
    assert "fatal" in dump and "injected" in dump
    fatal.do("dump clear")
    assert "state: up" in fatal.do("diagnose").out
    tx = Reporter(victim, "tx")
    assert tx.show()["state"] == "healthy"
    assert re.search("started: true.*posted", tx.do("diagnose").out, re.S)


def test_no_auto_recovery(victim):
    """A dead device stays dead until it is asked for."""
    fatal = Reporter(victim, "fatal")
    fatal.do("set", "auto_recover false")
    try:
        for recover in (lambda: fatal.do("recover"),
                        lambda: victim.node.exec(f"devlink dev reload pci/{victim.pci}", timeout=120)):
            victim.mark()
            victim.die()
            victim.wait_log("qhca .*: dead")
            victim.node.wait_until(f"devlink health show {fatal.args} | grep -q 'state error'")
            assert not victim.logged("qhca .*: recovered")
            recover()
            assert fatal.show()["state"] == "healthy"
            victim.node.configure()
    finally:
        fatal.do("set", "auto_recover true")


def test_reporter_test(victim):
    """The reporter's own test is a death, too."""
    Reporter(victim, "fatal").do("test")
    victim.wait_log("dead: test of the reporter")
    victim.wait_log("qhca .*: recovered")
    victim.node.configure()


@pytest.mark.parametrize("recover", ("auto", pytest.param("by-hand", marks=pytest.mark.full)))
def test_transmit_timeout(pair, victim, recover):
    """The peer's machine stands still and takes no frames, until the stack's watchdog finds the
    queue full and stopped. The driver reports that, and the recovery restarts the queue."""
    node, tx = victim.node, Reporter(victim, "tx")
    tx.do("dump clear")
    tx.do("set", f"auto_recover {'true' if recover == 'auto' else 'false'}")
    before = tx.show()
    neighbour = f"{pair.a.ip4} dev {node.netif}"
    node.exec(f"ip neigh replace {neighbour} lladdr {pair.a.mac} nud permanent")
    flood = node.spawn(script("guest/scripts/flood.sh", pair.a.ip4))
    pair.a.qmp("stop")
    try:
        victim.wait_log("transmit timeout of queue")
        wait_for(lambda: tx.show()["error"] > before["error"], 60, "no report")
        if recover == "by-hand":
            assert tx.show()["state"] == "error"
            tx.do("recover")
        wait_for(lambda: tx.show()["recover"] > before["recover"], 60, "no recovery")
    finally:
        flood.kill()
        flood.wait(60, check=False)
        pair.a.qmp("cont")
        node.exec(f"ip neigh del {neighbour}")
        tx.do("set", "auto_recover true")
    assert tx.show()["state"] == "healthy"
    dump = tx.do("dump show").out
    posted, sent = (int(re.search(rf"{name}: (\d+)", dump).group(1)) for name in ("posted", "sent"))
    assert posted > sent and "stopped: true" in dump, dump
    node.wait_until(f"ping -c 1 -W 1 {pair.a.ip4}")


def test_start_fails(victim):
    """Recovery tries again when the start fails."""
    before = victim.attempts()
    victim.fail(3)
    victim.die()
    victim.wait_log("qhca .*: recovered")
    assert victim.logged("recovery failed") == 3
    victim.node.configure()
    assert victim.attempts() == before + 4


@pytest.mark.parametrize("when", (1, 2, 4) if FULL else (1, 4))
def test_death_in_start(victim, when):
    """The device dies before the driver is done with a start."""
    victim.let(die=when)
    victim.die()
    victim.wait_log("qhca .*: dead: reset by someone else")
    victim.wait_log("qhca .*: recovered")
    victim.node.configure()


def test_reload_fails(victim):
    """The reload reports the failure, and the device recovers."""
    victim.fail(2)
    done = victim.node.exec(f"devlink dev reload pci/{victim.pci}", check=False)
    assert not done.ok and "does not start" in done.err
    victim.wait_log("qhca .*: recovered")
    victim.node.configure()


def test_flr_fails(victim):
    """The start after a function level reset fails."""
    victim.fail(2)
    victim.node.exec(f"echo 1 > /sys/bus/pci/devices/{victim.pci}/reset")
    assert victim.logged("not up after reset") == 1
    victim.wait_log("qhca .*: recovered")
    victim.node.configure()


def test_rings_fail(victim):
    """At first the driver can create neither the new rings nor the old ones."""
    node = victim.node
    victim.fail(3)
    done = node.exec(f"ethtool -G {node.netif} tx 64", check=False)
    assert not done.ok
    # On a slow guest the driver has tried again by now.
    assert victim.logged("queue not restarted") >= 1
    node.wait_until(f"ping -c 1 -W 1 {node.peer.ip4}")
    assert victim.logged("queue not restarted") == 2
    current = node.out(f"ethtool -g {node.netif}").partition("Current")[2]
    assert re.search(r"^TX:\s+512$", current, re.M)


def reset_slot(victim, tap_points, lose):
    """The driver's part in the reset of the slot, after a fatal error of the link."""
    node, name = victim.node, "qhca_test_slot"
    node.push(paths.BUILD / "modules" / node.release / f"{name}.ko", f"/tmp/{name}.ko")
    done = node.exec(f"insmod /tmp/{name}.ko lose={lose}; code=$?; [ $code != 0 ] || rmmod {name}; "
                     "dmesg; exit $code", timeout=120, check=False)
    tap_points("\n".join(re.findall(rf"{name}: (.*)$", done.out, re.M)), done.code)
    assert victim.logged("qhca .*: dead: PCI error") == 1


def function_level_reset(victim):
    victim.node.exec(f"echo 1 > /sys/bus/pci/devices/{victim.pci}/reset")


def hibernate(victim):
    """The guest has nowhere to write its image to, and notices when all devices are frozen."""
    sleep_and_wake(victim.node, "! echo disk > /sys/power/state", lambda: None)
    assert victim.logged("Cannot find swap device") == 1


@pytest.mark.parametrize("before", (None, pytest.param(function_level_reset, marks=pytest.mark.full),
                                    hibernate), ids=("first", "after-flr", "after-hibernation"))
def test_slot_reset(victim, tap_points, before):
    """A device that answers after the reset of its slot is started again."""
    if before:
        before(victim)
    reset_slot(victim, tap_points, 0)
    victim.node.configure()


def test_slot_reset_unanswered(victim, tap_points):
    """One that does not answer is given up, and found anew when the bus is scanned."""
    reset_slot(victim, tap_points, 1)
    assert victim.logged("no answer after slot reset") == 1
    assert not victim.is_up()
    victim.node.exec(f"echo 1 > /sys/bus/pci/devices/{victim.pci}/remove && "
                     "echo 1 > /sys/bus/pci/rescan", timeout=120)
    victim.node.configure()


def left_down(victim):
    victim.wait_left_down()
    assert not victim.is_up()


def test_left_down_after_failures(victim):
    """Five attempts, and no more; the module, loaded anew, brings the device back."""
    victim.fail(1000000)
    victim.die()
    left_down(victim)
    assert victim.logged("recovery failed") == ATTEMPTS
    victim.let(nth=0)
    victim.node.exec("rmmod qhca_ib qhca")
    victim.node.configure()


@pytest.mark.parametrize("how", ("devlink dev reload pci/{}",
                                 pytest.param("echo 1 > /sys/bus/pci/devices/{}/reset",
                                              marks=pytest.mark.full)),
                         ids=("reload", "reset"))
def test_left_down_after_deaths(victim, how):
    """Five recoveries from deaths that follow each other, and no more."""
    for n in range(ATTEMPTS):
        victim.die()
        victim.wait_log("qhca .*: recovered", n + 1)
    victim.die()
    left_down(victim)
    assert victim.logged("qhca .*: recovered") == ATTEMPTS
    victim.node.exec(how.format(victim.pci))
    victim.node.configure()
