"""Compares gradients of maskwise.attention with torch's gradients in float64, and losses in
training."""

from __future__ import annotations

from typing import Any

import maskwise
import pytest
from maskwise import Mask
from torch_tensors import draw

try:
    import maskwise.torch as maskwise_torch
    import torch
    from maskwise import _torch_gradients
    from maskwise._call import AttentionCall
    from maskwise._torch_reference import reference
    from torch.utils.checkpoint import checkpoint
except ModuleNotFoundError:
    pytestmark = pytest.mark.skip(reason="no PyTorch: scripts/setup --torch")

TOLERANCE = {"float32": 1e-5, "float16": 3e-3, "bfloat16": 2e-2}
ROWS = 100
MASKS = {
    "none": Mask(),
    "causal": Mask.causal(),
    "window": Mask.window(10, 20) & Mask.causal(),
    "lengths": Mask.lengths([0, 70]),
    "documents": Mask.documents([[0] * 40 + [1] * 60] * 2),
}
OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "soft_cap": {"soft_cap": 2.0},
    "scale": {"scale": 0.3},
    "grouped": {"enable_gqa": True},
    "sinks": {"sinks": 4},
    "bias": {"attn_mask": (4, ROWS, ROWS)},
    "bias shared by all rows": {"attn_mask": (2, 1, 1, ROWS)},
}


def operands(options: dict[str, Any], dtype: str) -> tuple[dict[str, Any], Any]:
    """Returns a call's tensors, which require gradients, and the gradient of the call's result."""
    kind = getattr(torch, dtype)
    heads = 2 if "enable_gqa" in options else 4
    shapes = {"query": (2, 4, ROWS, 16), "key": (2, heads, ROWS, 16), "value": (2, heads, ROWS, 8)}
    if "attn_mask" in options:
        shapes["attn_mask"] = options["attn_mask"]
    if "sinks" in options:
        shapes["sinks"] = (options["sinks"],)
    tensors = {name: draw(*shape, dtype=kind).requires_grad_() for name, shape in shapes.items()}
    return tensors, draw(2, 4, ROWS, 8, dtype=kind)


def assert_gradients_of_definition(
    dtype: str, tensors: dict[str, Any], seed: Any, out: Any, kept: Any, options: dict[str, Any]
) -> None:
    got = torch.autograd.grad(out, tensors.values(), seed)
    wide = {name: one.detach().double().requires_grad_() for name, one in tensors.items()}
    mask = wide.get("attn_mask")
    if kept is not None:
        mask = kept if mask is None else mask.masked_fill(~kept, -torch.inf)
    wanted = torch.autograd.grad(
        reference(AttentionCall(**{**options, **wide, "attn_mask": mask})).double(),
        wide.values(),
        seed.double(),
    )
    for name, one, other in zip(tensors, got, wanted, strict=True):
        assert one.dtype == tensors[name].dtype and one.shape == tensors[name].shape
        apart = (one.double() - other).abs().max() / other.abs().max()
        assert apart < TOLERANCE[dtype], (name, apart)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("option", OPTIONS)
def test_gradients_are_those_of_the_definition(option: str, dtype: str) -> None:
    """A mask has rules only, or rules and an array that requires a gradient."""
    for rules in MASKS.values():
        tensors, seed = operands(OPTIONS[option], dtype)
        options = {k: v for k, v in OPTIONS[option].items() if k not in ("attn_mask", "sinks")}
        mask = rules
        if "attn_mask" in tensors:
            mask = rules._beside(tensors["attn_mask"])
        out = maskwise.attention(**{**options, **tensors, "attn_mask": mask})
        kept = torch.from_numpy(rules.to_dense(ROWS, ROWS, 2)).reshape(2, 1, ROWS, ROWS)
        assert_gradients_of_definition(dtype, tensors, seed, out, kept, options)


@pytest.mark.parametrize("option", OPTIONS)
def test_the_operator_has_the_same_gradients(option: str) -> None:
    tensors, seed = operands(OPTIONS[option], "float32")
    options = {k: v for k, v in OPTIONS[option].items() if k not in ("attn_mask", "sinks")}
    padding = torch.ones(2, ROWS, dtype=torch.bool)
    padding[1, 20:50] = False
    call = AttentionCall(**{"attn_mask": None, **options, **tensors, "key_mask": padding})
    out = maskwise_torch._torch_op.call_operator(call)
    assert_gradients_of_definition("float32", tensors, seed, out, padding[:, None, None], options)


def attend(q: Any, k: Any, v: Any) -> Any:
    return maskwise.attention(q, k, v, Mask.causal() & Mask.window(20, 0))


