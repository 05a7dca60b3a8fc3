"""select: Select by the strict rules of oneDNN, OpenVINO or ONNX."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from maskwise import _arguments, _core

if TYPE_CHECKING:  # numpy.typing takes longer to import than all of this package
    from numpy.typing import ArrayLike, NDArray

Dialect = Literal["onednn_select", "openvino_select_1", "onnx_where_9", "onnx_where_16"]


def select(
    cond: ArrayLike,
    src_0: ArrayLike,
    src_1: ArrayLike,
    *,
    auto_broadcast: Literal["numpy", "none"] = "numpy",
    dialect: Dialect = "openvino_select_1",
) -> NDArray[Any]:
    """Returns src_0 where cond is true, else src_1, by the strict rules of a dialect.

    Parameters
    ----------
    cond : array_like of bool
    src_0, src_1 : array_like
        One dtype of the dialect; nothing is promoted. Arrays with DLPack (jax, torch) are read in
        place.
    auto_broadcast : "numpy" or "none"
        "none" requires three equal shapes. The ONNX dialects refuse "none".
    dialect : "openvino_select_1", "onednn_select", "onnx_where_9" or "onnx_where_16"
        openvino_select_1 has every boolean, integer and real dtype. onednn_select has float32,
        float16 and ml_dtypes.bfloat16. onnx_where_16 has openvino_select_1's dtypes, complex and
        text. onnx_where_9 has the same dtypes except bfloat16. In ONNX all three shapes broadcast
        to each other. In the other dialects src_0 and src_1 broadcast to each other, and cond to
        the result.

    Returns
    -------
    A new row-major array of the broadcast shape. If arguments are arrays of other libraries with
    DLPack, the result is an array of the first such library.

    Raises
    ------
    ValueError
        Shapes do not broadcast, auto_broadcast or dialect is unknown, or an ONNX dialect gets
        "none".
    TypeError
        cond is not boolean, dtypes differ, or the dialect does not have the dtype.
    BufferError
        An array's memory is not on the CPU, or the array's library does not export it.
    """
    if _arguments.instance("dialect", dialect, str, "a string") not in _core.dialects:
        known = ", ".join(_core.dialects)
        raise ValueError(f"dialect is '{dialect}', expected one of {known}")
    expands = _arguments.instance("auto_broadcast", auto_broadcast, str, "a string") == "numpy"
    if auto_broadcast == "none" and dialect.startswith("onnx"):
        raise ValueError("auto_broadcast is 'none', expected numpy: ONNX has no other value")
    if auto_broadcast not in ("numpy", "none"):
        raise ValueError(f"auto_broadcast is '{auto_broadcast}', expected numpy or none")
    number = _core.dialects[dialect]
    if type(cond) is type(src_0) is type(src_1) is np.ndarray:
        return _core.select(cond, src_0, src_1, expands, number)
    from maskwise import _others

    selected: NDArray[Any] = _others.select((cond, src_0, src_1), expands, number)
    return selected  # may be an object of another library
