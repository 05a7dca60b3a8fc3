"""Random tensors of torch, for tests."""

from __future__ import annotations

from typing import Any


def draw(*shape: int, seed: int = 0, dtype: Any = None) -> Any:
    import torch

    result = torch.randn(shape, generator=torch.Generator().manual_seed(seed))
    return result if dtype is None else result.to(dtype)


def three(*shape: int, dtype: Any = None) -> list[Any]:
    return [draw(*shape, seed=seed, dtype=dtype) for seed in range(3)]
