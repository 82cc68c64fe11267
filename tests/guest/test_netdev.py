# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The Ethernet side between two guests, alone and beside RDMA."""

import re

import pytest

from lab import content, paths, verbs
from lab.netdev import copy, statistics


@pytest.fixture(scope="module")
def pair(pairs, wire):
    return pairs.get("qhca", "qhca", wire=wire)


@pytest.fixture
def ends(pair):
    with content(*pair):
        yield pair.a, pair.b


def adapter(node):
    """The counters that the host keeps of the node's device."""
    (info,) = node.qmp("query-qhca")
    return {counter["name"]: counter["value"] for counter in info["adapter"]}


def test_ping(ends):
    a, b = ends
    for address in (b.ip4, b.ip6):
        assert " 0% packet loss" in a.out(f"ping -c 5 -i 0.02 -W 30 {address}")
    # The largest frame, and one in fragments.
    a.exec(f"ping -c 2 -i 0.02 -W 30 -M do -s {a.mtu - 28} {b.ip4}")
    a.exec(f"ping -c 2 -i 0.02 -W 30 -s 20000 {b.ip4}")


def test_tcp(ends):
    a, b = ends
    before = statistics(b)
    copy(a, b, b.ip4)
    copy(b, a, a.ip6)
    after = statistics(b)
    assert after["eth_rx_bytes"] - before["eth_rx_bytes"] > 8 << 20
    assert after["eth_tx_bytes"] - before["eth_tx_bytes"] > 8 << 20
    assert after["rxq0_csum_verified"] > before["rxq0_csum_verified"]


# What counts only if an allocation, a DMA mapping or the device fails.
FAILURES = ("txq0_dropped", "txq0_map_errors", "rxq0_dropped", "rxq0_truncated",
            "rxq0_alloc_failures", "drv_command_timeouts", "drv_command_events_lost")


def test_ring_counters(ends):
    """The driver counts frames as they pass its rings, and stops of the transmit queue."""
    a, b = ends
    before = statistics(a), statistics(b)
    copy(a, b, b.ip4)
    after = statistics(a), statistics(b)
    sent, received = ({name: now[name] - was[name] for name in now}
                      for now, was in zip(after, before))
    assert sent["txq0_bytes"] > 8 << 20 and received["rxq0_bytes"] > 8 << 20
    for more, ring in ((sent, "txq0_packets"), (received, "rxq0_packets")):
        assert more[ring] >= (8 << 20) // a.mtu
    assert sent["txq0_csum_offloaded"] >= (8 << 20) // a.mtu
    assert sent["txq0_stopped"] <= sent["txq0_packets"]
    assert sent["txq0_tso"] > 0 and sent["eth_tx_tso"] > 0
    for more in (sent, received):
        assert {name: more[name] for name in FAILURES} == dict.fromkeys(FAILURES, 0)


def segmented(a, b, address, kib=4096):
    """How many frames the device of `a` segments while `a` sends."""
    before = statistics(a)
    copy(a, b, address, kib)
    after = statistics(a)
    assert after["eth_tx_errors"] == before["eth_tx_errors"]
    return after["eth_tx_tso"] - before["eth_tx_tso"]


def test_segmentation(ends):
    """The stack gives the device frames to segment, unless it is told not to."""
    a, b = ends
    for address in (b.ip4, b.ip6):
        assert segmented(a, b, address) > 0
    try:
        a.exec(f"ethtool -K {a.netif} tso off")
        assert segmented(a, b, b.ip4) == 0
        # Many small segments of each frame.
        a.exec(f"ethtool -K {a.netif} tso on; ip route add {b.ip4} dev {a.netif} mtu lock 200")
        assert segmented(a, b, b.ip4, 512) > 0
    finally:
        a.exec(f"ethtool -K {a.netif} tso on; ip route del {b.ip4} dev {a.netif}", check=False)


def test_merged_frame(ends):
    """A frame that an adapter has merged, whose checksum is complete, arrives in segments
    (kernel/qhca_test_merged.c)."""
    a, b = ends
    name = "qhca_test_merged"
    a.push(paths.BUILD / "modules" / a.release / f"{name}.ko", f"/tmp/{name}.ko")
    before = statistics(a)
    waits = [(node, f"[ $(cat {path}) -ge {int(node.out(f'cat {path}')) + 2000} ]")
             for node, path in ((a, f"/sys/class/net/{a.netif}/statistics/tx_bytes"),
                                (b, f"/sys/class/net/{b.netif}/statistics/rx_bytes"))]
    a.exec(f"insmod /tmp/{name}.ko netdev={a.netif} && rmmod {name}")
    for node, condition in waits:
        assert statistics(a)["eth_tx_errors"] == before["eth_tx_errors"]
        node.wait_until(condition)


def test_jumbo_frames(ends):
    a, b = ends
    try:
        for node in ends:
            node.exec(f"ip link set {node.netif} mtu 9000")
        a.exec(f"ping -c 2 -i 0.02 -W 30 -M do -s {9000 - 28} {b.ip4}")
        copy(a, b, b.ip4)
        verbs.pingpong(a, b, "rc", "-n 50 -m 4096 -c")
    finally:
        for node in ends:
            node.configure()


