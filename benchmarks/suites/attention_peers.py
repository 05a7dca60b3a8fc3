"""The peers of the attention suite: a process for each, in an environment of its own."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

from attention_client import SAMPLES, TURN_MS
from attention_measured import Measured, Samples
from attention_problem import Problem
from worker import ROOT, Died, Worker

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


class Peer(Worker):
    def __init__(self, name: str, python: Path) -> None:
        self.name = name
        command = [str(python), "-B", str(SERVER), f"attention_{name}"]
        path = os.pathsep.join([str(PACKAGE), os.environ.get("PYTHONPATH", "")])
        # ONNX Runtime spins 30 ms.
        super().__init__(f"attention-{name}", command, {"PYTHONPATH": path}, rests=True)

    def load(self, problem: Problem, measured: Measured) -> dict[str, Samples]:
        """The forms whose answer is right, ready to be timed; the faults of the others."""
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
