"""Random ONNX models around Where, Softmax and attention. Many are patterns that Maskwise claims,
with one or two distortions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from arrays import Array
from fused_models import STEPS
from model_builder import NOT_RUN, Builder, Value
from model_values import BOOL, F16, F32, F64, I64, Pair
from onnx import helper

USUAL = [
    ["keep"],
    ["mul", "keep"],
    ["div", "mask"],
    ["mul_reversed", "add"],
    ["div", "keep", "add_reversed"],
    ["add"],
    ["div", "tanh", "mul", "add"],
]
FILLS = [-np.inf, -np.inf, -1e4, -1e9, -1e30, 0.0, "lowest", np.nan, 1.0]
SCALES = [0.125, 8.0, 1.0, 1e-3, -0.5, 300.0]
SLOPES = [0.1, 1.5, -0.5, 0.0, -0.0, np.inf, np.nan]


@dataclass(frozen=True)
class Case:
    model: bytes
    element: int
    feeds: dict[str, Array]
    outputs: dict[str, Pair | None]  # None if NumPy cannot compute the value


class Generator(Builder):
    def by_version(self, op: str, since: int, x: Value, **lists: Sequence[int]) -> Value:
        """Emits a node whose attributes are inputs since opset `since`."""
        if self.opset < since:
            return self.emit(op, x, **lists)
        return self.emit(op, x, *(self.integers(numbers) for numbers in lists.values()))

    def softmax(self, x: Value) -> Value:
        rank = max(len(x.shape), 1)
        axis = self.pick([-1, -1, -1, rank - 1])
        if self.opset < 13 and self.chance(0.9):
            axis = rank - 1
        elif self.chance(0.05):
            axis = int(self.random.integers(-rank, rank))
        if self.chance(0.05) and self.opset >= 13:
            return self.emit("Softmax", x)
        return self.emit("Softmax", x, axis=axis)

    def transpose(self, x: Value, order: Sequence[int] | None = None) -> Value:
        if order is None and self.chance(0.2):
            return self.emit("Transpose", x)
        drawn = self.random.permutation(len(x.shape)) if order is None else order
        return self.emit("Transpose", x, perm=[int(d) for d in drawn])

    def step(self, name: str, row: Value) -> Value:
        """Adds a step of fused_models.STEPS."""
        op, forms = STEPS[name]
        others: dict[str, Callable[[], Value]] = {
            "": lambda: row,
            "c": lambda: self.broadcast(row.shape, BOOL),
            "bias": lambda: self.broadcast(row.shape, row.kind),
            "fill": lambda: self.number(FILLS, row.kind),
        }
        numbers = {"alpha": self.pick(SLOPES)} if op == "LeakyRelu" and self.chance(0.5) else {}
        drawn = (others.get(form, lambda: self.number(SCALES, row.kind))() for form in forms)
        return self.emit(op, *drawn, **numbers)

    # Patterns that Maskwise claims.

    def masked_softmax(self, row: Value) -> Value:
        some = [self.pick(list(STEPS)) for _ in range(self.pick([1, 2, 3, 4]))]
        for name in self.pick([*USUAL, some, some]):
            row = self.disturb(self.step(name, row))
        weights = self.softmax(row)
        if not self.chance(0.35):
            return self.disturb(weights)
        asks = self.emit("IsNaN", weights)
        zero = self.number([0.0] * 6 + [1.0, -0.0], weights.kind)
        sides = (zero, weights) if self.chance(0.95) else (weights, zero)
        return self.disturb(self.emit("Where", asks, *sides))

    def laid_out(self, shape: Sequence[int]) -> Value:
        """Returns a value of this shape, perhaps computed by a Transpose."""
        rank = len(shape)
        order = list(range(rank))
        kind = self.pick(["as is", "as is", "transposed", "heads", "any"])
        if kind == "as is":
            return self.draw(shape, self.element)
        if kind == "transposed":
            order[-2:] = order[:-3:-1]
        elif kind == "heads" and rank > 2:
            order[-3:-1] = order[-2:-4:-1]
        else:
            self.random.shuffle(order)
        x = self.draw([shape[d] for d in np.argsort(order)], self.element)
        return self.disturb(self.transpose(x, order))

    def scaled(self, x: Value) -> Value:
        if not self.chance(0.3):
            return x
        return self.disturb(self.step(self.pick(["mul", "mul_reversed", "div"]), x))

    def attention(self) -> Value:
        outer = self.extents(int(self.random.integers(0, 4)))
        outer = (*outer[:-1], *(min(n, 3) for n in outer[-1:]))
        rows, keys = self.pick([0, 1, 3, 9, 20]), self.pick([1, 9, 40, 70, 130])
        depth, depth_out = self.pick([1, 8, 16, 64]), self.pick([1, 8, 16])
        fewer = tuple(1 if self.chance(0.15) else n for n in outer)
        shapes = ((*outer, rows, depth), (*fewer, depth, keys), (*fewer, keys, depth_out))
        query, key = (self.scaled(self.laid_out(shape)) for shape in shapes[:2])
        scores = self.disturb(self.emit("MatMul", query, key))
        weights = self.masked_softmax(scores)
        product = self.emit("MatMul", weights, self.laid_out(shapes[2]))
        return self.transpose(product) if self.chance(0.4) else product

    def rows(self) -> Value:
        shape = self.extents(self.pick([0, *range(1, 7), 2, 3, 4, 4]))
        return self.masked_softmax(self.draw(shape, self.element))

    def where(self) -> Value:
        """Adds a Where that broadcasts, perhaps between arithmetic operators."""
        shape = self.extents(int(self.random.integers(0, 7)))
        kind = self.pick([self.element, self.element, self.element, I64, F64])
        x = self.draw(shape, kind)
        if kind == self.element and self.chance(0.5):
            x = self.disturb(self.step(self.pick(["mul", "add", "sub"]), x))
        x = self.emit("Mul", x, x) if self.chance(0.1) else x
        sides = [x, self.broadcast(shape, kind) if kind == I64 else self.number(FILLS, kind)]
        self.random.shuffle(sides)  # type: ignore[arg-type]
        value = self.emit("Where", self.broadcast(shape, BOOL), *sides)
        if kind == self.element and self.chance(0.5):
            value = self.step(self.pick(["mul", "div", "add"]), self.disturb(value))
        return value

    # Other patterns.

    def disturb(self, x: Value) -> Value:
        if not self.chance(self.disturbs):
            return x
        kind = self.pick(["leaves", "reader", "branch", "there and back", "any", "any"])
        if kind == "leaves":
            self.results.append(x)
        elif kind == "reader":
            self.emit(self.pick(["Identity", "Neg", "Tanh"]), x)
        elif kind == "branch":
            self.if_(x)
        elif kind == "there and back":
            order = self.random.permutation(len(x.shape))
            return self.transpose(self.transpose(x, order), np.argsort(order))
        else:
            return self.unary(x, keeps=self.chance(0.7))
        return x

    def unary(self, x: Value, keeps: bool = False) -> Value:
        rank = len(x.shape)
        axis = int(self.random.integers(-rank, rank)) if rank else 0
        same: list[Callable[[], Value]] = [
            lambda: self.emit("Identity", x),
            lambda: self.emit("Cast", self.emit("Cast", x, to=self.pick([F32, F16])), to=x.kind),
            lambda: self.emit("Cast", x, to=x.kind),
            lambda: self.emit("Reshape", x, self.integers(x.shape)),
            lambda: self.emit("Expand", x, self.integers(x.shape[1:])),
            lambda: self.clip(x),
        ]
        other: list[Callable[[], Value]] = [
            lambda: self.transpose(x),
            lambda: self.softmax(x),
            lambda: self.emit("Reshape", x, self.integers(self.pick([[-1], [1, -1], [0, -1]]))),
            lambda: self.by_version("Unsqueeze", 13, x, axes=[axis]),
            lambda: self.cut(x, axis),
            lambda: self.emit("Concat", x, x, axis=axis),
            lambda: self.by_version("ReduceMax", 18, x, axes=[axis]),
            lambda: self.emit(self.pick(["Tanh", "LeakyRelu", "Neg"]), x),
        ]
        return self.pick(same if keeps else other)()

    def clip(self, x: Value) -> Value:
        if self.opset < 11:
            return self.emit("Clip", x, **self.pick([{}, {"min": -1.0}, {"min": -2.0, "max": 3.0}]))
        bounds = [self.number([n], x.kind, 0) if self.chance(0.5) else None for n in (-2.0, 3.0)]
        return self.emit("Clip", x, *bounds)

    def cut(self, x: Value, axis: int) -> Value:
        lists = {"starts": [self.pick([0, 1, -2])], "ends": [self.pick([2, 2**31, -1])]}
        if self.opset < 10:
            return self.emit("Slice", x, axes=[axis], **lists)
        inputs: list[Value | None] = [self.integers(numbers) for numbers in lists.values()]
        inputs += [self.integers([axis])] if x.shape and self.chance(0.8) else [None]
        return self.emit("Slice", x, *inputs, *([self.integers([1])] if self.chance(0.3) else []))

    def binary(self, x: Value) -> Value:
        op = self.pick(["Add", "Sub", "Mul", "Div", "Max", "Min", "MatMul", "Where"])
        other = self.broadcast(x.shape, x.kind)
        inputs = [x, other] if self.chance(0.5) else [other, x]
        if op == "Where":
            return self.emit(op, self.mask(x.shape), *inputs)
        if op == "MatMul":
            return self.emit(op, x, self.draw([*x.shape[-1:], 5], x.kind))
        return self.emit(op, *inputs)

    def mask(self, shape: tuple[int, ...]) -> Value:
        """Returns a boolean value. Compares only exact values, which no rounding changes."""
        kind = self.pick([self.element, I64])
        x = self.broadcast(shape, kind)
        if not x.is_exact:
            return self.broadcast(shape, BOOL)
        asked = self.emit(self.pick(["Equal", "Less", "Greater"]), x, self.number([0, 1], kind))
        if self.chance(0.3):
            asked = self.emit("Not", asked)
        return self.emit("And", asked, self.broadcast(shape, BOOL)) if self.chance(0.3) else asked

    def if_(self, x: Value) -> Value:
        """Adds an If whose two branches use the same value names."""
        branches: dict[str, Any] = {}
        before = self.counts["v"]
        for name in ("then_branch", "else_branch"):
            after, self.counts["v"] = self.counts["v"], before
            motif = self.pick([lambda: x, lambda: self.masked_softmax(x), lambda: self.unary(x)])
            branches[name] = self.inside([], lambda motif=motif: [motif()])
            self.counts["v"] = max(self.counts["v"], after)
        cond = self.add_value(np.array(self.chance(0.5)), BOOL, self.chance(0.2))
        return self.emit("If", cond, **branches)

    def turn(self, x: Value) -> Value:
        return self.masked_softmax(x) if self.chance(0.7) else self.unary(x, keeps=True)

    def loop(self, x: Value) -> Value:
        true = np.array(True)
        arguments = [
            Value(self.fresh("v"), I64, (np.array(0),) * 2),
            Value(self.fresh("v"), BOOL, (true, true)),
            Value(self.fresh("v"), x.kind, x.pair),
        ]
        body = self.inside(arguments, lambda: [arguments[1], self.turn(arguments[2])])
        count = self.add_value(np.array(self.pick([0, 1, 2, 3])), I64, self.chance(0.5))
        go = self.add_value(true, BOOL, self.chance(0.5)) if self.chance(0.3) else None
        return self.emit("Loop", count, go, x, body=body)

    def scan(self, x: Value) -> None:
        """Adds a Scan over the rows of a value. The state does not change."""
        if not x.shape or not x.shape[0]:
            return
        state = self.number(SCALES)
        arguments = [
            Value(self.fresh("v"), state.kind, state.pair),
            Value(self.fresh("v"), x.kind, tuple(side[0] for side in x.pair)),  # type: ignore[arg-type]
        ]
        body = self.inside(arguments, lambda: [arguments[0], self.turn(arguments[1])])
        names = [self.fresh("v"), self.fresh("v")]
        node = helper.make_node("Scan", [state.name, x.name], names, body=body, num_scan_inputs=1)
        pairs = self.evaluator.outputs(node, self.arrays)
        self.follow(node)
        for name, one, pair in zip(names, (state, x), pairs, strict=True):
            self.results.append(self.register(name, one.kind, pair))

    # The whole model.

    def grow(self) -> None:
        motifs = [self.attention, self.attention, self.rows, self.rows, self.where]
        for _ in range(self.pick([1, 1, 1, 2, 3])):
            self.attempt(self.pick(motifs))
        for _ in range(self.pick([0, 0, 1, 3, 6])):
            floats = [one for one in self.values if one.kind == self.element]
            if floats:
                kinds = [self.unary, self.unary, self.binary, self.binary]
                kinds += [self.if_, self.loop, self.scan] if self.chance(0.4) else []
                self.attempt(self.pick(kinds), self.pick(floats))

    def attempt(self, build: Callable[..., Any], *arguments: Value) -> None:
        """Calls `build`, which adds nodes. Stops before the first node that NumPy cannot run."""
        with suppress(NOT_RUN):
            build(*arguments)

    def outputs(self) -> list[Value]:
        """Returns the model's outputs: most values without a consumer, and a few others. Rarely
        adds a value, which may repeat an output."""
        read = {name for node in self.nodes for name in node.input}
        produced = {name for node in self.nodes for name in node.output}
        inner = [one for one in self.values if one.name in produced]
        chosen = [one for one in inner if self.chance(0.03 if one.name in read else 0.8)]
        chosen += [one for one in self.results if one.name in produced]
        unique = list({one.name: one for one in chosen}.values()) or inner[-1:] or self.values[-1:]
        if self.chance(0.02):
            unique.append(self.pick(self.values if self.chance(0.5) else unique))
        return unique

    def case(self) -> Case:
        self.grow()
        outputs = self.outputs()
        produced = {name for node in self.nodes for name in node.output}
        inner = [one for one in self.values if one.name in produced and one not in outputs]
        declared = [
            one for one in inner if one.name in self.declared or self.chance(self.declares_inner)
        ]
        graph = helper.make_graph(
            self.nodes,
            "generated",
            [
                self.declare(one, "none" if one.name in self.undeclared else self.mode(0))
                for one in self.inputs
            ],
            [self.declare(one, self.pick(["none", "open", self.mode(1)])) for one in outputs],
            self.constants,
            value_info=[self.declare(one, self.mode(1)) for one in declared],
        )
        imports = [helper.make_opsetid("", self.opset)]
        model = helper.make_model(graph, opset_imports=imports, ir_version=10)
        pairs = {one.name: None if one.name in self.unknown else one.pair for one in outputs}
        return Case(bytes(model.SerializeToString()), self.element, self.feeds, pairs)


def generate(seed: int) -> Case:
    return Generator(seed).case()
