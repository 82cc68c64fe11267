# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""scripts/linux.config asks for nothing that Debian's kernels, with which all tests pass,
do not have."""

import pathlib
import re

import pytest

from lab import paths

OPTION = re.compile(r"^(CONFIG_\w+)=([ym])$", re.M)
# These options only select others.
NOT_ASKED_FOR = "selects what has no prompt"


def parts():
    """{heading: [(option, value)]} of linux.config"""
    head, *text = re.split(r"^#= (.*)$", (paths.TOP / "scripts/linux.config").read_text(), flags=re.M)
    assert not OPTION.search(head)
    return {heading: OPTION.findall(lines) for heading, lines in zip(text[0::2], text[1::2])}


def test_parts():
    """The script names the parts by their headings."""
    script = (paths.TOP / "scripts/linux.sh").read_text()
    headings = set(re.findall(r'\$\(lacking "(.*?)"\)', script))
    assert headings == set(parts()) - {NOT_ASKED_FOR} and len(headings) == 3


@pytest.mark.parametrize("which", ["default", "backports"])
def test_guests_kernels_have_all(which):
    env = paths.guest_env()
    config = pathlib.Path(env["tree"]) / "boot" / f"config-{env[which]}"
    have = dict(OPTION.findall(config.read_text()))
    lacking = {name for part, lines in parts().items() if part != NOT_ASKED_FOR
               for name, value in lines if have.get(name) not in (value, "y")}
    assert lacking == set()
