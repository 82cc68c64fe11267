# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""libqhca's rings against hand-made output of a device (its tests/rings.c).

The program is built in the guest tree and runs here, by that tree's loader.
"""

import subprocess

import pytest

from lab import paths


def test_rings(tap_points):
    folder = paths.BUILD / "provider" / "test"
    if not folder.is_dir():
        pytest.fail("the provider has not been built: make provider")
    loader, libraries = ((folder / name).read_text().strip() for name in ("loader", "libraries"))
    done = subprocess.run([loader, "--library-path", libraries, str(folder / "qhca_test_rings")],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120,
                          check=False)
    tap_points(done.stdout + done.stderr, done.returncode)
