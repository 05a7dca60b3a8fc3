"""NumPy: where, and two copies into an array that is there already."""

from typing import Any

import numpy as np
from operands import Operands, Selecting


class Peer(Selecting):
    version = np.__version__
    forms = dict.fromkeys(("where", "copyto"))

    def __init__(self, threads: int) -> None:
        super().__init__(threads=1)

    def ready(self, case: dict[str, Any]) -> tuple[Operands, dict[str, Any]]:
        of = Operands(case, np.empty)

        def copy() -> Any:
            np.copyto(of.dst, of.src_1)
            np.copyto(of.dst, of.src_0, where=of.cond)

        return of, {"where": lambda: np.where(of.cond, of.src_0, of.src_1), "copyto": copy}
