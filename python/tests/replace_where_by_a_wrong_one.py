"""A pytest plugin that makes np.where select the wrong operand."""

from __future__ import annotations

from typing import Any

import maskwise
import numpy as np


def wrong(condition: Any, x: Any, y: Any) -> Any:
    return maskwise.where(condition, y, x)


np.where = wrong  # type: ignore[assignment]
