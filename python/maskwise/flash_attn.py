"""flash_attn's functions on CPUs, with the same names and defaults.

    from maskwise.flash_attn import flash_attn_func, flash_attn_varlen_func, flash_attn_with_kvcache

Operands are torch tensors (batch, rows, heads, depth), or (rows, heads, depth) if sequences are
packed. float32 is supported, too. Keys and values may have fewer heads. `causal` and `window_size`
align the last row with the last key. `window_size` is (left, right); -1 is no bound. `s_aux` is a
sink per head. `deterministic`, `num_splits` and the `max_seqlen`s have no effect. Dropout raises
NotImplementedError.

    maskwise.flash_attn.install()    # until uninstall(), programs can import flash_attn
"""

# mypy may check the package without torch.
# mypy: disable-error-code="import-not-found,misc,no-any-return,unused-ignore"

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from maskwise import Mask, _flash_attn_pages, _flash_attn_rotary, _torch_version  # noqa: F401
from maskwise._attention import packed_call, run
from maskwise._call import AttentionCall, checked, require_sides, with_arrays
from maskwise._torch_tensors import indices, want_gradients

__all__ = [
    "flash_attn_func",
    "flash_attn_varlen_func",
    "flash_attn_with_kvcache",
    "install",
    "uninstall",
]


def _integers(value: Any) -> torch.Tensor:
    return torch.as_tensor(value, device="cpu")


def _refuse_dropout(function: str, dropout_p: float) -> None:
    if dropout_p not in (None, 0):
        raise NotImplementedError(f"maskwise's {function} has no dropout_p")


def _rules(causal: bool, window_size: tuple[int, int], slopes: Any, **position: Any) -> Mask:
    require_sides("window_size", window_size)
    mask = Mask._from_rules(causal=bool(causal), **position)
    mask = mask if tuple(window_size) == (-1, -1) else mask & Mask.window(*window_size)
    return mask if slopes is None else mask & Mask.alibi(slopes)


def _attend(call: AttentionCall, is_empty: torch.Tensor | None) -> Any:
    """Computes attention of (batch, rows, heads, depth). If `is_empty` is not None, also returns
    log(sum of exp(score)) per row, as (batch, heads, rows)."""
    q, k, v = (one.transpose(1, 2) for one in call[:3])
    call = checked(call.changed(query=q, key=k, value=v, enable_gqa=True))
    if is_empty is None:
        return run(call).transpose(1, 2)
    result, sums = _result_and_sums(call)
    return result.transpose(1, 2), _sums_of_parts(sums, is_empty, call.sinks)


def _result_and_sums(call: AttentionCall) -> tuple[Any, Any]:
    """Returns the result and log(sum of exp(score)) per row. The sums have no gradient, as in
    flash_attn."""
    with_sums = call.changed(return_statistics=True)
    operands = (call.query, call.key, call.value, call.sinks)
    if not want_gradients(one for one in operands if torch.is_tensor(one)):
        return run(with_sums)
    return run(call), run(with_arrays(with_sums, _detached))[1]


def _detached(value: Any) -> Any:
    return value.detach() if torch.is_tensor(value) else value


def _sums_of_parts(sums: torch.Tensor, is_empty: Any, s_aux: Any) -> torch.Tensor:
    """For fully masked rows, replaces Maskwise's 0 by -infinity, so that a caller can merge results
    over slices of the keys. With a sink, no row's sum is empty."""
    return sums if s_aux is not None else sums.masked_fill_(is_empty, -torch.inf)


def _empty_rows(
    positions: torch.Tensor, keys: Any, causal: bool, window: tuple[int, int], first: Any = 0
) -> torch.Tensor:
    """Whether the rows at these positions keep none of the keys [first, keys) of their sequence."""
    left, right = window
    lowest = _integers(first).clamp(min=0)
    highest = _integers(keys) - 1
    if left >= 0:
        lowest = torch.maximum(lowest, positions - left)
    if causal or right >= 0:
        highest = torch.minimum(highest, positions + (0 if causal else right))
    return (lowest > highest).expand(torch.broadcast_shapes(lowest.shape, positions.shape))


def flash_attn_func(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    alibi_slopes: torch.Tensor | None = None,
    deterministic: bool = False,
    return_attn_probs: bool = False,
    *,
    s_aux: torch.Tensor | None = None,
) -> Any:
    """Returns the result. With return_attn_probs, returns (result, log(sum of exp(score)) per row,
    None)."""
    _refuse_dropout("flash_attn_func", dropout_p)
    rules = _rules(causal, window_size, alibi_slopes, from_end=True)
    options: dict[str, Any] = {"scale": softmax_scale, "soft_cap": softcap, "sinks": s_aux}
    call = AttentionCall(q, k, v, rules, **options)
    if not return_attn_probs:
        return _attend(call, None)
    rows, keys = q.shape[1], k.shape[1]
    is_empty = _empty_rows(indices(rows) + keys - rows, keys, causal, window_size)
    return (*_attend(call, is_empty), None)


