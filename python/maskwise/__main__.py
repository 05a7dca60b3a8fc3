"""The doctor: what this installation is made of, and whether it works."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import numpy as np

import maskwise


def loaded(name: str) -> str:
    """The files of this process's memory whose name begins so."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    files = {line.split(maxsplit=5)[5] for line in lines if len(line.split(maxsplit=5)) == 6}
    found = sorted(file for file in files if Path(file).name.startswith(name))
    return ", ".join(found) or "not loaded"


def plugin() -> str:
    try:
        return f"LD_PRELOAD={maskwise.onednn_library()}"
    except FileNotFoundError as failure:
        return str(failure)


def is_right() -> bool:
    """Every width, on one thread and on all, against numpy.where."""
    random = np.random.default_rng(0)
    for dtype in (np.uint8, np.float16, np.float32, np.float64, np.complex128):
        for count in (100, 1_000_000):
            condition = random.random(count) < 0.5
            x, y = (random.integers(0, 100, count).astype(dtype) for _ in range(2))
            if not np.array_equal(maskwise.where(condition, x, y), np.where(condition, x, y)):
                return False
    return True


def attends() -> bool:
    """A causal attention of many tiles, against its definition."""
    random = np.random.default_rng(0)
    q, k, v = random.random((3, 4, 300, 64), np.float32)
    weights = np.exp(q @ k.swapaxes(1, 2) / 8) * np.tri(300, dtype=np.float32)
    expected = weights / weights.sum(axis=2, keepdims=True) @ v
    return np.allclose(maskwise.attention(q, k, v, is_causal=True), expected, atol=1e-5)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m maskwise", description=__doc__)
    parser.parse_args()
    try:
        maskwise.instruction_set()
    except ValueError as failure:  # of MASKWISE_MAX_ISA
        parser.error(str(failure))
    right = is_right() and attends()
    facts = {
        "maskwise": f"{maskwise.__version__} in {Path(maskwise.__file__).parent}",
        "python": f"{sys.version.split()[0]} {sys.executable}",
        "numpy": np.__version__,
        "kernels": maskwise.instruction_set(),
        "processors": str(len(os.sched_getaffinity(0))),
        "libmaskwise": loaded("libmaskwise.so"),
        "libtbb": loaded("libtbb.so"),
        "oneDNN plugin": plugin(),
        "settings": ", ".join(f"{k}={v}" for k, v in os.environ.items() if k.startswith("MASKWISE"))
        or "none",
        "same as NumPy": "yes" if right else "NO",
    }
    for name, value in facts.items():
        print(f"{name:<14} {value}")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
