# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Errors of PCI Express, which QEMU's monitor has the device report: the guest's kernel logs
them, and resets the slot after a fatal one. guest/test_recovery.py has what else may happen
in such a reset.
"""

import pytest

from lab import aer, content, verbs
from lab.flows import FLUSHED, RETRY_EXCEEDED, Traffic

# With hotplug by ACPI, which is QEMU's default, a root port never shows that its link is
# active. Linux waits for that after it has reset the slot, and then gives the device up.
NATIVE = ("-global", "ICH9-LPC.acpi-pci-hotplug-with-bridge-support=off")


def dead(node):
    return int(node.out("dmesg | grep -c 'qhca .*: dead' || :"))


@pytest.mark.full
def test_errors(qhca_pair):
    """The kernel counts them; the driver and the traffic go on."""
    b = qhca_pair.b
    before = dead(b)
    with content(*qhca_pair):
        traffic = Traffic(qhca_pair, ("rc-small",)).start()
        try:
            for error, severity, name in (("RCVR", "correctable", "RxErr"),
                                          ("COMP_TIME", "nonfatal", "CmpltTO")):
                aer.inject(b, error, severity, name)
                traffic.wait_progress()
            for end, report in traffic.stop().items():
                assert report.sound and not report.ended and not report.statuses, f"{end}: {report}"
        finally:
            traffic.abandon()
    assert dead(b) == before


@pytest.mark.full
def test_fatal_error(pairs):
    """The slot is reset and the device starts again, without the QPs that it had. The peer's
    QPs end as if it had gone, and Ethernet goes on."""
    pair = pairs.get("qhca", "qhca", args=NATIVE)
    kinds = ("rc-small", "rc-large")
    with content(*pair):
        for times in 1, 2:
            traffic = Traffic(pair, (*kinds, "flood")).start().wait_progress()
            try:
                aer.inject(pair.b, "MALF_TLP")
                pair.b.configure()
                pair.wait_link()
                for node in pair:
                    traffic.wait_over(node, kinds)
                traffic.wait_progress({"flood"})
                for (kind, node), report in traffic.stop().items():
                    what = f"{kind} on {node}: {report}"
                    assert report.sound and report.statuses <= {FLUSHED, RETRY_EXCEEDED}, what
                    if kind in kinds:
                        assert report.fatal if node == "b" else report.ended, what
            finally:
                traffic.abandon()
            assert dead(pair.b) == times
        verbs.pingpong(*pair, "rc", "-n 100 -c")