def test_vlan(ends):
    a, b = ends
    addresses = {a: "10.97.0.1", b: "10.97.0.2"}
    for node, address in addresses.items():
        node.exec(f"modprobe 8021q; ip link add link {node.netif} name v9 type vlan id 9 && "
                  f"ip addr add {address}/24 dev v9 && ip link set v9 up")
    try:
        a.wait_until(f"ping -c 1 -W 1 {addresses[b]}")
        assert segmented(a, b, addresses[b], 1024) > 0
        # The guest inserts the tag, and the device finds the headers behind it.
        a.exec(f"ethtool -K {a.netif} txvlan off")
        assert segmented(a, b, addresses[b], 1024) > 0
    finally:
        a.exec(f"ethtool -K {a.netif} txvlan on")
        for node in ends:
            node.exec("ip link del v9")


# An option of IPv6 that nobody knows, 168 bytes: 254 bytes of headers with one tag, and 258 with two.
LONG_HEADERS = """
import socket, sys
s = socket.socket(socket.AF_INET6)
s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_DSTOPTS, bytes([0, 20, 30, 164]) + bytes(164))
s.connect((sys.argv[1], int(sys.argv[2])))
s.sendall(open("/tmp/data", "rb").read())
s.shutdown(socket.SHUT_WR)
s.recv(1)
"""


def test_vlan_in_vlan(ends):
    """Neither of two tags in the data counts in the MTU, or in the headers that may be long."""
    a, b = ends
    four, six = {a: "10.97.1.1", b: "10.97.1.2"}, {a: "fd97::1", b: "fd97::2"}
    for node in ends:
        node.exec(f"ip link add link {node.netif} name s9 type vlan proto 802.1ad id 9 && "
                  f"ip link add link s9 name s9.20 type vlan id 20 && ip link set s9 up && "
                  f"ip addr add {four[node]}/24 dev s9.20 && "
                  f"ip addr add {six[node]}/64 dev s9.20 nodad && "
                  f"ip addr add {six[node].replace('97', '98')}/64 dev s9 nodad && "
                  f"ip link set s9.20 up")
    try:
        a.wait_until(f"ping -c 1 -W 1 {four[b]}")
        before = statistics(a)
        a.exec(f"ping -c 2 -i 0.02 -W 30 -M do -s {a.mtu - 28} {four[b]}")
        copy(a, b, four[b], 1024)
        a.exec("cat > /tmp/headers.py", stdin=LONG_HEADERS)
        for address in six[b], six[b].replace("97", "98"):
            port = verbs.next_port()
            receiver = b.spawn(f"busybox nc -l -p {port} | sha256sum")
            b.wait_until(verbs.listening(port))
            a.exec(f"python3 /tmp/headers.py {address} {port}", timeout=90)
            assert receiver.wait(60).out == a.out("sha256sum < /tmp/data") + "\n"
        assert statistics(a)["eth_tx_errors"] == before["eth_tx_errors"]
    finally:
        for node in ends:
            node.exec("ip link del s9")


def test_driver_information(ends):
    for node in ends:
        info = node.out(f"ethtool -i {node.netif}")
        assert re.search(r"^driver: qhca$", info, re.M)
        assert re.search(r"^bus-info: 0000:", info, re.M)


def test_raw_packets(ends, tap_points):
    """Raw packet QPs beside the interface, which has what no rule takes
    (programs/ethernet/raw.c)."""
    done = verbs.program(*ends, "qhca-raw", timeout=120, check=False)
    assert done.server.ok, f"{done.client}\n{done.server}"
    tap_points(done.client.out + done.client.err, done.client.code)


def test_under_full_load(ends):
    """RDMA at full speed leaves room for ping, the console and processes."""
    a, b = ends
    port = verbs.next_port()
    options = f"-p {port} -F -s 65536 -q 4 -D 600 -u {verbs.ACK_TIMEOUT}"
    server = b.spawn(f"exec ib_write_bw -d {b.ibdev} -x {b.gid_index()} {options}")
    client = None
    try:
        b.wait_until(verbs.listening(port))
        client = a.spawn(f"exec ib_write_bw -d {a.ibdev} -x {a.gid_index()} {options} {b.ip4}")
        b.wait_until(f"[ $(cat /sys/class/infiniband/{b.ibdev}/ports/1/hw_counters/rx_packets) "
                     f"-gt {b.counters()['rx_packets'] + 1000} ]")
        before = a.counters()["tx_packets"]
        worked = adapter(a)
        assert " 0% packet loss" in a.out(f"ping -c 10 -i 0.1 -W 30 {b.ip4}")
        for node in ends:
            node.exec("echo under load > /dev/ttyS0")
            node.wait_console("under load", 60)
            node.exec("true")
        copy(a, b, b.ip4, 256)
        assert client.poll() is None and server.poll() is None
        assert a.counters()["tx_packets"] > before + 1000
        more = {name: value - worked[name] for name, value in adapter(a).items()}
        # Frames in shared memory wait where they are.
        deferred = [] if isinstance(a.ports[0].netdev, dict) else ["frames_deferred"]
        assert [name for name in ("slices", "thread_slices", "frames_sent", "frames_received", *deferred)
                if not more[name]] == []
        # After long yields up to 1,024 doorbells skip it, and these may be all of this test.
        assert adapter(a)["yields"] > 0
        assert more["thread_slices"] <= more["slices"], more
        assert more["long_yields"] <= more["yields"], more
        # Without poll-max-us the device's thread goes to sleep at once; in shared memory it
        # may poll in the place of a halted vCPU.
        assert isinstance(a.ports[0].netdev, dict) or more["thread_polls"] == 0, more
        assert adapter(a)["thread_sleeps"] > 0
    finally:
        for process in (client, server):
            if process and process.poll() is None:
                process.kill()
                process.wait(60, check=False)
