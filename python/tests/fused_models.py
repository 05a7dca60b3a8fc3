"""ONNX models of masked Softmax and of attention, and what they are in 64 bits."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import onnx
from arrays import Array
from onnx import TensorProto, helper, numpy_helper
from where_models import Shape, model_of, session_of, value

F32, F16, BOOL = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BOOL
DTYPES = {F32: np.dtype("f"), F16: np.dtype("e")}
# Of weights, which are 1 at most, and of means of normal numbers.
TOLERANCE = {F32: 2e-5, F16: 4e-3}
Node = onnx.NodeProto
Feeds = dict[str, Array]
# A step of a chain: its operator, where the row is among its inputs, and the other inputs.
STEPS: dict[str, tuple[str, Sequence[str]]] = {
    "mul": ("Mul", ["", "scale"]),
    "mul_turned": ("Mul", ["scale", ""]),
    "div": ("Div", ["", "root"]),
    "add": ("Add", ["", "bias"]),
    "add_turned": ("Add", ["bias", ""]),
    "sub": ("Sub", ["", "bias"]),
    "tanh": ("Tanh", [""]),
    "keep": ("Where", ["c", "", "fill"]),
    "mask": ("Where", ["c", "fill", ""]),
}


def soft_max(x: Array, axis: int = -1) -> Array:
    with np.errstate(invalid="ignore"):
        weights = np.exp(x - x.max(axis, keepdims=True, initial=-np.inf))
        return np.asarray(weights / weights.sum(axis, keepdims=True))


RULES: dict[str, Callable[..., Array]] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Div": np.divide,
    "Tanh": np.tanh,
    "Where": np.where,
    "IsNaN": np.isnan,
    "MatMul": np.matmul,
    "Softmax": soft_max,
    "Transpose": lambda x, perm=None: np.transpose(x, perm),
    "Identity": np.array,
}


def expected(nodes: Iterable[Node], feeds: Feeds, constants: Feeds) -> Feeds:
    """Every value of the graph, floats in 64 bits."""
    values = {
        name: array if array.dtype == bool else array.astype(np.float64)
        for name, array in {**feeds, **constants}.items()
    }
    for node in nodes:
        attributes = {one.name: helper.get_attribute_value(one) for one in node.attribute}
        with np.errstate(invalid="ignore"):
            values[node.output[0]] = RULES[node.op_type](
                *(values[name] for name in node.input), **attributes
            )
    return values


def chain(names: Sequence[str], row: str, result: str = "o", zeros: bool = False) -> list[Node]:
    """The steps over the row, a Softmax, and what makes 0 of its NaN."""
    nodes = []
    links = [row, *(f"{result}_{i}" for i in range(len(names)))]
    for name, (before, after) in zip(names, itertools.pairwise(links), strict=True):
        kind, inputs = STEPS[name]
        nodes.append(helper.make_node(kind, [one or before for one in inputs], [after]))
    weights = f"{result}_weights" if zeros else result
    nodes.append(helper.make_node("Softmax", [links[-1]], [weights], name="softmax", axis=-1))
    if zeros:
        nodes += [
            helper.make_node("IsNaN", [weights], [f"{result}_nan"]),
            helper.make_node("Where", [f"{result}_nan", "zero", weights], [result]),
        ]
    return nodes


def constants_of(element: int, fill: float = -np.inf) -> Feeds:
    numbers = {"scale": 0.125, "root": 8.0, "zero": 0.0, "fill": fill}
    return {name: np.array(number, DTYPES[element]) for name, number in numbers.items()}


def make_model(
    nodes: list[Node],
    feeds: Feeds,
    element: int,
    constants: Feeds,
    outputs: Sequence[str] = ("o",),
    shapes: dict[str, Shape | None] | None = None,
    opset: int = 17,
) -> bytes:
    """With inputs as in the feeds, or open where `shapes` has another shape for them."""
    inputs = [
        value(name, BOOL if array.dtype == bool else element, (shapes or {}).get(name, array.shape))
        for name, array in feeds.items()
    ]
    return model_of(
        nodes,
        inputs,
        [value(name, element, None) for name in outputs],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
        opset,
    )


def fused_session(model: bytes, capfd: Any, *claims: str, threads: int = 1) -> Any:
    """A session of which the claimed Softmaxes are these, as "rows f32 3 nodes"."""
    capfd.readouterr()
    session = session_of(model, threads, is_claimed=False, maskwise_verbose="1")
    lines = [line.split(",") for line in capfd.readouterr().err.splitlines()]
    found = [line[3] for line in lines if line[1] == "claim" and not line[3].startswith("Where")]
    assert found == list(claims), lines
    return session


def assert_close(got: Array, wanted: Array, element: int) -> None:
    assert got.shape == wanted.shape
    assert np.array_equal(np.isnan(got), np.isnan(wanted))
    np.testing.assert_allclose(got, wanted, rtol=0, atol=TOLERANCE[element])


def normal(random: np.random.Generator, shape: Sequence[int], element: int = F32) -> Array:
    return random.standard_normal(shape).astype(DTYPES[element])
