"""maskwise.attention beside the function of PyTorch that it is named after."""

from __future__ import annotations

from typing import Any

import maskwise
import numpy as np
import pytest

try:
    import torch
    from torch.nn.functional import scaled_dot_product_attention as attend
except ModuleNotFoundError:
    # The tests are there to be skipped: a file without any test is an error to pytest.
    pytestmark = pytest.mark.skip(reason="no PyTorch: scripts/setup --torch")

CALLS = 600
TOLERANCE = {"float32": 3e-5, "float16": 4e-3, "bfloat16": 3e-2}


def draw_mask(random: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> Any:
    """Boolean or added, of the whole shape or broadcast; every third has rows without any key."""
    narrow = [extent if random.random() < 0.7 else 1 for extent in shape]
    kept = torch.from_numpy(random.random(narrow) < random.choice([0.2, 0.6, 0.95]))
    if random.random() < 0.33:
        kept[..., ::3, :] = False
    kept = kept[(0,) * int(random.integers(0, 2)) if narrow[0] == 1 else ()]
    if random.random() < 0.5:
        return kept
    return torch.where(kept, torch.from_numpy(random.standard_normal(kept.shape)), -torch.inf).to(
        dtype
    )


def draw_call(random: np.random.Generator) -> tuple[list[Any], dict[str, Any]]:
    batch, groups, heads = (int(random.integers(1, 4)) for _ in range(3))
    rows, keys, depth, columns = (int(random.integers(1, 90)) for _ in range(4))
    dtype = getattr(torch, list(TOLERANCE)[int(random.integers(0, 3))])
    shapes = [(batch, heads * groups, rows, depth), (batch, heads, keys, depth)]
    shapes.append((batch, heads, keys, columns))
    arrays = [torch.from_numpy(random.standard_normal(shape)).to(dtype) for shape in shapes]
    if random.random() < 0.3:  # heads inside the rows, as projections leave them
        arrays = [a.transpose(1, 2).contiguous().transpose(1, 2) for a in arrays]
    keywords: dict[str, Any] = {"enable_gqa": groups > 1}
    kind = random.choice(["none", "causal", "mask", "mask"])
    if kind == "mask":
        keywords["attn_mask"] = draw_mask(random, (batch, heads * groups, rows, keys), dtype)
    keywords["is_causal"] = bool(kind == "causal")
    # Below a negative scale PyTorch's kernel turns what is_causal masks into NaN.
    scales = [None, 0.3] if kind == "causal" else [None, 0.3, -0.1]
    keywords["scale"] = scales[int(random.integers(0, len(scales)))]
    return arrays, keywords


def own(keywords: dict[str, Any]) -> dict[str, Any]:
    return {name.removeprefix("attn_"): value for name, value in keywords.items()}


def assert_like_torch(arrays: list[Any], keywords: dict[str, Any]) -> None:
    got, expected = maskwise.attention(*arrays, **own(keywords)), attend(*arrays, **keywords)
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
    most = max(1.0, arrays[2].abs().max().item())
    error = (got.double() - expected.double()).abs().max().item()
    assert error <= TOLERANCE[str(got.dtype).removeprefix("torch.")] * most, (error, keywords)


@pytest.mark.parametrize("seed", range(10))
def test_random_calls(seed: int) -> None:
    random = np.random.default_rng(seed)
    for _ in range(CALLS // 10):
        assert_like_torch(*draw_call(random))


@pytest.mark.parametrize("is_boolean", [True, False])
@pytest.mark.parametrize("name", TOLERANCE)
def test_rows_without_any_key_are_zeros_in_both(name: str, is_boolean: bool) -> None:
    dtype = getattr(torch, name)
    q, k, v = (torch.rand(2, 3, 40, 16).to(dtype) for _ in range(3))
    kept = torch.ones(40, 40, dtype=torch.bool)
    kept[7] = False
    mask = kept if is_boolean else torch.where(kept, 0.0, -torch.inf).to(dtype)
    assert not attend(q, k, v, attn_mask=mask)[..., 7, :].any()
    assert not maskwise.attention(q, k, v, mask)[..., 7, :].any()


def test_tensors_that_want_gradients_are_refused() -> None:
    x = torch.rand(3, 4)
    with pytest.raises(BufferError):
        maskwise.attention(x.clone().requires_grad_(), x, x)
