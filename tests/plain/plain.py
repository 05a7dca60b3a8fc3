#!/usr/bin/env python3
"""Runs the code blocks of README.md and docs/ in environments with the wheel and a framework.

usage: scripts/plain [--short] [--wheels FOLDER] [ENVIRONMENT...]

Creates each environment below build/plain from the pins in ENVIRONMENT.txt. README's `pip install`
installs the wheel from FOLDER (default: dist/, which scripts/wheels fills). page.py runs the pages
once for each data type. --short: only environments with the newest version of a framework.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from onnx import TensorProto, helper  # type: ignore[attr-defined, unused-ignore]

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
WORK = ROOT / "build/plain"
TORCH = ROOT / ".deps/torch"
ONNX_TYPES = {"f32": TensorProto.FLOAT, "bf16": TensorProto.BFLOAT16, "f16": TensorProto.FLOAT16}


@dataclass(frozen=True)
class Environment:
    name: str
    context: str
    pages: tuple[str, ...]
    types: tuple[str, ...] = ("f32", "bf16", "f16")
    sees_torch: bool = False  # uses the packages of scripts/torch.txt, which are too large to copy

    @property
    def is_newest(self) -> bool:
        return self.name == self.context


NUMPY = ("README.md", "docs/python.md")
ONNXRUNTIME = ("README.md", "docs/onnxruntime.md")
OPENVINO = ("README.md", "docs/openvino.md")
TORCH_PAGES = ("README.md", "docs/python.md", "docs/pytorch.md")
TRANSFORMERS = ("README.md", "docs/pytorch.md")
ENVIRONMENTS = (
    Environment("numpy", "numpy", NUMPY, ("f32", "f16")),
    Environment("numpy-2.0", "numpy", NUMPY, ("f32", "f16")),
    Environment("onnxruntime", "onnxruntime", ONNXRUNTIME),
    Environment("onnxruntime-1.24", "onnxruntime", ONNXRUNTIME),
    Environment("openvino", "openvino", OPENVINO),
    Environment("openvino-2026.0", "openvino", OPENVINO),
    Environment("torch", "torch", TORCH_PAGES, sees_torch=True),
    Environment("torch-2.10", "torch", TORCH_PAGES),
    Environment("transformers", "transformers", TRANSFORMERS, sees_torch=True),
    Environment("transformers-4.57", "transformers", TRANSFORMERS, sees_torch=True),
)


def run(*command: str | Path, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    hidden = ("PYTHONPATH", "PIP_TARGET", "PIP_PREFIX")
    clean = {name: value for name, value in os.environ.items() if name not in hidden}
    return subprocess.run(
        [*map(str, command)],
        cwd=cwd,
        env=clean,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )


def must(*command: str | Path, cwd: Path = ROOT) -> str:
    ran = run(*command, cwd=cwd)
    if ran.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))} failed:\n{ran.stdout}")
    return ran.stdout


def make(environment: Environment, folder: Path) -> Path:
    """Creates the environment and returns its Python. README's first block installs Maskwise."""
    must(sys.executable, "-m", "venv", folder)
    python = folder / "bin/python"
    install = ["-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-deps"]
    pins = HERE / f"{environment.name}.txt"
    must(python, *install, "--only-binary=:all:", "--no-compile", "--requirement", pins)
    if environment.sees_torch:
        (packages,) = folder.glob("lib/python3*/site-packages")
        torch = TORCH / packages.relative_to(folder)
        (packages / "torch.pth").write_text(f"{torch.resolve()}\n")
    return python


def save_model(path: Path, kind: str) -> None:
    """Writes model.onnx of docs/onnxruntime.md: attention, or a Where in bf16.

    The model in bf16 has no attention, because ONNX Runtime has no bf16 MatMul.
    """
    element, shape = ONNX_TYPES[kind], [2, 4, 128, 32]
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in "qkv"]
    inputs.append(helper.make_tensor_value_info("mask", TensorProto.BOOL, [128, 128]))
    constant = helper.make_tensor("low", element, [], [-60000.0 if kind != "bf16" else 0.0])
    nodes = [helper.make_node("Cast", [name], [f"{name}_"], to=element) for name in "qkv"]
    if kind == "bf16":
        shape = [2, 4, 128, 128]
        inputs[0] = helper.make_tensor_value_info("q", TensorProto.FLOAT, shape)
        nodes = [nodes[0], helper.make_node("Where", ["mask", "q_", "low"], ["z_"])]
        inputs = [inputs[0], inputs[3]]
    else:
        nodes += [
            helper.make_node("Transpose", ["k_"], ["kt"], perm=[0, 1, 3, 2]),
            helper.make_node("MatMul", ["q_", "kt"], ["scores"]),
            helper.make_node("Where", ["mask", "scores", "low"], ["masked"]),
            helper.make_node("Softmax", ["masked"], ["weights"], axis=-1),
            helper.make_node("MatMul", ["weights", "v_"], ["z_"]),
        ]
    nodes.append(helper.make_node("Cast", ["z_"], ["z"], to=TensorProto.FLOAT))
    output = helper.make_tensor_value_info("z", TensorProto.FLOAT, shape)
    graph = helper.make_graph(nodes, "attention", inputs, [output], [constant])
    opset = helper.make_opsetid("", 17)
    model = helper.make_model(graph, opset_imports=[opset], ir_version=10)
    path.write_bytes(model.SerializeToString())


def place(folder: Path, wheels: Path, kind: str) -> Path:
    """Creates a reader's folder, with the wheels, a model and a program."""
    folder.mkdir()
    (folder / "dist").symlink_to(wheels.resolve())
    program = folder / "your-program"
    program.write_text("#!/bin/sh\nexec true\n")
    program.chmod(0o755)
    save_model(folder / "model.onnx", kind)
    return folder


def try_out(environment: Environment, wheels: Path) -> bool:
    folder = WORK / environment.name
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    python = make(environment, folder)
    passed = True
    for kind in environment.types:
        reader_folder = place(folder / kind, wheels, kind)
        page = HERE / "page.py"
        ran = run(
            python, "-B", page, environment.context, kind, *environment.pages, cwd=reader_folder
        )
        print(ran.stdout, end="", flush=True)
        passed = passed and ran.returncode == 0
    if passed:
        shutil.rmtree(folder)
    return passed


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/plain", description=__doc__)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--wheels", type=Path, default=ROOT / "dist")
    parser.add_argument("environments", nargs="*", metavar="ENVIRONMENT")
    arguments = parser.parse_args()
    failed = []
    known = {environment.name for environment in ENVIRONMENTS}
    if unknown := set(arguments.environments) - known:
        parser.error(f"no environment {', '.join(unknown)}; there are {', '.join(known)}")
    for environment in ENVIRONMENTS:
        if arguments.environments and environment.name not in arguments.environments:
            continue
        if arguments.short and not environment.is_newest:
            continue
        start = time.monotonic()
        passed = try_out(environment, arguments.wheels)
        failed += [] if passed else [environment.name]
        verdict = "passed" if passed else "FAILED"
        seconds = time.monotonic() - start
        print(f"scripts/plain: {environment.name}: {verdict} ({seconds:.0f} s)", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
