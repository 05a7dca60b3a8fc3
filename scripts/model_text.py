"""Writes and reads ONNX models as text: the whole graph, one line per node.

A tensor of many equal elements is written as one value, and a tensor of many finite floats as a
standard deviation. Other tensors are written in full, because models compute shapes from them.
`read` creates the same model on every machine, with weights from fixed seeds.
"""

import json
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

MOST_VALUES = 16  # constants with more elements are weights
FLOATS = {TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE}


def tensor_text(tensor: TensorProto) -> dict[str, Any]:
    array = numpy_helper.to_array(tensor)
    text = {"type": TensorProto.DataType.Name(tensor.data_type), "dims": list(array.shape)}
    if array.size > MOST_VALUES and (array == array.flat[0]).all():
        return {**text, "fill": array.flat[0].item()}
    if array.size > MOST_VALUES and tensor.data_type in FLOATS and np.isfinite(array).all():
        return {**text, "scale": float(f"{array.std():.1g}")}
    return {**text, "values": array.ravel().tolist()}


def tensor_of(name: str, text: dict[str, Any]) -> TensorProto:
    kind = helper.tensor_dtype_to_np_dtype(TensorProto.DataType.Value(text["type"]))
    if "values" in text:
        array = np.array(text["values"], kind).reshape(text["dims"])
    elif "fill" in text:
        array = np.full(text["dims"], text["fill"], kind)
    else:
        random = np.random.default_rng(zlib.crc32(name.encode()))
        array = random.standard_normal(text["dims"], np.float32) * np.float32(text["scale"])
    return numpy_helper.from_array(array.astype(kind, copy=False), name)


def value_text(value: onnx.ValueInfoProto) -> list[Any]:
    kind = value.type.tensor_type
    dims = None
    if kind.HasField("shape"):
        # An extent is a number, the name of a dynamic extent, or None if unknown.
        dims = [getattr(dim, dim.WhichOneof("value") or "", None) for dim in kind.shape.dim]
    return [value.name, TensorProto.DataType.Name(kind.elem_type), dims]


def value_of(text: list[Any]) -> onnx.ValueInfoProto:
    name, kind, dims = text
    return helper.make_tensor_value_info(name, TensorProto.DataType.Value(kind), dims)


def attribute_text(attribute: onnx.AttributeProto) -> object:
    value = helper.get_attribute_value(attribute)
    if attribute.type == onnx.AttributeProto.TENSOR:
        return tensor_text(value)
    if attribute.type == onnx.AttributeProto.STRING:
        return value.decode()
    if attribute.type in (onnx.AttributeProto.INT, onnx.AttributeProto.FLOAT):
        return value
    if attribute.type in (onnx.AttributeProto.INTS, onnx.AttributeProto.FLOATS):
        return list(value)
    raise ValueError(
        f"attribute {attribute.name} of type {attribute.type} cannot be written as text"
    )


def node_text(node: onnx.NodeProto) -> list[Any]:
    attributes = {one.name: attribute_text(one) for one in node.attribute}
    return [node.op_type, node.name, list(node.input), list(node.output), attributes]


def node_of(text: list[Any]) -> onnx.NodeProto:
    kind, name, inputs, outputs, attributes = text
    for key, value in attributes.items():
        if isinstance(value, dict):
            attributes[key] = tensor_of(f"{name}.{key}", value)
    return helper.make_node(kind, inputs, outputs, name, **attributes)


def listed(key: str, lines: Iterable[Any]) -> str:
    return f'"{key}": [\n' + ",\n".join(json.dumps(line) for line in lines) + "\n]"


def text_of(model: onnx.ModelProto, made_by: str) -> str:
    """Returns a model as text, without large weights and documentation."""
    graph = model.graph
    if model.functions or graph.sparse_initializer or any(one.domain for one in graph.node):
        others = "functions, sparse weights and operators of other domains"
        raise ValueError(f"{graph.name}: {others} cannot be written as text")
    head = {
        "made_by": made_by,
        "ir": model.ir_version,
        "opset": model.opset_import[0].version,
        "name": graph.name,
    }
    parts = [f'"{key}": {json.dumps(value)}' for key, value in head.items()]
    parts += [
        listed("inputs", map(value_text, graph.input)),
        listed("outputs", map(value_text, graph.output)),
        listed("nodes", map(node_text, graph.node)),
        listed("weights", ([one.name, tensor_text(one)] for one in graph.initializer)),
        listed("values", map(value_text, graph.value_info)),
    ]
    return "{\n" + ",\n".join(parts) + "\n}\n"


def model_of(text: str) -> onnx.ModelProto:
    """Returns the ModelProto that a text describes."""
    read = json.loads(text)
    graph = helper.make_graph(
        [node_of(one) for one in read["nodes"]],
        read["name"],
        [value_of(one) for one in read["inputs"]],
        [value_of(one) for one in read["outputs"]],
        [tensor_of(name, one) for name, one in read["weights"]],
        value_info=[value_of(one) for one in read["values"]],
    )
    opsets = [helper.make_opsetid("", read["opset"])]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=read["ir"])
    onnx.checker.check_model(model)
    return model


def read(path: Path) -> onnx.ModelProto:
    return model_of(path.read_text())
