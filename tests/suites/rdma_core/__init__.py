# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""rdma-core's own tests (pyverbs), between QPs of one device: those of the source tree that the
guest's packages are built from, and those of the newest release, with libraries, provider and
pyverbs of that release.

Each of its tests is a case. All of them run at once, since it takes long to load pyverbs. If one
of them ends the program, those after it run in another.
"""

import pathlib
import re

from lab import paths
from lab.guest import GuestError

from .. import Case, Program, Skipped

HERE = "/run/qhca/rdma-core"
RUN = pathlib.Path(__file__).with_name("run.py")
LIMIT = 5400
# {test: why it fails with kernels before 7}
OLD_KERNELS = {"test_rdmacm.CMTestCase.test_rdmacm_async_resolve_addrinfo":
               "the kernel has no RDMA_USER_CM_CMD_WRITE_CM_EVENT"}
# {what a test fails with that does not ask whether the device offers what it needs: that}
UNASKED = {"Failed to create WQ. Errno: 95,": "the device has no work queues (ibv_create_wq)"}
RESULT = re.compile(r"^result (\w+) (\S+) (.*)$", re.M)


def sources():
    """The folder of tests of the tree that the guest's packages are built from."""
    return pathlib.Path(paths.guest_env()["tree"]) / "build" / "rdma-core" / "src" / "tests"


def start(node, *arguments, tests=()):
    """Starts run.py in a guest."""
    node.write("/tmp/rdma-core-run.py", RUN.read_text())
    return node.spawn(" ".join(["python3 -W ignore /tmp/rdma-core-run.py", HERE, *map(str, arguments)]),
                      "\n".join(tests))


def run(node, tests):
    """Runs modules or tests; the Result."""
    # Some want huge pages.
    node.exec("echo 8 > /proc/sys/vm/nr_hugepages")
    return start(node, "run", node.ibdev, node.gid_index(), tests=tests).wait(LIMIT, check=False)


def verdicts(output):
    """{test: (passed, failed or skipped, why)} of what run.py prints."""
    return {name: (how, why.replace("\\n", "\n").strip()) for how, name, why in RESULT.findall(output)}


def reason(traceback):
    """The last line of a Python traceback that says something."""
    lines = [line for line in traceback.splitlines() if re.match(r"\S", line)]
    return lines[-1] if lines else traceback


class Results:
    """What was found on each device: {device: {test: verdict}}."""

    def __init__(self, tests):
        self.tests = tests
        self.known = {}

    def run(self, port):
        found = {}
        while left := [test for test in self.tests if test not in found]:
            ended = run(port, left)
            found.update(verdicts(ended.out))
            begun = re.findall(r"^start (\S+)$", ended.out, re.M)
            # The one that the program ended with, or all if it has not begun.
            for test in begun[-1:] or left:
                found.setdefault(test, ("failed", f"ended with {ended.code}\n{ended.err[-2000:]}"))
        return found

    def of(self, port, test):
        """(passed, failed or skipped, why) of a test."""
        if port.ibdev not in self.known:
            self.known[port.ibdev] = self.run(port)
        return self.known[port.ibdev][test]


def case(results, test, known):
    def run(server, _client):
        result, why = results.of(server, test)
        if result == "skipped":
            raise Skipped(why or "the suite skips it")
        for error, lacks in UNASKED.items():
            if result == "failed" and error in reason(why):
                raise Skipped(lacks)
        if result == "failed":
            # The traceback follows, as other programs' logs do.
            raise GuestError(f"{reason(why)}\n-- {test} --\n{why}")
    return Case(test, run, known=known)


def own_version(node):
    """The version of the pyverbs that a guest's folder has, not of Debian's."""
    found = node.out(f"cd {HERE} && python3 -c 'import pyverbs; print(pyverbs.__file__, pyverbs.__version__)'")
    file, _, number = found.partition(" ")
    assert file.startswith(HERE), found
    return number


def program(name, node):
    """The Program, of the tests that a guest's folder has."""
    listed = re.findall(r"^test (\S+)$", start(node, "list").wait(600).out, re.M)
    results, old = Results(listed), OLD_KERNELS if int(node.release.partition(".")[0]) < 7 else {}
    return Program(name, None, tuple(
        case(results, test, dict.fromkeys(("qhca", "rxe"), old[test]) if test in old else {})
        for test in listed))
