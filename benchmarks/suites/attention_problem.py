"""The data of plain attention, which every implementation gets, and the answer in double
precision."""

from pathlib import Path
from typing import Any

import numpy as np
from attention_plain import FILES, KEPT, SCALE, Plain
from ml_dtypes import bfloat16

TILE = 64  # rows and columns of the block-sparse mask's tiles, of which it keeps some percent
SPARSE_PERCENT = 12.5
NUMBERS = {"f32": np.float32, "bf16": bfloat16}
# As the harness compares a chain of operators (docs/harness.md): of the expected element, or of the
# root mean square of all where that is larger.
TOLERANCES = {"f32": 1024 * 2.0**-24, "bf16": 6 * 2.0**-8}
# In bf16 a few elements, one in POINTS, may be as far off as POINT_LIMIT tolerances where the whole
# is near. The norm leaves room for scores that are rounded to bf16, as OpenVINO rounds them.
POINTS = 1024
POINT_LIMIT = 16.0
NORM_LIMIT = 2.0**-7


def mask_of(case: Plain) -> Any:
    """True where a key is kept; None where all are."""
    if not case.mask_shape:
        return None
    if case.kind == "block-sparse":
        return tiles(case.length, SPARSE_PERCENT)[None, None]
    if case.kind.startswith(KEPT):
        return tiles(case.length, float(case.kind.removeprefix(KEPT).removesuffix(" %")))[
            None, None
        ]
    keys = np.arange(case.length)
    kept = np.ones((1, case.length), bool)
    if "padding" in case.kind:
        kept = kept & (keys < case.length * 3 // 4)
    if "causal" in case.kind:
        kept = kept & (keys[:, None] >= keys)
    return kept[None, None]


def tiles(length: int, percent: float) -> Any:
    """The same number of tiles in each row of tiles, drawn at random."""
    count, random = length // TILE, np.random.default_rng(length)
    kept = np.zeros((count, count), bool)
    for row in kept:
        row[random.choice(count, max(1, round(count * percent / 100)), replace=False)] = True
    return kept.repeat(TILE, 0).repeat(TILE, 1)


def attend(q: Any, k: Any, v: Any, mask: Any) -> Any:
    """In double precision, head by head."""
    output = np.empty(q.shape)
    for head in range(q.shape[1]):
        scores = q[0, head].astype(np.float64) @ k[0, head].astype(np.float64).T
        scores *= SCALE
        if mask is not None:
            np.copyto(scores, -np.inf, where=~mask[0, 0])
        scores -= scores.max(axis=1, keepdims=True)
        np.exp(scores, out=scores)
        scores /= scores.sum(axis=1, keepdims=True)
        output[0, head] = scores @ v[0, head].astype(np.float64)
    return output


def fault(got: Any, want: Any, dtype: str) -> str:
    """Why `got` is no answer; empty where it is one."""
    if got.size != want.size:
        return f"{got.size} elements instead of {want.size}"
    values, tolerance = got.astype(np.float64).reshape(want.shape), TOLERANCES[dtype]
    scale = np.maximum(np.abs(want), np.sqrt(np.mean(want * want)))
    errors = np.abs(values - want) / scale
    wrong = ~(errors <= tolerance)  # NaN is wrong, too
    few = wrong.sum() * POINTS <= want.size and errors.max() <= POINT_LIMIT * tolerance
    near = np.linalg.norm(values - want) <= NORM_LIMIT * np.linalg.norm(want)
    if not wrong.any() or (dtype == "bf16" and few and near):
        return ""
    first = tuple(int(index) for index in np.argwhere(wrong)[0])
    return (
        f"{wrong.sum()} of {want.size} elements differ by more than {tolerance:.2g} of their size, "
        f"the first at {list(first)}: {values[first]:.7g} instead of {want[first]:.7g}"
    )


class Problem:
    """The data of a case, written into `folder`, and what must come out."""

    def __init__(self, plain: Plain, folder: Path) -> None:
        self.plain = plain
        self.folder = folder
        self.number = NUMBERS[plain.dtype]
        random = np.random.default_rng(1)
        q, k, v = (random.standard_normal(plain.shape).astype(self.number) for _ in range(3))
        mask = mask_of(plain)
        self.want = attend(q, k, v, mask)
        scalars = {"scale": np.float32(SCALE), "fill": np.float32(-np.inf)}
        for name, array in {"q": q, "k": k, "v": v, "mask": mask, **scalars}.items():
            if array is not None:
                array.tofile(folder / FILES[name])

    def request(self) -> dict[str, Any]:
        """What a peer is told."""
        return {
            "folder": str(self.folder),
            "files": FILES,
            "shape": self.plain.shape,
            "mask": self.plain.mask_shape,
            "dtype": self.plain.dtype,
            "causal": self.plain.kind == "causal",
            "scale": SCALE,
        }

    def fault_of(self, file: str) -> str:
        path = self.folder / file
        got = np.fromfile(path, dtype=self.number)
        path.unlink()  # so that the next one cannot pass for it
        return fault(got, self.want, self.plain.dtype)
