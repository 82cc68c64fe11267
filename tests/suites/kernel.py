# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What the kernel has over RDMA: RDS, SMC-R, NFS, 9P, iSER."""

import contextlib

from lab import verbs
from lab.script import TESTS, script

from . import Case, Program, Skipped, both, must_use

# Each end of a socket; both check all bytes.
STREAM = "interop/scripts/stream.py"
# The server's sign that its socket is bound: RDS drops what arrives before that.
LISTENS = "/tmp/stream.listens"
# Write, drop the cache, read and compare.
FILES = ("dd if=/dev/urandom of=/tmp/data bs=64k count={count} status=none && "
         "cp /tmp/data {mount}/data && sync && umount {mount} && {again} && "
         "cmp /tmp/data {mount}/data && rm {mount}/data")


def rds(size):
    def run(server, client):
        port = verbs.next_port()
        for node in server, client:
            node.exec(f"modprobe -a rds rds_rdma && rm -f {LISTENS}")
        words = ["python3", "-c", (TESTS / STREAM).read_text()]
        must_use(server, client, lambda: both(
            server, client, [*words, "server", server.ip4, port, size],
            [*words, "client", server.ip4, port, size, client.ip4],
            ready=f"[ -e {LISTENS} ]", timeout=120, expect="all data right"))
    return run


def smc(size):
    """SMC goes on over TCP when it fails with RDMA, which must_use() finds out."""
    def run(server, client):
        port = verbs.next_port()
        for node in server, client:
            if node.exec("modinfo rds && ! modinfo smc", check=False).ok:
                raise Skipped("the kernel is configured without SMC")
            node.exec("modprobe smc")
        program = ["python3", "-c", (TESTS / "interop/scripts/smc.py").read_text()]
        must_use(server, client, lambda: both(
            server, client, [*program, "server", server.ip4, port, size],
            [*program, "client", server.ip4, port, size],
            ready=verbs.listening(port), timeout=120, expect="all data right"), 200)
    return run


def mounted(export, close, mount, module):
    """A case's function: a file goes to the server and comes back unchanged."""
    def run(server, client):
        with contextlib.ExitStack() as stack:
            # What it began is to end even if it fails half-way.
            stack.callback(server.exec, script(f"interop/scripts/{close}"), check=False, timeout=120)
            server.exec(script(f"interop/scripts/{export}", server.ip4), timeout=120)
            line = mount.format(ip=server.ip4)
            client.exec(f"mkdir -p /mnt && modprobe {module} && {line}", timeout=120)
            stack.callback(client.exec, "umount -f /mnt", check=False, timeout=60)
            must_use(server, client, lambda: client.exec(
                FILES.format(count=40, mount="/mnt", again=line), timeout=240))
    return run


def iser(server, client):
    name = "iqn.2003-01.org.linux-iscsi.qhca:test"
    try:
        server.exec(script("interop/scripts/iser-target.sh", name, server.ip4), timeout=120)
        must_use(server, client, lambda: client.exec(
            script("interop/scripts/iser-initiator.sh", name, server.ip4), timeout=240))
    finally:
        client.exec(script("interop/scripts/iser-logout.sh", name), check=False, timeout=60)
        server.exec(script("interop/scripts/iser-end.sh", name), check=False, timeout=60)


# diod serves everything as the user that it runs as.
P9_MOUNT = ("mount -t 9p -o trans=rdma,port=5640,version=9p2000.L,aname=/srv/9p,uname=nobody,"
            "access=any {ip} /mnt")
NFS_MOUNT = "mount -t nfs -o rdma,port=20049,vers=4.2 {ip}:/ /mnt"

KERNEL = (
    Program("RDS", "linux-image-amd64", (
        Case("1 MiB each way", rds(1 << 20)),
    )),
    Program("SMC-R", "linux-image-amd64", (
        Case("1 MiB each way", smc(1 << 20)),
    )),
    Program("NFS", "nfs-kernel-server", (
        Case("write and read", mounted("nfs-export.sh", "nfs-end.sh", NFS_MOUNT, "rpcrdma")),
    )),
    Program("9P", "linux-image-amd64", (
        Case("diod, write and read", mounted("9p-export.sh", "9p-end.sh", P9_MOUNT, "9pnet_rdma")),
    )),
    Program("iSER", "open-iscsi", (Case("write, verify", iser),)),
)
