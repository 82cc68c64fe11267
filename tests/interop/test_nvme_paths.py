# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""NVMe-oF with two paths, each over a qhca of its own at both ends: one of them goes in the
middle of writes that are verified, and may come back."""

import pytest

from lab import content, wait_for
from lab.nvme import serving

# Seconds of I/O, of which the path is away for some.
SECONDS = 60


class Paths:
    """The guests with two links, and what connects them."""

    def __init__(self, pair, nvme):
        self.pair, self.nvme = pair, nvme
        self.host = nvme.host

    def live(self):
        """The addresses of the controllers that are connected."""
        return set(self.host.out("cd /sys/class/nvme; grep -lx live nvme*/state | while read -r f; do "
                                 "sed 's/traddr=//; s/,.*//' ${f%state}address; done").split())

    def wait_live(self, *ports, timeout=120):
        expected = {port.peer.ip4 for port in ports}
        wait_for(lambda: self.live() == expected, timeout * self.host.patience,
                 f"the controllers of {expected} alone are live")

    def sent(self):
        return [port.counters()["tx_packets"] for port in self.host.ports]

    def wait_traffic(self, *ports):
        """Waits until each of the host's ports has sent more."""
        before = self.sent()
        wait_for(lambda: all(self.sent()[port.link] > before[port.link] + 50 for port in ports),
                 60 * self.host.patience, f"traffic of ports {[port.link for port in ports]}")

    def link(self, up):
        """Of the first port, at both ends."""
        for node in self.pair:
            node.set_link(up)


@pytest.fixture
def paths(pairs):
    pair = pairs.get("qhca+qhca", "qhca+qhca", wire="stream")
    target, host = pair
    addresses = [port.ip4 for port in target.ports]
    with content(*pair), serving(target, host, addresses) as nvme:
        for address in addresses:
            nvme.connect(600, address)
        found = Paths(pair, nvme)
        found.wait_live(*host.ports)
        host.out("echo round-robin > /sys/class/nvme-subsystem/nvme-subsys0/iopolicy")
        yield found


def writes(paths):
    return paths.host.spawn(paths.nvme.fio(
        "--rw=randwrite --bsrange=4k-64k --size=8M --verify=crc32c --verify_fatal=1 "
        f"--time_based --runtime={SECONDS} --do_verify=1 --verify_backlog=64"))


def finish(paths, job):
    done = job.wait(300)
    assert "err= 0" in done.out, done


@pytest.mark.full
def test_link_of_a_path(paths):
    """The other path has all I/O until the link is back."""
    one, two = paths.host.ports
    job = writes(paths)
    paths.wait_traffic(one, two)
    paths.link(False)
    paths.wait_live(two)
    before = paths.sent()
    paths.wait_traffic(two)
    # At most attempts to connect, which the link takes none of.
    assert paths.sent()[0] <= before[0] + 100
    assert job.poll() is None
    paths.link(True)
    paths.wait_live(one, two)
    paths.wait_traffic(one, two)
    assert job.poll() is None, job.poll()
    finish(paths, job)


@pytest.mark.full
def test_device_of_a_path(paths):
    """The host's device is unplugged, and its controller goes with it."""
    one, two = paths.host.ports
    job = writes(paths)
    paths.wait_traffic(one, two)
    paths.host.unplug()
    wait_for(lambda: paths.live() == {two.peer.ip4}, 120, "one controller alone")
    paths.host.wait_until("[ $(ls -d /sys/class/nvme/nvme* | wc -l) = 1 ]", 60)
    assert job.poll() is None
    paths.host.plug()
    paths.host.configure()
    paths.nvme.connect(600, one.peer.ip4)
    paths.wait_live(one, two)
    assert job.poll() is None, job.poll()
    finish(paths, job)
