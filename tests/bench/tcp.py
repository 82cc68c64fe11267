# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""TCP over qhca's interface and over virtio-net's, in the same guests, and beside RDMA.

Both interfaces have a -netdev of the same kind. iperf3 sends in one direction and then in
the other, on either by turns. Beside RDMA both streams run for longer than they are looked
at: counters of the receiver, read twice in the middle, tell what each of them gets, and the
same counters tell what each gets alone.
"""

import contextlib
import json
import statistics
from dataclasses import dataclass

from lab import verbs
from lab.ending import ERRORS
from lab.guest import GuestError

DIRECTIONS = ("TCP, a to b", "TCP, b to a")
BAR = 1.0                       # of qhca / virtio-net
SHARES = {"RDMA": 0.4, "TCP": 0.2}      # of what each gets alone: no less is left beside the other
LONGER = 600                    # seconds; whoever looks at a stream ends it
HEAD = ["test", "unit", "qhca", "virtio-net", "qhca / virtio-net", "bar"]
HEAD_BESIDE = ["beside each other", "unit", "alone", "beside", "share", "bar"]


def received(report):
    """MiB/s in the JSON of iperf3's client."""
    try:
        bits = json.loads(report)["end"]["sum_received"]["bits_per_second"]
    except (ValueError, KeyError) as error:
        raise GuestError(f"iperf3 has not measured: {error}\n{report}") from error
    if bits <= 0:
        raise GuestError(f"iperf3 has received nothing\n{report}")
    return bits / 8 / (1 << 20)


def measure(server, client, seconds):
    """MiB/s that a client sends to a server."""
    port = verbs.next_port()
    run = verbs.client_server(
        server, client, f"iperf3 -s -1 -4 -B {server.ip4} -p {port}",
        f"iperf3 -c {server.ip4} -p {port} -t {seconds} -J", ready=verbs.listening(port))
    return received(run.client.out)


def summary(direction, qhca, virtio):
    """The entry of build/bench.json for the rounds' numbers of both."""
    q, v = (statistics.median(values) if values else None for values in (qhca, virtio))
    return {"test": direction, "unit": "MiB/s", "qhca": q, "virtio": v,
            "ratio": q / v if q is not None and v else None}


def verdict(value, bar):
    if value is None:
        return ""
    return f">= {bar:g} {'met' if value >= bar else 'MISSED'}"


# -- beside RDMA --------------------------------------------------------------

def _paths(server):
    """The counters of what the server's device receives."""
    return {"RDMA": f"/sys/class/infiniband/{server.ibdev}/ports/1/hw_counters/rx_bytes",
            "TCP": f"/sys/class/net/{server.netif}/statistics/rx_bytes"}


@contextlib.contextmanager
def _stream(server, client, server_command, client_command, port, path):
    """Something that sends for a long time, from when the counter `path` of the server has
    moved by 1 MiB on."""
    processes = [server.spawn(f"exec {server_command}")]
    try:
        server.wait_until(verbs.listening(port))
        goal = int(server.out(f"cat {path}")) + (1 << 20)
        processes.append(client.spawn(f"exec {client_command}"))
        server.wait_until(f"[ $(cat {path}) -gt {goal} ]")
        yield
        if any(process.poll() is not None for process in processes):
            raise GuestError(f"it has ended: {client_command}")
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
                process.wait(60, check=False)


def _rdma(server, client):
    port = verbs.next_port()
    mine, peers = verbs.gid_options(server, client, 4, "-x")
    options = f"-p {port} -F -s 65536 -D {LONGER} -u {verbs.ACK_TIMEOUT}"
    return _stream(server, client, f"ib_write_bw -d {server.ibdev} {mine} {options}",
                   f"ib_write_bw -d {client.ibdev} {peers} {options} {server.ip4}", port,
                   _paths(server)["RDMA"])


