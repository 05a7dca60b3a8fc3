"""Builds a random model: its nodes, and the value of every tensor in f64."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from arrays import Array
from model_values import BOOL, F16, F32, F64, I64, Evaluator, Pair, Values
from onnx import NodeProto, helper, numpy_helper

DTYPES = {kind: helper.tensor_dtype_to_np_dtype(kind) for kind in (F32, F16, F64, BOOL, I64)}
COLUMNS = [1, 7, 32, 40, 64, 130, 260]
INDICES = [-(2**63), -(2**31) - 1, -7, -1, 0, 1, 2, 3, 7, 100_000, 2**31, 2**32, 2**63 - 1]
BOOLEAN_OPS = ("And", "Equal", "Greater", "IsNaN", "Less", "Not")
MOST_ELEMENTS = 140_000
LARGE = 260  # rows and columns: Maskwise leaves smaller results to OpenVINO
NOT_RUN = (IndexError, KeyError, OverflowError, TypeError, ValueError)  # NumPy cannot run the node


@dataclass(frozen=True)
class Value:
    name: str
    kind: int
    pair: Pair

    @property
    def shape(self) -> tuple[int, ...]:
        return self.pair[0].shape

    @property
    def is_exact(self) -> bool:
        return self.pair[0] is self.pair[1]


class Builder:
    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.opset = int(self.random.integers(9, 24))
        self.element = F16 if self.chance(0.3) else F32
        self.evaluator = Evaluator(self.opset, self.element, self.random)
        self.arrays: Values = {}
        self.values: list[Value] = []  # values that the next node may read
        self.nodes: list[NodeProto] = []
        self.inputs: list[Any] = []
        self.constants: list[Any] = []
        self.feeds: dict[str, Array] = {}
        self.results: list[Value] = []
        self.undeclared: set[str] = set()  # values whose shapes the model must not declare
        self.declared: set[str] = set()  # values whose shapes the model must declare
        # results of nodes that NumPy cannot run, and all values computed from them
        self.unknown: set[str] = set()
        self.counts = dict.fromkeys("cxv", 0)
        # Chances of unusual properties.
        self.disturbs = self.pick([0, 0, 0.05, 0.15])
        self.twists = self.pick([0, 0, 0, 0, 0, 0, 0.1, 0.2])
        self.declares_inner = self.pick([0, 0, 0.3, 1.0])
        self.declares_wrong = self.pick([0, 0, 0, 0, 0, 0, 0.05])
        # How the model declares the shapes of inputs, and of other values.
        self.declares = [
            self.pick(["static", "open", "named", "mixed"] * 2 + ["none"]) for _ in "iv"
        ]

    def chance(self, share: float) -> bool:
        return bool(self.random.random() < share)

    def pick(self, options: Sequence[Any]) -> Any:
        return options[int(self.random.integers(len(options)))]

    # Values

    def register(self, name: str, kind: int, pair: Pair) -> Value:
        self.arrays[name] = pair
        self.values.append(Value(name, kind, pair))
        return self.values[-1]

    def fresh(self, prefix: str) -> str:
        self.counts[prefix] += 1
        return f"{prefix}{self.counts[prefix]}"

    def extents(self, rank: int) -> tuple[int, ...]:
        shape: list[int] = []
        for d in range(rank):
            extent = self.pick(COLUMNS) if d == rank - 1 else self.pick([1, 1, 2, 3, 5, 9])
            shape.append(0 if self.chance(0.01) else extent)
        if self.chance(0.05):
            shape = [*[1] * (rank - 2), *[LARGE] * min(rank, 2)]
        while math.prod(shape) > LARGE * LARGE:
            shape[shape.index(max(shape))] = 2
        return tuple(shape)

    def content(self, shape: Sequence[int], kind: int) -> Array:
        if kind == BOOL:
            return np.asarray(self.random.random(shape) < self.pick([0, 0.5, 0.7, 0.7, 1]))
        if kind == I64:
            return np.asarray(self.random.integers(-3, 4, shape))
        x = np.asarray(self.random.standard_normal(shape) * self.pick([1, 1, 1, 4, 300]))
        if self.chance(0.1) and x.size > 2:
            x.reshape(-1)[[0, x.size // 3, 2 * x.size // 3]] = np.nan, np.inf, -np.inf
        return x.astype(DTYPES[kind])

    def add_value(self, array: Array, kind: int, is_constant: bool) -> Value:
        """Adds an input, an initializer, or an initializer that is also an input."""
        name = self.fresh("c" if is_constant else "x")
        if is_constant:
            self.constants.append(numpy_helper.from_array(array, name))
        else:
            self.feeds[name] = array
        wide = array.astype(float) if array.dtype.kind == "f" else array
        value = self.register(name, kind, (wide, wide))
        if not is_constant or self.chance(0.05):
            self.inputs.append(value)
        return value

    def draw(self, shape: Sequence[int], kind: int) -> Value:
        """Returns an earlier value of this shape, or a new value."""
        same = [one for one in self.values if one.kind == kind and one.shape == tuple(shape)]
        if same and self.chance(0.3):
            return self.pick(same)
        return self.add_value(self.content(shape, kind), kind, self.chance(0.1))

    def number(self, options: Sequence[Any], kind: int | None = None, rank: int = 1) -> Value:
        kind = kind or self.element
        number = self.pick(options)
        if number == "lowest" or (kind == F16 and abs(number) > 65504 and self.chance(0.5)):
            number = np.finfo(DTYPES[kind]).min
        shape = self.pick([()] * 9 + [(1,) * rank, (1, 1, 1)[: 3 * rank]])
        with np.errstate(over="ignore"):
            array = np.full(shape, number).astype(DTYPES[kind])
        return self.add_value(array, kind, self.chance(0.93))

    def integers(self, numbers: Sequence[int]) -> Value:
        return self.add_value(np.array(numbers, np.int64), I64, self.chance(0.95))

    def broadcast(self, shape: tuple[int, ...], kind: int) -> Value:
        """Returns a value of a random shape that broadcasts to `shape`."""
        start = int(self.random.integers(0, len(shape) + 1)) if self.chance(0.5) else 0
        return self.draw([n if self.chance(0.8) else 1 for n in shape[start:]], kind)

    # Nodes

    def emit(self, op: str, *inputs: Value | None, **attributes: Any) -> Value:
        """Adds a node. Raises one of NOT_RUN if NumPy cannot run the node, and ValueError if its
        result is too large."""
        node = helper.make_node(
            op, [one.name if one else "" for one in inputs], [self.fresh("v")], **attributes
        )
        if op == "Softmax" or self.chance(0.5):
            node.name = node.output[0]
        node, pair = self.evaluated(node)
        if pair[0].size > MOST_ELEMENTS:
            raise ValueError(pair[0].shape)
        self.follow(node)
        return self.register(node.output[0], self.kind_of(op, inputs, attributes), pair)

    def kind_of(self, op: str, inputs: Sequence[Value | None], attributes: dict[str, Any]) -> int:
        if op in BOOLEAN_OPS:
            return BOOL
        if op == "If":
            return int(attributes["then_branch"].output[0].type.tensor_type.elem_type)
        first = inputs[{"Where": 1, "Loop": 2}.get(op, 0)]
        return int(attributes.get("to", first.kind if first else self.element))

    def evaluated(self, node: NodeProto) -> tuple[NodeProto, Pair]:
        """Returns the node and its result. May change an attribute, maybe to an invalid value."""
        (pair,) = self.evaluator.outputs(node, self.arrays)
        if not node.attribute or not self.chance(self.twists):
            return node, pair
        twisted = NodeProto()
        twisted.CopyFrom(node)
        attribute = self.pick(twisted.attribute)
        if attribute.type == onnx.AttributeProto.INT:
            attribute.i = self.pick(INDICES)
        elif attribute.ints:
            attribute.ints[self.pick([-1, 0])] = self.pick(INDICES)
        try:
            (other,) = self.evaluator.outputs(twisted, self.arrays)
            return (twisted, other) if attribute.name != "to" else (node, pair)
        except NOT_RUN:
            # A runtime may refuse the attribute, but not because of a declared shape.
            self.undeclared.update(node.input)
            self.declared.update(node.output)
            self.unknown.update(node.output)
            return twisted, pair

    def follow(self, node: NodeProto) -> None:
        self.nodes.append(node)
        inner = [name for one in node.attribute for body in one.g.node for name in body.output]
        if not self.unknown.isdisjoint([*node.input, *inner]):
            self.unknown.update(node.output)

    def inside(self, arguments: Sequence[Value], build: Callable[[], list[Value]]) -> Any:
        """Builds a subgraph, which may read values of the outer graph."""
        outside, visible = self.nodes, len(self.values)
        self.nodes = []
        self.values += arguments
        self.arrays.update((one.name, one.pair) for one in arguments)
        try:
            results = [self.emit("Identity", one) for one in build()]
            return helper.make_graph(
                self.nodes,
                "subgraph",
                [self.declare(one, self.pick(["open", "open", "none"])) for one in arguments],
                [self.declare(one, "none") for one in results],
            )
        finally:
            self.nodes = outside
            inner = self.values[visible:]
            self.values[visible:] = [one for one in inner if one.name[0] in "cx"]

    def declare(self, value: Value, mode: str) -> Any:
        if mode == "none":
            return helper.make_tensor_value_info(value.name, value.kind, None)
        forms: dict[str, Callable[[int], Any]] = {
            "static": lambda n: n,
            "open": lambda _: None,
            "named": lambda n: f"n{n}",
        }
        forms["mixed"] = lambda n: forms[self.pick(["static", "open", "named"])](n)
        shape = [forms[mode](n) for n in value.shape]
        if self.chance(self.declares_wrong):
            shape = self.pick([[*shape, 1], shape[1:], [self.pick([0, 1, 7]), *shape[1:]]])
        return helper.make_tensor_value_info(value.name, value.kind, shape)

    def mode(self, dimension: int) -> str:
        return (
            self.pick(["static", "open", "mixed"]) if self.chance(0.2) else self.declares[dimension]
        )
