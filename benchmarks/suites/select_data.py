"""The data of a Select case: inputs, expected result, and the number of bytes to move."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from cases import WIDTH, Case, Operand, expand

LINE = 64
UNTOUCHED = 0x5A  # fills the gaps between dst's elements, which no implementation may write
# By type: an element's random bits, and the bits that are always set. Floats have random signs and
# mantissas. Their magnitudes are in [1, 2), so selecting by multiply and add is exact, too. i64 has
# values of 31 bits, because OpenVINO truncates longer values.
BITS = {
    "f32": (0x807FFFFF, 0x3F800000),
    "bf16": (0x807F, 0x3F80),
    "f16": (0x83FF, 0x3C00),
    "i64": (0x7FFFFFFF, 0),
    "bool": (1, 0),
}


def runs(random: np.random.Generator, count: int) -> Any:
    lengths = random.integers(500, 1001, count // 500 + 1)
    return np.repeat(np.arange(lengths.size) % 2 == 0, lengths)[:count]


def mask_of(kind: str, shape: tuple[int, ...], seed: int = 1) -> Any:
    """Returns a boolean array of this shape. The last two dimensions are rows and columns of
    matrices. The kind `random:p` is true with probability p."""
    random, whole = np.random.default_rng(seed), shape or (1,)
    kind, _, share = kind.partition(":")
    rows, columns = (1, *whole)[-2:]
    row, column = np.ogrid[:rows, :columns]
    matrices = (*whole[:-2], 1, 1)[-len(whole) :]
    first = np.arange(whole[0]).reshape(-1, *[1] * len(whole[1:]))
    rules: dict[str, Callable[[], Any]] = {
        "random": lambda: random.random(whole, np.float32) < float(share or 0.5),
        "padding": lambda: column < random.integers(columns // 4, columns + 1, matrices),
        "causal": lambda: column <= row + columns - rows,  # the last row sees all columns
        "banded": lambda: abs(column - row) < 8,
        "runs": lambda: runs(random, math.prod(whole)).reshape(whole),
        "one_row": lambda: first == first.size // 2,
        "true": lambda: np.True_,
    }
    rule = rules[kind]()
    return np.broadcast_to(rule[0] if rule.ndim > len(whole) else rule, whole).reshape(shape)


def view(data: Any, operand: Operand, width: int = 0) -> Any:
    """Returns a view of `data` as the operand. A unit of stride is `width` bytes; if `width` is 0,
    one item of `data`."""
    strides = [stride * (width or data.itemsize) for stride in operand.strides]
    return np.lib.stride_tricks.as_strided(data, operand.dims, strides)


def values(operand: Operand, dtype: str, seed: int) -> Any:
    kept, added = BITS[dtype]
    count, width = operand.span(), WIDTH[dtype]
    bits = np.frombuffer(np.random.default_rng(seed).bytes(count * width), f"u{width}")
    return bits & kept | added


def line_bytes(operand: Operand, width: int, touched: Any) -> int:
    """Returns the bytes of all cache lines that contain a touched element."""
    marks = np.zeros(-(-operand.span() * width // LINE) * LINE, bool)
    np.copyto(view(marks, operand, width), True, where=touched)
    return int(marks.reshape(-1, LINE).any(axis=1).sum()) * LINE


def make(case: Case, folder: str) -> tuple[int, int]:
    """Writes cond, src_0, src_1 and the expected dst as files, gaps included. Returns the least
    bytes to read and to write, in full cache lines. A source's line counts only if it holds a
    selected element."""
    width, shape = WIDTH[case.dtype], case.dst.dims
    cond = np.zeros(case.cond.span(), bool)
    view(cond, case.cond)[...] = mask_of(case.mask, case.cond.dims, case.seed)
    sources = [values(case.src_0, case.dtype, case.seed + 1)]
    sources.append(values(case.src_1, case.dtype, case.seed + 2))
    answer = np.full(case.dst.span() * width, UNTOUCHED, np.uint8).view(f"u{width}")
    places = [expand(operand, shape) for operand in (case.cond, case.src_0, case.src_1)]
    kept = view(cond, places[0])
    dst = view(answer, case.dst)
    np.copyto(dst, view(sources[1], places[2]))
    np.copyto(dst, view(sources[0], places[1]), where=kept)
    for name, array in zip(("cond", "src_0", "src_1"), (cond, *sources), strict=True):
        array.tofile(Path(folder, name))
    answer.tofile(Path(folder, "expected"))
    sides = [(places[1], width, kept), (places[2], width, ~kept), (places[0], 1, np.True_)]
    read = sum(line_bytes(*side) for side in sides)
    return read, line_bytes(case.dst, width, np.True_)
