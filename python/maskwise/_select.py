"""select: the strict forms."""

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
    """Elements of src_0 where cond is true, else of src_1, by the strict rules of a dialect.

    Parameters
    ----------
    cond : array_like of bool
    src_0, src_1 : array_like
        One dtype of the dialect; nothing is promoted. Arrays with DLPack (jax, torch) are read in
        place.
    auto_broadcast : "numpy" or "none"
        "none" requires three equal shapes. ONNX does not have the attribute and refuses "none".
    dialect : "openvino_select_1", "onednn_select", "onnx_where_9" or "onnx_where_16"
        As in C++. openvino::Select-1 has every boolean, integer and real dtype, onednn::Select
        float32, float16 and ml_dtypes.bfloat16, onnx::Where-16 complex and text, too, and
        onnx::Where-9 these without bfloat16. In ONNX all three shapes broadcast to each other. In
        the others src_0 and src_1 do, and cond broadcasts to their result.

    Returns
    -------
    A new row-major array of the broadcast shape. If the first array argument is from another
    library with DLPack, an object of that library over it.

    Raises
    ------
    ValueError
        Shapes do not broadcast; an unknown auto_broadcast or dialect, or "none" with ONNX.
    TypeError
        cond is not boolean, or dtypes differ or are not the dialect's.
    BufferError
        Memory that is not on the CPU, or that its library does not export.
    """
    if _arguments.instance("dialect", dialect, str, "a string") not in _core.dialects:
        known = ", ".join(_core.dialects)
        raise ValueError(f"dialect is '{dialect}', expected one of {known}")
    expands = _arguments.instance("auto_broadcast", auto_broadcast, str, "a string") == "numpy"
    if auto_broadcast == "none" and dialect.startswith("onnx"):
        raise ValueError("auto_broadcast is 'none', expected numpy: ONNX has no other")
    if auto_broadcast not in ("numpy", "none"):
        raise ValueError(f"auto_broadcast is '{auto_broadcast}', expected numpy or none")
    number = _core.dialects[dialect]
    if type(cond) is type(src_0) is type(src_1) is np.ndarray:
        return _core.select(cond, src_0, src_1, expands, number)
    from maskwise import _others

    selected: NDArray[Any] = _others.select((cond, src_0, src_1), expands, number)
    return selected  # or the array that its library makes of the result
