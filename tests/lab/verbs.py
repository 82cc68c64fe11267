# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Runs the usual client and server programs between two guests."""

import itertools
import math
import re
from dataclasses import dataclass, field

from .guest import PAUSE, GuestError

MAX_READS = 16          # READs and atomics that qhca has under way at once

# Over a second, where perftest has 67 ms: a guest whose host does something else for
# half a second is not dead.
ACK_TIMEOUT = 18

# Seconds that one side is given to end by itself when the other has failed.
AFTERMATH = 30

# What perftest's client says of a server that did not listen yet: the kernel's
# IB_CM_REJ_INVALID_SERVICE_ID.
NOT_LISTENING = "RDMA_CM_EVENT_REJECTED; error: 8."

# What perftest says where it failed to measure how fast the TSC runs. For its report it fits
# a line to 200 intervals of 0.1 to 2 ms, each by gettimeofday() and by the TSC. If the host
# suspends the vCPU between perftest's readings of the two, one interval of the TSC is longer
# by that time, and 3 ms, a time slice, are enough for the line not to fit. With -F perftest
# then prints 0 MiB/s, or inf us, whatever it has transferred.
NO_CLOCK = "Correlation coefficient r^2"

# Runs that measure() makes until it reports the clock's failure as an error.
TRIES = 5

_ports = itertools.count(18515)


def next_port():
    """A number for a TCP port that no other run has."""
    return next(_ports)


@dataclass
class Run:
    """What both sides of a run left."""
    server: object
    client: object
    rows: list = field(default_factory=list)


def listening(port):
    """A condition for bash, which needs no process for it: something in the guest listens
    on a TCP port."""
    return ("mapfile -t tcp < /proc/net/tcp; mapfile -t tcp6 < /proc/net/tcp6; "
            f"re=':{port:04X} [0-9A-F:]+ 0A '; [[ \"${{tcp[*]}} ${{tcp6[*]}}\" =~ $re ]]")


def losses(node):
    """Where a frame may have been lost, or was sent again: for the text of an error."""
    try:
        counters = {name: value for name, value in node.counters().items() if value}
        links = node.exec("ip -s -s link; tc -s qdisc; ip -s neigh", check=False).out
    except (AttributeError, GuestError, ValueError) as error:
        return f"\n-- {node.name}: no counters: {error} --"
    return f"\n-- {node.name}: RDMA counters, links, queues, neighbours --\n{counters}\n{links}"


def client_server(server, client, server_command, client_command, *, ready=None,
                  timeout=120, check=True, aftermath=AFTERMATH):
    """Runs a server on one node and its client on the other, to their ends.

    ready      a shell condition on the server's node that tells it is up
    aftermath  seconds that the server has to end when its client has failed
    """
    background = server.spawn(server_command)
    try:
        if ready:
            _await_ready(server, background, ready, timeout)
        c = client.exec(client_command, timeout=timeout, check=False)
        try:
            s = background.wait(timeout if c.ok else aftermath, check=False)
        except GuestError as error:
            raise GuestError(f"client on {client.name}: {c}\nserver on {server.name}: {error}") from None
        if check and not (c.ok and s.ok):
            raise GuestError(f"client on {client.name}: {c}\nserver on {server.name}: {s}"
                             f"{losses(client)}{losses(server)}"
                             f"{client.trouble()}{server.trouble()}")
    finally:
        if background.poll() is None:
            background.kill()
    return Run(s, c)


def together(pairs, commands, *, timeout=180):
    """Runs a server and a client for each of the pairs (server, client), all at once.

    commands(server, client) gives the commands of both sides, and the server's TCP port.
    All of them must succeed; returns the Runs.
    """
    jobs, spawned = [], []

    def spawn(node, command):
        spawned.append(node.spawn(command))
        return spawned[-1]
    try:
        for server, client in pairs:
            server_command, client_command, port = commands(server, client)
            jobs.append((server, client, spawn(server, server_command), client_command, port))
        for server, _, background, _, port in jobs:
            _await_ready(server, background, listening(port), timeout)
        clients = [spawn(client, command) for _, client, _, command, _ in jobs]
        runs = [Run(server.wait(timeout, check=False), client.wait(timeout, check=False))
                for (_, _, server, _, _), client in zip(jobs, clients)]
    finally:
        for background in spawned:
            if background.poll() is None:
                background.kill()
    for run, (server, client, *_) in zip(runs, jobs):
        if not (run.client.ok and run.server.ok):
            raise GuestError(f"client on {client.name}: {run.client}\nserver on {server.name}: "
                             f"{run.server}{losses(client)}{losses(server)}")
    return runs


