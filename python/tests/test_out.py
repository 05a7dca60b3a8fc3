"""Tests where() with out=. Wrong arguments raise NumPy's exceptions, and out is unchanged."""

from __future__ import annotations

from typing import Any

import maskwise
import numpy as np
import pytest
from arrays import DTYPES, Array, assert_same_bits, lay_out, operands, random_array, run_python
from hypothesis import given
from hypothesis import strategies as st

one_dtype = st.sampled_from(DTYPES).map(lambda dtype: (np.dtype(bool), dtype, dtype))
two_dtypes = st.sampled_from(["bfd", "?iq", "iIq", "lef"]).map(lambda kinds: tuple(kinds))


@given(operands(st.one_of(one_dtype, two_dtypes.map(lambda k: tuple(map(np.dtype, k))))), st.data())
def test_out_of_every_layout(arrays: tuple[Array, Array, Array], data: st.DataObject) -> None:
    expected = np.where(*arrays)
    layout = data.draw(st.sampled_from(["dense", "misaligned", "permuted", "stepped"]))
    out = lay_out(np.random.default_rng(1), expected, layout)
    guard = out.base.copy() if out.base is not None else None
    out[...] = np.zeros((), expected.dtype)
    assert maskwise.where(*arrays, out=out) is out
    assert_same_bits(out.copy(), expected)
    if guard is not None:  # memory between the elements of out is unchanged
        assert out.base.tobytes() == guard.tobytes()


@pytest.mark.parametrize("dtype", ["u1", "e", "f", "d", "D"])
@pytest.mark.parametrize("count", [1, 15, 64, 1000, 300_000])
def test_in_place(dtype: str, count: int) -> None:
    random = np.random.default_rng(2)
    x, y = (random_array(random, (count,), np.dtype(dtype)) for _ in range(2))
    condition = random.random(count) < 0.5
    expected = np.where(condition, x, y)
    for into_first in (True, False):
        a, b = x.copy(), y.copy()
        assert_same_bits(maskwise.where(condition, a, b, out=a if into_first else b), expected)


def test_in_place_while_the_other_operand_is_cast() -> None:
    x, y = np.arange(50_000.0), np.arange(50_000, dtype="i2")
    condition = x % 3 == 0
    expected = np.where(condition, x, y)
    assert_same_bits(maskwise.where(condition, x, y, out=x), expected)


def refused(kind: type[Exception], text: str, condition: Any, x: Any, y: Any, out: Any) -> None:
    before = np.asarray(out).tobytes()
    with pytest.raises(kind, match=text):
        maskwise.where(condition, x, y, out=out)
    assert np.asarray(out).tobytes() == before


c = np.array([True, False, True, False])
f = np.arange(4, dtype="f")


def test_shapes_that_do_not_broadcast() -> None:
    for where in (np.where, maskwise.where):
        with pytest.raises(ValueError, match=r"could not be broadcast .*\(4,\) \(3,\) \(4,\)"):
            where(c, f[:3], f)
    refused(ValueError, "could not be broadcast", c, f[:3], f, np.zeros(4, "f"))


@pytest.mark.parametrize(
    ("kind", "text", "out"),
    [
        (ValueError, r"out has shape \(5,\), the result is \(4,\)", np.zeros(5, "f")),
        (ValueError, r"out has shape \(1, 4\)", np.zeros((1, 4), "f")),
        (ValueError, r"out has shape \(\)", np.zeros((), "f")),
        (TypeError, "out has dtype float64, the result is float32", np.zeros(4)),
        (TypeError, "out has dtype >f4", np.zeros(4, ">f4")),
        (ValueError, "output array is read-only", np.broadcast_to(np.float32(0), (4,))),
        (TypeError, "out must be a numpy.ndarray, not list", [0.0] * 4),
        (
            ValueError,
            "overlap",
            np.lib.stride_tricks.as_strided(np.zeros(4, "f"), (4,), (0,)),
        ),
    ],
    ids=str,
)
def test_out_that_cannot_receive_the_result(kind: type[Exception], text: str, out: Any) -> None:
    refused(kind, text, c, f, f + 1, out)


