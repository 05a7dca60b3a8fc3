"""Runs a call of attention in the core."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from maskwise import _core
from maskwise._call import AttentionCall, has_rules, window_mask

if TYPE_CHECKING:
    from maskwise._mask import Mask


def has_tensors(call: AttentionCall) -> bool:
    """Whether query, key or value is a torch tensor."""
    name = "__torch_function__"
    return hasattr(call.query, name) or hasattr(call.key, name) or hasattr(call.value, name)


@lru_cache(maxsize=16)
def _mask_of(is_causal: bool, window: tuple[int, int] | None) -> Mask:
    """Cached, so that a call without a mask creates no Mask."""
    from maskwise._mask import Mask

    mask = Mask.causal() if is_causal else Mask()
    return mask if window is None else mask & window_mask(window)


def _parts(call: AttentionCall) -> tuple[tuple[Any, ...], Any, Any]:
    """Returns the operands (query, key, value, the mask's array, sinks), the mask's rules including
    window and is_causal, and the mask's maps."""
    mask, rules, maps = call.attn_mask, None, None
    if call.is_causal or call.window is not None:
        rule = _mask_of(call.is_causal, _plain_window(call.window))
        if mask is None:
            mask = rule
        elif has_rules(mask):
            mask = mask & rule
        else:
            mask = rule._beside(mask)
    if has_rules(mask):
        mask, rules, maps = mask._array, mask._rules.native, mask._maps
    sinks = call.sinks
    if type(sinks) in (list, tuple):
        sinks = np.asarray(sinks, np.float32)
    return (call.query, call.key, call.value, mask, sinks), rules, maps


def _plain_window(window: Any) -> tuple[int, int] | None:
    """Converts to Python integers, because the cache of _mask_of confuses 1, 1.0 and True."""
    if window is None or all(type(side) is int for side in window):
        return window if window is None else tuple(window)
    return window_mask(window)._rules.window


def run_native_gradients(
    call: AttentionCall, outputs: tuple[Any, Any, Any], wants_mask: bool, wants_sinks: bool
) -> tuple[Any, ...]:
    """Returns the gradients of query, key, value, the mask's array and sinks. `outputs`: the
    result, its statistics and its gradient. All arrays are tensors."""
    operands, rules, maps = _parts(call)
    result, statistics, gradient = outputs
    if gradient.stride(-1) != 1:  # for example 0 after sum()
        gradient = gradient.contiguous()
    operands = (*operands, result, statistics, gradient)
    gradients = _core.attention_gradients(call, operands, rules, maps, wants_mask, wants_sinks)
    if gradients is None:
        raise BufferError("gradients of attention: the core cannot read a tensor's memory")
    return gradients


def _run(call: AttentionCall, operands: tuple[Any, ...], out: Any, *options: Any) -> Any:
    """`options`: the mask's rules, its maps, and refuses_gradients."""
    rules, maps, refuses_gradients = options
    function = _core.explain_attention if call.explains else _core.attention
    return function(call, operands, out, rules, maps, has_tensors(call), refuses_gradients)


def run_if_readable(call: AttentionCall, *, refuses_gradients: bool = False) -> Any:
    """Returns the result, with the rows' statistics if requested. If call.explains, returns the
    tile counts and the plan's text.

    Returns None if the core cannot read an operand or write to `out`. With refuses_gradients, also
    returns None if torch would compute a gradient of an operand. Never computes gradients.
    """
    out = call.out
    if out is not None and (has_tensors(call) or not isinstance(out, np.ndarray)):
        return None
    operands, rules, maps = _parts(call)
    return _run(call, operands, out, rules, maps, refuses_gradients)


def run_native(call: AttentionCall) -> Any:
    """Like run_if_readable, but reads and writes other objects by DLPack or NumPy. Raises
    BufferError and TypeError for objects that have neither."""
    result = run_if_readable(call)
    if result is not None:
        return result
    from maskwise import _others

    operands, rules, maps = _parts(call)
    if has_tensors(call):
        from maskwise import _torch_tensors

        operands = _torch_tensors.detached(operands)

    def compute(*arrays: Any, out: Any) -> Any:
        return _run(call, arrays, out, rules, maps, False)

    return _others.in_kind(compute, operands, call.out, _others.plain_or_none)