def _tcp(server, client):
    port = verbs.next_port()
    return _stream(server, client, f"iperf3 -s -1 -4 -B {server.ip4} -p {port}",
                   f"iperf3 -c {server.ip4} -p {port} -t {LONGER}", port,
                   _paths(server)["TCP"])


def rates(server, seconds):
    """{"RDMA": MiB/s, "TCP": MiB/s} that the server receives during so many seconds."""
    paths = _paths(server)
    look = f"cat /proc/uptime {' '.join(paths.values())}"
    lines = server.out(f"{look}; sleep {seconds}; {look}", timeout=60 + seconds).split("\n")
    before, after = lines[:len(lines) // 2], lines[len(lines) // 2:]
    passed = float(after[0].split()[0]) - float(before[0].split()[0])
    return {name: (int(after[i]) - int(before[i])) / passed / (1 << 20)
            for i, name in enumerate(paths, 1)}


def beside(server, client, seconds):
    """{"RDMA": (alone, beside), "TCP": (alone, beside)} in MiB/s."""
    with _rdma(server, client):
        rdma = rates(server, seconds)["RDMA"]
        with _tcp(server, client):
            together = rates(server, seconds)
    with _tcp(server, client):
        tcp = rates(server, seconds)["TCP"]
    return {"RDMA": (rdma, together["RDMA"]), "TCP": (tcp, together["TCP"])}


def shares(rounds):
    """Entries of build/bench.json for what beside() has returned in some rounds."""
    rows = []
    for name in SHARES:
        alone, together = ([r[name][i] for r in rounds] for i in (0, 1))
        share = statistics.median(t / a for a, t in zip(alone, together)) if rounds else None
        rows.append({"test": f"{name} beside {'TCP' if name == 'RDMA' else 'RDMA'}",
                     "unit": "MiB/s", "bar": SHARES[name], "share": share,
                     "alone": statistics.median(alone) if rounds else None,
                     "beside": statistics.median(together) if rounds else None})
    return rows


# -- make bench ---------------------------------------------------------------

@dataclass
class Streams:
    """What run() has measured."""
    alone: list             # entries of summary()
    beside: list            # entries of shares()
    failed: int             # measurements

    @property
    def rows(self):
        """All entries, as build/bench.json has them"""
        return self.alone + self.beside


def run(pair, rounds, seconds, say):
    """Measures all of it in rounds, by turns; say() prints a line of progress."""
    values = {direction: ([], []) for direction in DIRECTIONS}
    together, failed = [], 0
    say("TCP")
    for _ in range(rounds):
        for direction in DIRECTIONS:
            for link in (0, 1):
                client, server = (node.ports[link] for node in pair)
                if direction != DIRECTIONS[0]:
                    client, server = server, client
                try:
                    got = measure(server, client, seconds)
                    values[direction][link].append(got)
                    say(f"  {direction}, {('qhca', 'virtio-net')[link]}: {got:.4g} MiB/s")
                except ERRORS as error:
                    failed += 1
                    say(f"  {direction} FAILED: {error}")
        try:
            together.append(beside(*(node.ports[0] for node in pair), seconds))
            say("  " + ", ".join(f"{name} {alone:.4g} alone, {shared:.4g} beside"
                                 for name, (alone, shared) in together[-1].items()) + " MiB/s")
        except ERRORS as error:
            failed += 1
            say(f"  TCP beside RDMA FAILED: {error}")
    return Streams([summary(d, *values[d]) for d in DIRECTIONS], shares(together), failed)


def tables(streams):
    """The two tables of make bench: (head, rows) of each."""
    show = lambda v: "FAILED" if v is None else f"{v:.4g}"  # noqa: E731
    return ((HEAD, [[r["test"], r["unit"], show(r["qhca"]), show(r["virtio"]), show(r["ratio"]),
                     verdict(r["ratio"], BAR)] for r in streams.alone]),
            (HEAD_BESIDE, [[r["test"], r["unit"], show(r["alone"]), show(r["beside"]),
                            show(r["share"]), verdict(r["share"], r["bar"])]
                           for r in streams.beside]))
