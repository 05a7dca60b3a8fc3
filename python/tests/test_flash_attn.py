"""maskwise.flash_attn and torch's varlen_attn, compared with the definition of attention."""

from __future__ import annotations

import inspect
import itertools
from typing import Any

import definition
import maskwise
import pytest
from torch_tensors import draw, three

try:
    import maskwise.torch as maskwise_torch
    import torch
    from maskwise import flash_attn
except ModuleNotFoundError:
    pytestmark = pytest.mark.skip(reason="no PyTorch: scripts/setup --torch")


def by_definition(q: Any, k: Any, v: Any, kept: Any, cap: float = 0, sinks: Any = None) -> Any:
    """Returns one sequence's result (rows, heads, depth) and log-sum-exps (heads, rows)."""
    heads_first = (one.transpose(0, 1) for one in (q, k, v))
    result, sums = definition.attention(*heads_first, kept=kept, soft_cap=cap, sinks=sinks)
    return result.transpose(0, 1).float(), sums.float()


def kept_places(rows: int, keys: int, causal: bool, window: tuple[int, int]) -> Any:
    positions = torch.arange(rows)[:, None] + keys - rows
    key = torch.arange(keys)
    kept = key <= positions if causal else torch.ones(rows, keys, dtype=torch.bool)
    kept = kept & (key >= positions - window[0]) if window[0] >= 0 else kept
    return kept & (key <= positions + window[1]) if window[1] >= 0 else kept


CASES = [
    (9, 9, False, (-1, -1)),
    (9, 13, True, (-1, -1)),
    (13, 9, True, (-1, -1)),
    (9, 13, True, (4, 0)),
    (9, 13, False, (2, 3)),
    (1, 40, True, (8, -1)),
]


@pytest.mark.parametrize(("rows", "keys", "causal", "window"), CASES)
def test_flash_attn(rows: int, keys: int, causal: bool, window: tuple[int, int]) -> None:
    q, k, v = draw(2, rows, 4, 16), draw(2, keys, 2, 16, seed=1), draw(2, keys, 2, 16, seed=2)
    sinks, kept = draw(4, seed=3), kept_places(rows, keys, causal, window)
    options = {"causal": causal, "window_size": window, "softcap": 5.0, "s_aux": sinks}
    wanted = torch.stack([by_definition(q[i], k[i], v[i], kept, 5.0, sinks)[0] for i in range(2)])
    got, sums, none = flash_attn.flash_attn_func(q, k, v, **options, return_attn_probs=True)
    torch.testing.assert_close(got, wanted, atol=2e-5, rtol=2e-5)
    assert sums.shape == (2, 4, rows) and none is None
    bounds = [torch.tensor([0, n, 2 * n], dtype=torch.int32) for n in (rows, keys)]
    packed = [one.flatten(0, 1) for one in (q, k, v)]
    got = flash_attn.flash_attn_varlen_func(*packed, *bounds, rows, keys, **options)
    torch.testing.assert_close(got, wanted.flatten(0, 1), atol=2e-5, rtol=2e-5)


