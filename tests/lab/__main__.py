# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Runs `make run`, `make shell` and `make bench` after the build."""

import argparse
import contextlib
import json
import os
import re
import subprocess
import sys
import threading
import time

import bench
from bench import against, host, migration, odp, packets, rounds, sizes, tcp

from . import accel, many, pair as joined, paths, timeline, verbs
from .ending import ERRORS, ended
from .functions import Functions
from .group import NAMES, Group
from .pair import Node, Pair

START = time.monotonic()


def say(text):
    print(f"[{time.monotonic() - START:5.1f}s] {text}", flush=True)


def print_table(head, rows):
    rows = [head] + [[str(c) for c in row] for row in rows]
    widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
    rule = "+" + "+".join("-" * (w + 2) for w in widths) + "+"
    print(rule)
    for n, row in enumerate(rows):
        cells = [c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths))]
        print("| " + " | ".join(cells) + " |")
        if n == 0:
            print(rule)
    print(rule, flush=True)


def how():
    return "KVM" if accel.options(paths.qemu()) == accel.KVM else "software emulation (TCG)"


def boot(kinds, kernel, **options):
    release = paths.kernel_release(kernel)
    say(f"booting two guests with kernel {release} under {how()}, "
        f"{kinds[0]} to {kinds[1]}")
    pair = Pair(kinds, kernel=kernel, **options).boot()
    for node in pair:
        for port in node.ports:
            say(f"  {node.name}: {port.netif} {port.ip4} {port.ip6} is {port.ibdev}")
    return pair


def take_steps(steps):
    """(rows of the table of results, number of steps that failed)"""
    rows, failed = [], 0
    for name, label, step in steps:
        say(f"{name} {label}")
        try:
            rows.append([f"{name} {label}", *step()])
        except ERRORS as error:
            failed += 1
            print(error, file=sys.stderr, flush=True)
            rows.append([f"{name} {label}", "FAILED", ""])
    return rows, failed


def check_wire(options):
    if options.guests > 2 and options.wire != "stream":
        raise ValueError(f"LINK={options.wire} joins two guests; the switch joins {options.guests} "
                         "by sockets")


def run_group(options):
    check_wire(options)
    release = paths.kernel_release(options.kernel)
    kind = options.kinds.split(",")[0]
    say(f"booting {options.guests} guests with kernel {release} under {how()}, at a switch")
    with Group(options.guests, kind, kernel=options.kernel) as group:
        say(f"  {', '.join(f'{node.name} {node.ip4}' for node in group)}")
        rows, failed = take_steps(many.run_steps(group))
        ports = many.port_rows(group.switch)
    print()
    print(f"{options.guests} guests with {kind}, RoCEv2 through qhca-switch, kernel {release}, {how()}")
    print_table(["test", "result", "unit"], rows)
    print()
    print("the ports of the switch")
    print_table(*ports)
    return 1 if failed else 0


def run(options):
    if options.guests > 2:
        return run_group(options)
    kinds = tuple(options.kinds.split(","))
    with_pair = boot(kinds, options.kernel, wire=options.wire)
    try:
        rows, failed = take_steps(run_steps(*with_pair))
    finally:
        with_pair.close()
    print()
    wire = "in shared memory" if with_pair.shm[0] else "over a unix socket"
    print(f"{kinds[0]} to {kinds[1]}, RoCEv2 {wire}, kernel "
          f"{paths.kernel_release(options.kernel)}, {how()}")
    print_table(["test", "result", "unit"], rows)
    return 1 if failed else 0


