"""Writes and prints tables. Tables for the documents are files below build/bench, which
scripts/take_figures.py reads. The Select suites print a row per case while they run."""

import argparse
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from machine import machine_facts, write_stamp
from results import Row, Rows, state_of

Cells = tuple[str, list[str], list[list[str]]]  # versions, head and rows as text


def time_text(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    if seconds < 1e-3:
        return f"{seconds * 1e6:.3g} us"
    return f"{seconds * 1e3:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def times_text(slow: float, fast: float) -> str:
    return f"{slow / fast:.2g}" if slow / fast < 100 else f"{slow / fast:.0f}"


def line_of(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def markdown(head: list[str], rows: Iterable[list[str]] = ()) -> str:
    return "\n".join(map(line_of, [head, ["---"] * len(head), *rows]))


def add_only(parser: argparse.ArgumentParser, things: str) -> None:
    help_text = f"measure only the {things} with this text in their names, and write no table"
    parser.add_argument("--only", default="", help=help_text)


def begin_suite(suite: str, description: str | None, things: str) -> str:
    """Prints the machine's facts and returns --only. If --only is set, the suite must not save its
    table."""
    parser = argparse.ArgumentParser(prog=f"scripts/bench {suite}", description=description)
    add_only(parser, things)
    only: str = parser.parse_args().only
    print("\n".join(f"{name}: {value}" for name, value in machine_facts().items()))
    return only


def shown(head: list[str], rows: Iterable[list[str]]) -> list[list[str]]:
    """Prints each row as soon as the row is measured. Returns all rows."""
    print(markdown(head))
    shown_rows = []
    for row in rows:
        shown_rows.append(row)
        print(line_of(row), flush=True)
    return shown_rows


def save_table(
    folder: Path, name: str, versions: str, head: list[str], rows: list[list[str]]
) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    table = {"versions": versions, "head": head, "rows": rows}
    (folder / f"{name}.json").write_text(json.dumps(table, indent=1) + "\n")
    write_stamp(folder, name)


def medians(text: str) -> dict[str, dict[str, Any]]:
    """Returns the medians in Google Benchmark's JSON output by case, in the program's order."""
    entries = json.loads(text)["benchmarks"]
    medians = [entry for entry in entries if entry["aggregate_name"] == "median"]
    medians.sort(key=lambda entry: entry["family_index"])
    return {entry["run_name"]: entry for entry in medians}


PYTHON_HEAD = ["case", "`numpy.where`", "NumPy's best form", "`maskwise.where`", "times faster"]
PYTHON_HEAD += ["with `out=`", "times faster"]


def python_row(case: str, numpy: float, copies: float, new: float, out: float) -> list[str]:
    """Returns a row for these seconds per call. Compares Maskwise with NumPy's faster form."""
    best = min(numpy, copies)
    form = "where" if best == numpy else "copyto"
    cells = [case, time_text(numpy), f"{time_text(best)} ({form})"]
    for seconds in (new, out):
        cells += [time_text(seconds), times_text(best, seconds)]
    return cells


def head(others: list[str]) -> list[str]:
    """Returns the column titles. A row has the times of `others` divided by Maskwise's time."""
    names = [name.removeprefix("onednn ") for name in others]
    return ["case", "type", "mask", "MB", "limit", "Maskwise", "of limit", *names, "operands"]


def ratio_text(row: Row | None, maskwise: Row) -> str:
    if row is None or row.seconds_median is None:
        return state_of(row)
    if maskwise.seconds_median is None:
        return time_text(row.seconds_median)
    return f"{row.seconds_median / maskwise.seconds_median:.3g}x"


def case_row(rows: Rows, others: list[str]) -> list[str]:
    maskwise, limit = rows["maskwise"], rows["limit"]
    share = "-" if maskwise.limit_fraction is None else f"{maskwise.limit_fraction:.2f}"
    cells = [maskwise.case, maskwise.dtype, maskwise.mask, f"{maskwise.bytes / 1e6:.4g}"]
    cells += [time_text(limit.seconds_median), time_text(maskwise.seconds_median), share]
    failure = f"  !! {maskwise.version}" if maskwise.seconds_median is None else ""
    ratios = [ratio_text(rows.get(name), maskwise) for name in others]
    return [*cells, *ratios, f"{maskwise.cond}, {maskwise.src_0}, {maskwise.src_1}{failure}"]
