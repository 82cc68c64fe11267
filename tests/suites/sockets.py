# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Benchmarks of verbs and of sockets over them: perftest, qperf, rsockets."""

from lab import verbs
from lab.guest import GuestError

from . import Case, Program, both, must_use

PRELOAD = "LD_PRELOAD=/usr/lib/x86_64-linux-gnu/rsocket/librspreload.so"


def perftest(test, options, one_way=False, ip=4):
    """A case's function. one_way: nothing acknowledges what the client sends."""
    def run(server, client):
        done = must_use(server, client,
                        lambda: verbs.perftest(server, client, test, options, ip=ip), 10,
                        (client,) if one_way else None)
        if not done.rows:
            raise GuestError(f"no table\nclient: {done.client}\nserver: {done.server}")
    return run


# The multicast group that perftest chooses (-g) is one of IPv6, and so must the address be.
PERFTEST = Program("perftest", "perftest", tuple(
    Case(f"{test} {connection}{more}", perftest(
        test, f"-c {connection} {options}{more}",
        what == "bw" and connection in ("UC", "UD"), 6 if more else 4))
    for connection, tests in (
        ("RC", ("write", "read", "send", "atomic")), ("UC", ("write", "send")),
        ("XRC", ("write", "read", "send", "atomic")), ("UD", ("send",)))
    for what, options in (("bw", "-n 50"), ("lat", "-n 50"))
    for more in (("", " -g") if connection == "UD" else ("",))
    for test in (f"ib_{verb}_{what}" for verb in tests)))


def rstream(options):
    def run(server, client):
        port = verbs.next_port()
        must_use(server, client, lambda: both(
            server, client, f"rstream -b {server.ip4} -p {port} {options}",
            f"rstream -s {server.ip4} -p {port} {options}",
            ready=verbs.cm_listening(port), timeout=180))
    return run


def iperf(server, client):
    port = verbs.next_port()
    must_use(server, client, lambda: both(
        server, client, f"{PRELOAD} iperf3 -s -1 -B {server.ip4} -p {port}",
        f"{PRELOAD} iperf3 -c {server.ip4} -p {port} -n 2M -l 16K",
        ready=verbs.cm_listening(port), timeout=60))


# The server closes its socket after the last message.
POLLHUP = "rstream leaves what it has received unread if poll() reports POLLHUP beside POLLIN"
# iperf3 polls with a limit, while a thread of its own sends. The stack of the client shows
# rpoll() going round: a poll that has run into its limit is counted as going on.
RPOLL = {kind: "librdmacm 56.1 waits in rpoll() for a poll that ran into its time limit"
         for kind in ("qhca", "rxe")}

RSOCKETS = Program("rsockets", "librdmacm1t64", (
    Case("rstream", rstream("-S 16384 -I 50")),
    Case("rstream -T a", rstream("-T a -S 16384 -I 50"), race=POLLHUP, like="ended with 16\n"),
    Case("rstream -T n", rstream("-T n -S 16384 -I 50")),
    Case("iperf3", iperf, known=RPOLL),
))


def qperf(test, options="-t 1"):
    """A case's function. Parameters that are a node's own have -loc and -rem."""
    def run(server, client):
        port = verbs.next_port()
        devices = f"-li {client.ibdev}:1 -ri {server.ibdev}:1" if "_" in test else ""
        daemon = server.spawn(f"qperf -lp {port}")
        try:
            server.wait_until(verbs.listening(port), 30)
            done = must_use(server, client, lambda: client.exec(
                f"qperf -lp {port} {server.ip4} {devices} {options} {test}", timeout=60))
            if "=" not in done.out or "fail" in done.out:
                raise GuestError(str(done))
        finally:
            daemon.kill()
    return run


# It connects without a GRH unless the RDMA CM does it.
QPERF = Program("qperf", "qperf", tuple(
    Case(test, qperf(test, "-t 1 -cm 1")) for test in (
        "rc_bw", "rc_lat", "rc_bi_bw", "rc_rdma_read_bw", "rc_rdma_read_lat", "rc_rdma_write_bw",
        "rc_rdma_write_lat", "rc_rdma_write_poll_lat")))
