# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Two guests on one link."""

import contextlib
import ipaddress
import itertools
import os
import pathlib
import shutil
import tempfile

from . import paths
from .fabric import Switch
from .guest import PLACE, Guest, GuestError, wait_for
from .netns import Network
from .script import script

_serial = itertools.count(1)

# How two devices qhca are joined: the user's choice for all that says nothing else.
WIRES = ("stream", "shm")
WIRE = os.environ.get("LINK") or "stream"


def gid_text(address):
    """An IP address as the kernel writes its GID.

    It is made from the bytes. Of the texts that ipaddress makes, Python 3.13 ends those
    of IPv4-mapped addresses in decimal.
    """
    address = ipaddress.ip_address(address)
    packed = address.packed if address.version == 6 else b"\0" * 10 + b"\xff\xff" + address.packed
    return packed.hex(":", 2)


def option(value):
    """A property's value on a command line; device_add takes it as it is."""
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else value


class Port:
    """One end of a link: a network device of a guest, and its RDMA device.

    kind is 'qhca', 'rxe' (virtio-net and rdma_rxe) or 'none' (virtio-net). netdev is what
    -netdev takes, or a dict: properties by which the device has a link without one.
    What is not a port's own is its guest's, so that a port can stand for a
    guest wherever commands are run.
    """

    def __init__(self, kind, link, index, mtu, netdev=None):
        if kind not in ("qhca", "rxe", "none"):
            raise ValueError(f"no such kind of end: {kind}")
        self.guest = None
        self.kind = kind
        self.link = link
        self.netdev = netdev
        self.mtu = mtu
        self.mac = f"52:54:00:77:{link:02x}:{index:02x}"
        self.ip4 = f"10.{77 + link}.0.{index}"
        self.ip6 = f"fd{77 + link}::{index}"
        self.link_local = f"fe80::5054:ff:fe77:{link << 8 | index:x}"
        self.netif = None
        self.peer = None
        self._gids = None

    def __getattr__(self, name):
        if name.startswith("__") or self.__dict__.get("guest") is None:
            raise AttributeError(name)
        return getattr(self.guest, name)

    def device(self, props):
        """The device's model and properties, as device_add takes them."""
        properties = {"driver": "qhca" if self.kind == "qhca" else "virtio-net-pci",
                      "mac": self.mac, "id": f"nic{self.link}"}
        properties.update(self.netdev if isinstance(self.netdev, dict) else
                          {"netdev": f"n{self.link}"})
        if self.kind != "qhca":
            properties["romfile"] = ""
        properties.update(props or {})
        return properties

    def configure(self):
        """Loads the modules and sets the interface up."""
        self._gids = None
        gids = [gid_text(address) for address in (self.ip4, self.ip6, self.link_local)]
        self.netif = self.exec(
            script("lab/scripts/configure-port.sh", self.kind, self.mac, self.mtu, self.ip4,
                   self.ip6, *gids), timeout=150).out.split()[-1]

    def gids(self, refresh=False):
        """[(device, index, gid, type)] of this port's RDMA device, VLANs' included"""
        if self._gids is None or refresh:
            rows = [line.split() for line in self.out(script("lab/scripts/list-gids.sh")).splitlines()]
            mine = self._devices(rows)
            self._gids = [(d, int(i), g, " ".join(t)) for d, i, g, n, *t in rows if d in mine]
            if not self._gids:
                raise GuestError(f"{self.guest.name}: no RDMA device with a GID on {self.netif}")
        return self._gids

    def _devices(self, rows):
        """The RDMA devices of this port among those of rows, which list-gids.sh prints."""
        return {device for device, _, _, netif, *_ in rows if netif == self.netif}

    def wait_gid(self, address, timeout=60):
        """Waits until an address has a GID; returns its index."""
        def look():
            self.gids(refresh=True)
            try:
                return (self.gid_index(address),)
            except GuestError:
                return None
        return wait_for(look, timeout * self.guest.patience,
                        f"{self.guest.name}: a GID for {address}")[0]

    @property
    def ibdev(self):
        """The RDMA device's name."""
        return self.gids()[0][0]

    def gid_index(self, address=None, kind="RoCE v2"):
        """The index of the GID of an IP address (default: the IPv4 one)."""
        address = address or self.ip4
        for _, index, gid, gid_type in self.gids():
            if gid == gid_text(address) and gid_type == kind:
                return index
        raise GuestError(f"{self.guest.name}: no {kind} GID for {address} among {self.gids()}")

    def counters(self):
        """The RDMA device's hardware counters, {name: value}: all, read at once."""
        path = f"/sys/class/infiniband/{self.ibdev}"
        out = self.guest.out(f"cd {path}/hw_counters 2> /dev/null || cd {path}/ports/1/hw_counters; "
                             "grep -s . *")
        rows = (line.split(":", 1) for line in out.splitlines())
        return {name: int(value) for name, value in rows if name != "lifespan"}


