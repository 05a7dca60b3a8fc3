#!/usr/bin/env python3
"""Prints one line a lane from ctest's JUnit report; fails when a test failed or a lane is empty."""

from __future__ import annotations

import argparse
import collections
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def lane_names() -> list[str]:
    command = [str(ROOT / "scripts/lane"), "--list"]
    listing = subprocess.run(command, text=True, capture_output=True, check=True).stdout.strip()
    return [entry.split("=", 1)[0] for entry in listing.split(";") if entry]


def count_by_lane(report: Path, lanes: list[str]) -> dict[str, collections.Counter[str]]:
    counts = {name: collections.Counter[str]() for name in [*lanes, "no lane"]}
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        first = case.get("name", "").split("/", 1)[0]
        counts[first if first in lanes else "no lane"][case.get("status", "unknown")] += 1
    return counts


def summarize(report: Path, lanes: list[str], partial: bool) -> int:
    status = 0
    for lane, count in count_by_lane(report, lanes).items():
        passed, total = count["run"], count.total()
        print(f"{lane:>8}: {passed} of {total} passed")
        if passed < total or (total == 0 and not partial):
            status = 1
    print("scripts/test: " + ("passed" if status == 0 else "FAILED"))
    return status


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("report", type=Path)
    parser.add_argument("--partial", action="store_true", help="a selection: a lane may be empty")
    arguments = parser.parse_args()
    if not arguments.report.is_file():
        print("scripts/test: no report by ctest: FAILED")
        return 1
    return summarize(arguments.report, lane_names(), arguments.partial)


if __name__ == "__main__":
    sys.exit(main())
