"""Measures the batches of benchdnn_inputs with maskwise-bench. oneDNN alone and oneDNN with the
plugin take turns. If MASKWISE_ONEDNN_SOURCE is a clone or a build of oneDNN, also measures oneDNN's
own batches. Measures only cases with a Select, GenIndex, SoftMax or GreaterEqual.

Started by scripts/bench driver, which installs and builds everything.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from attention_client import NEWEST_LANE, Client
from attention_tables import ms_text
from machine import machine_facts
from table import add_only, save_table, shown
from worker import ROOT, Died, lane_command

RESULTS = ROOT / "build/bench"
LEAST = 0.97  # minimum speed relative to oneDNN alone
TURNS = 5
PAIRS = 5  # maximum number of pairs of processes for a case below LEAST
SAMPLES = 40
LEFT = "left to oneDNN"  # state of a case that Maskwise does not claim
MOST_TIMES = 100  # limit on the total time of a case, as a multiple of --seconds
OPERATORS = {"Select", "GenIndex", "SoftMax", "GreaterEqual"}
OWN_BATCHES = ("perf", "select_models", "merge_perf", "mha_all")
BATCHES = (
    *(f"op/harness_{kind}_all" for kind in ("f32", "bf16", "f16")),
    *(f"pattern/harness_{kind}_all" for kind in ("f32", "bf16", "f16", "int8", "f8")),
    "complex_fusion/harness_mha_all",
)
REPLACED = ("--mode=", "--fix-times-per-prb=", "--max-ms-per-prb=", "--owner=")
SIDES = ("onednn", "maskwise")
HEAD = ["batch", "cases by Maskwise", "by oneDNN", "least ratio", "median", "most"]
HEAD += ["compile, alone / with", "first calls", "peak memory"]


@dataclass
class Case:
    batch: str
    flags: list[str]
    state: str = ""  # why the case has no pairs, or fewer than intended
    pairs: list[float] = field(default_factory=list)  # oneDNN's time / Maskwise's, per pair
    compile_ms: dict[str, float] = field(default_factory=dict)
    first_ms: dict[str, float] = field(default_factory=dict)

    @property
    def name(self) -> str:
        *options, file = self.flags
        return " ".join([Path(file).stem, *(option.removeprefix("--") for option in options)])

    @property
    def ratio(self) -> float | None:
        """Returns the median over the pairs of processes, because oneDNN's time of a small graph
        varies twofold between processes."""
        return statistics.median(self.pairs) if self.pairs else None

    def is_slower(self) -> bool:
        return self.ratio is not None and self.ratio < LEAST


def source_inputs() -> Path | None:
    """Returns oneDNN's folder of case files. None if MASKWISE_ONEDNN_SOURCE is unset."""
    source = os.environ.get("MASKWISE_ONEDNN_SOURCE")
    if not source:
        return None
    cache = Path(source) / "CMakeCache.txt"
    home = (
        re.search(r"^CMAKE_HOME_DIRECTORY\S*=(.+)$", cache.read_text(), re.M)
        if cache.exists()
        else None
    )
    inputs = Path(home[1] if home else source) / "tests/benchdnn/inputs/graph"
    if not inputs.is_dir():
        raise SystemExit(f"MASKWISE_ONEDNN_SOURCE: no folder {inputs}")
    return inputs


def holds_operators(file: Path) -> bool:
    return any(op["kind"] in OPERATORS for op in json.loads(file.read_text())["graph"])


