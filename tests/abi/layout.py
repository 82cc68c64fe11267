#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The layout of the ABI headers, as different builds see it.

What to ask for is taken from the preprocessed header: every struct, every
field, every enumerator and every object-like macro. The questions become one
C file, a constant table in a section of its own; each build compiles that file
with its own compiler, flags and <linux/types.h>, and the answers are read out
of the object. So nothing has to run, and a kernel object answers like any other.

By hand: tests/abi/layout.py [engine|provider] prints the table.
"""

import os
import pathlib
import re
import shlex
import struct
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parents[2]
INCLUDE = TOP / "drivers" / "include"
HARDWARE = "qhca/qhca_hw.h"
UVERBS = "rdma/qhca-abi.h"
SECTION = ".qhca_abi"
END = 0x5148434155544845        # last entry: the table was read whole

ENGINE_FLAGS = ("-std=c11", "-pedantic", "-DQHCA_HW_PLAIN_TYPES")
PROVIDER_FLAGS = ("-std=gnu11",)


def run(argv, **kwargs):
    done = subprocess.run([str(a) for a in argv], text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **kwargs)
    if done.returncode:
        raise RuntimeError(f"{shlex.join(map(str, argv))}\n{done.stdout}")
    return done.stdout


# -- what to ask ------------------------------------------------------------

def own_text(preprocessed, header):
    """The lines of @header itself, without those of what it includes."""
    kept, ours = [], False
    for line in preprocessed.splitlines():
        marker = re.match(r'# \d+ "([^"]*)"', line)
        if marker:
            ours = marker[1].endswith(header)
        elif ours:
            kept.append(line)
    return "\n".join(kept)


def closing(text, start):
    """Index of the brace that closes the one at @start."""
    depth = 0
    for i in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[i], 0)
        if depth == 0:
            return i
    raise ValueError("unbalanced braces")


def members(body):
    """(name, is an array, nested members) of each field of a struct's body."""
    fields = []
    i = 0
    while body[i:].strip():
        nested = re.match(r"\s*(?:struct|union)\s*\{", body[i:])
        if nested:
            end = closing(body, i + nested.end() - 1)
            inner = members(body[i + nested.end():end])
            stop = body.index(";", end)
            name = body[end + 1:stop].strip()
            i = stop + 1
            if not name:
                fields += inner
                continue
            fields.append((re.match(r"\w+", name)[0], "[" in name, inner))
            continue
        stop = body.index(";", i)
        declaration, i = body[i:stop], stop + 1
        array = "[" in declaration
        name = re.search(r"(\w+)\s*(\[[^]]*\]\s*)*$", declaration.strip())[1]
        fields.append((name, array, []))
    return fields


def flatten(fields, prefix=""):
    for name, array, inner in fields:
        yield prefix + name
        yield from flatten(inner, f"{prefix}{name}{'[0]' if array else ''}.")


class Names:
    """Everything a header defines: {struct: [field, ...]}, constants."""

    def __init__(self, header, flags, include):
        base = ["gcc", *flags, *(f"-I{i}" for i in include), "-E", "-x", "c"]
        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(folder) / "ask.c"
            source.write_text(f"#include <{header}>\n")
            text = own_text(run([*base, source]), header)
            macros = own_text(run([*base, "-dD", source]), header)
        self.header = header
        self.structs = {}
        for found in re.finditer(r"\bstruct\s+(q?hca_\w+)\s*\{", text):
            end = closing(text, found.end() - 1)
            self.structs[found[1]] = list(flatten(members(text[found.end():end])))
        self.constants = []
        for found in re.finditer(r"\benum\s+\w*\s*\{([^}]*)\}", text):
            self.constants += [item.split("=")[0].strip()
                               for item in found[1].split(",") if item.strip()]
        self.constants += [
            m[1] for m in re.finditer(r"^#define (QHCA_\w+)[ \t]+\S", macros, re.M)]

    def questions(self):
        """(what, C expression) of each entry of the table, in order."""
        for name, fields in self.structs.items():
            yield f"sizeof {name}", f"sizeof(struct {name})"
            yield f"alignof {name}", f"_Alignof(struct {name})"
            for field in fields:
                yield f"{name}.{field} at", f"offsetof(struct {name}, {field})"
                yield f"{name}.{field} size", f"sizeof(((struct {name} *)0)->{field})"
        for name in self.constants:
            yield name, name

    def source(self, kernel=False):
        rows = "".join(f"\t(u64_t)({e}),\n" for _, e in self.questions())
        return (f"#include <{'linux/stddef.h' if kernel else 'stddef.h'}>\n"
                f"#include <{self.header}>\n"
                "typedef unsigned long long u64_t;\n"
                "extern const u64_t qhca_abi_table[];\n"
                f'const u64_t qhca_abi_table[] __attribute__((section("{SECTION}"), used)) = {{\n'
                f"{rows}\t{END:#x}ull,\n}};\n")

    def answers(self, obj):
        """{what: value} out of an object that was compiled from source()."""
        with tempfile.TemporaryDirectory() as folder:
            raw = pathlib.Path(folder) / "table"
            run(["objcopy", "-O", "binary", "-j", SECTION,
                 "--set-section-flags", f"{SECTION}=alloc,load", obj, raw])
            data = raw.read_bytes()
        asked = [what for what, _ in self.questions()]
        values = struct.unpack(f"<{len(data) // 8}Q", data)
        if len(values) != len(asked) + 1 or values[-1] != END:
            raise RuntimeError(f"{obj}: {len(values)} answers to {len(asked)} questions")
        return dict(zip(asked, values))