def run_steps(a, b):
    def rc(program="rc"):
        def step():
            us = verbs.pingpong_us(verbs.pingpong(a, b, program, "-n 1000"))
            return [f"{us:.2f}", "us/iteration"]
        return step

    def bandwidth(test, size, options=""):
        def step():
            got = verbs.measure(a, b, test, f"-s {size} -D 3 {options}", "bw")
            return [f"{got:.1f}" if got >= 1 else f"{got:.2g}", "MiB/s"]
        return step

    def latency(test, size):
        def step():
            return [f"{verbs.measure(a, b, test, f'-s {size} -n 1000', 't_avg'):.1f}", "us"]
        return step

    yield "ibv_rc_pingpong", "4096 B", rc()
    yield "ib_write_bw", "64 KiB", bandwidth("ib_write_bw", 65536)
    yield "ib_write_bw", "4 KiB", bandwidth("ib_write_bw", 4096)
    yield "ib_read_bw", "64 KiB", bandwidth("ib_read_bw", 65536)
    yield "ib_send_bw", "64 KiB", bandwidth("ib_send_bw", 65536)
    yield "ib_write_lat", "8 B", latency("ib_write_lat", 8)
    yield "ib_send_lat", "8 B", latency("ib_send_lat", 8)


# What `make path` follows: the name, and the program of perftest.
PATHS = {"WRITE": "ib_write_lat", "SEND": "ib_send_lat", "READ": "ib_read_lat"}
PATH_SIZES = (8, 4096, 65536)


def follow_messages(pair, program, size, count):
    """The steps of the messages of a program of perftest between two guests."""
    with timeline.recorded(*pair) as marks:
        verbs.perftest(*pair, program, f"-s {size} -n {count}")
    messages = timeline.follow_all(*marks)
    if not messages:
        raise ValueError(f"{program} -s {size}: no message can be followed")
    return messages


def run_path(options):
    """Prints the way of a message, for each kind and size."""
    kind = options.kinds.split(",")[0]
    if set(options.kinds.split(",")) != {"qhca"}:
        raise ValueError(f"a device {kind} has no timeline")
    failed = 0
    with_pair = boot(("qhca", "qhca"), options.kernel, wire=options.wire)
    try:
        for name, program in PATHS.items():
            for size in PATH_SIZES:
                failed += not print_path(with_pair, name, program, size, options)
    finally:
        with_pair.close()
    return 1 if failed else 0


def print_path(pair, name, program, size, options):
    """One table of run_path(); false: it failed."""
    wire = "in shared memory" if pair.shm[0] else "over a unix socket"
    print(f"\n{name} of {size} bytes {wire}", flush=True)
    try:
        messages = follow_messages(pair, program, size, options.messages)
    except ERRORS as error:
        print(error, file=sys.stderr, flush=True)
        return False
    print(f"{len(messages)} messages; microseconds after the doorbell, of a typical message and of "
          "the worst hundredth")
    print_table(timeline.HEAD, timeline.table(messages))
    return True


def boot_bench(functions, kernel, wire, **options):
    """Two guests with qhca and rxe, and so many virtual functions, which are up and idle.

    With both kinds of link, a second qhca of each guest has the one in shared memory.
    """
    both = wire == "both"
    kinds = ("qhca+rxe+qhca" if both else "qhca+rxe",) * 2
    wires = ["stream", "stream", "shm"] if both else wire
    if not functions:
        return boot(kinds, kernel, wire=wires, **options)
    pair = boot(kinds, kernel, props=({"sriov-vfs": functions},) * 2, memory=1536, wire=wires,
                **options)
    for node in pair:
        Functions(node).enable(functions)
    return pair


def run_bench_turn(pair, case, seconds):
    """{kind: the number, or None} of both links of a pair"""
    got = dict.fromkeys(against.KINDS)
    try:
        with against.alone(pair):
            for link, kind in enumerate(against.KINDS):
                a, b = (node.ports[link] for node in pair)
                try:
                    got[kind] = bench.measure(a, b, case, seconds)
                except ERRORS as error:
                    print(error, file=sys.stderr, flush=True)
    except ERRORS as error:
        # QEMU has ended, in this turn or in an earlier one.
        print(error, file=sys.stderr, flush=True)
    return got


