"""Runs a call of attention in the core."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from maskwise import _core
from maskwise._call import AttentionCall, has_rules, window_mask

if TYPE_CHECKING:
    from maskwise._mask import Mask

NONE_OR_ARRAY = {np.ndarray, type(None)}


def has_tensors(call: AttentionCall) -> bool:
    """Whether query, key or value is a torch tensor."""
    name = "__torch_function__"
    return hasattr(call.query, name) or hasattr(call.key, name) or hasattr(call.value, name)


@cache
def _causal() -> Mask:
    from maskwise._mask import Mask

    return Mask.causal()


def _mask_parts(call: AttentionCall) -> tuple[Any, Any, Any]:
    """The mask's array, rules and maps. The rules include window and is_causal."""
    mask = call.attn_mask
    rules = [_causal()] if call.is_causal else []
    if call.window is not None:
        rules.append(window_mask(call.window))
    for rule in rules:
        mask = mask & rule if has_rules(mask) else rule._beside(mask)
    if has_rules(mask):
        return mask._array, mask._rules.native, mask._maps
    return mask, None, None


def run_native_gradients(
    call: AttentionCall, outputs: tuple[Any, Any, Any], wants_mask: bool, wants_sinks: bool
) -> tuple[Any, ...]:
    """The gradients of query, key, value, the mask's array and sinks. `outputs`: the result, its
    statistics, and the gradient of the result. All arrays are tensors."""
    from maskwise import _torch_tensors

    mask, rules, maps = _mask_parts(call)
    result, statistics, gradient = outputs
    if gradient.stride(-1) != 1:  # for example 0 after sum()
        gradient = gradient.contiguous()
    operands = (call.query, call.key, call.value, mask, call.sinks, result, statistics, gradient)
    arrays = _torch_tensors.as_arrays(_torch_tensors.detached(operands))
    if arrays is None:
        raise BufferError("gradients of attention: the core cannot read a tensor's memory")
    q, k, v, mask, sinks, result, statistics, gradient = arrays
    options = (rules, maps, _torch_tensors.empty)
    outputs = (result, statistics, gradient)
    return _core.attention_gradients(
        call, q, k, v, mask, sinks, *options, *outputs, wants_mask, wants_sinks
    )


def run_native(call: AttentionCall) -> Any:
    """Returns the result, with the rows' statistics if requested. If call.explains, returns the
    tile counts and the plan's text.

    Does not compute gradients.
    """
    mask, rules, maps = _mask_parts(call)
    sinks = call.sinks
    if type(sinks) in (list, tuple):
        sinks = np.asarray(sinks, np.float32)
    torch_empty = None

    def compute(q: Any, k: Any, v: Any, mask: Any, sinks: Any, *, out: Any) -> Any:
        if call.is_packed:
            return _in_packed_layout(call, (q, k, v, mask, sinks), out, (rules, maps, torch_empty))
        return _results(call, (q, k, v, mask, sinks, out), (rules, maps, torch_empty))

    out, operands = call.out, (call.query, call.key, call.value, mask, sinks)
    if set(map(type, operands)) <= NONE_OR_ARRAY and (out is None or isinstance(out, np.ndarray)):
        return compute(*operands, out=out)
    if has_tensors(call):
        from maskwise import _torch_tensors

        torch_empty = _torch_tensors.empty
        if _torch_tensors.is_deterministic():
            call = call.changed(deterministic=True)
        operands = _torch_tensors.detached(operands)
        arrays = None if out is not None else _torch_tensors.as_arrays(operands)
        if arrays is not None:
            return compute(*arrays, out=None)
    from maskwise import _others

    return _others.in_kind(compute, operands, out, _others.plain_or_none)


def _results(call: AttentionCall, arrays: tuple[Any, ...], others: tuple[Any, ...]) -> Any:
    if call.explains:
        return _core.explain_attention(call, *arrays, *others)
    result, statistics = _core.attention(call, *arrays, *others)
    return (result, statistics) if call.return_statistics else result


def _in_packed_layout(
    call: AttentionCall, operands: tuple[Any, ...], out: Any, others: tuple[Any, ...]
) -> Any:
    """Swaps rows and heads, because the core requires heads first."""
    for name, array in zip(("query", "key", "value"), operands, strict=False):
        if array.ndim != 3:
            raise ValueError(f"{name} has shape {array.shape}, expected 3 dimensions")
    q, k, v = (one.swapaxes(0, 1) for one in operands[:3])
    heads_first = None if out is None else out.swapaxes(0, 1)
    results = _results(call, (q, k, v, *operands[3:], heads_first), others)
    if call.explains:
        return results
    result, *statistics = results if call.return_statistics else (results,)
    result = result.swapaxes(0, 1) if out is None else out
    return (result, *statistics) if statistics else result
