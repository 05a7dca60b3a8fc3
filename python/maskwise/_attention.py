"""attention: torch's scaled_dot_product_attention with more options."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from maskwise import _arguments
from maskwise._call import AttentionCall, checked
from maskwise._native import has_tensors, run_native

if TYPE_CHECKING:
    from maskwise._mask import Mask


def attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    *,
    out: Any = None,
    soft_cap: float | None = None,
    window: tuple[int, int] | None = None,
    sinks: Any = None,
    return_statistics: bool = False,
    deterministic: bool = False,
) -> Any:
    """torch's scaled_dot_product_attention. Fully masked tiles are not computed.

    Parameters
    ----------
    query, key, value : array_like, (..., L, E), (..., S, E), (..., S, Ev)
        One dtype: float32, float16 or ml_dtypes.bfloat16; floats in lists are float32. Leading
        dimensions broadcast. Arrays with DLPack (jax, torch) are read in place, with any strides.
    attn_mask : Mask or array_like, optional
        Every form skips fully masked tiles. A Mask of rules needs no memory and no reading.
        Mask.dense(array) needs a copy, of which a call reads the mixed tiles. An array broadcasts
        to (..., L, S) and is read in each call, once for the heads that share it. Boolean: True
        keeps. float32 or query's dtype: added to the scores.
    dropout_p : 0
    is_causal : bool
        Row i keeps the keys 0 to i. Not allowed with a mask.
    scale : float, default 1 / sqrt(E)
    enable_gqa : bool
        The number of heads of query, (..., H, L, E), may be a multiple of that of key and value.
    out : numpy.ndarray, optional
        Receives the result. Has its shape and dtype, is writable, shares no memory with operands.
    soft_cap : float, optional
        Scores become soft_cap * tanh(score / soft_cap) before they are masked.
    window : (left, right), optional
        As Mask.window, with or without attn_mask or is_causal.
    sinks : array_like, optional
        Broadcasts to (..., H), float32 or query's dtype: a score per head that only enters the
        softmax's sum, as in gpt-oss.
    return_statistics : bool
    deterministic : bool
        A row's bits depend only on its query and its unmasked keys and values: not on the batch,
        padding, packing, other rows, the form of the mask, or threads. Implied for torch tensors by
        torch.use_deterministic_algorithms(True).

    Returns
    -------
    out, or a new array (..., L, Ev) of query's dtype, in query's memory order with adjacent
    columns. If the first array argument is from another library with DLPack, an object of that
    library, without a copy. With return_statistics a pair: the result, and float32 (..., L), the
    logarithm of each row's sum.

    A fully masked row is 0, and its logarithm is 0, or -inf without keys. Sums are float32. Masked
    values must be finite, or results are undefined. The GIL is released.

    Raises
    ------
    ValueError
        Shapes do not match; attn_mask and is_causal together; a dropout_p other than 0; out has
        another shape, is read-only or shares memory with an operand.
    TypeError
        Unsupported dtypes, also of out; arguments of the wrong type.
    BufferError
        Memory that is not on the CPU, or that its library does not export.
    """
    _require_no_dropout(dropout_p)
    options = (is_causal, scale, enable_gqa, soft_cap, window, sinks)
    results = {"out": out, "return_statistics": return_statistics, "deterministic": deterministic}
    return run(checked(AttentionCall(query, key, value, attn_mask, *options, **results)))


def run(call: AttentionCall) -> Any:
    """Tensors that torch tracks, for example for gradients, go to torch.ops.maskwise.attention."""
    if has_tensors(call):
        from maskwise import _torch_tensors

        if _torch_tensors.is_followed(call):
            from maskwise import _torch_op

            return _torch_op.run_as_torch_op(call)
    return run_native(call)


def _require_no_dropout(dropout_p: Any) -> None:
    if _arguments.number("dropout_p", dropout_p) != 0:
        raise ValueError(f"dropout_p is {dropout_p}, expected 0: maskwise has no dropout")


def packed_attention(
    query: Any,
    key: Any,
    value: Any,
    cu_seqlens_q: Any,
    cu_seqlens_k: Any = None,
    *,
    is_causal: bool = False,
    scale: float | None = None,
    soft_cap: float | None = None,
    window: tuple[int, int] | None = None,
    sinks: Any = None,
    return_statistics: bool = False,
    deterministic: bool = False,
    out: Any = None,
) -> Any:
    """attention of packed documents, without padding.

    query is (rows, heads, E), key (keys, key heads, E) and value (keys, value heads, Ev), the
    result (rows, heads, Ev), statistics (heads, rows). Document i has the rows cu_seqlens_q[i] to
    cu_seqlens_q[i + 1] - 1, and its keys by cu_seqlens_k, by default cu_seqlens_q. With is_causal,
    a document's last row keeps all of its keys, as in flash_attn_varlen_func; window counts from
    the same position. Everything else is as in attention.
    """
    options = {"scale": scale, "soft_cap": soft_cap, "window": window, "sinks": sinks}
    options |= {"out": out, "return_statistics": return_statistics, "deterministic": deterministic}
    return run(packed_call((query, key, value), cu_seqlens_q, cu_seqlens_k, is_causal, **options))


def packed_call(
    tensors: tuple[Any, ...], cu_seqlens_q: Any, cu_seqlens_k: Any, is_causal: Any, **options: Any
) -> AttentionCall:
    from maskwise._mask import Mask

    query, key, value = tensors
    mask = packed_mask(cu_seqlens_q, cu_seqlens_k, len(query), len(key))
    if _arguments.flag("is_causal", is_causal):
        mask &= Mask.causal()
    options |= {"enable_gqa": True, "is_packed": True}
    return checked(AttentionCall(query, key, value, mask, **options))


def packed_mask(cu_seqlens_q: Any, cu_seqlens_k: Any, row_count: int, key_count: int) -> Mask:
    """Mask.packed, if its documents do not extend past the rows and keys."""
    from maskwise._mask import Mask

    mask = Mask.packed(cu_seqlens_q, cu_seqlens_k)
    documents = mask._rules.documents[0]
    first_row, rows, first_key, keys = documents[-1] if documents else (0, 0, 0, 0)
    ends = (("rows", first_row + rows, row_count), ("keys", first_key + keys, key_count))
    for name, end, there in ends:
        if end > there:
            raise ValueError(
                f"cu_seqlens end at {end} {name}, there are {there}: "
                "query is (rows, heads, E), key (keys, heads, E)"
            )
    return mask


def explain_attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    *,
    soft_cap: float | None = None,
    window: tuple[int, int] | None = None,
    sinks: Any = None,
) -> str:
    """The tiles of scores that attention computes with these arguments, as lines of text: how
    many are kept, mixed or skipped, and how much that saves. Reads the mask and computes
    nothing.
    """
    _require_no_dropout(dropout_p)
    options = (is_causal, scale, enable_gqa, soft_cap, window, sinks)
    call = AttentionCall(query, key, value, attn_mask, *options, explains=True)
    tiles, full, mixed, deferred, skipped, plan = run(checked(call))
    computed = full + mixed
    share = computed / tiles if tiles else 1
    gain = f"{1 / share:.1f} times less work" if computed else "no work"
    return (
        f"{tiles} tiles of scores: {full} kept as a whole, {mixed} in part, {skipped} skipped"
        + (f", {deferred} masked by a finite number" if deferred else "")
        + f"\n{share:.1%} of the tiles are computed: {gain}\n{plan}"
    )
