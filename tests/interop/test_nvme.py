# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A kernel consumer: an NVMe-oF target in one guest, its host in the other.

The host registers what it gives the target by REG_MR and invalidates it, or
has it invalidated; the target's buffers and both sides' capsules are under the
reserved L_Key. Counters prove both.
"""

import pytest

from lab import script
from lab.link import FULL, qhca_links

NQN = "qhca-test"
SIZE = "256M" if FULL else "32M"

LINK = f"/sys/kernel/config/nvmet/ports/1/subsystems/{NQN}"


class Nvme:
    """The target's guest and the host's."""

    def __init__(self, target, host):
        self.target, self.host = target, host

    def connect(self, loss=3):
        """`loss`: for how many seconds the host tries to have the target back.

        A connection that ends is noticed; keep-alives would take a busy machine for
        one that is gone."""
        self.host.out(f"nvme connect -t rdma -n {NQN} -a {self.target.ip4} -s 4420 -i 2 -Q 32 "
                      f"--reconnect-delay=1 --ctrl-loss-tmo={loss} --keep-alive-tmo=60", timeout=60)
        self.host.wait_until("[ -b /dev/nvme0n1 ]", 30, "the namespace")

    def disconnect(self):
        self.host.out(f"nvme disconnect -n {NQN}", timeout=60)
        self.wait_gone()

    def wait_gone(self):
        self.host.wait_until("[ ! -e /dev/nvme0 ]", 60, "the controller's end")

    def wait_busy(self):
        self.host.wait_until("[ $(awk '{print $1 + $2}' /sys/block/nvme0n1/inflight) -gt 0 ]",
                             30, "I/O under way")

    def fio(self, options):
        return ("fio --name=test --filename=/dev/nvme0n1 --direct=1 --ioengine=libaio "
                f"--iodepth=8 {options}")


def counted(node, before):
    return {name: value - before[name] for name, value in node.counters().items()}


@pytest.fixture(params=qhca_links(), ids=lambda link: link.id)
def link(request):
    return request.param


@pytest.fixture
def nvme(ends):
    target, host = ends
    host.out("modprobe nvme-rdma")
    target.exec(script("interop/scripts/nvmet-add.sh", NQN, target.ip4), timeout=60)
    try:
        yield Nvme(target, host)
    finally:
        host.exec(f"nvme disconnect -n {NQN}", check=False, timeout=60)
        target.exec(script("interop/scripts/nvmet-remove.sh", NQN), check=False, timeout=60)
    # Whoever leaves an object behind keeps the modules from going.
    host.out("modprobe -r nvme-rdma", timeout=60)
    for node in ends:
        assert "nvme_rdma" not in node.out("lsmod") and "nvmet_rdma" not in node.out("lsmod")


def test_nvme_data(nvme):
    before = [node.counters() for node in (nvme.target, nvme.host)]
    nvme.connect()
    done = nvme.host.exec(nvme.fio("--rw=randwrite --bsrange=4k-128k --verify=crc32c "
                                   f"--verify_fatal=1 --size={SIZE}"), timeout=600)
    assert "err= 0" in done.out, done
    nvme.disconnect()
    target, host = (counted(node, old) for node, old in zip((nvme.target, nvme.host), before))
    # No request is in more than 128 KiB, and each is registered anew: the
    # entry changes by work requests, for there is no command in between.
    requests = 2 * int(SIZE[:-1]) * 1024 // 128
    assert host["pt_invalidations"] >= requests, host
    assert host["commands"] < requests // 4, host
    assert host["reserved_lkey_uses"] > 0, host
    assert target["reserved_lkey_uses"] >= requests, target
    assert not target["protection_errors"] and not host["protection_errors"]


def test_nvme_disconnect_under_io(nvme):
    for _ in range(3 if FULL else 2):
        nvme.connect()
        job = nvme.host.spawn(nvme.fio("--rw=randrw --bs=16k --size=32M --time_based --runtime=60"))
        nvme.wait_busy()
        nvme.disconnect()
        # fio fails when its device goes, which is what shows that it was busy.
        assert job.wait(60, check=False).code != 0
    nvme.connect()
    nvme.host.out(nvme.fio("--rw=write --bs=64k --size=4M --verify=crc32c"), timeout=60)
    nvme.disconnect()


def test_nvme_target_goes_under_io(nvme):
    nvme.connect()
    job = nvme.host.spawn(nvme.fio("--rw=randrw --bs=16k --size=32M --time_based --runtime=60"))
    nvme.wait_busy()
    nvme.target.out(f"rm {LINK}", timeout=60)
    assert job.wait(60, check=False).code != 0
    nvme.wait_gone()
    # ... and then returns.
    nvme.target.out(f"ln -s /sys/kernel/config/nvmet/subsystems/{NQN} {LINK}")
    nvme.connect()
    nvme.host.out(nvme.fio("--rw=write --bs=64k --size=4M --verify=crc32c"), timeout=60)
    nvme.disconnect()


@pytest.mark.full
def test_nvme_host_unplugged_under_io(nvme):
    """The host's device goes, and with it the controller; another may come."""
    nvme.connect()
    job = nvme.host.spawn(nvme.fio("--rw=randrw --bs=16k --size=32M --time_based --runtime=60"))
    nvme.wait_busy()
    nvme.host.unplug()
    assert job.wait(60, check=False).code != 0
    nvme.wait_gone()
    nvme.host.plug()
    nvme.host.configure()
    nvme.connect()
    nvme.host.out(nvme.fio("--rw=write --bs=64k --size=4M --verify=crc32c"), timeout=60)
    nvme.disconnect()


@pytest.mark.full
def test_nvme_target_unplugged_under_io(nvme):
    """The target's device goes and comes back: I/O waits for it meanwhile.

    The port listens at an address of the device, and ends with it.
    """
    nvme.connect(loss=600)
    job = nvme.host.spawn(nvme.fio("--rw=randrw --bs=16k --size=32M --time_based --runtime=40"))
    nvme.wait_busy()
    nvme.target.unplug()
    nvme.host.wait_until("! grep -q live /sys/class/nvme/nvme0/state", 60, "the target's loss")
    assert job.poll() is None
    nvme.target.plug()
    nvme.target.configure()
    nvme.target.out(f"rm {LINK}; ln -s /sys/kernel/config/nvmet/subsystems/{NQN} {LINK}")
    done = job.wait(180)
    assert "err= 0" in done.out, done
    nvme.host.out(nvme.fio("--rw=write --bs=64k --size=4M --verify=crc32c"), timeout=60)
    nvme.disconnect()
