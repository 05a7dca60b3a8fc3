"""Runs where(), explain(), select() and attention() if an operand is neither a NumPy array nor a
number, or if NumPy computes where(). Imported at the first such call."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maskwise import _bfloat16, _core

# Upper bound on the steps of numpy.shares_memory; layouts in practice need a few.
OVERLAP_STEPS = 10_000


def is_dask(value: object) -> bool:
    dask = sys.modules.get("dask.array")
    return dask is not None and isinstance(value, dask.Array)


def is_foreign(value: object) -> bool:
    """Whether `value` is an array of another library with DLPack."""
    speaks = hasattr(value, "__dlpack__") and hasattr(value, "__dlpack_device__")
    return speaks and not isinstance(value, np.ndarray | np.generic)


def overrides_numpy(value: object) -> bool:
    override = getattr(type(value), "__array_function__", None)
    return override is not None and override is not np.ndarray.__array_function__


def is_tensor(value: object) -> bool:
    tensor = getattr(sys.modules.get("torch"), "Tensor", None)
    return tensor is not None and isinstance(value, tensor)


def refuse_unreadable(value: Any) -> None:
    """Raises BufferError for a tensor with torch's negative flag, which DLPack export drops.
    Raises NotImplementedError for a tensor while torch traces."""
    is_neg = getattr(value, "is_neg", None)
    if is_neg is not None and is_neg():
        raise BufferError("the elements of this tensor are negated when read: call resolve_neg()")
    if is_tensor(value):
        import_module("maskwise._torch_tensors").refuse_traced()


def plain(value: Any) -> Any:
    """Converts to a numpy.ndarray. Python numbers are returned unchanged, because they adopt the
    other operands' dtype."""
    if is_foreign(value):
        refuse_unreadable(value)
        return _core.view(value)
    return value if type(value) in (bool, int, float, complex) else np.asarray(value)


def unlisted(value: Any) -> Any:
    """Converts a list or tuple to an array. Floats become float32, because a list has no dtype."""
    if type(value) not in (list, tuple):
        return value
    array = np.asarray(value)
    return array.astype(np.float32) if array.dtype == np.float64 else array


def plain_or_none(value: Any) -> Any:
    """Converts to a numpy.ndarray; None stays None."""
    return None if value is None else np.asarray(plain(unlisted(value)))


def result_converter(operands: tuple[Any, ...]) -> Callable[[NDArray[Any]], Any]:
    """Returns a function that converts a result, without a copy, to an array of the first foreign
    operand's library.
    """
    first = next((operand for operand in operands if is_foreign(operand)), None)
    if first is None:
        return lambda result: result
    name = "torch" if is_tensor(first) else type(first).__module__.partition(".")[0]
    library: Any = sys.modules[name]
    if hasattr(first, "__array_namespace__"):
        library = first.__array_namespace__()
    if not hasattr(library, "from_dlpack"):
        raise TypeError(f"{library.__name__}, of {type(first).__name__}, has no from_dlpack")
    return lambda result: library.from_dlpack(_core.exported(result))


def select(operands: tuple[Any, Any, Any], broadcasts: bool, dialect: int) -> Any:
    a, b, c = (np.asarray(plain(operand)) for operand in operands)
    convert_result = result_converter(operands)
    return convert_result(_core.select(a, b, c, broadcasts, dialect))


def writable(out: Any) -> Any:
    """Returns a view of `out`. Raises TypeError or BufferError if NumPy cannot write to
    `out`."""
    refuse_unreadable(out)
    if is_tensor(out):
        return import_module("maskwise._torch_tensors").writable(out)
    try:
        return np.from_dlpack(out)
    except (RuntimeError, ValueError, TypeError, AttributeError) as failure:
        raise TypeError(
            f"out is a {type(out).__name__} that NumPy cannot write to: {failure}"
        ) from None


