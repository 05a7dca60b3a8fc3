"""The self-check prints versions, and checks this installation and each integration."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import maskwise
from maskwise import _integrations

PACKAGE = Path(maskwise.__file__).parent


def row(name: str, value: object) -> None:
    print(f"{name:<14} {value}")


def loaded(name: str) -> str:
    """Returns the mapped files whose names begin with `name`."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    files = {line.split(maxsplit=5)[5] for line in lines if len(line.split(maxsplit=5)) == 6}
    matching = sorted(file for file in files if Path(file).name.startswith(name))
    return ", ".join(matching) or "not loaded"


def selects() -> bool:
    """Whether where() equals numpy.where for each element width, on one thread and on all."""
    import numpy as np

    random = np.random.default_rng(0)
    for dtype in (np.uint8, np.float16, np.float32, np.float64, np.complex128):
        for count in (100, 1_000_000):
            condition = random.random(count) < 0.5
            x, y = (random.integers(0, 100, count).astype(dtype) for _ in range(2))
            if not np.array_equal(maskwise.where(condition, x, y), np.where(condition, x, y)):
                return False
    return True


def attends() -> bool:
    """Whether attention with rules and with arrays matches its definition, on one thread and on
    all."""
    import numpy as np

    random = np.random.default_rng(0)
    dtypes: list[tuple[Any, float]] = [(np.float32, 1e-5), (np.float16, 2e-3)]
    if find_spec("ml_dtypes") is not None:
        dtypes.append((import_module("ml_dtypes").bfloat16, 2e-2))
    for dtype, tolerance in dtypes:
        for rows in (7, 300):
            q, k, v = random.random((3, 4, rows, 64), np.float32).astype(dtype)
            causal = np.tri(rows, dtype=bool)
            weights = np.exp(q.astype("f") @ k.astype("f").swapaxes(1, 2) / 8) * causal
            expected = weights / weights.sum(axis=2, keepdims=True) @ v.astype("f")
            bias = np.where(causal, dtype(0), dtype(-np.inf))
            for mask in (maskwise.Mask.causal(), causal, bias):
                result = maskwise.attention(q, k, v, mask)
                if not np.allclose(result.astype("f"), expected, rtol=0, atol=tolerance):
                    return False
    return True


def check(name: str, is_right: Callable[[], bool]) -> bool:
    try:
        right, why = is_right(), ""
    except Exception as failure:
        right, why = False, f": {_integrations.reason_of(failure)}"
    row(name, f"{'yes' if right else 'NO'}{why}")
    return right


def numpy_version() -> str:
    try:
        return _integrations.version_of("numpy") or "NOT INSTALLED: pip install numpy"
    except Exception as failure:
        return f"CANNOT BE LOADED: {_integrations.reason_of(failure)}"


def examine_parts() -> int:
    """Reports on a package that cannot be loaded. Returns the exit status."""
    row("maskwise", f"CANNOT BE LOADED: {maskwise._broken.strip().splitlines()[0]}")
    row("folder", PACKAGE)
    row("python", f"{sys.version.split()[0]} {sys.executable}")
    row("expected", " or ".join(f"_core{suffix}" for suffix in EXTENSION_SUFFIXES))
    row("found", ", ".join(one.name for one in PACKAGE.glob("_core*.so")) or "no _core")
    row("files in lib", ", ".join(sorted(one.name for one in PACKAGE.glob("lib/*"))) or "nothing")
    row("numpy", numpy_version())
    row("verdict", "BROKEN")
    return 1


def examine() -> int:
    if maskwise._broken:
        return examine_parts()
    settings = [f"{k}={v}" for k, v in os.environ.items() if k.startswith("MASKWISE")]
    facts: dict[str, Any] = {
        "maskwise": f"{maskwise.__version__} in {PACKAGE}",
        "python": f"{sys.version.split()[0]} {sys.executable}",
        "kernels": maskwise.instruction_set(),
        "processors": len(os.sched_getaffinity(0)),
        "libmaskwise": loaded("libmaskwise.so"),
        "libtbb": loaded("libtbb.so"),
        "settings": ", ".join(settings) or "none",
    }
    for name, value in facts.items():
        row(name, value)
    faults = [
        name
        for name, is_right in (("where ok", selects), ("attention ok", attends))
        if not check(name, is_right)
    ]
    print()
    faults += [
        integration.name
        for integration in _integrations.INTEGRATIONS
        if not _integrations.examine(integration)
    ]
    print()
    row("verdict", f"NOT FINE: {', '.join(faults)}" if faults else "all fine")
    return 1 if faults else 0
