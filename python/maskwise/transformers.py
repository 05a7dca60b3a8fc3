"""Runs attention of transformers' models by Maskwise, for inference and training on CPUs.

    import maskwise.transformers

    model = AutoModel.from_pretrained(name, attn_implementation="maskwise")
    model.set_attn_implementation("maskwise")           # for a loaded model

The import registers "maskwise" as attention and as mask. Once per forward pass, transformers' masks
(causal, sliding, chunked, padded, packed) become a maskwise.Mask for all layers. Other masks become
an array. Compiled and exported models contain torch.ops.maskwise.attention with the same rules. A
process that runs an exported program must `import maskwise.torch`. torch runs these calls with the
same mask: calls with dropout, calls with other devices or dtypes, calls in torch.jit.trace or in an
ONNX export, and calls too small to gain.

"maskwise_flash" is for packed batches. Because "flash" is in the name, transformers and libraries
that use transformers pass flash_attn's arguments and remove padding.

"maskwise" needs a model for which transformers allows "sdpa". "maskwise_flash" needs
"flash_attention_2". Other models raise a ValueError, because they would lose their masks.
"""

# mypy may check the package without torch and transformers.
# mypy: disable-error-code="import-not-found,misc,no-any-return,unused-ignore"

from __future__ import annotations

from typing import Any, NamedTuple

from maskwise import _torch_version  # noqa: F401  # raises if torch is too old for the imports below

# isort: split
import torch
from torch.fx.experimental.symbolic_shapes import statically_known_true
from transformers import __version__ as _version

OLDEST = (4, 56)
if tuple(map(int, _version.split(".")[:2])) < OLDEST:
    raise ImportError(
        f"maskwise.transformers needs transformers {'.'.join(map(str, OLDEST))} or newer, "
        f"this is {_version}"
    )

from transformers import AttentionInterface, AttentionMaskInterface  # noqa: E402
from transformers.integrations.flash_attention import flash_attention_forward  # noqa: E402
from transformers.integrations.sdpa_attention import sdpa_attention_forward  # noqa: E402
from transformers.utils import logging  # noqa: E402

from maskwise import Mask  # noqa: E402
from maskwise._attention import run  # noqa: E402
from maskwise._call import AttentionCall  # noqa: E402
from maskwise._torch_op import call_operator  # noqa: E402
from maskwise._torch_reference import reference  # noqa: E402
from maskwise._torch_tensors import DTYPES, as_tensor, want_gradients  # noqa: E402
from maskwise._transformers_flash import flash_mask, packed_ends, padded_mask, traced_documents  # noqa: E402
from maskwise._transformers_mask import GraphRules, LazyMask, is_traced, mask  # noqa: E402
from maskwise._transformers_packed import Packed, packed_of, rules_and_array  # noqa: E402
from maskwise._transformers_support import (  # noqa: E402
    FLASH_NAME,
    NAME,
    check_models,
    serve_paged_caches,
)
from maskwise.torch import is_small  # noqa: E402

# Arguments that sdpa_attention_forward rejects or warns about.
NOT_SDPAS = ("output_attentions", "softcap", "s_aux", "position_bias")

log = logging.get_logger(__name__)


class LayerCall(NamedTuple):
    """The arguments that a layer passes to its attention."""

    module: Any
    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor
    mask: torch.Tensor | None
    dropout: float
    scaling: float | None
    is_causal: bool  # applies if there is no mask
    packed: Packed | None
    others: dict[str, Any]

    def is_small(self) -> bool:
        gradients = want_gradients((self.q, self.k, self.v))
        return is_small(self.q.numel(), self.k.shape[2], self.q.dtype, gradients)

    def options(self) -> dict[str, Any]:
        """Returns the options as keyword arguments of AttentionCall."""
        sinks = self.others.get("s_aux")
        sinks = None if sinks is None else sinks.reshape(-1).to(self.q.dtype)
        cap = float(self.others.get("softcap") or 0) or None
        return {"scale": self.scaling, "enable_gqa": True, "soft_cap": cap, "sinks": sinks}


