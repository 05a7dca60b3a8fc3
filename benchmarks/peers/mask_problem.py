"""Attention with typical masks of models, as Maskwise's rules, as arrays, and as functions for
FlexAttention."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from attending import Attending

Keeps = Callable[[Any, Any, Any], Any]  # takes sequence, row and key as NumPy or torch arrays


@dataclass
class Problem:
    """`rules` maps names of maskwise.Mask's methods to arguments. `keeps` returns the mask as a
    function. The argument of `keeps` converts a list of numbers to the caller's array type."""

    name: str
    shape: tuple[int, int, int, int]  # batch, heads, rows, depth
    keys: int = 0  # 0: the number of rows
    key_heads: int = 0  # 0: the number of heads
    rules: dict[str, Any] = field(default_factory=dict)
    keeps: Callable[[Callable[[Any], Any]], Keeps] | None = None  # None: no key is masked
    bias: Callable[[int, Any, Any], Any] | None = None  # takes the head count, row and key
    is_causal: bool = False  # whether the mask is only causal
    dtypes: tuple[str, ...] = ("f32", "bf16")  # types to measure
    dtype: str = "f32"

    @property
    def key_shape(self) -> tuple[int, int, int, int]:
        batch, heads, rows, depth = self.shape
        return batch, self.key_heads or heads, self.keys or rows, depth

    def operands(self) -> list[Any]:
        random = np.random.default_rng(7)
        shapes = (self.shape, self.key_shape, self.key_shape)
        return [random.standard_normal(shape, dtype=np.float32) for shape in shapes]

    @cached_property
    def kept(self) -> Any:
        """The mask as a boolean array (batch or 1, 1, rows, keys); None if no key is masked."""
        if self.keeps is None:
            return None
        batch = self.shape[0]
        sequence, row, key = np.indices((batch, self.shape[2], self.key_shape[2]), sparse=True)
        kept = np.broadcast_to(
            self.keeps(np.asarray)(sequence, row, key), (batch, self.shape[2], self.key_shape[2])
        )
        return np.ascontiguousarray(kept[:, None] if batch > 1 else kept[:1, None])

    @cached_property
    def added(self) -> Any:
        """The bias as an f32 array (1, heads or 1, rows, keys); None if there is no bias."""
        if self.bias is None:
            return None
        row, key = np.indices((self.shape[2], self.key_shape[2]), sparse=True)
        return np.ascontiguousarray(self.bias(self.shape[1], row, key), dtype=np.float32)


SLOPES = 2.0 ** -np.arange(1.0, 9.0)


def alibi(_: int, row: Any, key: Any) -> Any:
    return (-SLOPES[:, None, None] * np.abs(row - key))[None]


def window_as(masked: float) -> Callable[[int, Any, Any], Any]:
    def bias(_: int, row: Any, key: Any) -> Any:
        return np.where((key <= row) & (key > row - 128), 0, masked)[None, None]

    return bias


STARTS = [0, 128, 256, 320]
BATCH = [128, 110, 96, 90, 77, 64, 40, 20]
DECODE = [1024, 900, 800, 700, 600, 560, 500, 324]
DOCUMENTS = np.repeat(np.arange(4), [1100, 500, 300, 148]).tolist()


def after(starts: Any) -> Keeps:
    return lambda s, r, k: (k <= r) & (k >= starts[s])


def of_one_document(ids: Any) -> Keeps:
    return lambda s, r, k: ids[r] == ids[k]


def before(lengths: Any) -> Keeps:
    return lambda s, r, k: (k < lengths[s]) & (r >= 0)


def causal(_: Any) -> Keeps:
    return lambda s, r, k: k <= r


def tiles_of(percent: float) -> list[list[bool]]:
    """Returns which 64 x 64 tiles of 2048 rows and keys are unmasked. All rows of tiles have
    equally many unmasked tiles."""
    count, random = 2048 // 64, np.random.default_rng(2048)
    kept = np.zeros((count, count), bool)
    for row in kept:
        row[random.choice(count, max(1, round(count * percent / 100)), replace=False)] = True
    return kept.tolist()


