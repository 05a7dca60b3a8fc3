"""Compares maskwise.attention with PyTorch's scaled_dot_product_attention."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import maskwise
import numpy as np
import pytest

try:
    import torch
    from torch.nn.functional import scaled_dot_product_attention as attend
except ModuleNotFoundError:
    # Skips each test, not the whole file, because pytest fails for a file without tests.
    pytestmark = pytest.mark.skip(reason="no PyTorch: scripts/setup --torch")

CALLS = 600
TOLERANCE = {"float32": 3e-5, "float16": 4e-3, "bfloat16": 3e-2}


def draw_mask(random: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> Any:
    """Draws a boolean or additive mask, of the full shape or broadcast. About a third of the masks
    have fully masked rows."""
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
    if random.random() < 0.3:  # in memory, heads come after rows, as in the result of a projection
        arrays = [a.transpose(1, 2).contiguous().transpose(1, 2) for a in arrays]
    keywords: dict[str, Any] = {"enable_gqa": groups > 1}
    kind = random.choice(["none", "causal", "mask", "mask"])
    if kind == "mask":
        keywords["attn_mask"] = draw_mask(random, (batch, heads * groups, rows, keys), dtype)
    keywords["is_causal"] = bool(kind == "causal")
    # With is_causal and a negative scale, PyTorch's kernel returns NaN.
    scales = [None, 0.3] if kind == "causal" else [None, 0.3, -0.1]
    keywords["scale"] = scales[int(random.integers(0, len(scales)))]
    return arrays, keywords


def test_calls_written_for_torch() -> None:
    q, k, v = (torch.randn(1, 2, 9, 4) for _ in range(3))
    kept = torch.rand(9, 9) > 0.3
    named = {"query": q, "key": k, "value": v}
    for inputs, keywords in (
        ((q, k, v, kept), {}),
        ((q, k, v, None, 0.0, True), {}),
        ((q, k, v), {"dropout_p": 0, "is_causal": True}),
        ((), {**named, "attn_mask": kept, "scale": 0.3, "enable_gqa": True}),
    ):
        got, expected = (call(*inputs, **keywords) for call in (maskwise.attention, attend))
        torch.testing.assert_close(got, expected, atol=1e-5, rtol=1e-5)
    with pytest.raises(ValueError, match=r"dropout_p is 0.1, expected 0: maskwise has no dropout"):
        maskwise.attention(q, k, v, kept, 0.1)


def assert_like_torch(arrays: list[Any], keywords: dict[str, Any]) -> None:
    got, expected = maskwise.attention(*arrays, **keywords), attend(*arrays, **keywords)
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
def test_fully_masked_rows_are_zeros_as_in_torch(name: str, is_boolean: bool) -> None:
    dtype = getattr(torch, name)
    q, k, v = (torch.rand(2, 3, 40, 16).to(dtype) for _ in range(3))
    kept = torch.ones(40, 40, dtype=torch.bool)
    kept[7] = False
    mask = kept if is_boolean else torch.where(kept, 0.0, -torch.inf).to(dtype)
    assert not attend(q, k, v, attn_mask=mask)[..., 7, :].any()
    assert not maskwise.attention(q, k, v, mask)[..., 7, :].any()


def test_results_require_gradients_if_an_operand_does() -> None:
    x = torch.rand(3, 4)
    assert maskwise.attention(x.clone().requires_grad_(), x, x).requires_grad
    with torch.no_grad():
        assert not maskwise.attention(x.clone().requires_grad_(), x, x).requires_grad


def flex_examples() -> dict[str, tuple[Any, Any]]:
    """Returns the masks in FlexAttention's documentation, each as a mask function and as a Mask."""
    ids = torch.tensor([0] * 50 + [1] * 71 + [2] * 79)
    return {
        "causal": (lambda b, h, q, kv: q >= kv, maskwise.Mask.causal()),
        "sliding": (
            lambda b, h, q, kv: (q >= kv) & (q - kv <= 31),
            maskwise.Mask.causal() & maskwise.Mask.window(31, 0),
        ),
        "document": (
            lambda b, h, q, kv: (q >= kv) & (ids[q] == ids[kv]),
            maskwise.Mask.causal() & maskwise.Mask.documents(ids),
        ),
        "prefix": (
            lambda b, h, q, kv: (q >= kv) | (kv < 40),
            maskwise.Mask.causal() & maskwise.Mask.prefix(40),
        ),
        "padding": (
            lambda b, h, q, kv: (q >= kv) & (kv < torch.tensor([200, 120])[b]),
            maskwise.Mask.causal() & maskwise.Mask.lengths(torch.tensor([200, 120])),
        ),
    }


