# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Prints what the kernel's netlink family "netdev" says of an interface.

Lines: `queue TYPE NUMBER napi ID`, `napi ID irq NUMBER`, and `stats TYPE NUMBER
PACKETS BYTES`. A guest has no tool of its own for this.
"""

import socket
import struct
import sys

GENERIC, CONTROL = 16, 0x10
REQUEST, DUMP = 1, 0x300
ERROR, DONE = 2, 3
QUEUE_GET, NAPI_GET, QSTATS_GET = 10, 11, 12
TYPES = ("rx", "tx")


def attributes(data):
    found = {}
    while len(data) >= 4:
        length, kind = struct.unpack_from("HH", data)
        found[kind & 0x3fff] = data[4:length]
        data = data[(length + 3) & ~3:]
    return found


def attribute(kind, value):
    body = struct.pack("HH", 4 + len(value), kind) + value
    return body + bytes(-len(body) % 4)


def ask(sock, family, flags, command, *attrs):
    """The attributes of each message of the answer."""
    body = struct.pack("BBH", command, 1, 0) + b"".join(attrs)
    sock.send(struct.pack("IHHII", 16 + len(body), family, REQUEST | flags, 1, 0) + body)
    while True:
        data = sock.recv(65536)
        while data:
            length, kind = struct.unpack_from("IH", data)
            if kind == ERROR:
                sys.exit(f"netlink: error {-struct.unpack_from('i', data, 16)[0]}")
            if kind == DONE:
                return
            yield attributes(data[20:length])
            data = data[(length + 3) & ~3:]
        if not flags:
            return


def number(value):
    return int.from_bytes(value, sys.byteorder)


def main():
    index = struct.pack("I", socket.if_nametoindex(sys.argv[1]))
    sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, GENERIC)
    family = number(next(ask(sock, CONTROL, 0, 3, attribute(2, b"netdev\0")))[1])
    for queue in ask(sock, family, DUMP, QUEUE_GET, attribute(2, index)):
        print("queue", TYPES[number(queue[3])], number(queue[1]), "napi",
              number(queue.get(4, b"")))
    for napi in ask(sock, family, DUMP, NAPI_GET, attribute(1, index)):
        print("napi", number(napi[2]), "irq", number(napi.get(3, b"")))
    scope = attribute(4, struct.pack("I", 1))
    for stats in ask(sock, family, DUMP, QSTATS_GET, attribute(1, index), scope):
        kind = number(stats[2])
        print("stats", TYPES[kind], number(stats[3]), number(stats[8 + 2 * kind]),
              number(stats[9 + 2 * kind]))


main()
