"""Compares Maskwise's results for random attention graphs with the oracle's.

usage: fuzz_attention.py --lane LANE --bench FILE --preload LIBS [--seed N] [--count N]

Shapes, broadcasts of the mask, and the order of scale, cap, mask and addition are random;
tests/fuzz/fuzz_graph_chains.cpp also draws layouts. The seed and a graph's number determine the
graph.

oneDNN alone runs the same graphs. Maskwise's error may be 80 % of the tolerance, or as large as
oneDNN's. Maskwise must run at least 30 % of the graphs that oneDNN alone gets right. A wrong tensor
is excused if oneDNN alone also gets it wrong. A crash is never excused.

oneDNN alone may get at most 6 % of the graphs wrong. Version 3.13 rounds a bf16 sum after a MatMul
once, not twice. f32 sums with a fill of -10000 keep few fraction bits. The development version of
3.14 also crashes on some sums before a Select.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import re
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
ALLOWANCE = 0.8
LEAST_CLAIMED = 0.3
MOST_WRONG_ALONE = 0.06  # share of the graphs
WRONG = ("FAILED", "ABORTED")

Tensor = dict[str, Any]


class Builder:
    def __init__(self, draw: random.Random) -> None:
        self.draw = draw
        self.ops: list[dict[str, Any]] = []
        self.count = 0

    def tensor(self, shape: list[int], dtype: str) -> Tensor:
        strides = [math.prod(shape[dim + 1 :]) for dim in range(len(shape))]
        self.count += 1
        entries = {"id": self.count, "dtype": dtype, "shape": shape, "stride": strides}
        return {**entries, "layout_type": "strided", "property_type": "undef"}

    def add(
        self,
        kind: str,
        inputs: list[Tensor],
        shape: list[int],
        dtype: str,
        **attrs: bool | int | str,
    ) -> Tensor:
        output = self.tensor(shape, dtype)
        kinds = {bool: "bool", int: "s64", str: "string"}
        entries = {
            name: {
                "type": kinds[type(value)],
                "value": int(value) if isinstance(value, bool) else value,
            }
            for name, value in attrs.items()
        }
        self.ops.append(
            {
                "id": len(self.ops),
                "name": f"{kind}_{len(self.ops)}",
                "kind": kind,
                "attrs": entries,
                "inputs": inputs,
                "outputs": [output],
            }
        )
        return output

    def binary(self, kind: str, a: Tensor, b: Tensor) -> Tensor:
        pair = [a, b] if kind in ("Divide", "Subtract") or self.draw.random() < 0.7 else [b, a]
        shape = a["shape"] if len(a["shape"]) >= len(b["shape"]) else b["shape"]
        return self.add(kind, pair, shape, a["dtype"], auto_broadcast="numpy")

    def operand(self, shape: list[int], dtype: str) -> Tensor:
        """Returns a tensor that broadcasts to the shape."""
        kind = self.draw.choice(("scalar", "one", "row", "some", "whole"))
        if kind == "scalar":
            return self.tensor([], dtype)
        if kind == "one":
            return self.tensor([1], dtype)
        if kind == "row":
            return self.tensor([1] * (len(shape) - 1) + [shape[-1]], dtype)
        if kind == "some":
            return self.tensor([e if self.draw.random() < 0.5 else 1 for e in shape], dtype)
        return self.tensor(list(shape), dtype)


def causal_mask(build: Builder, scores: Tensor) -> Tensor:
    shape = scores["shape"]
    row = build.add("GenIndex", [scores], shape, "s32", axis=-2)
    if build.draw.random() < 0.4:
        for kind in ("Add", "Subtract"):
            shift = build.tensor([], "s32")
            row = build.add(kind, [row, shift], shape, "s32", auto_broadcast="numpy")
    column = build.add("GenIndex", [scores], shape, "s32", axis=-1)
    return build.add("GreaterEqual", [row, column], shape, "boolean", auto_broadcast="numpy")


def masked(build: Builder, scores: Tensor, causal: bool) -> Tensor:
    shape, dtype = scores["shape"], scores["dtype"]
    other = build.tensor([1] if build.draw.random() < 0.8 else [], dtype)
    cond = causal_mask(build, scores) if causal else build.operand(shape, "boolean")
    sources = [scores, other]
    if not causal and build.draw.random() < 0.4:
        sources.reverse()
    return build.add("Select", [cond, *sources], shape, dtype, auto_broadcast="numpy")


def next_step(build: Builder, scores: Tensor) -> Tensor:
    """Adds a random scale, cap or addition. Returns the new scores."""
    kind = build.draw.choice(("scale", "scale", "cap", "add"))
    if kind == "add":
        return build.binary("Add", scores, build.operand(scores["shape"], scores["dtype"]))
    one = build.tensor([1], scores["dtype"])
    scaled = build.binary(build.draw.choice(("Divide", "Multiply")), scores, one)
    if kind == "scale":
        return scaled
    capped = build.add("Tanh", [scaled], scaled["shape"], scaled["dtype"])
    return build.binary("Multiply", capped, build.tensor([1], scores["dtype"]))


def attention(draw: random.Random) -> dict[str, Any]:
    build = Builder(draw)
    dtype = draw.choice(("f32", "f32", "bf16"))
    rows, columns = draw.randint(1, 70), draw.choice((draw.randint(1, 70), 128, 130))
    depth = draw.choice((8, 16, 32))
    batch = [draw.randint(1, 2), draw.randint(1, 4)]
    groups = [draw.randint(2, 3)] if draw.random() < 0.2 else []
    outer = batch + groups
    shared = batch + [1] * len(groups)
    transposed = draw.random() < 0.5
    query = build.tensor([*outer, rows, depth], dtype)
    key = build.tensor([*shared, *((columns, depth) if transposed else (depth, columns))], dtype)
    between = "f32" if dtype == "bf16" and draw.random() < 0.5 else dtype
    shape = [*outer, rows, columns]
    value = build.add(
        "MatMul", [query, key], shape, between, transpose_a=False, transpose_b=transposed
    )
    for _ in range(draw.choice((0, 1, 1, 2))):
        value = next_step(build, value)
    value = masked(build, value, draw.random() < 0.4)
    if draw.random() < 0.3:
        value = next_step(build, value)
    if draw.random() < 0.9:
        mode = draw.choice(("none", "inf_as_zero"))
        value = build.add("SoftMax", [value], shape, dtype, axis=-1, mode=mode)
        values = build.tensor([*shared, columns, depth], dtype)
        build.add(
            "MatMul",
            [value, values],
            [*outer, rows, depth],
            dtype,
            transpose_a=False,
            transpose_b=False,
        )
    return {
        "version": "3.8.0",
        "engine_kind": "cpu",
        "fpmath_mode": "strict",
        "fpmath_mode_apply_to_int": "false",
        "input_ports": [],
        "output_ports": [],
        "graph": build.ops,
    }


Result = dict[str, Any]


@dataclass
class Run:
    results: list[Result]
    composites: int


def run(arguments: argparse.Namespace, files: list[Path], preload: str) -> Run:
    """Runs all graphs, with the plugin if `preload` names it."""
    report = files[0].parent / "report.json"
    command = [str(ROOT / "scripts/lane")]
    if preload:
        command += ["--preload", preload]
    command += [arguments.lane, "--", arguments.bench, f"--report={report}", "--isolate"]
    # --fill=own: under the driver's rule, an error in the last bit of exp fails too many graphs.
    command += ["--expected-n-partitions=0", "--fill=own"]
    command += [f"--case={file}" for file in files]
    environment = {**os.environ, "MASKWISE_VERBOSE": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if not report.exists():
        raise SystemExit(f"fuzz_attention: the client wrote no report\n{done.stdout}{done.stderr}")
    read = json.loads(report.read_text())
    report.unlink()
    claimed = re.findall(r"maskwise,claim,\d+,composite", done.stdout + done.stderr)
    return Run(read["tests"], len(claimed))


def fault_of(plugin: Result, alone: Result) -> str:
    """Returns the fault of Maskwise's result; empty if there is no fault or an excused one."""
    wrong, wrong_alone = set(plugin["wrong_tensors"]), set(alone["wrong_tensors"])
    if plugin["state"] == "PASSED":
        # Maskwise's error may be as large as oneDNN's, if that exceeds ALLOWANCE.
        allowed = max(ALLOWANCE, min(1.0, alone["allowance_used"]))
        if plugin["allowance_used"] > allowed:
            return f"error {plugin['allowance_used']:.2f} of the tolerance, allowed {allowed:.2f}"
    elif plugin["state"] != "FAILED" or not set() < wrong <= wrong_alone:
        return f"{plugin['state']} {plugin['reason']}, alone {alone['state']} {alone['reason']}"
    is_excused = alone["state"] in ("PASSED", *WRONG)
    return "" if is_excused else f"oneDNN alone: {alone['state']}"


