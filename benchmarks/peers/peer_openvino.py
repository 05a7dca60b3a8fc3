"""OpenVINO: a model of one Select, tensors set once."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import openvino as ov
from openvino import opset13 as ops
from operands import Operands, Refused

TYPES = {
    "f32": (np.float32, ov.Type.f32),
    "f16": (np.float16, ov.Type.f16),
    "bf16": (np.uint16, ov.Type.bf16),
    "i64": (np.int64, ov.Type.i64),
    "bool": (np.bool_, ov.Type.boolean),
}


class Peer:
    version = ov.__version__.split("-")[0]

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.core = ov.Core()
        self.call: Any = None

    def compile(self, of: Operands, element: Any) -> Any:
        cond = ops.parameter(of.cond.shape, ov.Type.boolean)
        src_0, src_1 = (ops.parameter(array.shape, element) for array in (of.src_0, of.src_1))
        select = ops.select(cond, src_0, src_1, auto_broadcast="numpy")
        settings = {
            "PERFORMANCE_HINT": "LATENCY",
            "NUM_STREAMS": "1",
            "INFERENCE_NUM_THREADS": self.threads,
            "ENABLE_CPU_PINNING": False,
            "EXECUTION_MODE_HINT": "ACCURACY",
        }
        return self.core.compile_model(ov.Model([select], [cond, src_0, src_1]), "CPU", settings)

    def load(self, case: dict[str, Any]) -> bool:
        dtype, element = TYPES[case["dtype"]]
        of = Operands(case, dtype)
        of.require_dense()
        try:
            request = self.compile(of, element).create_infer_request()
        except RuntimeError as error:
            raise Refused(str(error).splitlines()[0]) from None
        arrays = ((of.cond, ov.Type.boolean), (of.src_0, element), (of.src_1, element))
        for i, (array, kind) in enumerate(arrays):
            request.set_input_tensor(i, ov.Tensor(array, array.shape, kind))
        request.set_output_tensor(0, ov.Tensor(of.dst, of.dst.shape, element))
        self.kept = of
        self.call = functools.partial(request.infer, share_outputs=True)  # else it copies dst
        self.call()
        return of.is_expected(of.dst)
