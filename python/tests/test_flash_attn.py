"""maskwise.flash_attn, and torch's varlen_attn, against the definition of attention."""

from __future__ import annotations

from typing import Any

import maskwise
import pytest
from torch_tensors import draw, three

try:
    import maskwise.torch as door
    import torch
    from maskwise import flash_attn
except ModuleNotFoundError:
    pytestmark = pytest.mark.skip(reason="no PyTorch: scripts/setup --torch")


def by_definition(q: Any, k: Any, v: Any, kept: Any, cap: float = 0, sinks: Any = None) -> Any:
    """Of one sequence, (rows, heads, depth)."""
    k, v = (one.repeat_interleave(q.shape[1] // one.shape[1], dim=1) for one in (k, v))
    scores = torch.einsum("rhd,khd->hrk", q, k) / q.shape[-1] ** 0.5
    scores = cap * torch.tanh(scores / cap) if cap else scores
    weights = torch.where(kept, scores, -torch.inf).exp()
    total = weights.sum(-1, keepdim=True)
    total = total if sinks is None else total + sinks.exp()[:, None, None]
    return torch.einsum("hrk,khd->rhd", (weights / total).nan_to_num(), v)


def kept_places(rows: int, keys: int, causal: bool, window: tuple[int, int]) -> Any:
    at = torch.arange(rows)[:, None] + keys - rows
    key = torch.arange(keys)
    kept = key <= at if causal else torch.ones(rows, keys, dtype=torch.bool)
    kept = kept & (key >= at - window[0]) if window[0] >= 0 else kept
    return kept & (key <= at + window[1]) if window[1] >= 0 else kept


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
    wanted = torch.stack([by_definition(q[i], k[i], v[i], kept, 5.0, sinks) for i in range(2)])
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
    if paged:  # blocks of 8, in any order
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
        wanted = by_definition(q[i], whole[0][i, :keys], whole[1][i, :keys], kept)
        torch.testing.assert_close(got[i], wanted, atol=2e-5, rtol=2e-5)
    with pytest.raises(ValueError, match="room for 32"):
        flash_attn.flash_attn_with_kvcache(q, k, v, new_k, new_v, **options | {"cache_seqlens": 30})


def test_flash_attn_merges() -> None:
    """Rows without keys weigh nothing where parts are joined by their logarithms."""
    q, k, v = draw(1, 5, 2, 8), draw(1, 12, 2, 8, seed=1), draw(1, 12, 2, 8, seed=2)
    _, sums, _ = flash_attn.flash_attn_varlen_func(
        q[0], k[0], v[0], torch.tensor([0, 5]), torch.tensor([0, 0]), return_attn_probs=True
    )
    assert torch.isneginf(sums).all()
    far = {"causal": True, "window_size": (0, 0)}
    _, sums, _ = flash_attn.flash_attn_func(q, k[:, :3], v[:, :3], **far, return_attn_probs=True)
    assert torch.isneginf(sums[..., :2]).all() and torch.isfinite(sums[..., 2:]).all()


def test_caches_are_not_written_where_something_is_wrong() -> None:
    q, k, v = (draw(2, 1, 2, 8, seed=seed) for seed in range(3))
    keys = draw(4, 4, 2, 8)
    table = torch.tensor([[0], [1]], dtype=torch.int32)
    options: dict[str, Any] = {"cache_seqlens": torch.tensor([1, 2]), "block_table": table}
    wrong: list[tuple[Any, ...]] = [
        (k, None, options),
        (None, v, options),
        (k[:1], v[:1], options),
        (k[..., :1, :], v, options),
        (k, v, options | {"block_table": torch.tensor([[-1], [1]])}),
        (k, v, options | {"block_table": table[:1]}),
        (k, v, options | {"cache_seqlens": torch.tensor([1, 4])}),
        (k, v, {"cache_seqlens": 1, "cache_batch_idx": torch.tensor([-1, 0])}),
    ]
    for new_k, new_v, given in wrong:
        caches = keys.clone(), keys.clone()
        with pytest.raises(ValueError, match=r"\d|None"):
            flash_attn.flash_attn_with_kvcache(q, *caches, new_k, new_v, **given)
        assert all(torch.equal(one, keys) for one in caches)
    with pytest.raises(ValueError, match="room for 4"):
        bounds = torch.tensor([0, 1, 2]), torch.tensor([0, 5, 12])
        flash_attn.flash_attn_varlen_func(q[:, 0], keys, keys, *bounds, block_table=table)
    with pytest.raises(ValueError, match="end at 30 rows, there are 2"):
        maskwise.packed_attention(q[:, 0], k[:, 0], v[:, 0], [0, 30], [0, 2])


def test_flash_attn_refuses() -> None:
    q, k, v = three(2, 9, 4, 16)
    for asked in ({"dropout_p": 0.1}, {"alibi_slopes": draw(4)}):
        with pytest.raises(NotImplementedError, match=next(iter(asked))):
            flash_attn.flash_attn_func(q, k, v, **asked)


def test_varlen_attn() -> None:
    varlen = pytest.importorskip("torch.nn.attention.varlen")
    q, k, v = three(20, 4, 16)
    bounds = torch.tensor([0, 8, 20], dtype=torch.int32)
    with door.installed():
        got = varlen.varlen_attn(q, k, v, bounds, bounds, 12, 12, window_size=(-1, 0))
    parts = [slice(0, 8), slice(8, 20)]
    wanted = [
        by_definition(q[at], k[at], v[at], kept_places(len(q[at]), len(q[at]), True, (-1, -1)))
        for at in parts
    ]
    torch.testing.assert_close(got, torch.cat(wanted), atol=2e-5, rtol=2e-5)
