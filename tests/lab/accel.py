# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Chooses between KVM and software emulation, by trial.

That /dev/kvm can be opened proves little: on some virtual machines a VM is
made and then hangs. So KVM is used only when the processor says it can and a
guest kernel has been seen to start.
"""

import hashlib
import os
import pathlib
import re
import subprocess
import tempfile

from . import paths

TCG = ["-accel", "tcg,thread=multi", "-cpu", "max"]
KVM = ["-accel", "kvm", "-cpu", "host"]


def _identity(qemu):
    boot = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    text = f"{boot} {qemu} {os.stat(qemu).st_size} {os.getuid()}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _trial(qemu):
    """Boots the guest's kernel with no disk: it must get as far as /init."""
    release = paths.kernel_release()
    argv = [qemu, "-nodefaults", "-no-user-config", "-machine", "q35", *KVM,
            "-m", "512", "-display", "none", "-serial", "stdio", "-no-reboot",
            "-kernel", paths.kernel(release), "-initrd", paths.initramfs(release),
            "-append", "console=ttyS0 panic=-1"]
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, timeout=20, check=False)
    except subprocess.TimeoutExpired:
        return False
    return b"guest-init: no root disk" in done.stdout


def kvm_works(qemu):
    cpuinfo = pathlib.Path("/proc/cpuinfo").read_text()
    if not re.search(r"^flags.*\b(vmx|svm)\b", cpuinfo, re.M):
        return False
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return False
    folder = paths.BUILD / "kvm"
    folder.mkdir(parents=True, exist_ok=True)
    known = folder / _identity(qemu)
    if not known.exists():
        with tempfile.NamedTemporaryFile("w", dir=folder, delete=False) as f:
            f.write("yes" if _trial(qemu) else "no")
        os.rename(f.name, known)
    return known.read_text() == "yes"


def options(qemu, which=None):
    """-accel and -cpu for a guest; $QHCA_ACCEL=tcg or kvm decides by hand."""
    which = which or os.environ.get("QHCA_ACCEL", "auto")
    if which == "kvm" or (which == "auto" and kvm_works(qemu)):
        return KVM
    return TCG
