# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The commands of Documentation/outside.rst, in guests that are set up by nothing else.

The guests have the project's disk and kernel. Neither modules nor provider are installed in
them, and the interfaces are down, until commands of the page change that.
"""

import contextlib
import pathlib
import re
import subprocess

import pytest

from lab import GuestError, accel, content, paths, process, recipe, verbs, wait_for
from lab.guest import Guest
from lab.link import FULL
from lab.netns import Network, may_have_taps

PAGE = (paths.TOP / "Documentation" / "outside.rst").read_text()
RECIPES = recipe.recipes("outside.rst")
# In which the guests have what the page has users copy.
FOLDER = "/run/qhca/outside"
needs_taps = pytest.mark.skipif(not may_have_taps(), reason="this user may not open /dev/net/tun")
ADDRESSES = {"a": "10.0.0.1", "b": "10.0.0.2", "c": "10.0.0.3"}
MACS = {name: f"52:54:00:aa:00:{n:02}" for n, name in enumerate(ADDRESSES, 1)}


class Documented(Guest):
    """A guest that a QEMU command of the page boots: machine and device are the command's,
    the netdev is another of the page's, and disk, kernel and console are the lab's. A third
    guest has the command of the second, with a MAC address of its own."""

    def __init__(self, name, netdev, **kwargs):
        text = RECIPES["qemu-a" if name == "a" else "qemu-b"]
        if name == "c":
            assert MACS["b"] in text
            text = text.replace(MACS["b"], MACS["c"])
        command = recipe.words(text)
        assert command[0].startswith("build/qemu/bin/")
        self.documented = [(option, value) for option, value in recipe.options(command[1:])
                           if option not in ("-drive", "-nographic")]
        self.documented = [(netdev if option == "-netdev" else (option, value))
                           for option, value in self.documented]
        given = dict(self.documented)
        assert ["-accel", given["-accel"], "-cpu", given["-cpu"]] == accel.KVM
        files = {f"outside/{module.name}": module
                 for module in paths.modules(paths.kernel_release())}
        files["outside/provider"] = paths.provider()
        # A module of another kernel: the list of symptoms has what becomes of it.
        known = paths.guest_env()
        (other, *_) = {known["default"], known["backports"]} - {paths.kernel_release()}
        files["outside/other/qhca.ko"] = paths.modules(other)[0]
        # Software emulation has its processors take turns.
        cpus = int(given["-smp"]) if accel.options(paths.qemu()) == accel.KVM else 1
        super().__init__(name, memory=int(given["-m"]), cpus=cpus, files=files, payload=False,
                         **kwargs)

    def command_line(self, agent_fd, qmp_fd):
        """The page's options replace those that the lab has of the same name."""
        lab = super().command_line(agent_fd, qmp_fd)
        theirs = [pair for pair in self.documented if pair[0] not in ("-accel", "-cpu", "-smp")]
        kept = [pair for pair in recipe.options(lab[1:]) if pair[0] not in ("-machine", "-m")]
        return lab[:1] + [word for pair in kept + theirs for word in pair if word is not None]

    def commands(self, *names):
        """Blocks of the page as one command; those of guest a are with the address of this
        guest."""
        text = "".join(RECIPES[name] for name in names)
        if self.name != "a":
            for own in "address", "gid":
                mine = ADDRESSES[self.name]
                changed = RECIPES[own].replace("10.0.0.1", mine).replace(
                    r"10\.0\.0\.1", mine.replace(".", r"\."))
                assert changed != RECIPES[own]
                text = text.replace(RECIPES[own], changed)
        return ["/bin/bash", "-ec", f"cd {FOLDER}\n{text}"]

    def follow(self, *names):
        """Runs blocks of the page; returns what they print."""
        return self.out(self.commands(*names), timeout=120)


def netdev(name, tap):
    """The pair of option and value by which the page connects a tap"""
    ((option, value),) = recipe.options(recipe.words(RECIPES[name]))
    return option, value.replace("tap0", tap)


@contextlib.contextmanager
def booted(*guests):
    """The guests, which boot at once; no kernel may complain."""
    try:
        for guest in guests:
            guest.start()
        for guest in guests:
            guest.wait_ready()
        with content(*guests):
            yield guests
    finally:
        for guest in guests:
            guest.close()


