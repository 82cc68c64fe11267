# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The shape of the sources: folders of the engine, names, lengths.

A file of the engine may call those of its own folder and of the folders below,
and no files call each other in a circle. The symbols of the objects tell who
calls whom, so that a call through a pointer is no arrow; the calls of functions that
headers define are read in the text.
"""

import ast
import os
import re
import subprocess

import pytest

from lab import paths

ENGINE = paths.TOP / "qemu-hca" / "core"
OBJECTS = paths.BUILD / "tests" / "unit" / "core"
FOLDERS = ["image", "wire", "mem", "queue", "transport", ""]    # from the bottom; "" is core/

# At most five. (file, file): why the first may call the second although that lies higher.
EXCEPTIONS = {}

# Headers of core/ that all folders may include: the state that they share, the words of the
# interface, and what the handler of a command gets.
EVERYONES = {"hca.h", "qhca.h", "bytes.h", "compiler.h", "handler.h"}

PRODUCT = {
    "engine": ENGINE,
    "adapter": paths.TOP / "qemu-hca" / "qemu",
    "link": paths.TOP / "qemu-hca" / "link",
    "drivers": paths.TOP / "drivers",
    "provider": paths.TOP / "userspace-provider",
    "switch": paths.TOP / "fabric",
}
ABI_HEADER = paths.TOP / "drivers" / "include" / "qhca" / "qhca_hw.h"
MAX_FILE = 700
MAX_FUNCTION = 80
TESTS = paths.TOP / "tests"
MAX_TEST_FILE = 750


# -- who calls whom ---------------------------------------------------------

def sources():
    lines = (ENGINE / "sources.txt").read_text().splitlines()
    return [line[:-len(".c")] for line in lines if line and not line.startswith("#")]


def symbols(obj):
    """(names that the object defines, names that it uses)"""
    done = subprocess.run(["nm", str(obj)], stdout=subprocess.PIPE, text=True, check=True)
    defined, used = set(), set()
    for line in done.stdout.splitlines():
        kind, name = line.split()[-2:]
        if kind in "TDRBCVW":
            defined.add(name)
        elif kind == "U":
            used.add(name)
    return defined, used


def arrows_of(objects):
    """{(file, file): names} of {file: (defined, used)}"""
    home = {name: file for file, (defined, _) in objects.items() for name in defined}
    arrows = {}
    for file, (_, used) in objects.items():
        for name in used:
            if home.get(name, file) != file:
                arrows.setdefault((file, home[name]), set()).add(name)
    return arrows


def level(file):
    return FOLDERS.index(file.rpartition("/")[0])


def upward(arrows):
    return {arrow for arrow in arrows if level(arrow[0]) < level(arrow[1])}


def in_loops(arrows):
    """The files that reach themselves."""
    after = {}
    for caller, callee in arrows:
        after.setdefault(caller, set()).add(callee)
    loops = set()
    for file in after:
        seen, todo = set(), [file]
        while todo:
            new = after.get(todo.pop(), set()) - seen
            seen |= new
            todo.extend(new)
        if file in seen:
            loops.add(file)
    return loops


def wrong(arrows, exceptions):
    """What is wrong with the arrows, as sentences."""
    up = upward(arrows)
    for arrow in sorted(up - set(exceptions)):
        yield f"{arrow[0]} calls {arrow[1]} above it: {', '.join(sorted(arrows[arrow]))}"
    for arrow in sorted(set(exceptions) - up):
        yield f"the exception of {arrow[0]} and {arrow[1]} is no longer needed"
    loops = in_loops(set(arrows) - set(exceptions))
    if loops:
        yield f"these files call each other in a circle: {', '.join(sorted(loops))}"


def test_engine_has_floors():
    objects = {file: symbols(OBJECTS / f"{file}.o") for file in sources()}
    arrows = arrows_of(objects)
    assert len(arrows) > 100            # the symbols were understood
    assert len(EXCEPTIONS) <= 5
    assert all(EXCEPTIONS.values()), "an exception needs a reason"
    assert list(wrong(arrows, EXCEPTIONS)) == []


def test_floors_are_checked():
    """The check itself, with objects that are in order and then are not."""
    good = {"run": (["run"], ["qp"]), "transport/qp": (["qp"], ["cq"]),
            "queue/cq": (["cq"], ["eq"]), "queue/eq": (["eq"], [])}
    assert list(wrong(arrows_of(good), {})) == []
    up = {**good, "queue/eq": (["eq"], ["run"])}
    assert list(wrong(arrows_of(up), {})) == [
        "queue/eq calls run above it: run",
        "these files call each other in a circle: queue/cq, queue/eq, run, transport/qp"]
    assert list(wrong(arrows_of(up), {("queue/eq", "run"): "why"})) == []
    loop = {**good, "queue/eq": (["eq"], ["cq"])}
    assert list(wrong(arrows_of(loop), {})) == [
        "these files call each other in a circle: queue/cq, queue/eq"]
    assert list(wrong(arrows_of(good), {("queue/eq", "run"): "why"})) == [
        "the exception of queue/eq and run is no longer needed"]


def includes():
    """(file, the header of the engine that it includes), of all files below core/ itself"""
    for folder in FOLDERS[:-1]:
        for file in sorted((ENGINE / folder).iterdir()):
            for header in re.findall(r'^#include "([\w/]+\.h)"', file.read_text(), re.M):
                if (ENGINE / header).exists():
                    yield f"{folder}/{file.name}", header


def test_headers_come_from_below():
    """No file of a folder includes a header of a folder above; some of core/ are everyone's."""
    found = list(includes())
    assert len(found) > 100
    assert [f"{file} includes {header}" for file, header in found
            if header not in EVERYONES and level(file) < level(header)] == []