@pytest.mark.parametrize("paged", [False, True])
def test_flash_attn_with_kvcache(paged: bool) -> None:
    lengths, rows = torch.tensor([5, 17]), 3
    q, new_k, new_v = (
        draw(2, rows, 4, 16),
        draw(2, rows, 2, 16, seed=1),
        draw(2, rows, 2, 16, seed=2),
    )
    k, v = draw(3, 32, 2, 16, seed=3), draw(3, 32, 2, 16, seed=4)
    rows_of = torch.tensor([2, 0])
    whole = [one[rows_of].clone() for one in (k, v)]
    for one, new in zip(whole, (new_k, new_v), strict=True):
        for i in range(2):
            one[i, lengths[i] : lengths[i] + rows] = new[i]
    options: dict[str, Any] = {"cache_seqlens": lengths.int(), "causal": True}
    options["window_size"] = (9, 0)
    if paged:  # blocks of 8 keys, in random order
        order = torch.randperm(12, generator=torch.Generator().manual_seed(1))
        k, v = (one.reshape(12, 8, 2, 16)[order] for one in (k, v))
        places = order.argsort().reshape(3, 4)[rows_of]
        options["block_table"] = places.int()
    else:
        options["cache_batch_idx"] = rows_of.int()
    got = flash_attn.flash_attn_with_kvcache(q, k, v, new_k, new_v, **options)
    for i in range(2):
        keys = int(lengths[i]) + rows
        kept = kept_places(rows, keys, True, (9, 0))
        wanted, _ = by_definition(q[i], whole[0][i, :keys], whole[1][i, :keys], kept)
        torch.testing.assert_close(got[i], wanted, atol=2e-5, rtol=2e-5)
    with pytest.raises(ValueError, match="room for 32"):
        flash_attn.flash_attn_with_kvcache(q, k, v, new_k, new_v, **options | {"cache_seqlens": 30})


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("with_sinks", [False, True])
@pytest.mark.parametrize(
    ("rows", "keys", "causal", "window"), [*CASES, (5, 1, False, (-1, -1)), (5, 3, True, (0, 0))]
)
def test_log_sum_exps(
    rows: int, keys: int, causal: bool, window: tuple[int, int], with_sinks: bool, zeros: bool
) -> None:
    """A fully masked row has a log-sum-exp of -infinity. The log-sum-exps of other rows are finite,
    even if their scores and values are 0."""
    q, k, v = draw(2, rows, 4, 16), draw(2, keys, 2, 16, seed=1), draw(2, keys, 2, 16, seed=2)
    sinks = draw(4, seed=3) if with_sinks else None
    q, v = (q * 0, v * 0) if zeros else (q, v)
    options = {"causal": causal, "window_size": window, "s_aux": sinks}
    kept = kept_places(rows, keys, causal, window)
    wanted = torch.stack([by_definition(q[i], k[i], v[i], kept, sinks=sinks)[1] for i in range(2)])
    _, sums, _ = flash_attn.flash_attn_func(q, k, v, **options, return_attn_probs=True)
    torch.testing.assert_close(sums, wanted, atol=2e-5, rtol=2e-5)
    bounds = [torch.tensor([0, 0, n, n, 2 * n]) for n in (rows, keys)]
    packed = [one.flatten(0, 1) for one in (q, k, v)]
    _, sums, _ = flash_attn.flash_attn_varlen_func(
        *packed, *bounds, rows, keys, **options, return_attn_probs=True
    )
    torch.testing.assert_close(sums, wanted.transpose(0, 1).flatten(1), atol=2e-5, rtol=2e-5)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("window", [(-1, -1), (3, 2), (0, 0)])
def test_log_sum_exps_with_kvcache(causal: bool, window: tuple[int, int]) -> None:
    rows, lengths, starts = 4, [0, 1, 3, 9, 16], [0, 0, 1, 9, 14]
    q, k, v = draw(5, rows, 4, 16) * 0, draw(5, 16, 2, 16, seed=1), draw(5, 16, 2, 16) * 0
    _, sums = flash_attn.flash_attn_with_kvcache(
        *(q, k, v),
        cache_seqlens=torch.tensor(lengths),
        cache_leftpad=torch.tensor(starts),
        causal=causal,
        window_size=window,
        return_softmax_lse=True,
    )
    for i, (keys, start) in enumerate(zip(lengths, starts, strict=True)):
        kept = kept_places(rows, keys, causal, window) & (torch.arange(keys) >= start)
        _, wanted = by_definition(q[i], k[i, :keys], v[i, :keys], kept)
        torch.testing.assert_close(sums[i], wanted, atol=2e-5, rtol=2e-5)


def test_results_over_slices_of_keys_can_be_merged() -> None:
    """Merges results over slices of the keys by their log-sum-exps. Scale 0 makes queries and
    values zeros, as in a server's warm-up."""
    for scale in (0.0, 1.0):
        q, k, v = draw(1, 5, 2, 8) * scale, draw(1, 12, 2, 8, seed=1), draw(1, 12, 2, 8, seed=2)
        v = v * scale
        whole = flash_attn.flash_attn_func(q, k, v)
        parts = [
            flash_attn.flash_attn_func(q, k[:, rows], v[:, rows], return_attn_probs=True)[:2]
            for rows in (slice(0, 1), slice(1, 12), slice(0, 0))
        ]
        sums = torch.stack([one for _, one in parts])
        weights = (sums - sums.logsumexp(0)).exp().transpose(-1, -2)[..., None]
        merged = sum(weight * out for weight, (out, _) in zip(weights, parts, strict=True))
        torch.testing.assert_close(merged, whole, atol=2e-5, rtol=2e-5)


