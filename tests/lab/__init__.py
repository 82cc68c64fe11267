# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Boots guests, connects them, and runs commands in them.

    from lab import Guest, Pair
    with Pair(("qhca", "rxe")) as (a, b):
        print(a.out("ibv_devinfo"))
"""

from .group import Group
from .guest import Guest, GuestError, Result, content, note_leaks, unheard, wait_for
from .pair import Pair
from .script import script

__all__ = ["Group", "Guest", "GuestError", "Pair", "Result", "content", "note_leaks",
           "script", "unheard", "wait_for"]
