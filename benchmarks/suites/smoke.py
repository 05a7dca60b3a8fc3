"""Runs two cases of suite select in Maskwise, in all other libraries and in bench_limit. Results
must be correct. Times must be positive, but may be long, because the machine may be busy.

Started by scripts/bench smoke, which builds everything.
"""

import argparse
import math
import sys
from pathlib import Path

import bench
from cases import cases_of
from results import Row, by_case

CASES = "20,35"


def is_figure(value: float | None) -> bool:
    return value is not None and math.isfinite(value) and value > 0


def faults_of(rows: list[Row], wanted: set[str]) -> list[str]:
    """Returns a line per fault. Each case must have a row of each implementation in `wanted`, and
    no wrong result. Maskwise, NumPy and the limit must have times."""
    faults = [] if rows else ["no case was measured"]
    for of_case in by_case(rows):
        any_row = next(iter(of_case.values()))
        name = f"{any_row.case} {any_row.dtype} {any_row.mask}"
        faults += [f"{name}: no {impl}" for impl in sorted(wanted - of_case.keys())]
        for impl, row in of_case.items():
            refused = row.seconds_median is None and "wrong answer" not in row.version
            if refused and impl not in ("maskwise", "limit", "numpy"):
                continue
            if not is_figure(row.seconds_median) or not is_figure(row.limit_fraction):
                verdict = f"{row.seconds_median} s, {row.limit_fraction} of the limit"
                faults.append(f"{name}: {impl} {row.version}: {verdict}")
    return faults


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=Path, required=True)
    arguments = parser.parse_args(namespace=argparse.Namespace(lane="3.13", native="", full=False))
    bench.RESULTS.mkdir(parents=True, exist_ok=True)
    cases = cases_of("select", full=False, only=CASES)
    wanted = {worker.impl for worker in bench.workers_for("select", arguments.build, "3.13")}
    rows = bench.run_suite("select", arguments, cases)
    faults = faults_of(rows, {"limit", *wanted})
    print("\n".join([*faults, f"smoke: {len(by_case(rows))} cases, {len(faults)} faults"]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
