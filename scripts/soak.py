#!/usr/bin/env python3
"""usage: scripts/soak SECONDS [--lane LANE]

Runs the harness's smoke batch behind the plugin, again and again in one process, for SECONDS under
load, and watches what the process holds: memory, threads, file handles. Fails when one of them
grows, and when a case fails.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SAMPLE_SECONDS = 1.0
ENDLESS = 1_000_000_000  # rounds; SECONDS ends them
BATCHES = ("select_smoke", "mha_smoke")
ALLOWED_GROWTH_BYTES = 16 << 20  # what allocators keep; a leak of 5 KB a case is more in a minute


@dataclass
class Sample:
    resident_bytes: int
    threads: int
    handles: int


def sample_one(process: int) -> Sample:
    proc = Path(f"/proc/{process}")
    pages = int((proc / "statm").read_text().split()[1])
    fields = dict(
        line.split(":", 1) for line in (proc / "status").read_text().splitlines() if ":" in line
    )
    handles = sum(1 for _ in (proc / "fd").iterdir())
    return Sample(pages * os.sysconf("SC_PAGE_SIZE"), int(fields["Threads"]), handles)


def children(process: int) -> list[int]:
    lists = Path(f"/proc/{process}/task").glob("*/children")
    return [int(child) for path in lists for child in path.read_text().split()]


def sample(process: int) -> Sample:
    """The client and its worker, in which the cases run."""
    parts = [sample_one(each) for each in (process, *children(process))]
    return Sample(
        sum(part.resident_bytes for part in parts),
        sum(part.threads for part in parts),
        sum(part.handles for part in parts),
    )


def growth(samples: list[Sample]) -> list[str]:
    """What is more in the last third than ever before, beyond what may be kept."""
    third = max(1, len(samples) // 3)
    before, last = samples[third : 2 * third], samples[-third:]
    faults = []
    memory = min(s.resident_bytes for s in last) - max(s.resident_bytes for s in before)
    if memory > ALLOWED_GROWTH_BYTES:
        faults.append(f"resident memory grew by {memory >> 20} MB")
    for name in ("threads", "handles"):
        more = min(getattr(s, name) for s in last) - max(getattr(s, name) for s in before)
        if more > 0:
            faults.append(f"{name}: {more} more than before")
    return faults


def start(lane: str, log: Path) -> subprocess.Popen[bytes]:
    client = ROOT / "build/release/bin" / bench_name(lane)
    plugin = ROOT / "build/release/lib/libmaskwise_onednn.so"
    command = [str(ROOT / "scripts/lane"), "--preload", str(plugin), lane, "--", str(client)]
    batches = [f"--batch={ROOT / 'benchdnn_inputs' / name}" for name in BATCHES]
    command += [f"--rounds={ENDLESS}", batches[0], "--reset", batches[1]]
    with log.open("wb") as output:
        return subprocess.Popen(command, stdout=output, stderr=output)


def bench_name(lane: str) -> str:
    named = f"maskwise-bench-{lane}"
    return named if (ROOT / "build/release/bin" / named).exists() else "maskwise-bench"


def watch(process: subprocess.Popen[bytes], samples: list[Sample], end: float) -> None:
    while process.poll() is None and time.monotonic() < end:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # ended while looked at
            samples.append(sample(process.pid))
        time.sleep(SAMPLE_SECONDS)


def soak(seconds: float, lane: str) -> int:
    work = ROOT / "build"
    log = work / "soak.log"
    load = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    samples: list[Sample] = []
    try:
        process = start(lane, log)
        watch(process, samples, time.monotonic() + seconds)
        ended_alone = process.poll() is not None
        for each in (*children(process.pid), process.pid):
            os.kill(each, signal.SIGKILL)
        process.wait()
    finally:
        load.kill()
    return report(samples, log, ended_alone)


def report(samples: list[Sample], log: Path, ended_alone: bool) -> int:
    text = log.read_text(errors="replace")
    failed = [line for line in text.splitlines() if ":FAILED" in line or ":CRASHED" in line]
    faults = growth(samples) + failed[:5]
    if ended_alone:
        faults.append(f"the client ended by itself, see {log}")
    first, last = samples[len(samples) // 3], samples[-1]
    cases = text.count("__REPRO")
    print(
        f"scripts/soak: {len(samples)} samples, {cases} cases; MB {first.resident_bytes >> 20} -> "
        f"{last.resident_bytes >> 20}, threads {first.threads} -> {last.threads}, "
        f"handles {first.handles} -> {last.handles}"
    )
    for fault in faults:
        print(f"scripts/soak: {fault}")
    return 1 if faults else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seconds", type=float)
    parser.add_argument("--lane", default="3.2")
    arguments = parser.parse_args()
    subprocess.run([str(ROOT / "scripts/build"), "release"], check=True, stdout=subprocess.DEVNULL)
    return soak(arguments.seconds, arguments.lane)


if __name__ == "__main__":
    sys.exit(main())
