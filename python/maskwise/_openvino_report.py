"""Lists which operations of a model Maskwise runs in OpenVINO, and times the model with and without
Maskwise.
"""

from __future__ import annotations

import os
from collections import Counter
from typing import Any, NoReturn

import openvino as ov  # type: ignore[import-untyped, unused-ignore]

from maskwise import _arguments, _report, openvino

PARSER = _report.make_parser("maskwise.openvino", __doc__)
ROUNDS = 5e-2  # tolerance relative to the largest element, if OpenVINO computes in 16 bits


def name_of(port: Any) -> str:
    return str(port.get_any_name() if port.get_names() else port.get_node().get_friendly_name())


def ports_of(model: ov.Model) -> list[_report.Port]:
    """Returns the model's inputs. OpenVINO's dimensions have no names, so dimension 1 of input x is
    named x[1]."""
    return [
        (
            name_of(one),
            "object" if element == ov.Type.string else element.to_dtype().name,
            [
                dim.get_length() if dim.is_static else f"{name_of(one)}[{axis}]"
                for axis, dim in enumerate(one.get_partial_shape())
            ],
        )
        for one in model.inputs
        for element in [one.get_element_type()]
    ]


def print_claims(model: ov.Model, accelerated: ov.Model) -> None:
    """Prints which operations Maskwise runs: those for which `accelerated` has no operation of the
    same kind and name."""
    remaining = Counter(map(kind_and_name, openvino._nodes(accelerated)))
    claims = []
    for node in openvino._nodes(model):
        named = kind_and_name(node)
        if named[0] in ("ScaledDotProductAttention", "Select", "Softmax"):
            claims.append((*named, remaining[named] == 0))
            remaining[named] -= 1
    _report.print_claims(claims, "OpenVINO")


def kind_and_name(node: ov.Node) -> tuple[str, str]:
    """Returns the kind and the name. The kind is empty for an operation of Maskwise."""
    kind = node.get_type_info()
    is_openvinos = kind.version_id != "maskwise"
    return str(kind.name) if is_openvinos else "", str(node.get_friendly_name())


def read(core: ov.Core, path: str) -> ov.Model:
    try:
        return core.read_model(_arguments.file("model", path))
    except OSError as failure:
        PARSER.error(str(failure))
    except RuntimeError as failure:
        refuse(f"OpenVINO refuses {path}", failure)


def refuse(subject: str, failure: Exception) -> NoReturn:
    """Exits with the reason. Omits the source files and lines before the reason."""
    lines = [line for line in str(failure).splitlines() if line and not line.startswith("Exc")]
    PARSER.exit(1, f"{PARSER.prog}: {subject}: {(lines or [type(failure).__name__])[0]}\n")


def run_of(compiled: ov.CompiledModel, inputs: dict[str, Any]) -> _report.Run:
    request = compiled.create_infer_request()
    return lambda: list(request.infer(inputs).values())


def print_runs(
    core: ov.Core, models: list[ov.Model], inputs: dict[str, Any], threads: int, turns: int
) -> bool:
    """Compiles both models in the precision that OpenVINO chooses on this CPU, and times them."""
    settings = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": threads}
    compiled = [core.compile_model(model, "CPU", settings) for model in models]
    precision = compiled[0].get_property("INFERENCE_PRECISION_HINT").to_string()
    print(f"OpenVINO computes in  {precision}")
    ours, theirs = (run_of(one, inputs) for one in compiled)
    rounds = ROUNDS if precision in ("bf16", "f16") else 0
    return _report.print_runs("OpenVINO", ours, theirs, turns, rounds)


def main(arguments: list[str] | None = None) -> int:
    options = _report.parsed(PARSER, arguments)
    os.environ.setdefault("MASKWISE_VERBOSE", "1")  # read when Maskwise's library is loaded
    core = ov.Core()
    model = read(core, options.model)
    ports = ports_of(model)
    extents = _report.open_extents(PARSER, ports, dict(options.dim))
    inputs = _report.draw_inputs(ports, extents)
    try:
        model.reshape({name: list(array.shape) for name, array in inputs.items()})
        precision = core.get_property("CPU", "INFERENCE_PRECISION_HINT")
        accelerated = openvino.accelerate(model, precision=precision)
    except (FileNotFoundError, RuntimeError, ValueError) as failure:
        refuse("Maskwise cannot accelerate this model", failure)
    print_claims(model, accelerated)
    if not openvino.taken(accelerated):
        print("Maskwise runs no operation of this model")
        return 0
    try:
        agrees = print_runs(core, [accelerated, model], inputs, options.threads, options.turns)
    except RuntimeError as failure:
        refuse("the model refuses the random inputs (try --dim)", failure)
    return 0 if agrees else 1
