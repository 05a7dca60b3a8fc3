"""Language models as published, exported by both of PyTorch's exporters, in ONNX Runtime without
Maskwise and with it, in turns, in one process: a line for each.

The shares of time are of Where and of Softmax without Maskwise, by ONNX Runtime's own profiler.
Started by `scripts/bench onnxruntime --models`, which has the package built and the models
exported. build/bench/onnxruntime_models.json keeps the times.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import maskwise.onnxruntime
import model_text
import numpy as np
import onnxruntime as ort
from machine import ROOT
from sessions import Inputs, options
from turns import begin, keep
from where import shown

TURNS = 7
LEAST = 0.98  # times as fast as without
EXTENTS = {"batch": 1, "sequence": 512, "source": 512}
SHARES = ("Where", "Softmax")


@dataclass
class Times:
    """Medians of seconds a run, and of the turns' ratios."""

    model: str
    claimed: int
    without: float
    with_it: float
    ratio: float
    shares: dict[str, float]

    def line(self) -> str:
        shares = "".join(f"{self.shares[kind]:>9.1%}" for kind in SHARES)
        times = f"{shown(self.without):>12}{shown(self.with_it):>12}{self.ratio:>7.2f}x"
        return f"{self.model:<24}{self.claimed:>7}{times}{shares}"


def heading() -> str:
    names = "".join(f"{name:>9}" for name in SHARES)
    return f"{'model':<24}{'claimed':>7}{'without':>12}{'with it':>12}{'':>8}{names}"


def made_up(session: Any) -> Inputs:
    """Words, and a mask that ends in padding."""
    random = np.random.default_rng(0)
    inputs: Inputs = {}
    for one in session.get_inputs():
        shape = [EXTENTS.get(dim, dim) for dim in one.shape]
        if one.name == "attention_mask":
            inputs[one.name] = np.broadcast_to(np.arange(shape[1]) < 0.9 * shape[1], shape)
            inputs[one.name] = inputs[one.name].astype(np.int64)
        elif one.type == "tensor(int64)":
            inputs[one.name] = random.integers(0, 30_000, shape)
        else:
            inputs[one.name] = random.standard_normal(shape).astype(np.float32)
    return inputs


def shares_of(content: bytes, inputs: Inputs) -> dict[str, float]:
    """Of the time of all nodes, by kind; the first run, which makes its memory, is left out."""
    with tempfile.TemporaryDirectory() as folder:
        profiled = options()
        profiled.enable_profiling = True
        profiled.profile_file_prefix = f"{folder}/profile"
        session = ort.InferenceSession(content, profiled, providers=["CPUExecutionProvider"])
        for _ in range(3):
            session.run(["logits"], inputs)
        events = json.loads(Path(session.end_profiling()).read_text())
    runs = [event for event in events if event["name"].endswith("_kernel_time")]
    kept = runs[len(runs) // 3 :]
    spent: Counter[str] = Counter()
    for event in kept:
        spent[event["args"]["op_name"]] += event["dur"]
    return {kind: spent[kind] / spent.total() for kind in SHARES}


def seconds(session: Any, inputs: Inputs) -> float:
    begin = time.perf_counter()
    session.run(["logits"], inputs)
    return time.perf_counter() - begin


def claimed_of(session: Any) -> int:
    groups = session.get_provider_graph_assignment_info()
    return sum(
        len(group.get_nodes()) for group in groups if group.ep_name == maskwise.onnxruntime.PROVIDER
    )


def measure(path: Path) -> Times:
    content = model_text.read(path).SerializeToString()
    chosen = options()
    chosen.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    stock = ort.InferenceSession(content, options(), providers=["CPUExecutionProvider"])
    session = maskwise.onnxruntime.session(content, chosen)
    inputs = made_up(session)
    expected, got = (one.run(["logits"], inputs)[0] for one in (stock, session))
    if not np.allclose(got, expected, rtol=1e-4, atol=1e-5):
        raise SystemExit(f"{path.stem}: another answer with Maskwise")
    turns = [(seconds(stock, inputs), seconds(session, inputs)) for _ in range(TURNS)]
    without, with_it = (statistics.median(column) for column in zip(*turns, strict=True))
    ratio = statistics.median(first / second for first, second in turns)
    claimed = claimed_of(session)
    del stock, session
    return Times(path.stem, claimed, without, with_it, ratio, shares_of(content, inputs))


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/bench onnxruntime --models", description=__doc__)
    parser.add_argument("--models", action="store_true", help="these, not the single operators")
    given, facts = begin(parser)
    print(f"ONNX Runtime {ort.__version__}, {EXTENTS['sequence']} words\n{heading()}")
    every = []
    for path in sorted((ROOT / "build/models").glob("*.json")):
        if given.only in path.stem:
            every.append(measure(path))
            print(every[-1].line(), flush=True)
    if not given.only:
        entries = {**facts, "version": ort.__version__, "models": [asdict(one) for one in every]}
        keep("onnxruntime_models", entries)
    missed = [one for one in every if one.ratio < LEAST]
    for one in missed:
        print(f"missed: {one.model}: {one.ratio:.2f}, {LEAST} wanted", file=sys.stderr)
    return 0 if given.no_targets or not missed else 1


if __name__ == "__main__":
    sys.exit(main())
