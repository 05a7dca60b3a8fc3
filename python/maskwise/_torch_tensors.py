"""Checks whether torch tracks a tensor, and views a tensor's memory as an array."""

# mypy may check the package without torch.
# mypy: disable-error-code="import-not-found,misc,no-any-return,unused-ignore"

from __future__ import annotations

import sys
from collections.abc import Iterable
from functools import cache
from typing import Any

from maskwise import _torch_version  # noqa: F401  # raises if torch is too old for the imports below

# isort: split
import numpy as np
import torch
from torch.autograd import forward_ad

from maskwise import _core
from maskwise._bfloat16 import BITS, is_bfloat16
from maskwise._call import AttentionCall, mask_array

CPU = torch.device("cpu")
DTYPES = (torch.float32, torch.bfloat16, torch.float16)
PLAIN = (torch.Tensor, torch.nn.Parameter)


def is_traced() -> bool:
    """Whether the caller runs in torch.jit.trace."""
    return torch._C._get_tracing_state() is not None


def is_symbol(value: Any) -> bool:
    """Whether `value` is a proxy of torch.fx.symbolic_trace, which has no elements."""
    return isinstance(value, torch.fx.Proxy)


def refuse_traced(*operands: Any) -> None:
    """Raises NotImplementedError while torch traces, because the elements that Maskwise reads would
    become constants of the trace."""
    proxies = sys.modules.get("torch.fx.experimental.proxy_tensor")
    is_recorded = proxies is not None and proxies.get_proxy_mode() is not None
    if is_traced() or is_recorded or any(map(is_symbol, operands)):
        raise NotImplementedError(
            "torch is tracing and would record this tensor's elements as constants. A trace can "
            "record maskwise's attention without a Mask. Use torch.where, and arrays as masks"
        )


def is_in_mode() -> bool:
    """Whether a dispatch mode, forward-mode differentiation or a trace intercepts every
    operator."""
    return torch._C._len_torch_dispatch_stack() > 0 or forward_ad._current_level >= 0 or is_traced()


def is_plain(one: torch.Tensor) -> bool:
    """Whether the tensor is neither of a subclass nor wrapped, for example by vmap."""
    return type(one) in PLAIN and not torch._C._functorch.is_functorch_wrapped_tensor(one)


def want_gradients(tensors: Iterable[torch.Tensor]) -> bool:
    return torch.is_grad_enabled() and any(one.requires_grad for one in tensors)


def is_changing_calls() -> bool:
    """Whether a graph, a mode or autocast tracks or changes calls of plain tensors."""
    return torch.compiler.is_compiling() or is_in_mode() or torch.is_autocast_enabled("cpu")


def is_followed(call: AttentionCall) -> bool:
    """Whether torch tracks a tensor by a gradient, tangent, vmap, mode, autocast or graph."""
    if is_changing_calls():
        return True
    optional = [one for one in (mask_array(call), call.sinks) if one is not None]
    operands = [call.query, call.key, call.value, *optional]
    tensors = [one for one in operands if isinstance(one, torch.Tensor)]
    return (
        any(map(is_symbol, operands)) or want_gradients(tensors) or not all(map(is_plain, tensors))
    )


def detached(operands: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(one.detach() if getattr(one, "requires_grad", False) else one for one in operands)


def holds_elements(one: torch.Tensor) -> bool:
    """Whether a plain tensor's memory contains its elements. If is_neg(), it has their
    negatives."""
    is_memory = one.layout is torch.strided and not one.is_neg()
    return is_memory and (one.data_ptr() != 0 or one.numel() == 0)


def is_readable(value: torch.Tensor) -> bool:
    """Whether the core reads the tensor in place. Ignores gradients."""
    return _core.view_of_tensor(value) is not None


def as_array(value: Any) -> Any:
    """Returns an array over the same memory, faster than by DLPack. Unlike after tensor.numpy(),
    torch can still resize the tensor."""
    if type(value) is np.ndarray:
        return value
    dtype = _numpy_dtype(value.dtype)
    return _core.view_at(value.data_ptr(), value.shape, value.stride(), dtype, value)


def view_by_attributes(tensor: torch.Tensor) -> Any:
    """_core.view_of_tensor calls this function in torch before 2.10, because these versions export
    no functions that read tensors. Returns None if the core cannot read the tensor."""
    has_type = tensor.dtype in (*DTYPES, torch.bool) and tensor.device.type == "cpu"
    return as_array(tensor) if has_type and is_plain(tensor) and holds_elements(tensor) else None


@cache
def _numpy_dtype(dtype: torch.dtype) -> np.dtype[Any]:
    name = str(dtype).removeprefix("torch.")
    return BITS if name == "bfloat16" else np.dtype(name)


def writable(out: torch.Tensor) -> Any:
    """Returns an array over the memory of `out`, which receives a result."""
    if torch.is_grad_enabled() and out.requires_grad:
        raise BufferError("out requires a gradient, which does not pass through out=")
    if is_in_mode() or not is_plain(out):
        raise BufferError(
            f"out is a {type(out).__name__} that torch tracks, expected a plain tensor"
        )
    is_read = out.device.type == "cpu" and not out.is_conj()
    if not is_read or not holds_elements(out):
        raise BufferError(f"out, on {out.device}, does not have its elements in the CPU's memory")
    return as_array(out.detach())


def mark_written(out: torch.Tensor) -> None:
    """Tells torch about the write. torch then refuses gradients that need the old elements."""
    if not out.is_inference():
        torch.autograd.graph.increment_version(out)


def indices(count: int) -> torch.Tensor:
    """Returns 0 to count - 1 on the CPU, whatever torch's default device is."""
    return torch.arange(count, device="cpu")


def is_deterministic() -> bool:
    return torch.are_deterministic_algorithms_enabled()


def empty_like(array: Any) -> torch.Tensor:
    """Returns a new tensor with an array's shape, strides and dtype. No stride may be negative."""
    strides = tuple(stride // array.itemsize for stride in array.strides)
    return empty(array.shape, strides, as_tensor(np.empty(0, array.dtype)).dtype)


def empty(extents: tuple[int, ...], strides: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    return torch.empty_strided(extents, strides, dtype=dtype, device=CPU)


def as_tensor(value: Any) -> Any:
    """Returns a tensor over an array's memory, and other objects unchanged."""
    if type(value) is not np.ndarray:
        return value
    if is_bfloat16(value):
        return torch.from_numpy(value.view(np.uint16)).view(torch.bfloat16)
    return torch.from_numpy(value)
