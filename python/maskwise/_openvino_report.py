"""What Maskwise runs of a model in OpenVINO, and the time with and without."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, NoReturn

import openvino as ov  # type: ignore[import-untyped, unused-ignore]

import maskwise.openvino
from maskwise import _arguments, _report

PARSER = _report.make_parser("maskwise.openvino", __doc__)
ROUNDS = 5e-2  # of the largest element, through the layers of a model in 16 bits


def name_of(port: Any) -> str:
    return str(port.get_any_name() if port.get_names() else port.get_node().get_friendly_name())


def ports_of(model: ov.Model) -> list[_report.Port]:
    """Dimensions have no names of their own in OpenVINO."""
    return [
        (
            name_of(one),
            "object" if element == ov.Type.string else element.to_dtype().name,
            [
                dim.get_length() if dim.is_static else f"{name_of(one)}[{at}]"
                for at, dim in enumerate(one.get_partial_shape())
            ],
        )
        for one in model.inputs
        for element in [one.get_element_type()]
    ]


def nodes_of(model: ov.Model) -> Iterator[Any]:
    """Those in bodies, too."""
    for node in model.get_ordered_ops():
        yield node
        kind = node.get_type_name()
        if kind == "If":
            yield from nodes_of(node.get_then_body())
            yield from nodes_of(node.get_else_body())
        elif kind in ("Loop", "TensorIterator"):
            yield from nodes_of(node.get_function())


def print_claims(model: ov.Model, taken: list[str]) -> None:
    named = [(node.get_type_name(), node.get_friendly_name()) for node in nodes_of(model)]
    kinds = ("ScaledDotProductAttention", "Select", "Softmax")
    _report.print_claims(((k, n, n in taken) for k, n in named if k in kinds), "OpenVINO")


def read(core: ov.Core, path: str) -> ov.Model:
    try:
        return core.read_model(_arguments.file("model", path))
    except OSError as failure:
        PARSER.error(str(failure))
    except RuntimeError as failure:
        refuse(f"OpenVINO refuses {path}", failure)


def refuse(what: str, failure: Exception) -> NoReturn:
    """OpenVINO puts files and lines of its source before the reason."""
    lines = [line for line in str(failure).splitlines() if line and not line.startswith("Exc")]
    PARSER.exit(1, f"{PARSER.prog}: {what}: {(lines or [type(failure).__name__])[0]}\n")


def run_of(compiled: ov.CompiledModel, inputs: dict[str, Any]) -> _report.Run:
    request = compiled.create_infer_request()
    return lambda: list(request.infer(inputs).values())


def print_runs(
    core: ov.Core, models: list[ov.Model], inputs: dict[str, Any], threads: int, turns: int
) -> bool:
    """In the precision that OpenVINO chooses on this CPU."""
    settings = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": threads}
    compiled = [core.compile_model(model, "CPU", settings) for model in models]
    precision = compiled[0].get_property("INFERENCE_PRECISION_HINT").to_string()
    print(f"OpenVINO computes in  {precision}")
    ours, theirs = (run_of(one, inputs) for one in compiled)
    rounds = ROUNDS if precision in ("bf16", "f16") else 0
    return _report.print_runs("OpenVINO", ours, theirs, turns, rounds)


def main(arguments: list[str] | None = None) -> int:
    given = _report.parsed(PARSER, arguments)
    os.environ.setdefault("MASKWISE_VERBOSE", "1")  # looked at when the library is loaded
    core = ov.Core()
    model = read(core, given.model)
    ports = ports_of(model)
    extents = _report.open_extents(PARSER, ports, dict(given.dim))
    inputs = _report.draw_inputs(ports, extents)
    try:
        model.reshape({name: list(array.shape) for name, array in inputs.items()})
        accelerated = maskwise.openvino.accelerate(model.clone())
    except (FileNotFoundError, RuntimeError, ValueError) as failure:
        refuse("this model stays OpenVINO's", failure)
    taken = maskwise.openvino.taken(accelerated)
    print_claims(accelerated, taken)
    if not taken:
        print("nothing of this model is Maskwise's, so it runs as before")
        return 0
    try:
        agrees = print_runs(core, [accelerated, model], inputs, given.threads, given.turns)
    except RuntimeError as failure:
        refuse("the made-up inputs do not fit, --dim may help", failure)
    return 0 if agrees else 1
