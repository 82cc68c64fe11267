# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Very many memory regions (programs/scale.c)."""

import pytest

from lab import verbs
from lab.link import qhca_links

HUGE_PAGES = 128		# of 2 MiB, as the program maps them


@pytest.fixture(params=qhca_links(), ids=lambda link: link.id)
def link(request):
    return request.param


@pytest.fixture
def huge_pages(ends):
    """Huge pages in the server, as far as its memory has them in one piece."""
    server = ends[0]
    server.out("echo 1 > /proc/sys/vm/drop_caches; echo 1 > /proc/sys/vm/compact_memory; "
               f"echo {HUGE_PAGES} > /proc/sys/vm/nr_hugepages")
    assert server.out("cat /proc/sys/vm/nr_hugepages").strip() == str(HUGE_PAGES)
    yield
    server.out("echo 0 > /proc/sys/vm/nr_hugepages")


def test_many_regions(ends, huge_pages, tap_points):
    done = verbs.program(*ends, "qhca-scale", timeout=300, check=False)
    assert done.server.ok, done.server
    tap_points(done.client.out + done.client.err, done.client.code)
