# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Ends of virtual functions, and of the physical one that has them, in the middle of
traffic, in guests whose kernels look for writes to memory that is free."""

import contextlib
import json
import pathlib

import pytest

from lab import GuestError, content, devlink, paths, verbs, wait_for
from lab.functions import Functions
from lab.guest import WATCHFUL

NUMBER = 4
ENABLER = pathlib.Path(__file__).parent / "scripts" / "vf-enable.py"
ASSIGNED = "qhca_test_assigned"


@pytest.fixture
def pair(pairs, wire, request):
    """A test that fails may leave anything behind, so that the next one has new guests."""
    before = request.session.testsfailed
    found = pairs.get("qhca", "qhca", wire=wire, props=({"sriov-vfs": NUMBER}, None), memory=1536,
                      cpus=2, append=WATCHFUL)
    with content(*found):
        yield found
    if request.session.testsfailed > before:
        found.close()


@pytest.fixture(scope="module")
def kept():
    """(pair, its functions) that the next test may use as they are. To enable them takes
    ten seconds and more."""
    found = []
    yield found
    for pair, functions in found:
        if functions.list and pair.a.running:
            functions.disable()


@pytest.fixture
def functions(pair, kept, request):
    """Those of a: enabled ones only for a test with vfs. Afterwards both guests pass traffic."""
    known, found = kept.pop() if kept else (None, None)
    if known is not pair:
        found = Functions(pair.a)
    elif found.list and "vfs" not in request.fixturenames:
        found.disable()
    before = request.session.testsfailed
    yield found
    # A test that is for FULL=1 alone may leave other settings behind.
    if found.list and request.node.get_closest_marker("full"):
        found.disable()
    verbs.pingpong(pair.b, pair.a, "rc", "-n 100 -c")
    if request.session.testsfailed == before:
        kept.append((pair, found))


@pytest.fixture
def vfs(functions):
    return functions if functions.list else functions.enable(NUMBER)


class Traffic:
    """ib_write_bw from one node to another, until one of them ends."""

    def __init__(self, server, client, timeout):
        port = verbs.next_port()
        options = f"-p {port} -F -s 65536 -D 600 -u {timeout}"
        self.server = server.spawn(f"exec ib_write_bw -d {server.ibdev} -x {server.gid_index()} {options}")
        server.wait_until(verbs.listening(port))
        self.node = client
        self.client = client.spawn(f"exec ib_write_bw -d {client.ibdev} -x {client.gid_index()} "
                                   f"{options} {server.ip4}")
        self.wait_progress()

    def _psn(self):
        """The PSN that the client's QP sends next; None as long as it does not send."""
        for qp in json.loads(self.node.out("rdma -j res show qp")):
            if qp.get("pid") == self.client.pid and qp["state"] == "RTS":
                return qp["sq-psn"]
        return None

    def wait_progress(self):
        """Others send from the same device, so that its counters do not tell."""
        before = []

        def more():
            psn = self._psn()
            before.extend([psn] if psn is not None else [])
            return psn is not None and psn != before[0]

        wait_for(more, 60, "traffic")

    def ended(self):
        """The client has ended with an error."""
        return not self.client.wait(90, check=False).ok

    def stop(self):
        for process in (self.client, self.server):
            if process.poll() is None:
                process.kill()
                process.wait(60, check=False)


@contextlib.contextmanager
def traffic(*ends, timeout=verbs.ACK_TIMEOUT):
    """One Traffic for each (server, client); timeout is the code of the ACK timeout."""
    running = []
    try:
        for server, client in ends:
            running.append(Traffic(server, client, timeout))
        yield running
    finally:
        for each in running:
            each.stop()


def busy(pair, vfs):
    """Between two functions, from one to the other guest, and from it to another."""
    return traffic((vfs[0], vfs[1]), (pair.b, vfs[2]), (vfs[3], pair.b))


