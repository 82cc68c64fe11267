# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What is on the wire, as others read it: tshark's decoding, and an ICRC
that shares no code with the engine's (lab/capture.py)."""

import pytest

from lab import capture, verbs

pytestmark = pytest.mark.ours

# One run of each kind of packet; small, as every frame is kept.
RUNS = (
    ("ib_write_bw", "-s 10001 -n 5"), ("ib_read_bw", "-s 10001 -n 5"),
    ("ib_send_bw", "-s 10001 -n 5"), ("ib_send_lat", "-s 8 -n 20"),
    ("ib_write_lat", "-s 1 -n 20"), ("ib_read_lat", "-s 3 -n 20"),
    ("ib_atomic_lat", "-A FETCH_AND_ADD -n 20"), ("ib_atomic_lat", "-A CMP_AND_SWAP -n 20"),
    ("ib_write_bw", "-c UC -s 10001 -n 5"), ("ib_send_bw", "-c UC -s 10001 -n 5"),
    ("ib_send_bw", "-c UD -s 1024 -n 5"), ("ib_write_bw", "-m 256 -s 3000 -n 5"),
    ("ib_write_bw", "-R -n 20"),
)

# What those must have put on the wire.
EXPECTED = {
    0x00: "RC SEND first", 0x01: "RC SEND middle", 0x02: "RC SEND last", 0x04: "RC SEND only",
    0x06: "RC WRITE first", 0x07: "RC WRITE middle", 0x08: "RC WRITE last", 0x0A: "RC WRITE only",
    0x0C: "RC READ request", 0x0D: "RC READ response first", 0x0F: "RC READ response last",
    0x10: "RC READ response only", 0x11: "RC ACK", 0x12: "RC atomic ACK",
    0x13: "RC CMP and SWAP", 0x14: "RC FETCH and ADD", 0x20: "UC SEND first",
    0x26: "UC WRITE first", 0x64: "UD SEND only",
}


@pytest.fixture(scope="module")
def captures():
    return {}


@pytest.fixture
def captured(link, linked, ends, captures, tmp_path_factory):
    """(a.pcap, b.pcap) of all those runs between two guests."""
    if link not in captures:
        folder = tmp_path_factory.mktemp("capture")
        with linked.capture(folder):
            for test, options in RUNS:
                verbs.perftest(*ends, test, options)
            # Immediates, SRQs, many sizes, and IPv6.
            verbs.verify(*ends, "-t rc -n 10 -s 1")
            verbs.verify(*ends, "-t uc -n 10 -s 2", ip=6)
            verbs.verify(*ends, "-t ud -n 10 -s 3", ip=6)
        captures[link] = folder / "a.pcap", folder / "b.pcap"
    return captures[link]


def test_icrc(captured):
    for path in captured:
        count = 0
        for frame in capture.frames(path):
            count += 1
            assert frame.icrc == frame.expected_icrc(), \
                f"{path.name}, frame {frame.number}: opcode {frame.opcode:#x} " \
                f"has ICRC {frame.icrc:08x}, not {frame.expected_icrc():08x}"
        assert count > 1000, f"{path.name} has {count} RoCEv2 packets only"


def test_opcodes(captured):
    for path in captured:
        seen = capture.summary(path)
        missing = [name for opcode, name in EXPECTED.items() if not seen[opcode]]
        assert not missing, f"{path.name} lacks {missing}"
        unknown = {hex(opcode) for opcode in seen if opcode not in capture.OPCODES}
        assert not unknown, f"{path.name} has opcodes {unknown}"


def test_tshark(captured):
    """No frame is malformed, in error, or on RoCE's port and not decoded.

    tshark takes some payloads for other protocols' (a message of eight bytes for
    RPC over RDMA) and finds those wanting; such a layer follows infiniband's.
    """
    bad = ("((_ws.malformed || _ws.expert.severity == error)"
           " && !(frame.protocols contains \"infiniband:\")) || "
           f"(udp.dstport == {capture.ROCE_PORT} && !infiniband.bth.opcode)")
    for path in captured:
        rows = capture.tshark(path, bad, "frame.number", "_ws.col.Info")
        assert not rows, f"{path.name}: {rows[:5]}"
        known = capture.tshark(path, "infiniband.bth.opcode", "frame.number")
        assert len(known) == sum(capture.summary(path).values())
