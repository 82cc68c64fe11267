# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Documentation/outside.rst names what exists, and a test runs each recipe of the pages.

tests/interop/test_outside.py runs those for guests.
"""

import pathlib
import re
import shlex
import sys
import types
from xml.etree import ElementTree

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import test_counters  # noqa: E402
from lab import Pair, accel, paths, recipe  # noqa: E402

TEXT = (paths.TOP / "Documentation" / "outside.rst").read_text()


def test_recipes_are_tested():
    """Each block that has a name is in a test by that name."""
    tests = "".join(file.read_text() for file in (paths.TOP / "tests").rglob("test_*.py"))
    pages = {page.name: recipe.recipes(page.name)
             for page in (paths.TOP / "Documentation").glob("*.rst")}
    assert len(pages["outside.rst"]) > 10 and len(pages["users-guide.rst"]) > 2
    assert [name for names in pages.values() for name in names if f'"{name}"' not in tests] == []


def test_recipe_without_block(monkeypatch, tmp_path):
    """A name that no block follows is an error, and so is one that two blocks have."""
    monkeypatch.setattr(paths, "TOP", tmp_path)
    (tmp_path / "Documentation").mkdir()
    page = tmp_path / "Documentation" / "x.rst"
    block = ".. recipe: one\n\n::\n\n    true\n\n    false \\\n        x\n\n"
    page.write_text(f"{block}Text\n")
    assert recipe.recipes("x.rst") == {"one": "true\n\nfalse \\\n    x\n"}
    for text in f"{block}{block}", ".. recipe: two\n\nText\n":
        page.write_text(text)
        with pytest.raises(recipe.NoRecipe):
            recipe.recipes("x.rst")


def test_options():
    """An option that takes no value takes none of the words that follow it."""
    argv = recipe.words("-nographic -m 1 \\\n  -a 'b c' -nodefaults\n")
    assert recipe.options(argv) == [("-nographic", None), ("-m", "1"), ("-a", "b c"),
                                    ("-nodefaults", None)]


def test_software_emulation():
    """The options that the page gives for a host without KVM are the lab's."""
    assert f"``{shlex.join(accel.SHARED_TCG)}``" in TEXT


def test_stream():
    """The commands of QEMU connect their devices as the lab connects a pair of guests."""
    found = recipe.recipes("outside.rst")
    for side, name in enumerate(("qemu-a", "qemu-b")):
        options = dict(recipe.options(recipe.words(found[name])[1:]))
        pair = types.SimpleNamespace(dir=pathlib.Path("/tmp"))
        lab = Pair._netdev(pair, side, 0).replace("/tmp/link0", "/tmp/qhca-link")
        assert set(options["-netdev"].split(",")) == {*lab.split(","), "id=n0"}


def test_domain():
    """libvirt's domain has the machine, the emulator, and the device with an address of
    the page; and the device has the property of the override."""
    found = recipe.recipes("outside.rst")
    domain = ElementTree.fromstring(found["domain"])
    assert domain.find("os/type").get("machine") == "q35"
    assert domain.find("devices/emulator").text.endswith("/bin/qemu-system-x86_64")
    nic = domain.find("devices/interface")
    assert nic.find("model").get("type") == "qhca"
    assert nic.find("mac").get("address") in found["qemu-a"]
    assert nic.find("mtu").get("size") == "4200"
    override = ElementTree.fromstring(found["override"])
    (prop,) = override.iter("{http://libvirt.org/schemas/domain/qemu/1.0}property")
    users_guide = (paths.TOP / "Documentation" / "users-guide.rst").read_text()
    assert prop.get("name").replace("pt-", "C-", 1) in users_guide


def test_dkms_conf():
    """dkms.conf names each module where kbuild makes it, and the version of the page."""
    text = (paths.TOP / "drivers" / "dkms.conf").read_text()
    values = dict(re.findall(r'^(\w+(?:\[\d\])?)="(.*)"$', text, re.M))
    for n, name in enumerate(("qhca", "qhca_ib")):
        assert values[f"BUILT_MODULE_NAME[{n}]"] == name
        kbuild = paths.TOP / "drivers" / values[f"BUILT_MODULE_LOCATION[{n}]"] / "Kbuild"
        assert f"obj-m += {name}.o" in kbuild.read_text()
    package = f"{values['PACKAGE_NAME']}/{values['PACKAGE_VERSION']}"
    assert f"dkms install {package}\n" in recipe.recipes("outside.rst")["dkms"]


def test_counters_of_symptoms():
    """What looks like a counter in the list of symptoms is one."""
    known = test_counters.of_device() | test_counters.of_driver()
    symptoms = TEXT[TEXT.index("Troubleshooting\n==="):]
    named = set(re.findall(r"``([a-z0-9]+(?:_[a-z0-9]+)+)``", symptoms))
    assert len(named) > 10
    assert named - known == {"ib_core", "ib_uverbs", "ibv_devices", "qhca_protection"}


RANGES = {
    "README.md": [r"made for QEMU (\S+)\s+to\s+(\S+?)\.\s", r"rdma-core (\d+) to (\d+)",
                  r"for kernels (\S+) to\s+(\S+?)\.\s"],
    "Documentation/users-guide.rst": [r"QEMU (\S+) to (\S+?)\.\s", r"rdma-core (\d+) to (\d+)",
                                      r"Linux (\S+) to (\S+?),"],
    "Documentation/outside.rst": [r"^QEMU +(\S+) to (\S+)", r"^rdma-core +(\S+) to (\S+)",
                                  r"^Linux \(guest\) +(\S+) to (\S+)"],
}


def test_ranges():
    """All pages state the same versions, up to those that versions.mk names."""
    versions = (paths.TOP / "versions.mk").read_text()
    found = {page: [re.search(pattern, (paths.TOP / page).read_text(), re.M).groups()
                    for pattern in patterns] for page, patterns in RANGES.items()}
    assert len({str(ranges) for ranges in found.values()}) == 1, found
    for (first, last), name in zip(found["README.md"], ("QEMU", "RDMA_CORE")):
        assert f"\n{name}_SERIES={first}\n" in versions
        assert f"\nNEWEST_{name}_SERIES={last}\n" in versions
