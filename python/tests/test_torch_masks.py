"""A Mask in compiled and exported functions. The Mask's rules are an input of the graph."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import maskwise
import pytest
from maskwise import Mask
from maskwise._mask import _Rules
from torch_tensors import draw

try:
    import maskwise.torch
    import torch
    from maskwise._torch_version import READS_MASKS
    from maskwise.flash_attn import flash_attn_func
except ModuleNotFoundError:
    pytest.skip("no PyTorch: scripts/setup --torch", allow_module_level=True)

ROWS, KEYS = 9, 11
compiles = pytest.mark.skipif(not READS_MASKS, reason="graph break by a Mask before torch 2.15")
MASKS = {
    "causal": Mask.causal(),
    "from_end": Mask.causal(from_end=True) & Mask.lengths([5, 9]),
    "offsets": Mask.causal([2, -1]) & Mask.starts([0, 3]),
    "alibi": Mask.causal() & Mask.alibi([0.5, 0.02, 3.0]),
    "first_keys": Mask.causal() & Mask.window(3, 1, first_keys=1) & Mask.chunks(4, 1),
    "prefix": Mask.sliding(3) & Mask.prefix([2, 5]),
    "documents": Mask.documents([[0] * 4 + [1] * 5] * 2, [[0] * 5 + [1] * 6, [1] * 11]),
    "packed": Mask.packed([0, 4, 9], [0, 5, 11]) & Mask.causal(),
    "dense": Mask.dense(draw(ROWS, KEYS).numpy() > 0) & Mask.lengths([7, 8]),
    "added": Mask.dense(draw(2, 1, ROWS, KEYS)) & Mask.causal(),
    "none": Mask(),
}


def operands(rows: int = ROWS, keys: int = KEYS) -> list[Any]:
    return [draw(2, 3, count, 8, seed=count + i) for i, count in enumerate((rows, keys, keys))]


def with_mask(mask: Mask, **options: Any) -> Callable[..., Any]:
    return lambda q, k, v: maskwise.attention(q.sin(), k, v, mask, **options).cos()


CALLS = {name: with_mask(mask) for name, mask in MASKS.items()} | {
    "mask in the graph": lambda q, k, v: maskwise.attention(
        q.sin(), k, v, Mask.sliding(4) & Mask.lengths([3, 5]) & Mask.lengths(9)
    ),
    "from_end and a window": with_mask(MASKS["from_end"], window=(3, 1)),
    "packed and a soft cap": with_mask(MASKS["packed"], soft_cap=2.0, scale=0.3),
    "flash_attn": lambda q, k, v: flash_attn_func(
        *(one.transpose(1, 2) for one in (q, k, v)), causal=True, window_size=(3, 0)
    ),
}


class Model(torch.nn.Module):
    def __init__(self, call: Callable[..., Any]) -> None:
        super().__init__()
        self.call = call

    def forward(self, q: Any, k: Any, v: Any) -> Any:
        return self.call(q, k, v)


@compiles
@pytest.mark.parametrize("name", CALLS)
def test_one_graph(name: str) -> None:
    torch._dynamo.reset()
    compiled = torch.compile(CALLS[name], backend="aot_eager", fullgraph=True)
    assert torch.equal(compiled(*operands()), CALLS[name](*operands()))


@compiles
@pytest.mark.parametrize("name", CALLS)
def test_gradients_in_one_graph(name: str) -> None:
    def gradients(call: Callable[..., Any]) -> Any:
        inputs = [one.requires_grad_() for one in operands()]
        return torch.autograd.grad(call(*inputs).sin().sum(), inputs)

    torch._dynamo.reset()
    compiled = torch.compile(CALLS[name], backend="aot_eager", fullgraph=True)
    for got, wanted in zip(gradients(compiled), gradients(CALLS[name]), strict=True):
        torch.testing.assert_close(got, wanted, atol=2e-5, rtol=2e-5)


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("name", CALLS)
def test_exported_for_every_length(name: str, strict: bool) -> None:
    model, some = Model(CALLS[name]), tuple(operands())
    if strict and not READS_MASKS:
        pytest.skip("graph break by a Mask before torch 2.15")
    if strict and name in ("dense", "added"):
        with pytest.raises(torch._dynamo.exc.Unsupported, match=r"Mask\.dense in a strict export"):
            torch.export.export(model, some, strict=True)
        return
    lengths = ({2: torch.export.Dim.AUTO},) * 3
    exported = torch.export.export(model, some, strict=strict, dynamic_shapes=lengths)
    file = io.BytesIO()
    torch.export.save(exported, file)
    file.seek(0)
    loaded = torch.export.load(file).module()
    has_array = name in ("dense", "added")
    for sizes in ((ROWS, KEYS),) if has_array else ((ROWS, KEYS), (23, 31)):
        assert torch.equal(loaded(*operands(*sizes)), model(*operands(*sizes)))


@compiles
def test_different_rules_share_a_graph() -> None:
    testing = pytest.importorskip("torch._dynamo.testing")
    torch._dynamo.reset()
    counter = testing.CompileCounter()
    call = torch.compile(
        lambda x, mask: maskwise.attention(x, x, x, mask), backend=counter, fullgraph=True
    )
    x = draw(1, 2, 30, 8)
    for last in range(2, 30):
        for mask in (Mask.packed([0, *range(1, last), 30]), Mask.causal() & Mask.lengths([last])):
            assert torch.equal(call(x, mask), maskwise.attention(x, x, x, mask))
    assert counter.frame_count <= 2  # the second graph works for any number of documents


@compiles
def test_vmap_in_one_graph() -> None:
    torch._dynamo.reset()
    x = draw(4, 2, 3, ROWS, 8)

    def call(x: Any) -> Any:
        return torch.vmap(lambda one: maskwise.attention(one, one, one, MASKS["prefix"]))(x)

    compiled = torch.compile(call, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(x), call(x), atol=2e-5, rtol=2e-5)


@compiles
def test_wrong_rules_raise() -> None:
    torch._dynamo.reset()
    wrong = [with_mask(Mask.lengths([1, 2, 3])), with_mask(Mask.causal(), is_causal=True)]
    for call in wrong:
        with pytest.raises(ValueError, match=r"expected one or 2|exclude each other"):
            call(*operands())
        with pytest.raises(Exception, match=r"expected one or 2|exclude each other"):
            torch.compile(call, backend="aot_eager", fullgraph=True)(*operands())


@pytest.mark.parametrize("name", MASKS)
def test_rules_as_numbers_and_back(name: str) -> None:
    rules = MASKS[name]._rules
    assert _Rules.of_numbers(rules.numbers.tolist()) == rules


@pytest.mark.skipif(READS_MASKS, reason="test_one_graph tests this torch")
@pytest.mark.parametrize("name", MASKS)
def test_more_than_one_graph(name: str) -> None:
    torch._dynamo.reset()
    compiled = torch.compile(CALLS[name], backend="aot_eager")
    assert torch.equal(compiled(*operands()), CALLS[name](*operands()))
