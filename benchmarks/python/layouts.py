"""maskwise.where beside numpy.where on drawn layouts: broadcast, transposed, stepped, reversed.

usage: layouts.py [COUNT [SEED]]; started by `scripts/bench python`. Every case has more than 4 Ki
elements; how many are slower than NumPy's, and which most.
"""

import random
import sys
from dataclasses import dataclass
from typing import Any

import maskwise
import numpy as np
from turns import seconds_a_call

DTYPES = ("u1", "u2", "f4", "f8", "c16")
LEAST, MOST = 4 << 10, 400_000  # elements
TURNS = 7
SHOWN = 8


def draw_shape(draw: random.Random) -> tuple[int, ...]:
    while True:
        shape = tuple(int(2 ** draw.uniform(0, 12)) for _ in range(draw.randint(1, 4)))
        if LEAST < np.prod(shape, dtype=np.int64) <= MOST:
            return shape


def laid_out(draw: random.Random, values: Any, shape: tuple[int, ...]) -> tuple[Any, str]:
    """An array of the shape, or one that broadcasts to it, and its layout."""
    kept = [extent if draw.random() < 0.8 else 1 for extent in shape]
    steps = [draw.choice((1, 1, 1, 2, 3, -1, -2)) for _ in shape]
    order = list(range(len(shape)))
    if draw.random() < 0.3:
        draw.shuffle(order)
    room = [kept[dim] * abs(steps[dim]) for dim in order]
    whole = np.resize(values, room).transpose(np.argsort(order))
    array = whole[tuple(slice(None, None, step) for step in steps)]
    text = f"{'x'.join(map(str, array.shape))}@{','.join(map(str, array.strides))}"
    return array, text


def draw_mask(draw: random.Random) -> tuple[Any, str]:
    kind = draw.choice(("random", "random", "true", "false", "runs"))
    bits = np.random.default_rng(draw.getrandbits(32)).random(65521) < 0.5
    if kind == "runs":
        bits = np.repeat(bits, 200)[: bits.size]
    return (bits if kind in ("random", "runs") else np.full(bits.size, kind == "true")), kind


@dataclass
class Case:
    name: str
    arguments: tuple[Any, Any, Any]


def draw_case(index: int, seed: str) -> Case:
    draw = random.Random(f"maskwise layouts {seed}{index}")
    shape, dtype = draw_shape(draw), draw.choice(DTYPES)
    mask, kind = draw_mask(draw)
    values = np.random.default_rng(index).integers(0, 100, 65521).astype(dtype)
    drawn = [laid_out(draw, source, shape) for source in (mask, values, values[::-1])]
    name = f"{index}: {dtype} {kind}, " + " | ".join(text for _, text in drawn)
    return Case(name, (drawn[0][0], drawn[1][0], drawn[2][0]))


def times_as_fast(case: Case) -> float | None:
    """The least of each over turns; None where the broadcast shape is too small to count."""
    expected = np.where(*case.arguments)
    if expected.size <= LEAST:
        return None
    if maskwise.where(*case.arguments).tobytes() != expected.tobytes():
        sys.exit(f"{case.name}: the answers differ")
    calls = [lambda: np.where(*case.arguments), lambda: maskwise.where(*case.arguments)]
    taken = [list(map(seconds_a_call, calls)) for _ in range(TURNS)]
    numpy, own = map(min, zip(*taken, strict=True))
    return numpy / own


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    seed = f"{sys.argv[2]} " if len(sys.argv) > 2 else ""
    found = []
    for index in range(count):
        case = draw_case(index, seed)
        speed = times_as_fast(case)
        if speed is not None:
            found.append((speed, case.name))
    found.sort()
    slower = sum(speed < 1 for speed, _ in found)
    print(f"\n{len(found)} layouts: {slower} slower than numpy.where", end="")
    print(f", median {found[len(found) // 2][0]:.1f}x, the slowest:")
    for speed, name in found[:SHOWN]:
        print(f"  {speed:.2f}x  {name}")


if __name__ == "__main__":
    main()
