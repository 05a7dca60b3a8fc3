"""Each argument gives correct results in small calls (run by torch) and in large calls (run by
Maskwise), with and without gradients."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import definition
import maskwise
import pytest
from maskwise import Mask
from torch_tensors import draw

try:
    import maskwise.torch as maskwise_torch
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.nn.functional import scaled_dot_product_attention as sdpa
except ModuleNotFoundError:
    pytestmark = pytest.mark.skip(reason="no PyTorch: scripts/setup --torch")

TOLERANCE = {"float32": 3e-5, "float16": 4e-3, "bfloat16": 3e-2}
DEPTH = 16
# (rows, keys). A query has 2 * 4 * rows * DEPTH elements.
SIZES = {"small": (20, 24), "large": (70, 75)}


def test_sizes_are_below_and_above_the_limit() -> None:
    for dtype in TOLERANCE:
        small, large = (2 * 4 * rows * DEPTH * keys for rows, keys in SIZES.values())
        assert maskwise_torch.is_small(
            small // keys_of("small"), keys_of("small"), getattr(torch, dtype)
        )
        assert not maskwise_torch.is_small(
            large // keys_of("large"), keys_of("large"), getattr(torch, dtype)
        )


def keys_of(size: str) -> int:
    return SIZES[size][1]


def tensors(size: str, dtype: str, key_heads: int = 4) -> list[Any]:
    rows, keys = SIZES[size]
    shapes = ((4, rows), (key_heads, keys), (key_heads, keys))
    results = [draw(2, *shape, DEPTH, seed=seed) for seed, shape in enumerate(shapes)]
    return [one.to(getattr(torch, dtype)) for one in results]


def masks(size: str, dtype: str) -> dict[str, Any]:
    """Returns masks by name. Some have fully masked rows, and some have a float32 bias."""
    rows, keys = SIZES[size]
    kept = draw(2, 1, rows, keys, seed=5) > -0.5
    kept[..., 3, :] = False
    bias = draw(1, 4, rows, keys, seed=6)
    lowest = torch.where(kept, 0.0, torch.finfo(torch.float32).min)
    converted = {
        "bias": bias.to(getattr(torch, dtype)),
        "infinite": torch.where(kept, bias, -torch.inf),
    }
    converted["infinite"] = converted["infinite"].to(getattr(torch, dtype))
    return {"kept": kept, "kept 2-d": kept[0, 0], **converted, "wide bias": bias, "lowest": lowest}


def by_definition(
    tensors: list[Any],
    mask: Any = None,
    is_causal: bool = False,
    scale: float | None = None,
    soft_cap: float | None = None,
    window: Any = None,
    sinks: Any = None,
    **_: Any,
) -> Any:
    row, key = torch.arange(tensors[0].shape[2])[:, None], torch.arange(tensors[1].shape[2])
    left, right = window or (-1, -1)
    kept = (key <= row) if is_causal else torch.ones(len(row), len(key), dtype=torch.bool)
    kept = kept & (key >= row - left) if left >= 0 else kept
    kept = kept & (key <= row + right) if right >= 0 else kept
    bias = None
    if isinstance(mask, Mask):
        kept = torch.from_numpy(mask.to_dense(len(row), len(key), 2))[:, None]
    elif mask is not None and mask.dtype == torch.bool:
        kept = kept & mask
    else:
        bias = mask
    options = {"bias": bias, "scale": scale, "soft_cap": soft_cap, "sinks": sinks}
    return definition.attention(*tensors, kept=kept, **options)[0]


def cases(size: str, dtype: str) -> Iterator[tuple[str, dict[str, Any]]]:
    arrays = masks(size, dtype)
    rules = {
        "causal": Mask.causal(),
        "lengths": Mask.causal() & Mask.lengths([9, 17]),
        "packed": Mask.causal(from_end=True) & Mask.starts([3, 0]),
        "sliding": Mask.sliding(5) & Mask.prefix([2, 0]),
        "dense": Mask.dense(arrays["kept"][0, 0]) & Mask.causal(),
    }
    for name, mask in (*arrays.items(), *rules.items()):
        yield name, {"attn_mask": mask}
    for cap, window, with_sinks in itertools.product((None, 2.0), (None, (4, 3)), (False, True)):
        sinks = draw(4, seed=7) if with_sinks else None
        more = {"soft_cap": cap, "window": window, "sinks": sinks}
        yield f"{more}", more
        yield f"{more} causal", {**more, "is_causal": True}
        yield f"{more} kept", {**more, "attn_mask": arrays["kept"]}
        yield f"{more} bias", {**more, "attn_mask": arrays["bias"]}
    for scale in (0.0, -0.4, 3.0):
        yield f"scale {scale}", {"scale": scale, "is_causal": True}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    ("dtype", "key_heads"), [("float32", 4), ("float32", 2), ("float16", 2), ("bfloat16", 2)]
)
def test_every_argument_of_attention(size: str, dtype: str, key_heads: int) -> None:
    grouped = {"enable_gqa": True} if key_heads < 4 else {}
    for name, arguments in cases(size, dtype):
        q, k, v = tensors(size, dtype, key_heads)
        mask = arguments.get("attn_mask")
        wanted = by_definition(
            [q, k, v], mask, **{a: b for a, b in arguments.items() if a != "attn_mask"}
        )
        plain = maskwise.attention(q, k, v, **arguments, **grouped)
        tracked = maskwise.attention(q.requires_grad_(), k, v, **arguments, **grouped)
        assert tracked.requires_grad and not plain.requires_grad
        for one in (plain, tracked.detach()):
            apart = (one.double() - wanted).abs().max().item()
            assert apart <= 3 * TOLERANCE[dtype], (name, apart)
        # A float32 row whose scores are all the lowest number gets wrong gradients, because adding
        # the logarithm of the row's sum does not change that number.
        if name != "lowest" or dtype != "float32":
            check_gradient(tracked, q, [k, v], arguments, dtype, name)


def check_gradient(
    tracked: Any, q: Any, others: list[Any], arguments: dict[str, Any], dtype: str, name: str
) -> None:
    seed = draw(*tracked.shape, seed=9)
    (got,) = torch.autograd.grad(tracked, q, seed.to(tracked.dtype))
    wide = q.detach().double().requires_grad_()
    arguments = {"mask" if name == "attn_mask" else name: one for name, one in arguments.items()}
    expected = by_definition([wide, *others], **arguments)
    (wanted,) = torch.autograd.grad(expected, wide, seed.to(tracked.dtype).double())
    apart = (got.double() - wanted).abs().max().item()
    assert apart <= 20 * TOLERANCE[dtype] * max(1, wanted.abs().max().item()), (name, apart)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("wants", [False, True])
def test_every_argument_under_install(size: str, dtype: str, wants: bool) -> None:
    """With Maskwise installed, calls return torch's result or raise torch's error."""
    taken = 0
    for key_heads, causal, scale, (name, mask) in itertools.product(
        (4, 2), (False, True), (None, 0.3), [("none", None), *masks(size, dtype).items()]
    ):
        q, k, v = tensors(size, dtype, key_heads)
        options = {"is_causal": causal, "scale": scale, "enable_gqa": key_heads < 4}
        wanted = answer([q, k, v], mask, options, wants)
        with maskwise_torch.installed():
            got = answer([q, k, v], mask, options, wants)
        if isinstance(wanted, type):
            assert got is wanted, (name, options)
            continue
        taken += 1
        for one, other in zip(got, wanted, strict=True):
            apart = (one.double() - other.double()).abs().max().item()
            assert apart <= 4 * TOLERANCE[dtype], (name, options, apart)
    assert taken > 10


def answer(operands: list[Any], mask: Any, options: dict[str, Any], wants: bool) -> Any:
    """Returns the result and the gradient of q, or the type of the exception."""
    q, k, v = operands
    q = q.clone().requires_grad_() if wants else q
    try:
        out = sdpa(q, k, v, mask, **options)
    except (RuntimeError, AssertionError) as failure:
        return type(failure)
    return (out.detach(), *(torch.autograd.grad(out.sum(), q) if wants else ()))


def test_torch_runs_dropout_of_every_size() -> None:
    for size in SIZES:
        q, k, v = tensors(size, "float32")
        with sdpa_kernel(SDPBackend.MATH):
            torch.manual_seed(0)
            wanted = sdpa(q, k, v, dropout_p=0.5)
            with maskwise_torch.installed():
                torch.manual_seed(0)
                assert torch.equal(sdpa(q, k, v, dropout_p=0.5), wanted)
