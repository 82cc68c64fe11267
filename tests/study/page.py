# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The page that explains the study's results, in Markdown: a function for each section."""

from . import (COST_GEOMETRY, COST_NS, PAGE_GEOMETRY, POOL_GEOMETRY, translation_ns)
from .neighbour import SITUATIONS
from .rows import CONNECTX6_READS, percent, rate, select, simulated_us, spared


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


def kilo_rate(row):
    return show(rate([row])[0] / 1000)


def head(where):
    return f"""# What the caches do

Measured {where}.
All numbers are in [study.csv](study.csv) and [study.json](study.json), a line for
each measurement. Unless a section says otherwise, an access is an RDMA WRITE of 8 bytes
through a key, over the device's loopback: one look-up of the protection cache (PT) and
one of the translation cache (AT). Each measurement touches its whole working set once,
which is not counted, and then makes at least twice as many accesses, in the order
named. **Counts and hit rates of keys and pages depend on that order and the
geometry alone: a second run gives the same.** Times are those of this machine.
"""


def keys(rows):
    return f"""## Keys against the protection cache

![](keys-random.svg)

Each curve is a geometry, sets x blocks; {len(select(rows, sweep="keys"))} measurements. Keys of
neighbouring index lie in neighbouring sets, so all geometries of 256 lines hold
256 neighbouring keys. Beyond that, in random order, the rate falls as lines over
keys, whatever the number of blocks. One line of one set hits only what comes twice in
a row.

![](keys-cycle.svg)

One key after the other is the worst order for a replacement of the oldest line: in a
set with one key too many, pseudo-LRU evicts line after line just before it is
needed. A few keys more than lines cost a direct-mapped cache two misses for each
of them, but a fully associative one all of its hits.
"""


def pages(rows):
    return f"""## Pages against the translation cache

![](pages-random.svg)

The same for pages of one region; {len(select(rows, sweep="pages"))} measurements with those of
several keys. The page plus the key chooses the set of a page, so one large region
spreads over all sets.
"""


MESSAGE_GEOMETRY = (64, 4)


def messages(rows):
    def looked(row, cache):
        return row[f"{cache}_hits"] + row[f"{cache}_misses"]

    def lines(cache):
        sets, blocks = MESSAGE_GEOMETRY
        mine = select(rows, sweep="messages", **{f"{cache}_sets": sets, f"{cache}_blocks": blocks})
        return [[f"{r['operation']}, {r['bytes']} from {r['offset']}", r["keys"], r["pages"],
                 r["pattern"], show(looked(r, "pt") / r["accesses"]),
                 show(looked(r, "at") / r["accesses"]), show(percent([r], cache)[0]),
                 show(r[f"{cache}_misses"] / r["accesses"])] for r in mine]

    head = ["message, bytes", "keys", "pages", "order", "PT look-ups", "AT look-ups"]
    return f"""## Messages of several packets, and atomic operations

The device looks the protection cache up once for each packet of 1024 bytes, and the
translation cache once for each page that the packet touches. The first packet of a message
misses as often as a message of one packet does; those that follow find the key, and mostly
the page. The hit rate therefore grows with the length of a message although the misses of a
message stay the same: compare hit rates only of messages of one length. The local side of
these messages is memory of the pool, for which the device looks neither cache up.

Look-ups and misses are those of one message. With a protection cache of
{geometry(MESSAGE_GEOMETRY)}, which the keys outgrow:

{table([*head, "PT hits, %", "PT misses"], lines("pt"))}

With a translation cache of {geometry(MESSAGE_GEOMETRY)}:

{table([*head, "AT hits, %", "AT misses"], lines("at"))}
"""


def page_sizes(rows):
    size_rows = [[r["mib"], "4 KiB" if r["memory"] == "small" else "2 MiB", r["pages"],
                  show(percent([r], "at")[0]), r["at_node_reads"]]
                 for r in select(rows, sweep="page-size")]
    return f"""## Huge pages

![](page-size.svg)

With a translation cache of {geometry(PAGE_GEOMETRY)}:

{table(["MiB", "pages of", "pages", "AT hits, %", "nodes read"], size_rows)}

A line holds a page, whatever its size: the larger the page, the further a cache
reaches, and the fewer levels a miss walks.
"""


