# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Documentation/switch.rst and the manual page have the options, counters, commands, defaults
and limits that the switch has."""

import re
import subprocess

import pytest

from lab import fabric, paths

PROGRAM = paths.BUILD / "tests" / "unit" / "qhca-switch"
RST = (paths.TOP / "Documentation" / "switch.rst").read_text()
MAN = (paths.TOP / "packaging" / "qhca-switch.1").read_text()
HEADERS = "".join(file.read_text() for file in sorted((paths.TOP / "fabric").rglob("*.h")))


@pytest.fixture(scope="module")
def switch():
    with fabric.Switch("a", program=PROGRAM) as running:
        yield running


def rows(head):
    """{first column: second} of the table of switch.rst whose first column has a heading."""
    table = re.search(rf"^{head} .*\n=+ [= ]*=\n((?:.+\n)*?)=", RST, re.M)[1]
    return dict(re.findall(r"^``(\w+)``\s+(\S+)", table, re.M))


def constant(name):
    """The number that a header #defines."""
    value = re.search(rf"^#define {name}\s+([^\t/\n]+)", HEADERS, re.M)[1]
    return eval(re.sub(r"(?<=\d)u(ll)?", "", value), {})    # noqa: S307 a number, << and ()


def test_counters(switch):
    assert list(rows("Counter")) == list(switch.counters("a"))


def test_settings(switch):
    documented = rows("Setting")
    settings = switch.port("a")["settings"]
    assert list(documented) == list(settings)
    documented["rate"] = documented["rate"].rstrip(":")
    documented["link"] = {"up": "True"}[documented["link"]]
    assert documented == {name: str(value) for name, value in settings.items()}


def test_commands(switch):
    refusal = switch.control.line('{"command": "none"}')["error"]
    assert re.findall(r"\w+", refusal.partition(" are ")[2].replace(" and", "")) == list(rows("Command"))


def test_members(switch):
    sentence = re.search(r"A port reports (.*?):\n\n", RST, re.S)[1]
    assert set(re.findall(r"``(\w+)``", sentence)) == set(switch.port("a"))
    assert set(switch.control("status")) == {"version", "uptime", "max_ports", "table", "age"}


def test_limits():
    sentence = " ".join(re.search(r"The switch has these limits: (.*?)\n\n", RST, re.S)[1].split())
    found = [int(number.replace(",", "")) for number in re.findall(r"\d[\d,]*\d", sentence)]
    assert found == [constant("FAB_MAX_PORTS"), constant("FAB_DEFAULT_PORTS"),
                     constant("FAB_MAX_MACS"), constant("FAB_DEFAULT_TABLE"), constant("FAB_MAX_FRAME")]
    assert f"At most {constant('SW_MAX_CLIENTS')} control connections" in RST


def test_options():
    """The manual page has those of --help, and --help says what it takes."""
    text = subprocess.run([PROGRAM, "--help"], stdout=subprocess.PIPE, text=True, check=True).stdout
    options = re.findall(r"^  -(\w), --([a-z-]+)", text, re.M)
    assert len(options) == 13
    found = re.findall(r'^\.BR \\-(\w) ", " \\-\\-([a-z\\-]+)', MAN, re.M)
    assert [(letter, name.replace("\\", "")) for letter, name in found] == options
    assert set(re.findall(r"``--([a-z-]+)", RST)) <= {name for _, name in options}
