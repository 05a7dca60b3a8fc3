"""The variables that the code blocks of docs/onnxruntime.md use, and the checks of their results.

plain.py writes model.onnx.
"""

from __future__ import annotations

from typing import Any

import context_numpy
import numpy as np
import onnxruntime  # type: ignore[import-untyped, unused-ignore]


def names(kind: str) -> dict[str, Any]:
    return {**context_numpy.names(kind), "kind": kind}


def check(names: dict[str, Any]) -> None:
    session = names["session"]
    random = np.random.default_rng(51)
    inputs: dict[str, Any] = {
        name: random.standard_normal((2, 4, 128, 32)).astype(np.float32) for name in "qkv"
    }
    inputs["mask"] = np.tril(np.ones((128, 128), bool))
    assert session.get_providers()[0] == "MaskwiseExecutionProvider"
    if names["kind"] == "bf16":  # the model is a bf16 Where, which ONNX Runtime alone cannot run
        x = random.integers(1, 100, (2, 4, 128, 128)).astype(np.float32)
        answer = session.run(None, {"q": x, "mask": inputs["mask"]})[0]
        assert np.array_equal(answer, np.where(inputs["mask"], x, 0))
        return
    answer = session.run(None, inputs)[0]
    stock = onnxruntime.InferenceSession("model.onnx", providers=["CPUExecutionProvider"])
    np.testing.assert_allclose(answer, stock.run(None, inputs)[0], atol=5e-3)