def run_bench_against(options):
    """Measures each case in rounds, by turns with each of several builds."""
    if options.wire == "both":
        raise ValueError("LINK=both: AGAINST= measures one kind of link at a time")
    options.cases = [case for case in options.cases if case in bench.CASES]
    if not options.cases:
        raise ValueError("CASES=: AGAINST= measures guests, and not the host")
    entrants = against.entrants(options.against, options.functions)
    values = {case: {e.name: {kind: [] for kind in against.KINDS} for e in entrants}
              for case in options.cases}
    pairs = {}
    try:
        for entrant in entrants:
            say(entrant.name)
            pairs[entrant.name] = pair = boot_bench(entrant.functions, options.kernel,
                                                    options.wire, **entrant.options)
            for node in pair:
                node.qmp("stop")
        for n in range(options.rounds):
            say(f"round {n + 1} of {options.rounds}")
            for case in options.cases:
                for name in against.order(n, pairs):
                    got = run_bench_turn(pairs[name], case, options.seconds)
                    for kind, value in got.items():
                        values[case][name][kind].append(value)
                    shown = ", ".join(f"{kind} FAILED" if value is None else f"{kind} {value:.4g}"
                                      for kind, value in got.items())
                    say(f"  {case.program} {case.size} B, {name}: {shown} {case.unit}")
    finally:
        for pair in pairs.values():
            pair.close()
    rows = [row for case in options.cases for row in against.summary(case, values[case])]
    paths.BUILD.mkdir(parents=True, exist_ok=True)
    (paths.BUILD / "bench-against.json").write_text(json.dumps(rows, indent=1) + "\n")
    print_bench_against(options, rows)
    return 1 if any(against.failed(row) for row in rows) else 0


def print_bench_against(options, rows):
    """The table of bench-against.json."""
    print()
    print(f"by turns, medians and ranges of {options.rounds} rounds, "
          f"kernel {paths.kernel_release(options.kernel)}, {how()}")
    print_table(against.HEAD, [against.cells(row) for row in rows])
    print("(of latencies, less is better; \"beside the first\" has the ratios of each round to those of "
          f"{rows[0]['tree']}; written to {os.path.relpath(paths.BUILD)}/bench-against.json)")


def run_bench_migration(options):
    """Measures what a move of a guest costs with few and many objects."""
    points, failed = [], 0
    pair = boot(("qhca", "qhca"), options.kernel, **migration.OPTIONS)
    try:
        for qps, mrs in migration.POINTS:
            try:
                points.append(migration.measure(pair, qps, mrs))
                say(f"  {qps} QPs, {mrs} MRs: {points[-1].moves}")
            except ERRORS as error:
                failed += 1
                print(error, file=sys.stderr, flush=True)
                say(f"  {qps} QPs, {mrs} MRs: FAILED")
    finally:
        pair.close()
    (paths.BUILD / "bench-migration.json").write_text(
        json.dumps([migration.summary(point) for point in points], indent=1) + "\n")
    print()
    print(f"a guest of {migration.OPTIONS['memory']} MiB moves on one host, medians of "
          f"{migration.MOVES} moves, kernel {paths.kernel_release(options.kernel)}, {how()}")
    print_table(migration.HEAD, [migration.cells(point) for point in points])
    for sentence in migration.verdicts(points) if points else ():
        print(sentence)
    print(f"(written to {os.path.relpath(paths.BUILD)}/bench-migration.json)")
    return 1 if failed else 0


def run_bench_tcp(options):
    """Measures TCP over qhca's interface and over virtio-net's, and beside RDMA."""
    pair = boot_bench(options.functions, options.kernel, options.wire)
    try:
        streams = tcp.run(pair, options.rounds, options.seconds, say)
    finally:
        pair.close()
    paths.BUILD.mkdir(parents=True, exist_ok=True)
    (paths.BUILD / "bench-tcp.json").write_text(json.dumps(streams.rows, indent=1) + "\n")
    print()
    print_bench_tcp(options, streams)
    print(f"(written to {os.path.relpath(paths.BUILD)}/bench-tcp.json)")
    return 1 if streams.failed else 0


