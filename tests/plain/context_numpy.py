"""The variables that the NumPy code blocks of README.md and docs/python.md use, and the checks of
their results."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

TYPES = {"f32": np.float32, "f16": np.float16}


def names(kind: str) -> dict[str, Any]:
    """For bf16, arrays are float32, because NumPy alone has no bfloat16."""
    random, dtype = np.random.default_rng(51), TYPES.get(kind, np.float32)

    def draw(*shape: int) -> Any:
        return random.standard_normal(shape).astype(dtype)

    q, k, v = (draw(2, 3, 64, 16) for _ in "qkv")
    layer = SimpleNamespace(**{name: draw(2, 2, 1024, 16) for name in "qkv"})
    mask = np.tril(np.ones((64, 64), bool))
    return {"q": q, "k": k, "v": v, "mask": mask, "x": draw(64, 64), "layers": [layer]}


def attention_of(q: Any, k: Any, v: Any, mask: Any) -> Any:
    scores = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
    weights = np.exp(np.where(mask, scores, -np.inf))
    return weights / weights.sum(-1, keepdims=True) @ v


def check(names: dict[str, Any]) -> None:
    q, k, v = (names[name].astype(np.float64) for name in "qkv")
    mask = np.tril(np.ones((64, 64), bool))  # docs/python.md replaces names["mask"]
    np.testing.assert_allclose(names["z"], attention_of(q, k, v, mask), atol=5e-3)
    assert names["z"].dtype == names["q"].dtype
    assert np.array_equal(names["y"], np.where(mask, names["x"], 0))
    if "out" in names:  # one result per layer
        assert names["out"][0].shape == names["layers"][0].q.shape
