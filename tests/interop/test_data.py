# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Every byte, completion and immediate against a model (programs/verify/plan.h)."""

import itertools

import pytest

from lab import verbs
from lab.link import FULL, qhca_links

ROUNDS = 200 if FULL else 20
_seed = itertools.count(1)

SHAPES = {
    "rc": "-t rc",
    "rc_mtu256": "-t rc -m 256 -S 16384",
    "rc_mtu4096_4qps_place": "-t rc -m 4096 -q 4 -w",
    "rc_events": "-t rc -e",
    "rc_srq": "-t rc -q 4 -r -S 8192",
    "rc_srq_events": "-t rc -q 3 -r -e -S 8192",
    "rc_large": "-t rc -m 4096 -S 1048576",
    "uc": "-t uc -q 2",
    "uc_events": "-t uc -e",
    "ud": "-t ud -q 2 -m 2048",
    "ud_srq": "-t ud -q 4 -r",
    "rc_srq_extended": "-t rc -q 4 -r -W -e -S 8192",
    "uc_extended": "-t uc -q 2 -W",
    "ud_extended": "-t ud -q 2 -W",
}
# Of the extended ones, and of those with events, others do the same beside Soft-RoCE.
OURS = ("rc_mtu256", "rc_srq", "uc_events", "ud_extended")
XRC = {
    "xrc": "-t xrc -q 3 -S 8192",
    "xrc_extended_events": "-t xrc -q 4 -W -e -m 4096 -S 8192",
}


@pytest.fixture
def lists(link, shape):
    """Soft-RoCE's ibv_wr_set_sge_list() takes each segment for as long as the first,
    and its ibv_wr_set_inline_data_list() all for empty: one segment is right."""
    return "-1" if link.has_rxe and "extended" in shape else ""


@pytest.fixture
def patience(link):
    """What lets a Soft-RoCE responder get requests again.

    A READ that it gets again, behind a request of no bytes, ends its QP with a warning
    of the kernel: read_reply() in rxe_resp.c takes the length of the last request for
    that of the READ, and looks up no region. Such requests wait for READs therefore.
    On a machine that is busy enough a guest stands still for a second, so the ACK
    timeout is 4.3 s in place of 1.1 s. Soft-RoCE never answers a FLUSH that it gets again:
    rxe_prepare_res() notes no PSN of it, so find_resource() does not find it. qhca then
    reports that after 14 to 27 timeouts of 4.3 s (hardware.rst, Ack timer), and qhca-verify
    waits for the report.
    """
    return "-o 20 -T 150 -z" if link.has_rxe else ""


@pytest.mark.parametrize("shape", [pytest.param(s, marks=[pytest.mark.ours] if s in OURS else [])
                                   for s in SHAPES])
def test_data(ends, shape, lists, patience):
    rounds = ROUNDS // 4 if shape == "rc_large" else ROUNDS
    # SRQs of ours are too small at first, and grow while messages arrive.
    grows = [" -G" if "srq" in shape and not peer.kind.startswith("rxe") else "" for peer in ends]
    verbs.verify(*ends, f"{SHAPES[shape]} -n {rounds} -s {next(_seed)} {lists} {patience}{grows[1]}",
                 grows[0], timeout=300)


@pytest.mark.parametrize("link", qhca_links(), ids=lambda link: link.id)
@pytest.mark.parametrize("shape", XRC)
def test_data_xrc(ends, shape):
    """Not with Soft-RoCE, which has no XRC (test_queues.py sees to it)."""
    verbs.verify(*ends, f"{XRC[shape]} -n {ROUNDS} -s {next(_seed)}", timeout=300)


@pytest.mark.parametrize("kind", ["rc", "uc", "ud"])
def test_data_ipv6(ends, kind, patience):
    verbs.verify(*ends, f"-t {kind} -n {ROUNDS // 2} -s {next(_seed)} {patience}", ip=6, timeout=300)


def test_late_receives(ends, patience):
    """Requests meet no receive and come again when there is one.

    An rxe requester stops for ever when it gets RNR NAKs with much under way
    (seen between two of them), so it is not made to.
    """
    server, client = ends
    late = [" -l" if not peer.kind.startswith("rxe") else "" for peer in (client, server)]
    assert any(late), "neither side can be a requester"
    verbs.verify(*ends, f"-t rc -n {ROUNDS} -s {next(_seed)} {patience} {late[1]}", late[0], timeout=300)


def test_cases(ends, tap_points):
    """Error statuses, flushing, states and events (programs/cases)."""
    done = verbs.program(*ends, "qhca-cases", timeout=300, check=False)
    assert done.server.ok, done.server
    tap_points(done.client.out + done.client.err, done.client.code)