def list_cases(build: Path, lane: str, batch: str, name: str) -> list[Case]:
    """Returns each distinct case of a batch, with each combination of its options. Leaves out cases
    with --expect, and cases that have no operator of OPERATORS."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "tests.json"
        command = lane_command("onednn", build, lane, "maskwise-bench")
        command += [f"--report={report}", "--list", f"--batch={batch}"]
        subprocess.run(command, check=True, capture_output=True, cwd=ROOT)
        tests: list[dict[str, Any]] = json.loads(report.read_text())["tests"]
    texts = {}
    for test in tests:
        flags = [flag for flag in test["repro"] if not flag.startswith(REPLACED)]
        expects = any(flag.startswith("--expect=") for flag in flags)
        file = ROOT / flags[-1].removeprefix("--case=")
        if test["state"] == "LISTED" and not expects and holds_operators(file):
            texts[" ".join(flags)] = flags
    return [Case(name, flags) for flags in texts.values()]


def peak_bytes(client: Client) -> int:
    if client.process is None:
        return 0
    status = Path(f"/proc/{client.process.pid}/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) << 10  # type: ignore[index]


def is_left(result: dict[str, Any]) -> bool:
    owners = [part["owner"] for part in result["partitions"]]
    return "perf" in result and "maskwise" not in owners


class Suite:
    """Two processes that measure the cases of a batch."""

    def __init__(self, build: Path, lane: str, seconds: float) -> None:
        self.clients = {name: Client(name, build, lane) for name in SIDES}
        self.turn_ms = 1e3 * seconds / (2 * TURNS)
        self.most_seconds = MOST_TIMES * seconds
        self.peaks = dict.fromkeys(SIDES, 0)
        self.library = ""

    def measure(self, case: Case) -> None:
        """Measures a pair of processes, and further pairs while the case is below LEAST. After
        `most_seconds`, ends the processes and keeps the pairs measured so far."""
        self.is_ended = False
        watch = threading.Timer(self.most_seconds, self.kill)
        watch.start()
        try:
            self.measure_pair(case, SIDES[::-1])
            for again in range(PAIRS - 1):
                if not case.is_slower():
                    break
                self.close()  # the next pair has new processes, in the other order
                self.measure_pair(case, SIDES[:: 1 if again % 2 == 0 else -1])
        except Died as error:
            case.state = (
                f"stopped after {self.most_seconds:g} s" if self.is_ended else f"died: {error}"
            )
            self.close()  # the next case starts both processes again
        finally:
            watch.cancel()

    def kill(self) -> None:
        self.is_ended = True
        for client in self.clients.values():
            if client.process:
                client.process.kill()

    def measure_pair(self, case: Case, sides: tuple[str, ...]) -> None:
        results = {}
        for name in sides:
            results[name] = self.load(name, case)
            if name == "maskwise" and is_left(results[name]):
                case.state = LEFT
                self.clients[name].close()  # oneDNN's process did not run this case
                return
        if without := [name for name in SIDES if "perf" not in results[name]]:
            case.state = " and ".join(
                f"{name} {results[name]['state'].lower()}" for name in without
            )
            return
        for name in SIDES:
            case.compile_ms.setdefault(name, results[name]["compile_ms"])
            case.first_ms.setdefault(name, results[name]["perf"]["first_ms"])
        case.pairs.append(statistics.median(self.ratios(sides, results)))
        for name, client in self.clients.items():
            self.peaks[name] = max(self.peaks[name], peak_bytes(client))

    def load(self, name: str, case: Case) -> dict[str, Any]:
        before = ["--max-ms-per-prb=1", "--expected-n-partitions=0"]
        result = self.clients[name].run_flags("P", [*before, *case.flags])
        self.library = self.library or result["library"].partition(", Maskwise")[0]
        return result

    def ratios(self, sides: tuple[str, ...], results: dict[str, Any]) -> Iterator[float]:
        """Yields oneDNN's time / Maskwise's for each turn. Every second turn runs in reverse order.
        Slow cases have fewer turns."""
        slowest = max(results[name]["perf"]["median_ms"] for name in SIDES)
        turns = max(1, min(TURNS, int(3 * TURNS * self.turn_ms / slowest)))
        for turn in range(turns):
            taken = {}
            for name in sides[:: 1 if turn % 2 == 0 else -1]:
                taken[name] = statistics.median(self.clients[name].samples(SAMPLES, self.turn_ms))
            yield taken["onednn"] / taken["maskwise"]

    def close(self) -> None:
        for client in self.clients.values():
            client.close()


def times(value: float) -> str:
    return f"{value:.2f}" if value < 10 else f"{value:.0f}"


def batch_row(name: str, cases: list[Case], peaks: dict[str, int]) -> list[str]:
    ratios = [case.ratio for case in cases if case.ratio is not None]
    left_count = sum(case.state == LEFT for case in cases)
    row = [name, str(len(ratios)), str(left_count)]
    row += [times(f(ratios)) if ratios else "-" for f in (min, statistics.median, max)]
    for field_name in ("compile_ms", "first_ms"):
        spent = [getattr(case, field_name) for case in cases if case.pairs]
        row.append(" / ".join(ms_text(sum(each[side] for each in spent)) for side in SIDES))
    return [*row, " / ".join(f"{peaks[side] / 1e6:.0f} MB" for side in SIDES)]


def every_batch(build: Path, lane: str) -> Iterator[tuple[str, list[Case]]]:
    for name in OWN_BATCHES:
        yield name, list_cases(build, lane, name, name)
    if inputs := source_inputs():
        for batch in BATCHES:
            name = f"oneDNN's {batch}"
            yield name, list_cases(build, lane, str(inputs / batch), name)
    else:
        print("oneDNN's own batches need MASKWISE_ONEDNN_SOURCE", file=sys.stderr)


def measured_rows(
    arguments: argparse.Namespace, all_cases: list[Case], suites: list[Suite]
) -> Iterator[list[str]]:
    for name, cases in every_batch(arguments.build, arguments.lane):
        wanted = [case for case in cases if arguments.only in f"{name} {case.name}"]
        if not wanted:
            continue
        suite = Suite(arguments.build, arguments.lane, arguments.seconds)
        suites.append(suite)
        for case in wanted:
            suite.measure(case)
        suite.close()
        all_cases += wanted
        yield batch_row(name, wanted, suite.peaks)


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/bench driver", description=__doc__)
    parser.add_argument("--lane", default=NEWEST_LANE)
    parser.add_argument(
        "--seconds",
        type=float,
        default=0.3,
        help="seconds per measurement of a case (default: 0.3)",
    )
    add_only(parser, "cases")
    parser.add_argument(
        "--no-targets", action="store_true", help="exit with 0 even if a case is slower"
    )
    parser.add_argument("--build", type=Path, required=True, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    RESULTS.mkdir(parents=True, exist_ok=True)
    begin = time.monotonic()
    print("\n".join(f"{name}: {value}" for name, value in machine_facts().items()))
    all_cases: list[Case] = []
    suites: list[Suite] = []
    rows = shown(HEAD, measured_rows(arguments, all_cases, suites))
    (RESULTS / "driver-cases.json").write_text(
        json.dumps([asdict(case) for case in all_cases], indent=0)
    )
    if rows and not arguments.only:
        save_table(RESULTS, "driver", suites[0].library, HEAD, rows)
    lost = [case for case in all_cases if "maskwise" in case.state and "onednn" not in case.state]
    slower = sorted(
        (case for case in all_cases if case.is_slower()), key=lambda case: case.ratio or 0
    )
    for case in lost:
        print(f"fails with Maskwise only: {case.batch}: {case.name}: {case.state}")
    for case in slower:
        print(
            f"slower: {case.ratio:.2f} ({', '.join(f'{ratio:.2f}' for ratio in case.pairs)}) "
            f"{case.batch}: {case.name}"
        )
    left_count = sum(case.state == LEFT for case in all_cases)
    unmeasured = sum(case.ratio is None for case in all_cases) - left_count
    print(
        f"{len(all_cases)} cases, {left_count} left to oneDNN, {unmeasured} not comparable, "
        f"{len(slower)} below {LEAST}, {time.monotonic() - begin:.0f} s"
    )
    return 1 if not rows or lost or (slower and not arguments.no_targets) else 0


if __name__ == "__main__":
    sys.exit(main())
