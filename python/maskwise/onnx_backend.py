"""An ONNX backend for models of Where nodes; needs the package onnx.

    import maskwise.onnx_backend as backend
    (dst,) = backend.run_model(model, [condition, x, y])

Where-9 and Where-16 by their own types and broadcast, bfloat16 (as ml_dtypes) and text included.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, numpy_helper
from onnx.backend.base import Backend, BackendRep

from maskwise import _arguments
from maskwise._select import Dialect, select


def where_dialect(model: ModelProto) -> Dialect | None:
    """The form of Where that the model's opset means; None where it has none."""
    for opset in model.opset_import:
        if opset.domain in ("", "ai.onnx") and opset.version >= 9:
            return "onnx_where_16" if opset.version >= 16 else "onnx_where_9"
    return None


def is_where(node: NodeProto) -> bool:
    return node.op_type == "Where" and node.domain in ("", "ai.onnx")


def list_of(inputs: Any) -> list[Any]:
    if isinstance(inputs, str | bytes) or not hasattr(type(inputs), "__iter__"):
        raise TypeError(f"inputs is {_arguments.shown(inputs)}, expected a sequence of arrays")
    return list(inputs)


class WhereModel(BackendRep):
    """A model of Where nodes, checked and in the order of execution."""

    def __init__(self, model: ModelProto, dialect: Dialect) -> None:
        graph = model.graph
        self.dialect: Dialect = dialect
        self.constants = {one.name: numpy_helper.to_array(one) for one in graph.initializer}
        self.inputs = [one.name for one in graph.input if one.name not in self.constants]
        self.nodes = [(list(node.input), node.output[0]) for node in graph.node]
        self.outputs = [one.name for one in graph.output]

    def run(self, inputs: Any, **kwargs: Any) -> tuple[NDArray[Any], ...]:
        """The outputs for the inputs in the graph's order, or by name.

        Raises
        ------
        ValueError
            Another number of inputs or one that is missing, shapes that do not broadcast.
        TypeError
            dtypes that this Where does not have, inputs that are no sequence or dict.
        """
        values: dict[str, Any] = dict(self.constants)
        values.update(inputs if isinstance(inputs, dict) else self.by_name(list_of(inputs)))
        missing = [name for name in self.inputs if name not in values]
        if missing:
            raise ValueError(f"inputs {missing} are missing, the model has {self.inputs}")
        for (condition, x, y), output in self.nodes:
            values[output] = select(values[condition], values[x], values[y], dialect=self.dialect)
        return tuple(values[name] for name in self.outputs)

    def by_name(self, inputs: Sequence[Any]) -> dict[str, Any]:
        if len(inputs) != len(self.inputs):
            raise ValueError(f"{len(inputs)} inputs given, the model has {self.inputs}")
        return dict(zip(self.inputs, inputs, strict=True))


class MaskwiseBackend(Backend):
    """Serves models of Where nodes (opset 9 and newer) and initializers, on the CPU."""

    @classmethod
    def is_compatible(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> bool:
        _arguments.instance("model", model, ModelProto, "an onnx.ModelProto, as onnx.load gives")
        is_served = where_dialect(model) is not None and all(map(is_where, model.graph.node))
        is_dense = not model.graph.sparse_initializer
        return is_served and is_dense and cls.supports_device(device)

    @classmethod
    def prepare(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> WhereModel:
        """The model, ready to run.

        Raises
        ------
        TypeError
            No onnx.ModelProto.
        onnx.checker.ValidationError
            One that ONNX does not define.
        ValueError
            Other operators than Where, another device.
        """
        is_compatible = cls.is_compatible(model, device)
        onnx.checker.check_model(model)
        dialect = where_dialect(model)
        if dialect is None or not is_compatible:
            found = sorted({node.op_type for node in model.graph.node})
            sparse = [one.values.name for one in model.graph.sparse_initializer]
            raise ValueError(
                f"{device}, operators {found}, sparse initializers {sparse}: "
                "only Where from opset 9 on, dense, on the CPU"
            )
        return WhereModel(model, dialect)

    @classmethod
    def run_node(
        cls,
        node: NodeProto,
        inputs: Any,
        device: str = "CPU",
        outputs_info: Sequence[tuple[np.dtype[Any], tuple[int, ...]]] | None = None,
        **kwargs: Any,
    ) -> tuple[NDArray[Any], ...]:
        """One Where node by the newest form, or by that of the keyword opset_version."""
        if not is_where(_arguments.instance("node", node, NodeProto, "an onnx.NodeProto")):
            raise ValueError(f"operator {node.op_type}: only Where")
        opset = _arguments.instance(
            "opset_version", kwargs.get("opset_version", 16), int, "an integer"
        )
        operands = list_of(inputs)
        if len(operands) != 3:
            raise ValueError(f"{len(operands)} inputs given, Where has 3")
        dialect: Dialect = "onnx_where_16" if opset >= 16 else "onnx_where_9"
        return (select(*operands, dialect=dialect),)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        _arguments.instance("device", device, str, "a string such as CPU")
        return device.partition(":")[0] == "CPU"


is_compatible = MaskwiseBackend.is_compatible
prepare = MaskwiseBackend.prepare
run_model = MaskwiseBackend.run_model
run_node = MaskwiseBackend.run_node
supports_device = MaskwiseBackend.supports_device


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        prog="python -m maskwise.onnx_backend",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.parse_args()
    parser.error("nothing to run, expected an import: see --help")
