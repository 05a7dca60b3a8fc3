"""Tests torch's tensors as out=, layouts of results, bfloat16 without ml_dtypes, and subclasses."""

from __future__ import annotations

from typing import Any

import maskwise
import numpy as np
import pytest
from arrays import in_a_process
from torch_tensors import draw, three

try:
    import torch
except ModuleNotFoundError:
    pytestmark = pytest.mark.skip(reason="no PyTorch: scripts/setup --torch")

DTYPES = ("float32", "float16", "bfloat16")


def attention(q: Any, out: Any) -> Any:
    return maskwise.attention(q, q, q, out=out)


def where(q: Any, out: Any) -> Any:
    return maskwise.where(q > 0, q, 0.0, out=out)


@pytest.mark.parametrize("call", [attention, where])
@pytest.mark.parametrize("dtype", DTYPES)
def test_out_is_a_write_to_torch(call: Any, dtype: str) -> None:
    q = draw(1, 2, 30, 16, dtype=getattr(torch, dtype))
    out = torch.empty_like(q)
    saved = (torch.ones_like(q, requires_grad=True) * out).sum()
    assert call(q, out) is out and torch.equal(out, call(q, None))
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        saved.backward()


@pytest.mark.parametrize("call", [attention, where])
def test_out_that_torch_tracks(call: Any) -> None:
    q = draw(1, 2, 30, 16)
    wants, plain = torch.empty_like(q).requires_grad_(), call(q, None)
    with pytest.raises(BufferError, match="out requires a gradient"):
        call(q, wants)
    with torch.no_grad():
        assert torch.equal(call(q, wants), plain)
    with torch.inference_mode():
        assert torch.equal(call(q, torch.empty_like(q)), plain)
    for wrong in (
        torch.empty_like(q).as_subclass(Subclass),
        torch.empty_like(q, device="meta"),
        torch.zeros_like(q).to_sparse(),
    ):
        with pytest.raises(BufferError, match=r"^out[ ,]"):
            call(q, wrong)
    with pytest.raises(ValueError, match="overlap"):
        call(q, torch.empty(1, 1, 30, 16).expand_as(q))


@pytest.mark.parametrize("call", [attention, where])
@pytest.mark.parametrize("dtype", DTYPES)
def test_tensors_can_be_resized_afterwards(call: Any, dtype: str) -> None:
    q = draw(1, 2, 30, 16, dtype=getattr(torch, dtype))
    out = torch.empty_like(q)
    for one in (call(q, None), call(q, out), q):
        one.resize_(300, 200)
    q = draw(1, 2, 30, 16)
    for one in maskwise.attention(q, q, q, return_statistics=True):
        one.resize_(300, 200)


def test_results_have_numpys_layout() -> None:
    c, x = draw(4, 5) > 0, draw(4, 5)
    for condition, one in (
        (c, x),
        (c.T, x.T),
        (c, x[:, :1]),
        (c[:, :1], x[0]),
        (c, x.numpy()[::-1]),
    ):
        result = maskwise.where(condition, one, 0.0)
        wanted = np.where(condition.numpy(), np.asarray(one), np.float32(0))
        assert np.array_equal(result.numpy(), wanted)
        assert tuple(4 * step for step in result.stride()) == wanted.strides


class Subclass(torch.Tensor if "torch" in globals() else object):  # type: ignore[misc]
    """A subclass of a user's program."""


def test_subclasses() -> None:
    q, k, v = three(1, 2, 30, 16)
    plain = maskwise.attention(q, k, v)
    derived = q.as_subclass(Subclass)
    for operands in ((derived, k, v), (q, k.as_subclass(Subclass), v), (q.numpy(), k, v)):
        assert torch.equal(maskwise.attention(*operands), plain)
    result = maskwise.attention(q.clone().as_subclass(Subclass).requires_grad_(), k, v)
    assert isinstance(result, Subclass) and result.requires_grad
    assert maskwise.attention(q.numpy(), k.clone().requires_grad_(), v).requires_grad
    assert torch.equal(maskwise.where(derived > 0, derived, 0.0), q.relu())


def test_errors_suggest_torchs_functions() -> None:
    q = draw(3, 4)
    whole = torch.ones(3, 3, dtype=torch.int64)
    for error, call in (
        (r"float64.*: \.float\(\)$", lambda: maskwise.attention(*(q.double(),) * 3)),
        (r"int64.*: \.bool\(\) keeps", lambda: maskwise.attention(q, q, q, whole)),
        (r"int64.*: \.bool\(\)", lambda: maskwise.Mask.dense(whole)),
        ("value has dtype float16, expected query's bfloat16", wrong_value),
    ):
        with pytest.raises(TypeError, match=error):
            call()


def wrong_value() -> None:
    q = draw(3, 4).bfloat16()
    maskwise.attention(q, q, q.half())


@pytest.mark.parametrize(
    "value", [0.1, -0.0, float("nan"), 1e39, 1 + 2**-8, 1 + 3 * 2**-8, 7, True]
)
def test_numbers_beside_bfloat16(value: Any) -> None:
    """Numbers are rounded to bfloat16 as in torch."""
    c, x = torch.tensor([True, False]), torch.ones(2, dtype=torch.bfloat16)
    result, wanted = maskwise.where(c, x, value), torch.where(c, x, value)
    assert result.dtype == torch.bfloat16
    torch.testing.assert_close(result, wanted, rtol=0, atol=0, equal_nan=True)


def test_bfloat16_beside_other_dtypes() -> None:
    """bfloat16 is promoted as in ml_dtypes. Pairs of types that ml_dtypes refuses are refused."""
    ml_dtypes = pytest.importorskip("ml_dtypes")
    c, x = draw(20) > 0, (draw(20) * 100).bfloat16()
    bits = x.float().numpy().astype(ml_dtypes.bfloat16)
    for kind in "?bBhHiIlLefdFD":
        other = (draw(20, seed=1).numpy() * 50).astype(kind)
        try:
            wanted = np.where(c.numpy(), bits, other)
        except TypeError:
            with pytest.raises(TypeError, match="no common dtype"):
                maskwise.where(c, x, other)
            continue
        result = maskwise.where(c, x, other)
        assert torch.equal(result.double() if kind not in "FD" else result, wide(wanted, kind))
        swapped = maskwise.where(~c, other, x)
        assert swapped.dtype == result.dtype and torch.equal(swapped, result)
    assert torch.equal(maskwise.where(c, x, bits), x)
    out = np.empty_like(bits)
    assert maskwise.where(x, x, bits, out=out) is out and np.array_equal(out, bits)


def wide(array: Any, kind: str) -> Any:
    return torch.from_numpy(array if kind in "FD" else array.astype(np.float64))


PLAIN = """
import sys
sys.modules["ml_dtypes"] = None
import conftest  # sets the path of torch
import torch
import maskwise
from maskwise import _self_check, _integrations
_integrations.check_torch()
assert _self_check.attends()
x = torch.rand(2, 3, 20, 16).bfloat16()
bias = torch.rand(20, 20).bfloat16()
for mask in (bias, maskwise.Mask.dense(bias), maskwise.Mask.causal()):
    maskwise.attention(x.clone().requires_grad_(), x, x, mask).sum().backward()
    maskwise.attention(x, x, x, mask, return_statistics=True)
assert torch.equal(maskwise.select(x > 0.5, x, x), x)
print(maskwise.Mask.dense(bias).to_dense(20, 20).all())
"""


def test_bfloat16_without_ml_dtypes() -> None:
    ran = in_a_process(PLAIN)
    assert ran.stdout == "True\n", ran.stderr
