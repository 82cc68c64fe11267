# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The symptoms of Documentation/outside.rst: each is provoked between two guests, and shows itself
in the words and the counters that the page names.

A symptom is found by the first words of its title, and all that a test looks at has to be in its
text, so that the page and the tests say the same. test_outside.py has those that come before
there is a device.
"""

import contextlib
import inspect
import ipaddress
import json
import pathlib
import re
import struct
import sys
from dataclasses import dataclass

import pytest

from lab import capture, content, script, verbs, wait_for
from lab.netns import may_have_taps
from lab.pair import gid_text

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import test_outside  # noqa: E402

SECTION = test_outside.PAGE.partition("\nTroubleshooting\n===============\n")[2]


@dataclass(frozen=True)
class Symptom:
    """What the page says of one: the title is what users see, the text what to look at, and why."""
    title: str
    text: str

    @property
    def words(self):
        """What a program prints"""
        return re.findall(r"``(.+?)``", self.title)

    @property
    def statuses(self):
        """The names of statuses, without IBV_WC_"""
        return re.findall(r"\b[A-Z_]+_ERR\b", self.title)

    def names(self, *things):
        """The text names all these."""
        missing = set(things) - set(re.findall(r"``(.+?)``", self.text))
        assert not missing, f"{self.title}: the page does not name {missing}"


SYMPTOMS = [Symptom(title, " ".join(text.split())) for title, text in
            re.findall(r"^(\S.*)\n((?: {4}\S.*\n)+)", f"{SECTION}\n", re.M)]
# The numbers of statuses, which is all that perftest prints.
NUMBERS = {name: int(number) for number, name in re.findall(r"\b(\d+)\s+(?:is\s+)?([A-Z_]+_ERR)\b",
                                                            SECTION)}


def symptom(title):
    """The one whose title begins like that"""
    (found,) = [s for s in SYMPTOMS if s.title.startswith(title)]
    return found


UNKNOWN_SYMBOL = symptom("``insmod`` reports ``Unknown symbol``")
OTHER_KERNEL = symptom("``insmod`` reports ``Invalid module format``")
KEY_REJECTED = symptom("``insmod`` reports ``Key was rejected")
NO_PROVIDER = symptom("``rdma link`` shows ``qhca0``, and")
PORT_DOWN = symptom("The port is")
NO_GID = symptom("There is no GID")
NOT_RTR = symptom("``Failed to modify QP")
NO_MEMORY = symptom("``Couldn't register MR``")
SAME_MAC = symptom("RETRY_EXC_ERR (")
SMALL_MTU = symptom("RETRY_EXC_ERR with large messages")
NO_ANSWER = symptom("RETRY_EXC_ERR with all messages")
NO_RECEIVE = symptom("RNR_RETRY_EXC_ERR")
REFUSED = symptom("LOC_PROT_ERR")
LOSSES = symptom("The bandwidth is low, and varies")
SMALL_PACKETS = symptom("The bandwidth is low, and steady")
CHANGED = symptom("Packets arrive and are dropped")
SLOW_TCP = symptom("TCP is slow")
AWAY = symptom("``qhca0`` goes away")

FRAMES = 5              # of each kind that a test sends
ROUNDS = 10             # of traffic, until what may happen in each has happened


@pytest.fixture(scope="module")
def pair(pairs, wire):
    return pairs.get("qhca", "qhca", wire=wire)


@pytest.fixture
def ends(pair):
    """(server, client)"""
    with content(*pair):
        yield pair.nodes


def counters(node):
    """As the page has users read them."""
    rdma = dict(re.findall(r"^\s+(\w+) (\d+)", node.out("rdma statistic show link qhca0/1"), re.M))
    all_of_them = dict(re.findall(r"^\s*(\w+): (\d+)$", node.out(f"ethtool -S {node.netif}"), re.M))
    assert len(rdma) > 30 and set(rdma) < set(all_of_them)
    return {name: int(value) for name, value in {**all_of_them, **rdma}.items()}


@contextlib.contextmanager
def rising(cause, node, *names):
    """The counters that the page names rise meanwhile; yields what they were."""
    cause.names(*names)
    before = counters(node)
    yield before

    def has_risen():
        now = counters(node)
        return all(now[name] > before[name] for name in names)
    wait_for(has_risen, 20 * node.patience, f"{node.name}: {names} to rise")


def failure(server, client, commands):
    """What the client says, which fails, beside a server that may wait for ever."""
    with verbs.Flow(server, client, commands) as flow:
        done = flow.sides[1].wait(check=False)
    assert not done.ok, done
    return done.out + done.err


def shows(cause, text):
    """A program's text has the words of the symptom."""
    for word in cause.words:
        assert word in text, text


