# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Stands in for the server of ibv_rc_pingpong, and gives the client a QP of the caller's choice.

    stand-in.py PORT QPN GID

QPN is a number, and GID is in hexadecimal, without colons. It ends when the client does.
"""

import socket
import sys

port, qpn, gid = sys.argv[1:]
with socket.create_server(("", int(port))) as listener:
    client, _ = listener.accept()
    with client:
        # The LID, the QPN, the PSN and the GID, as a text with its NUL.
        answer = f"0000:{int(qpn):06x}:000000:{gid}".encode() + b"\0"
        client.recv(len(answer), socket.MSG_WAITALL)
        client.sendall(answer)
        while client.recv(64):
            pass
