"""torch.ops.maskwise.attention, for torch.compile, export, autograd, vmap and autocast."""

# torch need not be there where the package is checked.
# mypy: disable-error-code="import-not-found,misc,no-any-return,untyped-decorator,unused-ignore"

from __future__ import annotations

from contextlib import nullcontext
from functools import cmp_to_key
from typing import Any

from maskwise import _torch_version  # noqa: F401  # before what an older torch lacks

# isort: split
import numpy as np
import torch
from torch.autograd import forward_ad
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import dropout, scaled_dot_product_attention

from maskwise import Mask, _attention, _others
from maskwise._torch_tensors import as_tensor, is_symbol, is_traced, refuse_traced

Settings = tuple[Any, ...]  # what the operator takes behind v
SCHEMA = (
    "(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, bool is_causal=False, "
    "float? scale=None, bool enable_gqa=False, float? soft_cap=None, int[]? window=None, "
    "Tensor? sinks=None, Tensor? key_mask=None, Tensor? offset=None, Tensor? document_ids=None) "
    "-> Tensor"
)
ARGUMENTS = 13  # of SCHEMA


def result_shape(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, grouped: bool
) -> tuple[int, ...]:
    own = 3 if grouped and q.ndim > 2 else 2  # dimensions that do not broadcast
    leading = torch.broadcast_shapes(*(one.shape[:-own] for one in (q, k, v)))
    return (*leading, *q.shape[-own:-1], v.shape[-1])


def empty_result(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, grouped: bool) -> torch.Tensor:
    """Of maskwise.attention: dimensions before the columns in the order in which they lie in q."""
    from torch.fx.experimental.symbolic_shapes import guard_or_false  # there where torch traces

    shape = result_shape(q, k, v, grouped)
    last = len(shape) - 1
    steps = (*(0,) * (last + 1 - q.ndim), *q.stride())

    def compare(one: int, other: int) -> int:
        """What is repeated comes first; strides that nobody knows yet stay in their order."""
        repeated = [guard_or_false(steps[at] == 0) for at in (one, other)]
        if any(repeated):
            return int(repeated[1]) - int(repeated[0])
        more, less = steps[one] > steps[other], steps[one] < steps[other]
        return int(guard_or_false(less)) - int(guard_or_false(more))

    order = (*sorted(range(last), key=cmp_to_key(compare)), last)
    return torch.empty_permuted(shape, order, dtype=q.dtype, device=q.device)


@torch.library.custom_op("maskwise::attention", mutates_args=(), schema=SCHEMA, device_types="cpu")
def attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    soft_cap: float | None = None,
    window: list[int] | None = None,
    sinks: torch.Tensor | None = None,
    key_mask: torch.Tensor | None = None,
    offset: torch.Tensor | None = None,
    document_ids: torch.Tensor | None = None,
) -> torch.Tensor:
    """key_mask: boolean (batch, keys), False for padding, as keys past its end are. offset: how
    many keys come before the first row's own. document_ids: (batch, length), a row keeps the keys
    with its id.
    """
    if forward_ad._current_level >= 0:
        raise NotImplementedError("torch.ops.maskwise.attention has no forward-mode derivatives")
    tensors = (query, key, value, attn_mask, sinks)
    detached: Any = (None if one is None else one.detach() for one in tensors)
    q, k, v, mask, sinks = detached
    bounds = None if window is None else (window[0], window[1])
    options = (scale, enable_gqa, soft_cap, bounds, sinks, None)
    if key_mask is None and offset is None and document_ids is None:
        return _attention._attend(q, k, v, mask, is_causal, *options, follows=False)
    rules = _rules_of(is_causal, offset, document_ids)
    rules, mask = _with_padding(rules, mask, key_mask, k.shape[-2])
    settings = (False, *_attention.scale_and_cap(scale, soft_cap), enable_gqa)
    return _attention.attend(q, k, v, rules, mask, settings, sinks, window=bounds, follows=False)


@attention.register_fake
def _(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    *others: Any,
) -> torch.Tensor:
    return empty_result(query, key, value, enable_gqa)


