#!/usr/bin/env python3
"""usage: scripts/soak SECONDS [--lane LANE] [--client FILE --plugin FILE]

Runs the smoke batches of maskwise-bench with the plugin for SECONDS, repeatedly in one process,
while a second process keeps a processor busy. Fails if a case fails, or if the client's memory,
threads or file handles grow after the warm-up. With --client and --plugin, builds nothing.
"""

import argparse
import contextlib
import math
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

ROOT = Path(__file__).resolve().parent.parent
SAMPLES = 120  # per run; a run of more than 120 s takes one sample per second
ENDLESS = 1_000_000_000  # rounds; SECONDS ends the run earlier
BATCHES = ("select_smoke", "mha_smoke")
WARM_UP_SECONDS = 60.0  # longest warm-up; in runs of less than 180 s, a third of the run
LEAST_SAMPLES = 20  # required samples after the warm-up
MOST_POINTS = 120  # points of the trend: medians of neighbouring samples
DEVIATIONS = 3.29  # half width of a 99.9 % confidence interval, in standard deviations
# Allowed growth after the warm-up. The growth is the lower end of the trend's confidence interval.
ALLOWED = {"resident_bytes": 1 << 20, "threads": 0.5, "handles": 0.5}
VERDICT = re.compile(rb"^\d+:([A-Z_]+) .*__REPRO.*", re.MULTILINE)
NO_FAULT = ("PASSED", "SKIPPED")


@dataclass
class Sample:
    seconds: float = 0.0
    cases: int = 0
    resident_bytes: int = 0
    threads: int = 0
    handles: int = 0


def sample_one(process: int) -> Sample:
    proc = Path(f"/proc/{process}")
    pages = int((proc / "statm").read_text().split()[1])
    fields = dict(
        line.split(":", 1) for line in (proc / "status").read_text().splitlines() if ":" in line
    )
    handles = sum(1 for _ in (proc / "fd").iterdir())
    resident = pages * os.sysconf("SC_PAGE_SIZE")
    return Sample(resident_bytes=resident, threads=int(fields["Threads"]), handles=handles)


def children(process: int) -> list[int]:
    lists = Path(f"/proc/{process}/task").glob("*/children")
    return [int(child) for path in lists for child in path.read_text().split()]


def sample(process: int, seconds: float, cases: int) -> Sample:
    """Adds up the values of the client and its worker process, which runs the cases."""
    parts = [sample_one(each) for each in (process, *children(process))]
    sums = {name: sum(getattr(part, name) for part in parts) for name in ALLOWED}
    return Sample(seconds, cases, **sums)


def points(samples: list[Sample], name: str) -> Iterator[tuple[float, float]]:
    size = math.ceil(len(samples) / MOST_POINTS)
    for start in range(0, len(samples), size):
        part = samples[start : start + size]
        yield (
            statistics.median(each.seconds for each in part),
            statistics.median(getattr(each, name) for each in part),
        )


def trend(samples: list[Sample], name: str) -> tuple[float, float]:
    """Returns the growth per second and the lower end of its confidence interval. The growth is
    the median slope of all pairs of points (Theil-Sen). The interval is by Kendall's rank
    correlation."""
    known = list(points(samples, name))
    slopes = sorted(
        (later[1] - earlier[1]) / (later[0] - earlier[0])
        for i, earlier in enumerate(known)
        for later in known[i + 1 :]
    )
    n = len(known)
    reach = DEVIATIONS * math.sqrt(n * (n - 1) * (2 * n + 5) / 18)
    return statistics.median(slopes), slopes[max(0, int((len(slopes) - reach) / 2))]


def warmed_up(samples: list[Sample]) -> list[Sample]:
    if not samples:
        return []
    watched = samples[-1].seconds - samples[0].seconds
    start = samples[0].seconds + min(WARM_UP_SECONDS, watched / 3)
    return [each for each in samples if each.seconds >= start]


def growth(samples: list[Sample]) -> list[str]:
    """Returns a line per value that grows after the warm-up, or one line if there are too few
    samples."""
    warm = warmed_up(samples)
    if len(warm) < LEAST_SAMPLES:
        return [f"{len(warm)} samples after the warm-up, {LEAST_SAMPLES} are needed"]
    seconds, cases = warm[-1].seconds - warm[0].seconds, warm[-1].cases - warm[0].cases
    faults = []
    for name, allowed in ALLOWED.items():
        median, least = trend(warm, name)
        if least * seconds > allowed:
            per_case = median * seconds / max(cases, 1)
            faults.append(f"{name} grow by {per_case:,.2f} a case, {median * 3600:,.2f} an hour")
    return faults


