# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What all tests share: TAP programs as tests, guests as fixtures, the count.

tests/{unit,sim,fuzz}/Makefile: `make all` builds into $(BUILD); `make list`
prints the programs to run, one a line, each with its arguments, optionally
after `@timeout=SECONDS` and `@name=NAME`. tests/qtest/*-test.c run in QEMU's qtest. Each TAP
point such a program prints counts as one test.
"""

import collections
import concurrent.futures
import os
import pathlib
import queue
import shlex
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from lab import Pair, note_leaks, paths, process, tap, unheard  # noqa: E402
from lab.link import FULL, Link, wires  # noqa: E402
from lab.pair import WIRE  # noqa: E402
from lab.turns import Turns  # noqa: E402

# The lanes of one run have this folder together.
turns = Turns(os.environ.get("QHCA_CHECK_RESULTS"))


# -- what is left out -------------------------------------------------------

@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Without FULL=1 tests marked `full` are left out, and those marked `ours` beside
    Soft-RoCE, where all takes longer."""
    def is_for_full(item):
        if item.get_closest_marker("full"):
            return True
        link = getattr(item, "callspec", None) and item.callspec.params.get("link")
        return item.get_closest_marker("ours") and isinstance(link, Link) and link.has_rxe

    left_out = [i for i in items if not FULL and is_for_full(i)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [i for i in items if i not in left_out]


# -- lanes ------------------------------------------------------------------

class TakesTurns:
    """Programs that print TAP take theirs by themselves, as many run at once."""

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item):
        if isinstance(item, TapProgram):
            yield
            return
        with turns.take(alone=item.get_closest_marker("alone") is not None):
            yield


def pytest_configure(config):
    config.pluginmanager.register(TakesTurns())


# -- TAP programs -----------------------------------------------------------

def pytest_collect_file(file_path, parent):
    area = file_path.parent.name
    if file_path.parent.parent != HERE:
        return None
    if file_path.name == "Makefile" and area in ("unit", "sim", "fuzz"):
        return TapList.from_parent(parent, path=file_path)
    if area == "qtest" and file_path.name.endswith("-test.c"):
        return Qtest.from_parent(parent, path=file_path)
    return None


class TapList(pytest.File):
    def collect(self):
        area = self.path.parent.name
        build = paths.BUILD / "tests" / area
        done = subprocess.run(
            ["make", "-s", "--no-print-directory", "-C", str(self.path.parent), "list",
             f"BUILD={build}", f"ENGINE={paths.TOP / 'qemu-hca' / 'core'}",
             f"ABI={paths.TOP / 'drivers' / 'include'}"],
            stdout=subprocess.PIPE, text=True, check=True)
        seen = set()
        for line in done.stdout.splitlines():
            words = shlex.split(line)
            name, timeout = None, 300
            while words and words[0].startswith("@"):
                key, value = words.pop(0)[1:].split("=", 1)
                if key == "timeout":
                    timeout = float(value)
                elif key == "name":
                    name = value
            if words:
                name = name or pathlib.Path(words[0]).name
                while name in seen:
                    name += "'"
                seen.add(name)
                yield TapProgram.from_parent(self, name=name, argv=words, limit=timeout)


class Qtest(pytest.File):
    def collect(self):
        name = self.path.stem
        folder = paths.qemu_folder()
        yield TapProgram.from_parent(
            self, name=name, limit=900, argv=[str(folder / name), "--tap", "-k"],
            env={"QTEST_QEMU_BINARY": str(folder / "qemu-system-x86_64"),
                 "G_TEST_DBUS_DAEMON": "/bin/false"})


# Programs of one folder are independent of each other, so as many of them run
# at once as there are processors; their points are reported in order.
_workers = concurrent.futures.ThreadPoolExecutor(os.cpu_count())


class TapProgram(pytest.Item):
    def __init__(self, *, argv, limit, env=None, **kwargs):
        super().__init__(**kwargs)
        self.argv, self.limit, self.env = argv, limit, env
        self.events = None

    def reportinfo(self):
        return self.path, None, self.name

    def runtest(self):
        """Newer pytest wants each item to have this; pytest_runtest_protocol() comes first."""
        raise NotImplementedError

    def start(self):
        """Has the program run as soon as a processor is free."""
        if self.events is None:
            self.events = queue.SimpleQueue()
            _workers.submit(self._run)

    def _run(self):
        log = paths.LOGS / "tap" / f"{self.path.parent.name}-{self.name}.log"
        try:
            log.parent.mkdir(parents=True, exist_ok=True)
            with turns.take():
                for event in tap.run(self.argv, timeout=self.limit, env=self.env, log=log):
                    self.events.put(event)
        except Exception as error:  # noqa: BLE001 raised again by run_points
            self.events.put(error)
        self.events.put(None)

    def run_points(self):
        for item in self.session.items:
            if isinstance(item, TapProgram) and item.path == self.path:
                item.start()
        while (event := self.events.get()) is not None:
            if isinstance(event, Exception):
                raise event
            yield event


def _log(item, name, outcome, text="", seconds=0.0):
    nodeid = f"{item.nodeid}::{name}" if name else item.nodeid
    longrepr = None
    if outcome == "failed":
        longrepr = text or "not ok"
    elif outcome == "skipped":
        longrepr = (str(item.path), 0, f"Skipped: {text}")
    report = pytest.TestReport(nodeid, (str(item.path.relative_to(HERE)), 0, name or item.name),
                               {}, outcome, longrepr, "call", duration=seconds)
    item.ihook.pytest_runtest_logstart(nodeid=nodeid, location=report.location)
    item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=nodeid, location=report.location)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item, nextitem):
    del nextitem
    if not isinstance(item, TapProgram):
        return None
    try:
        for event in item.run_points():
            if isinstance(event, tap.Point):
                _log(item, event.name, event.outcome, event.text, event.seconds)
            elif event[1]:
                _log(item, "", "failed", event[1])
            elif event[2] is not None:
                _log(item, "", "skipped", event[2])
    except OSError as error:
        _log(item, "", "failed", f"cannot run {shlex.join(item.argv)}: {error}")
    return True


@pytest.fixture
def tap_points(request):
    """A function that takes TAP text, say from a guest, and counts its points."""
    def count(text, code=0):
        reader = tap.Reader()
        for line in text.splitlines():
            point = reader.feed(line)
            if point:
                _log(request.node, point.name, point.outcome, point.text, point.seconds)
        if reader.skip_all is not None:
            pytest.skip(reader.skip_all)
        verdict = reader.verdict(code)
        assert verdict is None, verdict
    return count


# -- guests -----------------------------------------------------------------

class Pairs:
    """Booted pairs, by kind, used again by one test module after another.

    The two used last are kept: a guest at rest costs little but memory.
    """

    KEPT = 2

    def __init__(self):
        self.booted = {}

    def get(self, *kinds, **options):
        if options.get("wire") == WIRE:
            del options["wire"]         # as if the caller had not named it
        key = (kinds, repr(sorted(options.items())))
        pair = self.booted.pop(key, None)
        if pair is not None and not all(node.running for node in pair):
            pair.close()
            pair = None
        if pair is None:
            while len(self.booted) >= self.KEPT:
                self._end(self.booted.pop(next(iter(self.booted))))
            pair = Pair(kinds, **options).boot()
        self.booted[key] = pair
        return pair

    @staticmethod
    def _end(pair):
        try:
            note_leaks(*pair)
        finally:
            pair.close()

    def close(self):
        while self.booted:
            self._end(self.booted.popitem()[1])


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_teardown():
    """No kernel may complain, whichever guests a test has, and whenever: in a
    command, between two tests, as a fixture of many goes, as the guest ends."""
    outcome = yield
    complaints = unheard()
    if complaints:
        raise AssertionError("kernels complain:\n" + "\n".join(complaints)) from (
            outcome.excinfo and outcome.excinfo[1])
    outcome.get_result()


@pytest.fixture(scope="session")
def pairs():
    """pairs.get('qhca', 'rxe', mtu=9000): a booted pair, kept for later tests."""
    pool = Pairs()
    yield pool
    pool.close()


@pytest.fixture(scope="module", params=wires() if len(wires()) > 1 else None)
def wire(request):
    """How the devices of a test are joined that has two qhca and no `link`. With FULL=1 such a
    test runs over each kind of link."""
    return getattr(request, "param", WIRE)


@pytest.fixture
def qhca_pair(pairs):
    """For tests of one guest: the link does not matter."""
    return pairs.get("qhca", "qhca")


# -- the count --------------------------------------------------------------

_counts = {}
# Of so many files the time is told, and of none that took less, s.
SLOWEST, LEAST = 30, 15


def _time_by_file(reports):
    """[(seconds, file)] of what took longest. Programs that print TAP run beside each other,
    and each counts."""
    seconds = collections.Counter()
    for report in reports:
        seconds[report.nodeid.partition("::")[0]] += getattr(report, "duration", 0)
    return [(took, file) for file, took in seconds.most_common(SLOWEST) if took >= LEAST]


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter):
    stats = terminalreporter.stats
    slowest = _time_by_file(report for reports in stats.values() for report in reports
                            if isinstance(report, pytest.TestReport))
    if slowest:
        terminalreporter.section("slowest files")
        for took, file in slowest:
            terminalreporter.write_line(f"{took:7.1f}s {file}")
    _counts["passed"] = len(stats.get("passed", [])) + len(stats.get("xpassed", []))
    _counts["failed"] = len(stats.get("failed", [])) + len(stats.get("error", []))
    _counts["skipped"] = len(stats.get("skipped", [])) + len(stats.get("xfailed", []))


def pytest_sessionfinish(session, exitstatus):
    # Reports made here by hand do not count in session.testsfailed.
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    stats = reporter.stats if reporter else {}
    if exitstatus == 0 and (stats.get("failed") or stats.get("error")):
        session.exitstatus = 1
    if exitstatus == 0 and not stats.get("passed"):
        session.exitstatus = 5


def pytest_unconfigure(config):
    # After an interruption nothing goes on, and nothing else begins.
    _workers.shutdown(wait=False, cancel_futures=True)
    process.stop_all()
    if hasattr(config, "workerinput") or config.option.collectonly:
        return
    line = f"{_counts.get('passed', 0)} passed, {_counts.get('failed', 1)} failed"
    if _counts.get("skipped"):
        line += f", {_counts['skipped']} skipped"
    sys.stdout.flush()
    sys.stderr.flush()
    os.write(1, (line + "\n").encode())
