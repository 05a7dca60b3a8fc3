"""What Maskwise runs of an ONNX model in ONNX Runtime, and the time with and without."""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

import numpy as np
import onnxruntime as ort  # type: ignore[import-untyped, unused-ignore]

import maskwise.onnxruntime

NAMES = {
    "tensor(float)": "float32",
    "tensor(double)": "float64",
    "tensor(float16)": "float16",
    "tensor(bool)": "bool",
    "tensor(string)": "object",
}
Inputs = dict[str, Any]


def extent_of(text: str) -> tuple[str, int]:
    name, _, extent = text.rpartition("=")
    if not (name and extent.isascii() and extent.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r}, expected NAME=EXTENT, such as batch=8")
    return name, int(extent)


def count(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r}, expected an integer of 0 or more")
    return int(text)


def turns(text: str) -> int:
    if count(text) == 0:
        raise argparse.ArgumentTypeError("0, expected one or more")
    return int(text)


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m maskwise.onnxruntime", description=__doc__)
    parser.add_argument("model")
    parser.add_argument(
        "--dim",
        action="append",
        type=extent_of,
        default=[],
        metavar="NAME=EXTENT",
        help="a dimension that the model leaves open, by its name (default: 8)",
    )
    parser.add_argument("--threads", type=count, default=0, help="of a session (default: all)")
    parser.add_argument("--turns", type=turns, default=15, help="runs of each (default: 15)")
    return parser


PARSER = make_parser()


def options_of(threads: int) -> Any:
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    return options


def made_up(session: Any, extents: dict[str, int]) -> Inputs:
    """Numbers of a fixed seed; 0 and 1 where integers may be indices."""
    random = np.random.default_rng(0)
    inputs: Inputs = {}
    for one in session.get_inputs():
        name = NAMES.get(one.type, one.type.removeprefix("tensor(").removesuffix(")"))
        shape = [dim if isinstance(dim, int) else extents.get(dim, 8) for dim in one.shape]
        if name == "object":
            inputs[one.name] = np.full(shape, "text", object)
        elif name.startswith("float"):
            inputs[one.name] = random.standard_normal(shape).astype(name)
        else:
            inputs[one.name] = random.integers(0, 2, shape).astype(name)
    return inputs


def seconds(session: Any, inputs: Inputs) -> float:
    begin = time.perf_counter()
    session.run(None, inputs)
    return time.perf_counter() - begin


def print_claims(session: Any) -> None:
    """A Softmax of Maskwise's is one node with those around it."""
    nodes = [
        (node.op_type, node.name or "(no name)", group.ep_name)
        for group in session.get_provider_graph_assignment_info()
        for node in group.get_nodes()
        if node.op_type in ("Where", "Softmax")
    ]
    width = max((len(name) for _, name, _ in nodes), default=0)
    for kind, name, provider in nodes:
        print(f"{kind:<7}  {name:<{width}}  {provider}")
    for kind in ("Where", "Softmax"):
        owners = [provider for one, _, provider in nodes if one == kind]
        claimed = owners.count(maskwise.onnxruntime.PROVIDER)
        if owners or kind == "Where":
            print(f"{claimed} of {len(owners)} {kind} by Maskwise")
    print("what is claimed with them, and the reasons, are on standard error")


def print_times(with_it: Any, without: Any, inputs: Inputs, turns: int) -> None:
    pairs = [(seconds(with_it, inputs), seconds(without, inputs)) for _ in range(turns + 2)]
    ours, theirs = (statistics.median(column) for column in zip(*pairs[2:], strict=True))
    shapes = ", ".join(f"{name} {list(array.shape)}" for name, array in inputs.items())
    print(f"inputs                {shapes}")
    print(f"ONNX Runtime          {theirs * 1e3:.3f} ms")
    print(f"with Maskwise         {ours * 1e3:.3f} ms, {theirs / ours:.2f} times as fast")


def check_names(session: Any, given: dict[str, int]) -> None:
    """Ends the process where the model has no dimension of a given name."""
    names = {dim for one in session.get_inputs() for dim in one.shape if isinstance(dim, str)}
    for name in given.keys() - names:
        has = f"it has {', '.join(sorted(names))}" if names else "its extents are all given"
        PARSER.error(f"argument --dim: the model has no dimension {name!r}, {has}")


def made_session(given: argparse.Namespace) -> Any:
    options = options_of(given.threads)
    options.add_session_config_entry("maskwise.verbose", "1")
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    try:
        return maskwise.onnxruntime.session(given.model, options)
    except (OSError, ValueError) as failure:
        PARSER.error(str(failure))
    except Exception as failure:  # its classes are private
        PARSER.exit(
            1, f"{PARSER.prog}: ONNX Runtime refuses {given.model}: {first_line(failure)}\n"
        )


def first_line(failure: Exception) -> str:
    return (str(failure).splitlines() or [type(failure).__name__])[0]


def main(arguments: list[str] | None = None) -> int:
    given = PARSER.parse_args(arguments)
    try:
        maskwise.instruction_set()
    except ValueError as failure:  # of MASKWISE_MAX_ISA
        PARSER.error(str(failure))
    with_it = made_session(given)
    extents = dict(given.dim)
    check_names(with_it, extents)
    print_claims(with_it)
    try:
        without = ort.InferenceSession(
            given.model, options_of(given.threads), providers=["CPUExecutionProvider"]
        )
    except ort.capi.onnxruntime_pybind11_state.NotImplemented as failure:
        print(f"ONNX Runtime alone does not run it: {first_line(failure)}")
        return 0
    try:
        print_times(with_it, without, made_up(with_it, extents), given.turns)
    except Exception as failure:  # its classes are private
        print(f"the made-up inputs do not fit, --dim may help: {first_line(failure)}")
        return 1
    return 0
