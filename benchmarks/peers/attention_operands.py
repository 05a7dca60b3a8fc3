"""The operands of an attention case, as scripts/bench attention writes them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

BITS = {"f32": np.float32, "bf16": np.uint16}

# Runs attention once; its answer, of the shape and in the order of q.
Form = tuple[Callable[[], Any], Callable[[Any], Any]]


class Operands:
    """q, k, v: batch x heads x sequence x head; mask: true where a key is kept, or None."""

    def __init__(self, case: dict[str, Any]) -> None:
        self.shape: list[int] = case["shape"]
        self.dtype: str = case["dtype"]
        self.causal: bool = case["causal"]  # the mask says that and nothing else
        self.scale: float = case["scale"]
        folder, bits = Path(case["folder"]), BITS[self.dtype]
        self.q, self.k, self.v = (
            np.fromfile(folder / case["files"][name], dtype=bits).reshape(self.shape)
            for name in ("q", "k", "v")
        )
        self.mask: Any = None
        if case["mask"]:
            self.mask = np.fromfile(folder / case["files"]["mask"], np.bool_).reshape(case["mask"])

    def empty(self) -> Any:
        return np.empty(self.shape, BITS[self.dtype])