def ended_remotely(pair, moving):
    """The other guest's clients have ended. A client whose own device goes polls its CQ on
    and on, and learns nothing, as it does not read asynchronous events."""
    assert all([each.ended() for each in moving if each.node is pair.b])


def physical(node):
    return devlink.device(node).removeprefix("pci/")


@pytest.mark.full
def test_disabled_under_traffic(pair, functions, vfs):
    """The functions go in good order, and the physical one does not notice."""
    with traffic((pair.b, pair.a)) as (others,), busy(pair, vfs) as moving:
        functions.write(0)
        ended_remotely(pair, moving)
        assert functions.bound() == 1
        others.wait_progress()
    functions.forget()
    for vf in functions.enable(NUMBER):
        verbs.pingpong(pair.b, vf, "rc", "-n 50 -c")


@pytest.mark.full
def test_enable_and_disable(pair, functions):
    """Again and again, while the physical function is busy."""
    with traffic((pair.b, pair.a)) as (others,):
        for _ in range(20):
            functions.write(NUMBER)
            functions.write(0)
        others.wait_progress()
    assert functions.bound() == 1


def test_more_than_there_are(pair, functions):
    assert int(pair.a.out(f"cat {functions.folder}/sriov_totalvfs")) == NUMBER
    refused = functions.write(NUMBER + 1, check=False)
    assert not refused.ok and functions.bound() == 1


def test_reset_of_a_function(pair, vfs):
    """FLR of one function ends its traffic alone, after 14 to 27 timeouts of 134 ms."""
    with traffic((vfs[2], vfs[3])) as (others,), \
            traffic((vfs[0], vfs[1]), timeout=15) as (moving,):
        pair.a.exec(f"echo 1 > {vfs[0].folder}/reset", timeout=120)
        assert moving.ended()
        others.wait_progress()
    vfs[0].configure()
    verbs.pingpong(vfs[0], vfs[1], "rc", "-n 100 -c")


@pytest.mark.full
def test_unbind_of_a_function(pair, vfs):
    with traffic((vfs[2], vfs[3])) as (others,), traffic((vfs[0], vfs[1])) as (moving,):
        vfs[0].unbind()
        assert moving.ended()
        others.wait_progress()
    vfs[0].bind()
    vfs[0].enter()
    verbs.pingpong(vfs[0], vfs[1], "rc", "-n 100 -c")


def recovered(pair, vfs):
    """The settings hold again, and all pass traffic."""
    for vf in vfs:
        vf.configure()
        refused = vf.exec(f"ip link set {vf.netif} address 52:54:00:99:99:99", check=False)
        assert not refused.ok, "the device has forgotten the address"
    verbs.pingpong(vfs[0], vfs[1], "rc", "-n 100 -c")
    verbs.pingpong(pair.b, vfs[2], "rc", "-n 100 -c")


def settings(vfs):
    """What the host shows of each, but for what it counts."""
    return [{k: v for k, v in vf.shown().items() if k != "stats"} for vf in vfs]


