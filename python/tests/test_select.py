"""Tests the types and the broadcast of each dialect of maskwise.select."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, get_args

import maskwise
import numpy as np
import pytest
from arrays import BFLOAT16, DTYPES, assert_same_bits, random_array
from maskwise._select import Dialect

COMPLEX = [np.dtype("F"), np.dtype("D")]
TYPES = {
    "onednn_select": [np.dtype("f"), np.dtype("e"), BFLOAT16],
    "openvino_select_1": [dtype for dtype in DTYPES if dtype not in COMPLEX],
    "onnx_where_9": [dtype for dtype in DTYPES if dtype != BFLOAT16],
    "onnx_where_16": DTYPES,
}
c = np.array([True, False, True])
f = np.arange(3, dtype="f")


@pytest.mark.parametrize("dialect", TYPES)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_types(dialect: Any, dtype: np.dtype[Any]) -> None:
    random = np.random.default_rng(1)
    x, y = random_array(random, (4, 3), dtype), random_array(random, (3,), dtype)
    if dtype in TYPES[dialect]:
        assert_same_bits(maskwise.select(c, x, y, dialect=dialect), np.where(c, x, y))
    else:
        with pytest.raises(TypeError, match=r"::"):
            maskwise.select(c, x, y, dialect=dialect)


def test_dialects_are_named_as_in_cpp() -> None:
    header = (Path(__file__).resolve().parents[2] / "include/maskwise/maskwise.hpp").read_text()
    (body,) = re.findall(r"enum class dialect [^{]*\{(.*?)\}", header, re.DOTALL)
    names = re.findall(r"^ *(\w+),", body, re.MULTILINE)
    assert list(TYPES) == names == list(get_args(Dialect))


def test_the_default_dialect_selects_integers() -> None:
    assert maskwise.select([True, False], [1, 2], [3, 4]).tolist() == [1, 4]
    y = np.arange(3)
    assert_same_bits(maskwise.select(c, y, y + 5), np.where(c, y, y + 5))


@pytest.mark.parametrize("dialect", TYPES)
def test_cond_may_expand_the_result_in_onnx_only(dialect: Any) -> None:
    cond = np.array([[True], [False]])
    if dialect.startswith("onnx"):
        assert_same_bits(maskwise.select(cond, f, f + 1, dialect=dialect), np.where(cond, f, f + 1))
    else:
        with pytest.raises(ValueError, match=r"\{2,1\}"):
            maskwise.select(cond, f, f + 1, dialect=dialect)


@pytest.mark.parametrize("dialect", ["onednn_select", "openvino_select_1"])
def test_no_broadcast(dialect: Any) -> None:
    same = maskwise.select(c, f, f + 1, auto_broadcast="none", dialect=dialect)
    assert_same_bits(same, np.where(c, f, f + 1))
    with pytest.raises(ValueError, match=r"\{3\}.*\{1\}|\{1\}.*\{3\}"):
        maskwise.select(c, f, f[:1], auto_broadcast="none", dialect=dialect)


@pytest.mark.parametrize("dialect", ["onnx_where_16", "onnx_where_9"])
def test_onnx_refuses_auto_broadcast_none(dialect: Any) -> None:
    with pytest.raises(ValueError, match="auto_broadcast is 'none', expected numpy"):
        maskwise.select(c, f, f + 1, auto_broadcast="none", dialect=dialect)


def test_the_example_of_openvino() -> None:
    cond = np.array([[False, False], [True, False], [True, True]])
    then, other = np.array([[-1, 0], [1, 2], [3, 4]]), np.array([[11, 10], [9, 8], [7, 6]])
    selected = maskwise.select(cond, then, other, dialect="openvino_select_1")
    assert selected.tolist() == [[11, 10], [1, 8], [3, 4]]


@pytest.mark.parametrize("dtype", [object, str, np.dtypes.StringDType()])
def test_text_in_onnx(dtype: Any) -> None:
    x, y = np.array(["a", "", "ccc"], dtype), np.array(["y"], dtype)
    assert maskwise.select(c, x, y, dialect="onnx_where_16").tolist() == ["a", "y", "ccc"]
    with pytest.raises(TypeError, match="string"):
        maskwise.select(c, x, y)
    with pytest.raises(ValueError, match=r"\{3\}"):
        maskwise.select(c[:2], x, y, dialect="onnx_where_16")


@pytest.mark.parametrize("dtype", [object, "U3", "f"])
def test_the_result_is_row_major(dtype: Any) -> None:
    x = np.arange(6).reshape(2, 3).astype("U1").astype(dtype).T
    selected = maskwise.select(np.ones((2, 3), bool).T, x, x, dialect="onnx_where_16")
    assert selected.flags.c_contiguous and selected.tolist() == x.tolist()
    assert maskwise.select(True, x[0, 0], x[0, 0], dialect="onnx_where_16").shape == ()


def test_objects_that_are_no_text() -> None:
    x = np.array(["a", 7, "c"], object)
    with pytest.raises(TypeError, match="src_1 holds 7, expected str"):
        maskwise.select(c, x[[0, 2, 2]], x, dialect="onnx_where_16")


@pytest.mark.parametrize(
    ("kind", "text", "arguments", "keywords"),
    [
        (TypeError, "cond", (f, f, f), {}),
        (TypeError, "cond", (c.view("u1"), f, f), {}),
        (TypeError, "f32.*f64|f64.*f32", (c, f, f.astype("d")), {"dialect": "openvino_select_1"}),
        (
            TypeError,
            "src_1 has dtype longdouble|src_1 has dtype float128",
            (c, f, f.astype("g")),
            {},
        ),
        (TypeError, "src_0 has dtype datetime64", (c, f.astype("M8[s]"), f.astype("M8[s]")), {}),
        (ValueError, "dialect is 'tosa', expected one of onednn", (c, f, f), {"dialect": "tosa"}),
        (ValueError, "auto_broadcast is 'pdpd'", (c, f, f), {"auto_broadcast": "pdpd"}),
    ],
)
def test_refusals(
    kind: type[Exception], text: str, arguments: tuple[Any, ...], keywords: dict[str, Any]
) -> None:
    with pytest.raises(kind, match=text):
        maskwise.select(*arguments, **keywords)