def python(name, *args):
    """The command that runs a script of tests/ in a guest"""
    _, _, text, _, *words = script(name, *args)
    return ["python3", "-c", text, *words]


def is_up(node):
    node.wait_until("rdma link show qhca0/1 | grep 'state ACTIVE'")


@pytest.fixture
def vlan(pair):
    """{node: its address} on another network of the same interfaces"""
    addresses = {node: f"10.98.77.{n}" for n, node in enumerate(pair, 1)}
    for node, address in addresses.items():
        node.exec(f"modprobe 8021q; ip link add link {node.netif} name other type vlan id 77 && "
                  f"ip addr add {address}/24 dev other && ip link set other up")
    for node, address in addresses.items():
        node.wait_gid(address)
    pair.a.wait_until(f"ping -c 1 -W 1 {addresses[pair.b]}")
    yield addresses
    for node in pair:
        node.exec("ip link del other")
        node.gids(refresh=True)


# -- the port ---------------------------------------------------------------

def port_shows(node, flag, link):
    """`rdma link` has the word of the page, `ip link` the flag, and the monitor the link."""
    (word,) = PORT_DOWN.words
    PORT_DOWN.names("ip link", "info qhca")
    node.wait_until(f"rdma link show qhca0/1 | grep -w 'state {word}'")
    assert f"PORT_{word}" in node.out("ibv_devinfo -d qhca0")
    flags = re.search(r"<(.*?)>", node.out(f"ip link show {node.netif}"))[1].split(",")
    assert flag in flags if flag else "UP" not in flags
    assert f"link {link}," in node.hmp("info qhca")


def test_port_is_down(pair, ends):
    """The guest has the interface down, or the host the link."""
    a, _ = ends
    a.exec(f"ip link set {a.netif} down")
    port_shows(a, None, "up")
    a.configure()
    PORT_DOWN.names("set_link nic0 off")
    a.set_link(False)
    try:
        port_shows(a, "NO-CARRIER", "down")
    finally:
        a.set_link(True)
    is_up(a)
    pair.wait_link()


def test_no_gid(pair, ends):
    """A GID is there as long as the address is, even while the interface is down."""
    a, _ = ends
    (word,) = NO_GID.words
    NO_GID.names("ip addr")
    look = f"ibv_devinfo -v -d qhca0 | grep -F {word.rstrip('.')}"
    a.exec(f"ip link set {a.netif} down")
    assert f"inet {a.ip4}/" in a.out(f"ip addr show {a.netif}")
    a.exec(look)
    a.configure()
    a.exec(f"ip -4 addr flush dev {a.netif}")
    try:
        a.wait_until(f"! {look}")
        assert "inet " not in a.out(f"ip addr show {a.netif}")
    finally:
        a.configure()
    a.exec(look)
    pair.wait_link()


def key_rejected(node):
    """The kernel is told to load no module that it cannot verify, as Secure Boot has it. Nothing
    but a boot takes that back. The guest has no firmware for `mokutil` to ask."""
    KEY_REJECTED.names("mokutil --sb-state")
    _, message = KEY_REJECTED.words
    node.exec("rmmod qhca_ib qhca && echo 1 > /sys/module/module/parameters/sig_enforce")
    done = node.exec("insmod /run/qhca/modules/qhca.ko", check=False)
    assert done.code and message in done.err, done
    assert "unsigned module is rejected" in node.out("dmesg")


def peer_gone(node, peer):
    """Its QEMU has ended. A port in shared memory notices; one of a stream does not."""
    PORT_DOWN.names("info network", "stream")
    peer.kill()
    if isinstance(node.ports[0].netdev, dict):
        port_shows(node, "NO-CARRIER", "down")
    else:
        wait_for(lambda: "type=stream,listening" in node.hmp("info network"), 30 * node.patience,
                 "the end of the connection")
        assert "state ACTIVE" in node.out("rdma link show qhca0/1")
        assert not node.exec(f"ping -c 1 -W 1 {peer.ip4}", check=False).ok
    peer.close()


