"""ONNX's Where: its types, and its node tests."""

from __future__ import annotations

import unittest
from typing import Any

import numpy as np
import onnx.backend.test
from arrays import BFLOAT16
from onnx import TensorProto

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


def draw_shapes(random: np.random.Generator) -> list[tuple[int, ...]]:
    """Three shapes that broadcast to each other, condition's the largest in some."""
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
