"""Measures calls of a library with and without Maskwise, in turns in one process."""

import argparse
import math
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence

import table
from machine import ROOT, machine_facts
from table import add_only, time_text

FOLDER = ROOT / "build/bench"
TURNS = 25
SAMPLE_SECONDS = 300e-6
Call = Callable[[], object]
Measured = tuple[list[str], str]  # the table's row; why the target is missed, or ""
HEAD = ["model", "type", "", "with Maskwise", "times faster"]


def seconds_a_call(call: Call, calls: int = 1) -> float:
    begin = time.perf_counter()
    for _ in range(calls):
        call()
    return (time.perf_counter() - begin) / calls


def calls_of_sample(call: Call) -> int:
    return max(1, int(SAMPLE_SECONDS / seconds_a_call(call, 3)))


def in_turns(forms: Sequence[Call]) -> list[list[float]]:
    """Returns, per turn, the seconds per call of each form (one way to compute a case)."""
    for form in forms:  # warm-up, so that slow first calls do not affect `counts`
        seconds_a_call(form, calls_of_sample(form))
    counts = [calls_of_sample(form) for form in forms]
    return [list(map(seconds_a_call, forms, counts)) for _ in range(TURNS)]


def medians(turns: list[list[float]]) -> list[float]:
    """Returns the median seconds of each form."""
    return [statistics.median(taken) for taken in zip(*turns, strict=True)]


def ratio_of(turns: list[list[float]]) -> float:
    """Returns the second form's speed relative to the first's: the median over the turns."""
    return statistics.median(first / second for first, second in turns)


def compare(
    case: str,
    dtype: str,
    calls: Sequence[Call],
    least: float = 0.0,
    most_slower: float = math.inf,
) -> Measured:
    """Compares two calls, without and with Maskwise. `least` is Maskwise's required relative speed.
    `most_slower` is the allowed extra time in seconds.
    """
    turns = in_turns(calls)
    (without, with_it), ratio = medians(turns), ratio_of(turns)
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
    """Prints a row per case and a line per missed target. Unless --only is set, writes the rows to
    build/bench/SUITE.json. Returns the exit status."""
    parser = argparse.ArgumentParser(prog=f"scripts/bench {suite}")
    add_only(parser, "cases")
    parser.add_argument(
        "--no-targets", action="store_true", help="exit with 0 even if a target is missed"
    )
    if suite.startswith(("onnxruntime", "openvino")):
        parser.add_argument("--models", action="store_true", help="measure language models")
    arguments = parser.parse_args()
    print(*(f"{name}: {text}" for name, text in machine_facts().items()), sep="\n")
    missed = []

    def rows() -> Iterator[list[str]]:
        for name, measure in cases:
            if arguments.only in name:
                row, why = measure()
                missed.extend([f"missed: {name}: {why}"] if why else [])
                yield row

    head = [cell or library for cell in head]
    shown_rows = table.shown(head, rows())
    if not arguments.only:
        table.save_table(FOLDER, suite, f"{library} {version}", head, shown_rows)
    print(*missed, sep="\n", end="\n" if missed else "", file=sys.stderr)
    return 0 if arguments.no_targets or not missed else 1
