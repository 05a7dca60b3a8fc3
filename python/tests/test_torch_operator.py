"""torch.ops.maskwise.attention, and maskwise.attention on tensors that torch traces."""

from __future__ import annotations

import itertools
from typing import Any

import maskwise
import pytest
from maskwise import Mask
from maskwise._call import AttentionCall
from torch_tensors import draw, three

try:
    import maskwise.torch as maskwise_torch
    import torch
    from maskwise import _torch_version
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.nn.functional import scaled_dot_product_attention as sdpa

    operator = torch.ops.maskwise.attention
except ModuleNotFoundError:
    pytestmark = pytest.mark.skip(reason="no PyTorch: scripts/setup --torch")

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
    arguments = (
        q,
        k,
        v,
        *(named.get(one, one) if isinstance(one, str) else one for one in options),
    )
    torch.library.opcheck(operator, arguments)
    wanted = maskwise._torch_reference.reference(AttentionCall(*arguments))
    torch.testing.assert_close(operator(*arguments), wanted, atol=2e-5, rtol=2e-5)


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


def test_cached_graphs_depend_on_the_operators_schema() -> None:
    """torch's cache keys do not depend on the operator's schema, so Maskwise adds the schema."""
    config = torch.compiler.config
    assert f"maskwise {maskwise.__version__} " in config.cache_key_tag
    tags = set()
    for schema in ("(Tensor query) -> Tensor", "(Tensor query, int more) -> Tensor"):
        with config.patch(cache_key_tag="the user's"):
            _torch_version.add_to_cache_keys(schema)
            assert config.cache_key_tag.startswith("the user's maskwise ")
            tags.add(config.cache_key_tag)
    assert len(tags) == 2


def test_operator_is_exported() -> None:
    class Model(torch.nn.Module):  # type: ignore[misc]
        def forward(self, q: Any, k: Any, v: Any) -> Any:
            return operator(q, k, v, None, True)

    q, k, v = three(2, 2, 9, 4)
    exported = torch.export.export(Model(), (q, k, v))
    assert torch.equal(exported.module()(q, k, v), operator(q, k, v, None, True))


def test_operator_with_data_dependent_sizes() -> None:
    q, k = draw(2, 4, 64, 16), draw(2, 4, 80, 16)
    for tensor in (q, k):
        torch._dynamo.decorators.mark_unbacked(tensor, 2)
    compiled = torch.compile(lambda q, k: operator(q, k, k), backend="aot_eager", fullgraph=True)
    assert torch.equal(compiled(q, k), operator(q, k, k))


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
    actual = torch.autograd.grad(maskwise.attention(q, k, v, mask), (q, k, v), gradient)
    wanted = torch.autograd.grad(sdpa(q, k, v, dense), (q, k, v), gradient)
    for one, other in zip(actual, wanted, strict=True):
        torch.testing.assert_close(one, other, atol=2e-5, rtol=2e-5)
    with pytest.raises(BufferError, match="out and return_statistics need tensors"):
        maskwise.attention(q, k, v, return_statistics=True)
    packed = [one[0].transpose(0, 1) for one in (q, k, v)]
    maskwise.packed_attention(*packed, [0, 4, 9]).sum().backward()
    assert q.grad is not None


def test_gradients_under_every_mask() -> None:
    """Results are equal with and without gradients. Per-sequence rules, such as lengths, have one
    entry per index of the result's first dimension."""
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
        tracked = maskwise.attention(q.clone().requires_grad_(), keys, keys, mask, **options)
        assert tracked.requires_grad and tracked.shape == plain.shape
        torch.testing.assert_close(tracked.detach(), plain)
    mapped = torch.vmap(lambda one: maskwise.attention(one, one, one, Mask.causal()))
    assert mapped(draw(3, 5, 4)).shape == (3, 5, 4)


def test_tensors_whose_values_are_not_in_memory() -> None:
    """Tensors whose values are not in memory follow torch's rules or are refused. Maskwise never
    reads uninitialized bytes."""
    q, k, v = three(2, 3, 17, 16)
    zeros = torch._efficientzerotensor(v.shape)
    empty = v.clone()
    empty.untyped_storage().resize_(0)
    is_zero = not sdpa(q, k, zeros).any()  # torch 2.8 reads uninitialized bytes
    with maskwise_torch.installed():
        assert not is_zero or not sdpa(q, k, zeros).any()
        with pytest.raises(RuntimeError):
            sdpa(q, k, empty)
    for one in (zeros, empty):
        with pytest.raises((BufferError, RuntimeError)):
            maskwise.attention(q, k, one)
        with pytest.raises((BufferError, RuntimeError)):
            maskwise.where(q > 0, one, 1.0)
    pair = pytest.importorskip("torch.testing._internal.two_tensor").TwoTensor
    actual = maskwise.attention(q, k, pair(v, v.clone()))
    assert type(actual) is pair
    torch.testing.assert_close(actual.a, maskwise.attention(q, k, v))
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
    _, actual = torch.func.jvp(lambda one: maskwise.attention(one, k, v), (q,), (q,))
    torch.testing.assert_close(actual, wanted, atol=2e-5, rtol=2e-5)
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


