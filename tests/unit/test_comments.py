# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Comments inside functions are sentences, which begin with a capital letter and end.

A comment that stands on lines of its own is looked at. Notes at the end of a line of code,
and those on the members of a structure, may be fragments.
"""

import io
import os
import re
import tokenize

import pytest

from lab import paths

C_FOLDERS = ["qemu-hca", "drivers", "userspace-provider", "fabric", "tests"]
# What may begin a sentence with a small letter: names, and keywords of C before a name.
NAMES = {"libibverbs", "libqhca", "perftest", "uverbs", "rxe", "fio", "devlink", "enum", "struct"}
WORDS = {"fall through"}        # compilers look for these


def comments_of_c(text):
    """(line, words) of comments on lines of their own within functions"""
    found, inside, begun = [], False, None
    for number, line in enumerate(text.splitlines(), 1):
        if begun is None:
            if line in ("{", "}"):
                inside = line == "{"
            if not inside or not re.match(r"\s+/\*(?!.*\*/.*\S)", line):
                continue
            begun, words = number, []
        words.append(re.sub(r"^\s*/?\*+(?!/)|\*/\s*$", "", line).strip())
        if "*/" in line:
            found.append((begun, " ".join(filter(None, words))))
            begun = None
    return found


def comments_of_python(text):
    """(line, words) of blocks of indented comments on lines of their own"""
    found, last = [], None
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type != tokenize.COMMENT or not token.start[1] or token.line.strip() != token.string:
            continue
        words = token.string.removeprefix("#").strip()
        if words.startswith("-- "):
            continue            # a heading
        if last == token.start[0] - 1:
            found[-1] = found[-1][0], f"{found[-1][1]} {words}"
        else:
            found.append((token.start[0], words))
        last = token.start[0]
    return found


def is_sentence(words):
    """Does it begin and end as a sentence does? A name from the code may begin it."""
    first = words.split()[0].rstrip(",:;")
    if words in WORDS:
        return True
    if re.fullmatch(r"[a-z]+", first) and first not in NAMES:
        return False
    return words.endswith((".", "?", "!", ":", ",", ")"))


def fragments(path, comments):
    name = os.path.relpath(path, paths.TOP)
    return [f"{name}:{line}: {words}" for line, words in comments if words and not is_sentence(words)]


def test_comments_are_found():
    text = ("struct a {\n\t/* of a member */\n\tint b;\n};\n"
            "int c(void)\n{\n\tint d;\t/* a note */\n\n\t/* what is first */\n\td = 1;\n"
            "\t/*\n\t * The first line\n\t * and the second.\n\t */\n\treturn d;\n}\n"
            "\t/* outside */\n")
    assert comments_of_c(text) == [(9, "what is first"), (12 - 1, "The first line and the second.")]
    assert comments_of_python("# outside\ndef a():\n    # One\n    # comment.\n    b()  # a note\n"
                              "    # another\n") == [(3, "One comment."), (6, "another")]


@pytest.mark.parametrize("words, good", [
    ("what is first", False), ("The first is missing", False), ("The first is missing.", True),
    ("hca_run() does that.", True), ("rxe refuses it.", True), ("Why?", True), ("beyond", False),
    ("fall through", True),
])
def test_sentences(words, good):
    assert is_sentence(words) == good


@pytest.mark.parametrize("folder", C_FOLDERS)
def test_c(folder):
    files = sorted(f for f in (paths.TOP / folder).rglob("*.[ch]"))
    assert len(files) > 3
    assert [f for file in files for f in fragments(file, comments_of_c(file.read_text()))] == []


def test_python():
    files = sorted((paths.TOP / "tests").rglob("*.py"))
    assert len(files) > 100
    assert [f for file in files for f in fragments(file, comments_of_python(file.read_text()))] == []
