"""A pytest plugin that makes np.where take the wrong side."""

from __future__ import annotations

from typing import Any

import maskwise
import numpy as np


def wrong(condition: Any, x: Any, y: Any) -> Any:
    return maskwise.where(condition, y, x)


np.where = wrong  # type: ignore[assignment]
