# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Engine, provider and kernel drivers see one layout."""

import os
import pathlib
import shutil
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import layout  # noqa: E402

BUILD = pathlib.Path(os.environ.get("BUILD", layout.TOP / "build"))
NAMES = {"hardware": layout.hardware_names(), "uverbs": layout.uverbs_names()}
STRUCTS = [(abi, name) for abi, names in NAMES.items() for name in names.structs]
COMPILERS = [c for c in ("gcc", "clang") if shutil.which(c)]


def differences(one, other):
    return {what: (one.get(what), other.get(what))
            for what in {**one, **other} if one.get(what) != other.get(what)}


@pytest.fixture(scope="module")
def reference():
    """The provider's view: both headers, and the same compiler as all else."""
    return {abi: layout.provider(names) for abi, names in NAMES.items()}


def guest():
    """(tree, {release: folder}, debug) of the guest that was built; empty when there is none.

    The folder, in the tree, is where modules for the release are built; debug is the release
    of `make debug-kernel`.
    """
    path = BUILD / "guest" / "env"
    if not path.exists():
        return None, {}, None
    env = dict(line.split("=", 1) for line in path.read_text().splitlines() if "=" in line)
    releases = [name.removeprefix("kernel-") for name in env if name.startswith("kernel-")]
    # The kernel of `make debug-kernel` has no package of headers.
    return env["tree"], {release: env.get(f"build-{release}", f"/usr/src/linux-headers-{release}")
                         for release in releases}, env.get("debug")


GUEST_TREE, RELEASES, DEBUG = guest()


def test_headers_were_understood():
    hardware, uverbs = NAMES["hardware"], NAMES["uverbs"]
    assert {"qhca_cmd_slot", "qhca_pte", "qhca_sq_wqe", "qhca_cqe", "qhca_eqe",
            "qhca_qpc"} <= set(hardware.structs)
    assert "entry[0].mac" in hardware.structs["qhca_mcast_list"]
    assert "rdma" in hardware.structs["qhca_sq_wqe"]
    assert {"QHCA_REG_END", "QHCA_CMD_CREATE_QP", "QHCA_NUM_COUNTERS",
            "QHCA_CNT_inject_delayed", "QHCA_PHASE"} <= set(hardware.constants)
    assert "qhca_create_qp_req" in uverbs.structs
    assert "QHCA_UVERBS_ABI_VERSION" in uverbs.constants
    assert len(set(hardware.constants)) == len(hardware.constants)


@pytest.mark.parametrize("abi, name", STRUCTS, ids=[s for _, s in STRUCTS])
def test_no_padding(reference, abi, name):
    """Fields fill the struct without gaps, each at a multiple of its alignment.

    Any other layout could differ between compilers. Seeing every byte named
    also shows that no field escaped the table.
    """
    table, end = reference[abi], 0
    spans = []
    for field in NAMES[abi].structs[name]:
        if "." not in field:
            at = table[f"{name}.{field} at"]
            spans.append((at, at + table[f"{name}.{field} size"], field))
    for start, stop, field in sorted(spans):
        assert start <= end, f"a gap before {field}, at {end}"
        end = max(end, stop)
    assert end == table[f"sizeof {name}"], f"padding after the last field, at {end}"
    assert end % table[f"alignof {name}"] == 0
    assert end % 4 == 0


@pytest.mark.parametrize("compiler", COMPILERS)
def test_engine(reference, compiler):
    assert not differences(layout.engine(NAMES["hardware"], compiler), reference["hardware"])


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("abi", NAMES)
def test_provider(reference, abi, compiler):
    assert not differences(layout.provider(NAMES[abi], compiler), reference[abi])


@pytest.mark.parametrize("abi", NAMES)
def test_kernel_of_ones_own(reference, abi):
    kdir = os.environ.get("KDIR")
    if not kdir:
        pytest.skip("no KDIR given")
    assert not differences(layout.kernel_own(NAMES[abi], kdir), reference[abi])


@pytest.mark.parametrize("abi", NAMES)
@pytest.mark.parametrize("release", list(RELEASES) or [None])
def test_kernel_of_the_guest(reference, release, abi):
    if release is None:
        pytest.skip("there is no guest yet: run `make guest`")
    answers = layout.kernel_guest(NAMES[abi], GUEST_TREE, RELEASES[release])
    assert not differences(answers, reference[abi])


def modules():
    """The drivers; modules that are tests know the kernel's interfaces alone, and the debug
    kernel is compiled without debug information."""
    return sorted(module for module in BUILD.glob("modules/*/*.ko")
                  if not module.stem.startswith("qhca_test_") and module.parent.name != DEBUG)


@pytest.mark.parametrize("module", modules() or [None],
                         ids=lambda m: f"{m.parent.name}-{m.stem}" if m else "none")
def test_built_module(reference, module):
    """What the debug information of the modules themselves says."""
    if module is None:
        pytest.skip("the modules have not been built: run `make modules`")
    if not shutil.which("pahole"):
        pytest.skip("no pahole to read debug information with (package dwarves)")
    for abi, names in NAMES.items():
        found = layout.debug_info(module, names)
        if abi == "hardware":
            assert found, "the module has no debug information of the ABI"
        wrong = {what: (value, reference[abi].get(what)) for what, value in found.items()
                 if reference[abi].get(what) != value}
        assert not wrong