class Overriding:
    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def __array_function__(self, *_: Any) -> Any:
        return self.answer


@pytest.mark.parametrize(
    ("text", "answer", "out"),
    [
        ("out is of type list, expected an array", f, [0.0] * 4),
        ("the result is of type int, expected an array", 5, np.zeros(4, "f")),
    ],
)
def test_out_of_an_overridden_numpy_where(text: str, answer: Any, out: Any) -> None:
    with pytest.raises(TypeError, match=text):
        maskwise.where(c, Overriding(answer), f, out=out)


@pytest.mark.parametrize("strides", [(0, 4), (4, 4), (8, 1)])
@pytest.mark.parametrize("kinds", ["?ff", "?lf", "dff"])
def test_out_whose_elements_overlap(kinds: str, strides: tuple[int, int]) -> None:
    """Operands of kinds ?ff are read in place. NumPy casts other operands piece by piece."""
    condition, x, y = (np.ones((5, 6), kind)[:, ::2] for kind in kinds)
    memory = np.zeros(40, np.result_type(x, y))
    out = np.lib.stride_tricks.as_strided(memory, (5, 3), strides)
    with pytest.raises(ValueError, match="may have elements that overlap"):
        maskwise.where(condition, x, y, out=out)
    assert not memory.any()


def test_out_that_overlaps_in_part() -> None:
    memory = np.arange(10, dtype="f")
    y = np.ones(4, "f")
    shared = r"out, of shape \(4,\), shares memory with {}, of shape \({}\)"
    refused(ValueError, shared.format("x", "4,"), c, memory[:4], y, memory[1:5])
    refused(ValueError, shared.format("y", "4,"), c, y, memory[3::-1], memory[:4])
    refused(ValueError, shared.format("y", "1,"), c, y, memory[:1], memory[:4])
    refused(ValueError, shared.format("condition", "4,"), memory.view(bool)[:4], y, y, memory[:4])
    # Interleaved arrays without a common byte do not overlap.
    expected = np.where(c, memory[1:8:2], y)
    assert_same_bits(maskwise.where(c, memory[1:8:2], y, out=memory[:8:2]).copy(), expected)


def test_numbers_of_arguments_and_keywords() -> None:
    with pytest.raises(ValueError, match="either both or neither of x and y should be given"):
        maskwise.where(c, f)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match=r"1 or 3 positional arguments.*got 0"):
        maskwise.where()  # type: ignore[call-overload]
    with pytest.raises(TypeError, match=r"1 or 3 positional arguments.*got 4"):
        maskwise.where(c, f, f, f)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="unexpected keyword argument 'like'"):
        maskwise.where(c, f, f, like=f)  # type: ignore[call-overload]


def test_types_without_a_common_type() -> None:
    import ml_dtypes

    bf16 = f.astype(ml_dtypes.bfloat16)
    for where in (np.where, maskwise.where):
        with pytest.raises(TypeError, match="could not be promoted"):
            where(c, bf16, f.astype("e"))


def test_an_unknown_instruction_set_is_an_error() -> None:
    code = "import maskwise; maskwise.where([True], [1], [2])"
    ran = run_python("-c", code, MASKWISE_MAX_ISA="avx9")
    assert ran.returncode == 1
    assert "ValueError" in ran.stderr and "avx9" in ran.stderr


@pytest.mark.parametrize("kind", ["O", "S3"])
def test_partial_overlaps_of_dtypes_that_numpy_runs_are_refused(kind: str) -> None:
    memory = np.arange(8).astype(kind)
    before = memory.tolist()
    condition = np.array([True, False, True, False])
    for out in (memory[1:5], memory[3::-1], memory[:8:2]):
        with pytest.raises(ValueError, match="shares memory with x"):
            maskwise.where(condition, memory[:4], memory[4:].copy(), out=out)
    assert memory.tolist() == before
    expected = np.where(condition, memory[:4], memory[4:]).tolist()
    assert maskwise.where(condition, memory[:4], memory[4:], out=memory[:4]).tolist() == expected
