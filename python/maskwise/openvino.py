"""Attention and Select of OpenVINO models by Maskwise, on the CPU.

    import maskwise.openvino
    compiled = core.compile_model(maskwise.openvino.accelerate(model), "CPU")

`accelerate` returns a copy, `taken` tells what Maskwise runs of it, and
`python -m maskwise.openvino model.onnx` that and what it gains.
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
    """Path of the extension: a core with it reads and imports files of accelerated models.

    `core.add_extension` takes it.

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
    """A copy of a model in which Maskwise runs attention and Selects, where that is faster.

    Parameters
    ----------
    model : openvino.Model
        Stays as it is: save this one, since a file of the copy needs `core.add_extension`.
    force : bool
        Takes every attention, Softmax of masked scores and Select that Maskwise can run, also where
        OpenVINO's own are faster.
    zero_masked_rows : bool
        In attention and Softmax by Maskwise, rows without an unmasked key are zeros, as in PyTorch;
        OpenVINO makes NaN of them. Takes every attention and Softmax that Maskwise can run.
    precision : "f32", "bf16", openvino.Type or None
        What the compiled model computes in, which its operations are not told: the
        INFERENCE_PRECISION_HINT of `core.compile_model`, or of OpenVINO's own choice
        `core.get_property("CPU", "INFERENCE_PRECISION_HINT")`. With "bf16", attention of f32 is
        computed in bf16. With None it is computed in the types of the model; on CPUs with
        AVX512_BF16, where OpenVINO's own choice is bf16, only what is causal is taken of f32.

    Returns
    -------
    openvino.Model
        For `core.compile_model`. Names and runtime info are the model's; constants are shared. The
        bodies of If, Loop and TensorIterator are accelerated, too.

    Raises
    ------
    RuntimeError
        This OpenVINO is too old, or lays out its classes in another way.
    FileNotFoundError
        As `library`.
    TypeError
        A model of another type than openvino.Model, such as a path or a compiled model; an option
        of another type.
    ValueError
        A precision that is none of these.
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
    except RuntimeError as failure:  # OpenVINO puts a file and a line of the source before it
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
    """Names of the operations that Maskwise runs of an accelerated model, those in bodies too.

    An operation that stands for several has the name of the last.

    Raises
    ------
    TypeError
        As `accelerate`.
    """
    nodes = _nodes(_model(model))
    return [n.get_friendly_name() for n in nodes if n.get_type_info().version_id == "maskwise"]


def _model(model: Any) -> Any:
    return _arguments.instance("model", model, ov.Model, "an openvino.Model, as read_model gives")


def _nodes(model: ov.Model) -> Iterator[ov.Node]:
    """Those in bodies, too."""
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
