# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The lab with the behaviour of another version of Python than this machine's."""

import ipaddress

import pytest

from lab import pair


def old_text(address):
    return ":".join(f"{int.from_bytes(address.packed[i:i + 2], 'big'):04x}" for i in range(0, 16, 2))


def new_text(address):
    """Python 3.13 writes the last 32 bits of an IPv4-mapped address in decimal."""
    if address.ipv4_mapped is None:
        return old_text(address)
    return old_text(address)[:30] + str(address.ipv4_mapped)


RULES = {"3.11": old_text, "3.13": new_text}


class FakeGuest:
    """A node that records the command by which the lab sets a port up."""

    name = "fake"

    def exec(self, argv, **_):
        self.argv = argv

        class Result:
            out = "eth0\n"
        return Result

    def out(self, _command):
        return "\n".join(f"qhca0 {i} {gid} eth0 RoCE v2" for i, gid in enumerate(self.table))


@pytest.mark.parametrize("version", RULES)
def test_gids_by_the_rules_of(monkeypatch, version):
    """The GIDs that a guest waits for are written as its kernel writes them."""
    text = RULES[version]
    for name in ("exploded", "compressed"):
        monkeypatch.setattr(ipaddress.IPv6Address, name, property(text), raising=False)
    monkeypatch.setattr(ipaddress.IPv6Address, "__str__", text)
    end = pair.Port("qhca", 0, 1, 4200)
    end.guest = FakeGuest()
    end.configure()
    wanted = ["0000:0000:0000:0000:0000:ffff:0a4d:0001",
              "fd77:0000:0000:0000:0000:0000:0000:0001",
              "fe80:0000:0000:0000:5054:00ff:fe77:0001"]
    assert end.guest.argv[-3:] == wanted
    end.guest.table = wanted
    assert [end.gid_index(a) for a in (None, "10.77.0.1", "fd77::1", end.link_local)] == [0, 0, 1, 2]