def test_rows_after_the_last_sequence_are_zero() -> None:
    q, k, v = draw(5, 2, 8), draw(12, 2, 8, seed=1), draw(12, 2, 8, seed=2)
    result, sums, _ = flash_attn.flash_attn_varlen_func(
        q, k, v, torch.tensor([0, 3]), torch.tensor([0, 4]), return_attn_probs=True
    )
    assert torch.isneginf(sums[:, 3:]).all() and torch.isfinite(sums[:, :3]).all()
    assert not result[3:].any()


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("spoiled", ["qkv", "k", "v"])
def test_nan_in_a_sequence_does_not_reach_other_sequences(
    dtype: str, causal: bool, spoiled: str
) -> None:
    """The lengths are odd, so that a tile has rows and keys of several sequences."""
    ends = [0, 33, 34, 73, 120]
    bounds = torch.tensor(ends, dtype=torch.int32)
    inputs = {
        name: draw(120, 2, 16, seed=seed).to(getattr(torch, dtype))
        for seed, name in enumerate("qkv")
    }
    whole = flash_attn.flash_attn_varlen_func(*inputs.values(), bounds, bounds, causal=causal)
    for first, last in itertools.pairwise(ends):
        changed = {name: one.clone() for name, one in inputs.items()}
        for name in spoiled:
            changed[name][first:last] = torch.nan
        got = flash_attn.flash_attn_varlen_func(*changed.values(), bounds, bounds, causal=causal)
        assert got[first:last].isnan().any()
        for part in (slice(0, first), slice(last, None)):
            torch.testing.assert_close(got[part], whole[part])


def test_log_sum_exps_have_no_gradients() -> None:
    """As in flash_attn, the result has a gradient, but the log-sum-exps have none."""
    q, k, v = three(2, 9, 2, 16)
    bounds, sinks = torch.tensor([0, 4, 9]), draw(2)

    def calls(q: Any, k: Any, v: Any, sinks: Any) -> list[Any]:
        more: dict[str, Any] = {"causal": True, "s_aux": sinks, "return_attn_probs": True}
        return [
            flash_attn.flash_attn_func(q, k, v, **more),
            flash_attn.flash_attn_varlen_func(q[0], k[0], v[0], bounds, bounds, **more),
            flash_attn.flash_attn_with_kvcache(q, k, v, s_aux=sinks, return_softmax_lse=True),
        ]

    wanted = calls(q, k, v, sinks)
    for position in range(4):
        inputs = [one.clone() for one in (q, k, v, sinks)]
        inputs[position].requires_grad_()
        for got, plain in zip(calls(*inputs), wanted, strict=True):
            assert got[0].requires_grad and not got[1].requires_grad
            assert torch.equal(got[0], plain[0]) and torch.equal(got[1], plain[1])
            torch.autograd.grad(got[0].sum(), inputs[position])


def test_the_default_device_has_no_effect() -> None:
    """Calls on CPU tensors also create their helper tensors on the CPU."""
    q, k, v = three(2, 3, 2, 16)
    bounds, lengths = torch.tensor([0, 1, 3]), torch.tensor([1, 0])
    table = torch.tensor([[0], [1]])

    def calls() -> list[Any]:
        caches, paged = (k.clone(), v.clone()), (k.clone(), v.clone())
        more: dict[str, Any] = {"cache_seqlens": lengths, "return_softmax_lse": True}
        return [
            *flash_attn.flash_attn_func(q, k, v, return_attn_probs=True)[:2],
            *flash_attn.flash_attn_varlen_func(
                q[0], k[0], v[0], bounds, bounds, return_attn_probs=True
            )[:2],
            flash_attn.flash_attn_varlen_func(q[0], k, v, bounds, bounds, block_table=table),
            *flash_attn.flash_attn_with_kvcache(q, *caches, k[:, :2], v[:, :2], **more),
            *flash_attn.flash_attn_with_kvcache(
                q, *paged, k[:, :2], v[:, :2], block_table=table, **more
            ),
            flash_attn.flash_attn_with_kvcache(q, *caches, cache_seqlens=2, cache_leftpad=[0, 1]),
        ]

    wanted = calls()
    with torch.device("meta"):
        got = calls()
    for one, other in zip(got, wanted, strict=True):
        assert torch.equal(one, other)


