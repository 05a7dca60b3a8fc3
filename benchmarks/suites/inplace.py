"""A Select in place, where dst is src_0: how much of dst it writes, counted store by store, and its
time against the same Select into another dst. Engine only. Started by scripts/bench inplace.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from cases import Case, dense
from isa import medians_of, take_turns
from machine import machine_facts, write_stamp
from measure import data_folder
from worker import ROOT, Worker, engine, limit

DST = dense((12, 1024, 1024))
MATRIX, COLUMNS = dense(DST.dims[1:]), dense((DST.dims[0], 1, DST.dims[2]))
# What is false is overwritten by a scalar.
MASKS = {
    "nothing": (MATRIX, "true"),
    "what a causal mask hides": (MATRIX, "causal"),
    "padding": (COLUMNS, "padding"),
    "1 of 128, random": (MATRIX, f"random:{127 / 128}"),
    "half, random": (MATRIX, "random"),
}


@dataclass
class InPlace:
    changes: str
    dtype: str
    dst: int  # bytes
    changed: int  # bytes of the cache lines that must change
    written: int  # bytes of the cache lines that are stored to
    seconds: dict[str, float]  # by way
    ratio: float  # of the times in place and apart, the median of the turns


def cases() -> list[Case]:
    return [
        Case("inplace", changes, cond, DST, dense(()), DST, dtype, mask)
        for dtype in ("f32", "f16")
        for changes, (cond, mask) in MASKS.items()
    ]


def load(worker: Worker, case: Case, folder: str, in_place: bool) -> None:
    answer = worker.ask(do="load", case={**case.request(folder), "in_place": in_place})
    if answer["state"] != "right":
        raise RuntimeError(f"{case.name} {case.dtype}: {worker.impl} is {answer['state']}")


def measure(case: Case, ways: list[Worker], counter: Worker, folder: str) -> InPlace:
    """`ways`: in place, apart. Counting leaves pages in pieces, so that it has its own process."""
    for worker in [*ways, counter]:
        load(worker, case, folder, in_place=worker is not ways[1])
    taken = take_turns(ways, None)
    counts = counter.ask(do="count")
    seconds = {name: statistics.median(spent) for name, spent in taken.items()}
    ratio = medians_of(*(taken[way.impl] for way in ways))
    return InPlace(case.name, case.dtype, **counts, seconds=seconds, ratio=ratio)


def line(found: InPlace) -> str:
    times = ", ".join(f"{name} {spent * 1e3:.3f} ms" for name, spent in found.seconds.items())
    changed, written = (part / found.dst for part in (found.changed, found.written))
    bytes_text = f"{found.dst / 1e6:.1f} MB, {changed:.1%} to change, {written:.1%} written"
    return f"{found.changes}, {found.dtype}: {bytes_text}; {times}, {found.ratio:.2f}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/bench inplace", description=__doc__)
    parser.add_argument("--build", type=Path, required=True, help=argparse.SUPPRESS)
    build = parser.parse_args().build
    data, counter = limit(build), engine(build, "counter")
    ways = [engine(build, name) for name in ("in place", "apart")]
    every = []
    with data_folder() as folder:
        for case in cases():
            data.ask(do="load", case=case.request(folder))
            every.append(measure(case, ways, counter, folder))
            print(line(every[-1]), flush=True)
    for worker in [data, counter, *ways]:
        worker.close()
    results = ROOT / "build/bench/inplace.json"
    kept = {**machine_facts(), "cases": [asdict(found) for found in every]}
    results.write_text(json.dumps(kept, indent=1) + "\n")
    write_stamp(results.parent, "inplace")
    return 0


if __name__ == "__main__":
    sys.exit(main())
