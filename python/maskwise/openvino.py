"""Runs attention and Select of OpenVINO models by Maskwise, on the CPU.

    import maskwise.openvino
    compiled = core.compile_model(maskwise.openvino.accelerate(model), "CPU")

`accelerate` returns a copy of the model. `taken` lists the copy's operations that Maskwise runs.
`python -m maskwise.openvino model.onnx` lists the operations, and measures the gain.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

try:
    import openvino as ov  # type: ignore[import-untyped, unused-ignore]
except ModuleNotFoundError as missing:
    if __name__ != "__main__" or missing.name != "openvino":
        raise
    sys.exit("python -m maskwise.openvino: openvino is not installed")
from openvino.utils.node_factory import (  # type: ignore[import-untyped, unused-ignore]
    NodeFactory,
)

import maskwise
from maskwise import _arguments


def library() -> str:
    """Returns the extension's path, for `core.add_extension`. A core needs the extension to read or
    import files of accelerated models.

    Raises
    ------
    FileNotFoundError
        The package was built without OpenVINO.
    """
    return maskwise._library("libmaskwise_openvino_extension.so", "extension of OpenVINO")


def accelerate(
    model: ov.Model,
    *,
    force: bool = False,
    zero_masked_rows: bool = False,
    precision: str | ov.Type | None = None,
) -> ov.Model:
    """Returns a copy of a model. Maskwise runs the copy's attention, masked Softmax and Selects if
    that is faster.

    Parameters
    ----------
    model : openvino.Model
        Is not changed. Save the original, because a file of the copy needs `core.add_extension`.
    force : bool
        Replaces every attention, Softmax of masked scores and Select that Maskwise can run, even if
        OpenVINO is faster.
    zero_masked_rows : bool
        Rows whose scores are all -infinity become 0, as in PyTorch. In OpenVINO such rows are NaN.
        Replaces every attention and Softmax that Maskwise can run.
    precision : "f32", "bf16", openvino.Type or None
        The same INFERENCE_PRECISION_HINT as for `core.compile_model`. Operations cannot read the
        hint. `core.get_property("CPU", "INFERENCE_PRECISION_HINT")` is OpenVINO's default. With
        "bf16", f32 attention is computed in bf16. With None, attention is computed in the model's
        type. On CPUs with AVX512_BF16, None leaves non-causal f32 and f16 attention to OpenVINO,
        because OpenVINO's default on these CPUs is bf16.

    Returns
    -------
    openvino.Model
        For `core.compile_model`. The copy has the model's names and runtime info, and shares the
        model's constants. The bodies of If, Loop and TensorIterator are accelerated, too.

    Raises
    ------
    RuntimeError
        This OpenVINO is too old, or has another class layout.
    FileNotFoundError
        The package was built without OpenVINO.
    TypeError
        The model is not an openvino.Model (for example, a path or a compiled model), or an option
        has the wrong type.
    ValueError
        The precision is another string or type.
    """
    options = {
        "force": _arguments.flag("force", force),
        "zero_masked_rows": _arguments.flag("zero_masked_rows", zero_masked_rows),
        "precision": _precision(precision),
    }
    copy = _model(model).clone()
    ends = [node.output(0) for node in (*copy.get_results(), *copy.get_sinks())]
    factory = NodeFactory()
    try:
        factory.add_extension(library())
        if ends:
            factory.create("Accelerate", ends, options)
    except RuntimeError as failure:  # OpenVINO puts a source file and line before the reason
        raise RuntimeError(
            "Maskwise: " + str(failure).rpartition("Maskwise: ")[2].strip()
        ) from None
    return copy


def _precision(value: Any) -> str:
    name = value.to_string() if isinstance(value, ov.Type) else value
    if name is not None and not isinstance(name, str):
        raise TypeError(f"precision is {_arguments.shown(value)}, expected a string")
    if name not in (None, "f32", "bf16"):
        raise ValueError(f"precision is {_arguments.shown(value)}, expected f32 or bf16")
    return name or "dynamic"


def taken(model: ov.Model) -> list[str]:
    """Returns the names of the operations that Maskwise runs in a model, including its bodies.

    An operation that replaces several nodes has the name of the last node.

    Raises
    ------
    TypeError
        The model is not an openvino.Model.
    """
    nodes = _nodes(_model(model))
    return [n.get_friendly_name() for n in nodes if n.get_type_info().version_id == "maskwise"]


def _model(model: Any) -> Any:
    return _arguments.instance("model", model, ov.Model, "an openvino.Model, as read_model gives")


def _nodes(model: ov.Model) -> Iterator[ov.Node]:
    """Yields the nodes of a model, including those in bodies."""
    for node in model.get_ordered_ops():
        yield node
        kind = node.get_type_name()
        if kind == "If":
            yield from _nodes(node.get_then_body())
            yield from _nodes(node.get_else_body())
        elif kind in ("Loop", "TensorIterator"):
            yield from _nodes(node.get_function())


if __name__ == "__main__":
    from maskwise import _openvino_report

    sys.exit(_openvino_report.main())
