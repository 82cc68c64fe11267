# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""An NVMe-oF target in one guest, and its host in another."""

import contextlib

from .script import script

NQN = "qhca-test"


class Nvme:
    """The target's guest and the host's."""

    def __init__(self, target, host):
        self.target, self.host = target, host

    def connect(self, loss=3, address=None):
        """`loss`: for how many seconds the host tries to have the target back.
        `address`: the target's, if it has several.

        A connection that ends is noticed; keep-alives would take a busy machine for
        one that is gone."""
        self.host.out(f"nvme connect -t rdma -n {NQN} -a {address or self.target.ip4} -s 4420 -i 2 -Q 32 "
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


@contextlib.contextmanager
def serving(target, host, addresses=()):
    """The target serves meanwhile, and the host may connect; an Nvme. The target listens on
    each of the addresses, or on its first one."""
    host.out("modprobe nvme-rdma")
    target.exec(script("interop/scripts/nvmet-add.sh", NQN, *(addresses or (target.ip4,))), timeout=60)
    try:
        yield Nvme(target, host)
    finally:
        host.exec(f"nvme disconnect -n {NQN}", check=False, timeout=60)
        target.exec(script("interop/scripts/nvmet-remove.sh", NQN), check=False, timeout=60)
    # Whoever leaves an object behind keeps the modules from going.
    host.out("modprobe -r nvme-rdma", timeout=60)
    for node in target, host:
        assert "nvme_rdma" not in node.out("lsmod") and "nvmet_rdma" not in node.out("lsmod")
