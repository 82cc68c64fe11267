# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The switch program, with peers that behave and peers that do not.

The tests are the peers: they speak the format of QEMU's stream sockets. The program
has AddressSanitizer, UndefinedBehaviorSanitizer and LeakSanitizer, and each test ends it.
"""

import itertools
import os
import resource
import signal
import socket
import struct
import subprocess

import pytest

from lab import fabric, paths, wait_for

PROGRAM = paths.BUILD / "tests" / "unit" / "qhca-switch"
BROADCAST = b"\xff" * 6
MAX_FRAME = 69632
FRAME_OVERHEAD = 24


def mac(number):
    return struct.pack(">HI", 0x5254, number)


def frame(to, source, payload=b"x" * 50):
    return to + source + b"\x88\xb5" + payload


def packed(*frames):
    return b"".join(struct.pack(">I", len(f)) + f for f in frames)


class Peer:
    """What a QEMU is to the switch"""

    def __init__(self, path, number=0):
        self.end = fabric.connect(path)
        self.mac = mac(number)

    def send(self, *frames):
        self.end.sendall(packed(*frames))

    def receive(self):
        """The next frame, or None at the end of the stream."""
        head = self._exactly(4)
        return head and self._exactly(*struct.unpack(">I", head))

    def _exactly(self, num):
        data = b""
        while len(data) < num:
            try:
                more = self.end.recv(num - len(data))
            except ConnectionResetError:
                more = b""
            if not more:
                assert not data, "the stream ends within a frame"
                return None
            data += more
        return data

    def is_disconnected(self):
        return self.receive() is None

    def close(self):
        self.end.close()


@pytest.fixture
def start():
    """Starts a switch; at the end it must end in order, with nothing to say."""
    switches = []

    def go(*args, **kwargs):
        switches.append(fabric.Switch(*args, program=PROGRAM, **kwargs))
        return switches[-1].start()
    yield go
    for switch in switches:
        try:
            if switch.running:
                assert switch.stop() == 0, switch.said()
            assert switch.said() == ""
            assert not list(switch.dir.glob("[!l]*"))
        finally:
            switch.close()


@pytest.fixture
def peers():
    """Peers of ports, which have announced themselves to each other."""
    made = []

    def go(switch, *names):
        ours = []
        for number, name in enumerate(names, 1):
            before = switch.counters(name)["connections"] if name in switch.names else None
            ours.append(Peer(switch.path(name), number))
            if before is not None:
                wait_for(lambda: switch.counters(name)["connections"] > before, 60, name)  # noqa: B023
        wait_for(lambda: sum(p["peer"] for p in switch.control("ports")) >= len(names), 60, "peers")
        made.extend(ours)
        for peer in ours:
            peer.send(frame(BROADCAST, peer.mac))
            for other in ours:
                if other is not peer:
                    assert other.receive() == frame(BROADCAST, peer.mac)
        return ours
    yield go
    for peer in made:
        peer.close()


def test_forwards(start, peers):
    """Frames of all lengths arrive as they were, and only where they should."""
    switch = start()
    a, b, c = peers(switch, "listen", "listen", "listen")
    sizes = (0, 1, 46, 1500, 9000, MAX_FRAME - 14)
    for size in sizes:
        sent = frame(b.mac, a.mac, os.urandom(size))
        a.send(sent)
        assert b.receive() == sent
    # Had others come to c, they would be before this one.
    a.send(frame(BROADCAST, a.mac, b"end"))
    assert b.receive() == c.receive() == frame(BROADCAST, a.mac, b"end")
    counters = switch.counters("0")
    assert counters["rx_frames"] == len(sizes) + 2
    assert counters["rx_flooded"] == 2
    found = {row["address"]: row["port"] for row in switch.control("addresses")}
    assert found == {f"52:54:00:00:00:0{n}": str(n - 1) for n in (1, 2, 3)}


def test_pieces(start, peers):
    """Frames may come in pieces of any length, and many at once."""
    switch = start("ab")
    a, b = peers(switch, "a", "b")
    frames = [frame(b.mac, a.mac, bytes([n]) * n) for n in range(60)]
    stream = packed(*frames)
    for n in range(0, 600):
        a.end.sendall(stream[n:n + 1])
    a.end.sendall(stream[600:])
    assert [b.receive() for _ in frames] == frames


@pytest.mark.parametrize("cut", [1, 3, 4, 5, 30])
def test_half_a_frame(start, peers, cut):
    """A peer that ends within a frame leaves nothing behind, for others or its successor."""
    switch = start("ab")
    a, b = peers(switch, "a", "b")
    a.end.sendall(packed(frame(b.mac, a.mac, b"whole")) + packed(frame(b.mac, a.mac, b"half" * 9))[:cut])
    assert b.receive() == frame(b.mac, a.mac, b"whole")
    a.close()
    wait_for(lambda: not switch.port("a")["peer"], 60, "the end of a")
    a, = peers(switch, "a")
    assert b.receive() == frame(BROADCAST, a.mac)
    assert switch.counters("a")["connections"] == 2


@pytest.mark.parametrize("length", [MAX_FRAME + 1, 1 << 24, 1 << 31, (1 << 32) - 1])
def test_hostile_length(start, peers, length):
    """A peer whose lengths lie is disconnected, and others are as before."""
    switch = start("abc")
    a, b, c = peers(switch, "a", "b", "c")
    a.end.sendall(packed(frame(b.mac, a.mac)) + struct.pack(">I", length) + b"\0" * 100)
    assert b.receive() == frame(b.mac, a.mac)
    assert a.is_disconnected()
    assert switch.counters("a")["bad_lengths"] == 1
    b.send(frame(c.mac, b.mac))
    assert c.receive() == frame(c.mac, b.mac)


def test_runts(start, peers):
    """Frames that are shorter than their header go nowhere, and the stream goes on."""
    switch = start("ab")
    a, b = peers(switch, "a", "b")
    whole = frame(b.mac, a.mac, b"")
    a.send(*(whole[:n] for n in range(15)))
    assert b.receive() == whole
    assert switch.counters("a")["rx_runts"] == 14


def numbered(to, source, number):
    return frame(to, source, struct.pack(">I", number) + b"n" * 4000)


def read_to(peer, last):
    """The numbers of the frames that come, up to one; each frame must be intact."""
    numbers = []
    while not numbers or numbers[-1] != last:
        received = peer.receive()
        number, = struct.unpack(">I", received[14:18])
        assert received == numbered(received[:6], received[6:12], number)
        numbers.append(number)
    return numbers


def test_slow_reader(start, peers):
    """A peer that does not read loses what its queue does not take, and nobody else does.
    What it reads later is intact and in order."""
    switch = start("abc", "--queue", "1M")
    a, b, c = peers(switch, "a", "b", "c")
    total = 2000
    for n in range(total):
        a.send(numbered(b.mac, a.mac, n))
        if n % 100 == 0:
            a.send(numbered(c.mac, a.mac, n))
            assert read_to(c, n) == [n]
    full = wait_for(lambda: switch.counters("a")["rx_frames"] == total + total // 100 + 1 and
                    switch.port("b"), 60, "all frames")
    lost = full["counters"]["tx_queue_full"]
    assert lost > 0
    assert full["held"] <= 1 << 20
    assert full["held_peak"] > (1 << 20) - 4018 - FRAME_OVERHEAD
    switch.set("b", queue="16M")
    a.send(numbered(b.mac, a.mac, total))
    numbers = read_to(b, total)
    assert numbers == sorted(numbers)
    assert len(numbers) == total + 1 - lost
    assert switch.counters("c")["tx_queue_full"] == 0


def test_link_down_within_a_frame(start, peers):
    """Of a frame that was sent in part the rest follows, though the link is down."""
    switch = start("ab")
    a, b = peers(switch, "a", "b")
    for n in range(300):
        a.send(numbered(b.mac, a.mac, n))
    wait_for(lambda: switch.counters("a")["rx_frames"] == 301 and switch.port("b")["held"], 60, "a queue")
    switch.set("b", link=False)
    assert switch.port("b")["held"] == 0
    dropped = switch.counters("b")["tx_link_down"]
    assert dropped
    a.send(numbered(b.mac, a.mac, 300))
    wait_for(lambda: switch.counters("a")["rx_frames"] == 302, 60, "the frame")
    switch.set("b", link=True)
    a.send(numbered(b.mac, a.mac, 301))
    numbers = read_to(b, 301)
    assert numbers == list(range(300 - dropped)) + [301]


def test_port_comes_back(start, peers):
    """A port that has a socket of its own keeps its settings and its counters."""
    switch = start("ab")
    a, b = peers(switch, "a", "b")
    switch.set("b", macs=7, rate="1G", burst=5000, latency="1us", queue="2M")
    before = switch.port("b")
    b.close()
    wait_for(lambda: not switch.port("b")["peer"], 60, "the end of b")
    assert [row["port"] for row in switch.control("addresses")] == ["a"]
    b, = peers(switch, "b")
    assert a.receive() == frame(BROADCAST, b.mac)
    after = switch.port("b")
    assert after["settings"] == before["settings"] == {
        "macs": 7, "rate": 10**9, "burst": 5000, "latency": 1000, "queue": 2 << 20, "link": True}
    assert after["counters"]["rx_frames"] == before["counters"]["rx_frames"] + 1
    assert after["counters"]["connections"] == 2


def test_ports_without_name(start, peers):
    """Each connection has a port as long as it lasts; there is a limit."""
    switch = start((), "--max-ports", 3)
    a, b, c = peers(switch, "listen", "listen", "listen")
    assert Peer(switch.path("listen")).is_disconnected()
    switch.set("1", rate="1M")
    b.close()
    wait_for(lambda: len(switch.control("ports")) == 2, 60, "the end of b")
    b, = peers(switch, "listen")
    assert switch.port("1")["settings"]["rate"] == 0
    assert switch.counters("1")["connections"] == 1
    assert a.receive() == c.receive() == frame(BROADCAST, b.mac)


def test_second_peer(start, peers):
    """A port has one peer, and the second is sent away."""
    switch = start("ab")
    a, b = peers(switch, "a", "b")
    assert Peer(switch.path("a")).is_disconnected()
    assert switch.counters("a")["refused"] == 1
    a.send(frame(b.mac, a.mac))
    assert b.receive() == frame(b.mac, a.mac)


def test_rate_and_latency(start, peers):
    """A frame waits for the rate and is on the way for the latency."""
    switch = start("ab")
    a, b = peers(switch, "a", "b")
    switch.set("b", rate="1k")
    a.send(frame(b.mac, a.mac, b"r" * 9000))
    wait_for(lambda: switch.port("b")["held"] == 9014 + FRAME_OVERHEAD, 60, "the frame")
    switch.set("b", rate="1G", latency="20ms")
    assert b.receive() == frame(b.mac, a.mac, b"r" * 9000)
    a.send(frame(b.mac, a.mac))
    assert b.receive() == frame(b.mac, a.mac)


def test_killed_and_started_again(start, peers):
    """A switch that was killed is started again at the same sockets."""
    switch = start("ab")
    a, b = peers(switch, "a", "b")
    switch.kill()
    assert a.is_disconnected() and b.is_disconnected()
    assert switch.path("a").is_socket()
    switch.start()
    a, b = peers(switch, "a", "b")
    a.send(frame(b.mac, a.mac))
    assert b.receive() == frame(b.mac, a.mac)


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT])
def test_ends(start, peers, sig):
    """By a signal it ends in order, also with frames, connections and answers under way."""
    switch = start("ab")
    a, b = peers(switch, "a", "b")
    switch.set("b", rate="1k")
    a.send(frame(b.mac, a.mac))
    a.end.sendall(packed(frame(b.mac, a.mac))[:20])
    lazy = fabric.connect(switch.path("control"))
    lazy.sendall(b'{"command":"ports"}\n' * 3000)
    wait_for(lambda: switch.port("b")["held"], 60, "the frame")
    switch.child.send_signal(sig)
    assert switch.child.wait(60) == 0
    lazy.close()


def test_leaves_sockets_of_others(start):
    """What somebody has put in place of its socket is not removed."""
    switch = start("a")
    switch.path("a").unlink()
    switch.path("a").write_text("of somebody else")
    assert switch.stop() == 0
    assert switch.path("a").read_text() == "of somebody else"
    switch.path("a").unlink()


def run(*argv, **kwargs):
    done = subprocess.run([str(PROGRAM), *map(str, argv)], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=60, check=False, **kwargs)
    return done.returncode, done.stderr.replace("qhca-switch: ", ""), done.stdout


def test_dead_sockets(tmp_path):
    """A socket that nobody listens at stays if it is another user's, or reached by a link."""
    dead, link = tmp_path / "dead", tmp_path / "link"
    with socket.socket(socket.AF_UNIX) as end:
        end.bind(str(dead))
    link.symlink_to(dead)
    assert run("--listen", link) == (1, f"{link}: a file is there that is no socket\n", "")
    assert link.is_symlink() and dead.is_socket()
    if os.getuid() == 0:
        os.chown(dead, 65534, 65534)
        assert run("--listen", dead) == (1, f"{dead}: a socket of another user is there\n", "")
        assert dead.is_socket() and dead.stat().st_uid == 65534


