"""Attention by its definition in float64, for NumPy arrays or torch tensors with gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

NOTHING = -1e300  # the score of a masked key: -infinity would make gradients NaN


def attention(
    q: Any,
    k: Any,
    v: Any,
    *,
    kept: Any = None,
    bias: Any = None,
    scale: float | None = None,
    soft_cap: float | None = None,
    sinks: Any = None,
) -> tuple[Any, Any]:
    """Returns the results, and the log-sum-exp of each row's scores. Operands are (..., heads,
    rows, depth); k and v may have fewer heads. kept and bias broadcast to the scores. A fully
    masked row is 0. Without a sink, the row's log-sum-exp is -infinity."""
    np_or_torch, double = module_of(q)
    q, k, v = (double(one) for one in (q, k, v))
    k, v = (for_each_head(one, q) for one in (k, v))
    scores = q @ k.swapaxes(-1, -2) * (max(1, q.shape[-1]) ** -0.5 if scale is None else scale)
    if soft_cap:
        scores = soft_cap * np_or_torch.tanh(scores / soft_cap)
    if bias is not None:
        scores = scores + double(bias)
    is_masked = scores == -np.inf
    if kept is not None:
        is_masked = is_masked | ~kept
    scores = np_or_torch.where(is_masked, NOTHING, scores)
    column = np_or_torch.zeros_like(scores.sum(-1))[..., None]
    columns = [scores, column + 2 * NOTHING]  # amax needs a column, even if there are no keys
    if sinks is not None:
        columns.append(column + double(sinks)[:, None, None])
    scores = np_or_torch.concatenate(columns, -1)
    top = np_or_torch.amax(scores, -1, keepdims=True)
    weights = np_or_torch.where(scores <= NOTHING, 0, np_or_torch.exp(scores - top))
    total = weights.sum(-1)
    is_empty, divisor = total == 0, np_or_torch.where(total == 0, 1, total)
    logarithms = np_or_torch.where(is_empty, -np.inf, np_or_torch.log(divisor) + top[..., 0])
    return weights[..., : k.shape[-2]] / divisor[..., None] @ v, logarithms


def for_each_head(operand: Any, q: Any) -> Any:
    """Repeats each head of key or value for the query heads that share it."""
    if min(operand.ndim, q.ndim) < 3 or not 1 < operand.shape[-3] < q.shape[-3]:
        return operand
    shared = q.shape[-3] // operand.shape[-3]
    return operand[..., [head // shared for head in range(q.shape[-3])], :, :]


def module_of(operand: Any) -> tuple[Any, Any]:
    if isinstance(operand, np.ndarray):
        return np, lambda array: np.asarray(array, np.float64)
    import torch

    return torch, lambda tensor: tensor.double()
