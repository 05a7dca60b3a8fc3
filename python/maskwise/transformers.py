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

from typing import Any

import torch
from transformers import AttentionInterface, AttentionMaskInterface, masking_utils
from transformers import modeling_flash_attention_utils as flash_utils
from transformers.integrations.flash_attention import flash_attention_forward
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.utils import logging

from maskwise import Mask
from maskwise import torch as door
from maskwise._attention import attend
from maskwise._torch_op import plainly
from maskwise._torch_tensors import DTYPES, as_tensor, want_gradients
from maskwise._transformers_mask import LazyMask, is_traced, mask
from maskwise.flash_attn import flash_attn_func, flash_attn_varlen_func, flash_attn_with_kvcache

NAME, FLASH_NAME = "maskwise", "maskwise_flash"

log = logging.get_logger(__name__)


def _is_maskwises(tensors: tuple[torch.Tensor, ...], dropout: float) -> bool:
    q, k, v = tensors
    return (
        not is_traced(*tensors)  # before sizes, which would become guards
        and dropout == 0
        and not door.is_small(q.numel(), k.shape[2], q.dtype)
        and not want_gradients(tensors)
        and q.dtype in DTYPES
        and q.dtype == k.dtype == v.dtype
        and all(one.device.type == "cpu" for one in tensors)
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
    rules = _rules_of_call(query, key, attention_mask, causal, others)
    array = attention_mask if rules is None else None
    array = array.dense() if isinstance(array, LazyMask) else array
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
        array, rules = as_tensor(rules._array.copy()), rules._without_array()
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
    key: torch.Tensor,
    attention_mask: torch.Tensor | None,
    causal: bool,
    others: dict[str, Any],
) -> Mask | None:
    """None where the mask is an array."""
    rules = None
    if isinstance(attention_mask, LazyMask):
        shape = (query.shape[0], 1, query.shape[2], key.shape[2])
        rules = attention_mask.unchanged_rules() if attention_mask.shape == shape else None
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
