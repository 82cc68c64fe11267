# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""rdma-core's own tests (pyverbs), between QPs of one device, each as a test.

They are those of the source tree that the provider is built in, so of the
version of the guest's packages.
"""

import os
import re

import pytest

from lab import content
from suites import rdma_core

MODULES = ["test_mr", "test_atomic", "test_cqex", "test_qp", "test_qpex", "test_srq", "test_odp",
           "test_flow"]
# Those whose calls the others use as well.
MORE = ["test_relaxed_ordering", "test_cq", "test_cq_events", "test_parent_domain", "test_pd",
        "test_shared_pd"]

# What may be left out: dma-buf regions are made from a GPU's memory there.
MAY_SKIP = ["Device /dev/dri/renderD128 is not present"]

@pytest.fixture
def kernel():
    return "default"


@pytest.fixture
def node(pairs, kernel):
    pair = pairs.get("qhca", "none", mtu=4200, b_args={"memory": 384}, kernel=kernel,
                     a_args={"files": {"rdma-core/tests": os.fspath(rdma_core.sources())}})
    with content(pair.a):
        yield pair.a


@pytest.mark.parametrize("module", [*MODULES, *(pytest.param(m, marks=pytest.mark.full)
                                                for m in MORE)])
def test_rdmacore(node, module, tap_points):
    done = rdma_core.run(node, [module])
    assert done.ok, done
    lines, number = [], 0
    for name, (how, why) in rdma_core.verdicts(done.out).items():
        number += 1
        if how == "passed":
            lines.append(f"ok {number} - {name}")
        elif how == "skipped" and why in MAY_SKIP:
            lines.append(f"ok {number} - {name} # SKIP {why}")
        else:
            lines += [f"# {line}" for line in f"{how}: {why}".splitlines()]
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
