"""The processes that the attention suite asks: the harness's client, and for each peer one in an
environment of its own."""

from __future__ import annotations

import json
import os
import re
from functools import partial
from pathlib import Path
from subprocess import Popen
from typing import TYPE_CHECKING, Any

from attention_measured import SLOW_MS, Measured, Samples
from worker import ROOT, Died, Worker, lane_command

if TYPE_CHECKING:  # it needs NumPy
    from attention_problem import Problem

NEWEST_LANE = "3.13"
ANSWER = "maskwise-bench-answer "
SAMPLES = 60
TURN_MS = 40.0
WARM_MS = 10.0  # as the peers are (peers/serve.py)

SERVER = ROOT / "benchmarks/peers/serve.py"
# The environment that has each. Another implementation is a line here and a module
# benchmarks/peers/attention_<name>.py.
ENVIRONMENTS = {
    "engine": ".deps/python",
    "torch": ".deps/torch",
    "openvino": ".deps/peers",
    "onnxruntime": ".deps/peers",
}
PACKAGE = ROOT / "build/release/python"  # of the engine


class Client(Worker):
    """It checks a graph, compiles it once and then measures it again."""

    def __init__(self, impl: str, build: Path, lane: str) -> None:
        program = "maskwise-bench" + ("" if lane == NEWEST_LANE else f"-{lane}")
        command = [*lane_command(impl, build, lane, program), "--serve"]
        super().__init__(f"attention-{impl}", command, {"MASKWISE_VERBOSE": "1"})
        self.log = ROOT / "build/bench" / f"{self.impl}.log"
        self.log_before = 0

    def start(self) -> Popen[str]:
        self.log_before = self.log.stat().st_size if self.log.exists() else 0
        return super().start()

    def said(self) -> str:
        """What this process wrote on standard error."""
        return self.log.read_bytes()[self.log_before :].decode(errors="replace")

    def run(self, file: Path, mode: str, data: Path | None = None) -> dict[str, Any]:
        flags = [f"--mode={mode}", "--fix-times-per-prb=1", "--expected-n-partitions=0"]
        flags += [f"--data={data}"] if data else []
        answer = self.answer_of("run " + json.dumps([*flags, f"--case={file}"]), ANSWER)
        if "input_error" in answer:
            raise RuntimeError(answer["input_error"])
        return {**answer["result"], "library": answer.get("library", "")}

    def time(self) -> list[float]:
        """Milliseconds a call. Those before them are not counted, unless calls are slow."""
        warm = self.samples(1000, WARM_MS)
        return warm if min(warm) > SLOW_MS else self.samples(SAMPLES, TURN_MS)

    def samples(self, count: int, most_ms: float) -> list[float]:
        taken: list[float] = self.answer_of(f"time {count} {most_ms}", ANSWER)["samples"]
        return taken


def claim(said: str) -> tuple[set[int], str]:
    """The operators that Maskwise runs between oneDNN's, and what it runs, from the lines that say
    so; of a whole partition (attention) there are none between."""
    claims = re.findall(r"maskwise,claim,\d+,(?:composite|attention),(.*)", said)
    operators: set[int] = set()
    for text in claims:
        _, _, numbers = text.partition(": operators ")
        operators |= {int(number) for number in numbers.split()}
    return operators, "; ".join(text.partition(": operators ")[0] for text in claims)


class Peer(Worker):
    def __init__(self, name: str, python: Path, kind: str = "attention") -> None:
        self.name = name
        command = [str(python), "-B", str(SERVER), f"{kind}_{name}"]
        path = os.pathsep.join([str(PACKAGE), os.environ.get("PYTHONPATH", "")])
        # ONNX Runtime spins 30 ms.
        super().__init__(f"{kind}-{name}", command, {"PYTHONPATH": path}, rests=True)

    def load(self, problem: Problem, measured: Measured) -> dict[str, Samples]:
        """Returns the forms with a right answer, ready to be timed, and the others' faults."""
        try:
            measured.versions[self.name] = str(self.ask(do="hello")["version"])
            answer = self.ask(do="load", case=problem.request())
        except (Died, RuntimeError) as error:
            measured.faults[self.name] = str(error)
            return {}
        ready: dict[str, Samples] = {}
        for form, reason in answer["refused"].items():
            measured.faults[f"{self.name} {form}"] = f"refused: {reason}"
        for form, file in answer["answers"].items():
            key = f"{self.name} {form}"
            if reason := problem.fault_of(file):
                measured.faults[key] = f"wrong: {reason}"
            else:
                ready[key] = partial(self.time, form, measured)
        return ready

    def time(self, form: str, measured: Measured) -> list[float]:
        """Milliseconds a call; none where the peer fails."""
        try:
            answer = self.ask(do="time", form=form, samples=SAMPLES, max_seconds=TURN_MS / 1e3)
        except Died as error:
            measured.drop(self.name, str(error))
            return []
        except RuntimeError as error:
            measured.drop(f"{self.name} {form}", str(error))
            return []
        return [1e3 * seconds for seconds in answer["samples"]]


def peers() -> list[Peer]:
    return [Peer(name, ROOT / place / "bin/python") for name, place in ENVIRONMENTS.items()]
