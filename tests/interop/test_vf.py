# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Virtual functions in network namespaces, as containers have them.

Guest a has four, and talks between them, to the physical function, and to guest b. Each
thing that "ip link set DEV vf N" can set has a test that fails if it does nothing.
"""

import pytest

from lab import capture, content, ethernet, verbs
from lab.functions import Functions

NUMBER = 4
STRANGER, BROADCAST = "52:54:00:99:99:99", "ff:ff:ff:ff:ff:ff"

# By the other guest's kind, with each number. Most take the first alone, and qhca: Soft-RoCE
# needs guests of its own.
BEYOND = [pytest.param(kind, number, marks=[pytest.mark.full] if number or kind == "rxe" else [])
          for kind in ("qhca", "rxe") for number in range(NUMBER)]


@pytest.fixture(scope="module")
def enabled(pairs, wire):
    """enabled(kind): a pair with that kind of other guest, and a's functions."""
    made = {}

    def get(kind):
        pair = pairs.get("qhca", kind, wire=wire, props=({"sriov-vfs": NUMBER}, None), memory=1536)
        if kind not in made or made[kind][0] is not pair:
            made[kind] = pair, Functions(pair.a).enable(NUMBER)
        return made[kind]

    yield get
    for pair, functions in made.values():
        if pair.a.running:
            functions.disable()


@pytest.fixture
def pair(enabled):
    found, _ = enabled("qhca")
    with content(*found):
        yield found


@pytest.fixture
def vfs(enabled, pair):
    return enabled("qhca")[1]


@pytest.fixture
def peer(pair):
    return pair.b


def transfers(server, client):
    """The programs of the acceptance: they check what they transfer, or how much."""
    verbs.rping(server, client)
    verbs.pingpong(server, client, "rc", "-n 200 -c")
    run = verbs.perftest(server, client, "ib_write_bw", "-s 65536 -n 200")
    verbs.measured(run, "bw")


def test_devices(vfs):
    """Each has a netdev, an RDMA device, and names and addresses of its own."""
    assert vfs.bound() == NUMBER + 1
    for values in ([vf.ibdev for vf in vfs], [vf.mac for vf in vfs],
                   [vf.guest.out(f"cat /sys/class/infiniband/{vf.ibdev}/node_guid") for vf in vfs]):
        assert len(set(values)) == NUMBER, values
    for vf in vfs:
        assert vf.out(f"cat /sys/class/net/{vf.netif}/address") == vf.mac
        assert vf.shown()["mac"] == vf.mac


def ends_within(pair, vfs, kind):
    return {"vf-vf": (vfs[0], vfs[1]), "pf-vf": (pair.a, vfs[2]), "vf-pf": (vfs[3], pair.a)}[kind]


@pytest.mark.parametrize("kind", ["vf-vf", "pf-vf", pytest.param("vf-pf", marks=pytest.mark.full)])
def test_within(pair, vfs, kind, tmp_path):
    """Nothing that is for another function reaches the wire."""
    server, client = ends_within(pair, vfs, kind)
    before = server.counters()["switched_packets"]
    with pair.a.capture(tmp_path / "wire.pcap"):
        transfers(server, client)
    assert server.counters()["switched_packets"] > before + 200
    ends = {ethernet.mac_bytes(node.mac) for node in (server, client)}
    seen = [f.hex() for f in capture.raw(tmp_path / "wire.pcap") if f[:6] in ends]
    assert not seen, f"{len(seen)} frames on the wire, the first: {seen[0]}"


@pytest.mark.parametrize("kind, number", BEYOND)
def test_beyond(enabled, kind, number):
    """To the other guest, in both directions."""
    pair, vfs = enabled(kind)
    with content(*pair):
        transfers(pair.b, vfs[number])
        transfers(vfs[number], pair.b)


def test_data(vfs, peer):
    """Data of all sizes and operations, verified, between functions and beyond."""
    verbs.verify(vfs[0], vfs[1], "-t rc -n 20 -s 1")
    verbs.verify(peer, vfs[2], "-t rc -n 20 -s 2")


