"""With Maskwise installed, torch.where and masked_fill return torch's bits or raise its errors."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from maskwise import _core

try:
    import maskwise.torch as maskwise_torch
    import torch
except ModuleNotFoundError:
    pytest.skip("no PyTorch: scripts/setup --torch", allow_module_level=True)

NEVER = 2**62
TAKEN = [
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
    "complex128",
]
OTHERS = ["bool", "uint16", "uint32", "uint64", "complex32", "float8_e5m2"]
NUMBERS = [
    0,
    1,
    -1,
    2.5,
    -0.0,
    1e-9,
    65504,
    65505.0,
    7e4,
    1e30,
    -3.39e38,
    3.4e38,
    1e300,
    300,
    2**40,
]
NUMBERS += [float("inf"), float("-inf"), float("nan"), True, 1 + 2j, 1 / 3, 2**63]


@pytest.fixture(autouse=True)
def fixture_installed() -> Iterator[None]:
    """Installs Maskwise for calls of every size."""
    with maskwise_torch.installed():
        bound = _core.bound_torch_selects(0)
        yield
        _core.bound_torch_selects(bound)


def bits(tensor: Any) -> bytes:
    whole = tensor.detach().resolve_conj().resolve_neg().flatten()
    dense = torch.empty_like(whole, memory_format=torch.contiguous_format).copy_(whole)
    return bytes(dense.view(torch.uint8).numpy())


def outcome(compute: Callable[[], Any]) -> Any:
    """Returns the results' dtypes, shapes, strides and bits, or the error."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tensors = compute()
    except Exception as failure:
        return type(failure), str(failure).split("\n")[0]
    return [(one.dtype, one.shape, one.stride(), bits(one)) for one in tensors]


def is_run_like_torch(compute: Callable[[], Any]) -> bool:
    """Whether Maskwise runs the call. Asserts that the outcome equals torch's."""
    _core.bound_torch_selects(NEVER)
    wanted = outcome(compute)
    _core.bound_torch_selects(0)
    before = _core.count_torch_selects()
    got = outcome(compute)
    assert got == wanted
    return bool(_core.count_torch_selects() > before)


def random_bytes(dtype: Any, *shape: int, seed: int = 0) -> Any:
    """Returns elements with random bits."""
    dtype = getattr(torch, dtype) if isinstance(dtype, str) else dtype
    generator = torch.Generator().manual_seed(seed)
    width = dtype.itemsize
    raw = torch.randint(0, 256, (*shape[:-1], shape[-1] * width), generator=generator)
    return raw.to(torch.uint8).view(dtype)


@st.composite
def layouts(draw: Any, dtype: Any, shape: tuple[int, ...]) -> Any:
    """Draws a view of this shape, perhaps permuted, strided, offset or broadcast."""
    order = draw(st.permutations(range(len(shape))))
    steps = [draw(st.sampled_from((1, 1, 1, 2))) for _ in shape]
    repeats = [draw(st.integers(0, 7)) == 0 for _ in shape]
    extents = [
        1 if repeat else n * step for n, step, repeat in zip(shape, steps, repeats, strict=True)
    ]
    count = 1
    for n in extents:
        count *= n
    first = draw(st.integers(0, 1))
    flat = random_bytes(dtype, count + first, seed=draw(st.integers(0, 99)))[first:]
    view = flat.view([extents[i] for i in order]).permute(
        [order.index(i) for i in range(len(shape))]
    )
    for dim, (step, repeat) in enumerate(zip(steps, repeats, strict=True)):
        view = view if repeat else view[(slice(None),) * dim + (slice(None, None, step),)]
    return view.expand(shape)


