"""A pytest plugin that replaces np.where with maskwise.where, and prints the number of calls."""

from __future__ import annotations

from typing import Any

import maskwise
import numpy as np

calls = 0


def counted(*arguments: Any) -> Any:
    global calls
    calls += 1
    return maskwise.where(*arguments)


np.where = counted


def pytest_terminal_summary(terminalreporter: Any) -> None:
    terminalreporter.write_line(f"calls of maskwise.where: {calls}")
