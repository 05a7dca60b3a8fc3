"""Python's unittest, with a report in JUnit's format for the summary of scripts/test."""

from __future__ import annotations

import os
import sys
import unittest
import xml.etree.ElementTree as ElementTree
from pathlib import Path


class Result(unittest.TextTestResult):
    """Notes the names of tests that were started; unittest notes only tests that did not pass."""

    def __init__(self, *arguments: object, **settings: object) -> None:
        super().__init__(*arguments, **settings)  # type: ignore[arg-type]
        self.started: list[str] = []

    def startTest(self, test: unittest.TestCase) -> None:
        super().startTest(test)
        self.started.append(test.id())


def describe(result: Result) -> ElementTree.Element:
    """Returns a suite with one case per test, even if several subtests failed.

    A failed setUpClass is a case, too, because its tests were not started.
    """
    failed = {identity(test) for test, _ in [*result.failures, *result.errors]}
    failed |= {test.id() for test in result.unexpectedSuccesses}
    skipped = {identity(test): reason for test, reason in result.skipped}
    suite = ElementTree.Element("testsuite")
    for name in dict.fromkeys([*result.started, *failed, *skipped]):
        case = ElementTree.SubElement(suite, "testcase", name=name)
        if name in failed:
            ElementTree.SubElement(case, "failure")
        elif name in skipped:
            ElementTree.SubElement(case, "skipped", message=skipped[name])
    return suite


def identity(test: unittest.TestCase) -> str:
    """The id of the test that a subtest belongs to, or of the test itself."""
    return str(getattr(test, "test_case", test).id())


def folder() -> Path | None:
    """The folder for reports that the summary reads. None if MASKWISE_TEST_REPORT is not set."""
    name = os.environ.get("MASKWISE_TEST_REPORT")
    if not name:
        return None
    Path(name).mkdir(parents=True, exist_ok=True)
    return Path(name)


def main(argv: list[str] | None = None, verbosity: int = 1) -> None:
    """Runs unittest.main and writes a report."""
    runner = unittest.TextTestRunner(resultclass=Result, verbosity=verbosity)
    program = unittest.main(argv=argv, testRunner=runner, exit=False)
    result, report_folder = program.result, folder()
    assert isinstance(result, Result)
    if report_folder:
        report = ElementTree.ElementTree(describe(result))
        report.write(report_folder / "unittest.xml", encoding="unicode")
    sys.exit(not result.wasSuccessful())
