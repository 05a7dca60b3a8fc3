"""Builds OpenVINO models of Select, and runs OpenVINO models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import maskwise.openvino
import numpy as np
import openvino as ov
from arrays import BFLOAT16, Array
from openvino import opset13 as ops

# All types that Maskwise supports for Select-1.
TYPES = {
    ov.Type.boolean: np.dtype("?"),
    ov.Type.i8: np.dtype("b"),
    ov.Type.u8: np.dtype("B"),
    ov.Type.i16: np.dtype("h"),
    ov.Type.u16: np.dtype("H"),
    ov.Type.bf16: BFLOAT16,
    ov.Type.f16: np.dtype("e"),
    ov.Type.i32: np.dtype("i"),
    ov.Type.u32: np.dtype("I"),
    ov.Type.f32: np.dtype("f"),
    ov.Type.i64: np.dtype("l"),
    ov.Type.u64: np.dtype("L"),
    ov.Type.f64: np.dtype("d"),
}
# f32, because OpenVINO computes in bf16 on some CPUs.
SETTINGS = {"INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "LATENCY"}
Shape = Sequence[int]
Node = Any


def select_model(
    shapes: Sequence[Shape],
    element: ov.Type = ov.Type.f32,
    broadcast: str = "numpy",
    then: Callable[[Node], Node] = lambda select: select,
) -> ov.Model:
    """Builds a model of three parameters and a Select named select. `then` builds the Select's
    consumer."""
    kinds = (ov.Type.boolean, element, element)
    inputs = [
        ops.parameter(shape, kind, name=name)
        for name, shape, kind in zip("cxy", shapes, kinds, strict=True)
    ]
    select = ops.select(*inputs, auto_broadcast=broadcast, name="select")
    return ov.Model([then(select)], inputs, "model")


def selects(model: ov.Model) -> list[str]:
    """Returns the operation set of each Select. OpenVINO's own Select has opset1."""
    types = [node.get_type_info() for node in model.get_ordered_ops()]
    return [type_.version_id for type_ in types if type_.name == "Select"]


def kinds_of_run(compiled: ov.CompiledModel) -> list[str]:
    """Returns the CPU plugin's layer type of each node. An extension's operation has type
    Reference."""
    nodes = compiled.get_runtime_model().get_ordered_ops()
    return [node.get_rt_info()["layerType"].astype(str) for node in nodes]


def count_taken(model: ov.Model | ov.CompiledModel) -> int:
    """Counts the operations that Maskwise runs in a compiled model, except in bodies of If and
    Loop."""
    compiled = compile_model(model) if isinstance(model, ov.Model) else model
    return kinds_of_run(compiled).count("Reference")


def run(compiled: ov.CompiledModel, arrays: Sequence[Array]) -> Array:
    """Returns the first output. Passes bfloat16 inputs as uint16."""
    request = compiled.create_infer_request()
    for port, array in zip(compiled.inputs, arrays, strict=True):
        bits = np.ascontiguousarray(array).reshape(array.shape)
        bits = bits.view(np.uint16) if bits.dtype == BFLOAT16 else bits
        # OpenVINO 2026.0 refuses arrays without dimensions or elements.
        flat = np.atleast_1d(bits if bits.size else np.zeros(1, bits.dtype))
        request.set_tensor(port, ov.Tensor(flat, array.shape, port.element_type))
    request.infer(share_outputs=True)
    tensor = request.get_output_tensor(0)
    dtype = TYPES[tensor.element_type]
    return np.array(tensor.data).view(dtype).reshape(tuple(tensor.shape))


def accelerate(model: ov.Model, **options: Any) -> ov.Model:
    """Accelerates the model for the precision in SETTINGS."""
    return maskwise.openvino.accelerate(model, **{"precision": "f32", **options})


def compile_model(model: ov.Model, **settings: Any) -> ov.CompiledModel:
    return ov.Core().compile_model(model, "CPU", {**SETTINGS, **settings})