class Flow:
    """A server and a client that run while the caller continues; see together() for the
    commands, which may give a shell condition in place of the port. At the end of the
    context neither is left."""

    def __init__(self, server, client, commands):
        self.nodes = server, client
        server_command, client_command, port = commands(server, client)
        self.sides = [server.spawn(server_command)]
        try:
            ready = port if isinstance(port, str) else listening(port)
            _await_ready(server, self.sides[0], ready, 60)
            self.sides.append(client.spawn(client_command))
        except BaseException:
            self.close()
            raise

    def runs(self):
        """Has neither side ended?"""
        return all(side.poll() is None for side in self.sides)

    def end(self, timeout=180):
        """Waits for the end of both sides, which must succeed; a Run."""
        server, client = self.nodes
        c = self.sides[1].wait(timeout, check=False)
        s = self.sides[0].wait(timeout if c.ok else AFTERMATH, check=False)
        if not (c.ok and s.ok):
            raise GuestError(f"client on {client.name}: {c}\nserver on {server.name}: {s}"
                             f"{losses(client)}{losses(server)}"
                             f"{client.trouble()}{server.trouble()}")
        return Run(s, c)

    def close(self):
        for side in self.sides:
            if side.guest.running and side.poll() is None:
                side.kill()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def measured(run, column, size=None):
    """The number in a column of perftest's table, which has one row, for messages of a
    size. One that is missing, or 0, is an error, with its reason if it is known, and with
    all that both sides have said."""
    found = [row.get(column, math.nan) for row in run.rows if size in (None, row["bytes"])]
    if len(found) != 1 or len(run.rows) != 1 or not 0 < found[0] < math.inf:
        raise GuestError(f"{column} is {found or 'missing'}, which is no result{_reason(run)}\n"
                         f"client: {run.client}\nserver: {run.server}")
    return found[0]


def _completed(run):
    return any(row.get("iterations") for row in run.rows)


def _reason(run):
    if run.rows and not _completed(run):
        return ": the client got no completion while it measured"
    return ": the client failed to measure its clock" if NO_CLOCK in run.client.err else ""


def measure(server, client, test, options, column, size=None):
    """Runs one of perftest's programs; returns the number in a column of its table."""
    return measure_columns(server, client, test, options, (column,), size)[column]


def measure_columns(server, client, test, options, columns, size=None):
    """Runs one of perftest's programs; returns {column: number} of some columns of its table.

    A run that transferred something, but whose client failed to measure its clock, does not
    show how fast the device is, and is repeated. An error ends with what the devices have
    counted in the run: whether the client's device took a doorbell, sent packets and
    received acknowledgements.
    """
    for left in reversed(range(TRIES)):
        before = [node.counters() for node in (server, client)]
        run = None
        try:
            run = perftest(server, client, test, options)
            return {column: measured(run, column, size) for column in columns}
        except GuestError as error:
            if left and run and _completed(run) and NO_CLOCK in run.client.err:
                continue
            raise GuestError(f"{error}\ncounted by the server's device: "
                             f"{_counted(server, before[0])}\ncounted by the client's device: "
                             f"{_counted(client, before[1])}") from None
    raise AssertionError("the last try returns or raises")


def _counted(node, before):
    try:
        now = node.counters()
    except GuestError as error:
        return f"unknown: {error}"
    changes = {name: value - before.get(name, 0) for name, value in now.items()}
    return ", ".join(f"{name} +{n}" for name, n in changes.items() if n) or "nothing"


def pingpong_us(run):
    """Microseconds for each iteration, as the client of a pingpong has measured."""
    found = re.search(r"= ([\d.]+) usec/iter", run.client.out)
    if not found or not float(found[1]) > 0:
        raise GuestError(f"no result\nclient: {run.client}\nserver: {run.server}")
    return float(found[1])


def _await_ready(server, background, ready, timeout):
    # Ends early when the server does, so that its message is seen at once.
    loop = f"until {{ {ready} ; }}; do [ -d /proc/{background.pid} ] || exit 99; {PAUSE}; done"
    timeout = min(timeout, 60)
    try:
        waited = server.exec(loop, timeout=timeout, check=False)
    except GuestError as error:
        raise GuestError(f"server on {server.name}: not ready within {timeout} s: {error}") from None
    if not waited.ok:
        raise GuestError(f"server on {server.name}: {background.wait(AFTERMATH, check=False)}")


def become_neighbours(server, client):
    """Has both know each other's IPv6 address: the kernel gives a QP that is connected,
    and librdmacm's programs, a second or two for that. By IPv4 they meet anyway."""
    client.wait_until(f"ping -c 1 -W 1 {server.ip6}", what="ping of the server")


def gid_options(server, client, ip=4, flag="-g"):
    """Options that pick the GIDs: of the IPv4 or IPv6 addresses (4, 6), or
    of a pair (server's address, client's)."""
    if ip == 6:
        become_neighbours(server, client)
    addresses = {4: (server.ip4, client.ip4), 6: (server.ip6, client.ip6)}.get(ip, ip)
    return tuple(f"{flag} {node.gid_index(address)}"
                 for node, address in zip((server, client), addresses))


def _commands(name, options, gid_flag, ip=4, server_options=None):
    """For together(): the commands of a program that is client and server, which connect
    by TCP and have the same options unless the server has its own."""
    if server_options is None:
        server_options = options

    def commands(server, client):
        port = next_port()
        gs, gc = gid_options(server, client, ip, gid_flag)
        return (f"{name} -d {server.ibdev} {gs} -p {port} {server_options}",
                f"{name} -d {client.ibdev} {gc} -p {port} {options} {server.ip4}", port)
    return commands


