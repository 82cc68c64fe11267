# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""When something goes wrong the scripts say so, leave nothing incomplete, and succeed the next
time."""

import ast
import json
import os
import pathlib
import re
import signal
import subprocess

import pytest

import world as worlds
from lab import paths, wait_for
from lab.link import FULL

SCRIPTS = sorted((paths.TOP / "scripts").glob("*.sh"))

# Functions that only ask, or run one command.  Called in a condition, they cannot go on
# after an error that the shell ignores.
ASKING = {"apt_in", "as_root", "depends", "has_compiler", "has_lists", "installed", "intact",
          "meson_version", "wants"}

STAGES = [("qemu",), ("guest",), ("modules", "all"), ("provider",), ("programs",)]


def test_shellcheck():
    """No function is called where the shell ignores errors in it, say before ||."""
    done = subprocess.run(
        ["shellcheck", "-x", "-s", "bash", "--enable=check-set-e-suppressed", "--format=json",
         *SCRIPTS, paths.TOP / ".ci/run", *(paths.TOP / "tests").rglob("*.sh")],
        cwd=paths.TOP, stdout=subprocess.PIPE, text=True, check=False)
    found = []
    for note in json.loads(done.stdout):
        line = pathlib.Path(note["file"]).read_text().splitlines()[note["line"] - 1]
        name = line.expandtabs(8)[note["column"] - 1:note["endColumn"] - 1]
        if note["code"] == 2310 and name in ASKING or note["level"] in ("info", "style") and \
                note["code"] != 2310:
            continue
        found.append(f"{note['file']}:{note['line']}: {note['message']} [{name}]")
    assert not found, "\n".join(found)


def test_shell_is_in_files():
    """No Python string holds a shell script of several lines, which nothing would check."""
    found = []
    for path in (paths.TOP / "tests").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and \
                    re.search(r"^\s*(done|fi|esac|set -e)\b.*$", node.value, re.M) and \
                    node.value.count("\n") > 1:
                found.append(f"{path.relative_to(paths.TOP)}:{node.lineno}")
    assert not found, "\n".join(found)


@pytest.fixture
def world(tmp_path):
    return worlds.World(tmp_path / "world")


def common(code, **env):
    """(exit code, output) of shell code with common.sh's functions"""
    done = subprocess.run(["bash", "-c", f". scripts/common.sh\n{code}"], cwd=paths.TOP,
                          env=dict({k: v for k, v in os.environ.items()
                                    if not k.startswith("QHCA_")}, **env),
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=60, check=False)
    return done.returncode, done.stdout


@pytest.mark.parametrize("how", ["locked part", "logged $QHCA_CACHE/log 'no part'"])
def test_an_error_ends(tmp_path, how):
    """A function that runs under a lock, or with a log, stops at the first error."""
    code, out = common(f"""
        part() {{ true; false; echo went on; }}
        {how} part
        echo done""", QHCA_CACHE=str(tmp_path))
    assert code == 1 and "error: " in out
    assert "went on" not in out and "done" not in out


def test_not_in_a_condition(tmp_path):
    code, out = common("""
        part() { false; echo went on; }
        locked part part || echo handled
        echo done""", QHCA_CACHE=str(tmp_path))
    assert code == 1 and "locked was called in a condition" in out


def build_all(world, **env):
    for stage in STAGES:
        code, out = world.script(*stage, **env)
        if code:
            return code, out
    return 0, ""


def test_all_that_is_made(world):
    """The result without a failure, with which the other tests compare theirs."""
    code, out = build_all(world)
    assert code == 0, out
    made = world.made()
    blob = world.build / "qemu/bin/qemu-system-x86_64"
    assert blob.read_bytes().startswith(b"one\nqhca\ntwo\ndevice\n")
    assert blob.stat().st_size == worlds.QEMU_BYTES + len("one\nqhca\ntwo\ndevice\n")
    for kernel in worlds.KERNELS:
        assert {f"modules/{kernel}/{m}.ko" for m in ("qhca", "qhca_ib", "test")} <= set(made)
        assert f"guest/initramfs-{kernel}" in made
    assert "default=6.12.1-amd64\nbackports=7.2.1-amd64\n" in (world.build / "guest/env").read_text()
    assert "programs/qhca-verify" in made and "provider/libqhca-rdmav34.so" in made


def own_qemu(world, version):
    """A source tree of the user's."""
    own = world.folder / "own"
    own.mkdir()
    subprocess.run(["tar", "-xf", next(world.archive.glob("qemu_*")), "-C", own, "--strip-components=1"],
                   check=True)
    (own / "VERSION").write_text(f"{version}\n")
    return own


