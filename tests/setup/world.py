# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""An environment for the scripts: a small checkout, and an archive and tools
that are a few lines of shell.

The scripts are the real ones, and so are cp, tar, rsync and the like. What they
fetch, compile and boot is not: a "QEMU" of some bytes is there in a fraction of
a second, and any step can be made to fail.
"""

import hashlib
import io
import os
import pathlib
import shutil
import stat
import subprocess
import tarfile
import time

from lab import paths
from lab.link import FULL

KERNELS = ("6.12.1-amd64", "7.2.1-amd64")
QEMU_BYTES = 3 << 20

PATCH = """\
--- a/hw/Kconfig
+++ b/hw/Kconfig
@@ -1,2 +1,3 @@
 one
+qhca
 two
"""

CMAKE_LISTS = """\
set(IBVERBS_PABI_VERSION "34")
add_subdirectory(providers/rxe)
add_subdirectory(providers/rxe/man)
"""

# Shell scripts that replace tools that need root, a network or minutes.
TOOLS = pathlib.Path(__file__).resolve().parent / "tools"

# Those whose failure a script can meet. Others, such as cut, do nothing that a
# disk, a network or a permission could refuse.
FAILING = ("apt-get apt-cache apt-helper mmdebstrap depmod mke2fs chroot unshare make cmake ninja "
           "modprobe cp mv mkdir rm rsync tar patch install touch truncate mktemp find cat sed awk "
           "sort cpio chmod ln dpkg cmp chown sha256sum du").split()


def sample(calls):
    """Two of the commands or so, other ones each day; all of them with FULL=1."""
    if FULL:
        return range(1, calls + 1)
    first = 1 + time.localtime().tm_yday % 12
    return range(first, calls + 1, max(12, calls // 2))


def executable(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def tarball(path, top, files):
    with tarfile.open(path, "w:gz", compresslevel=1) as tar:
        for name, content in files.items():
            info = tarfile.TarInfo(f"{top}/{name}")
            content = content if isinstance(content, bytes) else content.encode()
            info.size = len(content)
            info.mode = 0o755 if name == "configure" else 0o644
            tar.addfile(info, io.BytesIO(content))


class World:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.checkout = self.folder / "checkout"
        self.cache = self.folder / "cache"
        self.build = self.folder / "build"
        self.bin = self.folder / "bin"
        self.archive = self.folder / "archive"
        for part in (self.checkout, self.archive, self.bin):
            part.mkdir(parents=True)
        self._checkout()
        self._archive()
        self._tools()

    def _checkout(self):
        shutil.copytree(paths.TOP / "scripts", self.checkout / "scripts")
        for name in ("Makefile", "Kbuild"):
            shutil.copy(paths.TOP / name, self.checkout)
        versions = (paths.TOP / "versions.mk").read_text()
        (self.checkout / "versions.mk").write_text(versions + "QEMU_SPACE=1\nGUEST_SPACE=1\n")
        # The tests do not depend on the packages of this machine.
        self.real_setup = self.checkout / "scripts" / "setup.real"
        (self.checkout / "scripts" / "setup.sh").rename(self.real_setup)
        executable(self.checkout / "scripts" / "setup.sh", "#!/bin/sh\n")
        for name, text in {
                "qemu-hca/qhca.c": "device\n",
                "qemu-hca/qemu/integration/0001.patch": PATCH,
                "drivers/include/qhca/qhca_hw.h": "abi\n",
                "drivers/include/uapi/rdma/qhca-abi.h": "uapi\n",
                "tests/guest/kernel/Kbuild": "\n",
                "tests/guest/programs/Makefile": "all:\n",
                "tests/host/host.h": "host\n",
                "qemu-hca/core/hca.h": "engine\n",
                "userspace-provider/providers/qhca/CMakeLists.txt": "",
                "userspace-provider/providers/qhca/qhcadv.h": "dv\n"}.items():
            path = self.checkout / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def _archive(self):
        blob = hashlib.sha256(b"qhca").digest() * (QEMU_BYTES // 32)
        tarball(self.archive / "qemu_10.0.2+ds.orig.tar.gz", "qemu-10.0.2", {
            "configure": (TOOLS / "configure.sh").read_text(), "blob": blob, "hw/Kconfig": "one\ntwo\n",
            "hw/rdma/meson.build": "", "pc-bios/README": "", "tests/qtest/meson.build": ""})
        tarball(self.archive / "rdma-core_56.1.orig.tar.gz", "rdma-core-56.1", {
            "CMakeLists.txt": CMAKE_LISTS, "providers/rxe/CMakeLists.txt": "",
            "kernel-headers/CMakeLists.txt": "  rdma/rdma_user_rxe.h\n",
            "kernel-headers/rdma/rdma_user_rxe.h": ""})
        tree = self.archive / "tree"
        for name in ("bin/busybox", "usr/sbin/init"):
            executable(tree / name, "#!/bin/sh\n")
        for kernel in KERNELS:
            for name in (f"boot/vmlinuz-{kernel}", f"lib/modules/{kernel}/ext4.ko",
                         f"usr/src/linux-headers-{kernel}/Makefile"):
                (tree / name).parent.mkdir(parents=True, exist_ok=True)
                (tree / name).write_text(f"{name}\n" * 100)
        deb = self.folder / "deb"
        (deb / "DEBIAN").mkdir(parents=True)
        (deb / "DEBIAN" / "control").write_text(
            "Package: virtme-ng\nVersion: 1\nArchitecture: all\nMaintainer: x <x@x>\nDescription: x\n")
        executable(deb / "usr/bin/virtme-ng", "vng\n")
        subprocess.run(["dpkg-deb", "--root-owner-group", "-Znone", "-b", deb,
                        self.archive / "virtme-ng.deb"], check=True, stdout=subprocess.DEVNULL)

    def _tools(self):
        tools = {path.stem: path for path in TOOLS.glob("*.sh")}
        fail_once = tools.pop("fail-once")
        tools.pop("configure")
        for name in set(tools) | set(FAILING):
            text = "#!/bin/sh\n"
            if name in FAILING:
                text += f". {fail_once}\n"
            if name in tools:
                text += f". {tools[name]}\n"
            else:
                text += f'exec {shutil.which(name, path="/usr/bin:/bin:/usr/sbin:/sbin")} "$@"\n'
            executable(self.bin / name, text)

    def environment(self, **more):
        env = {k: v for k, v in os.environ.items()
               if not k.startswith(("QHCA_", "QEMU_", "MAKE", "MFLAGS", "RDMA_", "KDIR", "LINUX", "CC"))}
        env.update(PATH=f"{self.bin}:/usr/bin:/bin", BUILD=str(self.build), WORLD=str(self.folder),
                   QHCA_CACHE=str(self.cache), JOBS="1", HOME=str(self.folder))
        env.update(more)
        return env

    def start(self, *argv, **more):
        """A script, or another command, in a session of its own."""
        return subprocess.Popen([str(a) for a in argv], cwd=self.checkout, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                start_new_session=True, env=self.environment(**more))

    def run(self, *argv, **more):
        """(exit code, all output)"""
        child = self.start(*argv, **more)
        out, _ = child.communicate(timeout=300)
        return child.returncode, out

    def script(self, name, *args, **more):
        return self.run(f"scripts/{name}.sh", *args, **more)

    def made(self):
        """{name: content} of all that the scripts leave for the tests and the lab."""
        found = {}
        for path in sorted(self.build.rglob("*")):
            name = str(path.relative_to(self.build))
            mode = path.lstat().st_mode
            if name.startswith("log/") or stat.S_ISDIR(mode) or name.endswith(".new"):
                continue
            if stat.S_ISLNK(mode):
                found[name] = os.readlink(path)
            elif "initramfs" in name:
                # It has times in it.
                found[name] = path.stat().st_size
            else:
                found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
        return found

    def save(self):
        """Saves the cache and the build, for restore()."""
        copy = self.folder / f"saved{len(list(self.folder.glob('saved*')))}"
        copy.mkdir()
        parts = [part for part in (self.cache, self.build) if part.exists()]
        if parts:
            subprocess.run(["cp", "-a", *parts, copy], check=True)
        return copy

    def restore(self, copy):
        self.forget()
        for part in copy.iterdir():
            subprocess.run(["cp", "-a", part, self.folder], check=True)

    def fails_once(self, name, *args, **more):
        """One command of a script after the other fails: the script then ends with an
        error, or what it leaves is right; and the next try is always right."""
        calls, failed = self.folder / "calls", self.folder / "failed"
        before = self.save()
        calls.write_text("")
        code, out = self.script(name, *args, FAIL_AT="never", **more)
        assert code == 0, out
        right, count = self.made(), calls.stat().st_size
        assert count > 5
        for n in sample(count):
            self.restore(before)
            calls.write_text("")
            failed.unlink(missing_ok=True)
            code, out = self.script(name, *args, FAIL_AT=str(n), **more)
            which = failed.read_text() if failed.exists() else "nothing"
            if code == 0:
                assert self.made() == right, f"{which} failed, and nobody said so:\n{out}"
            else:
                assert "error: " in out, f"{which} failed, and nobody said why:\n{out}"
                code, out = self.script(name, *args, **more)
                assert code == 0, f"after {which} had failed:\n{out}"
                assert self.made() == right, f"after {which} had failed:\n{out}"

    def forget(self):
        """Removes all that has been built or fetched."""
        for part in (self.cache, self.build):
            shutil.rmtree(part, ignore_errors=True)
