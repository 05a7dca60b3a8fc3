"""Attention and Select on 1 to all processors of the machine.

Started by scripts/bench scaling, which has everything built.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "peers"))
from machine import machine_facts
from mask_problem import PROBLEMS, Problem
from measure import maskwise_version
from table import keep, shown
from worker import ROOT, Worker

RESULTS = ROOT / "build/bench"
TURNS, SECONDS = 5, 0.05
SELECTS = {
    "causal mask over 12 heads": {"cond": [1024, 1024], "src_0": [12, 1024, 1024], "src_1": []},
    "all of one shape, 4 MB": {key: [1024, 1024] for key in ("cond", "src_0", "src_1")},
    "all of one shape, 64 MB": {key: [16, 1024, 1024] for key in ("cond", "src_0", "src_1")},
}


def problems() -> Iterator[Problem]:
    for shape in [(1, 12, length, 64) for length in (512, 1024, 2048, 4096)] + [(1, 4, 512, 64)]:
        yield Problem("no mask", shape)
        yield Problem("causal", shape, rules={"causal": {}})
    yield from (problem for problem in PROBLEMS if problem.name.startswith("decode"))


def shape_text(problem: Problem) -> str:
    batch, heads, rows, depth = problem.shape
    group = f"/{problem.key_heads}" if problem.key_heads else ""
    keys = f"x{problem.keys}" if problem.keys else ""
    return f"{batch}x{heads}{group}x{rows}{keys}x{depth}"


def thread_counts(engine: Worker) -> list[int]:
    most: int = engine.ask(do="hello")["threads"]
    return sorted({min(most, count) for count in (1, 2, 4, 8, 16, 32, 64, 128, most)})


def times(engine: Worker) -> list[str]:
    """Milliseconds by each number of threads, and the used share of their processors' time."""
    counts = thread_counts(engine)
    seconds: dict[str, float] = engine.ask(do="time", threads=counts, turns=TURNS, seconds=SECONDS)
    share = {count: seconds["1"] / (count * seconds[str(count)]) for count in counts}
    return [f"{1e3 * seconds[str(count)]:.3g} ({share[count]:.2f})" for count in counts]


def rows(engine: Worker, only: str) -> Iterator[list[str]]:
    for problem in problems():
        if only in problem.name:
            case: dict[str, Any] = {"query": problem.shape, "key": problem.key_shape}
            engine.ask(do="load", case={**case, "rules": problem.rules})
            yield [problem.name, shape_text(problem), *times(engine)]
    for name, select in SELECTS.items():
        if only in name:
            engine.ask(do="load_select", case={**select, "dst": select["src_0"]})
            yield [f"Select, {name}", "x".join(map(str, select["src_0"])), *times(engine)]


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/bench scaling", description=__doc__)
    parser.add_argument("--build", type=Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--only", default="", help="rows with this in their name; keeps nothing")
    arguments = parser.parse_args()
    RESULTS.mkdir(parents=True, exist_ok=True)
    print("\n".join(f"{name}: {value}" for name, value in machine_facts().items()))
    engine = Worker("scaling", [str(arguments.build / "bin/bench_scaling")], {})
    head = ["what", "shape", *(f"{count}: ms (efficiency)" for count in thread_counts(engine))]
    table = list(shown(head, rows(engine, arguments.only)))
    engine.close()
    if not arguments.only:
        versions = f"Maskwise {maskwise_version()}, without a host"
        keep(RESULTS, "scaling_threads", versions, head, table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
