"""The processes of the attention suites: the harness (maskwise-bench), and peers. Each peer has a
separate Python environment.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from subprocess import Popen
from typing import Any

from attention_measured import SLOW_MS
from worker import ROOT, Worker, lane_command

NEWEST_LANE = "3.13"
ANSWER = "maskwise-bench-answer "
SAMPLES = 60
TURN_MS = 40.0
WARM_MS = 10.0  # as in peers/serve.py

SERVER = ROOT / "benchmarks/peers/serve.py"
# The environment of each peer. The peer's module is benchmarks/peers/mask_<name>.py.
ENVIRONMENTS = {"engine": ".deps/python", "torch": ".deps/torch", "server": ".deps/servers"}
PACKAGE = ROOT / "build/release/python"  # the folder of package maskwise, for the peer `engine`


class Client(Worker):
    """The harness as a process. Checks a graph, or compiles it once and times its calls."""

    def __init__(self, impl: str, build: Path, lane: str) -> None:
        is_newest = lane == NEWEST_LANE or lane.startswith("/")  # a user's oneDNN may be newer
        program = "maskwise-bench" + ("" if is_newest else f"-{lane}")
        command = [*lane_command(impl, build, lane, program), "--serve"]
        super().__init__(f"attention-{impl}", command, {"MASKWISE_VERBOSE": "1"})
        self.log = ROOT / "build/bench" / f"{self.impl}.log"
        self.log_before = 0

    def start(self) -> Popen[str]:
        self.log_before = self.log.stat().st_size if self.log.exists() else 0
        return super().start()

    def errors(self) -> str:
        """Returns the process's output on standard error since its start."""
        return self.log.read_bytes()[self.log_before :].decode(errors="replace")

    def run(self, file: Path, mode: str) -> dict[str, Any]:
        return self.run_flags(mode, ["--expected-n-partitions=0", f"--case={file}"])

    def run_flags(self, mode: str, flags: list[str]) -> dict[str, Any]:
        """Runs the case that the flags name. Raises RuntimeError if the flags are invalid."""
        before = [f"--mode={mode}", "--fix-times-per-prb=1"]
        answer = self.answer_of("run " + json.dumps([*before, *flags]), ANSWER)
        if "input_error" in answer:
            raise RuntimeError(answer["input_error"])
        return {**answer["result"], "library": answer.get("library", "")}

    def time(self) -> list[float]:
        """Returns milliseconds per call; if calls are slow, the samples of the warm-up."""
        warm = self.samples(1000, WARM_MS)
        return warm if min(warm) > SLOW_MS else self.samples(SAMPLES, TURN_MS)

    def samples(self, count: int, most_ms: float) -> list[float]:
        taken: list[float] = self.answer_of(f"time {count} {most_ms}", ANSWER)["samples"]
        return taken


def claim(lines: str) -> tuple[set[int], str]:
    """Reads Maskwise's verbose lines. Returns the ids of the operators that Maskwise runs, and the
    claims. If Maskwise runs all operators of the partition, there are no ids."""
    claims = re.findall(r"maskwise,claim,\d+,(?:composite|attention),(.*)", lines)
    operators: set[int] = set()
    for text in claims:
        _, _, numbers = text.partition(": operators ")
        operators |= {int(number) for number in numbers.split()}
    return operators, "; ".join(text.partition(": operators ")[0] for text in claims)


class Peer(Worker):
    """A library in a separate environment, served by benchmarks/peers/serve.py."""

    def __init__(self, name: str, python: Path, kind: str) -> None:
        command = [str(python), "-B", str(SERVER), f"{kind}_{name}"]
        path = os.pathsep.join([str(PACKAGE), os.environ.get("PYTHONPATH", "")])
        # The process rests between requests, because threads of oneTBB and OpenMP spin after calls.
        super().__init__(f"{kind}-{name}", command, {"PYTHONPATH": path}, rests=True)