def of_tiles(kept: Any) -> Keeps:
    return lambda s, r, k: kept[r // 64, k // 64]


def share(percent: int) -> Problem:
    return Problem(
        f"{percent} % of the tiles",
        (1, 12, 2048, 64),
        keeps=lambda to_array: of_tiles(to_array(tiles_of(percent))),
        dtypes=("f32",),
    )


PROBLEMS = [
    Problem("no mask", (1, 12, 1024, 64)),
    Problem("causal", (1, 12, 1024, 64), rules={"causal": {}}, keeps=causal, is_causal=True),
    Problem(
        "causal, grouped",
        (1, 32, 1024, 128),
        key_heads=8,
        rules={"causal": {}},
        keeps=causal,
        is_causal=True,
    ),
    Problem(
        "left-padded causal",
        (4, 12, 768, 64),
        rules={"causal": {}, "starts": {"starts": STARTS}},
        keeps=lambda to_array: after(to_array(STARTS)),
    ),
    Problem(
        "local 128 (ModernBERT)",
        (1, 12, 4096, 64),
        rules={"window": {"left": 64, "right": 64}},
        keeps=lambda to_array: lambda s, r, k: (k <= r + 64) & (k >= r - 64),
    ),
    Problem(
        "sliding 512 (Gemma 3)",
        (1, 4, 2048, 256),
        key_heads=1,
        rules={"sliding": {"size": 512}},
        keeps=lambda to_array: lambda s, r, k: (k <= r) & (k > r - 512),
    ),
    Problem(
        "packed documents",
        (1, 12, 2048, 64),
        rules={"documents": {"row_ids": DOCUMENTS}},
        keeps=lambda to_array: of_one_document(to_array(DOCUMENTS)),
    ),
    Problem(
        "chunks 16 + 64 (speech)",
        (1, 8, 1024, 64),
        rules={"chunks": {"size": 16, "earlier": 4}},
        keeps=lambda to_array: lambda s, r, k: (k // 16 <= r // 16) & (k // 16 >= r // 16 - 4),
    ),
    Problem(
        "encoder batch, padded",
        (8, 12, 128, 64),
        rules={"lengths": {"lengths": BATCH}},
        keeps=lambda to_array: before(to_array(BATCH)),
    ),
    Problem(
        "decode",
        (1, 32, 1, 128),
        keys=4096,
        key_heads=8,
        rules={"lengths": {"lengths": 4000}},
        keeps=lambda to_array: lambda s, r, k: (k < 4000) & (r >= 0),
    ),
    Problem(
        "decode, batch",
        (8, 32, 1, 128),
        keys=1024,
        key_heads=8,
        rules={"lengths": {"lengths": DECODE}},
        keeps=lambda to_array: before(to_array(DECODE)),
    ),
    Problem(
        "speculative",
        (1, 32, 8, 128),
        keys=2048,
        key_heads=8,
        rules={"causal": {"from_end": True}},
        keeps=lambda to_array: lambda s, r, k: k <= r + 2040,
    ),
    Problem(
        "causal window of 128",
        (1, 12, 1024, 64),
        rules={"sliding": {"size": 128}},
        keeps=lambda to_array: lambda s, r, k: (k <= r) & (k > r - 128),
    ),
    Problem("causal window of 128, bias -inf", (1, 12, 1024, 64), bias=window_as(-np.inf)),
    Problem("causal window of 128, bias -1e9", (1, 12, 1024, 64), bias=window_as(-1e9)),
    Problem("ALiBi", (1, 8, 4096, 64), rules={"alibi": {"slopes": SLOPES}}, bias=alibi),
    *(share(percent) for percent in (5, 10, 25, 50, 75, 100)),
]


class Peer(Attending):
    """Peers write answers as f32, also for bf16."""

    def problem(self, case: dict[str, Any]) -> Problem:
        named = next(problem for problem in PROBLEMS if problem.name == case["problem"])
        return replace(named, dtype=case["dtype"])
