# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What the device must count, by the plain model of its caches (oracle.c)."""

import json
import subprocess

from lab import paths

from . import HERE, ROOMY

SOURCES = (HERE / "oracle.c", paths.TOP / "tests" / "unit" / "plain.c")
HEADERS = (HERE, paths.TOP / "tests" / "unit",
           paths.TOP / "tests" / "guest" / "programs" / "memory")

# What a measurement is of; and what the model counts for it.
ASKED = ("sweep", "pattern", "keys", "pages", "operation", "offset", "bytes",
         "pt_sets", "pt_blocks", "at_sets", "at_blocks")
COUNTED = ("accesses", *(f"{cache}_{what}" for cache in ("pt", "at")
                         for what in ("hits", "misses", "evictions", "conflicts")))
# A trace is one of messages that write 8 bytes, unless its row says otherwise.
DEFAULTS = {"operation": "write", "offset": 0, "bytes": 8}


def question(row):
    return tuple(dict(DEFAULTS, **row).get(name) for name in ASKED)


def build(folder):
    """Compiles the oracle into a folder; the program."""
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "oracle"
    subprocess.run(["cc", "-O2", "-std=c11", *(f"-I{path}" for path in HEADERS), "-o", program,
                    *SOURCES], check=True)
    return program


def predictions(folder, cases=HERE / "cases.txt"):
    """{question: counts} of all traces under all geometries of their sweeps."""
    sizes = [str(number) for cache in ("pt", "at") for number in ROOMY[cache]]
    done = subprocess.run([build(folder), cases, *sizes], check=True, stdout=subprocess.PIPE,
                          text=True)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return {question(row): {name: row[name] for name in COUNTED} for row in rows}


def differences(rows, predicted):
    """([sentence], number of rows compared): where the device counted something else, and
    what it did not measure."""
    sweeps = {asked[0] for asked in predicted}
    found, met = [], set()
    for row in rows:
        if row["sweep"] not in sweeps:
            continue
        asked = question(row)
        if asked not in predicted:
            found.append(f"the model has no prediction for {asked}")
            continue
        met.add(asked)
        found += [f"{asked}: the device counts {name} {row[name]}, the model {wanted}"
                  for name, wanted in predicted[asked].items() if row[name] != wanted]
    found += [f"the study has no measurement of {asked}" for asked in predicted.keys() - met]
    return found, len(met)
