# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What programs, tools and monitoring made for other adapters expect of this one.

Regions without bytes and without memory, keys of windows, the clock and address
handles (programs/uverbs/offers.c); the port's counters in sysfs; what ibstat shows;
the queues of the interface as the kernel's netlink family "netdev" has them;
coalescing of the interface's interrupts; the counters of single QPs; a function
without RDMA.
"""

import contextlib
import re
import time

import pytest

from lab import content, devlink, script, wait_for
from lab.pair import Node
from lab.script import TESTS

PEER = "10.77.0.9"          # nobody has this address


@pytest.fixture(scope="module")
def node():
    # A port of a hub takes frames only if the hub has another one.
    guest = Node("a", "qhca", 1, netdevs=["hubport,hubid=0"], memory=512,
                 args=["-netdev", "hubport,hubid=0,id=sink"]).boot()
    with content(guest):
        yield guest
    guest.close()


def offers(node, options=""):
    return node.exec(f"qhca-offers -d {node.ibdev} -g {node.gid_index()} {options} 2>&1",
                     timeout=600, check=False)


def test_programs(node, tap_points):
    done = offers(node)
    print(done.out)
    tap_points(done.out, done.code)


@pytest.mark.full
def test_all_address_handles(node, tap_points):
    done = offers(node, "-a")
    tap_points(done.out, done.code)


def test_port_counters(node):
    """They are the device's counters, as performance management defines them."""
    offers(node)
    rows = node.out(f"cd /sys/class/infiniband/{node.ibdev}/ports/1/counters && grep . *")
    shown = {name: int(value) for name, value in re.findall(r"(\S+):(\d+)", rows)}
    counters = node.counters()
    assert shown["port_xmit_packets"] == counters["tx_packets"] > 0
    assert shown["port_rcv_packets"] == counters["rx_packets"] > 0
    assert shown["port_xmit_data"] == counters["tx_bytes"] // 4
    assert shown["port_rcv_data"] == counters["rx_bytes"] // 4
    assert shown["port_rcv_errors"] == 0 and "unicast_xmit_packets" not in shown


def test_link_downed(node):
    path = f"/sys/class/infiniband/{node.ibdev}/ports/1/counters/link_downed"
    before = int(node.out(f"cat {path}"))
    node.qmp("set_link", name="nic0", up=False)
    node.wait_until(f"[ $(cat {path}) = {before + 1} ]", what="the link's end")
    node.qmp("set_link", name="nic0", up=True)
    node.configure()


def test_identity(node):
    shown = node.out(f"ibstat {node.ibdev}")
    assert "CA type: qhca" in shown
    assert re.search(r"Hardware version: 1\b", shown)
    assert re.search(r"Firmware version: \d+\.\d+", shown)
    board = node.out(f"cat /sys/class/infiniband/{node.ibdev}/board_id")
    assert re.fullmatch(r"[0-9a-f]{4}:[0-9a-f]{4}", board.strip())


def queues(node):
    """({queue: NAPI id}, {NAPI id: irq}, {queue: (packets, bytes)})"""
    text = (TESTS / "guest/scripts/netdev-queues.py").read_text()
    out = node.out(["python3", "-c", text, node.netif])
    napis = re.findall(r"queue (\w+ \d+) napi (\d+)", out)
    irqs = re.findall(r"napi (\d+) irq (\d+)$", out, re.M)
    stats = re.findall(r"stats (\w+ \d+) (\d+) (\d+)", out)
    return ({queue: int(napi) for queue, napi in napis},
            {int(napi): int(irq) for napi, irq in irqs if int(irq)},
            {queue: (int(packets), int(length)) for queue, packets, length in stats})