def print_bench_tcp(options, streams):
    """The tables of bench.tcp."""
    print("TCP by iperf3 over qhca's interface beside virtio-net's, medians of "
          f"{options.rounds} rounds, kernel {paths.kernel_release(options.kernel)}, {how()}")
    for table in tcp.tables(streams):
        print_table(*table)


def run_bench(options):
    """Measures each case in rounds, qhca and rxe by turns."""
    if options.against:
        return run_bench_against(options)
    if options.cases == MIGRATION:
        return run_bench_migration(options)
    if options.cases == TCP:
        return run_bench_tcp(options)
    if options.draw_only:
        sizes.draw(json.loads((paths.BUILD / "bench.json").read_text()), paths.BUILD)
        return 0
    links = (0, 1, 2) if options.wire == "both" else (0, 1)
    whole = options.cases == EVERY_CASE
    failed, instructions, by_size, streams, on_demand = 0, None, [], None, []
    host.build()
    if whole:
        say("instructions for a packet, in the simulator")
        try:
            instructions = packets.measure(packets.build())
        except ERRORS as error:
            failed = 1
            print(error, file=sys.stderr, flush=True)
    pair = boot_bench(options.functions, options.kernel, options.wire)
    try:
        done = rounds.measure(options.cases, pair, links, options, say)
        if whole:
            by_size = run_bench_sizes(pair, options.seconds)
            streams = tcp.run(pair, options.rounds, options.seconds, say)
            if pair.a.release == paths.kernel_release(odp.KERNEL):
                on_demand = run_bench_odp(pair)
    finally:
        pair.close()
    if whole and pair.a.release != paths.kernel_release(odp.KERNEL):
        pair = boot_bench(options.functions, odp.KERNEL, options.wire)
        try:
            on_demand = run_bench_odp(pair)
        finally:
            pair.close()
    failed += done.failed + sum(odp.failed(r) for r in on_demand)
    failed += sum(r["qhca"] is None or r["rxe"] is None for r in by_size)
    failed += streams.failed if streams else 0
    write_bench(options, done, links, by_size + (streams.rows if streams else []) + on_demand)
    if by_size:
        sizes.draw(by_size, paths.BUILD)
    print_bench(options, done, links, by_size, on_demand)
    if whole:
        print()
        print_bench_tcp(options, streams)
        print()
        print_instructions(instructions)
    return 1 if failed else 0


def bench_file(options):
    """Where the numbers go; those of some cases do not replace those of a whole run."""
    return paths.BUILD / ("bench.json" if options.cases == EVERY_CASE else "bench-cases.json")


def bench_names(options, links):
    """What the tables call the links, {number: name}"""
    first = "memory" if options.wire == "shm" else "socket"
    return {link: (first, "rxe", "memory")[link] for link in links}


def write_bench(options, done, links, more):
    """bench.json: medians, with the tails of latencies; then relations, and more rows."""
    names = bench_names(options, links)
    tails = rounds.tails(done, options.cases, names)
    rows = []
    for case in options.cases:
        if case not in bench.CASES:
            rows.append({"test": case.test, "size": case.size, "unit": case.unit,
                         "host": rounds.median(done.numbers(case, rounds.HOST))})
            continue
        rows.append(bench.summary(case, *(done.numbers(case, link) for link in links)))
        if case.has_tails:
            rows[-1]["tails"] = {names[link]: tails[case, link] for link in links}
        if case.runs:
            rows[-1]["runs"] = {names[link]: done.numbers(case, link) for link in links}
    for relation, link, ratio in rounds.relations(done, own_links(names)):
        rows.append({"test": relation.name, "over": names[link], "ratio": ratio,
                     "bar": relation.bar})
    rows.append({"test": "distance of the host's processors", "unit": "ns",
                 "host": done.distances})
    paths.BUILD.mkdir(parents=True, exist_ok=True)
    bench_file(options).write_text(json.dumps(rows + more, indent=1) + "\n")


