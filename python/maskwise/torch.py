"""Runs torch's attention, where and masked_fill on CPUs by Maskwise, for the whole process.

    import maskwise.torch

    maskwise.torch.install()         # scaled_dot_product_attention, where, masked_fill
    maskwise.torch.uninstall()       # restores torch
    with maskwise.torch.installed():
        ...

    torch.ops.maskwise.attention(query, key, value, attn_mask, ...)    # as an operator

After install(), Maskwise runs attention of float32, bfloat16 and float16, also with gradients, if
the call has no dropout and is large enough to gain. torch.nn.attention.varlen.varlen_attn gets a
CPU kernel. Maskwise runs where and masked_fill from 4096 elements, except for booleans and a few
other types and layouts. torch runs all other calls, and compiled models.
`python -m maskwise run program.py` runs a program after install().
"""

# mypy may check the package without torch.
# mypy: disable-error-code="import-not-found,misc,no-any-return,unused-ignore"

from __future__ import annotations

import warnings
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Any

from maskwise import _torch_version  # noqa: F401  # raises if torch is too old for the imports below

# isort: split
import torch
from torch.nn.attention import SDPBackend
from torch.utils._python_dispatch import _disable_current_modes

from maskwise import (
    _core,
    _torch_gradients,
    _torch_op,  # noqa: F401  # torch.ops.maskwise.attention
)
from maskwise._attention import packed_attention
from maskwise._call import AttentionCall
from maskwise._native import run_if_readable
from maskwise._torch_tensors import (
    DTYPES,
    is_deterministic,
    is_in_mode,
    is_plain,
    want_gradients,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["install", "installed", "uninstall"]

# Bound on q's elements times the number of keys, for float32. Below the bound, torch is as fast.
# For 16-bit types, the bound is half.
LEAST_PRODUCTS = 2**19
TIMES_WITH_GRADIENTS = 4  # with gradients, multiplies the bound: each call runs Python code

COMPOSITE = torch._C.DispatchKey.CompositeImplicitAutograd
MATH = SDPBackend.MATH.value

_sdpa = torch.ops.aten.scaled_dot_product_attention.default
_lock = Lock()
_libraries: list[torch.library.Library] = []  # handles of one install()
_contexts: list[bool] = []  # per open installed(): whether install() ran before the first context


def is_small(q_elements: int, keys: int, dtype: torch.dtype, has_gradients: bool = False) -> bool:
    """Whether torch is about as fast as Maskwise. False with deterministic algorithms, because the
    bits of torch's results depend on the batch."""
    if is_deterministic():
        return False
    least = LEAST_PRODUCTS * (TIMES_WITH_GRADIENTS if has_gradients else 1)
    return q_elements * keys < least // (1 if dtype == torch.float32 else 2)


def _fits(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, grouped: bool) -> bool:
    """Whether Maskwise supports the shapes and types."""
    shape = q.shape
    if not (len(shape) == k.ndim == v.ndim == 4 and k.dtype == v.dtype == q.dtype in DTYPES):
        return False
    (batch, heads, _, depth), (*leading, keys, key_depth) = shape, k.shape
    return (
        depth == key_depth
        and v.shape[:3] == (*leading, keys)
        and leading[0] == batch
        and (leading[1] == heads or (grouped and heads % max(leading[1], 1) == 0))
    )


def _fits_mask(mask: torch.Tensor | None, q: torch.Tensor, k: torch.Tensor, causal: bool) -> bool:
    if mask is None:
        return True
    shape = (*q.shape[:3], k.shape[2])[4 - mask.ndim :]
    return (
        not causal
        and mask.dtype in (torch.bool, q.dtype)
        and 2 <= mask.ndim <= 4
        and all(have in (1, want) for have, want in zip(mask.shape, shape, strict=True))
    )


def _is_maskwises(
    tensors: tuple[torch.Tensor, ...], mask: torch.Tensor | None, causal: bool, grouped: bool
) -> bool:
    """Whether Maskwise runs the call. Checks tracing first: reading a symbolic size adds a guard.
    Checks the size next: for small calls, the other checks take as long as torch's attention."""
    q, k, v = tensors
    operands = tensors if mask is None else (*tensors, mask)
    return (
        not is_in_mode()
        and is_plain(q)
        and is_plain(k)
        and k.ndim == 4
        and not is_small(q.numel(), k.shape[2], q.dtype)
        and all(map(is_plain, operands[2:]))
        and _fits(q, k, v, grouped)
        and not (is_small(q.numel(), k.shape[2], q.dtype, True) and want_gradients(operands))
        and _fits_mask(mask, q, k, causal)
        and all(one.layout is torch.strided for one in operands)
        and torch._C._get_flash_sdp_enabled()
    )


def _scaled_dot_product_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> torch.Tensor:
    tensors = (query, key, value)
    if dropout_p == 0 and _is_maskwises(tensors, attn_mask, is_causal, enable_gqa):
        # Raises torch's error if sdpa_kernel() allows no kernel for the call.
        choice = torch._fused_sdp_choice(
            *tensors, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
        )
        result = _run(AttentionCall(*tensors, attn_mask, is_causal, scale, enable_gqa))
        if result is not None:
            return _laid_out(result, query, choice == MATH)
    operands: tuple[Any, ...] = tensors
    if attn_mask is not None or dropout_p != 0 or is_causal:
        operands = (*tensors, attn_mask, dropout_p, is_causal)
    if scale is None and not enable_gqa:  # each argument costs 0.2 us
        return _sdpa._op_dk(COMPOSITE, *operands)
    return _sdpa._op_dk(COMPOSITE, *operands, scale=scale, enable_gqa=enable_gqa)


def _run(call: AttentionCall) -> torch.Tensor | None:
    """Returns None if the core cannot read an operand."""
    result = run_if_readable(call, refuses_gradients=True)
    if result is None and _torch_gradients.can_run(call):
        result = _torch_gradients.run(call)
    return result


def _laid_out(result: torch.Tensor, q: torch.Tensor, is_plain: bool) -> torch.Tensor:
    """Returns the result in torch's layout: contiguous for plain operators, query's for the fused
    kernel. Maskwise's result already has query's layout, unless query has a stride of 0.
    """
    if is_plain:
        return result.contiguous()
    return torch.empty_like(q).copy_(result) if 0 in q.stride() else result


def _flash_attention_forward(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    cum_seq_q: torch.Tensor | None,
    cum_seq_k: torch.Tensor | None,
    max_q: int,
    max_k: int,
    dropout_p: float,
    is_causal: bool,
    return_debug_mask: bool,
    *,
    scale: float | None = None,
    window_size_left: int | None = None,
    window_size_right: int | None = None,
    **others: Any,
) -> tuple[torch.Tensor, ...]:
    """The CPU kernel that varlen_attn calls."""
    others |= {"cum_seq_q": cum_seq_q is None or None, "dropout_p": dropout_p or None}
    if unsupported := sorted(name for name, value in others.items() if value is not None):
        raise NotImplementedError(f"varlen_attn on CPU by maskwise has no {', '.join(unsupported)}")
    sides = (window_size_left, window_size_right)
    left, right = (-1 if side is None else int(side) for side in sides)
    out, sums = packed_attention(
        query.detach(),
        key.detach(),
        value.detach(),
        cum_seq_q,
        cum_seq_k,
        is_causal=is_causal,
        scale=scale,
        window=(left, right),
        return_statistics=True,
    )
    unused = query.new_empty(0)
    return out, sums, query.new_zeros(2, dtype=torch.uint64), unused, unused


def _selects() -> tuple[torch.Tensor, ...]:
    """Results of where and masked_fill, with enough elements for Maskwise."""
    one = torch.arange(8192.0, device="cpu").view(64, 128)
    mask = one.view(128, 64).T[:, :1] > 4000
    return torch.where(mask, one, -one), one.masked_fill(mask, 2.5)


def _install_selects() -> None:
    """Replaces the kernels of where and masked_fill, or warns if that fails. torch chooses a
    kernel at the first call, so this function first calls where and masked_fill. Maskwise reads
    private data of torch, so the results are compared with torch's."""
    with _disable_current_modes(), torch.inference_mode():
        wanted = _selects()
        is_installed = _core.install_torch_selects(torch.backends.cpu.get_cpu_capability())
        is_right = is_installed and all(map(torch.equal, _selects(), wanted))
    if not is_right:
        _core.uninstall_torch_selects()
        version = torch.__version__
        warnings.warn(
            f"maskwise cannot replace where and masked_fill of torch {version}", stacklevel=3
        )


def install() -> None:
    """Installs Maskwise's kernels. Repeated calls have no effect. Other threads may compute
    meanwhile."""
    with _lock:
        if _libraries:
            return
        library = torch.library.Library("aten", "IMPL")
        for key in ("CPU", "AutogradCPU"):
            library.impl("scaled_dot_product_attention", _scaled_dot_product_attention, key)
        library.impl("_flash_attention_forward", _flash_attention_forward, "CPU")
        _install_selects()
        _libraries.append(library)
        _sdpa._dispatch_cache.clear()


def uninstall() -> None:
    """Restores torch. Has no effect without install()."""
    with _lock:
        _core.uninstall_torch_selects()
        while _libraries:
            _libraries.pop()._destroy()
        _sdpa._dispatch_cache.clear()


@contextmanager
def installed() -> Iterator[None]:
    """Runs install(). The end of the last open context runs uninstall(), unless install() ran
    before the first context."""
    with _lock:
        _contexts.append(bool(_libraries) if not _contexts else _contexts[0])
    install()
    try:
        yield
    finally:
        with _lock:
            was_installed = _contexts.pop()
            is_last = not _contexts
        if is_last and not was_installed:
            uninstall()
