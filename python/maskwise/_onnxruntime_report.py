"""Lists which nodes of an ONNX model Maskwise runs in ONNX Runtime, and times the model with and
without Maskwise.
"""

from __future__ import annotations

import argparse
from typing import Any

import onnxruntime as ort  # type: ignore[import-untyped, unused-ignore]

import maskwise.onnxruntime
from maskwise import _report

NAMES = {
    "tensor(float)": "float32",
    "tensor(double)": "float64",
    "tensor(float16)": "float16",
    "tensor(bool)": "bool",
    "tensor(string)": "object",
}
PARSER = _report.make_parser("maskwise.onnxruntime", __doc__)


def options_of(threads: int) -> Any:
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    return options


def ports_of(session: Any) -> list[_report.Port]:
    return [
        (
            one.name,
            NAMES.get(one.type, one.type.removeprefix("tensor(").removesuffix(")")),
            [f"{one.name}[{axis}]" if dim is None else dim for axis, dim in enumerate(one.shape)],
        )
        for one in session.get_inputs()
    ]


def print_claims(session: Any) -> None:
    _report.print_claims(
        (
            (node.op_type, node.name, group.ep_name == maskwise.onnxruntime.PROVIDER)
            for group in session.get_provider_graph_assignment_info()
            for node in group.get_nodes()
            if node.op_type in ("Where", "Softmax") or "Attention" in node.op_type
        ),
        "ONNX Runtime",
    )


def open_session(settings: argparse.Namespace) -> Any:
    options = options_of(settings.threads)
    options.add_session_config_entry("maskwise.verbose", "1")
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    try:
        return maskwise.onnxruntime.session(settings.model, options)
    except (OSError, ValueError) as failure:
        PARSER.error(str(failure))
    except Exception as failure:  # ONNX Runtime's error classes are private
        reason = _report.first_line(failure)
        PARSER.exit(1, f"{PARSER.prog}: ONNX Runtime refuses {settings.model}: {reason}\n")


def main(arguments: list[str] | None = None) -> int:
    options = _report.parsed(PARSER, arguments)
    with_it = open_session(options)
    ports = ports_of(with_it)
    extents = _report.open_extents(PARSER, ports, dict(options.dim))
    print_claims(with_it)
    try:
        without = ort.InferenceSession(
            options.model, options_of(options.threads), providers=["CPUExecutionProvider"]
        )
    except ort.capi.onnxruntime_pybind11_state.NotImplemented as failure:
        print(f"ONNX Runtime alone does not run the model: {_report.first_line(failure)}")
        return 0
    inputs = _report.draw_inputs(ports, extents)
    runs = (lambda: with_it.run(None, inputs), lambda: without.run(None, inputs))
    try:
        agrees = _report.print_runs("ONNX Runtime", *runs, options.turns)
    except Exception as failure:  # ONNX Runtime's error classes are private
        print(f"the model refuses the random inputs (try --dim): {_report.first_line(failure)}")
        return 1
    return 0 if agrees else 1
