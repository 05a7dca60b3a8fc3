"""The variables that the code blocks of docs/openvino.md use, and the checks of their results."""

from __future__ import annotations

from typing import Any

import context_numpy
import numpy as np
import openvino as ov  # type: ignore[import-untyped, unused-ignore]
from openvino import opset13 as ops

SHAPE = [2, 4, 128, 32]


def attention(kind: str) -> ov.Model:
    """The model's inputs and outputs are f32, because NumPy alone has no bfloat16."""
    inputs = [ops.parameter(SHAPE, ov.Type.f32) for _ in "qkv"]
    mask = ops.parameter([128, 128], ov.Type.boolean)
    q, k, v = (ops.convert(tensor, kind) for tensor in inputs)
    answer = ops.scaled_dot_product_attention(q, k, v, mask)
    return ov.Model([ops.convert(answer, "f32")], [*inputs, mask])


def names(kind: str) -> dict[str, Any]:
    core = ov.Core()
    return {**context_numpy.names(kind), "core": core, "model": attention(kind), "kind": kind}


def check(names: dict[str, Any]) -> None:
    compiled = names["compiled"]
    nodes = compiled.get_runtime_model().get_ordered_ops()
    ran = [node.get_rt_info()["layerType"].astype(str) for node in nodes]
    # "Reference" is OpenVINO's layer type of nodes of extensions.
    assert "Reference" in ran, "no node of Maskwise"
    random = np.random.default_rng(51)
    inputs: list[Any] = [random.standard_normal(SHAPE).astype(np.float32) for _ in "qkv"]
    inputs.append(np.tril(np.ones((128, 128), bool)))
    stock = names["core"].compile_model(names["model"], "CPU")
    np.testing.assert_allclose(compiled(inputs)[0], stock(inputs)[0], atol=4e-2)
