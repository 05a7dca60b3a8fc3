"""bfloat16 arrays from libraries with DLPack, as arrays of bits. NumPy has no bfloat16, and the
package ml_dtypes may be missing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

BITS = np.dtype([("bfloat16", np.uint16)])


def is_bits(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype == BITS


def is_bfloat16(array: NDArray[Any]) -> bool:
    """Whether the dtype is BITS or ml_dtypes' bfloat16."""
    return bool(array.dtype == BITS or array.dtype.name == "bfloat16")


def as_bits(value: Any) -> Any:
    return value.view(BITS) if isinstance(value, np.ndarray) and is_bfloat16(value) else value


def promoted(condition: Any, x: Any, y: Any) -> tuple[Any, Any, Any]:
    """Converts operands of where() to their common dtype. At least one operand is an array of BITS.

    bfloat16 stays bfloat16 next to Python's real numbers, booleans and 8-bit integers. bfloat16
    becomes float32 next to wider floats and complex numbers. Other dtypes raise TypeError.
    ml_dtypes promotes in the same way, except for Python floats.
    """
    if is_bits(condition):
        condition = condition.view(np.uint16) << 1 != 0
    x, y = as_bits(x), as_bits(y)
    return condition, _beside(x, y), _beside(y, x)


def _beside(one: Any, other: Any) -> Any:
    if is_bits(one) == is_bits(other):
        return one
    if is_bits(one):
        return one if _follows(other) else _widened(one)
    return _rounded(one) if _follows(one) else one


def _follows(value: Any) -> bool:
    """Whether `value` becomes bfloat16 next to a bfloat16 operand. If not, the bfloat16
    operand is widened to float32."""
    if type(value) in (bool, int, float, complex):
        return type(value) is not complex
    if value.dtype in (np.bool_, np.int8, np.uint8):
        return True
    if value.dtype.kind in "fc" and value.dtype != np.float16:
        return False
    raise TypeError(f"bfloat16 and {value.dtype} have no common dtype")


def _widened(array: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(array.view(np.uint16).astype(np.uint32) << 16).view(np.float32)


def _rounded(value: Any) -> NDArray[Any]:
    """Rounds to float32, then to the nearest bfloat16, as torch does."""
    with np.errstate(over="ignore"):
        bits = np.asarray(value, np.float32).view(np.uint32)
    is_nan = bits << 1 > 0xFF000000
    nearest = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    rounded: NDArray[Any] = np.where(is_nan, 0x7FC0, nearest).astype(np.uint16).view(BITS)
    return rounded
