# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""LINUX=, RDMA_CORE_SRC= and QEMU_SRC= with trees as Debian has them: `make run` builds what
it needs from such a tree, and two guests run its tests.

Each test compiles a whole tree, so only FULL=1 runs them. What the scripts do with a tree in
all other respects is in test_linux.py and test_scripts.py.
"""

import re
import shutil
import subprocess
import time

import pytest

from lab import Guest, content, paths, recipe
from lab.link import FULL
from lab.trees import environment, unpacked

RECIPES = recipe.recipes("users-guide.rst")

# A kernel with little more than linux.config has far fewer parts to compile than one of the
# page's configuration.
SMALL = "make KCONFIG_ALLCONFIG=$QHCA/scripts/linux.config alldefconfig"

# The rows that `make run` prints: programs of libibverbs and perftest.
PROGRAMS = {"ibv_rc_pingpong", "ib_write_bw", "ib_read_bw", "ib_send_bw", "ib_write_lat", "ib_send_lat"}

pytestmark = pytest.mark.skipif(not FULL, reason="compiles a whole tree: FULL=1 runs it")


def versions():
    """{name: value} of versions.mk"""
    return dict(re.findall(r"^(\w+)=(.*)$", (paths.TOP / "versions.mk").read_text(), re.M))


def shell(folder, script, **env):
    """Runs commands in a folder, which must succeed: (what they print, seconds that it took)."""
    began = time.monotonic()
    done = subprocess.run(["bash", "-ec", script], cwd=folder, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                          env=environment(QHCA=str(paths.TOP), **env), check=False)
    assert done.returncode == 0, done.stdout[-4000:]
    return done.stdout, time.monotonic() - began


class Build:
    """A build folder of its own, in which `make` finds and remembers no choice of others."""

    def __init__(self, folder):
        self.folder = folder

    def make_run(self, choice=""):
        """`make run` with a choice, or with the one that was made before."""
        return self.run(f"make -C $QHCA run {choice}", paths.TOP)

    def run(self, command, folder):
        """Runs a command that runs `make run`, each of whose tests must succeed: (what it
        prints, the seconds that it took)."""
        out, seconds = shell(folder, command, BUILD=str(self.folder))
        print(out)
        assert "FAILED" not in out
        assert set(re.findall(r"^\| (ib\w+) .*\| +[\d.]+ \|", out, re.M)) == PROGRAMS
        return out, seconds

    def consoles(self):
        """{name: text} of the guests of the last run"""
        newest = max((self.folder / "log/pair").iterdir(), key=lambda path: path.stat().st_mtime)
        return {path.stem: path.read_text(errors="replace") for path in newest.glob("*.console")}


@pytest.fixture
def build(monkeypatch):
    folder = paths.BUILD / "own-trees"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    # Guests of a test are those of this folder, too, with the kernel of the choice.
    monkeypatch.setattr(paths, "BUILD", folder)
    monkeypatch.delenv("QHCA_KERNEL", raising=False)
    yield Build(folder)
    shutil.rmtree(folder)


def test_rdma_core(build):
    """The guest has the tree's libraries, and no other ones of rdma-core; Debian's perftest
    runs with them."""
    tree = unpacked("rdma-core")
    assert versions()["NEWEST_RDMA_CORE_SERIES"] in tree.name
    build.make_run(f"RDMA_CORE_SRC={tree}")
    libraries = [path for path in (build.folder / "provider/lib").iterdir() if not path.is_symlink()]
    assert len(libraries) > 10
    with Guest("a", build=build.folder) as guest, content(guest):
        for library in libraries:
            assert guest.out(f"sha256sum < /usr/lib/x86_64-linux-gnu/{library.name}") == subprocess.run(
                ["sha256sum"], stdin=library.open("rb"), stdout=subprocess.PIPE, text=True,
                check=True).stdout.strip()
            short = re.sub(r"(\.so\.\d+).*", r"\1", library.name)
            found = guest.out(f"readlink -f /usr/lib/x86_64-linux-gnu/{short}")
            assert found == f"/usr/lib/x86_64-linux-gnu/{library.name}"
        providers = guest.out("ls /usr/lib/x86_64-linux-gnu/libibverbs").split()
        pabi = re.search(r"rdmav(\d+)", next(build.folder.glob("provider/libqhca-*")).name)[0]
        assert f"libqhca-{pabi}.so" in providers and f"libmlx5-{pabi}.so" in providers
        # The loader resolves each symbol, with its version.
        resolved = guest.exec("LD_BIND_NOW=1 ib_write_bw --version; ldd -r $(which ib_write_bw)")
        assert not re.search("not found|undefined", resolved.out + resolved.err), resolved


def test_qemu(build):
    tree = unpacked("qemu")
    build.make_run(f"QEMU_SRC={tree}")
    with Guest("a", build=build.folder) as guest, content(guest):
        version = guest.qmp("query-version")["qemu"]
        assert f"{version['major']}.{version['minor']}" == versions()["NEWEST_QEMU_SERIES"]


def say_so(source, text):
    """Has the RDMA core's module say something when it is loaded; one line of a file."""
    anchor = "\tib_wq = alloc_workqueue("
    pristine = re.sub(r'^\tpr_warn\("qhca test: .*\n', "", source.read_text(), flags=re.M)
    assert pristine.count(anchor) == 1
    source.write_text(pristine.replace(anchor, f'\tpr_warn("qhca test: {text}\\n");\n{anchor}')
                      if text else pristine)


def lacking(tree):
    """The options of linux.config that a tree's configuration lacks."""
    wanted = re.findall(r"^(CONFIG_\w+)=([ym])$", (paths.TOP / "scripts/linux.config").read_text(), re.M)
    have = dict(re.findall(r"^(CONFIG_\w+)=(.*)$", (tree / ".config").read_text(), re.M))
    return [option for option, value in wanted if have.get(option) not in (value, "y")]


def test_linux(build):
    """From `make` to the first pingpong, and again after a change of one line."""
    tree = unpacked("linux")
    source = tree / "drivers/infiniband/core/device.c"
    say_so(source, None)
    # The page's way to configure a tree gives all options, too.
    for commands in RECIPES["kernel-config"], SMALL:
        shell(tree, commands)
        assert lacking(tree) == [], commands
    times = [("make", shell(tree, RECIPES["kernel-build"])[1])]
    out, seconds = build.run(RECIPES["kernel-test"], tree)
    release = (tree / "include/config/kernel.release").read_text().strip()
    assert f"RoCEv2 over a unix socket, kernel {release}, " in out
    times.append(("make run", seconds))
    try:
        text = f"changed at {time.time()}"
        say_so(source, text)
        times.append(("make after a change of a line", shell(tree, RECIPES["kernel-build"])[1]))
        out, seconds = build.make_run()
        times.append(("make run after it", seconds))
    finally:
        say_so(source, None)
    assert f"LINUX={tree}, as before" in out and f", kernel {release}, " in out
    consoles = build.consoles()
    assert len(consoles) == 2 and all(f"qhca test: {text}" in said for said in consoles.values())
    print("; ".join(f"{what}: {seconds:.0f} s" for what, seconds in times))

