"""Runs a model with one Where in ONNX Runtime. Inputs and output are bound to memory once."""

from collections.abc import Callable
from typing import Any

import onnxruntime as ort
from onnx import TensorProto, helper
from operands import Operands, Refused, Selecting

TYPES = {
    "f32": TensorProto.FLOAT,
    "f16": TensorProto.FLOAT16,
    "bf16": TensorProto.BFLOAT16,
    "i64": TensorProto.INT64,
    "bool": TensorProto.BOOL,
}
Inputs = dict[str, tuple[Any, int]]  # by name: an array and its ONNX type


def options(threads: int) -> Any:
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 4
    return options


def bound(
    nodes: list[Any], inputs: Inputs, dst: Any, kind: int, opset: int, options: Any
) -> Callable[[], object]:
    """A call that runs a model of these nodes and writes dst. The call keeps the arrays alive."""
    infos = [
        helper.make_tensor_value_info(name, element, array.shape)
        for name, (array, element) in inputs.items()
    ]
    answer = helper.make_tensor_value_info("dst", kind, dst.shape)
    graph = helper.make_graph(nodes, "peer", infos, [answer])
    sets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=sets, ir_version=11).SerializeToString()
    session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    for name, (array, element) in inputs.items():
        binding.bind_input(name, "cpu", 0, element, array.shape, array.ctypes.data)
    binding.bind_output("dst", "cpu", 0, kind, dst.shape, dst.ctypes.data)
    return lambda held=(inputs, dst): session.run_with_iobinding(binding)


class Peer(Selecting):
    version = ort.__version__

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.options = options(threads)
        for pool in ("intra_op", "inter_op"):
            self.options.add_session_config_entry(f"session.{pool}.allow_spinning", "0")

    def ready(self, case: dict[str, Any]) -> tuple[Operands, dict[str, Any]]:
        operands, kind = Operands(case), TYPES[case["dtype"]]
        operands.require_dense()
        inputs = {"cond": (operands.cond, TensorProto.BOOL)}
        inputs |= {"src_0": (operands.src_0, kind), "src_1": (operands.src_1, kind)}
        node = helper.make_node("Where", list(inputs), ["dst"])
        try:
            return operands, {"": bound([node], inputs, operands.dst, kind, 16, self.options)}
        except Exception as error:  # ONNX Runtime's exception classes are private
            raise Refused(str(error).splitlines()[0]) from None
