# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The lab's code under the guest's Python, which is newer than a Debian 12 host's."""

import os
import pathlib
import subprocess

from lab import paths

CODE = """
import sys, tokenize, warnings
warnings.simplefilter("error")
import bench, lab, lab.__main__, lab.capture, lab.devlink, lab.vng
from lab.pair import gid_text
for name in sys.argv[1:]:
    with tokenize.open(name) as f:
        compile(f.read(), name, "exec")
assert gid_text("10.77.0.1") == gid_text("::ffff:10.77.0.1") == \
    "0000:0000:0000:0000:0000:ffff:0a4d:0001"
assert gid_text("fd77::1") == "fd77:0000:0000:0000:0000:0000:0000:0001"
print(*sys.version_info[:2])
"""


def test_lab_under_the_guests_python():
    """Newer Python lacks modules, warns of some syntax, and writes addresses differently."""
    tree = pathlib.Path(paths.guest_env()["tree"])
    libraries = tree / "usr/lib/x86_64-linux-gnu"
    files = sorted(str(p) for p in (paths.TOP / "tests").rglob("*.py"))
    env = dict(os.environ, PYTHONHOME=str(tree / "usr"), PYTHONPATH=str(paths.TOP / "tests"),
               PYTHONDONTWRITEBYTECODE="1")
    done = subprocess.run([tree / "usr/lib64/ld-linux-x86-64.so.2", "--library-path", libraries,
                           tree / "usr/bin/python3", "-c", CODE, *files],
                          env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=120, check=False)
    assert done.returncode == 0, done.stdout
    assert tuple(map(int, done.stdout.split())) >= (3, 13)
