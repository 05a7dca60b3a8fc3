"""Runs Where, masked Softmax and attention of unchanged ONNX models in ONNX Runtime 1.24 or newer.

    import maskwise.onnxruntime
    session = maskwise.onnxruntime.session("model.onnx")    # an onnxruntime.InferenceSession

`register` is for sessions that you create yourself. `library` is for other languages.
`python -m maskwise.onnxruntime model.onnx` lists the nodes that Maskwise runs, and measures the
gain.
"""

from __future__ import annotations

import os
import sys
from typing import Any, Protocol, runtime_checkable

try:
    import onnxruntime as ort  # type: ignore[import-untyped, unused-ignore]
except ModuleNotFoundError as missing:
    if __name__ != "__main__" or missing.name != "onnxruntime":
        raise
    sys.exit("python -m maskwise.onnxruntime: onnxruntime is not installed")

import maskwise
from maskwise import _arguments

PROVIDER = "MaskwiseExecutionProvider"
_CHOSEN = "maskwise.chosen"  # set in session options that have the provider


@runtime_checkable
class ModelProto(Protocol):
    """The part of onnx.ModelProto that Maskwise uses."""

    def SerializeToString(self) -> bytes: ...


def library() -> str:
    """Returns the path of the provider's library, for RegisterExecutionProviderLibrary.

    Raises
    ------
    FileNotFoundError
        The package was built without the provider.
    """
    return maskwise._library("libmaskwise_onnxruntime.so", "provider of ONNX Runtime")


def devices() -> list[Any]:
    """Returns the provider's devices for `SessionOptions.add_provider_for_devices`; empty if the
    provider is not registered.

    Raises
    ------
    RuntimeError
        ONNX Runtime is older than 1.24.
    """
    if tuple(map(int, ort.__version__.split(".")[:2])) < (1, 24):
        raise RuntimeError(f"Maskwise needs ONNX Runtime 1.24 or newer, this is {ort.__version__}")
    return [device for device in ort.get_ep_devices() if device.ep_name == PROVIDER]


def register() -> list[Any]:
    """Registers the provider with ONNX Runtime at the first call. Returns its devices.

    Raises
    ------
    RuntimeError
        ONNX Runtime is older than 1.24.
    """
    if not devices():
        ort.register_execution_provider_library(PROVIDER, library())
    return devices()


def session(
    model: str | os.PathLike[str] | bytes | ModelProto,
    sess_options: Any = None,
    *,
    enable: bool | None = None,
    **kwargs: Any,
) -> Any:
    """Creates an `onnxruntime.InferenceSession`. Maskwise runs the nodes that it claims; the CPU
    provider runs other nodes.

    Parameters
    ----------
    model : path, bytes or onnx.ModelProto
    sess_options : onnxruntime.SessionOptions, optional
        session() adds Maskwise's provider to these options, after the providers in the options.
        The entry "maskwise.verbose" = "1" prints a line per Where, Softmax and attention operator
        on standard error.
    enable : bool, optional
        False leaves every operator to ONNX Runtime, like the entry "maskwise.enable" = "0". None
        uses the entry in sess_options.
    **kwargs
        Passed on to InferenceSession.

    Raises
    ------
    TypeError
        model, sess_options or enable has the wrong type.
    FileNotFoundError, IsADirectoryError
        The path is missing or a directory.
    ValueError
        model is not an ONNX model, or a keyword is providers, provider_options or enable_fallback.
    RuntimeError
        ONNX Runtime is older than 1.24, or InferenceSession fails.
    """
    for name in ("providers", "provider_options", "enable_fallback"):
        if (value := kwargs.pop(name, None)) is not None and (
            not isinstance(value, (list, tuple, int)) or value
        ):
            raise ValueError(
                f"{name} is {_arguments.shown(value)}, expected none: session() sets it"
            )
    content = _content_of(model)
    if sess_options is not None:
        expected = "an onnxruntime.SessionOptions"
        _arguments.instance("sess_options", sess_options, ort.SessionOptions, expected)
    options = ort.SessionOptions() if sess_options is None else sess_options
    _choose(options)
    if enable is not None:
        _arguments.instance("enable", enable, bool, "a bool")
        options.add_session_config_entry("maskwise.enable", "1" if enable else "0")
    try:
        # With its fallback, ONNX Runtime would print an error and continue without Maskwise.
        return ort.InferenceSession(content, options, enable_fallback=0, **kwargs)
    except Exception as failure:  # ONNX Runtime's error classes are private
        if "protobuf" not in str(failure).lower():
            raise
        value = f"{len(content)} bytes" if isinstance(content, bytes) else content
        reason = str(failure).rpartition(":")[2].strip()
        raise ValueError(f"model is {value}, not an ONNX model: {reason}") from None


def _content_of(model: Any) -> str | bytes:
    """The model argument of InferenceSession."""
    if isinstance(model, bytes):
        return model
    if isinstance(model, (str, os.PathLike)):
        return str(_arguments.file("model", model))
    if isinstance(model, ModelProto) and not isinstance(model, type):
        return model.SerializeToString()
    raise TypeError(
        f"model is {_arguments.shown(model)}, expected a path, bytes or an onnx.ModelProto"
    )


def _entry(options: Any, key: str) -> str:
    try:
        return str(options.get_session_config_entry(key))
    except RuntimeError:  # no such entry
        return ""


def _choose(options: Any) -> None:
    devices = register()
    if not _entry(options, _CHOSEN):
        options.add_provider_for_devices(devices[:1], {})
        options.add_session_config_entry(_CHOSEN, "1")
    # 0: the sessions share a thread pool of unknown size.
    threads = str(options.intra_op_num_threads if options.use_per_session_threads else 0)
    if _entry(options, "maskwise.threads") != threads:
        options.add_session_config_entry("maskwise.threads", threads)


if __name__ == "__main__":
    from maskwise import _onnxruntime_report

    sys.exit(_onnxruntime_report.main())
