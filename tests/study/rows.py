# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What the tables, the plots and the page take from the rows of the study."""

# RDMA READs of a ConnectX-6, 32 threads: millions a second by number of QPs.
CONNECTX6_READS = {32: 83, 64: 55, 512: 42, 4096: 21}


def select(rows, **wanted):
    return [r for r in rows if all(r.get(name) == value for name, value in wanted.items())]


def percent(rows, cache):
    return [100 * r[f"{cache}_hit_rate"] for r in rows]


def rate(rows):
    """Accesses a second."""
    return [1e9 * r["accesses"] / r["ns"] for r in rows]


def spared(row):
    """The share of accesses for which no table was read."""
    return 1 - row["pt_misses"] / row["accesses"]


def simulated_us(row):
    """Microseconds of the simulator's clock, a message."""
    return row["simulated_ns"] / row["accesses"] / 1000


# Sets and blocks of caches with 64, 256 and 1024 lines.
THREE = ((1, 64), (64, 4), (128, 8))


def three_geometries(rows):
    """The curves of the small picture: hits of the protection cache by keys."""
    for sets, blocks in THREE:
        mine = sorted(select(rows, sweep="keys", pattern="random", pt_sets=sets, pt_blocks=blocks),
                      key=lambda row: row["keys"])
        yield (f"{sets * blocks} lines ({sets} x {blocks})", [row["keys"] for row in mine],
               percent(mine, "pt"))
