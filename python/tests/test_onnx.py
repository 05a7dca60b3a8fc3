"""ONNX's own judges: its node tests by its backend runner, and its reference evaluator."""

from __future__ import annotations

from typing import Any

import maskwise.onnx_backend as backend
import numpy as np
import onnx
import onnx_where
import pytest
from arrays import BFLOAT16, Array, assert_same_bits, random_array
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator
from onnx_where import TYPES, draw_shapes, expect_node_tests_pass, model_of, op

MODELS = 2400


NAMES = ["condition", "X", "Y", "output"]


def where_model(element: int, shapes: Any, opset: int = 16) -> onnx.ModelProto:
    return onnx.load_from_string(onnx_where.where_model(element, shapes, opset, NAMES))


def values(random: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    if dtype.kind == "O":
        return random.choice(np.array(["", "a", "bcd"], object), shape).reshape(shape)
    return random_array(random, shape, dtype)


def test_node_tests() -> None:
    expect_node_tests_pass(backend, __name__)


@pytest.mark.parametrize("element", TYPES, ids=TensorProto.DataType.Name)
def test_against_the_reference_evaluator(element: int) -> None:
    random = np.random.default_rng(element)
    dtype = TYPES[element]
    for _ in range(MODELS // len(TYPES)):
        shapes = draw_shapes(random)
        opset = int(random.integers(16 if dtype == BFLOAT16 else 9, 22))
        model = where_model(element, shapes, opset)
        feeds = {
            "condition": values(random, shapes[0], np.dtype(bool)),
            "X": values(random, shapes[1], dtype),
            "Y": values(random, shapes[2], dtype),
        }
        (expected,) = ReferenceEvaluator(model).run(None, feeds)
        (got,) = backend.run_model(model, list(feeds.values()))
        if dtype.kind == "O":
            assert (got.shape, got.tolist()) == (expected.shape, expected.tolist())
        else:
            assert_same_bits(got, np.asarray(expected))


def test_models_of_several_nodes_and_initializers() -> None:
    x = np.arange(6, dtype="f").reshape(2, 3)
    nodes = [
        op("Where", "condition", "X", "zero", "inner"),
        op("Where", "condition", "inner", "X", "output"),
    ]
    zero = onnx.numpy_helper.from_array(np.zeros((), "f"), "zero")
    one = where_model(TensorProto.FLOAT, [(3,), (2, 3), ()])
    graph = one.graph
    model = onnx.load_from_string(model_of(nodes, graph.input[:2], graph.output, [zero]))
    condition = np.array([True, False, True])
    (got,) = backend.prepare(model).run({"X": x, "condition": condition})
    assert_same_bits(got, x)
    with pytest.raises(ValueError, match="1 inputs given"):
        backend.prepare(model).run([x])


def test_an_input_that_is_missing_is_named() -> None:
    model = backend.prepare(where_model(TensorProto.FLOAT, [(), (), ()]))
    with pytest.raises(ValueError, match=r"'Y'.* missing"):
        model.run({"condition": np.array(True), "X": np.zeros((), "f")})


def test_sparse_initializers_are_refused() -> None:
    model = where_model(TensorProto.FLOAT, [(2,), (2,), (2,)])
    one = onnx.numpy_helper.from_array(np.ones(1, "f"), "Y")
    at = onnx.numpy_helper.from_array(np.zeros(1, "l"), "Y_indices")
    model.graph.sparse_initializer.append(helper.make_sparse_tensor(one, at, [2]))
    del model.graph.input[2]
    assert not backend.is_compatible(model)
    with pytest.raises(ValueError, match=r"sparse initializers .*'Y'"):
        backend.prepare(model)


def test_a_node_alone() -> None:
    node = op("Where", "a", "b", "c", "d")
    arrays = (np.array([True]), np.array([1], "i8"), np.array([2], "i8"))
    assert backend.run_node(node, arrays)[0].tolist() == [1]
    with pytest.raises(ValueError, match="operator Add"):
        backend.run_node(op("Add", "a", "b", "c"), arrays)


def test_bfloat16_is_of_opset_16() -> None:
    x = np.zeros(2, BFLOAT16)
    node = op("Where", "a", "b", "c", "d")
    assert backend.run_node(node, (x == 0, x, x), opset_version=16)[0].dtype == BFLOAT16
    with pytest.raises(TypeError, match="Where-9"):
        backend.run_node(node, (x == 0, x, x), opset_version=9)


def test_other_models_and_devices_are_refused() -> None:
    model = where_model(TensorProto.FLOAT, [(), (), ()])
    assert backend.is_compatible(model) and not backend.is_compatible(model, "CUDA:1")
    assert backend.supports_device("CPU:0") and not backend.supports_device("CUDA")
    other = onnx.ModelProto()
    other.CopyFrom(model)
    other.graph.node[0].op_type = "Mul"
    del other.graph.node[0].input[0]
    with pytest.raises(ValueError, match="Mul"):
        backend.prepare(other)
    with pytest.raises(ValueError, match="broadcast"):
        arrays = [np.ones(extent, dtype) for extent, dtype in zip((2, 3, 1), "?ff", strict=True)]
        backend.run_model(where_model(TensorProto.FLOAT, [(2,), (3,), (1,)]), arrays)


def test_all_types_of_the_schema_are_tested() -> None:
    schema = onnx.defs.get_schema("Where", 16)
    listed = next(c for c in schema.type_constraints if c.type_param_str == "T")
    assert len(listed.allowed_type_strs) == len(TYPES)
    assert len(TYPES) * (MODELS // len(TYPES)) >= 2000
