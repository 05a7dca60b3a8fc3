"""The doctor: what this installation is made of, and whether it works.

`python -m maskwise run program.py ...` runs a program with Maskwise as torch's attention.
"""

from __future__ import annotations

import argparse
import os
import runpy
import sys
from importlib import import_module, metadata
from pathlib import Path

import numpy as np

import maskwise.onednn


def loaded(name: str) -> str:
    """The files of this process's memory whose name begins so."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    files = {line.split(maxsplit=5)[5] for line in lines if len(line.split(maxsplit=5)) == 6}
    found = sorted(file for file in files if Path(file).name.startswith(name))
    return ", ".join(found) or "not loaded"


def plugin() -> str:
    try:
        return f"LD_PRELOAD={maskwise.onednn.library()}"
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


# What maskwise.torch, maskwise.transformers and maskwise.flash_attn are tested with.
TESTED = {"torch": "2.15.0", "transformers": "5.23.0"}


def installed(name: str) -> str:
    try:
        return f"{metadata.version(name)}, tested with {TESTED[name]}"
    except metadata.PackageNotFoundError:
        return f"not installed; tested with {TESTED[name]}"


def run(program: str, arguments: list[str]) -> None:
    """As `python program arguments` would, with maskwise.torch.install()."""
    door = import_module("maskwise.torch")
    door.install()
    sys.argv = [program, *arguments]
    sys.path[0] = str(Path(program).resolve().parent)
    runpy.run_path(program, run_name="__main__")


def start(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m maskwise run", description=run.__doc__)
    parser.add_argument("program")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    given = parser.parse_args(words)
    if not Path(given.program).is_file():
        parser.error(f"no such file: {given.program}")
    try:
        run(given.program, given.arguments)
    except ModuleNotFoundError as missing:
        if missing.name != "torch":
            raise
        parser.error("torch is not installed")
    return 0


def main() -> int:
    if sys.argv[1:2] == ["run"]:
        return start(sys.argv[2:])
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
        **{name: installed(name) for name in TESTED},
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
