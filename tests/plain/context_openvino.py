"""README.md and docs/openvino.md on a model of attention."""

from __future__ import annotations

from typing import Any

import context_numpy
import numpy as np
import openvino as ov  # type: ignore[import-untyped, unused-ignore]
from openvino import opset13 as ops

SHAPE = [2, 4, 128, 32]


def attention(kind: str) -> ov.Model:
    """Between conversions, since NumPy alone has no bfloat16."""
    given = [ops.parameter(SHAPE, ov.Type.f32) for _ in "qkv"]
    mask = ops.parameter([128, 128], ov.Type.boolean)
    q, k, v = (ops.convert(one, kind) for one in given)
    whole = ops.scaled_dot_product_attention(q, k, v, mask)
    return ov.Model([ops.convert(whole, "f32")], [*given, mask])


def names(kind: str) -> dict[str, Any]:
    core = ov.Core()
    return {**context_numpy.names(kind), "core": core, "model": attention(kind), "kind": kind}


def check(names: dict[str, Any]) -> None:
    if "z" in names:
        context_numpy.check(names)
    import maskwise.openvino  # installed by README's first block

    assert maskwise.openvino.taken(names["model"]), "nothing was taken"
    random = np.random.default_rng(51)
    inputs: list[Any] = [random.standard_normal(SHAPE).astype(np.float32) for _ in "qkv"]
    inputs.append(np.tril(np.ones((128, 128), bool)))
    compiled = names.get("compiled") or names["core"].compile_model(names["model"], "CPU")
    stock = names["core"].compile_model(attention(names["kind"]), "CPU")
    np.testing.assert_allclose(compiled(inputs)[0], stock(inputs)[0], atol=4e-2)