def test_paths(start, peers, tmp_path):
    """Paths that cannot be had, and what is there stays as it is."""
    switch = start("ab")
    a, b = peers(switch, "a", "b")
    file = tmp_path / "file"
    file.write_text("text")
    for path, why in ((switch.path("a"), "another program listens there"),
                      (file, "a file is there that is no socket"),
                      (tmp_path / "none" / "x", "No such file or directory"),
                      (tmp_path / ("x" * 108), "the path of a socket has at most 107 characters"),
                      ("", "the path of a socket is empty")):
        assert run("--listen", path) == (1, f"{path}: {why}\n", "")
        # A port before it leaves no socket behind.
        assert run("--port", f"p={tmp_path}/p", "--control", path)[:2] == (1, f"{path}: {why}\n")
        assert not (tmp_path / "p").exists()
    assert file.read_text() == "text"
    a.send(frame(b.mac, a.mac))
    assert b.receive() == frame(b.mac, a.mac)


OPTIONS = [
    ("", "there is neither --listen nor --port"),
    ("--listen x --rate 10X", "--rate 10X: a rate is a number of bit/s, with k, M, G or T"),
    ("--listen x --rate 1", "--rate 1: a rate is 0, for none, or 1000 to 1000000000000 bit/s"),
    ("--listen x --latency 5", "--latency 5: a latency is a number with ns, us, ms or s"),
    ("--listen x --latency 11s", "--latency 11s: a latency is at most 10 s"),
    ("--listen x --queue 1k", "--queue 1k: a queue has 69656 to 1073741824 bytes"),
    ("--listen x --burst -1", "--burst -1: it is a number of bytes, with k, M or G"),
    ("--listen x --macs 70000", "--macs 70000: at most 65536 addresses are learned behind a port"),
    ("--listen x --macs 4294967296", "--macs 4294967296: it is a number of addresses"),
    ("--listen x --max-ports 257", "a switch has 1 to 256 ports"),
    ("--listen x --max-ports x", "--max-ports x: it is a number"),
    ("--listen x --table 0", "the MAC table has 1 to 65536 entries"),
    ("--listen x --age 1ms", "addresses age in 1 s to 1000000 s"),
    ("--listen x --age 1", "--age 1: it is a number with ns, us, ms or s"),
    ("--listen x y", "y: only options are expected"),
    ("--port x", "--port x: it is NAME=PATH"),
    ("--port =x", "--port =x: the name of a port has 1 to 31 characters"),
    (f"--port {'n' * 32}=x", f"--port {'n' * 32}=x: the name of a port has 1 to 31 characters"),
    ("--port 5=x", "--port 5=x: the name of a port begins with no digit"),
    ("--port \x01=x", "--port \x01=x: the name of a port has printable ASCII characters"),
    ("--port a=x --port a=y", "--port a=y: there is a port of that name already"),
    ("--port a=x,rate", "--port a=x,rate: a setting is NAME=VALUE"),
    ("--port a=x,speed=1", "--port a=x,speed=1: the settings are rate, burst, latency, queue and macs"),
    ("--port a=x,queue=2G", "--port a=x,queue=2G: a queue has 69656 to 1073741824 bytes"),
    ("--port a=x --port b=y --max-ports 1", "there are more ports than --max-ports allows"),
]


