# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Ends of processes, drivers, devices and guests in the middle of traffic.

Guest b is the victim and serves RDMA WRITEs from guest a, whose requests must
end with an error, and soon; afterwards both ends must work again.
"""

import contextlib
import os
import re

import pytest

from lab import content, script, verbs, wait_for

FULL = os.environ.get("FULL", "") not in ("", "0")

RETRY_EXCEEDED = 12     # IBV_WC_RETRY_EXC_ERR


class Traffic:
    """ib_write_bw from a to b, without an end of its own."""

    def __init__(self, a, b):
        self.a, self.b = a, b
        port = verbs.next_port()
        options = f"-p {port} -F -s 65536 -D 600"
        self.server = b.spawn(f"exec ib_write_bw -d {b.ibdev} -x {b.gid_index()} {options}")
        b.wait_until(verbs.listening(port))
        self.client = a.spawn(f"exec ib_write_bw -d {a.ibdev} -x {a.gid_index()} {options} {b.ip4}")
        before = a.counters()["tx_packets"]
        wait_for(lambda: a.counters()["tx_packets"] > before + 1000, 60, "traffic from a to b")

    def client_error(self, timeout=60):
        """Waits for the end of the client; the status of its completion."""
        done = self.client.wait(timeout, check=False)
        status = re.search(r"Failed status (\d+)", done.out + done.err)
        assert not done.ok and status, f"the client had no error: {done}"
        return int(status.group(1))

    def lost(self):
        """The server's guest knows nothing of it any more."""
        self.server = None

    def stop(self):
        for process in (self.client, self.server):
            if process and process.guest.running and process.poll() is None:
                process.kill()
                process.wait(60, check=False)


@pytest.fixture(scope="module")
def pair(pairs, wire):
    return pairs.get("qhca", "qhca", wire=wire)


@pytest.fixture
def ends(pair):
    """(a, b), which pass traffic after each test, their kernels content."""
    with content(*pair):
        yield pair.a, pair.b
    for node in pair:
        assert processes(node) == "", node.name
    verbs.pingpong(pair.a, pair.b, "rc", "-n 100 -c")


@pytest.fixture
def traffic(ends):
    moving = Traffic(*ends)
    yield moving
    moving.stop()


def processes(node):
    """The QPs and memory regions that processes have."""
    return node.out("{ rdma res show qp; rdma res show mr; } | grep ' pid ' || :")


def device_of(node):
    """The PCI address of its qhca."""
    return node.out("basename $(readlink -f /sys/bus/pci/drivers/qhca/0*)")


def test_process_killed(ends, traffic):
    traffic.server.kill()
    traffic.server.wait(60, check=False)
    # Nothing answers for a QP that is gone.
    assert traffic.client_error() == RETRY_EXCEEDED
    assert processes(ends[1]) == ""


@pytest.fixture
def watch(ends):
    """A process of b that prints asynchronous events to /tmp/events."""
    b = ends[1]
    # Who waits for the new file must not see the one before.
    b.exec("rm -f /tmp/events")
    process = b.spawn(f"exec stdbuf -oL ibv_asyncwatch -d {b.ibdev} > /tmp/events")
    b.wait_until("grep -q . /tmp/events")
    yield process
    if b.running and process.poll() is None:
        process.kill()
        process.wait(60, check=False)


def sees_end_of_device(b):
    """A process that waits for events receives the event that its device is gone."""
    b.wait_until("grep -q IBV_EVENT_DEVICE_FATAL /tmp/events")


def test_link_down_and_up(ends, traffic, watch):
    b = ends[1]
    try:
        b.set_link(False)
        b.wait_until(f"rdma link show {b.ibdev}/1 | grep -q 'state DOWN'")
        b.wait_until("grep -q IBV_EVENT_PORT_ERR /tmp/events")
        assert traffic.client_error() == RETRY_EXCEEDED
    finally:
        b.set_link(True)
        b.wait_until(f"rdma link show {b.ibdev}/1 | grep -q 'state ACTIVE'")
    b.wait_until("grep -q IBV_EVENT_PORT_ACTIVE /tmp/events")
    assert watch.poll() is None


