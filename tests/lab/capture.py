# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Captures of a link: RoCEv2 frames, their invariant CRC, and tshark's view of them.

The CRC is computed here with zlib's CRC-32 from the InfiniBand Architecture
Specification, annex A17, and shares nothing with the engine's.
"""

import collections
import shutil
import struct
import subprocess
import zlib
from dataclasses import dataclass, replace

ROCE_PORT = 4791
ETH_VLAN, ETH_IPV4, ETH_IPV6 = 0x8100, 0x0800, 0x86DD

# Base transport opcodes of the services there are: RC, UC, UD, XRC, CNP.
OPCODES = frozenset([*range(0x00, 0x18), 0x1C, 0x1D, *range(0x20, 0x2C), 0x64, 0x65, 0x81,
                     *range(0xA0, 0xB8)])


class CaptureError(Exception):
    """The file is not a capture, or tshark cannot read it."""


@dataclass(frozen=True)
class Frame:
    """A RoCEv2 packet of a capture; number counts the file's frames from 1."""
    number: int
    time: float             # seconds since the epoch
    ip: bytes               # the IP packet, from its header to the ICRC
    l3: int                 # length of the IP header
    source: bytes           # IP address

    @property
    def bth(self):
        return self.ip[self.l3 + 8:]

    @property
    def opcode(self):
        return self.bth[0]

    @property
    def dest_qp(self):
        return int.from_bytes(self.bth[5:8], "big")

    @property
    def psn(self):
        return int.from_bytes(self.bth[9:12], "big")

    @property
    def icrc(self):
        return int.from_bytes(self.ip[-4:], "little")

    def expected_icrc(self):
        """The CRC over the packet, with ones in all fields that routers may change."""
        covered = bytearray(b"\xff" * 8 + self.ip[:-4])     # 8: where a link header would be
        ip, udp = 8, 8 + self.l3
        if self.l3 == 40:
            covered[ip] |= 0x0F                             # traffic class, flow label
            covered[ip + 1:ip + 4] = b"\xff" * 3
            covered[ip + 7] = 0xFF                          # hop limit
        else:
            covered[ip + 1] = 0xFF                          # type of service
            covered[ip + 8] = 0xFF                          # time to live
            covered[ip + 10:ip + 12] = b"\xff" * 2          # checksum
        covered[udp + 6:udp + 8] = b"\xff" * 2              # checksum
        covered[udp + 8 + 4] = 0xFF                         # BTH: FECN, BECN, reserved
        return zlib.crc32(covered)


def _packet(data):
    """(IP packet without padding, header length, source) of a RoCEv2 frame, or None"""
    kind, at = struct.unpack_from("!H", data, 12)[0], 14
    if kind == ETH_VLAN:
        kind, at = struct.unpack_from("!H", data, 16)[0], 18
    if kind == ETH_IPV4 and data[at + 9] == 17:
        l3, source = (data[at] & 15) * 4, data[at + 12:at + 16]
        length = struct.unpack_from("!H", data, at + 2)[0]
    elif kind == ETH_IPV6 and data[at + 6] == 17:
        l3, source = 40, data[at + 8:at + 24]
        length = 40 + struct.unpack_from("!H", data, at + 4)[0]
    else:
        return None
    if struct.unpack_from("!H", data, at + l3 + 2)[0] != ROCE_PORT:
        return None
    return data[at:at + length], l3, source


def _records(path):
    """(number, time, frame) of each frame of a file that QEMU's filter-dump wrote."""
    with open(path, "rb") as f:
        head = f.read(24)
        if len(head) != 24 or struct.unpack_from("=IHH", head)[0] != 0xA1B2C3D4:
            raise CaptureError(f"{path} is no capture with microseconds in this machine's order")
        number = 0
        while record := f.read(16):
            seconds, micro, kept, whole = struct.unpack("=IIII", record)
            data = f.read(kept)
            number += 1
            # The last record may be cut off when QEMU is killed.
            if len(data) < kept:
                return
            if kept != whole:
                raise CaptureError(f"{path}: frame {number} was not kept whole")
            yield number, seconds + micro / 1e6, data


def frames(path):
    """Each RoCEv2 Frame of a file that QEMU's filter-dump wrote."""
    for number, time, data in _records(path):
        if len(data) > 42 and (found := _packet(data)):
            yield Frame(number, time, *found)


