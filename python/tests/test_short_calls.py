"""A small attention call runs few Python functions. Its only torch operator is the allocation."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import maskwise
import numpy as np
import pytest
from arrays import in_a_process
from torch_tensors import three

try:
    import maskwise.torch as maskwise_torch
    import torch
except ModuleNotFoundError:
    torch = None  # type: ignore[assignment]

needs_torch = pytest.mark.skipif(torch is None, reason="no PyTorch: scripts/setup --torch")

MASKS: dict[str, dict[str, Any]] = {
    "none": {},
    "causal": {"is_causal": True},
    "window": {"is_causal": True, "window": (2, 0)},
    "rules": {"attn_mask": maskwise.Mask.causal()},
}


def functions_of(call: Callable[[], Any]) -> list[str]:
    """Returns Maskwise's Python functions that a second call runs."""
    names = []

    def note(frame: Any, event: str, _: Any) -> None:
        if event == "call" and "maskwise" in frame.f_code.co_filename:
            names.append(frame.f_code.co_name)

    call()
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return names


def operators_of(call: Callable[[], Any]) -> list[str]:
    """Returns torch's operators that a second call runs."""
    call()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        call()
    names = (one.name for one in profile.events())
    return [name for name in names if "::" in name]


@pytest.mark.parametrize("mask", MASKS)
def test_few_functions_run_for_arrays(mask: str) -> None:
    q, k, v = (np.ones((1, 2, 4, 16), np.float32) for _ in range(3))
    functions = functions_of(lambda: maskwise.attention(q, k, v, **MASKS[mask]))
    assert 0 < len(functions) <= 18, functions


@needs_torch
@pytest.mark.parametrize("mask", MASKS)
def test_few_functions_run_for_tensors(mask: str) -> None:
    q, k, v = three(1, 2, 4, 16)
    functions = functions_of(lambda: maskwise.attention(q, k, v, **MASKS[mask]))
    assert 0 < len(functions) <= 21, functions
    assert not {"is_followed", "run_as_torch_op", "in_kind"} & set(functions)


@needs_torch
@pytest.mark.parametrize("is_inference", [False, True])
@pytest.mark.parametrize("mask", MASKS)
def test_torch_only_allocates_the_result(mask: str, is_inference: bool) -> None:
    q, k, v = three(1, 2, 4, 16)
    with torch.inference_mode(is_inference):
        operators = operators_of(lambda: maskwise.attention(q, k, v, **MASKS[mask]))
    assert operators == ["aten::empty_strided"]


@needs_torch
def test_the_operator_is_dispatched_once() -> None:
    q, k, v = three(1, 2, 4, 16)
    operators = operators_of(lambda: torch.ops.maskwise.attention(q, k, v, None, True))
    assert operators == ["maskwise::attention", "aten::empty_strided"]


@needs_torch
def test_torch_runs_small_calls_after_few_functions() -> None:
    q, k, v = three(1, 2, 4, 16)
    attend = torch.nn.functional.scaled_dot_product_attention
    with maskwise_torch.installed():
        functions = functions_of(lambda: attend(q, k, v))
    assert 0 < len(functions) <= 8, functions


@needs_torch
def test_a_gradient_takes_the_long_way() -> None:
    q, k, v = three(1, 2, 4, 16)
    q.requires_grad_()
    assert "run_as_torch_op" in functions_of(lambda: maskwise.attention(q, k, v))
    with torch.no_grad():
        assert "run_as_torch_op" not in functions_of(lambda: maskwise.attention(q, k, v))


WITHOUT_EXCHANGE = """
import conftest
import torch
if hasattr(torch.Tensor, "__dlpack_c_exchange_api__"):
    del torch.Tensor.__dlpack_c_exchange_api__
"""
READS = """
import conftest  # sets the path of torch
import torch
import maskwise
from maskwise import _core
x = torch.arange(48.0).reshape(2, 3, 8)
emptied = torch.zeros(4)
emptied.untyped_storage().resize_(0)
class Own(torch.Tensor): pass
read = (x, x.bfloat16(), x.half(), x > 7, x.mT, x[:, 1:, ::2], x[:1].expand(2, 3, 8), x[:, :0])
read += (torch.tensor(1.0), torch.nn.Parameter(x), x.clone().requires_grad_())
refused = (torch.complex(x, x).conj().imag, x.double(), x.int(), x.to_sparse(), x.to_mkldnn())
refused += (x.to("meta"), x.as_subclass(Own), torch.complex(x, x), emptied, None, 1.0)
for one in read:
    array = _core.view_of_tensor(one)
    print(array.shape, array.strides, array.dtype, array.tobytes().hex())
    assert array.size == 0 or array.__array_interface__["data"][0] == one.data_ptr()
assert all(_core.view_of_tensor(one) is None for one in refused)
print(maskwise.attention(x, x, x, is_causal=True, return_statistics=True))
"""


@needs_torch
def test_torch_without_the_exchange_of_dlpack() -> None:
    """Before torch 2.10, the core reads the same tensors by attributes."""
    wanted = in_a_process(READS)
    assert wanted.stdout.count("\n") > 10, wanted.stderr
    assert in_a_process(WITHOUT_EXCHANGE + READS).stdout == wanted.stdout


def test_none_is_no_operand() -> None:
    q = np.ones((1, 2, 4, 16), np.float32)
    for operands, name in (((None, q, q), "query"), ((q, None, q), "key"), ((q, q, None), "value")):
        with pytest.raises(TypeError, match=f"{name} is None, expected an array"):
            maskwise.attention(*operands)
