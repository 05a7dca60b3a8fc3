"""The variables that the PyTorch code blocks of README.md, docs/python.md and docs/pytorch.md use,
and the checks of their results."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch
from torch.nn.functional import scaled_dot_product_attention

TYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}
NEAR = {torch.float32: 1e-5, torch.bfloat16: 4e-2, torch.float16: 5e-3}
torch_attention = scaled_dot_product_attention  # kept, because a page replaces torch's function


def names(kind: str) -> dict[str, Any]:
    torch.manual_seed(51)
    dtype = TYPES[kind]

    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(shape).to(dtype)

    q, k, v = (draw(2, 3, 64, 16) for _ in "qkv")
    layer = SimpleNamespace(**{name: draw(2, 2, 1024, 16) for name in "qkv"})
    mask = torch.ones(64, 64, dtype=torch.bool).tril()
    return {"q": q, "k": k, "v": v, "mask": mask, "x": draw(64, 64), "layers": [layer]}


def assert_near(answer: torch.Tensor, expected: torch.Tensor) -> None:
    torch.testing.assert_close(answer.float(), expected.float(), atol=NEAR[answer.dtype], rtol=2e-2)


def check(names: dict[str, Any]) -> None:
    q, k, v = (names[name] for name in "qkv")
    mask = torch.ones(64, 64, dtype=torch.bool).tril()
    expected = torch_attention(q.float(), k.float(), v.float(), attn_mask=mask)
    if "z" in names:
        assert_near(names["z"], expected)
        assert torch.equal(names["y"], torch.where(mask, names["x"], 0))
    if "flash_attn_func" in names:
        packed = (tensor.transpose(1, 2) for tensor in (q, k, v))
        answer = names["flash_attn_func"](*packed, causal=True)
        assert_near(answer.transpose(1, 2), expected)
    check_replaced_function(q.dtype)


def check_replaced_function(dtype: torch.dtype) -> None:
    """Calls the function that a page may have replaced, at a size that Maskwise runs."""
    q = torch.randn(1, 4, 512, 64).to(dtype)
    answer = torch.nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True)
    assert answer.dtype == dtype
    assert_near(answer, torch_attention(q.float(), q.float(), q.float(), is_causal=True))