def where(condition: Any, x: Any, y: Any, out: Any) -> Any:
    operands = (condition, x, y)
    if any(map(is_dask, operands)):
        return where_blocks(condition, x, y, out)
    if any(map(overrides_numpy, operands)):
        return where_numpy(condition, x, y, out)
    first = next(filter(is_foreign, operands), None)
    makes_tensor = out is None and is_tensor(first)
    return in_kind(partial(_where, makes_tensor=makes_tensor), operands, out)


def _where(condition: Any, x: Any, y: Any, *, out: Any, makes_tensor: bool) -> Any:
    operands = (condition, x, y)
    if any(map(_bfloat16.is_bits, operands)):
        operands, out = _bfloat16.promoted(*operands), _bfloat16.as_bits(out)
    if not makes_tensor:
        return _core.where(*operands, out=out)
    tensors: Any = import_module("maskwise._torch_tensors")
    tensor = tensors.empty_like(_core.output_of_where(*operands))
    _core.where(*operands, out=tensors.as_array(tensor))
    return tensor


def in_kind(
    call: Callable[..., Any],
    operands: tuple[Any, ...],
    out: Any,
    convert: Callable[[Any], Any] = plain,
) -> Any:
    """Calls a function with converted operands and out. Returns out, or a result converted to the
    first foreign operand's library. If there are several results, out receives the first."""
    into = writable(out) if is_foreign(out) else out
    if into is not None and not isinstance(into, np.ndarray):
        raise TypeError(f"out must be a numpy.ndarray, not {type(out).__name__}")
    result = call(*map(convert, operands), out=into)
    if is_tensor(out):
        import_module("maskwise._torch_tensors").mark_written(out)
    if isinstance(result, np.ndarray):
        return result_converter(operands)(result) if out is None else out
    if not isinstance(result, tuple):
        return result
    convert_result = result_converter(operands)
    others = result if out is None else result[1:]
    converted = tuple(convert_result(x) if isinstance(x, np.ndarray) else x for x in others)
    return converted if out is None else (out, *converted)


def where_blocks(condition: Any, x: Any, y: Any, out: Any) -> Any:
    """Runs maskwise.where lazily on each block of Dask arrays."""
    if out is not None:
        raise TypeError("Dask arrays are not written to: out must be None")
    return import_module("dask.array.core").elemwise(_core.where, condition, x, y)


def where_numpy(condition: Any, x: Any, y: Any, out: Any) -> Any:
    """Runs numpy.where with Maskwise's checks of out."""
    result = _core.numpy_where(condition, x, y)
    if out is None:
        return result
    for name, one in (("out", out), ("the result", result)):
        if not (hasattr(one, "shape") and hasattr(one, "dtype")):
            raise TypeError(f"{name} is of type {type(one).__name__}, expected an array")
    if out.shape != result.shape:
        raise ValueError(f"out has shape {out.shape}, the result is {result.shape}")
    if out.dtype != result.dtype:
        raise TypeError(f"out has dtype {out.dtype}, the result is {result.dtype}")
    if isinstance(out, np.ndarray):
        _core.check_overlaps(out, condition, x, y)
    np.copyto(out, result)
    return out


def explain(condition: Any, x: Any, y: Any) -> str:
    operands = (condition, x, y)
    if any(map(is_dask, operands)):
        return "dask: maskwise.where for each block\n"
    if any(map(overrides_numpy, operands)):
        return "numpy.where: an operand has an __array_function__ of its own\n"
    converted = tuple(map(plain, operands))
    if any(map(_bfloat16.is_bits, converted)):
        converted = _bfloat16.promoted(*converted)
    return _core.explain(*converted)


def refuse_overlap(out: NDArray[Any], operand: NDArray[Any], name: str) -> None:
    """Raises ValueError if two arrays with overlapping address ranges share a byte, or if NumPy
    cannot tell within OVERLAP_STEPS."""
    try:
        shared = np.shares_memory(out, operand, max_work=OVERLAP_STEPS)  # type: ignore[arg-type]
    except np.exceptions.TooHardError:
        shared = True
    if shared:
        raise ValueError(
            f"out, of shape {out.shape}, shares memory with {name}, of shape {operand.shape}"
        )