def own_links(names):
    """Those of names that join devices qhca"""
    return {link: name for link, name in names.items() if name != "rxe"}


def print_instructions(rows):
    """The table of bench.packets, beside the recorded values. None: they are not known."""
    by, before = packets.recorded()
    if rows is None:
        print("instructions for a packet: FAILED")
        return
    print_table(packets.HEAD, packets.table(rows, before))
    print("(of the engine alone, in the simulator; less is better; recorded with "
          + (by if by == packets.compiler() else f"another compiler, {by}") + ")")


def print_bench(options, done, links, by_size, on_demand):
    """The tables of bench.json."""
    print()
    print_bench_rounds(options, done, links)
    if by_size:
        print("by the size of the messages, one run each")
        print_table(["test", "size", "unit", "qhca", "rxe", "qhca / rxe"],
                    [[r["test"], r["size"], r["unit"], rounds.show(r["qhca"]),
                      rounds.show(r["rxe"]), rounds.show(r["ratio"])] for r in by_size])
        print()
    if on_demand:
        print_bench_odp(on_demand)
    picture = ", with the picture bench.svg" if by_size else ""
    print("(of latencies, less is better; written to "
          f"{os.path.relpath(bench_file(options))}{picture})")


def print_bench_rounds(options, done, links):
    """The tables of what was measured in rounds."""
    show, names = rounds.show, bench_names(options, links)
    idle = f" with {options.functions} idle virtual functions" if options.functions else ""
    print(f"qhca{idle} beside Soft-RoCE in the same two guests, medians of {options.rounds} rounds, "
          f"kernel {paths.kernel_release(options.kernel)}, {how()}")
    cases = [case for case in options.cases if case in bench.CASES]
    results = [bench.summary(c, *(done.numbers(c, link) for link in links)) for c in cases]
    print_table(["test", "size", "unit", "qhca", "rxe", "qhca / rxe", "bar"],
                [[r["test"], r["size"], r["unit"], show(r["qhca"]), show(r["rxe"]),
                  show(r["ratio"]), c.verdict(r["ratio"])] for c, r in zip(cases, results)])
    print()
    if options.wire == "both":
        print("qhca over a unix socket and in shared memory, in the same rounds")
        print_table(["test", "size", "unit", "socket", "memory", "memory / rxe", "bar"],
                    [[r["test"], r["size"], r["unit"], show(r["qhca"]), show(r["shm"]),
                      show(r["shm ratio"]), c.verdict(r["shm ratio"])]
                     for c, r in zip(cases, results)])
        print()
    plain = [case for case in options.cases if case not in bench.CASES]
    if plain:
        print("plain programs on the host, between the measurements of the guests")
        print_table(["test", "size", "unit", "median"],
                    [[c.test, c.size, c.unit, show(rounds.median(done.numbers(c, rounds.HOST)))]
                     for c in plain])
        print()
    if done.distances:
        print("a cache line went from one processor of the host to another and back in "
              f"{min(done.distances):.0f} to {max(done.distances):.0f} ns, "
              f"median {rounds.median(done.distances):.0f}")
        print()
    tails = rounds.tails(done, cases, names)
    if tails:
        print("latencies, and how late the latest are: medians of the rounds")
        print_table(rounds.TAILS_HEAD, rounds.tail_cells(tails, names))
        print()
    related = rounds.relations(done, own_links(names))
    if related:
        print("measurements of one link beside each other")
        print_table(rounds.RELATIONS_HEAD, rounds.relation_cells(related, names))
        print()


