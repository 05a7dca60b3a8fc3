"""Measures published language models in ONNX Runtime with and without Maskwise, in turns in one
process. Both of PyTorch's exporters export the models. Prints a line per model.

ONNX Runtime's profiler measures the time of Where and Softmax without Maskwise. Started by
`scripts/bench onnxruntime --models`, which builds the package and exports the models. Writes
build/bench/onnxruntime_models.json.
"""

import json
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import maskwise.onnxruntime
import model_text
import numpy as np
import onnxruntime as ort
from machine import ROOT
from sessions import Inputs, options
from table import time_text
from turns import Measured, medians, ratio_of, run_suite, seconds_a_call

TURNS = 7
LEAST = 0.98  # minimum speed relative to ONNX Runtime alone
EXTENTS = {"batch": 1, "sequence": 512, "source": 512}
SHARES = ("Where", "Softmax")
HEAD = ["model, exporter", "nodes claimed", "", "with Maskwise", "times faster"]
HEAD += [f"{kind}, % of ONNX Runtime's time" for kind in SHARES]


def made_up(session: Any) -> Inputs:
    """Returns random inputs. attention_mask masks the last tenth of each sequence."""
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
    """Returns the share of total node time of each operator in SHARES. Skips the first run, which
    allocates memory."""
    with tempfile.TemporaryDirectory() as folder:
        profiled = options()
        profiled.enable_profiling = True
        profiled.profile_file_prefix = f"{folder}/profile"
        session = ort.InferenceSession(content, profiled, providers=["CPUExecutionProvider"])
        for _ in range(3):
            session.run(["logits"], inputs)
        events = json.loads(Path(session.end_profiling()).read_text())
    runs = [event for event in events if event["name"].endswith("_kernel_time")]
    later_runs = runs[len(runs) // 3 :]
    spent: Counter[str] = Counter()
    for event in later_runs:
        spent[event["args"]["op_name"]] += event["dur"]
    return {kind: spent[kind] / spent.total() for kind in SHARES}


def claimed_of(session: Any) -> int:
    groups = session.get_provider_graph_assignment_info()
    return sum(
        len(group.get_nodes()) for group in groups if group.ep_name == maskwise.onnxruntime.PROVIDER
    )


def measure(path: Path) -> Measured:
    content = model_text.read(path).SerializeToString()
    chosen = options()
    chosen.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    stock = ort.InferenceSession(content, options(), providers=["CPUExecutionProvider"])
    session = maskwise.onnxruntime.session(content, chosen)
    inputs = made_up(session)
    expected, got = (one.run(["logits"], inputs)[0] for one in (stock, session))
    if not np.allclose(got, expected, rtol=1e-4, atol=1e-5):
        raise SystemExit(f"{path.stem}: the answers with and without Maskwise differ")
    turns = [
        [seconds_a_call(lambda one=one: one.run(["logits"], inputs)) for one in (stock, session)]
        for _ in range(TURNS)
    ]
    ratio = ratio_of(turns)
    row = [path.stem, str(claimed_of(session)), *map(time_text, medians(turns))]
    del stock, session
    shares = [f"{share:.1%}" for share in shares_of(content, inputs).values()]
    missed = f"{ratio:.2f} times as fast, {LEAST} wanted" if ratio < LEAST else ""
    return [*row, f"{ratio:.2f}", *shares], missed


def main() -> int:
    paths = sorted((ROOT / "build/models").glob("*.json"))
    cases = ((path.stem, lambda path=path: measure(path)) for path in paths)
    version = f"{ort.__version__}, {EXTENTS['sequence']} tokens"
    return run_suite("onnxruntime_models", "ONNX Runtime", version, cases, HEAD)


if __name__ == "__main__":
    sys.exit(main())
