"""maskwise.torch: torch's scaled_dot_product_attention with Maskwise installed, the operator
torch.ops.maskwise.attention, and maskwise.flash_attn."""

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
from maskwise import Mask

try:
    import maskwise.torch as door
    import torch
    from maskwise import flash_attn
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.nn.functional import scaled_dot_product_attention as sdpa

    operator = torch.ops.maskwise.attention
except ModuleNotFoundError:
    pytestmark = pytest.mark.skip(reason="no PyTorch: scripts/setup --torch")

TOLERANCE = {"float32": 2e-5, "float16": 4e-3, "bfloat16": 3e-2}


def draw(*shape: int, seed: int = 0, dtype: Any = None) -> Any:
    made = torch.randn(shape, generator=torch.Generator().manual_seed(seed))
    return made if dtype is None else made.to(dtype)


def three(*shape: int, dtype: Any = None) -> list[Any]:
    return [draw(*shape, seed=seed, dtype=dtype) for seed in range(3)]


@pytest.fixture(name="every_size")
def fixture_every_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "LEAST_PRODUCTS", 0)


@pytest.fixture(name="taken")
def fixture_taken(monkeypatch: pytest.MonkeyPatch, every_size: None) -> Iterator[list[int]]:
    """The calls that Maskwise took."""
    calls: list[int] = []
    inner = door.attend

    def attend(*arguments: Any, **options: Any) -> Any:
        calls.append(1)
        return inner(*arguments, **options)

    monkeypatch.setattr(door, "attend", attend)
    with door.installed():
        yield calls


def samples(dtype: Any, requires_grad: bool) -> list[Any]:
    """PyTorch's own, with a few of its errors."""
    methods = pytest.importorskip("torch.testing._internal.common_methods_invocations")
    found = [one for one in methods.op_db if one.name.endswith("scaled_dot_product_attention")]
    assert len(found) == 1
    return list(found[0].sample_inputs("cpu", dtype, requires_grad=requires_grad))


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_own_samples_are_equal(dtype: str, every_size: None) -> None:
    with torch.no_grad():
        given = [one for one in samples(getattr(torch, dtype), False)]
        options = [{k: v for k, v in one.kwargs.items() if k != "dropout_p"} for one in given]
        wanted = [
            sdpa(one.input, *one.args, **each) for one, each in zip(given, options, strict=True)
        ]
        with door.installed():
            got = [
                sdpa(one.input, *one.args, **each) for one, each in zip(given, options, strict=True)
            ]
    assert len(got) > 20
    for one, other in zip(got, wanted, strict=True):
        assert one.stride() == other.stride() or not one.numel()
        torch.testing.assert_close(one, other, atol=TOLERANCE[dtype], rtol=TOLERANCE[dtype])


def test_gradients_are_torchs(taken: list[int]) -> None:
    for sample in samples(torch.float32, True):
        options = {k: v for k, v in sample.kwargs.items() if k != "dropout_p"}
        inputs = [one for one in (sample.input, *sample.args) if one.requires_grad]

        def gradients(sample: Any = sample, options: Any = options, inputs: Any = inputs) -> Any:
            out = sdpa(sample.input, *sample.args, **options)
            return torch.autograd.grad(out, inputs, torch.ones_like(out), allow_unused=True)

        got = gradients()
        door.uninstall()
        wanted = gradients()
        door.install()
        for one, other in zip(got, wanted, strict=True):
            assert torch.equal(one, other)
    assert not taken


def test_what_is_taken(taken: list[int]) -> None:
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
    """The shapes of PyTorch's own tests of its CPU kernel, beside its plain operators."""
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