def hardware_names():
    return Names(HARDWARE, ENGINE_FLAGS, [INCLUDE])


def uverbs_names():
    return Names(UVERBS, PROVIDER_FLAGS, [INCLUDE / "uapi"])


# -- whom to ask ------------------------------------------------------------

def compiled(names, flags, include, compiler="gcc"):
    """Answers of a build in user space."""
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "table.c"
        source.write_text(names.source())
        obj = source.with_suffix(".o")
        run([compiler, *flags, *(f"-I{i}" for i in include),
             "-Wall", "-Wextra", "-Werror", "-c", source, "-o", obj])
        return names.answers(obj)


def engine(names, compiler="gcc"):
    return compiled(names, ENGINE_FLAGS, [INCLUDE], compiler)


def provider(names, compiler="gcc"):
    return compiled(names, PROVIDER_FLAGS, [INCLUDE, INCLUDE / "uapi"], compiler)


def kbuild_folder(folder, names):
    """Fill @folder with what kbuild needs to compile names.source()."""
    (folder / "qhca_abi.c").write_text(names.source(kernel=True))
    (folder / "Kbuild").write_text("ccflags-y += -I$(src)/include -I$(src)/include/uapi\n"
                                   "obj-m += qhca_abi.o\n")
    for header in ("qhca/qhca_hw.h", "uapi/rdma/qhca-abi.h"):
        copy = folder / "include" / header
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes((INCLUDE / header).read_bytes())


def kernel_own(names, kdir):
    """Answers of a kernel build tree, with this machine's compiler."""
    with tempfile.TemporaryDirectory() as folder:
        kbuild_folder(pathlib.Path(folder), names)
        run(["make", "-C", kdir, f"M={folder}", "qhca_abi.o"])
        return names.answers(pathlib.Path(folder) / "qhca_abi.o")


def kernel_guest(names, tree, build):
    """Answers of the kernel built in folder @build of the guest tree, with its compiler."""
    tree = pathlib.Path(tree)
    with tempfile.TemporaryDirectory(prefix="abi-", dir=tree / "build") as folder:
        kbuild_folder(pathlib.Path(folder), names)
        inside = f"/{pathlib.Path(folder).relative_to(tree)}"
        script = (f". {shlex.quote(str(TOP))}/scripts/common.sh; "
                  f". {shlex.quote(str(TOP))}/scripts/guest-paths.sh; "
                  f"GUEST_TREE={shlex.quote(str(tree))}; "
                  f"in_tree {inside} make -C {shlex.quote(build)} "
                  f"M={inside} qhca_abi.o")
        run(["bash", "-c", script], stdin=subprocess.DEVNULL)
        return names.answers(pathlib.Path(folder) / "qhca_abi.o")


def debug_info(module, names):
    """{what: value} of the structs that the debug information of @module has."""
    sizes = dict(line.split("\t")[:2]
                 for line in run(["pahole", "--sizes", module]).splitlines())
    wanted = [s for s in names.structs if s in sizes]
    found = {f"sizeof {s}": int(sizes[s]) for s in wanted}
    # Each call reads all of a module, whether one struct is asked for or all are.
    text = run(["pahole", module]) if wanted else ""
    _, *structs = re.split(r"^struct (\w+) \{", text, flags=re.M)
    for name, body in zip(structs[::2], structs[1::2]):
        # One tab: fields of the struct itself, not those of nested ones.
        for field, at, size in re.findall(
                r"^\t\S.*?(\w+)(?:\[\d+\])*;\s+/\*\s+(\d+)\s+(\d+)\s+\*/", body, re.M):
            if field in names.structs.get(name, ()):
                found[f"{name}.{field} at"] = int(at)
                found[f"{name}.{field} size"] = int(size)
    return found


def main():
    who = {"engine": engine, "provider": provider}[sys.argv[1] if sys.argv[1:] else "engine"]
    for what, value in who(hardware_names()).items():
        print(f"{what}\t{value:#x}")


if __name__ == "__main__":
    os.environ["LC_ALL"] = "C.UTF-8"
    main()
