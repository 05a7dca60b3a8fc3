"""Compares maskwise.select with Where in ONNX's reference evaluator."""

from __future__ import annotations

from typing import Any

import maskwise
import numpy as np
import onnx
import onnx_where
import pytest
from arrays import BFLOAT16, Array, assert_same_bits, random_array
from onnx import TensorProto
from onnx.reference import ReferenceEvaluator
from onnx_where import TYPES, draw_shapes

MODELS = 2400


def values(random: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    if dtype.kind == "O":
        return random.choice(np.array(["", "a", "bcd"], object), shape).reshape(shape)
    return random_array(random, shape, dtype)


@pytest.mark.parametrize("element", TYPES, ids=TensorProto.DataType.Name)
def test_against_the_reference_evaluator(element: int) -> None:
    random = np.random.default_rng(element)
    dtype = TYPES[element]
    for _ in range(MODELS // len(TYPES)):
        shapes = draw_shapes(random)
        opset = int(random.integers(16 if dtype == BFLOAT16 else 9, 22))
        model = onnx.load_from_string(onnx_where.where_model(element, shapes, opset))
        kinds = (np.dtype(bool), dtype, dtype)
        feeds = [values(random, shape, kind) for shape, kind in zip(shapes, kinds, strict=True)]
        (expected,) = ReferenceEvaluator(model).run(None, dict(zip("cxy", feeds, strict=True)))
        got = maskwise.select(*feeds, dialect="onnx_where_16" if opset >= 16 else "onnx_where_9")
        if dtype.kind == "O":
            assert (got.shape, got.tolist()) == (expected.shape, expected.tolist())
        else:
            assert_same_bits(got, np.asarray(expected))


def test_all_types_of_the_schema_are_tested() -> None:
    schema = onnx.defs.get_schema("Where", 16)
    listed = next(c for c in schema.type_constraints if c.type_param_str == "T")
    assert len(listed.allowed_type_strs) == len(TYPES)
    assert len(TYPES) * (MODELS // len(TYPES)) >= 2000
