# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""libqhca's rings against hand-made output of a device (its tests/rings.c), and its manual.

The program is built in the guest tree and runs here, by that tree's loader.
"""

import re
import subprocess

import pytest

from lab import paths

MAN = paths.TOP / "userspace-provider" / "providers" / "qhca" / "man"


def test_rings(tap_points):
    folder = paths.BUILD / "provider" / "test"
    if not folder.is_dir():
        pytest.fail("the provider has not been built: make provider")
    loader, libraries = ((folder / name).read_text().strip() for name in ("loader", "libraries"))
    done = subprocess.run([loader, "--library-path", libraries, str(folder / "qhca_test_rings")],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120,
                          check=False)
    tap_points(done.stdout + done.stderr, done.returncode)


def test_manual_pages():
    """The build installs each page that is here, under each name that the page has, and each
    function of qhcadv.h has one."""
    lists = (MAN / "CMakeLists.txt").read_text()
    pages = {path.name for path in MAN.glob("*.md")}
    assert set(re.findall(r"^  (\S+\.md)$", lists, re.M)) == pages
    names = set(re.findall(r"^  (\S+)\.md$", lists, re.M)) | \
        set(re.findall(r"^  \S+ (\S+)$", lists, re.M))
    for page in pages:
        text = (MAN / page).read_text()
        title = re.search(r"^# NAME\n\n(.*?) - ", text, re.M | re.S)[1]
        section = re.search(r"\.(\d)\.md$", page)[1]
        assert f"\nsection: {section}\n" in text
        assert {f"{name}.{section}" for name in re.split(r",\s+", title)} <= names, page
    header = (MAN.parent / "qhcadv.h").read_text()
    functions = set(re.findall(r"\b(qhcadv_\w+)\(struct ibv_\w+ \*", header))
    text = "".join((MAN / page).read_text() for page in pages)
    assert len(functions) > 5
    assert [name for name in functions if f"{name}(" not in text] == []
