"""The cases of each suite."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

WIDTH = {"f32": 4, "bf16": 2, "f16": 2, "i64": 8, "bool": 1}
GRAPH_TYPES = ("f32", "bf16", "f16")  # the types of oneDNN Graph's Select
MASKS = ("random", "causal", "padding", "true", "runs")
CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
SHAPES = Path(__file__).with_name("shapes.txt")


@dataclass(frozen=True)
class Operand:
    """Extents, and strides in elements. A dimension with stride 0 is broadcast."""

    dims: tuple[int, ...]
    strides: tuple[int, ...]

    def __str__(self) -> str:
        text = "x".join(map(str, self.dims)) or "-"
        if self == dense(self.dims):
            return text
        return f"{text}@{'x'.join(map(str, self.strides))}"

    def span(self) -> int:
        """Returns the number of elements from the first to the last in memory, including gaps."""
        pairs = zip(self.dims, self.strides, strict=True)
        return 1 + sum((extent - 1) * stride for extent, stride in pairs)

    def distinct(self) -> int:
        """Returns the number of distinct elements in memory."""
        count = 1
        for extent, stride in zip(self.dims, self.strides, strict=True):
            count *= extent if stride else 1
        return count


@dataclass(frozen=True)
class Case:
    suite: str
    name: str
    cond: Operand
    src_0: Operand
    src_1: Operand
    dst: Operand
    dtype: str = "f32"
    mask: str = "random"
    seed: int = 1
    own_mask: bool = field(default=True, compare=False)  # whether `mask` is from shapes.txt
    about: str = field(default="", compare=False)

    def bytes_apart(self) -> int:
        """Returns the bytes that the case moves if operands do not overlap. If cond has one
        element, only the smaller source counts."""
        sides = (self.src_0.distinct(), self.src_1.distinct())
        read = min(sides) if self.cond.distinct() == 1 else sum(sides)
        return self.cond.distinct() + (read + self.dst.distinct()) * WIDTH[self.dtype]

    def request(self, folder: str) -> dict[str, Any]:
        operands = {
            name: {"dims": operand.dims, "strides": operand.strides}
            for name, operand in vars(self).items()
            if isinstance(operand, Operand)
        }
        return {**operands, "name": self.name, "dtype": self.dtype, "folder": folder}


def laid_out(dims: tuple[int, ...], order: list[int], padding: int = 0) -> Operand:
    """Lays out an operand in memory: `order` lists the dimensions from the outermost to the
    innermost, and `padding` elements follow each innermost row."""
    strides = [0] * len(dims)
    step = 1
    for position, dim in enumerate(reversed(order)):
        strides[dim] = step
        step *= max(dims[dim], 1)
        if position == 0:
            step += padding
    return Operand(dims, tuple(strides))


def dense(dims: tuple[int, ...]) -> Operand:
    return laid_out(dims, list(range(len(dims))))


def broadcast(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    rank = max(map(len, shapes))
    filled = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    return tuple(max(extents) for extents in zip(*filled, strict=True))


def expand(operand: Operand, shape: tuple[int, ...]) -> Operand:
    """Broadcasts the operand to `shape`: broadcast dimensions have stride 0."""
    missing = len(shape) - len(operand.dims)
    moves = [extent == whole for extent, whole in zip(operand.dims, shape[missing:], strict=True)]
    moved = (stride * move for stride, move in zip(operand.strides, moves, strict=True))
    return Operand(shape, (0,) * missing + tuple(moved))


def parse_operand(text: str) -> Operand:
    """Parses '2x3', '-' (a scalar) or '2x3*ba' (another order of dimensions in memory)."""
    shape, _, order = text.partition("*")
    dims = () if shape == "-" else tuple(map(int, shape.split("x")))
    return laid_out(dims, [ord(letter) - ord("a") for letter in order]) if order else dense(dims)


def shape_table() -> list[Case]:
    cases = []
    for line in SHAPES.read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        name, *operands, mask, about = line.split(None, 5)
        cond, src_0, src_1 = map(parse_operand, operands)
        shape = broadcast(cond.dims, src_0.dims, src_1.dims)
        if broadcast(src_0.dims, src_1.dims) != shape:
            src_1 = expand(src_1, shape)
        cases.append(Case("select", name, cond, src_0, src_1, dense(shape), mask=mask, about=about))
    return cases


def select_cases(full: bool) -> Iterator[Case]:
    """Yields each row of shapes.txt in three types with the row's default mask. Then yields large
    rows, or with `full` all rows, in f32 with the other masks."""
    for dtype in GRAPH_TYPES:
        for row in shape_table():
            yield replace(row, dtype=dtype)
    for row in shape_table():
        large = row.dst.distinct() >= 100_000
        for mask in MASKS:
            if mask != row.mask and (full or large):
                yield replace(row, mask=mask, own_mask=False)


def small_cases() -> Iterator[Case]:
    """Selects of 1 to 64 Ki elements. All operands have the same shape."""
    for power in range(0, 17, 2):
        flat = dense((1 << power,))
        yield Case("small", f"{1 << power}", flat, flat, flat, flat)


def type_cases() -> Iterator[Case]:
    """Yields typical selects in types that oneDNN Graph's Select does not have."""
    for dtype in ("i64", "bool"):
        for row in shape_table():
            if row.name in ("19", "20", "21", "30", "31", "33", "35"):
                yield replace(row, suite="types", dtype=dtype)


