# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Whose turn it is when several pytests run beside each other (lanes.py).

Tests run beside those of the other lanes, but for those marked `alone`: they measure, and
other guests at work would be what they see. Such a test waits until what runs has ended, and
what is to run next waits for it.
"""

import contextlib
import fcntl
import pathlib


class Turns:
    """@folder: one that all lanes have; None: there are no others"""

    def __init__(self, folder):
        self._folder = folder and pathlib.Path(folder)

    @contextlib.contextmanager
    def take(self, alone=False):
        if self._folder is None:
            yield
            return
        with open(self._folder / "turn", "w") as turn:
            # Who waits for its turn keeps the gate, or others could go before it for ever.
            with open(self._folder / "gate", "w") as gate:
                fcntl.flock(gate, fcntl.LOCK_EX)
                fcntl.flock(turn, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
            yield
