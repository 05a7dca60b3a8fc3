"""attention: torch's scaled_dot_product_attention."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from maskwise import _arguments, _core

if TYPE_CHECKING:  # numpy.typing takes longer to import than all of this package
    from numpy.typing import NDArray


def attention(
    q: Any,
    k: Any,
    v: Any,
    mask: Any = None,
    *,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    out: Any = None,
) -> NDArray[Any]:
    """softmax(q @ k^T * scale, masked) @ v, as torch's scaled_dot_product_attention defines it.

    Its cost follows the mask: parts that are masked as a whole are not computed.

    Parameters
    ----------
    q : array_like, (..., L, E)
    k : array_like, (..., S, E)
    v : array_like, (..., S, Ev)
        Of one dtype: float32, float16 or ml_dtypes.bfloat16. Leading dimensions broadcast. Arrays
        that speak DLPack (jax, torch) are read where they lie; strides may be any.
    mask : array_like, optional
        Broadcasts to (..., L, S). Boolean: True keeps a place. float32 or of q's dtype: added to
        the scores.
    is_causal : bool
        Row i keeps the keys 0 to i. Not with a mask.
    scale : float, optional
        1 / sqrt(E) where not given.
    enable_gqa : bool
        q, (..., H, L, E), may have a multiple of the heads H of k, and of those of v.
    out : numpy.ndarray, optional
        Takes the result: of its shape and dtype, writable; shares memory with no operand.

    Returns
    -------
    out, or a new array (..., L, Ev) of q's dtype, its columns side by side, the dimensions before
    them in the order in which they lie in q. Where the first array of the arguments comes from
    another library that speaks DLPack, an object of that library, without a copy.

    A row of which every place is masked is 0. Sums are float32. Keep v finite where it is masked:
    whether a NaN or infinity there reaches the result is not defined. The GIL is released.

    Raises
    ------
    ValueError
        Shapes that do not fit; mask and is_causal together; an out of another shape, read-only, or
        that shares memory with an operand.
    TypeError
        Other dtypes; an out of another dtype or not an array; a non-boolean is_causal or
        enable_gqa; a non-numeric scale.
    BufferError
        Memory that is not the CPU's, or that its library does not lend: no gradients.
    """
    causal = is_causal if type(is_causal) is bool else _arguments.flag("is_causal", is_causal)
    grouped = enable_gqa if type(enable_gqa) is bool else _arguments.flag("enable_gqa", enable_gqa)
    factor = None if scale is None else _arguments.number("scale", scale)

    def call(q: Any, k: Any, v: Any, mask: Any = None, *, out: Any) -> NDArray[Any]:
        return _core.attention(q, k, v, mask, causal, factor, grouped, out)

    operands = (q, k, v) if mask is None else (q, k, v, mask)
    if all(type(one) is np.ndarray for one in operands) and (
        out is None or isinstance(out, np.ndarray)
    ):
        return call(*operands, out=out)
    from maskwise import _others

    attended: NDArray[Any] = _others.in_kind(call, operands, out, np.asarray)
    return attended  # or what its library makes of it