@st.composite
def broadcast_shapes(draw: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    kept = shape[draw(st.integers(0, len(shape))) :]
    return tuple(1 if draw(st.integers(0, 3)) == 0 else n for n in kept)


SHAPES = st.lists(st.sampled_from((1, 2, 3, 4, 7, 8, 17, 33)), max_size=5).map(tuple)
DTYPES = st.sampled_from([*TAKEN, *OTHERS])


@given(st.data())
def test_where_of_any_operands(data: st.DataObject) -> None:
    shape = data.draw(SHAPES)
    assume(torch.Size(shape).numel() <= 20000)
    dtype = data.draw(DTYPES)
    other = data.draw(st.one_of(st.just(dtype), DTYPES))
    mask, x, y = (
        data.draw(layouts(each, data.draw(broadcast_shapes(shape))))
        for each in (data.draw(st.sampled_from(("bool", "bool", "uint8"))), dtype, other)
    )
    y = data.draw(st.sampled_from((y, y, y, 0, 1.5, True)))
    if isinstance(y, torch.Tensor) and data.draw(st.booleans()):
        x, y = y, x
    is_run_like_torch(lambda: [torch.where(mask, x, y)])


@given(st.data())
def test_where_into_any_out(data: st.DataObject) -> None:
    shape = data.draw(SHAPES)
    assume(torch.Size(shape).numel() <= 20000)
    dtype = data.draw(st.sampled_from(TAKEN))
    mask = data.draw(layouts("bool", data.draw(broadcast_shapes(shape))))
    x = data.draw(layouts(dtype, shape))
    y = data.draw(layouts(dtype, data.draw(broadcast_shapes(shape))))
    out = data.draw(layouts(dtype, data.draw(st.sampled_from((shape, shape, (0,), (3, 5))))))
    kind = data.draw(st.sampled_from(("other", "x", "part of x")))

    def compute() -> Any:
        base = out._base if out._base is not None else out
        one = x.clone(memory_format=torch.preserve_format)
        copied = base.clone()
        into = copied.as_strided(out.shape, out.stride(), out.storage_offset())
        if kind == "x":
            into = one
        if kind == "part of x" and one.ndim and one.shape[0] > 1:
            result = torch.where(mask[..., :1], one[1:], 0, out=one[:-1])
            return result, one
        return torch.where(mask, one, y, out=into), copied, one

    is_run_like_torch(compute)


@given(st.data())
def test_masked_fill_of_any_operands(data: st.DataObject) -> None:
    shape = data.draw(SHAPES)
    assume(torch.Size(shape).numel() <= 20000)
    dtype = data.draw(DTYPES)
    x = data.draw(layouts(dtype, shape))
    mask = data.draw(layouts("bool", data.draw(broadcast_shapes(shape))))
    number = data.draw(st.sampled_from(NUMBERS))
    value = number if data.draw(st.booleans()) or number == 2**63 else torch.tensor(number)

    def in_place() -> Any:
        base = (x._base if x._base is not None else x).clone()
        view = base.as_strided(x.shape, x.stride(), x.storage_offset())
        return view.masked_fill_(mask, value), base

    is_run_like_torch(lambda: [x.masked_fill(mask, value)])
    is_run_like_torch(in_place)


@pytest.mark.parametrize("dtype", [*TAKEN, *OTHERS])
def test_dtypes_that_maskwise_runs(dtype: str) -> None:
    mask, x, y = (
        random_bytes("bool", 5, 40),
        random_bytes(dtype, 5, 40),
        random_bytes(dtype, 5, 40, seed=1),
    )
    is_taken = dtype in TAKEN
    calls: list[Callable[[], Any]] = [
        lambda: [torch.where(mask, x, y)],
        lambda: [torch.where(mask[0], x, False)],
        lambda: [torch.where(mask[:, :1], True, y)],
        lambda: [torch.where(mask, x.mT.contiguous().mT, y[0], out=torch.empty_like(x))],
        lambda: [torch.where(mask, x, y, out=x.clone().t().contiguous().t())],
        lambda: [x.masked_fill(mask, 0)],
        lambda: [x.clone().masked_fill_(mask[0], torch.tensor(1))],
    ]
    for number, compute in enumerate(calls):
        is_transposed = number in (3, 4)
        gains = not is_transposed or x.element_size() < 8
        assert is_run_like_torch(compute) == (is_taken and gains), number


@pytest.mark.parametrize("dtype", TAKEN)
@pytest.mark.parametrize("number", NUMBERS)
def test_numbers_that_fill(dtype: str, number: Any) -> None:
    x, mask = random_bytes(dtype, 70), random_bytes("bool", 70)
    is_run_like_torch(lambda: [x.masked_fill(mask, number)])


def test_f16_numbers_that_fill() -> None:
    """Maskwise fills with every f16 number except NaNs and subnormal numbers."""
    numbers = torch.arange(-(2**15), 2**15, 7).to(torch.int16).view(torch.float16)
    mask = random_bytes("bool", 70)
    for number in [one for one in numbers.tolist() if abs(one) >= 2**-14]:
        assert is_run_like_torch(
            lambda value=number: [torch.ones(70).half().masked_fill(mask, value)]
        )


def test_large_calls() -> None:
    """The sizes are large enough for threads and streaming stores."""
    mask, x, y = (
        torch.rand(3, 5, 600, 700) > 0.5,
        torch.randn(3, 5, 600, 700),
        torch.randn(3, 5, 600, 700),
    )
    for one in (mask, mask[0, 0], mask[:, :1, :1], mask[..., :1], mask.mT.contiguous().mT):
        for other in (y, torch.tensor(0.0)):
            _core.bound_torch_selects(NEVER)
            wanted = torch.where(one, x, other), x.masked_fill(one, 0.5)
            _core.bound_torch_selects(0)
            before = _core.count_torch_selects()
            got = torch.where(one, x, other), x.masked_fill(one, 0.5)
            assert _core.count_torch_selects() == before + 2
            assert all(map(torch.equal, got, wanted))


@pytest.mark.parametrize("name", ["where", "masked_fill"])
def test_pytorchs_samples(name: str) -> None:
    methods = pytest.importorskip("torch.testing._internal.common_methods_invocations")
    (info,) = (one for one in methods.op_db if one.name == name)
    count = 0
    for dtype in sorted(info.supported_dtypes("cpu"), key=str):
        for sample in info.sample_inputs("cpu", dtype, requires_grad=False):
            count += 1
            is_run_like_torch(lambda one=sample: [info.op(one.input, *one.args, **one.kwargs)])
    for error in info.error_inputs("cpu") if info.error_inputs_func is not None else ():
        sample = error.sample_input
        is_run_like_torch(lambda one=sample: [info.op(one.input, *one.args, **one.kwargs)])
    assert count > 50


@pytest.mark.parametrize("name", ["where", "masked_fill"])
def test_gradients_of_pytorchs_samples(name: str) -> None:
    methods = pytest.importorskip("torch.testing._internal.common_methods_invocations")
    (info,) = (one for one in methods.op_db if one.name == name)
    for sample in info.sample_inputs("cpu", torch.float64, requires_grad=True):
        inputs = [
            one
            for one in (sample.input, *sample.args)
            if isinstance(one, torch.Tensor) and one.requires_grad
        ]

        def gradients(one: Any = sample, inputs: Any = inputs) -> Any:
            result = info.op(one.input, *one.args, **one.kwargs)
            weights = torch.arange(result.numel(), dtype=result.dtype).view(result.shape)
            return torch.autograd.grad(result, inputs, weights)

        is_run_like_torch(gradients)


def test_torch_runs_overlapping_operands() -> None:
    base = torch.arange(200.0)
    mask = torch.rand(99) > 0.5

    def steps() -> Any:
        one = base.clone()
        return torch.where(mask, one[1:199:2], 0, out=one[:198:2]), one

    def overlapping() -> Any:
        one = base.clone()
        square = one.as_strided((9, 9), (10, 1))
        shifted = one.as_strided((9, 9), (10, 1), 1)
        return torch.where(mask[:81].view(9, 9), shifted, -1, out=square), one

    def repeated() -> Any:
        one = base.clone()
        return one[:1].expand(99).masked_fill_(mask, 3), one

    def of_its_bytes() -> Any:
        one = base.clone()
        return one.masked_fill_(one.view(torch.bool)[::4], 3), one

    for compute in (steps, overlapping, repeated, of_its_bytes):
        assert not is_run_like_torch(compute)


def test_calls_that_bypass_the_kernel() -> None:
    mask, x = torch.rand(8, 700) > 0.5, torch.randn(8, 700)
    before = _core.count_torch_selects()
    assert torch.where(mask.to("meta"), x.to("meta"), 0).device.type == "meta"
    assert _core.count_torch_selects() == before
    wanted = torch.where(mask, x, 1)
    assert torch.equal(torch.vmap(lambda m, one: torch.where(m, one, 1))(mask, x), wanted)
    compiled = torch.compile(lambda m, one: torch.where(m, one, 1), backend="aot_eager")
    assert torch.equal(compiled(mask, x), wanted)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(torch.where(mask, x, 1), wanted)
    pair = torch.complex(x, -x)
    for one in (pair.conj(), pair.conj().imag, pair.real):
        assert is_run_like_torch(lambda one=one: [torch.where(mask, one, 1)])


def test_calls_during_uninstall_and_install() -> None:
    mask, x = torch.rand(400, 700) > 0.5, torch.randn(400, 700)
    wanted = x.masked_fill(mask, 1)
    results: list[Any] = []

    def compute() -> None:
        for _ in range(20):
            results.append(torch.equal(torch.where(mask, 1, x), wanted))

    threads = [threading.Thread(target=compute) for _ in range(4)]
    for one in threads:
        one.start()
    for _ in range(20):
        maskwise_torch.uninstall()
        maskwise_torch.install()
    for one in threads:
        one.join()
    assert results == [True] * 80


def test_torch_runs_small_calls_and_calls_after_uninstall() -> None:
    mask, x = torch.rand(3, 30) > 0.5, torch.randn(3, 30)
    _core.bound_torch_selects(91)
    before = _core.count_torch_selects()
    torch.where(mask, x, x)
    _core.bound_torch_selects(90)
    assert _core.count_torch_selects() == before
    torch.where(mask, x, x)
    assert _core.count_torch_selects() == before + 1
    maskwise_torch.uninstall()
    torch.where(mask, x, x)
    x.masked_fill(mask, 0)
    assert _core.count_torch_selects() == before + 1
    maskwise_torch.install()


def test_a_torch_that_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    maskwise_torch.uninstall()
    monkeypatch.setattr(_core, "install_torch_selects", lambda _: False)
    with pytest.warns(UserWarning, match="cannot replace where and masked_fill of torch"):
        maskwise_torch.install()
    maskwise_torch.uninstall()
