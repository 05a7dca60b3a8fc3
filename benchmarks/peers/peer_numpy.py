"""Runs NumPy's `where`, and two calls of `copyto` into an existing array."""

from typing import Any

import numpy as np
from operands import Operands, Selecting


class Peer(Selecting):
    version = np.__version__
    forms = dict.fromkeys(("where", "copyto"))

    def __init__(self, threads: int) -> None:
        super().__init__(threads=1)

    def ready(self, case: dict[str, Any]) -> tuple[Operands, dict[str, Any]]:
        operands = Operands(case, np.empty)

        def copy() -> Any:
            np.copyto(operands.dst, operands.src_1)
            np.copyto(operands.dst, operands.src_0, where=operands.cond)

        return operands, {
            "where": lambda: np.where(operands.cond, operands.src_0, operands.src_1),
            "copyto": copy,
        }
