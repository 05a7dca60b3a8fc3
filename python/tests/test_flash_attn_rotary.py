"""Compares rotary embeddings of maskwise.flash_attn with complex products in float64."""

from __future__ import annotations

from typing import Any

import pytest
from test_flash_attn import by_definition, kept_places
from torch_tensors import draw

try:
    import torch
    from maskwise import flash_attn
except ModuleNotFoundError:
    pytestmark = pytest.mark.skip(reason="no PyTorch: scripts/setup --torch")


def rotated(x: Any, angles: Any, is_interleaved: bool) -> Any:
    """Returns x (rows, heads, depth) in float64. Multiplies pairs of elements, as complex numbers,
    by e^(i * angle)."""
    half = angles.shape[-1]
    part = x[..., : 2 * half].double()
    parts = (part[..., ::2], part[..., 1::2]) if is_interleaved else part.chunk(2, -1)
    product = torch.complex(*parts) * torch.polar(torch.ones(()).double(), angles)[:, None]
    columns = torch.empty_like(part)
    columns[..., :: 2 if is_interleaved else 1][..., :half] = product.real
    columns[..., slice(1, None, 2) if is_interleaved else slice(half, None)] = product.imag
    return torch.cat((columns, x[..., 2 * half :].double()), -1)


@pytest.mark.parametrize("paged", [False, True])
@pytest.mark.parametrize("is_interleaved", [True, False])
@pytest.mark.parametrize("half", [8, 5, 1])
@pytest.mark.parametrize(
    ("causal", "window"), [(True, (-1, -1)), (False, (6, 3)), (False, (-1, -1)), (True, (4, 0))]
)
def test_rotary_embeddings(
    causal: bool, window: tuple[int, int], half: int, is_interleaved: bool, paged: bool
) -> None:
    held, rows, new = [0, 11], 4, 3
    q, k, v = draw(2, rows, 4, 16), draw(2, new, 2, 16, seed=1), draw(2, new, 2, 16, seed=2)
    caches = draw(2, 16, 2, 16, seed=3), draw(2, 16, 2, 16, seed=4)
    angles = 6 * draw(17, half, seed=5).double()
    whole = [one.clone() for one in caches]
    for i, first in enumerate(held):
        new_angles = angles[first : first + new]
        whole[0][i, first : first + new] = rotated(k[i], new_angles, is_interleaved)
        whole[1][i, first : first + new] = v[i]
    more: dict[str, Any] = {"causal": causal, "window_size": window}
    more |= {"rotary_cos": angles.cos().float(), "rotary_sin": angles.sin().float()}
    more |= {"cache_seqlens": torch.tensor(held), "rotary_interleaved": is_interleaved}
    if paged:
        more["block_table"] = torch.arange(8).reshape(2, 4)
        caches = tuple(one.reshape(8, 4, 2, 16) for one in caches)
    got = flash_attn.flash_attn_with_kvcache(q, *caches, k, v, **more)
    for cache, wanted in zip(caches, whole, strict=True):
        torch.testing.assert_close(cache.reshape(2, 16, 2, 16), wanted, atol=2e-6, rtol=2e-6)
    for i, first in enumerate(held):
        steps = range(rows) if causal or window != (-1, -1) else [0] * rows
        positions = torch.tensor([first + step for step in steps])
        keys = first + new
        kept = kept_places(rows, keys, causal, window)
        query = rotated(q[i], angles[positions], is_interleaved)
        wanted, _ = by_definition(query, whole[0][i, :keys], whole[1][i, :keys], kept)
        torch.testing.assert_close(got[i], wanted, atol=2e-5, rtol=2e-5)


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_rotary_embeddings_are_rounded_once(name: str) -> None:
    """The rotation is computed in float32, and rounded once to the type of q and k."""
    dtype = getattr(torch, name)
    k, angles = draw(1, 9, 2, 16, dtype=dtype), draw(9, 8, seed=1)
    cos, sin = (one.to(dtype) for one in (angles.cos(), angles.sin()))
    cache = torch.zeros(1, 9, 2, 16, dtype=dtype)
    tables = {"rotary_cos": cos, "rotary_sin": sin}
    flash_attn.flash_attn_with_kvcache(k, cache, cache.clone(), k, k, cache_seqlens=0, **tables)
    pair = torch.complex(k[0, ..., ::2].double(), k[0, ..., 1::2].double())
    wanted = torch.view_as_real(pair * torch.complex(cos.double(), sin.double())[:, None])
    bits = 8 if name == "bfloat16" else 11
    torch.testing.assert_close(cache[0].double(), wanted.flatten(-2), atol=1e-6, rtol=2.0**-bits)


def test_wrong_rotary_embeddings_are_refused() -> None:
    q, k, v = (draw(2, 1, 2, 8, seed=seed) for seed in range(3))
    caches, table = (draw(2, 4, 2, 8), draw(2, 4, 2, 8)), draw(4, 4)
    before = [one.clone() for one in caches]
    for new, cos, sin, error, text in (
        ((None, None), table, table, ValueError, "k is None"),
        ((k, v), table, None, TypeError, "rotary_sin is NoneType"),
        ((k, v), None, table, TypeError, "rotary_cos is NoneType"),
        ((k, v), table.long(), table, TypeError, "rotary_cos is torch.int64"),
        ((k, v), table, table[:3], ValueError, r"shapes \(4, 4\) and \(3, 4\)"),
        ((k, v), draw(4, 5), draw(4, 5), ValueError, "at most 4"),
        ((k, v), table[0], table[0], ValueError, "expected both"),
        ((k, v), table[:2], table[:2], ValueError, "has 2 positions, a row is at position 2"),
    ):
        tables: dict[str, Any] = {"rotary_cos": cos, "rotary_sin": sin}
        with pytest.raises(error, match=text):
            flash_attn.flash_attn_with_kvcache(q, *caches, *new, **tables, cache_seqlens=2)
    assert all(torch.equal(one, old) for one, old in zip(caches, before, strict=True))
