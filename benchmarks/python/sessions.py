"""Measures models in ONNX Runtime with and without Maskwise, in turns in one process:
- a single Where of few elements, or of suite select's large shapes,
- scale, mask and Softmax,
- attention as PyTorch's exporters write it,
- a single attention operator.
Prints a line per case and per missed target.

Started by `scripts/bench onnxruntime`, which builds the package. Writes
build/bench/onnxruntime.json.
"""

import itertools
import math
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import maskwise.onnxruntime
import numpy as np
import onnxruntime as ort
from attention_operators import attention_operators
from cases import Case, core_cache_bytes, dense, shape_table
from onnx import TensorProto, helper
from select_data import mask_of
from turns import Measured, compare, run_suite

F32, F16 = TensorProto.FLOAT, TensorProto.FLOAT16
TYPES = {"f32": (F32, np.float32), "f16": (F16, np.float16)}
MOST_SLOWER = 0.5e-6  # maximum extra seconds per call of a small model with Maskwise
Inputs = dict[str, Any]


@dataclass
class Model:
    name: str
    dtype: str
    nodes: list[Any]
    inputs: Inputs
    least: float = 0.0  # required speed relative to ONNX Runtime alone; 0: no target
    most_slower: float = math.inf  # maximum extra seconds per call with Maskwise
    opset: int = 17


def node(kind: str, inputs: list[str], output: str, **attributes: Any) -> Any:
    return helper.make_node(kind, inputs, [output], **attributes)


def where_of(case: Case, dtype: str, l2: int) -> Model:
    random = np.random.default_rng(1)
    shapes = [
        tuple(e if s else 1 for e, s in zip(one.dims, one.strides, strict=True))
        for one in (case.cond, case.src_0, case.src_1)
    ]
    kind = TYPES[dtype][1]
    inputs = {
        "c": mask_of(case.mask, shapes[0]),
        "x": random.standard_normal(shapes[1]).astype(kind),
        "y": np.asarray(random.standard_normal(shapes[2]), kind),
    }
    model = Model(str(case.name), dtype, [node("Where", ["c", "x", "y"], "o")], inputs)
    texts = ["x".join(map(str, shape)) or "-" for shape in shapes]
    model.name = f"Where {' '.join(texts)} {case.mask}"
    if dtype == "f32":
        moved = sum(array.nbytes for array in inputs.values())
        model.least = 3.0 if moved > l2 else 0.0
    return model


def where_models() -> Iterator[Model]:
    l2 = core_cache_bytes()
    for count, least, most in ((64, 0.0, MOST_SLOWER), (1 << 16, 1.5, math.inf)):
        flat = dense((count,))
        small = where_of(Case("small", "", flat, flat, flat, flat), "f32", l2)
        small.least, small.most_slower = least, most
        yield small
    for dtype in TYPES:
        for case in shape_table():
            operands = (case.cond, case.src_0, case.src_1)
            is_dense = all(
                one.strides == dense(one.dims).strides or 0 in one.strides for one in operands
            )
            if is_dense and case.dst.distinct() >= 100_000:
                yield where_of(case, dtype, l2)


def constant(name: str, number: float) -> Any:
    return node("Constant", [], name, value=helper.make_tensor(name, F32, [], [number]))


def chain_model() -> Model:
    random = np.random.default_rng(2)
    nodes = [
        constant("scale", 0.125),
        constant("fill", -math.inf),
        node("Mul", ["x", "scale"], "scaled"),
        node("Where", ["c", "scaled", "fill"], "kept"),
        node("Softmax", ["kept"], "o", axis=-1),
    ]
    inputs = {
        "c": mask_of("causal", (1, 1, 1024, 1024)),
        "x": random.standard_normal((1, 12, 1024, 1024)).astype("f"),
    }
    return Model("scale, causal mask, Softmax 1x12x1024x1024", "f32", nodes, inputs, least=3.0)


def attention_inputs(rows: int) -> Inputs:
    random = np.random.default_rng(3)
    inputs = {name: random.standard_normal((1, 12, rows, 64)).astype("f") for name in "qkv"}
    return {**inputs, "c": mask_of("causal", (1, 1, rows, rows))}


