# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""UCX: its own benchmark, over its protocols (ucp) and over single transports (uct)."""

from lab import verbs
from lab.guest import GuestError

from . import Case, Program, both, must_use

# UCX takes the kind of a datagram's network header from a completion's `sl`, where mlx5
# has it. Soft-RoCE leaves 0 there, and UCX then drops each datagram, those that connect
# its RC transport included.
RXE_SL = {"rxe": "Soft-RoCE does not set the sl of a completion, from which UCX takes the type "
                 "of the network header"}

# Seconds for a device on which UCX waits for datagrams in vain; it would for half a minute.
HOPELESS = 25

# Packets of 200 messages, at the end that only acknowledges some of them.
ACKNOWLEDGED = 20


def environment(port, transports=""):
    """What has UCX use a port: nothing, in a guest that has one."""
    alone = len(port.guest.ports) == 1
    words = [] if alone else [f"UCX_NET_DEVICES={port.ibdev}:1"]
    return " ".join(words + ([f"UCX_TLS={transports}"] if transports else []))


def perftest(test, size=1024, transports="", device_options=""):
    """A case's function: ucx_perftest without MPI, which it otherwise wants without a
    terminal."""
    def run(server, client):
        port = verbs.next_port()
        options = f"-P 0 -p {port} {device_options.format(dev=server.ibdev)}"
        must_use(server, client, lambda: both(
            server, client, f"{environment(server, transports)} ucx_perftest {options}",
            f"{environment(client, transports)} ucx_perftest {server.ip4} {options} "
            f"-t {test} -s {size} -n 200 -w 10",
            ready=verbs.listening(port), expect=r"Final: +200 ",
            timeout=120 if server.kind == "qhca" else HOPELESS), ACKNOWLEDGED)
    return run


def info(server, client):
    """UCX finds the device, and both of its transports."""
    for port in server, client:
        found = port.out(f"ucx_info -d | grep -A 3 -E 'Transport: (rc|ud)_verbs'")
        for transport in "rc_verbs", "ud_verbs":
            if f"Transport: {transport}" not in found or f"{port.ibdev}:1" not in found:
                raise GuestError(f"{port.guest.name}: no {transport} of {port.ibdev}:\n{found}")


def case(name, run, short=False):
    return Case(name, run, short, RXE_SL)


UCX = Program("UCX", "ucx-utils", (
    Case("ucx_info -d", info, True),
    case("tag_lat", perftest("tag_lat"), True),
    case("tag_bw 1 MiB", perftest("tag_bw", 1 << 20)),
    case("tag_lat rc", perftest("tag_lat", transports="rc")),
    case("tag_lat ud", perftest("tag_lat", transports="ud"), True),
    case("ucp_put_lat rc", perftest("ucp_put_lat", transports="rc")),
    case("ucp_get rc", perftest("ucp_get", transports="rc")),
    case("ucp_fadd rc", perftest("ucp_fadd", 8, "rc")),
    case("stream_bw ud", perftest("stream_bw", transports="ud")),
    Case("am_lat rc_verbs", perftest("am_lat", 64, device_options="-d {dev}:1 -x rc_verbs")),
    Case("get rc_verbs", perftest("get", 2048, device_options="-d {dev}:1 -x rc_verbs -D zcopy")),
    case("am_bw ud_verbs", perftest("am_bw", 64, device_options="-d {dev}:1 -x ud_verbs")),
))
