# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Guests that sleep, and wake up."""

from .guest import wait_for

# Seconds that an operation may take in a guest that is busy, on a host that is.
LONG = 240


def sleep_and_wake(node, sleep, wake):
    """Runs the command `sleep` in a guest, `wake` here, and waits for the command's end.

    The guest's driver drops what its agent has been asked and not read yet when it
    suspends the port between them. So the agent is asked nothing before the guest says
    on its console that it is awake.
    """
    said = len(node.console_text())
    job = node.spawn(f"{sleep}; code=$?; echo awake > /dev/ttyS0; exit $code")
    wake()
    wait_for(lambda: "awake" in node.console_text()[said:], LONG * node.patience,
             f"{node.name} is awake")
    node.reconnect_agent()
    job.wait(LONG)