@pytest.mark.parametrize("options, why", OPTIONS, ids=[str(n) for n in range(len(OPTIONS))])
def test_options(tmp_path, options, why):
    assert run(*options.split(" ") if options else (), cwd=tmp_path) == (1, why + "\n", "")
    assert not list(tmp_path.iterdir())


def test_options_of_ports(start):
    """A port has the settings of its own option, and otherwise those of all ports."""
    switch = start("a", "--latency", "3us", "--rate", "2G")
    other = switch.path("b")
    switch.kill()
    switch.options += ["--port", f"b={other},rate=1G,macs=3"]
    switch.start()
    a, b = (switch.port(name)["settings"] for name in "ab")
    assert (a["rate"], a["latency"], a["macs"]) == (2 * 10**9, 3000, 256)
    assert (b["rate"], b["latency"], b["macs"]) == (10**9, 3000, 3)


def test_help():
    code, err, out = run("--help")
    assert (code, err) == (0, "") and out.startswith("Usage: qhca-switch ")
    code, err, out = run("--version")
    assert (code, err) == (0, "") and out.startswith("qhca-switch ")


LINES = [
    ("", "this is no JSON: "),
    ("{", "this is no JSON: "),
    ("\xff", "this is no JSON: "),
    ('{"command":"ports","command":"ports"}', "this is no JSON: "),
    ("[" * 60000, "this is no JSON: "),
    ("[]", 'a command is an object with the member "command"'),
    ("{}", 'a command is an object with the member "command"'),
    ('{"command":1}', 'a command is an object with the member "command"'),
    ('{"command":"halt"}', "the commands are ports, set, clear, addresses and status"),
    ('{"command":"ports","x":1}', 'ports has no member "x"'),
    ('{"command":"status","port":"a"}', 'status has no member "port"'),
    ('{"command":"ports","x' + "\u00fc" * 40 + '":1}', 'ports has no member "x'),
    ('{"command":"ports","port":"z"}', "there is no such port"),
    ('{"command":"clear","port":7}', "there is no such port"),
    ('{"command":"set","settings":{}}', 'the member "port" is missing'),
    ('{"command":"set","port":"a"}', 'the member "settings" is missing, or no object'),
    ('{"command":"set","port":"a","settings":[]}', 'the member "settings" is missing, or no object'),
    ('{"command":"set","port":"a","settings":{"macs":5,"speed":1}}', "speed: "),
    ('{"command":"set","port":"a","settings":{"macs":5,"rate":-1}}', "rate: "),
    ('{"command":"set","port":"a","settings":{"macs":5,"rate":1.5}}', "rate: "),
    ('{"command":"set","port":"a","settings":{"macs":5,"rate":"fast"}}', "rate: a rate is "),
    ('{"command":"set","port":"a","settings":{"macs":5,"rate":5}}', "rate: a rate is "),
    ('{"command":"set","port":"a","settings":{"queue":"2M","macs":4294967297}}', "macs: "),
    ('{"command":"set","port":"a","settings":{"macs":5,"link":1}}', "link: it is true or false"),
]


