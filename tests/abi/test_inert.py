# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Nothing inert is described as working: what is declared is written, or said to be reserved."""

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import layout  # noqa: E402

CORE = layout.TOP / "qemu-hca" / "core"
ADAPTER = layout.TOP / "qemu-hca" / "qemu"
HEADER = (layout.INCLUDE / layout.HARDWARE).read_text()
HARDWARE_RST = (layout.TOP / "Documentation" / "hardware.rst").read_text()

# Of these the specification says that they are for later.
RESERVED_COUNTERS = set()
RESERVED_FEATURES = set()


def code(folder):
    """The sources of a folder without comments."""
    text = "\n".join(f.read_text() for f in sorted(folder.rglob("*.[ch]")))
    return re.sub(r"/\*.*?\*/", "", text, flags=re.S)


def row(name):
    """What hardware.rst's table says of a name in its first column."""
    found = re.search(rf"^{name}  +(.*(?:\n  +.*)*)", HARDWARE_RST, re.M)
    assert found, f"no row {name}"
    return " ".join(found[1].split())


def test_counters_are_counted():
    names = re.findall(r"X\((\w+)\)", HEADER[HEADER.index("define QHCA_COUNTERS(X)"):])
    assert len(names) > 100
    engine = code(CORE)
    # The engine steps from the first bin of the histogram to the last.
    bins = [n for n in names if n.startswith("fault_us_")]
    assert f"QHCA_CNT_{bins[0]}" in engine and f"QHCA_CNT_{bins[-1]}" in engine
    silent = {n for n in names if n not in bins and f"QHCA_CNT_{n}" not in engine}
    assert silent == RESERVED_COUNTERS
    for name in silent:
        assert "0 until" in row(name)


def test_features_exist():
    names = set(re.findall(r"#define QHCA_FEAT_(\w+)", HEADER))
    engine = code(CORE)
    absent = {n for n in names if not re.search(rf"\bQHCA_FEAT_{n}\b", engine)}
    assert absent == RESERVED_FEATURES
    for name in absent:
        assert "no device has the feature yet" in row(name)


def test_traces_are_traced():
    text = (CORE / "qhca.h").read_text()
    names = set(re.findall(r"^\t(QHCA_TRACE_\w+),", text, re.M))
    engine = "".join(f.read_text() for f in CORE.rglob("*.[ch]") if f.name != "qhca.h")
    assert len(names) > 10
    assert not [n for n in names if not re.search(rf"\b{n}\b", engine)]


def test_monitor_fills_what_it_shows():
    patch = (ADAPTER / "integration" / "0002-qapi.patch").read_text().replace("\n+", "\n")
    monitor = (ADAPTER / "qhca-monitor.c").read_text()
    members = [m for data in re.findall(r"'struct': '\w+',\s+'data': \{(.*?)\} \}", patch, re.S)
               for m in re.findall(r"'\*?([\w-]+)': ", data)]
    assert len(members) > 40
    wanted = {m.replace("-", "_") for m in members}
    assert not [m for m in wanted if not re.search(rf"->{m}\b(?: =|;)", monitor)]


def test_adapter_counters():
    """Each is counted, and shown by QMP."""
    struct = re.search(r"typedef struct QhcaStats \{(.*?)\} QhcaStats;",
                       code(ADAPTER), re.S)[1]
    names = re.findall(r"\b(\w+)[,;]", struct)
    adapter = code(ADAPTER)
    assert len(names) > 10
    assert not [n for n in names if f"STAT({n})" not in adapter]
    assert not [n for n in names if not re.search(rf"stats\.{n}(?:\+\+| \+=)", adapter)]
