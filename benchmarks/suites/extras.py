"""Measures a small call in a oneDNN without SYCL, compile times, peak memory, and copy rates."""

import statistics
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from cases import Case, shape_table
from measure import Bench, Effort, data_folder, make_data
from results import Row
from ways import Limit
from worker import Worker, client, limit, peer

COPY_BYTES = 128 << 20
COPY_TURNS = 9
PROCESSES = 3
COPY_RATIO = "limit over numpy"


def native_row(
    bench: Bench, cases: list[Case], build: Path, lane: str, effort: Effort
) -> list[Row]:
    """Measures a Select of 64 elements with a oneDNN without SYCL. Only Maskwise runs the Select,
    because this oneDNN does not support it."""
    case = next((case for case in cases if case.name == "64"), None)
    if case is None or not (build / f"bin/bench_client-{lane}").exists():
        return []
    worker = client("maskwise", build, lane)
    named = replace(case, name=f"64 on {lane}")
    try:
        native = Bench(bench.limit, worker, [], bench.folder)
        return native.run(named, effort)
    finally:
        worker.close()


def measure_notes(build: Path, lane: str, native: str) -> dict[str, Any]:
    """Returns copy rates in GB/s, compile times in seconds for the oneDNN installations `lane` and
    `native`, and peak memory in bytes."""
    notes: dict[str, Any] = {"copies": copies(build)}
    for name in dict.fromkeys((lane, native)):
        if (build / f"bin/bench_client-{name}").exists():
            notes[f"compile {name}"] = compile_times(build, name)
    notes["memory"] = memory(build, lane)
    return notes


def compile_times(build: Path, lane: str) -> dict[str, float]:
    worker = client("maskwise", build, lane)
    case = next(row for row in shape_table() if row.name == "13")
    try:
        answer = worker.ask(do="compile", case=case.request("/nonexistent"), count=100)
        medians = {key: statistics.median(answer[key]) for key in ("first", "again")}
        return {**medians, "count": len(answer["first"])}
    finally:
        worker.close()


def peak_bytes(worker: Worker, case: Case, folder: str) -> int:
    try:
        worker.ask(do="load", case=case.request(folder))
        worker.ask(do="time", samples=20, max_seconds=0.5)
        return int(worker.ask(do="peak_resident")["bytes"])
    finally:
        worker.close()


def memory(build: Path, lane: str) -> dict[str, int]:
    """Returns the peak bytes of a process that runs one Select with Maskwise or with oneDNN alone.
    Each value is the minimum over several processes."""
    case = next(row for row in shape_table() if row.name == "29a")
    with data_folder() as folder:
        make_data(case, folder)
        least = {
            impl: min(peak_bytes(client(impl, build, lane), case, folder) for _ in range(PROCESSES))
            for impl in ("maskwise", "onednn")
        }
    return {**least, "processes": PROCESSES}


def copies(build: Path) -> dict[str, float]:
    """Returns the copy rates of bench_limit and of NumPy in GB/s, and the ratio of their times on
    one thread. Above 1, NumPy copies faster, so the limit is wrong."""
    data, numpy = Limit(limit(build)), peer("copy")
    try:
        numpy.ask(do="load", case={"bytes": COPY_BYTES})
        data.bind(COPY_BYTES, COPY_BYTES)
        all_threads = statistics.median(data.time_best(COPY_TURNS, 1.0))
        data.bind(COPY_BYTES, COPY_BYTES, threads=1)
        pairs = [copy_pair(data, numpy, limit_first=turn % 2 == 0) for turn in range(COPY_TURNS)]
    finally:
        data.close()
        numpy.close()
    one_thread, numpys = (statistics.median(spent) for spent in zip(*pairs, strict=True))
    seconds = {
        "limit, all threads": all_threads,
        "limit, one thread": one_thread,
        "numpy copyto": numpys,
    }
    rates = {name: round(2 * COPY_BYTES / spent / 1e9, 1) for name, spent in seconds.items()}
    ratio = statistics.median(limit_seconds / other for limit_seconds, other in pairs)
    return {**rates, COPY_RATIO: round(ratio, 3), "pairs": len(pairs)}


def copy_pair(data: Limit, numpy: Worker, limit_first: bool) -> tuple[float, float]:
    """Returns seconds of the limit's copy and of NumPy's, measured right after each other."""
    data.time_kept(2, 0.1)
    ask: list[Callable[[], list[float]]] = [
        lambda: data.time_best(4, 0.1),
        lambda: numpy.ask(do="time", samples=4, max_seconds=0.1)["samples"],
    ]
    taken = [call() for call in ask[:: 1 if limit_first else -1]]
    limit_seconds, other = map(statistics.median, taken[:: 1 if limit_first else -1])
    return limit_seconds, other
