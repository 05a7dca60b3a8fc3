"""Prints which broadcast classes, layouts and masks the Select batches cover, for each type.

The classes come from the shapes and strides that the client reports, not from the batch files.
Exits with 1 if a required class has no Select in some type.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
TYPES = ["f32", "bf16", "f16"]
OPERANDS = ["cond", "src_0", "src_1", "dst"]
BROADCASTS = ["full", "outer", "inner", "scalar"]
LAYOUTS = ["dense", "permuted", "gaps"]
MASKS = ["random", "causal", "padding", "ones", "zeros", "runs"]


def broadcast_class(shape: list[int], dst: list[int]) -> str:
    """Returns "full" if no dimension repeats, "scalar" for one element, "inner" if the innermost
    dimension repeats, or "outer" if only outer dimensions repeat.
    """
    aligned = [1] * (len(dst) - len(shape)) + shape
    repeated = [a != d for a, d in zip(aligned, dst, strict=True)]
    if not any(repeated):
        return "full"
    if all(a == 1 for a in aligned):
        return "scalar"
    return "inner" if repeated[-1] else "outer"


def layout_class(shape: list[int], strides: list[int]) -> str:
    """Returns "dense" for row-major, "permuted" for dense in another order, or "gaps"."""
    used = [(stride, extent) for extent, stride in zip(shape, strides, strict=True) if extent > 1]
    step = 1
    for stride, extent in sorted(used):
        if stride != step:
            return "gaps"
        step *= extent
    return "dense" if used == sorted(used, reverse=True) else "permuted"


def list_tests(bench: Path, lane: str, batches: list[str]) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "tests.json"
        command = [str(ROOT / "scripts" / "lane"), lane, "--", str(bench), "--list"]
        command += [f"--report={report}", *(f"--batch={batch}" for batch in batches)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        tests: list[dict[str, Any]] = json.loads(report.read_text())["tests"]
    return tests


def count_cells(tests: list[dict[str, Any]]) -> Counter[tuple[str, str, str, str]]:
    """Counts Selects by (table, operand, class, type). Ignores invalid cases and empty results."""
    cells: Counter[tuple[str, str, str, str]] = Counter()
    for test in tests:
        if any(flag.startswith("--expect=") for flag in test["repro"]):
            continue
        for select in test["selects"]:
            dtype, shapes, strides = select["dtype"], select["shapes"], select["strides"]
            if 0 in shapes[3]:
                continue
            for operand, shape, stride in zip(OPERANDS, shapes, strides, strict=True):
                cells["layout", operand, layout_class(shape, stride), dtype] += 1
                if operand != "dst":
                    name = broadcast_class(shape, shapes[3])
                    cells["broadcast", operand, name, dtype] += 1
            triple = " ".join(broadcast_class(shape, shapes[3]) for shape in shapes[:3])
            cells["combination", triple, "", dtype] += 1
            mask = "random" if test["mask"] == "auto" else test["mask"]
            cells["mask", "cond", mask, dtype] += 1
    return cells


def required() -> list[tuple[str, str, str]]:
    rows = [("broadcast", operand, name) for operand in OPERANDS[:3] for name in BROADCASTS]
    rows += [("layout", operand, name) for operand in OPERANDS for name in LAYOUTS]
    return rows + [("mask", "cond", name) for name in MASKS]


def print_table(cells: Counter[tuple[str, str, str, str]]) -> int:
    """Prints the required rows; returns how many of their cells are empty."""
    print(f"{'':28}" + "".join(f"{dtype:>6}" for dtype in TYPES))
    empty = 0
    for table, operand, name in required():
        counts = [cells[table, operand, name, dtype] for dtype in TYPES]
        empty += counts.count(0)
        print(f"{table:10} {operand:6} {name:10}" + "".join(f"{n:6}" for n in counts))
    for dtype in TYPES:
        combinations = sum(1 for key in cells if key[0] == "combination" and key[3] == dtype)
        print(f"{dtype}: {combinations} combinations of broadcast classes")
    return empty


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bench", type=Path, required=True, help="the client, maskwise-bench")
    parser.add_argument("--lane", required=True, help="a lane of scripts/lane, such as 3.13")
    parser.add_argument("--batch", action="append", help="a batch; repeatable (default: select_ci)")
    arguments = parser.parse_args()
    tests = list_tests(arguments.bench, arguments.lane, arguments.batch or ["select_ci"])
    empty = print_table(count_cells(tests))
    print(f"{len(tests)} tests, {empty} empty cells")
    return 1 if empty else 0


if __name__ == "__main__":
    sys.exit(main())