@pytest.mark.full
def test_guest_that_boots_anew(pair):
    """What only the boot of a guest puts right, and that of its QEMU."""
    with content(pair.a):
        key_rejected(pair.b)
        peer_gone(*pair)
        pair.b.boot()
        pair.wait_link()
        is_up(pair.a)


# -- queue pairs that do not connect ------------------------------------------

def connection_fails(server, client, commands):
    """The server, which is the first to connect its QP, cannot."""
    server_command, client_command, port = commands(server, client)
    done = verbs.client_server(server, client, server_command, client_command,
                               ready=verbs.listening(port), check=False)
    assert not done.server.ok and not done.client.ok
    shows(NOT_RTR, done.server.err)


@pytest.mark.full
def test_peer_answers_no_arp(pair, ends, vlan):
    """The programs meet on the other network."""
    a, b = ends
    NOT_RTR.names("ip neigh")

    def commands(server, client):
        port = verbs.next_port()
        command = "ibv_rc_pingpong -d qhca0"
        return (f"{command} -g {server.gid_index()} -p {port}",
                f"{command} -g {client.gid_index()} -p {port} {vlan[server]}", port)
    ignore = f"sysctl -q -w net.ipv4.conf.{b.netif}.arp_ignore"
    b.exec(f"{ignore}=8")
    try:
        for node in ends:
            node.exec(f"ip neigh flush dev {node.netif}")
        connection_fails(a, b, commands)
        assert re.search("INCOMPLETE|FAILED", a.out(f"ip neigh show {b.ip4} dev {a.netif}"))
        assert not a.exec(f"ping -c 1 -W 1 {b.ip4}", check=False).ok
    finally:
        b.exec(f"{ignore}=0")
    pair.wait_link()
    verbs.pingpong(a, b, options="-n 10")


@pytest.mark.full
def test_indices_of_two_protocols(ends):
    """One end has the index of an IPv6 address, the other that of an IPv4 one."""
    a, b = ends
    assert "IPv4" in NOT_RTR.text and "IPv6" in NOT_RTR.text
    connection_fails(a, b, verbs.pingpong_commands(ip=(a.ip6, b.ip4)))


# -- requests that nobody answers ---------------------------------------------

@pytest.mark.full
def test_same_mac(pair, ends):
    """The guests give their devices the same address, as two QEMUs without `mac=` may."""
    a, b = ends
    SAME_MAC.names("mac=")
    b.exec(f"ip link set dev {b.netif} address {a.mac}")
    try:
        for node in ends:
            node.gids(refresh=True)
            node.exec("ip neigh flush all")
        a.exec(f"ping -c 1 -W 10 {b.ip4}")
        with rising(SAME_MAC, a, "rx_own_mac"), rising(SAME_MAC, b, "rx_own_mac"):
            shows(SAME_MAC, failure(b, a, verbs.pingpong_commands(options="-n 10")))
        for node in ends:
            assert f"own MAC address, {a.mac}" in node.qemu_log.read_text()
    finally:
        b.exec(f"ip link set dev {b.netif} address {b.mac}")
        b.configure()
    pair.wait_link()


def test_peer_killed(ends):
    """The peer's process is no more while requests are on the way to it."""
    a, b = ends
    moving = f"/sys/class/infiniband/{a.ibdev}/ports/1/hw_counters/rx_packets"
    with rising(NO_ANSWER, a, "rx_packets", "rx_no_qp") as before:
        commands = verbs.perftest_commands("ib_write_bw", "-s 65536 -D 600 -u 14")
        with verbs.Flow(a, b, commands) as flow:
            a.wait_until(f"[ $(< {moving}) -gt {before['rx_packets'] + 1000} ]")
            flow.sides[0].kill()
            done = flow.sides[1].wait(check=False)
    (status,) = NO_ANSWER.statuses
    assert not done.ok and f"Failed status {NUMBERS[status]}:" in done.out + done.err, done


@pytest.mark.full
def test_peer_not_ready(ends):
    """The client's requests go to a QP that waits in INIT for a client of its own."""
    a, b = ends
    waiting, meeting = verbs.next_port(), verbs.next_port()
    server = a.spawn(f"exec ibv_rc_pingpong -d {a.ibdev} -g {a.gid_index()} -p {waiting}")
    try:
        a.wait_until(verbs.listening(waiting))
        qpn = re.search(rf"lqpn (\d+) .*state INIT .*pid {server.pid} ",
                        f"{a.out('rdma resource show qp')} ")[1]
        gid = gid_text(a.ip4).replace(":", "")
        stand_in = python("interop/scripts/stand-in.py", meeting, qpn, gid)
        with rising(NO_ANSWER, a, "rx_packets", "rx_bad_state"):
            text = failure(a, b, lambda *_: (
                stand_in, f"ibv_rc_pingpong -d {b.ibdev} -g {b.gid_index()} -p {meeting} {a.ip4}", meeting))
        shows(SAME_MAC, text)
    finally:
        server.kill()


