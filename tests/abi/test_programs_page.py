# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The table of Documentation/programs.rst is what Documentation/programs.json says, and
that says nothing that it must not."""

import json
import re

import pytest

from lab.guest import GuestError, Result
from suites import (Case, Program, Skipped, blktests, fabric, must_use, page, rdma_core, reason_for,
                    reason_of, run_cases, unit_test, wrong)


def record(qhca, rxe):
    return {"kernel": "6.12", "programs": {"one": {"version": "1", "qhca": qhca, "rxe": rxe}}}


PASSED, SKIPPED = ["passed", ""], ["skipped", "no such device"]


def test_page():
    kept = json.loads(page.RECORD.read_text())
    text = page.PAGE.read_text()
    assert text == page.placed(text, page.table(kept))


def test_record():
    kept = json.loads(page.RECORD.read_text())
    assert page.faults(kept) == []


def told(page_text, test, why):
    """Does the section of refusals have the paragraph of a reason, or, without one, the test?"""
    section = page_text.partition("\nWhat the device refuses on purpose\n")[2]
    paragraph = re.search(r"\b([Co]\d+-[\d.]*\d)|\bIBTA ([\d.]*\d)", why)
    if paragraph:
        return re.search(rf"^{re.escape(paragraph[1] or paragraph[2])} ", section, re.M) is not None
    return f"``{test}``" in section


@pytest.mark.parametrize("test", unit_test.LEFT_OUT["qhca"])
def test_refusals(test):
    """What rdma-unit-test wants and the device refuses on purpose is on the page."""
    why = unit_test.LEFT_OUT["qhca"][test]
    assert told(page.PAGE.read_text(), test, why)
    assert not told("\nWhat the device refuses on purpose\nC10-9 EINVAL\n", test, why)


@pytest.mark.parametrize("qhca, rxe, fault", [
    (PASSED, ["failed", "why"], None),
    (["failed", "why"], ["failed", "why"], None),
    (SKIPPED, SKIPPED, None),
    (["failed", "why"], PASSED, "fails on qhca alone"),
    (["failed", ""], ["failed", "why"], "failed without a reason"),
    (["skipped", ""], PASSED, "skipped without a reason")])
def test_faults(qhca, rxe, fault):
    """A failure that Soft-RoCE does not have, and what has no reason, are not recorded."""
    found = page.faults(record({"a": qhca}, {"a": rxe}))
    assert ([line.partition("a: ")[2] for line in found] == [fault]) if fault else not found


def test_other_cases():
    assert page.faults(record({"a": PASSED}, {"b": PASSED})) == ["one: not the same cases on both"]


def test_table():
    text = page.table(record({"a": PASSED, "b": SKIPPED}, {"a": ["failed", "its fault"], "b": PASSED}))
    assert "one     1       1           0           1            1                1                0\n" in text
    assert "On qhca, skipped:\n\n- one, ``b``: ``no such device``\n" in text
    assert "On Soft-RoCE, failed:\n\n- one, ``a``: ``its fault``\n" in text


def test_one_reason():
    """Cases with the same reason share a line."""
    text = page.table(record({"a": SKIPPED, "b": PASSED, "c": SKIPPED}, {}))
    assert "On qhca, skipped:\n\n- one, ``a``, ``c``: ``no such device``\n" in text


def test_many_cases():
    cases = {f"case {n}": ["skipped", "not\nhere\n"] for n in range(page.MANY + 1)}
    text = page.table(record(cases, {}))
    assert f"- one, ``case 0`` and {page.MANY} others: ``not here``\n" in text
    del cases["case 0"]
    assert "others" not in page.table(record(cases, {}))


def test_text_of_record():
    """Each case has a line, whatever its reason says."""
    told = record({"a": PASSED, "b": ["failed", 'it said "[]",\nand a \\']}, {"a": PASSED})
    assert json.loads(page.text_of(told)) == told
    assert page.text_of(told).count('    "') == 3


def test_empty_table():
    assert page.table({"kernel": "", "programs": {}}) == "No results have been recorded yet.\n"


def result_file(folder, kind, version="1", results=None):
    path = folder / f"one.{kind}.json"
    path.write_text(json.dumps({"program": "one", "version": version, "kernel": "6.12", "kind": kind,
                                "results": results or {"a": PASSED}}))
    return path


def test_merge(tmp_path):
    """A program that has run on one device only keeps its old results."""
    old = record({"old": PASSED}, {"old": PASSED})
    files = [result_file(tmp_path, "qhca")]
    assert page.merge(old, files) == old
    files.append(result_file(tmp_path, "rxe"))
    assert page.merge(old, files) == record({"a": PASSED}, {"a": PASSED})
    files[1] = result_file(tmp_path, "rxe", version="2")
    with pytest.raises(page.BadRecord, match="not of one guest"):
        page.merge(old, files)


def test_update(tmp_path, monkeypatch):
    """A record that is not allowed leaves the page and the record as they are."""
    for name, file in (("RECORD", "programs.json"), ("PAGE", "programs.rst"), ("RESULTS", "results")):
        monkeypatch.setattr(page, name, tmp_path / file)
    page.RESULTS.mkdir()
    page.PAGE.write_text(f"Above\n\n{page.BEGIN}{page.END}\nBelow\n")
    result_file(page.RESULTS, "qhca", results={"a": ["failed", "why"]})
    result_file(page.RESULTS, "rxe")
    before = page.PAGE.read_text()
    with pytest.raises(page.BadRecord, match="on qhca alone"):
        page.update()
    assert page.PAGE.read_text() == before and not page.RECORD.exists()
    result_file(page.RESULTS, "qhca")
    page.update()
    text = page.PAGE.read_text()
    assert text.startswith("Above\n") and text.endswith("\nBelow\n") and "one" in text
    assert page.placed(text, page.table(json.loads(page.RECORD.read_text()))) == text


def test_no_place():
    with pytest.raises(page.BadRecord, match="no place"):
        page.placed("A page without the marks\n", "table")


class Port:
    kind = "qhca"


def test_wrong():
    """A failure is an error unless it is known, and so is a known one that passes."""
    def fails(_server, _client):
        raise GuestError("it said\nerror: no such QP\n")

    def hangs(_server, _client):
        raise GuestError("a: `x` took longer than 9 s and was killed\n")

    def skips(_server, _client):
        raise Skipped("no such device")
    cases = (Case("new", fails), Case("known", fails, known={"qhca": "its own fault"}),
             Case("mended", lambda *_: None, known={"qhca": "its own fault"}),
             Case("race", hangs, race="a race of its own", like="took longer than 9 s"),
             Case("other", fails, race="a race of its own", like="took longer than 9 s"),
             Case("good", lambda *_: None), Case("skipped", skips))
    program = Program("one", "one", cases)
    results, texts = run_cases(program, Port, Port, cases)
    assert results == {"new": ["failed", "error: no such QP"], "known": ["failed", "its own fault"],
                       "mended": PASSED, "race": ["failed", "a race of its own"],
                       "other": ["failed", "error: no such QP"], "good": PASSED, "skipped": SKIPPED}
    found = wrong(program, "qhca", results, texts)
    assert [line.split(": ")[1].split(" passes")[0] for line in found] == ["new", "mended", "other"]


@pytest.mark.parametrize("kind, counter", [("qhca", "tx_packets"), ("rxe", "sent_pkts")])
def test_must_use(kind, counter):
    """A program whose RDMA device has sent nothing meanwhile has failed, on either end."""
    class Counting:
        def __init__(self, step):
            self.kind, self.ibdev, self.guest, self.step, self.sent = kind, kind, self, step, 1000
            self.name = "a"

        def counters(self):
            self.sent += self.step
            return {counter: self.sent}
    assert must_use(Counting(60), Counting(60), lambda: "result") == "result"
    for steps in (60, 0), (0, 60):
        with pytest.raises(GuestError, match="has sent 0 packets, not 50"):
            must_use(*map(Counting, steps), lambda: None)


def test_reason():
    assert reason_of("server on a\n[log] fi_enable failed: -22\nmore\n") == "[log] fi_enable failed: -22"
    assert reason_of("just\nlines\n") == "just"
    assert reason_of("a: `cat x\n# error\n` took longer than 120 s and was killed") == "took longer than 120 s"
    # Logs follow, and programs are named after errors that they make.
    assert reason_of("a: `fi_fail` ended with 12\nb: `y` took longer than 5 s\n-- a --\nerror\n") == "ended with 12"
    assert reason_of("server on a: not ready within 60 s: a: `z` took longer") == "not ready within 60 s"


def test_race_of_libfabric():
    """Its fault is a race that is known. A hang is not, nor are counters behind the text."""
    def text(client, server, said="", more="-- b: RDMA counters --\n{'completions_flushed': 4}\n"):
        return (f"client on b: `x -p 'verbs;ofi_rxm'` ended with {client}\nStart testing\n"
                f"server on a: `x` ended with {server}\n{said}\n{more}")

    late = "client on b: `x` ended with 0\nserver on a: a: `x` took longer than 150 s and was killed"
    for case in fabric.LIBFABRIC.cases + fabric.FABTESTS.cases:
        if not case.race:
            continue
        assert reason_for(case, "qhca", text(0, -11)) == case.race
        assert reason_for(case, "qhca", text(-11, 0)) == case.race
        for other in (text(1, 0, "Work Request Flushed Error"), text(0, 1), text(-11, -11), text(0, 0), late,
                      text(125, 0)):
            assert reason_for(case, "qhca", other) != case.race


def test_tests_of_googletest():
    """rdma-unit-test lists its tests by suite, and writes JSON."""
    listed = "One.\n  A\n  B\nAll/Two.\n  C/0  # GetParam() = 1\n"
    assert unit_test.names(listed) == ["One.A", "One.B", "All/Two.C/0"]
    tests = [{"name": "A", "result": "COMPLETED"}, {"name": "B", "result": "SKIPPED",
             "skipped": [{"message": "no huge pages"}]},
             {"name": "C", "result": "COMPLETED", "failures": [{"failure": "/x.cc:1\nnot equal"}]}]
    text = json.dumps({"testsuites": [{"name": "One", "testsuite": tests}]})
    assert unit_test.verdicts(text) == {"One.A": ("passed", ""), "One.B": ("skipped", "no huge pages"),
                                        "One.C": ("failed", "not equal")}


def test_verdicts_of_blktests():
    """A test may run under several conditions; it has failed if one of them fails."""
    head = ("nvme/010 (tr=rdma bd=device) (run data verification)        \n    runtime  8.2s  ...\n")
    passed = head + "nvme/010 (tr=rdma bd=device) (run data verification)        [passed]\n    runtime  8.2s  ...  9s\n"
    failed = (head + "nvme/010 (tr=rdma bd=file) (run data verification)     [failed]\n    runtime ...  2s\n"
              "    --- a.out\n    +++ b.bad\n    @@ -1 @@\n     same\n    -one\n    +two\n    ...\n")
    skipped = "nvme/063 (tr=rdma) (keys) [not run]\n    runtime  1s  ...  \n    no tlshd\n    no keys\n"
    assert blktests.verdict(passed) == ("passed", "")
    assert blktests.verdict(passed + failed) == ("failed", "-one\n+two")
    assert blktests.verdict(skipped) == ("skipped", "no tlshd; no keys")
    assert blktests.verdict(passed + skipped) == ("passed", "")
    assert blktests.verdict("./check: no bash\n") == ("failed", "no result in: ./check: no bash\n")


class FakePort:
    """A guest in which the program dies of one test, and can run the others alone."""
    ibdev, kind = "qhca0", "qhca"

    def __init__(self):
        self.ran = []

    def exec(self, command, **options):
        if "--gtest_filter" in command:
            self.ran.append(command.partition("--gtest_filter='")[2].partition("-")[0])
        return "ended with -11"

    def out(self, command):
        test = self.ran[-1].rpartition(".")[2]
        return "" if test in ("*", "dies") else json.dumps(
            {"testsuites": [{"name": "S", "testsuite": [{"name": test, "result": "COMPLETED"}]}]})


def test_program_that_dies():
    """The results of the whole suite are lost with it. What is left out never runs."""
    port, results = FakePort(), unit_test.Results()
    assert results.of(port, "S.dies") == ("failed", "ended with -11")
    assert results.of(port, "S.lives") == ("passed", "")
    assert results.of(port, "S.lives") == ("passed", "")
    assert results.of(port, "DeviceLimitTest.MaxPd")[0] == "skipped"
    assert port.ran == ["S.*", "S.dies", "S.lives"]


class PythonPort:
    """A guest in which one test ends Python."""
    ibdev, kind = "qhca0", "qhca"

    def __init__(self):
        self.ran = []

    def write(self, path, text):
        pass

    def gid_index(self):
        return 1

    def exec(self, command):
        pass

    def spawn(self, command, stdin):
        self.ran.append(stdin.split())
        return self

    def wait(self, limit, check):
        assert not check
        said = ""
        for test in self.ran[-1]:
            said += f"start {test}\n"
            if test == "m.T.dies":
                break
            said += {"m.T.bad": f"result failed {test} Traceback:\\n  line\\nError: 22\\n\n",
                     "m.T.late": f"result skipped {test} no such QP\n"}.get(test, f"result passed {test} \n")
        return Result("run", 3, said, "too late")


def test_python_that_ends():
    """The results before it count, and the tests after it run in another."""
    port, results = PythonPort(), rdma_core.Results(["m.T.good", "m.T.bad", "m.T.dies", "m.T.late"])
    assert results.of(port, "m.T.good") == ("passed", "")
    result, why = results.of(port, "m.T.bad")
    assert result == "failed" and rdma_core.reason(why) == "Error: 22"
    assert results.of(port, "m.T.dies") == ("failed", "ended with 3\ntoo late")
    assert results.of(port, "m.T.late") == ("skipped", "no such QP")
    assert port.ran == [results.tests, ["m.T.late"]]
