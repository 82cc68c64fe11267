# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""`make run` and `make shell` with three and more guests, and what they are made of."""

import itertools
import os
import subprocess
import types

import pytest

from lab import GuestError, Result, group, paths, verbs


def lab(*args, **env):
    done = subprocess.run(["/usr/bin/python3", "-m", "lab", *args], stdin=subprocess.DEVNULL, text=True,
                          env=dict(os.environ, PYTHONPATH=str(paths.TOP / "tests"), **env),
                          capture_output=True, timeout=60, check=False)
    return done.returncode, done.stderr


@pytest.mark.parametrize("command, number, least", [
    ("run", "1", 2), ("run", "17", 2), ("run", "x", 2), ("shell", "0", 1), ("shell", "-3", 1)])
def test_number_of_guests(command, number, least):
    code, err = lab(command, f"--guests={number}")
    assert code == 2 and f"N={number}: {least} to 16 guests are possible" in err


def test_no_switch_yet(tmp_path):
    """One line says what to run."""
    folder = tmp_path / "guest"
    folder.mkdir()
    (folder / "env").write_text("image=/none\ntree=/none\nkernel-6.12=/none\ndefault=6.12\n")
    code, err = lab("run", "--guests", "3", BUILD=str(tmp_path), QHCA_QEMU="/bin/true",
                    QHCA_ACCEL="tcg", QHCA_KERNEL="6.12", QHCA_SWITCH=str(tmp_path / "none"))
    assert (code, err) == (1, f"lab: there is no {tmp_path / 'none'}: run `make switch`\n")


def test_shared_memory_joins_two():
    code, err = lab("run", "--guests=3", LINK="shm")
    assert (code, err) == (1, "lab: LINK=shm joins two guests; the switch joins 3 by sockets\n")


@pytest.mark.parametrize("number", [2, 3, 8, 16])
def test_rounds(number):
    """They have each guest once with each other, in both roles, and all guests at a time."""
    some = group.Group.__new__(group.Group)
    some.nodes = list(range(number))
    rounds = [some.round(distance) for distance in range(1, number)]
    assert sorted(itertools.chain(*rounds)) == sorted(itertools.permutations(range(number), 2))
    for pairs in rounds:
        assert sorted(server for server, _ in pairs) == sorted(client for _, client in pairs) == some.nodes
    assert some.ring() == rounds[0]


class Program:
    def __init__(self, node, command):
        self.node, self.pid = node, 1
        self.result = Result(command, 1 if command in node.failing else 0, f"said by {node.name}", "")
        self.killed = False

    def poll(self):
        return None if self.result.code else self.result

    def wait(self, *_, check=True, **__):
        assert not check
        return self.result

    def kill(self):
        self.killed = True


def node(name, failing=()):
    made = []
    result = types.SimpleNamespace(name=name, made=made, failing=failing, exec=lambda *_, **__: Result("", 0, "", ""),
                                   counters=lambda: {})

    def spawn(command):
        made.append(Program(result, command))
        return made[-1]
    result.spawn = spawn
    return result


def test_together():
    """All servers are there before the first client; one side that fails is an error, and
    nothing is left running."""
    a, b, c = node("a"), node("b", failing=("client of c",)), node("c")
    order = []
    for each in (a, b, c):
        each.exec = lambda *_, **__: order.append("wait") or Result("", 0, "", "")

    def commands(server, client):
        order.append("server")
        return f"server of {server.name}", f"client of {server.name}", 18515
    runs = verbs.together([(a, c), (b, a)], commands)
    assert order == ["server", "server", "wait", "wait"]
    assert [run.client.command for run in runs] == ["client of a", "client of b"]
    with pytest.raises(GuestError, match="(?s)client on b: .*said by b.*server on c"):
        verbs.together([(a, c), (c, b)], commands)
    assert [program.killed for program in b.made] == [False, True]
