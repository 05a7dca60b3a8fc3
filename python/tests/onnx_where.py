"""Types, models and node tests of ONNX's Where."""

from __future__ import annotations

import unittest
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx.backend.test
from arrays import BFLOAT16
from onnx import TensorProto, helper

TYPES = {
    TensorProto.BOOL: np.dtype("?"),
    TensorProto.INT8: np.dtype("b"),
    TensorProto.INT16: np.dtype("h"),
    TensorProto.INT32: np.dtype("i"),
    TensorProto.INT64: np.dtype("l"),
    TensorProto.UINT8: np.dtype("B"),
    TensorProto.UINT16: np.dtype("H"),
    TensorProto.UINT32: np.dtype("I"),
    TensorProto.UINT64: np.dtype("L"),
    TensorProto.FLOAT16: np.dtype("e"),
    TensorProto.FLOAT: np.dtype("f"),
    TensorProto.DOUBLE: np.dtype("d"),
    TensorProto.COMPLEX64: np.dtype("F"),
    TensorProto.COMPLEX128: np.dtype("D"),
    TensorProto.STRING: np.dtype(object),
    TensorProto.BFLOAT16: BFLOAT16,
}
Shape = Sequence[int | str | None]


def op(kind: str, *names: str, **attributes: Any) -> onnx.NodeProto:
    """A node. The last of `names` is its output."""
    return helper.make_node(kind, names[:-1], names[-1:], **attributes)


def value(name: str, element: int, shape: Shape | None) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, element, shape)


def model_of(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: Sequence[onnx.ValueInfoProto],
    constants: Sequence[onnx.TensorProto] = (),
    opset: int = 16,
    inner_values: Sequence[onnx.ValueInfoProto] = (),
) -> bytes:
    """`inner_values`: shapes that the model declares for inner values."""
    graph = helper.make_graph(nodes, "test", inputs, outputs, constants, value_info=inner_values)
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    return bytes(helper.make_model(graph, opset_imports=imports, ir_version=10).SerializeToString())


def where_inputs(
    element: int, shapes: Sequence[Shape], names: Sequence[str] = "cxy"
) -> list[onnx.ValueInfoProto]:
    kinds = (TensorProto.BOOL, element, element)
    return [value(*one) for one in zip(names, kinds, shapes, strict=True)]


def where_model(
    element: int, shapes: Sequence[Shape], opset: int = 16, names: Sequence[str] = "cxyo"
) -> bytes:
    rank = max(map(len, shapes))
    inputs = where_inputs(element, shapes, names[:3])
    outputs = [value(names[3], element, [None] * rank)]
    return model_of([op("Where", *names, name="where")], inputs, outputs, opset=opset)


def choice(then: Sequence[onnx.NodeProto], otherwise: Sequence[onnx.NodeProto]) -> onnx.NodeProto:
    """An If on input b. Each branch has the f32 result r."""
    out = [value("r", TensorProto.FLOAT, None)]
    branches = [helper.make_graph(nodes, "branch", [], out) for nodes in (then, otherwise)]
    return op("If", "b", "o", then_branch=branches[0], else_branch=branches[1])


def draw_shapes(random: np.random.Generator) -> list[tuple[int, ...]]:
    """Three shapes that broadcast to each other. Any of them may have the most dimensions."""
    whole = [int(extent) for extent in random.integers(0, 8, int(random.integers(0, 5)))]
    shapes = []
    for _ in range(3):
        start = int(random.integers(0, len(whole) + 1))
        shapes.append(tuple(e if random.random() < 0.7 else 1 for e in whole[start:]))
    return shapes


def expect_node_tests_pass(backend: Any, module: str) -> None:
    runner = onnx.backend.test.BackendTest(backend, module)
    runner.include("^test_where_")
    suite = unittest.TestSuite()
    for case in runner.test_cases.values():
        suite.addTests(unittest.defaultTestLoader.loadTestsFromTestCase(case))
    result = unittest.TextTestRunner().run(suite)
    ran = result.testsRun - len(result.skipped)
    assert result.wasSuccessful(), result.failures + result.errors
    assert ran == 2, "test_where_example_cpu and test_where_long_example_cpu"