# The opcodes of a message's packets: first, middle, last, only.
MESSAGES = (0x00, 0x01, 0x02, 0x04), (0x06, 0x07, 0x08, 0x0A), (0x0D, 0x0E, 0x0F, 0x10)
RETH, AETH, XRCETH = 16, 4, 4
HEADERS = {0x06: RETH, 0x0A: RETH, 0x0D: AETH, 0x0F: AETH, 0x10: AETH}


def packets(path):
    """The same, with a bundle (hardware.rst) taken apart: its packets have no ICRC of their own."""
    for frame in frames(path):
        bth, code = frame.bth, frame.bth[8] & 0x7F
        service, operation = bth[0] & 0xE0, bth[0] & 0x1F
        if bth[1] & 0x0F != 1:
            yield frame
            continue
        opcodes = next(ops for ops in MESSAGES if operation in ops)
        begins, ends = operation in opcodes[::3], operation in opcodes[2:]
        head = 12 + HEADERS.get(operation, 0) + (XRCETH if service == 0xA0 else 0)
        payload, each = bth[head:-4], 256 << (code - 1)
        for i, at in enumerate(range(0, len(payload), each)):
            first, last = begins and i == 0, ends and at + each >= len(payload)
            opcode = opcodes[{(True, False): 0, (False, False): 1, (False, True): 2,
                              (True, True): 3}[first, last]]
            own = (bytes([service | opcode, bth[1] & 0xF0]) + bth[2:9] + ((frame.psn + i) & 0xFFFFFF).to_bytes(3, "big")
                   + bth[12:head] + payload[at:at + each] + bytes(4))
            yield replace(frame, ip=frame.ip[:frame.l3 + 8] + own)


def raw(path):
    """The octets of each frame, of whatever protocol."""
    for _, _, data in _records(path):
        yield data


# Milliseconds of the RNR timer's codes (table 45 of the specification).
RNR_TIMER = (655.36, 0.01, 0.02, 0.03, 0.04, 0.06, 0.08, 0.12, 0.16, 0.24, 0.32, 0.48, 0.64, 0.96,
             1.28, 1.92, 2.56, 3.84, 5.12, 7.68, 10.24, 15.36, 20.48, 30.72, 40.96, 61.44, 81.92,
             122.88, 163.84, 245.76, 327.68, 491.52)
ACK, REQUESTS = 0x11, frozenset([*range(0x00, 0x0D), 0x13, 0x14])


@dataclass
class Wait:
    """A requester received an RNR NAK, and sends nothing but what it had begun to send."""
    psn: int                # of the NAK
    code: int               # of its timer
    since: float
    acked: float = None     # when an ACK of the PSN before came
    until: float = None     # when the requester went on; None: it did not
    again: int = None       # with this PSN

    @property
    def timer(self):
        return RNR_TIMER[self.code] / 1000


def rnr_waits(found, requester):
    """Each Wait of the one QP of a requester (an IP address), among frames of it and its peer."""
    wait, sent = None, None
    for f in found:
        if f.source != requester:
            if f.opcode != ACK:
                continue
            kind, value = f.bth[12] >> 5, f.bth[12] & 31
            if kind == 1 and wait is None:
                wait = Wait(f.psn, value, f.time)
            elif kind == 0 and wait and f.psn == (wait.psn - 1) & 0xFFFFFF:
                wait.acked = f.time
        elif f.opcode in REQUESTS:
            if wait and f.psn != (sent + 1) & 0xFFFFFF:
                wait.until, wait.again = f.time, f.psn
                yield wait
                wait = None
            sent = f.psn
    if wait:
        yield wait


def tshark(path, display_filter, *fields, options=()):
    """Rows of fields (strings) of the frames that a filter of tshark's selects."""
    tool = shutil.which("tshark")
    if not tool:
        raise CaptureError("no tshark: make setup installs it")
    # RoCEv2 leaves the UDP checksum at zero over IPv6 as well (RFC 6935).
    argv = [tool, "-n", "-o", "udp.ignore_ipv6_zero_checksum:TRUE", *options,
            "-r", str(path), "-Y", display_filter, "-T", "fields"]
    for field in fields or ("frame.number",):
        argv += ["-e", field]
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise CaptureError(f"tshark on {path}: {done.stderr.strip()}")
    return [line.split("\t") for line in done.stdout.splitlines()]


def summary(path):
    """{opcode: packets} of a capture"""
    return collections.Counter(f.opcode for f in frames(path))
