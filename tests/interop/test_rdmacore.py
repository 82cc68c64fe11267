# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""rdma-core's own tests (pyverbs), between QPs of one device, each as a test.

They are those of the source tree that the provider is built in, so of the
version of the guest's packages.
"""

import os
import pathlib
import re

import pytest

from lab import content, paths

MODULES = ["test_mr", "test_atomic", "test_cqex", "test_qp", "test_qpex", "test_srq", "test_odp",
           "test_flow"]
# Those whose calls the others use as well.
MORE = ["test_relaxed_ordering", "test_cq", "test_cq_events", "test_parent_domain", "test_pd",
        "test_shared_pd"]

# What may be left out: dma-buf regions are made from a GPU's memory there.
MAY_SKIP = ["Device /dev/dri/renderD128 is not present"]
RUN = """
import sys, unittest
sys.path.insert(0, sys.argv[1])
sys.path.insert(0, sys.argv[1] + "/tests")
module, device, gid = sys.argv[2:5]
sys.argv[1:] = ["--dev", device, "--gid", gid]
from args_parser import parser
import importlib, types
package = types.ModuleType("tests")
package.__path__ = [sys.path[0]]
sys.modules["tests"] = package
parser.parse_args()

class Result(unittest.TextTestResult):
    def tell(self, how, test, why=""):
        print("\\nresult", how, test.id().split(".", 1)[-1], why.replace("\\n", "\\\\n"), flush=True)
    def addSuccess(self, test): self.tell("passed", test)
    def addSkip(self, test, reason): self.tell("skipped", test, reason)
    def addError(self, test, err): self.tell("failed", test, self._exc_info_to_string(err, test))
    addFailure = addError

suite = unittest.defaultTestLoader.loadTestsFromModule(importlib.import_module("tests." + module))
unittest.TextTestRunner(stream=sys.stderr, resultclass=Result).run(suite)
print("\\nend", suite.countTestCases())
"""


def sources():
    """rdma-core's folder of tests."""
    return pathlib.Path(paths.guest_env()["tree"]) / "build" / "rdma-core" / "src" / "tests"


@pytest.fixture
def kernel():
    return "default"


@pytest.fixture
def node(pairs, kernel):
    pair = pairs.get("qhca", "none", mtu=4200, b_args={"memory": 384}, kernel=kernel,
                     a_args={"files": {"rdma-core/tests": os.fspath(sources())}})
    with content(pair.a):
        yield pair.a


@pytest.mark.parametrize("module", [*MODULES, *(pytest.param(m, marks=pytest.mark.full)
                                                for m in MORE)])
def test_rdmacore(node, module, tap_points):
    node.write("/tmp/run.py", RUN)
    node.exec("echo 8 > /proc/sys/vm/nr_hugepages")
    done = node.exec(f"python3 -W ignore /tmp/run.py /run/qhca/rdma-core {module} "
                     f"{node.ibdev} {node.gid_index()}", timeout=300, check=False)
    assert done.ok, done
    lines, number = [], 0
    for how, name, why in re.findall(r"^result (\w+) (\S+) (.*)$", done.out, re.M):
        number += 1
        if how == "passed":
            lines.append(f"ok {number} - {name}")
        elif how == "skipped" and why in MAY_SKIP:
            lines.append(f"ok {number} - {name} # SKIP {why}")
        else:
            lines += [f"# {line}" for line in f"{how}: {why}".split("\\n")]
            lines.append(f"not ok {number} - {name}")
    expected = re.search(r"^end (\d+)$", done.out, re.M)
    assert expected and int(expected.group(1)) == number, done
    tap_points("\n".join(lines + [f"1..{number}"]))


@pytest.mark.full
@pytest.mark.parametrize("kernel", ["backports"])
@pytest.mark.parametrize("module", ["test_mr", "test_odp"])
def test_rdmacore_newer_kernel(node, module, tap_points):
    """Memory, which newer kernels treat differently."""
    test_rdmacore(node, module, tap_points)


def test_sharing(node, tap_points):
    """One process imports what another has made (programs/uverbs/share.c)."""
    done = node.exec(f"qhca-share -d {node.ibdev} -g {node.gid_index()} 2>&1", timeout=60,
                     check=False)
    tap_points(done.out, done.code)
