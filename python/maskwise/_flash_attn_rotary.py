"""Rotary embeddings of flash_attn_with_kvcache."""

# mypy may check the package without torch.
# mypy: disable-error-code="import-not-found,misc,no-any-return,unused-ignore"

from __future__ import annotations

from typing import Any

import torch

from maskwise._torch_tensors import indices


def rotated(
    q: torch.Tensor,
    k: torch.Tensor | None,
    tables: tuple[Any, Any],
    held: torch.Tensor,
    is_interleaved: bool,
    has_positions: bool,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Rotates q and k of (batch, rows, heads, depth) by cos and sin of (positions, rotary_dim / 2).

    `held`: number of cached keys per sequence. Row i is at position held + i. Without
    has_positions, all rows of q are at position held.
    """
    if k is None:
        raise ValueError("rotary_cos and rotary_sin need new keys and values, k is None")
    _require_tables(tables, q.shape[-1])
    steps = q.shape[1] if has_positions else 1
    return (
        _rotated(q, _rows(tables, held, steps), is_interleaved),
        _rotated(k, _rows(tables, held, k.shape[1]), is_interleaved),
    )


def _require_tables(tables: tuple[Any, Any], depth: int) -> None:
    shapes = []
    for name, table in zip(("rotary_cos", "rotary_sin"), tables, strict=True):
        if not torch.is_tensor(table) or not table.is_floating_point():
            kind = table.dtype if torch.is_tensor(table) else type(table).__name__
            raise TypeError(f"{name} is {kind}, expected a tensor of floats")
        shapes.append(tuple(table.shape))
    if shapes[0] != shapes[1] or len(shapes[0]) != 2 or 2 * shapes[0][1] > depth:
        raise ValueError(
            f"rotary_cos and rotary_sin have shapes {shapes[0]} and {shapes[1]}, expected both "
            f"(positions, at most {depth // 2})"
        )


def _rows(tables: tuple[Any, Any], held: torch.Tensor, count: int) -> list[torch.Tensor]:
    """cos and sin of the positions from `held`: (batch, count, 1, rotary_dim / 2)."""
    positions = held[:, None] + indices(count)
    if positions.numel() and positions.max() >= len(tables[0]):
        last, there = int(positions.max()), len(tables[0])
        raise ValueError(f"rotary_cos has {there} positions, a row is at position {last}")
    return [table[positions][:, :, None].float() for table in tables]


def _rotated(x: torch.Tensor, tables: list[torch.Tensor], is_interleaved: bool) -> torch.Tensor:
    """Computes in float32, like flash_attn."""
    cos, sin = tables
    half = cos.shape[-1]
    pairs, rest = x[..., : 2 * half].float(), x[..., 2 * half :]
    if is_interleaved:
        first, second = pairs[..., ::2], pairs[..., 1::2]
    else:
        first, second = pairs[..., :half], pairs[..., half:]
    halves = first * cos - second * sin, first * sin + second * cos
    result = torch.stack(halves, -1).flatten(-2) if is_interleaved else torch.cat(halves, -1)
    return torch.cat((result.to(x.dtype), rest), -1)
