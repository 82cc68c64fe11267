# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The table of Documentation/programs.rst, which says what Documentation/programs.json has.

The file is {"kernel": release, "programs": {name: {"version": text, "qhca": results,
"rxe": results}}}, where results are {case: [passed, failed or skipped, reason]}.
"""

import json
import re

from lab import paths

from . import RESULTS

RECORD = paths.TOP / "Documentation" / "programs.json"
PAGE = paths.TOP / "Documentation" / "programs.rst"
BEGIN = ".. The test suite writes what follows; see `make programs-table`.\n"
END = ".. The test suite wrote what precedes.\n"
KINDS = {"qhca": "qhca", "rxe": "Soft-RoCE"}
OUTCOMES = ("passed", "failed", "skipped")
MANY = 12               # cases with one reason that are named


class BadRecord(Exception):
    """The record misses something; the text says what."""


def merge(record, files):
    """The record with what the files of build/suites have in place of what it had.

    A program is taken when it has run on both devices, since one run of each is compared.
    """
    found = {}
    for path in files:
        run = json.loads(path.read_text())
        found.setdefault(run["program"], {})[run["kind"]] = run
    record = {"kernel": record.get("kernel", ""), "programs": dict(record.get("programs", {}))}
    for name, runs in found.items():
        if set(runs) != set(KINDS):
            continue
        one = runs["qhca"]
        if one["kernel"] != runs["rxe"]["kernel"] or one["version"] != runs["rxe"]["version"]:
            raise BadRecord(f"{name}: the two runs are not of one guest")
        record["kernel"] = one["kernel"]
        record["programs"][name] = {"version": one["version"],
                                    **{kind: runs[kind]["results"] for kind in KINDS}}
    record["programs"] = dict(sorted(record["programs"].items(), key=lambda item: item[0].lower()))
    return record


def faults(record):
    """What a record must not have: a failure that Soft-RoCE does not have beside it, a
    failure or an omission without a reason, cases that only one of the two ran."""
    found = []
    for name, program in record["programs"].items():
        if set(program["qhca"]) != set(program["rxe"]):
            found.append(f"{name}: not the same cases on both")
        for case, (result, reason) in program["qhca"].items():
            if result != "passed" and not reason:
                found.append(f"{name}: {case}: {result} without a reason")
            if result == "failed" and program["rxe"].get(case, ["passed"])[0] != "failed":
                found.append(f"{name}: {case}: fails on qhca alone")
    return found


def _grid(rows):
    """A simple table of reStructuredText."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    rule = " ".join("=" * width for width in widths)
    lines = [" ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
    return "\n".join([rule, lines[0], rule, *lines[1:], rule]) + "\n"


def _counts(results):
    return [str(sum(result == outcome for result, _ in results.values())) for outcome in OUTCOMES]


def _literal(text):
    """A reason may have lines, and end with one."""
    return f"``{' '.join(text.split())}``" if text else ""


def _listed(cases):
    """The names of cases, but not of hundreds; programs.json has those."""
    if len(cases) <= MANY:
        return ", ".join(map(_literal, cases))
    return f"{_literal(cases[0])} and {len(cases) - 1} others"


def text_of(record):
    """The file's text, with a line for each case."""
    text = json.dumps(record, indent=1, ensure_ascii=False)
    return re.sub(r'\[\n *("\w+"),\n *("(?:[^"\\]|\\.)*")\n *\]', r"[\1, \2]", text) + "\n"


def table(record):
    """The part of the page between BEGIN and END."""
    if not record["programs"]:
        return "No results have been recorded yet.\n"
    head = ["Program", "Version", *(f"{KINDS[kind]} {outcome}" for kind in KINDS for outcome in OUTCOMES)]
    rows = [[name, program["version"], *(count for kind in KINDS for count in _counts(program[kind]))]
            for name, program in record["programs"].items()]
    parts = [f"Kernel {record['kernel']}:\n", _grid([head, *rows])]
    for kind, title in KINDS.items():
        for outcome in "failed", "skipped":
            # Cases that have one reason are listed together.
            found = {}
            for name, program in record["programs"].items():
                for case, (result, why) in program[kind].items():
                    if result == outcome:
                        found.setdefault((name, why), []).append(case)
            if found:
                parts.append(f"On {title}, {outcome}:\n\n" + "".join(
                    f"- {name}, {_listed(cases)}: {_literal(why)}\n"
                    for (name, why), cases in found.items()))
    return "\n".join(parts)


def placed(text, written):
    """The page's text with `written` between its two marks."""
    before, begin, rest = text.partition(BEGIN)
    old, end, after = rest.partition(END)
    if not begin or not end:
        raise BadRecord("the page has no place for the table")
    return f"{before}{BEGIN}\n{written}\n{END}{after}"


def update():
    """Takes the results of build/suites into the record, and the record into the page."""
    record = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    record = merge(record, sorted(RESULTS.glob("*.json")))
    bad = faults(record)
    if bad:
        raise BadRecord("\n".join(bad))
    page = placed(PAGE.read_text(), table(record))
    RECORD.write_text(text_of(record))
    PAGE.write_text(page)
    return record