def test_broadcast(vfs, peer):
    """Each function and the other guest answer a request that is for all."""
    for vf in vfs:
        vf.exec(f"ip neigh flush dev {vf.netif}")
    vfs[0].exec(f"ping -c 1 -W 10 {peer.ip4}")
    for vf in (vfs[1], vfs[2], vfs[3]):
        vfs[0].exec(f"ping -c 1 -W 10 {vf.ip4}")


def test_mac(vfs):
    """A function keeps to its address, unless it is trusted; a new one comes with the
    driver's next start."""
    vf = vfs[0]
    refused = vf.exec(f"ip link set {vf.netif} address {STRANGER}", check=False)
    assert not refused.ok and "not permitted" in refused.err
    assert vf.out(f"cat /sys/class/net/{vf.netif}/address") == vf.mac
    vf.set("trust on")
    try:
        vf.exec(f"ip link set {vf.netif} address {STRANGER}")
        assert vf.shown()["mac"] == vf.mac, "what the administrator has set is shown"
        vf.exec(f"ip link set {vf.netif} address {vf.mac}")
    finally:
        vf.set("trust off")
    given = "52:54:00:77:70:01"
    vf.set(f"mac {given}")
    try:
        # The device is reset, so that the driver finds the new address.
        vf.guest.exec(f"devlink dev reload pci/{vf.address}")
        assert vf.out(f"cat /sys/class/net/{vf.netif}/address") == given
    finally:
        vf.set(f"mac {vf.mac}")
        vf.guest.exec(f"devlink dev reload pci/{vf.address}")
        vf.configure()
    assert vf.out(f"cat /sys/class/net/{vf.netif}/address") == vf.mac


def test_vlan(pair, vfs, peer, tmp_path):
    """The device tags what the function sends, which knows nothing of it."""
    vf, other = vfs[0], vfs[1]
    peer.exec(f"modprobe 8021q; ip link add link {peer.netif} name v5 type vlan id 5 && "
              "ip addr add 10.97.0.1/24 dev v5 && ip link set v5 up")
    vf.exec(f"ip addr add 10.97.0.2/24 dev {vf.netif}")
    try:
        vf.set("vlan 5 qos 3")
        assert vf.shown()["vlan_list"][0] == {"vlan": 5, "qos": 3}
        with pair.a.capture(tmp_path / "wire.pcap"):
            vf.wait_until("ping -c 1 -W 1 10.97.0.1")
        tagged = [f for f in capture.raw(tmp_path / "wire.pcap")
                  if f[6:12] == ethernet.mac_bytes(vf.mac)]
        assert tagged and all(f[12:16].hex() == "81006005" for f in tagged)
        assert not vf.exec(f"ping -c 2 -W 1 {peer.ip4}", check=False).ok
        assert not vf.exec(f"ping -c 2 -W 1 {other.ip4}", check=False).ok
        other.set("vlan 5")
        # The neighbour's entry is still that of the pings that failed.
        vf.wait_until(f"ping -c 1 -W 1 {other.ip4}")
        other.wait_until(f"ping -c 1 -W 1 {vf.ip4}")
        verbs.pingpong(other, vf, "rc", "-n 100 -c")
        # A tag of its own is not allowed beside that.
        before = vf.statistics()["switch_dropped"]
        ethernet.send(vf, ethernet.frame(vf.mac, peer.mac, b"\0\x06\x08\x06".ljust(46, b"\0"), 0x8100))
        assert vf.statistics()["switch_dropped"] == before + 10
    finally:
        for each in (vf, other):
            each.set("vlan 0")
        vf.exec(f"ip addr del 10.97.0.2/24 dev {vf.netif}")
        peer.exec("ip link del v5")
    vf.exec(f"ping -c 1 -W 10 {peer.ip4}")


@pytest.mark.parametrize("forged", ["mac", "ip"])
def test_spoofchk(pair, vfs, peer, tmp_path, forged):
    """Frames with a source that is not the function's go nowhere while it is checked."""
    vf = vfs[0]
    octets = {"mac": ethernet.frame(STRANGER, peer.mac),
              "ip": ethernet.roce_frame(vf.mac, peer.mac, vfs[1].ip4, peer.ip4)}[forged]
    assert vf.shown()["spoofchk"] is True
    before = vf.statistics()["spoofed"]
    sent = {}
    for check in (True, False):
        vf.set(f"spoofchk {'on' if check else 'off'}")
        file = tmp_path / f"{check}.pcap"
        with pair.a.capture(file):
            ethernet.send(vf, octets)
        sent[check] = sum(f[:len(octets)] == octets for f in capture.raw(file))
    vf.set("spoofchk on")
    assert sent == {True: 0, False: 10}
    assert vf.statistics()["spoofed"] == before + 10


