# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Shared receive queues and extended reliable connections, by programs that
others have written; and more queues than the device has descriptors of."""

import re

import pytest

from lab import devlink, verbs
from lab.link import FULL, links, qhca_links

# Soft-RoCE has no XRC.
xrc = pytest.mark.parametrize("link", qhca_links(), ids=lambda link: link.id)

RC = [f"ib_{verb}_{what}" for verb in ("write", "read", "send", "atomic") for what in ("bw", "lat")]


def run(ends, test, options, size):
    rows = verbs.perftest(*ends, test, f"{options} -s {size}").rows
    assert [row["bytes"] for row in rows] == [size]


@xrc
@pytest.mark.parametrize("options", ["", "-e", "-m 4096 -s 100000"], ids=["poll", "events", "large"])
@pytest.mark.parametrize("ip", [4, 6], ids=["ipv4", "ipv6"])
def test_xsrq_pingpong(ends, options, ip):
    done = verbs.pingpong(*ends, "xsrq", f"-n 50 {options}", ip=ip)
    assert "success" in done.client.out and "success" in done.server.out


@xrc
def test_xsrq_pingpong_of_many(ends):
    """One SRQ and one target for each of several initiators."""
    server, client = ends
    port = 18400
    gid = "-g %d"
    background = server.spawn(f"ibv_xsrq_pingpong -d {server.ibdev} "
                              f"{gid % server.gid_index(server.ip4)} -p {port} -c 3 -n 50")
    server.wait_until(verbs.listening(port))
    command = (f"ibv_xsrq_pingpong -d {client.ibdev} {gid % client.gid_index(client.ip4)} "
               f"-p {port} -n 50 {server.ip4}")
    client.exec(f"for i in 1 2 3; do {command} & p=\"$p $!\"; done; for i in $p; do wait $i || exit 1; done")
    background.wait(60)


@xrc
@pytest.mark.parametrize("test", RC)
def test_xrc(ends, test):
    if "atomic" in test:
        verbs.perftest(*ends, test, "-c XRC -n 50")
    else:
        for size in (8192, 1) if FULL else (8192,):
            run(ends, test, "-c XRC -n 50", size)


@xrc
@pytest.mark.parametrize("options", ["-b -q 4", "-e", "-I 64", *(
    pytest.param(more, marks=pytest.mark.full) for more in ("-q 8", "-b", "-l 8"))])
def test_xrc_send(ends, options):
    run(ends, "ib_send_bw", f"-c XRC -n 64 {options}", 64)


@pytest.mark.parametrize("options", [
    pytest.param("", id="one"), pytest.param("-q 8", id="many"),
    pytest.param("-b", id="both", marks=pytest.mark.ours),
    pytest.param("-e", id="events", marks=pytest.mark.ours)])
def test_srq(ends, options):
    run(ends, "ib_send_bw", f"--use-srq -n 100 {options}", 1024)


@pytest.mark.parametrize("options", [
    pytest.param("", id="poll", marks=pytest.mark.ours), pytest.param("-e", id="events")])
def test_srq_of_datagrams(ends, options):
    """Of one QP: with more, perftest sends more than it has receives for."""
    run(ends, "ib_send_bw", f"-c UD --use-srq -n 100 {options}", 1024)


@pytest.mark.parametrize("kind", ["RC", "UD"])
def test_srq_latency(ends, kind):
    run(ends, "ib_send_lat", f"-c {kind} --use-srq -n 100", 1024)


OPEN_XRCD = """
import os, sys
import pyverbs.enums as e
from pyverbs.device import Context
from pyverbs.pyverbs_error import PyverbsRDMAError
from pyverbs.xrcd import XRCD, XRCDInitAttr
fd = os.open("/tmp/xrcd", os.O_RDONLY | os.O_CREAT)
attr = XRCDInitAttr(e.IBV_XRCD_INIT_ATTR_FD | e.IBV_XRCD_INIT_ATTR_OFLAGS, os.O_CREAT, fd)
try:
    XRCD(Context(name=sys.argv[1]), attr).close()
except PyverbsRDMAError as error:
    print(os.strerror(error.error_code))
else:
    print("opened")
"""


@pytest.mark.parametrize("link", [link for link in links() if link.has_rxe][:1],
                         ids=lambda link: link.id)
def test_soft_roce_has_no_xrc(ends):
    """It offers none and opens no domain, which is why the tests above leave it out;
    qhca beside it does both."""
    for node in ends:
        node.write("/tmp/xrcd.py", OPEN_XRCD)
        flags = node.out(f"ibv_devinfo -v -d {node.ibdev}")
        done = node.out(f"python3 -W ignore /tmp/xrcd.py {node.ibdev}")
        has_xrc = {"qhca": (True, "opened"), "rxe": (False, "Operation not supported")}
        assert (re.search(r"^\s*XRC$", flags, re.M) is not None, done) == has_xrc[node.kind], \
            f"{node.ibdev}: {done}\n{flags}"


# -- few descriptors --------------------------------------------------------

FEW = {"qp": (4, 2), "cq": (1, 1), "srq": (1, 1)}


@pytest.fixture
def few_descriptors(ends):
    """Both devices keep 8 QP descriptors, and one each of CQs and SRQs."""
    before = [devlink.geometry(node, FEW) for node in ends]
    for node in ends:
        devlink.set_geometry(node, **FEW)
    try:
        yield ends
    finally:
        for node, caches in zip(ends, before):
            devlink.set_geometry(node, **caches)


@xrc
def test_many_queues_of_few_descriptors(few_descriptors):
    """64 QPs with a cache of 8: every byte is right, and descriptors come and go."""
    for shape in ("-t rc", "-t rc -r -e", "-t xrc -q 32"):
        before = [node.counters() for node in few_descriptors]
        verbs.verify(*few_descriptors, f"-q 64 {shape} -S 2048 -n {40 if FULL else 2}", timeout=300)
        for node, was in zip(few_descriptors, before):
            more = {name: value - was[name] for name, value in node.counters().items()}
            for what in ("evictions", "writebacks", "misses"):
                assert more[f"qpc_{what}"] >= 64, (shape, what, more)
            assert more["cq_overruns"] == more["retry_exceeded"] == 0, (shape, more)


# test_many_queues_of_few_descriptors() has a cache of one CQ, too.
@pytest.mark.full
@xrc
def test_many_cqs_of_one_descriptor(few_descriptors):
    """64 QPs complete to a CQ each, and the device has room for one: it takes turns."""
    before = [node.counters() for node in few_descriptors]
    done = verbs.program(*few_descriptors, "qhca-queues", "-n 64", "-n 64")
    print(done.client.out)
    for node, was in zip(few_descriptors, before):
        more = {name: value - was[name] for name, value in node.counters().items()}
        for what in ("evictions", "writebacks", "misses"):
            assert more[f"cqc_{what}"] >= 64, (what, more)
        assert more["cq_overruns"] == 0, more
