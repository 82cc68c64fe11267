# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""One end of an RDS socket; both check all that they receive.

    stream.py server ADDRESS PORT BYTES
    stream.py client ADDRESS PORT BYTES OWN-ADDRESS

The server sends back what it receives. It creates /tmp/stream.listens when it is ready;
its caller sees to it that there is none before.
"""

import socket
import sys

role, address, port, size = sys.argv[1:5]
port, size = int(port), int(size)
READY = "/tmp/stream.listens"
AF_RDS, PIECE = 21, 16384


def data(n):
    """Pieces of 64 bytes, each with its number."""
    return b"".join(b"%063d\n" % at for at in range(-(-n // 64)))[:n]


def ready():
    open(READY, "w").close()


def server():
    sock = socket.socket(AF_RDS, socket.SOCK_SEQPACKET, 0)
    sock.bind((address, port))
    ready()
    got = bytearray()
    while len(got) < size:
        piece, peer = sock.recvfrom(PIECE)
        got += piece
        sock.sendto(piece, peer)
    return bytes(got)


def client():
    sock = socket.socket(AF_RDS, socket.SOCK_SEQPACKET, 0)
    sock.bind((sys.argv[5], port))
    got, sent = bytearray(), data(size)
    for at in range(0, size, PIECE):
        sock.sendto(sent[at:at + PIECE], (address, port))
        got += sock.recvfrom(PIECE)[0]
    return bytes(got)


received = server() if role == "server" else client()
if received != data(size):
    sys.exit("wrong data")
print("all data right")