@pytest.mark.parametrize("version, warns", [("9.2.4", True), ("10.0.5", True), ("10.0.6", False),
                                            ("10.1.1", True), ("10.1.2", False), ("10.2.0", False)])
def test_qemu_without_virtual_functions(world, version, warns):
    """Releases of QEMU in which BARs of virtual functions decode nothing."""
    code, out = world.script("qemu", QEMU_SRC=str(own_qemu(world, version)))
    assert code == 0, out
    assert (f"QEMU {version} does not map virtual functions" in out) == warns


@pytest.mark.parametrize("version, line", [("10.0.13", "qhca"), ("10.1.0", "newer"), ("11.0.0", "newer")])
def test_patch_for_newer_qemu(world, version, line):
    """NAME+10.1.patch replaces NAME.patch from QEMU 10.1 on."""
    integration = world.checkout / "qemu-hca/qemu/integration"
    patch = (integration / "0001.patch").read_text()
    assert "+qhca" in patch
    (integration / "0001+10.1.patch").write_text(patch.replace("+qhca", "+newer"))
    code, out = world.script("qemu", QEMU_SRC=str(own_qemu(world, version)))
    assert code == 0, out
    assert (world.build / "qemu/bin/qemu-system-x86_64").read_bytes().startswith(f"one\n{line}\n".encode())
    assert (f"this is QEMU {version}; 10.0 to 10.2 have been tried" in out) == (version == "11.0.0")


def test_range_of_releases():
    """What is older than the first series or newer than the last is told."""
    versions = "9.2.4 10.0.0 10.0.13 10.2.2 10.3.0 11.1.3"
    code, out = common(f"for v in {versions}; do warn_of_range QEMU $v 10.0 10.2; done")
    assert code == 0 and re.findall(r"this is QEMU (\S+); 10.0 to 10.2 have", out) == \
        ["9.2.4", "10.3.0", "11.1.3"], out


QEMU = "qemu/bin/qemu-system-x86_64"


def make(world, *targets):
    return world.run("/usr/bin/make", *targets)


def test_own_tree_is_remembered(world):
    """A tree holds for later runs, which say so, until an empty variable takes it back."""
    own = own_qemu(world, "10.2.0")
    (own / "hw/Kconfig").write_text("one\ntwo\nown\n")
    ours = b"one\nqhca\ntwo\nown\n"
    note = f"QEMU_SRC={own}, as before"
    for argument, note_wanted, ours_wanted in [
            ([], False, False), ([f"QEMU_SRC={own}"], False, True), ([], True, True), ([], True, True),
            (["QEMU_SRC="], False, False), ([], False, False)]:
        code, out = make(world, "qemu", *argument)
        assert code == 0, out
        assert (note in out) == note_wanted, out
        assert (world.build / QEMU).read_bytes().startswith(ours) == ours_wanted, argument
    assert (world.build / "trees").read_text() == ""


def test_trees_are_remembered_one_by_one(world):
    own = own_qemu(world, "10.2.0")
    for argument in (f"QEMU_SRC={own}", "RDMA_CORE_SRC="):
        code, out = make(world, "qemu", argument)
        assert code == 0, out
    code, out = make(world, "qemu")
    assert code == 0 and "QEMU_SRC=" in out, out
    assert (world.build / "trees").read_text() == f"QEMU_SRC={own}\n"


def test_relative_path_of_a_tree(world):
    """It is relative to the folder of the first run, and remembered as absolute."""
    own = own_qemu(world, "10.2.0")
    code, out = make(world, "qemu", "QEMU_SRC=../own")
    assert code == 0, out
    assert (world.build / "trees").read_text() == f"QEMU_SRC={own}\n"


@pytest.mark.parametrize("name, part, what", [
    ("QEMU_SRC", "qemu", "QEMU source tree"), ("RDMA_CORE_SRC", "provider", "rdma-core source tree"),
    ("KDIR", "modules", "kernel build tree"), ("LINUX", "linux", "Linux tree"),
    ("RDMA_UNIT_TEST_SRC", "suites", "rdma-unit-test tree"),
    ("BLKTESTS_SRC", "suites", "blktests tree")])
def test_folder_that_is_no_tree(world, name, part, what):
    """It is refused, and not remembered."""
    code, out = make(world, part, f"{name}={world.folder}")
    assert code and f"error: {name}={world.folder} is no {what}" in out, out
    assert not (world.build / "trees").exists()