@pytest.mark.full
def test_reset_with_another_geometry(pair, functions):
    """Functions that start first, with the default geometry, do not keep the physical one
    from starting."""
    sets = devlink.parameter(pair.a, "pt_cache_sets")
    devlink.set_geometry(pair.a, pt=(sets // 2, 1))
    try:
        vfs = functions.enable(NUMBER)
        with busy(pair, vfs):
            pair.a.exec(f"echo 1 > {vfs.folder}/reset", timeout=120)
        pair.a.configure()
        vfs.wait_up()
        recovered(pair, vfs)
        functions.disable()
    finally:
        devlink.set_geometry(pair.a, pt=(sets, devlink.parameter(pair.b, "pt_cache_blocks")))


@pytest.mark.full
def test_reset_of_the_physical_function(pair, vfs):
    """FLR of the physical function resets all; each finds out and recovers by itself."""
    with busy(pair, vfs) as moving:
        pair.a.exec(f"echo 1 > {vfs.folder}/reset", timeout=120)
        ended_remotely(pair, moving)
    pair.a.configure()
    vfs.wait_up()
    recovered(pair, vfs)


@pytest.mark.full
def test_function_away(pair, vfs):
    """A function that does not answer, as while the physical one is being reset, makes
    nobody wait for the end of a reset, and recovers when it is back."""

    def said(what, number):
        return f'[ $(dmesg | grep -c "qhca .*{what}") -ge {number} ]'

    pair.a.exec("dmesg -C")
    pair.a.exec(["python3", "-c", ENABLER.read_text(), vfs.folder, "0"])
    pair.a.wait_until(said("device gone", NUMBER))
    pair.a.wait_until(said("recovery failed", NUMBER))
    pair.a.exec(["python3", "-c", ENABLER.read_text(), vfs.folder, "1"])
    vfs.wait_up()
    assert "not reset" not in pair.a.out("dmesg")
    for vf in vfs:
        vf.configure()
    verbs.pingpong(vfs[0], vfs[1], "rc", "-n 100 -c")
    verbs.pingpong(pair.b, vfs[2], "rc", "-n 100 -c")


@pytest.mark.full
def test_death_of_the_physical_function(pair, vfs):
    """Its functions do not notice, and their settings are in force again afterwards."""
    counter = f"ethtool -S {pair.a.netif} | sed -n 's/.*drv_recoveries: //p'"
    before = int(pair.a.out(counter))
    with busy(pair, vfs) as moving:
        pair.a.qmp("qom-set", path="/machine/peripheral/nic0", property="inject-fatal", value=True)
        pair.a.wait_until(f'[ "$({counter})" = {before + 1} ]')
        for each in moving:
            each.wait_progress()
    pair.a.configure()
    recovered(pair, vfs)


@pytest.mark.full
def test_reload_of_the_physical_function(pair, vfs):
    """A reload leaves the functions alone, and their caches as they are."""
    with busy(pair, vfs) as moving:
        pair.a.exec(f"devlink dev reload {devlink.device(pair.a)}", timeout=120)
        for each in moving:
            each.wait_progress()
        sets = devlink.parameter(pair.a, "pt_cache_sets")
        refused = devlink.set_parameter(pair.a, "pt_cache_sets", sets // 2, check=False)
        assert not refused.ok and "virtual functions" in refused.err
        assert devlink.parameter(pair.a, "pt_cache_sets") == sets
    pair.a.configure()
    recovered(pair, vfs)


@pytest.mark.full
def test_reload_with_another_geometry(pair, functions):
    """The geometry does not change while functions use the caches; one that was set before
    they came is for a reload after they have gone."""
    sets = devlink.parameter(pair.a, "pt_cache_sets")
    devlink.set_parameter(pair.a, "pt_cache_sets", sets // 2)
    vfs = functions.enable(NUMBER)
    reload = f"devlink dev reload {devlink.device(pair.a)}"
    with traffic((vfs[0], vfs[1])) as (moving,):
        pair.a.exec("dmesg -C")
        refused = pair.a.exec(reload, timeout=120, check=False)
        assert not refused.ok and "virtual functions" in refused.err
        pair.a.wait_until("dmesg | grep -q 'qhca .*recovered'")
        moving.wait_progress()
    pair.a.configure()
    verbs.pingpong(pair.b, pair.a, "rc", "-n 50 -c")
    functions.disable()
    devlink.reload(pair.a)
    assert devlink.parameter(pair.a, "pt_cache_sets") == sets // 2
    devlink.set_geometry(pair.a, pt=(sets, devlink.parameter(pair.a, "pt_cache_blocks")))


def test_parameters_of_a_function(pair, vfs):
    """A function has a devlink instance of its own, which does not offer what is shared."""
    shown = pair.a.out(f"devlink dev param show pci/{vfs[0].address}")
    assert "pool_blocks" in shown and "cache_sets" not in shown
    pair.a.exec(f"devlink dev reload pci/{vfs[0].address}", timeout=120)
    vfs[0].configure()
    verbs.pingpong(vfs[0], vfs[1], "rc", "-n 100 -c")


@pytest.mark.full
def test_unbind_of_the_physical_function(pair, functions, vfs):
    """It takes its functions along."""
    pci = physical(pair.a)
    with busy(pair, vfs) as moving:
        pair.a.exec(f"echo {pci} > /sys/bus/pci/drivers/qhca/unbind", timeout=240)
        ended_remotely(pair, moving)
    assert functions.bound() == 0
    functions.forget()
    pair.a.exec(f"echo {pci} > /sys/bus/pci/drivers/qhca/bind", timeout=120)
    pair.a.configure()
    assert functions.bound() == 1
    functions.enable(NUMBER)


@pytest.mark.full
def test_unbind_with_functions_in_guests(pair, functions, vfs):
    """Functions that guests use stay, and keep their settings when the driver is back."""
    pci = physical(pair.a)
    pair.a.push(paths.BUILD / "modules" / pair.a.release / f"{ASSIGNED}.ko", f"/tmp/{ASSIGNED}.ko")
    vfs[0].set("vlan 5 qos 3")
    vfs[1].set("trust on")
    vfs[1].set("spoofchk off")
    vfs[2].set("max_tx_rate 100")
    vfs[2].set("min_tx_rate 10")
    vfs[3].set("state enable")
    before = settings(vfs)
    pair.a.exec(f"insmod /tmp/{ASSIGNED}.ko")
    try:
        pair.a.exec(f"echo {pci} > /sys/bus/pci/drivers/qhca/unbind", timeout=240)
        assert functions.bound() == NUMBER
        pair.a.exec(f"echo {pci} > /sys/bus/pci/drivers/qhca/bind", timeout=120)
    finally:
        pair.a.exec(f"rmmod {ASSIGNED}")
    pair.a.configure()
    assert settings(vfs) == before
    # The device has them, too.
    assert not vfs[0].exec(f"ping -c 2 -W 1 {vfs[1].ip4}", check=False).ok
    vfs[0].set("vlan 0")
    vfs[1].set("trust off")
    recovered(pair, vfs)


@pytest.mark.full
def test_modules_removed(pair, functions, vfs):
    with busy(pair, vfs) as moving:
        pair.a.exec("rmmod qhca_ib qhca", timeout=240)
        ended_remotely(pair, moving)
    functions.forget()
    pair.a.configure()
    assert functions.bound() == 1


@pytest.mark.full
def test_hotplug(pair, functions, vfs):
    with busy(pair, vfs) as moving:
        pair.a.unplug(240)
        ended_remotely(pair, moving)
    assert pair.a.out("ls /sys/bus/pci/drivers/qhca | grep ^0 || :") == ""
    functions.forget()
    pair.a.plug()
    pair.a.configure()
    functions.enable(NUMBER)
    verbs.pingpong(functions[0], functions[1], "rc", "-n 100 -c")


def test_end_of_a_namespace(pair, vfs):
    """A container that ends gives its function back to the host."""
    vf = vfs[0]
    name = vf.netif
    pair.a.exec(f"ip netns del {vf.namespace}")
    pair.a.wait_until(f"[ -e /sys/class/net/{name} ]")
    vf.enter()
    verbs.rping(vf, vfs[1])


@pytest.mark.full
def test_exclusive_rdma_devices(pair, functions):
    """With RDMA devices that belong to namespaces, a function's moves there as well."""
    a = pair.a
    # The kernel still cleans up after earlier namespaces.
    a.wait_until("rdma system set netns exclusive")
    try:
        one, other, *_ = functions.enable(NUMBER, rdma=True)
        for vf in (one, other):
            assert vf.out("ls /sys/class/infiniband").split() == [vf.ibdev]
            assert vf.ibdev not in a.out("ls /sys/class/infiniband").split()
        verbs.pingpong(other, one, "rc", "-n 100 -c")
        functions.disable()
    finally:
        with contextlib.suppress(TimeoutError, GuestError):
            a.wait_until("rdma system set netns shared")
