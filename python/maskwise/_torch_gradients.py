"""Attention with gradients by the core, outside of torch graphs."""

# mypy may check the package without torch.
# mypy: disable-error-code="import-not-found,misc,no-any-return,untyped-decorator,unused-ignore"

from __future__ import annotations

from typing import Any

from maskwise import _torch_version  # noqa: F401  # raises if torch is too old for the imports below

# isort: split
import torch

from maskwise._call import AttentionCall, has_rules, mask_array
from maskwise._native import run_native, run_native_gradients
from maskwise._torch_reference import TENSORS, gradients_of, has_unlike_heads
from maskwise._torch_tensors import is_in_mode, is_plain, is_readable


def can_run(call: AttentionCall) -> bool:
    """Whether the core can compute the gradients: torch tracks only gradients, the core can read
    the tensors, and key and value have equally many heads."""
    operands = [call.query, call.key, call.value, mask_array(call), call.sinks]
    return (
        not torch.compiler.is_compiling()
        and not is_in_mode()
        and all(
            one is None or (torch.is_tensor(one) and is_plain(one) and is_readable(one))
            for one in operands
        )
        and not has_unlike_heads(call)
    )


def run(call: AttentionCall) -> torch.Tensor:
    """Computes the result. The backward pass reuses the rules of a Mask."""
    operands = (call.query, call.key, call.value, mask_array(call), call.sinks)
    return _Attention.apply(call, *operands)


def _with_operands(call: AttentionCall, operands: Any) -> AttentionCall:
    query, key, value, mask, sinks = operands
    if has_rules(call.attn_mask):
        rules: Any = call.attn_mask
        mask = rules if mask is None else rules._beside(mask, rules._maps)
    return call.changed(query=query, key=key, value=value, attn_mask=mask, sinks=sinks)


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, call: AttentionCall, *operands: Any) -> torch.Tensor:
        plain = _with_operands(call, [None if one is None else one.detach() for one in operands])
        result, statistics = run_native(plain.changed(return_statistics=True))
        ctx.call = call.changed(query=None, key=None, value=None, sinks=None)
        if not has_rules(call.attn_mask):
            ctx.call = ctx.call.changed(attn_mask=None)
        ctx.save_for_backward(result, statistics, *operands)
        return result

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[Any, ...]:
        result, statistics, *operands = ctx.saved_tensors
        call = _with_operands(ctx.call, operands)
        wanted = dict(zip(TENSORS, ctx.needs_input_grad[1:], strict=True))

        def compute() -> tuple[torch.Tensor, ...]:
            outputs = (result, statistics, gradient)
            return run_native_gradients(call, outputs, wanted["attn_mask"], wanted["sinks"])

        operands_by_name = dict(zip(TENSORS, operands, strict=True))
        gradients = gradients_of(call, operands_by_name, wanted, gradient, compute)
        return (None, *(gradients.get(name) for name in TENSORS))
