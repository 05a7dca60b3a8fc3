"""Tests torch's scaled_dot_product_attention after maskwise.torch.install()."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import maskwise
import pytest
from torch_tensors import draw, three

try:
    import maskwise.torch as maskwise_torch
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.nn.functional import scaled_dot_product_attention as sdpa
except ModuleNotFoundError:
    pytestmark = pytest.mark.skip(reason="no PyTorch: scripts/setup --torch")

TOLERANCE = {"float32": 2e-5, "float16": 4e-3, "bfloat16": 3e-2}


@pytest.fixture(name="every_size")
def fixture_every_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maskwise_torch, "LEAST_PRODUCTS", 0)


@pytest.fixture(name="taken")
def fixture_taken(monkeypatch: pytest.MonkeyPatch, every_size: None) -> Iterator[list[int]]:
    """Yields a list that grows by one element for each call that Maskwise runs."""
    calls: list[int] = []
    run = maskwise_torch._run

    def count(call: Any) -> Any:
        result = run(call)
        if result is not None:
            calls.append(1)
        return result

    monkeypatch.setattr(maskwise_torch, "_run", count)
    with maskwise_torch.installed():
        yield calls


class Plain(torch.nn.Module if "torch" in globals() else object):  # type: ignore[misc]
    def forward(self, q: Any, k: Any) -> Any:
        return sdpa(q, k, k)


@pytest.mark.parametrize("strict", [False, True])
def test_a_model_exported_at_a_short_length_runs_at_a_long_length(strict: bool) -> None:
    """The size below which torch runs a call must not become a guard of the exported graph."""
    length = {2: torch.export.Dim("L", min=2, max=4096)}
    keys = {2: torch.export.Dim("S", min=2, max=4096)}
    short, long = (
        (draw(2, 4, 16, 32), draw(2, 4, 24, 32)),
        (draw(2, 4, 512, 32), draw(2, 4, 640, 32)),
    )
    with maskwise_torch.installed():
        exported = torch.export.export(
            Plain(), short, dynamic_shapes=(length, keys), strict=strict
        ).module()
        with torch.no_grad():
            assert torch.allclose(exported(*long), Plain()(*long), atol=2e-5)


def test_one_graph_for_all_lengths() -> None:
    testing = pytest.importorskip("torch._dynamo.testing")
    torch._dynamo.reset()
    counter = testing.CompileCounter()
    with maskwise_torch.installed(), torch.no_grad():
        call = torch.compile(Plain(), backend=counter, dynamic=True)
        for words in (8, 9, 64, 300, 700):
            call(draw(2, 4, words, 32), draw(2, 4, words + 1, 32))
        assert counter.frame_count == 1


def test_data_dependent_sizes() -> None:
    class Picked(torch.nn.Module):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:
            kept = x[x.sum(dim=(-1, -2, -3)) != 0]
            return sdpa(kept, kept, kept)

    with maskwise_torch.installed():
        exported = torch.export.export(Picked(), (draw(4, 4, 256, 32),), strict=False).module()
    x = draw(4, 4, 256, 32)
    x[1] = 0
    kept = x[[0, 2, 3]]
    assert torch.allclose(exported(x), sdpa(kept, kept, kept), atol=2e-5)


def samples(dtype: Any, requires_grad: bool) -> list[Any]:
    """Returns the sample calls of PyTorch's own tests."""
    methods = pytest.importorskip("torch.testing._internal.common_methods_invocations")
    infos = [one for one in methods.op_db if one.name.endswith("scaled_dot_product_attention")]
    assert len(infos) == 1
    return list(infos[0].sample_inputs("cpu", dtype, requires_grad=requires_grad))


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_pytorchs_samples(dtype: str, every_size: None) -> None:
    with torch.no_grad():
        inputs = [one for one in samples(getattr(torch, dtype), False)]
        options = [{k: v for k, v in one.kwargs.items() if k != "dropout_p"} for one in inputs]
        wanted = [
            sdpa(one.input, *one.args, **each) for one, each in zip(inputs, options, strict=True)
        ]
        with maskwise_torch.installed():
            got = [
                sdpa(one.input, *one.args, **each)
                for one, each in zip(inputs, options, strict=True)
            ]
    assert len(got) > 20
    for one, other in zip(got, wanted, strict=True):
        assert one.stride() == other.stride() or not one.numel()
        torch.testing.assert_close(one, other, atol=TOLERANCE[dtype], rtol=TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_gradients_are_close_to_torchs(dtype: str, taken: list[int]) -> None:
    for sample in samples(getattr(torch, dtype), True):
        options = {k: v for k, v in sample.kwargs.items() if k != "dropout_p"}
        inputs = [one for one in (sample.input, *sample.args) if one.requires_grad]

        def gradients(sample: Any = sample, options: Any = options, inputs: Any = inputs) -> Any:
            out = sdpa(sample.input, *sample.args, **options)
            return torch.autograd.grad(out, inputs, torch.ones_like(out), allow_unused=True)

        got = gradients()
        maskwise_torch.uninstall()
        wanted = gradients()
        maskwise_torch.install()
        for one, other in zip(got, wanted, strict=True):
            torch.testing.assert_close(one, other, atol=TOLERANCE[dtype], rtol=TOLERANCE[dtype])
    assert len(taken) > 20


def test_calls_that_maskwise_runs(taken: list[int]) -> None:
    q, k, v = three(2, 4, 33, 16)
    kept = draw(33, 33) > 0
    for options in ({}, {"is_causal": True}, {"attn_mask": kept}, {"scale": 0.3}):
        count = len(taken)
        got = sdpa(q, k, v, **options)
        assert len(taken) == count + 1
        with sdpa_kernel(SDPBackend.MATH):
            torch.testing.assert_close(got, sdpa(q, k, v, **options), atol=2e-5, rtol=2e-5)
        assert len(taken) == count + 1


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_parts_of_a_projection(dtype: str, causal: bool, taken: list[int]) -> None:
    """The shapes are from PyTorch's CPU kernel tests. The reference is the MATH backend."""
    for batch, rows, heads, depth in itertools.product((2, 12), (267, 1030), (1, 3), (8, 16)):
        packed = draw(batch, rows, 3 * heads * depth, dtype=getattr(torch, dtype))
        parts = packed.split(heads * depth, dim=2)
        q, k, v = (one.view(batch, rows, heads, depth).transpose(1, 2) for one in parts)
        got = sdpa(q, k, v, is_causal=causal)
        with sdpa_kernel(SDPBackend.MATH):
            wanted = sdpa(q.float(), k.float(), v.float(), is_causal=causal)
        torch.testing.assert_close(got.float(), wanted, atol=TOLERANCE[dtype], rtol=0)
    assert len(taken) == 16


@pytest.mark.parametrize("is_boolean", [False, True])
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_every_broadcast_of_a_mask(dtype: str, is_boolean: bool, taken: list[int]) -> None:
    kind = getattr(torch, dtype)
    q, k, v = (
        draw(2, rows, 3, 8, seed=rows, dtype=kind).transpose(1, 2) for rows in (267, 514, 514)
    )
    shapes = [
        *itertools.product((2, 1), (3, 1), (267, 1), (514, 1)),
        (267, 514),
        (1, 514),
        (267, 1),
    ]
    for shape in shapes:
        mask = draw(*shape, dtype=kind)
        mask = mask > 0 if is_boolean else mask
        got = sdpa(q, k, v, mask)
        with sdpa_kernel(SDPBackend.MATH):
            wanted = sdpa(*(one.float() for one in (q, k, v)), mask if is_boolean else mask.float())
        torch.testing.assert_close(got.float(), wanted, atol=TOLERANCE[dtype], rtol=0)
    assert len(taken) == len(shapes)


def layouts(*shape: int, seed: int) -> list[Any]:
    """Returns tensors of this shape in all layouts that torch's kernels treat differently."""
    x = draw(*shape, seed=seed)
    wide = torch.stack([x, x], dim=-1)
    return [
        x,
        x.transpose(1, 2).contiguous().transpose(1, 2),
        x.mT.contiguous().mT,
        wide.flatten(-2)[..., : 2 * shape[-1] : 2] if shape[-1] > 1 else wide[..., 0],
        x.permute(3, 2, 0, 1).contiguous().permute(2, 3, 1, 0),
        x[:, :1].expand(shape),
        x[..., :1].expand(shape),
    ]


def test_results_are_laid_out_as_torchs(taken: list[int]) -> None:
    """Callers rely on the layout. torch's fused kernel and its plain operators return different
    layouts."""
    queries, keys = layouts(2, 3, 9, 16, seed=0), layouts(2, 3, 10, 16, seed=1)
    values = [*layouts(2, 3, 10, 16, seed=2), *layouts(2, 3, 10, 8, seed=3)]
    cases = list(itertools.product(queries, keys, values))
    got = [sdpa(*operands) for operands in cases]
    assert len(taken) == len(cases)
    maskwise_torch.uninstall()
    for operands, one in zip(cases, got, strict=True):
        wanted = sdpa(*operands)
        assert one.stride() == wanted.stride(), [each.stride() for each in operands]
        torch.testing.assert_close(one, wanted, atol=2e-5, rtol=2e-5)


def test_calls_without_an_allowed_kernel_are_refused(every_size: None) -> None:
    q, k, v = three(2, 4, 33, 16)
    calls = [(q, k, v[..., :8]), (q.mT.contiguous().mT, k, v), (q, k[..., :1].expand_as(k), v)]
    for operands in calls:
        for _ in range(2):
            with (
                sdpa_kernel(SDPBackend.FLASH_ATTENTION),
                pytest.raises(RuntimeError, match="No available kernel"),
            ):
                sdpa(*operands)
            maskwise_torch.install()
        maskwise_torch.uninstall()


def test_sparse_and_mkldnn_tensors_raise_torchs_error(every_size: None) -> None:
    q, k, v = three(5, 2, 9, 16)
    v = v[..., :8]
    for make in (torch.Tensor.to_sparse, torch.Tensor.to_mkldnn):
        for operands in (
            (make(q), k, v),
            (q, make(k), v),
            (q, k, make(v)),
            (q, k, v, make(q[0, 0])),
        ):
            with pytest.raises((RuntimeError, NotImplementedError)) as stock:
                sdpa(*operands)
            with maskwise_torch.installed(), pytest.raises(stock.type) as ours:
                sdpa(*operands)
            assert str(ours.value).split("\n")[0] == str(stock.value).split("\n")[0]


def test_rows_without_keys_and_large_scores(taken: list[int]) -> None:
    q, k, v = (draw(1, 600, 2, 8, seed=seed).transpose(1, 2) for seed in range(3))
    nothing = torch.full((600, 600), -torch.inf)
    for mask in (nothing.triu(1) + nothing.tril(-10), nothing, nothing.tril(-1)):
        got = sdpa(q, k, v, mask)
        with sdpa_kernel(SDPBackend.MATH):
            torch.testing.assert_close(got, sdpa(q, k, v, mask), atol=2e-5, rtol=0)
    assert len(taken) == 3
    halves = torch.full((1, 32, 23, 80), 256.0, dtype=torch.half)
    assert torch.equal(sdpa(halves, halves, halves), halves)
    x = draw(1, 3, 64, 64)
    with sdpa_kernel(SDPBackend.MATH):
        steep = sdpa(x, x, x, scale=-1e4)
    torch.testing.assert_close(sdpa(x, x, x, scale=-1e4), steep, atol=2e-5, rtol=0)


def operations(q: Any, k: Any, v: Any) -> int:
    counter = pytest.importorskip("torch.utils.flop_counter").FlopCounterMode(display=False)
    with counter:
        sdpa(q, k, v)
    return int(counter.get_total_flops())


def test_calls_that_torch_runs(taken: list[int]) -> None:
    q, k, v = three(2, 4, 33, 16)
    sdpa(q, k, v, dropout_p=0.5)
    sdpa(q.double(), k.double(), v.double())
    sdpa(q[0], k[0], v[0])
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(q, k)
        with sdpa_kernel(SDPBackend.MATH):
            assert torch.autograd.forward_ad.unpack_dual(sdpa(dual, k, v)).tangent is not None
    torch.vmap(lambda one: sdpa(one, k, v))(torch.stack([q, q]))
    torch.func.grad(lambda one: sdpa(q, k, v).sum() * one)(torch.tensor(1.0))
    compiled = torch.compile(lambda q: sdpa(q, k, v), backend="aot_eager")
    compiled(q)
    counted = operations(q, k, v)
    maskwise_torch.uninstall()
    assert counted == operations(q, k, v)  # both counts are 0 in torch 2.10
    maskwise_torch.install()
    for wrong in ((q[..., :8], k, v), (q, k, v.bfloat16())):
        with pytest.raises(RuntimeError):
            sdpa(*wrong)
    assert not taken


def test_torch_runs_small_calls(taken: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    sdpa(*three(1, 1, 4, 4))
    assert not taken


def test_modes(taken: list[int]) -> None:
    q, k, v = three(2, 4, 33, 16)
    wanted = maskwise.attention(q, k, v)
    with torch.inference_mode():
        assert torch.equal(sdpa(q, k, v), wanted)
    with torch.no_grad():
        assert torch.equal(sdpa(torch.nn.Parameter(q), k, v), wanted)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert sdpa(q, k, v).dtype == torch.bfloat16
    negated = torch.view_as_complex(torch.stack([q, q], -1)).conj().imag
    assert negated.is_neg()
    torch.testing.assert_close(sdpa(negated, k, v), sdpa(-q, k, v), atol=2e-5, rtol=2e-5)
    layer = torch.nn.MultiheadAttention(64, 4, batch_first=True).eval()
    x = draw(2, 33, 64)
    with torch.no_grad():
        layer(x, x, x, need_weights=False)
    count = len(taken)
    threads = [threading.Thread(target=lambda: sdpa(q, k, v)) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(taken) == count + 4


def test_installing_and_uninstalling_twice() -> None:
    q, k, v = three(2, 4, 128, 64)
    before = sdpa(q, k, v)
    maskwise_torch.install()
    maskwise_torch.install()
    with maskwise_torch.installed():
        torch.testing.assert_close(sdpa(q, k, v), before, atol=2e-5, rtol=2e-5)
    assert maskwise_torch._libraries
    maskwise_torch.uninstall()
    maskwise_torch.uninstall()
    assert torch.equal(sdpa(q, k, v), before)
    key = torch._C.DispatchKey.CPU
    assert not maskwise_torch._sdpa.has_kernel_for_dispatch_key(key)


PROGRAM = """
import sys
import torch
from torch.nn.functional import scaled_dot_product_attention as sdpa
assert sys.argv == [__file__, "--word"], sys.argv
assert __name__ == "__main__"
import maskwise.torch
from maskwise._call import AttentionCall
print(torch.ops.aten.scaled_dot_product_attention.default.has_kernel_for_dispatch_key(
    torch._C.DispatchKey.CPU))
sys.exit(3)
"""


def test_python_m_maskwise_run(tmp_path: Any) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}

    def run(*words: str) -> Any:
        command = [sys.executable, "-m", "maskwise", "run", *words]
        return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)

    output = run(str(program), "--word")
    assert (output.stdout, output.returncode) == ("True\n", 3), output.stderr
    missing = run(str(tmp_path / "none.py"))
    assert missing.returncode == 2
    assert "none.py" in missing.stderr and "Traceback" not in missing.stderr


def test_the_process_ends_silently() -> None:
    """torch holds Maskwise's objects until the process ends."""
    code = """
import maskwise.torch, torch
maskwise.torch.install()
q = torch.ones(1, 8, 512, 64)
torch.nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True)
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert "nanobind" not in done.stderr
