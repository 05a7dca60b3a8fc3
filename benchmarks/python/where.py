"""Measures maskwise.where, numpy.where and two calls of numpy.copyto, in turns in one process.
Prints times per case, rates by element width, and the import time. NumPy keeps its default setting
for huge pages.

Started by `scripts/bench python`, which builds the package. Writes the times of cases to
build/bench/python.json.
"""

import statistics
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import maskwise
import ml_dtypes
import numpy as np
from table import PYTHON_HEAD, markdown, python_row, save_table, shown
from turns import FOLDER, in_turns, medians

MILLION = 1 << 20
PAGE = 4096
WIDTHS = ("u1", "u2", "f4", "f8", "c16")


@dataclass
class Case:
    name: str
    condition: Any
    x: Any
    y: Any


def numbers(random: np.random.Generator, shape: Any, dtype: Any) -> Any:
    return (random.random(shape) * 100).astype(dtype)


def cases() -> Iterator[Case]:
    random = np.random.default_rng(1)
    for count in (64, 4096, 65536, MILLION, 16 * MILLION):
        x, y = (numbers(random, count, "f4") for _ in range(2))
        yield Case(f"f32, {count} random", random.random(count) < 0.5, x, y)
    x, y = (numbers(random, MILLION, "f4") for _ in range(2))
    yield Case(f"f32, {MILLION} all true", np.ones(MILLION, bool), x, y)
    for dtype in (np.int64, np.bool_, ml_dtypes.bfloat16, np.complex128):
        x, y = (numbers(random, MILLION, dtype) for _ in range(2))
        name = np.dtype(dtype).name
        yield Case(f"{name}, {MILLION} random", random.random(MILLION) < 0.5, x, y)
    scores = numbers(random, (12, 1024, 1024), "f4")
    yield Case("f32, causal 1024x1024 over 12 heads, 0.0", np.tri(1024, dtype=bool), scores, 0.0)
    square = numbers(random, (1024, 1024), "f4")
    mask = random.random((1024, 1024)) < 0.5
    yield Case("f32, 1024x1024, x transposed", mask, square.T, square)
    wide = square.astype("f8")
    yield Case("f32 and f64, 1024x1024 random", mask, square, wide)
    yield Case("f32, 1024x1024, condition i64", mask.astype("i8"), square, square.copy())


def two_copies(case: Case, out: Any) -> None:
    """Writes the result of numpy.where to `out` by two calls of numpy.copyto."""
    is_bool = case.condition.dtype == np.bool_  # copyto requires bool
    np.copyto(out, case.y)
    np.copyto(out, case.x, where=case.condition if is_bool else case.condition != 0)


def measure(case: Case) -> list[str]:
    arguments = (case.condition, case.x, case.y)
    expected = np.where(*arguments)
    out = np.zeros_like(expected)
    two_copies(case, out)
    for answer in (out, maskwise.where(*arguments)):
        if answer.tobytes() != expected.tobytes():
            sys.exit(f"{case.name}: the answers differ")
    forms = [
        lambda: np.where(*arguments),
        lambda: two_copies(case, out),
        lambda: maskwise.where(*arguments),
        lambda: maskwise.where(*arguments, out=out),
    ]
    return python_row(case.name, *medians(in_turns(forms)))


class Room:
    """Memory for page-aligned arrays, because NumPy does not align arrays to pages."""

    def __init__(self, count: int, array_bytes: int) -> None:
        self.step = -(-array_bytes // PAGE) * PAGE
        memory = np.zeros(count * self.step + PAGE, "u1")
        self.free = memory[-memory.ctypes.data % PAGE :]

    def place(self, values: Any) -> Any:
        room, self.free = self.free[: values.nbytes], self.free[self.step :]
        array = room.view(values.dtype)
        array[...] = values
        return array


def bytes_a_second(set_bytes: int) -> dict[str, float]:
    """Returns bytes per second by element width. Counts the bytes of condition, x, y and out, which
    have equal shapes."""
    random = np.random.default_rng(2)
    forms, moved = [], []
    for dtype in map(np.dtype, WIDTHS):
        count = set_bytes // (1 + 3 * dtype.itemsize)
        room = Room(4, count * dtype.itemsize)
        condition = room.place(random.random(count) < 0.5)
        x, y, out = (room.place(numbers(random, count, dtype)) for _ in range(3))
        forms.append(lambda c=condition, x=x, y=y, out=out: maskwise.where(c, x, y, out=out))
        moved.append(count * (1 + 3 * dtype.itemsize))
    pairs = zip(WIDTHS, moved, medians(in_turns(forms)), strict=True)
    return {dtype: count / seconds for dtype, count, seconds in pairs}


def import_seconds() -> float:
    """Returns the time that `import maskwise` adds to `import numpy`."""
    code = (
        "import time, numpy; begin = time.perf_counter(); import maskwise;"
        "print(time.perf_counter() - begin)"
    )
    command = [sys.executable, "-c", code]
    return statistics.median(float(subprocess.check_output(command)) for _ in range(9))


def main() -> None:
    rows = shown(PYTHON_HEAD, map(measure, cases()))
    save_table(FOLDER, "python", f"NumPy {np.__version__}", PYTHON_HEAD, rows)
    sizes = [bytes_a_second(400 << 10), bytes_a_second(256 << 20)]
    rates = [
        [
            f"{8 * np.dtype(dtype).itemsize} bits",
            *(f"{size[dtype] / 1e9:.0f} GB/s" for size in sizes),
        ]
        for dtype in WIDTHS
    ]
    print("", markdown(["width", "400 KB", "256 MB"], rates), sep="\n")
    print(f"\nimport maskwise after numpy: {import_seconds() * 1e3:.1f} ms")


if __name__ == "__main__":
    main()
