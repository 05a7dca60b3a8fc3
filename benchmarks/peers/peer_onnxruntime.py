"""ONNX Runtime: a model of one Where, inputs and output bound to memory once."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime as ort
from onnx import TensorProto, helper
from operands import Operands, Refused

TYPES = {
    "f32": (np.float32, TensorProto.FLOAT),
    "f16": (np.float16, TensorProto.FLOAT16),
    "bf16": (np.uint16, TensorProto.BFLOAT16),
    "i64": (np.int64, TensorProto.INT64),
    "bool": (np.bool_, TensorProto.BOOL),
}


def make_model(of: Operands, element: int) -> bytes:
    inputs = [
        helper.make_tensor_value_info("cond", TensorProto.BOOL, of.cond.shape),
        helper.make_tensor_value_info("src_0", element, of.src_0.shape),
        helper.make_tensor_value_info("src_1", element, of.src_1.shape),
    ]
    dst = helper.make_tensor_value_info("dst", element, of.dst.shape)
    node = helper.make_node("Where", ["cond", "src_0", "src_1"], ["dst"])
    graph = helper.make_graph([node], "select", inputs, [dst])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 16)], ir_version=10)
    return bytes(model.SerializeToString())


class Peer:
    version = ort.__version__

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.options = ort.SessionOptions()
        self.options.intra_op_num_threads = threads
        self.options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self.options.add_session_config_entry("session.inter_op.allow_spinning", "0")
        self.options.log_severity_level = 4
        self.call: Any = None

    def load(self, case: dict[str, Any]) -> bool:
        dtype, element = TYPES[case["dtype"]]
        of = Operands(case, dtype)
        of.require_dense()
        try:
            session = ort.InferenceSession(
                make_model(of, element), self.options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # its classes are private
            raise Refused(str(error).splitlines()[0]) from None
        binding = session.io_binding()
        for name in ("cond", "src_0", "src_1"):
            array = getattr(of, name)
            kind = TensorProto.BOOL if name == "cond" else element
            binding.bind_input(name, "cpu", 0, kind, array.shape, array.ctypes.data)
        binding.bind_output("dst", "cpu", 0, element, of.dst.shape, of.dst.ctypes.data)
        self.kept = of
        self.call = lambda: session.run_with_iobinding(binding)
        self.call()
        return of.is_expected(of.dst)
