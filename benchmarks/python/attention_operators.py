"""Nodes and inputs of models with a single attention operator."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from onnx import helper

Inputs = dict[str, Any]
Operator = tuple[str, Any, Inputs]  # name, node and inputs


def numbers(*shape: int) -> Any:
    return np.random.default_rng(4).standard_normal(shape).astype("f")


def onnx_attention() -> Iterator[Operator]:
    whole = {name: numbers(1, 12, 1024, 64) for name in "qkv"}
    causal = helper.make_node("Attention", ["q", "k", "v"], ["o"], is_causal=1)
    yield "Attention-23 causal 1x12x1024x64", causal, whole
    padded = {name: numbers(4, 12, 384, 64) for name in "qkv"}
    kept = np.ones((4, 1, 384, 384), np.bool_)
    kept[1:, ..., 192:] = False
    node = helper.make_node("Attention", ["q", "k", "v", "c"], ["o"])
    yield "Attention-23 4x12x384x64, padding mask", node, {**padded, "c": kept}


def multi_head() -> Iterator[Operator]:
    inputs = {name: numbers(4, 384, 768) for name in "qkv"}
    mask = np.ones((4, 384), np.int32)
    mask[1:, 192:] = 0
    names = ["q", "k", "v", "", "m"]
    node = helper.make_node(
        "MultiHeadAttention", names, ["o"], domain="com.microsoft", num_heads=12
    )
    yield "MultiHeadAttention 4x12x384x64, key_padding_mask", node, {**inputs, "m": mask}


def rotary(rows: int, past: int) -> Inputs:
    angles = np.arange(past + rows)[:, None] / 10000 ** (np.arange(64) / 64)
    return {"cos": np.cos(angles).astype("f"), "sin": np.sin(angles).astype("f")}


def group_query(
    rows: int, past: int, is_packed: bool = False, **attributes: int
) -> tuple[Any, Inputs]:
    if is_packed:
        inputs = {"q": numbers(1, rows, (32 + 2 * 8) * 128)}
    else:
        inputs = {"q": numbers(1, rows, 32 * 128)}
        inputs |= {name: numbers(1, rows, 8 * 128) for name in "kv"}
    inputs |= {name: numbers(1, 8, past, 128) for name in ("pk", "pv") if past > 0}
    inputs["last"] = np.array([past + rows - 1], np.int32)
    inputs["total"] = np.array([past + rows], np.int32)
    if attributes.get("do_rotary"):
        inputs |= rotary(rows, past)
    names = ["q", "k", "v", "pk", "pv", "last", "total", "cos", "sin"]
    heads = {"num_heads": 32, "kv_num_heads": 8}
    node = helper.make_node(
        "GroupQueryAttention",
        [name if name in inputs else "" for name in names],
        ["o", "keys", "values"],
        domain="com.microsoft",
        **heads,
        **attributes,
    )
    return node, inputs


def attention_operators() -> Iterator[Operator]:
    yield from onnx_attention()
    yield from multi_head()
    yield "GroupQueryAttention 32/8x128, 1 query after 1023 keys", *group_query(1, 1023)
    yield (
        "GroupQueryAttention 32/8x1024x128, window 128",
        *group_query(1024, 0, local_window_size=128),
    )
    for name, rows, past in (
        ("32/8x128, 1 query after 1023 keys", 1, 1023),
        ("32/8x1024x128", 1024, 0),
    ):
        packed = group_query(rows, past, is_packed=True, do_rotary=1)
        yield f"GroupQueryAttention {name}, packed, rotary", *packed
