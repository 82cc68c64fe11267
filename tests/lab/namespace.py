# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A guest's port in a network namespace."""

from .guest import Guest
from .pair import Port


def index_of(node):
    """1 for guest a, 2 for b: what their addresses end in."""
    return int(node.mac.rpartition(":")[2], 16)


class NamespacePort(Port):
    """A port of a guest; commands run in its namespace, and see no other interface."""

    def __init__(self, node, namespace, index):
        super().__init__("qhca", node.ports[0].link, index, node.mtu)
        self.guest = node
        self.namespace = namespace

    # Those of Guest, but with the spawn() below.
    exec, out, wait_until = Guest.exec, Guest.out, Guest.wait_until

    @property
    def name(self):
        return f"{self.guest.name}.{self.namespace}"

    def spawn(self, command, stdin=None):
        argv = ["/bin/bash", "-c", command] if isinstance(command, str) else command
        return self.guest.spawn(["ip", "netns", "exec", self.namespace, *argv], stdin)
