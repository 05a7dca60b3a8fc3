"""Compares select() with ONNX Runtime and OpenVINO for the types that each host computes correctly.
The test_fault tests show faults of the hosts.

If a test_fault test fails because a new version has fixed the fault, move the type to ORT_RIGHT or
OV_RIGHT.
"""

from __future__ import annotations

from typing import Any

import maskwise
import numpy as np
import pytest
from arrays import BFLOAT16, DTYPES, Array, random_array
from onnx import TensorProto
from onnx_where import TYPES, where_model

ort = pytest.importorskip("onnxruntime")
ov = pytest.importorskip("openvino")
ops = pytest.importorskip("openvino.opset13")

ELEMENT = {dtype: element for element, dtype in TYPES.items()}
SHAPES = [
    ((5, 7), (5, 7), (5, 7)),
    ((7,), (3, 5, 7), ()),
    ((5, 1), (5, 7), (7,)),
    ((2, 1, 3, 1), (2, 4, 3, 40), (40,)),
    ((1000,), (30, 1000), (30, 1)),
]
ORT_RIGHT = [np.dtype(kind) for kind in "bBiIlLefd" if kind != "L"]
ORT_LACKS = [np.dtype(kind) for kind in "?hHL"]
OV_RIGHT = [np.dtype(kind) for kind in "?bBhHiIef"]


def draw(seed: int, shapes: Any, dtype: np.dtype[Any]) -> tuple[Array, Array, Array]:
    """Draws integer values, because the hosts may change NaN and -0.0."""
    random = np.random.default_rng(seed)
    condition = random_array(random, shapes[0], np.dtype(bool))
    if dtype == np.bool_:
        x, y = (random_array(random, shape, dtype) for shape in shapes[1:])
    else:
        least = 1 if dtype.kind in "u" else -100
        x, y = (random.integers(least, 100, shape).astype(dtype) for shape in shapes[1:])
    return condition, x, y


def run_ort(condition: Array, x: Array, y: Array) -> Array:
    shapes = [condition.shape, x.shape, y.shape]
    model = where_model(ELEMENT[x.dtype], shapes)
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    feeds = {"c": condition, "x": x, "y": y}
    return np.asarray(session.run(None, feeds)[0])


def run_openvino(condition: Array, x: Array, y: Array) -> Array:
    names = {"bool": "boolean"}
    kinds = [ov.Type.boolean] + [getattr(ov.Type, names.get(x.dtype.name, short(x.dtype)))] * 2
    parameters = [
        ops.parameter(array.shape, kind)
        for array, kind in zip((condition, x, y), kinds, strict=True)
    ]
    select = ops.select(*parameters, auto_broadcast="numpy")
    settings = {"INFERENCE_NUM_THREADS": 1, "EXECUTION_MODE_HINT": "ACCURACY"}
    compiled = ov.Core().compile_model(ov.Model([select], parameters), "CPU", settings)
    return np.asarray(compiled([condition, x, y])[0])


def short(dtype: np.dtype[Any]) -> str:
    return f"{dtype.kind}{8 * dtype.itemsize}"


@pytest.mark.parametrize("dtype", ORT_RIGHT, ids=str)
def test_types_that_onnx_runtime_computes_correctly(dtype: np.dtype[Any]) -> None:
    for seed, shapes in enumerate(SHAPES):
        arrays = draw(seed, shapes, dtype)
        assert np.array_equal(maskwise.select(*arrays, dialect="onnx_where_16"), run_ort(*arrays))


@pytest.mark.parametrize("dtype", OV_RIGHT, ids=str)
def test_types_that_openvino_computes_correctly(dtype: np.dtype[Any]) -> None:
    for seed, shapes in enumerate(SHAPES):
        arrays = draw(seed, shapes, dtype)
        assert np.array_equal(
            maskwise.select(*arrays, dialect="openvino_select_1"), run_openvino(*arrays)
        )


@pytest.mark.parametrize("dtype", [*ORT_LACKS, BFLOAT16], ids=str)
def test_fault_onnx_runtime_lacks_types(dtype: np.dtype[Any]) -> None:
    arrays = draw(1, SHAPES[0], dtype)
    with pytest.raises(Exception, match=r"NOT_IMPLEMENTED|bfloat16"):
        run_ort(*arrays)
    assert np.array_equal(maskwise.select(*arrays, dialect="onnx_where_16"), np.where(*arrays))


def test_fault_onnx_runtime_loses_the_sign_of_zero() -> None:
    condition, x, y = np.array([True, False]), np.full(2, -0.0, "f"), np.full(2, -0.0, "f")
    assert not np.signbit(run_ort(condition, x, y)[0])
    assert np.signbit(maskwise.select(condition, x, y, dialect="onnx_where_16")).all()


@pytest.mark.parametrize(("dtype", "value"), [("i8", 2**40 + 1), ("u8", 2**63 + 5)])
def test_fault_openvino_cuts_64_bits(dtype: str, value: int) -> None:
    condition, x = np.array([True, False]), np.full(2, value, dtype)
    y = np.zeros(2, dtype)
    assert run_openvino(condition, x, y)[0] != value
    assert maskwise.select(condition, x, y, dialect="openvino_select_1")[0] == value


def test_fault_openvino_computes_f64_as_f32() -> None:
    condition, x, y = np.array([True]), np.array([1 + 2**-40]), np.zeros(1)
    assert run_openvino(condition, x, y)[0] == 1.0
    assert maskwise.select(condition, x, y, dialect="openvino_select_1")[0] == x[0]


def test_every_type_is_listed() -> None:
    listed = {*ORT_RIGHT, *ORT_LACKS, BFLOAT16, np.dtype("F"), np.dtype("D")}
    assert listed >= {d for d in DTYPES if d.char not in "qQ"}
    assert TensorProto.BFLOAT16 in TYPES
