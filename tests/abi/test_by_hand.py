# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What outside.rst has users build by hand, in a Debian tree that nothing else has touched.

These tests make the tree and take minutes, so only FULL=1 runs them.
"""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import pytest

from lab import paths, recipe
from lab.link import FULL

RECIPES = recipe.recipes("outside.rst")
SCRIPTS = paths.TOP / "tests" / "abi" / "scripts"
MAN = paths.TOP / "userspace-provider" / "providers" / "qhca" / "man"

pytestmark = pytest.mark.skipif(not FULL, reason="takes minutes: FULL=1 runs it")


class Tree:
    """A Debian tree with packages, by default compilers; and rdma-core's tarball."""

    def __init__(self, *packages):
        done = subprocess.run([SCRIPTS / "plain-tree.sh", *packages], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, text=True, check=True)
        root, self.rdma_core = done.stdout.split()
        self.root = pathlib.Path(root)

    def run(self, folder, script, *, as_root=False):
        """What a shell script prints in a folder of the tree; it must succeed."""
        sudo = ["sudo"] if as_root and os.getuid() != 0 else []
        done = subprocess.run([*sudo, SCRIPTS / "in-tree.sh", self.root, folder, script],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False)
        assert done.returncode == 0, done.stdout[-4000:]
        return done.stdout


@pytest.fixture(scope="module")
def tree():
    return Tree()


@pytest.fixture
def folder(tree):
    """A folder in the tree with the parts of this project that the page names."""
    path = pathlib.Path(tempfile.mkdtemp(dir=tree.root / "build"))
    path.chmod(0o755)
    for part in "drivers", "userspace-provider":
        shutil.copytree(paths.TOP / part, path / "qhca" / part)
    yield path
    shutil.rmtree(path)


# libvirt with what starts its domain, and the libraries that QEMU with the device needs.
LIBVIRT = ("libvirt-daemon-system", "libvirt-clients", "qemu-utils", "iproute2", "libdeflate0",
           "libfdt1", "libglib2.0-0t64", "libpixman-1-0", "libslirp0")


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_provider(tree, folder, compiler):
    """It builds in rdma-core's tree without a warning, as shared and as static library and
    with its manual; and a program that is linked statically has it."""
    source = folder / "rdma-core"
    source.mkdir()
    subprocess.run(["tar", "-C", source, "--strip-components=1", "-xf", tree.rdma_core], check=True)
    inside = f"/{folder.relative_to(tree.root)}"
    # All of rdma-core would take too long, and has warnings of its own.
    configure = RECIPES["rdma-core-build"].replace("-DNO_PYVERBS=1",
                                                   "-DNO_PYVERBS=1 -DENABLE_STATIC=1")
    assert configure.endswith("\nninja\n")
    configure = configure.rstrip() + " qhca qhca_test_rings docs lib/libqhca.a lib/libibverbs.a"
    out = tree.run(f"{inside}/rdma-core", "\n".join([
        f"export QHCA={inside}/qhca CC={compiler}", RECIPES["rdma-core"], RECIPES["static"],
        f"({configure})", RECIPES["static-program"],
        "build/bin/qhca_test_rings > rings.out", "nm devices"]))
    assert re.findall(r"^.*providers/qhca/.*warning:.*$", out, re.M) == []
    assert re.search(r" verbs_provider_qhca$", out, re.M)
    for page in MAN.glob("*.md"):
        made = f"build/providers/qhca/man/{page.stem}"
        assert tree.run(f"{inside}/rdma-core", f"man --warnings -l -Tutf8 -Z {made} 2>&1 > /dev/null; "
                        f"lexgrog {made} > /dev/null") == ""


def test_dkms(tree, folder):
    """DKMS builds and installs the modules for the tree's kernel, with its signature, and so
    does sign-file by hand."""
    inside = f"/{folder.relative_to(tree.root)}"
    release = tree.run("/", "ls /lib/modules").split()[-1]
    install = RECIPES["dkms"].rstrip() + f" -k {release}\n"
    sign = RECIPES["sign"].replace("$(uname -r)", release)
    assert sign != RECIPES["sign"]
    try:
        tree.run(f"{inside}/qhca", install, as_root=True)
        made = "".join(f"modinfo -k {release} -F signer {module}\n"
                       f"xz -dc /lib/modules/{release}/updates/dkms/{module}.ko.xz > {module}.ko\n"
                       f"objcopy --strip-debug {module}.ko\n" for module in ("qhca", "qhca_ib"))
        out = tree.run(inside, made + sign, as_root=True)
    finally:
        tree.run("/", "dkms remove qhca/1.0 --all; rm -rf /usr/src/qhca-1.0", as_root=True)
    assert len(re.findall(r"^DKMS module signing key$", out, re.M)) == 3, out


def test_install(tree, folder):
    """modprobe finds the modules where the page has them installed, one by the other."""
    release = tree.run("/", "ls /lib/modules").split()[-1]
    for module in paths.modules(paths.kernel_release()):
        shutil.copy(module, folder)
    commands = RECIPES["install"].replace("$(uname -r)", release)
    commands = commands.replace("depmod", f"depmod {release}").replace(
        "modprobe", f"modprobe -S {release} --show-depends")
    updates = f"/lib/modules/{release}/updates"
    try:
        out = tree.run(f"/{folder.relative_to(tree.root)}", commands, as_root=True)
    finally:
        tree.run("/", f"rm -rf {updates}; depmod {release}", as_root=True)
    loaded = re.findall(rf"^insmod {re.escape(updates)}/(\w+)\.ko\s*$", out, re.M)
    assert loaded == ["qhca", "qhca_ib"], out


def domain():
    """libvirt's domain of the page with the properties of its other block, for a host without
    KVM as the page has it."""
    text = RECIPES["domain"]
    for old, new in (("type='kvm'", "type='qemu'"), ("mode='host-passthrough'", "mode='maximum'"),
                     ("</domain>", f"{RECIPES['override']}</domain>")):
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def test_libvirt(tmp_path):
    """libvirt starts the domain: the device is there, with its address and a property of the
    override, and its tap is on the bridge with the MTU of the domain."""
    tree = Tree(*LIBVIRT)
    (tmp_path / "domain.xml").write_text(domain())
    sudo = ["sudo"] if os.getuid() != 0 else []
    done = subprocess.run([*sudo, SCRIPTS / "libvirt.sh", tree.root, paths.BUILD / "qemu",
                           tmp_path / "domain.xml"], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=600, check=False)
    assert done.returncode == 0, done.stdout
    assert re.search(r"^state: running$", done.stdout, re.M), done.stdout
    assert "mac 52:54:00:aa:00:01," in done.stdout, done.stdout
    # A device without a driver has no caches yet.
    assert re.search(r"^pt-cache-sets: 16\b", done.stdout, re.M), done.stdout
    assert re.search(r"vnet0: .* mtu 4200 .* master br0 ", done.stdout), done.stdout
