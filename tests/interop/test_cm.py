# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The examples of librdmacm."""

import re

import pytest

from lab import verbs

LISTENS = "rdma res show cm_id 2>/dev/null | grep -q 'state LISTEN'"


@pytest.mark.parametrize("ip", [4, 6], ids=["ipv4", "ipv6"])
def test_rping(ends, ip):
    server, client = ends
    address = server.ip4 if ip == 4 else server.ip6
    if ip == 6:
        verbs.become_neighbours(server, client)
    done = verbs.client_server(server, client, f"rping -s -a {address} -v -C 100",
                               f"rping -c -a {address} -v -C 100", ready=LISTENS)
    for side in (done.server, done.client):
        assert len(re.findall(r"ping data: rdma-ping-\d+", side.out)) == 100


def test_rping_persistent(ends):
    """A listener that serves one client after another."""
    server, client = ends
    background = server.spawn(f"rping -s -P -a {server.ip4}")
    try:
        server.wait_until(LISTENS)
        for _ in range(3):
            client.exec(f"rping -c -a {server.ip4} -v -C 10 -S 4000")
    finally:
        background.kill("INT")
        background.wait(60, check=False)


@pytest.mark.parametrize("program", ["ucmatose", "udaddy"])
def test_data_transfers(ends, program):
    server, client = ends
    done = verbs.client_server(server, client, f"{program} -c 4 -C 20 -S 500",
                               f"{program} -s {server.ip4} -c 4 -C 20 -S 500", ready=LISTENS)
    for side in (done.server, done.client):
        assert "return status 0" in side.out


def test_rdma_client_server(ends):
    server, client = ends
    done = verbs.client_server(server, client, "rdma_server", f"rdma_client -s {server.ip4}",
                               ready=LISTENS)
    for side in (done.server, done.client):
        assert re.search(r"end 0\b", side.out)


def test_nobody_listens(ends):
    """A refused connection is an error at once, not a time-out."""
    server, client = ends
    result = client.exec(f"rping -c -a {server.ip4} -C 1 -p 7999", timeout=30, check=False)
    assert not result.ok
    assert "REJECTED" in result.out + result.err
