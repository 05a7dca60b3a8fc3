"""Helpers for the tests of maskwise-bench (the client): start the client and query its oneDNN.

ctest runs a test script once per lane (a oneDNN installation) and group (a unittest class):
    test_client.py --lane LANE --prefix DIR --bench FILE --faulty FILE [--preload LIBS]
                   [--cases DIR] [GROUP...]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import unittest_report

ROOT = Path(__file__).resolve().parents[2]
INPUTS = ROOT / "benchdnn_inputs"
SUMMARY = re.compile(r"^tests:(\d+) passed:(\d+) skipped:(\d+) .*failed:(\d+)", re.MULTILINE)


@dataclass
class Setup:
    lane: str = ""
    prefix: str = ""  # the lane's installation, an argument of scripts/lane
    bench: str = ""
    faulty: str = ""
    preload: str = ""
    cases: str = ""

    @cached_property
    def library(self) -> re.Match[str]:
        """Matches the oneDNN version and the CPU features that the client prints."""
        match = re.search(r"oneDNN 3\.(\d+).* \(CPU runtime \S+, (.*)\)", run(ADD).out)
        assert match, "the client does not start in this lane"
        return match

    @property
    def minor(self) -> int:
        return int(self.library[1])

    @cached_property
    def types(self) -> set[str]:
        """Returns those of f32, bf16 and f16 in which the lane's oneDNN runs a MatMul."""
        names = ["f32", "bf16", "f16"]
        tests = report(f"--dt={','.join(names)}", case("op/matmul.json"), is_test=False)
        return {name for name, test in zip(names, tests, strict=True) if test["state"] == "PASSED"}


SETUP = Setup()


@dataclass
class Outcome:
    status: int
    out: str
    err: str

    @property
    def counts(self) -> tuple[int, int, int, int]:
        """Returns the numbers of tests that ran, passed, were skipped and failed."""
        match = SUMMARY.search(self.out)
        assert match, self.out + self.err
        tests, passed, skipped, failed = map(int, match.groups())
        return tests, passed, skipped, failed


def run(
    *arguments: str,
    plugin: bool = False,
    fault: str | None = None,
    cwd: Path = ROOT,
    env: dict[str, str] | None = None,
    stdin: str | None = None,
) -> Outcome:
    command = [str(ROOT / "scripts" / "lane")]
    if plugin:
        command += ["--preload", SETUP.preload]
    program = SETUP.faulty if fault else SETUP.bench
    command += [SETUP.prefix or SETUP.lane, "--", program, *arguments]
    environment = dict(os.environ, **(env or {}))
    if fault:
        environment["MASKWISE_BENCH_FAULT"] = fault
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=cwd, env=environment, input=stdin, timeout=1200
    )
    return Outcome(done.returncode, done.stdout, done.stderr)


def case(name: str) -> str:
    return f"--case={INPUTS / name}"


ADD = case("op/add.json")
SELECT = case("op/select.json")
# 3 x 5 f32 elements do not fill a page, so a write before them changes the guarded buffer's pattern
# and does not trap.
SUBTRACT = ["--in-shapes=0:3x5+1:3x5", case("op/subtract.json")]


def needs_plugin(test: unittest.TestCase) -> None:
    if not SETUP.preload:
        test.skipTest("started without --preload")


@contextlib.contextmanager
def report_file(is_test: bool) -> Iterator[Path]:
    """Yields a path for a report: temporary, unless `is_test` and the report folder is set."""
    folder = unittest_report.folder()
    if is_test and folder:
        yield folder / f"batch-{len(list(folder.iterdir()))}.json"
        return
    with tempfile.TemporaryDirectory() as temporary:
        yield Path(temporary) / "report.json"


def report(
    *arguments: str, plugin: bool = False, is_test: bool = True, env: dict[str, str] | None = None
) -> list[dict[str, Any]]:
    """Returns the client's report of each case. Fails if the client writes no report."""
    with report_file(is_test) as file:
        outcome = run(f"--report={file}", *arguments, plugin=plugin, env=env)
        assert file.is_file(), outcome.out[-4000:] + outcome.err
        return list(json.loads(file.read_text())["tests"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("lane", "bench", "faulty"):
        parser.add_argument(f"--{name}", required=True)
    for name in ("prefix", "preload", "cases"):
        parser.add_argument(f"--{name}", default="")
    arguments, rest = parser.parse_known_args()
    for name, value in vars(arguments).items():
        setattr(SETUP, name, value)
    os.environ.pop("LD_PRELOAD", None)
    unittest_report.main(argv=[sys.argv[0], *rest])
