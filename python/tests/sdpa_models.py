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
    """One draw."""

    batch: int = 2
    heads: int = 3
    rows: int = 40
    keys: int = 56
    depth: int = 16
    columns: int = 16
    whole: bool = True  # ScaledDotProductAttention, else its operators
    causal: bool = False
    mask: str = "none"  # bool, bias
    mask_shape: tuple[int, ...] = ()
    scale: float | None = None
    turned: tuple[str, ...] = ()  # the letters of "qkvo" that are in {batch, rows, heads, depth}
    transposed_b: bool = True  # transposed inputs of the first product
    scaled: str = "scores"  # the operand that the scale multiplies, or "query"
    cap: float | None = None
    zeroes_nan: bool = False
    selects: bool = False  # the mask replaces scores; else it is converted to a bias
    opens: bool = False
    element: ov.Type = field(default=F32)
    seed: int = 0

    def scores_shape(self) -> tuple[int, ...]:
        return (self.batch, self.heads, self.rows, self.keys)

    def shape_of(self, name: str) -> tuple[int, ...]:
        extents = {"q": (self.rows, self.depth), "k": (self.keys, self.depth)}
        rows, columns = extents.get(name, (self.keys, self.columns))
        if name in self.turned:
            return (self.batch, rows, self.heads, columns)
        return (self.batch, self.heads, rows, columns)


def drawn(seed: int) -> Attention:
    random = np.random.default_rng(seed)

    def one(*of: Any) -> Any:
        return of[random.integers(len(of))]

    depth = int(one(8, 16, 31, 64))
    made = Attention(
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
        turned=tuple(n for n in "qkvo" if random.random() < 0.5),
        transposed_b=bool(one(True, False)),
        scaled=str(one("scores", "query")),
        cap=one(None, None, 5.0),
        zeroes_nan=bool(one(True, False)),
        selects=bool(one(True, False)),
        opens=bool(one(True, False)),
        seed=seed,
    )
    if made.causal:
        made.whole, made.mask = True, one("none", "bool")
    shape = made.scores_shape()[int(random.integers(3 if made.whole else 4)) :]
    made.mask_shape = tuple(n if random.random() < 0.6 else 1 for n in shape)
    return made


def open_shape(shape: tuple[int, ...], opens: bool) -> ov.PartialShape:
    return ov.PartialShape([-1] * len(shape) if opens else list(shape))


def with_mask(scores: Node, mask: Node, made: Attention) -> Node:
    if made.mask == "bias":
        return ops.add(scores, mask)
    least = ops.constant(np.float32(-np.inf))
    if made.selects:
        return ops.select(mask, scores, least)
    return ops.add(scores, ops.select(mask, ops.constant(np.float32(0)), least))


def by_operators(made: Attention, q: Node, k: Node, v: Node, mask: Node) -> Node:
    scale = ops.constant(np.float32(made.depth**-0.5 if made.scale is None else made.scale))
    if made.scaled == "query":
        q = ops.multiply(q, scale)
    if not made.transposed_b:
        k = ops.transpose(k, [0, 1, 3, 2])
    scores = ops.matmul(q, k, False, made.transposed_b)
    if made.scaled == "scores":
        scores = ops.multiply(scores, scale)
    if made.cap is not None:
        cap = ops.constant(np.float32(made.cap))
        scores = ops.multiply(ops.tanh(ops.divide(scores, cap)), cap)
    if made.mask != "none":
        scores = with_mask(scores, mask, made)
    weights = ops.softmax(scores, -1)
    if made.zeroes_nan:
        zero = ops.constant(np.float32(0))
        weights = ops.select(ov.opset10.is_nan(weights), zero, weights)
    return ops.matmul(weights, v, False, False)


def attention_model(made: Attention) -> ov.Model:
    inputs = {}
    heads = {}
    for name in "qkv":
        shape = list(made.shape_of(name))
        dims = [-1, -1, -1, shape[3]] if made.opens else shape  # SDPA needs a known depth
        inputs[name] = ops.parameter(ov.PartialShape(dims), made.element, name=name)
        turned = name in made.turned
        heads[name] = ops.transpose(inputs[name], [0, 2, 1, 3]) if turned else inputs[name]
    parameters = list(inputs.values())
    mask = None
    if made.mask != "none":
        kind = BOOLEAN if made.mask == "bool" else made.element
        mask = ops.parameter(open_shape(made.mask_shape, made.opens), kind, name="mask")
        parameters.append(mask)
    if made.whole:
        scale = None if made.scale is None else ops.constant(np.float32(made.scale))
        given = mask
        if given is None and scale is not None:
            given = ops.constant(np.zeros((1, 1), np.float32))
        result = ops.scaled_dot_product_attention(
            *heads.values(), given, scale, causal=made.causal, name="attention"
        )
    else:
        result = by_operators(made, *heads.values(), mask)
        result.set_friendly_name("attention")
    if "o" in made.turned:
        result = ops.transpose(result, [0, 2, 1, 3])
    return ov.Model([result], parameters)


def arrays_of(made: Attention) -> list[Array]:
    random = np.random.default_rng(made.seed)
    arrays: list[Array] = [
        random.standard_normal(made.shape_of(name)).astype(np.float32) for name in "qkv"
    ]
    if made.mask == "bool":
        kept = random.random(made.mask_shape) < 0.6
        if random.random() < 0.5 and kept.ndim and kept.shape[-1] > 1:
            kept[..., kept.shape[-1] // 2 :] = False
        arrays.append(np.asarray(kept))
    elif made.mask == "bias":
        bias = np.asarray(random.standard_normal(made.mask_shape), np.float32)
        arrays.append(np.where(random.random(bias.shape) < 0.3, -np.inf, bias).astype(np.float32))
    return arrays


def attention_of(made: Attention, arrays: list[Array]) -> Array:
    q, k, v = (
        array.astype(float).transpose(0, 2, 1, 3) if name in made.turned else array.astype(float)
        for name, array in zip("qkv", arrays, strict=False)
    )
    mask: dict[str, Any] = {}
    if made.causal:
        mask = {"kept": np.tri(made.rows, made.keys, dtype=bool)}
    elif made.mask in ("bool", "bias"):
        mask = {"kept" if made.mask == "bool" else "bias": arrays[3]}
    cap = None if made.whole else made.cap
    result, sums = definition.attention(q, k, v, scale=made.scale, soft_cap=cap, **mask)
    if made.whole or not made.zeroes_nan:
        result = np.where(np.isneginf(sums)[..., None], np.nan, result)
    return result.transpose(0, 2, 1, 3) if "o" in made.turned else result