def without_comments(text):
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    return re.sub(r'"(?:\\.|[^"\\\n])*"', '""', text)


def inline_arrows(texts):
    """{(file, header): names} of the functions that headers define, of {file: text}: the
    compiler leaves no symbol of their calls."""
    home = {name: file for file, text in texts.items() if file.endswith(".h")
            for name, _ in functions(text)}
    arrows = {}
    for file, text in texts.items():
        for name in set(re.findall(r"\b(\w+)\(", without_comments(text))):
            if home.get(name, file) != file and home[name] not in EVERYONES:
                arrows.setdefault((file, home[name]), set()).add(name)
    return arrows


def test_inline_functions_come_from_below():
    texts = {str(file.relative_to(ENGINE)): file.read_text() for file in product_files("engine")}
    arrows = inline_arrows(texts)
    assert len(arrows) > 50
    assert [f"{caller} calls {', '.join(sorted(arrows[caller, header]))} of {header} above it"
            for caller, header in sorted(upward(arrows))] == []


def test_inline_functions_are_checked():
    """The check itself, with a call upwards."""
    texts = {"transport/qp.h": "static inline int a(void)\n{\n\treturn 1;\n}\n",
             "wire/rate.c": "/* a() */\nint b(void)\n{\n\treturn a();\n}\n"}
    assert upward(inline_arrows(texts)) == {("wire/rate.c", "transport/qp.h")}
    texts["wire/rate.c"] = "/* a() */\n"
    assert inline_arrows(texts) == {}


def test_all_sources_are_listed():
    assert sorted(sources()) == sorted(
        str(file.relative_to(ENGINE))[:-2] for file in ENGINE.rglob("*.c"))


# -- mechanisms ---------------------------------------------------------------

@pytest.mark.parametrize("name", ["protection", "translation", "reserved_key", "pool",
                                  "descriptor", "threshold", "paging"])
def test_mechanism_is_found_by_name(name):
    """By name there are a file of the engine, a test, and a page or a section."""
    assert [f for f in product_files("engine") if name in f.stem]
    assert [f for f in TESTS.rglob("*") if name in f.stem and f.suffix in {".c", ".py"}]
    words = {"reserved_key": "reserved L_Key", "paging": "page faults"}.get(name, name)
    pages = [file.read_text() for file in (paths.TOP / "Documentation").glob("*.rst")]
    assert [text for text in pages
            if re.search(rf"^.*{words}.*\n(?:=+|-+|~+)$", text, re.M | re.I)]