def pingpong_commands(kind="rc", options="", ip=4):
    """For together(): ibv_rc_pingpong and its relatives."""
    return _commands(f"ibv_{kind}_pingpong", options, "-g", ip)


def _has_timeout(options):
    """Do options of perftest say how long to wait for an acknowledgement?"""
    return re.search(r"(^|\s)-u\s", options)


def _perftest_options(server, client, test, options):
    """With those that the programs need between the two."""
    if (server.kind == "rxe") != (client.kind == "rxe") and re.match("ib_(read|atomic)", test):
        # Each takes the other's limit for its own, and rxe's is 128.
        options += f" -o {MAX_READS}"
    if not _has_timeout(options):
        options += f" -u {ACK_TIMEOUT}"
    return f"-F {options}"


def perftest_commands(test, options=""):
    """For together(): one of perftest's programs."""
    def commands(server, client):
        return _commands(test, _perftest_options(server, client, test, options), "-x")(server, client)
    return commands


def program_commands(name, options="", server_options="", ip=4):
    """For together(): a program of tests/guest/programs."""
    return _commands(name, options, "-g", ip, server_options)


def _one(server, client, commands, timeout, check):
    server_command, client_command, port = commands(server, client)
    return client_server(server, client, server_command, client_command,
                         ready=listening(port), timeout=timeout, check=check)


def pingpong(server, client, kind="rc", options="", *, ip=4, timeout=120, check=True):
    """ibv_rc_pingpong and its relatives."""
    return _one(server, client, pingpong_commands(kind, options, ip), timeout, check)


def rping(server, client, count=20):
    """rping, which connects by librdmacm and compares what comes back."""
    done = client_server(server, client, f"rping -s -a {server.ip4} -v -C {count}",
                         f"rping -c -a {server.ip4} -v -C {count}",
                         ready="rdma res show cm_id 2>/dev/null | grep -q 'state LISTEN'")
    for side in (done.server, done.client):
        received = len(re.findall(r"ping data: rdma-ping-\d+", side.out))
        if received != count:
            raise GuestError(f"{received} messages of {count}\nclient: {done.client}\n"
                             f"server: {done.server}")


def perftest(server, client, test, options="", server_options="", client_options="", *, ip=4,
             timeout=180, check=True):
    """One of perftest's programs, e.g. "ib_write_bw"; rows are its table.

    Each row is a dict by the names perftest prints at the head of its table.

    With -R the server begins to listen for QPs after both sides have exchanged their
    parameters, and does not announce it. A client that connects earlier is rejected, and
    crashes when it tries again. Nothing outside the programs can make them wait, so the
    function repeats such a run.
    """
    cm = bool(re.search(r"(^|\s)-R(\s|$)", options))
    options = _perftest_options(server, client, test, options)
    xs, xc = ("", "") if cm else gid_options(server, client, ip, "-x")
    for more in (cm, cm, False):
        port = next_port()
        try:
            run = client_server(
                server, client,
                f"{test} -d {server.ibdev} {xs} -p {port} {options} {server_options}",
                f"{test} -d {client.ibdev} {xc} -p {port} {options} {client_options} {server.ip4}",
                ready=cm_listening(port) if cm else listening(port), timeout=timeout, check=check)
            break
        except GuestError as error:
            if not more or NOT_LISTENING not in str(error):
                raise
    run.rows = table(run.client.out)
    return run


def program(server, client, name, server_options="", client_options="", *, ip=4, timeout=180,
            check=True):
    """A program of tests/guest/programs that runs in both guests."""
    return _one(server, client, program_commands(name, client_options, server_options, ip),
                timeout, check)


def verify(server, client, options="", server_options="", **kwargs):
    """The data test. Its client sends the server all options but the server's own."""
    return program(server, client, "qhca-verify", server_options, options, **kwargs)


def cm_listening(port):
    """A shell condition: an rdma_cm_id in the guest listens on a port."""
    return f"rdma res show cm_id 2>/dev/null | grep -q 'state LISTEN.*:{port}'"


HEADS = {
    "#bytes": "bytes", "#iterations": "iterations", "BW peak": "bw_peak",
    "BW average": "bw", "MsgRate": "mpps", "t_min": "t_min", "t_max": "t_max",
    "t_typical": "t_typical", "t_avg": "t_avg", "t_stdev": "t_stdev",
    "99%": "p99", "99.9%": "p999", "tps": "tps",
}


def table(text):
    """perftest's table as a list of dicts of numbers."""
    rows, names = [], None
    for line in text.splitlines():
        if "#bytes" in line:
            heads = re.findall(r"(#\w+|BW peak|BW average|MsgRate|99\.9%|99%|t_\w+|tps)", line)
            names = [HEADS.get(h, h) for h in heads]
        elif names:
            cells = line.split()
            if not cells or not re.fullmatch(r"\d+", cells[0]):
                if line.startswith("---"):
                    names = None
                continue
            rows.append({n: float(c) for n, c in zip(names, cells)})
    return rows
