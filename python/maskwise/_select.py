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
    """Elements of src_0 where cond is true, of src_1 elsewhere, by one operator's own rules.

    Parameters
    ----------
    cond : array_like of bool
    src_0, src_1 : array_like
        Of one dtype, one that the dialect has; nothing is promoted. Arrays that speak DLPack
        (jax, torch) are read where they lie.
    auto_broadcast : "numpy" or "none"
        "none" wants three equal shapes. ONNX has no such attribute: "none" is refused there.
    dialect : "openvino_select_1", "onednn_select", "onnx_where_9" or "onnx_where_16"
        As in C++. openvino::Select-1 has every boolean, integer and real dtype, onednn::Select
        float32, float16 and ml_dtypes.bfloat16, onnx::Where-16 complex and text, too, and
        onnx::Where-9 these without bfloat16. In onnx all three shapes broadcast to each other; in
        the others src_0 and src_1 do, and cond then to their result only.

    Returns
    -------
    A new row-major array of the broadcast shape; where the first array of the arguments comes from
    another library that speaks DLPack, an object of that library over it.

    Raises
    ------
    ValueError
        Shapes that do not fit; an unknown auto_broadcast or dialect, or "none" with one of ONNX's.
    TypeError
        A cond that is not boolean, dtypes that differ or that the dialect does not have.
    BufferError
        Memory that is not the CPU's, or that its library does not lend.
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
    return selected  # or what its library makes of it
