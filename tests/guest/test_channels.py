# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Several Ethernet queues: how many there are, who gets which frame, and changes of both
while frames pass."""

import re

import pytest

from lab import content, devlink, verbs
from lab.guest import GuestError
from lab.link import FULL
from lab.netdev import combined, copy, statistics, stream

from test_offers import queues

RSS, TSO = 0x20000000, 0x200000
ALL = (1 << 64) - 1


@pytest.fixture(scope="module")
def pair(pairs):
    """Guest a has a vector for each queue; b has fewer vectors than it would use."""
    return pairs.get("qhca", "qhca", cpus=3, props=({}, {"vectors": 6}))


@pytest.fixture
def ends(pair):
    with content(*pair):
        yield pair.a, pair.b
        for node in pair:
            node.exec(f"ethtool -X {node.netif} default; ethtool -L {node.netif} combined "
                      f"{most(node)}; ethtool -K {node.netif} tso on rxhash on", check=False)
            node.configure()


def most(node):
    return combined(node)[0]


def interrupts(node):
    return int(node.out("grep -c qhca /proc/interrupts"))


def moved(before, after, name):
    """Which queues have counted, by {number: difference}."""
    numbers = [int(n) for n in re.findall(rf"^rxq(\d+)_{name}$", "\n".join(after), re.M)]
    differences = {n: after[f"rxq{n}_{name}"] - before[f"rxq{n}_{name}"] for n in numbers}
    return {n: difference for n, difference in differences.items() if difference}


def flows(a, b, num=12, kib=64):
    """Sends so many TCP streams from a to b; returns what the queues of b have received."""
    before = statistics(b)
    for _ in range(num):
        copy(a, b, b.ip4, kib)
    return moved(before, statistics(b), "packets")


def test_numbers(ends):
    """A queue for each CPU, as far as there are vectors; the others are for completions."""
    a, b = ends
    assert combined(a) == (3, 3) and combined(b) == (2, 2)
    assert interrupts(a) == 1 + 3 + 3 and interrupts(b) == 1 + 2 + 3
    for node, num in ((a, 3), (b, 2)):
        napis, irqs, _ = queues(node)
        assert sorted(napis) == sorted(f"{kind} {i}" for kind in ("rx", "tx") for i in range(num))
        assert len({irqs[napis[f"rx {i}"]] for i in range(num)}) == num
        masks = [int(node.out(f"cat /sys/class/net/{node.netif}/queues/tx-{i}/xps_cpus"), 16)
                 for i in range(num)]
        assert sum(masks) == 7 and all(masks)
    verbs.pingpong(a, b, "rc", "-n 100 -e -c")


def used(a, b, queues):
    """Which queues of b streams from a have reached. Their ports are random: of 12 streams to
    three queues, one in 43 times none goes to one of them; of 96, one in 10^16 times."""
    found = set()
    for _ in range(8):
        found |= set(flows(a, b))
        if len(found) == queues:
            break
    return found


def test_flows_are_distributed(ends):
    a, b = ends
    assert used(a, b, 2) == {0, 1}
    assert used(b, a, 3) == {0, 1, 2}
    before = statistics(a)
    copy(b, a, a.ip6, 64)
    assert moved(before, statistics(a), "packets")


@pytest.mark.full
def test_table(ends):
    """The administrator chooses who gets which share, and the key."""
    a, b = ends
    for queue in (0, 1):
        weights = "1 0" if queue == 0 else "0 1"
        b.exec(f"ethtool -X {b.netif} weight {weights}")
        got = flows(a, b, 4)
        assert max(got, key=got.get) == queue
        assert got[queue] > 10 * sum(n for q, n in got.items() if q != queue)
    key = ":".join(f"{i * 7 % 256:02x}" for i in range(40))
    b.exec(f"ethtool -X {b.netif} hkey {key} equal 2")
    shown = b.out(f"ethtool -x {b.netif}")
    assert key in shown and "with 2 RX ring(s)" in shown
    assert len(flows(a, b)) == 2
    # Queues that there are not, and a table that needs more queues than are to stay.
    with pytest.raises(GuestError):
        b.exec(f"ethtool -X {b.netif} weight 1 1 1")
    with pytest.raises(GuestError):
        b.exec(f"ethtool -L {b.netif} combined 1")
    b.exec(f"ethtool -X {b.netif} default && ethtool -L {b.netif} combined 1")
    assert list(flows(a, b, 4)) == [0]
    # Table and key outlive what starts the device anew.
    b.exec(f"ethtool -L {b.netif} combined 2; ethtool -X {b.netif} weight 0 1")
    shown = b.out(f"ethtool -x {b.netif}")
    assert key in shown
    devlink.reload(b)
    assert b.out(f"ethtool -x {b.netif}") == shown and combined(b) == (2, 2)
    got = flows(a, b, 4)
    assert max(got, key=got.get) == 1


@pytest.mark.full
def test_number_changes_under_traffic(ends):
    a, b = ends
    path = f"/sys/class/net/{b.netif}/statistics/rx_packets"
    with stream(a, b) as goes_on:
        counted = 0
        for _ in range(2 if FULL else 1):
            for num in (1, 2):
                b.exec(f"ethtool -L {b.netif} combined {num}")
                a.exec(f"ethtool -L {a.netif} combined {num + 1}")
                assert combined(b)[1] == num and combined(a)[1] == num + 1
                goes_on()
                # What queues have counted that are not in use any more stays counted.
                now = int(b.out(f"cat {path}"))
                assert now > counted
                counted = now
                assert len([q for q in queues(b)[2] if q.startswith("rx")]) == num
    for num in (0, 3):
        with pytest.raises(GuestError):
            b.exec(f"ethtool -L {b.netif} combined {num}")
    copy(a, b, b.ip4, 1024)


@pytest.mark.full
def test_unused_queues(ends):
    """The stack's watchdog looks at all queues that there can be, every 10 s, and finds none
    that does not send."""
    a, _ = ends
    a.exec(f"ethtool -L {a.netif} combined 1; sleep 25; ethtool -L {a.netif} combined 3")
    shown = a.out(f"grep -H . /sys/class/net/{a.netif}/queues/tx-*/tx_timeout")
    assert re.findall(r":(\d+)$", shown, re.M) == ["0"] * 3, shown


@pytest.mark.full
def test_changes_under_traffic(ends):
    """Distribution, offloads, MTU and rings, with several queues at work."""
    a, b = ends
    with stream(a, b) as goes_on:
        for change in ("-X {} weight 0 1", "-X {} default", "-K {} tso off rxhash off",
                       "-K {} tso on rxhash on", "-G {} rx 128 tx 128", "-C {} rx-usecs 50",
                       "-C {} rx-usecs 0", "-G {} rx 512 tx 512"):
            for node in ends:
                node.exec(f"ethtool {change.format(node.netif)}")
            goes_on()
        for mtu in (1500, 4200):
            for node in ends:
                node.exec(f"ip link set {node.netif} mtu {mtu}")
            goes_on()
    copy(a, b, b.ip4, 1024)


@pytest.mark.full
def test_life(ends):
    """Down and up, and a recovery, in the middle of traffic."""
    a, b = ends
    a.exec(f"ethtool -L {a.netif} combined 2")
    with stream(a, b) as goes_on:
        for _ in range(3):
            a.exec(f"ip link set {a.netif} down && ip link set {a.netif} up && "
                   f"ip addr replace {a.ip4}/24 dev {a.netif}")
            goes_on()
        a.exec(f"devlink health test {devlink.device(a)} reporter fatal")
        a.wait_until(f"ethtool -l {a.netif} | grep -q '^Combined:.*2'")
        goes_on()
    a.configure()
    shown = a.out(f"devlink health diagnose {devlink.device(a)} reporter tx")
    assert shown.count("reclaimed") == 2
    copy(a, b, b.ip4, 1024)


def threads(node):
    """How many threads poll queues of the node."""
    return int(node.out("grep -ls '^napi/' /proc/[0-9]*/comm | wc -l"))


@pytest.mark.full
@pytest.mark.parametrize("less, more", [("ethtool -L {} combined 1", "ethtool -L {} combined 3"),
                                        ("ip link set {} down", "ip link set {} up")],
                         ids=["fewer", "down"])
def test_threads(ends, less, more):
    """Threads poll the queues, and no longer do from when some queues are not in use. Since
    Linux 6.17 this waits for every context on the interface's list, and for ever for one that
    is disabled."""
    a, b = ends
    threaded = f"/sys/class/net/{a.netif}/threaded"
    a.exec(f"echo 1 > {threaded}")
    assert threads(a) == 3
    copy(b, a, a.ip4, 1024)
    a.exec(less.format(a.netif))
    # Linux refuses it while the list is empty.
    done = a.exec(f"echo 0 > {threaded}", timeout=30, check=False)
    assert done.ok or "not supported" in done.err
    a.exec(more.format(a.netif))
    a.configure()
    a.exec(f"echo 0 > {threaded}", timeout=30)
    assert len(queues(a)[1]) == 3
    copy(b, a, a.ip4, 1024)
    copy(a, b, b.ip4, 1024)


@pytest.mark.full
def test_threads_under_changes(ends):
    """Nobody finds a context on the list while it is disabled."""
    a, b = ends
    threaded = f"/sys/class/net/{a.netif}/threaded"
    with stream(b, a) as goes_on:
        toggling = a.spawn(f"while :; do echo 1 > {threaded}; echo 0 > {threaded}; done")
        for _ in range(10):
            for num in (1, 3):
                a.exec(f"ethtool -L {a.netif} combined {num}", timeout=30)
        toggling.kill()
        a.exec(f"echo 0 > {threaded}", timeout=30)
        goes_on()
    # Before Linux 6.17 a context keeps its thread, which has no work, until it is deleted.
    a.exec(f"ethtool -L {a.netif} combined 2")
    assert threads(a) == 0
    copy(a, b, b.ip4, 1024)


@pytest.mark.full
def test_old_device(pairs):
    """The driver works on a device that has neither feature, and beside one that has."""
    pair = pairs.get("qhca", "qhca", cpus=2, props=({"features": ALL & ~(RSS | TSO)}, {}))
    with content(*pair):
        a, b = pair.a, pair.b
        assert combined(a) == (1, 1) and combined(b) == (2, 2)
        assert re.search(r"tx-tcp-segmentation: off \[fixed\]",
                         a.out(f"ethtool -k {a.netif}"))
        with pytest.raises(GuestError):
            a.exec(f"ethtool -X {a.netif} equal 1")
        for sender, receiver in ((a, b), (b, a)):
            copy(sender, receiver, receiver.ip4, 1024)
            copy(sender, receiver, receiver.ip6, 1024)
        assert statistics(a)["eth_tx_tso"] == 0 and statistics(b)["eth_tx_tso"] > 0
        verbs.pingpong(a, b, "rc", "-n 100 -e -c")