@pytest.mark.full
def test_index_of_another_network(ends, vlan):
    """The packets do not reach the peer's RDMA."""
    a, b = ends
    assert "of different networks" in NO_ANSWER.text
    before = counters(a)
    shows(SAME_MAC, failure(a, b, verbs.pingpong_commands(ip=(vlan[a], b.ip4))))
    assert counters(a)["rx_packets"] == before["rx_packets"]


@pytest.mark.skipif(not may_have_taps(), reason="this user may not open /dev/net/tun")
@pytest.mark.full
def test_small_mtu_of_tap(pairs):
    """What the host shows: the bridge gets the packets, and does not count what it drops."""
    two = pairs.get("qhca", "qhca", wire="tap")
    SMALL_MTU.names("ip -s link", "mtu", "ack_timeouts", "retransmitted_packets")
    small = 1500

    def octets():
        """What came from the client's tap, and what went to the server's"""
        shown = {link["ifname"]: link for link in json.loads(two.network.run("ip -j -s link"))}
        assert shown["a00"]["mtu"] == small
        assert not shown["a00"]["stats64"]["tx"]["dropped"]
        return [shown[name]["stats64"][way]["bytes"] for name, way in (("b00", "rx"), ("a00", "tx"))]
    with content(*two):
        two.network.run(f"ip link set a00 mtu {small}")
        try:
            verbs.pingpong(*two, options="-n 10 -s 100")
            before = octets()
            with rising(SMALL_MTU, two.b, "ack_timeouts", "retransmitted_packets"):
                shows(SAME_MAC, failure(*two, verbs.pingpong_commands(options="-m 4096 -s 4096")))
            came, went = (now - was for now, was in zip(octets(), before))
            assert came > 8 * 4096 > went
        finally:
            two.network.run(f"ip link set a00 mtu {two.mtu}")


# -- requests that are refused ------------------------------------------------

def refusal(server, client, what):
    """What the client says of a request that scripts/refused.py describes."""
    port = verbs.next_port()
    name = "interop/scripts/refused.py"
    commands = [python(name, node.ibdev, node.gid_index(), port, what, *host)
                for node, host in ((server, []), (client, [server.ip4]))]
    done = verbs.client_server(server, client, *commands, ready=verbs.listening(port))
    return done.client.out


def status_is(cause, number, text):
    """It is the one of the page's statuses with this index, in words, number and name."""
    name = cause.statuses[number]
    assert f"{cause.words[number]} ({NUMBERS[name]}), IBV_WC_{name}\n" in text


@pytest.mark.full
def test_no_receive(ends):
    a, b = ends
    with rising(NO_RECEIVE, a, "tx_rnr_no_wqe"):
        status_is(NO_RECEIVE, 0, refusal(a, b, "no-receive"))


@contextlib.contextmanager
def traced(node):
    """The trace event of the page tells of a refusal meanwhile."""
    REFUSED.names("qhca_protection")
    node.qmp("trace-event-set-state", name="qhca_protection", enable=True)
    mark = len(node.qemu_log.read_text())
    try:
        yield
    finally:
        node.qmp("trace-event-set-state", name="qhca_protection", enable=False)
    assert re.search(r"^qhca_protection .* key 0x\w+ addr 0x\w+ len 64 reason \d+$",
                     node.qemu_log.read_text()[mark:], re.M)


@pytest.mark.full
def test_wrong_local_key(ends):
    a, b = ends
    with rising(REFUSED, b, "protection_errors"), traced(b):
        status_is(REFUSED, 0, refusal(a, b, "local-key"))


@pytest.mark.parametrize("what, word", [
    ("remote-key", "Key"), *(pytest.param(*case, marks=pytest.mark.full) for case in
                             (("domain", "protection domain"), ("right", "rights"), ("range", "range")))])
