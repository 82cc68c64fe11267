# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Documentation/mechanisms.rst names what exists; so do the links and file names of all pages."""

import pathlib
import re
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import layout  # noqa: E402

PAGES = layout.TOP / "Documentation"
FIELDS = {"Specification", "Code", "Tests", "Counters"}


def anchor(title):
    """The identifier that docutils and GitHub derive from a heading."""
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")


def headings(page):
    return [title for title, _ in
            re.findall(r"^(\S[^\n]*)\n([=~-])\2{2,}\n", page.read_text(), re.M)]


def rows():
    """(title, {field: text}) of each mechanism."""
    parts = re.split(r"^(\d+\. [^\n]+)\n-+\n", (PAGES / "mechanisms.rst").read_text(), flags=re.M)
    for title, body in zip(parts[1::2], parts[2::2]):
        found = re.findall(r"^:(\w+): (.*(?:\n +.*)*)", body, re.M)
        yield title, {name: " ".join(text.split()) for name, text in found}


ROWS = list(rows())


def missing(field, absent):
    """What `absent` says of the field's text in any row."""
    return [f"{title}: {what}" for title, fields in ROWS if field in fields
            for what in absent(fields[field])]


def defines(file, name):
    head = r"def " if file.suffix == ".py" else r"[a-z][\w *]*\b"
    return re.search(rf"^{head}{re.escape(name)}\([^;]*$", file.read_text(), re.M)


def names_absent(text):
    """A name with a slash is a file; the functions named behind it are in that file."""
    file = None
    for name in re.findall(r"``([^`]+)``", text):
        if "/" in name:
            file = layout.TOP / name
            if not file.is_file():
                yield f"no file {name}"
        elif not file:
            yield f"{name} stands before any file"
        elif file.is_file() and not defines(file, name):
            yield f"{file} does not define {name}()"
    if not file:
        yield f"no file in: {text}"


def test_rows():
    """A row names everything, unless it says that the mechanism comes later."""
    assert len(ROWS) > 50
    for title, fields in ROWS:
        assert set(fields) <= FIELDS | {"State"}, title
        if not fields.get("State", "").startswith("Later"):
            assert FIELDS <= set(fields), title


def test_sections():
    """Links lead to the section of the specification that they name."""
    titles = headings(PAGES / "hardware.rst")

    def absent(text):
        links = re.findall(r"`([^`<]+) <hardware\.rst#([\w-]+)>`__", text)
        if not links:
            yield "no section"
        for title, target in links:
            if title not in titles or target != anchor(title):
                yield f"no section {title} at #{target}"

    assert missing("Specification", absent) == []


def test_files():
    assert missing("Code", names_absent) == []


def test_tests():
    assert missing("Tests", names_absent) == []


def test_counters():
    values = layout.engine(layout.hardware_names())
    known = {name[len("QHCA_CNT_"):] for name in values if name.startswith("QHCA_CNT_")}

    def absent(text):
        if text.startswith("none"):
            return
        named = set(re.findall(r"``([^`]+)``", text))
        if not named:
            yield f"no counter in: {text}"
        yield from named - known

    assert missing("Counters", absent) == []


every_page = pytest.mark.parametrize(
    "page", [layout.TOP / "README.md", *sorted(PAGES.glob("*.rst"))], ids=lambda page: page.name)

# Placeholders, an installed file, and files of Linux and QEMU.
OTHERS = {"x.c", "test_x.c", "infiniband/qhcadv.h", "drivers/infiniband/core/rdma_core.c",
          "net/stream.c", "stream_data.c", "socket.c", "NAME.patch"}


@pytest.fixture(scope="module")
def sources():
    folders = ("Documentation", "drivers", "fabric", "qemu-hca", "scripts", "tests", "userspace-provider")
    files = [file for folder in folders for file in (layout.TOP / folder).rglob("*.*")]
    return [str(file.relative_to(layout.TOP)) for file in [*files, *layout.TOP.glob("*.*")]]


@every_page
def test_file_names(page, sources):
    """A page names files of the project by their path or by the end of it."""
    names = set(re.findall(r"`([\w./-]+\.(?:c|h|py|sh|rst|txt|mk|map|patch))`", page.read_text()))
    assert [name for name in names
            if name not in OTHERS and name.rpartition("/")[2] not in OTHERS
            and not any(f"/{source}".endswith(f"/{name}") for source in sources)] == []


@every_page
def test_pictures(page):
    """Each picture that a page shows is in the tree."""
    shown = re.findall(r"!\[[^]]*\]\(([^)]+)\)|^\.\. (?:image|figure):: (\S+)", page.read_text(), re.M)
    assert [name for pair in shown for name in pair
            if name and not (page.parent / name).is_file()] == []


@every_page
def test_links(page):
    """Each page and each section that a page links exists."""
    links = re.findall(r"(?:<|^__ |\]\()(?:Documentation/)?([\w-]+\.rst)?(?:#([\w-]+))?(?:>`__|\)|$)",
                       page.read_text(), re.M)
    for name, target in links:
        other = PAGES / name if name else page
        assert other.is_file(), name
        assert not target or target in map(anchor, headings(other)), f"{name}#{target}"