INNER = (1, 2, 3, 5, 7, 8, 15, 16, 24, 31, 32, 33, 63, 64, 100, 127, 128, 255, 1000, 1024, 4096)


@cache
def cache_bytes() -> dict[int, int]:
    """Returns the cache sizes in bytes by level, as the system reports them."""
    sizes = {}
    for index in CACHES.glob("index*"):
        kind, level, size = ((index / name).read_text() for name in ("type", "level", "size"))
        if not kind.startswith("Instruction"):
            sizes[int(level)] = int(size.strip().removesuffix("K")) << 10
    return dict(sorted(sizes.items()))


def core_cache_bytes() -> int:
    """Returns the bytes of one core's L2; 1 MiB if unknown."""
    return cache_bytes().get(2, 1 << 20)


def beyond_cache_bytes() -> int:
    """Returns twice the largest cache, but at least 64 and at most 256 MiB."""
    largest = max(cache_bytes().values(), default=0)
    return min(max(2 * largest, 64 << 20), 256 << 20)


def draw_input(draw: random.Random, dims: tuple[int, ...]) -> Operand:
    """Returns a random operand that broadcasts to `dims`. The operand is a scalar, or has all
    dimensions of `dims`, only the last dimensions, or extent 1 in some dimensions. The layout is
    dense, permuted or padded."""
    kind = draw.choice(("whole", "whole", "some", "last", "scalar"))
    if kind == "scalar":
        return dense(())
    shape = dims
    if kind == "last":
        shape = dims[draw.randrange(len(dims)) :]
    if kind == "some":
        shape = tuple(1 if draw.random() < 0.5 else extent for extent in dims)
    order = list(range(len(shape)))
    layout = draw.random()
    if layout < 0.15:
        draw.shuffle(order)
    return laid_out(shape, order, draw.randint(1, 8) if layout > 0.85 else 0)


def sweep_case(index: int) -> Case:
    draw = random.Random(f"maskwise sweep {index}")
    rank = draw.randint(1, 6)
    dims = [draw.randint(1, 12) for _ in range(rank - 1)] + [draw.choice(INNER)]
    dtype = draw.choice(GRAPH_TYPES)
    state = draw.getstate()
    least = beyond_cache_bytes()
    elements = least // (2 * WIDTH[dtype])
    while True:
        # Repeats the same random choices with a larger outer dimension.
        draw.setstate(state)
        inside = 1
        for extent in dims[1:]:
            inside *= extent
        dims[0] = max(1, elements // inside)
        shape = tuple(dims)
        cond, src_0, src_1 = (draw_input(draw, shape) for _ in range(3))
        order = list(range(rank))
        if draw.random() < 0.1:
            draw.shuffle(order)
        dst = laid_out(shape, order, draw.randint(1, 8) if draw.random() < 0.1 else 0)
        if broadcast(src_0.dims, src_1.dims) != shape:
            src_1 = expand(src_1, shape)  # oneDNN Graph infers dst from the two sources
        case = Case("sweep", str(index), cond, src_0, src_1, dst, dtype, seed=index)
        if case.bytes_apart() >= least:
            return case
        elements = elements * 5 // 4


def cases_of(suite: str, full: bool, only: str = "") -> list[Case]:
    """Returns the suite's cases named in `only` (comma-separated); if `only` is empty, all."""
    makers: dict[str, Callable[[], Iterator[Case]]] = {
        "select": lambda: select_cases(full),
        "small": small_cases,
        "types": type_cases,
        "sweep": lambda: map(sweep_case, range(2000 if full else 500)),
    }
    suite_cases = makers[suite]()
    return [case for case in suite_cases if not only or case.name in only.split(",")]
