# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What the study measures, and how it compares runs; without a guest."""

import itertools
import json

import pytest

import study
from study import Geometry, Message, Trace, neighbour, oracle
from study import rows as study_rows
from study.page import page
from study.rows import simulated_us


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
    messages = [t for t in traces if isinstance(t, Message)]
    assert {m.operation for m in messages} == {"write", "read", "fetch-add", "compare-swap"}
    # Labels tell the measurements of one run of qhca-touch apart.
    assert len({m.label for m in messages}) == len(messages)


def test_message_script():
    """The region has the pages that the last message reaches into."""
    message = Message("messages", "hot", 512, 2, "write", 512, 8192)
    assert message.span == 3
    assert message.script == ("regions", 512, 4, "small", "messages", "write", 512, 8192, "hot",
                              512, 2)
    assert Message("messages", "hot", 512, 2, "write", 0, 4096).span == 1


@pytest.mark.parametrize("line", ["trace keys random 1", "trace keys random 1 two",
                                  "tracer keys random 1 2",
                                  "message messages write 0 8 random 1"])
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


# -- the oracle -------------------------------------------------------------

@pytest.fixture(scope="module")
def predicted(tmp_path_factory):
    return oracle.predictions(tmp_path_factory.mktemp("oracle"))


def prediction(predicted, **wanted):
    (found,) = [counts for asked, counts in predicted.items()
                if wanted.items() <= dict(zip(oracle.ASKED, asked)).items()]
    return found


def test_oracle_has_all(predicted):
    geometries, traces = study.read_cases()
    assert len(predicted) == sum(g.sweep == t.sweep for g in geometries for t in traces)


def test_oracle_by_hand(predicted):
    """272 keys in turn, one line for keys: the first packet of a message misses, and the
    three that follow hit; the pages all stay in the other cache."""
    for operation in ("write", "read"):
        assert prediction(predicted, sweep="messages", operation=operation, pattern="cycle",
                          bytes=4096, pt_sets=1, pt_blocks=1) == {
            "accesses": 2048, "pt_hits": 3 * 2048, "pt_misses": 2048, "pt_evictions": 2048,
            "pt_conflicts": 0, "at_hits": 4 * 2048, "at_misses": 0, "at_evictions": 0,
            "at_conflicts": 0}
    # One line for pages: each of the three pages misses once.  The packets from 3584 and
    # from 7680 touch two pages each, so there are ten look-ups for eight packets.
    counts = prediction(predicted, sweep="messages", operation="read", bytes=8192, at_sets=1,
                        at_blocks=1)
    assert counts["pt_hits"] == 8 * 2048 and counts["pt_misses"] == 0
    assert counts["at_hits"] + counts["at_misses"] == 10 * 2048
    # A message that begins with the page at which the one before it has ended hits once more.
    assert 3 * 2048 - 100 < counts["at_misses"] <= 3 * 2048


def measured(predicted):
    """Rows of a device that counts what the model says."""
    rows = [dict(zip(oracle.ASKED, asked), **counts) for asked, counts in predicted.items()]
    for row in rows:
        if row["sweep"] != "messages":
            del row["operation"], row["offset"], row["bytes"]
    return rows + [{"sweep": "queues"}]


def test_oracle_compares(predicted):
    rows = measured(predicted)
    assert oracle.differences(rows, predicted) == ([], len(predicted))
    rows[3] = dict(rows[3], at_misses=rows[3]["at_misses"] + 1)
    found, compared = oracle.differences(rows, predicted)
    assert compared == len(predicted) and len(found) == 1 and "counts at_misses" in found[0]
    found, compared = oracle.differences(rows[4:], predicted)
    assert compared == len(predicted) - 4 and len(found) == 4
    assert all(sentence.startswith("the study has no measurement") for sentence in found)
    found, _ = oracle.differences([dict(rows[5], keys=7), *rows], predicted)
    assert found[0].startswith("the model has no prediction")


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


def page_rows():
    """Two measurements of each kind, as `make study` makes them."""
    def measured(sweep, memory="small", ns=0, keys=(64, 128), **more):
        geometry = {"pt": (64, 4), "at": (64, 4)}
        return [dict(study.row(sweep, geometry, Trace(sweep, "random", k, 1), memory, ns,
                               counts(at_hits=3, at_misses=7, at_node_reads=5,
                                      fetch_stall_ns=7000000)), **more)
                for k in keys]

    rows = measured("keys") + measured("pages")
    rows += measured("messages", operation="read", offset=512, bytes=8192)
    for memory in ("small", "huge"):
        rows += measured("page-size", memory, mib=2)
    for memory in ("small", "pool"):
        rows += measured("pool", memory)
    for ns in study.COST_NS:
        rows += measured("translation", "malloc", ns) + measured("translation", "pool", ns)
        rows += measured("cost", "small", ns)
        rows += measured("queues", "small", ns, keys=(1,), queues=32, qp_sets=16, qp_blocks=4,
                         qp_hit_rate=0.5)
    return rows + neighbour.parse(neighbour_text())[0]


def neighbour_text(bad=None):
    """What the simulator's program prints for two caches."""
    lines = []
    for number, (cache, situation) in enumerate(itertools.product(
            ("pt", "qp"), ("alone", "beside", "masked")), 1):
        counts = {"sweep": "neighbour", "cache": cache, "situation": situation, "accesses": 100,
                  "lines": 2 if cache == "qp" else 1, "misses": 50 * (situation == "beside"),
                  "simulated_ns": 200000}
        lines += [f"# {json.dumps(counts)}",
                  f"{'not ' * (number == bad)}ok {number} - {cache}, {situation}"]
    return "\n".join([*lines, f"1..{number}", ""])


def test_neighbour():
    rows, found = neighbour.parse(neighbour_text())
    assert len(rows) == 6 and not found
    assert [row["hit_rate"] for row in rows] == [1, 0.5, 1, 1, 0.75, 1]
    assert {simulated_us(row) for row in rows} == {2}
    assert study.differences(rows, rows[::-1]) == ([], 6)
    _, found = neighbour.parse(neighbour_text(bad=5))
    assert found == ["the simulator has not ok 5 - qp, beside"]


def test_three_geometries(predicted):
    """The small picture has three curves: hits in hundredths, as many as lines over keys."""
    rows = [dict(row, pt_hit_rate=study.hit_rate(row, "pt"))
            for row in measured(predicted) if row["sweep"] == "keys"]
    curves = list(study_rows.three_geometries(rows))
    assert [label for label, _, _ in curves] == ["64 lines (1 x 64)", "256 lines (64 x 4)",
                                                 "1024 lines (128 x 8)"]
    for (label, keys, hits), lines in zip(curves, (64, 256, 1024)):
        assert len(keys) == 8 and keys == sorted(keys)
        for n, percent in zip(keys, hits):
            assert abs(percent - 100 * min(1, lines / n)) < 5, (label, n)


def test_page():
    """The page has each section, and each table of it has a line for each measurement."""
    text = page(page_rows(), "nowhere")
    sections = dict(part.split("\n", 1) for part in text.split("\n## ")[1:])
    lines = {title: sum(" | " in line for line in body.splitlines())
             for title, body in sections.items()}
    assert lines == {
        "Keys against the protection cache": 0, "Pages against the translation cache": 0,
        "Messages of several packets, and atomic operations": 1 + 2 + 1 + 2,
        "Huge pages": 1 + 4, "Memory pool": 2 + 4 + 4, "What a miss costs": 1 + 2,
        "Many QPs": 1 + 1, "A function and its neighbour": 1 + 2}
