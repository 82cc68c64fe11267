# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The Ethernet side of guests: what it counts, its channels, and TCP between two."""

import contextlib
import re

from . import verbs


def statistics(node):
    text = node.out(f"ethtool -S {node.netif}")
    return {name: int(value) for name, value in re.findall(r"^\s*(\w+): (\d+)$", text, re.M)}


def combined(node):
    """(the most channels that there can be, those in use)"""
    text = node.out(f"ethtool -l {node.netif}")
    return tuple(map(int, re.findall(r"^Combined:\s+(\d+)$", text, re.M)))


def copy(a, b, address, kib=8192):
    """Sends random bytes from a to b over TCP and compares their digests."""
    port = verbs.next_port()
    receiver = b.spawn(f"busybox nc -l -p {port} | sha256sum")
    b.wait_until(verbs.listening(port))
    sent = a.out(f"head -c {kib}K /dev/urandom > /tmp/data && "
                 f"cat /tmp/data > /dev/tcp/{address}/{port} && sha256sum < /tmp/data", timeout=90)
    assert receiver.wait(60).out.strip() == sent


@contextlib.contextmanager
def stream(a, b):
    """TCP from a to b for as long as the context lasts."""
    port = verbs.next_port()
    path = f"/sys/class/net/{b.netif}/statistics/rx_bytes"
    server = b.spawn(f"exec iperf3 -s -1 -4 -B {b.ip4} -p {port}")
    client = None
    try:
        b.wait_until(verbs.listening(port))
        client = a.spawn(f"exec iperf3 -c {b.ip4} -p {port} -P 4 -t 600")

        def goes_on():
            assert client.poll() is None and server.poll() is None
            goal = int(b.out(f"cat {path}")) + (1 << 20)
            b.wait_until(f"[ $(cat {path}) -gt {goal} ]")
        goes_on()
        yield goes_on
        goes_on()
    finally:
        for process in (client, server):
            if process and process.poll() is None:
                process.kill()
                process.wait(60, check=False)