def test_what_is_left(taken: list[int]) -> None:
    q, k, v = three(2, 4, 33, 16)
    sdpa(q, k, v, dropout_p=0.5)
    sdpa(q.double(), k.double(), v.double())
    sdpa(q, k, v, draw(33, 33).requires_grad_())
    sdpa(torch.nn.Parameter(q), k, v)
    sdpa(q[0], k[0], v[0])
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(q, k)
        with sdpa_kernel(SDPBackend.MATH):
            assert torch.autograd.forward_ad.unpack_dual(sdpa(dual, k, v)).tangent is not None
    torch.vmap(lambda one: sdpa(one, k, v))(torch.stack([q, q]))
    torch.func.grad(lambda one: sdpa(q, k, v).sum() * one)(torch.tensor(1.0))
    compiled = torch.compile(lambda q: sdpa(q, k, v), backend="aot_eager")
    compiled(q)
    counter = pytest.importorskip("torch.utils.flop_counter").FlopCounterMode(display=False)
    with counter:
        sdpa(q, k, v)
    assert counter.get_total_flops() > 0
    for wrong in ((q[..., :8], k, v), (q, k, v.bfloat16())):
        with pytest.raises(RuntimeError):
            sdpa(*wrong)
    assert not taken


def test_small_calls_are_left(taken: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_installing_twice_and_back() -> None:
    q, k, v = three(2, 4, 128, 64)
    before = sdpa(q, k, v)
    door.install()
    door.install()
    with door.installed():
        torch.testing.assert_close(sdpa(q, k, v), before, atol=2e-5, rtol=2e-5)
    assert door._libraries
    door.uninstall()
    door.uninstall()
    assert torch.equal(sdpa(q, k, v), before)
    key = torch._C.DispatchKey.CPU
    assert not door._sdpa.has_kernel_for_dispatch_key(key)


PROGRAM = """
import sys
import torch
from torch.nn.functional import scaled_dot_product_attention as sdpa
assert sys.argv == [__file__, "--word"], sys.argv
assert __name__ == "__main__"
import maskwise.torch
print(torch.ops.aten.scaled_dot_product_attention.default.has_kernel_for_dispatch_key(
    torch._C.DispatchKey.CPU))
sys.exit(3)
"""


def test_run(tmp_path: Any) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}

    def run(*words: str) -> Any:
        command = [sys.executable, "-m", "maskwise", "run", *words]
        return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)

    found = run(str(program), "--word")
    assert (found.stdout, found.returncode) == ("True\n", 3), found.stderr
    missing = run(str(tmp_path / "none.py"))
    assert missing.returncode == 2
    assert "none.py" in missing.stderr and "Traceback" not in missing.stderr


OPTIONS: list[tuple[Any, ...]] = [
    (None, True),
    ("bias", False),
    ("kept", False, 0.3),
    (None, False, None, False, 2.0, [3, 1]),
    ("bias", False, None, False, 2.0, [3, 1], "sinks"),
]


@pytest.mark.parametrize("options", OPTIONS)
def test_operator(options: tuple[Any, ...]) -> None:
    q, k, v = (one.requires_grad_() for one in three(2, 2, 9, 4))
    named = {"bias": draw(9, 9), "kept": draw(2, 1, 9, 9) > -1, "sinks": draw(2)}
    named["bias"].requires_grad_()
    named["sinks"].requires_grad_()
    given = (q, k, v, *(named.get(one, one) if isinstance(one, str) else one for one in options))
    torch.library.opcheck(operator, given)
    wanted = maskwise._torch_op.plainly(*given)
    torch.testing.assert_close(operator(*given), wanted, atol=2e-5, rtol=2e-5)


def test_operator_in_compiled_models() -> None:
    q, k, v = three(2, 2, 9, 4)
    for dims in ((0, 1, 2, 3), (0, 2, 1, 3)):
        q = q.permute(dims).contiguous().permute(dims)
        wanted = maskwise.attention(q, k, v, is_causal=True).sin()
        for call in (
            lambda q, k, v: operator(q, k, v, None, True).sin(),
            lambda q, k, v: maskwise.attention(q, k, v, is_causal=True).sin(),
        ):
            compiled = torch.compile(call, fullgraph=True, backend="aot_eager")
            assert torch.equal(compiled(q, k, v), wanted)
    by_rules = torch.compile(
        lambda q, k, v: maskwise.attention(q, k, v, Mask.causal()).sin(), backend="aot_eager"
    )
    assert torch.equal(by_rules(q, k, v), wanted)


