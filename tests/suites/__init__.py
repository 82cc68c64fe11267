# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Other people's programs and test suites, on qhca and on Soft-RoCE in the same guests.

A Program has cases. tests/interop/test_programs.py runs them, and writes what it found into
build/suites; `make programs-table` takes that into Documentation/programs.json and writes
the table of Documentation/programs.rst, see page.py.
"""

import json
import re
import shlex
import time
from dataclasses import dataclass, field

from lab import paths, verbs
from lab.guest import GuestError

RESULTS = paths.BUILD / "suites"


class Skipped(Exception):
    """A case cannot run; the text is the reason."""


@dataclass(frozen=True)
class Case:
    """One thing that a program does between two guests.

    run     a function of (server's Port, client's Port), which raises GuestError if the
            program fails, Skipped if it cannot run
    short   it is one of those that run without FULL=1
    known   {kind: reason}: where the case fails, and the fault of whom that is
    race    the reason why the program fails now and then, whatever the device
    like    a pattern of how it then fails, in what said() returns
    """
    name: str
    run: object
    short: bool = False
    known: dict = field(default_factory=dict)
    race: str = ""
    like: str = ""

    def __post_init__(self):
        assert bool(self.race) == bool(self.like), f"{self.name}: a race has a pattern"
        assert not (self.short and self.race), f"{self.name}: make check has no races"


@dataclass(frozen=True)
class Program:
    """A program or a suite: a name, the Debian package whose version counts, its cases."""
    name: str
    package: str
    cases: tuple

    def __post_init__(self):
        names = [case.name for case in self.cases]
        assert len(names) == len(set(names)), f"{self.name} has two cases of one name"


def both(server, client, server_command, client_command, **options):
    """client_server() whose sides must both succeed; `expect` is a pattern of what the
    client prints when it has."""
    expect = options.pop("expect", None)
    run = verbs.client_server(server, client, server_command, client_command, aftermath=5, **options)
    if expect and not re.search(expect, run.client.out):
        raise GuestError(f"no {expect!r}\nclient: {run.client}\nserver: {run.server}")
    return run


def used(port, before):
    """The number of RoCE packets that a port's RDMA device has sent since `before`, which
    is what this function returned."""
    counters = port.counters()
    return counters["tx_packets" if port.kind == "qhca" else "sent_pkts"] - before


def must_use(server, client, run, packets=50, senders=None):
    """Runs a function; GuestError unless the RDMA devices of both ends, or of the senders
    alone, have sent so many packets meanwhile: programs that fall back to TCP succeed, too."""
    senders = senders or (server, client)
    before = [used(port, 0) for port in senders]
    result = run()
    for port, old in zip(senders, before):
        sent = used(port, old)
        if sent < packets:
            raise GuestError(f"{port.guest.name}: {port.ibdev} has sent {sent} packets, not {packets}")
    return result


def version(node, package):
    """The upstream version of a package of the guest."""
    text = node.out(f"dpkg-query -W -f '${{source:Upstream-Version}}' {shlex.quote(package)}")
    return re.sub(r"[+~](ds|dfsg|repack).*", "", text)


def said(error):
    """How both sides have ended, and what they have said. Counters and logs follow, among
    them names such as completions_flushed."""
    return str(error).partition("\n-- ")[0]


def reason_of(error):
    """What an error says most clearly: its first line but those of logs, or its end."""
    text = said(error)
    late = re.search(r"(not ready within|took longer than) [\d.]+ s", text)
    # The command itself has the names of tests.
    lines = [line.strip() for line in re.sub("`[^`]*`", "", text).splitlines() if line.strip()]
    found = next((line for line in lines if re.search(r"error|fail|timed out|ret=-", line, re.I)), None)
    ended = re.search(r"` ended with -?\d+", text)
    return (found or ended and ended[0][2:] or late and late[0] or (lines or ["no message"])[0])[:200]


def reason_for(case, kind, error):
    """Why a case has failed. What is not like its race has not failed of that."""
    if kind in case.known:
        return case.known[kind]
    if case.race and re.search(case.like, said(error)):
        return case.race
    return reason_of(error)


def run_cases(program, server, client, cases):
    """{case: [result, reason]}; also the texts of those that failed, {case: text}.

    Each result is printed as it comes, after what a failed case has said: PYTEST_ARGS=-s
    shows them."""
    results, texts = {}, {}
    for case in cases:
        start = time.monotonic()
        try:
            case.run(server, client)
            results[case.name] = ["passed", ""]
        except Skipped as why:
            results[case.name] = ["skipped", str(why)]
        except (GuestError, TimeoutError) as error:
            texts[case.name] = str(error)
            results[case.name] = ["failed", reason_for(case, server.kind, error)]
            print(error)
        print(f"{program.name} on {server.kind}: {case.name}:", *filter(None, results[case.name]),
              f"({time.monotonic() - start:.1f} s)", flush=True)
    return results, texts


def wrong(program, kind, results, texts):
    """What a test reports about results on qhca: failures that are not known, and known
    ones that do not happen any more."""
    found = []
    for case in program.cases:
        result, reason = results.get(case.name, ("missing", ""))
        if result == "failed" and kind not in case.known and reason != case.race:
            found.append(f"{program.name}: {case.name}: {texts[case.name]}")
        elif result == "passed" and kind in case.known:
            found.append(f"{program.name}: {case.name} passes, but is known to fail: {case.known[kind]}")
    return found


def record(program, version_text, kernel, kind, results):
    """Keeps the results of a whole program for `make programs-table`."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"{program.name.replace(' ', '-')}.{kind}.json"
    path.write_text(json.dumps({"program": program.name, "version": version_text,
                                "kernel": kernel, "kind": kind, "results": results}, indent=1))
    return path