def test_refused_by_peer(ends, what, word):
    a, b = ends
    assert word in REFUSED.text
    with rising(REFUSED, a, "protection_errors", "tx_nak_access"), traced(a):
        status_is(REFUSED, 1, refusal(a, b, what))


# -- what costs bandwidth -----------------------------------------------------

def test_losses(ends):
    """Programs go on over a network that loses packets; what that costs depends on the host."""
    a, b = ends
    names = "out_of_sequence", "ack_timeouts", "rx_nak_seq"
    LOSSES.names(*names)
    before = [counters(node) for node in ends]
    a.inject({"inject-drop-ppm": 10000})
    try:
        for _ in range(ROUNDS):
            assert verbs.perftest(a, b, "ib_write_bw", "-s 65536 -n 150 -u 15", timeout=300).rows
            verbs.pingpong(a, b, options="-n 200 -s 100")
            moved = [{name: value - was[name] for name, value in counters(node).items()}
                     for node, was in zip(ends, before)]
            if all(any(more[name] for more in moved) for name in names):
                return
    finally:
        a.inject({"inject-drop-ppm": 0})
        verbs.pingpong(a, b, options="-n 10")
    assert False, moved


def test_small_packets(pair, ends):
    """perftest tells the path MTU that the interface's leaves."""
    SMALL_PACKETS.names("Mtu")
    path, interface = re.search(r"path MTU is (\d+), since the MTU of the interface is (\d+)",
                                SMALL_PACKETS.text).groups()
    for mtu, told in (interface, path), (pair.mtu, 4096):
        for node in ends:
            node.exec(f"ip link set {node.netif} mtu {mtu}")
        done = verbs.perftest(*ends, "ib_write_bw", "-s 65536 -n 50")
        assert re.search(rf"^ Mtu +: {told}\[B\]$", done.client.out, re.M), done.client.out


def datagram(source, target, wrong):
    """A frame with a UD SEND to a QP that nobody has; its ICRC is right but for these bits."""
    bth = struct.pack("!BBHII", 0x64, 0, 0xffff, 0x123456, 0)
    udp = struct.pack("!HHHH", 0xc000, capture.ROCE_PORT, 8 + len(bth) + 8 + 8 + 4, 0)
    addresses = [ipaddress.ip_address(node.ip4).packed for node in (source, target)]
    data = udp + bth + bytes(8 + 8 + 4)
    ip = struct.pack("!BBHIBBH4s4s", 0x45, 0, 20 + len(data), 0x4000, 64, 17, 0, *addresses)
    total = sum(struct.unpack("!10H", ip))
    ip = ip[:10] + struct.pack("!H", 0xffff - (total % 0xffff or 0xffff)) + ip[12:]
    icrc = capture.Frame(1, 0, ip + data, 20, addresses[0]).expected_icrc() ^ wrong
    macs = b"".join(bytes.fromhex(node.mac.replace(":", "")) for node in (target, source))
    return macs + b"\x08\x00" + ip + data[:-4] + icrc.to_bytes(4, "little")


@pytest.mark.full
def test_changed_packets(ends):
    """The guest sends the frames by hand: with the right ICRC the device looks further."""
    a, b = ends

    def send(wrong):
        a.exec(python("lab/scripts/send-frames.py", a.netif, FRAMES, 0, datagram(a, b, wrong).hex()))
    with rising(CHANGED, b, "rx_icrc_errors") as before:
        send(1)
    b.wait_until(f"ethtool -S {b.netif} | grep -w 'rx_icrc_errors: "
                 f"{before['rx_icrc_errors'] + FRAMES}'")
    assert counters(b)["rx_packets"] == before["rx_packets"]
    send(0)
    b.wait_until(f"ethtool -S {b.netif} | grep -w 'rx_no_qp: {before['rx_no_qp'] + FRAMES}'")
    assert counters(b)["rx_icrc_errors"] == before["rx_icrc_errors"] + FRAMES


def tcp_flood(server, client):
    """iperf3 sends again what is lost: how much of it."""
    port = verbs.next_port()
    done = verbs.client_server(server, client, f"iperf3 -s -1 -p {port}",
                               f"iperf3 -c {server.ip4} -p {port} -n 32M -P 4",
                               ready=verbs.listening(port))
    return int(re.search(r"^\[SUM\].* (\d+) +sender$", done.client.out, re.M)[1])


