"""Functions of the reports on models: read arguments, draw inputs and compare runs."""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

import maskwise

# Default extents of dynamic dimensions. BATCH: first dimension of an input of rank 2 or more. LONG:
# other dimensions; makes masks large enough for Maskwise.
BATCH, LONG = 1, 128
# Tolerances relative to the largest element, by element size in bytes. Maskwise and the host round
# sums and exponentials differently.
TOLERANCES = {2: 2e-2, 4: 1e-3, 8: 1e-3}

Port = tuple[str, str, list[int | str]]  # name, NumPy's type name, extents or their names
Extents = dict[str, int]
Run = Callable[[], list[Any]]  # outputs of a model


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


def make_parser(module: str, description: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=description)
    parser.add_argument("model")
    parser.add_argument(
        "--dim",
        action="append",
        type=extent_of,
        default=[],
        metavar="NAME=EXTENT",
        help="extent of the dynamic dimension that the report calls NAME (default: "
        f"{BATCH} for the first dimension of an input of rank 2 or more, {LONG} for others)",
    )
    parser.add_argument("--threads", type=count, default=0, help="number of threads (default: all)")
    parser.add_argument("--turns", type=turns, default=15, help="timed pairs of runs (default: 15)")
    return parser


def parsed(parser: argparse.ArgumentParser, arguments: list[str] | None) -> argparse.Namespace:
    options = parser.parse_args(arguments)
    try:
        maskwise.instruction_set()
    except ValueError as failure:  # MASKWISE_MAX_ISA has an unknown value
        parser.error(str(failure))
    return options


def first_line(failure: BaseException) -> str:
    return (str(failure).splitlines() or [type(failure).__name__])[0]


def open_extents(parser: argparse.ArgumentParser, ports: list[Port], options: Extents) -> Extents:
    """Returns and prints each dynamic dimension's extent, from the options or the default. Exits if
    the options name a dimension that the model does not have."""
    assumed: Extents = {}
    for _, _, dims in ports:
        for axis, dim in enumerate(dims):
            if isinstance(dim, str):
                assumed.setdefault(dim, BATCH if axis == 0 and len(dims) > 1 else LONG)
    for name in options.keys() - assumed.keys():
        has = f"it has {', '.join(sorted(assumed))}" if assumed else "its extents are all fixed"
        parser.error(f"argument --dim: the model has no dimension {name!r}, {has}")
    lines = {
        "given extents": [f"{name}={extent}" for name, extent in options.items()],
        "assumed extents": [
            f"{name}={axis}" for name, axis in assumed.items() if name not in options
        ],
    }
    for name, shown in lines.items():
        if shown:
            print(f"{name:<20}  {', '.join(shown)}")
    return {**assumed, **options}


def draw_inputs(ports: list[Port], extents: Extents) -> dict[str, Any]:
    """Returns random inputs with a fixed seed, and prints their shapes. Integers are 0 or 1,
    because they may be indices."""
    random = np.random.default_rng(0)
    inputs: dict[str, Any] = {}
    for name, kind, dims in ports:
        shape = [extents[dim] if isinstance(dim, str) else dim for dim in dims]
        if kind == "object":
            inputs[name] = np.full(shape, "text", object)
        elif kind.startswith("float"):
            inputs[name] = random.standard_normal(shape).astype(kind)
        else:
            inputs[name] = random.integers(0, 2, shape).astype(kind)
    shapes = ", ".join(f"{name} {list(array.shape)}" for name, array in inputs.items())
    print(f"inputs                {shapes}")
    return inputs


def print_claims(nodes: Iterable[tuple[str, str, bool]], other: str) -> None:
    """Prints which nodes Maskwise runs. `nodes`: operator, name, and whether Maskwise runs it."""
    nodes = [(kind, name or "(no name)", is_ours) for kind, name, is_ours in nodes]
    width = max((len(name) for _, name, _ in nodes), default=0)
    kind_width = max((len(kind) for kind, _, _ in nodes), default=0)
    for kind, name, is_ours in nodes:
        print(f"{kind:<{max(kind_width, 7)}}  {name:<{width}}  {'Maskwise' if is_ours else other}")
    for kind in sorted({kind for kind, _, _ in nodes}, reverse=True):
        owners = [is_ours for one, _, is_ours in nodes if one == kind]
        print(f"{sum(owners)} of {len(owners)} {kind} by Maskwise")
    if not nodes:
        print("nothing for Maskwise: no Where, Select, Softmax or attention")
    print("the reasons are on standard error")


def seconds(run: Run) -> float:
    begin = time.perf_counter()
    run()
    return time.perf_counter() - begin


def print_runs(other: str, with_it: Run, without: Run, turns: int, rounds: float = 0) -> bool:
    """Times both runs alternately, and prints whether their results agree. `rounds`: tolerance
    relative to the largest element, for a host that computes in fewer bits than its results.
    """
    got, expected = with_it(), without()
    pairs = [(seconds(with_it), seconds(without)) for _ in range(turns + 1)]
    ours, theirs = (statistics.median(column) for column in zip(*pairs[1:], strict=True))
    print(f"{other:<20}  {theirs * 1e3:.3f} ms")
    print(f"with Maskwise         {ours * 1e3:.3f} ms, {theirs / ours:.2f} times as fast")
    apart = [difference(*pair) for pair in zip(got, expected, strict=True)]
    agrees = all(is_rounding(*pair, rounds) for pair in zip(apart, expected, strict=True))
    most = f"; largest difference {max(apart):.2g}" if any(apart) else ""
    print(f"results               {'agree' if agrees else 'DIFFER'}{most or ' to the bit'}")
    return agrees


def difference(got: Any, expected: Any) -> float:
    """Returns the largest difference of corresponding elements. Infinite if only one of two
    elements is NaN, or if shapes, dtypes or elements that are not floats differ."""
    got, expected = np.asarray(got), np.asarray(expected)
    if got.shape != expected.shape or got.dtype != expected.dtype:
        return np.inf
    if got.dtype.kind != "f":
        return 0.0 if np.array_equal(got, expected) else np.inf
    is_same = (got == expected) | (np.isnan(got) & np.isnan(expected))
    with np.errstate(invalid="ignore"):
        apart = np.abs(got.astype("d") - expected.astype("d"))[~is_same]
    return float(np.where(np.isnan(apart), np.inf, apart).max(initial=0))


def is_rounding(apart: float, expected: Any, rounds: float) -> bool:
    expected = np.asarray(expected)
    if apart == 0 or expected.dtype.kind != "f":
        return apart == 0
    most = np.abs(expected[np.isfinite(expected)].astype("d")).max(initial=0)
    return bool(apart <= max(TOLERANCES[expected.dtype.itemsize], rounds) * most)
