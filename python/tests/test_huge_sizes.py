"""Extents and strides near the limits of 64 bits work, or raise an error that names the number."""

from __future__ import annotations

from typing import Any

import maskwise
import numpy as np
import pytest
from arrays import Array
from numpy.lib.stride_tricks import as_strided

HUGE = [2**47, 2**48 + 1, 2**57 - 1, 2**58, 2**60]  # no machine has that much memory


def repeated(*shape: int) -> Array:
    return np.broadcast_to(np.float32(1), shape)


@pytest.mark.parametrize("depth", HUGE[:-1])  # NumPy refuses three rows of 2**60 elements
def test_attention_of_a_huge_depth(depth: int) -> None:
    expected: Any = (MemoryError, ValueError)
    with pytest.raises(expected) as refused:
        maskwise.attention(repeated(1, depth), repeated(3, depth), np.ones((3, 4), "f"))
    if refused.type is ValueError:
        assert str(depth) in str(refused.value)


@pytest.mark.parametrize("extent", HUGE)
def test_attention_of_a_huge_result(extent: int) -> None:
    expected: Any = (MemoryError, ValueError)
    with pytest.raises(expected):
        maskwise.attention(repeated(extent, 4), repeated(3, 4), np.ones((3, 4), "f"))
    with pytest.raises(expected):
        maskwise.attention(repeated(1, 4), repeated(3, 4), repeated(3, extent))


@pytest.mark.parametrize("extent", HUGE)
def test_where_of_a_huge_result(extent: int) -> None:
    condition = np.broadcast_to(np.True_, (extent,))
    expected: Any = (MemoryError, ValueError)
    with pytest.raises(expected):
        maskwise.where(condition, repeated(extent), repeated(extent))
    with pytest.raises(expected):
        maskwise.where(condition[:, None], repeated(extent), repeated(1))


@pytest.mark.parametrize("stride", [2**62, -(2**62), -(2**63), 2**63 - 1])
def test_an_out_beyond_the_address_space_is_refused(stride: int) -> None:
    out = as_strided(np.zeros(4, "f"), (4,), (stride,))
    with pytest.raises(ValueError, match=str(abs(stride))):
        maskwise.where(np.ones(4, "?"), np.ones(4, "f"), np.ones(4, "f"), out=out)
    wide = as_strided(np.zeros((2, 4), "f"), (2, 4), (stride, 4))
    with pytest.raises(ValueError, match=str(abs(stride))):
        maskwise.attention(repeated(2, 4), repeated(3, 4), np.ones((3, 4), "f"), out=wide)


@pytest.mark.parametrize("stride", [2**62, -(2**63)])
def test_strides_of_one_element_do_not_matter(stride: int) -> None:
    q = as_strided(np.ones((1, 2, 4), "f"), (1, 2, 4), (stride, 16, 4))
    result = maskwise.attention(q, np.ones((3, 4), "f"), np.ones((3, 2), "f"))
    assert np.array_equal(result, np.ones((1, 2, 2), "f"))
    assert result.strides == (16, 8, 4)
