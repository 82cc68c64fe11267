# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What all tests of the set-up need."""

import signal

import pytest


@pytest.fixture(autouse=True, scope="session")
def interruptible():
    """A shell without job control starts its background jobs with Ctrl-C ignored, and
    so would the scripts that these tests start and interrupt."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