def _rules_of(
    is_causal: bool, offset: torch.Tensor | None, document_ids: torch.Tensor | None
) -> Mask:
    offsets = () if offset is None else (int(offset),)
    rules = Mask._of(causal=is_causal, offsets=offsets if any(offsets) else ())
    if document_ids is None or bool((document_ids == document_ids[:, :1]).all()):
        return rules
    return rules & Mask.documents(document_ids.numpy())


def _with_padding(
    rules: Mask, array: torch.Tensor | None, key_mask: torch.Tensor | None, keys: int
) -> tuple[Mask, torch.Tensor | None]:
    """A key mask of one run a sequence is a rule; one with gaps joins the array."""
    padding = padding_rules(key_mask, keys)
    if padding._array is None:
        return rules & padding, array
    return rules, _restricted(array, torch.from_numpy(padding._array.copy()))


def padding_rules(mask: torch.Tensor | None, keys: int, first_key: int = 0) -> Mask:
    """Of a boolean (batch, keys seen so far): a run of keys, or the mask as an array."""
    if mask is None:
        return Mask()
    kept = np.zeros((mask.shape[0], keys), bool)
    own = mask.numpy()[:, first_key : first_key + keys]
    kept[:, : own.shape[1]] = own
    if kept.all():
        return Mask()
    counts, starts = kept.sum(axis=1), kept.argmax(axis=1)
    ends = keys - kept[:, ::-1].argmax(axis=1)
    if ((ends - starts != counts) & (counts > 0)).any():
        return Mask.dense(kept[:, None, None])
    lengths = np.where(counts == 0, 0, ends)
    padding = Mask() if (starts == 0).all() else Mask.starts(starts)
    return padding if (lengths == keys).all() else padding & Mask.lengths(lengths)


def kept_places(
    q: torch.Tensor, k: torch.Tensor, is_causal: bool, window: Any, offset: Any = None
) -> torch.Tensor | None:
    """(rows, keys), or None where all are kept."""
    if not is_causal and window is None:
        return None
    left, right = (-1, -1) if window is None else window
    rows = torch.arange(q.shape[-2], device=q.device)[:, None]
    rows = rows if offset is None else rows + offset
    keys = torch.arange(k.shape[-2], device=q.device)
    kept = keys <= rows if is_causal else torch.ones_like(keys <= rows)
    kept = kept if left < 0 else kept & (keys >= rows - left)
    return kept if right < 0 else kept & (keys <= rows + right)


def _restricted(mask: torch.Tensor | None, kept: torch.Tensor | None) -> torch.Tensor | None:
    """A mask, boolean or added, of the places that are kept."""
    if mask is None or kept is None:
        return kept if mask is None else mask
    return mask & kept if mask.dtype == torch.bool else mask.masked_fill(~kept, -torch.inf)


def _kept_keys(key_mask: torch.Tensor, keys: int) -> torch.Tensor:
    """(batch, keys), of which those past the mask's end are not kept."""
    return torch.nn.functional.pad(key_mask, (0, max(0, keys - key_mask.shape[1])))[:, :keys]