def test_operator_is_exported() -> None:
    class Model(torch.nn.Module):  # type: ignore[misc]
        def forward(self, q: Any, k: Any, v: Any) -> Any:
            return operator(q, k, v, None, True)

    q, k, v = three(2, 2, 9, 4)
    exported = torch.export.export(Model(), (q, k, v))
    assert torch.equal(exported.module()(q, k, v), operator(q, k, v, None, True))


def test_operator_under_vmap() -> None:
    q, k, v = three(3, 2, 9, 4)
    bias, sinks = draw(9, 9, 3), draw(3, 2)
    wanted = torch.stack(
        [operator(q[i], k[i], v[0], bias[..., i], sinks=sinks[i]) for i in range(3)]
    )

    def call(q: Any, k: Any, bias: Any, sinks: Any) -> Any:
        return operator(q, k, v[0], bias, sinks=sinks)

    got = torch.vmap(call, in_dims=(0, 0, 2, 0))(q, k, bias, sinks)
    torch.testing.assert_close(got, wanted, atol=2e-5, rtol=2e-5)
    only_bias = torch.vmap(lambda bias: maskwise.attention(q[0], k[0], v[0], bias), in_dims=2)(bias)
    assert only_bias.shape == (3, 2, 9, 4)


def test_gradients_of_attention() -> None:
    q, k, v = (one.requires_grad_() for one in three(2, 2, 9, 4))
    mask = Mask.causal() & Mask.lengths([5, 9])
    dense = torch.from_numpy(mask.to_dense(9, 9, 2))[:, None]
    gradient = draw(2, 2, 9, 4, seed=9)
    found = torch.autograd.grad(maskwise.attention(q, k, v, mask), (q, k, v), gradient)
    wanted = torch.autograd.grad(sdpa(q, k, v, dense), (q, k, v), gradient)
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, atol=2e-5, rtol=2e-5)
    with pytest.raises(BufferError, match="without out and statistics"):
        maskwise.attention(q, k, v, return_statistics=True)
    packed = [one[0].transpose(0, 1) for one in (q, k, v)]
    maskwise.packed_attention(*packed, [0, 4, 9]).sum().backward()
    assert q.grad is not None


def test_gradients_under_every_mask() -> None:
    """As without gradients: sequences are the result's first dimension."""
    k = draw(4, 4, 11, 8, seed=1)
    lengths, window = Mask.lengths([1, 3, 6, 11]), {"window": (2, 0)}
    calls: list[tuple[Any, Any, Any, dict[str, Any]]] = [
        (draw(4, 9, 8), k, lengths, {}),
        (draw(1, 4, 9, 8), k, lengths, {}),
        (draw(9, 8), k[0, 0], Mask.causal(), {}),
        (draw(9, 8), k[0, 0], None, window),
        (draw(4, 4, 9, 8), k, None, {"is_causal": True, **window}),
        (draw(4, 4, 9, 8), k, Mask.dense(draw(9, 11)) & Mask.causal(), {}),
        (draw(4, 4, 9, 8), k.numpy(), None, {}),
        (
            draw(4, 4, 9, 8).bfloat16(),
            k.bfloat16(),
            Mask.dense(draw(9, 11).bfloat16()) & Mask.causal(),
            {},
        ),
    ]
    for q, keys, mask, options in calls:
        plain = maskwise.attention(q, keys, keys, mask, **options)
        followed = maskwise.attention(q.clone().requires_grad_(), keys, keys, mask, **options)
        assert followed.requires_grad and followed.shape == plain.shape
        torch.testing.assert_close(followed.detach(), plain)
    mapped = torch.vmap(lambda one: maskwise.attention(one, one, one, Mask.causal()))
    assert mapped(draw(3, 5, 4)).shape == (3, 5, 4)