class Node(Guest):
    """A guest with one end of each of a pair's links.

    kind is a Port's, or several joined by '+'. What the node is asked that is
    a port's, the first port answers: node.ip4, node.gid_index(). The first
    port's device is in a slot that unplug() and plug() act on.
    """

    def __init__(self, name, kind, index, *, mtu=4200, props=None, netdevs=(),
                 setup=True, **kwargs):
        self.kind = kind
        self.setup = setup
        kinds = kind.split("+")
        self.ports = [Port(k, link, index, mtu, netdev) for link, (k, netdev) in
                      enumerate(itertools.zip_longest(kinds, netdevs[:len(kinds)]))]
        args = ["-device", "pcie-root-port,id=hotslot,chassis=1,slot=1"]
        self.first_device = self.ports[0].device(dict(props or {}, bus="hotslot"))
        for port, netdev in zip(self.ports, netdevs):
            port.guest = self
            if not isinstance(netdev, dict):
                args += ["-netdev", f"{netdev},id=n{port.link}"]
            device = dict(self.first_device if port.link == 0 else port.device(None))
            args += ["-device", ",".join([device.pop("driver"),
                                          *(f"{name}={option(v)}" for name, v in device.items())])]
        kwargs["args"] = args + list(kwargs.get("args", ()))
        super().__init__(name, **kwargs)

    def __getattr__(self, name):
        # Only what Port.__init__ or Port defines; the rest is an error here.
        ports = self.__dict__.get("ports")
        if ports and name in PORT_NAMES:
            return getattr(ports[0], name)
        raise AttributeError(f"{type(self).__name__} has no {name}")

    def wait_ready(self, timeout=180):
        super().wait_ready(timeout)
        if self.setup:
            self.configure()
        return self

    def configure(self):
        """Sets all its ports up; the caller repeats this after a reload."""
        for port in self.ports:
            port.configure()
        return self

    def unplug(self, timeout=90):
        """Asks the guest to release the device in the slot; waits until it is unplugged."""
        mark = self.qmp_client.mark()
        self.qmp("device_del", id=self.first_device["id"])
        self.qmp_client.wait_event("DEVICE_DELETED", {"device": self.first_device["id"]},
                                   mark, timeout * self.patience)

    @contextlib.contextmanager
    def capture(self, file):
        """Within this context, records every frame of the first port's link."""
        if isinstance(self.ports[0].netdev, dict):
            self.set_property("shm-dump", str(file))
            try:
                yield
            finally:
                if self.running:
                    self.set_property("shm-dump", "")
            return
        self.qmp("object-add", qom_type="filter-dump", id="dump", netdev="n0",
                 file=str(file), maxlen=65536)
        try:
            yield
        finally:
            if self.running:
                self.qmp("object-del", id="dump")

    def set_property(self, name, value):
        """Sets a property of the first device, at once."""
        self.qmp("qom-set", path=f"/machine/peripheral/{self.first_device['id']}", property=name,
                 value=value)

    def set_link(self, up):
        """Takes the first port's link down or up."""
        if isinstance(self.ports[0].netdev, dict):
            self.set_property("shm-link", up)
        else:
            self.qmp("set_link", name=self.first_device["id"], up=up)

    def inject(self, faults, seed=1):
        """Sets properties of the first port's fault injector: {"inject-drop-ppm": 1000}."""
        for name, value in {"inject-seed": seed, **faults}.items():
            self.set_property(name, value)

    def plug(self):
        """Plugs the device in again; the guest probes it by itself."""
        self.qmp("device_add", **self.first_device)


PORT_NAMES = {"mac", "ip4", "ip6", "link_local", "netif", "mtu", "peer", "ibdev",
              "gids", "gid_index", "wait_gid", "counters"}


