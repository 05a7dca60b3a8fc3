#!/usr/bin/env python3
"""usage: scripts/coverage [--build] [--missed]

Prints gcov's line and branch coverage of src/, integrations/ and python/src/, folder by folder.
--build first compiles the preset `coverage` for the newest and the oldest oneDNN and runs the
tests. --missed lists the lines that no test ran. Fails below 95 % of lines. Branches to exception
handlers do not count, because nearly every call can throw.
"""

import argparse
import collections
import gzip
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build/coverage"
LEAST_PERCENT = 95.0
SOURCES = ("src", "integrations", "python/src")

Lines = dict[tuple[str, int], int]  # (file, line) to its number of executions
Branches = dict[tuple[str, int, int], int]  # (file, line, branch of the line) to executions


def gcov_reports(work: Path) -> Iterator[dict[str, Any]]:
    paths = {
        path for folder in ("src", "integrations") for path in BUILD.glob(f"**/{folder}/**/*.gcda")
    }
    notes = sorted(paths)
    for start in range(0, len(notes), 20):
        some = [str(path) for path in notes[start : start + 20]]
        command = ["gcov-12", "--json-format", "--branch-probabilities", *some]
        subprocess.run(command, cwd=work, check=True, capture_output=True)
        for report in work.glob("*.gcov.json.gz"):
            with gzip.open(report, "rt") as text:
                yield json.load(text)
            report.unlink()


def source_name(name: str, working_directory: str) -> str | None:
    path = Path(working_directory, name).resolve()
    is_source = any(path.is_relative_to(ROOT / folder) for folder in SOURCES)
    return str(path.relative_to(ROOT)) if is_source else None


def add_report(report: dict[str, Any], lines: Lines, branches: Branches) -> None:
    for file in report["files"]:
        name = source_name(file["file"], report["current_working_directory"])
        if name is None:
            continue
        for line in file["lines"]:
            lines[name, line["line_number"]] += line["count"]
            ways = [way for way in line["branches"] if not way["throw"]]
            for number, way in enumerate(ways):
                branches[name, line["line_number"], number] += way["count"]


def folder_of(name: str) -> str:
    return "/".join(name.split("/")[:2])


def percent(counts: list[int]) -> float:
    return 100.0 * sum(count > 0 for count in counts) / len(counts) if counts else 100.0


def print_table(lines: Lines, branches: Branches) -> float:
    print(f"{'folder':<14} {'lines':>7} {'ran':>7} {'branches':>9} {'taken':>7}")
    for folder in sorted({folder_of(key[0]) for key in lines}):
        ran = [n for key, n in lines.items() if key[0].startswith(folder + "/")]
        taken = [n for key, n in branches.items() if key[0].startswith(folder + "/")]
        print(
            f"{folder:<14} {len(ran):>7} {percent(ran):>6.1f}% "
            f"{len(taken):>9} {percent(taken):>6.1f}%"
        )
    total, ways = list(lines.values()), list(branches.values())
    print(
        f"scripts/coverage: {percent(total):.1f} % of {len(total)} lines, "
        f"{percent(ways):.1f} % of {len(ways)} branches"
    )
    return percent(total)


def print_missed(lines: Lines) -> None:
    missed = collections.defaultdict(list)
    for (name, number), count in sorted(lines.items()):
        if count == 0:
            missed[name].append(number)
    for name, numbers in missed.items():
        print(f"{name}: {' '.join(map(str, numbers))}")


def build_and_run() -> None:
    for old in BUILD.glob("**/*.gcda"):
        old.unlink()
    lanes = {**os.environ, "MASKWISE_ONLY_LANES": "3.13,3.2"}
    subprocess.run([str(ROOT / "scripts/build"), "coverage"], check=True, env=lanes)
    command = ["ctest", "--preset", "coverage", "--progress", "--parallel", str(os.cpu_count())]
    subprocess.run(command, cwd=ROOT, check=True, env=lanes)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", action="store_true", help="compile and run the tests first")
    parser.add_argument("--missed", action="store_true", help="list the lines that no test ran")
    arguments = parser.parse_args()
    if arguments.build:
        build_and_run()
    lines: Lines = collections.Counter()
    branches: Branches = collections.Counter()
    with tempfile.TemporaryDirectory() as work:
        for report in gcov_reports(Path(work)):
            add_report(report, lines, branches)
    if not lines:
        print("scripts/coverage: no test was run; use --build")
        return 1
    total = print_table(lines, branches)
    if arguments.missed:
        print_missed(lines)
    return 0 if total >= LEAST_PERCENT else 1


if __name__ == "__main__":
    sys.exit(main())
