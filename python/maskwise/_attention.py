"""attention: torch's scaled_dot_product_attention, and more of it."""

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
) -> Any:
    """torch's scaled_dot_product_attention. Tiles that the mask masks are not computed.

    Parameters
    ----------
    query, key, value : array_like, (..., L, E), (..., S, E), (..., S, Ev)
        Of one dtype: float32, float16 or ml_dtypes.bfloat16; floats in lists are float32. Leading
        dimensions broadcast. Arrays that speak DLPack (jax, torch) are read where they lie; strides
        may be any.
    attn_mask : Mask or array_like, optional
        Fully masked tiles are skipped in every form. A Mask of rules costs no memory and no
        reading; Mask.dense(array) a copy, of which a call reads the tiles masked in part. An array
        broadcasts to (..., L, S) and is read in each call, once for the heads that share it.
        Boolean: True keeps a place. float32 or of query's dtype: added to the scores.
    dropout_p : 0
    is_causal : bool
        Row i keeps the keys 0 to i. Not with a mask.
    scale : float, default 1 / sqrt(E)
    enable_gqa : bool
        query, (..., H, L, E), may have a multiple of the heads H of key, and of those of value.
    out : numpy.ndarray, optional
        Takes the result: of its shape and dtype, writable; shares memory with no operand.
    soft_cap : float, optional
        Scores become soft_cap * tanh(score / soft_cap) before they are masked.
    window : (left, right), optional
        As Mask.window, with or without attn_mask or is_causal.
    sinks : array_like, optional
        Broadcasts to (..., H), float32 or of query's dtype: scores of gpt-oss that take part in
        the softmax's sum only, one for each head.
    return_statistics : bool

    Returns
    -------
    out, or a new array (..., L, Ev) of query's dtype, its dimensions in the order in which they
    lie in query, columns last. Where the first array of the arguments comes from another library
    that speaks DLPack, an object of that library, without a copy. With return_statistics a pair:
    the result, and float32 (..., L), the logarithm of each row's sum.

    A row of which every place is masked is 0, its logarithm 0, too, and -inf without keys. Sums are
    float32. Keep value finite where it is masked, or results are undefined. The GIL is released.

    Raises
    ------
    ValueError
        Shapes that do not fit; attn_mask and is_causal together; a dropout_p other than 0; an out
        of another shape, read-only, or that shares memory with an operand.
    TypeError
        Other dtypes, of out too; arguments of another kind.
    BufferError
        Memory that is not the CPU's, or that its library does not lend.
    """
    _require_no_dropout(dropout_p)
    options = (is_causal, scale, enable_gqa, soft_cap, window, sinks)
    results = {"out": out, "return_statistics": return_statistics}
    return run(checked(AttentionCall(query, key, value, attn_mask, *options, **results)))


def run(call: AttentionCall) -> Any:
    """Tensors that torch follows, as with gradients, go to torch.ops.maskwise.attention."""
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
    out: Any = None,
) -> Any:
    """attention of documents that lie one after the other, without padding.

    query is (rows, heads, E), key (keys, key heads, E) and value (keys, value heads, Ev), the
    result (rows, heads, Ev), statistics (heads, rows). Document i has the rows cu_seqlens_q[i] up
    to cu_seqlens_q[i + 1], and the keys by cu_seqlens_k, which is cu_seqlens_q where not given.
    With is_causal a document's last row keeps all of its keys, as in flash_attn_varlen_func; window
    counts from the same place. The rest is as attention has it.
    """
    options = {"scale": scale, "soft_cap": soft_cap, "window": window, "sinks": sinks}
    options |= {"out": out, "return_statistics": return_statistics}
    return run(packed_call((query, key, value), cu_seqlens_q, cu_seqlens_k, is_causal, **options))


def packed_call(
    tensors: tuple[Any, ...], cu_seqlens_q: Any, cu_seqlens_k: Any, is_causal: Any, **options: Any
) -> AttentionCall:
    from maskwise._mask import Mask

    mask = Mask.packed(cu_seqlens_q, cu_seqlens_k)
    _require_ends(mask, *tensors[:2])
    if _arguments.flag("is_causal", is_causal):
        mask &= Mask.causal()
    query, key, value = tensors
    options |= {"enable_gqa": True, "is_packed": True}
    return checked(AttentionCall(query, key, value, mask, **options))


def _require_ends(mask: Mask, query: Any, key: Any) -> None:
    """That documents end where rows and keys do, or before."""
    documents = mask._rules.documents[0]
    first_row, rows, first_key, keys = documents[-1] if documents else (0, 0, 0, 0)
    ends = (("rows", first_row + rows, len(query)), ("keys", first_key + keys, len(key)))
    for name, end, there in ends:
        if end > there:
            raise ValueError(
                f"cu_seqlens end at {end} {name}, there are {there}: "
                "query is (rows, heads, E), key (keys, heads, E)"
            )


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
    """Which tiles of scores attention computes with these arguments, as lines of text: how many
    are kept as a whole, in part, or skipped, and what that saves. Reads the mask, computes nothing.
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
