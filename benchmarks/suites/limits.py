"""Compares unmasked attention with the machine's peak: the rate of multiply-adds on registers or,
for few queries with many keys, the memory bandwidth.

Started by scripts/bench limits, which builds everything.
"""

import argparse
import subprocess
import sys
from pathlib import Path
from typing import Any

from machine import machine_facts
from measure import maskwise_version
from table import markdown, medians, save_table
from worker import ROOT

RESULTS = ROOT / "build/bench"
# Only 12x4096x64 of the cases `thin` is measured with every number of queries.
FILTER = "^(kept|small|thin/.*/12x4096x64)/|^thin/.*/([1-9]|12|16|17|24|32|33|48|64)/"
OPTIONS = {
    "repetitions": "5",
    "min_time": "0.02",
    "enable_random_interleaving": "true",
    "report_aggregates_only": "true",
}
Column = tuple[str, str, float]  # name, counter and unit
# Keys are the first part of a case's name. Values are the titles of the next three parts, and the
# columns of counters.
TABLES: dict[str, tuple[list[str], list[Column]]] = {
    "kept": (
        ["type", "depth", "threads"],
        [("ms", "real_time", 1), ("Gflop/s", "flops", 1e9), ("peak", "peak", 1e9)],
    ),
    "small": (
        ["type", "shape", "threads"],
        [("us", "real_time", 1e-3), ("products at the peak, us", "products", 1e-6)],
    ),
    "thin": (
        ["type", "shape", "queries"],
        [("ms", "real_time", 1), ("GB/s", "read", 1e9), ("memory, GB/s", "memory", 1e9)],
    ),
}


def measure(build: Path, cases: str) -> dict[str, dict[str, Any]]:
    file = RESULTS / "limits.json"
    flags = {"filter": cases, **OPTIONS, "out": str(file), "out_format": "json"}
    command = [str(build / "bin/bench_attention")]
    command += [f"--benchmark_{name}={value}" for name, value in flags.items()]
    subprocess.run(command, check=True)
    return medians(file.read_text())


def cell(counters: dict[str, Any], counter: str, unit: float) -> str:
    """Returns the counter in `unit`, or "-" if the peak of the instruction set is unknown."""
    if counter not in counters:
        return "-"
    value = counters[counter] / unit
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def table_of(kind: str, counters: dict[str, dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    named, columns = TABLES[kind]
    columns = [*columns, ("share", "share", 1)]
    rows = []
    for name, case in counters.items():
        of_kind, *cells = name.split("/")[:4]
        if of_kind == kind:
            rows.append([*cells, *(cell(case, counter, unit) for _, counter, unit in columns)])
    return [*named, *(name for name, *_ in columns)], rows


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/bench limits", description=__doc__)
    parser.add_argument("--build", type=Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--filter", default=FILTER, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    RESULTS.mkdir(parents=True, exist_ok=True)
    print("\n".join(f"{name}: {value}" for name, value in machine_facts().items()))
    rates = measure(arguments.build, arguments.filter)
    versions = f"Maskwise {maskwise_version()}, called from C++"
    for kind in TABLES:
        head, rows = table_of(kind, rates)
        print(markdown(head, rows))
        save_table(RESULTS, f"attention_{kind}", versions, head, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
