# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""scripts/against.sh builds another commit beside this tree, and neither disturbs the other."""

import subprocess

import pytest

import world as worlds
from lab import paths


def git(world, *args):
    done = subprocess.run(["git", "-c", "user.name=x", "-c", "user.email=x@x", *args],
                          cwd=world.checkout, check=True, stdout=subprocess.PIPE, text=True,
                          env=world.environment())
    return done.stdout.strip()


@pytest.fixture
def world(tmp_path):
    """A checkout with two commits, whose device and recipe of the guest differ, and a change
    that is not committed."""
    made = worlds.World(tmp_path / "world")
    device, recipe = made.checkout / "qemu-hca/qhca.c", made.checkout / "scripts/guest.sh"
    text = recipe.read_text()
    device.write_text("old device\n")
    recipe.write_text(text.replace("rdma-core ibverbs-utils", "rdma-core"))
    git(made, "init", "-q")
    git(made, "add", ".")
    git(made, "commit", "-q", "-m", "old")
    device.write_text("committed device\n")
    recipe.write_text(text)
    git(made, "commit", "-q", "-a", "-m", "new")
    device.write_text("device\n")
    return made


def build(world, *args):
    """The folder that the script has printed as its last line"""
    code, out = world.script("against", *args)
    assert code == 0, out
    return out.splitlines()[-1], out


def blob(folder):
    return (folder / "qemu/bin/qemu-system-x86_64").read_bytes()


def test_both_trees(world):
    folder, _ = build(world, "HEAD~1")
    old = world.build / "against" / git(world, "rev-parse", "HEAD~1")[:12]
    assert folder == str(old)
    assert blob(old / "build").startswith(b"one\nqhca\ntwo\nold device\n")
    assert (old / "build/modules/6.12.1-amd64/qhca.ko").exists()
    assert (old / "build/provider/libqhca-rdmav34.so").exists()
    for stage in ("qemu",), ("modules",), ("provider",):
        assert world.script(*stage)[0] == 0
    assert blob(world.build).startswith(b"one\nqhca\ntwo\ndevice\n")
    # One guest for both, and two sources of QEMU.
    envs = [folder.joinpath("guest/env").read_text() for folder in (old / "build", world.build)]
    assert envs[0].replace(f"{world.cache}/against", f"{world.cache}") == envs[1]
    guest, = world.cache.glob("guest-*")
    assert (world.cache / "against" / guest.name).resolve() == guest
    for cache in (world.cache, world.cache / "against"):
        assert len(list(cache.glob("qemu-*"))) == 1
    before = blob(old / "build")
    build(world, "HEAD~1")
    assert blob(old / "build") == before


def test_nobody_waits_for_its_qemu(world):
    """The old tree builds a QEMU of its own, beside those of other checkouts."""
    lock = world.cache / "lock/qemu"
    lock.parent.mkdir(parents=True)
    held = subprocess.Popen(["flock", lock, "cat"], stdin=subprocess.PIPE)
    try:
        build(world, "HEAD")
    finally:
        held.communicate()


def test_newer_kernel(world):
    folder, _ = build(world, "HEAD", "backports")
    assert [path.name for path in (world.build / "against").glob("*/build/modules/*")] == \
        ["7.2.1-amd64"]
    assert folder.endswith(git(world, "rev-parse", "HEAD")[:12])


@pytest.mark.parametrize("args, what", [
    (["0123456789"], "this checkout has no commit 0123456789"),
    (["HEAD", "debug"], "KERNEL=debug"),
    ([], "name a commit"),
])
def test_what_cannot_be_built(world, args, what):
    code, out = world.script("against", *args)
    assert code == 1 and f"against: error: {what}" in out and out.count("error: ") == 1


def test_own_trees(world):
    """The trees of the user's would be in one of the two builds only."""
    (world.build).mkdir()
    (world.build / "trees").write_text("QEMU_SRC=/x\nKDIR=/y\nRDMA_UNIT_TEST_SRC=/z\nBLKTESTS_SRC=/b\n")
    code, out = world.script("against", "HEAD")
    assert code == 1 and "take QEMU_SRC KDIR back first" in out


def test_unpacking_is_interrupted(world):
    """What was unpacked in part is not taken for the tree."""
    part = world.build / "against" / f"{git(world, 'rev-parse', 'HEAD')[:12]}.tmp"
    part.mkdir(parents=True)
    (part / "left-over").write_text("")
    folder, _ = build(world, "HEAD")
    assert blob(world.build / "against" / folder / "build").startswith(
        b"one\nqhca\ntwo\ncommitted device\n")
    assert not (world.build / "against" / folder / "left-over").exists() and not part.exists()


def test_cases_reach_the_program():
    """make hands the expression over as it is: in a makefile $| would be a variable."""
    cases = "^write.* 65536$|^atomic"
    done = subprocess.run(["make", "-n", "bench", "AGAINST=HEAD", f"CASES={cases}"], cwd=paths.TOP,
                          check=True, stdout=subprocess.PIPE, text=True)
    assert f"--cases '{cases}'" in done.stdout
