# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Ends a program of the lab with its result, or with one line that gives the reason."""

import os
import signal
import subprocess
import sys

from . import paths, process
from .agent import AgentError
from .fabric import SwitchError
from .guest import GuestError
from .qmp import Closed, QMPError

# What guests, QEMU, and this machine may do to a program that is in order.
ERRORS = (GuestError, AgentError, SwitchError, Closed, QMPError, paths.Missing, OSError, ValueError,
          subprocess.SubprocessError)


def ended(name, function):
    """Calls the function; returns the exit code."""
    try:
        code = function()
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        process.stop_all()
        print(f"{name}: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # Nobody reads on, as in `make run | head`; nor will Python's own last flush.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except ERRORS as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 1
