# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""google/rdma-unit-test: tests of one device by itself, which scripts/suites.sh builds from a
tree that is not in Debian (RDMA_UNIT_TEST_SRC=).

Each of its tests is a case. A whole suite of tests runs at once, and its cases share the
results; where the program ends before its end, each test that is missing runs alone.
"""

import functools
import json
import re
import subprocess

from lab import paths
from lab.guest import GuestError

from .. import Case, Program, Skipped

HERE = "/run/qhca/rdma-unit-test"
RESULT = "/tmp/rdma-unit-test.json"
# Guests are slow. A timeout may last four times as long as it says (IBTA 9.9.2.1), and the suite
# waits for as many as six.
PATIENCE = "--completion_wait_multiplier={} --other_wait_multiplier=4"
MULTIPLIER = 16
# {suite, or test that runs alone: multiplier}. In one, a test destroys a QP whose peer's timeout is
# infinite, and wants within 30 seconds that the peer has waited for 5. The other wants that there
# is no completion, which comes after six timeouts of one second.
LESS_PATIENCE = {"ThreadedWorkloadTest": 4, "LoopbackRcQpTest.SendWithInvalidateType1Rkey": 2}
LIMIT, LIMIT_ALONE = 1800, 300

PEER = ("a QP in the error state drops requests (IBTA 10.3.1.7), and its peer, whose timeout is "
        "infinite, goes on for ever")
BEFORE_RTS = "a send is refused before RTS (C10-96)"
NO_OPERATION = "a datagram QP refuses it when it is posted, as an invalid operation type (IBTA 11.4.1.1)"
# {kind: {test: why it is left out}}. The suite says itself that C10-96 wants what it does not.
LEFT_OUT = {
    "qhca": {
        "CompChannelTest.RequestNotificationInvalidCq":
            "the device arms a CQ by a doorbell, which reports nothing",
        "CompChannelTest.RequestNotificationOnCqWithoutCompChannel":
            "the doorbell of a CQ without a channel reports nothing",
        "DeviceLimitTest.MaxPd": "the device has 16777215 PDs",
        "LoopbackUdQpTest.CompareSwap": NO_OPERATION,
        "LoopbackUdQpTest.FetchAdd": NO_OPERATION,
        "LoopbackUdQpTest.Read": NO_OPERATION,
        "LoopbackUdQpTest.Write": NO_OPERATION,
        "MwType2AdvancedTest.Rebind": PEER,
        "QpStateTest.PostRecvReset": "a receive is refused in the Reset state (IBTA 10.3.1.1)",
        "QpStateTest.PostSendReset": BEFORE_RTS,
        "QpStateTest.PostSendInit": BEFORE_RTS,
        "QpStateTest.PostSendRtr": BEFORE_RTS,
    },
    "rxe": {"MwType2AdvancedTest.Rebind": PEER},
}


def folder():
    """What scripts/suites.sh has built, or None."""
    path = paths.BUILD / "rdma-unit-test"
    return path if path.is_dir() else None


def names(listed):
    """The full names of the tests that --gtest_list_tests lists."""
    found, suite = [], None
    for line in listed.splitlines():
        word = line.partition("#")[0].strip()
        if not line.startswith(" "):
            suite = word
        elif word:
            found.append(suite + word)
    return found


def listed():
    """The program runs with the guest's libraries, and needs no device for that."""
    tree = paths.guest_env()["tree"]
    libraries = f"{folder()}:{tree}/usr/lib/x86_64-linux-gnu"
    return subprocess.run([f"{tree}/usr/lib64/ld-linux-x86-64.so.2", "--library-path", libraries,
                           folder() / "rdma_unit_test", "--gtest_list_tests"],
                          check=True, capture_output=True, text=True).stdout


def told(messages):
    """What googletest says, without the places in the source."""
    return "\n".join(re.sub(r"^\S+:\d+\n", "", message) for message in messages)


def verdicts(text):
    """{test: (passed, failed or skipped, why)} of the JSON that googletest writes."""
    found = {}
    for suite in json.loads(text)["testsuites"]:
        for test in suite["testsuite"]:
            why = told(f["failure"] for f in test.get("failures", []))
            skipped = told(s["message"] for s in test.get("skipped", []))
            result = "failed" if why else "skipped" if test["result"] == "SKIPPED" else "passed"
            found[f"{suite['name']}.{test['name']}"] = (result, why or skipped)
    return found


class Results:
    """What the program found on each device: {(device, test): verdict}."""

    def __init__(self):
        self.known = {}

    def run(self, port, tests, limit):
        """Runs the tests of a pattern; returns how the program ended."""
        # Soft-RoCE is given its IPv4 address: the suite says that it has no other.
        more = "--ipv4_only" if port.kind == "rxe" else ""
        alone = [test for test in LESS_PATIENCE if "." in test and test != tests]
        without = ":".join([*LEFT_OUT[port.kind], *alone])
        multiplier = LESS_PATIENCE.get(tests, LESS_PATIENCE.get(tests.partition(".")[0], MULTIPLIER))
        ended = port.exec(
            f"rm -f {RESULT}; cd {HERE} && timeout {limit} ./rdma_unit_test --device_name={port.ibdev} "
            f"{more} {PATIENCE.format(multiplier)} --gtest_filter='{tests}-{without}' "
            f"--gtest_output=json:{RESULT}",
            timeout=limit + 60, check=False)
        # It is written when the last test has ended.
        text = port.out(f"cat {RESULT} 2> /dev/null || :")
        for name, verdict in (verdicts(text) if text else {}).items():
            self.known[port.ibdev, name] = verdict
        return ended

    def of(self, port, test):
        """(passed, failed or skipped, why) of a test."""
        suite = test.rpartition(".")[0]
        if test in LEFT_OUT[port.kind]:
            return "skipped", LEFT_OUT[port.kind][test]
        if (port.ibdev, suite) not in self.known:
            self.known[port.ibdev, suite] = self.run(port, f"{suite}.*", LIMIT)
        if (port.ibdev, test) not in self.known:
            ended = self.run(port, test, LIMIT_ALONE)
            self.known.setdefault((port.ibdev, test), ("failed", str(ended)))
        return self.known[port.ibdev, test]


def case(results, test, known):
    def run(server, client):
        result, why = results.of(server, test)
        if result == "skipped":
            raise Skipped(why or "the suite skips it")
        if result == "failed":
            raise GuestError(why)
    return Case(test, run, known=known)


@functools.cache
def program():
    """The Program, of the tests that the built tree has."""
    results = Results()
    return Program("rdma-unit-test", None, tuple(case(results, name, {}) for name in names(listed())))