def test_control_refuses(start):
    """Each line has one answer; what is refused changes nothing."""
    switch = start("a")
    before = switch.port("a")
    for line, why in LINES:
        switch.control.end.sendall(line.encode("latin-1" if "\xff" in line else "utf-8") + b"\n")
        answer = switch.control.file.readline()
        assert why in answer.replace('\\"', '"') and '"error"' in answer, (line, answer)
        assert switch.port("a") == before, line


def test_control(start):
    switch = start("ab", "--max-ports", 5, "--age", "7s", "--table", 99)
    assert switch.control.line('{"command": "set", "port": "a", "settings": {"rate": "5M"}, "id": [1]}') == {
        "return": {**switch.port("b")["settings"], "rate": 5000000}, "id": [1]}
    assert switch.control.line('{"command": "x", "id": "y"}')["id"] == "y"
    status = switch.control("status")
    assert (status["max_ports"], status["table"], status["age"]) == (5, 99, 7 * 10**9)
    assert [p["name"] for p in switch.control("ports")] == ["a", "b"]


def test_clear(start, peers):
    switch = start("ab")
    peers(switch, "a", "b")
    switch.control("clear", port="a")
    assert set(switch.counters("a").values()) == {0}
    assert switch.counters("b")["connections"] == 1
    switch.control("clear")
    assert set(switch.counters("b").values()) == {0}


