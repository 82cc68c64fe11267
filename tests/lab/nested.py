# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A virtual machine in a guest, with a virtual function of the guest's qhca device.

The processor that software emulation shows the guest (-cpu max) has SVM with nested
paging, so KVM works in there. The inner machine runs the QEMU, the kernel, the modules
and the programs of the outer one, from the same disks:

    shell = Shell()
    with Pair(props=({"sriov-vfs": 1}, None), a_args=shell.options()) as (a, b):
        with Nested(a, shell, address, mac) as inner:
            verbs.pingpong(b, inner)
"""

import pathlib
import shutil
import socket
import subprocess
import tempfile

from . import paths
from .agent import Agent
from .guest import GuestError, MACHINE, wait_for
from .pair import Node

# Under /run/qhca/ in the outer guest.
FOLDER = "nested"


def _libraries(program):
    """What the program is linked with, and its loader."""
    done = subprocess.run(["ldd", program], stdout=subprocess.PIPE, text=True, check=True)
    words = [line.split() for line in done.stdout.splitlines()]
    return [next(word for word in line if word.startswith("/")) for line in words
            if any(word.startswith("/") for word in line)]


class Shell:
    """What a guest needs to have a machine in it: files, a disk, and a port for the inner
    machine's agent."""

    def __init__(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="qhca-nested-"))
        self.release = paths.kernel_release()
        self.socket = self.dir / "agent"

    def options(self):
        """Arguments of the outer Guest."""
        qemu = pathlib.Path(paths.qemu())
        files = {f"{FOLDER}/qemu": qemu, f"{FOLDER}/vmlinuz": paths.kernel(self.release),
                 f"{FOLDER}/initramfs": paths.initramfs(self.release)}
        for library in _libraries(qemu):
            files[f"{FOLDER}/lib/{pathlib.Path(library).name}"] = library
        for name in ("bios-256k.bin", "kvmvapic.bin", "linuxboot_dma.bin"):
            files[f"{FOLDER}/share/{name}"] = qemu.parent.parent / "share" / "qemu" / name
        image = paths.guest_env()["image"]
        return {"memory": 2048, "files": files, "args": [
            "-drive", f"if=none,id=inner,file={image},format=raw,snapshot=on",
            "-device", "virtio-blk-pci,drive=inner,serial=inner-root",
            "-device", "virtio-serial-pci,id=innerbus",
            "-chardev", f"socket,id=inner,path={self.socket},server=on,wait=off",
            "-device", "virtserialport,bus=innerbus.0,chardev=inner,name=inner"]}

    def close(self):
        shutil.rmtree(self.dir, ignore_errors=True)


class Nested(Node):
    """The inner machine, with its one device, the function at a PCI address."""

    def __init__(self, outer, shell, address, mac, *, memory=512, append=""):
        super().__init__("inner", "qhca", 16, memory=memory, append=append)
        self.outer = outer
        self.shell = shell
        self.address = address
        port = self.ports[0]
        port.guest = self
        port.mac = mac
        self.patience = 4 * outer.patience
        self.machine = None

    def _command(self):
        folder = f"/run/qhca/{FOLDER}"
        append = ("console=ttyS0 no_timer_check quiet loglevel=5 panic=0 no5lvl mitigations=off "
                  f"nokaslr tsc=reliable random.trust_cpu=1 qhca.name={self.name} {self.append}")
        return ["/bin/bash", "-c",
                'disk() { for d in /sys/block/vd*; do [ "$(cat $d/serial)" != $1 ] || '
                'echo /dev/${d##*/}; done; }\n'
                'port() { for p in /sys/class/virtio-ports/*; do [ "$(cat $p/name)" != $1 ] || '
                'echo /dev/${p##*/}; done; }\n'
                "modprobe kvm_amd || exit 1\n"
                "modules=$(disk qhca-modules)\n"
                f"exec {folder}/lib/ld-linux-x86-64.so.2 --library-path {folder}/lib {folder}/qemu "
                f"-L {folder}/share -nodefaults -no-user-config -machine {MACHINE} -accel kvm -cpu host "
                f"-m {self.memory} -display none -kernel {folder}/vmlinuz "
                f"-initrd {folder}/initramfs -append '{append}' "
                "-drive if=none,id=root,file=$(disk inner-root),format=raw "
                "-device virtio-blk-pci,drive=root,serial=qhca-root "
                "-drive if=none,id=payload,file=$(disk qhca-payload),format=raw,readonly=on "
                "-device virtio-blk-pci,drive=payload,serial=qhca-payload "
                "${modules:+-drive if=none,id=modules,file=$modules,format=raw,readonly=on "
                "-device virtio-blk-pci,drive=modules,serial=qhca-modules} "
                "-device virtio-serial-pci,max_ports=2 -chardev pipe,id=agent,path=$(port inner) "
                "-device virtserialport,chardev=agent,name=org.qemu.guest_agent.0 "
                "-chardev file,id=console,path=/tmp/inner.console -serial chardev:console "
                "-device pcie-root-port,id=inner0,chassis=1,slot=1 "
                f"-device vfio-pci,host={self.address},bus=inner0 2> /tmp/inner.qemu"]

    def start(self):
        # A port whose other end nobody holds is at its end.
        link = socket.socket(socket.AF_UNIX)
        link.connect(str(self.shell.socket))
        self.agent = Agent(link, self.patience)
        self.machine = self.outer.spawn(self._command())
        return self

    def wait_ready(self, timeout=180):
        def up():
            if not self.running:
                raise GuestError(f"the inner machine has ended{self.trouble()}")
            try:
                self.agent.cmd("guest-ping", timeout=20 / self.patience)
            except (TimeoutError, OSError):
                return False
            return True
        wait_for(up, timeout * self.patience, "the inner machine", interval=1)
        if self.setup:
            self.configure()
        return self

    @property
    def running(self):
        return self.machine is not None and self.machine.poll() is None

    def console_text(self):
        return self.outer.exec("cat /tmp/inner.console", check=False).out

    def qemu_complaints(self):
        return []

    def trouble(self):
        text = self.outer.exec("tail -n 30 /tmp/inner.qemu /tmp/inner.console", check=False)
        return f"\n{text.out}"

    def kill(self):
        self.machine.kill()

    def close(self):
        if self.running:
            self.kill()
            self.machine.wait(60, check=False)
        if self.agent is not None:
            self.agent.close()
        self.agent = self.machine = None
