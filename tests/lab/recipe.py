# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Commands of the documentation, which tests run as they are printed.

A comment of the page names each block that a test runs::

    .. recipe: bridge

    ::

        ip link add br0 type bridge
"""

import re
import shlex
import textwrap

from . import paths


class NoRecipe(Exception):
    """The page has no block of that name, or several."""


def recipes(page):
    """{name: text} of the blocks of Documentation/PAGE that have a name"""
    text = (paths.TOP / "Documentation" / page).read_text()
    blocks = re.findall(r"^\.\. recipe: (\S+)\n\n(?:::|\.\. code-block:: \w+)\n\n((?:(?: {4}.*)?\n)+)", text, re.M)
    found = {name: textwrap.dedent(block).strip() + "\n" for name, block in blocks}
    named = re.findall(r"^\.\. recipe: (\S+)$", text, re.M)
    if sorted(named) != sorted(found):
        raise NoRecipe(f"{page}: these names have no block, or several: {set(named) - set(found)}")
    return found


def words(block):
    """The words of a command line that goes over several lines."""
    return shlex.split(block.replace("\\\n", " "), comments=True)


def options(argv):
    """[(option, value)] of QEMU's arguments; the value of those that have none is None"""
    found = []
    for word in argv:
        if word.startswith("-") and (not found or found[-1][1] is not None or
                                     found[-1][0] in FLAGS):
            found.append((word, None))
        else:
            found[-1] = (found[-1][0], word)
    return found


# Options of QEMU that take no value.
FLAGS = {"-nographic", "-nodefaults", "-no-user-config"}