def test_control_in_pieces(start):
    """Lines come in pieces, several at once, and without an end before the connection's."""
    switch = start("a")
    line = b'{"command":"status","id":7}\n'
    end = fabric.connect(switch.path("control"))
    for n in range(len(line)):
        end.sendall(line[n:n + 1])
    end.sendall(line * 3 + line[:5])
    end.shutdown(socket.SHUT_WR)
    answers = b"".join(iter(lambda: end.recv(4096), b""))
    assert answers.count(b'"id":7}\n') == 4
    end.close()


def test_control_long_line(start):
    """A line without an end is refused once, and its connection ends."""
    switch = start("a")
    end = fabric.connect(switch.path("control"))
    end.sendall(b"x" * 65536)
    answer = b"".join(iter(lambda: end.recv(4096), b""))
    assert answer == b'{"error":"a line has at most 65535 characters"}\n'
    end.close()
    longest = fabric.Control(switch.path("control"))
    assert longest.line('{"command":"status"' + " " * (65535 - 20) + "}")["return"]
    longest.close()


def test_control_unread(start, peers):
    """A client that reads no answers holds nobody up, and has its answers in the end."""
    switch = start("ab")
    a, b = peers(switch, "a", "b")
    end = fabric.connect(switch.path("control"))
    total = 3000
    lines = b'{"command":"ports"}\n' * total
    end.setblocking(False)
    sent = 0
    while sent < len(lines):
        try:
            sent += end.send(lines[sent:])
        except BlockingIOError:
            break
    a.send(frame(b.mac, a.mac))
    assert b.receive() == frame(b.mac, a.mac)
    assert switch.control("status")
    end.settimeout(60)
    whole = sent // 20
    answers = b""
    while answers.count(b"\n") < whole:
        answers += end.recv(1 << 20)
    end.close()