def wrong_calls(k: Any, v: Any) -> list[tuple[Any, ...]]:
    """Returns invalid calls: new keys, new values, options, and perhaps a change to the caches."""
    table = torch.tensor([[0], [1]], dtype=torch.int32)
    paged: dict[str, Any] = {"cache_seqlens": torch.tensor([1, 2]), "block_table": table}
    rows = {"cache_seqlens": 1, "cache_batch_idx": torch.tensor([0, 1])}
    return [
        (k, None, paged),
        (None, v, paged),
        (k[:1], v[:1], paged),
        (k[..., :1, :], v, paged),
        (k, v, paged | {"block_table": torch.tensor([[-1], [1]])}),
        (k, v, paged | {"block_table": table[:1]}),
        (k, v, paged | {"cache_seqlens": torch.tensor([1, 4])}),
        (k, v, paged | {"cache_seqlens": torch.tensor([1.0, 2.0])}),
        (k, v, paged | {"cache_seqlens": torch.tensor([1, 2, 1])}),
        (k, v, rows | {"cache_batch_idx": torch.tensor([-1, 0])}),
        (k, v, rows | {"cache_batch_idx": torch.tensor([4, 0])}),
        *((k, v, rows | wrong) for wrong in WRONG),
        (k, v, {"cache_seqlens": 1}),  # four sequences in the cache, two in q
        (k, v, rows, lambda k, v: (k, v[:, :3])),
        (k, v, rows, lambda k, v: (k, v.half())),
        (k, v, rows, lambda k, v: (k.double(), v.double())),
        (k, v, rows, lambda k, v: (k, v.clone().requires_grad_())),
        (k, v, paged, lambda k, v: (k, v[:3])),
        (k, v, paged, lambda k, v: (k, v[:, :3])),
    ]


WRONG: list[dict[str, Any]] = [
    {"window_size": (1, 2, 3)},
    {"window_size": (-2, 0)},
    {"softmax_scale": "half"},
    {"softcap": 1e-40},
    {"rotary_interleaved": True, "rotary_cos": [1.0]},
    {"s_aux": [0.0] * 5},
    {"cache_leftpad": [-1, 0]},
    {"cache_leftpad": [0, 0, 0]},
]


def test_an_error_leaves_the_caches_unchanged() -> None:
    q, k, v = (draw(2, 1, 2, 8, seed=seed) for seed in range(3))
    keys, raised = draw(4, 4, 2, 8), (ValueError, TypeError, NotImplementedError, RuntimeError)
    for new_k, new_v, lengths, *change in wrong_calls(k, v):
        copies = keys.clone(), keys.clone()
        caches = change[0](*copies) if change else copies
        before = [one.detach().clone() for one in caches]
        with pytest.raises(raised):
            flash_attn.flash_attn_with_kvcache(q, *caches, new_k, new_v, **lengths)
        assert all(torch.equal(one, old) for one, old in zip(caches, before, strict=True)), lengths
    with pytest.raises(ValueError, match="room for 4"):
        bounds = torch.tensor([0, 1, 2]), torch.tensor([0, 5, 12])
        table = torch.tensor([[0], [1]], dtype=torch.int32)
        flash_attn.flash_attn_varlen_func(q[:, 0], keys, keys, *bounds, block_table=table)
    with pytest.raises(ValueError, match="end at 30 rows, there are 2"):
        maskwise.packed_attention(q[:, 0], k[:, 0], v[:, 0], [0, 30], [0, 2])


def test_torch_detects_that_caches_are_written() -> None:
    """A gradient that needs a cache's old content raises an error, as after a write by torch."""
    q, k, v = (draw(2, 1, 2, 8, seed=seed) for seed in range(3))
    caches = draw(2, 4, 2, 8), draw(2, 4, 2, 8)
    saved = [(torch.ones_like(one, requires_grad=True) * one).sum() for one in caches]
    flash_attn.flash_attn_with_kvcache(q, *caches, k, v, cache_seqlens=1)
    for one in saved:
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            one.backward()


def test_dropout_is_refused() -> None:
    q, k, v = three(2, 9, 4, 16)
    with pytest.raises(NotImplementedError, match="dropout_p"):
        flash_attn.flash_attn_func(q, k, v, dropout_p=0.1)


