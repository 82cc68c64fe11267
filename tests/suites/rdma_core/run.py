# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Runs rdma-core's tests in a guest, and prints a line for each.

    run.py FOLDER list
    run.py FOLDER run DEVICE GID < NAMES

FOLDER has the tests of an rdma-core tree in tests/, and its pyverbs, unless it is Debian's that
is to be used. A name is that of a module or of one test in it: test_mr, test_mr.MRTest.test_buffer.
A test that goes on for too long ends the program.
"""

import faulthandler
import importlib
import pathlib
import sys
import types
import unittest

# Of devices whose drivers have a part of libibverbs for themselves, and of GPUs.
OTHERS = ("test_mlx5", "test_efa", "test_cuda")
LIMIT = 300


def prepare(folder, arguments):
    """Makes the package, which would load all modules by itself."""
    sys.path[:0] = [folder, folder + "/tests"]
    sys.argv[1:] = arguments
    package = types.ModuleType("tests")
    package.__path__ = [sys.path[1]]
    sys.modules["tests"] = package
    importlib.import_module("args_parser").parser.parse_args()


def modules(folder):
    """The names of all modules of tests but those of others."""
    return sorted(path.stem for path in pathlib.Path(folder, "tests").glob("test_*.py")
                  if not path.stem.startswith(OTHERS))


def tests(suite):
    """Each test of a suite of suites."""
    for part in suite:
        yield from tests(part) if isinstance(part, unittest.TestSuite) else (part,)


def load(name):
    return unittest.defaultTestLoader.loadTestsFromName("tests." + name)


def name_of(test):
    return test.id().split(".", 1)[-1]


class Result(unittest.TextTestResult):
    """Prints each result at once: a test may end the program."""

    def tell(self, how, test, why=""):
        print("\nresult", how, name_of(test), why.replace("\n", "\\n"), flush=True)

    def startTest(self, test):
        super().startTest(test)
        print("\nstart", name_of(test), flush=True)
        faulthandler.dump_traceback_later(LIMIT, exit=True)

    def stopTest(self, test):
        faulthandler.cancel_dump_traceback_later()
        super().stopTest(test)

    def addSuccess(self, test):
        self.tell("passed", test)

    def addSkip(self, test, reason):
        self.tell("skipped", test, reason)

    def addError(self, test, err):
        self.tell("failed", test, self._exc_info_to_string(err, test))

    addFailure = addError


def main(folder, action, *arguments):
    if action == "list":
        prepare(folder, [])
        for test in tests(load(name) for name in modules(folder)):
            print("test", name_of(test))
        return
    faulthandler.enable()
    device, gid = arguments
    prepare(folder, ["--dev", device, "--gid", gid])
    suite = unittest.TestSuite(map(load, sys.stdin.read().split()))
    number = suite.countTestCases()
    unittest.TextTestRunner(stream=sys.stderr, resultclass=Result).run(suite)
    print("\nend", number)


main(*sys.argv[1:])
