# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Guests at the switch: each with each other, one that is killed, a switch that is killed.

Three guests, or eight with FULL=1. The tests share them, and each leaves all of them
running.
"""

import pytest

from lab import content, many, verbs, wait_for
from lab.fabric import connect
from lab.group import Group
from lab.link import FULL

GUESTS = 8 if FULL else 3
ROUNDS = 20 if FULL else 10
# An ACK timeout of 4.3 s: the switch is away for less, and the guests boot beside others.
PATIENT = "-o 20 -T 150"


@pytest.fixture(scope="module")
def booted():
    with Group(GUESTS) as group:
        yield group


@pytest.fixture
def group(booted):
    """The guests; neither QEMU nor a kernel nor the switch may complain."""
    with content(*booted):
        yield booted
    assert booted.switch.running, booted.switch.said()
    assert booted.switch.said() == ""


def counters(group):
    return {port["name"]: port["counters"] for port in group.switch.control("ports")}


def test_all_to_all(group):
    """Each guest exchanges data with each other, all guests at the same time, and every
    byte is right. The switch forwards what is for one guest to that one alone."""
    group.switch.control("clear")
    flows = many.all_to_all_verified(group, f"-t rc -m 4096 -n {ROUNDS} {PATIENT}")
    assert flows == GUESTS * (GUESTS - 1)
    for name, count in counters(group).items():
        assert count["rx_frames"] > 100 * (GUESTS - 1), name
        # Requests of ARP, neighbour solicitations and the like.
        assert count["rx_flooded"] < count["rx_frames"] / 10, name
        assert count["bad_lengths"] == count["rx_runts"] == count["macs_moved"] == 0, name


def test_ring(group):
    """A pingpong of each guest with its successor, all at the same time."""
    assert len(many.ring_of_pingpongs(group)) == GUESTS


@pytest.mark.full
def test_datagrams(group):
    verbs.together(group.ring(), verbs.program_commands(
        "qhca-verify", f"-t ud -q 2 -m 2048 -n {ROUNDS} -T 150"), timeout=300)


def test_slow_port(group):
    """A port has a rate, a latency and a small queue, in which messages larger than it lose
    packets; RDMA repeats them, and the data is right."""
    a, b, *_ = group
    settings = group.switch.port(b.name)["settings"]
    group.switch.control("clear", port=b.name)
    group.switch.set(b.name, rate="10M", latency="2ms", queue="70k")
    try:
        verbs.verify(a, b, "-t rc -m 4096 -S 262144 -n 3", timeout=300)
        port = group.switch.port(b.name)
        assert port["counters"]["tx_queue_full"] > 0
        assert port["held_peak"] <= 70 << 10
    finally:
        group.switch.set(b.name, **settings)


def start_of_flow(a, b, options):
    """qhca-verify from b to a, which goes on while the test does something else."""
    commands = verbs.program_commands("qhca-verify", options)
    server_command, client_command, port = commands(a, b)
    server = a.spawn(server_command)
    a.wait_until(verbs.listening(port))
    return server, b.spawn(client_command)


def frames_of(group, node):
    return group.switch.counters(node.name)["tx_frames"]


def wait_traffic(group, node, frames=500):
    before = frames_of(group, node)
    wait_for(lambda: frames_of(group, node) > before + frames, 120, f"frames to {node.name}")


def end_of_flow(flow):
    for side in flow:
        done = side.wait(300, check=False)
        assert done.ok, done


# So many that they last longer than what the test does meanwhile.
LONG = f"-t rc -m 4096 -n 400 {PATIENT}"


def test_guest_killed(group):
    """A guest is killed and boots again; what others exchange meanwhile is right, and so
    is what it exchanges with them afterwards."""
    a, b, *_, last = group
    flow = start_of_flow(a, b, LONG)
    lost = start_of_flow(a, last, LONG)
    try:
        wait_traffic(group, last)
        before = group.switch.counters(last.name)["connections"]
        last.kill()
        assert lost[0].poll() is None, "the guest was killed too late"
        wait_for(lambda: not group.switch.port(last.name)["peer"], 60, "the end of the peer")
        assert last.name not in {row["port"] for row in group.switch.control("addresses")}
        end_of_flow(flow)
    finally:
        lost[0].kill()
    group.restart(last)
    assert group.switch.counters(last.name)["connections"] == before + 1
    for other in group.nodes[:-1]:
        verbs.verify(other, last, f"-t rc -m 4096 -n {ROUNDS} {PATIENT}", timeout=300)


@pytest.mark.full
def test_switch_killed(group):
    """The switch is killed and started again under traffic; QEMU connects again by itself,
    RDMA repeats what was lost, and every byte is right."""
    a, b, *_ = group
    flow = start_of_flow(a, b, LONG)
    wait_traffic(group, a)
    group.switch.kill()
    assert [side.poll() for side in flow] == [None, None], "the switch was killed too late"
    group.switch.start()
    group.switch.wait_peers(*(node.name for node in group))
    end_of_flow(flow)
    assert set(group.switch.counters(name)["connections"] for name in group.switch.names) == {1}
    for node in group:
        group.wait_links(node)
    many.all_to_all_verified(group, f"-t rc -n {ROUNDS} {PATIENT}")


@pytest.mark.full
def test_stranger(group):
    """Somebody else at the switch floods it, half reads, and lies; RDMA goes on."""
    a, b, *_ = group
    flow = start_of_flow(a, b, LONG)
    wait_traffic(group, a)
    for n in range(20):
        stranger = connect(group.switch.path("listen"))
        frame = b"\xff" * 6 + bytes([2, 0, 0, 0, 1, n]) + b"\x88\xb5" + b"s" * 1400
        stranger.sendall((len(frame).to_bytes(4, "big") + frame) * 50)
        stranger.sendall(b"\xff\xff\xff\xff")
        stranger.close()
    end_of_flow(flow)