def test_varlen_attn() -> None:
    varlen = pytest.importorskip("torch.nn.attention.varlen")
    q, k, v = three(20, 4, 16)
    bounds = torch.tensor([0, 8, 20], dtype=torch.int32)
    names = inspect.signature(varlen.varlen_attn).parameters
    causal = {"window_size": (-1, 0)} if "window_size" in names else {"is_causal": True}
    with maskwise_torch.installed():
        got = varlen.varlen_attn(q, k, v, bounds, bounds, 12, 12, **causal)
    parts = [slice(0, 8), slice(8, 20)]
    wanted = [
        by_definition(
            q[rows], k[rows], v[rows], kept_places(len(q[rows]), len(q[rows]), True, (-1, -1))
        )[0]
        for rows in parts
    ]
    torch.testing.assert_close(got, torch.cat(wanted), atol=2e-5, rtol=2e-5)


def alibi(rows: int, keys: int, slopes: Any) -> Any:
    """Returns the bias (heads, rows, keys). The last row is aligned with the last key."""
    positions = torch.arange(rows)[:, None] + keys - rows
    return -slopes[:, None, None] * (positions - torch.arange(keys)).abs()


@pytest.mark.parametrize(("rows", "keys", "causal", "window"), [*CASES, (700, 900, True, (-1, -1))])
def test_alibi(rows: int, keys: int, causal: bool, window: tuple[int, int]) -> None:
    q, k, v = draw(2, rows, 4, 16), draw(2, keys, 2, 16, seed=1), draw(2, keys, 2, 16, seed=2)
    slopes, kept = torch.tensor([[0.5, 0.1, 0, 2], [1, 0.01, -0.1, 9]]), None
    options: dict[str, Any] = {"causal": causal, "window_size": window}
    kept = kept_places(rows, keys, causal, window)

    def wanted(i: int, one: Any) -> tuple[Any, Any]:
        heads_first = (tensor[i].transpose(0, 1) for tensor in (q, k, v))
        result, sums = definition.attention(*heads_first, kept=kept, bias=alibi(rows, keys, one))
        return result.transpose(0, 1).float(), sums.float()

    both = [wanted(i, slopes[i]) for i in range(2)]
    results, sums = (torch.stack(list(one)) for one in zip(*both, strict=True))
    got, got_sums, _ = flash_attn.flash_attn_func(
        q, k, v, alibi_slopes=slopes, return_attn_probs=True, **options
    )
    torch.testing.assert_close(got, results, atol=2e-5, rtol=2e-5)
    torch.testing.assert_close(got_sums, sums, atol=2e-5, rtol=2e-5)
    got = flash_attn.flash_attn_with_kvcache(q, k, v, alibi_slopes=slopes, **options)
    torch.testing.assert_close(got, results, atol=2e-5, rtol=2e-5)
    bounds = [torch.tensor([0, n, 2 * n]) for n in (rows, keys)]
    packed = [one.flatten(0, 1) for one in (q, k, v)]
    got = flash_attn.flash_attn_varlen_func(
        *packed, *bounds, rows, keys, alibi_slopes=slopes[0], **options
    )
    results = torch.cat([wanted(i, slopes[0])[0] for i in range(2)])
    torch.testing.assert_close(got, results, atol=2e-5, rtol=2e-5)
    with pytest.raises(NotImplementedError, match="slopes per sequence"):
        flash_attn.flash_attn_varlen_func(*packed, *bounds, alibi_slopes=slopes, **options)
    with pytest.raises(ValueError, match="slopes are of 2 heads, the result has 4"):
        flash_attn.flash_attn_func(q, k, v, alibi_slopes=slopes.reshape(4, 2), **options)


def test_gradients_with_alibi() -> None:
    """Gradients are close to torch's, for sizes with and without skipped tiles."""
    slopes = torch.tensor([0.5, 0.01, 3, 0.1])
    for rows, keys in ((40, 70), (300, 400)):
        tensors = [draw(1, n, 4, 16, seed=n).requires_grad_() for n in (rows, keys, keys)]
        q, k, v = (one.transpose(1, 2) for one in tensors)
        mask = alibi(rows, keys, slopes) + torch.where(
            kept_places(rows, keys, True, (-1, -1)), 0.0, -torch.inf
        )
        wanted = torch.nn.functional.scaled_dot_product_attention(q, k, v, mask).transpose(1, 2)
        got = flash_attn.flash_attn_func(*tensors, alibi_slopes=slopes, causal=True)
        torch.testing.assert_close(got, wanted, atol=2e-5, rtol=2e-5)
        weights = draw(*got.shape, seed=5)
        both = [torch.autograd.grad(one, tensors, weights) for one in (got, wanted)]
        torch.testing.assert_close(*both, atol=5e-5, rtol=5e-5)