@dataclass
class Verdicts:
    """Reads the client's log while the client writes it, and counts the verdicts."""

    log: BinaryIO
    counts: Counter[str] = field(default_factory=Counter)
    failed: list[str] = field(default_factory=list)
    rest: bytes = b""

    def read(self) -> int:
        whole, newline, self.rest = (self.rest + self.log.read()).rpartition(b"\n")
        for line in VERDICT.finditer(whole + newline):
            verdict = line[1].decode()
            self.counts[verdict] += 1
            if verdict not in NO_FAULT and len(self.failed) < 5:
                self.failed.append(line[0].decode(errors="replace"))
        return self.counts.total()

    def faults(self) -> list[str]:
        wrong = [f"{n} {name}" for name, n in self.counts.items() if name not in NO_FAULT]
        none = [] if self.counts["PASSED"] else ["no case passed"]
        return [*none, *([", ".join(wrong)] if wrong else []), *self.failed]


def command_of(lane: str, client: str, plugin: str) -> list[str]:
    command = [str(ROOT / "scripts/lane"), "--preload", plugin, lane, "--", client]
    batches = [f"--batch={ROOT / 'benchdnn_inputs' / name}" for name in BATCHES]
    return [*command, f"--rounds={ENDLESS}", batches[0], "--reset", batches[1]]


def built(lane: str) -> tuple[str, str]:
    subprocess.run([str(ROOT / "scripts/build"), "release"], check=True, stdout=subprocess.DEVNULL)
    folder = ROOT / "build/release"
    named = folder / f"bin/maskwise-bench-{lane}"
    client = named if named.exists() else folder / "bin/maskwise-bench"
    return str(client), str(folder / "lib/libmaskwise_onednn.so")


def watch(process: subprocess.Popen[bytes], verdicts: Verdicts, seconds: float) -> list[Sample]:
    samples: list[Sample] = []
    start = time.monotonic()
    while process.poll() is None and (now := time.monotonic() - start) < seconds:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # a process just ended
            samples.append(sample(process.pid, now, verdicts.read()))
        time.sleep(min(1.0, seconds / SAMPLES))
    return samples


def end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):  # a process ended by itself
        for each in (*children(process.pid), process.pid):
            os.kill(each, signal.SIGKILL)
    process.wait()


def soak(seconds: float, command: list[str]) -> int:
    load = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        with tempfile.NamedTemporaryFile() as log, Path(log.name).open("rb") as text:
            process = subprocess.Popen(command, stdout=log, stderr=log)
            verdicts = Verdicts(text)
            samples = watch(process, verdicts, seconds)
            ended = process.poll()
            end(process)
            verdicts.read()
            text.seek(0)
            output = text.read()[-2000:].decode(errors="replace")
    finally:
        load.kill()
    ends = [] if ended is None else [f"the client ended by itself with {ended}:\n{output}"]
    return report(samples, [*growth(samples), *verdicts.faults(), *ends])


def report(samples: list[Sample], faults: list[str]) -> int:
    warm = warmed_up(samples) or [Sample()]
    first, last = warm[0], warm[-1]
    print(
        f"scripts/soak: {len(samples)} samples, {last.cases} cases; after the warm-up "
        f"MB {first.resident_bytes / 2**20:.1f} -> {last.resident_bytes / 2**20:.1f}, threads "
        f"{first.threads} -> {last.threads}, handles {first.handles} -> {last.handles}"
    )
    for fault in faults:
        print(f"scripts/soak: {fault}")
    return 1 if faults else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seconds", type=float)
    parser.add_argument("--lane", default="3.2")
    parser.add_argument("--client", default="")
    parser.add_argument("--plugin", default="")
    arguments = parser.parse_args()
    programs = (arguments.client, arguments.plugin)
    client, plugin = programs if all(programs) else built(arguments.lane)
    return soak(arguments.seconds, command_of(arguments.lane, client, plugin))


if __name__ == "__main__":
    sys.exit(main())
