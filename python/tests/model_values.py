"""Computes each value of a model's graph twice in f64: "exact" and "shaken". For shaken values,
each operator that rounds adds random noise, as large as one rounding error of the model's type.

The difference between exact and shaken values bounds the difference between two correct runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from arrays import Array
from onnx import NodeProto, TensorProto, helper

F32, F16, F64 = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE
BOOL, I64 = TensorProto.BOOL, TensorProto.INT64
Pair = tuple[Array, Array]
Values = dict[str, Pair]
UNITS = {F32: 2.0**-24, F16: 2.0**-11}
LEAST_WEIGHT = 2.0**-120  # a runtime may compute a smaller weight as 0
# If a Softmax sums this many weights, the order of summation may change the sum by one rounding
# error.
SUMMED_EXACTLY = 4096
LEAST = {F32: 2.0**-149, F16: 2.0**-24}
LARGEST = {F32: (2 - 2.0**-23) * 2.0**127, F16: 65504.0}


def soft_max(x: Array, axis: int = -1) -> Array:
    weights = np.exp(x - x.max(axis, keepdims=True, initial=-np.inf))
    return np.asarray(weights / weights.sum(axis, keepdims=True))


def soft_max_from_axis(x: Array, axis: int = 1) -> Array:
    """Computes a Softmax over all dimensions from the axis on, as before opset 13."""
    if not -x.ndim <= axis <= x.ndim:
        raise ValueError(axis)
    rows = math.prod(x.shape[: axis % x.ndim if axis < x.ndim else axis])
    return soft_max(x.reshape(rows, math.prod(x.shape) // max(rows, 1)), -1).reshape(x.shape)


def cast(x: Array, to: int) -> Array:
    if to == F16:
        return x.astype(np.float16).astype(np.float64)
    if to == I64 and x.dtype.kind == "f":
        x = np.nan_to_num(x, posinf=0, neginf=0)
    return x.astype({F32: float, F64: float, BOOL: bool, I64: np.int64}[to])


def reshape(x: Array, shape: Array) -> Array:
    return x.reshape([x.shape[d] if n == 0 else int(n) for d, n in enumerate(shape)])


def expand(x: Array, shape: Array) -> Array:
    return np.broadcast_to(x, np.broadcast_shapes(x.shape, tuple(int(n) for n in shape)))


def take(x: Array, starts: Any, ends: Any, axes: Any = None, steps: Any = None) -> Array:
    whole = [slice(None)] * x.ndim
    for i, axis in enumerate(range(len(starts)) if axes is None else axes):
        whole[int(axis)] = slice(int(starts[i]), int(ends[i]), None if steps is None else steps[i])
    return x[tuple(whole)]


def clip(x: Array, least: Any = None, most: Any = None, **attributes: float) -> Array:
    least, most = attributes.get("min", least), attributes.get("max", most)
    x = x if least is None else np.maximum(x, least)
    return x if most is None else np.minimum(x, most)


def reduce_max(x: Array, axes: Any = None, keepdims: int = 1) -> Array:
    along = None if axes is None else tuple(int(axis) for axis in axes)
    return np.asarray(x.max(along, keepdims=keepdims != 0, initial=-np.inf))


RULES: dict[str, Callable[..., Any]] = {
    "Add": np.add,
    "And": np.logical_and,
    "Cast": cast,
    "Clip": clip,
    "Concat": lambda *arrays, axis: np.concatenate(arrays, axis),
    "Div": np.divide,
    "Equal": np.equal,
    "Expand": expand,
    "Greater": np.greater,
    "Identity": np.array,
    "IsNaN": np.isnan,
    "Less": np.less,
    "MatMul": np.matmul,
    "Max": np.maximum,
    "Min": np.minimum,
    "Mul": np.multiply,
    "Neg": np.negative,
    "Not": np.logical_not,
    "ReduceMax": reduce_max,
    "Reshape": reshape,
    "Slice": take,
    "Sub": np.subtract,
    "Tanh": np.tanh,
    "LeakyRelu": lambda x, alpha=0.01: np.where(x >= 0, x, alpha * x),
    "Transpose": lambda x, perm=None: np.transpose(x, perm),
    "Unsqueeze": lambda x, axes: np.expand_dims(x, tuple(int(axis) for axis in axes)),
    "Where": np.where,
}
# Operators whose f32 results differ between ONNX Runtime, OpenVINO and Maskwise.
ROUNDING = ("Div", "LeakyRelu", "MatMul", "Mul", "Softmax", "Tanh")
# In f32, every runtime computes the same sum of the same two values. If an input differs, the sum's
# rounding may be much larger than the input's difference. In f16, a runtime may round before or
# after a sum.
SUMS = ("Add", "Sub")


@dataclass
class Evaluator:
    opset: int
    element: int
    random: np.random.Generator

    def run(self, nodes: Iterable[NodeProto], values: Values) -> None:
        for node in nodes:
            values.update(zip(node.output, self.outputs(node, values), strict=True))

    def outputs(self, node: NodeProto, values: Values) -> list[Pair]:
        """Raises one of NumPy's exceptions if NumPy cannot run the node."""
        attributes = {one.name: helper.get_attribute_value(one) for one in node.attribute}
        inputs = [values[name] if name else None for name in node.input]
        if node.op_type in ("If", "Loop", "Scan"):
            runner = {"If": self.branch, "Loop": self.loop, "Scan": self.scan}[node.op_type]
            return runner(inputs, values, **attributes)
        rule = RULES.get(node.op_type) or (soft_max if self.opset >= 13 else soft_max_from_axis)
        with np.errstate(all="ignore"):
            exact, shaken = (
                np.asarray(rule(*(one and one[side] for one in inputs), **attributes))
                for side in (0, 1)
            )
            return [(exact, self.shake(node.op_type, exact, shaken, inputs, attributes))]

    def shake(
        self, kind: str, exact: Array, x: Array, inputs: list[Any], attributes: dict[str, Any]
    ) -> Array:
        to = attributes.get("to")
        element = F16 if to == F16 else self.element
        are_rounded = any(one is not None and one[0] is not one[1] for one in inputs)
        rounding = (*ROUNDING, *SUMS) if element == F16 or are_rounded else ROUNDING
        if x.dtype.kind != "f" or (kind not in rounding and to != F16):
            return exact if np.array_equal(exact, x, equal_nan=x.dtype.kind == "f") else x
        scale = abs(x)
        if kind == "MatMul":
            scale = np.matmul(*(abs(one[0]) for one in inputs))
            # A runtime may compute a tiny weight as 0. Infinity times this weight is then NaN.
            x = np.where(np.isfinite(x), x, np.where(np.isnan(exact), 0, np.nan))
        signs = self.random.choice([-1.0, 1.0], x.shape)
        least = LEAST[element]
        if kind == "Softmax":
            least = max(least, LEAST_WEIGHT)
            scale = scale * (1 + self.row_size(x.shape, **attributes) / SUMMED_EXACTLY)
        noise = signs * (np.nan_to_num(scale, posinf=0) * UNITS[element] + least)
        return np.where(scale == 0, x, x + noise)

    def row_size(self, shape: tuple[int, ...], axis: int | None = None) -> int:
        """Returns the number of elements that one Softmax sums."""
        if self.opset >= 13:
            return shape[-1 if axis is None else axis]
        return math.prod(shape[1 if axis is None else axis :])

    def subgraph(self, graph: Any, arguments: Iterable[Pair], values: Values) -> list[Pair]:
        inner = {**values, **dict(zip((one.name for one in graph.input), arguments, strict=True))}
        self.run(graph.node, inner)
        return [inner[one.name] for one in graph.output]

    def branch(self, inputs: list[Any], values: Values, **branches: Any) -> list[Pair]:
        chosen = "then_branch" if inputs[0][0] else "else_branch"
        return self.subgraph(branches[chosen], [], values)

    def loop(self, inputs: list[Any], values: Values, body: Any) -> list[Pair]:
        count, go, *states = inputs
        for i in range(int(count[0]) if count else 4):
            turn = (np.array(i),) * 2
            go, *states = self.subgraph(body, [turn, go or (np.array(True),) * 2, *states], values)
            if not go[0]:
                break
        return states

    def scan(
        self, inputs: list[Any], values: Values, body: Any, num_scan_inputs: int
    ) -> list[Pair]:
        """Runs a Scan with one state and one input."""
        state, rows = inputs
        results = []
        for exact, shaken in zip(*rows, strict=True):
            state, row = self.subgraph(body, [state, (exact, shaken)], values)
            results.append(row)
        return [state, tuple(np.stack(side) for side in zip(*results, strict=True))]
