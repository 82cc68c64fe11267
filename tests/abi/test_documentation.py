# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Documentation/hardware.rst gives the numbers that the header gives."""

import pathlib
import re
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import layout  # noqa: E402

TEXT = (layout.TOP / "Documentation" / "hardware.rst").read_text()


@pytest.fixture(scope="module")
def header():
    return layout.engine(layout.hardware_names())


def section(title):
    """From a heading to the next one of any level."""
    found = re.search(rf"^{re.escape(title)}\n[=~-]+\n(.*?)(?=^[^\n]+\n(?:={{4,}}|-{{4,}}|~{{4,}})\n|\Z)",
                      TEXT, re.M | re.S)
    assert found, f"no section {title}"
    return found[1]


def same(header, prefix, documented, leave_out=()):
    """The documented {name: value} are those of the header, and all of them."""
    wanted = {name[len(prefix):]: value for name, value in header.items()
              if name.startswith(prefix) and name[len(prefix):] not in leave_out}
    assert documented == wanted


def test_registers(header):
    rows = re.findall(r"^(0x\w{3})  ``(\w+)``", section("Registers"), re.M)
    same(header, "QHCA_REG_", {name: int(at, 16) for at, name in rows}, {"END"})


def test_doorbells(header):
    rows = re.findall(r"^(0x\w\w)   DB_(\w+)", section("Doorbells"), re.M)
    assert len(rows) == 6
    for at, name in rows:
        assert header[f"QHCA_DB_{name}"] == int(at, 16)


def test_commands(header):
    documented = {}
    for title in ("Commands of the HCA", "Commands of the port", "Commands of queues",
                  "Commands of memory", "Commands of the host domain"):
        documented.update({name: int(value, 16) for name, value in re.findall(
            r"``(\w+)`` \(0x(\w\w)\)", section(title))})
    # The statuses, whose names have the same prefix, are explained in order.
    statuses = {"OK", "BAD_OPCODE", "BAD_PARAM", "BAD_INDEX", "BAD_STATE", "BAD_LEN",
                "NOT_MAPPED", "IN_USE", "DMA_ERR", "NO_RESOURCE", "UNSUPPORTED",
                "NOT_INIT", "NOT_PERMITTED", "INTERNAL"}
    same(header, "QHCA_CMD_", documented, statuses | {"F_EVENT", "STATUS", "OWN"})
    assert all(status in section("Command queue") for status in statuses - {"OK"})


def test_fatal_causes(header):
    rows = re.findall(r"^FATAL_(\w+) +(\d+) ", section("Fatal errors"), re.M)
    same(header, "QHCA_FATAL_", {name: int(value) for name, value in rows}, {"NONE"})


def test_events(header):
    rows = dict(re.findall(r"^(\w+) +(\d\d) ", section("Event queues"), re.M))
    same(header, "QHCA_EVENT_", {name: int(value, 16) for name, value in rows.items()},
         {"PATH_MIG", "PATH_MIG_ERROR"})


def test_send_opcodes(header):
    rows = re.findall(r"^([A-Z_]+) +([0-9a-f]{2}) ", section("Send queues"), re.M)
    documented = {name: int(value, 16) for name, value in rows}
    opcodes = {name: value for name, value in header.items()
               if re.fullmatch(r"QHCA_WQE_(?!F_|NUM_)\w+", name)}
    assert {f"QHCA_WQE_{name}": value for name, value in documented.items()} == opcodes


def test_region_types(header):
    rows = re.findall(r"^([A-Z][A-Z_0-9]+) +(\d)   ", section("Protection table entry"), re.M)
    assert rows
    for name, value in rows:
        assert header[f"QHCA_PTE_{name}"] == int(value)


def test_features_are_explained(header):
    text = section("Capabilities")
    names = [n[len("QHCA_FEAT_"):] for n in header if n.startswith("QHCA_FEAT_")]
    assert not [n for n in names if not re.search(rf"\b{n}\b", text)]


