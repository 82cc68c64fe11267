# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The study's results as tables, plots, and a page that explains them."""

import csv
import json

import matplotlib

matplotlib.use("Agg")
# SVGs of the same numbers are the same file.
matplotlib.rcParams["svg.hashsalt"] = "qhca"

from matplotlib import pyplot  # noqa: E402

from . import (COST_GEOMETRY, COST_NS, PAGE_GEOMETRY, POOL_GEOMETRY,  # noqa: E402
               QUEUE_GEOMETRIES, translation_ns)

# RDMA READs of a ConnectX-6, 32 threads: millions a second by number of QPs.
CONNECTX6_READS = {32: 83, 64: 55, 512: 42, 4096: 21}

METADATA = {"svg": {"Date": None}, "png": {"Software": None}}


def write_tables(rows, out):
    columns = list(dict.fromkeys(name for row in rows for name in row))
    with open(out / "study.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, columns, restval="")
        writer.writeheader()
        writer.writerows(rows)
    (out / "study.json").write_text(json.dumps(rows, indent=1) + "\n")


def select(rows, **wanted):
    return [r for r in rows if all(r.get(name) == value for name, value in wanted.items())]


def percent(rows, cache):
    return [100 * r[f"{cache}_hit_rate"] for r in rows]


def rate(rows):
    """Accesses a second."""
    return [1e9 * r["accesses"] / r["ns"] for r in rows]


class Plots:
    """Figures, each saved as SVG and PNG; notes which were drawn."""

    def __init__(self, out):
        self.out = out
        self.drawn = []

    def draw(self, name, title, xlabel, ylabel, curves, *, hits=False, note=None, at=None):
        figure, axes = pyplot.subplots(figsize=(7, 4.2))
        for index, (label, xs, ys) in enumerate(curves):
            axes.plot(xs, ys, marker="osD^vPX"[index % 7], label=label)
        if at:
            axes.axvline(at, color="grey", linestyle=":", label=note)
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter(matplotlib.ticker.ScalarFormatter())
        axes.set(title=title, xlabel=xlabel, ylabel=ylabel)
        axes.set_ylim(0, 105 if hits else None)
        axes.grid(True, alpha=0.3)
        axes.legend(fontsize="small")
        figure.tight_layout()
        for kind in ("svg", "png"):
            figure.savefig(self.out / f"{name}.{kind}", dpi=120, metadata=METADATA[kind])
        pyplot.close(figure)
        self.drawn.append(name)


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
    return plots.drawn


def queue_curves(rows, ns):
    """One for each cache, and a card's: in hundredths of its value at the fewest QPs."""
    def normalised(label, points):
        points = sorted(points)
        return label, [x for x, _ in points], [100 * y / points[0][1] for _, y in points]

    for sets, blocks in QUEUE_GEOMETRIES:
        mine = select(rows, sweep="queues", cost_ns=ns, qp_sets=sets, qp_blocks=blocks)
        yield normalised(f"{sets * blocks} descriptors", zip([r["queues"] for r in mine], rate(mine)))
    yield normalised("ConnectX-6, RDMA READ", CONNECTX6_READS.items())


def spared(row):
    """The share of accesses for which no table was read."""
    return 1 - row["pt_misses"] / row["accesses"]


def geometry(size):
    return "{} sets x {} blocks".format(*size)


def table(head, rows):
    cells = [[str(c) for c in row] for row in [head, *rows]]
    widths = [max(len(row[i]) for row in cells) for i in range(len(head))]
    lines = [" | ".join(c.ljust(w) for c, w in zip(row, widths)).rstrip() for row in cells]
    lines.insert(1, "-|-".join("-" * w for w in widths))
    return "\n".join(lines)


def show(value):
    return "" if value is None else f"{value:.1f}"


def page(rows, where):
    """The page, in Markdown. `where` says on what it was measured."""
    cost, pool = select(rows, sweep="cost"), select(rows, sweep="pool")
    free = {r["keys"]: r for r in select(cost, cost_ns=0)}
    costly = {r["keys"]: r for r in select(cost, cost_ns=COST_NS[-1])}
    cost_rows = [[k, show(percent([free[k]], "pt")[0]), show(rate([free[k]])[0] / 1000),
                  show(rate([costly[k]])[0] / 1000), costly[k]["fetch_stall_ns"] // 1000000]
                 for k in sorted(free.keys() & costly.keys())]
    size_rows = [[r["mib"], "4 KiB" if r["memory"] == "small" else "2 MiB", r["pages"],
                  show(percent([r], "at")[0]), r["at_node_reads"]]
                 for r in select(rows, sweep="page-size")]
    pool_rows = [[r["memory"].replace("small", "ordinary"), r["keys"], r["pt_misses"],
                  r["at_misses"], r["at_node_reads"], show(100 * spared(r))] for r in pool]
    translation_rows = [[r["memory"], r["keys"], show(r["ns"] / r["accesses"]),
                         show(c["ns"] / c["accesses"]), show(translation_ns(c))]
                        for r in select(rows, sweep="translation", cost_ns=0)
                        for c in select(rows, sweep="translation", cost_ns=COST_NS[-1],
                                        memory=r["memory"], keys=r["keys"])]
    queue_rows = [[r["queues"], r["qp_sets"] * r["qp_blocks"], show(percent([r], "qp")[0]),
                   show(rate([r])[0] / 1000), show(rate([c])[0] / 1000),
                   c["fetch_stall_ns"] // 1000000]
                  for r in select(rows, sweep="queues", cost_ns=0)
                  for c in select(rows, sweep="queues", cost_ns=COST_NS[-1],
                                  queues=r["queues"], qp_sets=r["qp_sets"])]
    counts = len(select(rows, sweep="keys")), len(select(rows, sweep="pages"))
    return f"""# What the caches do

Measured {where}.
All numbers are in [study.csv](study.csv) and [study.json](study.json), a line for
each measurement. An access is an RDMA WRITE of 8 bytes through a key, over the
device's loopback: one look-up of the protection cache (PT) and one of the
translation cache (AT). Each measurement touches its whole working set once,
which is not counted, and then at least twice as many accesses, in the order
named. **Counts and hit rates of keys and pages depend on that order and the
geometry alone: a second run gives the same.** Times are this machine's.

## Keys against the protection cache

![](keys-random.svg)

Each curve is a geometry, sets x blocks; {counts[0]} measurements. Keys of
neighbouring index lie in neighbouring sets, so all geometries of 256 lines hold
256 neighbouring keys. Beyond that, in random order, the rate falls as lines over
keys, whatever the blocks. One line of one set hits only what comes twice in a
row.

![](keys-cycle.svg)

One after the other is the worst order for replacement of what is oldest: in a
set with one key too many, pseudo-LRU gives up line after line just before it is
needed. A few keys more than lines cost a direct-mapped cache two misses for each
of them, but a fully associative one all of its hits.

## Pages against the translation cache

![](pages-random.svg)

The same for pages of one region; {counts[1]} measurements with those of several
keys. The set of a page is chosen by page plus key, so one large region spreads
over all sets.

## Huge pages

![](page-size.svg)

With a translation cache of {geometry(PAGE_GEOMETRY)}:

{table(["MiB", "pages of", "pages", "AT hits, %", "nodes read"], size_rows)}

A line holds a page, whatever its size: the larger the page, the further a cache
reaches, and the fewer levels a miss walks.

## Memory pool

![](pool.svg)

Both caches {geometry(POOL_GEOMETRY["pt"])}. Keys of the pool are in a bank of the
device's own: no look-up of a cache, and so nothing to miss, however many other
keys there are.

{table(["memory", "keys", "PT misses", "AT misses", "nodes read", "without a read, %"], pool_rows)}

How long an access takes, in nanoseconds, to memory that `malloc()` gave and to memory
of the pool, when a read of a table costs nothing and when it costs {COST_NS[-1]} ns. The
last column is what the device waited for tables, which is the time of the translation:

{table(["memory", "keys", "free, ns", "charged, ns", "translation, ns"], translation_rows)}

## What a miss costs

![](cost.svg)

On a card a miss is a read over the bus. Here it costs as little as any memory
access of the emulation, unless the device is told to charge for it:
`x-pt-fetch-ns` and its like, {COST_NS[-1]} here. Both caches
{geometry(COST_GEOMETRY["pt"])}. As long as the keys fit, the charge does not show;
when they do not, throughput falls with the hit rate, as a card's does.

{table(["keys", "PT hits, %", "free, kWRITE/s", "charged, kWRITE/s", "charged, ms"], cost_rows)}

## Many QPs

![](queues-hits.svg)

READs of 8 bytes, one at a time, over QPs in random order, each connected to a
peer in the same device: each READ needs the descriptors of both, so a cache of
512 holds 256 such QPs. Beyond that the rate of hits falls as for keys.

![](queues-cost.svg)

Charged {COST_NS[-1]} ns for a descriptor's fetch, throughput falls from where the
cache ends to a level that the charge sets, and so does a card's: the last curve is
what a ConnectX-6 was measured to do (RDMA READs of 32 threads, millions a second:
{", ".join(f"{n} QPs {v}" for n, v in CONNECTX6_READS.items())}). Each curve is in
hundredths of its value at {min(CONNECTX6_READS)} QPs, since a card is faster than
its emulation by orders of magnitude; what there is to compare is the shape. The
card has more caches than this one, and falls in more than one step.

![](queues.svg)

Where a miss costs nothing the curves stay level: that the fetch is not free for
the emulation either is all that remains.

{table(["QPs", "descriptors", "hits, %", "free, kREAD/s", "charged, kREAD/s", "charged, ms"], queue_rows)}
"""


def write(rows, out, where):
    out.mkdir(parents=True, exist_ok=True)
    write_tables(rows, out)
    drawn = draw_all(rows, out)
    (out / "study.md").write_text(page(rows, where))
    return drawn