def test_tree_that_is_gone(world):
    own = own_qemu(world, "10.2.0")
    assert make(world, "qemu", f"QEMU_SRC={own}")[0] == 0
    own.rename(world.folder / "elsewhere")
    code, out = make(world, "qemu")
    assert code and f"error: QEMU_SRC={own}, which was given before, is no QEMU source tree" in out, out
    assert make(world, "qemu", "QEMU_SRC=")[0] == 0


def test_own_rdma_core(world):
    """The guest gets all libraries of the tree, and its other providers; of Debian's none."""
    own = world.folder / "rdma"
    own.mkdir()
    subprocess.run(["tar", "-xf", next(world.archive.glob("rdma-core_*")), "-C", own,
                    "--strip-components=1"], check=True)
    lists = own / "CMakeLists.txt"
    lists.write_text(f'set(PACKAGE_VERSION "66.0")\n{lists.read_text()}')
    code, out = make(world, "provider", f"RDMA_CORE_SRC={own}")
    assert code == 0 and "this is rdma-core 66.0; 56 to 65 have been tried" in out, out
    libraries = world.build / "provider/lib"
    for name in ("libibverbs", "libmlx5", "librdmacm"):
        assert os.readlink(libraries / f"{name}.so.1") == f"{name}.so.1.65.0"
        assert (libraries / f"{name}.so.1.65.0").is_file()
        assert os.readlink(libraries / f"{name}.so") == f"{name}.so.1"
    found = sorted(os.listdir(world.build / "provider/providers"))
    assert found == ["libmlx5-rdmav34.so", "librxe-rdmav34.so"]
    # It is a library and a plugin, which the guest has in a folder below the libraries.
    assert os.readlink(world.build / "provider/providers/libmlx5-rdmav34.so") == "../libmlx5.so.1"
    code, out = make(world, "provider", "RDMA_CORE_SRC=")
    assert code == 0, out
    assert sorted(os.listdir(libraries)) == ["libqhca.so", "libqhca.so.1", "libqhca.so.1.0.56"]
    assert not (world.build / "provider/providers").exists()


def test_packages_are_for_debian(world):
    """A provider that was built with another libibverbs does not fit Debian's."""
    own = world.folder / "rdma"
    own.mkdir()
    (own / "CMakeLists.txt").write_text(worlds.CMAKE_LISTS)
    code, out = make(world, "deb", f"RDMA_CORE_SRC={own}", "DEBEMAIL=me@example.org")
    assert code and "error: packages are for Debian's libibverbs: RDMA_CORE_SRC= goes back" in out, out
    assert not (world.build / "deb").exists()


@pytest.mark.parametrize("arguments, kernel, areas", [
    (["check"], "", "setup abi unit sim fuzz qtest guest interop"),
    (["check", "KERNEL=backports"], "backports", "setup abi unit sim fuzz qtest guest interop"),
    (["check-guest", "KERNEL=debug"], "debug", "guest")])
def test_kernel_of_tests(world, arguments, kernel, areas):
    """make check takes KERNEL= as make run does; the lab takes it from the environment."""
    worlds.executable(world.checkout / "scripts/check.sh", '#!/bin/sh\necho "kernel=$QHCA_KERNEL" "$@"\n')
    assert make(world, *arguments) == (0, f"kernel={kernel} {areas}\n")


def test_kernel_that_there_is_not(world):
    """It is refused at once, and not by each test that boots a guest."""
    code, out = world.script("check", "guest", QHCA_KERNEL="backport")
    assert code == 1 and "check: error: the guest has no kernel backport" in out, out
    assert out.endswith("\n0 passed, 1 failed\n")


def own_kernel(world, compiler):
    """A kernel build tree, which was configured with a compiler."""
    own = world.folder / "linux"
    (own / "include/config").mkdir(parents=True)
    (own / "scripts/basic").mkdir(parents=True)
    (own / "scripts/basic/fixdep").write_text("")
    (own / "Makefile").write_text("")
    (own / ".config").write_text(f'CONFIG_CC_VERSION_TEXT="{compiler}"\n')
    (own / "include/config/kernel.release").write_text("6.99.1-own\n")
    return own


@pytest.mark.parametrize("how, by_guest, given", [
    ("this machine's", False, None), ("another", True, None), ("another", False, "gcc-99")])
