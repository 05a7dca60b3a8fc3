"""Runs a model with one Select in OpenVINO. The request's tensors are set once."""

from collections.abc import Callable
from functools import partial
from typing import Any

import openvino as ov
from openvino import opset13 as ops
from operands import Operands, Refused, Selecting

TYPES = {
    "f32": ov.Type.f32,
    "f16": ov.Type.f16,
    "bf16": ov.Type.bf16,
    "i64": ov.Type.i64,
    "bool": ov.Type.boolean,
}
CORE = ov.Core()


def bound(
    operator: Callable[..., Any], inputs: list[Any], dst: Any, threads: int, **hints: Any
) -> Callable[[], object]:
    """Returns a call that runs one operator on `inputs`, pairs of array and type. dst has the
    second input's type."""
    parameters = [ops.parameter(array.shape, kind) for array, kind in inputs]
    settings = {
        "PERFORMANCE_HINT": "LATENCY",
        "NUM_STREAMS": "1",
        "INFERENCE_NUM_THREADS": threads,
        "ENABLE_CPU_PINNING": False,
        **hints,
    }
    model = ov.Model([operator(*parameters)], parameters)
    request = CORE.compile_model(model, "CPU", settings).create_infer_request()
    for i, (array, kind) in enumerate(inputs):
        request.set_input_tensor(i, ov.Tensor(array, array.shape, kind))
    request.set_output_tensor(0, ov.Tensor(dst, dst.shape, inputs[1][1]))
    # `held` keeps the arrays alive; with share_outputs OpenVINO does not copy dst.
    return lambda held=(inputs, dst): request.infer(share_outputs=True)


class Peer(Selecting):
    version = ov.__version__.split("-")[0]

    def ready(self, case: dict[str, Any]) -> tuple[Operands, dict[str, Any]]:
        operands, kind = Operands(case), TYPES[case["dtype"]]
        operands.require_dense()
        inputs = [(operands.cond, ov.Type.boolean), (operands.src_0, kind), (operands.src_1, kind)]
        select, hint = (
            partial(ops.select, auto_broadcast="numpy"),
            {"EXECUTION_MODE_HINT": "ACCURACY"},
        )
        try:
            return operands, {"": bound(select, inputs, operands.dst, self.threads, **hint)}
        except RuntimeError as error:
            raise Refused(str(error).splitlines()[0]) from None
