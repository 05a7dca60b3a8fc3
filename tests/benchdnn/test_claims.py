"""Tests which attention graphs Maskwise claims on oneDNN 3.8 and newer, and their scratchpads.

usage: test_claims.py --lane LANE --bench FILE --preload LIBS

The first cases test both sides of the bound in gains.cpp for masks of the scores' shape. The bound
does not apply to attention. So the fill of these cases varies along the row, which attention does
not support.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fuzz_attention import ROOT, Builder

OWN_SHAPE = "this oneDNN is as fast with a mask of the scores' own shape"
DEPTH = 8


@dataclass(frozen=True)
class Case:
    """Attention whose scores get an optional cap, a scale and a mask before the SoftMax."""

    name: str
    cond: tuple[int, ...]
    wanted: str  # part of the verbose line
    shape: tuple[int, ...] = (2, 3, 40, 33)
    has_cap: bool = False
    is_attention: bool = False

    def graph(self) -> dict[str, Any]:
        build, shape = Builder(random.Random(0)), list(self.shape)
        batch, (rows, columns) = shape[:-2], shape[-2:]
        query = build.tensor([*batch, rows, DEPTH], "f32")
        key = build.tensor([*batch, DEPTH, columns], "f32")
        untouched = {"transpose_a": False, "transpose_b": False}
        numpy = {"auto_broadcast": "numpy"}
        value = build.add("MatMul", [query, key], shape, "f32", **untouched)
        if self.has_cap:
            value = build.add("Divide", [value, build.tensor([1], "f32")], shape, "f32", **numpy)
            value = build.add("Tanh", [value], shape, "f32")
        value = build.add("Multiply", [value, build.tensor([1], "f32")], shape, "f32", **numpy)
        fill = build.tensor([1 if self.is_attention else columns], "f32")
        mask = [build.tensor(list(self.cond), "boolean"), value, fill]
        value = build.add("Select", mask, shape, "f32", **numpy)
        value = build.add("SoftMax", [value], shape, "f32", axis=-1, mode="inf_as_zero")
        last = build.tensor([*batch, columns, DEPTH], "f32")
        build.add("MatMul", [value, last], [*batch, rows, DEPTH], "f32", **untouched)
        head = {"version": "3.8.0", "engine_kind": "cpu", "fpmath_mode": "strict"}
        ports: dict[str, Any] = {"input_ports": [], "output_ports": [], "graph": build.ops}
        return {**head, "fpmath_mode_apply_to_int": "false", **ports}


CASES = [
    Case("broadcast mask", (1, 1, 40, 33), "claim"),
    Case("mask broadcast over one extent", (2, 3, 1, 33), "claim"),
    Case("full mask", (2, 3, 40, 33), OWN_SHAPE),
    Case("full mask, capped scores", (2, 3, 40, 33), "claim", has_cap=True),
    Case("full mask, 4 Mi scores", (1, 1, 2048, 2048), "claim", (1, 1, 2048, 2048)),
    Case("full mask, one column fewer", (1, 1, 2048, 2047), OWN_SHAPE, (1, 1, 2048, 2047)),
    Case("attention, broadcast mask", (1, 1, 40, 33), "claim", is_attention=True),
    Case("attention, full mask", (2, 3, 40, 33), "claim", is_attention=True),
]


def run(arguments: argparse.Namespace, file: Path) -> str:
    command = [str(ROOT / "scripts/lane"), "--preload", arguments.preload, arguments.lane, "--"]
    command += [arguments.bench, "--mode=P", "--fix-times-per-prb=1", "--expected-n-partitions=0"]
    settings = {"MASKWISE_VERBOSE": "1", "ONEDNN_VERBOSE": "1"}
    done = subprocess.run(
        [*command, f"--case={file}"],
        capture_output=True,
        text=True,
        env={**os.environ, **settings},
        check=False,
    )
    return done.stdout + done.stderr


def faults_of(case: Case, output: str) -> list[str]:
    form = "attention" if case.is_attention else "composite"
    lines = re.findall(rf"maskwise,((?:claim|refuse),\d+,{form},.*)", output)
    if len(lines) != 1 or case.wanted not in lines[0]:
        return [f"{case.name}: expected one line with '{case.wanted}', got {lines}"]
    # The client provides every scratchpad. oneDNN reports `library` for a partition that allocates
    # its scratchpad itself.
    owners = re.findall(r"graph,exec,.*?,scratchpad:(\w+):(\d+)", output)
    allocated = [owner for owner, size in owners if owner != "user" and size != "0"]
    if not owners or allocated:
        return [f"{case.name}: scratchpads {owners}"]
    return []


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lane", required=True)
    parser.add_argument("--bench", required=True, help="the lane's maskwise-bench")
    parser.add_argument("--preload", required=True, help="the plugin")
    arguments = parser.parse_args()
    faults = []
    with tempfile.TemporaryDirectory() as folder:
        for number, case in enumerate(CASES):
            file = Path(folder) / f"{number}.json"
            file.write_text(json.dumps(case.graph()))
            faults += faults_of(case, run(arguments, file))
    print("\n".join(faults) or f"{len(CASES)} graphs")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
