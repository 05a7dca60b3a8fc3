"""ONNX models of masked Softmax and of attention, and their results in f64."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import model_values
import numpy as np
import onnx
from arrays import Array
from model_values import soft_max
from onnx import TensorProto, helper, numpy_helper
from onnx_where import Shape, model_of, op, value, where_model
from where_models import session_of

F32, F16, BOOL = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BOOL
DTYPES = {F32: np.dtype("f"), F16: np.dtype("e")}
NAMES = {F32: "f32", F16: "f16"}
# Absolute tolerances of softmax weights, and of weighted means of normally distributed numbers.
TOLERANCE = {F32: 2e-5, F16: 4e-3}
Node = onnx.NodeProto
Feeds = dict[str, Array]
# A step of a chain: its operator and its inputs. The empty name stands for the previous value.
STEPS: dict[str, tuple[str, Sequence[str]]] = {
    "mul": ("Mul", ["", "scale"]),
    "mul_reversed": ("Mul", ["scale", ""]),
    "div": ("Div", ["", "root"]),
    "add": ("Add", ["", "bias"]),
    "add_reversed": ("Add", ["bias", ""]),
    "sub": ("Sub", ["", "bias"]),
    "tanh": ("Tanh", [""]),
    "leaky": ("LeakyRelu", [""]),
    "keep": ("Where", ["c", "", "fill"]),
    "mask": ("Where", ["c", "fill", ""]),
}


RULES: dict[str, Callable[..., Array]] = {**model_values.RULES, "Softmax": soft_max}


def expected(nodes: Iterable[Node], feeds: Feeds, constants: Feeds) -> Feeds:
    """Computes every value of the graph in f64."""
    values = {
        name: array if array.dtype == bool else array.astype(np.float64)
        for name, array in {**feeds, **constants}.items()
    }
    for node in nodes:
        attributes = {one.name: helper.get_attribute_value(one) for one in node.attribute}
        with np.errstate(all="ignore"):
            values[node.output[0]] = RULES[node.op_type](
                *(values[name] for name in node.input), **attributes
            )
    return values


def chain(names: Sequence[str], row: str, result: str = "o", zeros: bool = False) -> list[Node]:
    """Returns nodes that apply the named steps and a Softmax to the value `row`. `zeros` adds nodes
    that replace NaN by 0."""
    nodes = []
    links = [row, *(f"{result}_{i}" for i in range(len(names)))]
    for name, (before, after) in zip(names, itertools.pairwise(links), strict=True):
        kind, inputs = STEPS[name]
        numbers = {"alpha": 0.25} if kind == "LeakyRelu" else {}
        nodes.append(helper.make_node(kind, [one or before for one in inputs], [after], **numbers))
    weights = f"{result}_weights" if zeros else result
    nodes.append(helper.make_node("Softmax", [links[-1]], [weights], name="softmax", axis=-1))
    if zeros:
        nodes += [
            op("IsNaN", weights, f"{result}_nan"),
            op("Where", f"{result}_nan", "zero", weights, result),
        ]
    return nodes


def constants_of(element: int, fill: float = -np.inf) -> Feeds:
    numbers = {"scale": 0.125, "root": 8.0, "zero": 0.0, "fill": fill}
    return {name: np.array(number, DTYPES[element]) for name, number in numbers.items()}


def make_model(
    nodes: Sequence[Node],
    feeds: Feeds,
    element: int,
    constants: Feeds,
    outputs: Sequence[str] = ("o",),
    shapes: dict[str, Shape | None] | None = None,
    opset: int = 17,
    is_open: bool = False,
    inner_values: dict[str, Shape] | None = None,
) -> bytes:
    """Builds a model of the nodes. Inputs have the feeds' shapes, or dynamic extents if `is_open`.
    `shapes` overrides shapes of inputs. `inner_values` declares shapes of inner values."""
    declared = {n: [None] * a.ndim if is_open else a.shape for n, a in feeds.items()}
    declared |= shapes or {}
    kinds = {n: helper.np_dtype_to_tensor_dtype(a.dtype) for n, a in feeds.items()}
    return model_of(
        nodes,
        [value(name, kinds[name], shape) for name, shape in declared.items()],
        [value(name, element, None) for name in outputs],
        initializers(constants),
        opset,
        [value(name, element, shape) for name, shape in (inner_values or {}).items()],
    )


def initializers(constants: Feeds) -> list[onnx.TensorProto]:
    return [numpy_helper.from_array(array, name) for name, array in constants.items()]


def reshaped(
    nodes: list[Node], feeds: Feeds, constants: Feeds, name: str, opset: int = 17
) -> bytes:
    """Builds a model in which a Reshape computes the value `name`. The model declares this value's
    shape."""
    inputs = {one: array for one, array in feeds.items() if one != name}
    inputs |= {"whole": np.zeros(0, "f"), "shape": np.zeros(0, np.int64)}
    others = {one: array for one, array in constants.items() if one != name}
    opened: dict[str, Shape | None] = {"whole": None, "shape": ["n"]}
    inner_values = {name: {**feeds, **constants}[name].shape}
    first = op("Reshape", "whole", "shape", name)
    return make_model(
        [first, *nodes], inputs, F32, others, shapes=opened, opset=opset, inner_values=inner_values
    )


def fused_session(model: bytes, capfd: Any, *claims: str, threads: int = 1) -> Any:
    """Returns a session. Asserts its claims, such as "rows f32 3 nodes". Ignores claims of
    Where."""
    capfd.readouterr()
    session = session_of(model, threads, is_claimed=False, maskwise_verbose="1")
    lines = [line.split(",") for line in capfd.readouterr().err.splitlines()]
    claimed = [line[3] for line in lines if line[1] == "claim" and not line[3].startswith("Where")]
    assert claimed == list(claims), lines
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
    """Draws inputs with NaN and infinite scores, and with a fully masked row if the mask has
    rows."""
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
    """Returns the nodes of scaled_dot_product_attention as exporters write them: query and key are
    scaled separately."""
    heads = [op("Transpose", one, f"{one}h", perm=[0, 2, 1, 3]) for one in "qv"]
    perm = [0, 2, 3, 1] if batch_first else [0, 1, 3, 2]
    nodes = heads if batch_first else []
    q, v = ("qh", "vh") if batch_first else ("q", "v")
    nodes += [
        op("Transpose", "k", "transposed", perm=perm),
        op("Mul", q, "half", "qs"),
        op("Mul", "transposed", "half", "ks"),
        op("MatMul", "qs", "ks", "scores"),
        *chain([masked] if masked else [], "scores", "w", zeros=True),
        op("MatMul", "w", v, "back" if batch_first else "o"),
    ]
    if batch_first:
        nodes.append(op("Transpose", "back", "o", perm=[0, 2, 1, 3]))
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
        op("MatMul", q, "transposed", "scores"),
        *chain(["div", "keep"], "scores", "w"),
        op("MatMul", "w", v, "back" if batch_first else "o"),
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
    """Draws inputs of shape {batch, heads, rows, depth}, or {batch, rows, heads, depth} with
    `batch_first`. The mask keeps the first key of each row."""
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


def checked(
    capfd: Any,
    nodes: list[Node],
    feeds: Feeds,
    *claims: str,
    element: int = F32,
    constants: Feeds | None = None,
    threads: int = 1,
    **model: Any,
) -> Any:
    """Returns a session for a model of the nodes. Asserts the claims, and that results equal
    expected()."""
    feeds, constants = used(nodes, feeds), used(nodes, constants or attention_constants(element))
    result = make_model(nodes, feeds, element, constants, **model)
    session = fused_session(result, capfd, *claims, threads=threads)
    check(session, nodes, feeds, constants, element)
    return session


def example(kind: str) -> tuple[bytes, Feeds, Feeds]:
    """Returns a model with dynamic shapes and one node for Maskwise, small inputs, and inputs of
    megabytes whose output would have gigabytes."""
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
    return make_model(nodes, small, F32, used(nodes, constants), is_open=True), small, large


def layers(count: int) -> tuple[bytes, Feeds]:
    """Returns a model of `count` attentions in sequence, and its inputs."""
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
    nodes.append(op("Identity", f"l{count - 1}_o", "o"))
    shape = 1, 4, 256, 64
    feeds = {"x": normal(np.random.default_rng(0), shape), "c": np.ones((1, 1, 256, 1), "?")}
    opened: dict[str, Any] = {"x": [1, 4, "n", 64], "c": [1, 1, "n", 1]}
    return make_model(nodes, feeds, F32, used(nodes, attention_constants()), shapes=opened), feeds