# -- names and lengths ------------------------------------------------------

FUNCTION = re.compile(
    r"^(?:[A-Za-z_][\w *]*\n)?(?=\w)[^\n;={}#]*?\b(?P<name>\w+)\([^;{}]*\)\n"
    r"\{\n.*?^\}", re.M | re.S)


def product_files(part):
    return sorted(f for f in PRODUCT[part].rglob("*.[ch]")
                  if "tests" not in f.relative_to(PRODUCT[part]).parts)


def functions(text):
    """(name, lines) of each function, the head of each included."""
    text = re.sub(r"/\*.*?\*/", lambda m: "\n" * m[0].count("\n"), text, flags=re.S)
    return [(m["name"], m[0].count("\n") + 1) for m in FUNCTION.finditer(text)]


def test_functions_are_found():
    text = ("static inline enum a\nb(int c)\n{\n\treturn (enum a)c;\n}\n\n"
            "/* Not\n{ this }\n */\nvoid *d(struct e *f,\n\tint g)\n{\n\tif (g) {\n\t}\n}\n"
            "int h(void);\nstatic const int i[] = {\n\t1,\n};\n")
    assert functions(text) == [("b", 5), ("d", 6)]


def test_names_tell_the_program():
    """A name found in the engine is of the engine, unless qhca.h makes it public."""
    public = set(re.findall(r"\b(qhca_\w+)\(", (ENGINE / "qhca.h").read_text()))
    of = {part: {name: file for file in product_files(part)
                 for name, _ in functions(file.read_text())} for part in PRODUCT}
    assert all(len(names) > 10 for names in of.values())
    shared = [f"{name}: {os.path.relpath(of['engine'][name], paths.TOP)} and "
              f"{os.path.relpath(of[part][name], paths.TOP)}"
              for part in PRODUCT if part != "engine"
              for name in sorted(set(of["engine"]) & set(of[part]) - public)]
    assert shared == []


@pytest.mark.parametrize("part", PRODUCT)
def test_lengths(part):
    long = []
    for file in product_files(part):
        text, name = file.read_text(), os.path.relpath(file, paths.TOP)
        if text.count("\n") > MAX_FILE and file != ABI_HEADER:
            long.append(f"{name}: {text.count(chr(10))} lines")
        long += [f"{name}: {function}() has {lines} lines"
                 for function, lines in functions(text) if lines > MAX_FUNCTION]
    assert long == []


def functions_of(file):
    if file.suffix == ".py":
        return [(f.name, f.end_lineno - f.lineno + 1) for f in ast.walk(ast.parse(file.read_text()))
                if isinstance(f, ast.FunctionDef)]
    return functions(file.read_text()) if file.suffix in {".c", ".h"} else []


def test_lengths_of_tests():
    """A test source holds one concept; beyond this length it has never been one."""
    files = [f for f in sorted(TESTS.rglob("*")) if f.suffix in {".c", ".h", ".py", ".sh"}]
    assert len(files) > 200
    long = []
    for file in files:
        lines, name = file.read_text().count("\n"), os.path.relpath(file, paths.TOP)
        if lines > MAX_TEST_FILE:
            long.append(f"{name} has {lines} lines, at most {MAX_TEST_FILE} are allowed")
        long += [f"{name}: {function}() has {lines} lines, at most {MAX_FUNCTION} are allowed"
                 for function, lines in functions_of(file) if lines > MAX_FUNCTION]
    assert long == []


def test_unit_tests_name_what_they_test():
    """test_x.c and test_x_concept.c test x.c or x.h of engine, link or switch, or module
    qhca_x."""
    stems = {file.stem for part in ("engine", "link", "switch") for file in product_files(part)}
    stems |= {file.stem.removeprefix("qhca_") for file in PRODUCT["drivers"].rglob("qhca_*.h")}
    tests = sorted((TESTS / "unit").glob("test_*.c"))
    assert len(tests) > 30
    lost = [f"{file.name} names no file of engine, link, switch or driver" for file in tests
            if not any(file.stem == f"test_{stem}" or file.stem.startswith(f"test_{stem}_")
                       for stem in stems)]
    assert lost == []