def test_control_connections(start):
    """A connection beyond the limit takes the place of the one that was silent longest."""
    switch = start("a")
    path = switch.path("control")
    more = [fabric.Control(path) for _ in range(15)]
    for control in more:
        assert control("status")
    assert switch.control("status")
    more.append(fabric.Control(path))
    assert more[-1]("status")
    assert more[0].end.recv(1) == b""
    for control in (*more[1:], switch.control):
        assert control("status")
    # Clients that say nothing keep nobody out, and a client that is at work has its place.
    silent = []
    for _ in range(40):
        silent.append(fabric.connect(path))
        assert switch.control("status")
    more.append(fabric.Control(path))
    assert more[-1]("status")
    for control in more:
        control.close()
    for end in silent:
        end.close()


def test_no_descriptors():
    """Too few open files are reported before a guest meets them."""
    code, err, _ = run("--listen", "/tmp/none", preexec_fn=lambda: resource.setrlimit(
        resource.RLIMIT_NOFILE, (60, 60)))
    assert code == 1 and "so many ports need 112 open files" in err


def test_descriptors_run_out(start, peers):
    """When the system refuses a connection the switch tries again, and goes on meanwhile."""
    switch = start("abc")
    a, b = peers(switch, "a", "b")
    pid = switch.child.pid
    limits = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    used = max(int(fd) for fd in os.listdir(f"/proc/{pid}/fd")) + 1
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (used, limits[1]))
    c = Peer(switch.path("c"), 3)
    wait_for(switch.said, 60, "a message")
    assert switch.said() == f"qhca-switch: {switch.path('c')}: Too many open files\n"
    a.send(frame(b.mac, a.mac))
    assert b.receive() == frame(b.mac, a.mac)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)
    switch.wait_peers("c")
    c.send(frame(BROADCAST, c.mac))
    assert a.receive() == frame(BROADCAST, c.mac)
    c.close()
    switch.log.write_text("")


def test_many_ports(start):
    """256 ports, a broadcast storm of all, and each gets what each other sends."""
    switch = start((), "--max-ports", 256)
    peers = [Peer(switch.path("listen"), n) for n in range(256)]
    wait_for(lambda: len(switch.control("ports")) == 256, 60, "ports")
    for peer in peers:
        peer.send(frame(BROADCAST, peer.mac))
    everybody = {frame(BROADCAST, peer.mac) for peer in peers}
    for peer in peers:
        received = {peer.receive() for _ in range(255)}
        assert received == everybody - {frame(BROADCAST, peer.mac)}
    for peer in peers:
        peer.close()
    wait_for(lambda: not switch.control("ports"), 60, "the end of all ports")


def test_peers_come_and_go(start, peers):
    """Peers come, send parts of frames and go at any time; two who stay lose nothing."""
    switch = start("ab")
    a, b = peers(switch, "a", "b")
    stream = packed(*(frame(BROADCAST, mac(100 + n), b"o" * n) for n in range(50)))
    guests = itertools.cycle(range(0, len(stream), 97))
    for n in range(300):
        other = Peer(switch.path("listen"))
        other.end.sendall(stream[:next(guests)])
        if n % 3 == 0:
            other.end.shutdown(socket.SHUT_RDWR)
        other.close()
        a.send(numbered(b.mac, a.mac, n))
        while (received := b.receive())[6:12] != a.mac:
            pass
        assert received == numbered(b.mac, a.mac, n)
