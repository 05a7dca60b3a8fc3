"""Attention and Select of OpenVINO models by Maskwise, on the CPU.

    import maskwise.openvino
    maskwise.openvino.accelerate(model)            # an openvino.Model, in place
    compiled = core.compile_model(model, "CPU")

Or, for every model that an openvino.Core reads from IR or ONNX:

    core.add_extension(maskwise.openvino.library())

`taken` tells what Maskwise runs of such a model, and `python -m maskwise.openvino model.onnx` that
and what it gains.
"""

from __future__ import annotations

import sys
from typing import Any

try:
    import openvino as ov  # type: ignore[import-untyped, unused-ignore]
except ModuleNotFoundError as missing:
    if __name__ != "__main__" or missing.name != "openvino":
        raise
    sys.exit("python -m maskwise.openvino: openvino is not installed")
from openvino import opset13 as ops
from openvino.utils.node_factory import (  # type: ignore[import-untyped, unused-ignore]
    NodeFactory,
)

import maskwise
from maskwise import _arguments


def library() -> str:
    """Path of the extension: what `core.add_extension` takes.

    Raises
    ------
    FileNotFoundError
        The package was built without OpenVINO.
    """
    return maskwise._library("libmaskwise_openvino_extension.so", "extension of OpenVINO")


def accelerate(model: ov.Model, *, force: bool = False, allow_narrowing: bool = False) -> ov.Model:
    """Lets Maskwise run attention and Selects of a model, where that is faster; in place.

    The operations of the model stay OpenVINO's: what the CPU plugin compiles of it has Maskwise's.

    Parameters
    ----------
    model : openvino.Model
        Before it is compiled. Names, runtime info and readers stay; the bodies of If, Loop and
        TensorIterator are looked at, too.
    force : bool
        Takes every attention, Softmax of masked scores and Select that Maskwise can run, also where
        OpenVINO's own are faster.
    allow_narrowing : bool
        Takes with `force` the Selects of i64, u64 and f64, too, of which the CPU plugin keeps the
        lower 32 bits or the precision of f32.

    Returns
    -------
    model

    Raises
    ------
    RuntimeError
        `force` meets i64, u64 or f64, and `allow_narrowing` is not set: the model is unchanged;
        and what `library` raises.
    TypeError
        A model of another type than openvino.Model, such as a path or a compiled model; a
        non-boolean force or allow_narrowing.
    ValueError
        The model has no result.
    """
    options = {
        "force": _arguments.flag("force", force),
        "allow_narrowing": _arguments.flag("allow_narrowing", allow_narrowing),
    }
    _call("Accelerate", model, options)
    return model


def taken(model: ov.Model) -> list[str]:
    """Names of the operations that Maskwise runs of a model when the CPU plugin compiles it.

    Of a model after `accelerate`, or read by a core with the extension; those in bodies, too, and
    those that run with a Softmax.

    Raises
    ------
    TypeError, ValueError, RuntimeError
        As `accelerate`.
    """
    names: str = _call("Taken", model, {}).get_friendly_name()
    return names.split("\0")[:-1]


def _call(name: str, model: Any, options: dict[str, bool]) -> Any:
    """Of the library. OpenVINO hands operations to it, not models: the one returned holds it."""
    _arguments.instance("model", model, ov.Model, "an openvino.Model, such as read_model gives")
    if not model.get_results():
        raise ValueError(f"{model.friendly_name} has no result")
    factory = NodeFactory()
    factory.add_extension(library())
    holder = ops.if_op(ops.constant(True))
    holder.set_then_body(model)
    holder.set_else_body(model)
    holder.set_output(model.get_results()[0], model.get_results()[0])
    try:
        factory.create(name, [holder.output(0)], options)
    except RuntimeError as failure:  # OpenVINO puts a file and a line of the source before it
        raise RuntimeError(str(failure).rpartition("Maskwise: ")[2].strip()) from None
    return holder


if __name__ == "__main__":
    from maskwise import _openvino_report

    sys.exit(_openvino_report.main())
