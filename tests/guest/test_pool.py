# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The memory pool and device memory: programs/memory/pool*.c, devlink, counters, and
failures while the pool is made (kernel/qhca_test_fail.c)."""

import re

import pytest

from lab import content, devlink, paths

# Caches that a few keys overflow, and room for large blocks.
OPTIONS = {
    "props": {f"{cache}-cache-{part}": number for cache in ("pt", "at")
              for part, number in (("sets", 16), ("blocks", 2))},
    "a_args": {"memory": 1536},
    "b_args": {"memory": 384},
}


@pytest.fixture
def node(pairs):
    pair = pairs.get("qhca", "none", mtu=4200, props=(OPTIONS["props"], None),
                     a_args=OPTIONS["a_args"], b_args=OPTIONS["b_args"])
    with content(pair.a):
        yield pair.a


def reload(node, blocks, kib):
    """Gives the pool another size; what the driver says about it."""
    for name, value in (("pool_blocks", blocks), ("pool_block_kib", kib)):
        devlink.set_parameter(node, name, value)
    before = len(said(node))
    devlink.reload(node)
    lines = said(node)[before:]
    assert len(lines) == (1 if blocks else 0), lines
    return lines[0] if blocks else ""


def said(node, what="memory pool"):
    return [line for line in node.out("dmesg").splitlines() if what in line]


def run(node, *cases):
    return node.exec(f"qhca-pool -d {node.ibdev} -g {node.gid_index()} {' '.join(cases)} 2>&1",
                     timeout=180, check=False)


def test_pool(node, tap_points):
    """One block of each size in turn holds 64 MiB: one row for each block."""
    line = reload(node, 2, 65536)
    print(line)
    done = run(node)
    print(done.out)
    tap_points(done.out, done.code)


def test_default(node):
    """Eight blocks of 4 MiB, as the driver comes up."""
    line = reload(node, 8, 4096)
    assert line.endswith("memory pool: 8 blocks of 4096 KiB"), line
    done = run(node, "query", "exhaustion", "fragmentation")
    assert done.ok, done
    assert "32768 KiB in 8 blocks, the largest piece 4096 KiB" in done.out


@pytest.mark.full
def test_too_much(node):
    """A pool larger than the free memory has fewer blocks, the log says so in one line, and all
    else works."""
    line = reload(node, 32, 65536)
    found = re.search(r"wanted 32 blocks of 65536 KiB, got (\d+) with (\d+) KiB in all, "
                      r"the largest (\d+) KiB", line)
    assert found, line
    count, total, largest = (int(n) for n in found.groups())
    assert 0 < count <= 64 and largest <= 65536
    # Half of what was free at most.
    assert total < 768 << 10
    done = run(node, "query", "exhaustion", "data")
    assert done.ok, done
    assert f"{total} KiB in {count} blocks" in done.out


def test_none(node):
    """Without a pool the calls say that there is none."""
    reload(node, 0, 4096)
    done = run(node, "query")
    assert not done.ok and "errno 95" in done.out + done.err, done


@pytest.fixture
def small_bank(pairs):
    """A guest whose device keeps a few keys of the pool on chip."""
    pair = pairs.get("qhca", "none", mtu=4200, props=(dict(OPTIONS["props"], **{"pool-keys": 8}), None),
                     a_args=OPTIONS["a_args"], b_args=OPTIONS["b_args"])
    with content(pair.a):
        yield pair.a


@pytest.mark.full
def test_bank_full(small_bank, tap_points):
    """Keys without a place on chip work and are counted; the log says so once."""
    node = small_bank
    # The message is for each time that the driver binds.
    reload(node, 2, 4096)
    before = len(said(node))
    for _ in range(2):
        done = run(node, "bank", "window")
        tap_points(done.out, done.code)
    (line,) = said(node)[before:]
    assert "the device's bank of 8 keys is full" in line, line
    assert node.counters()["pool_bank_full"] >= 8


MODULE = "qhca_test_fail"
PARAMETERS = f"/sys/module/{MODULE}/parameters"


@pytest.fixture
def failing(node):
    """Calls of the driver fail while it makes a pool of two blocks."""
    path = f"/tmp/{MODULE}.ko"
    node.push(paths.BUILD / "modules" / node.release / f"{MODULE}.ko", path)
    reload(node, 2, 4096)
    node.exec(f"insmod {path} of=qhca_pool_", timeout=120)
    yield node
    node.exec(f"rmmod {MODULE}", timeout=120)
    reload(node, 8, 4096)


def bind(node, nth, times):
    """Binds the RDMA driver anew while calls fail; the last that did, and the log's line."""
    node.exec("rmmod qhca_ib")
    before = len(said(node))
    node.exec(f"echo {times} > {PARAMETERS}/times; echo {nth} > {PARAMETERS}/nth")
    node.configure()            # which waits for the RDMA device
    failed = node.out(f"cat {PARAMETERS}/failed").strip()
    node.exec(f"echo 0 > {PARAMETERS}/nth")
    (line,) = said(node)[before:]
    return failed, line