def plainly(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    mask: torch.Tensor | None = None,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    soft_cap: float | None = None,
    window: Any = None,
    sinks: torch.Tensor | None = None,
    key_mask: torch.Tensor | None = None,
    offset: torch.Tensor | None = None,
    document_ids: torch.Tensor | None = None,
    dropout_p: float = 0.0,
) -> torch.Tensor:
    """In torch's operators, which have gradients: SDPA, and what it lacks step by step."""
    own = 3 if enable_gqa and q.ndim > 2 else 2
    leading = result_shape(q, k, v, enable_gqa)[:-own]
    q, k, v = (one.expand(*leading, *one.shape[-own:]) for one in (q, k, v))
    mask = _restricted(mask, kept_places(q, k, is_causal, window, offset))
    if key_mask is not None:
        mask = _restricted(mask, _kept_keys(key_mask, k.shape[-2])[:, None, None])
    if document_ids is not None:
        mask = _restricted(mask, document_ids[:, None, :, None] == document_ids[:, None, None])
    if not soft_cap and sinks is None and (mask is None or mask.dtype in (torch.bool, q.dtype)):
        return scaled_dot_product_attention(
            q, k, v, mask, dropout_p, scale=scale, enable_gqa=enable_gqa
        )
    if enable_gqa:
        k, v = (one.repeat_interleave(q.shape[-3] // one.shape[-3], dim=-3) for one in (k, v))
    scores = (
        q.float() @ k.float().transpose(-1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    )
    scores = soft_cap * torch.tanh(scores / soft_cap) if soft_cap else scores
    if mask is not None:
        is_kept = mask.dtype == torch.bool
        scores = scores.masked_fill(~mask, -torch.inf) if is_kept else scores + mask
    if sinks is not None:
        column = sinks.float()[..., None, None].expand(*scores.shape[:-1], 1)
        scores = torch.cat([scores, column], dim=-1)
    weights = torch.ops.aten._safe_softmax(scores, -1)
    weights = dropout(weights if sinks is None else weights[..., :-1], dropout_p)
    return weights.to(v.dtype) @ v


def _keep(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    q, k, v, mask, *settings, sinks, key_mask, offset, document_ids = inputs
    ctx.settings = settings
    ctx.save_for_backward(q, k, v, mask, sinks, key_mask, offset, document_ids)


def _backward(ctx: Any, gradient: torch.Tensor) -> tuple[Any, ...]:
    """Recomputes: statistics would serve torch's kernel only without sinks and soft caps."""
    of_inputs = (*ctx.needs_input_grad, *(False,) * ARGUMENTS)  # without those left out at the end
    wanted = (*of_inputs[:4], of_inputs[9])
    *operands, key_mask, offset, document_ids = ctx.saved_tensors
    once_more = torch.is_grad_enabled()  # gradients of gradients, which SDPA's kernel lacks
    if not once_more:
        operands = [
            one if one is None else one.detach().requires_grad_(wants)
            for one, wants in zip(operands, wanted, strict=True)
        ]
    with torch.enable_grad(), sdpa_kernel(SDPBackend.MATH) if once_more else nullcontext():
        rules = (key_mask, offset, document_ids)
        arguments: list[Any] = [*operands[:4], *ctx.settings, operands[4], *rules]
        out = plainly(*arguments)
        sought = [one for one, wants in zip(operands, wanted, strict=True) if wants]
        made = iter(torch.autograd.grad(out, sought, gradient, create_graph=once_more))
    first = [next(made) if wants else None for wants in wanted]
    return (*first[:4], *(None,) * len(ctx.settings), first[4], None, None, None)


attention.register_autograd(_backward, setup_context=_keep)


def _autocast(one: Any) -> Any:
    """In the type that was asked for what torch's own attention has in it: CPU's floats, but for
    float64.
    """
    is_cast = torch.is_tensor(one) and one.is_floating_point() and one.device.type == "cpu"
    return one.to(torch.get_autocast_dtype("cpu")) if is_cast and one.dtype != torch.double else one


@torch.library.impl("maskwise::attention", "AutocastCPU")
def _(*operands: Any) -> Any:
    given = map(_autocast, operands)
    with torch._C._ExcludeDispatchKeyGuard(
        torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCPU)
    ):
        return torch.ops.maskwise.attention(*given)


@attention.register_vmap
def _(info: Any, in_dims: tuple[Any, ...], *args: Any) -> tuple[torch.Tensor, int]:
    """What is mapped comes first, before as many dimensions as the operand with most has."""
    operands = (*args, *(None,) * (ARGUMENTS - len(args)))
    q, k, v, mask, *settings, sinks = operands[:10]
    if any(one is not None for one in operands[10:]):
        raise NotImplementedError(
            "torch.ops.maskwise.attention: vmap takes no key_mask, offset and document_ids"
        )
    dims = (*in_dims, *(None,) * (ARGUMENTS - len(in_dims)))
    pairs = ((q, dims[0]), (k, dims[1]), (v, dims[2]), (mask, dims[3]), (sinks, dims[9]))
    behind = (2, 2, 2, 2, 0)  # dimensions behind the leading ones
    ranks = [
        0 if one is None else one.ndim - (at is not None) - least
        for (one, at), least in zip(pairs, behind, strict=True)
    ]

    def moved(one: Any, at: int | None, rank: int) -> Any:
        if one is None or at is None:
            return one
        first = one.movedim(at, 0)
        return first.reshape(first.shape[0], *(1,) * (max(ranks) - rank), *first.shape[1:])

    q, k, v, mask, sinks = (moved(*pair, rank) for pair, rank in zip(pairs, ranks, strict=True))
    if all(at is None for at in dims[:3]):
        q = q.expand(info.batch_size, *(1,) * (max(ranks) - ranks[0]), *q.shape)
    return torch.ops.maskwise.attention(q, k, v, mask, *settings, sinks), 0


def attend(
    q: Any,
    k: Any,
    v: Any,
    rules: Mask | None,
    array: Any,
    settings: Settings,
    sinks: Any,
    out: Any,
    *,
    window: Any,
    is_packed: bool,
    **asked: bool,
) -> Any:
    """maskwise.attention of tensors that torch follows."""
    asks_more = out is not None or any(asked.values())
    options = {"window": window, "is_packed": is_packed, **asked}
    if torch.compiler.is_dynamo_compiling() and (rules is not None or asks_more):
        return _between_graphs(q, k, v, rules, array, settings, sinks, out, options)
    q, k, v, array, sinks = (_as_tensor(one) for one in (q, k, v, array, sinks))
    if torch.is_autocast_enabled("cpu") and not torch.compiler.is_compiling():
        q, k, v, array, sinks = map(_autocast, (q, k, v, array, sinks))
        with torch.autocast("cpu", enabled=False):
            return _attention.attend(q, k, v, rules, array, settings, sinks, out, **options)
    if asked["explains"]:  # no tensor comes of it
        given = (q, k, v, rules, array, settings, sinks, out)
        return _attention.attend(*given, follows=False, **options)
    if asks_more:
        raise BufferError(
            "tensors that torch follows, as with gradients: without out and statistics"
        )
    is_causal, scale, soft_cap, grouped = settings
    if is_packed:
        q, k, v = (one.swapaxes(0, 1) for one in (q, k, v))
    if rules is not None:
        if is_traced() or any(map(is_symbol, (q, k, v))):
            refuse_traced(q, k, v)
        leading = () if is_packed else result_shape(q, k, v, grouped)[:-2]
        rules = rules & Mask.causal() if is_causal else rules
        rules = rules if window is None else rules & _attention.window_mask(window)
        array = _written(rules, array, (q.shape[-2], k.shape[-2]), leading)
        is_causal, window = False, None
    if window is not None and not torch.compiler.is_compiling():
        window = _attention.window_mask(window)._rules.window  # raises what is wrong
    bounds = None if window is None else list(window)
    made = _call(q, k, v, array, is_causal, scale, grouped, soft_cap or None, bounds, sinks)
    return made.swapaxes(0, 1) if is_packed else made


def _call(*given: Any) -> Any:
    has_tangents = forward_ad._current_level >= 0
    with sdpa_kernel(SDPBackend.MATH) if has_tangents else nullcontext():
        call = plainly if has_tangents else torch.ops.maskwise.attention
        return call(*given)


def _as_tensor(value: Any) -> Any:
    if value is None or torch.is_tensor(value) or is_symbol(value):
        return value
    return as_tensor(np.array(_others.unlisted(value)))


@torch.compiler.disable(
    reason="no graph holds a maskwise.Mask, out or statistics: give is_causal, window or an array"
)
def _between_graphs(*operands: Any) -> Any:
    """A compiled model calls it as it is."""
    *given, options = operands
    return _attention.attend(*given, **options)


def _written(rules: Mask, array: Any, extents: tuple[int, int], leading: tuple[int, ...]) -> Any:
    """Rules as an array, which the operator takes. Sequences are the first leading dimension."""
    array = _as_tensor(array if rules._array is None else rules._array)
    sequences = leading[0] if leading else 1
    kept = rules._without_array().to_dense(*extents, sequences)
    outer = (sequences, *(1,) * (len(leading) - 1)) if leading else ()
    return _restricted(array, torch.from_numpy(kept.reshape(*outer, *extents)))