def test_queues(node):
    napis, irqs, before = queues(node)
    assert napis["rx 0"] == napis["tx 0"] > 0
    irq = irqs[napis["rx 0"]]
    assert "qhca" in node.out(f"grep '^ *{irq}:' /proc/interrupts")
    node.exec(f"ping -c 3 -W 1 -I {node.netif} 192.0.2.99", check=False)
    after = queues(node)[2]
    assert after["tx 0"][0] > before["tx 0"][0] and after["tx 0"][1] > before["tx 0"][1]
    stats = node.out(f"ethtool -S {node.netif}")
    assert int(re.search(r"txq0_packets: (\d+)", stats).group(1)) >= after["tx 0"][0]


def test_queues_of_a_stopped_interface(node):
    node.exec(f"ip link set {node.netif} down")
    try:
        assert not queues(node)[0]
    finally:
        node.exec(f"ip link set {node.netif} up")
        node.configure()


@pytest.fixture
def flood(node):
    """Frames that are sent as fast as the guest can, to the hub's other port."""
    node.exec(f"ip neigh replace {PEER} lladdr 52:54:00:77:00:09 dev {node.netif} nud permanent")
    sender = node.spawn(script("guest/scripts/flood.sh", PEER))
    yield sender
    sender.kill()
    sender.wait(60, check=False)
    node.exec(f"ethtool -C {node.netif} rx-usecs 0; ethtool -G {node.netif} rx 512 tx 512; "
              f"ip link set {node.netif} mtu {node.mtu}", check=False)
    node.configure()


def interrupts(node, irq):
    """(seconds, interrupts) since the guest has been started, read at once."""
    text = node.out("cat /proc/uptime /proc/interrupts")
    row = re.search(rf"^ *{irq}:((?: +\d+)+)", text, re.M).group(1)
    return float(text.split()[0]), sum(int(word) for word in row.split())


def interrupt_rate(node, irq, seconds=2):
    began, before = interrupts(node, irq)
    time.sleep(seconds)
    ended, after = interrupts(node, irq)
    return (after - before) / (ended - began)


def coalescing(node):
    shown = node.out(f"ethtool -c {node.netif}")
    return {name: int(value) for name, value in re.findall(r"^(.x-usecs):\s+(\d+)$", shown, re.M)}


def test_coalescing(node, flood):
    """An interrupt in so many microseconds at most; by default the driver holds none back."""
    assert coalescing(node) == {"rx-usecs": 0, "tx-usecs": 0}
    napis, irqs, _ = queues(node)
    irq = irqs[napis["rx 0"]]
    prompt = interrupt_rate(node, irq)
    node.exec(f"ethtool -C {node.netif} rx-usecs 1000")
    held = interrupt_rate(node, irq)
    assert coalescing(node) == {"rx-usecs": 1000, "tx-usecs": 1000}
    print(f"{prompt:.0f} interrupts/s, {held:.0f} with 1000 us")
    assert 0 < held <= 1050 and held < prompt


@pytest.mark.full
def test_coalescing_under_load(node, flood):
    """Whatever stops and starts the queue, frames go on, and no transmission times out."""
    def goes_on(what):
        path = f"/sys/class/net/{node.netif}/statistics/tx_packets"
        node.wait_until(f"[ $(cat {path}) -gt {int(node.out('cat ' + path)) + 200} ]",
                        what=f"frames after {what}")

    node.exec(f"dmesg -C; ethtool -C {node.netif} rx-usecs 1000")
    goes_on("coalescing")
    again = (f"ip addr replace {node.ip4}/24 dev {node.netif}; "
             f"ip neigh replace {PEER} lladdr 52:54:00:77:00:09 dev {node.netif} nud permanent")
    for operation in (f"ip link set {node.netif} mtu 1500", f"ethtool -G {node.netif} rx 64 tx 64",
                      f"ip link set {node.netif} down && ip link set {node.netif} up && {again}",
                      f"ip link set {node.netif} mtu 4200", f"ethtool -G {node.netif} rx 512 tx 512",
                      f"ethtool -C {node.netif} rx-usecs 1", f"ethtool -C {node.netif} rx-usecs 0",
                      f"ethtool -C {node.netif} rx-usecs 1000 tx-usecs 1000"):
        node.exec(operation)
        goes_on(operation)
    for _ in range(3):
        node.qmp("set_link", name="nic0", up=False)
        time.sleep(0.2)
        node.qmp("set_link", name="nic0", up=True)
        goes_on("the link's return")
    assert flood.poll() is None
    assert "transmit timeout" not in node.out("dmesg")


