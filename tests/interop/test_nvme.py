# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A kernel consumer: an NVMe-oF target in one guest, its host in the other.

The host registers what it gives the target by REG_MR and invalidates it, or
has it invalidated; the target's buffers and both sides' capsules are under the
reserved L_Key. Counters prove both.
"""

import pytest

from lab.link import FULL, qhca_links
from lab.nvme import NQN, serving

SIZE = "256M" if FULL else "32M"

LINK = f"/sys/kernel/config/nvmet/ports/1/subsystems/{NQN}"


def counted(node, before):
    return {name: value - before[name] for name, value in node.counters().items()}


@pytest.fixture(params=qhca_links(), ids=lambda link: link.id)
def link(request):
    return request.param


@pytest.fixture
def nvme(ends):
    with serving(*ends) as connection:
        yield connection


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


@pytest.mark.full
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
