"""Runs ONNX models in ONNX Runtime, alone and with Maskwise."""

from __future__ import annotations

from typing import Any

import maskwise.onnxruntime
import numpy as np
import onnxruntime as ort
from arrays import BFLOAT16, Array, random_array
from onnx import TensorProto
from onnx_where import TYPES as ONNX_TYPES

# Types that ONNX Runtime passes to kernels: all of Where's except the complex types.
TYPES = {element: dtype for element, dtype in ONNX_TYPES.items() if dtype.kind != "c"}
# Wrong session options raise RuntimeError up to ONNX Runtime 1.31, InvalidArgument in later
# releases.
REFUSED = (RuntimeError, ort.capi.onnxruntime_pybind11_state.InvalidArgument)


def options(**entries: str) -> Any:
    result = ort.SessionOptions()
    result.log_severity_level = 4
    result.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    for key, text in entries.items():
        result.add_session_config_entry(key.replace("_", "."), text)
    return result


def stock_session(model: bytes) -> Any:
    return ort.InferenceSession(model, options(), providers=["CPUExecutionProvider"])


def providers_of(session: Any, operator: str = "Where") -> list[str]:
    return [
        group.ep_name
        for group in session.get_provider_graph_assignment_info()
        for node in group.get_nodes()
        if node.op_type == operator
    ]


def session_of(model: bytes, threads: int = 1, is_claimed: bool = True, **entries: str) -> Any:
    """Returns a session with Maskwise. With `is_claimed`, asserts that Maskwise runs every Where of
    the main graph.
    """
    session_options = options(**entries)
    session_options.intra_op_num_threads = threads
    result = maskwise.onnxruntime.session(model, session_options)
    if is_claimed:
        assert set(providers_of(result)) <= {maskwise.onnxruntime.PROVIDER}
    return result


def draw(random: np.random.Generator, shape: tuple[int, ...], element: int) -> Array:
    if element == TensorProto.STRING:
        texts = np.array(["", "a", "bcd", "zero\0inside", "long " * 20, "ü"], object)
        return random.choice(texts, shape).reshape(shape)
    return random_array(random, shape, TYPES[element])


def run_bound(session: Any, feeds: dict[str, Array], element: int, dst: Array) -> None:
    """Binds arrays by address, because ONNX Runtime does not accept bfloat16 arrays."""
    binding = session.io_binding()
    for name, array in feeds.items():
        kind = TensorProto.BOOL if name == "c" else element
        binding.bind_input(name, "cpu", 0, kind, array.shape, array.ctypes.data)
    binding.bind_output("o", "cpu", 0, element, dst.shape, dst.ctypes.data)
    session.run_with_iobinding(binding)


def run(session: Any, feeds: dict[str, Array], element: int) -> Array:
    feeds = {
        name: np.ascontiguousarray(array).reshape(array.shape) for name, array in feeds.items()
    }
    if element != TensorProto.BFLOAT16:
        return np.asarray(session.run(["o"], feeds)[0])
    dst = np.zeros(np.broadcast_shapes(*(array.shape for array in feeds.values())), BFLOAT16)
    run_bound(session, feeds, element, dst)
    return dst
