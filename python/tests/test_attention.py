"""Compares maskwise.attention with the definition of attention in float64."""

from __future__ import annotations

import threading
import time
from typing import Any

import definition
import maskwise
import numpy as np
import pytest
from arrays import BFLOAT16, Array, lay_out
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

FLOATS = [np.dtype("f"), np.dtype("e"), BFLOAT16]
# Relative to the largest value. The largest errors come from sums over up to 2000 keys in f32, and
# from rounding weights and results in the other types.
TOLERANCE = {FLOATS[0]: 3e-5, FLOATS[1]: 2**-9, FLOATS[2]: 2**-6}
LAYOUTS = ("dense", "misaligned", "permuted", "repeated", "stepped")
Shape = tuple[int, ...]


def reference(
    q: Array,
    k: Array,
    v: Array,
    attn_mask: Array | None = None,
    *,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Array:
    mask = np.tri(q.shape[-2], k.shape[-2], dtype=bool) if is_causal else attn_mask
    kind = "kept" if mask is None or mask.dtype == np.bool_ else "bias"
    return np.asarray(definition.attention(q, k, v, scale=scale, **{kind: mask})[0])


def assert_close(got: Any, expected: Array, v: Array) -> None:
    assert type(got) is np.ndarray
    assert (got.dtype, got.shape) == (v.dtype, expected.shape)
    most = np.abs(v.astype("d")).max(initial=0)
    error = np.abs(got.astype("d") - expected).max(initial=0)
    assert error <= TOLERANCE[v.dtype] * most, error


def narrowed(draw: st.DrawFn, shape: Shape) -> Shape:
    """Draws a shape that broadcasts to `shape`."""
    some = tuple(draw(st.sampled_from([1, extent])) for extent in shape)
    return some[draw(st.integers(0, len(some))) :]


def random_mask(draw: st.DrawFn, random: np.random.Generator, shape: Shape, element: Any) -> Array:
    kept = random.random(shape) < draw(st.sampled_from([0.0, 0.1, 0.5, 0.95]))
    if draw(st.booleans()):
        return np.asarray(kept)
    dtype = draw(st.sampled_from([np.dtype("f"), element]))
    return np.where(kept, random.standard_normal(shape), -np.inf).astype(dtype)


@st.composite
def calls(draw: st.DrawFn) -> tuple[list[Array], dict[str, Any]]:
    """Draws q, k, v and perhaps a mask in any layout. Also draws the keyword arguments."""
    outer = list(
        draw(
            hnp.mutually_broadcastable_shapes(num_shapes=3, max_dims=2, min_side=0, max_side=4)
        ).input_shapes
    )
    gqa = draw(st.booleans())
    if gqa:
        heads = draw(st.sampled_from([1, 2, 6]))
        kv_heads = [draw(st.sampled_from([1, heads // 2 or 1, heads])) for _ in range(2)]
        outer = [(*shape, count) for shape, count in zip(outer, (heads, *kv_heads), strict=True)]
    extent = st.one_of(st.integers(0, 9), st.integers(0, 140))
    rows, keys, depth, columns = (draw(extent) for _ in range(4))
    matrices = [(rows, depth), (keys, depth), (keys, columns)]
    shapes = [(*shape, *matrix) for shape, matrix in zip(outer, matrices, strict=True)]
    dtype = draw(st.sampled_from(FLOATS))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    arrays = [random.standard_normal(shape).astype(dtype) for shape in shapes]
    keywords: dict[str, Any] = {"enable_gqa": gqa}
    kind = draw(st.sampled_from(["none", "causal", "mask"]))
    if kind == "mask":
        batch = np.broadcast_shapes(*((*shape[:-1], 1) for shape in outer) if gqa else outer)
        batch = (*batch[:-1], outer[0][-1]) if gqa else batch
        shape = narrowed(draw, (*batch, rows, keys))
        arrays.append(random_mask(draw, random, shape, dtype))
    keywords["is_causal"] = kind == "causal"
    keywords["scale"] = draw(st.sampled_from([None, 0.0, 0.3, -0.2]))
    return [lay_out(random, array, draw(st.sampled_from(LAYOUTS))) for array in arrays], keywords


@given(calls(), st.data())
def test_every_shape_mask_and_layout(
    call: tuple[list[Array], dict[str, Any]], data: st.DataObject
) -> None:
    arrays, keywords = call
    expected = reference(*arrays, **keywords)
    assert_close(maskwise.attention(*arrays, **keywords), expected, arrays[2])
    layout = data.draw(st.sampled_from(["dense", "misaligned", "permuted", "stepped"]))
    empty = np.zeros(expected.shape, arrays[2].dtype)
    out = lay_out(np.random.default_rng(1), empty, layout)
    guard = None if out.base is None else out.base.copy()
    assert maskwise.attention(*arrays, **keywords, out=out) is out
    assert_close(out, expected, arrays[2])
    if guard is not None:  # memory between the elements of out is unchanged
        out[...] = 0
        assert out.base.tobytes() == guard.tobytes()


def standard(dtype: Any = "f", heads: int = 4, rows: int = 300, depth: int = 32) -> list[Array]:
    random = np.random.default_rng(1)
    shape = (2, heads, rows, depth)
    return [random.standard_normal(shape).astype(dtype) for _ in range(3)]


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_on_all_threads(dtype: np.dtype[Any]) -> None:
    q, k, v = standard(dtype)
    kept = np.arange(300) < np.array([[[[120]]], [[[300]]]])
    for keywords in ({}, {"is_causal": True}, {"attn_mask": kept}):
        assert_close(maskwise.attention(q, k, v, **keywords), reference(q, k, v, **keywords), v)


def test_one_query() -> None:
    q, k, v = standard(heads=8, rows=2000)
    assert_close(maskwise.attention(q[..., :1, :], k, v), reference(q[..., :1, :], k, v), v)
    one = k[:, ::4], v[:, ::4]
    got = maskwise.attention(q[..., :1, :], *one, enable_gqa=True)
    assert_close(got, reference(q[..., :1, :], *one, enable_gqa=True), v)


def test_fully_masked_rows_are_zero() -> None:
    q, k, v = standard(rows=70)
    kept = np.ones((70, 70), bool)
    kept[3:5] = False
    for mask in (kept, np.where(kept, np.float32(0), -np.float32(np.inf))):
        got = maskwise.attention(q, k, v, mask)
        assert not got[..., 3:5, :].any() and np.isfinite(got).all()
        assert_close(got, reference(q, k, v, mask), v)
    assert not maskwise.attention(q, k[..., :0, :], v[..., :0, :]).any()


def test_is_causal_counts_from_the_first_row() -> None:
    q, k, v = standard(rows=9)
    got = maskwise.attention(q[..., :4, :], k, v, is_causal=True)
    assert np.array_equal(got[..., 0, :], v[..., 0, :])


def test_masked_keys_may_be_nan() -> None:
    q, k, v = standard(rows=200)
    kept = np.arange(200) < 77
    expected = reference(q, k, v, kept)
    k[..., 77:, :] = np.nan
    assert_close(maskwise.attention(q, k, v, kept), expected, v)


def test_the_result_has_the_memory_order_of_q() -> None:
    q, k, v = (operand.transpose(0, 2, 1, 3) for operand in standard())
    assert maskwise.attention(q, k, v).flags.c_contiguous is False
    assert maskwise.attention(q, k, v).transpose(0, 2, 1, 3).flags.c_contiguous
    assert maskwise.attention(q.copy(), k, v).flags.c_contiguous
    repeated = np.broadcast_to(q[:1], q.shape)
    assert maskwise.attention(repeated, k, v).transpose(0, 2, 1, 3).flags.c_contiguous
    assert maskwise.attention(q[0], k, v).transpose(0, 2, 1, 3).flags.c_contiguous
    columns = np.asfortranarray(q[0, 0])
    assert maskwise.attention(columns, k[0, 0], v[0, 0]).flags.c_contiguous


def test_calls_that_differ_in_one_argument() -> None:
    """Runs all calls twice. If the cache confused two calls, a call would run the wrong plan."""
    q, k, v = standard(rows=20)
    on, off = np.tri(20, dtype=bool), np.tri(20, k=-5, dtype="f")
    variants: list[dict[str, Any]] = [
        {},
        {"scale": 0.0},
        {"scale": 0.5},
        {"is_causal": True},
        {"attn_mask": on},
        {"attn_mask": on.T},
        {"attn_mask": off},
        {"attn_mask": off.astype(bool)},
    ]
    for _ in range(2):
        for keywords in variants:
            assert_close(maskwise.attention(q, k, v, **keywords), reference(q, k, v, **keywords), v)


@pytest.mark.parametrize("dtype", ["d", "?", "i", "F", ">f4", "O", "M8[s]"])
def test_other_dtypes_are_refused(dtype: str) -> None:
    x, other = np.zeros((3, 4), "f"), np.zeros((3, 4), dtype)
    shown = str(np.dtype(dtype)).replace("[", r"\[")
    for name, call in {
        "query": (other, x, x),
        "key": (x, other, x),
        "value": (x, x, other),
    }.items():
        with pytest.raises(TypeError, match=f"^{name} has dtype {shown}, expected"):
            maskwise.attention(*call)
    if dtype != "?":
        with pytest.raises(
            TypeError, match=f"attn_mask has dtype {shown}, expected bool, float32 or query's"
        ):
            maskwise.attention(x, x, x, other[:, :3])
    with pytest.raises(TypeError, match=f"out has dtype {shown}, the result is float32"):
        maskwise.attention(x, x, x, out=other)


def test_a_bias_has_the_type_of_query_or_float32() -> None:
    q, k, v = standard("e", rows=10)
    bias = np.linspace(-2, 2, 10)
    assert_close(maskwise.attention(q, k, v, bias.astype("f")), reference(q, k, v, bias), v)
    with pytest.raises(TypeError, match="mask has dtype float16, expected bool, float32 or query"):
        maskwise.attention(*standard(rows=10), bias.astype("e"))
    with pytest.raises(TypeError, match="expected query's float16"):
        maskwise.attention(q, k.astype(BFLOAT16), v)


@pytest.mark.parametrize(
    ("shapes", "text"),
    [
        (((3, 4), (5, 6), (5, 6)), r"\{3,4\}.*\{5,6\}"),
        (((3, 4), (5, 4), (6, 4)), r"\{5,4\}.*\{6,4\}"),
        (((2, 3, 4), (3, 5, 4), (3, 5, 4)), r"\{2,3,4\}.*\{3,5,4\}"),
        (((4,), (5, 4), (5, 4)), r"\{4\}"),
        (((3, 4), (5, 4), (5, 4), (3, 4)), r"mask of shape \{3,4\} .* the scores' shape \{3,5\}"),
        (((3, 4), (5, 4), (5, 4), (2, 3, 5)), r"mask of shape \{2,3,5\}"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(shapes: tuple[Shape, ...], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        maskwise.attention(*(np.zeros(shape, "f") for shape in shapes))


def test_numbers_of_heads_that_do_not_fit_are_refused() -> None:
    q, k = np.zeros((6, 3, 4), "f"), np.zeros((4, 3, 4), "f")
    with pytest.raises(ValueError, match=r"\{6,3,4\}.*\{4,3,4\}"):
        maskwise.attention(q, k, k, enable_gqa=True)
    with pytest.raises(ValueError, match="fewer than 3 dimensions"):
        maskwise.attention(q[0], q[0], q[0], enable_gqa=True)


@pytest.mark.parametrize("key_heads", [0, 2])
def test_no_query_heads_give_an_empty_result(key_heads: int) -> None:
    q, k = np.zeros((2, 0, 3, 8), "f"), np.zeros((2, key_heads, 4, 8), "f")
    assert maskwise.attention(q, k, k, enable_gqa=True).shape == (2, 0, 3, 8)


def test_mask_and_is_causal_exclude_each_other() -> None:
    x = np.zeros((3, 4), "f")
    with pytest.raises(ValueError, match="mask and is_causal=True exclude each other"):
        maskwise.attention(x, x, x, np.ones((3, 3), bool), is_causal=True)


@pytest.mark.parametrize(
    ("kind", "text", "out"),
    [
        (ValueError, r"out has shape \(5,\).* \(3, 4\)", np.zeros(5, "f")),
        (TypeError, "out has dtype float16", np.zeros((3, 4), "e")),
        (ValueError, "read-only", np.broadcast_to(np.float32(0), (3, 4))),
        (TypeError, "out must be a numpy.ndarray, not list", [0.0]),
        (ValueError, "overlap", np.lib.stride_tricks.as_strided(np.zeros(8, "f"), (3, 4), (4, 4))),
    ],
    ids=str,
)
def test_an_out_that_cannot_receive_the_result_is_refused(
    kind: type[Exception], text: str, out: Any
) -> None:
    x = np.ones((3, 4), "f")
    for _ in range(2):  # the second call may use a cached plan
        with pytest.raises(kind, match=text):
            maskwise.attention(x, x, x, out=out)
    assert not np.asarray(out).any()


def test_an_out_that_is_an_operand_is_refused() -> None:
    x, mask = np.ones((4, 4), "f"), np.zeros((4, 4), "f")
    names = ("query", "key", "value", "attn_mask")
    for place, name in enumerate(names):
        operands = [x, x, x, mask]
        operands[place] = out = np.full((4, 4), 3, "f")
        with pytest.raises(ValueError, match=f"out, of shape .* shares memory with {name}, of"):
            maskwise.attention(*operands, out=out)
        assert (out == 3).all()
        # This call caches its plan, which the next call uses.
        maskwise.attention(*operands, out=np.empty_like(x))
        with pytest.raises(ValueError, match=f"shares memory with {name}, of"):
            maskwise.attention(*operands, out=out)


def test_lists_may_be_operands() -> None:
    x = np.arange(12, dtype="f").reshape(3, 4)
    expected = maskwise.attention(x, x, x, np.tri(3, dtype=bool))
    assert np.array_equal(maskwise.attention(x, x, x, np.tri(3, dtype=bool).tolist()), expected)
    assert np.array_equal(maskwise.attention(list(x), x, x, np.tri(3, dtype=bool)), expected)
    assert np.array_equal(maskwise.attention(x, x, x, is_causal=1), expected)  # type: ignore[arg-type]
    assert np.array_equal(maskwise.attention(x.tolist(), x.tolist(), x, is_causal=True), expected)
    bias = np.where(np.tri(3, dtype=bool), 0.0, -np.inf)
    assert np.array_equal(maskwise.attention(x, x, x, bias.tolist()), expected)
    with pytest.raises(TypeError, match="mask has dtype float64"):
        maskwise.attention(x, x, x, 0.0)


def test_the_gil_is_released() -> None:
    q, k, v = standard(heads=8, rows=2000, depth=64)
    ticks, done = 0, threading.Event()

    def attend() -> None:
        try:
            maskwise.attention(q, k, v)
        finally:
            done.set()

    worker = threading.Thread(target=attend)
    worker.start()
    while not done.is_set():
        time.sleep(0.001)
        ticks += not done.is_set()
    worker.join()
    assert ticks > 3  # a call that holds the GIL allows no ticks


def test_from_many_threads_at_once() -> None:
    """The calls need more plans than the cache holds."""
    calls = [standard(rows=rows) for rows in range(1, 100)]
    expected = [maskwise.attention(*call) for call in calls]
    wrong: list[int] = []

    def attend() -> None:
        for call, result in zip(calls, expected, strict=True):
            if not np.allclose(maskwise.attention(*call), result, rtol=1e-4, atol=1e-5):
                wrong.append(len(result))

    workers = [threading.Thread(target=attend) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_jax_arrays_give_jax_arrays(dtype: str) -> None:
    jax = pytest.importorskip("jax")
    q, k, v = (jax.numpy.array(operand, dtype) for operand in standard(rows=40))
    kept = jax.numpy.tri(40, dtype=bool)
    got = maskwise.attention(q, k, v, kept)
    assert isinstance(got, jax.Array) and got.dtype == q.dtype
    arrays = [np.asarray(operand) for operand in (q, k, v)]
    assert_close(np.asarray(got), reference(*arrays, is_causal=True), arrays[2])
    mixed = maskwise.attention(arrays[0], arrays[1], arrays[2], kept)
    assert isinstance(mixed, jax.Array)
    out = np.zeros_like(arrays[0])
    assert maskwise.attention(q, k, v, is_causal=True, out=out) is out
    assert np.array_equal(out, np.asarray(got))
    with pytest.raises((ValueError, TypeError), match=r"read-only|NumPy cannot write to"):
        maskwise.attention(q, k, v, out=q)
