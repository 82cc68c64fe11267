# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""LINUX=: a Linux tree of the user's, whose kernel guests boot."""

import os
import re
import subprocess

import pytest

import world as worlds
from lab import paths

RELEASE = "6.99.1-own"
OPTION = re.compile(r"(CONFIG_\w+)=")
BUILT = ["arch/x86/boot/bzImage", "include/config/kernel.release", "include/config/auto.conf",
         "Module.symvers"]


def options():
    """The lines of linux.config that a tree must have, as its build writes them."""
    text = (paths.TOP / "scripts/linux.config").read_text()
    return [line for line in text.splitlines() if OPTION.match(line)]


class Linux:
    """A tree that is built, of a few files."""

    def __init__(self, folder):
        self.folder = folder
        gcc = subprocess.run(["gcc", "--version"], stdout=subprocess.PIPE, text=True, check=True)
        self.write("Makefile", "")
        self.write("scripts/basic/fixdep", "")
        self.write(".config", f'CONFIG_CC_VERSION_TEXT="{gcc.stdout.splitlines()[0]}"\n')
        self.write("include/config/kernel.release", RELEASE)
        self.write("include/config/auto.conf", "\n".join(options()))
        self.write("arch/x86/boot/bzImage", "kernel\n")
        self.write("Module.symvers", "")
        self.write("modules.order", "drivers/one.o\n")
        self.write("modules.builtin", "")
        self.write("drivers/one.ko", "module\n")

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def without(self, *names):
        """Turns options off that the tree was built with."""
        self.write("include/config/auto.conf", "\n".join(
            line for line in options() if OPTION.match(line)[1] not in names))


@pytest.fixture
def world(tmp_path):
    return worlds.World(tmp_path / "world")


@pytest.fixture
def linux(world):
    return Linux(world.folder / "linux")


def make(world, *arguments):
    return world.run("/usr/bin/make", "linux", *arguments)


def env(world):
    return dict(line.split("=", 1) for line in (world.build / "guest/env").read_text().splitlines())


def installations(world):
    made = world.folder / "made"
    return made.read_text().count("modules_install") if made.exists() else 0


def test_what_guests_get(world, linux):
    """The kernel, an initramfs, a disk with the tree's modules, and ours."""
    code, out = make(world, f"LINUX={linux.folder}")
    assert code == 0, out
    found = env(world)
    assert found["linux"] == RELEASE and found["default"] == "6.12.1-amd64"
    with open(found[f"kernel-{RELEASE}"], encoding="ascii") as kernel:
        assert kernel.read() == "kernel\n"
    with open(found[f"disk-{RELEASE}"], encoding="ascii") as disk:
        on_disk = disk.read().split()
    assert "./one.ko" in on_disk and "./modules.dep" in on_disk
    assert not (world.build / "linux/root/lib/modules" / RELEASE / "build").is_symlink()
    assert f"slow-{RELEASE}" not in found
    assert (world.build / f"guest/initramfs-{RELEASE}").is_file()
    assert (world.build / f"modules/{RELEASE}/qhca.ko").is_file()
    assert f"done: guests boot {RELEASE} of {linux.folder}" in out


def test_loop(world, linux):
    """The tree is remembered, and installed again when something in it has changed."""
    changes = [None, "arch/x86/boot/bzImage", "drivers/one.ko", "modules.order"]
    assert make(world, f"LINUX={linux.folder}")[0] == 0
    for count, change in enumerate(changes):
        if change:
            linux.write(change, "drivers/one.o\n")
        code, out = make(world)
        assert code == 0 and f"LINUX={linux.folder}, as before" in out, out
        assert installations(world) == 1 + count, change
        assert make(world)[0] == 0 and installations(world) == 1 + count
    assert (world.build / "linux/root/boot" / f"vmlinuz-{RELEASE}").read_text() == "drivers/one.o\n"


def test_new_release(world, linux):
    """Of the former release's modules nothing stays."""
    assert make(world, f"LINUX={linux.folder}")[0] == 0
    linux.write("include/config/kernel.release", "7.0.0-next")
    code, out = make(world)
    assert code == 0, out
    assert os.listdir(world.build / "linux/root/lib/modules") == ["7.0.0-next"]
    assert env(world)["linux"] == "7.0.0-next"


def test_back_to_debian(world, linux):
    assert make(world, f"LINUX={linux.folder}")[0] == 0
    code, out = make(world, "LINUX=")
    assert code == 0, out
    assert "linux" not in env(world) and not (world.build / "linux").exists()
    assert make(world) == (0, "")


@pytest.mark.parametrize("missing", BUILT)
def test_not_built(world, linux, missing):
    """The script says so, with the command that builds the tree, and builds nothing there."""
    (linux.folder / missing).unlink()
    code, out = make(world, f"LINUX={linux.folder}")
    wanted = f"linux: error: LINUX={linux.folder} is not built (it has no {missing}): run make -C {linux.folder} -j"
    assert code and wanted in out, out
    assert (world.build / "guest/linux").read_text() == f"linux={linux.folder}\n"
    assert not (linux.folder / missing).exists() and not (world.folder / "made").exists()


