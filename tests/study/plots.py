# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The study's plots."""

from lab.figure import Plots

from . import COST_GEOMETRY, COST_NS, QUEUE_GEOMETRIES
from .neighbour import SITUATIONS
from .rows import CONNECTX6_READS, percent, rate, select, simulated_us, spared, three_geometries


def by_geometry(rows, cache, x):
    """A curve of hit rates for each geometry."""
    seen = dict.fromkeys((r[f"{cache}_sets"], r[f"{cache}_blocks"]) for r in rows)
    for sets, blocks in seen:
        mine = sorted(select(rows, **{f"{cache}_sets": sets, f"{cache}_blocks": blocks}),
                      key=lambda r: r[x])
        yield f"{sets} x {blocks}", [r[x] for r in mine], percent(mine, cache)


def draw_all(rows, out):
    plots = Plots(out)
    keys, pages = select(rows, sweep="keys"), select(rows, sweep="pages")
    plots.draw("hits", "Keys in random order", "keys, one page each",
               "protection cache: hits, %", three_geometries(rows), hits=True, small=True)
    plots.draw("keys-random", "Keys in random order", "keys, one page each",
               "protection cache: hits, %",
               by_geometry(select(keys, pattern="random"), "pt", "keys"), hits=True)
    plots.draw("keys-cycle", "Keys one after the other", "keys, one page each",
               "protection cache: hits, %",
               by_geometry(select(keys, pattern="cycle"), "pt", "keys"), hits=True)
    plots.draw("pages-random", "Pages of one key in random order", "pages of 4 KiB",
               "translation cache: hits, %",
               by_geometry(select(pages, pattern="random", keys=1), "at", "pages"), hits=True)
    page_size = select(rows, sweep="page-size")
    plots.draw("page-size", "The same bytes in small and in huge pages", "MiB of one region",
               "translation cache: hits, %",
               [(label, [r["mib"] for r in mine], percent(mine, "at"))
                for label, mine in (("4 KiB pages", select(page_size, memory="small")),
                                    ("2 MiB pages", select(page_size, memory="huge")))],
               hits=True)
    pool = select(rows, sweep="pool")
    # What finds its key in the bank looks neither cache up: it cannot miss.
    plots.draw("pool", "Pool memory and ordinary memory", "keys, one page each",
               "accesses without a table read, %",
               [(label, [r["keys"] for r in mine], [100 * spared(r) for r in mine])
                for label, mine in (("ordinary memory", select(pool, memory="small")),
                                    ("memory pool", select(pool, memory="pool")))],
               hits=True)
    cost = select(rows, sweep="cost")
    sets, blocks = COST_GEOMETRY["pt"]
    plots.draw("cost", "Throughput as keys outgrow the caches", "keys, one page each",
               "WRITEs a second",
               [(f"a read of a table costs {ns // 1000} us" if ns else "misses cost nothing",
                 [r["keys"] for r in mine], rate(mine))
                for ns, mine in ((ns, select(cost, cost_ns=ns)) for ns in COST_NS)],
               note="lines of the protection cache", at=sets * blocks)
    for ns in COST_NS:
        plots.draw("queues-cost" if ns else "queues", "Throughput as QPs outgrow the cache: "
                   + (f"a context costs {ns // 1000} us" if ns else "misses cost nothing"),
                   "QPs that read in random order", "READs a second, those of 32 QPs = 100",
                   queue_curves(rows, ns))
    queues = select(rows, sweep="queues", cost_ns=0)
    plots.draw("queues-hits", "QPs in random order", "QPs that read, each with its peer",
               "queue descriptor cache: hits, %",
               by_geometry(queues, "qp", "queues"), hits=True)
    draw_neighbours(plots, select(rows, sweep="neighbour"))
    return plots.drawn


def draw_neighbours(plots, rows):
    caches = list(dict.fromkeys(r["cache"] for r in rows))
    plots.draw_bars("neighbour-hits", "A function, and one that thrashes each cache in turn",
                    "hits of the function, %", caches,
                    [(label, [100 * r["hit_rate"] for r in select(rows, situation=situation)])
                     for situation, label in SITUATIONS.items()], hits=True)
    plots.draw_bars("neighbour-times", "A function, and one that thrashes each cache in turn",
                    "time of a message, simulated us", caches,
                    [(label, [simulated_us(r) for r in select(rows, situation=situation)])
                     for situation, label in SITUATIONS.items()])


def queue_curves(rows, ns):
    """One for each cache, and a card's: in hundredths of its value at the fewest QPs."""
    def normalised(label, points):
        points = sorted(points)
        return label, [x for x, _ in points], [100 * y / points[0][1] for _, y in points]

    for sets, blocks in QUEUE_GEOMETRIES:
        mine = select(rows, sweep="queues", cost_ns=ns, qp_sets=sets, qp_blocks=blocks)
        yield normalised(f"{sets * blocks} descriptors", zip([r["queues"] for r in mine], rate(mine)))
    yield normalised("ConnectX-6, RDMA READ", CONNECTX6_READS.items())
