# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The packages of `make deb` in a clean Debian: they install with what they depend on, DKMS
builds the modules, a machine that has them boots in their QEMU and runs a pingpong, and
they can be removed."""

import os
import pathlib
import shutil
import subprocess
import tempfile

import pytest

from lab import paths
from lab.link import FULL

SCRIPTS = pathlib.Path(__file__).with_name("packages")
ROOT = [] if os.getuid() == 0 else ["sudo", "-n", "-E"]

pytestmark = pytest.mark.skipif(not FULL, reason="FULL=1 installs packages")


def run(*argv, timeout=3600):
    done = subprocess.run([str(a) for a in argv], cwd=paths.TOP, stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout,
                          errors="replace", check=False)
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def system():
    """The folder of a Debian with the packages, none of which is in the checkout's guest."""
    run("scripts/deb.sh")
    folder = pathlib.Path(tempfile.mkdtemp(prefix="qhca-packages-", dir=paths.BUILD))
    root = folder / "root"
    run(SCRIPTS / "system.sh", paths.BUILD / "deb", root)
    yield root
    subprocess.run([*ROOT, "rm", "-rf", "--one-file-system", folder], check=True)


def inside(system, *argv):
    return run(*ROOT, "chroot", system, "env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin",
               "LC_ALL=C.UTF-8", *argv)


def test_modules_are_built(system):
    (release,) = os.listdir(system / "lib/modules")
    status = inside(system, "dkms", "status")
    assert f", {release}, x86_64: installed" in status, status
    for name in "qhca", "qhca_ib", "qhca_vfio":
        assert "/updates/dkms/" in inside(system, "modinfo", "-k", release, "-n", name)


def test_device(system):
    properties = inside(system, "qemu-system-x86_64-qhca", "-device", "qhca,help")
    assert "sriov-vfs=" in properties, properties


def test_switch(system):
    assert inside(system, "qhca-switch", "--version").startswith("qhca-switch ")
    assert "unix socket" in inside(system, "qhca-switch", "--help")


def test_manual(system):
    """Each page of the provider, also by the names of further functions."""
    for page in paths.TOP.glob("userspace-provider/providers/qhca/man/*.md"):
        name, section = page.stem.split(".")
        assert name in inside(system, "zcat", f"/usr/share/man/man{section}/{page.stem}.gz")
    assert "qhcadv_create_cq" in inside(system, "zcat", "/usr/share/man/man3/qhcadv_create_qp.3.gz")


def test_clean(system):
    """Debian's checker of packages finds nothing."""
    debs = [f"/mnt/debs/{name}" for name in os.listdir(system / "mnt/debs")]
    assert len(debs) == 5
    assert inside(system, "lintian", "--allow-root", "--fail-on=error,warning", *debs) == ""


def test_boots(system):
    console = run(*ROOT, SCRIPTS / "boot.sh", system, timeout=1200)
    assert "pingpong passed" in console, console


def test_removal(system):
    """Nothing is left, and another version can be installed."""
    inside(system, "apt-get", "-q", "-y", "purge", "qhca-dkms", "libqhca1", "libqhca-dev", "qemu-system-qhca",
           "qhca-switch")
    left = subprocess.run(["find", system / "etc", system / "usr", system / "lib/modules", "-name", "*qhca*"],
                          stdout=subprocess.PIPE, text=True, check=True).stdout
    assert left == "", left
    assert shutil.which("qemu-system-x86_64-qhca", path=f"{system}/usr/bin") is None
