# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Two guests for a test: `ends` is (server, client) over one of the links.

The order of tests is by link, since each link needs two guests of its own; and those that
share the watchful pair follow one another.
"""

import pytest

from lab import content
from lab.guest import WATCHFUL
from lab.link import Link, links
from lab.sample import SEED


def pytest_report_header():
    return f"samples are those of QHCA_SEED={SEED}"


def pytest_collection_modifyitems(items):
    order = {(link.kinds, link.wire): n for n, link in reversed(list(enumerate(links())))}

    def key(item):
        link = getattr(item, "callspec", None) and item.callspec.params.get("link")
        # Tests of other areas come first, those with guests of their own last. Those with the
        # watchful pair come after others, which still have the pairs of links.
        if isinstance(link, Link):
            return order[link.kinds, link.wire]
        if "interop" not in item.path.parts:
            return -1
        return len(order) + ("watchful" in item.fixturenames)
    items.sort(key=key)


@pytest.fixture(params=links(), ids=lambda link: link.id)
def link(request):
    return request.param


@pytest.fixture
def linked(link, pairs):
    """The Pair of the link, booted."""
    return pairs.get(*link.kinds, **link.options)


@pytest.fixture
def ends(link, linked):
    """(server, client), booted; the kernels must not complain meanwhile."""
    with content(*linked):
        yield linked.nodes[link.server], linked.nodes[link.client]


@pytest.fixture
def watchful(pairs, wire, request):
    """A pair that finds faults, with two processors, so that much happens at once.

    A test that fails may leave anything behind, so that the next one has new guests.
    """
    before = request.session.testsfailed
    pair = pairs.get("qhca", "qhca", wire=wire, cpus=2, append=WATCHFUL)
    with content(*pair):
        yield pair
    if request.session.testsfailed > before:
        pair.close()
