"""Attention of transformers' models by Maskwise, inference on CPUs.

    import maskwise.transformers

    model = AutoModel.from_pretrained(name, attn_implementation="maskwise")
    model.set_attn_implementation("maskwise")           # of a model that is there

The import registers "maskwise" as attention and as mask. Masks of the library's own kinds (causal,
sliding, chunked, padded, packed) become a maskwise.Mask, once a forward pass for all layers; others
become an array. What Maskwise does not compute is torch's, with the same mask: gradients, dropout,
other devices and dtypes, traced and compiled models, and what is too small to gain.

"maskwise_flash" is for packed batches: transformers, and libraries on top of it, call flash_attn's
functions where a name has "flash" in it, and leave padding out.
"""

# torch and transformers need not be there where the package is checked.
# mypy: disable-error-code="import-not-found,misc,no-any-return,unused-ignore"

from __future__ import annotations

from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from transformers import AttentionInterface, AttentionMaskInterface, masking_utils
from transformers import modeling_flash_attention_utils as flash_utils
from transformers.integrations.flash_attention import flash_attention_forward
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.utils import logging

from maskwise import Mask
from maskwise._attention import attend
from maskwise._torch_op import plainly
from maskwise.flash_attn import flash_attn_func, flash_attn_varlen_func, flash_attn_with_kvcache
from maskwise.torch import LEAST_PRODUCTS

if TYPE_CHECKING:
    from collections.abc import Callable

NAME, FLASH_NAME = "maskwise", "maskwise_flash"
DTYPES = (torch.float32, torch.bfloat16, torch.float16)

log = logging.get_logger(__name__)


class LazyMask(torch.Tensor):
    """A boolean (batch, 1, rows, keys) of which the elements are made where somebody asks."""

    rules: Mask
    build: Callable[[], torch.Tensor]
    written: torch.Tensor | None

    @staticmethod
    def __new__(cls: Any, shape: tuple[int, ...], rules: Mask, build: Any) -> LazyMask:
        made = torch.Tensor._make_wrapper_subclass(cls, shape, dtype=torch.bool, device="cpu")
        made.rules, made.build, made.written = rules, build, None
        return made

    def __init__(self, shape: tuple[int, ...], rules: Mask, build: Any) -> None:
        """All is done in __new__, as torch wants it."""

    def dense(self) -> torch.Tensor:
        if self.written is None:
            self.written = self.build()
        return self.written

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return f"<LazyMask {tuple(self.shape)} of {self.rules!r}>"

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        def plain(value: Any) -> Any:
            return value.dense() if isinstance(value, LazyMask) else value

        args, kwargs = torch.utils._pytree.tree_map(plain, (args, kwargs or {}))
        return func(*args, **kwargs)


class _Unknown(Exception):
    """A mask function that is not the library's, or says what rules do not."""


class _Place:
    """Where the rows and keys of a call stand among all of the model's."""

    def __init__(self, q_offset: int, kv_offset: int, rows: int, keys: int) -> None:
        self.offset, self.first_key = q_offset - kv_offset, kv_offset
        self.rows, self.keys = rows, keys
        self.starts: tuple[int, ...] = ()  # where padding ends

    def rules(self, **given: Any) -> Mask:
        return Mask._of(offsets=(self.offset,), **given)


def _variables(function: Any) -> dict[str, Any]:
    cells = function.__closure__ or ()
    names = function.__code__.co_freevars
    return {name: cell.cell_contents for name, cell in zip(names, cells, strict=True)}


def _rules_of(function: Any, at: _Place) -> Mask:
    """Of a mask function of transformers.masking_utils."""
    if getattr(function, "__module__", "") != masking_utils.__name__:
        raise _Unknown
    name = function.__qualname__.partition(".<locals>")[0]
    given = _variables(function)
    match name:
        case "causal_mask_function":
            return at.rules(causal=True)
        case "bidirectional_mask_function":
            return Mask()
        case "and_masks":
            return reduce(and_, (_rules_of(one, at) for one in given["mask_functions"]))
        case "sliding_window_overlay":
            return at.rules(window=(int(given["sliding_window"]) - 1, -1))
        case "sliding_window_bidirectional_overlay":
            return at.rules(window=(int(given["sliding_window"]),) * 2)
        case "chunked_overlay":
            return _chunks(int(given["chunk_size"]), given["left_padding"], at)
        case "packed_sequence_mask_function":
            return _documents(given["packed_sequence_mask"], at)
        case "remap_positions_for_packed_sequence":
            return _remapped(given["mask_function"], at)
    raise _Unknown


