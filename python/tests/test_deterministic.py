"""With deterministic=True, a row of attention has the same bits in every batch."""

import maskwise
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from maskwise import Mask

HEADS, DEPTH = 4, 16


def _operands(seed: int, tokens: int, dtype: str) -> list[np.ndarray]:
    """Query, key and value of one sequence."""
    random = np.random.default_rng(seed)
    shapes = (HEADS, 2, 2)
    return [random.standard_normal((1, h, tokens, DEPTH)).astype(dtype) for h in shapes]


def _attention(operands: list, mask: Mask, **options: object) -> np.ndarray:
    return maskwise.attention(*operands, mask, enable_gqa=True, deterministic=True, **options)


def _padded(operands: list[np.ndarray], left: int, right: int) -> list[np.ndarray]:
    return [
        np.pad(one, ((0, 0), (0, 0), (left, right), (0, 0)), constant_values=1) for one in operands
    ]


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@given(
    seed=st.integers(0, 2**32 - 1),
    tokens=st.integers(1, 90),
    padding=st.integers(0, 70),
    rows=st.integers(1, 90),
)
@settings(deadline=None, max_examples=40)
def test_a_row_has_the_same_bits_in_every_batch(
    dtype: str, seed: int, tokens: int, padding: int, rows: int
) -> None:
    operands, neighbors = (
        _operands(seed, tokens, dtype),
        _operands(seed + 1, tokens + padding, dtype),
    )
    alone = _attention(operands, Mask.causal())

    pairs = zip(_padded(operands, padding, 0), neighbors, strict=True)
    batch = [np.concatenate(pair) for pair in pairs]
    left = _attention(batch, Mask.causal() & Mask.starts([padding, 0]))
    np.testing.assert_array_equal(left[:1, :, padding:], alone)

    right = _attention(_padded(operands, 0, padding), Mask.causal() & Mask.lengths(tokens))
    np.testing.assert_array_equal(right[:, :, :tokens], alone)

    q, k, v = operands
    last = _attention([q[:, :, -rows:], k, v], Mask.causal(from_end=True))  # as with a KV cache
    np.testing.assert_array_equal(last, alone[:, :, -rows:])

    packed = [
        np.concatenate([other[0], one[0]], axis=1).swapaxes(0, 1)
        for one, other in zip(operands, neighbors, strict=True)
    ]
    ends = np.cumsum([0, tokens + padding, tokens])
    documents = maskwise.packed_attention(*packed, ends, is_causal=True, deterministic=True)
    np.testing.assert_array_equal(documents[-tokens:].swapaxes(0, 1), alone[0])

    keep = np.tril(np.ones((tokens, tokens), bool))
    np.testing.assert_array_equal(_attention(operands, keep), alone)


def test_results_are_close_to_the_default_results() -> None:
    operands = _operands(1, 200, "float32")
    result, sums = _attention(operands, Mask.causal(), return_statistics=True)
    expected = maskwise.attention(*operands, Mask.causal(), enable_gqa=True, return_statistics=True)
    np.testing.assert_allclose(result, expected[0], atol=1e-6)
    np.testing.assert_allclose(sums, expected[1], atol=1e-5)


def test_deterministic_must_be_a_boolean() -> None:
    with pytest.raises(TypeError, match="deterministic"):
        maskwise.attention(*_operands(1, 3, "float32"), enable_gqa=True, deterministic="no")
