"""Generated OpenVINO models of attention, and their results by definition in f64."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import definition
import numpy as np
import openvino as ov
from arrays import Array
from openvino import opset13 as ops

F32, BOOLEAN = ov.Type.f32, ov.Type.boolean
Node = Any


@dataclass
class Attention:
    """The properties of a model, and the seed of its operands."""

    batch: int = 2
    heads: int = 3
    rows: int = 40
    keys: int = 56
    depth: int = 16
    columns: int = 16
    whole: bool = True  # the model has ScaledDotProductAttention; else separate operators
    causal: bool = False
    mask: str = "none"  # or "bool" or "bias"
    mask_shape: tuple[int, ...] = ()
    scale: float | None = None
    transposed: tuple[str, ...] = ()  # operands of "qkvo" that are {batch, rows, heads, depth}
    transposed_b: bool = True  # MatMul transposes the key; else a Transpose does
    scaled: str = "scores"  # what the scale multiplies: "scores" or "query"
    cap: float | None = None
    zeroes_nan: bool = False
    selects: bool = False  # a Select masks the scores; else a Select makes a bias from the mask
    opens: bool = False  # the model leaves extents dynamic
    element: ov.Type = field(default=F32)
    seed: int = 0

    def scores_shape(self) -> tuple[int, ...]:
        return (self.batch, self.heads, self.rows, self.keys)

    def shape_of(self, name: str) -> tuple[int, ...]:
        extents = {"q": (self.rows, self.depth), "k": (self.keys, self.depth)}
        rows, columns = extents.get(name, (self.keys, self.columns))
        if name in self.transposed:
            return (self.batch, rows, self.heads, columns)
        return (self.batch, self.heads, rows, columns)


def drawn(seed: int) -> Attention:
    random = np.random.default_rng(seed)

    def one(*options: Any) -> Any:
        return options[random.integers(len(options))]

    depth = int(one(8, 16, 31, 64))
    case = Attention(
        batch=int(one(1, 2)),
        heads=int(one(1, 3)),
        rows=int(one(1, 7, 33, 96, 130)),
        keys=int(one(1, 5, 32, 96, 200)),
        depth=depth,
        columns=int(one(depth, depth, 24)),
        whole=bool(one(True, False)),
        causal=bool(random.random() < 0.3),
        mask=str(one("none", "bool", "bool", "bias")),
        scale=one(None, 0.25, -1.5),
        transposed=tuple(n for n in "qkvo" if random.random() < 0.5),
        transposed_b=bool(one(True, False)),
        scaled=str(one("scores", "query")),
        cap=one(None, None, 5.0),
        zeroes_nan=bool(one(True, False)),
        selects=bool(one(True, False)),
        opens=bool(one(True, False)),
        seed=seed,
    )
    if case.causal:
        case.whole, case.mask = True, one("none", "bool")
    shape = case.scores_shape()[int(random.integers(3 if case.whole else 4)) :]
    case.mask_shape = tuple(n if random.random() < 0.6 else 1 for n in shape)
    return case


def open_shape(shape: tuple[int, ...], opens: bool) -> ov.PartialShape:
    return ov.PartialShape([-1] * len(shape) if opens else list(shape))


def with_mask(scores: Node, mask: Node, case: Attention) -> Node:
    if case.mask == "bias":
        return ops.add(scores, mask)
    least = ops.constant(np.float32(-np.inf))
    if case.selects:
        return ops.select(mask, scores, least)
    return ops.add(scores, ops.select(mask, ops.constant(np.float32(0)), least))


def by_operators(case: Attention, q: Node, k: Node, v: Node, mask: Node) -> Node:
    scale = ops.constant(np.float32(case.depth**-0.5 if case.scale is None else case.scale))
    if case.scaled == "query":
        q = ops.multiply(q, scale)
    if not case.transposed_b:
        k = ops.transpose(k, [0, 1, 3, 2])
    scores = ops.matmul(q, k, False, case.transposed_b)
    if case.scaled == "scores":
        scores = ops.multiply(scores, scale)
    if case.cap is not None:
        cap = ops.constant(np.float32(case.cap))
        scores = ops.multiply(ops.tanh(ops.divide(scores, cap)), cap)
    if case.mask != "none":
        scores = with_mask(scores, mask, case)
    weights = ops.softmax(scores, -1)
    if case.zeroes_nan:
        zero = ops.constant(np.float32(0))
        weights = ops.select(ov.opset10.is_nan(weights), zero, weights)
    return ops.matmul(weights, v, False, False)


def attention_model(case: Attention) -> ov.Model:
    inputs = {}
    heads = {}
    for name in "qkv":
        shape = list(case.shape_of(name))
        dims = [-1, -1, -1, shape[3]] if case.opens else shape  # SDPA needs a known depth
        inputs[name] = ops.parameter(ov.PartialShape(dims), case.element, name=name)
        transposed = name in case.transposed
        heads[name] = ops.transpose(inputs[name], [0, 2, 1, 3]) if transposed else inputs[name]
    parameters = list(inputs.values())
    mask = None
    if case.mask != "none":
        kind = BOOLEAN if case.mask == "bool" else case.element
        mask = ops.parameter(open_shape(case.mask_shape, case.opens), kind, name="mask")
        parameters.append(mask)
    if case.whole:
        scale = None if case.scale is None else ops.constant(np.float32(case.scale))
        mask_input = mask
        if mask_input is None and scale is not None:
            mask_input = ops.constant(np.zeros((1, 1), np.float32))
        result = ops.scaled_dot_product_attention(
            *heads.values(), mask_input, scale, causal=case.causal, name="attention"
        )
    else:
        result = by_operators(case, *heads.values(), mask)
        result.set_friendly_name("attention")
    if "o" in case.transposed:
        result = ops.transpose(result, [0, 2, 1, 3])
    return ov.Model([result], parameters)


def arrays_of(case: Attention) -> list[Array]:
    random = np.random.default_rng(case.seed)
    arrays: list[Array] = [
        random.standard_normal(case.shape_of(name)).astype(np.float32) for name in "qkv"
    ]
    if case.mask == "bool":
        kept = random.random(case.mask_shape) < 0.6
        if random.random() < 0.5 and kept.ndim and kept.shape[-1] > 1:
            kept[..., kept.shape[-1] // 2 :] = False
        arrays.append(np.asarray(kept))
    elif case.mask == "bias":
        bias = np.asarray(random.standard_normal(case.mask_shape), np.float32)
        arrays.append(np.where(random.random(bias.shape) < 0.3, -np.inf, bias).astype(np.float32))
    return arrays


def attention_of(case: Attention, arrays: list[Array]) -> Array:
    q, k, v = (
        array.astype(float).transpose(0, 2, 1, 3)
        if name in case.transposed
        else array.astype(float)
        for name, array in zip("qkv", arrays, strict=False)
    )
    mask: dict[str, Any] = {}
    if case.causal:
        mask = {"kept": np.tri(case.rows, case.keys, dtype=bool)}
    elif case.mask in ("bool", "bias"):
        mask = {"kept" if case.mask == "bool" else "bias": arrays[3]}
    cap = None if case.whole else case.cap
    result, sums = definition.attention(q, k, v, scale=case.scale, soft_cap=cap, **mask)
    if case.whole or not case.zeroes_nan:
        result = np.where(np.isneginf(sums)[..., None], np.nan, result)
    return result.transpose(0, 2, 1, 3) if "o" in case.transposed else result