def _is_maskwises(call: LayerCall) -> bool:
    return (
        not is_traced(call.q, call.k, call.v)  # before reading sizes, which would add guards
        and not call.is_small()
        and _can_be_maskwises(call)
    )


def _is_maskwises_in_graph(call: LayerCall) -> bool:
    """Whether the graph gets Maskwise's operator. Reads no unknown sizes, because that would add
    guards. ONNX does not have the operator."""
    return (
        torch.compiler.is_compiling()
        and not torch.onnx.is_in_onnx_export()
        and _can_be_maskwises(call)
        and not statically_known_true(call.is_small())
    )


def _can_be_maskwises(call: LayerCall) -> bool:
    return (
        call.dropout == 0
        and call.q.dtype in DTYPES
        and call.q.dtype == call.k.dtype == call.v.dtype
        and all(one.device.type == "cpu" for one in (call.q, call.k, call.v))
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
    """A layer's attention. Operands are (batch, heads, rows, depth). The result is (batch, rows,
    heads, columns)."""
    causal = bool(getattr(module, "is_causal", True) if is_causal is None else is_causal)
    packed = packed_of(others, query, causal and attention_mask is None)
    tensors = (query, key, value)
    return _attention(
        LayerCall(module, *tensors, attention_mask, dropout, scaling, causal, packed, others)
    )


def flash_attention(
    module: Any,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    is_causal: bool | None = None,
    sliding_window: int | None = None,
    **others: Any,
) -> tuple[torch.Tensor, None]:
    """Like attention(), but for masks of flash_mask(). Aligns the last row with the last key."""
    if others.get("cache") is not None:  # set in continuous batching
        options = {"is_causal": is_causal, "sliding_window": sliding_window, **others}
        return flash_attention_forward(module, query, key, value, None, dropout, scaling, **options)
    if query.dtype != value.dtype:  # layers with 16-bit weights may pass another query type
        query, key = query.to(value.dtype), key.to(value.dtype)
    causal = bool(getattr(module, "is_causal", True) if is_causal is None else is_causal)
    packed = None
    if attention_mask is None:
        others = packed_ends(others, query, key)
        packed = packed_of(others, query, causal, sliding_window)
    elif attention_mask.ndim == 4:
        packed = packed_of(others, query, False)
    if packed is None and (attention_mask is None or attention_mask.ndim == 2):
        if attention_mask is not None:  # a static cache has empty keys at the end
            key, value = (one[:, :, : attention_mask.shape[1]] for one in (key, value))
            attention_mask = attention_mask[:, -key.shape[2] :].bool()
        shape = (query.shape[0], query.shape[2], key.shape[2])
        documents = traced_documents(others, query, key) if attention_mask is None else None
        attention_mask = padded_mask(attention_mask, shape, causal, sliding_window, documents)
    tensors = (query, key, value)
    return _attention(
        LayerCall(module, *tensors, attention_mask, dropout, scaling, causal, packed, others)
    )


def _attention(call: LayerCall) -> tuple[torch.Tensor, None]:
    if call.others.get("output_attentions"):
        log.warning_once("attn_implementation='maskwise' returns no attention weights: use 'eager'")
    if _is_maskwises_in_graph(call):
        return _in_graph(call), None
    if not _is_maskwises(call):
        return _by_torch(call), None
    rules = _mask_of_call(call)
    array: Any = rules._array
    if (bias := call.others.get("position_bias")) is not None:
        rules = _with_bias(rules, bias)
    elif torch.is_tensor(array) and array.dtype != torch.bool:
        rules = rules._beside(array.to(call.q.dtype))
    out = run(AttentionCall(call.q, call.k, call.v, rules, **call.options()))
    return out.transpose(1, 2).contiguous(), None


def _in_graph(call: LayerCall) -> torch.Tensor:
    """Attention by the operator that compiled and exported models contain."""
    q, k, v = call.q, call.k, call.v
    rules = getattr(call.mask, "_maskwise_rules", None)
    array = _with_documents(call, call.mask if rules is None else None)
    if rules is None:
        rules = GraphRules(call.is_causal and array is None and q.shape[2] > 1)
    if array is not None:
        array = array[..., : k.shape[2]]
        array = array if array.dtype == torch.bool else array.to(q.dtype)
    if (bias := call.others.get("position_bias")) is not None:
        array = _joined(array, bias)
    if array is not None:
        rules = rules.beside_array()
    options = {**call.options(), **rules.options()}
    return call_operator(AttentionCall(q, k, v, array, **options)).transpose(1, 2).contiguous()


def _with_documents(call: LayerCall, mask: torch.Tensor | None) -> torch.Tensor | None:
    """Combines the mask array with the documents, if any."""
    rows, keys = call.q.shape[2], call.k.shape[2]
    return mask if call.packed is None else call.packed.joined(mask, rows, keys)


def _with_bias(mask: Mask, bias: torch.Tensor) -> Mask:
    """Adds a bias for the scores. If the mask is an array, merges it with the bias."""
    array = mask._array
    if array is not None and not torch.is_tensor(array):
        array = as_tensor(array.copy())
    return mask._beside(_joined(array, bias))


def _joined(mask: torch.Tensor | None, bias: torch.Tensor) -> torch.Tensor:
    if mask is None:
        return bias
    if mask.dtype == torch.bool:
        return torch.where(mask, bias, -torch.inf)
    return mask.to(bias.dtype) + bias


def _mask_of_call(call: LayerCall) -> Mask:
    rules = _rules_of_call(call)
    array = call.mask if rules is None else None
    if call.packed is not None:
        rules, array = rules_and_array(call.packed, call.mask, rules)
    if array is None:
        return rules or Mask()
    array = array.dense() if isinstance(array, LazyMask) else array
    # Before transformers 5, the mask may also cover unused cache entries after the last key.
    return (rules or Mask())._beside(array[..., : call.k.shape[2]])


def _rules_of_call(call: LayerCall) -> Mask | None:
    """Returns the mask's rules, or None if the layer must use the elements of an array."""
    if isinstance(call.mask, LazyMask):
        shape = (call.q.shape[0], 1, call.q.shape[2], call.k.shape[2])
        return call.mask.unchanged_rules() if call.mask.shape == shape else None
    if call.mask is not None:
        return None
    # As with SDPA, row i keeps keys 0 to i. Later keys are unused entries of a static cache.
    return Mask.causal() if call.is_causal and call.q.shape[2] > 1 else Mask()


def _by_torch(call: LayerCall) -> torch.Tensor:
    """Computes the call by torch, with dropout."""
    tensors, others = (call.q, call.k, call.v), call.others
    mask = call.mask.dense() if isinstance(call.mask, LazyMask) else call.mask
    mask = _with_documents(call, mask)
    causal = call.q.shape[2] > 1 and mask is None and call.is_causal
    cap, sinks, bias = (others.get(name) for name in ("softcap", "s_aux", "position_bias"))
    if not cap and sinks is None and bias is None:
        options = {name: value for name, value in others.items() if name not in NOT_SDPAS}
        arguments = (mask, call.dropout, call.scaling, causal)
        return sdpa_attention_forward(call.module, *tensors, *arguments, **options)[0]
    if bias is not None:
        mask = _joined(mask, bias)
    options = {"scale": call.scaling, "enable_gqa": call.q.shape[1] != call.k.shape[1]}
    options |= {"soft_cap": cap, "sinks": sinks}
    out = reference(AttentionCall(*tensors, mask, causal, **options), call.dropout)
    return out.transpose(1, 2).contiguous()


def register() -> None:
    """Registers both names for attention and for masks, on import. Without the registration for
    masks, models get no mask."""
    AttentionInterface.register(NAME, attention)
    AttentionMaskInterface.register(NAME, mask)
    AttentionInterface.register(FLASH_NAME, flash_attention)
    AttentionMaskInterface.register(FLASH_NAME, flash_mask)
    check_models()
    serve_paged_caches()


register()
