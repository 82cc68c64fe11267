#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A substitute for QEMU and a guest, as far as the lab uses them: a monitor, and an agent
whose commands never end. $FAKE_QEMU says what else to do."""

import json
import os
import re
import socket
import sys
import threading


def fd_of(name):
    return next(int(found[1]) for a in sys.argv if (found := re.match(rf"socket,id={name},fd=(\d+)", a)))


def answer(sock, message):
    sock.sendall((json.dumps(message) + "\r\n").encode())


def monitor(sock):
    answer(sock, {"QMP": {"version": {}, "capabilities": []}})
    for line in sock.makefile("rb"):
        request = json.loads(line)
        answer(sock, {"return": {}, **({"id": request["id"]} if "id" in request else {})})
        if request["execute"] == "qmp_capabilities":
            answer(sock, {"event": "VSERPORT_CHANGE", "timestamp": {},
                          "data": {"id": "agentport", "open": True}})


def agent(sock):
    for line in sock.makefile("rb"):
        request = json.loads(line.lstrip(b"\xff"))
        command = request["execute"]
        if command == "guest-sync-delimited":
            sock.sendall(b"\xff")
            answer(sock, {"return": request["arguments"]["id"]})
        elif command == "guest-ping" and os.environ.get("FAKE_QEMU") == "leaves":
            os._exit(0)
        elif command == "guest-exec":
            answer(sock, {"return": {"pid": 1}})
            if os.environ.get("FAKE_QEMU") == "ends":
                os._exit(3)
        else:
            answer(sock, {"return": {"exited": False}})


for name, serve in (("qmp", monitor), ("agent", agent)):
    end = socket.socket(fileno=fd_of(name))
    threading.Thread(target=serve, args=(end,), daemon=True).start()
try:
    threading.Event().wait()
except KeyboardInterrupt:
    os._exit(0)
