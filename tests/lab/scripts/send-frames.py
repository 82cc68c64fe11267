# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Sends a frame through an interface of a guest, as its owner has written it.

    send-frames.py INTERFACE COUNT SECONDS FRAME

FRAME is in hexadecimal; SECONDS pass between two frames.
"""

import socket
import sys
import time

interface, count, seconds, frame = sys.argv[1:]
with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sender:
    sender.bind((interface, 0))
    for _ in range(int(count)):
        sender.send(bytes.fromhex(frame))
        time.sleep(float(seconds))
