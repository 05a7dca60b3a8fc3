"""Measures attention: oneDNN's own cases with a Select and longer sequences (or the harness's cases
where there is no ../shared), with and without Maskwise, beside the ceiling: the time of what oneDNN
keeps and the time in which the rest's bytes can move.

Started by scripts/bench attention, which has everything installed and built.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import attention_graphs as graphs
import attention_report as report
from attention_measured import Measured
from machine import machine_facts
from results import Row, keep
from worker import ROOT, Died, Worker, lane_command, limit

RESULTS = ROOT / "build/bench"
NEWEST_LANE = "3.13"
ANSWER = "maskwise-bench-answer "
TURNS = 6
SAMPLES = 60
TURN_MS = 40.0
COPY_SECONDS = 0.02
SLOW_MS = 150.0  # a call slower than this is measured twice in all, not in every turn
CHECKED_BYTES = 64 << 20  # larger graphs are not compared with the oracle: it takes minutes


class Client(Worker):
    """The harness's client: it checks a graph, compiles it once and then measures it again."""

    def __init__(self, impl: str, build: Path, lane: str) -> None:
        program = "maskwise-bench" + ("" if lane == NEWEST_LANE else f"-{lane}")
        command = [*lane_command(impl, build, lane, program), "--serve"]
        super().__init__(f"attention-{impl}", command, {"MASKWISE_VERBOSE": "1"})

    def request(self, text: str) -> dict[str, Any]:
        process = self.process or self.start()
        assert process.stdin and process.stdout
        process.stdin.write(text + "\n")
        process.stdin.flush()
        for line in process.stdout:
            if line.startswith(ANSWER):
                answer: dict[str, Any] = json.loads(line[len(ANSWER) :])
                return answer
        self.process = None
        raise Died(f"the client ended with status {process.wait()}")

    def run(self, file: Path, mode: str) -> dict[str, Any]:
        flags = [f"--mode={mode}", "--fix-times-per-prb=1", "--expected-n-partitions=0"]
        answer = self.request("run " + json.dumps([*flags, f"--case={file}"]))
        if "input_error" in answer:
            raise RuntimeError(answer["input_error"])
        return {**answer["result"], "library": answer.get("library", "")}

    def time(self, samples: int) -> list[float]:
        taken: list[float] = self.request(f"time {samples} {TURN_MS}")["samples"]
        return taken


def claimed_operators(build: Path, lane: str, file: Path) -> tuple[set[int], str]:
    """The operators that Maskwise runs of this graph, from the line that says so."""
    client = Client("maskwise", build, lane)
    command = [*client.command[:-1], "--mode=P", "--fix-times-per-prb=1"]
    command += ["--expected-n-partitions=0", f"--case={file}"]
    done = subprocess.run(
        command, capture_output=True, text=True, env={**client.environment}, check=False
    )
    claims = re.findall(r"maskwise,claim,\d+,composite,(.*): operators ([\d ]+)", done.stderr)
    operators = {int(number) for _, numbers in claims for number in numbers.split()}
    return operators, "; ".join(text for text, _ in claims)


