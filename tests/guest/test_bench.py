# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""How `make bench` reads perftest and sums up; without a guest."""

import pytest

import bench
from bench import odp
from lab import verbs

BANDWIDTH = """
 #bytes     #iterations    BW peak[MiB/sec]    BW average[MiB/sec]   MsgRate[Mpps]
 65536      5632             0.00               703.95               0.011263
---------------------------------------------------------------------------------------
"""
LATENCY = """
 #bytes        #iterations       t_avg[usec]    tps average
 8             13642             109.91         4549.01
---------------------------------------------------------------------------------------
"""


def case(test, size):
    return next(c for c in bench.CASES if (c.test, c.size) == (test, size))


def test_columns():
    assert bench.value(verbs.table(BANDWIDTH), case("write bandwidth", 65536)) == 703.95
    # The average, not the transactions a second beside it.
    assert bench.value(verbs.table(LATENCY), case("write latency", 8)) == 109.91


def test_other_tables_are_refused():
    with pytest.raises(ValueError):
        bench.value(verbs.table(BANDWIDTH), case("write bandwidth", 4096))
    with pytest.raises(ValueError):
        bench.value([], case("write latency", 8))
    with pytest.raises(ValueError):
        bench.value(verbs.table(LATENCY), case("message rate", 8))


def test_summary():
    write, latency = case("write bandwidth", 65536), case("write latency", 8)
    entry = bench.summary(write, [900.0, 100.0, 800.0], [30.0, 40.0, 50.0])
    assert entry == {"test": "write bandwidth", "size": 65536, "unit": "MiB/s",
                     "qhca": 800.0, "rxe": 40.0, "ratio": 20.0}
    assert write.verdict(20.0) == ">= 20 met"
    assert write.verdict(19.9) == ">= 20 MISSED"
    assert latency.verdict(0.2) == "<= 0.2 met"
    assert latency.verdict(0.21) == "<= 0.2 MISSED"
    assert bench.summary(write, [], [1.0])["ratio"] is None


def test_on_demand():
    line = "cost size=4096 mode={} median={} p99={} n=512\n"
    text = "".join(line.format(mode, n, 10 * n) for n, mode in enumerate(odp.MODES, 1))
    values = odp.parse(text, 4096)
    assert values["pinned", "median"] == 3 and values["cold", "p99"] == 10
    rows = odp.summary(4096, values, {key: 2 * v for key, v in values.items()})
    assert len(rows) == 8 and {r["ratio"] for r in rows} == {0.5}
    assert rows[0] == {"test": "on demand: write to a page not there, median", "size": 4096,
                       "unit": "us", "qhca": 1, "rxe": 2, "ratio": 0.5}
    assert odp.summary(4096, values, None)[0]["ratio"] is None
    some = odp.parse(line.format("cold", 1, 2) + line.format("pinned", 1, 2), 4096,
                     may_lack=("advised", "advice"))
    assert odp.summary(4096, values, some)[2]["rxe"] is None
    with pytest.raises(ValueError):
        odp.parse(text, 2 << 20)
    with pytest.raises(ValueError):
        odp.parse(text.replace("advice", "advise"), 4096)
