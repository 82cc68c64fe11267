# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Runs one command, such as a kselftest program, in a guest of virtme-ng.

The guest's root is the guest tree itself, seen over 9p, so nothing has to be
put into an image; what the checkout built is under /run/qhca as elsewhere.
"""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile

from . import accel, paths
from .guest import PATIENCE, GuestError, Result

# The one file of udev's rules that anything here needs: virtme-ng talks through
# virtio-ports by name. The others look every device up in files seen over 9p
# and load modules nobody uses, which takes as long as all the rest of the boot.
UDEV_RULES = "50-udev-default.rules"

PRELUDE = pathlib.Path(__file__).resolve().parent / "scripts/vng-prelude.sh"


def _mask_udev_rules(folder, tree):
    """The files of a rules.d in which all of the tree's rules but one are void."""
    folder.mkdir()
    for rules in (pathlib.Path(tree) / "usr/lib/udev/rules.d").glob("*.rules"):
        if rules.name != UDEV_RULES:
            (folder / rules.name).symlink_to("/dev/null")


def _stage(folder, release, files):
    shutil.copy(PRELUDE, folder)
    (folder / "modules").mkdir()
    for module in paths.modules(release):
        shutil.copy(module, folder / "modules")
    if paths.provider():
        shutil.copytree(paths.provider(), folder / "provider", symlinks=True)
    if paths.programs():
        shutil.copytree(paths.programs(), folder / "bin")
    for name, path in files.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if pathlib.Path(path).is_dir():
            shutil.copytree(path, target, dirs_exist_ok=True)
        else:
            shutil.copy(path, target)


def run(command, *, kernel="default", device="qhca,netdev=n0", memory="1G", cpus=1,
        qemu_args=(), append="no_timer_check no5lvl mitigations=off", files=None, timeout=300,
        check=False, qemu=None):
    """Boots, runs a shell command, ends. Returns a Result.

    device     the adapter, on a -netdev hubport that leads nowhere; None: none
    files      {name: host path} to find under /run/qhca/ in the guest
    """
    release = paths.kernel_release(kernel)
    if paths.is_slow(release):
        timeout *= PATIENCE
    env = paths.guest_env()
    qemu = str(qemu or paths.qemu())
    root = pathlib.Path(env["vng"])
    # No CD-ROM drive: the firmware would wait half a minute for its disc.
    extra = ["-nodefaults", *qemu_args]
    if device:
        extra += ["-netdev", "hubport,id=n0,hubid=0", "-device", device]
    with tempfile.TemporaryDirectory(prefix="qhca-vng-") as folder:
        folder = pathlib.Path(folder)
        _stage(folder, release, dict(files or {}))
        _mask_udev_rules(folder / "rules.d", env["tree"])
        (folder / "command").write_text(f". /mnt/{PRELUDE.name}\n{command}\n")
        # By its place in the tree virtme-ng finds the modules it boots with.
        kernel = pathlib.Path(env["tree"]) / "boot" / f"vmlinuz-{release}"
        argv = ["/usr/bin/python3", str(root / "usr/bin/virtme-ng"),
                "--run", str(kernel if kernel.exists() else paths.kernel(release)),
                "--root", env["tree"],
                "--force-9p", "--qemu", qemu, "--memory", memory, "--cpus", str(cpus),
                f"--rodir=/mnt={folder}", f"--rodir=/etc/udev/rules.d={folder}/rules.d",
                "--exec", "/bin/bash /mnt/command"]
        if paths.modules_disk(release):
            argv.append(f"--rodir=/media={pathlib.Path(paths.kernel(release)).parents[1]}/lib/modules")
        if accel.options(qemu) != accel.KVM:
            argv.append("--disable-kvm")
        for option in f"{append} {accel.kernel_arguments(qemu)}".split():
            argv += ["--append", option]
        if accel.options(qemu) != accel.KVM:
            extra += accel.EMULATED_CPU
        for option in extra:
            argv.append(f"--qemu-opts={option}")
        child_env = dict(os.environ, PYTHONPATH=str(root / "usr/lib/python3/dist-packages"),
                         PATH=f"{root}/usr/bin:/usr/sbin:/usr/bin:/sbin:/bin")
        try:
            # In a session of its own, so that all of it can be ended.
            child = subprocess.Popen(argv, env=child_env, stdin=subprocess.DEVNULL,
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                     start_new_session=True)
            out, err = child.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, 9)
            out, err = child.communicate()
            raise GuestError(f"`{command}` under virtme-ng took longer than {timeout} s\n"
                             f"{out.decode(errors='replace')}{err.decode(errors='replace')}") from None
        except BaseException:
            os.killpg(child.pid, 9)
            raise
    text = re.sub(r"\r\n", "\n", out.decode(errors="replace"))
    result = Result(command, child.returncode, text, err.decode(errors="replace"))
    if check and not result.ok:
        raise GuestError(str(result))
    return result
