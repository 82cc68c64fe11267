# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A client of QEMU's machine protocol over a connected socket."""

import json
import threading
import time


class QMPError(Exception):
    def __init__(self, command, error):
        super().__init__(f"{command}: {error.get('desc')}")
        self.error = error


class Closed(Exception):
    """The other end has closed the connection."""


def _matches(match, data):
    if match is None or callable(match):
        return match is None or match(data)
    return all(data.get(k) == v for k, v in match.items())


class QMP:
    def __init__(self, sock):
        self._sock = sock
        self._file = sock.makefile("rb")
        self._changed = threading.Condition()
        self._send_lock = threading.Lock()
        self._replies = {}
        self._serial = 0
        self._closed = False
        self._greeted = False
        self.events = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def start(self, timeout):
        deadline = time.monotonic() + timeout
        with self._changed:
            while not self._greeted:
                self._wait(deadline, "QEMU's greeting")
        self.cmd("qmp_capabilities", timeout=timeout)

    def _read(self):
        try:
            for line in self._file:
                message = json.loads(line)
                with self._changed:
                    if "event" in message:
                        self.events.append(message)
                    elif "QMP" in message:
                        self._greeted = True
                    elif "id" in message:
                        self._replies[message["id"]] = message
                    self._changed.notify_all()
        except (OSError, ValueError):
            pass
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _wait(self, deadline, what):
        if self._closed:
            raise Closed(f"QEMU went away while waiting for {what}")
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError(f"no {what} in time")
        self._changed.wait(left)

    def cmd(self, command, timeout=30, **arguments):
        """Runs a command; underscores in argument names become dashes."""
        arguments = {k.replace("_", "-"): v for k, v in arguments.items()}
        return self.cmd_raw(command, arguments, timeout)

    def cmd_raw(self, command, arguments, timeout=30):
        deadline = time.monotonic() + timeout
        with self._send_lock:
            self._serial += 1
            serial = self._serial
            message = {"execute": command, "id": serial}
            if arguments:
                message["arguments"] = arguments
            try:
                self._sock.sendall(json.dumps(message).encode() + b"\n")
            except OSError as error:
                raise Closed(f"QEMU is gone, cannot send {command}") from error
        with self._changed:
            while serial not in self._replies:
                self._wait(deadline, f"reply to {command}")
            reply = self._replies.pop(serial)
        if "error" in reply:
            raise QMPError(command, reply["error"])
        return reply["return"]

    def mark(self):
        """A point in the stream of events, for wait_event's `since`."""
        return len(self.events)

    def wait_event(self, name, match=None, since=0, timeout=30):
        """The first event of that name, with that data, after `since`.

        match: members that the data must have, or a function that says so
        """
        deadline = time.monotonic() + timeout
        with self._changed:
            while True:
                for event in self.events[since:]:
                    data = event.get("data", {})
                    if event["event"] == name and _matches(match, data):
                        return event
                self._wait(deadline, f"event {name}")

    def close(self):
        try:
            self._sock.shutdown(2)
        except OSError:
            pass
        self._reader.join(5)
        self._file.close()
        self._sock.close()
