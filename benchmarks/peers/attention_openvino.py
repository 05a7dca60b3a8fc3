"""OpenVINO: a model of one ScaledDotProductAttention with the mask given, and with causal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import openvino as ov
from attention_operands import Form, Operands
from openvino import opset13 as ops

TYPES = {"f32": ov.Type.f32, "bf16": ov.Type.bf16}


class Peer:
    version = ov.__version__.split("-")[0]

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.core = ov.Core()

    def forms(self, of: Operands) -> dict[str, Callable[[], Form]]:
        if of.mask is None:
            return {"no mask": lambda: self.make(of, [], causal=False)}
        masks = [(of.mask, ov.Type.boolean)]
        found = {"attention_mask": lambda: self.make(of, masks, causal=False)}
        if of.causal:
            found["causal"] = lambda: self.make(of, [], causal=True)
        return found

    def make(self, of: Operands, masks: list[tuple[Any, Any]], causal: bool) -> Form:
        kind, dst = TYPES[of.dtype], of.empty()
        inputs = [(array, kind) for array in (of.q, of.k, of.v)] + masks
        parameters = [ops.parameter(array.shape, element) for array, element in inputs]
        attention = ops.scaled_dot_product_attention(*parameters, causal=causal)
        request = self.compile(ov.Model([attention], parameters), kind).create_infer_request()
        for i, (array, element) in enumerate(inputs):
            request.set_input_tensor(i, ov.Tensor(array, array.shape, element))
        request.set_output_tensor(0, ov.Tensor(dst, dst.shape, kind))
        return lambda: request.infer(share_outputs=True), lambda _: dst

    def compile(self, model: Any, kind: Any) -> Any:
        settings = {
            "PERFORMANCE_HINT": "LATENCY",
            "NUM_STREAMS": "1",
            "INFERENCE_NUM_THREADS": self.threads,
            "ENABLE_CPU_PINNING": False,
            "INFERENCE_PRECISION_HINT": kind,  # the plugin's own choice for f32 is bf16
        }
        return self.core.compile_model(model, "CPU", settings)
