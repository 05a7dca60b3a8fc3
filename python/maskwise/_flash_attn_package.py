"""A package named flash_attn: maskwise.flash_attn's functions, their packed forms, and the padding
functions."""

# mypy may run where torch is not installed.
# mypy: disable-error-code="import-not-found,misc,no-any-return,unused-ignore"

from __future__ import annotations

import importlib.util
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import torch
from torch.nn.functional import pad

from maskwise.flash_attn import flash_attn_func, flash_attn_varlen_func, flash_attn_with_kvcache

NAME = "flash_attn"
VERSION = "2.8.3"  # the flash_attn release with the same names and signatures
MARK = "__maskwise__"


def flash_attn_qkvpacked_func(qkv: torch.Tensor, *options: Any, **named: Any) -> Any:
    """flash_attn_func for query, key and value as (batch, rows, 3, heads, depth)."""
    return flash_attn_func(*qkv.unbind(-3), *options, **named)


def flash_attn_kvpacked_func(q: torch.Tensor, kv: torch.Tensor, *options: Any, **named: Any) -> Any:
    """flash_attn_func for keys and values as (batch, keys, 2, heads, depth)."""
    return flash_attn_func(q, *kv.unbind(-3), *options, **named)


def flash_attn_varlen_qkvpacked_func(
    qkv: torch.Tensor, cu_seqlens: torch.Tensor, max_seqlen: int, *options: Any, **named: Any
) -> Any:
    """flash_attn_varlen_func for query, key and value as (rows, 3, heads, depth)."""
    q, k, v = qkv.unbind(-3)
    return flash_attn_varlen_func(
        q, k, v, cu_seqlens, cu_seqlens, max_seqlen, max_seqlen, *options, **named
    )


def flash_attn_varlen_kvpacked_func(
    q: torch.Tensor, kv: torch.Tensor, *options: Any, **named: Any
) -> Any:
    """flash_attn_varlen_func for keys and values as (keys, 2, heads, depth)."""
    return flash_attn_varlen_func(q, *kv.unbind(-3), *options, **named)


def index_first_axis(values: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
    return values[indices]


def index_put_first_axis(
    values: torch.Tensor, indices: torch.Tensor, first_axis_dim: int
) -> torch.Tensor:
    """Returns zeros with `values` at `indices`."""
    result = values.new_zeros(first_axis_dim, *values.shape[1:])
    return result.index_put((indices,), values)


def _bounds(lengths: torch.Tensor) -> tuple[torch.Tensor, int]:
    """Returns cu_seqlens and the longest length."""
    lengths = lengths.to(torch.int32)
    longest = int(lengths.max()) if lengths.numel() else 0
    return pad(lengths.cumsum(0, dtype=torch.int32), (1, 0)), longest


def _places(mask: torch.Tensor) -> torch.Tensor:
    return mask.flatten().nonzero().flatten()


def unpad_input(
    hidden_states: torch.Tensor, attention_mask: torch.Tensor, unused_mask: Any = None
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, int, torch.Tensor]:
    """Packs the rows of (batch, length, ...) that attention_mask or unused_mask selects. No row may
    be selected by both masks. Masks are (batch, length) of 0 and 1. Returns the packed rows, their
    indices, cu_seqlens, the longest length, and how many rows of each sequence attention_mask
    selects."""
    selected = attention_mask if unused_mask is None else attention_mask + unused_mask
    cu_seqlens, longest = _bounds(selected.sum(-1))
    indices, used = _places(selected), attention_mask.sum(-1, dtype=torch.int32)
    rows = index_first_axis(hidden_states.flatten(0, 1), indices)
    return rows, indices, cu_seqlens, longest, used


def unpad_input_for_concatenated_sequences(
    hidden_states: torch.Tensor, attention_mask_in_length: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, int]:
    """unpad_input for sequences of several documents. attention_mask_in_length is (batch, length):
    each sequence's document lengths, then zeros.
    """
    lengths = attention_mask_in_length
    places = torch.arange(lengths.shape[-1], device=lengths.device)
    indices = _places(places < lengths.sum(-1, keepdim=True))
    cu_seqlens, longest = _bounds(lengths.flatten()[_places(lengths)])
    return index_first_axis(hidden_states.flatten(0, 1), indices), indices, cu_seqlens, longest


def pad_input(
    hidden_states: torch.Tensor, indices: torch.Tensor, batch: int, seqlen: int
) -> torch.Tensor:
    """Reverses unpad_input. Returns (batch, seqlen, ...), zero where no row was packed."""
    padded = index_put_first_axis(hidden_states, indices, batch * seqlen)
    return padded.unflatten(0, (batch, seqlen))


ATTENTION = (
    flash_attn_func,
    flash_attn_kvpacked_func,
    flash_attn_qkvpacked_func,
    flash_attn_varlen_func,
    flash_attn_varlen_kvpacked_func,
    flash_attn_varlen_qkvpacked_func,
    flash_attn_with_kvcache,
)
PADDING = (
    index_first_axis,
    index_put_first_axis,
    pad_input,
    unpad_input,
    unpad_input_for_concatenated_sequences,
)


def _module(name: str, functions: tuple[Any, ...], is_package: bool = False) -> ModuleType:
    module = ModuleType(name, "flash_attn's functions for CPUs, implemented by Maskwise.")
    module.__spec__ = ModuleSpec(name, None, is_package=is_package)
    module.__package__ = NAME
    if is_package:
        module.__path__ = []
    for function in functions:
        setattr(module, function.__name__, function)
    setattr(module, MARK, True)
    return module


def _is_maskwises(name: str) -> bool:
    return hasattr(sys.modules.get(name), MARK)


def install() -> bool:
    """Installs this package, unless another flash_attn exists or torch has a GPU. (The real
    flash_attn runs on GPUs.) Returns whether this package is installed."""
    if NAME in sys.modules:
        return _is_maskwises(NAME)
    if importlib.util.find_spec(NAME) is not None or torch.cuda.is_available():
        return False
    package: Any = _module(NAME, ATTENTION, is_package=True)
    package.__version__ = VERSION
    package.flash_attn_interface = _module(f"{NAME}.flash_attn_interface", ATTENTION)
    package.bert_padding = _module(f"{NAME}.bert_padding", PADDING)
    for module in (package.flash_attn_interface, package.bert_padding, package):
        sys.modules[module.__name__] = module
    return True


def uninstall() -> None:
    """Removes the package if install() has installed it."""
    for name in (NAME, f"{NAME}.flash_attn_interface", f"{NAME}.bert_padding"):
        if _is_maskwises(name):
            del sys.modules[name]