def write_graphs(arguments: argparse.Namespace, folder: Path) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / f"{arguments.seed}-{number}.json" for number in range(arguments.count)]
    for number, file in enumerate(files):
        draw = random.Random(f"attention {arguments.seed} {number}")
        file.write_text(json.dumps(attention(draw)))
    return files


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lane", required=True)
    parser.add_argument("--bench", required=True, help="the lane's maskwise-bench")
    parser.add_argument("--preload", required=True, help="the plugin")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--keep", type=Path, help="a folder that the graphs are written to")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        files = write_graphs(arguments, arguments.keep or Path(temporary))
        plugin = run(arguments, files, arguments.preload)
        alone = run(arguments, files, "")
    return report(files, plugin, alone)


def is_lacking(plugin: Result, alone: Result) -> bool:
    """Whether both runs skipped the graph because the CPU lacks bf16."""
    states = {(result["state"], str(result["reason"])) for result in (plugin, alone)}
    state, reason = states.pop()
    return not states and state == "SKIPPED" and reason.endswith("this machine has no bf16")


def report(files: list[Path], plugin: Run, alone: Run) -> int:
    faults, lacking = [], 0
    for file, with_plugin, without in zip(files, plugin.results, alone.results, strict=True):
        if is_lacking(with_plugin, without):
            lacking += 1
        elif fault := fault_of(with_plugin, without):
            faults.append(f"{file.stem}: {fault}")
    states = Counter(result["state"] for result in alone.results)
    right, wrong = states["PASSED"], sum(states[state] for state in WRONG)
    print(
        f"{len(files)} graphs, {lacking} of a type that this CPU lacks. oneDNN alone gets {right} "
        f"right and {wrong} wrong. Maskwise runs {plugin.composites} composites"
    )
    if plugin.composites < LEAST_CLAIMED * right:
        faults.append(
            f"Maskwise runs fewer than {LEAST_CLAIMED:.0%} of the graphs that oneDNN gets right"
        )
    if wrong > max(1, MOST_WRONG_ALONE * len(files)):
        faults.append(f"oneDNN alone gets more than {MOST_WRONG_ALONE:.0%} of the graphs wrong")
    # About one graph in three is bf16.
    if lacking > len(files) / 2 or right < (len(files) - lacking) / 2:
        faults.append("oneDNN alone gets fewer than half of the graphs right")
    print("\n".join(faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