@pytest.mark.full
def test_slow_tcp(ends):
    """A ring that is smaller than TCP's window, and the largest, which is not."""
    a, b = ends
    SLOW_TCP.names("ethtool -G")
    largest, usual = re.findall(r"^RX:\s+(\d+)$", a.out(f"ethtool -g {a.netif}"), re.M)
    windows = a.out("sysctl -n net.ipv4.tcp_rmem")

    def resize(size):
        a.exec(f"ethtool -G {a.netif} rx {size}")
        a.wait_until(f"ping -c 1 -W 1 {b.ip4}")
    # Four connections have about a thousand frames of this MTU on the way.
    a.exec("sysctl -q -w net.ipv4.tcp_rmem='4096 131072 1000000'")
    try:
        resize(64)
        with rising(SLOW_TCP, a, "eth_rx_no_buffer") as before:
            for _ in range(ROUNDS):
                again = tcp_flood(a, b)
                if again and counters(a)["eth_rx_no_buffer"] > before["eth_rx_no_buffer"]:
                    break
        assert again
        resize(largest)
        before = counters(a)
        tcp_flood(a, b)
        assert counters(a)["eth_rx_no_buffer"] == before["eth_rx_no_buffer"]
    finally:
        a.exec(f"sysctl -q -w net.ipv4.tcp_rmem='{windows}'")
        resize(usual)


# -- a device that dies -------------------------------------------------------

def number_of_device(node):
    """The kernel gives one that returns another number."""
    return int(re.match(r"(\d+): qhca0:", node.out("rdma dev show qhca0"))[1])


@pytest.mark.full
def test_goes_away(pair, ends):
    """The kernel's log tells the cause for good, query-qhca until the device is reset."""
    a, _ = ends
    AWAY.names("drv_recoveries", "fatal-cause", "query-qhca")
    reporter = f"pci/{a.out(f'basename $(readlink -f /sys/class/net/{a.netif}/device)')} reporter fatal"
    a.exec(f"dmesg -C; devlink health set {reporter} auto_recover false")
    number = number_of_device(a)
    try:
        with rising(AWAY, a, "drv_recoveries"):
            a.set_property("inject-fatal", True)
            a.wait_until(f"devlink health show {reporter} | grep 'state error'")
            (told,) = a.qmp("query-qhca")
            cause = told["port"]["fatal-cause"]
            assert f"cause {cause} (injected)" in a.out("dmesg | grep -w dead")
            assert f"  cause: {cause}\n" in a.hmp("info qhca").replace("\r", "")
            a.exec(f"devlink health recover {reporter}")
    finally:
        a.exec(f"devlink health set {reporter} auto_recover true")
        a.configure()
    assert number_of_device(a) != number
    (told,) = a.qmp("query-qhca")
    assert told["port"]["fatal-cause"] == 0 != cause
    pair.wait_link()


# -- all of them --------------------------------------------------------------

TESTS = {
    UNKNOWN_SYMBOL: [test_outside.refused_modules],
    OTHER_KERNEL: [test_outside.refused_modules],
    KEY_REJECTED: [key_rejected],
    NO_PROVIDER: [test_outside.first_connection],
    PORT_DOWN: [test_port_is_down, peer_gone],
    NO_GID: [test_no_gid],
    NOT_RTR: [test_peer_answers_no_arp, test_indices_of_two_protocols],
    NO_MEMORY: [test_outside.little_memory],
    SAME_MAC: [test_same_mac],
    SMALL_MTU: [test_outside.small_mtu, test_small_mtu_of_tap],
    NO_ANSWER: [test_peer_killed, test_peer_not_ready, test_index_of_another_network],
    NO_RECEIVE: [test_no_receive],
    REFUSED: [test_wrong_local_key, test_refused_by_peer],
    LOSSES: [test_losses],
    SMALL_PACKETS: [test_small_packets],
    CHANGED: [test_changed_packets],
    SLOW_TCP: [test_slow_tcp],
    AWAY: [test_goes_away],
}


def test_symptoms_are_tested():
    """Each is in the table; and each function of the table is a test, or a test calls it."""
    assert len(SYMPTOMS) == len(re.findall(r"^ {4}Look at ", SECTION, re.M))
    assert [s.title for s in SYMPTOMS if not TESTS.get(s)] == []
    for function in sum(TESTS.values(), []):
        source = inspect.getsource(inspect.getmodule(function))
        name = function.__name__
        assert name.startswith("test_") or re.search(rf"^ +{name}\(", source, re.M), name
