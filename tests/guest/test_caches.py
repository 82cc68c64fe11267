# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The caches as a guest sees them: their geometry, and what their counters
say of accesses whose order is known.

qhca-touch makes the accesses, in one guest, through the device's loopback: one
look-up of the protection cache and one of the translation cache for each.
"""

import json

import pytest

from lab.devlink import parameter, reload, set_geometry, set_parameter
from lab.pair import Node

# Of the device: what a guest may ask for, besides what it gets unasked.
PROPS = {"pt-cache-max-sets": 512, "pt-cache-max-blocks": 8,
         "srq-cache-sets": 16, "srq-cache-blocks": 2}
DEFAULTS = {"pt": (256, 4), "at": (1024, 4), "qp": (64, 4), "cq": (64, 4), "srq": (16, 2)}


@pytest.fixture(scope="module")
def guest():
    node = Node("a", "qhca", 1, netdevs=["hubport,hubid=0"], props=PROPS).boot()
    yield node
    node.close()


def host_geometry(node):
    """What the device itself says, on the host."""
    (info,) = node.qmp("query-qhca")
    return {c["name"]: (c["sets"], c["blocks"]) for c in info["caches"]}


def lines(node, cache):
    """The lines that the device holds, on the host."""
    (info,) = node.qmp("query-qhca", **{"cache-lines": True})
    (found,) = [c for c in info["caches"] if c["name"] == cache]
    assert found["valid"] == len(found["lines"])
    return found["lines"]


def lines_in_parts(node, cache, most):
    """The same, so many at a time."""
    found, more = [], {}
    while True:
        part = node.qmp("x-query-qhca-cache", id="nic0", cache=cache,
                        **{"max-lines": most, **more})
        assert len(part["lines"]) <= most
        found += part["lines"]
        if "next-set" not in part:
            assert len(found) == part["valid"]
            return found
        more = {"from-set": part["next-set"]}


def touch(node, script):
    """{label: counts} of a script of qhca-touch."""
    out = node.out(f"qhca-touch -d {node.ibdev} -g {node.gid_index()} {script}")
    shown = [json.loads(line) for line in out.splitlines()]
    return {counts["label"]: counts for counts in shown}


def holding(node, script):
    """qhca-touch after a script that ends with `show touched`, which goes on."""
    # Who waits for the new file must not see the one before.
    node.exec("rm -f /tmp/held")
    process = node.spawn(f"exec qhca-touch -d {node.ibdev} -g {node.gid_index()} {script} hold "
                         "> /tmp/held")
    node.wait_until("grep -q touched /tmp/held")
    return process


# -- geometry ---------------------------------------------------------------

def test_default_geometry(guest):
    assert host_geometry(guest) == DEFAULTS
    for cache, (sets, blocks) in DEFAULTS.items():
        assert parameter(guest, f"{cache}_cache_sets") == sets
        assert parameter(guest, f"{cache}_cache_blocks") == blocks


@pytest.mark.parametrize("name, value, why", [
    ("pt_cache_sets", 0, "0 is not a power of two"),
    ("pt_cache_sets", 48, "48 is not a power of two"),
    ("pt_cache_sets", 1024, "1024 is over the device's maximum, 512"),
    ("pt_cache_blocks", 3, "3 is not a power of two"),
    ("pt_cache_blocks", 16, "16 is over the device's maximum, 8"),
    ("at_cache_sets", 32768, "32768 is over the device's maximum, 16384"),
    ("srq_cache_blocks", 0, "0 is not a power of two"),
    ("srq_cache_blocks", 32, "32 is over the device's maximum, 16"),
])
def test_bad_geometry(guest, name, value, why):
    before = parameter(guest, name)
    done = set_parameter(guest, name, value, check=False)
    assert not done.ok and why in done.err, done
    assert parameter(guest, name) == before


def test_geometry_after_reload(guest):
    """What was set holds from the reload on, and after a recovery, too."""
    wanted = {"pt": (8, 2), "at": (16, 1), "qp": (4, 4), "cq": (2, 2), "srq": (1, 1)}
    held = host_geometry(guest)
    for name, (sets, blocks) in wanted.items():
        set_parameter(guest, f"{name}_cache_sets", sets)
        set_parameter(guest, f"{name}_cache_blocks", blocks)
    assert host_geometry(guest) == held
    reload(guest)
    assert host_geometry(guest) == wanted
    touch(guest, "regions 24 1 small pattern cycle 24 1 show all")
    set_parameter(guest, "pt_cache_sets", 32)   # not applied: no reload follows
    guest.qmp("qom-set", path="/machine/peripheral/nic0", property="inject-fatal", value=True)
    recoveries = f"ethtool -S {guest.netif} | sed -n 's/.*drv_recoveries: //p'"
    guest.wait_until(f"[ $({recoveries}) = 1 ]")
    guest.configure()
    assert host_geometry(guest) == wanted
    set_geometry(guest, **DEFAULTS)
    assert host_geometry(guest) == DEFAULTS


# -- counters ---------------------------------------------------------------

NOTHING = {"protection_errors": 0, "duplicate_requests": 0,
           "pt_stale_fills": 0, "at_stale_fills": 0}


def expect(counts, **values):
    wanted = dict(NOTHING, **values)
    assert {name: counts[name] for name in wanted} == wanted


def test_warm_key_reads_no_table(guest):
    set_geometry(guest, pt=(256, 4), at=(1024, 4))
    counts = touch(guest, "regions 1 4 small mark write 0 0 write 0 3 show cold "
                          "mark write 0 0 write 0 3 repeat 500 0 show warm")
    expect(counts["cold"], pt_hits=1, pt_misses=1, at_hits=0, at_misses=2, at_node_reads=2)
    expect(counts["warm"], pt_hits=502, pt_misses=0, at_hits=502, at_misses=0,
           at_node_reads=0, pt_evictions=0, at_evictions=0)


def test_messages_of_several_packets(guest):
    """One look-up by key for each packet, one by page for each page that it touches: of
    8192 bytes from byte 512 two packets touch two pages each."""
    set_geometry(guest, pt=(256, 4), at=(1024, 4))
    for operation in ("write", "read"):
        counts = touch(guest, f"regions 1 3 small messages {operation} 512 8192 cycle 1 1 show all")
        expect(counts["all"], accesses=2048, pt_hits=8 * 2048, pt_misses=0,
               at_hits=10 * 2048, at_misses=0)


def test_atomics(guest):
    """Keys in turn, with one line for keys: each operation misses, and once."""
    set_geometry(guest, pt=(1, 1), at=(1024, 4))
    for operation in ("fetch-add", "compare-swap"):
        counts = touch(guest, f"regions 3 1 small messages {operation} 64 8 cycle 3 1 show all")
        expect(counts["all"], accesses=2048, pt_hits=0, pt_misses=2048, pt_evictions=2048,
               at_hits=2048, at_misses=0)


def test_only_translation_evicted(guest):
    """One line for translations: the other page takes it, the entry stays."""
    set_geometry(guest, pt=(256, 4), at=(1, 1))
    counts = touch(guest, "regions 1 2 small write 0 0 write 0 1 mark write 0 0 show evicted "
                          "mark write 0 0 show back")
    expect(counts["evicted"], pt_hits=1, pt_misses=0, at_hits=0, at_misses=1,
           at_evictions=1, pt_evictions=0)
    expect(counts["back"], pt_hits=1, pt_misses=0, at_hits=1, at_misses=0)


def test_only_protection_evicted(guest):
    """One line for entries: the other key takes it, its translation stays."""
    set_geometry(guest, pt=(1, 1), at=(1024, 4))
    counts = touch(guest, "regions 2 1 small write 0 0 write 1 0 mark write 0 0 show evicted "
                          "mark write 0 0 show back")
    expect(counts["evicted"], pt_hits=0, pt_misses=1, at_hits=1, at_misses=0,
           pt_evictions=1, at_evictions=0, at_node_reads=0)
    expect(counts["back"], pt_hits=1, pt_misses=0, at_hits=1, at_misses=0)


def test_keys_apart(guest):
    """Keys a set-count apart share a set: `blocks` of them fit, one more thrashes."""
    set_geometry(guest, pt=(16, 4), at=(1024, 4))
    apart = [str(16 * i) for i in range(5)]
    fit, thrash = ",".join(apart[:4]), ",".join(apart)
    beside = ",".join(str(16 * i + i) for i in range(5))
    counts = touch(guest, "regions 80 1 small "
                          f"repeat 1 {fit} mark repeat 50 {fit} show fit "
                          f"repeat 1 {thrash} mark repeat 50 {thrash} show thrash "
                          f"repeat 2 {beside} mark repeat 50 {beside} show beside")
    expect(counts["fit"], pt_hits=200, pt_misses=0, pt_evictions=0)
    # Every eviction was one while the cache had room: the keys conflict.
    got = counts["thrash"]
    assert got["pt_misses"] == got["pt_evictions"] == got["pt_conflicts"] >= 50
    assert got["pt_hits"] + got["pt_misses"] == 250
    # One key a set: as many of them do not conflict.
    expect(counts["beside"], pt_hits=250, pt_misses=0, pt_evictions=0)


def test_direct_mapped_thrash(guest):
    """With one block, two keys a set-count apart never hit."""
    set_geometry(guest, pt=(32, 1), at=(1024, 4))
    counts = touch(guest, "regions 33 1 small repeat 1 0,32 mark repeat 50 0,32 show apart "
                          "repeat 1 0,31 mark repeat 50 0,31 show beside")
    expect(counts["apart"], pt_hits=0, pt_misses=100, pt_evictions=100, pt_conflicts=100,
           at_hits=100, at_misses=0)
    expect(counts["beside"], pt_hits=100, pt_misses=0)


def test_deregistration_invalidates(guest):
    set_geometry(guest, pt=(256, 4), at=(1024, 4))
    counts = touch(guest, "regions 8 4 small repeat 2 0,1,2,3,4,5,6,7 write 3 2 "
                          "mark regions 1 1 small show gone "
                          "mark churn 20 show churn")
    expect(counts["gone"], pt_invalidations=8, at_invalidations=9)
    # What was never touched is in no cache.
    expect(counts["churn"], pt_invalidations=0, at_invalidations=0)


def test_lines_on_the_host(guest):
    """The host lists the very lines that the guest has touched."""
    set_geometry(guest, pt=(16, 4), at=(32, 2))
    hold = holding(guest, "regions 5 2 small repeat 1 0,1,2,3,4 write 2 1 show touched")
    before = guest.counters()
    pt, at = lines(guest, "pt"), lines(guest, "at")
    after = guest.counters()
    hold.kill("TERM")
    hold.wait(60, check=False)
    keys = sorted(line["index"] for line in pt)
    assert keys == list(range(keys[0], keys[0] + 5))
    assert {(line["set"], line["index"] % 16) for line in pt} == {(k % 16, k % 16) for k in keys}
    pages = [(k, 0) for k in keys] + [(keys[2], 1)]
    assert sorted((line["index"], line["page"]) for line in at) == sorted(pages)
    for line in at:
        assert line["set"] == (line["index"] + line["page"]) % 32
        assert line["addr"] and line["addr"] % 4096 == 0
    for line in pt:
        region = line["region"]
        assert region["key"] >> 8 == line["index"] and region["type"] == "mr"
        assert region["length"] == 8192 and region["start"] % 4096 == 0
    # A listing changes nothing in the cache.
    assert [after[n] - before[n] for n in ("pt_hits", "pt_misses", "at_hits", "at_misses")] == [0] * 4


def test_many_lines_on_the_host(guest):
    """A listing is bounded, and goes on where it ended."""
    set_geometry(guest, pt=(64, 4), at=(512, 4))
    hold = holding(guest, "regions 1 1500 small pattern cycle 1 1500 show touched")
    (info,) = guest.qmp("query-qhca", **{"cache-lines": True})
    (at,) = [c for c in info["caches"] if c["name"] == "at"]
    parts = lines_in_parts(guest, "at", 64)
    listed = guest.hmp("info qhca-cache nic0 at 500")
    hold.kill("TERM")
    hold.wait(60, check=False)
    assert at["valid"] == 1500 and len(at["lines"]) <= 256 and at["next-set"] > 0
    assert sorted(line["page"] for line in parts) == list(range(1500))
    assert parts[:len(at["lines"])] == at["lines"]
    assert listed.startswith("at: 512 sets x 4 blocks, 1500 lines in use")
    assert listed.count(" page 0x") == sum(line["set"] >= 500 for line in parts)


def test_counters_in_rdma_statistic(guest):
    """The caches' counters are among those shown, and all in sysfs."""
    set_geometry(guest, **DEFAULTS)
    touch(guest, "regions 4 1 small repeat 10 0,1,2,3")
    (row,) = json.loads(guest.out(f"rdma -j statistic show link {guest.ibdev}/1"))
    everything = guest.counters()
    for cache in ("pt", "at", "qpc", "cqc", "srqc"):
        for what in ("hits", "misses", "evictions", "conflicts", "invalidations", "stale_fills"):
            assert f"{cache}_{what}" in everything
    for name in ("pt_hits", "pt_misses", "pt_evictions", "pt_conflicts", "pt_invalidations",
                 "pt_stale_fills", "at_hits", "at_misses", "at_invalidations", "qpc_hits"):
        assert row[name] == everything[name], name
    assert row["pt_misses"] == 4 and row["pt_hits"] == 36 and row["pt_invalidations"] == 4
    for cache in ("pt", "at", "qpc", "cqc", "srqc"):
        for what in ("hits", "misses", "evictions", "conflicts", "invalidations", "stale_fills"):
            assert f"{cache}_{what}" in row
    assert "commands" not in row and everything["commands"] > 0