def test_compiler_for_own_kernel(world, how, by_guest, given):
    """The guest's compiles for a tree that was configured with another than this machine's."""
    version = subprocess.run(["gcc", "--version"], stdout=subprocess.PIPE, text=True,
                             check=True).stdout.splitlines()[0].partition(" ")[2]
    own = own_kernel(world, f"x86_64-linux-gnu-gcc-99 {version if how != 'another' else '99.1'}")
    code, out = make(world, "modules", f"KDIR={own}", *([f"CC={given}"] if given else []))
    assert code == 0, out
    assert (world.build / "modules/6.99.1-own/qhca.ko").is_file()
    (made,) = (world.folder / "made").read_text().splitlines()
    assert (f"{world.cache}/guest-" in made) == by_guest, made
    assert ("guest's compiler" in out) == by_guest, out
    assert made.endswith(" CC=gcc-99 modules") == bool(given), made
    assert f"-C {own} " in made
    if by_guest:
        assert str(own) in (world.folder / "seen").read_text().splitlines()


def test_kernel_that_is_not_prepared(world):
    """A copy of Debian's headers alone has a link to scripts in place of scripts."""
    own = own_kernel(world, "gcc (another) 99.1")
    (own / "scripts/basic/fixdep").unlink()
    code, out = make(world, "modules", f"KDIR={own}")
    assert code and f"error: KDIR={own} has no scripts/basic/fixdep: run make modules_prepare" in out, out


@pytest.mark.parametrize("name", ["scripts", "tools", "source"])
def test_links_of_a_kernel(world, name):
    """The guest's make sees the folders to which a tree has links."""
    own = own_kernel(world, "gcc (another) 99.1")
    elsewhere = world.folder / "elsewhere"
    (own / name).mkdir(exist_ok=True)
    (own / name).rename(elsewhere)
    (own / name).symlink_to("../elsewhere")
    code, out = make(world, "modules", f"KDIR={own}")
    assert code == 0, out
    assert str(elsewhere) in (world.folder / "seen").read_text().splitlines()


def test_compiler_of_make(world):
    """make's own default of CC is no choice of the user's."""
    own = own_kernel(world, "gcc (another) 99.1")
    assert make(world, "modules", f"KDIR={own}")[0] == 0
    assert "CC=" not in (world.folder / "made").read_text()


def test_each_step_fails_once(world):
    for stage in STAGES:
        world.fails_once(*stage)


def mounting():
    """The command by which a test gets a tmpfs of its own."""
    return ["unshare", "--mount"] if os.getuid() == 0 else ["sudo", "-n", "-E", "unshare", "--mount"]


@pytest.mark.parametrize("kilobytes", [2800, 5000, 10000] if not FULL else range(500, 16000, 500))
def test_full_disk(world, kilobytes):
    """On a disk of some size the script ends with an error or with a QEMU that is
    whole; and with room for it, it is whole."""
    assert world.script("qemu")[0] == 0
    right = world.made()
    world.forget()
    disk = world.folder / "disk"
    disk.mkdir()
    world.cache, world.build = disk / "cache", disk / "build"
    (world.folder / "try").write_text(f"""
        look() {{ (cd {disk} && find build/qemu/bin -type f ! -name '*.new' -exec sha256sum {{}} +); }}
        mount -t tmpfs -o size={kilobytes}k disk {disk}
        scripts/qemu.sh < /dev/null; echo "code $?"; look
        mount -o remount,size=64m {disk}
        echo "== second"
        scripts/qemu.sh < /dev/null; echo "code $?"; look
        """)
    code, out = world.run("/usr/bin/env", f"PATH={os.environ['PATH']}", *mounting(), "/usr/bin/env",
                          f"PATH={world.bin}:/usr/bin:/bin", "bash", world.folder / "try")
    assert code == 0, out
    name = "qemu/bin/qemu-system-x86_64"
    first, second = out.split("== second\n")
    code = re.search(r"^code (\d+)", first, re.M)[1]
    line = f"\n{right[name]}  build/{name}\n"
    if code == "0":
        assert line in first, out
    else:
        assert "error: " in first and "done:" not in first, out
        assert f"  build/{name}\n" not in first or line in first, out
    assert "code 0\n" in second and line in second, out
    assert kilobytes >= 10000 or code != "0", "this disk was to be too small"


def test_space_first(world):
    """A script reports that the disk is too small before it reads or makes anything."""
    versions = world.checkout / "versions.mk"
    versions.write_text(versions.read_text() + "QEMU_SPACE=999999999\nGUEST_SPACE=999999999\n")
    for name in ("qemu", "guest"):
        code, out = world.script(name)
        assert code == 1 and "needs 999999999 MB" in out and out.count("\n") == 1, out


@pytest.mark.parametrize("name", ["qemu", "guest"])
def test_no_network_at_first(world, name):
    """A script reports that there is no network, and works once there is one again."""
    (world.folder / "offline").write_text("")
    code, out = world.script(name)
    assert code == 1 and "check the network" in out and "QEMU_SERIES" not in out, out
    (world.folder / "offline").unlink()
    code, out = world.script(name)
    assert code == 0, out


