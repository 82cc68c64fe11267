# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What the study measures, and how it compares runs; without a guest."""

import pytest

import study
from study import Geometry, Trace


def test_cases():
    geometries, traces = study.read_cases()
    assert Geometry("keys", "pt", 1, 1) in geometries
    assert Geometry("pages", "at", 1, 1) in geometries
    assert len(set(geometries)) == len(geometries) >= 12
    assert len(set(traces)) == len(traces)
    for trace in traces:
        assert trace.sweep in {g.sweep for g in geometries}
        # The other cache holds all of it.
        assert trace.items <= study.ROOMY["at"][0] * study.ROOMY["at"][1]


@pytest.mark.parametrize("line", ["trace keys random 1", "trace keys random 1 two",
                                  "tracer keys random 1 2"])
def test_bad_cases(tmp_path, line):
    path = tmp_path / "cases.txt"
    path.write_text(f"# this is wrong\n\n{line}\n")
    with pytest.raises(ValueError):
        study.read_cases(path)


def counts(**values):
    return dict({"label": "x", "accesses": 10, "pt_hits": 6, "pt_misses": 4, "at_hits": 0,
                 "at_misses": 0, "ns": 1000}, **values)


def result(pages=1, **values):
    return study.row("keys", {"pt": (4, 2), "at": (8, 1)}, Trace("keys", "random", 5, pages),
                     "small", 0, counts(**values))


def test_row():
    row = result()
    assert row["pt_hit_rate"] == 0.6
    assert row["at_hit_rate"] is None   # nothing looked it up
    assert (row["pt_sets"], row["pt_blocks"], row["keys"], row["pages"]) == (4, 2, 5, 1)
    assert "label" not in row


def test_translation_time():
    """What the page says of an access's translation, with and without misses."""
    slow, fast = result(fetch_stall_ns=40000), result(fetch_stall_ns=0)
    assert study.translation_ns(slow) == 4000 and study.translation_ns(fast) == 0


def test_differences():
    first = [result(), result(pages=2)]
    assert study.differences(first, [result(ns=5), result(pages=2)]) == ([], 2)
    # What only one of them measured is not compared.
    assert study.differences(first, [result(pages=3)]) == ([], 0)
    found, same = study.differences(first, [result(pt_hits=5), result(pages=2)])
    assert same == 2 and len(found) == 1
    assert set(found[0][1]) == {"pt_hits", "pt_hit_rate"}


def test_differences_of_queues():
    """Rows that differ in their queues, or in the cache of them, are of two questions."""
    rows = [dict(result(pt_hits=6 + n), queues=queues, qp_sets=sets, qp_blocks=4)
            for n, (queues, sets) in enumerate([(32, 16), (64, 16), (32, 128)])]
    assert study.differences(rows, rows[::-1]) == ([], 3)
