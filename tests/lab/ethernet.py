# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Frames that a test writes itself, whatever their source claims to be."""

import ipaddress
import pathlib
import struct

ROCE_PORT = 4791
LOCAL = 0x88B5          # an EtherType for experiments

SENDER = pathlib.Path(__file__).parent / "scripts" / "send-frames.py"


def mac_bytes(mac):
    return bytes.fromhex(mac.replace(":", ""))


def frame(source, dest, payload=b"qhca".ljust(46, b"."), kind=LOCAL):
    return mac_bytes(dest) + mac_bytes(source) + struct.pack("!H", kind) + payload


def roce_frame(source, dest, source_ip, dest_ip):
    """A frame to the port of RoCEv2; what follows UDP is no packet of RDMA.

    Its end is not 0, for which a capture of shared memory would show the ICRC."""
    udp = struct.pack("!HHHH", 49152, ROCE_PORT, 8 + 32, 0) + bytes(range(32))
    head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 0, 0x4000, 64, 17, 0,
                       ipaddress.IPv4Address(source_ip).packed,
                       ipaddress.IPv4Address(dest_ip).packed)
    total = sum(struct.unpack("!10H", head))
    total = (total & 0xFFFF) + (total >> 16)
    checksum = ~(total + (total >> 16)) & 0xFFFF
    return frame(source, dest, head[:10] + struct.pack("!H", checksum) + head[12:] + udp, 0x0800)


def send(node, octets, count=10, seconds=0.01):
    """Sends a frame through a node's interface."""
    node.exec(["python3", "-c", SENDER.read_text(), node.netif, str(count), str(seconds),
               octets.hex()], timeout=60 + 2 * count * seconds)