def test_empty_lists_of_an_earlier_run(world):
    """Earlier versions left such a cache: its lists are marked as fresh, but absent."""
    folder = world.cache / "apt/trixie"
    folder.mkdir(parents=True)
    (folder / "fresh").write_text("")
    code, out = world.script("qemu")
    assert code == 0, out


def test_network_gone_later(world):
    """A script does not need the network for files that are in the cache."""
    assert world.script("qemu")[0] == 0
    (world.folder / "offline").write_text("")
    fresh = world.cache / "apt/trixie/fresh"
    os.utime(fresh, (0, 0))
    code, out = world.script("qemu")
    assert code == 0 and "going on with the lists of an earlier day" in out, out
    assert not fresh.exists()


def test_apt_itself_without_a_network(tmp_path):
    """Debian's apt-get update succeeds although it could read nothing."""
    proxy = "http://127.0.0.1:9"
    code, out = common("apt_setup trixie", QHCA_CACHE=str(tmp_path), http_proxy=proxy,
                       https_proxy=proxy, no_proxy="")
    assert code == 1 and "check the network" in out, out
    assert not (tmp_path / "apt/trixie/fresh").exists()


@pytest.mark.parametrize("how", ["cut", "lost"])
def test_download_interrupted(world, how):
    code, out = world.script("qemu", WORLD_DOWNLOAD=how)
    assert code == 1 and "error: " in out, out
    code, out = world.script("qemu")
    assert code == 0, out


def test_damaged_tarball_in_the_cache(world):
    (world.cache / "download").mkdir(parents=True)
    tarball = next(world.archive.glob("qemu_*"))
    (world.cache / "download" / tarball.name).write_bytes(tarball.read_bytes()[:5000])
    code, out = world.script("qemu")
    assert code == 0 and "is damaged" in out, out


@pytest.mark.parametrize("where", ["/proc/qhca", "/sys/qhca"])
def test_cache_that_cannot_be_written(world, where):
    world.real_setup.rename(world.checkout / "scripts/setup.sh")
    code, out = world.script("setup", QHCA_CACHE=where)
    assert code == 1 and out == f"setup: error: cannot write {where}: set QHCA_CACHE to a folder of yours\n"


def test_interrupted(world):
    """After Ctrl-C the script says so in one line, and does not call the build failed."""
    building = world.folder / "building"
    with world.start("scripts/qemu.sh",
                     BUILD_DOES=f"[ -e {building} ] || (touch {building}; sleep 60)") as child:
        for line in child.stdout:
            if "compiling QEMU" in line:
                break
        wait_for(building.exists, 180, "the build's start")
        os.killpg(child.pid, signal.SIGINT)
        out, _ = child.communicate(timeout=60)
        assert child.returncode == 130, out
    assert re.fullmatch(r"qemu \[ *\d+s\] interrupted; what was complete is kept\n", out), out
    code, out = world.script("qemu")
    assert code == 0, out


@pytest.mark.parametrize("sudo", ["none", "refuses"])
@pytest.mark.parametrize("target", ["run", "check-guest"])
def test_no_root(world, sudo, target):
    """A user who cannot become root gets one line that says so, at once."""
    world.real_setup.rename(world.checkout / "scripts/setup.sh")
    tools = world.folder / "tools"
    tools.mkdir()
    for folder in ("/usr/sbin", "/sbin", "/usr/bin", "/bin"):
        for tool in pathlib.Path(folder).iterdir():
            if tool.name != "sudo" and not (tools / tool.name).exists():
                (tools / tool.name).symlink_to(tool)
    for name, text in {"id": "case $1 in -un) echo user ;; *) echo 1000 ;; esac",
                       **({"sudo": "exit 1"} if sudo == "refuses" else {})}.items():
        (tools / name).unlink(missing_ok=True)
        worlds.executable(tools / name, f"#!/bin/sh\n{text}\n")
    common_sh = world.checkout / "scripts/common.sh"
    # No other folders are to be looked into.
    common_sh.write_text(re.sub(r"^PATH=.*\n", "", common_sh.read_text(), flags=re.M))
    child = subprocess.run(["/usr/bin/make", target], cwd=world.checkout, stdin=subprocess.DEVNULL,
                           env=dict(world.environment(), PATH=str(tools)), timeout=180, text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    assert child.returncode == 2
    lines = [line for line in child.stderr.splitlines() if not line.startswith("make: ***")]
    assert len(lines) == 1, child.stderr
    assert lines[0].startswith("setup: error: root is needed to make the guest and build in it"), lines
    assert not any(world.cache.glob("*-*"))