def test_counters_are_explained(header):
    column = " ".join(line[:28] for line in section("Counters").splitlines())
    rows = column.replace(",", " ").split()
    names = [n[len("QHCA_CNT_"):] for n in header if n.startswith("QHCA_CNT_")]
    assert not [n for n in names if n not in rows]


def test_rnr_timers():
    """Codes from 2 on double, or go up by half, every second one."""
    cells = section("Requester")
    table = cells[cells.index("RNR timer codes"):]
    found = {}
    for line in re.findall(r"^\d+  .*$", table, re.M):
        numbers = [int(n) for n in line.split()]
        found.update(zip(numbers[::2], numbers[1::2]))
    assert len(found) == 32
    assert found[0] == 655360 and found[1] == 10 and found[31] == 491520
    expected = {2: 20, 3: 30}
    for code in range(4, 32):
        expected[code] = expected[code - 2] * 2
    assert {code: found[code] for code in expected} == expected


def test_qp_context_hardware_part():
    """The device's half of a QP context is laid out as documented."""
    include = [layout.TOP / "qemu-hca" / "core", layout.INCLUDE]
    names = layout.Names("transport/qp.h", layout.ENGINE_FLAGS, include)
    names.structs = {"hca_qpc_hw": names.structs["hca_qpc_hw"]}
    names.constants = []
    table = layout.compiled(names, layout.ENGINE_FLAGS, include)
    rows = re.findall(r"^(\d+) +\d+(?: each)? +(\w+) ", section("QP context, hardware part"), re.M)
    documented = {f"hca_qpc_hw.{name} at": int(at) for at, name in rows}
    assert documented == {what: at for what, at in table.items() if what.endswith(" at")}


CORE = layout.TOP / "qemu-hca" / "core"
ENGINE = (layout.TOP / "Documentation" / "engine.rst").read_text()


def engine_constant(name):
    """A number that the engine #defines."""
    for file in sorted(CORE.rglob("*.[ch]")):
        found = re.search(rf"^#define {name}\s+(\d+)u?\b", file.read_text(), re.M)
        if found:
            return int(found[1])
    return None


def test_numbers_of_the_engine():
    """engine.rst gives a number, its unit, and the constant behind it in parentheses."""
    scale = {"us": 1000, "ms": 1000000}
    text = " ".join(ENGINE.split())
    pairs = re.findall(r"(\d+)((?: [A-Za-z_ ]+)?) \(``([A-Z]\w+)``\)", text)
    assert sorted(name for _, _, name in pairs) == sorted(re.findall(r"\(``([A-Z]\w+)``\)", text))
    for number, words, name in pairs:
        assert engine_constant(name) == int(number) * scale.get(words.strip(), 1), name
    most = engine_constant("HCA_LINGER_WINDOW") << engine_constant("HCA_LINGER_PATIENCE")
    assert f"up to {most}." in text
    assert f"EQ contexts all of them, at most {1 << engine_constant('HCA_MAX_LOG_EQ')}" in text
    chunks = layout.engine(layout.hardware_names())["QHCA_MAX_CHUNKS"]
    assert f"{chunks} for each table" in text


def test_shares_of_the_run_loop():
    shares = re.findall(r"\{ \w+, (\d+) \}", (CORE / "run.c").read_text())
    text = ENGINE[ENGINE.index("part in a round"):ENGINE.index("Rounds follow")]
    assert shares and re.findall(r"\((\d+)\)", text) == shares


def test_state_in_the_device():
    """engine.rst says what each possible number costs the device."""
    names = layout.Names("transport/transport.h", layout.ENGINE_FLAGS, [CORE, layout.INCLUDE])
    documented = {f"sizeof {name}": int(size) for name, size in
                  re.findall(r"^``struct (\w+)`` +(\d+) bytes", ENGINE, re.M)}
    names.structs = {what.split()[1]: [] for what in documented}
    names.constants = []
    table = layout.compiled(names, layout.ENGINE_FLAGS, [CORE, layout.INCLUDE])
    assert len(documented) == 4
    assert {what: table[what] for what in documented} == documented
    slots = documented["sizeof hca_qpslot"] * 65536 / 2**20
    assert f"{slots:g} MiB for 64 Ki QPs" in ENGINE
