"""Attention and Select on 1 to all processors of the machine, and attention on more workers than
it has: simulated by what each item of work takes on one thread, each worker taking the next item.

Started by scripts/bench scaling, which has everything built. Ends with 1 where the simulation of
two workers is not near two threads, or a mask leaves 64 workers less than TARGET of their time.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "peers"))
from machine import machine_facts
from mask_problem import PROBLEMS, Problem, after, before, causal, of_one_document
from measure import maskwise_version
from table import keep, shown
from worker import ROOT, Worker

RESULTS = ROOT / "build/bench"
WORKERS = (2, 16, 64, 192)
TARGET, NEAR = 0.8, 0.1
TURNS, SECONDS = 5, 0.05
LONG = (1, 12, 4096, 64)


def documents(sizes: list[int]) -> dict[str, Any]:
    ids = np.repeat(np.arange(len(sizes)), sizes)
    return {"rules": {"documents": {"sizes": sizes}}, "keeps": lambda _: of_one_document(ids)}


# Masks with numbers for another length, or for several sequences, stay at their own shapes.
AT_LENGTH: dict[str, dict[str, Any]] = {
    "left-padded causal": {
        "rules": {"causal": {}, "starts": {"starts": [1707]}},
        "keeps": lambda at: after(at([1707])),
    },
    "packed documents": documents([2200, 1000, 600, 296]),
    "encoder batch, padded": {
        "rules": {"lengths": {"lengths": [2880]}},
        "keeps": lambda at: before(at([2880])),
    },
}
OF_OWN_SHAPE = ("causal, grouped", "decode", "decode, batch", "speculative")
CAUSAL: dict[str, Any] = {"rules": {"causal": {}}, "keeps": causal}
UNEVEN = documents([3000, *[20] * 50])


def first_rows(_: Any) -> Any:
    """64 rows that keep all keys, others 64 on both sides."""
    return lambda _s, r, k: (r < 64) | ((k <= r + 64) & (k >= r - 64))


def suite_masks() -> Iterator[Problem]:
    for problem in PROBLEMS:
        if problem.name not in OF_OWN_SHAPE:
            given = AT_LENGTH.get(problem.name, {})
            yield replace(problem, shape=LONG, keys=0, key_heads=0, **given)


def coarse() -> Iterator[Problem]:
    """What leaves many workers little, or little that is alike."""
    yield from (problem for problem in PROBLEMS if problem.name in OF_OWN_SHAPE[1:])
    for heads in (1, 8):
        yield Problem("no mask", (1, heads, 4096, 64))
        yield Problem("causal", (1, heads, 4096, 64), **CAUSAL)
        local = next(problem for problem in PROBLEMS if problem.name.startswith("local"))
        yield replace(local, shape=(1, heads, 4096, 64))
        yield Problem("documents of 3000, 50 x 20", (1, heads, 4000, 64), **UNEVEN)
    yield Problem("documents of 3000, 50 x 20", (1, 12, 4000, 64), **UNEVEN)
    yield Problem("64 rows of all keys, others local", (1, 12, 4096, 64), keeps=first_rows)
    yield Problem("no mask", (1, 12, 512, 64))
    yield Problem("causal", (1, 12, 512, 64), **CAUSAL)


def on_threads() -> Iterator[Problem]:
    for shape in [(1, 12, length, 64) for length in (512, 1024, 2048, 4096)] + [(1, 4, 512, 64)]:
        yield Problem("no mask", shape)
        yield Problem("causal", shape, **CAUSAL)
    yield from (problem for problem in PROBLEMS if problem.name.startswith("decode"))


def forms_of(problem: Problem) -> tuple[str, ...]:
    if problem.keeps is None and problem.bias is None:
        return ("no mask",)
    return ("rules", "array") if problem.rules else ("array",)


def case_of(problem: Problem, form: str, folder: str) -> dict[str, Any]:
    """As bench_scaling takes it."""
    case: dict[str, Any] = {"query": problem.shape, "key": problem.key_shape}
    case["dtype"] = problem.dtype
    if form == "rules":
        case["rules"] = problem.rules
    elif form == "array":
        name = "cond" if problem.bias is None else "bias"
        array = problem.kept.astype(np.uint8) if name == "cond" else problem.added
        array.tofile(f"{folder}/{name}")
        case[name] = {"extents": array.shape, "path": f"{folder}/{name}"}
    return case


def shape_text(problem: Problem) -> str:
    batch, heads, rows, depth = problem.shape
    group = f"/{problem.key_heads}" if problem.key_heads else ""
    keys = f"x{problem.keys}" if problem.keys else ""
    return f"{batch}x{heads}{group}x{rows}{keys}x{depth}"


def efficiency(seconds: dict[str, float], workers: int) -> float:
    return seconds["1"] / (workers * seconds[str(workers)])


def simulated(engine: Worker, problem: Problem, form: str) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        engine.ask(do="load", case=case_of(problem, form, folder))
    found = engine.ask(do="simulate", workers=WORKERS, turns=3)
    cells = [f"{efficiency(found, workers):.2f}" for workers in WORKERS]
    return [
        *(problem.name, shape_text(problem), problem.dtype, form),
        *(f"{1e3 * found['1']:.3g}", *cells),
    ]


def thread_counts(engine: Worker) -> list[int]:
    most: int = engine.ask(do="hello")["threads"]
    return sorted({min(most, count) for count in (1, 2, 4, 8, 16, 32, 64, 128, most)})


def measured(engine: Worker, problem: Problem) -> tuple[list[str], float]:
    """A line of times and efficiencies; and how far two simulated workers are from two threads."""
    form, counts = forms_of(problem)[0], thread_counts(engine)
    with tempfile.TemporaryDirectory() as folder:
        engine.ask(do="load", case=case_of(problem, form, folder))
    times = engine.ask(do="time", threads=counts, turns=TURNS, seconds=SECONDS)
    cells = [f"{1e3 * times[str(count)]:.3g} ({efficiency(times, count):.2f})" for count in counts]
    line = [problem.name, shape_text(problem), *cells]
    if len(counts) == 1:
        return [*line, "-"], 0.0
    found = engine.ask(do="simulate", workers=[2], turns=TURNS)
    ratio = found["2"] / times["2"]
    return [*line, f"{ratio:.2f}"], abs(ratio - 1)


SELECTS = {
    "causal mask over 12 heads": {"cond": [1024, 1024], "src_0": [12, 1024, 1024], "src_1": []},
    "all of one shape, 4 MB": {key: [1024, 1024] for key in ("cond", "src_0", "src_1")},
    "all of one shape, 64 MB": {key: [16, 1024, 1024] for key in ("cond", "src_0", "src_1")},
}


def selected(engine: Worker, name: str) -> list[str]:
    case, counts = SELECTS[name], thread_counts(engine)
    engine.ask(do="load_select", case={**case, "dst": case["src_0"]})
    times = engine.ask(do="time", threads=counts, turns=TURNS, seconds=SECONDS)
    cells = [f"{1e3 * times[str(count)]:.3g} ({efficiency(times, count):.2f})" for count in counts]
    shape = "x".join(map(str, case["src_0"]))
    return [f"Select, {name}", shape, *cells, "-"]


def measure_threads(engine: Worker, only: str) -> tuple[list[list[str]], list[str]]:
    faults = []

    def rows() -> Iterator[list[str]]:
        for problem in on_threads():
            if only in problem.name:
                line, apart = measured(engine, problem)
                if apart > NEAR:
                    faults.append(f"{line[0]} {line[1]}: simulated {line[-1]} of the time")
                yield line
        yield from (selected(engine, name) for name in SELECTS if only in name)

    counts = [f"{count}: ms (efficiency)" for count in thread_counts(engine)]
    head = ["what", "shape", *counts, "2 simulated / 2 threads"]
    return [head, *shown(head, rows())], faults


def simulate_workers(engine: Worker, only: str) -> tuple[list[list[str]], list[str]]:
    faults = []

    def rows() -> Iterator[list[str]]:
        masks = [replace(p, dtype=dtype) for p in suite_masks() for dtype in ("f32", "bf16")]
        for problem in (*masks, *coarse()):
            for form in forms_of(problem) if only in problem.name else ():
                line = simulated(engine, problem, form)
                at_64 = float(line[5 + WORKERS.index(64)])
                if problem.shape == LONG and at_64 < TARGET:
                    faults.append(f"{' '.join(line[:4])}: {at_64} of 64 workers' time")
                yield line

    head = ["mask", "shape", "type", "form", "1 worker, ms"]
    head += [f"{workers} workers" for workers in WORKERS]
    return [head, *shown(head, rows())], faults


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/bench scaling", description=__doc__)
    parser.add_argument("--build", type=Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--only", default="", help="masks with this in their name; keeps nothing")
    parser.add_argument("--part", choices=("threads", "simulated"), help="one of both tables")
    arguments = parser.parse_args()
    RESULTS.mkdir(parents=True, exist_ok=True)
    print("\n".join(f"{name}: {value}" for name, value in machine_facts().items()))
    engine = Worker("scaling", [str(arguments.build / "bin/bench_scaling")], {})
    versions, faults = f"Maskwise {maskwise_version()}, without a host", []
    parts = {"threads": measure_threads, "simulated": simulate_workers}
    for name, part in parts.items():
        if arguments.part in (None, name):
            (head, *rows), wrong = part(engine, arguments.only)
            faults += wrong
            if not arguments.only:
                keep(RESULTS, f"scaling_{name}", versions, head, rows)
    engine.close()
    print("\n".join(faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
