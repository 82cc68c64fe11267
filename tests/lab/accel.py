# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Chooses between KVM and software emulation, by trial.

That /dev/kvm can be opened proves little: on some virtual machines a VM is
made and then hangs. So KVM is used only when the processor says it can and a
guest kernel has been seen to start.
"""

import ctypes
import functools
import hashlib
import mmap
import os
import pathlib
import platform
import re
import subprocess
import tempfile
import time

from . import paths

# With the short forms of REP MOVS and REP STOS Linux copies and clears a byte at a time, each of
# which software emulation takes as long for as for a word: half the speed.
EMULATED_CPU = ["-cpu", "max,-erms,-fsrm"]
TCG = ["-accel", "tcg,thread=multi", *EMULATED_CPU]
SHARED_TCG = ["-accel", "tcg,thread=single", *EMULATED_CPU]
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


def options(qemu, which=None, cpus=1):
    """-accel and -cpu for a guest; $QHCA_ACCEL=tcg or kvm decides by hand.

    Several processors take turns in one thread under software emulation. With a
    thread each, QEMU 10.0 ends at times in an assertion of iotlb_to_section(), when
    one of them accesses a device while another changes the map of memory, as it does
    whenever a driver enables or disables a PCI function.
    """
    which = which or os.environ.get("QHCA_ACCEL", "auto")
    if which == "kvm" or (which == "auto" and kvm_works(qemu)):
        return KVM
    return TCG if cpus == 1 else SHARED_TCG


# rdtsc; shl $32, %rdx; or %rdx, %rax; ret
_RDTSC = bytes.fromhex("0f31 48c1e220 4809d0 c3")


@functools.lru_cache(None)
def host_tsc_khz():
    """How fast this host's time stamp counter runs, which is a guest's, too, under
    software emulation; None if it has none, or the kernel does not let programs read it."""
    if platform.machine() != "x86_64":
        return None
    try:
        code = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    except OSError:
        return None
    code.write(_RDTSC)
    read_tsc = ctypes.CFUNCTYPE(ctypes.c_uint64)(ctypes.addressof(ctypes.c_char.from_buffer(code)))

    def read():
        """(ns, TSC) of the try, out of several, with the shortest interruption"""
        tries = []
        for _ in range(50):
            before, tsc, after = time.monotonic_ns(), read_tsc(), time.monotonic_ns()
            tries.append((after - before, (before + after) // 2, tsc))
        return min(tries)[1:]

    first = read()
    time.sleep(0.1)
    last = read()
    return round((last[1] - first[1]) * 1_000_000 / (last[0] - first[0]))


def kernel_arguments(qemu, which=None):
    """The kernel arguments that describe the guest's processor.

    Left alone it measures the TSC by the PIT, which goes wrong when a vCPU has to
    wait: where the HPET says otherwise, Linux believes the PIT. On busy hosts clocks of
    guests ran up to six times too fast, and all their timers with them.
    """
    if options(qemu, which) == KVM or not host_tsc_khz():
        return ""
    return f"tsc_early_khz={host_tsc_khz()}"