def test_gradients_if_only_v_and_mask_have_a_batch() -> None:
    q, k = draw(3, 9, 8).requires_grad_(), draw(3, 9, 8, seed=1)
    v, mask = draw(4, 2, 3, 9, 8, seed=2), draw(4, 2, 1, 9, 9, seed=3)
    wide = q.expand(4, 2, 3, 9, 8)
    wanted = torch.autograd.grad(sdpa(wide, k.expand_as(wide), v, mask).sum(), q)
    actual = torch.autograd.grad(operator(q, k, v, mask).sum(), q)
    torch.testing.assert_close(actual, wanted, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_autocast(dtype: str) -> None:
    """Under autocast, Maskwise casts as torch's own attention does."""
    to = getattr(torch, dtype)
    kinds = (torch.float32, torch.float16, torch.bfloat16, torch.float64)
    with torch.autocast("cpu", dtype=to):
        for kind in kinds:
            q, k, v = three(2, 3, 17, 16, dtype=kind)
            assert sdpa(q, k, v).dtype == (kind if kind == torch.float64 else to)
            for call in (operator, maskwise.attention):
                for first in (q, q.clone().requires_grad_()):
                    if kind == torch.float64:
                        with pytest.raises(TypeError, match="query has dtype float64"):
                            call(first, k, v)
                    else:
                        assert call(first, k, v, q[..., :1], scale=0.3).dtype == to
        q, k, v = three(2, 3, 17, 16)
        for mixed in ((q, k.double(), v), (q.double(), k, v)):
            for wrong in (sdpa, operator, maskwise.attention):
                with pytest.raises((RuntimeError, TypeError)):
                    wrong(*mixed)


def test_out_statistics_and_explain_under_autocast() -> None:
    q, k, v = three(2, 3, 17, 16)
    low = [one.bfloat16() for one in (q, k, v)]
    mask, sinks = Mask.causal() & Mask.lengths([9, 17]), draw(3)
    wanted = maskwise.attention(*low, mask, sinks=sinks.bfloat16(), return_statistics=True)
    out = torch.empty_like(low[0])
    with torch.autocast("cpu", dtype=torch.bfloat16):
        got = maskwise.attention(q, k, v, mask, sinks=sinks, return_statistics=True, out=out)
        assert "bf16" in maskwise.explain_attention(q, k, v, mask)
    assert got[0] is out
    for one, other in zip(got, wanted, strict=True):
        assert torch.equal(one, other)


def test_explain_of_tensors_that_require_gradients() -> None:
    q, k, v = (one.requires_grad_() for one in three(2, 2, 70, 4))
    wanted = maskwise.explain_attention(q.detach(), k.detach(), v.detach(), Mask.causal())
    assert maskwise.explain_attention(q, k, v, Mask.causal()) == wanted


class Traced(torch.nn.Module if "torch" in globals() else object):  # type: ignore[misc]
    def __init__(self, call: Any) -> None:
        super().__init__()
        self.call = call

    def forward(self, x: Any) -> Any:
        return self.call(x.sin())


TRACED: list[Any] = [
    lambda x: maskwise.attention(x, x, x, is_causal=True),
    lambda x: maskwise.attention(x, x, x, window=(5, 2)),
    lambda x: maskwise.attention(x, x, x, x @ x.mT > 0, soft_cap=3.0),
    lambda x: sdpa(x, x, x),
]
REFUSED: list[Any] = [
    lambda x: maskwise.attention(x, x, x, Mask.causal()),
    lambda x: maskwise.where(x > 0, x, 0.0),
    lambda x: maskwise.select(x > 0, x, x),
    lambda x: maskwise.attention(x, x, x, out=torch.empty_like(x)),
    lambda x: maskwise.packed_attention(x[0].mT, x[0].mT, x[0].mT, [0, 4]),
]


@pytest.mark.parametrize("mode", ["no_grad", "inference_mode", "enable_grad"])
@pytest.mark.filterwarnings("ignore")
def test_torch_traces_the_operator_or_nothing(mode: str) -> None:
    """A result must not become a constant of the trace."""
    x, other = draw(2, 4, 200, 32), draw(2, 4, 200, 32, seed=1)
    with maskwise_torch.installed(), getattr(torch, mode)():
        for call in TRACED:
            traced = torch.jit.trace(Traced(call), x)
            for one in (traced, torch.jit.freeze(traced.eval())):
                torch.testing.assert_close(one(other), call(other.sin()), atol=2e-5, rtol=2e-5)
        for call in REFUSED:
            with pytest.raises(
                (NotImplementedError, BufferError), match=r"torch (is tracing|does not track)"
            ):
                torch.jit.trace(Traced(call), x)


def test_fx_records_the_operator_or_nothing() -> None:
    x = draw(2, 4, 20, 16)
    for call in TRACED:
        recorded = torch.fx.symbolic_trace(Traced(call))
        assert torch.equal(recorded(x), call(x.sin()))
    with pytest.raises(NotImplementedError, match="torch is tracing"):
        torch.fx.symbolic_trace(Traced(REFUSED[0]))


@pytest.mark.parametrize("causal", [False, True])
def test_windows_in_one_graph(causal: bool) -> None:
    def call(q: Any, k: Any, v: Any) -> Any:
        return maskwise.attention(q, k, v, window=(3, 1), is_causal=causal, soft_cap=2.0)

    operands = three(2, 2, 20, 4)
    wanted = call(*operands)
    compiled = torch.compile(call, fullgraph=True, backend="aot_eager")
    assert torch.equal(compiled(*operands), wanted)
    exported = torch.export.export(Model(call), tuple(operands), strict=True)
    assert torch.equal(exported.module()(*operands), wanted)
    for one in operands:
        one.requires_grad_()
    assert torch.equal(call(*operands), wanted)
    for wrong in ((1.5, 2), (-2, 0), (1, 2, 3), 5):
        with pytest.raises((TypeError, ValueError), match=r"window|left"):
            maskwise.attention(*operands, window=wrong)


class Model(torch.nn.Module if "torch" in globals() else object):  # type: ignore[misc]
    def __init__(self, call: Any) -> None:
        super().__init__()
        self.call = call

    def forward(self, q: Any, k: Any, v: Any) -> Any:
        return self.call(q, k, v)


def test_a_causal_bias_of_another_size_is_refused() -> None:
    bias = pytest.importorskip("torch.nn.attention.bias").causal_lower_right(5, 6)
    with pytest.raises(ValueError, match=r"bias has \(5, 6\) rows and keys"):
        maskwise.attention(draw(9, 4), draw(11, 4), draw(11, 4), bias)


def test_layers_share_the_rules_of_a_mask(monkeypatch: pytest.MonkeyPatch) -> None:
    """The layers of a model pass equal key masks. Maskwise computes their rules once."""
    computed: list[Any] = []
    padding_rules = maskwise._torch_masks.padding_rules

    def counted(*arguments: Any) -> Any:
        computed.append(arguments)
        return padding_rules(*arguments)

    monkeypatch.setattr(maskwise._torch_masks, "padding_rules", counted)
    maskwise._torch_masks.mask_of.cache_clear()
    q, k, v = three(2, 2, 9, 4)
    for length in (5, 7):
        key_mask = torch.arange(9) < torch.tensor([[length], [9]])
        kept = key_mask[:, None, None]
        for _ in range(3):
            result = operator(q, k, v, key_mask=key_mask.clone())
            torch.testing.assert_close(result, maskwise.attention(q, k, v, kept))
    assert len(computed) == 2


def test_deterministic_algorithms_give_a_row_the_same_bits_in_every_batch() -> None:
    q, k, v = three(3, 4, 200, 32)
    wanted = maskwise.attention(q, k, v, is_causal=True, deterministic=True)
    torch.use_deterministic_algorithms(True)
    try:
        with maskwise_torch.installed():
            for batch, rows in itertools.product((slice(0, 3), slice(1, 2)), (200, 7, 1)):
                operands = (q[batch, :, -rows:], k[batch], v[batch])
                mask = torch.ones(rows, 200, dtype=torch.bool).tril(200 - rows)
                for attention in (sdpa, maskwise.attention, operator):
                    assert torch.equal(attention(*operands, mask), wanted[batch, :, -rows:])
                with_gradients = maskwise.attention(
                    operands[0].detach().requires_grad_(), *operands[1:], mask
                )
                assert torch.equal(with_gradients, wanted[batch, :, -rows:])
    finally:
        torch.use_deterministic_algorithms(False)