def sdpa_model(rows: int) -> Model:
    """Returns scaled_dot_product_attention with a boolean mask, which the exporter converts to a
    bias of 0 and -infinity."""
    nodes = [
        constant("root", 64**-0.25),
        constant("none", 0.0),
        constant("fill", -math.inf),
        node("Mul", ["q", "root"], "qs"),
        node("Transpose", ["k"], "turned", perm=[0, 1, 3, 2]),
        node("Mul", ["turned", "root"], "ks"),
        node("Where", ["c", "none", "fill"], "bias"),
        node("MatMul", ["qs", "ks"], "scores"),
        node("Add", ["scores", "bias"], "kept"),
        node("Softmax", ["kept"], "weights", axis=-1),
        node("IsNaN", ["weights"], "empty"),
        node("Where", ["empty", "none", "weights"], "whole"),
        node("MatMul", ["whole", "v"], "o"),
    ]
    name = f"attention 12x{rows}x64, scaled_dot_product_attention"
    return Model(name, "f32", nodes, attention_inputs(rows), least=1.5)


def masked_fill_model(rows: int) -> Model:
    nodes = [
        constant("root", 8.0),
        constant("fill", -math.inf),
        node("Transpose", ["k"], "turned", perm=[0, 1, 3, 2]),
        node("MatMul", ["q", "turned"], "scores"),
        node("Div", ["scores", "root"], "scaled"),
        node("Where", ["c", "scaled", "fill"], "kept"),
        node("Softmax", ["kept"], "weights", axis=-1),
        node("MatMul", ["weights", "v"], "o"),
    ]
    name = f"attention 12x{rows}x64, masked_fill"
    return Model(name, "f32", nodes, attention_inputs(rows), least=1.5)


def bytes_of(model: Model) -> bytes:
    kind = TYPES[model.dtype][0]
    inputs = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
        )
        for name, array in model.inputs.items()
    ]
    outputs = [helper.make_tensor_value_info("o", kind, None)]
    graph = helper.make_graph(model.nodes, "bench", inputs, outputs)
    opsets = [helper.make_opsetid("", model.opset), helper.make_opsetid("com.microsoft", 1)]
    proto = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    return bytes(proto.SerializeToString())


def options() -> Any:
    """Returns options for one thread per processor. Threads do not spin, because spinning threads
    would slow the other session."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = len(os.sched_getaffinity(0))
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 4
    return options


def bound(session: Any, inputs: Inputs) -> tuple[Callable[[], object], Any]:
    """Returns a call that runs the session without allocating outputs, and a tuple of the session's
    answer and the objects that must outlive the call."""
    (answer,) = session.run(None, inputs)
    binding = session.io_binding()
    for name, array in inputs.items():
        binding.bind_cpu_input(name, np.ascontiguousarray(array).reshape(array.shape))
    dst = np.empty_like(answer)
    binding.bind_output("o", "cpu", 0, dst.dtype, dst.shape, dst.ctypes.data)
    return lambda: session.run_with_iobinding(binding), (answer, dst, binding)


def measure(model: Model) -> Measured:
    content = bytes_of(model)
    sessions = [
        ort.InferenceSession(content, options(), providers=["CPUExecutionProvider"]),
        maskwise.onnxruntime.session(content, options()),
    ]
    calls, answers = zip(*(bound(session, model.inputs) for session in sessions), strict=True)
    if not np.allclose(answers[0][0], answers[1][0], rtol=1e-4, atol=1e-5, equal_nan=True):
        raise SystemExit(f"{model.name}: the answers with and without Maskwise differ")
    return compare(model.name, model.dtype, calls, model.least, model.most_slower)


def main() -> int:
    blocks = (make(rows) for rows in (512, 1024) for make in (sdpa_model, masked_fill_model))
    operators = (
        Model(name, "f32", [node], inputs, least=1.0, opset=23)
        for name, node, inputs in attention_operators()
    )
    models = itertools.chain(where_models(), [chain_model()], blocks, operators)
    cases = (
        (f"{model.name} {model.dtype}", lambda model=model: measure(model)) for model in models
    )
    return run_suite("onnxruntime", "ONNX Runtime", ort.__version__, cases)


if __name__ == "__main__":
    sys.exit(main())