@pytest.mark.full
def test_unavailable(failing):
    """Whatever fails while the pool is made, the driver binds: with less of it, or none."""
    node, seen, nth = failing, set(), 0
    while True:
        nth += 1
        failed, line = bind(node, nth, 1)
        if not failed:
            break
        seen.add(failed.split()[0])
        # One block less, smaller blocks, or none at all.
        assert "wanted 2 blocks" in line or line.endswith("none, memory is short") \
            or line.endswith("2 blocks of 4096 KiB"), (failed, line)
    assert line.endswith("2 blocks of 4096 KiB")
    assert any(name.startswith("dma_map") for name in seen), seen
    assert any("alloc_pages" in name for name in seen), seen
    assert "gen_pool_create" in seen and "gen_pool_add_owner" in seen
    failed, line = bind(node, 1, 1000000)
    assert line.endswith("none, memory is short"), line
    done = run(node, "query")
    assert not done.ok and "errno 95" in done.out + done.err, done


def test_unmappable(failing):
    """Each block's mapping is refused: no pool, and all else works."""
    node = failing
    node.exec(f"rmmod {MODULE}; insmod /tmp/{MODULE}.ko kinds=2 of=qhca_pool_", timeout=120)
    failed, line = bind(node, 1, 1000000)
    assert failed.startswith("dma_map"), failed
    assert "got 0 with 0 KiB in all" in line and line.endswith("not all blocks could be mapped")
    done = node.exec(f"qhca-pool -d {node.ibdev} -g {node.gid_index()} query 2>&1", check=False)
    assert not done.ok and "errno 95" in done.out, done
    shown = node.out(f"rdma resource show | grep {node.ibdev}")
    assert "pd " in shown


def test_bind_crosses_deregistration(node, tap_points):
    """A region that a bind keeps alive keeps its place on chip (kernel/qhca_test_bind.c)."""
    name = "qhca_test_bind"
    reload(node, 2, 4096)
    node.push(paths.BUILD / "modules" / node.release / f"{name}.ko", f"/tmp/{name}.ko")
    node.exec(f"insmod /tmp/{name}.ko")
    try:
        done = run(node, "crossed")
    finally:
        node.exec(f"rmmod {name}")
    tap_points(done.out, done.code)


# By default interop/test_sweep.py has a sample of what fails as the driver binds.
@pytest.mark.full
def test_device_memory_unavailable(failing):
    """Whatever fails while the driver takes device memory, it binds, without: one message."""
    node, seen, nth = failing, set(), 0
    node.exec(f"rmmod {MODULE}; insmod /tmp/{MODULE}.ko of=qhca_dms_", timeout=120)
    while True:
        nth += 1
        before = len(said(node, "device memory:"))
        failed, line = bind(node, nth, 1)
        assert line.endswith("2 blocks of 4096 KiB"), line
        warned = said(node, "device memory:")[before:]
        shown = node.out(f"ibv_devinfo -v -d {node.ibdev}")
        if not failed:
            break
        seen.add(failed.split()[0])
        assert [w.endswith("device memory: none, memory is short") for w in warned] == [True], warned
        assert "device memory" not in shown, shown
    assert seen == {"ioremap_wc", "gen_pool_create", "gen_pool_add_owner"}
    assert warned == []
    assert re.search(r"maximum available device memory:\s+1048576Bytes", shown), shown


def die(node):
    """The device has a fatal error and is recovered by its driver."""
    recoveries = f"ethtool -S {node.netif} | sed -n 's/.*drv_recoveries: //p'"
    before = int(node.out(recoveries))
    node.qmp("qom-set", path="/machine/peripheral/nic0", property="inject-fatal", value=True)
    node.wait_until(f'[ "$({recoveries})" = {before + 1} ]')
    node.configure()


@pytest.mark.parametrize("how", ["reload", "fatal"])
def test_owner_loses_device(node, how):
    """A process maps and uses all of the pool when its device goes."""
    reload(node, 4, 4096)
    # Who waits for the new file must not see the one before.
    node.exec("rm -f /tmp/hold")
    owner = node.spawn(f"exec qhca-pool -d {node.ibdev} -g {node.gid_index()} hold > /tmp/hold 2>&1")
    node.wait_until("grep -q holding /tmp/hold")
    if how == "reload":
        reload(node, 4, 4096)
    else:
        die(node)
    # The next pool is whole while the process is still there, and after it.
    assert owner.poll() is None
    done = run(node, "query", "exhaustion", "data")
    assert owner.poll() is None
    owner.kill()
    owner.wait(60, check=False)
    for done in (done, run(node, "query", "exhaustion", "data")):
        assert done.ok, done
        assert "16384 KiB in 4 blocks" in done.out


@pytest.mark.parametrize("name, value, why", [
    ("pool_blocks", 65, "over the device's maximum, 64"),
    ("pool_block_kib", 3000, "not a power of two"),
    ("pool_block_kib", 32, "not a power of two from 64"),
])
def test_refused(node, name, value, why):
    done = devlink.set_parameter(node, name, value, check=False)
    assert not done.ok and why in done.out + done.err, done
