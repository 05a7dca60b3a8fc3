"""attention: torch's scaled_dot_product_attention with more options."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from maskwise import _arguments
from maskwise._call import AttentionCall, checked
from maskwise._native import has_tensors, run_if_readable, run_native

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
    """Computes torch's scaled_dot_product_attention, but skips fully masked tiles of scores.

    Parameters
    ----------
    query, key, value : array_like, (..., L, E), (..., S, E), (..., S, Ev)
        One dtype: float32, float16 or ml_dtypes.bfloat16; floats in lists are float32. Leading
        dimensions broadcast. Arrays with DLPack (jax, torch) are read in place, with any strides.
    attn_mask : Mask or array_like, optional
        An array broadcasts to (..., L, S) and is read once for all heads that share it. True keeps
        a key. An array of float32 or query's dtype is added to the scores. Mask.dense(array)
        classifies tiles at the first call; later calls read only the partly masked tiles.
    dropout_p : 0
    is_causal : bool
        Row i keeps the keys 0 to i. Not allowed with a mask.
    scale : float, default 1 / sqrt(E)
    enable_gqa : bool
        query's H in (..., H, L, E) may be a multiple of key's and value's.
    out : numpy.ndarray, or another writable array with DLPack (torch), optional
        Has the result's shape and dtype, and shares no memory with operands.
    soft_cap : float, optional
        Scores become soft_cap * tanh(score / soft_cap) before they are masked.
    window : (left, right), optional
        Like Mask.window. May be combined with attn_mask or is_causal.
    sinks : array_like, optional
        (..., H), float32 or query's dtype. One score per head, for the softmax's denominator only.
    return_statistics : bool
    deterministic : bool
        The bits of a row depend only on its query and its unmasked keys and values. For torch
        tensors, torch.use_deterministic_algorithms(True) implies this.

    Returns
    -------
    out, or a new array (..., L, Ev) of query's dtype and memory order, with contiguous rows. If
    arguments are arrays of other libraries, the library of the first one makes the new array.
    With return_statistics, also the float32 statistics per row: log(sum of exp(score)).

    A fully masked row is 0; its statistics are 0, or -inf if there are neither keys nor sinks.
    Sums are float32. Masked values must be finite, or results are undefined. Releases the GIL.

    Raises
    ------
    ValueError
        Shapes do not match, attn_mask and is_causal are both set, an option is out of range, or out
        has another shape, is read-only or shares memory with an operand.
    TypeError
        A dtype is not supported, or an argument has the wrong type.
    BufferError
        An array's memory is not on the CPU, or the array's library does not export it.
    """
    _require_no_dropout(dropout_p)
    options = (is_causal, scale, enable_gqa, soft_cap, window, sinks)
    results = {"out": out, "return_statistics": return_statistics, "deterministic": deterministic}
    return run(checked(AttentionCall(query, key, value, attn_mask, *options, **results)))


def run(call: AttentionCall) -> Any:
    """Runs the call in the core, or as a torch operator if torch tracks a tensor, for example for
    gradients. Tries the core first: the core reads most tensors, and is_followed() is slower."""
    if has_tensors(call):
        from maskwise import _torch_tensors

        if not _torch_tensors.is_changing_calls():
            result = run_if_readable(call, refuses_gradients=True)
            if result is not None:
                return result
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
    """Computes attention of packed documents, without padding.

    Shapes: query (rows, heads, E), key (keys, key heads, E), value (keys, value heads, Ev), result
    (rows, heads, Ev), statistics (heads, rows). Document i has the rows cu_seqlens_q[i] to
    cu_seqlens_q[i + 1] - 1. cu_seqlens_k does the same for keys; default: cu_seqlens_q.
    Positions for is_causal and window align a document's last row with its last key, as in
    flash_attn_varlen_func. Everything else is as in attention.
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
    """Calls Mask.packed. Raises ValueError if documents extend past the rows or keys."""
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
    """Describes the work of attention with these arguments: how many tiles of scores are kept,
    partly masked, skipped or deferred, and the saved work. A deferred tile is computed last, and
    only if a row gives it a nonzero weight. Reads the mask, but computes no attention.
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
        + (f", {deferred} deferred because of a low bias" if deferred else "")
        + f"\n{share:.1%} of the tiles are computed: {gain}\n{plan}"
    )