def test_coalescing_refused(node):
    before = coalescing(node)
    for options in ("rx-usecs 1001", "tx-usecs 10", "rx-usecs 10 tx-usecs 20", "rx-frames 2"):
        assert node.exec(f"ethtool -C {node.netif} {options}", check=False).code, options
    assert coalescing(node) == before


@contextlib.contextmanager
def running(node, program):
    """Two QPs of one guest that send to each other meanwhile."""
    options = f"-F -d {node.ibdev} -x {node.gid_index()} -p 18999"
    ends = [node.spawn(f"{program} {options}")]
    try:
        node.wait_until("ss -ltn | grep -q :18999", what="the server")
        ends.append(node.spawn(f"{program} {options} {node.ip4}"))
        moving(node)
        yield
    finally:
        for end in ends:
            end.kill()
            end.wait(60, check=False)


@pytest.fixture
def traffic(node):
    """Such QPs until the test ends, and no counters afterwards."""
    with running(node, "ib_send_bw -D 600 -s 4096"):
        yield
    node.exec(f"rdma statistic qp set link {node.ibdev}/1 auto off", check=False)


def moving(node):
    """Waits until RDMA packets are being sent."""
    sent = node.counters()["tx_packets"]
    node.wait_until(f"[ $(cat /sys/class/infiniband/{node.ibdev}/hw_counters/tx_packets) "
                    f"-gt {sent + 100} ]", what="RDMA packets")


def qp_counters(node):
    """{number of the counter: ({name: value}, QPs)} of those that are bound"""
    out = node.out(f"rdma statistic qp show link {node.ibdev}/1")
    return {int(number): ({name: int(value) for name, value in re.findall(r"(\w+) (\d+)", text)},
                          [int(qpn) for qpn in re.findall(r"\d+", qps)])
            for number, text, qps in
            re.findall(r"cntn (\d+)(.*?)LQPN: <([\d, ]*)>", out, re.S | re.I)}


def port_statistic(node):
    out = node.out(f"rdma statistic show link {node.ibdev}/1")
    return {name: int(value) for name, value in re.findall(r"(\w+) (\d+)", out)}


def data_qps(node, kind="RC"):
    out = node.out(f"rdma resource show qp link {node.ibdev}/1")
    return [int(qpn) for qpn in re.findall(rf"lqpn (\d+) .*type {kind}", out)]


def test_qp_counters(node, traffic):
    """A QP that is bound counts from then on; what it has counted stays the port's."""
    link = f"link {node.ibdev}/1"
    assert not qp_counters(node)
    first, second = data_qps(node)
    node.exec(f"rdma statistic qp bind {link} lqpn {first}")
    (number, (before, qps)), = qp_counters(node).items()
    assert qps == [first]
    moving(node)
    after, _ = qp_counters(node)[number]
    assert after["tx_packets"] > before["tx_packets"] and after["rx_packets"] > before["rx_packets"]
    assert after["tx_bytes"] - before["tx_bytes"] >= after["tx_packets"] - before["tx_packets"]
    assert after["retry_exceeded"] == 0 and "pt_hits" not in after

    # The port has what both count, once.
    sent = [node.counters()["tx_packets"], port_statistic(node)["tx_packets"],
            node.counters()["tx_packets"]]
    assert sent == sorted(sent)

    node.exec(f"rdma statistic qp bind {link} lqpn {second} cntn {number}")
    assert sorted(qp_counters(node)[number][1]) == sorted([first, second])
    assert node.exec(f"rdma statistic qp bind {link} lqpn {second} cntn {number}", check=False).code
    node.exec(f"rdma statistic qp unbind {link} cntn {number} lqpn {first}")
    assert qp_counters(node)[number][1] == [second]
    node.exec(f"rdma statistic qp unbind {link} cntn {number}")
    assert not qp_counters(node)
    sent = [node.counters()["tx_packets"], port_statistic(node)["tx_packets"],
            node.counters()["tx_packets"]]
    assert sent == sorted(sent)


