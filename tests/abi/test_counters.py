# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Each counter is named by a test, which reads it as its users do."""

import pathlib
import re
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import layout  # noqa: E402
from test_inert import RESERVED_COUNTERS  # noqa: E402

TESTS = layout.TOP / "tests"
ADAPTER = layout.TOP / "qemu-hca" / "qemu" / "qhca-dev.h"
DRIVER = layout.TOP / "drivers" / "net" / "ethernet" / "qhca" / "ethtool.c"


@pytest.fixture(scope="module")
def tests():
    """The sources of the tests, without those of this folder, which name everything."""
    files = [f for f in TESTS.rglob("*") if f.suffix in {".c", ".h", ".py", ".sh"}
             and f.parent != TESTS / "abi"]
    assert len(files) > 200
    return re.sub(r"/\*.*?\*/", "", "\n".join(f.read_text() for f in files), flags=re.S)


def of_device():
    values = layout.engine(layout.hardware_names())
    return {name.removeprefix("QHCA_CNT_") for name in values if name.startswith("QHCA_CNT_")}


def of_adapter():
    struct = re.search(r"typedef struct QhcaStats \{(.*?)\} QhcaStats;", ADAPTER.read_text(),
                       re.S)[1]
    return set(re.findall(r"^    uint64_t (\w+);", struct, re.M))


def of_driver():
    """The counters of the first queue, and those of the driver."""
    text, names = DRIVER.read_text(), set()
    for table, prefix in (("tx", "txq0_"), ("rx", "rxq0_"), ("drv", "")):
        body = re.search(rf"qhca_{table}_names\[\](?:\[ETH_GSTRING_LEN\])? = \{{(.*?)\}};", text,
                         re.S)[1]
        names |= {prefix + name for name in re.findall(r'"(\w+)"', body)}
    return names


@pytest.mark.parametrize("names, number, pattern", [
    # Tests of the engine use the constant, those in guests the name.
    (of_device, 100, r"\bQHCA_CNT_{0}\b|\bCOUNT\([^(),]+, {0}\)|\"{0}\""),
    (of_adapter, 10, r"\"{0}\""),
    (of_driver, 10, r"\b{0}\b"),
], ids=["device", "adapter", "driver"])
def test_counters_are_tested(tests, names, number, pattern):
    names = names()
    assert len(names) > number
    untested = {name for name in names if not re.search(pattern.format(name), tests)}
    assert untested == names & RESERVED_COUNTERS
