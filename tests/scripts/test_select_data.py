"""Compares the results and cache-line counts of Select cases with a loop over all elements."""

from collections.abc import Callable
from typing import Any

import pytest

MASKS = ("random", "random:0.1", "causal", "padding", "runs", "banded", "one_row", "true")
ASK = """
import itertools, json, random, sys, tempfile
from pathlib import Path
import cases, numpy as np, select_data

def walked(case, folder):
    width = cases.WIDTH[case.dtype]
    read = lambda name, dtype: np.fromfile(Path(folder, name), dtype)
    cond, *sources = [read("cond", "u1"), *(read(name, f"u{width}") for name in ("src_0", "src_1"))]
    places = [cases.expand(t, case.dst.dims) for t in (case.cond, case.src_0, case.src_1)]
    places.append(case.dst)
    answer = np.full(case.dst.span() * width, 0x5a, "u1").view(f"u{width}")
    lines = [set() for _ in places]
    for index in itertools.product(*map(range, case.dst.dims)):
        at = [sum(i * s for i, s in zip(index, place.strides)) for place in places]
        side = 0 if cond[at[0]] else 1
        answer[at[3]] = sources[side][at[1 + side]]
        for which, size in ((0, 1), (1 + side, width), (3, width)):
            lines[which].add(at[which] * size // 64)
    same = answer.tobytes() == read("expected", "u1").tobytes()
    counts = [64 * len(numbers) for numbers in lines]
    return same, (sum(counts[:3]), counts[3])

draw, faults = random.Random(1), []
with tempfile.TemporaryDirectory() as folder:
    for number, mask in itertools.product(range(12), sys.argv[1:]):
        dims = tuple(draw.randint(1, 9) for _ in range(draw.randint(1, 4)))
        cond, src_0, src_1 = (cases.draw_input(draw, dims) for _ in range(3))
        order = draw.sample(range(len(dims)), len(dims))
        dst, dtype = cases.laid_out(dims, order, draw.randint(0, 5)), draw.choice([*cases.WIDTH])
        if cases.broadcast(src_0.dims, src_1.dims) != dims:
            src_1 = cases.expand(src_1, dims)
        case = cases.Case("x", mask, cond, src_0, src_1, dst, dtype, mask, number)
        needed = select_data.make(case, folder)
        if (True, needed) != walked(case, folder):
            faults.append(f"{case}: {needed}, {walked(case, folder)}")
masks = {mask: select_data.mask_of(mask, (4, 300, 200)) for mask in sys.argv[1:]}
again = select_data.mask_of("random", (4, 300, 200))
print(json.dumps({
    "faults": faults, "is_same": bool((masks["random"] == again).all()),
    "shares": {mask: float(is_true.mean()) for mask, is_true in masks.items()},
    "changes": int(np.count_nonzero(np.diff(masks["runs"].ravel()))),
}))
"""


@pytest.fixture(scope="module")
def facts(ask_numpy: Callable[..., Any]) -> Any:  # noqa: ANN401
    return ask_numpy(ASK, *MASKS)


def test_results_and_cache_lines_match_a_walk(facts: dict[str, Any]) -> None:
    assert facts["faults"] == []


def test_masks_match_their_names(facts: dict[str, Any]) -> None:
    shares = facts["shares"]
    assert facts["is_same"], "the same seed draws the same mask"
    assert shares["true"] == 1 and shares["one_row"] == 1 / 4
    assert 0.49 < shares["random"] < 0.51 and 0.09 < shares["random:0.1"] < 0.11
    assert 0.25 <= shares["padding"] <= 1
    # 300 rows, 200 columns: the first 100 rows have no true element.
    assert shares["causal"] == pytest.approx(200 * 201 / 2 / (300 * 200))
    assert shares["banded"] == pytest.approx(15 * 200 / (300 * 200), rel=0.02)
    assert 240_000 / 1000 - 1 <= facts["changes"] <= 240_000 / 500
