"""A library without Maskwise and with it, in turns, in one process: what its suites of benchmarks
share."""

from __future__ import annotations

import argparse
import math
import statistics
import sys
from collections.abc import Callable, Iterable, Sequence

import table
from machine import machine_facts
from table import time_text
from where import FOLDER, TURNS, calls_of_sample, seconds_a_call

Measured = tuple[list[str], str]  # the row of the table, and why the target is missed
HEAD = ["model", "type", "", "with Maskwise", "times faster"]


def medians(turns: list[list[float]]) -> tuple[float, float, float]:
    """Seconds without and with, and of the turns' ratios."""
    without, with_it = (statistics.median(column) for column in zip(*turns, strict=True))
    return without, with_it, statistics.median(first / second for first, second in turns)


def compare(
    case: str,
    dtype: str,
    calls: Sequence[Callable[[], object]],
    least: float = 0.0,
    most_slower: float = math.inf,
) -> Measured:
    """Of two calls, without and with. `least` is the ratio wanted, `most_slower` in seconds."""
    for call in calls:
        seconds_a_call(call, calls_of_sample(call))
    counts = [calls_of_sample(call) for call in calls]
    without, with_it, ratio = medians(
        [
            [seconds_a_call(call, count) for call, count in zip(calls, counts, strict=True)]
            for _ in range(TURNS)
        ]
    )
    missed = ""
    if ratio < least:
        missed = f"{ratio:.2f} times as fast, {least} wanted"
    if with_it - without > most_slower:
        missed = f"{time_text(with_it - without)} slower, {time_text(most_slower)} allowed"
    return [case, dtype, time_text(without), time_text(with_it), f"{ratio:.2g}"], missed


def run_suite(
    suite: str,
    library: str,
    version: str,
    cases: Iterable[tuple[str, Callable[[], Measured]]],
    head: list[str] = HEAD,
) -> int:
    """A row for each case by its name, and a line for each target missed; build/bench/SUITE.json
    keeps the rows. The status of the program."""
    parser = argparse.ArgumentParser(prog=f"scripts/bench {suite}")
    parser.add_argument(
        "--only", default="", help="cases with this in their name (nothing is kept)"
    )
    parser.add_argument("--no-targets", action="store_true", help="end with 0 where one is missed")
    if suite.startswith("onnxruntime"):
        parser.add_argument("--models", action="store_true", help="language models instead")
    given = parser.parse_args()
    head = [cell or library for cell in head]
    facts = [f"{name}: {text}" for name, text in machine_facts().items()]
    print(*facts, table.heading(head), sep="\n")
    rows, missed = [], []
    for name, measure in cases:
        if given.only in name:
            row, why = measure()
            rows.append(row)
            missed += [f"missed: {name}: {why}"] if why else []
            print(table.markdown(row), flush=True)
    if not given.only:
        table.keep(FOLDER, suite, f"{library} {version}", head, rows)
    print(*missed, sep="\n", end="\n" if missed else "", file=sys.stderr)
    return 0 if given.no_targets or not missed else 1
