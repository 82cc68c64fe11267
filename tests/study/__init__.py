# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What the caches do to keys, pages, QPs and throughput: measured, not modelled.

One guest with one device; qhca-touch makes the accesses, over the device's
loopback, one look-up of either cache each, so that every count is a property
of the trace and the geometry, and the same in each run. The times are the
machine's, and are not.

    python3 -m study [--out DIR] [--compare FILE]
"""

import json
import pathlib
import shlex
import statistics
from dataclasses import dataclass

from lab import devlink

HERE = pathlib.Path(__file__).resolve().parent

CACHES = ("pt", "at", "qp", "cq", "srq")
# What the device allows, so that one set of many blocks can be had.
PROPS = {"pt-cache-max-blocks": 64, "at-cache-max-blocks": 64, "qp-cache-max-sets": 1024}
# In which nothing of the study is evicted; for the cache that is not studied.
ROOMY = {"pt": (4096, 16), "at": (16384, 16)}


@dataclass(frozen=True)
class Geometry:
    sweep: str
    cache: str
    sets: int
    blocks: int

    @property
    def lines(self):
        return self.sets * self.blocks

    def __str__(self):
        return f"{self.sets} x {self.blocks}"


@dataclass(frozen=True)
class Trace:
    sweep: str
    pattern: str
    keys: int
    pages: int

    @property
    def items(self):
        return self.keys * self.pages


PAGE = 4096


@dataclass(frozen=True)
class Message(Trace):
    """A trace whose accesses are messages, not WRITEs of 8 bytes (message.h)."""

    operation: str
    offset: int
    bytes: int

    @property
    def span(self):
        """Pages that a message touches, the one of the access included."""
        return (self.offset + self.bytes - 1) // PAGE + 1

    @property
    def script(self):
        """What qhca-touch is to do."""
        return ("regions", self.keys, self.pages + self.span - 1, "small", "messages",
                self.operation, self.offset, self.bytes, self.pattern, self.keys, self.pages)

    @property
    def label(self):
        return "-".join(str(word) for word in self.script[5:])


def read_cases(path=HERE / "cases.txt"):
    """([Geometry], [Trace]) of the file that the unit test and the oracle read, too."""
    geometries, traces = [], []
    for line in path.read_text().splitlines():
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        kind, sweep, name, *numbers = words
        if kind == "message":
            offset, size, pattern, keys, pages = numbers
            traces.append(Message(sweep, pattern, int(keys), int(pages), name, int(offset),
                                  int(size)))
            continue
        first, second = (int(n) for n in numbers)
        if kind == "geometry":
            geometries.append(Geometry(sweep, name, first, second))
        elif kind == "trace":
            traces.append(Trace(sweep, name, first, second))
        else:
            raise ValueError(f"{path}: what is {line!r}?")
    return geometries, traces


class Bench:
    """The guest of the study and its device."""

    def __init__(self, node):
        self.node = node
        self.path = f"/machine/peripheral/{node.first_device['id']}"

    def set_geometry(self, **caches):
        """set_geometry(pt=(4, 2)): in force, and all caches empty, afterwards."""
        devlink.set_geometry(self.node, **caches)

    def set_cost(self, ns):
        """Charges so many nanoseconds for each read of a table."""
        for what in ("pt", "at", "context"):
            self.node.qmp("qom-set", path=self.path, property=f"x-{what}-fetch-ns", value=ns)

    def touch(self, *script):
        """[{label, counts}] of a script of qhca-touch, as it printed them."""
        words = shlex.join(str(word) for word in script)
        out = self.node.out(f"qhca-touch -d {self.node.ibdev} -g {self.node.gid_index()} {words}",
                            timeout=300)
        return [json.loads(line) for line in out.splitlines()]


def hit_rate(counts, cache):
    looked = counts[f"{cache}_hits"] + counts[f"{cache}_misses"]
    return counts[f"{cache}_hits"] / looked if looked else None


def row(sweep, geometry, trace, memory, cost_ns, counts):
    """A line of the results: what was asked for, then what was counted."""
    result = {"sweep": sweep, "memory": memory, "cost_ns": cost_ns,
              "pattern": trace.pattern, "keys": trace.keys, "pages": trace.pages}
    for cache in ("pt", "at"):
        sets, blocks = geometry[cache]
        result[f"{cache}_sets"], result[f"{cache}_blocks"] = sets, blocks
    result.update((k, v) for k, v in counts.items() if k != "label")
    for cache in ("pt", "at"):
        result[f"{cache}_hit_rate"] = hit_rate(counts, cache)
    return result


def translation_ns(row):
    """Nanoseconds charged for reads of tables, an access."""
    return row["fetch_stall_ns"] / row["accesses"]


# -- what is measured -------------------------------------------------------

def geometry_sweep(bench, geometries, traces):
    """Hit rates: each trace under each geometry of its sweep."""
    traces = [t for t in traces if not isinstance(t, Message)]
    for g in geometries:
        if g.sweep not in {t.sweep for t in traces}:
            continue
        geometry = dict(ROOMY, **{g.cache: (g.sets, g.blocks)})
        bench.set_geometry(**geometry)
        mine = [t for t in traces if t.sweep == g.sweep]
        script = ["timing"]
        for t in sorted(mine, key=lambda t: (t.keys, t.pages)):
            # New regions each time: nothing of the trace before is cached.
            script += ["regions", t.keys, t.pages, "small", "pattern", t.pattern, t.keys,
                       t.pages, "show", f"{t.pattern}-{t.keys}-{t.pages}"]
        found = {counts["label"]: counts for counts in bench.touch(*script)}
        for t in mine:
            yield row(g.sweep, geometry, t, "small", 0,
                      found[f"{t.pattern}-{t.keys}-{t.pages}"])


def message_sweep(bench, geometries, traces):
    """Messages of several packets and atomic operations: each under each geometry."""
    messages = [t for t in traces if isinstance(t, Message)]
    for g in geometries:
        mine = [m for m in messages if m.sweep == g.sweep]
        if not mine:
            continue
        geometry = dict(ROOMY, **{g.cache: (g.sets, g.blocks)})
        bench.set_geometry(**geometry)
        script = ["timing"]
        for m in mine:
            script += [*m.script, "show", m.label]
        found = {counts["label"]: counts for counts in bench.touch(*script)}
        for m in mine:
            yield dict(row(g.sweep, geometry, m, "small", 0, found[m.label]),
                       operation=m.operation, offset=m.offset, bytes=m.bytes)


PAGE_GEOMETRY = (64, 4)
PAGE_MIB = (1, 2, 4, 8, 16, 32)


def page_size_sweep(bench):
    """The same bytes as 4 KiB pages and as 2 MiB pages."""
    geometry = dict(ROOMY, at=PAGE_GEOMETRY)
    bench.set_geometry(**geometry)
    for memory, kib in (("small", 4), ("huge", 2048)):
        for mib in PAGE_MIB:
            trace = Trace("page-size", "random", 1, max(1, mib * 1024 // kib))
            counts, = bench.touch("timing", "regions", 1, trace.pages, memory, "pattern",
                                  trace.pattern, 1, trace.pages, "show", "all")
            yield dict(row("page-size", geometry, trace, memory, 0, counts), mib=mib)


POOL_GEOMETRY = {"pt": (64, 4), "at": (64, 4)}
POOL_KEYS = (32, 128, 256, 512, 1024)


def pool_sweep(bench):
    """Pool memory against ordinary memory, as the keys outgrow the caches."""
    bench.set_geometry(**POOL_GEOMETRY)
    for memory in ("small", "pool"):
        for keys in POOL_KEYS:
            trace = Trace("pool", "random", keys, 1)
            counts, = bench.touch("timing", "regions", keys, 1, memory, "pattern",
                                  trace.pattern, keys, 1, "show", "all")
            yield row("pool", dict(POOL_GEOMETRY), trace, memory, 0, counts)


TRANSLATION_KEYS = (128, 512, 1024)
TRANSLATION_REPEATS = 5


def translation_sweep(bench):
    """What finding the memory of an access takes, in malloc()'s memory and in the pool's."""
    bench.set_geometry(**POOL_GEOMETRY)
    try:
        for ns in COST_NS:
            bench.set_cost(ns)
            for memory in ("malloc", "pool"):
                for keys in TRANSLATION_KEYS:
                    trace = Trace("translation", "random", keys, 1)
                    again = ("regions", keys, 1, memory, "pattern", trace.pattern, keys, 1,
                             "show", "all") * TRANSLATION_REPEATS
                    found = bench.touch("timing", *again)
                    # The median, for what else the machine does; the first's counts.
                    counts = dict(found[0], ns=statistics.median(c["ns"] for c in found))
                    yield row("translation", dict(POOL_GEOMETRY), trace, memory, ns, counts)
    finally:
        bench.set_cost(0)


COST_GEOMETRY = {"pt": (64, 4), "at": (64, 4)}
COST_KEYS = (64, 128, 192, 256, 320, 384, 512, 768, 1024, 2048)
COST_NS = (0, 20000)
COST_REPEATS = 5


def cost_sweep(bench):
    """Throughput, with misses that cost nothing and with costly ones."""
    bench.set_geometry(**COST_GEOMETRY)
    try:
        for ns in COST_NS:
            bench.set_cost(ns)
            for keys in COST_KEYS:
                trace = Trace("cost", "random", keys, 1)
                again = ("regions", keys, 1, "small", "pattern", trace.pattern, keys, 1,
                         "show", "all") * COST_REPEATS
                found = bench.touch("timing", *again)
                # The median, for what else the machine does; the first's counts.
                counts = dict(found[0], ns=statistics.median(c["ns"] for c in found))
                yield row("cost", COST_GEOMETRY, trace, "small", ns, counts)
    finally:
        bench.set_cost(0)


QUEUE_GEOMETRIES = ((16, 4), (128, 4), (1024, 4))
QUEUES = (32, 64, 128, 256, 512, 1024, 2048, 4096)
QUEUE_REPEATS = 3


def queue_sweep(bench):
    """READs over ever more QPs, one at a time, so that it is known what each
    looks up: the contexts of the QP and of its peer, which is in the same device."""
    for size in QUEUE_GEOMETRIES:
        # Without cost first: its counts are those of the other, too.
        bench.set_geometry(**ROOMY, qp=size)
        for ns in COST_NS:
            script = ["timing", "queues", max(QUEUES)]
            for queues in QUEUES * QUEUE_REPEATS:
                script += ["queue-pattern", "random", queues, "show", queues]
            try:
                bench.set_cost(ns)
                found = bench.touch(*script)
            finally:
                bench.set_cost(0)
            for queues in QUEUES:
                mine = [counts for counts in found if counts["label"] == str(queues)]
                # The median, for what else the machine does; the first's counts.
                counts = dict(mine[0], ns=statistics.median(c["ns"] for c in mine))
                trace = Trace("queues", "random", 1, 1)
                yield dict(row("queues", ROOMY, trace, "small", ns, counts), queues=queues,
                           qp_sets=size[0], qp_blocks=size[1], qp_misses=counts["qpc_misses"],
                           qp_hit_rate=1 - counts["qpc_misses"] / (2 * counts["accesses"]))


def measure(bench, say):
    """All rows of the study."""
    geometries, traces = read_cases()
    rows = []
    for name, sweep in (("keys and pages against geometries",
                         geometry_sweep(bench, geometries, traces)),
                        ("messages of several packets and atomic operations",
                         message_sweep(bench, geometries, traces)),
                        ("4 KiB pages against 2 MiB pages", page_size_sweep(bench)),
                        ("pool memory against ordinary memory", pool_sweep(bench)),
                        ("translation of malloc()'s memory and the pool's",
                         translation_sweep(bench)),
                        ("the cost of a miss", cost_sweep(bench)),
                        ("many QPs", queue_sweep(bench))):
        say(name)
        for number, result in enumerate(sweep, 1):
            rows.append(result)
            if number % 20 == 0:
                say(f"  {number} measurements")
    return rows


# -- comparing runs ---------------------------------------------------------

# What depends on the machine, not on the trace and the geometry alone. Of QPs and
# CQs: the device's thread looks at queues at times of its own, too (study.rst).
TIMES = {"ns", "fetch_stall_ns", "qpc_misses", "cqc_misses", "qp_misses", "qp_hit_rate"}
ASKED = ("sweep", "memory", "cost_ns", "pattern", "keys", "pages", "pt_sets", "pt_blocks",
         "at_sets", "at_blocks")
SOMETIMES = ("mib", "queues", "qp_sets", "qp_blocks", "operation", "offset", "bytes",
             "cache", "situation")


def differences(rows, others):
    """Where two runs counted differently; the same where both measured."""
    def by_question(all_rows):
        return {tuple(r.get(name) for name in ASKED + SOMETIMES): r for r in all_rows}

    mine, theirs = by_question(rows), by_question(others)
    found = []
    for question in mine.keys() & theirs.keys():
        a, b = mine[question], theirs[question]
        unequal = [name for name in a if name not in TIMES and a[name] != b.get(name)]
        if unequal:
            found.append((question, {name: (a[name], b.get(name)) for name in unequal}))
    return found, len(mine.keys() & theirs.keys())
