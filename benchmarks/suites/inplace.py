"""A Select in place, where dst is src_0: how much of dst it writes, counted store by store, and its
time against the same Select into another dst. Engine only. Started by scripts/bench inplace.
"""

import argparse
import statistics
import sys
from pathlib import Path

from cases import Case, dense
from isa import medians_of, take_turns
from measure import data_folder, make_data
from table import keep, shown, time_text
from worker import ROOT, Worker, engine

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
HEAD = ["what changes", "type", "dst", "lines to change", "lines written"]
HEAD += ["in place", "into another dst", "of its time"]


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


def measure(case: Case, ways: list[Worker], counter: Worker, folder: str) -> list[str]:
    """Bytes as shares of dst's. `ways`: in place, apart. Counting leaves pages in pieces, so it has
    its own process."""
    for worker in [*ways, counter]:
        load(worker, case, folder, in_place=worker is not ways[1])
    taken = take_turns(ways, None)
    counts = counter.ask(do="count")
    shares = [f"{counts[part] / counts['dst']:.1%}" for part in ("changed", "written")]
    times = [time_text(statistics.median(taken[way.impl])) for way in ways]
    ratio = medians_of(*(taken[way.impl] for way in ways))
    return [case.name, case.dtype, f"{counts['dst'] / 1e6:.1f} MB", *shares, *times, f"{ratio:.2f}"]


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/bench inplace", description=__doc__)
    parser.add_argument("--build", type=Path, required=True, help=argparse.SUPPRESS)
    build = parser.parse_args().build
    counter = engine(build, "counter")
    ways = [engine(build, name) for name in ("in place", "apart")]

    def measured(case: Case) -> list[str]:
        make_data(case, folder)
        return measure(case, ways, counter, folder)

    with data_folder() as folder:
        rows = shown(HEAD, map(measured, cases()))
    for worker in [counter, *ways]:
        worker.close()
    versions = "engine, causal and random masks shared by 12 matrices"
    keep(ROOT / "build/bench", "inplace", versions, HEAD, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