def pool(rows):
    pool_rows = [[r["memory"].replace("small", "ordinary"), r["keys"], r["pt_misses"],
                  r["at_misses"], r["at_node_reads"], show(100 * spared(r))]
                 for r in select(rows, sweep="pool")]
    translation_rows = [[r["memory"], r["keys"], show(r["ns"] / r["accesses"]),
                         show(c["ns"] / c["accesses"]), show(translation_ns(c))]
                        for r in select(rows, sweep="translation", cost_ns=0)
                        for c in select(rows, sweep="translation", cost_ns=COST_NS[-1],
                                        memory=r["memory"], keys=r["keys"])]
    return f"""## Memory pool

![](pool.svg)

Both caches have {geometry(POOL_GEOMETRY["pt"])}. Keys of the pool are in a bank of the
device's own. An access by such a key looks up no cache, so it cannot miss, however many
other keys there are.

{table(["memory", "keys", "PT misses", "AT misses", "nodes read", "without a read, %"], pool_rows)}

How long an access takes, in nanoseconds, to memory that `malloc()` gave and to memory
of the pool, when a read of a table costs nothing and when it costs {COST_NS[-1]} ns. The
last column is the time for which the device waited for tables, which is the time of the
translation:

{table(["memory", "keys", "free, ns", "charged, ns", "translation, ns"], translation_rows)}
"""


def cost(rows):
    free = {r["keys"]: r for r in select(rows, sweep="cost", cost_ns=0)}
    costly = {r["keys"]: r for r in select(rows, sweep="cost", cost_ns=COST_NS[-1])}
    cost_rows = [[k, show(percent([free[k]], "pt")[0]), kilo_rate(free[k]),
                  kilo_rate(costly[k]), costly[k]["fetch_stall_ns"] // 1000000]
                 for k in sorted(free.keys() & costly.keys())]
    return f"""## What a miss costs

![](cost.svg)

On a card a miss is a read over the bus. Here it costs as little as any memory
access of the emulation, unless a property of the device charges for it:
`x-pt-fetch-ns` and its like, {COST_NS[-1]} here. Both caches have
{geometry(COST_GEOMETRY["pt"])}. As long as the keys fit, the charge does not show;
when they do not, throughput falls with the hit rate, as that of a card does.

{table(["keys", "PT hits, %", "free, kWRITE/s", "charged, kWRITE/s", "charged, ms"], cost_rows)}
"""


def queues(rows):
    queue_rows = [[r["queues"], r["qp_sets"] * r["qp_blocks"], show(percent([r], "qp")[0]),
                   kilo_rate(r), kilo_rate(c), c["fetch_stall_ns"] // 1000000]
                  for r in select(rows, sweep="queues", cost_ns=0)
                  for c in select(rows, sweep="queues", cost_ns=COST_NS[-1],
                                  queues=r["queues"], qp_sets=r["qp_sets"])]
    titles = ["QPs", "descriptors", "hits, %", "free, kREAD/s", "charged, kREAD/s", "charged, ms"]
    card = ", ".join(f"{n} QPs {v}" for n, v in CONNECTX6_READS.items())
    return f"""## Many QPs

![](queues-hits.svg)

READs of 8 bytes, one at a time, over QPs in random order, each connected to a
peer in the same device: each READ needs the descriptors of both, so a cache of
512 holds 256 such QPs. Beyond that the hit rate falls as for keys.

![](queues-cost.svg)

When the fetch of a descriptor is charged with {COST_NS[-1]} ns, throughput falls from the
point at which the cache is full to a level that the charge determines, and so does the
throughput of a card: the last curve is
what a ConnectX-6 was measured to do (RDMA READs of 32 threads, millions a second:
{card}). Each curve is in
hundredths of its value at {min(CONNECTX6_READS)} QPs, since a card is faster than
its emulation by orders of magnitude; only the shapes can be compared. The
card has more caches than this device, and falls in more than one step.

![](queues.svg)

Where a miss costs nothing the curves stay level, but for the time that the emulation
itself takes for a fetch.

{table(titles, queue_rows)}
"""


def neighbours(rows):
    mine = select(rows, sweep="neighbour")
    lines = []
    for cache in dict.fromkeys(r["cache"] for r in mine):
        three = [select(mine, cache=cache, situation=situation)[0] for situation in SITUATIONS]
        lines.append([cache, *(show(100 * r["hit_rate"]) for r in three),
                      *(show(simulated_us(r)) for r in three)])
    titles = ["cache", *(f"{s}: hits, %" for s in SITUATIONS), *(f"{s}: us" for s in SITUATIONS)]
    return f"""## A function and its neighbour

![](neighbour-hits.svg)

Two virtual functions share the caches. One uses 32 keys, pages, QPs, CQs or SRQs, which fill
half of the cache; its neighbour uses 256 of them in random order, and sends 15 messages for
each message of the first. The neighbour takes the lines of the first function, although that
function would fit. With masks (`vf-block-masks`) the first function may fill three of the
four blocks, and the neighbour the fourth: then the function has its lines for itself.

![](neighbour-times.svg)

The time of a message is that of the simulator, in which the emulation itself takes no time,
and the read of a table, a node or a context takes 20 us: it shows what the misses cost.

{table(titles, lines)}
"""


SECTIONS = [keys, pages, messages, page_sizes, pool, cost, queues, neighbours]


def page(rows, where):
    """The whole page. `where` says on what it was measured."""
    return "\n".join([head(where), *(section(rows) for section in SECTIONS)])