def test_tensors_that_are_more_than_their_memory() -> None:
    """By torch's own rules, or refused; never what happens to lie there."""
    q, k, v = three(2, 3, 17, 16)
    zeros = torch._efficientzerotensor(v.shape)
    empty = v.clone()
    empty.untyped_storage().resize_(0)
    with door.installed():
        assert not sdpa(q, k, zeros).any()
        with pytest.raises(RuntimeError):
            sdpa(q, k, empty)
    for one in (zeros, empty):
        with pytest.raises((BufferError, RuntimeError)):
            maskwise.attention(q, k, one)
        with pytest.raises((BufferError, RuntimeError)):
            maskwise.where(q > 0, one, 1.0)
    pair = pytest.importorskip("torch.testing._internal.two_tensor").TwoTensor
    found = maskwise.attention(q, k, pair(v, v.clone()))
    assert type(found) is pair
    torch.testing.assert_close(found.a, maskwise.attention(q, k, v))
    with pytest.importorskip("torch._subclasses.fake_tensor").FakeTensorMode():
        faked = torch.empty(2, 3, 17, 16)
        assert type(maskwise.attention(faked, faked, faked)).__name__ == "FakeTensor"
    traced = pytest.importorskip("torch.fx.experimental.proxy_tensor").make_fx(
        lambda q: maskwise.attention(q, k, v)
    )(q)
    torch.testing.assert_close(traced(q * 2), maskwise.attention(q * 2, k, v))


def test_tangents() -> None:
    q, k, v = three(2, 3, 17, 16)
    with sdpa_kernel(SDPBackend.MATH):
        _, wanted = torch.func.jvp(lambda one: sdpa(one, k, v), (q,), (q,))
    _, found = torch.func.jvp(lambda one: maskwise.attention(one, k, v), (q,), (q,))
    torch.testing.assert_close(found, wanted, atol=2e-5, rtol=2e-5)
    with pytest.raises(NotImplementedError, match="forward-mode"):
        torch.func.jvp(lambda one: operator(one, k, v), (q,), (q,))


def test_gradients_of_gradients() -> None:
    q, k, v = (one.requires_grad_() for one in three(1, 2, 9, 8))

    def second(call: Any) -> Any:
        out = call(q, k, v)
        (first,) = torch.autograd.grad(out.sin().sum(), q, create_graph=True)
        return torch.autograd.grad(out.sum() + first.pow(2).sum(), (q, k, v))

    with sdpa_kernel(SDPBackend.MATH):
        wanted = second(sdpa)
    for one, other in zip(second(maskwise.attention), wanted, strict=True):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4)


def test_gradients_where_only_v_and_mask_are_many() -> None:
    q, k = draw(3, 9, 8).requires_grad_(), draw(3, 9, 8, seed=1)
    v, mask = draw(4, 2, 3, 9, 8, seed=2), draw(4, 2, 1, 9, 9, seed=3)
    wide = q.expand(4, 2, 3, 9, 8)
    wanted = torch.autograd.grad(sdpa(wide, k.expand_as(wide), v, mask).sum(), q)
    found = torch.autograd.grad(operator(q, k, v, mask).sum(), q)
    torch.testing.assert_close(found, wanted, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_autocast(dtype: str) -> None:
    q, k, v = three(2, 3, 17, 16)
    with torch.autocast("cpu", dtype=getattr(torch, dtype)):
        for call in (operator, maskwise.attention):
            assert str(call(q, k, v).dtype) == f"torch.{dtype}"
            assert str(call(q.clone().requires_grad_(), k, v).dtype) == f"torch.{dtype}"


@pytest.mark.parametrize("strict", [False, True])
def test_rules_are_exported(strict: bool) -> None:
    class Model(torch.nn.Module):  # type: ignore[misc]
        def forward(self, q: Any, k: Any, v: Any) -> Any:
            return maskwise.attention(q, k, v, Mask.causal())

    q, k, v = three(2, 2, 9, 4)
    if strict:  # the mask is no part of a graph
        with pytest.raises(torch._dynamo.exc.Unsupported):
            torch.export.export(Model(), (q, k, v), strict=True)
        return
    exported = torch.export.export(Model(), (q, k, v), strict=False)
    assert torch.equal(exported.module()(q, k, v), Model()(q, k, v))


def test_a_causal_bias_of_another_size_is_refused() -> None:
    bias = pytest.importorskip("torch.nn.attention.bias").causal_lower_right(5, 6)
    with pytest.raises(ValueError, match="of \\(5, 6\\) rows and keys"):
        maskwise.attention(draw(9, 4), draw(11, 4), draw(11, 4), bias)


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
