# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The switch program: starts it, and talks to its control socket."""

import contextlib
import json
import pathlib
import shutil
import socket
import subprocess
import tempfile

from . import paths, process
from .guest import wait_for


class SwitchError(Exception):
    """The switch has ended, or has refused a command; the text has its reason."""


def connect(path, timeout=60):
    """A connection to a unix socket, whose operations may take so many seconds."""
    end = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        end.connect(str(path))
        end.settimeout(timeout)
    except BaseException:
        end.close()
        raise
    return end


class Control:
    """A control connection."""

    def __init__(self, path):
        self.end = connect(path)
        self.file = self.end.makefile("rw", encoding="utf-8")

    def line(self, text):
        """Sends a line; returns the answer to it."""
        self.file.write(text + "\n")
        self.file.flush()
        answer = self.file.readline()
        if not answer:
            raise SwitchError(f"no answer to {text}")
        return json.loads(answer)

    def __call__(self, command, **members):
        """Runs a command; returns its result."""
        answer = self.line(json.dumps({"command": command, **members}))
        if "return" not in answer:
            raise SwitchError(f"{command} {members}: {answer['error']}")
        return answer["return"]

    def close(self):
        self.file.close()
        self.end.close()


class Switch:
    """A switch with a port for each name, whose peers come and go.

    The sockets are in a folder of its own, and stay the same when the switch is started
    again.
    """

    def __init__(self, names=(), *options, program=None, log=None):
        self.names = tuple(names)
        self.options = [str(o) for o in options]
        self.program = str(program or paths.switch())
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="qhca-switch-"))
        self.log = pathlib.Path(log) if log else self.dir / "log"
        self.child = None
        self.control = None

    def path(self, name):
        """The socket of a port, of all new ports ('listen'), or of control ('control')."""
        return self.dir / name

    def netdev(self, name):
        """A netdev of QEMU that is the peer of a port, and connects again by itself."""
        return f"stream,server=off,addr.type=unix,addr.path={self.path(name)},reconnect-ms=200"

    def command_line(self):
        argv = [self.program, "--control", str(self.path("control")),
                "--listen", str(self.path("listen"))]
        for name in self.names:
            argv += ["--port", f"{name}={self.path(name)}"]
        return argv + self.options

    def start(self):
        """Starts the program, and waits until it answers."""
        with open(self.log, "ab") as log:
            self.child = process.spawn(self.command_line(), stdin=subprocess.DEVNULL,
                                       stdout=log, stderr=log, process_group=0)
        try:
            self.control = wait_for(self._try_control, 60, "the switch")
        except BaseException:
            self.close()
            raise
        return self

    def _try_control(self):
        if self.child.poll() is not None:
            raise SwitchError(f"the switch ended with {self.child.returncode}: {self.said()}")
        with contextlib.suppress(FileNotFoundError, ConnectionRefusedError):
            return Control(self.path("control"))
        return None

    def said(self):
        return self.log.read_text(errors="replace")

    @property
    def running(self):
        return self.child is not None and self.child.poll() is None

    def port(self, name):
        """All that the switch reports of a port."""
        return self.control("ports", port=name)[0]

    def counters(self, name):
        return self.port(name)["counters"]

    def set(self, name, **settings):
        return self.control("set", port=name, settings=settings)

    def wait_peers(self, *names, timeout=60):
        """Waits until each of the ports has a peer."""
        wait_for(lambda: all(self.port(name)["peer"] for name in names), timeout,
                 f"peers of {', '.join(names)}")

    def _hang_up(self):
        if self.control:
            self.control.close()
            self.control = None

    def kill(self):
        """Kills the program, which leaves its sockets behind."""
        self._hang_up()
        process.stop(self.child)

    def stop(self):
        """Has the program end; returns its exit code."""
        self._hang_up()
        self.child.terminate()
        try:
            return self.child.wait(60)
        finally:
            process.stop(self.child)

    def close(self):
        self._hang_up()
        if self.child is not None:
            process.stop(self.child)
        shutil.rmtree(self.dir, ignore_errors=True)

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.close()
