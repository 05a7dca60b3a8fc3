"""attention: torch's scaled_dot_product_attention, and more of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from maskwise import _arguments, _core

if TYPE_CHECKING:
    from maskwise._mask import Mask


Window = tuple[int, int] | list[int]
LEAST_CAP = 1e-30  # score / soft_cap overflows float32 with a smaller one


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
    """softmax(query @ key^T * scale, masked) @ value: torch's scaled_dot_product_attention, with
    its arguments; what the mask throws away is not computed.

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
    options = (is_causal, scale, enable_gqa, soft_cap, window, sinks, out)
    return _attend(query, key, value, attn_mask, *options, returns_statistics=return_statistics)


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
    from maskwise._mask import Mask

    mask = Mask.packed(cu_seqlens_q, cu_seqlens_k)
    _require_ends(mask, query, key)
    if _arguments.flag("is_causal", is_causal):
        mask &= Mask.causal()
    options = (query, key, value, mask, False, scale, True, soft_cap, window, sinks, out)
    return _attend(*options, returns_statistics=return_statistics, is_packed=True)


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


def explain(
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
    """Which tiles of scores attention computes with these arguments, as lines of text."""
    _require_no_dropout(dropout_p)
    options = (is_causal, scale, enable_gqa, soft_cap, window, sinks, None)
    counts = _attend(query, key, value, attn_mask, *options, explains=True)
    tiles, full, mixed, deferred, skipped, plan = counts
    computed = full + mixed
    share = computed / tiles if tiles else 1
    gain = f"{1 / share:.1f} times less work" if computed else "no work"
    return (
        f"{tiles} tiles of scores: {full} kept as a whole, {mixed} in part, {skipped} skipped"
        + (f", {deferred} masked by a finite number" if deferred else "")
        + f"\n{share:.1%} of the tiles are computed: {gain}\n{plan}"
    )


def _of_rank(rank: int, **arrays: Any) -> list[Any]:
    for name, array in arrays.items():
        if array.ndim != rank:
            raise ValueError(f"{name} has shape {array.shape}, expected {rank} dimensions")
    return list(arrays.values())


def _rules_and_array(q: Any, k: Any, mask: Any, is_causal: bool) -> tuple[Mask | None, Any]:
    """What of the mask is rules, and what is an array that may have changed."""
    is_causal_bias = type(mask).__name__ == "CausalBias"
    if not hasattr(type(mask), "_rules") and not is_causal_bias:
        return None, mask
    from maskwise._mask import Mask

    if is_causal_bias:
        shape, given = (q.shape[-2], k.shape[-2]), (mask.seq_len_q, mask.seq_len_kv)
        if shape != given:
            raise ValueError(f"a causal bias of {given} rows and keys, these are {shape}")
        mask = Mask.causal(from_end=mask.variant.name == "LOWER_RIGHT")
    if is_causal:
        raise ValueError("a Mask and is_causal=True exclude each other: use Mask.causal() & mask")
    return mask, None


def _within(rules: Mask | None, window: Mask) -> Mask:
    return window if rules is None else rules & window


def window_mask(window: Window) -> Mask:
    from maskwise._mask import Mask

    return Mask.window(*window)


def require_sides(name: str, window: Any) -> None:
    if not (isinstance(window, (tuple, list)) and len(window) == 2):
        raise TypeError(f"{name} is {_arguments.shown(window)}, expected (left, right)")


def scale_and_cap(scale: Any, soft_cap: Any) -> tuple[float | None, float]:
    factor = None if scale is None else _arguments.number("scale", scale)
    cap = 0.0 if soft_cap is None else _arguments.number("soft_cap", soft_cap)
    if 0 < abs(cap) < LEAST_CAP:
        raise ValueError(f"soft_cap is {cap}, expected 0 for none, or {LEAST_CAP} and more")
    return factor, cap


def _attend(
    q: Any,
    k: Any,
    v: Any,
    mask: Any,
    is_causal: Any,
    scale: Any,
    enable_gqa: Any,
    soft_cap: Any,
    window: Any,
    sinks: Any,
    out: Any,
    *,
    returns_statistics: Any = False,
    **others: Any,
) -> Any:
    """Checks what users give."""
    causal = is_causal if type(is_causal) is bool else _arguments.flag("is_causal", is_causal)
    grouped = enable_gqa if type(enable_gqa) is bool else _arguments.flag("enable_gqa", enable_gqa)
    twice = returns_statistics
    if type(twice) is not bool:
        twice = _arguments.flag("return_statistics", returns_statistics)
    if window is not None:
        require_sides("window", window)
    rules, array = _rules_and_array(q, k, mask, causal)
    settings = (causal, *scale_and_cap(scale, soft_cap), grouped)
    given = (q, k, v, rules, array, settings, sinks, out)
    return attend(*given, window=window, returns_statistics=twice, **others)


def attend(
    q: Any,
    k: Any,
    v: Any,
    rules: Mask | None,
    array: Any,
    settings: tuple[bool, float | None, float, bool],
    sinks: Any = None,
    out: Any = None,
    *,
    window: Window | None = None,
    returns_statistics: bool = False,
    explains: bool = False,
    is_packed: bool = False,
    follows: bool = True,
) -> Any:
    """Of rules and, where these have none, an array. Settings: causal, scale, soft cap, grouped.

    `follows`: tensors that torch follows go to torch.ops.maskwise.attention.
    """
    native = maps = None
    sinks = np.asarray(sinks, np.float32) if type(sinks) in (list, tuple) else sinks
    on_torch = any(hasattr(one, "__torch_function__") for one in (q, k, v))
    if on_torch:
        from maskwise import _torch_tensors
    if on_torch and follows and _torch_tensors.is_followed((q, k, v, array, sinks)):
        from maskwise import _torch_op

        return _torch_op.attend(
            *(q, k, v, rules, array, settings, sinks, out),
            window=window,
            is_packed=is_packed,
            returns_statistics=returns_statistics,
            explains=explains,
        )
    rules = rules if window is None else _within(rules, window_mask(window))
    if rules is not None:
        native = rules._rules.native
        if rules._array is not None:
            array, maps = rules._array, rules._maps
    masks = array is not None
    torch_empty = _torch_tensors.empty if on_torch else None

    def call(q: Any, k: Any, v: Any, *rest: Any, out: Any) -> Any:
        if is_packed:  # heads first
            q, k, v = (one.swapaxes(0, 1) for one in _of_rank(3, query=q, key=k, value=v))
            out, given = None if out is None else out.swapaxes(0, 1), out
        mask = rest[0] if masks else None
        sink = rest[-1] if sinks is not None else None
        result = _core.attention(
            *(q, k, v, mask, native, maps, *settings, sink),
            *(returns_statistics, torch_empty, explains, out),
        )
        first, *others = result
        if is_packed:
            first = first.swapaxes(0, 1) if given is None else given
        return (first, *others) if explains or returns_statistics else first

    operands = (q, k, v, *((array,) if masks else ()), *((sinks,) if sinks is not None else ()))
    if all(type(one) is np.ndarray for one in operands) and (
        out is None or isinstance(out, np.ndarray)
    ):
        return call(*operands, out=out)
    if on_torch:
        operands = _torch_tensors.detached(operands)
        if out is None and all(map(_torch_tensors.is_readable, operands)):
            return call(*map(_torch_tensors.as_array, operands), out=None)
    from maskwise import _others

    return _others.in_kind(call, tuple(map(_others.unlisted, operands)), out, np.asarray)