def _chunks(size: int, left_padding: torch.Tensor, at: _Place) -> Mask:
    """Rules count chunks from a sequence's first key, which is where its padding ends."""
    starts = left_padding.reshape(-1).numpy().astype(np.int64) - at.first_key
    if (starts != (at.starts or 0)).any():
        raise _Unknown
    return at.rules(chunks=(size, 0))


def _documents(ids: torch.Tensor, at: _Place) -> Mask:
    if at.offset != 0 or ids.shape[-1] != at.rows or at.rows != at.keys:
        raise _Unknown
    return Mask.documents(ids.numpy())


def _remapped(function: Any, at: _Place) -> Mask:
    """Within a document positions rise by one, so distances are those of the rows and keys."""
    rules = _rules_of(function, at)
    if rules._rules.chunks is not None or at.offset != 0:
        raise _Unknown
    return rules


def _padding(mask: torch.Tensor | None, at: _Place) -> Mask:
    """Of a boolean (batch, keys seen so far): a run of keys, or the mask as an array."""
    if mask is None:
        return Mask()
    kept = np.zeros((mask.shape[0], at.keys), bool)
    own = mask.numpy()[:, at.first_key : at.first_key + at.keys]
    kept[:, : own.shape[1]] = own
    if kept.all():
        return Mask()
    counts, starts = kept.sum(axis=1), kept.argmax(axis=1)
    ends = at.keys - kept[:, ::-1].argmax(axis=1)
    if ((ends - starts != counts) & (counts > 0)).any():
        return Mask.dense(kept[:, None, None])
    lengths = np.where(counts == 0, 0, ends)
    made = Mask() if (starts == 0).all() else Mask.starts(starts)
    return made if (lengths == at.keys).all() else made & Mask.lengths(lengths)


def _is_traced(*tensors: Any) -> bool:
    return (
        torch.compiler.is_compiling()
        or torch.jit.is_tracing()
        or any(
            type(one) not in (torch.Tensor, torch.nn.Parameter, LazyMask)
            for one in tensors
            if one is not None
        )
    )


def mask(
    batch_size: int,
    q_length: int,
    kv_length: int,
    q_offset: Any = 0,
    kv_offset: int = 0,
    mask_function: Any = masking_utils.causal_mask_function,
    attention_mask: torch.Tensor | None = None,
    **others: Any,
) -> torch.Tensor | None:
    """What transformers asks for once a forward pass, for all layers of a kind."""

    def build(**options: Any) -> torch.Tensor | None:
        made: torch.Tensor | None = masking_utils.sdpa_mask(
            batch_size=batch_size,
            q_length=q_length,
            kv_length=kv_length,
            q_offset=q_offset,
            kv_offset=kv_offset,
            mask_function=mask_function,
            attention_mask=attention_mask,
            **{**others, **options},
        )
        return made

    def dense() -> torch.Tensor:
        made = build(allow_is_causal_skip=False, allow_is_bidirectional_skip=False)
        assert made is not None
        return made

    device = torch.device(others.get("device", "cpu"))
    is_small = _is_small(batch_size * q_length, kv_length, others.get("config"))
    if is_small or device.type != "cpu" or _is_traced(attention_mask):
        return build()
    shape = (batch_size, 1, q_length, kv_length)
    at = _Place(int(q_offset), int(kv_offset), q_length, kv_length)
    try:
        padding = _padding(attention_mask, at)
        at.starts = padding._rules.starts
        return LazyMask(shape, _rules_of(mask_function, at) & padding, dense)
    except (_Unknown, ValueError):
        written = dense()
        return LazyMask(shape, Mask.dense(written), lambda: written)


def _is_small(rows: int, keys: int, config: Any) -> bool:
    """By what is known before there are queries: about as attention() has it."""
    width = getattr(config, "hidden_size", None)
    return rows * keys * (width if isinstance(width, int) else 1024) < LEAST_PRODUCTS


def _is_maskwises(tensors: tuple[torch.Tensor, ...], dropout: float) -> bool:
    q, k, v = tensors
    wants_gradient = torch.is_grad_enabled() and any(one.requires_grad for one in tensors)
    return (
        dropout == 0
        and q.numel() * k.shape[2] >= LEAST_PRODUCTS
        and not wants_gradient
        and q.dtype in DTYPES
        and q.dtype == k.dtype == v.dtype
        and all(one.device.type == "cpu" for one in tensors)
        and not _is_traced(*tensors)
    )


