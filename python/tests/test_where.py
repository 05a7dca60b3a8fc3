"""Compares maskwise.where with numpy.where, bitwise."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator
from typing import Any

import maskwise
import numpy as np
import pytest
from arrays import BFLOAT16, DATES, DTYPES, Array, assert_same_bits, lay_out, operands, random_array
from hypothesis import example, given
from hypothesis import strategies as st

BOOL = np.dtype(bool)
one_dtype = st.sampled_from(DTYPES + DATES).map(lambda dtype: (BOOL, dtype, dtype))


def has_common_dtype(dtypes: tuple[np.dtype[Any], ...]) -> bool:
    try:
        np.result_type(*dtypes[1:])
    except TypeError:
        return False
    return True


any_dtypes = st.tuples(*[st.sampled_from(DTYPES)] * 3).filter(has_common_dtype)


def assert_like_numpy(*arguments: Any) -> None:
    """maskwise.where is bit-identical to numpy.where, or raises an error of the same type."""
    try:
        expected = np.where(*arguments)
    except (TypeError, OverflowError) as failure:
        with pytest.raises(type(failure)):
            maskwise.where(*arguments)
        return
    if expected.dtype == object:
        assert maskwise.where(*arguments).tolist() == expected.tolist()
    else:
        assert_same_bits(maskwise.where(*arguments), expected)


@pytest.fixture(autouse=True)
def quiet_casts() -> Iterator[None]:
    """Ignores the warnings of NumPy's casts of random bits."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        yield


@given(operands(one_dtype))
def test_every_dtype_shape_and_layout(arrays: tuple[Array, Array, Array]) -> None:
    got, expected = maskwise.where(*arrays), np.where(*arrays)
    assert_same_bits(got, expected)
    assert got.strides == expected.strides
    assert "numpy.where" not in maskwise.explain(*arrays)


@given(operands(any_dtypes))
def test_promotion_and_conditions_of_every_dtype(arrays: tuple[Array, Array, Array]) -> None:
    got, expected = maskwise.where(*arrays), np.where(*arrays)
    assert_same_bits(got, expected)
    assert got.strides == expected.strides


@pytest.mark.parametrize("pair", list(itertools.product(DTYPES, DTYPES)), ids=str)
def test_every_pair_of_dtypes(pair: tuple[np.dtype[Any], np.dtype[Any]]) -> None:
    random = np.random.default_rng(1)
    x, y = (random_array(random, (3, 40), dtype) for dtype in pair)
    condition = random_array(random, (40,), BOOL)
    assert_like_numpy(condition, x, y)


@pytest.mark.parametrize("dtype", [*DTYPES, np.dtype("g")], ids=str)
def test_truth_of_every_dtype(dtype: np.dtype[Any]) -> None:
    condition = np.array([0, 1, 0, 2, 7, 0], dtype)
    if dtype.kind in "fcV":
        condition[:3] = [np.nan, -0.0, np.inf]
    x, y = np.arange(6.0), -np.arange(6.0)
    assert_same_bits(maskwise.where(condition, x, y), np.where(condition, x, y))


def test_any_byte_but_0_is_true() -> None:
    condition = np.arange(256, dtype=np.uint8)
    x, y = np.zeros(256, "f4"), np.ones(256, "f4")
    for view in (condition, condition.view(np.int8), condition.view(bool)):
        assert_same_bits(maskwise.where(view, x, y), np.where(view, x, y))
        assert "are read in place" in maskwise.explain(view, x, y)


numbers = st.one_of(
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.complex_numbers(),
    st.sampled_from([np.float32(1.5), np.int8(-3), np.bool_(True), np.uint64(2**63)]),
    st.just(np.array(3, "i2")),
)


@given(numbers, st.sampled_from(DTYPES), st.booleans())
@example(300, np.dtype("u1"), True)
@example(1e300, np.dtype("f4"), True)
def test_a_number_beside_an_array(number: Any, dtype: np.dtype[Any], second: bool) -> None:
    array = random_array(np.random.default_rng(2), (5,), dtype)
    condition = np.array([True, False, True, False, True])
    sides = (array, number) if second else (number, array)
    assert_like_numpy(condition, *sides)


@given(numbers, numbers)
@example(2**63, 1)
@example(2**63, 2**63)
@example(-1, 2**64 - 1)
@example(2**63, True)
def test_two_numbers(x: Any, y: Any) -> None:
    assert_like_numpy(np.array([True, False, True]), x, y)


def test_a_number_that_does_not_fit_warns_as_numpy_does() -> None:
    array = np.zeros(3, "f4")
    for where in (np.where, maskwise.where):
        with pytest.warns(RuntimeWarning, match="overflow encountered in cast"):
            where([True, False, True], array, 1e300)


