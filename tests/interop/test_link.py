# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Two guests whose devices share memory; FULL=1 runs all tests of the matrix there, too."""

import platform

import pytest

from lab import content, verbs
from lab.link import FULL


@pytest.fixture
def shared(pairs):
    pair = pairs.get("qhca", "qhca", wire="shm")
    with content(*pair):
        yield pair


def test_data(shared):
    """Every byte arrives, and through the memory."""
    before = shared.a.adapter_counters()
    verbs.verify(*shared, "-t rc -m 4096 -q 4 -w -n 20 -s 1", timeout=300)
    verbs.verify(*shared, "-t ud -q 2 -m 2048 -n 20 -s 2", timeout=300)
    verbs.perftest(*shared, "ib_read_bw", "-s 1048576 -n 20")
    verbs.perftest(*shared, "ib_write_bw", "-s 65536 -n 1000 -q 8")
    after = shared.a.adapter_counters()
    assert after["frames_sent"] > before["frames_sent"] + 1000
    assert after["frames_received"] > before["frames_received"] + 1000
    assert after["link_bad_slots"] == 0
    # Of 5,120 packets of READs, some are streamed, if only to find out what that takes.
    streamed = after["copies_streamed"] - before["copies_streamed"]
    assert streamed >= 5120 // 257 if platform.machine() == "x86_64" else streamed == 0


def test_polling(shared):
    """A program that polls for single messages has the device's work done on its vCPU, when it
    polls or in its doorbells, and is not interrupted: the peer, which counts its own wake-ups,
    sends fewer than frames. How often the thread is awake, so that a hint comes in vain, depends
    on what else the host does, so that the best of some rounds counts."""
    frames, wakes = [0, 0], 1
    for _ in range(6):
        before = [node.adapter_counters() for node in shared]
        verbs.perftest(*shared, "ib_send_lat", "-s 8 -n 5000")
        verbs.perftest(*shared, "ib_read_lat", "-s 8 -n 5000")
        moved = [{name: value - was[name] for name, value in node.adapter_counters().items()}
                 for node, was in zip(shared, before)]
        print(moved)
        for node, other in (moved, moved[::-1]):
            assert node["polls"] + node["awaits"]
            assert node["frames_received"] <= other["frames_sent"]
        frames = [max(most, node["poll_frames"] + node["await_hits"])
                  for most, node in zip(frames, moved)]
        # Of both: the server of the READs does not poll, and is woken for each.
        wakes = min(wakes, moved[0]["link_wakes_sent"] / moved[0]["frames_sent"])
        if min(frames) > 1000 and wakes < 0.8:
            break
    assert min(frames) > 1000 and wakes < 0.8


def test_polling_of_many(shared):
    """A receiver that polls while the device's thread is awake, which is so with many
    messages, yields its processor, but not in the hints after a yield that took long."""
    before = shared.a.adapter_counters()["poll_yields"]
    for _ in range(6):
        verbs.perftest(*shared, "ib_send_bw", "-s 4096 -n 5000")
        if shared.a.adapter_counters()["poll_yields"] > before:
            return
    assert False, "no hint yields"


def test_polling_stops(shared):
    """What comes when no hint follows is taken as well, at once or after a nap: pings beside a
    program that polls, none of which is lost, and single ones when it has ended."""
    a, b = shared
    for _ in range(3):
        pings = [node.spawn(f"ping -q -c 300 -i 0.01 -W 5 {ip}")
                 for node, ip in ((a, b.ip4), (b, a.ip4))]
        verbs.perftest(a, b, "ib_send_lat", "-s 8 -n 10000")
        for ping in pings:
            assert " 0% packet loss" in ping.wait(60, True).out
        verbs.perftest(a, b, "ib_send_lat", "-s 8 -n 100")
        for node, ip in ((a, b.ip4), (b, a.ip4)):
            node.exec(f"for i in 1 2 3 4 5; do ping -q -c 1 -W 5 {ip} || exit; done")
    assert b.adapter_counters()["thread_naps"]


def test_peer_killed(shared):
    """The link follows the peer, which gets new memory when it is back."""
    a, b = shared
    for node, other in ((b, a), (a, b)) if FULL else ((b, a),):
        connects = other.adapter_counters()["link_connects"]
        node.kill()
        node.close()
        other.wait_until(f"[ $(cat /sys/class/net/{other.netif}/carrier) = 0 ]")
        node.boot()
        other.wait_until(f"[ $(cat /sys/class/net/{other.netif}/carrier) = 1 ]")
        assert other.adapter_counters()["link_connects"] == connects + 1
        shared.wait_link()
        verbs.pingpong(a, b, "rc", "-n 100 -c")