@pytest.mark.usefixtures("watch")
def test_modules_removed(ends, traffic):
    """Processes do not hold the modules: they are cut off, as by peers' drivers."""
    b = ends[1]
    b.exec("rmmod qhca_ib qhca")
    assert traffic.client_error() == RETRY_EXCEEDED
    sees_end_of_device(b)
    b.configure()


@pytest.mark.full
@pytest.mark.usefixtures("watch")
def test_unbind(ends, traffic):
    b = ends[1]
    device = device_of(b)
    b.exec(f"echo {device} > /sys/bus/pci/drivers/qhca/unbind")
    assert traffic.client_error() == RETRY_EXCEEDED
    sees_end_of_device(b)
    b.exec(f"echo {device} > /sys/bus/pci/drivers/qhca/bind")
    b.configure()


@pytest.mark.usefixtures("watch")
def test_fatal_error(ends, traffic):
    """A device that dies is reset by its driver, which then goes on."""
    b = ends[1]
    recoveries = "ethtool -S {} | sed -n 's/.*drv_recoveries: //p'".format(b.netif)
    before = int(b.out(recoveries))
    b.qmp("qom-set", path="/machine/peripheral/nic0", property="inject-fatal", value=True)
    assert traffic.client_error() == RETRY_EXCEEDED
    sees_end_of_device(b)
    b.wait_until(f'[ "$({recoveries})" = {before + 1} ]')
    b.configure()


@pytest.mark.usefixtures("watch")
def test_hotplug(ends, traffic):
    b = ends[1]
    b.unplug()
    assert traffic.client_error() == RETRY_EXCEEDED
    sees_end_of_device(b)
    assert b.out("ls /sys/bus/pci/drivers/qhca | grep ^0 || :") == ""
    b.plug()
    b.configure()


def memory(node):
    """(vmalloc areas of the driver, KiB that the kernel holds), unloaded"""
    done = node.exec(script("guest/scripts/unloaded-memory.sh"), check=False)
    vmalloc, *kib = (int(n) for n in done.out.split())
    return vmalloc, sum(kib)


def test_load_and_unload(ends):
    b = ends[1]
    cycles = 100 if FULL else 5
    # The first ones fill caches of the kernel's and QEMU's own.
    b.exec("rmmod qhca_ib qhca")
    b.exec(script("guest/scripts/load-cycles.sh", 3), timeout=120)
    b.exec("insmod /run/qhca/modules/qhca.ko; insmod /run/qhca/modules/qhca_ib.ko")
    vmalloc, before = memory(b)
    assert vmalloc == 0
    held = b.held()
    b.exec(script("guest/scripts/load-cycles.sh", cycles), timeout=60 + 10 * cycles)
    b.exec("insmod /run/qhca/modules/qhca.ko; insmod /run/qhca/modules/qhca_ib.ko")
    # Less than one page a cycle, beside what other parts of the guest do. Some of it
    # comes back a little later; what has leaked never does.
    most = before + 4 * cycles + 256
    left = []

    def given_back():
        left[:] = memory(b)
        return left[0] == 0 and left[1] < most

    with contextlib.suppress(TimeoutError):
        wait_for(given_back, 60, "memory")
    b.configure()
    assert left[0] == 0, "vmalloc areas are left behind"
    assert b.leaks() == ""
    assert left[1] < most, f"the kernel holds {left[1] - before} KiB more"
    more = b.held() - held
    assert more < 16384, f"QEMU holds {more} KiB more"


# By default the guest that is killed stands for it, and qtest resets the machine.
@pytest.mark.full
def test_guest_reset(ends, traffic):
    traffic.lost()
    ends[1].reset()
    assert traffic.client_error() == RETRY_EXCEEDED


def test_guest_killed(pair, ends, traffic):
    """b is another guest afterwards, on the same link."""
    a, b = ends
    traffic.lost()
    b.kill()
    assert traffic.client_error() == RETRY_EXCEEDED
    b.close()
    assert a.running and processes(a) == ""
    b.boot()
    pair.wait_link()
