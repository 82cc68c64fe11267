# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Three and more guests, joined by the switch."""

import itertools
import os

from . import paths
from .fabric import Switch
from .pair import Node

_serial = itertools.count(1)

NAMES = "abcdefghijklmnop"
# MiB of each guest. So many guests share the host's memory, and none of them needs more.
MEMORY = 640


class Group:
    """Guests 'a', 'b', ..., each with a port of its own name at a switch.

    mtu            of the interfaces: 4200 gives RoCE's 4096
    switch_options of the switch program
    Other keyword arguments go to all guests; a_args is a dict of those for the first.
    """

    def __init__(self, number, kind="qhca", *, mtu=4200, setup=True, a_args=None,
                 switch_options=(), **kwargs):
        if not 2 <= number <= len(NAMES):
            raise ValueError(f"2 to {len(NAMES)} guests can be joined, not {number}")
        log_dir = paths.LOGS / "group" / f"{os.getpid()}-{next(_serial)}"
        log_dir.mkdir(parents=True, exist_ok=True)
        self.switch = Switch(NAMES[:number], *switch_options, log=log_dir / "switch.log")
        options = {"mtu": mtu, "setup": setup, "memory": MEMORY, "log_dir": log_dir, **kwargs}
        self.nodes = [Node(name, kind, index, netdevs=[self.switch.netdev(name)],
                           **{**options, **((a_args or {}) if index == 1 else {})})
                      for index, name in enumerate(NAMES[:number], 1)]
        for node in self.nodes:
            node.peer_of = None

    def __iter__(self):
        return iter(self.nodes)

    def __len__(self):
        return len(self.nodes)

    def ring(self):
        """Pairs of each guest and its successor."""
        return self.round(1)

    def round(self, distance):
        """Pairs of each guest and the one that far behind it. The rounds of all distances
        below the number of guests have each guest once with each other, in both roles."""
        n = len(self.nodes)
        return [(self.nodes[i], self.nodes[(i + distance) % n]) for i in range(n)]

    def boot(self, timeout=480):
        """Boots all guests at once and waits until each reaches each other."""
        try:
            self.switch.start()
            for node in self.nodes:
                node.start()
            for node in self.nodes:
                node.wait_ready(timeout)
            if all(node.setup for node in self.nodes):
                for node in self.nodes:
                    self.wait_links(node)
        except BaseException:
            self.close()
            raise
        return self

    def wait_links(self, node, timeout=120):
        """Waits until a guest reaches all others."""
        pings = " && ".join(f"ping -c 1 -W 1 {other.ip4}" for other in self.nodes if other is not node)
        node.wait_until(pings, timeout, "ping of all others")

    def restart(self, node, timeout=240):
        """Kills a guest, as if its host had lost it, and boots it again."""
        node.kill()
        node.close()
        node.start()
        node.wait_ready(timeout)
        self.wait_links(node)

    def close(self):
        for node in self.nodes:
            node.close()
        self.switch.close()

    def __enter__(self):
        return self.boot()

    def __exit__(self, *_):
        self.close()
