# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Bundles and large segments on the wire: between devices that agree, and nowhere else."""

import contextlib

import pytest

from lab import capture, content, verbs, wait_for
from lab.link import FULL, Link, qhca_links
from lab.netdev import copy, statistics

MTU = 4096
MOST = 32768                # octets of payload in a bundle, unless properties say otherwise
PEERS = 0x88B5
SEGMENTS = "eth_tx_packets", "eth_rx_packets"   # of the sender and of the receiver
# What is in front of a packet's payload, and behind it: IPv6, UDP, BTH, RETH, ICRC.
OVERHEAD = 40 + 8 + 12 + 16 + 4
RUNS = ("-t rc -m 4096 -q 4 -S 65536 -n 20 -s 1", "-t uc -m 1024 -q 2 -S 65536 -n 20 -s 2",
        "-t xrc -q 3 -S 32768 -n 20 -s 3")
# Properties of the two devices, and the octets that their bundles have at most; 0: none.
PROPS = {"both": (None, MOST), "one": ((None, {"max-bundle": 0}), 0),
         **({"small": (({"max-bundle": 8192}, None), 8192)} if FULL else {})}


@pytest.fixture(scope="module", params=PROPS)
def case(request):
    if not any(link.wire == "stream" for link in qhca_links()):
        pytest.skip("a slot of shared memory has room for one packet")
    return PROPS[request.param]


@pytest.fixture
def two(case, pairs):
    props, most = case
    pair = pairs.get("qhca", "qhca", wire="stream", **({"props": props} if props else {}))
    with content(*pair):
        if most:
            # Where many packets were lost, the devices wait for some seconds.
            wait_for(lambda: agreed(pair), 60 * pair.a.patience, "bundles both ways")
        yield pair, most


def agreed(pair):
    """Have both devices sent bundles in a run?"""
    before = [node.adapter_counters()["bundles_sent"] for node in pair]
    verbs.perftest(*pair, "ib_write_bw", "-s 65536 -n 20 -b")
    return all(node.adapter_counters()["bundles_sent"] > was for node, was in zip(pair, before))


def sizes(file):
    """Octets of UDP payload of each RoCE frame; and how many frames asked or answered."""
    lengths = [len(frame.bth) for frame in capture.frames(file)]
    return lengths, sum(data[12:14] == PEERS.to_bytes(2) for data in capture.raw(file))


@contextlib.contextmanager
def watched(pair, folder):
    """Captures both ends, and yields a list that gets their counters' increases."""
    moved = []
    before = [node.counters() for node in pair]
    with pair.capture(folder):
        yield moved
    moved += [{name: value - was[name] for name, value in node.counters().items()}
              for node, was in zip(pair, before)]


def test_data(two, tmp_path):
    """Every byte arrives, in fewer frames, none of which is longer than both ends take. What
    the devices count are packets."""
    pair, most = two
    with watched(pair, tmp_path) as moved:
        for run in RUNS:
            verbs.verify(*pair, run, timeout=300)
        verbs.perftest(*pair, "ib_read_bw", "-s 1048576 -n 10")
    for node, counts in zip(pair, moved):
        lengths, asked = sizes(tmp_path / f"{node.name}.pcap")
        assert max(lengths) <= max(most, MTU) + OVERHEAD
        long = [n for n in lengths if n > MTU + OVERHEAD]
        packets = counts["tx_packets"] + counts["rx_packets"]
        print(node.name, len(lengths), "frames,", packets, "packets,", len(long), "long")
        assert counts["rx_icrc_errors"] == counts["rx_malformed"] == 0
        if most:
            assert max(lengths) > most - MTU and asked >= 4
            assert len(lengths) + len(long) <= packets
        else:
            assert not long and packets == len(lengths)


def test_recovery(two, tmp_path):
    """Packets of bundles are lost one by one, and are sent again."""
    pair, most = two
    received = pair.b.adapter_counters()["bundles_received"]
    with watched(pair, tmp_path) as moved:
        pair.b.inject({"inject-drop-ppm": 500})
        try:
            verbs.verify(*pair, "-t rc -m 1024 -q 2 -S 65536 -n 100 -s 4 -o 20", timeout=600)
        finally:
            pair.b.inject({"inject-drop-ppm": 0})
    assert (pair.b.adapter_counters()["bundles_received"] > received + 10) == bool(most)
    assert moved[1]["inject_dropped"]
    assert moved[0]["retransmitted_packets"]