def test_qp_counters_by_type(node):
    """QPs that are made later; the counters end with them, and what they counted remains."""
    link = f"link {node.ibdev}/1"
    before = node.counters()
    node.exec(f"rdma statistic qp set {link} auto type on")
    try:
        for kind in "RC", "UD":
            # Without events the two would poll, on one processor.
            with running(node, f"ib_send_lat -e -c {kind} -n 1000000"):
                # One counter, or one for each QP if both were made in the same moment.
                before_that = qp_counters(node)
                qps = [qpn for _, bound in before_that.values() for qpn in bound]
                assert len(qps) == 2 and sorted(qps) == sorted(data_qps(node, kind))
                moving(node)
                for number, (now, _) in qp_counters(node).items():
                    counted = before_that[number][0]
                    assert now["tx_packets"] > counted["tx_packets"]
                    assert now["rx_packets"] > counted["rx_packets"]
            wait_for(lambda: not qp_counters(node), 60, "the counter outlives its QPs")
        after, port = node.counters(), port_statistic(node)
        assert after["tx_packets"] - before["tx_packets"] >= 400
        for name in ("tx_packets", "tx_bytes", "rx_packets", "tx_acks", "ud_dropped"):
            assert port[name] == after[name], name
    finally:
        node.exec(f"rdma statistic qp set {link} auto off")


def test_qp_counters_at_a_reload(node, traffic):
    """QPs that are bound end with the device; the next device has all its counters."""
    link = f"link {node.ibdev}/1"
    for qpn in data_qps(node):
        node.exec(f"rdma statistic qp bind {link} lqpn {qpn}")
    assert len(qp_counters(node)) == 2
    pci = node.out(f"basename $(readlink -f /sys/class/net/{node.netif}/device)").strip()
    node.exec(f"devlink dev reload pci/{pci}", timeout=120)
    node.configure()
    assert not qp_counters(node)
    assert port_statistic(node)["tx_packets"] == node.counters()["tx_packets"]


def test_enable_rdma(node):
    """A reload takes RDMA away and brings it back; a recovery does neither."""
    def rdma_devices():
        return node.out("ls /sys/class/infiniband").split()

    def sent():
        return int(node.out(f"cat /sys/class/net/{node.netif}/statistics/tx_packets"))

    def sends():
        before = sent()
        node.exec(f"ping -c 1 -W 1 -I {node.netif} 192.0.2.99", check=False)
        node.wait_until(f"[ $(cat /sys/class/net/{node.netif}/statistics/tx_packets) -gt {before} ]",
                        what="a frame")

    assert devlink.parameter(node, "enable_rdma") is True
    devlink.set_parameter(node, "enable_rdma", "false")
    assert rdma_devices()
    try:
        node.exec(f"devlink dev reload {devlink.device(node)}", timeout=60)
        assert not rdma_devices()
        sends()
        node.exec("dmesg -C")
        node.qmp("qom-set", path="/machine/peripheral/nic0", property="inject-fatal", value=True)
        node.wait_until("dmesg | grep -q 'qhca .*: recovered'", what="the recovery")
        assert not rdma_devices() and devlink.parameter(node, "enable_rdma") is False
        sends()
    finally:
        devlink.set_parameter(node, "enable_rdma", "true")
        devlink.reload(node)
    assert rdma_devices()
