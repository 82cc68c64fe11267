# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Two guests for a test: `ends` is (server, client) over one of the links.

The order of tests is by link, since each link needs two guests of its own; and those that
share the watchful pair follow one another. Beside Soft-RoCE the ends take roles: with FULL=1
each test has both, else the one that its name and QHCA_SEED select.
"""

import collections
import zlib

import pytest

from lab import content
from lab.guest import WATCHFUL
from lab.link import FULL, Link, links
from lab.sample import SEED


def pytest_report_header():
    return f"samples are those of QHCA_SEED={SEED}"


def _link(item):
    link = getattr(item, "callspec", None) and item.callspec.params.get("link")
    return link if isinstance(link, Link) else None


def _second_roles(items):
    """Of tests that are there in both roles beside Soft-RoCE, those in the role not selected."""
    roles = collections.defaultdict(list)
    for item in items:
        link = _link(item)
        if link and link.has_rxe:
            others = sorted(f"{name}={value}" for name, value in item.callspec.params.items()
                            if name != "link")
            roles[item.path.name, item.originalname, *others].append(item)
    for key, group in roles.items():
        servers = sorted({_link(item).server for item in group})
        selected = servers[zlib.crc32(f"{SEED} {key}".encode()) % len(servers)]
        yield from (item for item in group if _link(item).server != selected)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    left_out = set() if FULL else set(_second_roles(items))
    config.hook.pytest_deselected(items=list(left_out))
    items[:] = [item for item in items if item not in left_out]
    order = {(link.kinds, link.wire): n for n, link in reversed(list(enumerate(links())))}

    def key(item):
        link = _link(item)
        # Tests of other areas come first, those with guests of their own last. Those with the
        # watchful pair come after others, which still have the pairs of links.
        if link:
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