FLEX_EXAMPLES = ("causal", "sliding", "document", "prefix", "padding")


def flex_operands() -> list[Any]:
    torch.manual_seed(3)
    return [torch.randn(2, heads, 200, 32) for heads in (4, 2, 2)]


@pytest.mark.parametrize("name", FLEX_EXAMPLES)
@pytest.mark.parametrize("cap", [None, 5.0])
def test_masks_of_flex_attention(name: str, cap: float | None) -> None:
    flex = pytest.importorskip("torch.nn.attention.flex_attention")
    mask_mod, mask = flex_examples()[name]
    q, k, v = flex_operands()
    block_mask = flex.create_block_mask(mask_mod, 2, None, 200, 200, device="cpu")

    def soft_cap(score: Any, b: Any, h: Any, q: Any, kv: Any) -> Any:
        return cap * torch.tanh(score / cap)

    expected, logarithms = flex.flex_attention(
        *(q, k, v),
        score_mod=None if cap is None else soft_cap,
        block_mask=block_mask,
        enable_gqa=True,
        return_lse=True,
    )
    got, statistics = maskwise.attention(
        q, k, v, mask, soft_cap=cap, enable_gqa=True, return_statistics=True
    )
    torch.testing.assert_close(got, expected, atol=2e-6, rtol=1e-5)
    kept = torch.isfinite(logarithms)
    torch.testing.assert_close(statistics[kept], logarithms[kept], atol=1e-5, rtol=1e-5)


def test_alibi_is_a_bias() -> None:
    flex = pytest.importorskip("torch.nn.attention.flex_attention")
    q, k, v = flex_operands()
    slopes = 2.0 ** -torch.arange(1.0, 5.0)

    def alibi(score: Any, b: Any, h: Any, q: Any, kv: Any) -> Any:
        return score + (kv - q) * slopes[h]

    block_mask = flex.create_block_mask(
        lambda b, h, q, kv: q >= kv, None, None, 200, 200, device="cpu"
    )
    expected = flex.flex_attention(q, k, v, score_mod=alibi, block_mask=block_mask, enable_gqa=True)
    distance = torch.arange(200.0) - torch.arange(200.0)[:, None]
    mask = maskwise.Mask.dense(slopes[:, None, None] * distance) & maskwise.Mask.causal()
    got = maskwise.attention(q, k, v, mask, enable_gqa=True)
    torch.testing.assert_close(got, expected, atol=2e-6, rtol=1e-5)


def test_runs_on_the_threads_of_torch() -> None:
    """Runs in a separate process, because the test counts threads."""
    if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 10):
        pytest.skip("torch before 2.10 does not export functions to use its threads")
    program = """
import maskwise, torch, os
torch.set_num_threads(3)
q, k, v = (torch.randn(1, 8, 600, 64) for _ in range(3))
torch.mm(torch.randn(900, 900), torch.randn(900, 900))
before = len(os.listdir("/proc/self/task"))
maskwise.attention(q, k, v, maskwise.Mask.causal())
print(len(os.listdir("/proc/self/task")) - before)
"""
    paths = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=paths
    )
    assert ran.stdout.strip() == "0"
