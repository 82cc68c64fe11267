# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Other people's programs (tests/suites), each with the faults that it is known for.

Without FULL=1 the short cases run between two guests that have qhca only, so that no
variable names a device. With it all cases run on qhca, and then on Soft-RoCE in the same
guests; `make programs-table` writes what they found into Documentation/programs.rst.
"""

import pytest

from lab import content, paths
from lab.link import FULL
from lab.trees import newest_rdma_core
from suites import (blktests, fabric, kernel, mpi, rdma_core, record, run_cases, sockets, ucx,
                    unit_test, used, version, wrong)

PROGRAMS = (ucx.UCX, mpi.OPENMPI, fabric.LIBFABRIC, fabric.FABTESTS, sockets.PERFTEST,
            sockets.RSOCKETS, sockets.QPERF, *kernel.KERNEL)
SHORT = [program for program in PROGRAMS if any(case.short for case in program.cases)]


def guests(pairs, kind, memory=1536, **more):
    files = {"files": {"suites": paths.suite("suites"), "diod": paths.suite("diod"), **more}}
    return pairs.get(kind, kind, memory=memory, a_args=files, b_args=files)


def run_on(pair, link, kind, program, version_text):
    """What is wrong on qhca. What Soft-RoCE fails at is recorded, and its WARNs are not qhca's."""
    a, b = pair.a.ports[link], pair.b.ports[link]
    assert a.kind == kind and b.kind in (kind, "none")
    results, texts = run_cases(program, a, b, program.cases)
    complaints = [line for node in pair for line in node.new_complaints()]
    assert kind == "rxe" or not complaints, complaints
    record(program, version_text, pair.a.release, kind, results)
    return wrong(program, kind, results, texts) if kind == "qhca" else []


def run_both(pair, program, version_text):
    """On both devices of the same guests."""
    found = [run_on(pair, link, kind, program, version_text) for link, kind in enumerate(("qhca", "rxe"))]
    assert found == [[], []]


@pytest.mark.parametrize("program", SHORT, ids=lambda program: program.name)
def test_short(pairs, program):
    pair = guests(pairs, "qhca")
    cases = [case for case in program.cases if case.short]
    with content(*pair):
        results, texts = run_cases(program, pair.a.ports[0], pair.b.ports[0], cases)
    assert not wrong(program, "qhca", results, texts)
    assert set(results) == {case.name for case in cases}


if FULL:
    del test_short      # test_all has these cases


@pytest.mark.full
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_all(pairs, program):
    pair = guests(pairs, "qhca+rxe")
    run_both(pair, program, version(pair.a, program.package))


@pytest.mark.full
@pytest.mark.skipif(not unit_test.folder(), reason="needs a tree: RDMA_UNIT_TEST_SRC=")
def test_unit_test(pairs):
    """As many CQs and QPs as there may be need memory."""
    pair = guests(pairs, "qhca+rxe", memory=4096, **{"rdma-unit-test": unit_test.folder()})
    run_both(pair, unit_test.program(), (unit_test.folder() / "version").read_text().strip())


@pytest.mark.full
@pytest.mark.skipif(not blktests.folder(), reason="needs a tree: BLKTESTS_SRC=")
@pytest.mark.parametrize("group", ["nvme", "srp"])
@pytest.mark.parametrize("kind", ["qhca", "rxe"])
def test_blktests(pairs, kind, group):
    """The suite makes and removes Soft-RoCE's device itself: each kind has guests of its own."""
    pair = guests(pairs, kind, memory=2048, blktests=blktests.folder())
    before = used(pair.a.ports[0], 0) if kind == "qhca" else 0
    found = run_on(pair, 0, kind, blktests.program(group), (blktests.folder() / "version").read_text().strip())
    assert not found
    assert kind == "rxe" or used(pair.a.ports[0], before) > 10000


def beside_nothing(pairs, files, build=paths.BUILD):
    """For what needs one guest: the other has no RDMA device."""
    return pairs.get("qhca+rxe", "none+none", build=build, a_args={"memory": 1536, "files": files},
                     b_args={"memory": 384})


@pytest.mark.full
def test_rdma_core(pairs):
    """The guest's release."""
    pair = beside_nothing(pairs, {"rdma-core/tests": rdma_core.sources()})
    run_both(pair, rdma_core.program("rdma-core", pair.a), version(pair.a, "libibverbs1"))


@pytest.mark.full
def test_newest_rdma_core(pairs):
    folder = newest_rdma_core()
    pair = beside_nothing(pairs, {"rdma-core": folder / "pyverbs"}, folder)
    run_both(pair, rdma_core.program("rdma-core newest", pair.a), rdma_core.own_version(pair.a))
