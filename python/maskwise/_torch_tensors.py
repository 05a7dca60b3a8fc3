"""Tensors of torch: who follows them, and their memory as arrays."""

# torch need not be there where the package is checked.
# mypy: disable-error-code="import-not-found,misc,no-any-return,unused-ignore"

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
import torch
from torch.autograd import forward_ad

DTYPES = (torch.float32, torch.bfloat16, torch.float16)
PLAIN = (torch.Tensor, torch.nn.Parameter)


def is_in_mode() -> bool:
    """Whether torch looks at every operator: a dispatch mode, as of tracing, or tangents."""
    return torch._C._len_torch_dispatch_stack() > 0 or forward_ad._current_level >= 0


def is_plain(one: torch.Tensor) -> bool:
    """No subclass, and not wrapped, as by vmap."""
    return type(one) in PLAIN and not torch._C._functorch.is_functorch_wrapped_tensor(one)


def want_gradients(tensors: Iterable[torch.Tensor]) -> bool:
    return torch.is_grad_enabled() and any(one.requires_grad for one in tensors)


def is_followed(operands: Iterable[Any]) -> bool:
    """Whether torch follows what becomes of a tensor, by a gradient, a tangent, vmap, a mode or a
    graph, or a tensor is more than its memory.
    """
    tensors = [one for one in operands if isinstance(one, torch.Tensor)]
    return (
        torch.compiler.is_compiling()
        or is_in_mode()
        or torch.is_autocast_enabled("cpu")
        or want_gradients(tensors)
        or not all(map(is_plain, tensors))
    )


def holds_elements(one: torch.Tensor) -> bool:
    """Whether the memory of a plain tensor is there, and says what the tensor says."""
    return not one.is_neg() and (one.data_ptr() != 0 or one.numel() == 0)


def is_readable(value: Any) -> bool:
    """An array, or a tensor that as_array() takes."""
    return type(value) is np.ndarray or (
        isinstance(value, torch.Tensor)
        and is_plain(value)
        and value.dtype in (*DTYPES, torch.bool)
        and value.device.type == "cpu"
        and value.layout is torch.strided
        and not value.requires_grad
        and holds_elements(value)
    )


def as_array(value: Any) -> Any:
    """The same memory, in a tenth of DLPack's time."""
    if type(value) is np.ndarray:
        return value
    if value.dtype is torch.bfloat16:
        return value.view(torch.uint16).numpy().view(bfloat16())
    return value.numpy()


def as_tensor(value: Any) -> Any:
    """Of an array the same memory; others are left."""
    if type(value) is not np.ndarray:
        return value
    if value.dtype.kind == "V":  # ml_dtypes.bfloat16
        return torch.from_numpy(value.view(np.uint16)).view(torch.bfloat16)
    return torch.from_numpy(value)


@cache
def bfloat16() -> np.dtype[Any]:
    made: np.dtype[Any] = np.dtype(import_module("ml_dtypes").bfloat16)
    return made