class Pair:
    """Two guests, 'a' and 'b', joined by a link over a unix socket, or in shared memory.

    kinds      what each end is, see Node; ("qhca+rxe", "qhca+rxe") has two links
    wire       'stream', or 'shm', which joins two devices qhca while others have 'stream',
               or 'switch', with the switch program in between, which lets guests move,
               or 'tap', with a bridge in a network namespace, and two taps of each guest,
               which moves from one to the other; or a list of these, one for each link
    mtu        of both interfaces: 4200 gives RoCE's 4096, 9000 is jumbo
    props      (properties for a's device, for b's), or one dict for both
    Other keyword arguments go to both guests; a_args and b_args are dicts of
    those for one.
    """

    def __init__(self, kinds=("qhca", "qhca"), *, wire=None, mtu=4200, props=None,
                 a_args=None, b_args=None, setup=True, **kwargs):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="qhca-link-"))
        if props is None or isinstance(props, dict):
            props = (props, props)
        kwargs.setdefault("log_dir", paths.LOGS / "pair" / f"{os.getpid()}-{next(_serial)}")
        ends = list(zip(*(kind.split("+") for kind in kinds)))
        wires = [wire or WIRE] * len(ends) if isinstance(wire or WIRE, str) else wire
        for unknown in set(wires) - {*WIRES, "switch", "tap"}:
            raise ValueError(f"LINK={unknown}: the kinds of link are {' and '.join(WIRES)}")
        # The switch of each link that has one, with a port for each QEMU.
        self.switches = {link: Switch() for link, w in enumerate(wires) if w == "switch"}
        self.bridged = [link for link, w in enumerate(wires) if w == "tap"]
        self.network = None
        self.mtu = mtu
        # Does a link go through shared memory?
        self.shm = [w == "shm" and set(e) == {"qhca"} for w, e in zip(wires, ends)]
        nodes = []
        for i, (kind, extra) in enumerate(zip(kinds, (a_args, b_args))):
            name = "ab"[i]
            options = {"mtu": mtu, "setup": setup, "props": props[i],
                       "netdevs": [self._link(i, link) for link in range(len(ends))]}
            options.update(kwargs)
            options.update(extra or {})
            nodes.append(Node(name, kind, i + 1, **options))
        self.a, self.b = nodes
        for mine, other in zip(self.a.ports, self.b.ports):
            mine.peer, other.peer = other, mine

    def _link(self, side, link):
        if self.shm[link]:
            return self._shm(side, link)
        if link in self.switches:
            return self.switches[link].netdev("listen")
        if link in self.bridged:
            return f"tap,ifname={self._tap(side, link)}{PLACE},script=no,downscript=no"
        return self._netdev(side, link)

    def _shm(self, side, link):
        """Properties of a device whose link is in shared memory: a listens, b connects."""
        properties = {"shm": str(self.dir / f"link{link}")}
        if side == 0:
            properties["shm-server"] = True
        return properties

    @staticmethod
    def _tap(side, link):
        return f"{'ab'[side]}{link}"

    def _make_bridges(self):
        """The network namespace of all links that need one, in which the guests' QEMUs run."""
        self.network = Network()
        for link in self.bridged:
            taps = " ".join(f"{self._tap(side, link)}{place}" for side in (0, 1) for place in (0, 1))
            self.network.run(f"""ip link add br{link} type bridge
                ip link set br{link} mtu {self.mtu} up
                for tap in {taps}; do
                    ip tuntap add $tap mode tap
                    ip link set $tap mtu {self.mtu} master br{link} up
                done""")
        for node in self.nodes:
            node.prefix = self.network.prefix()

    def _netdev(self, side, link):
        """A stream over a unix socket: a listens, b connects and reconnects."""
        path = self.dir / f"link{link}"
        if side == 0:
            return f"stream,server=on,addr.type=unix,addr.path={path}"
        return f"stream,server=off,addr.type=unix,addr.path={path},reconnect-ms=200"

    @property
    def nodes(self):
        return self.a, self.b

    def __iter__(self):
        return iter(self.nodes)

    def start(self):
        for switch in self.switches.values():
            switch.start()
        if self.bridged:
            self._make_bridges()
        # Guest a listens; its socket exists once its monitor answers.
        self.a.start()
        self.b.start()
        return self

    def boot(self, timeout=240):
        """Boots both guests at once and waits until they reach each other."""
        try:
            self.start()
            for node in self.nodes:
                node.wait_ready(timeout)
            if self.a.setup and self.b.setup:
                self.wait_link()
        except BaseException:
            self.close()
            raise
        return self

    def wait_link(self, timeout=60):
        for node in self.nodes:
            for port in node.ports:
                node.wait_until(f"ping -c 1 -W 1 {port.peer.ip4}", timeout, "ping of the peer")

    @contextlib.contextmanager
    def capture(self, folder):
        """Records every frame at each end meanwhile, in folder's a.pcap and b.pcap."""
        folder = pathlib.Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        with contextlib.ExitStack() as stack:
            for node in self.nodes:
                stack.enter_context(node.capture(folder / f"{node.name}.pcap"))
            yield

    def close(self):
        codes = [node.close() for node in self.nodes]
        for switch in self.switches.values():
            switch.close()
        if self.network:
            self.network.close()
        shutil.rmtree(self.dir, ignore_errors=True)
        return codes

    def __enter__(self):
        return self.boot()

    def __exit__(self, *_):
        self.close()