def flash_attn_varlen_func(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    cu_seqlens_q: torch.Tensor,
    cu_seqlens_k: torch.Tensor,
    max_seqlen_q: int | None = None,
    max_seqlen_k: int | None = None,
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    alibi_slopes: torch.Tensor | None = None,
    deterministic: bool = False,
    return_attn_probs: bool = False,
    block_table: torch.Tensor | None = None,
    *,
    s_aux: torch.Tensor | None = None,
) -> Any:
    """flash_attn_func for packed sequences. With a block table, k and v are (blocks, block size,
    heads, depth), and cu_seqlens_k holds the cumulative key counts of the sequences.
    """
    _refuse_dropout("flash_attn_varlen_func", dropout_p)
    options: dict[str, Any] = {"scale": softmax_scale, "soft_cap": softcap, "sinks": s_aux}
    options["window"] = (window_size[0], window_size[1])
    if block_table is None:
        call = packed_call((q, k, v), cu_seqlens_q, cu_seqlens_k, bool(causal), **options)
    else:
        for blocks in (k, v):
            _flash_attn_pages.require_blocks(blocks, block_table, cu_seqlens_k.diff())
        bounds = (cu_seqlens_q, cu_seqlens_k, bool(causal))
        call = _flash_attn_pages.packed_with_blocks(
            AttentionCall(q, k, v, **options), block_table, *bounds
        )
    if alibi_slopes is not None:
        call = call.changed(attn_mask=call.attn_mask & Mask.alibi(_shared(alibi_slopes)))
    if not return_attn_probs:
        return run(call) if block_table is None else _attend(call, None)[0]
    is_empty = _empty_packed_rows(len(q), cu_seqlens_q, cu_seqlens_k, causal, window_size)
    if block_table is not None:
        result, sums = _attend(call, is_empty)
        return result[0], sums[0], None
    result, sums = _result_and_sums(call)
    return result, _sums_of_parts(sums, is_empty, s_aux), None


def _shared(slopes: torch.Tensor) -> torch.Tensor:
    """Returns one slope per head. Packed sequences share the slopes, because Maskwise sees them as
    documents of one sequence."""
    if slopes.ndim == 2 and (slopes != slopes[:1]).any():
        raise NotImplementedError("maskwise's flash_attn_varlen_func has no slopes per sequence")
    return slopes[0] if slopes.ndim == 2 else slopes


def _empty_packed_rows(
    count: int, cu_seqlens_q: Any, cu_seqlens_k: Any, causal: bool, window: tuple[int, int]
) -> torch.Tensor:
    """_empty_rows() for packed sequences. Rows after the last sequence are empty, too."""
    rows, keys = (_integers(one).long().diff() for one in (cu_seqlens_q, cu_seqlens_k))
    first = _integers(cu_seqlens_q).long()[:-1]
    positions = indices(int(rows.sum())) + (keys - rows - first).repeat_interleave(rows)
    is_empty = torch.ones(count, dtype=torch.bool, device="cpu")
    is_empty[: len(positions)] = _empty_rows(
        positions, keys.repeat_interleave(rows), causal, window
    )
    return is_empty


