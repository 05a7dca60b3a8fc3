"""Arrays of random bits in every layout, and their bitwise comparison."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

Array = NDArray[Any]

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
DTYPES = [
    np.dtype(name)
    for name in ["?", "b", "B", "h", "H", "i", "I", "l", "L", "q", "Q", "e", "f", "d", "F", "D"]
] + [BFLOAT16]
DATES = [np.dtype("M8[s]"), np.dtype("m8[ms]")]


def random_array(
    random: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype[Any]
) -> Array:
    """Returns an array of random bits, so elements may be NaN. Booleans are 0 and 1, as in
    NumPy."""
    count = int(np.prod(shape, dtype=np.int64))
    if dtype == np.bool_:
        return (random.random(count) < 0.5).reshape(shape)
    return np.frombuffer(random.bytes(count * dtype.itemsize), dtype).reshape(shape)


def lay_out(random: np.random.Generator, values: Array, layout: str) -> Array:
    """Returns a copy in this layout. 'repeated' broadcasts the first slice of one dimension."""
    if layout == "dense" or values.ndim == 0:
        return values.copy()
    if layout == "misaligned":
        memory = np.empty(values.nbytes + 1, np.uint8)[1:]
        out = memory.view(values.dtype).reshape(values.shape)
    elif layout == "permuted":
        order = random.permutation(values.ndim)
        back = np.argsort(order)
        out = np.empty([values.shape[axis] for axis in order], values.dtype).transpose(back)
    elif layout == "repeated":
        axis = int(random.integers(values.ndim))
        first = np.take(values, range(min(1, values.shape[axis])), axis=axis)
        return np.broadcast_to(first, values.shape)
    else:
        steps = [int(random.choice([1, 2, 3, -1, -2])) for _ in values.shape]
        wide = np.empty(
            [abs(step) * extent for step, extent in zip(steps, values.shape, strict=True)],
            values.dtype,
        )
        out = wide[tuple(slice(None, None, step) for step in steps)]
    out[...] = values
    return out


LAYOUTS = ("dense", "misaligned", "permuted", "repeated", "stepped")


@st.composite
def operands(draw: st.DrawFn, dtypes: st.SearchStrategy[Any]) -> tuple[Array, Array, Array]:
    """Draws condition, x and y. Shapes broadcast, layouts vary. `dtypes` draws three dtypes."""
    shapes = draw(
        hnp.mutually_broadcastable_shapes(num_shapes=3, max_dims=5, min_side=0, max_side=9)
    ).input_shapes
    # The last dimension may be longer than a vector register, or than NumPy's buffer for casts.
    if draw(st.booleans()):
        long = draw(st.sampled_from([31, 64, 100, 1000, 20_000]))
        shapes = tuple((*shape, draw(st.sampled_from([1, long]))) for shape in shapes)
        shapes = tuple(shape[-2:] for shape in shapes) if long == 20_000 else shapes
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    arrays = [
        lay_out(random, random_array(random, shape, dtype), draw(st.sampled_from(LAYOUTS)))
        for shape, dtype in zip(shapes, draw(dtypes), strict=True)
    ]
    return arrays[0], arrays[1], arrays[2]


def assert_same_bits(got: Any, expected: Any) -> None:
    assert type(got) is type(expected) is np.ndarray
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
    assert got.tobytes() == expected.tobytes()


def in_a_process(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs code in a process that can import this folder's modules."""
    path = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    return run_python("-c", code, PYTHONPATH=path, **environment)


def run_python(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-B", *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