def first_connection(a, b):
    """The steps of the page, from the modules, which guest a has, to ibv_rc_pingpong."""
    b.follow("load")
    # As the table of symptoms has it: without the provider there is no device for programs.
    assert "qhca0" in b.out("rdma link")
    assert "qhca0" not in b.exec("ibv_devices", check=False).out
    b.follow("provider")
    assert "qhca0" in b.out("ibv_devices")
    a.follow("provider")
    a.follow("address")
    # ... and without an address there is no GID.
    assert "::ffff:" not in b.out("ibv_devinfo -v -d qhca0")
    b.follow("address")
    a.wait_until("ping -c 1 -W 1 10.0.0.2")
    for guest in a, b:
        guest.wait_until(f"ibv_devinfo -v -d qhca0 | grep -F ::ffff:{ADDRESSES[guest.name]},")
    a.follow("check")
    done = pingpong(a, b)
    assert "8192000 bytes in" in done.out


def pingpong(a, b):
    server = a.spawn(a.commands("gid", "server"))
    a.wait_until(verbs.listening(18515))
    try:
        client = b.exec(b.commands("gid", "client"), check=False)
        if not client.ok:
            raise GuestError(f"{client}\n{server.poll()}{verbs.losses(a)}{verbs.losses(b)}")
        server.wait()
    finally:
        if server.poll() is None:
            server.kill()
    return client


# What the guests exchange in messages of 64 KiB, in packets of the path MTU 4096.
PERFTEST = ("ib_write_bw", "ib_read_bw", "ib_send_bw")


def large_messages(a, b, programs=PERFTEST if FULL else PERFTEST[:1]):
    """perftest from b to a"""
    gid = r"$(ibv_devinfo -v -d qhca0 | sed -n 's/.*GID\[ *\([0-9]*\)\].*::ffff:.*/\1/p')"
    for program in programs:
        command = f"{program} -d qhca0 -x {gid} -F -s 65536 -n 500 -u {verbs.ACK_TIMEOUT}"
        done = verbs.client_server(a, b, command, f"{command} {ADDRESSES[a.name]}",
                                   ready=verbs.listening(18515))
        assert re.search(r"Mtu\s+: 4096\[B\]", done.client.out), done.client.out
        (row,) = verbs.table(done.client.out)
        assert row["iterations"] == 500
        print(f"{program}: {row['bw']} MiB/s")


@pytest.mark.full
@needs_taps
def test_bridge():
    """Two taps on a bridge, and all of the first connection; then symptoms of the table."""
    with Network() as network:
        network.run(RECIPES["bridge"])
        a, b = (Documented(name, netdev("tap", tap), prefix=network.prefix())
                for name, tap in (("a", "tap0"), ("b", "tap1")))
        with booted(a, b):
            refused_modules(a)
            a.follow("load")
            first_connection(a, b)
            large_messages(a, b)
            little_memory(a)
            network.run("ip link set tap0 mtu 1500")
            small_mtu(a, b)


def refused_modules(a):
    """What insmod says before the RDMA core is there, and of a module of another kernel."""
    for module, message in (("qhca_ib.ko", "Unknown symbol"), ("other/qhca.ko", "Invalid module format")):
        assert f"``insmod`` reports ``{message}``" in PAGE
        done = a.exec(f"insmod {FOLDER}/{module}", check=False)
        assert done.code and message in done.err, done


def little_memory(a):
    """What an ordinary user sees whose limit of pinned memory is small."""
    done = a.exec("ulimit -l 64; exec setpriv --reuid=nobody --clear-groups --inh-caps=-all "
                  "ibv_rc_pingpong -d qhca0 -g 1 -s 1000000", check=False)
    assert done.code and "Couldn't register MR" in done.err, done


def small_mtu(a, b):
    """The path drops what is larger than its MTU: ping works, large messages do not."""
    a.exec("ping -c 1 -W 10 10.0.0.2")
    before = counters(b)
    with pytest.raises(GuestError, match="transport retry counter exceeded"):
        pingpong(a, b)
    after = counters(b)
    for name in ("ack_timeouts", "retransmitted_packets", "retry_exceeded"):
        assert after[name] > before[name], name


def counters(guest):
    """The counters, as the page has users read them"""
    text = guest.out("ethtool -S $(ls /sys/bus/pci/drivers/qhca/0*/net)")
    return {name: int(value) for name, value in re.findall(r"^\s*(\w+): (\d+)$", text, re.M)}


def another_guest(*others):
    """One more guest than the page has: the steps of the second, and then traffic between it
    and each of the others, in both roles."""
    *others, new = others
    new.follow("load")
    new.follow("provider")
    new.follow("address")
    new.wait_until(f"ibv_devinfo -v -d qhca0 | grep -F ::ffff:{ADDRESSES[new.name]},")
    for other in others:
        new.wait_until(f"ping -c 1 -W 1 {ADDRESSES[other.name]}")
        large_messages(other, new)
        large_messages(new, other)


