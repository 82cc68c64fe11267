# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What the device says of itself."""

import re

import pytest

from lab.link import qhca_links


@pytest.fixture(params=qhca_links()[:1], ids=lambda link: link.id)
def link(request):
    return request.param


def fields(text):
    """The `name: value` lines of ibv_devinfo."""
    return dict(re.findall(r"^\s*(\w+):\s+(.*\S)\s*$", text, re.M))


def number(text):
    return int(text.split()[0], 0)


def test_ibv_devices(ends):
    for node in ends:
        assert node.ibdev in node.out("ibv_devices")


def test_ibv_devinfo(ends):
    for node in ends:
        info = fields(node.out(f"ibv_devinfo -v -d {node.ibdev}"))
        assert info["hca_id"] == node.ibdev
        assert info["transport"].startswith("InfiniBand")
        assert info["link_layer"] == "Ethernet"
        assert info["state"].startswith("PORT_ACTIVE")
        assert info["max_mtu"].startswith("4096")
        assert info["active_mtu"].startswith("4096")
        assert info["atomic_cap"].startswith("ATOMIC_HCA")
        assert int(info["node_guid"].replace(":", ""), 16)
        assert number(info["phys_port_cnt"]) == 1
        assert number(info["max_msg_sz"]) == 1 << 31
        # The limits are enough for common programs.
        for name, least in (("max_qp", 1000), ("max_qp_wr", 4096), ("max_cq", 1000),
                            ("max_cqe", 8191), ("max_mr", 1000), ("max_pd", 1000), ("max_sge", 16),
                            ("max_qp_rd_atom", 16), ("max_srq", 100), ("max_srq_wr", 4095),
                            ("gid_tbl_len", 16)):
            assert number(info[name]) >= least, name


def test_qhca_identity(ends):
    for node in ends:
        if not node.kind.startswith("qhca"):
            pytest.skip("the link has no qhca")
        info = fields(node.out(f"ibv_devinfo -v -d {node.ibdev}"))
        assert number(info["vendor_id"]) == 0x1af4
        assert number(info["vendor_part_id"]) == 0x10f0


def test_gids(ends):
    """IPv4, IPv6 and link-local addresses are GIDs of type RoCE v2."""
    for node in ends:
        for address in (node.ip4, node.ip6, node.link_local):
            assert node.gid_index(address) >= 0


def test_rdma_tool(ends):
    for node in ends:
        link = node.out(f"rdma link show {node.ibdev}/1")
        assert "state ACTIVE" in link and f"netdev {node.netif}" in link
        # QP 1 is the kernel's own.
        assert re.search(r"lqpn 1 .*type GSI", node.out(f"rdma res show qp link {node.ibdev}/1"))


def test_gid_comes_and_goes(ends):
    node = ends[0]
    node.exec(f"ip addr add 10.99.0.1/24 dev {node.netif}")
    try:
        node.wait_gid("10.99.0.1")
    finally:
        node.exec(f"ip addr del 10.99.0.1/24 dev {node.netif}")
    node.wait_until("! grep -qi 0000:ffff:0a63:0001 /sys/class/infiniband/*/ports/1/gids/*",
                    what="the GID of a removed address to go")
    node.gids(refresh=True)


def test_active_mtu_follows(ends):
    node = ends[0]

    def active():
        return fields(node.out(f"ibv_devinfo -d {node.ibdev}"))["active_mtu"].split()[0]

    try:
        # Below 1280 an interface loses its IPv6 addresses, and its GIDs with them.
        for mtu, want in ((1500, "1024"), (9000, "4096"), (2200, "2048")):
            node.exec(f"ip link set {node.netif} mtu {mtu}")
            assert active() == want, f"with an interface MTU of {mtu}"
    finally:
        node.exec(f"ip link set {node.netif} mtu {node.mtu}")
    assert active() == "4096"
