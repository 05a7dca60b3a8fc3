"""Checks arguments. Each error text contains the value and the expected values."""

from __future__ import annotations

import os
from reprlib import repr as shortened
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from pathlib import Path


def shown(value: Any) -> str:
    """Shortens the value to one line of text."""
    return " ".join(shortened(value).split())


def flag(name: str, value: Any) -> bool:
    """Converts a Python or NumPy bool, or the integer 0 or 1."""
    if isinstance(value, (int, np.bool_, np.integer)) and value in (0, 1):
        return bool(value)
    raise TypeError(f"{name} is {shown(value)}, expected True or False")


def number(name: str, value: Any) -> float:
    try:
        if not isinstance(value, (str, bytes)):
            return float(value)
    except (TypeError, ValueError, OverflowError):
        pass
    raise TypeError(f"{name} is {shown(value)}, expected a float")


def instance(name: str, value: Any, kind: type, expected: str) -> Any:
    if not isinstance(value, kind):
        raise TypeError(f"{name} is {shown(value)}, expected {expected}")
    return value


def file(name: str, value: str | os.PathLike[str]) -> Path:
    from pathlib import Path  # importing pathlib takes longer than importing this package

    path = Path(os.fsdecode(value))
    if path.is_dir():
        raise IsADirectoryError(f"{name} is the directory {path}, expected a file")
    if not path.is_file():
        raise FileNotFoundError(f"{name} is {path}, expected a file that exists")
    return path
