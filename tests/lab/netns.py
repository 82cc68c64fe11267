# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Network namespaces of a test, apart from the host's own network.

A process holds them, and they end with it. An ordinary user gets a user namespace as well,
in which that user is root; interfaces, bridges and taps then need no privilege on the host.
"""

import contextlib
import os
import subprocess

from . import process


def may_have_taps():
    """Debian lets every user make taps in a namespace of their own; not every host does."""
    return os.access("/dev/net/tun", os.R_OK | os.W_OK)


class NetworkError(Exception):
    """A command in a network namespace failed; the text has its output."""


class Network:
    """A network namespace, and those of other names that commands in it add.

    /run is empty in there, so that `ip netns` knows no namespace of the host's.
    """

    HOLD = ("mount -t tmpfs tmpfs /run && mkdir /run/netns && ip link set lo up && echo ready && "
            "exec sleep infinity")

    def __init__(self):
        user = [] if os.getuid() == 0 else ["--user", "--map-root-user"]
        self.flags = ["--user", "--preserve-credentials"] if user else []
        self.child = process.spawn(["unshare", *user, "--net", "--mount", "sh", "-c", self.HOLD],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT)
        said = self.child.stdout.readline().decode()
        if said != "ready\n":
            self.close()
            raise NetworkError(f"no network namespace can be had here: {said}")

    def prefix(self, name=None):
        """What precedes a command's words to run it in the namespace, or in one of those
        that were added in it."""
        folder = f"/proc/{self.child.pid}"
        net = f"{folder}/root/run/netns/{name}" if name else f"{folder}/ns/net"
        return ["nsenter", f"--target={self.child.pid}", *self.flags, "--mount", f"--net={net}"]

    def run(self, script, name=None):
        """Runs a shell script that must succeed; returns its standard output."""
        done = subprocess.run([*self.prefix(name), "bash", "-ec", script],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if done.returncode:
            raise NetworkError(f"`{script}` ended with {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def close(self):
        process.stop(self.child)
        with contextlib.suppress(OSError):
            self.child.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