def overheard(vf, peer):
    """Does a function in promiscuous mode receive what is for a stranger?

    Broadcasts, which it receives anyway, show that it listens: of any eight frames in a row
    that it can receive, four are for the stranger if it receives those as well.
    """
    listener = vf.spawn(f"timeout 60 tcpdump -n -e -c 8 -i {vf.netif} ether proto {ethernet.LOCAL}")
    vf.wait_until(f"ip -d link show {vf.netif} | grep -q 'promiscuity 1'")
    while listener.poll() is None:
        for dest in (STRANGER, BROADCAST):
            ethernet.send(peer, ethernet.frame(peer.mac, dest), 4)
    done = listener.wait(60)
    return STRANGER in done.out


def test_trust(vfs, peer):
    vf = vfs[0]
    assert vf.shown()["trust"] is False
    assert not overheard(vf, peer)
    vf.set("trust on")
    try:
        assert overheard(vf, peer)
    finally:
        vf.set("trust off")


@pytest.mark.full
def test_max_tx_rate(vfs, peer):
    """Mb/s, of RDMA and of the stack; tests/sim/scen_shares.c measures without a clock."""
    vf, limit = vfs[0], 40

    def rate():
        run = verbs.perftest(peer, vf, "ib_write_bw", "-s 16384 -D 4 --report_gbits")
        return 1000 * verbs.measured(run, "bw")

    free = rate()
    assert free > 2 * limit, f"{free} Mb/s tell nothing about a limit of {limit}"
    vf.set(f"max_tx_rate {limit}")
    try:
        assert vf.shown()["rate"]["max_tx"] == limit
        before = vf.counters()["rate_waits"]
        assert limit / 2 < rate() < limit * 1.1
        assert vf.counters()["rate_waits"] > before
    finally:
        vf.set("max_tx_rate 0")
    assert rate() > 2 * limit


def test_min_above_max(vfs):
    refused = vfs[0].set("min_tx_rate 100 max_tx_rate 50", check=False)
    assert not refused.ok and "must be <= max_tx_rate" in refused.err


def test_state(pair, vfs, peer):
    vf, other = vfs[0], vfs[1]
    try:
        vf.set("state disable")
        vf.wait_carrier(False)
        vf.wait_until(f"rdma link show {vf.ibdev}/1 | grep -q 'state DOWN'")
        vf.set("state auto")
        vf.wait_carrier(True)
        vf.set("state enable")
        other.set("state enable")
        pair.a.set_link(False)
        vfs[2].wait_carrier(False)
        # Functions do not need the port's link among themselves.
        verbs.pingpong(other, vf, "rc", "-n 100 -c")
    finally:
        pair.a.set_link(True)
        for each in (vf, other):
            each.set("state auto")
    for each in vfs:
        each.wait_carrier(True)
    vf.wait_until(f"ping -c 1 -W 1 {peer.ip4}")


def test_statistics(vfs, peer):
    """What is shown of a function in the host includes its RDMA packets."""
    vf = vfs[0]
    before = vf.shown()["stats"]
    verbs.perftest(peer, vf, "ib_write_bw", "-s 65536 -n 100")
    after = vf.shown()["stats"]
    assert after["tx"]["tx_bytes"] - before["tx"]["tx_bytes"] > 100 * 65536
    assert after["tx"]["tx_packets"] > before["tx"]["tx_packets"] + 1000
    assert after["rx"]["packets"] > before["rx"]["packets"]


def test_settings_refused(vfs):
    vf = vfs[0]
    for what in ("mac 01:00:5e:00:00:01", "vlan 4095", "vlan 5 qos 8",
                 "vlan 5 proto 802.1ad", "vlan 0 qos 3"):
        assert not vf.set(what, check=False).ok, what
    missing = vf.guest.exec(f"ip link set {vf.guest.netif} vf {NUMBER} trust on", check=False)
    assert not missing.ok
