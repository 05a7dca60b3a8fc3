"""ONNX models of masked Softmax and of attention, and what they are in 64 bits."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import onnx
from arrays import Array
from onnx import TensorProto, helper, numpy_helper
from where_models import Shape, model_of, session_of, value, where_model

F32, F16, BOOL = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BOOL
DTYPES = {F32: np.dtype("f"), F16: np.dtype("e")}
NAMES = {F32: "f32", F16: "f16"}
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


def used(nodes: list[Node], arrays: Feeds) -> Feeds:
    names = {name for node in nodes for name in node.input}
    return {name: array for name, array in arrays.items() if name in names}


def row_feeds(random: np.random.Generator, shape: Any, mask: Any, element: int) -> Feeds:
    """Rows that are masked as a whole, of which one has a NaN, and scores of +infinity."""
    x = 4 * normal(random, shape, element)
    bias = normal(random, mask, element)
    cond = np.asarray(random.random(mask) < 0.7)
    if len(mask) > 1:
        cond[..., :1, :] = False
        bias[..., -1:, :] = -np.inf
    if x.size > 2:
        x.reshape(-1)[[0, x.size // 3, 2 * x.size // 3]] = np.nan, np.inf, -np.inf
    return {"x": x, "c": cond, "bias": bias}


def sdpa(masked: str, batch_first: bool = False) -> list[Node]:
    """scaled_dot_product_attention as exporters write it: query and key are scaled apart."""
    heads = [helper.make_node("Transpose", [one], [f"{one}h"], perm=[0, 2, 1, 3]) for one in "qv"]
    perm = [0, 2, 3, 1] if batch_first else [0, 1, 3, 2]
    nodes = heads if batch_first else []
    q, v = ("qh", "vh") if batch_first else ("q", "v")
    nodes += [
        helper.make_node("Transpose", ["k"], ["turned"], perm=perm),
        helper.make_node("Mul", [q, "half"], ["qs"]),
        helper.make_node("Mul", ["turned", "half"], ["ks"]),
        helper.make_node("MatMul", ["qs", "ks"], ["scores"]),
        *chain([masked] if masked else [], "scores", "w", zeros=True),
        helper.make_node("MatMul", ["w", v], ["back" if batch_first else "o"]),
    ]
    if batch_first:
        nodes.append(helper.make_node("Transpose", ["back"], ["o"], perm=[0, 2, 1, 3]))
    return nodes


def masked_fill(batch_first: bool = False) -> list[Node]:
    nodes = sdpa("", batch_first)
    kept = [
        one for one in nodes if one.op_type not in ("Mul", "IsNaN", "Where", "Softmax", "MatMul")
    ]
    moved = [one for one in kept if one.output[0] != "o"]
    last = [one for one in kept if one.output[0] == "o"]
    q, v = ("qh", "vh") if batch_first else ("q", "v")
    return [
        *moved,
        helper.make_node("MatMul", [q, "turned"], ["scores"]),
        *chain(["div", "keep"], "scores", "w"),
        helper.make_node("MatMul", ["w", v], ["back" if batch_first else "o"]),
        *last,
    ]


def attention_feeds(
    random: np.random.Generator,
    query: Any,
    key: Any,
    mask: Any,
    batch_first: bool = False,
    element: int = F32,
) -> Feeds:
    """Shapes are {batch, heads, rows, depth}. Each row keeps its first key."""
    feeds = {n: normal(random, query if n == "q" else key, element) for n in "qkv"}
    if batch_first:
        feeds = {name: np.ascontiguousarray(a.swapaxes(1, 2)) for name, a in feeds.items()}
    cond = np.asarray(random.random(mask) < 0.7)
    cond[..., :1] = True
    return {**feeds, "c": cond, "bias": np.where(cond, 0, -np.inf).astype(DTYPES[element])}


def attention_constants(element: int = F32) -> Feeds:
    return {**constants_of(element), "half": np.array(16**-0.25, DTYPES[element])}


def check(session: Any, nodes: list[Node], feeds: Feeds, constants: Feeds, element: int) -> None:
    (got,) = session.run(["o"], feeds)
    assert_close(got, expected(nodes, feeds, constants)["o"], element)


def example(kind: str) -> tuple[bytes, Feeds, Feeds]:
    """A model with open shapes, one node for Maskwise; small inputs, and some of a few megabytes of
    which the output would take gigabytes.
    """
    random = np.random.default_rng(0)
    short, long = (2, 60_000)
    if kind == "where":
        model = where_model(F32, [["a", "b"]] * 3)
        column, row = np.ones((long, 1), "f"), np.ones((1, long), "f")
        large = {"c": column > 0, "x": row, "y": column}
        return model, {name: np.ones((short, short), a.dtype) for name, a in large.items()}, large
    if kind == "rows":
        nodes, constants = chain(["mul", "keep"], "x"), constants_of(F32)
        small = row_feeds(random, (short, 40), (short, 40), F32)
        large = {"x": np.ones((long, 1), "f"), "c": np.ones((1, long), "?")}
    else:
        nodes, constants = masked_fill(), attention_constants()
        small = attention_feeds(random, (1, 2, 9, 16), (1, 2, 70, 16), (1, 1, 9, 70))
        large = attention_feeds(random, (long, 1, 1, 16), (1, long, 4, 16), (1, 1, 1, 4))
    small, large = used(nodes, small), used(nodes, large)
    opened: dict[str, Any] = {name: [None] * array.ndim for name, array in small.items()}
    return make_model(nodes, small, F32, used(nodes, constants), shapes=opened), small, large


def layers(count: int) -> tuple[bytes, Feeds]:
    """So many attentions one after another, each on the result of the last."""
    nodes: list[Node] = []
    for number in range(count):
        for node in masked_fill():
            moved = Node.FromString(node.SerializeToString())
            inner = {name for one in masked_fill() for name in one.output}
            last = f"l{number - 1}_o" if number else "x"
            names = {one: f"l{number}_{one}" for one in inner} | {one: last for one in "qkv"}
            for side in (moved.input, moved.output):
                side[:] = [names.get(name, name) for name in side]
            moved.name = f"l{number}_{node.output[0]}"
            nodes.append(moved)
    nodes.append(helper.make_node("Identity", [f"l{count - 1}_o"], ["o"]))
    shape = 1, 4, 256, 64
    feeds = {"x": normal(np.random.default_rng(0), shape), "c": np.ones((1, 1, 256, 1), "?")}
    opened: dict[str, Any] = {"x": [1, 4, "n", 64], "c": [1, 1, "n", 1]}
    return make_model(nodes, feeds, F32, used(nodes, attention_constants()), shapes=opened), feeds