def attention(
    module: Any,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    is_causal: bool | None = None,
    **others: Any,
) -> tuple[torch.Tensor, None]:
    """(batch, heads, rows, depth) to (batch, rows, heads, columns), for a layer."""
    if others.get("output_attentions"):
        log.warning_once("attn_implementation='maskwise' returns no attention weights: use 'eager'")
    causal = bool(getattr(module, "is_causal", True) if is_causal is None else is_causal)
    tensors = (query, key, value)
    if not _is_maskwises(tensors, dropout):
        return _by_torch(module, tensors, attention_mask, dropout, scaling, causal, others), None
    rules = _rules_of_call(query, attention_mask, causal, others)
    array = None if rules is not None or attention_mask is None else attention_mask
    if (bias := others.get("position_bias")) is not None:
        rules, array = _with_bias(rules, array, bias.detach())
    elif array is not None and array.dtype != torch.bool:
        array = array.to(query.dtype)
    settings = (False, scaling, float(others.get("softcap") or 0), True)
    out = attend(*tensors, rules, array, settings, _sinks(others.get("s_aux"), query.dtype))
    return out.transpose(1, 2).contiguous(), None


def _with_bias(
    rules: Mask | None, array: torch.Tensor | None, bias: torch.Tensor
) -> tuple[Mask | None, torch.Tensor]:
    """What is added to the scores, where the mask is an array, too."""
    if rules is not None and rules._array is not None:
        array, rules = torch.from_numpy(rules._array.copy()), rules._without_array()
    if array is None:
        return rules, bias
    return rules, _joined(array, bias)


def _joined(mask: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    if mask.dtype == torch.bool:
        return torch.where(mask, bias, -torch.inf)
    return mask.to(bias.dtype) + bias


def _sinks(sinks: torch.Tensor | None, dtype: torch.dtype) -> torch.Tensor | None:
    return None if sinks is None else sinks.detach().reshape(-1).to(dtype)


def _rules_of_call(
    query: torch.Tensor,
    attention_mask: torch.Tensor | None,
    causal: bool,
    others: dict[str, Any],
) -> Mask | None:
    """None where the mask is an array."""
    rules = attention_mask.rules if isinstance(attention_mask, LazyMask) else None
    if rules is None and attention_mask is not None:
        return None
    if others.get("cu_seq_lens_q") is not None and (rules is None or not rules._rules.documents):
        packed = Mask.packed(others["cu_seq_lens_q"], others.get("cu_seq_lens_k"))
        own = Mask.causal() if causal else Mask()
        return packed & (own if rules is None else rules)
    if rules is not None:
        return rules
    # As with SDPA, keys behind the rows are a static cache's, and empty.
    return Mask.causal() if causal and query.shape[2] > 1 else Mask()


def _by_torch(
    module: Any,
    tensors: tuple[torch.Tensor, ...],
    mask: torch.Tensor | None,
    dropout: float,
    scaling: float | None,
    causal: bool,
    others: dict[str, Any],
) -> torch.Tensor:
    mask = mask.dense() if isinstance(mask, LazyMask) else mask
    cap, sinks = others.get("softcap"), others.get("s_aux")
    if cap is None and sinks is None:
        options = {name: value for name, value in others.items() if name != "output_attentions"}
        made, _ = sdpa_attention_forward(
            module, *tensors, mask, dropout, scaling, causal, **options
        )
        return made
    causal = causal and mask is None and tensors[0].shape[2] > 1
    if (bias := others.get("position_bias")) is not None:
        mask = bias if mask is None else _joined(mask, bias)
    q, k, v = tensors
    made = plainly(q, k, v, mask, causal, scaling, True, cap, None, sinks, dropout)
    return made.transpose(1, 2).contiguous()


def _register_flash() -> None:
    """For those who ask for a name with "flash" in it to leave padding out: transformers' own way
    of calling flash_attn, with Maskwise's functions. It has no public place for functions that
    are not a package or from a hub; a release without the private one does not know the name.
    """
    load = getattr(flash_utils, "_lazy_imports", None)
    if load is None:
        return
    own = (flash_attn_func, flash_attn_varlen_func, flash_attn_with_kvcache)

    def lazy_imports(implementation: str | None, *others: Any, **options: Any) -> Any:
        if implementation == FLASH_NAME:
            return (*own, flash_utils._pad_input, flash_utils._unpad_input)
        return load(implementation, *others, **options)

    flash_utils._lazy_imports = lazy_imports
    AttentionInterface.register(FLASH_NAME, flash_attention_forward)
    AttentionMaskInterface.register(FLASH_NAME, masking_utils.flash_attention_mask)


def register() -> None:
    """Done by the import. Both are needed: where the mask's is missing, models get no mask."""
    AttentionInterface.register(NAME, attention)
    AttentionMaskInterface.register(NAME, mask)
    _register_flash()


register()
