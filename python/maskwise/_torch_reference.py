"""Computes attention by torch's operators, and gradients by the core or by torch."""

# mypy may check the package without torch.
# mypy: disable-error-code="import-not-found,misc,no-any-return,unused-ignore"

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from maskwise import _torch_version  # noqa: F401  # raises if torch is too old for the imports below

# isort: split
import numpy as np
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import dropout, scaled_dot_product_attention

from maskwise import _others
from maskwise._call import AttentionCall, has_rules, window_mask
from maskwise._torch_masks import kept_keys, kept_places, restricted, written
from maskwise._torch_tensors import as_tensor, is_symbol, is_traced, refuse_traced

if TYPE_CHECKING:
    from collections.abc import Callable

    from maskwise._mask import Mask

# Operands that may have gradients and that vmap may map, with their number of dimensions that do
# not broadcast.
TENSORS = {"query": 2, "key": 2, "value": 2, "attn_mask": 2, "sinks": 0}


def own_dimensions(call: AttentionCall) -> int:
    """How many dimensions of query, key and value do not broadcast."""
    return 3 if call.enable_gqa and call.query.ndim > 2 else 2


def result_shape(call: AttentionCall) -> tuple[int, ...]:
    count = own_dimensions(call)
    leading = torch.broadcast_shapes(*(one.shape[:-count] for one in call[:3]))
    return (*leading, *call.query.shape[-count:-1], call.value.shape[-1])


def kept_by_rules(call: AttentionCall) -> torch.Tensor:
    """Returns mask_rules as a boolean tensor (sequences, ..., rows, keys)."""
    leading, extents = result_shape(call)[:-2], (call.query.shape[-2], call.key.shape[-2])
    kept = torch.ops.maskwise.kept_by_rules(call.mask_rules, leading[0] if leading else 1, *extents)
    return kept.reshape(*leading[:1], *(1,) * (len(leading) - 1), *extents)


def reference(call: AttentionCall, dropout_p: float = 0.0) -> torch.Tensor:
    """Computes attention by torch's operators, which have gradients: by SDPA, or by single
    operators for options that SDPA lacks."""
    count, leading = own_dimensions(call), result_shape(call)[: -own_dimensions(call)]
    q, k, v = (one.expand(*leading, *one.shape[-count:]) for one in call[:3])
    kept = kept_places(q, k, call.is_causal, call.window, call.offset)
    mask = restricted(call.attn_mask, kept)
    if call.mask_rules is not None:
        mask = restricted(mask, kept_by_rules(call))
    if call.key_mask is not None:
        mask = restricted(mask, kept_keys(call.key_mask, k.shape[-2])[:, None, None])
    if (ids := call.document_ids) is not None:
        mask = restricted(mask, ids[:, None, :, None] == ids[:, None, None])
    scale, enable_gqa, soft_cap, sinks = call.scale, call.enable_gqa, call.soft_cap, call.sinks
    if not soft_cap and sinks is None and (mask is None or mask.dtype in (torch.bool, q.dtype)):
        return scaled_dot_product_attention(
            q, k, v, mask, dropout_p, scale=scale, enable_gqa=enable_gqa
        )
    if enable_gqa:
        k, v = (one.repeat_interleave(q.shape[-3] // one.shape[-3], dim=-3) for one in (k, v))
    scores = (
        q.float() @ k.float().transpose(-1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    )
    scores = soft_cap * torch.tanh(scores / soft_cap) if soft_cap else scores
    if mask is not None:
        is_kept = mask.dtype == torch.bool
        scores = scores.masked_fill(~mask, -torch.inf) if is_kept else scores + mask
    if sinks is not None:
        column = sinks.float()[..., None, None].expand(*scores.shape[:-1], 1)
        scores = torch.cat([scores, column], dim=-1)
    weights = torch.ops.aten._safe_softmax(scores, -1)
    weights = dropout(weights if sinks is None else weights[..., :-1], dropout_p)
    return weights.to(v.dtype) @ v


def gradients_of(
    call: AttentionCall,
    operands: dict[str, torch.Tensor],
    wanted: dict[str, bool],
    gradient: torch.Tensor,
    compute: Callable[[], tuple[torch.Tensor, ...]],
) -> dict[str, torch.Tensor]:
    """Returns the wanted gradients, in the operands' shapes and types. compute() returns the core's
    gradients. torch computes gradients that need gradients themselves, and gradients of calls whose
    key and value have different numbers of heads."""
    if torch.is_grad_enabled() or has_unlike_heads(call):
        return gradients_by_torch(call, wanted, gradient)
    return {
        name: one.sum_to_size(operand.shape).to(operand.dtype)
        for one, (name, operand) in zip(compute(), operands.items(), strict=True)
        if wanted[name]
    }


def has_unlike_heads(call: AttentionCall) -> bool:
    """Whether key and value have different numbers of heads, which the core's gradients do not
    support."""
    return own_dimensions(call) == 3 and call.key.shape[-3] != call.value.shape[-3]


def gradients_by_torch(
    call: AttentionCall, wanted: dict[str, bool], gradient: torch.Tensor
) -> dict[str, torch.Tensor]:
    names = [name for name, wants in wanted.items() if wants]
    create_graph = torch.is_grad_enabled()
    call = without_rules(call) if has_rules(call.attn_mask) else call
    with torch.enable_grad(), sdpa_kernel(SDPBackend.MATH):
        sources = [getattr(call, name) for name in names]
        gradients = torch.autograd.grad(
            reference(call), sources, gradient, create_graph=create_graph
        )
    return dict(zip(names, gradients, strict=True))


def with_window(call: AttentionCall) -> Mask:
    mask: Mask = call.attn_mask
    return mask if call.window is None else mask & window_mask(call.window)


def without_rules(call: AttentionCall) -> AttentionCall:
    """Returns the call with its rules and window as an array: the operator takes no Mask."""
    if is_traced() or any(map(is_symbol, call[:3])):
        refuse_traced(*call[:3])
    leading = () if call.is_packed else result_shape(call)[:-2]
    extents, rules = (call.query.shape[-2], call.key.shape[-2]), with_window(call)
    mask = written(rules, tensor_of(rules._array), extents, leading)
    return call.changed(attn_mask=mask, window=None)


def tensor_of(value: Any) -> Any:
    if value is None or torch.is_tensor(value) or is_symbol(value):
        return value
    return as_tensor(np.array(_others.unlisted(value)))