def print_bench_odp(rows):
    """The table of memory on demand."""
    show = rounds.show
    print(f"memory on demand: WRITEs as large as a page, kernel {paths.kernel_release(odp.KERNEL)}")
    print_table(["test", "size", "unit", "qhca", "rxe", "qhca / rxe"],
                [[r["test"], r["size"], r["unit"], show(r["qhca"]),
                  *(("not by rxe", "") if "refusal" in r else
                    (show(r["rxe"]), show(r["ratio"])))] for r in rows])
    for refusal in sorted({r["refusal"] for r in rows if "refusal" in r}):
        print(f"(not by rxe: it refuses to prefetch: {refusal})")


def run_bench_sizes(pair, seconds, cases=sizes.CASES):
    """Entries of bench.json: bandwidth and latency by size, a run each."""
    say("messages of several sizes")
    rows = []
    for case in cases:
        values = []
        for link in (0, 1):
            a, b = (node.ports[link] for node in pair)
            try:
                values.append([bench.measure(a, b, case, seconds)])
            except ERRORS as error:
                print(error, file=sys.stderr, flush=True)
                values.append([])
        rows.append(bench.summary(case, *values))
        say(f"  {case.program} {case.size} B: qhca {values[0]}, rxe {values[1]} {case.unit}")
    return rows


def run_bench_odp(pair):
    """Entries of bench.json: the cost of pages that are not present."""
    say("memory on demand")
    rows = []
    for size in odp.ROUNDS:
        values = []
        for link in (0, 1):
            a, b = (node.ports[link] for node in pair)
            try:
                values.append(odp.measure(a, b, size))
                us = values[-1].us
                say(f"  {a.kind} {size} B: cold {us['cold', 'median']:.4g}, "
                    f"pinned {us['pinned', 'median']:.4g} us")
            except ERRORS as error:
                print(error, file=sys.stderr, flush=True)
                values.append(None)
                say(f"  {a.kind} {size} B: FAILED")
        rows += odp.summary(size, *values)
    return rows


def shell_guests(options, append):
    """(guests, of which the first has the terminal; their Group, if they have one)"""
    kinds = tuple(options.kinds.split(","))
    common = {"kernel": options.kernel, "setup": False, "append": append}
    if options.guests == 1:
        node = Node("a", kinds[0], 1, netdevs=["user"], console="stdio", **common)
        node.peer_of = None
        return [node], None
    if options.guests == 2:
        return list(Pair(kinds, wire=options.wire, a_args={"console": "stdio"}, **common)), None
    check_wire(options)
    group = Group(options.guests, kinds[0], a_args={"console": "stdio"}, **common)
    return list(group), group


def shell(options):
    if not sys.stdin.isatty():
        print("make shell wants a terminal", file=sys.stderr)
        return 1
    # The terminal is where commands come from; what is shown may go through a pipe.
    size = os.get_terminal_size(sys.stdin.fileno())
    append = "qhca.size={},{}".format(size.lines, size.columns)
    nodes, group = shell_guests(options, append)
    print("booting; leave with `exit`, or Ctrl-A X; Ctrl-A C is QEMU's monitor", flush=True)
    if len(nodes) == 2:
        print("this is guest a (10.77.0.1); guest b (10.77.0.2) runs a shell on TCP port 2222: "
              "`b COMMAND` runs one there", flush=True)
    elif len(nodes) > 2:
        print(f"this is guest a (10.77.0.1); guests b to {nodes[-1].name} (10.77.0.2 to "
              f"10.77.0.{len(nodes)}) run a shell on TCP port 2222: `b COMMAND` runs one in b\n"
              f"the switch is controlled at {group.switch.path('control')}", flush=True)
    tty = subprocess.run(["stty", "-g"], stdin=sys.stdin, stdout=subprocess.PIPE, check=False)
    try:
        if group:
            group.switch.start()
        for node in reversed(nodes):
            node.start()

        def ready():
            try:
                for node in reversed(nodes):
                    Node.wait_ready(node)
                    node.configure()
                for node in nodes[1:]:
                    node.spawn("nc -lk -p 2222 -e /bin/bash || "
                               "while busybox nc -l -p 2222 -e /bin/bash; do :; done")
                    nodes[0].write(f"/usr/local/bin/{node.name}", "#!/bin/sh\necho \"$*\" | "
                                   f"busybox nc {node.ip4} 2222\n", 0o755)
            except Exception as error:  # noqa: BLE001 shown, the shell goes on
                try:
                    child.wait(2)
                    return      # the user has left the shell
                except subprocess.TimeoutExpired:
                    print(f"\r\n{error}\r\n", file=sys.stderr)
            with contextlib.suppress(Exception):
                nodes[0].write("/run/qhca.ready", "")
        child = nodes[0].child
        threading.Thread(target=ready, daemon=True).start()
        child.wait()
    finally:
        for node in nodes:
            node.close()
        if group:
            group.close()
        if tty.returncode == 0:
            subprocess.run(["stty", tty.stdout.decode().strip()], stdin=sys.stdin, check=False)
    return 0


