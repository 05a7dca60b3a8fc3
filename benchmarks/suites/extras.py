"""What is measured beside the cases: a native runtime's small call, compiles, memory, copies."""

from __future__ import annotations

import statistics
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from cases import Case, shape_table
from measure import Bench, Effort, data_folder
from results import Row
from worker import Worker, client, limit

COPY_BYTES = 128 << 20


def native_row(
    bench: Bench, cases: list[Case], build: Path, lane: str, effort: Effort
) -> list[Row]:
    """64 elements in front of a oneDNN without SYCL: Maskwise alone, since it refuses Select."""
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
    """Seconds of compiles and bytes of memory, in front of the lane and of a native one."""
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
        return {key: statistics.median(answer[key]) for key in ("first", "again")}
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
    """The most memory of a process that runs one Select, with Maskwise and with oneDNN alone: the
    least of three processes each."""
    case = next(row for row in shape_table() if row.name == "29a")
    data = limit(build)
    try:
        with data_folder() as folder:
            data.ask(do="load", case=case.request(folder))
            return {
                impl: min(peak_bytes(client(impl, build, lane), case, folder) for _ in range(3))
                for impl in ("maskwise", "onednn")
            }
    finally:
        data.close()


NUMPY_COPY = f"""
import mmap, time, numpy as np
a, b = (np.frombuffer(mmap.mmap(-1, {COPY_BYTES}), dtype=np.uint8) for _ in range(2))
a[:] = 1; b[:] = 1
spent = []
for _ in range(15):
    begin = time.perf_counter()
    np.copyto(b, a)
    spent.append(time.perf_counter() - begin)
print(sorted(spent)[7])
"""


def copies(build: Path) -> dict[str, float]:
    """GB/s of a plain copy, by the kernels of the limit and by an independent program, so that a
    weak limit is seen. One thread each."""
    data = limit(build)
    try:
        variants = data.ask(do="copy", bytes=COPY_BYTES, samples=9)["variants"]
    finally:
        data.close()
    best: dict[int, float] = {}
    for variant in variants:
        rate = 2 * COPY_BYTES / statistics.median(variant["samples"]) / 1e9
        best[variant["threads"]] = max(rate, best.get(variant["threads"], 0))
    spent = subprocess.run([sys.executable, "-c", NUMPY_COPY], capture_output=True, check=True)
    result = {f"limit, {threads} threads": round(rate, 1) for threads, rate in best.items()}
    result["numpy copyto, 1 thread"] = round(2 * COPY_BYTES / float(spent.stdout) / 1e9, 1)
    return result
