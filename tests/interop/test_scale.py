# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Very many memory regions (programs/scale/scale.c) and queues (programs/scale/queues.c).

FULL=1 makes 16,384 QPs, as many CQs and 4,096 SRQs, in guests of 2 GiB, instead
of a sixteenth of that; and only it makes 131,072 regions.
"""

import pytest

from lab import content, verbs
from lab.link import FULL, qhca_links

HUGE_PAGES = 128		# of 2 MiB, as the program maps them


@pytest.fixture(params=qhca_links(), ids=lambda link: link.id)
def link(request):
    return request.param


@pytest.fixture
def huge_pages(ends):
    """Huge pages in the server, as far as its memory has them in one piece."""
    server = ends[0]
    # What a test before has given back may be on its way still.
    server.wait_until("echo 1 > /proc/sys/vm/drop_caches; echo 1 > /proc/sys/vm/compact_memory; "
                      f"echo {HUGE_PAGES} > /proc/sys/vm/nr_hugepages; "
                      f"[ $(cat /proc/sys/vm/nr_hugepages) = {HUGE_PAGES} ]")
    yield
    server.out("echo 0 > /proc/sys/vm/nr_hugepages")


@pytest.mark.full
def test_many_regions(ends, huge_pages, tap_points):
    done = verbs.program(*ends, "qhca-scale", timeout=300, check=False)
    assert done.server.ok, done.server
    tap_points(done.client.out + done.client.err, done.client.code)


QUEUES = 16384 if FULL else 1024
FEW = 16
MOST_MIB = 16


@pytest.fixture
def roomy_ends(link, pairs):
    """(server, client) with memory for QUEUES queues."""
    pair = pairs.get(*link.kinds, **link.options, **({"memory": 2048} if FULL else {}))
    with content(*pair):
        yield pair.nodes[link.server], pair.nodes[link.client]


def queues(server, client, number):
    """Runs the program; what it printed, and what each QEMU held meanwhile, MiB."""
    kept = f"/tmp/queues-{number}"
    port = 18300 + number % 100
    gids = verbs.gid_options(server, client)
    timeout = 60 + number // 10
    command = f"qhca-queues -d %s %s -p {port} -n {number}"
    serving = server.spawn(command % (server.ibdev, gids[0]))
    server.wait_until(verbs.listening(port))
    asking = client.spawn(command % (client.ibdev, gids[1]) + f" -k {kept} {server.ip4}")
    client.exec(f"until [ -e {kept} ] || ! [ -d /proc/{asking.pid} ]; do sleep 0.1; done",
                timeout=timeout)
    held = [node.held() / 1024 for node in (server, client)]
    client.exec(f"rm -f {kept}")
    done = asking.wait(timeout, check=False)
    served = serving.wait(timeout if done.ok else 5, check=False)
    assert done.ok and served.ok, (done, served)
    return done, held


def test_many_queues(roomy_ends, tap_points):
    """Each carries data, and what the device needs for them is not in QEMU."""
    _, few = queues(*roomy_ends, FEW)
    done, many = queues(*roomy_ends, QUEUES)
    print(done.out)
    print(f"QEMU holds {few} MiB with {FEW} QPs, {many} MiB with {QUEUES}")
    tap_points(done.out + done.err, done.code)
    assert all(b - a < MOST_MIB for a, b in zip(few, many)), (few, many)