def test_not_configured(world, linux):
    (linux.folder / ".config").unlink()
    code, out = make(world, f"LINUX={linux.folder}")
    assert code and f"is not configured: run make -C {linux.folder} defconfig, and then: cd " in out, out


@pytest.mark.parametrize("output_folder", [False, True])
@pytest.mark.parametrize("options", [["CONFIG_INFINIBAND"], ["CONFIG_PAGE_POOL", "CONFIG_EXT4_FS"],
                                     ["CONFIG_VIRTIO_BLK"]], ids=" ".join)
def test_options_that_are_needed(world, linux, options, output_folder):
    """Options that a tree lacks are named, with the command that adds them."""
    linux.without(*options, "CONFIG_RDMA_RXE")
    if output_folder:
        (linux.folder / "source").symlink_to(world.folder)
    code, out = make(world, f"LINUX={linux.folder}")
    config = world.checkout / "scripts/linux.config"
    scripts = "source/scripts" if output_folder else "scripts"
    assert code and (
        f"was built without options that qhca or its guests need: {' '.join(options)}. This adds them: "
        f"cd {linux.folder} && {scripts}/kconfig/merge_config.sh -m .config {config} && "
        "make olddefconfig && make -j") in out, out
    assert not (world.folder / "made").exists()


def test_option_that_may_be_built_in(world, linux):
    """What linux.config has as a module may be built in, but not the other way round."""
    auto = linux.folder / "include/config/auto.conf"
    auto.write_text(auto.read_text().replace("CONFIG_INFINIBAND=m", "CONFIG_INFINIBAND=y"))
    code, out = make(world, f"LINUX={linux.folder}")
    assert code == 0, out
    auto.write_text(auto.read_text().replace("CONFIG_BINFMT_SCRIPT=y", "CONFIG_BINFMT_SCRIPT=m"))
    code, out = make(world)
    assert code and "need: CONFIG_BINFMT_SCRIPT. This" in out, out


def test_options_that_tests_need(world, linux):
    """Their absence is told, and the kernel is booted all the same."""
    linux.without("CONFIG_RDMA_RXE", "CONFIG_VLAN_8021Q")
    code, out = make(world, f"LINUX={linux.folder}")
    assert code == 0 and f"{linux.folder} was built without: CONFIG_RDMA_RXE CONFIG_VLAN_8021Q\n" in out, out


def test_each_step_fails_once(world, linux):
    world.fails_once("linux", LINUX=str(linux.folder))


def test_release_of_another_kernel(world, linux):
    """The modules of two kernels would mix."""
    linux.write("include/config/kernel.release", worlds.KERNELS[0])
    code, out = make(world, f"LINUX={linux.folder}")
    assert code and f"the release of another kernel of the guest, {worlds.KERNELS[0]}" in out, out


def test_slow_kernel(world, linux):
    linux.write("include/config/auto.conf", "\n".join([*options(), "CONFIG_KASAN=y"]))
    code, out = make(world, f"LINUX={linux.folder}")
    assert code == 0 and env(world)[f"slow-{RELEASE}"] == "yes", out


def test_compiler_of_the_guest(world, linux):
    """It installs the modules of a tree that was built with it, with the tree's own tools."""
    linux.write(".config", 'CONFIG_CC_VERSION_TEXT="gcc (another) 99.1"\n')
    code, out = make(world, f"LINUX={linux.folder}")
    assert code == 0, out
    made = (world.folder / "made").read_text().splitlines()
    assert len(made) == 2 and all(f"{world.cache}/guest-" in line for line in made), made


@pytest.fixture
def lab_env(tmp_path, monkeypatch):
    """What the lab knows about the guest's kernels."""
    monkeypatch.setattr(paths, "BUILD", tmp_path)
    monkeypatch.delenv("QHCA_KERNEL", raising=False)
    (tmp_path / "guest").mkdir()

    def write(*lines):
        known = ["default=6.12", "kernel-6.12=/a", "debug=6.12-debug", "kernel-6.12-debug=/b", *lines]
        (tmp_path / "guest/env").write_text("\n".join(known))
    return write


def test_lab_takes_it(lab_env, monkeypatch):
    lab_env(f"linux={RELEASE}", f"kernel-{RELEASE}=/c")
    assert paths.kernel_release() == RELEASE
    assert paths.kernel_release("6.12") == "6.12"
    monkeypatch.setenv("QHCA_KERNEL", "debug")
    assert paths.kernel_release() == "6.12-debug"


def test_lab_takes_no_other(lab_env):
    """A tree that is not built is not replaced by Debian's kernel."""
    lab_env("linux=/home/me/linux")
    with pytest.raises(paths.Missing, match="no kernel /home/me/linux: run `make linux`"):
        paths.kernel_release()