def test_checkpoints_compute_the_same_gradients() -> None:
    tensors, seed = operands({}, "float32")
    wanted = torch.autograd.grad(attend(*tensors.values()), tensors.values(), seed)
    for reentrant in (False, True):
        out = checkpoint(attend, *tensors.values(), use_reentrant=reentrant)
        for one in tensors.values():
            one.grad = None
        out.backward(seed)
        for one, other in zip(tensors.values(), wanted, strict=True):
            assert torch.equal(one.grad, other)


def test_autocast_computes_in_the_autocast_type() -> None:
    tensors, seed = operands({}, "float32")
    with torch.autocast("cpu", torch.bfloat16):
        out = attend(*tensors.values())
    assert out.dtype == torch.bfloat16
    kept = torch.from_numpy((Mask.causal() & Mask.window(20, 0)).to_dense(ROWS, ROWS))
    assert_gradients_of_definition("bfloat16", tensors, seed.bfloat16(), out, kept, {})


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_compiled_training_step(backend: str) -> None:
    def step(q: Any, k: Any, v: Any) -> Any:
        out = torch.ops.maskwise.attention(q * 2, k, v, None, True, None, False, None, [20, 0])
        return (out * out).sum()

    tensors, _ = operands({}, "float32")
    torch._dynamo.reset()
    compiled = torch.compile(step, backend=backend, fullgraph=True)
    got = torch.autograd.grad(compiled(*tensors.values()), tensors.values())
    wanted = torch.autograd.grad(step(*tensors.values()), tensors.values())
    for one, other in zip(got, wanted, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)


def test_gradients_of_gradients_are_torchs() -> None:
    tensors, _ = operands({}, "float32")
    wide = {name: one.detach().double().requires_grad_() for name, one in tensors.items()}
    kept = torch.from_numpy((Mask.causal() & Mask.window(20, 0)).to_dense(ROWS, ROWS))
    gradients = []
    for out, inputs in (
        (attend(*tensors.values()), tensors),
        (reference(AttentionCall(**wide, attn_mask=kept)), wide),
    ):
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
            (first,) = torch.autograd.grad(out.square().sum(), inputs["query"], create_graph=True)
        gradients.append(torch.autograd.grad(first.square().sum(), inputs["key"])[0].double())
    torch.testing.assert_close(gradients[0], gradients[1], atol=1e-3, rtol=1e-3)


def test_rules_are_not_written_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The memory of gradients grows with the sequence length, not with its square."""

    def refuse(*_: Any) -> Any:
        raise AssertionError("an array of rows x keys")

    monkeypatch.setattr(Mask, "to_dense", refuse)
    tensors, seed = operands({}, "float32")
    torch.autograd.grad(attend(*tensors.values()), tensors.values(), seed)


def test_keys_and_values_with_different_heads() -> None:
    q, k, v = (draw(1, heads, 40, 8).requires_grad_() for heads in (4, 2, 1))
    out = maskwise.attention(q, k, v, enable_gqa=True)
    repeated = (one.repeat_interleave(4 // one.shape[1], 1) for one in (k, v))
    wanted = torch.nn.functional.scaled_dot_product_attention(q, *repeated)
    for one, other in zip(
        torch.autograd.grad(out.square().sum(), (q, k, v)),
        torch.autograd.grad(wanted.square().sum(), (q, k, v)),
        strict=True,
    ):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-4)


def losses(name: str, steps: int) -> list[float]:
    """Returns the loss at each step while a small ModernBERT learns one padded batch."""
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("maskwise.transformers")
    torch.manual_seed(0)
    config = transformers.ModernBertConfig(
        vocab_size=80,
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=4,
        local_attention=16,
        pad_token_id=0,
        attn_implementation=name,
    )
    model = transformers.ModernBertForMaskedLM(config).train()
    words = torch.randint(1, 80, (4, 96))
    kept = torch.arange(96) < torch.tensor([96, 50, 70, 96])[:, None]
    labels = torch.where(kept & (torch.rand(4, 96) < 0.3), words, -100)
    inputs = torch.where(labels != -100, 1, words)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    values = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = model(input_ids=inputs, attention_mask=kept.long(), labels=labels).loss
        loss.backward()
        optimizer.step()
        values.append(loss.item())
    return values


def test_a_model_has_the_same_losses_as_with_sdpa(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maskwise_torch, "LEAST_PRODUCTS", 0)
    calls: list[int] = []
    run = _torch_gradients.run
    monkeypatch.setattr(_torch_gradients, "run", lambda call: calls.append(1) or run(call))
    wanted, got = losses("sdpa", 6), losses("maskwise", 6)
    assert len(calls) == 12
    assert got[-1] < got[0] - 0.1
    assert all(abs(one - other) < 1e-3 for one, other in zip(got, wanted, strict=True))
