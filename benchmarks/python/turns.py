"""A library without Maskwise and with it, in turns, in one process: what its suites of benchmarks
share."""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from machine import machine_facts, write_stamp
from where import RESULTS, TURNS, calls_of_sample, seconds_a_call, shown

FOLDER = RESULTS.parent


@dataclass
class Times:
    """Medians of seconds a call, and of the turns' ratios."""

    case: str
    dtype: str
    without: float
    with_it: float
    ratio: float
    missed: str

    def line(self) -> str:
        times = f"{shown(self.without):>9} {shown(self.with_it):>9}  {self.ratio:.2f}x"
        return f"{self.case:<52} {self.dtype}  {times}"


def compare(
    case: str,
    dtype: str,
    calls: Sequence[Callable[[], object]],
    least: float = 0.0,
    most_slower: float = math.inf,
) -> Times:
    """Of two calls, without and with. `least` is the ratio wanted, `most_slower` in seconds."""
    for call in calls:
        seconds_a_call(call, calls_of_sample(call))
    counts = [calls_of_sample(call) for call in calls]
    turns = [
        [seconds_a_call(call, count) for call, count in zip(calls, counts, strict=True)]
        for _ in range(TURNS)
    ]
    without, with_it = (statistics.median(column) for column in zip(*turns, strict=True))
    ratio = statistics.median(first / second for first, second in turns)
    missed = ""
    if ratio < least:
        missed = f"{ratio:.2f} times as fast, {least} wanted"
    if with_it - without > most_slower:
        missed = f"{shown(with_it - without)} slower, {shown(most_slower)} allowed"
    return Times(case, dtype, without, with_it, ratio, missed)


def begin(parser: argparse.ArgumentParser) -> tuple[argparse.Namespace, dict[str, str]]:
    """Reads the arguments that all suites have, and prints the facts of the machine."""
    parser.add_argument(
        "--only", default="", help="cases with this in their name (nothing is kept)"
    )
    parser.add_argument("--no-targets", action="store_true", help="end with 0 where one is missed")
    given = parser.parse_args()
    facts = machine_facts()
    print("\n".join(f"{name}: {text}" for name, text in facts.items()))
    return given, facts


def keep(suite: str, entries: dict[str, Any]) -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / f"{suite}.json").write_text(json.dumps(entries, indent=1) + "\n")
    write_stamp(FOLDER, suite)


def run_suite(
    suite: str, library: str, version: str, cases: Iterable[tuple[str, Callable[[], Times]]]
) -> int:
    """A line for each case by its name, and one for each target missed; build/bench/SUITE.json
    keeps the times. The status of the program."""
    given, facts = begin(argparse.ArgumentParser(prog=f"scripts/bench {suite}"))
    print(f"{library} {version}: without and with Maskwise")
    every = []
    for name, measure in cases:
        if given.only in name:
            every.append(measure())
            print(every[-1].line(), flush=True)
    if not given.only:
        keep(suite, {**facts, "version": version, "cases": [asdict(one) for one in every]})
    missed = [f"missed: {one.case} {one.dtype}: {one.missed}" for one in every if one.missed]
    for line in missed:
        print(line, file=sys.stderr)
    return 0 if given.no_targets or not missed else 1