def large(pair):
    return (pair.a.adapter_counters()["large_segments_sent"],
            pair.b.adapter_counters()["large_segments_received"])


@contextlib.contextmanager
def with_mtu(pair, mtu):
    try:
        for node in pair:
            node.exec(f"ip link set {node.netif} mtu {mtu}")
        yield
    finally:
        for node in pair:
            node.configure()


@pytest.mark.parametrize("address, protocol, mtu", [("ip4", "ip", 4200), ("ip6", "ipv6", 1500)])
def test_tcp(two, tmp_path, address, protocol, mtu):
    """Segments of TCP stay together on the wire, where tshark finds nothing wrong with them, and
    what the receiver's kernel gets is what the sender's has sent."""
    pair, most = two
    errors = "awk '/^Tcp:/ { print $NF }' /proc/net/snmp | tail -1"
    file, to = tmp_path / "a.pcap", getattr(pair.b, address)
    with with_mtu(pair, mtu):
        copy(pair.a, pair.b, to)                        # which may lead to the agreement
        before = [statistics(node)[name] for node, name in zip(pair, SEGMENTS)]
        (sent, received), wrong = large(pair), pair.b.out(errors)
        with pair.capture(tmp_path):
            copy(pair.a, pair.b, to)
        sent, received = (now - was for now, was in zip(large(pair), (sent, received)))
        segments = [statistics(node)[name] - was
                    for node, name, was in zip(pair, SEGMENTS, before)]
        assert pair.b.out(errors) == wrong
    lengths = [int(length) for length, in capture.tshark(
        file, f"tcp && {protocol}.dst == {to}", "frame.len")]
    long = [length for length in lengths if length > mtu + 14]
    print(len(lengths), "frames,", len(long), "long, the longest", max(lengths))
    # 0xffff is another 0, which the device stores and tshark complains about.
    bad = ('tcp.checksum.status == "Bad" && tcp.checksum != 0xffff || '
           'ip.checksum.status == "Bad" || _ws.malformed')
    # The payload is random, and now and then begins as that of a protocol tshark knows.
    checks = ("-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE",
              "-d", "tcp.port==1-65535,data")
    assert not capture.tshark(file, bad, options=checks)
    assert sent == received == len(long) and bool(long) == bool(most)
    assert max(lengths) <= max(most + 118, mtu + 14)
    assert not most or max(lengths) > min(16000, most // 2)
    assert min(segments) >= (8 << 20) // mtu        # which is what the drivers count


def test_others(pairs, tmp_path):
    """Soft-RoCE gets packets from the device, and hardly a question."""
    link = Link(("qhca", "rxe"))
    pair = pairs.get(*link.kinds, **link.options)
    # The device forgets what others have asked of the peer.
    pair.a.set_link(False)
    pair.a.set_link(True)
    pair.wait_link()
    with pair.capture(tmp_path):
        for _ in range(5):
            verbs.perftest(pair.b, pair.a, "ib_write_bw", "-s 65536 -n 100")
        verbs.perftest(pair.a, pair.b, "ib_read_bw", "-s 65536 -n 100")
    lengths, asked = sizes(tmp_path / "a.pcap")
    assert max(lengths) <= MTU + OVERHEAD
    # At 0, 1, 3, 7, 15, 31, 63 and 127 s, with messages: who has never answered is not asked
    # again because a QP connects.
    assert 1 <= asked <= 8


def test_decodes(two, tmp_path):
    """A capture's bundles are packets to tshark, which it finds nothing wrong with."""
    pair, most = two
    with pair.capture(tmp_path):
        verbs.perftest(*pair, "ib_write_bw", "-s 100001 -n 20")
    file = tmp_path / "a.pcap"
    rows = capture.tshark(file, "infiniband.bth.opcode && !_ws.malformed", "frame.len")
    assert len(rows) == len(list(capture.frames(file)))
    assert all(frame.icrc == frame.expected_icrc() for frame in capture.frames(file))
    # 25 packets a message, whatever the frames.
    sent = [frame for frame in capture.packets(file) if frame.opcode & 0x1F in range(0x06, 0x0B)]
    assert len({frame.psn for frame in sent}) == 20 * 25
    assert (max(int(row[0]) for row in rows) > MTU + OVERHEAD + 14) == bool(most)