class Suite:
    def __init__(self, arguments: argparse.Namespace, lane: str, folder: Path) -> None:
        self.build: Path = arguments.build
        self.lane = lane
        self.folder = folder
        names = ("maskwise", "onednn", "before", "after")
        self.clients = {name: Client(name, self.build, lane) for name in names}
        self.limit = limit(arguments.programs)

    def run(self, case: graphs.GraphCase) -> Measured:
        """A client that dies or a graph that the library lacks an operator for is a line, too."""
        measured = Measured(case.name, self.lane)
        if case.needed_bytes > available_bytes():
            measured.state = f"skipped: needs {case.needed_bytes >> 20} MiB"
            return measured
        try:
            self.run_known(case, measured)
        except Died as error:
            measured.state = str(error)
        finally:
            self.end_clients()
        return measured

    def end_clients(self) -> None:
        """Each case finds fresh processes: oneDNN's own speed depends on what ran in one before."""
        for client in self.clients.values():
            client.close()

    def run_known(self, case: graphs.GraphCase, measured: Measured) -> None:
        biggest = max(map(graphs.elements, graphs.tensors(case.load())))
        checked = case.needed_bytes == 0 and 4 * biggest <= CHECKED_BYTES
        if checked and (reason := self.fault_of(case)):
            measured.state = f"wrong: {reason}"
            return
        own, alone = (self.clients[name].run(case.file, "P") for name in ("maskwise", "onednn"))
        measured.library = alone["library"]
        if "perf" not in own or "perf" not in alone:
            measured.state = f"{alone['state'].lower()}: {alone['reason'] or own['reason']}"
            return
        clients = {name: self.clients[name] for name in ("onednn", "maskwise")}
        clients |= self.prepare_parts(case, measured)
        for turn in range(TURNS):
            self.measure(measured, clients, turn)

    def measure(self, measured: Measured, clients: dict[str, Client], turn: int) -> None:
        """One turn. What the ceiling is made of comes right before or behind Maskwise: the same
        memory is twice as fast in one second as in another."""
        taken: dict[str, list[float]] = {}
        for name, client in clients.items():
            known = measured.samples.get(name)
            if not (known and min(known) > SLOW_MS and turn >= 2):
                taken[name] = client.time(SAMPLES)
        if measured.row_bytes:
            taken["rows at the limit"] = self.copy()
        measured.add_turn(taken)

    def fault_of(self, case: graphs.GraphCase) -> str:
        checker = Client("maskwise", self.build, self.lane)
        try:
            result = checker.run(case.file, "C")
        finally:
            checker.close()
        return str(result["reason"]) if result["errors"] else ""

    def prepare_parts(self, case: graphs.GraphCase, measured: Measured) -> dict[str, Client]:
        ids, measured.claim = claimed_operators(self.build, self.lane, case.file)
        if not ids:
            return {}
        parts = graphs.split(case.load(), ids)
        measured.row_bytes = parts.row_bytes
        self.prepare_copy(parts.row_bytes)
        ready = {}
        for name, graph in (("before", parts.before), ("after", parts.after)):
            file = self.folder / f"{name}.json"
            file.write_text(json.dumps(graph))
            if graph["graph"] and "perf" in self.clients[name].run(file, "P"):
                ready[name] = self.clients[name]
        return ready

    def prepare_copy(self, moved: int) -> None:
        """Of half of the bytes to the other half; ranks the ways of the limit."""
        half = max(64, moved // 2 // 64 * 64)
        self.limit.ask(do="copy", bytes=half, samples=9)

    def copy(self) -> list[float]:
        """Milliseconds of the copy prepared, the best way."""
        answer = self.limit.ask(do="time", samples=SAMPLES, max_seconds=COPY_SECONDS, best=4)
        best = min((v["samples"] for v in answer["variants"]), key=statistics.median)
        return [1e3 * seconds for seconds in best]

    def close(self) -> None:
        self.end_clients()
        self.limit.close()


def available_bytes() -> int:
    facts = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    return int(facts["MemAvailable"].split()[0]) << 10


def rows_of(measured: Measured) -> list[Row]:
    """In the form of the other suites; the ceiling is the limit, the parts are implementations."""
    ceiling, rows = measured.ceiling(), []
    medians = {name: measured.median(name) for name in measured.samples}
    for name, milliseconds in {**medians, "limit": ceiling}.items():
        if milliseconds is None:
            continue
        share = ceiling / milliseconds if ceiling else None
        if name == "maskwise":
            share = measured.of_ceiling()
        rows.append(
            Row(
                suite="attention",
                case=measured.case
                if measured.lane == NEWEST_LANE
                else f"{measured.case} on {measured.lane}",
                cond="",
                src_0="",
                src_1="",
                dtype="",
                mask="",
                impl=name,
                version=measured.library,
                seconds_median=milliseconds / 1e3,
                seconds_min=min(measured.samples.get(name, [milliseconds])) / 1e3,
                bytes=measured.row_bytes,
                limit_fraction=round(share, 4) if share else None,
                threads=0,
            )
        )
    return rows


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
    every = []
    print(f"\nlane {lane}\n{report.header()}", flush=True)
    try:
        for case in cases:
            if case.name in wanted:
                every.append(suite.run(case))
                print(report.line(every[-1]), flush=True)
    finally:
        suite.close()
    return every


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/bench attention", description=__doc__)
    parser.add_argument("--lane", dest="lanes", action="append", help="default: 3.13 and 3.7")
    parser.add_argument("--full", action="store_true", help="sequences of 4096, 32 heads")
    parser.add_argument("--only", default="", help="cases by name, with commas (nothing is kept)")
    parser.add_argument("--build", type=Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--programs", type=Path, required=True, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    arguments.lanes = arguments.lanes or ["3.13", "3.7"]
    RESULTS.mkdir(parents=True, exist_ok=True)
    facts, begin = machine_facts(), time.monotonic()
    print("\n".join(f"{name}: {value}" for name, value in facts.items()))
    if not graphs.CASES.is_dir():
        print(f"no folder {graphs.CASES}: {graphs.OWN_CASES} instead, and no longer sequences")
    every = [measured for lane in arguments.lanes for measured in run_lane(arguments, lane)]
    print(report.targets(every))
    measured = sum(each.times_faster() is not None for each in every)
    print(f"{measured} of {len(every)} cases measured, {time.monotonic() - begin:.0f} s")
    if every and not arguments.only:
        keep(RESULTS / "results.json", "attention", [row for m in every for row in rows_of(m)])
        report.draw(every, facts, RESULTS / "attention.png")
    return 0 if measured else 1


if __name__ == "__main__":
    sys.exit(main())
