# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A client of the QEMU guest agent over a connected socket.

The agent answers one request at a time. Each connection of the guest's side
(a boot, a reset) begins with a sync, which also drops what a previous life
left in the pipe.
"""

import base64
import json
import socket
import threading
import time


class AgentError(Exception):
    pass


class Agent:
    """@patience: the factor by which all timeouts of the guest are longer than usual"""

    def __init__(self, sock, patience=1):
        self._sock = sock
        self._patience = patience
        self._lock = threading.Lock()
        self._buffer = b""
        self._serial = int(time.monotonic() * 1000) & 0xFFFFFF
        self._synced = False

    def _receive(self, deadline, delimiter):
        while delimiter not in self._buffer:
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError("the guest agent did not answer in time")
            self._sock.settimeout(left)
            try:
                chunk = self._sock.recv(1 << 20)
            except socket.timeout:
                continue
            if not chunk:
                raise AgentError("QEMU closed the agent's socket")
            self._buffer += chunk
        head, self._buffer = self._buffer.split(delimiter, 1)
        return head

    def _sync(self, deadline):
        self._serial += 1
        message = {"execute": "guest-sync-delimited", "arguments": {"id": self._serial}}
        self._sock.settimeout(max(0.1, deadline - time.monotonic()))
        self._sock.sendall(b"\xff" + json.dumps(message).encode() + b"\n")
        while True:
            self._receive(deadline, b"\xff")
            reply = json.loads(self._receive(deadline, b"\n"))
            if reply.get("return") == self._serial:
                self._synced = True
                return

    def use(self, sock):
        """Goes on over another socket."""
        with self._lock:
            self._sock.close()
            self._sock, self._buffer, self._synced = sock, b"", False

    def unsync(self):
        """Has the next request synchronise first, as the guest's side has started or restarted."""
        with self._lock:
            self._synced = False

    def cmd(self, command, timeout=60, **arguments):
        deadline = time.monotonic() + timeout * self._patience
        with self._lock:
            try:
                if not self._synced:
                    self._sync(deadline)
                arguments = {k.replace("_", "-"): v for k, v in arguments.items()}
                message = {"execute": command, "arguments": arguments}
                self._sock.settimeout(max(0.1, deadline - time.monotonic()))
                self._sock.sendall(json.dumps(message).encode() + b"\n")
                reply = json.loads(self._receive(deadline, b"\n"))
            except BaseException:
                # A late answer must not be taken for the next request's.
                self._synced = False
                raise
        if "error" in reply:
            raise AgentError(f"{command}: {reply['error'].get('desc')}")
        return reply["return"]

    def exec(self, argv, stdin=None, capture=True):
        """Starts a program; returns its pid in the guest."""
        arguments = {"path": argv[0], "arg": list(argv[1:]), "capture_output": capture}
        if stdin is not None:
            arguments["input_data"] = base64.b64encode(stdin).decode()
        return self.cmd("guest-exec", **arguments)["pid"]

    def status(self, pid):
        """None while it runs, else (exit code or -signal, stdout, stderr)."""
        s = self.cmd("guest-exec-status", pid=pid)
        if not s["exited"]:
            return None
        code = s.get("exitcode", -s.get("signal", 0))
        return code, base64.b64decode(s.get("out-data", "")), base64.b64decode(s.get("err-data", ""))

    def write_file(self, path, data, mode="w"):
        handle = self.cmd("guest-file-open", path=path, mode=mode)
        try:
            for at in range(0, len(data), 1 << 19):
                part = base64.b64encode(data[at:at + (1 << 19)]).decode()
                self.cmd("guest-file-write", handle=handle, buf_b64=part)
        finally:
            self.cmd("guest-file-close", handle=handle)

    def close(self):
        self._sock.close()
