# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The reserved L_Key, which names memory by its bus address, in both of its modes
(kernel/qhca_test_lkey.c)."""

import re

import pytest

from lab import content, devlink, paths

NAME = "qhca_test_lkey"
STRICT_LKEY = 0x400000     # of FEAT_*


def run(node, strict):
    """The module's TAP and its exit code."""
    gid = node.gid_index()
    netdev = node.out(f"cat /sys/class/infiniband/{node.ibdev}/ports/1/gid_attrs/ndevs/{gid}")
    done = node.exec(f"dmesg -C; insmod /tmp/{NAME}.ko netdev={netdev} gid_index={gid} "
                     f"strict={int(strict)}; code=$?; [ $code != 0 ] || rmmod {NAME}; "
                     "dmesg; exit $code", timeout=300, check=False)
    return "\n".join(re.findall(rf"{NAME}: (.*)$", done.out, re.M)), done.code


@pytest.fixture
def node(qhca_pair):
    """A guest, whose device afterwards is in the mode it comes up in."""
    found = qhca_pair.a
    found.push(paths.BUILD / "modules" / found.release / f"{NAME}.ko", f"/tmp/{NAME}.ko")
    with content(found):
        yield found
    devlink.set_parameter(found, "strict_lkey", "false")
    devlink.reload(found)
    qhca_pair.wait_link()


@pytest.mark.parametrize("strict", [False, True], ids=["default", "strict"])
def test_reserved_key(node, tap_points, strict):
    """In strict mode the key is for sends and receives alone."""
    assert devlink.parameter(node, "strict_lkey") is False
    if strict:
        devlink.set_parameter(node, "strict_lkey", "true")
        assert devlink.parameter(node, "strict_lkey") is True
        devlink.reload(node)
    before = node.counters()
    tap_points(*run(node, strict))
    after = node.counters()
    assert after["reserved_lkey_uses"] > before["reserved_lkey_uses"]
    # One refusal for a WRITE, one for a READ.
    assert after["protection_errors"] - before["protection_errors"] == (2 if strict else 0)


@pytest.mark.full
def test_strict_mode_absent(pairs):
    """A device without the mode: the driver says so when it is asked for."""
    without = hex(~STRICT_LKEY & (1 << 64) - 1)
    node = pairs.get("qhca", "none", props=({"features": without}, None)).a
    with content(node):
        done = devlink.set_parameter(node, "strict_lkey", "true", check=False)
        assert not done.ok and "no strict mode" in done.err, done
        assert devlink.parameter(node, "strict_lkey") is False
