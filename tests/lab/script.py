# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Shell scripts for guests, which are files of their own so that shellcheck reads them."""

import pathlib

TESTS = pathlib.Path(__file__).resolve().parents[1]


def script(name, *args):
    """The command that runs tests/NAME in a guest, for exec(), out() and spawn().

    The script's text is an argument of the command: a guest has no files of tests/.
    """
    return ["/bin/bash", "-c", (TESTS / name).read_text(), pathlib.Path(name).name,
            *(str(arg) for arg in args)]