@needs_taps
@pytest.mark.full
def test_three_on_a_bridge():
    with Network() as network:
        assert "in tap0 tap1;" in RECIPES["bridge"]
        network.run(RECIPES["bridge"].replace("tap0 tap1", "tap0 tap1 tap2"))
        guests = [Documented(name, netdev("tap", tap), prefix=network.prefix())
                  for name, tap in (("a", "tap0"), ("b", "tap1"), ("c", "tap2"))]
        with booted(*guests):
            guests[0].follow("load")
            first_connection(*guests[:2])
            another_guest(*guests)


@needs_taps
@pytest.mark.full
def test_three_hosts():
    """Three network namespaces in place of the hosts, on a network that knows no VXLAN, and
    VXLAN from each to each."""
    hosts = {name: f"192.0.2.{n}" for n, name in enumerate(("one", "two", "three"), 1)}
    with Network() as network:
        network.run("ip link add lan type bridge && ip link set lan mtu 4250 up")
        for name, address in hosts.items():
            network.run(f"""ip netns add {name}
                ip link add {name} type veth peer name eth0 netns {name}
                ip link set {name} mtu 4250 master lan up
                ip -n {name} addr add {address}/24 dev eth0
                ip -n {name} link set eth0 mtu 4250 up""")
        for name, address in hosts.items():
            network.run(vxlan_mesh(address, [other for other in hosts.values() if other != address]),
                        name)
        guests = [Documented(name, netdev("tap", "tap0"), prefix=network.prefix(namespace))
                  for name, namespace in zip("abc", hosts)]
        with booted(*guests):
            guests[0].follow("load")
            first_connection(*guests[:2])
            another_guest(*guests)
            # Each host has learned behind which other one each guest is.
            for guest, name in zip(guests, hosts):
                learned = network.run("bridge fdb show dev vxlan0", name)
                for other, address in zip(guests, hosts.values()):
                    entry = re.search(rf"^{MACS[other.name]} .*dst {address}\b", learned, re.M)
                    assert bool(entry) == (other is not guest), (name, learned)


def vxlan_mesh(own, others):
    """The page's commands for the host of an address, as it has them for 192.0.2.1"""
    text = RECIPES["vxlan-mesh"]
    assert "192.0.2.1" in text and "192.0.2.2 192.0.2.3" in text
    return text.replace("192.0.2.1", own).replace("192.0.2.2 192.0.2.3", " ".join(others))


@pytest.mark.full
@needs_taps
def test_vxlan():
    """Two network namespaces in place of the hosts, and VXLAN between them."""
    with Network() as network:
        network.run("""ip netns add one
            ip netns add two
            ip link add eth0 netns one type veth peer name eth0 netns two
            ip -n one addr add 192.0.2.1/24 dev eth0
            ip -n two addr add 192.0.2.2/24 dev eth0
            ip -n one link set eth0 mtu 4250 up
            ip -n two link set eth0 mtu 4250 up""")
        network.run(RECIPES["vxlan"], "one")
        swapped = RECIPES["vxlan"].replace("192.0.2.1", "X").replace("192.0.2.2", "192.0.2.1")
        network.run(swapped.replace("X", "192.0.2.2"), "two")
        a, b = (Documented(name, netdev("tap", "tap0"), prefix=network.prefix(namespace))
                for name, namespace in (("a", "one"), ("b", "two")))
        with booted(a, b):
            a.follow("load")
            first_connection(a, b)
            large_messages(a, b)


@pytest.mark.full
def test_firmware(tmp_path):
    """The command boots by UEFI, as far as the shell of the firmware, as there is no disk."""
    script = pathlib.Path(__file__).with_name("scripts") / "ovmf.sh"
    folder = subprocess.run([script], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                            check=True).stdout.strip()

    def here(block):
        assert "/usr/share/OVMF/" in block
        return block.replace("/usr/share/OVMF/", f"{folder}/usr/share/OVMF/")

    subprocess.run(here(RECIPES["variables"]), shell=True, cwd=tmp_path, check=True)
    left_out = {"-drive", "-netdev", "-accel", "-cpu"}
    command = recipe.words(RECIPES["qemu-a"])
    argv = [paths.qemu(), *accel.options(paths.qemu()), *recipe.words(here(RECIPES["firmware"])),
            "-netdev", "hubport,id=n0,hubid=0"]
    argv += [word for option, value in recipe.options(command[1:]) if option not in left_out
             for word in (option, value) if word is not None]
    console = tmp_path / "console"
    with console.open("wb") as out:
        child = process.spawn(argv, cwd=tmp_path, stdin=subprocess.PIPE, stdout=out,
                              stderr=subprocess.STDOUT)
        try:
            wait_for(lambda: child.poll() is not None or b"UEFI Interactive Shell" in
                     console.read_bytes(), 600, "the UEFI shell", interval=0.5)
            assert child.poll() is None, console.read_text(errors="replace")
        finally:
            process.stop(child)
            child.stdin.close()
