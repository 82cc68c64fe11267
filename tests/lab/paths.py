# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Paths of what the build has made."""

import os
import pathlib
import shutil

TOP = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("BUILD", TOP / "build"))
LOGS = BUILD / "log"


class Missing(Exception):
    """A part has not been built; the text names the command that builds it."""


def guest_env():
    """The description of the guest by scripts/guest.sh: image, tree, kernels."""
    path = BUILD / "guest" / "env"
    if not path.exists():
        raise Missing("there is no guest yet: run `make guest`")
    lines = path.read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line)


def kernel_release(which="default"):
    """'default', 'backports', 'debug', 'linux' or a release, as a release the guest has.

    QHCA_KERNEL says what the default is; otherwise it is the kernel of the user's own
    Linux tree, if there is one, and else the suite's.
    """
    env = guest_env()
    if which == "default":
        which = os.environ.get("QHCA_KERNEL") or ("linux" if "linux" in env else which)
    release = env.get(which, which)
    if f"kernel-{release}" not in env:
        hint = {"debug": ": run `make debug-kernel`", "linux": ": run `make linux`"}.get(which, "")
        raise Missing(f"the guest has no kernel {release}{hint}")
    return release


def kernel(release):
    return guest_env()[f"kernel-{release}"]


def finds_faults(release):
    """Is it the kernel of `make debug-kernel`?"""
    return guest_env().get("debug") == release


def is_slow(release):
    """Is it that kernel, or a kernel of the user's that looks for such faults?"""
    return finds_faults(release) or f"slow-{release}" in guest_env()


def modules_disk(release):
    """The image of the modules of a user's own kernel, or None."""
    return guest_env().get(f"disk-{release}")


def kernel_lists(release):
    """depmod's files for a kernel that is not in the guest's image, or None."""
    folder = guest_env().get(f"modules-{release}")
    return pathlib.Path(folder) if folder else None


def initramfs(release):
    path = BUILD / "guest" / f"initramfs-{release}"
    if not path.exists():
        raise Missing(f"there is no {path.name}: run `make guest`")
    return str(path)


def qemu_folder(build=BUILD):
    """Where QEMU and its qtests are: the sanitized ones with QEMU_SANITIZE=1."""
    return build / ("qemu-sanitize" if os.environ.get("QEMU_SANITIZE") else "qemu") / "bin"


def qemu(build=BUILD):
    """The QEMU binary; $QHCA_QEMU overrides the one that this checkout has built."""
    path = qemu_folder(build) / "qemu-system-x86_64"
    if build == BUILD:
        path = os.environ.get("QHCA_QEMU", path)
    if not shutil.which(str(path)):
        raise Missing(f"there is no {path}: run `make qemu`")
    return str(path)


def switch():
    """The switch program; $QHCA_SWITCH overrides the one that was built."""
    path = os.environ.get("QHCA_SWITCH", BUILD / "switch" / "qhca-switch")
    if not shutil.which(str(path)):
        raise Missing(f"there is no {path}: run `make switch`")
    return str(path)


def modules(release, build=BUILD):
    """The .ko files built for a kernel, in the order to load them."""
    found = [build / "modules" / release / f"{n}.ko" for n in ("qhca", "qhca_ib", "qhca_vfio")]
    return [p for p in found if p.exists()]


def provider(build=BUILD):
    path = build / "provider"
    return path if path.is_dir() else None


def programs(build=BUILD):
    """The test programs built for guests (scripts/programs.sh)."""
    path = build / "programs"
    return path if path.is_dir() else None


def suite(name):
    """What scripts/suites.sh has built for guests: fabtests in `suites`, and diod."""
    path = pathlib.Path(guest_env()["tree"]).parent / name
    if not path.is_dir():
        raise Missing(f"there is no {path} yet: run `make suites`")
    return path
