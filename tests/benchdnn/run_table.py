"""Prints the gain of Maskwise: each case of a batch with oneDNN alone and with the plugin.

The client runs in two processes, with and without the plugin. The process with the plugin checks a
case against the oracle. Then both processes measure the case in turns, so that the machine's clock
and load affect both equally. If all cases pass, the table is written to build/bench/run-BATCH.json.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks/suites"))
from machine import write_stamp  # noqa: E402
from worker import Died, Worker  # noqa: E402

RESULTS = ROOT / "build/bench"
ANSWER = "maskwise-bench-answer "
TURNS = 5
SAMPLES_A_TURN = 5
TURN_MS = 40.0
SLOW_MS = 150.0  # slower calls of oneDNN are measured twice in total, not in every turn


class Child(Worker):
    """A client in --serve mode. If the client has died, the next request starts another client."""

    def run(self, flags: list[str]) -> dict[str, Any]:
        try:
            answer = self.answer_of("run " + json.dumps(flags), ANSWER)
        except Died:
            return {"state": "ABORTED", "reason": "the client died", "library": ""}
        if "input_error" in answer:
            raise SystemExit(f"run_table: {answer['input_error']}")
        return dict(answer["result"], library=answer.get("library", ""))

    def time(self, samples: int, max_ms: float) -> list[float]:
        try:
            taken: list[float] = self.answer_of(f"time {samples} {max_ms}", ANSWER)["samples"]
        except Died:
            return []
        return taken


@dataclass
class Row:
    case: str
    dtype: str
    verdict: str
    reason: str = ""
    library: str = ""
    onednn_state: str = ""
    onednn: list[float] = field(default_factory=list)
    maskwise: list[float] = field(default_factory=list)
    bytes: int = 0

    def cells(self) -> list[str]:
        ours = statistics.median(self.maskwise) if self.maskwise else None
        theirs = statistics.median(self.onednn) if self.onednn else None
        return [
            self.case,
            self.dtype,
            self.verdict,
            f"{theirs:.4f}" if theirs is not None else self.onednn_state,
            f"{ours:.4f}" if ours is not None else "-",
            f"{theirs / ours:.1f}" if ours and theirs else "-",
            f"{self.bytes / ours * 1e-6:.1f}" if ours else "-",
        ]


HEADER = [
    "case (cond, src_0, src_1)",
    "type",
    "verdict",
    "oneDNN ms",
    "Maskwise ms",
    "times faster",
    "GB/s",
]
WIDTHS = [49, 5, 8, 13, 11, 12, 7]


def print_row(cells: list[str]) -> None:
    text = "  ".join(
        cell.ljust(width) if i < 3 else cell.rjust(width)
        for i, (cell, width) in enumerate(zip(cells, WIDTHS, strict=True))
    )
    print(text.rstrip(), flush=True)


def lane_command(lane: str, bench: Path, preload: Path | None) -> list[str]:
    command = [str(ROOT / "scripts" / "lane")]
    if preload:
        command += ["--preload", str(preload)]
    return command + [lane, "--", str(bench), "--serve"]


def list_tests(bench: Path, lane: str, batch: str) -> list[dict[str, Any]]:
    """Returns the tests that the client lists for the batch, one per combination of options."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "tests.json"
        command = lane_command(lane, bench, None)[:-1]
        command += [f"--report={report}", "--list", f"--batch={batch}"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        tests: list[dict[str, Any]] = json.loads(report.read_text())["tests"]
    return tests


def shape_text(shape: list[int]) -> str:
    return "x".join(map(str, shape)) or "-"


def case_name(test: dict[str, Any]) -> str:
    if not test["selects"]:
        return Path(test["repro"][-1]).stem
    shapes = test["selects"][0]["shapes"]
    name = " ".join(shape_text(s) for s in shapes[:3])
    pattern = Path(test["repro"][-1]).stem
    if pattern != "select":
        name = f"{pattern} {shape_text(shapes[3])}"
    return name if test["mask"] in ("auto", "random") else f"{name} {test['mask']}"


def replace_flag(flags: list[str], name: str, value: str | None) -> list[str]:
    others = [f for f in flags if not f.startswith(f"--{name}=")]
    return others if value is None else [f"--{name}={value}", *others]


def state_words(result: dict[str, Any]) -> str:
    if result["state"] == "ABORTED":
        return "aborts"
    if result["state"] in ("UNIMPLEMENTED", "SKIPPED"):
        return "not supported"
    return str(result["state"]).lower()


def measure_in_turns(row: Row, alone: Child, plugin: Child, first_ms: float) -> None:
    slow = first_ms > SLOW_MS
    if slow:
        row.onednn = [first_ms, *alone.time(1, TURN_MS)]
    for _ in range(TURNS):
        if not slow:
            row.onednn += alone.time(SAMPLES_A_TURN, TURN_MS)
        row.maskwise += plugin.time(SAMPLES_A_TURN, TURN_MS)


def run_test(test: dict[str, Any], alone: Child, plugin: Child) -> Row:
    flags = replace_flag(test["repro"], "fix-times-per-prb", "1")
    select = test["selects"][0] if test["selects"] else None
    ours = plugin.run(replace_flag(flags, "mode", "CP"))
    row = Row(case_name(test), select["dtype"] if select else "-", ours["state"])
    row.reason = ours.get("reason", "")
    row.library = ours["library"]
    expects_error = any(f.startswith("--expect=") for f in flags)
    mode = "C" if expects_error else "P"
    theirs = alone.run(replace_flag(replace_flag(flags, "owner", None), "mode", mode))
    if "perf" in theirs and "perf" in ours:
        row.bytes = ours["perf"]["bytes"]
        measure_in_turns(row, alone, plugin, theirs["perf"]["median_ms"])
    elif "perf" in ours:
        row.bytes = ours["perf"]["bytes"]
        for _ in range(TURNS):
            row.maskwise += plugin.time(SAMPLES_A_TURN, TURN_MS)
    if not row.onednn:
        row.onednn_state = state_words(theirs)
    return row


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bench", type=Path, required=True, help="the client, maskwise-bench")
    parser.add_argument("--plugin", type=Path, required=True, help="libmaskwise_onednn.so")
    parser.add_argument("--lane", required=True, help="a lane of scripts/lane, such as 3.13")
    parser.add_argument("--batch", default="perf", help="a batch of benchdnn_inputs/")
    arguments = parser.parse_args()
    for path in (arguments.bench, arguments.plugin):
        if not path.is_file():
            parser.error(f"no such file: {path}")
    return arguments


def save_table(batch: str, rows: list[Row], library: str) -> None:
    table = {"library": library, "head": HEADER, "rows": [row.cells() for row in rows]}
    (RESULTS / f"run-{batch}.json").write_text(json.dumps(table, indent=1) + "\n")
    write_stamp(RESULTS, f"run-{batch}")


def main() -> int:
    arguments = parse_arguments()
    bench, plugin_path = arguments.bench.resolve(), arguments.plugin.resolve()
    os.environ.pop("LD_PRELOAD", None)
    tests = list_tests(bench, arguments.lane, arguments.batch)
    RESULTS.mkdir(parents=True, exist_ok=True)
    alone = Child("run-onednn", lane_command(arguments.lane, bench, None), {})
    plugin = Child("run-maskwise", lane_command(arguments.lane, bench, plugin_path), {})
    started = time.monotonic()
    print_row(HEADER)
    rows = []
    for test in tests:
        rows.append(run_test(test, alone, plugin))
        print_row(rows[-1].cells())
    alone.close()
    plugin.close()
    wrong = [row for row in rows if row.verdict != "PASSED"]
    for row in wrong:
        print(f"{row.verdict}: {row.case} {row.dtype}: {row.reason}")
    library = next((row.library for row in rows if row.library), "no library")
    spent = time.monotonic() - started
    if rows and not wrong:
        save_table(Path(arguments.batch).name, rows, library)
    print(f"{len(rows)} cases, {len(wrong)} not passed, {spent:.0f} s, {library}")
    return 1 if wrong or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