@pytest.mark.parametrize("arguments", [(True, 1, 2), (0, 1.5, 2), (np.array(True), "a", "b")])
def test_scalars_give_an_array_without_dimensions(arguments: tuple[Any, Any, Any]) -> None:
    assert_same_bits(maskwise.where(*arguments), np.where(*arguments))


@pytest.mark.parametrize("dtype", ["u1", "e", BFLOAT16, "f", "d", "F", "D"])
@pytest.mark.parametrize("mask", ["random", "true", "false", "causal"])
def test_operands_large_enough_for_every_thread(dtype: Any, mask: str) -> None:
    random = np.random.default_rng(3)
    x, y = (random_array(random, (700, 1000), np.dtype(dtype)) for _ in range(2))
    condition = {
        "random": random.random((700, 1000)) < 0.5,
        "true": np.ones((700, 1000), bool),
        "false": np.zeros((700, 1000), bool),
        "causal": np.tri(700, 1000, dtype=bool),
    }[mask]
    assert_same_bits(maskwise.where(condition, x, y), np.where(condition, x, y))
    assert_same_bits(maskwise.where(condition.T, x.T, y.T), np.where(condition.T, x.T, y.T))


def test_32_dimensions() -> None:
    shape = (2,) + (1,) * 30 + (3,)
    random = np.random.default_rng(4)
    x = random_array(random, shape, np.dtype("f"))
    condition = random_array(random, (2,) + (1,) * 31, BOOL)
    assert_same_bits(maskwise.where(condition, x, x[..., :1]), np.where(condition, x, x[..., :1]))


def test_more_layouts_than_cached_plans() -> None:
    for extent in [*range(1, 300), *range(1, 300)]:
        x = np.arange(extent, dtype="f")
        assert_same_bits(maskwise.where(x < 7, x, 0.5), np.where(x < 7, x, 0.5))


@pytest.mark.parametrize("count", [3, 1000, 20_000])
@pytest.mark.parametrize("swapped", [False, True])
def test_dates_without_a_unit(count: int, swapped: bool) -> None:
    """NumPy refuses these casts. From 500 elements on, NumPy casts without the GIL."""
    dates = [np.zeros(count, "M8[Y]"), np.zeros(count, "M8")]
    condition = np.ones(count, bool)
    for where in (np.where, maskwise.where):
        with pytest.raises(ValueError, match="generic units"):
            where(condition, *(dates[::-1] if swapped else dates))
    nat = np.full(count, "NaT", "M8")
    assert_same_bits(maskwise.where(condition, dates[0], nat), np.where(condition, dates[0], nat))
    assert maskwise.explain(condition, *dates).startswith(
        "numpy.where: NumPy converts dates without a unit"
    )
    assert maskwise.explain(condition, nat, nat).startswith("maskwise: ")


@pytest.mark.parametrize("kind", ["f8", "M8[s]", "c16"])
def test_results_have_no_dtype_metadata(kind: str) -> None:
    noted = np.zeros(3, np.dtype(kind, metadata={"unit": "m"}))
    for y in (noted, np.zeros(3, kind)):
        got, expected = maskwise.where([1, 0, 1], noted, y), np.where([1, 0, 1], noted, y)
        assert_same_bits(got, expected)
        assert got.dtype.metadata is expected.dtype.metadata is None
    assert maskwise.where([1, 0, 1], noted, noted, out=noted) is noted


def test_misaligned_memory_is_read_in_place() -> None:
    random = np.random.default_rng(5)
    x = lay_out(random, random_array(random, (9, 50), np.dtype("d")), "misaligned")
    assert not x.flags.aligned
    condition = random_array(random, (9, 50), BOOL)
    assert "are read in place" in maskwise.explain(condition, x, x[::-1])
    assert_same_bits(maskwise.where(condition, x, x[::-1]), np.where(condition, x, x[::-1]))


def test_casts_of_signalling_nans_do_not_warn() -> None:
    signalling = np.array([0x7FA00000], "u4").view("f")
    with np.errstate(invalid="raise"):
        for array in (signalling, np.repeat(signalling, 20_000)):
            wanted = np.where(True, array, np.float64(1))
            assert maskwise.where(True, array, np.float64(1)).tobytes() == wanted.tobytes()
            assert np.array_equal(maskwise.where(array, 1, 2), np.where(array, 1, 2))
        doubles = np.array([0x7FF4000000000000], "u8").view("d")
        wanted = np.where(True, doubles, np.complex64(1))
        assert maskwise.where(True, doubles, np.complex64(1)).tobytes() == wanted.tobytes()
        for condition in (doubles, np.repeat(doubles, 2).view("D")):
            assert np.array_equal(maskwise.where(condition, 1, 2), np.where(condition, 1, 2))
        for where in (np.where, maskwise.where):
            with pytest.raises(FloatingPointError):
                where(True, signalling[0], np.float64(1))
    with pytest.warns(RuntimeWarning, match="overflow"):
        maskwise.where(True, np.zeros(3, "e"), 1e6)
