#!/usr/bin/env python3
"""Prints the results of the test cases of each lane (an installed oneDNN). Fails if a case failed.
Without --partial, also fails if no case of a lane passed.

ctest counts programs. Their cases are in reports, in the folder that cmake/test_reports.cmake sets:
JUnit files of googletest, pytest and tests/support/unittest_report.py, and maskwise-bench's reports
of batches. A program without a report counts as one case.
"""

import argparse
import ast
import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
CAP = "ONEDNN_MAX_CPU_ISA"
NO_LANE = "no lane"
GTEST_REPORT = "--gtest_output=xml:"
WHERE = re.compile(r"\A.+:\d+\n")  # googletest's prefix of a skipped test's message
# Entries of ENVIRONMENT_MODIFICATION.
SETTING = re.compile(r"^(\w+)=(?:un)?set:(.*)$", re.MULTILINE)
ISA_LINE = re.compile(r"^instruction sets: *(.*\S)", re.MULTILINE)


class Case(NamedTuple):
    name: str
    state: str  # passed, failed or skipped
    reason: str = ""


class Program(NamedTuple):
    """A ctest test: the path of its report, and the cap on oneDNN's instruction set."""

    report: Path | None = None
    cap: str = ""


@dataclass
class Outcome:
    """The results of a lane."""

    passed: int = 0
    failed: list[str] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    instruction_sets: set[str] = field(default_factory=set)
    caps: Counter[str] = field(default_factory=Counter)  # number of programs by cap

    def add(self, test: ElementTree.Element, program: Program) -> None:
        self.caps[program.cap] += 1
        self.instruction_sets.update(ISA_LINE.findall(test.findtext("system-out") or ""))
        for case in cases_of(test, program):
            if case.state == "passed":
                self.passed += 1
            elif case.state == "skipped":
                self.skipped[case.reason] += 1
            else:
                parts = (test.get("name"), case.name, case.reason)
                self.failed.append(": ".join(filter(None, parts)))

    def lines(self) -> Iterator[str]:
        yield (
            f"{self.passed} passed, {len(self.failed)} failed, {self.skipped.total()} skipped, "
            f"by {self.caps.total()} programs"
        )
        yield from (f"failed: {name}" for name in self.failed)
        yield from (f"{count} skipped: {why}" for why, count in self.skipped.most_common())
        yield from (f"instruction sets: {text}" for text in sorted(self.instruction_sets))
        if any(self.caps):
            parts = [f"{f'{CAP}={cap}' if cap else 'no cap'} {n}" for cap, n in self.caps.items()]
            yield f"programs by cap: {', '.join(sorted(parts))}"


def lane_names() -> list[str]:
    command = [str(ROOT / "scripts/lane"), "--list"]
    listing = subprocess.run(command, text=True, capture_output=True, check=True).stdout.split(";")
    return [lane for lane, _, prefix in (text.partition("=") for text in listing) if prefix]


def read_program(test: dict[str, Any]) -> Program:
    properties = {entry["name"]: entry["value"] for entry in test["properties"]}
    changes = [text.replace("=", "=set:", 1) for text in properties.get("ENVIRONMENT", [])]
    changes += properties.get("ENVIRONMENT_MODIFICATION", [])
    variables = {CAP: os.environ.get(CAP, ""), **dict(SETTING.findall("\n".join(changes)))}
    words = [word for word in test.get("command", []) if word.startswith(GTEST_REPORT)]
    report = words[0].removeprefix(GTEST_REPORT) if words else variables.get("MASKWISE_TEST_REPORT")
    return Program(Path(report) if report else None, variables[CAP])


def read_programs(listing: Path) -> dict[str, Program]:
    """Reads programs by name from the output of `ctest --show-only=json-v1`."""
    return {test["name"]: read_program(test) for test in json.loads(listing.read_text())["tests"]}


def reason_of(skipped: ElementTree.Element) -> str:
    message = skipped.get("message", "")
    if message == "collection skipped":  # pytest's message for a whole file: (file, line, reason)
        message = ast.literal_eval(skipped.text or "")[2].removeprefix("Skipped: ")
    return " ".join(WHERE.sub("", message).split()) or "no reason given"


def junit_cases(path: Path) -> Iterator[Case]:
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        name = f"{case.get('classname', '')}.{case.get('name', '')}"
        skipped = case.find("skipped")
        if case.find("failure") is not None or case.find("error") is not None:
            yield Case(name, "failed")
        elif skipped is not None:
            yield Case(name, "skipped", reason_of(skipped))
        elif case.get("status") != "notrun":
            yield Case(name, "passed")


def batch_cases(path: Path) -> Iterator[Case]:
    """Cases of maskwise-bench's report. These cases cannot fail, because the test that started
    the batch judges the results."""
    for case in json.loads(path.read_text())["tests"]:
        state, reason = case["state"].lower(), f"in a batch: {case['reason']}"
        if state not in ("passed", "skipped"):
            state, reason = "skipped", f"{state} {reason}"
        yield Case("", state, reason)


def read_report(place: Path) -> list[Case]:
    files = sorted(place.iterdir()) if place.is_dir() else [place] if place.is_file() else []
    readers = {".xml": junit_cases, ".json": batch_cases}
    known = [file for file in files if file.suffix in readers]
    return [case for file in known for case in readers[file.suffix](file)]


def verdict_of(test: ElementTree.Element) -> Case:
    """Returns ctest's verdict on the whole program."""
    status, skipped = test.get("status"), test.find("skipped")
    if status == "run":
        return Case("", "passed")
    if skipped is not None and skipped.get("message", "").startswith("SKIP_"):
        output = (test.findtext("system-out") or "").strip().splitlines()
        return Case("", "skipped", output[-1] if output else "no reason given")
    return Case("", "failed", f"ctest says {status}")


def cases_of(test: ElementTree.Element, program: Program) -> list[Case]:
    """Returns the report's cases; without a report, the program is the only case. A failed program
    without a failed case adds a failed case. A report without cases is a failure."""
    cases, verdict = read_report(program.report) if program.report else [], verdict_of(test)
    if verdict.state == "failed":
        return cases if any(case.state == "failed" for case in cases) else [*cases, verdict]
    if verdict.state == "passed" and program.report and not cases:
        return [Case("", "failed", f"no case is reported in {program.report}")]
    return cases or [verdict]


def summarize(report: Path, programs: dict[str, Program], lanes: list[str], partial: bool) -> int:
    status, outcomes = 0, {name: Outcome() for name in [*lanes, NO_LANE]}
    for test in ElementTree.parse(report).getroot().iter("testcase"):
        name = test.get("name", "")
        outcomes.get(name.split("/", 1)[0], outcomes[NO_LANE]).add(test, programs[name])
    for lane, outcome in outcomes.items():
        first, *more = outcome.lines()
        print(f"{lane:>8}: {first}", *more, sep="\n          ")
        if outcome.failed or (outcome.passed == 0 and not partial):
            status = 1
    print("scripts/test: " + ("passed" if status == 0 else "FAILED"))
    return status


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("report", type=Path, help="file of ctest --output-junit")
    parser.add_argument("listing", type=Path, help="output of ctest --show-only=json-v1")
    parser.add_argument(
        "--partial", action="store_true", help="only some tests ran, so a lane may have no cases"
    )
    arguments = parser.parse_args()
    if not arguments.report.is_file():
        print("scripts/test: no report by ctest: FAILED")
        return 1
    programs = read_programs(arguments.listing)
    return summarize(arguments.report, programs, lane_names(), arguments.partial)


if __name__ == "__main__":
    sys.exit(main())
