# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""One end of an SMC socket; both check all that they receive.

    smc.py server ADDRESS PORT BYTES
    smc.py client ADDRESS PORT BYTES

The server sends back what it receives. Version 2 of SMC-R, the only one for devices
without a GID of RoCE v1, connects systems that have a user EID in common. The program
adds one by generic netlink.
"""

import errno
import os
import socket
import struct
import sys

role, address, port, size = sys.argv[1:5]
port, size = int(port), int(size)
AF_SMC, PIECE = 43, 65536

# The kernel compares 32 bytes, and wants a null byte after them.
EID = b"QHCA".ljust(32) + b"\0"

NLMSG_ERROR, NLM_F_REQUEST, NLM_F_ACK = 2, 1, 4
GENL_ID_CTRL, CTRL_CMD_GETFAMILY, CTRL_ATTR_FAMILY_ID, CTRL_ATTR_FAMILY_NAME = 16, 3, 1, 2
SMC_NETLINK_ADD_UEID, SMC_NLA_EID_TABLE_ENTRY = 10, 1
HEADERS = 20            # of netlink and of generic netlink


def data(n):
    """Pieces of 64 bytes, each with its number."""
    return b"".join(b"%063d\n" % at for at in range(-(-n // 64)))[:n]


def ask(netlink, family, command, attribute, value):
    """Sends a command with one attribute; returns the type of the first answer and all its
    bytes. An answer that reports an error raises OSError."""
    padded = value + bytes(-len(value) % 4)
    message = struct.pack("=BBHHH", command, 1, 0, 4 + len(value), attribute) + padded
    netlink.send(struct.pack("=IHHII", 16 + len(message), family, NLM_F_REQUEST | NLM_F_ACK, 1, 0)
                 + message)
    answer = netlink.recv(65536)
    kind, error = struct.unpack_from("=4xH10xi", answer)
    if kind == NLMSG_ERROR and error:
        raise OSError(-error, os.strerror(-error))
    return kind, answer


def family_id(answer):
    """The identifier in the description of a family."""
    at = HEADERS
    while at < len(answer):
        length, kind = struct.unpack_from("=HH", answer, at)
        if kind == CTRL_ATTR_FAMILY_ID:
            return struct.unpack_from("=H", answer, at + 4)[0]
        at += length + -length % 4
    raise OSError(errno.ENOENT, "the kernel has no SMC")


def add_eid():
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 16) as netlink:
        netlink.bind((0, 0))
        _, answer = ask(netlink, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, CTRL_ATTR_FAMILY_NAME,
                        b"SMC_GEN_NETLINK\0")
        netlink.recv(65536)         # the acknowledgement
        try:
            ask(netlink, family_id(answer), SMC_NETLINK_ADD_UEID, SMC_NLA_EID_TABLE_ENTRY, EID)
        except FileExistsError:
            pass                    # it is there since the last run


def smc_socket():
    """Python knows no addresses of AF_SMC, which are those of AF_INET."""
    made = socket.socket(AF_SMC, socket.SOCK_STREAM, 0)
    return socket.socket(socket.AF_INET, socket.SOCK_STREAM, 0, fileno=made.detach())


def receive(sock, n):
    got = bytearray()
    while len(got) < n:
        piece = sock.recv(n - len(got))
        if not piece:
            sys.exit(f"the peer ended after {len(got)} of {n} bytes")
        got += piece
    return bytes(got)


def server():
    with smc_socket() as listener:
        listener.bind((address, port))
        listener.listen(1)
        sock, _ = listener.accept()
    got = bytearray()
    with sock:
        while len(got) < size:
            piece = receive(sock, min(PIECE, size - len(got)))
            got += piece
            sock.sendall(piece)
        sock.recv(1)                # the client has all and closes
    return bytes(got)


def client():
    got, sent = bytearray(), data(size)
    with smc_socket() as sock:
        sock.connect((address, port))
        for at in range(0, size, PIECE):
            piece = sent[at:at + PIECE]
            sock.sendall(piece)
            got += receive(sock, len(piece))
    return bytes(got)


add_eid()
received = server() if role == "server" else client()
if received != data(size):
    sys.exit("wrong data")
print("all data right")