def _places(
    cache: torch.Tensor, held: torch.Tensor, new: int, table: Any, index: Any
) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns the cache indices of the new keys of each sequence, after its cached keys."""
    places = held[:, None] + indices(new)
    if table is None:
        rows = indices(len(held)) if index is None else index.long()
        return rows[:, None], places
    size = cache.shape[1]
    return table.long().gather(1, places // size), places % size


@contextmanager
def _appended(caches: list[tuple[torch.Tensor, Any, Any]]) -> Iterator[None]:
    """Writes new keys and values to the caches. Restores the old contents if the body raises."""
    before = [(cache, places, cache.detach()[places]) for cache, places, _ in caches]
    try:
        for cache, places, new in caches:
            cache[places] = new.to(cache.dtype)
        yield
    except BaseException:
        with torch.no_grad():
            for cache, places, old in before:
                cache[places] = old
        raise


def _require_new(q: torch.Tensor, caches: tuple[Any, Any], new: tuple[Any, Any]) -> int:
    """Checks the new keys and values. Returns the number of new keys per sequence."""
    if new[0] is None and new[1] is None:
        return 0
    if new[0] is None or new[1] is None:
        raise ValueError("k and v go together: one of them is None")
    for name, cache, one in (("k", caches[0], new[0]), ("v", caches[1], new[1])):
        expected = (q.shape[0], new[0].shape[1], *cache.shape[2:])
        if tuple(one.shape) != expected:
            raise ValueError(f"{name} has shape {tuple(one.shape)}, expected {expected}")
    return int(new[0].shape[1])


def _require_rows(index: torch.Tensor | None, q: torch.Tensor, cache: torch.Tensor) -> None:
    if index is None:
        return
    rows = index.tolist()
    if len(rows) != q.shape[0] or not all(0 <= row < cache.shape[0] for row in rows):
        raise ValueError(
            f"cache_batch_idx is {rows}, expected {q.shape[0]} indices below {cache.shape[0]}"
        )


def flash_attn_with_kvcache(
    q: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    k: torch.Tensor | None = None,
    v: torch.Tensor | None = None,
    rotary_cos: torch.Tensor | None = None,
    rotary_sin: torch.Tensor | None = None,
    cache_seqlens: int | torch.Tensor | None = None,
    cache_batch_idx: torch.Tensor | None = None,
    cache_leftpad: torch.Tensor | None = None,
    block_table: torch.Tensor | None = None,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    rotary_interleaved: bool = True,
    alibi_slopes: torch.Tensor | None = None,
    num_splits: int = 0,
    return_softmax_lse: bool = False,
    *,
    s_aux: torch.Tensor | None = None,
) -> Any:
    """Attention of new rows and a cache. The cache is (batch, keys, heads, depth); with a block
    table, (blocks, block size, heads, depth).

    First, rotary_cos and rotary_sin, (positions, rotary_dim / 2), rotate q and k. Row i is at
    position cache_seqlens + i. Without causal and window, all rows of q are at cache_seqlens. Then
    k and v are written into the cache at cache_seqlens of each sequence.
    """
    if k_cache.shape[:2] != v_cache.shape[:2]:
        shapes = f"{tuple(k_cache.shape)} and {tuple(v_cache.shape)}"
        raise ValueError(f"k_cache and v_cache have shapes {shapes}, expected equally many keys")
    is_paged = block_table is not None
    whole = _flash_attn_pages.keys_of(k_cache, block_table) if is_paged else k_cache.shape[1]
    held = _held(whole if cache_seqlens is None else cache_seqlens, q.shape[0])
    count = _require_new(q, (k_cache, v_cache), (k, v))
    lengths = held + count
    _require_rows(cache_batch_idx, q, k_cache)
    if ((held < 0) | (lengths > whole)).any():
        raise ValueError(f"sequences have {lengths.tolist()} keys, the cache has room for {whole}")
    if block_table is not None:
        _flash_attn_pages.require_blocks(k_cache, block_table, lengths)
    if rotary_cos is not None or rotary_sin is not None:
        has_positions = causal or tuple(window_size) != (-1, -1)
        tables = (rotary_cos, rotary_sin)
        q, k = _flash_attn_rotary.rotated(q, k, tables, held, rotary_interleaved, has_positions)
    new = []
    if k is not None and v is not None:
        places = _places(k_cache, held, count, block_table, cache_batch_idx)
        new = [(k_cache, places, k), (v_cache, places, v)]
    with _appended(new):
        options: dict[str, Any] = {"scale": softmax_scale, "soft_cap": softcap, "sinks": s_aux}
        if block_table is None and cache_batch_idx is not None:
            k_cache, v_cache = (one[cache_batch_idx.long()] for one in (k_cache, v_cache))
        call = AttentionCall(q, k_cache, v_cache, **options)
        if block_table is not None:
            call = _flash_attn_pages.with_blocks(call, block_table, lengths)
        position = (lengths, cache_leftpad, causal, window_size, alibi_slopes)
        return _attend_lengths(call, *position, return_softmax_lse)


def _held(cache_seqlens: Any, batch: int) -> torch.Tensor:
    lengths = _integers(cache_seqlens)
    if lengths.dtype.is_floating_point or lengths.dtype == torch.bool:
        raise TypeError(f"cache_seqlens is of {lengths.dtype}, expected integers")
    return lengths.reshape(-1).expand(batch).long()


def _attend_lengths(
    call: AttentionCall,
    lengths: torch.Tensor,
    leftpad: torch.Tensor | None,
    causal: bool,
    window: tuple[int, int],
    slopes: torch.Tensor | None,
    with_sums: bool,
) -> Any:
    """Attention of sequences whose keys are padded on the right."""
    rows = call.query.shape[1]
    offsets = lengths - rows
    rules = _rules(causal, window, slopes, offsets=tuple(offsets.tolist()))
    rules &= Mask.lengths(lengths) if len(lengths) else Mask()
    if leftpad is not None:
        rules &= Mask.starts(leftpad)
    is_empty = None
    if with_sums:
        first = 0 if leftpad is None else _integers(leftpad).reshape(-1, 1)
        positions = offsets[:, None] + indices(rows)
        is_empty = _empty_rows(positions, lengths[:, None], causal, window, first)[:, None]
    return _attend(call.changed(attn_mask=rules), is_empty)


def install() -> bool:
    """Installs Maskwise's package flash_attn, with bert_padding and flash_attn_interface. Does
    nothing if another flash_attn is installed or torch has a GPU. Returns whether Maskwise's
    package is installed."""
    from maskwise import _flash_attn_package

    return _flash_attn_package.install()


def uninstall() -> None:
    """Removes install()'s package, if it is installed."""
    from maskwise import _flash_attn_package

    _flash_attn_package.uninstall()