# All that `make bench` measures in rounds: the plain programs between what they bound.
EVERY_CASE = [*bench.CASES[:3], *host.CASES, *bench.CASES[3:]]
# What CASES= calls the measurements of bench.migration and of bench.tcp.
MIGRATION = "migration"
TCP = "tcp"


def cases(text):
    """The cases whose test and size match the regular expression of `make bench CASES=`, or
    MIGRATION or TCP"""
    if text in (MIGRATION, TCP):
        return text
    try:
        found = [case for case in EVERY_CASE if re.search(text, f"{case.test} {case.size}")]
    except re.error as error:
        raise argparse.ArgumentTypeError(f"CASES={text}: {error}") from None
    if not found:
        names = ", ".join(f"{case.test} {case.size}" for case in EVERY_CASE)
        raise argparse.ArgumentTypeError(f"CASES={text} matches none of: {names}")
    return found


def guests(least):
    """How many guests `make run N=` and `make shell N=` may be asked for"""
    def number(text):
        if not text.isdecimal() or not least <= int(text) <= len(NAMES):
            raise argparse.ArgumentTypeError(f"N={text}: {least} to {len(NAMES)} guests are possible")
        return int(text)
    return number


def main():
    parser = argparse.ArgumentParser(prog="lab")
    commands = parser.add_subparsers(required=True)
    for name, function in (("run", run), ("bench", run_bench), ("shell", shell), ("path", run_path)):
        sub = commands.add_parser(name)
        sub.add_argument("--kernel", default="default")
        sub.add_argument("--kinds", default="qhca,qhca")
        sub.add_argument("--seconds", type=int, default=3)
        sub.add_argument("--rounds", type=int, default=3)
        sub.add_argument("--messages", type=int, default=1000, help="path: of each kind")
        sub.add_argument("--functions", type=int, default=0)
        sub.add_argument("--wire", default=joined.WIRE,
                         choices=[*joined.WIRES, "both"] if name == "bench" else joined.WIRES,
                         help="how devices qhca are joined")
        sub.add_argument("--guests", type=guests(2 if name == "run" else 1), metavar="N",
                         default=2 if name == "run" else 1)
        sub.add_argument("--against", metavar="FOLDER",
                         help="bench: an older tree, as scripts/against.sh has built it")
        sub.add_argument("--cases", type=cases, metavar="REGEX", default=EVERY_CASE,
                         help="bench: those of which \"test size\" matches; or migration")
        sub.add_argument("--draw-only", action="store_true",
                         help="bench: the picture of what was measured before")
        sub.set_defaults(function=function)
    options = parser.parse_args()
    return options.function(options)


if __name__ == "__main__":
    sys.exit(ended("lab", main))
