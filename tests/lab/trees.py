# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Source trees as Debian has them, for RDMA_CORE_SRC= and the like, and what is built of them."""

import os
import pathlib
import subprocess

from . import paths

UNPACK = paths.TOP / "tests/setup/trees/unpack.sh"

# What chooses trees and kernels for the run that a test is in.
CHOICES = ("QHCA_KERNEL", "QHCA_QEMU", "QEMU_SANITIZE", "MAKEFLAGS", "MAKEOVERRIDES", "LINUX", "KDIR",
           "CC", "QEMU_SRC", "RDMA_CORE_SRC", "RDMA_UNIT_TEST_SRC", "BLKTESTS_SRC", "KERNEL", "BUILD",
           "PYTHONPATH")


def environment(**more):
    """Without those, and with others."""
    return {**{name: value for name, value in os.environ.items() if name not in CHOICES}, **more}


def unpacked(name):
    """The folder of a tree."""
    done = subprocess.run([UNPACK, name], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                          check=True)
    return pathlib.Path(done.stdout.strip())


def newest_rdma_core():
    """A build folder for guests with the libraries and the provider of the newest release that
    Debian has, and its tests with pyverbs in pyverbs/; all else is this build's."""
    folder = paths.BUILD / "newest-rdma-core"
    folder.mkdir(parents=True, exist_ok=True)
    for part in "qemu", "qemu-sanitize", "modules", "programs":
        if not (folder / part).is_symlink():
            (folder / part).symlink_to(paths.BUILD / part)
    subprocess.run([paths.TOP / "scripts/provider.sh", "pyverbs"], stdin=subprocess.DEVNULL, check=True,
                   env=environment(BUILD=str(folder), RDMA_CORE_SRC=str(unpacked("rdma-core"))))
    return folder
