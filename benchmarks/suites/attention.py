"""Measures oneDNN's attention cases with and without Maskwise. With the newest oneDNN, also
measures longer sequences, and graphs of scale, mask and SoftMax only. If ../shared/onednn-cases is
missing, measures the cases of benchdnn_inputs/mha, and no longer sequences. A case's ceiling is the
time of the operators that oneDNN runs, plus the least time to move the inputs and outputs of
Maskwise's operators.

Started by scripts/bench attention, which installs and builds everything.
"""

import argparse
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import attention_graphs as graphs
import attention_report as report
import attention_tables as tables
from attention_client import NEWEST_LANE, SAMPLES, Client, claim
from attention_measured import Measured, Samples
from machine import machine_facts
from table import save_table, shown
from ways import Limit
from worker import ROOT, Died, limit

RESULTS = ROOT / "build/bench"
TURNS = 6
# Maximum number of pairs of new processes. If both libraries are equally fast, the first turns and
# all 6 pairs find Maskwise slower with a probability of at most 1/128.
PAIRS = 6
COPY_SECONDS = 0.02
# Cases with a larger tensor are not compared with the oracle: the comparison would take minutes.
CHECKED_ELEMENTS = 16 << 20


class Suite:
    def __init__(self, arguments: argparse.Namespace, lane: str, folder: Path) -> None:
        self.build: Path = arguments.build
        self.lane = lane
        self.folder = folder  # for the files of the parts before and after Maskwise's operators
        names = ("maskwise", "onednn", "before", "after")
        self.clients = {name: Client(name, self.build, lane) for name in names}
        self.limit = Limit(limit(arguments.programs))

    def run(self, case: graphs.GraphCase) -> Measured:
        """Measures the case. The result has a state instead of times if the case is too large, a
        value is wrong, a client dies, or the library does not run the case."""
        measured = Measured(case.name, self.lane)
        if case.needed_bytes > available_bytes():
            measured.state = f"skipped: needs {case.needed_bytes >> 20} MiB"
            return measured
        try:
            self.run_known(case, measured)
            self.measure_again(case, measured)
        except Died as error:
            measured = Measured(case.name, self.lane, state=f"died: {error}")
        finally:
            self.end_clients()
        return measured

    def end_clients(self) -> None:
        """Each case starts new processes, because oneDNN's speed depends on a process's earlier
        cases."""
        for client in self.clients.values():
            client.close()

    def run_known(self, case: graphs.GraphCase, measured: Measured) -> None:
        measured.state = self.check(case)
        contestants: dict[str, Samples] = {}
        for name in ("onednn", "maskwise"):
            measured.state = measured.state or self.load(name, case, measured)
            contestants[name] = self.clients[name].time
        if measured.state:
            return
        contestants |= self.prepare_parts(case, measured)
        for turn in range(TURNS):
            self.measure(measured, contestants, turn)

    def check(self, case: graphs.GraphCase) -> str:
        """Compares Maskwise's values with maskwise-bench's oracle. Returns the fault, or "" if the
        values are right or the case is too large to compare."""
        if max(map(graphs.elements, graphs.tensors(case.load()))) > CHECKED_ELEMENTS:
            return ""
        checker = Client("maskwise", self.build, self.lane)
        try:
            result = checker.run(case.file, "C")
        finally:
            checker.close()
        return f"wrong: {result['reason']}" if result["state"] == "FAILED" else ""

    def load(self, name: str, case: graphs.GraphCase, measured: Measured) -> str:
        """Loads the case. Returns why the case cannot be timed, or ""."""
        result = self.clients[name].run(case.file, "P")
        measured.library = result["library"]
        if "perf" not in result:
            return f"{result['state'].lower()}: {name}: {result['reason']}"
        return ""

    def measure(self, measured: Measured, contestants: dict[str, Samples], turn: int) -> None:
        """Measures one turn. Every second turn runs in reverse order. The ceiling's parts are
        measured right before or after Maskwise, because memory may be twice as fast in one second
        as in the next."""
        names = list(contestants)[:: 1 if turn % 2 == 0 else -1]
        measured.add_turn(
            {name: contestants[name]() for name in names if measured.wants(name, turn)}
        )

    def measure_again(self, case: graphs.GraphCase, measured: Measured) -> None:
        """Measures up to PAIRS pairs of new processes while the verdict is MISSED, because oneDNN's
        time of a small graph varies twofold between processes. Every second pair runs in reverse
        order."""
        names = ["onednn", "maskwise"]
        while report.verdict(measured) == "MISSED" and len(measured.again) < PAIRS:
            self.end_clients()
            names.reverse()
            pair = Measured(case.name, self.lane)
            if any(self.load(name, case, pair) for name in names):
                return
            for turn in range(TURNS):
                self.measure(pair, {name: self.clients[name].time for name in names}, turn)
            measured.again.append(pair.times_faster() or 0.0)

    def prepare_parts(self, case: graphs.GraphCase, measured: Measured) -> dict[str, Samples]:
        ids, measured.claim = claim(self.clients["maskwise"].errors())
        if not ids:
            return {}
        parts = graphs.split(case.load(), ids)
        measured.row_bytes = parts.row_bytes
        self.prepare_copy(parts.row_bytes)
        ready: dict[str, Samples] = {}
        for name, graph in (("before", parts.before), ("after", parts.after)):
            file = self.folder / f"{name}.json"
            file.write_text(json.dumps(graph))
            if graph["graph"] and "perf" in self.clients[name].run(file, "P"):
                ready[name] = self.clients[name].time
        return {**ready, "rows at the limit": self.copy}

    def prepare_copy(self, moved: int) -> None:
        """Prepares a copy of `moved` bytes (half read, half written), and ranks ways to copy."""
        half = max(64, moved // 2 // 64 * 64)
        self.limit.bind(half, half)

    def copy(self) -> list[float]:
        """Returns the milliseconds of the prepared copy by the fastest way."""
        self.limit.time_kept(SAMPLES, COPY_SECONDS)
        return [1e3 * seconds for seconds in self.limit.time_best(SAMPLES, COPY_SECONDS)]

    def close(self) -> None:
        self.end_clients()
        self.limit.close()


def available_bytes() -> int:
    facts = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    return int(facts["MemAvailable"].split()[0]) << 10


def save_tables(all_measured: list[Measured]) -> None:
    text = json.dumps([asdict(measured) for measured in all_measured])
    (RESULTS / "attention-cases.json").write_text(text + "\n")
    save_table(RESULTS, "attention", *tables.attention_table(all_measured))


def run_lane(arguments: argparse.Namespace, lane: str) -> list[Measured]:
    folder = RESULTS / "attention"
    folder.mkdir(parents=True, exist_ok=True)
    cases = graphs.files()
    if lane != NEWEST_LANE:
        cases = [graphs.without_newer_attributes(case, folder) for case in cases]
    else:
        cases += graphs.middles(folder) + graphs.sequences(arguments.full, folder)
    wanted = arguments.only.split(",") if arguments.only else [case.name for case in cases]
    suite = Suite(arguments, lane, folder)
    all_measured = []

    def rows() -> Iterator[list[str]]:
        for case in cases:
            if case.name in wanted:
                all_measured.append(suite.run(case))
                yield report.case_row(all_measured[-1])

    print(f"\nlane {lane}", flush=True)
    try:
        shown(report.HEAD, rows())
    finally:
        suite.close()
    return all_measured


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/bench attention", description=__doc__)
    parser.add_argument(
        "--lane",
        dest="lanes",
        action="append",
        help="oneDNN installation to measure: a version or a prefix; repeat for several (default:"
        " 3.13 and 3.7)",
    )
    parser.add_argument(
        "--full",
        action="store_true",
        help="also measure sequences of 4096, and all sequences with 32 heads",
    )
    parser.add_argument(
        "--only", default="", help="comma-separated case names (no result tables are written)"
    )
    parser.add_argument(
        "--no-targets", action="store_true", help="exit with 0 even if a target is missed"
    )
    parser.add_argument("--build", type=Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--programs", type=Path, required=True, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    arguments.lanes = arguments.lanes or ["3.13", "3.7"]
    RESULTS.mkdir(parents=True, exist_ok=True)
    begin = time.monotonic()
    print("\n".join(f"{name}: {value}" for name, value in machine_facts().items()))
    if not graphs.CASES.is_dir():
        print(f"no folder {graphs.CASES}: measures {graphs.OWN_CASES}, without longer sequences")
    lanes = [run_lane(arguments, lane) for lane in arguments.lanes]
    all_measured = [measured for lane in lanes for measured in lane]
    print(f"\n{report.counts(all_measured)}")
    measured = sum(each.times_faster() is not None for each in all_measured)
    print(f"{measured} of {len(all_measured)} cases measured, {time.monotonic() - begin:.0f} s")
    if all_measured and not arguments.only:
        save_tables(all_measured)
    failed = report.failures(all_measured, with_targets=not arguments.no_targets)
    print("\n".join(failed))
    return 0 if measured and not failed else 1


if __name__ == "__main__":
    sys.exit(main())
